"""Rows of float32: ``docs/proofs/certificate.md``, section 9; ``engine.md``, section 5."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dp_halfspace import AdaptiveMarginClassifier, PrivateAUCClassifier
from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.engine.linear import Shape, clipped_rows_over
from dp_halfspace.engine.plan import PublicFacts
from dp_halfspace.engine.scales import ColumnScales, in_column_scales
from dp_halfspace.engine.steps import N_STEPS
from dp_halfspace.estimators._ranking import threshold_losses
from dp_halfspace.estimators.base import PrivateLinearClassifier
from dp_halfspace.rows import blocks
from dp_halfspace.rows import float32_rows as module
from dp_halfspace.rows.blocks import block_size
from dp_halfspace.rows.float32_rows import (
    GRAM_GROUP,
    Float32Rows,
    clipped_float32_rows,
    group_size,
)
from dp_halfspace.rows.rows import clipped_rows
from tests.permits import problem_of
from tests.support import largest_ratio

FORMS = {
    "C": np.asarray,
    "F": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, 1)[:, ::2],
    "left columns": lambda X: np.pad(X, ((0, 0), (0, 1)))[:, :-1],
    "right columns": lambda X: np.pad(X, ((0, 0), (3, 0)))[:, 3:],
    "every second row": lambda X: np.repeat(X, 2, 0)[::2],
    "rows backwards": lambda X: X[::-1].copy()[::-1],
    "columns backwards": lambda X: X[:, ::-1].copy()[:, ::-1],
    "rows of F": lambda X: np.asfortranarray(np.pad(X, ((3, 2), (0, 0))))[3:-2],
    "every second row of F": lambda X: np.asfortranarray(np.repeat(X, 2, 0))[::2],
    "every second column of F": lambda X: np.asfortranarray(np.repeat(X, 2, 1))[:, ::2],
}
forms = pytest.mark.parametrize("form", list(FORMS.values()), ids=list(FORMS))
estimators = pytest.mark.parametrize("kind", [AdaptiveMarginClassifier, PrivateAUCClassifier])
SINGLE = 2.0**-24


# Norm of the columns of a row, and the constant: together at most one.
LONGEST, CONSTANTS = 0.8, (0.6,)


def rows_of(n, d, seed=0):
    """Rows of very different lengths with columns of very different sizes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-3, 3, (n, 1)) * np.geomspace(1, 1e-3, d)
    return X.astype(np.float32)


def stated_rows(n, d, seed=0):
    return clipped_float32_rows(rows_of(n, d, seed), 2.0, LONGEST, CONSTANTS)


def learnt_rows(n, d, seed=0):
    """Rows in estimated column scales: most entries are clipped, some missing or zero."""
    X = rows_of(n, d, seed).astype(np.float64)
    X[::5, 0], X[1::5] = math.nan, 1e300
    X[2::5, 1:] = 0.25
    units = ColumnScales(np.full(d, 0.25), np.geomspace(1e-3, 1e2, d))
    copy = in_column_scales(X, units, kind=np.float32)
    return clipped_float32_rows(copy, math.sqrt(d), LONGEST, CONSTANTS)


def logical(rows):
    """The rows in extended precision: exact products of floats of 24 bits."""
    scale = rows._scale.astype(np.longdouble)[:, None]
    return np.hstack([scale * rows._matrix.astype(np.longdouble), rows._constants])


def map_of(size, stretch, seed=0):
    """A map of `size` columns and a constant that stretches some directions."""
    rng = np.random.default_rng(seed)
    directions = np.linalg.qr(rng.standard_normal((size + 1, size)))[0]
    return np.geomspace(0.25, stretch, size)[:, None] * directions.T


@forms
@pytest.mark.parametrize("constants", [(), CONSTANTS])
def test_rows_are_those_of_float64_and_have_norm_one_at_most(form, constants):
    X = rows_of(3000, 9)
    rows = clipped_float32_rows(form(X), 2.0, LONGEST, constants)
    lengths = np.sqrt((logical(rows)[:, :9] ** 2).sum(axis=1))
    assert LONGEST * (1 - 2.0**-17) <= lengths.max() <= LONGEST
    assert (rows._constants == np.float32(constants or 0.0)).all()
    again = rows.clip_images(np.eye(rows.shape[1]), LONGEST, ())
    assert ((logical(again) ** 2).sum(axis=1) <= LONGEST**2).all()
    other = clipped_rows_over(X, 2.0, LONGEST, constants, None)
    w = np.append(np.linspace(1.0, 2.0, 9), [3.0] * len(constants))
    np.testing.assert_allclose((logical(rows) @ w).astype(float), other.margins(w), atol=1e-5)


@pytest.mark.parametrize("made", [stated_rows, learnt_rows])
def test_images_have_the_norm_of_the_clip_at_most(made):
    transform = map_of(7, 200.0)
    rows = made(4000, 7).clip_images(transform, LONGEST, CONSTANTS)
    images = logical(rows)[:, :8] @ np.asarray(transform, dtype=np.longdouble).T
    longest = float(np.sqrt((images**2).sum(axis=1)).max())
    assert LONGEST * (1 - 1e-3) <= longest <= LONGEST


def worst_group(condition):
    """Error of the sum of a group, stretched by a map, relative to the reach of a record."""
    group = group_size(condition)
    rng = np.random.default_rng(3)
    X = (1 + rng.random((group, 3))).astype(np.float32)
    rows = replace(clipped_float32_rows(X, 1.0, LONGEST, CONSTANTS), group=group)
    found = rows.fused_adjoint(np.zeros(4), lambda m, lo, hi: np.ones(hi - lo, np.float32))
    error = np.linalg.norm((found - logical(rows).sum(axis=0)).astype(float))
    return error * condition


def test_roundings_of_a_group_are_within_what_is_paid_for():
    conditions = (1.0, 10.0, 100.0, 1000.0)
    assert max(map(worst_group, conditions)) <= module.SINGLE_SHARE
    assert [group_size(c) for c in conditions] == [128, 32, 8, 2]


def gram_error(rows):
    Z = logical(rows)
    return float(np.linalg.norm((rows.gram() - Z.T @ Z).astype(float)))


def test_second_moment_of_a_group_is_within_its_allowance():
    allowed = 1.02 * SINGLE * (GRAM_GROUP + 8) * GRAM_GROUP
    positive = np.abs(rows_of(GRAM_GROUP, 5)) + np.float32(1 / 3)
    error = gram_error(clipped_float32_rows(positive, 1.0, LONGEST, CONSTANTS))
    assert 1e-3 * allowed < error <= allowed
    assert allowed * 2.0**-29 < gram_error(learnt_rows(GRAM_GROUP, 5)) <= allowed


def test_records_count_in_a_second_moment_by_their_weights():
    """A record of weight zero does not, whatever its row is."""
    weights = np.resize([0.0, 1.0, 0.37], 700)
    rows = learnt_rows(700, 5)
    Z = logical(rows)
    np.testing.assert_allclose(
        rows.gram(weights), ((Z.T * weights) @ Z).astype(float), atol=1e-3, rtol=1e-5
    )
    classes = np.arange(700) % 2
    found = rows.apply_to_classes(lambda _, each: each, classes, np.array([1.0, 0.25]))
    assert found.tolist() == [1.0, 0.25] * 350


@pytest.mark.sampled(20)
@forms
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("d", [3, 8, 30])
@pytest.mark.parametrize("intruder", [0.0, 1e-30, 7.0, 2.0**61, 3e38])
def test_a_record_changes_one_group_only(form, d, n_outputs, intruder):
    """Slopes of all other rows, and sums of all other groups, keep every bit."""
    X = rows_of(9000, d, seed=1)
    other = X.copy()
    other[4321] = intruder
    shape = (d + 2,) if n_outputs == 1 else (d + 2, n_outputs)
    w = 100 * np.random.default_rng(2).standard_normal(shape)
    sums, slopes = [], []
    real = np.matmul

    def spied(A, B, **given):
        out = real(A, B, **given)
        sums.append(out)
        return out

    for table in (X, other):
        with single_blas_thread(), pytest.MonkeyPatch.context() as patched:
            rows = clipped_float32_rows(form(table), 1.0, LONGEST, CONSTANTS)
            rows = rows.clip_images(map_of(d, 30.0), LONGEST, CONSTANTS)
            patched.setattr(module.np, "matmul", spied)
            total = rows.fused_adjoint(w, lambda m, lo, hi: slopes.append(m.copy()) or np.tanh(m))
        assert np.isfinite(total).all()
    half = len(sums) // 2
    changed = sum(
        int((a != b).any(axis=(1, 2)).sum()) for a, b in zip(sums[:half], sums[half:], strict=True)
    )
    assert changed <= 1
    half = len(slopes) // 2
    before, after = np.concatenate(slopes[:half]), np.concatenate(slopes[half:])
    np.testing.assert_array_equal(np.delete(before, 4321, 0), np.delete(after, 4321, 0))


@forms
@pytest.mark.parametrize("d", [2, 3, 5, 8])
def test_a_record_out_of_reach_moves_errors_of_a_threshold_by_one_at_most(form, d):
    """All records have the score of the threshold but for its roundings."""
    rng = np.random.default_rng(d)
    X = np.tile(rng.standard_normal(d).astype(np.float32), (8192, 1))
    other, w = X.copy(), rng.standard_normal(d)
    other[5] = 2.0**61
    with single_blas_thread():
        scores = [clipped_rows(form(T), 1.0, 1.0).margins_over_constant(w) for T in (X, other)]
    sides = [np.ones(8192, dtype=bool), np.ones(2), np.median(scores[0])[None]]
    losses = [threshold_losses(s, *sides, largest=float(np.linalg.norm(w))) for s in scores]
    assert np.abs(losses[0] - losses[1]).max() <= 1.0


@forms
def test_what_is_copied_is_decided_by_the_layout(form):
    """Products are given arrays of the same shape and strides, whatever a record is."""
    X = rows_of(700, 4)
    other, seen = X.copy(), []
    other[123] = 3e38
    for table in (X, other):
        rows = clipped_float32_rows(form(table), 1.0, LONGEST, CONSTANTS)
        seen.append([(A.shape, A.strides) for _, A, _, _ in rows._blocks()])
    assert seen[0] == seen[1]


@estimators
def test_a_replay_over_float32_finds_nothing(kind):
    """Records beyond the scale, beyond float32 products, of nothing, mirrored, relabelled."""
    X, y = rows_of(400, 6, seed=4), np.arange(400) % 7 == 0
    X[:, 0] += 3 * y
    worst = 0.0
    for number, intruder in enumerate((-X[5], 0 * X[5], 3e38 + 0 * X[5], 1e-30 * X[5], X[5])):
        other, labels = X.copy(), y.copy()
        other[5], labels[5] = intruder, number % 2
        model = kind(epsilon=50.0, data_norm=2.0, classes=[False, True])
        worst = max(worst, largest_ratio(model, X, y, other, labels, random_state=number))
    assert 0.9 < worst <= 1


def test_a_row_out_of_reach_becomes_zero():
    X = np.ones((3, 2), dtype=np.float32)
    X[1] = 3e38
    seen = []
    rows = clipped_float32_rows(X, 1.0, 1.0, ())
    rows.fused_adjoint(np.ones(2), lambda m, lo, hi: seen.append(m.copy()) or m)
    np.testing.assert_allclose(seen[0], [math.sqrt(2), 0, math.sqrt(2)], rtol=1e-5)


@pytest.mark.filterwarnings("ignore:random_state:dp_halfspace.exceptions.PrivacyWarning")
@pytest.mark.parametrize(
    "n_classes",
    [2, 3],
)
def test_a_fit_is_that_of_float64_and_says_its_precision(n_classes):
    X = np.random.default_rng(5).standard_normal((4000, 6)).astype(np.float32)
    y = np.digitize(X[:, 0], [0.0, 0.9][: n_classes - 1])
    X[18], X[19] = 0, 1e-40
    models = [
        AdaptiveMarginClassifier(
            # So few records in comparison with the noise get no scales beside a stated norm.
            epsilon=0.03,
            data_norm=2.0,
            fit_intercept=False,
            classes=range(n_classes),
            random_state=0,
        ).fit(table, y)
        for table in (X, X.astype(np.float64))
    ]
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, rtol=1e-3, atol=1e-2)
    precisions = [dict(model.privacy_.public).get("precision") for model in models]
    assert precisions == ["float32", None]


def read_in_float64(patch):
    honest = PrivateLinearClassifier._facts

    def facts(model, data):
        return replace(honest(model, data), is_single=False, copies_are_single=False)

    patch.setattr(PrivateLinearClassifier, "_facts", facts)


@pytest.mark.filterwarnings("ignore:random_state:dp_halfspace.exceptions.PrivacyWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_fit_that_learns_units_is_that_of_float64(monkeypatch, n_classes):
    """Public facts decide: every table of numbers but those of people, whatever its type."""
    X = np.random.default_rng(5).standard_normal((4000, 6)) * np.geomspace(1e-3, 1e3, 6) + 9.0
    y = np.digitize(X[:, 4], [9.0, 60.0][: n_classes - 1])
    X[::9, 3] = math.nan
    model = AdaptiveMarginClassifier(epsilon=math.inf, classes=range(n_classes), random_state=0)
    scores = [model.fit(X, y).decision_function(X)]
    assert dict(model.privacy_.public)["precision"] == "float32"
    kept = []
    patched = Float32Rows.fused_adjoint
    monkeypatch.setattr(
        Float32Rows, "fused_adjoint", lambda rows, *a: kept.append(rows) or patched(rows, *a)
    )
    np.testing.assert_array_equal(model.fit(np.asfortranarray(X), y).decision_function(X), *scores)
    assert kept[0]._matrix.dtype == np.float32
    pure = AdaptiveMarginClassifier(epsilon=9.0, delta=0, classes=range(n_classes))
    for other in (model.plan(X, y, groups=np.arange(4000)), pure.plan(X, y)):
        assert "precision" not in dict(other.public)
    read_in_float64(monkeypatch)
    scores.append(model.fit(X, y).decision_function(X))
    np.testing.assert_allclose(*scores, rtol=0.0, atol=1e-5 * np.abs(scores[0]).max())


def test_only_the_default_steps_count_on_blocks_of_float32():
    double, single = block_size(10**6, 50, is_sparse=False), module.single_block_size(10**6, 50)
    plain = PublicFacts(10**6, 50, 2, (1.0, 1.0))
    steps = [Shape(plain, is_single=is_single) for is_single in (False, True)]
    assert [shape.block_rows for shape in steps] == [double, single]
    facts = PublicFacts(10**6, 50, 2, (1.0, 1.0), is_single=True, copies_are_single=True)
    assert Shape(facts, 1.0).block_rows == double
    assert problem_of(10**6, 50).sizes()["block_rows"] == double


def sensitivities(plan):
    """Sensitivities of the second moment and of a step."""
    releases = getattr(plan, "direction", plan).releases
    return [release.noise(None).sensitivity for release in releases[-N_STEPS - 1 :][:2]]


@estimators
@pytest.mark.parametrize("data_norm", [1.0, None])
def test_noise_pays_for_the_roundings_of_float32(monkeypatch, kind, data_norm):
    X = rows_of(500, 6)
    y = np.arange(500) % 2
    model = kind(data_norm=data_norm, epsilon=3.0, classes=[0, 1])
    single = sensitivities(model._fit_plan(model._validate(X, y, None)))
    read_in_float64(monkeypatch)
    double = sensitivities(model._fit_plan(model._validate(X, y, None)))
    assert 1 + module.SINGLE_SHARE <= single[1] / double[1] <= 1 + 1.1 * module.SINGLE_SHARE
    allowed = 2.04 * SINGLE * (GRAM_GROUP + 8) * GRAM_GROUP
    assert single[0] - double[0] == pytest.approx(allowed)


@estimators
@pytest.mark.parametrize("params", [{"intercept_scaling": 1e45}, {"data_norm": 1e-10}])
def test_numbers_out_of_reach_of_float32_are_read_in_float64(kind, params):
    X = rows_of(500, 6)
    model = kind(epsilon=math.inf, classes=[False, True], **{"data_norm": 1.0, **params})
    fitted = model.fit(X, X[:, 0] > 0)
    assert np.isfinite(fitted.coef_).all()
    assert "precision" not in dict(fitted.privacy_.public)


def test_what_ranks_otherwise_reads_float64():
    X, y = rows_of(500, 6), np.arange(500) % 2
    for params in ({"delta": 0.0}, {"mechanism": "objective"}):
        model = PrivateAUCClassifier(data_norm=1.0, classes=[0, 1], **params)
        assert "precision" not in dict(model.plan(X, y).public)
        assert np.isfinite(model.fit(X, y).coef_).all()


def stated_lengths(rows):
    """Lengths in extended precision."""
    return np.sqrt((logical(rows) ** 2).sum(axis=1)).astype(float)


def test_rows_are_shorter_than_one_by_what_their_length_may_be_off():
    """Also of a length that is computed without any rounding: the allowance is for the worst."""
    d = 500
    X = np.zeros((3, d), dtype=np.float32)
    X[:, 7] = 0.5, -1.0, 4.0
    rows = clipped_float32_rows(X, 1.0, 1.0, ())
    allowed = (1.0 - 2.0**-21) / (1.0 + (d + 12) * SINGLE)
    assert stated_lengths(rows).max() <= allowed * (1.0 + 8 * SINGLE)
    # After a map that changes nothing: the error of its factor counts, too.
    again = rows.clip_images(np.eye(d), 1.0, ())
    error = 1.5 * (d + 20) * SINGLE * math.sqrt(d)
    before = stated_lengths(rows)
    bound = np.maximum(before * (1.0 + (d + 12) * SINGLE) + error, 1.0)
    allowed = (1.0 - 2.0**-21) * before / bound
    assert (stated_lengths(again) <= allowed * (1.0 + 16 * SINGLE)).all()


def test_factors_leave_room_for_their_own_roundings():
    bounds = np.array([1.0, 3.0, 2.0**-61, 2.0**61, 0.0], dtype=np.float32)
    factors = module._factors_of(bounds.copy()).tolist()
    assert all(0.0 < f * b <= 1.0 - 2.0**-22 for f, b in zip(factors[:2], bounds[:2], strict=True))
    assert factors[2:] == [0.0] * 3


def test_groups_are_added_in_float64():
    """Groups of one row are added exactly here, as float32 would not; the constant column, too."""
    n, small = 256, 2.0**-26
    X = np.full((n, 1), small, dtype=np.float32)
    X[0] = 1.0
    ones = np.ones(n, dtype=np.float32)
    rows = Float32Rows(X, ones, ones[:, None], 1)
    whole = 1.0 + (n - 1) * small
    found = rows.fused_adjoint(np.zeros(2), lambda margins, lo, hi: np.ones_like(margins))
    assert found.tolist() == [whole, n]
    found = rows.fused_adjoint(np.zeros(2), lambda margins, lo, hi: X[lo:hi, 0].copy())
    assert found[1] == whole


def test_groups_are_those_of_the_spectral_norm_of_a_map():
    rows = stated_rows(500, 7).clip_images(np.full((1, 8), 10.0), LONGEST, ())
    assert rows.group == group_size(10.0 * math.sqrt(8)) < group_size(10.0)


def test_a_map_that_amplifies_roundings_has_smaller_groups():
    rows = stated_rows(40, 3)
    mapped = rows.clip_images(np.diag([1.0, 1.0, 1.0, 40.0]), LONGEST, ())
    assert mapped.group == group_size(40.4) < rows.group == group_size(1.0)


def test_only_few_blocks_are_added_one_by_one(monkeypatch):
    """The error of a plain sum grows with the number of its terms."""
    monkeypatch.setattr(blocks, "_SUMMED_ENTRIES", 1)
    for n, expected in ((200, 2.0**53), (401, 2.0**53 + 400.0)):
        rows = clipped_float32_rows(np.ones((n, 1), dtype=np.float32), 1.0, 1.0, ())
        found = rows._sum_blocks((1,), lambda lo, *_: np.array([1.0 if lo else 2.0**53]))
        assert found.tolist() == [expected]
