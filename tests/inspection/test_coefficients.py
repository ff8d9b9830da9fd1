"""Coefficients in original units are the model, or it is said that there are none."""

from contextlib import nullcontext
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dp_halfspace import AdaptiveMarginClassifier, PrivateKernelClassifier, PrivateTableClassifier
from dp_halfspace.engine.scales import ColumnScales
from dp_halfspace.inspection import (
    ColumnEffect,
    EffectsDisplay,
    NaturalCoefficients,
    natural_coefficients,
)
from dp_halfspace.preprocessing import PublicScaler
from dp_halfspace.preprocessing.scalers import CellScaler
from tests.support import every_estimator, fitted, one_of_each

RNG = np.random.default_rng(3)
# An age, platelets per microlitre, and a laboratory value.
X = np.column_stack(
    [RNG.normal(55, 12, 3000), RNG.normal(260_000, 40_000, 3000), RNG.uniform(0, 1, 3000)]
)
Y = (X[:, 0] > 58).astype(int) + (X[:, 1] > 280_000)


def as_it_is(scaler, rows):
    """Rows that a scaler neither clips nor shortens."""
    found, tiny = scaler.transform(rows) * scaler.scale + scaler.center, 1e-12 * scaler.scale
    return np.isclose(found, rows, rtol=1e-12, atol=tiny).all(axis=1)


def scores_of(natural, rows):
    return rows @ natural.coefficients.T + natural.intercepts


@pytest.mark.parametrize("kind", [ColumnEffect, ColumnScales, NaturalCoefficients])
def test_results_that_hold_arrays_can_be_compared(kind):
    first, second = (kind(*[np.zeros(2) for _ in fields(kind)]) for _ in range(2))
    assert first == first
    assert first != second


@pytest.mark.parametrize("n_classes", [2, 3])
def test_they_give_the_scores_of_a_model_in_learnt_units(n_classes):
    y = np.minimum(Y, n_classes - 1)
    model = AdaptiveMarginClassifier(epsilon=3, classes=range(n_classes)).fit(X, y)
    natural = natural_coefficients(model)
    assert isinstance(natural, NaturalCoefficients)
    inside = as_it_is(model.scaler_, X)
    assert inside.sum() > 1000
    scores = model.decision_function(X).reshape(len(X), -1)
    np.testing.assert_allclose(scores_of(natural, X)[inside], scores[inside], rtol=1e-9, atol=1e-9)
    # The released coefficients are wrong by the units of the platelets.
    ratio = np.abs(model.coef_ / natural.coefficients)
    np.testing.assert_allclose(ratio, np.tile(model.scaler_.scale, (len(ratio), 1)))
    assert ratio[:, 1].min() > 1e4
    effects = natural.coefficients * natural.widths
    sizes = np.abs(effects[0]) if n_classes == 2 else np.ptp(effects, axis=0)
    expected = dict(zip(["x0", "x1", "x2"], sizes, strict=True))
    assert natural.importances == pytest.approx(expected)
    assert list(natural.importances.values()) == sorted(natural.importances.values())[::-1]
    assert natural.classes == ((1,) if n_classes == 2 else (0, 1, 2))


def test_the_width_of_a_rare_flag_is_its_standard_deviation():
    """Its released scale is several of them; the released second moment knows better."""
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(60, 12, 20_000), rng.random(20_000) < 0.04])
    y = (0.05 * (rows[:, 0] - 60) + rows[:, 1] + rng.logistic(size=20_000) > 2).astype(int)
    model = AdaptiveMarginClassifier(epsilon=3, classes=[0, 1])
    natural = natural_coefficients(fitted(model, rows, y, random_state=0))
    ratios = natural.widths / rows.std(axis=0)
    assert 0.5 < ratios.min() <= ratios.max() < 1.5


def test_public_scalers_in_front_count():
    scaler = PublicScaler([(0, 120), (0, 600_000), (0, 1)])
    model = make_pipeline(
        scaler, AdaptiveMarginClassifier(margin=0.3, classes=[0, 1], data_norm=2.0)
    )
    y = (X[:, 0] > 55).astype(int)
    natural = natural_coefficients(model.fit(X, y))
    np.testing.assert_allclose(scores_of(natural, X)[:, 0], model.decision_function(X), rtol=1e-9)
    np.testing.assert_allclose(natural.widths, [60, 300_000, 0.5])
    named = model.fit(pd.DataFrame(X, columns=["age", "platelets", "share"]), y)
    assert natural_coefficients(named).names == ("age", "platelets", "share")
    both = make_pipeline(scaler, AdaptiveMarginClassifier(epsilon=3, classes=[0, 1])).fit(X, y)
    natural = natural_coefficients(both)
    inner = as_it_is(both[-1].scaler_, scaler.fit_transform(X))
    found = scores_of(natural, X)[inner, 0]
    np.testing.assert_allclose(found, both.decision_function(X)[inner], rtol=1e-9, atol=1e-9)
    # A width of the second scaler is in units of the first one.
    learnt = natural_coefficients(both[-1]).widths
    np.testing.assert_allclose(natural.widths, learnt * [60, 300_000, 0.5])


def of_cells(model):
    """Whether a model reads public cells of the columns."""
    return isinstance(getattr(model, "scaler_", None), CellScaler)


@pytest.mark.sampled(4)
@one_of_each
def test_every_class_has_them_or_says_why_not(estimator):
    rows, y = X[:600] / [200, 1e6, 2], (X[:600, 0] > 55).astype(int)
    model = clone(estimator).set_params(classes=[0, 1], epsilon=4.0).fit(rows, y)
    feature_map = getattr(model, "feature_map_", None)
    mapped = feature_map is not None and not getattr(feature_map, "is_linear", False)
    if mapped or hasattr(model, "hidden_coef_") or of_cells(model):
        with pytest.raises(ValueError, match="needs a linear score of the columns"):
            natural_coefficients(model)
        return
    natural, scores = natural_coefficients(model), model.decision_function(rows)
    inside = np.ones(len(rows), dtype=bool)
    if model.scaler_ is not None:
        inside = as_it_is(model.scaler_, rows)
    found = scores_of(natural, rows)[:, 0]
    np.testing.assert_allclose(found[inside], scores[inside], rtol=1e-5, atol=1e-9)


@pytest.mark.slow
@every_estimator
def test_every_variant_has_them_or_says_why_not(estimator):
    test_every_class_has_them_or_says_why_not(estimator)


@pytest.mark.filterwarnings("ignore:steps of this pipeline")
def test_where_there_are_none_it_is_said():
    y = (X[:, 0] > 55).astype(int)
    small = AdaptiveMarginClassifier(epsilon=1.0, classes=[0, 1]).fit(X[:200], y[:200])
    curved = PrivateKernelClassifier(kernel="additive", classes=[0, 1]).fit(X, y)
    behind = make_pipeline(PublicScaler([(0, 120), (0, 1e6), (0, 1)]), curved).fit(X, y)
    table = PrivateTableClassifier(classes=[0, 1], schema=dict.fromkeys("012", "number")).fit(X, y)
    for model, has_display in ((small, False), (curved, True), (behind, False), (table, True)):
        with pytest.raises(ValueError, match="EffectsDisplay shows effects"):
            natural_coefficients(model)
        with nullcontext() if has_display else pytest.raises(ValueError, match="curves need"):
            EffectsDisplay.from_estimator(model)
    other = make_pipeline(StandardScaler(), AdaptiveMarginClassifier(classes=[0, 1])).fit(X, y)
    for foreign in (other, LogisticRegression().fit(X[:, 2:], y)):
        with pytest.raises(ValueError, match=r"a pipeline of its scalers"):
            natural_coefficients(foreign)
