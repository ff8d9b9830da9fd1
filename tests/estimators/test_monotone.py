"""Monotone effects: predictions rise or fall, the rest stays, and nothing is spent."""

import pickle

import numpy as np
import pytest

from dp_halfspace import PrivateKernelClassifier, PrivateTableClassifier
from dp_halfspace.engine.probabilities import log_odds_of
from dp_halfspace.estimators import _options as options_module
from dp_halfspace.estimators._options import split_rows
from dp_halfspace.inspection import EffectsDisplay, natural_coefficients
from tests.support import Book

RNG = np.random.default_rng(8)
AGES, SIZES = RNG.uniform(20, 90, 1500), RNG.normal(250, 60, 1500)
WARDS = RNG.choice(["u", "v"], 1500)
TABLE = np.column_stack([AGES, SIZES, WARDS]).astype(object)
# Risk that rises, then falls: a monotone curve is another one.
LABELS = np.abs(AGES - 55) + 5 * RNG.logistic(size=1500) < 18
SCHEMA = {"0": [0, 120], "1": "number", "2": ["u", "v"]}


def table(features="additive", **parameters):
    return PrivateTableClassifier(
        epsilon=2.0, features=features, schema=SCHEMA, classes=[False, True], **parameters
    )


def along(model, column, low, high):
    """Scores of rows in which one column rises."""
    rows = np.empty((400, 3), dtype=object)
    rows[:] = [44, 260, "v"]
    rows[:, column] = np.linspace(low, high, 400)
    return model.decision_function(rows)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("features", ["additive", "linear"])
@pytest.mark.parametrize(("direction", "sign"), [("increasing", 1), ("decreasing", -1)])
def test_scores_of_a_table_become_monotone(features, direction, sign):
    book = Book()
    model = table(features, ledger=book).fit(TABLE, LABELS)
    before = model.decision_function(TABLE)
    changed = model.with_monotone({"0": direction, "1": direction})
    for column, low, high in ((0, -50, 200), (1, -300, 900)):
        steps = sign * np.diff(along(changed, column, low, high))
        assert steps.min() >= 0.0
        if features == "additive" and column == 0:
            assert (sign * np.diff(along(model, column, low, high))).min() < -1e-3
            assert steps.max() > 1e-3
    # The model that was fitted stays, and the copy costs no budget.
    np.testing.assert_array_equal(model.decision_function(TABLE), before)
    assert changed.privacy_ is model.privacy_
    assert len(book.records) == 1
    again = pickle.loads(pickle.dumps(changed.set_params(ledger=None)))
    np.testing.assert_array_equal(again.decision_function(TABLE), changed.decision_function(TABLE))
    assert not hasattr(changed.fit(TABLE, LABELS).model_, "monotone_")


def test_a_curve_that_is_monotone_already_stays():
    model = table("linear").fit(TABLE, AGES > 50)
    changed = model.with_monotone({"0": "increasing"})
    np.testing.assert_allclose(
        changed.decision_function(TABLE), model.decision_function(TABLE), atol=1e-5
    )
    rows = [[None, 240, "u"], [70, None, None]]
    np.testing.assert_allclose(
        changed.decision_function(rows), model.decision_function(rows), atol=1e-5
    )


def test_other_columns_keep_their_effects_and_displays_show_the_copy():
    model = table().fit(TABLE, LABELS)
    # Scores before they become log odds are sums.
    model.certainty_ = 1.0
    changed = model.with_monotone({"0": "increasing"})
    old, new = (EffectsDisplay.from_estimator(m).columns for m in (model, changed))
    assert np.diff(new[0].effects[:, 0]).min() >= -1e-12  # a difference of two scores
    for before, after in zip(old[1:], new[1:], strict=True):
        np.testing.assert_allclose(after.effects, before.effects, atol=1e-4)
    # A column that is named again turns, the other one stays.
    turned = changed.with_monotone({"1": "increasing"}).with_monotone({"0": "decreasing"})
    assert np.diff(along(turned, 0, 0, 120)).max() <= 0.0
    assert np.diff(along(turned, 1, 100, 400)).min() >= 0.0


@pytest.mark.parametrize("data_norm", [None, 2.0])
def test_scores_of_an_additive_kernel_become_monotone(data_norm):
    X = RNG.uniform(-1, 1, (1500, 3))
    y = np.abs(X[:, 0]) > 0.5
    model = PrivateKernelClassifier(kernel="additive", classes=[False, True], data_norm=data_norm)
    changed = model.fit(X, y).with_monotone({"x0": "decreasing"})
    rows = np.tile(X[:1], (300, 1))
    rows[:, 0] = np.linspace(-3, 3, 300)
    assert np.diff(model.decision_function(rows)).max() > 1e-3
    assert np.diff(changed.decision_function(rows)).max() <= 0.0


def test_what_cannot_be_monotone_is_refused():
    model = table().fit(TABLE, LABELS)
    for monotone, words in (
        ({"9": "increasing"}, "names '9', which is not a column of numbers"),
        ({"2": "increasing"}, "names '2', which is not a column of numbers"),
        ({"0": "up"}, 'must be "increasing" or "decreasing"'),
        ({}, "must map names of columns"),
        (["0"], "must map names of columns"),
    ):
        with pytest.raises(ValueError, match=words):
            model.with_monotone(monotone)
    few = table("auto").fit(TABLE[:100], LABELS[:100])
    with pytest.raises(ValueError, match="small table"):
        few.with_monotone({"0": "increasing"})
    three = table().set_params(classes=[0, 1, 2])
    with pytest.raises(ValueError, match="of two classes"):
        three.fit(TABLE, LABELS + (AGES > 70)).with_monotone({"0": "increasing"})
    X = RNG.uniform(-1, 1, (1500, 2))
    joint = PrivateKernelClassifier(kernel="rbf", classes=[0, 1], data_norm=1.5).fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match="sum of curves"):
        joint.with_monotone({"x0": "increasing"})
    lines = PrivateKernelClassifier(kernel="additive", n_components=2, classes=[0, 1], epsilon=3)
    lines.fit(X, X[:, 0] > 0)
    natural_coefficients(lines)
    with pytest.raises(ValueError, match="use EffectsDisplay"):
        natural_coefficients(lines.with_monotone({"x0": "increasing"}))


@pytest.mark.parametrize("features", ["additive", "linear"])
@pytest.mark.parametrize("calibrated", [True, False])
def test_scores_are_monotone_to_the_last_bit(features, calibrated):
    """Neighbouring values, at the knots of all curves too, in tables of any size and order."""
    model = table(features, probability=calibrated).fit(TABLE, LABELS)
    changed = model.with_monotone({"0": "increasing", "1": "decreasing"})
    (_, values, _), _ = changed.model_.monotone_
    scales = changed.column_scales_
    knots = np.interp(values, [-1.0, 1.0], [0.0, 120.0]) if scales is None else values
    ages = np.concatenate([knots, np.linspace(0, 120, 997), RNG.uniform(0, 120, 400)])
    ages = np.concatenate([ages, np.nextafter(ages, np.inf), np.nextafter(ages, -np.inf)])
    for ward, size in zip("uvuvu", RNG.normal(250, 60, 5), strict=True):
        rows = np.empty((len(ages), 3), dtype=object)
        rows[:] = [0, size, ward]
        rows[:, 0] = ages
        scores = changed.decision_function(rows)
        order = np.argsort(ages, kind="stable")
        assert np.diff(scores[order]).min() >= 0.0
        # The score of a row does not depend on its place.
        few = RNG.choice(len(ages), 50, replace=False)
        assert changed.decision_function(rows[few]).tolist() == scores[few].tolist()
        for place in few[:3]:
            assert changed.decision_function(rows[[place]])[0] == scores[place]


def assert_curves_are_monotone(interpolated):
    rng = np.random.default_rng(3)
    for _ in range(200):
        # Steps across zero, the size of which is no float, and places where nothing changes.
        values, effects = np.sort(rng.normal(size=40)), np.sort(rng.normal(size=40))
        effects[rng.integers(40)] = effects[20]
        effects.sort()
        for sign in (1.0, -1.0):
            near = np.concatenate([values, rng.uniform(-4, 4, 40)])
            at = np.sort(np.concatenate([near, np.nextafter(near, 9), np.nextafter(near, -9)]))
            found = interpolated(at, values, sign * effects)
            assert (sign * np.diff(found)).min() >= 0.0
            np.testing.assert_allclose(found, np.interp(at, values, sign * effects), atol=1e-13)


def assert_equal_rows_have_equal_sums(sums):
    rng = np.random.default_rng(4)
    for size in (1, 3, 7, 40, 300):
        row, w = rng.normal(size=size).astype(np.float32), rng.normal(size=size)
        found = {sums(np.tile(row, (n, 1)), w)[n - 1] for n in (1, 2, 3, 5, 8, 64, 5000)}
        assert len(found) == 1
        assert found.pop() == pytest.approx(float(row.astype(float) @ w), abs=1e-10)


def test_curves_and_sums_are_exact():
    """Planted: as before, monotone up to 9e-16."""
    assert_curves_are_monotone(options_module._interpolated)
    assert_equal_rows_have_equal_sums(options_module.sums_of_terms)
    with pytest.raises(AssertionError):
        assert_curves_are_monotone(np.interp)
    with pytest.raises(AssertionError):
        assert_equal_rows_have_equal_sums(lambda features, w: features.astype(float) @ w)


def test_rows_are_split_and_stay_as_they_are():
    X = np.array([[1.0, 2.0], [3.0, -9.0]])
    rows, total = split_rows(X, [(1, np.array([0.0, 4.0]), np.array([10.0, 30.0]))])
    assert X.tolist() == [[1.0, 2.0], [3.0, -9.0]]
    assert rows.tolist() == [[1.0, 0.0], [3.0, 0.0]]
    assert total.tolist() == [20.0, 10.0]


def test_log_odds_never_fall_where_scores_rise():
    """Neighbouring numbers of all sizes, on both sides of zero and of the largest multiple."""
    starts = np.concatenate([[0.0, 255.9999, 256.0], 10.0 ** RNG.uniform(-12, 4, 4000)])
    up = np.stack([starts + k * np.spacing(starts) for k in range(-40, 41)], axis=1)
    for scores in (up, -up[:, ::-1]):
        assert np.diff(log_odds_of(scores), axis=1).min() >= 0.0
    np.testing.assert_allclose(
        log_odds_of(np.array([0.0, 2.0, -2.0])), [0.0, 1.4337808, -1.4337808]
    )
