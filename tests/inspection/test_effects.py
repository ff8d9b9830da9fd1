"""EffectsDisplay: curves add up to the scores, have a band of noise, and are drawn."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from dp_halfspace import AdaptiveMarginClassifier, PrivateKernelClassifier, PrivateTableClassifier
from dp_halfspace.inspection import ColumnEffect, EffectsDisplay, effect_displays, model_card
from dp_halfspace.inspection.effect_displays import is_flag
from tests.support import fitted


def data(n_classes=2):
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (600, 2))
    return X, (n_classes * np.abs(X[:, 0]) * 1.99).astype(int)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_curves_of_an_additive_model_add_up_to_its_scores(n_classes):
    X, y = data(n_classes)
    how = {"classes": range(n_classes), "epsilon": 9.0}
    model = PrivateKernelClassifier(kernel="additive", **how).fit(X, y)
    display = EffectsDisplay.from_estimator(model)
    first, second = display.columns
    assert isinstance(first, ColumnEffect)
    rows = np.column_stack([first.values[::5], second.values[::5]])
    centre = model.decision_function([[first.values[50], second.values[50]]]).reshape(1, -1)
    total = centre + first.effects[::5] + second.effects[::5]
    scores = model.decision_function(rows).reshape(len(rows), -1)
    np.testing.assert_allclose(scores, total, atol=1e-5 * np.abs(total).max())
    assert list(display.classes) == ([1] if n_classes == 2 else [0, 1, 2])


def test_a_model_without_scales_of_columns_is_refused():
    X, y = data()
    model = PrivateKernelClassifier(kernel="rbf", classes=[0, 1], data_norm=2.0).fit(X, y)
    with pytest.raises(ValueError, match="need released column scales"):
        EffectsDisplay.from_estimator(model)


def test_many_classes_and_categories_are_not_drawn():
    """As the page says, and as the card does."""
    X, names = data()[0].astype(object)[:, [0, 1, 0]], [f"v{i}" for i in range(1001)]
    schema = {"0": [-1, 1], "1": names[:1000], "2": names}
    model = PrivateTableClassifier(classes=[0, 1], schema=schema, features="linear")
    display = EffectsDisplay.from_estimator(model.fit(X, np.arange(600) % 2))
    assert [column.name for column in display.columns] == ["0", "1"]
    few, many = (
        clone(model).set_params(classes=range(k), schema=dict.fromkeys("012", "number"))
        for k in (100, 101)
    )
    assert len(EffectsDisplay.from_estimator(few.fit(X, np.arange(600) % 2)).classes) == 100
    many.fit(X, np.arange(600) % 2)
    with pytest.raises(ValueError, match="of at most 100 classes"):
        EffectsDisplay.from_estimator(many)
    assert "more than 100 classes" in model_card(many)


def test_nothing_to_draw_is_said():
    with pytest.raises(ValueError, match="no column has effects to draw"):
        EffectsDisplay([], ["yes"]).plot()


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
    # Scores before they become log odds are sums.
    model.certainty_ = 1.0
    display = EffectsDisplay.from_estimator(model)
    assert [column.name for column in display.columns] == ["0", "1", "2"]
    assert display.columns[2].labels == ("u", "v", "w")
    centre = display.columns[1].values[50]
    assert centre == pytest.approx(model.column_scales_.center[1])
    row = [display.columns[0].values[7], display.columns[1].values[9], "v", "w", None]
    middle = [50, centre, None, "w", None]
    empty, score = model.decision_function(np.array([middle, row], dtype=object))
    parts = [c.effects[k] for c, k in zip(display.columns, (7, 9, 1), strict=True)]
    np.testing.assert_allclose(np.sum(parts, axis=0), np.atleast_1d(score - empty), atol=1e-4)
    drawn = display.plot(figure=figures.Figure())
    if n_classes > 2:
        assert [t.get_text() for t in drawn.ax_[-1].get_legend().get_texts()] == ["0", "1", "2"]
    shown = drawn.ax_[2].get_xticklabels()
    assert [(t.get_text(), t.get_rotation()) for t in shown] == [("u", 0), ("v", 0), ("w", 0)]


def test_axes_are_in_the_units_of_columns_and_zeros_and_ones_are_two_points():
    figures = pytest.importorskip("matplotlib.figure")
    rng = np.random.default_rng(3)
    n = 6000
    columns = {
        "age": rng.normal(55, 12, n),
        "sex": rng.integers(0, 2, n),
        "stated": rng.integers(0, 2, n),
        "share": rng.random(n),
    }
    X = pd.DataFrame(columns)
    schema = {"age": "number", "sex": "number", "stated": [0, 1], "share": "number"}
    model = PrivateTableClassifier(epsilon=10.0, schema=schema, classes=[False, True])
    model.fit(X, X["age"] + 12 * X["sex"] > 61)
    display = EffectsDisplay.from_estimator(model)
    found = {column.name: column for column in display.columns}
    assert 15 < found["age"].values[0] < 40
    assert 70 < found["age"].values[-1] < 95
    assert found["sex"].labels == found["stated"].labels == ("0", "1")
    assert found["share"].labels == ()
    middle = dict.fromkeys(columns, 0.5) | {
        "age": found["age"].values[50],
        "share": found["share"].values[50],
    }
    for value in (0, 1):
        rows = pd.DataFrame([middle, {**middle, "sex": value}])
        score = np.diff(model.decision_function(rows))
        np.testing.assert_allclose(found["sex"].effects[value], score, atol=1e-6)
    drawn = display.plot(figure=figures.Figure())
    assert drawn.ax_[1].get_lines()[0].get_xdata().tolist() == [0.0, 1.0]


def test_zeros_and_ones_in_an_array_are_two_points():
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.integers(0, 2, 6000), rng.random(6000)])
    model = PrivateKernelClassifier(epsilon=10.0, classes=[False, True])
    model.fit(X, X[:, 0] + X[:, 1] > 1)
    first, second = EffectsDisplay.from_estimator(model).columns
    assert (first.labels, len(second.values)) == (("0", "1"), 101)
    middle = second.values[50]
    scores = model.decision_function([[0, middle], [1, middle], [0.5, middle]])
    np.testing.assert_allclose(first.effects[:, 0], scores[:2] - scores[2], atol=1e-6)


@pytest.mark.parametrize(
    ("centre", "scale", "ends", "expected"),
    [
        (0.5, 0.5, (-np.inf, np.inf), True),
        (0.1, 0.3, (0.0, 1.0), True),
        (0.5, 0.29, (0.0, 1.0), False),
        (0.5, 0.5, (0.0, 120.0), False),
        (55.0, 12.0, (-np.inf, np.inf), False),
        (0.0, 1.0, (-np.inf, np.inf), False),
        (1.2, 0.3, (-np.inf, np.inf), False),
    ],
)
def test_zeros_and_ones_are_known_by_the_largest_deviation(centre, scale, ends, expected):
    assert is_flag(centre, scale, ends) is expected


def test_a_rare_flag_of_a_linear_model_is_two_points():
    """Its released scale is several of its deviations, which the second moment knows better."""
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(60, 12, 20_000), rng.random(20_000) < 0.04])
    y = (0.05 * (rows[:, 0] - 60) + rows[:, 1] + rng.logistic(size=20_000) > 2).astype(int)
    model = fitted(AdaptiveMarginClassifier(epsilon=3, classes=[0, 1]), rows, y, random_state=0)
    age, flag = EffectsDisplay.from_estimator(model).columns
    assert not age.labels
    assert flag.labels == ("0", "1")


def test_a_column_without_a_range_or_a_released_scale_has_no_axis():
    rng = np.random.default_rng(0)
    X = rng.normal(55, 12, (300, 2))
    schema = {"0": "number", "1": [0, 120]}
    model = PrivateTableClassifier(epsilon=0.5, schema=schema, classes=[False, True])
    model.fit(X, X[:, 0] > 55)
    assert model._is_selected
    (column,) = EffectsDisplay.from_estimator(model).columns
    assert (column.name, column.values[0], column.values[-1]) == ("1", 0.0, 120.0)


def additive_table(n=3000, epsilon=1.0, **parameters):
    """A model of which the first of four columns has all the effect; dates are in a format."""
    rng = np.random.default_rng(2)
    risk, other = rng.normal(0, 1, n), rng.normal(5, 2, n)
    days = np.datetime64("2024-01-01") + rng.integers(0, 600, n)
    seen = [f"{str(day)[8:]}/{str(day)[5:7]}/{str(day)[:4]}" for day in days]
    X = np.column_stack([risk, other, seen, rng.choice(["u", "v"], n)]).astype(object)
    y = risk + 0.3 * rng.logistic(size=n) > 0
    schema = {
        "0": "number",
        "1": "number",
        "2": {"kind": "date", "format": "%d/%m/%Y", "range": ["2024-01-01", "2025-08-23"]},
        "3": ["u", "v"],
    }
    model = PrivateTableClassifier(
        **{"features": "additive", **parameters},
        epsilon=epsilon, schema=schema, classes=[False, True],
    )  # fmt: skip
    return model.fit(X, y), X, y


def test_a_band_tells_noise_from_effects():
    hidden = []
    for _ in range(2):
        model, _, _ = additive_table()
        first, *others = EffectsDisplay.from_estimator(model).columns
        assert first.deviations.shape == first.effects.shape == (101, 1)
        assert first.is_noise.mean() < 0.75
        assert first.importance > 3 * max(column.importance for column in others)
        hidden += [column.is_noise.mean() for column in others]
    assert np.mean(hidden) > 0.7


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_band_is_that_of_the_stated_noise(n_classes, monkeypatch):
    """The effects of a model without effects, with the stated noise in its coefficients."""
    # What all curves explain together takes most of the time of a display.
    monkeypatch.setattr(effect_displays, "_explained", lambda *given: np.ones(1))
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (3000, 2))
    how = {"classes": range(n_classes), "epsilon": 10.0}
    schema = {"0": [-1, 1], "1": "number"}
    table = PrivateTableClassifier(**how, schema=schema, features="additive")
    table.fit(X, (n_classes * np.abs(X[:, 0])).astype(int))
    numbers = PrivateKernelClassifier(**how, kernel="additive")
    numbers.fit(X, (n_classes * np.abs(X[:, 0])).astype(int))
    for model, inner in ((table, table.model_), (numbers, numbers)):
        inner.coef_ = np.zeros_like(inner.coef_)
        # As much noise in each class, and so little that log odds are linear in it.
        errors = inner.coef_axis_std_error_
        inner.coef_axis_std_error_ = 0.01 * np.tile(errors.mean(axis=0), (len(errors), 1))
        display = EffectsDisplay.from_estimator(model)
        found, size = [], inner.coef_axis_std_error_.size
        # Each part of the noise by itself: the variances add up.
        for part in np.eye(size).reshape(size, *inner.coef_axis_std_error_.shape):
            noise = part * inner.coef_axis_std_error_
            if n_classes > 2:
                # The noise of all classes has the sum zero.
                noise = (noise - noise.mean(axis=0)) / np.sqrt(1.0 - 1.0 / n_classes)
            inner.coef_ = noise @ inner.coef_axes_.T
            found.append([c.effects for c in EffectsDisplay.from_estimator(model).columns])
        for stated, effects in zip(display.columns, zip(*found, strict=True), strict=True):
            exact = np.sqrt(np.sum(np.square(effects), axis=0))
            np.testing.assert_allclose(stated.deviations, exact, rtol=1e-3, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "epsilon"), [(3000, 1.0), (20000, 0.5)])
def test_a_band_is_as_wide_as_the_noise_of_repeated_fits(n, epsilon):
    model, X, y = additive_table(n, epsilon)
    stated = EffectsDisplay.from_estimator(model).columns
    found = []
    for _ in range(16):
        other = clone(model).fit(X, y)
        columns = zip(stated, EffectsDisplay.from_estimator(other).columns, strict=True)
        # Axes follow the released scales of each fit.
        found.append([np.interp(c.values, d.values, d.effects[:, 0]) for c, d in columns])
    measured = [np.std(parts, axis=0, ddof=1) for parts in zip(*found, strict=True)]
    widths = [
        np.sqrt([np.square(part).mean() for part in parts])
        for parts in ([c.deviations for c in stated], measured)
    ]
    # Of columns without an effect, which have no noise of their scales.
    assert 0.5 < np.linalg.norm(widths[0][1:]) / np.linalg.norm(widths[1][1:]) < 1.9


@pytest.mark.filterwarnings("ignore::dp_halfspace.PrivacyWarning")
def test_there_is_no_band_for_a_column_that_was_selected():
    rng = np.random.default_rng(0)
    y = rng.random(900) < 0.03
    X = rng.normal(size=(900, 3)) + y[:, None]
    model = PrivateTableClassifier(epsilon=0.5, classes=[False, True], random_state=0).fit(X, y)
    assert isinstance(model.model_, AdaptiveMarginClassifier)
    columns = EffectsDisplay.from_estimator(model).columns
    assert all(column.deviations is None for column in columns)


def test_there_is_no_band_for_a_model_from_a_list_and_none_of_noise_without_noise():
    model, _, _ = additive_table(n=250, epsilon=0.5, features="auto")
    assert model._is_selected
    display = EffectsDisplay.from_estimator(model)
    assert all(column.deviations is None for column in display.columns)
    model, _, _ = additive_table(n=1500, epsilon=np.inf)
    for column in EffectsDisplay.from_estimator(model).columns:
        assert (column.deviations == 0.0).all()


def test_a_band_is_drawn_and_axes_can_be_read():
    figures = pytest.importorskip("matplotlib.figure")
    days = np.linspace(19_000.0, 20_000.0, 5)
    wave = np.array([[-3.0], [0.1], [0.2], [0.1], [3.0]])
    wide = {"deviations": np.full((5, 1), 0.5)}
    words = tuple(f"a very long name of ward {k}" for k in range(45))
    many = np.zeros((45, 1))
    columns = [
        ColumnEffect("seen", days, wave, is_date=True, **wide),
        ColumnEffect("platelets", np.linspace(1e5, 4e5, 5), wave, **wide),
        ColumnEffect("ward", np.arange(45.0), many, words, deviations=many + 1),
    ]
    display = EffectsDisplay(columns, [True]).plot(figure=figures.Figure((9, 3)))
    display.figure_.canvas.draw()
    dates, numbers, wards = (
        [t.get_text() for t in axis.get_xticklabels() if t.get_text()] for axis in display.ax_
    )
    assert 2 <= len(dates) <= 5
    assert any("20" in text for text in dates)
    assert 2 <= len(numbers) <= 6
    assert {"200k", "300k"} <= set(numbers)
    assert len(wards) <= 20
    assert max(map(len, wards)) <= 20
    assert display.ax_[2].get_xticklabels()[0].get_rotation() == 90
    below, above = display.ax_[0].get_lines()[:2]
    assert below.get_color() == "0.6"
    assert np.isnan(above.get_ydata()).tolist() == [False, True, True, True, False]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_what_curves_explain_is_all_of_a_sum_and_little_of_a_product(n_classes):
    X, y = data(n_classes)
    how = {"classes": range(n_classes), "epsilon": 9.0}
    sum_of_curves = PrivateKernelClassifier(kernel="additive", **how).fit(X, y)
    display = EffectsDisplay.from_estimator(sum_of_curves)
    np.testing.assert_allclose(display.explained, 1.0, atol=1e-6)
    Z = np.random.default_rng(3).uniform(-1.0, 1.0, (9000, 2))
    product = PrivateKernelClassifier(epsilon=9.0, classes=[False, True])
    product.fit(Z, Z[:, 0] * Z[:, 1] > 0.0)
    display = EffectsDisplay.from_estimator(product)
    assert display.explained.shape == (1,)
    assert display.explained < 0.3
    product.coef_, product.row_clip_ = np.zeros_like(product.coef_), None
    assert EffectsDisplay.from_estimator(product).explained == 0.0
