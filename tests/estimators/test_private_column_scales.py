"""``data_norm=None``: tables in original units, one budget, and scores that are exactly linear."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from dp_halfspace import (
    AdaptiveMarginClassifier,
    LabelPrivateClassifier,
    ObjectivePerturbationClassifier,
    OutputPerturbationClassifier,
    PrivacyWarning,
    PrivateAUCClassifier,
    PrivateKernelClassifier,
    PrivateSearchCV,
    PureHalfspaceClassifier,
    PureNetworkClassifier,
)
from dp_halfspace.inspection import natural_coefficients
from dp_halfspace.preprocessing.scalers import ReleasedScaler
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.events import Exponential, Pure, single_runs
from tests.releases import record_releases

GAUSSIAN = [
    AdaptiveMarginClassifier,
    ObjectivePerturbationClassifier,
    OutputPerturbationClassifier,
    PrivateAUCClassifier,
    PrivateKernelClassifier,
]
AT_DELTA_0 = [(kind, {"delta": 0.0}) for kind in GAUSSIAN] + [
    (PureHalfspaceClassifier, {"n_directions": 2000}),
    (PureNetworkClassifier, {"n_candidates": 300}),
]


def hospital(n, seed=0, missing=0.0):
    """Age, platelets, year, smoker, a density and a creatinine, in original units."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, 6))
    X = np.column_stack([
        55 + 14 * hidden[:, 0],
        260_000 + 90_000 * hidden[:, 1],
        2005 + 6 * hidden[:, 2],
        (hidden[:, 3] > 0.5).astype(float),
        0.994 + 0.003 * hidden[:, 4],
        np.exp(0.5 * hidden[:, 5]),
    ])  # fmt: skip
    y = (hidden @ [1, -1, 0.5, 1, 1, 1] + 0.5 * rng.normal(size=n) > 0).astype(int)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def fitted(estimator, X, y, **options):
    return estimator(**{"data_norm": None, "classes": [0, 1], **options}).fit(X, y)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("estimator", "options"), AT_DELTA_0)
def test_a_pure_budget_pays_for_units_and_model(estimator, options):
    """Every event is pure, and the epsilons add up to no more than was asked."""
    X, y = hospital(4000, missing=0.02)
    Z, t = hospital(2000, seed=1, missing=0.02)
    model = fitted(estimator, X, y, epsilon=3.0, **options)
    record = model.privacy_
    runs = single_runs(record.events)
    assert [type(event) for event in record.events[:3]] == [Pure] * 3
    assert all(isinstance(event, Pure | Exponential) for event in runs)
    total = sum(Fraction(event.epsilon) * count for event, count in runs.items())
    assert 2.9 < total <= 3
    assert record.delta == 0
    assert dict(record.public)["private_column_scales"] is True
    assert model.scaler_ is not None
    assert model.score(Z, t) > 0.7


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("estimator", "options"), [*((kind, {}) for kind in GAUSSIAN), *AT_DELTA_0]
)
def test_missing_values_raise_nothing_and_change_no_shape(estimator, options):
    X, y = hospital(1500)
    shapes = set()
    for data in (X, np.where(np.arange(6) == 2, np.nan, X), np.full_like(X, np.nan), 0 * X):
        model = fitted(estimator, data, y, epsilon=1.0, **options)
        shapes.add((model.coef_.shape, model.scaler_ is None, model.fill_value_))
        assert np.isfinite(model.decision_function(data)).all()
    assert len(shapes) == 1


@pytest.mark.parametrize("estimator", GAUSSIAN)
@pytest.mark.parametrize("delta", ["auto", 0.0])
def test_missing_values_are_zeros_where_no_scales_are_released(estimator, delta):
    """Too few records: an error would tell of a missing entry, after the budget was charged."""
    X, y = hospital(60)
    X = X - X.mean(axis=0)
    missing, zero = X.copy(), X.copy()
    missing[7, 2], zero[7, 2] = np.nan, 0.0
    found = []
    for data in (missing, zero):
        with warnings.catch_warnings(), record_releases() as releases:
            warnings.simplefilter("ignore")
            model = fitted(estimator, data, y, epsilon=0.02, delta=delta, random_state=0)
        # The features of a kernel have released scales in any case.
        has_scales = isinstance(model.scaler_, ReleasedScaler)
        assert has_scales == (estimator is PrivateKernelClassifier and delta == "auto")
        asked = [np.asarray(release.value).tobytes() for release in releases]
        found.append((model.coef_.tobytes(), model.intercept_.tobytes(), asked))
    assert has_scales or found[0] == found[1]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"data_norm": 1.0}, "NaN or infinity"),
        ({"projection": "hadamard", "n_components": 3}, "give data_norm"),
    ],
)
def test_what_cannot_be_is_refused(change, word):
    X, y = hospital(300, missing=0.1)
    options = {"data_norm": None, "classes": [0, 1], **change}
    with pytest.raises(ValueError, match=word):
        AdaptiveMarginClassifier(**options).fit(X, y)
    X[3, 1] = math.inf
    with pytest.raises(ValueError, match="infinity in column 1"):
        fitted(AdaptiveMarginClassifier, X, y)


def test_a_row_in_column_scales_counts_as_long_as_its_columns_make_it():
    X, y = hospital(4000)
    model = OutputPerturbationClassifier(data_norm=None, preconditioner=False, classes=[0, 1])
    plan = model._fit_plan(model._validate(X, y, None)).inner
    assert plan.facts.data_norm == math.sqrt(X.shape[1])


@pytest.mark.parametrize("options", [{}, {"epsilon": 1e-3}])
def test_units_are_left_out_where_they_cost_more_than_they_bring(options):
    """And a warning names the public sizes, at the line of the caller."""
    X, y = hospital(300)
    model = AdaptiveMarginClassifier(solver="noisy_gd", classes=[0, 1], delta=0, **options)
    with pytest.warns(PrivacyWarning, match=r"scales of \d+ columns from 300 records") as seen:
        model.fit(X, y)
    assert seen[0].filename == __file__
    assert model.scaler_ is None
    assert dict(model.privacy_.public)["private_column_scales"] is False


@pytest.mark.parametrize("kind", [AdaptiveMarginClassifier, PrivateAUCClassifier])
def test_a_warning_says_why_columns_keep_their_units(kind):
    """Too small a budget, too many columns, which no budget helps, or sparse rows."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(700, 513)), np.arange(700) % 2
    how = {"classes": [0, 1], "epsilon": 5.0}
    for rows, word in (
        (X, "X has 513 columns, and scales are estimated for at most 512"),
        (sparse.csr_array(X), "X is sparse"),
    ):
        with pytest.warns(PrivacyWarning, match=word):
            record = kind(**how).plan(rows, y)
        assert dict(record.public)["private_column_scales"] is False
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".*(data_norm|scales).*")
            kind(**how, data_norm=30.0).plan(rows, y)
    few = {"classes": [0, 1], "epsilon": 0.01, "data_norm": None}
    if kind is AdaptiveMarginClassifier:
        few["solver"] = "noisy_gd"
    with pytest.warns(PrivacyWarning, match="too small to estimate the scales of 5 columns"):
        kind(**few).plan(X[:, :5], y)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix])
def test_sparse_columns_keep_their_scales_and_a_warning_says_so(kind):
    """Decided by the storage; once for a fit, at the line of the caller, and not of dense rows."""
    X, y = hospital(300)
    options = {"classes": [0, 1], "epsilon": 1.0}
    # With zeros and without any.
    for data in (X, np.abs(X) + 1):
        with pytest.warns(PrivacyWarning, match="data_norm, which silences") as seen:
            rows = AdaptiveMarginClassifier(**options).fit(kind(data), y)
        found = [each.filename for each in seen if "sparse" in str(each.message)]
        assert found == [__file__]
    assert rows.scaler_ is None
    assert rows.fill_value_ is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        AdaptiveMarginClassifier(data_norm=1.0, classes=[0, 1], epsilon=4.0).fit(kind(X), y)
        fitted(AdaptiveMarginClassifier, *hospital(3000))
        LabelPrivateClassifier(classes=[0, 1], n_fourier=20).fit(kind(X), y)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("selection", ["random_stopping", "exponential"])
def test_a_search_warns_of_sparse_columns_once(selection):
    """However many candidates, runs and trials of budgets there are."""
    X, y = hospital(300)
    model, grid = AdaptiveMarginClassifier(classes=[0, 1]), {"margin": ["auto", 0.3]}
    search = PrivateSearchCV(model, grid, epsilon=5.0, selection=selection)
    for way in ("plan", "fit"):
        with pytest.warns(PrivacyWarning) as seen:
            getattr(search, way)(sparse.csr_array(X), y)
        assert ["X is sparse" in str(warning.message) for warning in seen] == [True]


@pytest.mark.parametrize(
    ("change", "is_learnt"),
    [
        ({}, True),
        ({"epsilon": 0.05}, True),
        ({"kernel": "additive"}, True),
        ({"kernel": "rbf"}, False),
        ({"delta": 0.0, "epsilon": 9.0}, False),
    ],
)
def test_scales_are_learnt_for_cosines_of_columns_although_a_norm_is_stated(change, is_learnt):
    """A norm of rows is no scale of a column. By public numbers and parameters alone."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6000, 4)), rng.integers(2, size=6000)
    options = {"epsilon": 1.0, "data_norm": 3.0, **change}
    model = fitted(PrivateKernelClassifier, X, y, **options)
    assert (model.scaler_ is not None) is is_learnt
    assert dict(model.privacy_.public).get("private_column_scales", False) is is_learnt
    if is_learnt:
        assert dict(model.privacy_.public)["data_norm"] is None
    assert accounting.delta(model.privacy_.events, options["epsilon"]) <= model.privacy_.delta
    far = fitted(PrivateKernelClassifier, 1e3 * X, y, **options)
    assert far.privacy_.events == model.privacy_.events


def test_sparse_rows_of_a_stated_norm_keep_their_scales():
    rng = np.random.default_rng(0)
    X, y = sparse.csr_array(rng.normal(size=(6000, 4))), rng.integers(2, size=6000)
    model = fitted(PrivateKernelClassifier, X, y, epsilon=3.0, data_norm=2.0)
    assert model.scaler_ is None
    assert dict(model.privacy_.public)["private_column_scales"] is False


@pytest.mark.filterwarnings("ignore:X is sparse")
@pytest.mark.parametrize("data_norm", [None, 2.0])
@pytest.mark.parametrize("kind", GAUSSIAN)
def test_long_sparse_rows_are_scored_as_they_are_fitted(kind, data_norm):
    """Scaled down to the stated norm, or to one: otherwise the intercept would not count."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 4)) + 30.0
    y = (X[:, 0] > X[:, 1]).astype(int)
    model = fitted(kind, sparse.csr_array(X), y, epsilon=9.0, data_norm=data_norm)
    norm = data_norm or 1.0
    assert (model.data_norm_, model.scaler_) == (norm, None)
    scores = model.decision_function(sparse.csr_array(X))
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    # The kernel has features of float32 of dense rows.
    for rows, digits in ((sparse.csr_array(X * (norm / lengths)), 1e-9), (X, 1e-4)):
        np.testing.assert_allclose(model.decision_function(rows), scores, rtol=digits, atol=digits)
    short = X / lengths * (0.9 * norm)
    linear = short @ natural_coefficients(model).coefficients[0] + model.intercept_
    np.testing.assert_allclose(model.decision_function(short), linear, rtol=1e-4, atol=1e-4)
