"""What a fit says beforehand about the ranking to expect: public numbers, and about right."""

import contextlib
import math
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_halfspace import (
    AdaptiveMarginClassifier,
    LabelPrivateClassifier,
    OutputPerturbationClassifier,
    PrivacyWarning,
    PrivateAUCClassifier,
    PrivateTableClassifier,
)
from dp_halfspace._params import EPSILON_RANGE
from dp_halfspace.estimators._outlook import Outlook
from dp_halfspace.inspection import outlook, plan_accuracy
from tests.releases import choosing_the_last

SIZES = (st.integers(10, 10**6), st.integers(1, 500), st.floats(0.01, 30))


@given(*SIZES)
def test_more_columns_are_never_easier_and_what_it_takes_is_enough(n, d, epsilon):
    here = Outlook(n, d, epsilon)
    assert 0.0 < Outlook(n, 2 * d, epsilon).improvement < here.improvement < 1.0
    assert 0.0 < here.spread <= 0.5
    assert Outlook(here.n_samples_wanted, d, epsilon).improvement >= 0.8 - 1e-9
    assert math.isclose(Outlook(n, d, here.epsilon_wanted).improvement, 0.8)
    assert here.is_poor == (here.improvement < 0.3)


@given(*SIZES, st.sampled_from(["records", "persons"]))
def test_it_is_one_short_sentence_with_one_next_step(n, d, epsilon, unit):
    found = Outlook(n, d, epsilon, unit)
    text = str(found)
    assert re.match(r"epsilon=\S+ for \d+ \w+: if no class is rare, expect about", text)
    assert len(text.split()) < 45
    assert ". " not in text
    assert ("; for 80%, use about" in text) == (found.improvement < 0.8)
    assert text.count(unit) == 1 + (found.improvement < 0.8)
    assert f"about {found.improvement:.0%} (" in text


def test_without_noise_everything_is_expected_and_no_boundless_budget_is_recommended():
    assert Outlook(100, 5, math.inf).improvement == 1.0
    # Half at 70 records times epsilon, over the root of the number of columns.
    assert Outlook(1400, 100, 0.5).improvement == pytest.approx(0.5)
    assert "epsilon=1e+0" not in str(Outlook(1, 500, 1e-9))
    assert str(Outlook(1, 5, 10.0)).endswith("use about 63 records or epsilon=630")
    assert Outlook(1, 10**9, 1.0).epsilon_wanted > EPSILON_RANGE[1]
    assert "or epsilon" not in str(Outlook(1, 10**9, 1.0))


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("n", "epsilon"), [(3000, 0.3), (400, 1.0), (2000, 3.0)])
def test_it_is_about_what_simulations_give(n, epsilon):
    """Within the spread that it states."""
    plan = plan_accuracy(n, 10, 2, [epsilon], reference_area=0.85, n_repeats=4, random_state=0)
    expected = outlook(n, 10, epsilon)
    assert abs((plan.area[0] - 0.5) / 0.35 - expected.improvement) < max(expected.spread, 0.1)


def rows(n_samples, n_columns=30):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n_samples, n_columns)), rng.integers(0, 2, n_samples)


def said(model, X, y, method="fit", **given):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        getattr(model, method)(X, y, **given)
    assert all(issubclass(w.category, PrivacyWarning) for w in caught if "expect" in str(w.message))
    return [str(w.message) for w in caught if "expect about" in str(w.message)]


@pytest.mark.parametrize("method", ["fit", "plan"])
@pytest.mark.parametrize(
    "model",
    [AdaptiveMarginClassifier(), OutputPerturbationClassifier(), PrivateAUCClassifier()],
    ids=str,
)
def test_a_fit_with_a_poor_outlook_says_so_once(model, method):
    X, y = rows(200)
    model.set_params(epsilon=0.1, data_norm=1.0, classes=[0, 1])
    assert said(model, X, y, method) == [str(Outlook(200, 30, 0.1))]


def test_a_fit_with_a_good_outlook_says_nothing():
    X, y = rows(3000)
    assert not said(AdaptiveMarginClassifier(epsilon=1, data_norm=1.0, classes=[0, 1]), X, y)


def test_fits_that_no_rule_was_measured_for_say_nothing():
    X, y = rows(200)
    assert not said(LabelPrivateClassifier(epsilon=0.1, classes=[0, 1], data_norm=1.0), X, y)
    prior = AdaptiveMarginClassifier(epsilon=0.1, classes=[0, 1], prior=(np.ones((1, 30)), [0.0]))
    assert not said(prior, X, y)


def test_what_is_said_is_the_same_of_neighbours_and_of_any_table_of_the_size():
    X, y = rows(60, 10)
    model = AdaptiveMarginClassifier(epsilon=0.1, classes=[0, 1])
    other, labels = X.copy(), y.copy()
    other[3], labels[3] = 1e12, 1 - y[3]
    texts = [
        said(model, *table)
        for table in ((X, y), (other, labels), (1e9 * X, np.zeros_like(y)), (np.nan * X, y))
    ]
    assert all(text == [str(Outlook(60, 10, 0.1))] for text in texts)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ((0, 5), "n_samples"),
        ((100, 0), "n_features"),
        ((100, 5, -1.0), "epsilon must"),
        ((100, 5, "1"), "epsilon must"),
    ],
)
def test_sizes_out_of_range_are_named(given, name):
    with pytest.raises(ValueError, match=name):
        outlook(*given)


# -- tables ---------------------------------------------------------------------------------------

TABLE = {**{f"x{k}": "number" for k in range(6)}, "ward": list("ABCDE")}


def table(n_samples, share, seed=0):
    """Texts and skewed numbers with missing entries, of which one tells the classes apart."""
    rng = np.random.default_rng([seed, n_samples])
    y = (rng.random(n_samples) < share).astype(int)
    numbers = {f"x{k}": np.exp(rng.normal(size=n_samples)) for k in range(6)}
    numbers["x0"] *= np.exp(1.2 * y)
    numbers["x1"][rng.random(n_samples) < 0.1] = np.nan
    return pd.DataFrame({**numbers, "ward": rng.choice(list("ABCDE"), n_samples)}), y


def of_table(epsilon, schema=TABLE, **given):
    return PrivateTableClassifier(epsilon=epsilon, schema=schema, classes=[0, 1], **given)


def test_columns_of_a_table_are_counted_as_they_are_encoded():
    """Without indicators of missing numbers; words have as many columns as are stated."""
    X, y = table(300, 0.5)
    assert said(of_table(0.1), X, y, "plan") == [str(Outlook(300, 6 + 5, 0.1))]
    words = {**TABLE, "note": {"kind": "words", "columns": 64}}
    text = said(of_table(0.1, words), X.assign(note="no pain"), y, "plan")
    assert text == [str(Outlook(300, 6 + 5 + 64, 0.1))]


def test_a_good_small_model_gets_no_warning():
    for share in (0.5, 0.1):
        assert not said(of_table(3.0), *table(300, share))


def test_a_fit_for_persons_speaks_of_persons():
    X, y = table(600, 0.05)
    (text,) = said(of_table(0.1), X, y, groups=np.arange(600) // 2)
    assert "for 300 persons:" in text
    # Whether labels are stated or not: their number plays no part.
    (same,) = said(of_table(0.1).set_params(classes=None), X, y, groups=np.arange(600) // 2)
    assert same == text


def test_a_model_whose_scores_are_all_equal_says_so():
    """What is said follows from the choice."""
    X, y = table(300, 0.5)
    for choice in (choosing_the_last(), contextlib.nullcontext()):
        model = of_table(0.1)
        with choice, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, y)
        is_constant = not np.any(model.model_.coef_)
        texts = [str(w.message) for w in caught]
        assert any("every row has the same score" in text for text in texts) == is_constant
        assert is_constant or isinstance(choice, contextlib.nullcontext)
    linear = AdaptiveMarginClassifier(epsilon=1.0, classes=[0, 1]).fit(*rows(600, 3))
    linear.coef_ = np.zeros((1, 3))
    assert linear._finding.startswith("every row has the same score")
