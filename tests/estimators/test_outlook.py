"""What a fit says beforehand about the accuracy to expect: public numbers, and about right."""

import math
import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from dp_halfspace import (
    AdaptiveMarginClassifier,
    LabelPrivateClassifier,
    ObjectivePerturbationClassifier,
    OutputPerturbationClassifier,
    PrivacyWarning,
    PrivateAUCClassifier,
    PrivateTableClassifier,
    PureHalfspaceClassifier,
)
from dp_halfspace.engine.plan import Fitted
from dp_halfspace.estimators._outlook import (
    GOOD,
    POOR,
    RARE,
    Ranking,
    Table,
    outlook_of,
)
from dp_halfspace.estimators._rare_tables import rare_class_limit
from dp_halfspace.inspection import Outlook, outlook, plan_accuracy
from dp_halfspace.inspection.card import _expectation
from tests.privacy.oracles import pure

SIZES = {
    "n_samples": st.integers(10, 10**6),
    "n_features": st.integers(1, 500),
    "n_classes": st.integers(2, 50),
    "epsilon": st.floats(0.01, 30),
    "delta": st.sampled_from([0.0, 1e-9, 1e-5]),
}


@given(**SIZES)
def test_more_columns_are_never_easier_and_shares_are_shares(**sizes):
    here = outlook_of(**sizes)
    wider = outlook_of(**{**sizes, "n_features": 2 * sizes["n_features"]})
    assert 0.0 < wider.improvement <= here.improvement <= 1.0


@given(**SIZES)
def test_what_it_would_take_is_enough(**sizes):
    # On the side of the switch between mechanisms where the question was asked.
    sizes = {**sizes, "n_classes": max(8, sizes["n_classes"])}
    here = outlook_of(**sizes)
    more = outlook_of(**{**sizes, "n_samples": here.n_samples_wanted})
    assert more.improvement >= GOOD - 1e-9
    if here.epsilon_wanted <= 1e3:
        spent = outlook_of(**{**sizes, "epsilon": here.epsilon_wanted})
        assert spent.improvement >= GOOD - 1e-3


def test_without_noise_everything_is_expected():
    assert outlook_of(100, 5, 3, math.inf, 1e-4).improvement == 1.0


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("sizes", "epsilon"), [((3000, 10, 2), 0.3), ((300, 10, 2), 1.0), ((1000, 10, 6), 1.0)]
)
def test_it_is_what_simulations_give(sizes, epsilon):
    plan = plan_accuracy(*sizes, [epsilon], reference=0.85, n_repeats=4, random_state=0)
    majority = 1.0 / sizes[2]
    measured = (plan.accuracy[0] - majority) / (0.85 - majority)
    assert abs(outlook_of(*sizes, epsilon, 1.0 / sizes[0] ** 2).improvement - measured) < 0.15


def rows(n_samples, n_columns=30):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n_samples, n_columns)), rng.integers(0, 2, n_samples)


def said(model, X, y, method="fit"):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        getattr(model, method)(X, y)
    return [str(w.message) for w in caught if "expect about" in str(w.message)]


@pytest.mark.parametrize("method", ["fit", "plan"])
def test_a_fit_with_a_poor_outlook_says_so_once(method):
    X, y = rows(200)
    model = AdaptiveMarginClassifier(epsilon=0.1, data_norm=1.0, classes=[0, 1])
    (text,) = said(model, X, y, method)
    assert "200 records" in text
    assert "about" in text
    assert "epsilon=" in text
    expected = outlook_of(200, 30, 2, 0.1, 1.0 / 200**2)
    assert expected.improvement < POOR
    assert text == str(expected)


def test_several_classes_in_stated_scales_have_a_curve_of_their_own():
    """Where selections have ended there but not in estimated scales, and beyond; not below."""
    for n_samples, is_other in ((150, False), (800, True), (5000, True)):
        sizes = (n_samples, 10, 4, 1.0, 1.0 / n_samples**2)
        stated, learnt = (outlook_of(*sizes, is_scale_stated=k) for k in (True, False))
        assert (stated.improvement != learnt.improvement) == is_other
        assert outlook(*sizes[:4], is_scale_stated=True) == stated
    # Two classes have one curve for both, but where selections end.
    for n_samples, is_other in ((599, False), (600, True), (899, True), (900, False)):
        stated, learnt = (
            outlook_of(n_samples, 10, 2, 1.0, 1e-6, is_scale_stated=k) for k in (True, False)
        )
        assert (stated != learnt) == is_other


@pytest.mark.parametrize("norm", [None, 2.0])
def test_a_fit_asks_by_whether_its_scale_is_stated(norm):
    X, _ = rows(400, 60)
    y = np.arange(400) % 7
    model = AdaptiveMarginClassifier(epsilon=0.76, data_norm=norm, classes=list(range(7)))
    expected = outlook_of(400, 60, 7, 0.76, 1.0 / 400**2, is_scale_stated=norm is not None)
    assert said(model, X, y, "plan") == ([str(expected)] if expected.is_poor else [])
    assert expected.is_poor == (norm is not None)


def test_what_is_said_is_the_same_on_any_table_of_the_size():
    X, y = rows(200)
    model = AdaptiveMarginClassifier(epsilon=0.1, data_norm=1.0, classes=[0, 1])
    assert said(model, X, y) == said(model, 1e9 * X, np.zeros_like(y))


def test_a_fit_with_a_good_outlook_says_nothing():
    X, y = rows(3000)
    assert not said(AdaptiveMarginClassifier(epsilon=1, data_norm=1.0, classes=[0, 1]), X, y)


def test_private_labels_have_another_outlook():
    X, y = rows(200)
    model = LabelPrivateClassifier(epsilon=0.1, classes=[0, 1], data_norm=1.0)
    assert not said(model, X, y)


def test_the_warning_is_one_of_the_package():
    X, y = rows(100)
    with pytest.warns(PrivacyWarning, match="expect about"):
        AdaptiveMarginClassifier(epsilon=0.1, data_norm=1.0, classes=[0, 1]).fit(X, y)


def test_the_public_function_asks_the_same():
    assert isinstance(outlook(300, 40, 2), Outlook)
    assert outlook(300, 40, 2, 0.1) == outlook_of(300, 40, 2, 0.1, 1.0 / 300**2)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ((0, 5, 2), "n_samples"),
        ((100, 5, 1), "n_classes"),
        ((100, 5, 2, -1.0), "epsilon"),
        ((100, 5, 2, 1.0, 0.7), "delta"),
    ],
)
def test_sizes_out_of_range_are_named(given, name):
    with pytest.raises(ValueError, match=name):
        outlook(*given)


def test_a_rare_class_counts_by_its_own_records():
    here = outlook_of(2000, 20, 2, 1.0, 1e-7)
    assert here.rare_improvement is not None
    assert here.rare_improvement < here.improvement
    assert outlook_of(2000, 20, 3, 1.0, 1e-7).rare_improvement is None
    assert outlook_of(2000, 20, 2, math.inf, 1e-7).rare_improvement == 1.0


def test_a_fit_says_that_a_rare_class_cannot_be_ranked():
    """Though classes of equal size would be told apart."""
    X, y = rows(400, 60)
    model = AdaptiveMarginClassifier(epsilon=0.8, data_norm=1.0, classes=[0, 1])
    expected = outlook_of(400, 60, 2, 0.8, 1.0 / 400**2)
    assert expected.cannot_rank_rare
    assert not expected.is_poor
    (text,) = said(model, X, y)
    assert "do not rely on it" in text
    (text,) = said(model, X, np.zeros_like(y))
    assert text == str(expected)


CLIPPED = {"preconditioner": False, "data_norm": 1.0}


@pytest.mark.parametrize(
    ("model", "ranks"),
    [
        (AdaptiveMarginClassifier(), True),
        (ObjectivePerturbationClassifier(), True),
        (ObjectivePerturbationClassifier(delta=0), True),
        (ObjectivePerturbationClassifier(rows="clipped", data_norm=1.0), False),
        (ObjectivePerturbationClassifier(**CLIPPED), False),
        (OutputPerturbationClassifier(), True),
        (OutputPerturbationClassifier(delta=0, data_norm=1.0), False),
        (OutputPerturbationClassifier(alpha=0.1, preconditioner=True, data_norm=1.0), True),
        (OutputPerturbationClassifier(alpha=0.1, data_norm=1.0), False),
        (OutputPerturbationClassifier(**CLIPPED), False),
        (OutputPerturbationClassifier(**CLIPPED, class_weight={0: 1, 1: 9}), True),
        (PureHalfspaceClassifier(), False),
        (PureHalfspaceClassifier(class_weight={0: 1, 1: 9}), True),
    ],
    ids=str,
)
def test_fits_that_need_class_weights_say_so_before_and_after(model, ranks):
    """Those that count errors, and those of rows that are not centred."""
    X, y = rows(1000, 5)
    model.set_params(epsilon=2.0, classes=[0, 1])
    data = model._validate(X, y, None)
    model.fit(X, y)
    for seen in (data, None):
        *_, kind = model._outlook_facts(1000, seen)
        assert kind.ranks_rare == ranks
    found = outlook_of(1000, 5, 2, 2.0, 1e-6, kind=kind)
    assert (found.rare_improvement is not None) == ranks
    assert ("unless class_weight gives it more weight" in str(found)) == (not ranks)


def test_wide_rows_are_not_centred_but_after_a_projection():
    X, y = rows(50, 600)
    for model, ranks in (
        (ObjectivePerturbationClassifier(data_norm=1.0), False),
        (ObjectivePerturbationClassifier(data_norm=1.0, projection="rademacher"), True),
        (OutputPerturbationClassifier(data_norm=1.0), False),
    ):
        model.set_params(classes=[0, 1])
        *_, kind = model._outlook_facts(50, model._validate(X, y, None))
        assert kind.ranks_rare == ranks


@pytest.mark.slow
@pytest.mark.parametrize(("n_samples", "n_columns", "epsilon"), [(400, 4, 0.8), (1000, 12, 0.3)])
def test_a_selection_hardly_ranks_a_class_of_five_percent_as_in_simulations(
    n_samples, n_columns, epsilon
):
    plan = plan_accuracy(
        n_samples, n_columns, 2, [epsilon], majority=0.95, reference_area=0.85, random_state=1
    )
    expected = outlook(n_samples, n_columns, 2, epsilon)
    assert abs((plan.area[0] - 0.5) / 0.35 - expected.rare_improvement) < 0.2
    assert expected.cannot_rank_rare
    assert 0.2 <= expected.least_share < 0.25


@pytest.mark.parametrize(
    "model",
    [
        ObjectivePerturbationClassifier(rows="clipped"),
        OutputPerturbationClassifier(preconditioner=False),
        PureHalfspaceClassifier(),
    ],
    ids=str,
)
def test_a_class_that_may_be_ranked_only_with_weights_promises_nothing(model):
    X, y = rows(400, 5)
    model.set_params(classes=[0, 1])
    assert "unless class_weight gives it more weight" in _expectation(model.fit(X, y))
    weighed = model.set_params(class_weight={0: 0.1, 1: 0.9}).fit(X, y)
    assert "of the area under the curve" in _expectation(weighed)


def rare(n_samples, n_columns, seed):
    """Columns of any scale, a class of 5 % and an area of .85 without privacy."""
    rng = np.random.default_rng([seed, n_samples])
    labels = (rng.random(n_samples) < RARE).astype(int)
    X = rng.normal(size=(n_samples, n_columns)) + 1.5 / n_columns**0.5 * labels[:, None]
    return X * 10.0 ** rng.uniform(-2, 3, n_columns), labels


def area(n_samples, n_columns, epsilon, seed):
    rng = np.random.default_rng([seed, n_samples])
    X, y = rare(n_samples + 4000, n_columns, seed)
    model = PrivateAUCClassifier(
        epsilon=epsilon, classes=[0, 1], random_state=int(rng.integers(99))
    )
    scores = model.fit(X[:n_samples], y[:n_samples]).decision_function(X[n_samples:])
    return roc_auc_score(y[n_samples:], scores)


@pytest.mark.sampled(1)
@pytest.mark.filterwarnings("ignore::dp_halfspace.PrivacyWarning")
@pytest.mark.parametrize("sizes", [(300, 9, 1.0), (2000, 9, 0.3), (800, 30, 1.0)])
def test_a_ranking_at_the_level_of_a_coin_is_said_beforehand(sizes):
    n_samples, n_columns, epsilon = sizes
    assert np.mean([area(*sizes, seed) for seed in range(6)]) < 0.7
    model = PrivateAUCClassifier(epsilon=epsilon, classes=[0, 1])
    for method in ("fit", "plan"):
        (text,) = said(model, *rare(n_samples, n_columns, 0), method)
        assert "5% of the records" in text
        assert "do not rely on it" in text


@pytest.mark.sampled(1)
@pytest.mark.filterwarnings("ignore::dp_halfspace.PrivacyWarning")
@pytest.mark.parametrize("sizes", [(800, 4, 3.0), (2000, 9, 1.0), (5000, 30, 1.0)])
def test_a_ranking_that_is_fine_is_not_warned_of(sizes):
    n_samples, n_columns, epsilon = sizes
    assert np.mean([area(*sizes, seed) for seed in range(4)]) > 0.68
    model = PrivateAUCClassifier(epsilon=epsilon, classes=[0, 1])
    assert not said(model, *rare(n_samples, n_columns, 0))


def test_what_is_said_of_a_ranking_is_the_same_for_neighbours():
    X, y = rare(300, 9, 0)
    model = PrivateAUCClassifier(classes=[0, 1])
    expected = said(model, X, y)
    assert expected == [str(outlook_of(300, 9, 2, 1.0, 300.0**-2, kind=Ranking(False)))]
    for place in (int(y.argmax()), int(y.argmin())):
        other, labels = X.copy(), y.copy()
        other[place], labels[place] = 1e12, 1 - y[place]
        assert said(model, other, labels) == expected
    assert said(model, np.full_like(X, np.nan), np.zeros_like(y)) == expected


def test_a_public_share_and_stated_scales_count():
    X, y = rare(1000, 9, 0)
    texts = [
        said(PrivateAUCClassifier(epsilon=0.5, classes=[0, 1], **public), X, y)
        for public in ({"class_counts": (50, 950)}, {"class_counts": (990, 10)}, {"data_norm": 9.0})
    ]
    assert not said(PrivateAUCClassifier(epsilon=0.5, classes=[0, 1], class_counts=(1, 1)), X, y)
    assert texts[0] == said(PrivateAUCClassifier(epsilon=0.5, classes=[0, 1]), X, y)
    assert "1% of the records" in texts[1][0]
    assert texts[2] != texts[0]


def test_few_records_of_several_classes_are_not_warned_of_where_two_selections_are_good():
    """As on real tables: 200 records at epsilon 1 have more than half of the improvement."""
    assert not outlook_of(200, 90, 6, 1.0, 200.0**-2).is_poor
    assert outlook_of(200, 10, 4, 0.2, 200.0**-2).is_poor


# -- tables ---------------------------------------------------------------------------------------


def table(n_samples, share, seed=0):
    """Texts and skewed numbers with missing entries, of which one tells the classes apart."""
    rng = np.random.default_rng([seed, n_samples])
    y = (rng.random(n_samples) < share).astype(int)
    numbers = {f"x{k}": np.exp(rng.normal(size=n_samples)) for k in range(6)}
    numbers["x0"] *= np.exp(1.2 * y)
    numbers["x1"][rng.random(n_samples) < 0.1] = np.nan
    return pd.DataFrame({**numbers, "ward": rng.choice(list("ABCDE"), n_samples)}), y


TABLE = {**{f"x{k}": "number" for k in range(6)}, "ward": list("ABCDE")}


def of_table(epsilon=3.0, **given):
    return PrivateTableClassifier(epsilon=epsilon, schema=TABLE, classes=[0, 1], **given)


def test_a_selection_for_a_rare_class_is_said_by_what_was_counted_and_steps_are_not():
    (text,) = said(of_table(1.0), *table(300, 0.1))
    assert "noisy count" in text
    assert "do not rely on it" in text
    assert not said(of_table(1.0), *table(300, 0.5))
    # Steps rank a class of this share better than chance.
    assert not said(of_table(3.0), *table(300, 0.12))


def test_a_table_with_many_records_of_the_rare_class_is_not_warned_of():
    assert not said(of_table(), *table(2000, 0.1))


def test_a_plan_of_a_table_says_what_a_class_of_five_percent_would_be():
    X, y = table(300, 0.5)
    (text,) = said(of_table(), X, y, "plan")
    kind = Table(11, column_limit=rare_class_limit(300, 3.0))
    assert text == str(outlook_of(300, 7, 2, 3.0, 300.0**-2, kind=kind))
    assert "the model is one selected column" in text
    assert "5% of the records" in text


def test_columns_of_a_table_are_counted_before_they_are_encoded():
    X, y = table(300, 0.5)
    many = X.assign(ward=[f"ward {k % 40}" for k in range(300)])
    rules = {**TABLE, "ward": [f"ward {k}" for k in range(40)]}
    other = PrivateTableClassifier(epsilon=0.1, schema=rules, classes=[0, 1])
    assert said(of_table(0.1), X, y, "plan") == said(other, many, y, "plan") != []


@pytest.mark.parametrize("size", [1, 8, 64])
def test_a_column_of_words_is_one_column_to_its_user_and_harder_than_one(size):
    X, y = table(300, 0.5)
    rules = {**TABLE, "note": {"kind": "words", "columns": size}}
    model = PrivateTableClassifier(epsilon=0.1, schema=rules, classes=[0, 1])
    (text,) = said(model, X.assign(note="no pain"), y, "plan")
    kind = Table(11 + size, n_facts=7 + size)
    expected = outlook_of(300, 8, 2, 0.1, 300.0**-2, kind=kind)
    assert "8 columns" in text
    assert text == str(expected)
    alone = outlook_of(300, 7 + size, 2, 0.1, 300.0**-2, kind=Table(11 + size))
    assert expected.improvement == alone.improvement


def test_a_fit_that_counts_nothing_says_what_a_class_of_five_percent_would_be():
    (text,) = said(of_table(0.8, probability=False), *table(300, 0.5))
    assert "7 columns and 2 classes: if one class has 5% of the records, expect about" in text


def test_after_a_fit_only_what_was_released_is_said():
    """The same of every table of the size, whatever its labels."""
    fitted, texts = Fitted(np.zeros((1, 11)), np.zeros(1), math.inf, error_share=0.05), []
    for share in (0.0, 0.05, 0.5):
        model, (X, y) = of_table(), table(300, share)
        data, record = model._validate(X, y, None), pure(3.0, public={"calibrated": True})
        texts.append(model._describe_rarer(fitted, data, record))
    assert texts[0] == texts[1] == texts[2]
    share, text = texts[0]
    assert share == 0.05
    assert "0.05" in text


@pytest.mark.parametrize("share", [0.05, 0.15])
def test_a_rare_class_with_less_than_half_of_the_area_is_said_whatever_luck_its_count_has(share):
    """At a third the noise of the count let three of ten fits of a hospital pass."""
    kind = Table(11, share)
    sizes = range(100, 4000, 50)
    judged = [outlook_of(n, 7, 2, 3.0, float(n) ** -2, kind=kind) for n in sizes]
    assert all(each.cannot_rank_rare == (each.rare_improvement < 0.5) for each in judged)
    assert {each.cannot_rank_rare for each in judged} == {False, True}
    # Of classes of like size a count of errors says less: they may be far from rare.
    like = [outlook_of(n, 7, 2, 3.0, float(n) ** -2, kind=Table(11, 0.3)) for n in sizes]
    assert all(each.cannot_rank_rare == (each.rare_improvement < 1 / 3) for each in like)


def test_a_fit_for_persons_speaks_of_persons():
    X, y = table(600, 0.05)
    people = np.arange(600) // 2
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        of_table(0.1).fit(X, y, groups=people)
    text = next(str(w.message) for w in caught if "expect about" in str(w.message))
    assert "300 persons" in text
    assert "% of the persons" in text


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("n", [300, 1000, 2000, 8000, 50_000])
@pytest.mark.parametrize(
    "kind", [Ranking(True), Ranking(False), Table(12), Table(12, column_limit=0.08)]
)
def test_the_least_share_is_the_first_that_is_ranked(kind, n, delta):
    for epsilon in (0.3, 1.0, 3.0):
        sizes = (n, 12, 2, epsilon, delta)
        least = outlook_of(*sizes, kind=kind).least_share
        if least > 1.01e-3:
            assert outlook_of(*sizes, kind=replace(kind, share=0.99 * least)).cannot_rank_rare
        if least < 0.5:
            above = outlook_of(*sizes, kind=replace(kind, share=1.01 * least + 1e-9))
            assert not above.cannot_rank_rare
    text = str(outlook_of(1000, 12, 2, 0.3, 1e-6, kind=Table(12)))
    assert re.search(r"better than chance if the class has about 2\d% of the records or more", text)
