"""Norms after clipping in exact arithmetic; one row never touches another."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy import sparse

from dp_halfspace.rows import blocks as clipping
from dp_halfspace.rows.blocks import canonical_csr, clip_scales, into_ball, scales_and_lengths
from dp_halfspace.rows.rows import Rows

FINITE = st.floats(allow_nan=False, allow_infinity=False)
ROWS = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=FINITE)


def exceeds(X, scales, bound):
    """Whether a scaled row is too long, in rational arithmetic, before or after rounding."""
    squared = Fraction(bound) ** 2
    for row, scale in zip(X, scales, strict=True):
        exact = sum((Fraction(float(scale)) * Fraction(float(v))) ** 2 for v in row)
        rounded = sum(Fraction(float(np.float64(scale) * v)) ** 2 for v in row)
        if max(exact, rounded) > squared:
            return True
    return False


def near_the_bound(seed=0, n=400, d=7):
    """Rows whose norm is the bound, give or take a rounding."""
    X = np.random.default_rng(seed).standard_normal((n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@given(ROWS, st.sampled_from([1.0, 1e-3, 0.3, 7e5]))
def test_norms_are_bounded_exactly(X, bound):
    """And not shortened more than needed."""
    scales = clip_scales(X, bound)
    assert not exceeds(X, scales, bound)
    assert ((scales >= 0) & (scales <= 1)).all()
    least = Fraction(1 - (8 * X.shape[1] + 64) * 2.0**-52)
    for row, scale in zip(X, scales, strict=True):
        square = sum(Fraction(float(v)) ** 2 for v in row) / Fraction(bound) ** 2
        if scale == 1.0:
            assert square <= 1
        elif scale > 1e-300:
            assert Fraction(float(scale)) ** 2 * square >= least


def test_images_are_within_their_limit_in_exact_arithmetic():
    """A map that stretches far, and rows that nearly cancel: most digits of an image are lost."""
    entries = np.random.default_rng(4).uniform(0.3, 0.6, 200)
    X = np.column_stack([entries, entries + 2e-3])
    stretch = np.array([[1000.0, -1000.0]])
    scales = Rows(X).clip_images(stretch, 1.0, ()).state[0]
    images = [1000 * (Fraction(a) - Fraction(b)) for a, b in X.tolist()]
    lengths = [abs(image) * Fraction(scale) for image, scale in zip(images, scales, strict=True)]
    assert 1 - 1e-10 < max(lengths) <= 1


def test_images_of_rows_with_subnormal_factors_are_within_their_limit():
    """Entries near the largest double, stretched: a factor has few bits left."""
    X = np.random.default_rng(0).uniform(0.5, 1.0, (40, 1)) * np.full(16, np.finfo(float).max)
    rows = Rows(X, clip_scales(X, 1.0)).clip_images(np.full((1, 16), 256.0), 0.3, ())
    for row, scale in zip(X.tolist(), rows.state[0].tolist(), strict=True):
        image = 256 * sum(map(Fraction, row)) * Fraction(scale)
        assert 1 - 1e-10 < image / Fraction(0.3) <= 1


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.5, 9.0])
def test_points_outside_a_ball_are_brought_back_to_it(factor):
    point = np.array([0.6, 0.8])
    np.testing.assert_allclose(into_ball(factor * point, 1.0), min(factor, 1.0) * point)


def test_rows_at_the_bound_are_no_longer():
    for power in (-300, -160, -150, 0, 150, 160, 300):
        X = near_the_bound(n=50) * 10.0**power
        scales = clip_scales(X, 1.0)
        assert not exceeds(X, scales, 1.0)
        norms = np.linalg.norm(X * scales[:, None], axis=1) if power > 0 else scales
        np.testing.assert_allclose(norms, 1.0, rtol=1e-13)


def test_overflowing_norm_without_nan():
    """The planted row of the literature on floating point: its norm overflows."""
    X = np.array([[1e200, 1e200], [1.7e308, -1.7e308], [0.0, 0.0], [5e-324, 0.0]])
    for data in (X, sparse.csr_array(X)):
        scales = clip_scales(data, 1.0)
        assert np.isfinite(scales).all()
        assert scales[2] == scales[3] == 1.0
        assert not exceeds(X, scales, 1.0)
        assert np.linalg.norm(X[0] * scales[0]) == pytest.approx(1.0)
        # The exact factor of the second row is subnormal and still right to its last digits.
        assert np.linalg.norm(X[1] * scales[1]) == pytest.approx(1.0, rel=1e-13)


def test_more_rows_than_are_read_at_a_time_have_norms_that_overflow(monkeypatch):
    monkeypatch.setattr(clipping, "AT_ONCE", 4)
    scales, lengths = scales_and_lengths(np.full((10, 1), 1e200), 1.0)
    np.testing.assert_allclose(scales, 1e-200)
    np.testing.assert_allclose(lengths, 1.0)


@pytest.mark.parametrize("bound", [1e-3, 1e-8, 1e-12, 3e-15, 1e-16, 1e-20])
def test_a_factor_of_few_bits_is_rounded_down(bound):
    """A subnormal factor may be off by half of itself: what is left of the row is shorter."""
    rng = np.random.default_rng(4)
    X = rng.uniform(-1.0, 1.0, (300, 2)) * 10.0 ** rng.uniform(300, 308.2, (300, 1))
    assert not exceeds(X, clip_scales(X, bound), bound)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.int8, bool])
def test_types_and_layouts_agree(dtype):
    rng = np.random.default_rng(3)
    X = (3 * rng.standard_normal((2000, 5))).astype(dtype)
    expected = clip_scales(X.astype(np.float64), 1.0)
    np.testing.assert_allclose(clip_scales(X, 1.0), expected, rtol=1e-15)
    np.testing.assert_array_equal(clip_scales(np.asfortranarray(X), 1.0), clip_scales(X, 1.0))
    np.testing.assert_allclose(clip_scales(X[:, ::-1], 1.0), expected, rtol=1e-15)
    if dtype != np.float16:
        np.testing.assert_allclose(clip_scales(sparse.csr_array(X), 1.0), expected, rtol=1e-15)


def duplicated():
    """A CSR array that stores one entry of row 0 in two parts, and claims not to."""
    X = sparse.csr_array((np.array([0.8, 0.8, 0.5]), [1, 1, 0], [0, 2, 3]), shape=(2, 3))
    X.has_canonical_format = True
    return X


def test_duplicate_entries_are_added_before_clipping():
    """Norms of the stored numbers would let row 0 through too long."""
    X = duplicated()
    data = X.data.copy()
    scales = clip_scales(X, 1.0)
    assert not exceeds(X.toarray(), scales, 1.0)
    assert scales[0] == pytest.approx(1 / 1.6)
    np.testing.assert_array_equal(X.data, data)
    huge = sparse.csr_array((np.array([1.7e308, 1.7e308]), [0, 0], [0, 2]), shape=(1, 1))
    assert np.isfinite(canonical_csr(huge).data).all()
    plain = sparse.csr_array(np.eye(3))
    assert np.shares_memory(canonical_csr(plain).data, plain.data)


def test_empty_shapes_and_bad_bounds():
    assert clip_scales(np.zeros((3, 0)), 1.0).tolist() == [1.0, 1.0, 1.0]
    assert clip_scales(np.zeros((0, 3)), 1.0).shape == (0,)
    assert clip_scales(sparse.csr_array((4, 3)), 1.0).tolist() == [1.0] * 4
    for bad in (0.0, -1.0, np.nan, np.inf, 1e-200):
        with pytest.raises(ValueError, match="bound"):
            clip_scales(np.ones((1, 1)), bad)


@pytest.mark.parametrize("d", [1, 7, 500])
@pytest.mark.parametrize("entry", [4.0, -(2.0**300), 2.0**-200])
def test_rows_are_shorter_than_the_bound_by_what_their_norm_may_be_off(d, entry):
    """Also where the norm is computed without any rounding: the allowance is for the worst."""
    X = np.zeros((1, d))
    X[0, d // 2] = entry
    for kind in (np.asarray, sparse.csr_array):
        (scale,), (length,) = clipping.scales_and_lengths(kind(X), 2.0**-210)
        norm = Fraction(float(scale)) * abs(Fraction(entry)) * 2**210
        assert norm <= 1 - Fraction(d + 7, 2**52)
        assert length * 2.0**210 <= 1.0 - (d + 7) * 2.0**-52
