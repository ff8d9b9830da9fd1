"""``data_norm=None``: tables in natural units, one budget, and scores that are exactly linear."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from dp_halfspace import (
    AdaptiveMarginClassifier,
    ObjectivePerturbationClassifier,
    OutputPerturbationClassifier,
    PrivateAUCClassifier,
    PrivateKernelClassifier,
    PureHalfspaceClassifier,
    PureNetworkClassifier,
)
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.events import Exponential, Gaussian, Pure, single_runs
from dp_halfspace.privacy.mechanisms import recording

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


def hospital(n, seed=0, holes=0.0):
    """Age, platelets, year, smoker, a density and a creatinine, in natural units."""
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
    X[rng.random(X.shape) < holes] = np.nan
    return X, y


def fitted(estimator, X, y, **options):
    return estimator(data_norm=None, classes=[0, 1], **options).fit(X, y)


@pytest.mark.parametrize("estimator", GAUSSIAN)
def test_a_table_in_natural_units_is_learnt(estimator):
    X, y = hospital(6000, holes=0.02)
    Z, t = hospital(3000, seed=1, holes=0.02)
    model = fitted(estimator, X, y, epsilon=3.0)
    assert model.scaler_ is not None
    assert model.score(Z, t) > 0.75
    assert np.isfinite(model.decision_function(np.full((1, 6), np.nan))).all()


@pytest.mark.parametrize(("estimator", "options"), AT_DELTA_0)
def test_a_pure_budget_pays_for_units_and_model(estimator, options):
    """Every event is pure, and the epsilons add up to no more than was asked."""
    X, y = hospital(4000, holes=0.02)
    Z, t = hospital(2000, seed=1, holes=0.02)
    model = fitted(estimator, X, y, epsilon=3.0, **options)
    record = model.privacy_
    runs = single_runs(record.events)
    assert [type(event) for event in record.events[:3]] == [Pure] * 3
    assert all(isinstance(event, Pure | Exponential) for event in runs)
    total = sum(Fraction(event.epsilon) * count for event, count in runs.items())
    assert 2.9 < total <= 3
    assert record.delta == 0
    assert dict(record.public)["private_units"] is True
    assert model.scaler_ is not None
    assert model.score(Z, t) > 0.7


def test_without_units_the_widest_column_is_all_there_is():
    X, y = hospital(6000)
    model = AdaptiveMarginClassifier(epsilon=3.0, data_norm=1e5, classes=[0, 1]).fit(X, y)
    assert model.score(X, y) < fitted(AdaptiveMarginClassifier, X, y, epsilon=3.0).score(X, y) - 0.1


@pytest.mark.parametrize("estimator", GAUSSIAN)
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_one_budget_pays_for_units_and_model(estimator, epsilon):
    X, y = hospital(2000)
    planned = estimator(data_norm=None, classes=[0, 1], epsilon=epsilon).plan(X, y)
    assert planned.epsilon == epsilon
    assert accounting.delta(planned.events, epsilon) <= planned.delta
    # Little is left over: what is unspent is noise for nothing.
    assert accounting.epsilon(planned.events, planned.delta) > 0.9 * epsilon
    assert [type(event) for event in planned.events[:3]] == [Gaussian] * 3
    model = fitted(estimator, X, y, epsilon=epsilon)
    assert model.privacy_.events == planned.events


def test_the_default_class_is_exactly_gaussian_private():
    X, y = hospital(2000)
    record = fitted(AdaptiveMarginClassifier, X, y).privacy_
    assert accounting.epsilon(record.events, record.delta) == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize(
    ("estimator", "options", "order"),
    [
        (AdaptiveMarginClassifier, {}, 2),
        (PrivateAUCClassifier, {}, 2),
        (PureHalfspaceClassifier, {"n_directions": 100}, 1),
        (OutputPerturbationClassifier, {"delta": 0.0}, 1),
    ],
)
def test_every_release_stays_within_its_sensitivity_on_neighbours(estimator, options, order):
    """Both data sets see the same releases, so that what is summed differs in one record."""
    X, y = hospital(400)
    hostile = [1e300, -1e300, 1e-300, 0.0, math.nan, 5e9]
    other, labels = X.copy(), y.copy()
    other[7], labels[7] = hostile, 1 - y[7]
    history = []
    with recording() as releases:
        fitted(estimator, X, y, epsilon=3.0, **options)
    history = releases
    with recording() as releases:
        fitted(estimator, other, labels, epsilon=3.0, **options)
    # Before anything was released, the values differ by the record alone.
    first, second = history[0], releases[0]
    assert first.mechanism == second.mechanism
    distance = np.linalg.norm((first.value - second.value).ravel(), order)
    assert distance <= first.mechanism.sensitivity
    assert distance > 0.5 * first.mechanism.sensitivity


@pytest.mark.parametrize("data_norm", [None, 1e5])
def test_scores_are_linear_and_no_parameter_of_today_has_a_say(data_norm):
    X, y = hospital(1000)
    model = AdaptiveMarginClassifier(data_norm=data_norm, classes=[0, 1]).fit(X, y)
    Z = X if data_norm else model.scaler_.transform(X)
    far = np.vstack([Z, 1e6 * Z])
    expected = far @ model.coef_[0] + model.intercept_[0]
    if data_norm:
        np.testing.assert_allclose(model.decision_function(far), expected, rtol=1e-12)
    else:
        np.testing.assert_allclose(model.decision_function(X), expected[: len(X)], rtol=1e-12)
    before = model.decision_function(X)
    model.set_params(data_norm=3.0, intercept_scaling=7.0)
    np.testing.assert_array_equal(model.decision_function(X), before)


@pytest.mark.parametrize(
    ("estimator", "options"), [*((kind, {}) for kind in GAUSSIAN), *AT_DELTA_0]
)
def test_holes_raise_nothing_and_change_no_shape(estimator, options):
    X, y = hospital(1500)
    shapes = set()
    for data in (X, np.where(np.arange(6) == 2, np.nan, X), np.full_like(X, np.nan), 0 * X):
        model = fitted(estimator, data, y, epsilon=1.0, **options)
        shapes.add((model.coef_.shape, model.scaler_ is None, model.fill_value_))
        assert np.isfinite(model.decision_function(data)).all()
    assert len(shapes) == 1


@pytest.mark.parametrize(
    ("change", "word"),
    [({"data_norm": 1.0}, "NaN or infinity"), ({"adversary_radius": 0.1}, "give data_norm")],
)
def test_what_cannot_be_is_refused(change, word):
    X, y = hospital(300, holes=0.1)
    options = {"data_norm": None, "classes": [0, 1], **change}
    with pytest.raises(ValueError, match=word):
        AdaptiveMarginClassifier(**options).fit(X, y)
    X[3, 1] = math.inf
    with pytest.raises(ValueError, match="infinity in column 1"):
        fitted(AdaptiveMarginClassifier, X, y)


@pytest.mark.parametrize(
    "options", [{"delta": 0.0}, {"delta": 0.0, "epsilon": 1e-3}, {"epsilon": 1e-3}]
)
def test_units_are_left_out_where_they_cost_more_than_they_bring(options):
    X, y = hospital(300)
    model = fitted(AdaptiveMarginClassifier, X, y, **options)
    assert model.scaler_ is None
    assert dict(model.privacy_.public)["private_units"] is False
    rows = fitted(AdaptiveMarginClassifier, sparse.csr_array(X), y)
    assert rows.scaler_ is None
    assert rows.fill_value_ is None


def test_frames_clones_and_infinite_budgets():
    pd = pytest.importorskip("pandas")
    X, y = hospital(800, holes=0.05)
    frame = pd.DataFrame(X, columns=["age", "platelets", "year", "smoker", "density", "creatinine"])
    model = clone(AdaptiveMarginClassifier(epsilon=math.inf, data_norm=None, classes=[0, 1]))
    model.fit(frame, y)
    assert list(model.scaler_.get_feature_names_out()) == list(frame.columns)
    assert model.score(frame, y) > 0.8
    assert model.privacy_.events[0].epsilon == math.inf
