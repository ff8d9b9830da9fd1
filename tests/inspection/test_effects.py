"""AdditiveDisplay: curves add up to the scores, and are drawn."""

import numpy as np
import pytest

from dp_halfspace import AdaptiveMarginClassifier, PrivateKernelClassifier, PrivateTableClassifier
from dp_halfspace.inspection import AdditiveDisplay, ColumnEffect, TableEffectsDisplay

RANGES = [[-1.0, 1.0], [-0.5, 0.5]]


def data(n_classes=2):
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (600, 2))
    return X, (n_classes * np.abs(X[:, 0]) * 1.99).astype(int)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_curves_of_an_additive_model_add_up_to_its_scores(n_classes):
    X, y = data(n_classes)
    model = PrivateKernelClassifier("additive", classes=range(n_classes), data_norm=2.0).fit(X, y)
    display = AdditiveDisplay.from_estimator(model, RANGES)
    first, second = display.columns
    assert isinstance(first, ColumnEffect)
    rows = np.column_stack([first.values[::5], second.values[::5]])
    centre = model.decision_function(np.zeros((1, 2))).reshape(1, -1)
    total = centre + first.effects[::5] + second.effects[::5]
    scores = model.decision_function(rows).reshape(len(rows), -1)
    np.testing.assert_allclose(scores, total, atol=1e-5 * np.abs(total).max())
    assert len(display.classes) == total.shape[1]


def test_wrong_ranges_are_refused():
    X, y = data()
    model = AdaptiveMarginClassifier(classes=[0, 1]).fit(X, y)
    with pytest.raises(ValueError, match="2 pairs of finite numbers"):
        AdditiveDisplay.from_estimator(model, RANGES[:1])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_effects_of_a_table_add_up_and_are_drawn(n_classes):
    figures = pytest.importorskip("matplotlib.figure")
    rng = np.random.default_rng(1)
    age, year = rng.uniform(0, 100, 900), rng.normal(2000, 5, 900)
    words = rng.choice(["u", "v", "w"], (900, 2))
    X = np.column_stack([age, year, words, age]).astype(object)
    schema = {"0": [0, 100], "1": "number", "2": ["u", "v", "w"], "4": "drop"}
    model = PrivateTableClassifier(features="additive", schema=schema, classes=range(n_classes))
    model.fit(X, (age > 50).astype(int))
    display = TableEffectsDisplay.from_estimator(model, {"3": ["w", "q"], "1": [1990, 2010]})
    assert [column.name for column in display.columns] == ["0", "1", "2", "3"]
    assert [column.labels for column in display.columns[2:]] == [("u", "v", "w"), ("w", "q")]
    row = [display.columns[0].values[7], display.columns[1].values[9], "v", "w", None]
    empty, score = model.decision_function(np.array([[None] * 5, row], dtype=object))
    parts = [c.effects[k] for c, k in zip(display.columns, (7, 9, 1, 0), strict=True)]
    np.testing.assert_allclose(np.sum(parts, axis=0), np.atleast_1d(score - empty), atol=1e-5)
    drawn = display.plot(figure=figures.Figure())
    assert [t.get_text() for t in drawn.ax_[2].get_xticklabels()] == ["u", "v", "w"]
    own = TableEffectsDisplay.from_estimator(model).columns
    assert len(own) == 3
    np.testing.assert_allclose(own[1].values[50], model.units_.center[1])
