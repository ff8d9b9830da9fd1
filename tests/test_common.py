"""scikit-learn's checks and our own, over one table of all estimators."""

import copy
import json
import pickle
import re

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from dp_halfspace import (
    BudgetError,
    OutputPerturbationClassifier,
    PrivacyWarning,
    PrivateSearchCV,
    privacy,
)
from dp_halfspace.preprocessing.scalers import CellScaler
from tests.conftest import separated
from tests.instances import (
    ESTIMATORS,
    VARIANTS,
    adjacency,
    instances,
    label,
    made,
    with_enough_records,
    with_ways,
)
from tests.releases import record_releases
from tests.support import (
    RELEASED,
    Book,
    checks,
    every_estimator,
    first_of_each,
    fitted,
    one_of_each,
    public,
    releases_of,
    together,
    two_of_each,
)

pytestmark = pytest.mark.usefixtures("short_lists")
with_every_way = pytest.mark.parametrize("estimator", with_ways(), ids=label)
three_of_each_way = pytest.mark.parametrize(
    "estimator", list(first_of_each(with_ways(), 3)), ids=[label(e) for e in with_ways()]
)


def takes_many_classes(estimator):
    return get_tags(estimator).classifier_tags.multi_class


def n_coefficients(model):
    own = [name for name in ("n_components_", "n_hidden_") if hasattr(model, name)]
    return getattr(model, own[0]) if own else model.n_features_in_


def assert_fits_differ(estimator, X, y, first):
    """One of several does: a choice among few candidates repeats itself once in 200 times."""
    fits = (together(fitted(estimator, X, y)) for _ in range(12))
    assert any(not np.array_equal(first, again) for again in fits)


def test_every_estimator_is_in_the_table():
    assert set(VARIANTS) == set(ESTIMATORS)


def models_to_check():
    """Every variant; a selection chooses among few margins."""
    models = instances(through_origin=False, epsilon=50.0)
    for model in models:
        if model.get_params().get("selection") == "exponential":
            model.set_params(margin=[0.1, 0.3])
    return models


@pytest.mark.sampled(7)
@pytest.mark.filterwarnings("ignore::dp_halfspace.PrivacyWarning")
@pytest.mark.parametrize(("estimator", "check"), checks(models_to_check()))
def test_sklearn_checks(estimator, check):
    check(estimator)


# -- privacy -------------------------------------------------------------------------


@pytest.mark.sampled(20)
@with_every_way
@pytest.mark.parametrize("epsilon", [pytest.param(0.1, marks=pytest.mark.slow), 8.0])
def test_spends_at_most_the_budget_and_shows_it(estimator, epsilon, margin_data):
    record = fitted(estimator, *margin_data, epsilon=epsilon).privacy_
    assert record.epsilon == epsilon
    assert record.delta == (0.0 if estimator.delta == 0 else 1 / 400**2)
    assert record.adjacency == adjacency(estimator)
    assert f"adjacency={adjacency(estimator)!r}" in repr(record)
    assert record.noise == "os"
    assert privacy.epsilon(record.events, record.delta) <= epsilon * (1 + 1e-12)
    # The distribution of a random number of runs is found on a coarser grid, and the part of a
    # budget beside estimated column scales by trying.
    is_coarse = estimator.get_params().get("selection") == "random_stopping"
    slack = 1e-4 if is_coarse or estimator.data_norm is None else 1e-6
    assert privacy.epsilon(record.events, record.delta) >= epsilon * (1 - slack)
    restored = privacy.PrivacyRecord.from_dict(json.loads(record.to_json()))
    assert privacy.epsilon(restored.events, restored.delta) <= epsilon * (1 + 1e-12)
    assert "replace" in record.summary()


def neighbours(estimator, X, y):
    """Data sets that agree in everything public and differ in everything private."""
    if adjacency(estimator) == "replace-one-label":
        yield X, np.zeros_like(y)
        yield X, 1 - y
        return
    moved = X.copy()
    moved[0] = -1e6 * X[0]
    flipped = y.copy()
    flipped[0] = 1 - flipped[0]
    yield moved, flipped
    yield X, np.zeros_like(y)
    yield np.zeros_like(X), y
    yield 1e-9 * X, 1 - y


@pytest.mark.sampled(12)
@every_estimator
def test_noise_scale_is_bit_identical_on_other_data(estimator, margin_data):
    if estimator.data_norm is None and estimator._estimates_scales:
        pytest.skip("the noise of narrow columns follows their number, which is released first")
    X, y = margin_data
    first = releases_of(estimator, X, y, classes=[0, 1])
    for other in neighbours(estimator, X, y):
        second = releases_of(estimator, *other, classes=[0, 1])
        assert [r.mechanism for r in first] == [r.mechanism for r in second]
        assert [r.value.shape for r in first] == [r.value.shape for r in second]


@pytest.mark.sampled(10)
@with_every_way
def test_rows_beyond_the_norm_are_clipped_or_keep_their_scores_linear(estimator, margin_data):
    X, y = margin_data
    once = fitted(estimator, X, y, data_norm=0.5, random_state=3)
    if isinstance(getattr(once, "scaler_", None), CellScaler):
        pytest.skip("cells are no linear scale")
    if getattr(estimator, "kernel", None) in ("auto", "additive"):
        pytest.skip("features of far entries are those of the end of their range")
    if getattr(once, "scaler_", None) is not None:
        pytest.skip("columns are clipped in their scales")
    if np.isinf(once.data_norm_) and hasattr(once, "intercept_"):
        zero = once.decision_function(np.zeros_like(X))
        far = zero + 1000 * (once.decision_function(X) - zero)
        np.testing.assert_allclose(once.decision_function(1000 * X), far, rtol=1e-9, atol=1e-9)
        return
    twice = fitted(estimator, 1000 * X, y, data_norm=0.5, random_state=3)
    np.testing.assert_allclose(together(once), together(twice), rtol=1e-5, atol=1e-7)


@pytest.mark.sampled(10)
@every_estimator
def test_units_of_the_data_are_a_choice(estimator, margin_data):
    """Rows, norm, radius, length and constant in other units: the same from the same noise."""
    X, y = margin_data
    params, size = estimator.get_params(), 1e40
    if params["data_norm"] is None:
        pytest.skip("column scales are estimated, with noise of their own")
    scaled = {"data_norm", "adversary_radius", "length_scale"}
    is_clipped = "tilt" in params and fitted(estimator, X, y).preconditioner_ is None
    if params.get("rows") == "clipped" or is_clipped:
        # Their coefficients are found in the units of the data.
        scaled, size = scaled | {"intercept_scaling"}, 1e3
    scores = []
    for unit in (1.0, size, 1 / size):
        own = {k: v * unit for k, v in params.items() if k in scaled and isinstance(v, float)}
        model = fitted(estimator, unit * X, y, random_state=5, **own)
        if getattr(model, "scaler_", None) is not None:
            pytest.skip("column scales are estimated, with noise of their own")
        scores.append(model.decision_function(unit * X))
    np.testing.assert_allclose(scores[1], scores[0], rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(scores[2], scores[0], rtol=1e-3, atol=1e-5)


@pytest.mark.sampled(10)
@two_of_each
def test_only_declared_attributes(estimator, margin_data):
    model = fitted(estimator, *margin_data)
    added = set(vars(model)) - set(vars(estimator))
    assert added <= RELEASED


@pytest.mark.sampled(4)
@two_of_each
def test_absent_class_does_not_raise(estimator, margin_data):
    X, y = margin_data
    if takes_many_classes(estimator):
        for labels in (np.zeros_like(y), np.full_like(y, 2)):
            model = fitted(estimator, X, labels, classes=[0, 1, 2])
            assert model.coef_.shape == (3, n_coefficients(model))
    model = fitted(estimator, X, np.ones_like(y), classes=[0, 1])
    assert model.coef_.shape == (1, n_coefficients(model))


@pytest.mark.sampled(10)
@every_estimator
def test_degenerate_data_fit_silently(estimator):
    for X in (np.zeros((6, 3)), np.ones((6, 3)), np.full((6, 3), 1e300), np.full((6, 3), 1e-320)):
        table = with_enough_records(estimator, X, [0, 1, 0, 1, 1, 1])
        model = fitted(estimator, *table, classes=[0, 1])
        assert np.isfinite(together(model)).all()
    table = with_enough_records(estimator, [[0.5, 0.5]], [1])
    model = fitted(estimator, *table, classes=[0, 1])
    assert np.isfinite(together(model)).all()


@pytest.mark.sampled(16)
@every_estimator
def test_ledger_is_charged_before_noise(estimator, margin_data):
    book = Book()
    model = estimator.__class__(**{**estimator.get_params(), "ledger": book}).fit(*margin_data)
    assert book.records == [model.privacy_]
    refusing = estimator.__class__(**{**estimator.get_params(), "ledger": Book(refuse=True)})
    with record_releases() as releases, pytest.raises(BudgetError):
        refusing.fit(*margin_data)
    assert releases == []
    assert set(vars(refusing)) == set(estimator.get_params())


@pytest.mark.sampled(4)
@two_of_each
def test_seed_reproduces_and_warns(estimator, margin_data):
    X, y = margin_data
    with pytest.warns(PrivacyWarning, match="random_state"):
        seeded = clone(estimator).set_params(random_state=7).fit(X, y)
    assert seeded.privacy_.noise == "seeded"
    assert "does not hold" in seeded.privacy_.summary()
    again = fitted(estimator, X, y, random_state=7)
    np.testing.assert_array_equal(together(seeded), together(again))
    other = fitted(estimator, X, y, random_state=8)
    assert not np.array_equal(together(seeded), together(other))
    assert_fits_differ(estimator, X, y, together(fitted(estimator, X, y)))


@pytest.mark.sampled(4)
@two_of_each
def test_clone_and_pickle_share_no_state(estimator, margin_data):
    X, y = margin_data
    model = fitted(estimator, X, y)
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(together(model), together(twin))
        assert twin.privacy_ == model.privacy_
        assert_fits_differ(twin, X, y, together(fitted(twin, X, y)))
    assert not hasattr(clone(model), "coef_")
    with pytest.raises(NotFittedError):
        clone(model).predict(X)


# -- behaviour -----------------------------------------------------------------------


@pytest.mark.sampled(8)
@two_of_each
def test_parameters_are_untouched_by_fit(estimator, margin_data):
    params = {"classes": [0, 1], "class_weight": {0: 1.0, 1: 2.0}}
    model = clone(estimator).set_params(**params)
    before = copy.deepcopy(model.get_params())
    model.fit(*margin_data)
    assert model.get_params() == before
    assert json.dumps(before)


@pytest.mark.sampled(6)
@three_of_each_way
def test_sparse_dense_pandas_and_layouts_agree(estimator, margin_data):
    if estimator.data_norm is None and estimator._estimates_scales:
        pytest.skip("column scales are estimated of dense rows alone")
    X, y = margin_data
    X = np.where(np.abs(X) < 0.2, 0.0, X)
    X, y = X[:200], y[:200]
    plain = fitted(estimator, X, y, random_state=1)
    frame = pd.DataFrame(X, columns=list("abcde"))
    duplicated = sparse.csr_array((np.r_[X[0], X[0]], np.r_[0:5, 0:5], [0, 10]), shape=(1, 5))
    stacked = sparse.vstack([duplicated / 2, sparse.csr_array(X[1:])]).tocsr()
    variants = [np.asfortranarray(X), sparse.csc_matrix(X), stacked]
    # Of few rows only dense ones are fitted by a selection.
    is_small = public(plain).get("solver") == "exponential_mechanism"
    for variant in variants[:1] if is_small else variants:
        got = together(fitted(estimator, variant, y, random_state=1))
        np.testing.assert_allclose(got, together(plain), rtol=1e-4, atol=1e-6)
    model = fitted(estimator, frame, y, random_state=1)
    assert list(model.feature_names_in_) == list("abcde")
    np.testing.assert_array_equal(model.predict(frame), plain.predict(X))
    with pytest.warns(PrivacyWarning, match="random_state"):
        model.fit(X, y)
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.sampled(4)
@two_of_each
def test_string_labels_and_order_of_classes(estimator, margin_data):
    X, y = margin_data
    words = np.array(["no", "yes"])[y]
    model = fitted(estimator, X, words, classes=["yes", "no"], random_state=1)
    assert list(model.classes_) == ["no", "yes"]
    numbers = fitted(estimator, X, y, random_state=1)
    np.testing.assert_array_equal(model.predict(X) == "yes", numbers.predict(X) == 1)


@pytest.mark.sampled(4)
@two_of_each
def test_large_epsilon_separates(estimator):
    for n_classes in (2, 4) if takes_many_classes(estimator) else (2,):
        X, y = separated(800, 6, n_classes, seed=2)
        # A random projection to few columns loses the separator once in ten times.
        fits = (fitted(estimator, X, y, epsilon=100.0) for _ in range(8))
        assert any(model.score(X, y) > 0.9 for model in fits)


@pytest.mark.sampled(4)
@two_of_each
def test_infinite_epsilon_has_no_noise(estimator, margin_data):
    X, y = margin_data
    # Public features and networks are drawn anew for every fit, unless they are seeded.
    seed = {"random_state": 0} if {"kernel", "n_hidden"} & set(estimator.get_params()) else {}
    a, b = (fitted(estimator, X, y, epsilon=np.inf, **seed) for _ in range(2))
    np.testing.assert_array_equal(together(a), together(b))
    assert a.privacy_.epsilon == np.inf
    assert a.privacy_.noise == "none"
    assert privacy.epsilon(a.privacy_.events, 1e-6) == np.inf


@pytest.mark.sampled(1)
@one_of_each
def test_model_selection_tools_work(estimator, margin_data):
    X, y = margin_data
    estimator = clone(estimator).set_params(epsilon=20.0, classes=[0, 1])
    assert cross_val_score(estimator, X, y, cv=3).mean() > 0.8
    search = GridSearchCV(
        make_pipeline(FunctionTransformer(), estimator),
        {f"{type(estimator).__name__.lower()}__epsilon": [10.0, 20.0]},
        cv=2,
    )
    assert search.fit(X, y).score(X, y) > 0.8


@pytest.fixture
def frame(margin_data):
    """Columns with names, one of them of words."""
    X, y = margin_data
    return pd.DataFrame(X[:, :3], columns=list("abc")).assign(colour=np.array(["u", "w"])[y])


NUMBERS = (FunctionTransformer(np.negative, feature_names_out="one-to-one"), ["a", "b", "c"])


SEARCH = PrivateSearchCV(OutputPerturbationClassifier(classes=[0, 1]), {"alpha": [0.01, 0.1]})


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "estimator",
    [*(made(name, classes=[0, 1]) for name in ESTIMATORS), SEARCH],
    ids=[*ESTIMATORS, "PrivateSearchCV"],
)
def test_pandas_output_keeps_the_names_of_columns(estimator, frame, margin_data):
    with sklearn.config_context(transform_output="pandas"):
        columns = make_column_transformer(
            NUMBERS, verbose_feature_names_out=False, sparse_threshold=0
        )
        model = make_pipeline(columns, clone(estimator)).fit(frame, margin_data[1])
        assert set(model.predict(frame)) <= {0, 1}
    assert list(model[-1].feature_names_in_) == ["a", "b", "c"]


# -- errors --------------------------------------------------------------------------

SECRET = "8231977"


def bad_tables():
    good = np.full((4, 2), 0.5)
    missing = good.copy()
    missing[2, 1] = np.nan
    yield missing, [0, 1, 0, 1], "NaN or infinity in column 1"
    yield np.where(np.isnan(missing), np.inf, missing), [0, 1, 0, 1], "NaN or infinity in column 1"
    yield sparse.csr_array(missing), [0, 1, 0, 1], "NaN or infinity in column 1"
    yield pd.DataFrame(missing, columns=["age", "pay"]), [0, 1, 0, 1], "column 'pay'"
    text = pd.DataFrame({"age": [1, 2, 3, 4], "pay": ["a", SECRET, "b", "c"]})
    yield text, [0, 1, 0, 1], "not numeric in column 'pay'"
    yield np.array([[1, "x" + SECRET]] * 4, dtype=object), [0, 1, 0, 1], "not numeric in column 1"
    yield np.full(4, float(SECRET)), [0, 1, 0, 1], "two-dimensional"
    yield float(SECRET), [0, 1, 0, 1], "two-dimensional"
    yield good * complex(1, 2 * float(SECRET)), [0, 1, 0, 1], "Complex data not supported"
    yield good, [0, 1, 0], "X and y must have the same number of rows"
    yield good, [0.5, float(SECRET) / 7, 0.1, 0.2], "Unknown label type"
    yield good, [1, 1, 1, 1], "at least 2 classes"
    yield good, None, "requires y"
    yield good, np.array([1, 0, 1, 0]) * complex(1, float(SECRET)), "Complex data not supported"
    yield good, [0, None, 1, SECRET], "label every record"
    yield good, np.array([0, "a", 1, SECRET], dtype=object), "y mixes types"
    yield np.array([[1, int(SECRET) * 10**400]] * 4), [0, 1, 0, 1], "not numeric in column 1"
    outside = sparse.csr_array(good)
    outside.indices[3] = 50
    yield outside, [0, 1, 0, 1], "invalid indices"


@pytest.mark.sampled(3)
@one_of_each
def test_any_label_of_the_public_set_is_accepted_silently(estimator, margin_data):
    """Labels that look like measurements, or are nearly all different, are still labels."""
    X, _ = margin_data
    table = with_enough_records(estimator, X[:2], [0.0, 1e300])
    fitted(estimator, *table, classes=[0.0, 1e300])
    if not takes_many_classes(estimator):
        return
    fitted(estimator, X[:2], [0.0, 0.5], classes=[0.0, 0.5, 1e300])
    labels = np.arange(21) % 10
    labels[0] = 15
    fitted(estimator, X[:21], labels, classes=range(20))


@one_of_each
def test_floating_point_flags_stay_inside(estimator, margin_data):
    X, y = (array.copy() for array in margin_data)
    X[0] *= 1e-310
    X[1, 0] = 1e308
    with np.errstate(all="raise"):
        fitted(estimator, X, y)


@one_of_each
def test_bad_data_errors_name_the_rule_and_no_value(estimator, margin_data):
    model = fitted(estimator, *margin_data, data_norm=1.0)
    before = dict(vars(model))
    for X, y, named in bad_tables():
        with pytest.raises(ValueError, match=re.escape(named)) as caught:
            model.fit(X, y)
        assert vars(model) == before
        # A debugger shows suppressed contexts too.
        chain = [caught.value, caught.value.__cause__, caught.value.__context__]
        assert not any(SECRET in str(e) or SECRET[:5] in str(e) for e in chain if e)


@one_of_each
def test_unknown_label_is_refused_without_naming_it(estimator, margin_data):
    X, y = margin_data
    labels = y.copy()
    labels[5] = int(SECRET)
    with pytest.raises(ValueError, match="not among the public labels") as caught:
        clone(estimator).set_params(classes=[0, 1]).fit(X, labels)
    assert SECRET not in str(caught.value)


@pytest.mark.sampled(10)
@every_estimator
def test_fit_prints_and_warns_nothing(estimator, margin_data, capsys):
    clone(estimator).fit(*margin_data)
    assert capsys.readouterr() == ("", "")


@pytest.mark.sampled(14)
@every_estimator
def test_verbose_prints_the_public_record_and_nothing_else(estimator, margin_data, capsys):
    model = clone(estimator).set_params(verbose=1).fit(*margin_data)
    name = type(model).__name__
    assert capsys.readouterr() == (
        f"{name} is about to release: {model.privacy_}\n{name} has charged and released it\n",
        "",
    )
