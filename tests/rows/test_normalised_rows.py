"""Norms of normalised rows in exact arithmetic; a record cannot reach beyond its own row."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy import sparse

from dp_halfspace.rows import rows as module
from dp_halfspace.rows.rows import inverse_lengths, normalised_rows
from tests.optim.cases import clipped_float128, data_sets, logical_rows

# Shorter rows may count as zero; that they do no harm is tested one magnitude after another.
ENTRIES = st.one_of(
    st.just(0.0),
    st.floats(1e-20, 1.7e308),
    st.floats(-1.7e308, -1e-20),
    st.floats(-4, 4).filter(lambda v: v == 0 or abs(v) > 1e-20),
)
ROWS = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=5), elements=ENTRIES)
FORMS = [np.ascontiguousarray, np.asfortranarray, sparse.csr_array]
forms = pytest.mark.parametrize("form", FORMS, ids=["C", "F", "csr"])
biases = pytest.mark.parametrize("bias", [None, 0.5, 30.0])


def exact_square(row):
    """Squared norm of a row; integers over one power of two are added faster than fractions."""
    parts = [float(value).as_integer_ratio() for value in row]
    scale = max((below for _, below in parts), default=1)
    return Fraction(sum((above * (scale // below)) ** 2 for above, below in parts), scale**2)


def exact_squares(rows, X):
    """Squared norms of the real rows, and of the rows after one rounding of every entry."""
    n = len(X)
    scale = np.ones(n) if rows._scale is None else rows._scale
    bias = np.zeros(n) if rows._constant is None else rows._constant
    for row, s, q in zip(X, scale, bias, strict=True):
        last = Fraction(float(q)) ** 2
        yield exact_square(row) * Fraction(float(s)) ** 2 + last
        yield exact_square(np.float64(s) * row.astype(np.float64)) + last


def too_long(rows, X):
    """Whether a row is longer than one, in rational arithmetic."""
    return max(exact_squares(rows, X), default=0) > 1


def directions(X, data_norm=1.0, bias=None):
    """Normalised rows in extended precision, written anew."""
    Z = clipped_float128(X, data_norm * 2.0**60) / np.longdouble(data_norm)
    if bias is not None:
        Z = np.column_stack([Z, np.full(len(Z), bias, dtype=np.longdouble)])
    largest = np.abs(Z).max(axis=1, initial=0)[:, None]
    Z = Z / np.where(largest > 0, largest, 1)
    norms = np.sqrt((Z**2).sum(axis=1))[:, None]
    return Z / np.where(norms > 0, norms, 1)


def entries(rows):
    """The logical matrix as margins of the unit vectors show it."""
    return rows.margins(np.eye(rows.shape[1]))


@given(ROWS, st.sampled_from([None, 1.0, 0.3]), st.sampled_from([1.0, 1e-3, 7e5]))
def test_norms_are_at_most_one_exactly(X, bias, data_norm):
    """And directions are kept; beyond 1e300 the factor of a row has fewer digits."""
    kept = (np.abs(X) <= 1e300).all(axis=1)
    expected = directions(X, data_norm, bias).astype(float)
    for form in FORMS:
        rows = normalised_rows(form(X), data_norm, bias)
        assert not too_long(rows, X)
        assert rows.row_bound == 1.0
        found = entries(rows)
        np.testing.assert_allclose(found[kept], expected[kept], rtol=1e-13, atol=1e-13)


@forms
def test_rows_of_every_dimension_and_planted_bug(form, monkeypatch):
    """Without its slack, the reciprocal of a rounded length makes some rows too long."""
    data = [np.random.default_rng(d).standard_normal((150, d)) for d in (1, 2, 6, 20)]
    for X in data:
        rows = normalised_rows(form(X), 1.0, 0.5)
        assert not too_long(rows, X)
        assert min(exact_squares(rows, X)) > 1 - Fraction(4 * (X.shape[1] + 12)) / 2**52
    monkeypatch.setattr(module, "inverse_lengths", lambda lengths, size: 1.0 / lengths)
    assert any(too_long(normalised_rows(form(X), 1.0, 0.5), X) for X in data)


@pytest.mark.sampled(20)
@forms
@biases
@pytest.mark.parametrize(
    "case", [c for c in data_sets() if c[0] != "tiny rows"], ids=lambda case: case[0]
)
def test_degenerate_data(case, form, bias):
    name, X, _ = case
    rows = normalised_rows(form(X), 1.0, bias)
    assert not too_long(rows, X)
    Z = directions(X, 1.0, bias).astype(float)
    if name == "subnormal row" and bias is None:
        # Its direction may be lost; it may not become long or undefined.
        Z[5] = entries(rows)[5]
    np.testing.assert_allclose(entries(rows), Z, atol=1e-13)
    ones = np.ones(len(X))
    np.testing.assert_allclose(rows.adjoint(ones), Z.sum(axis=0), atol=1e-11)
    np.testing.assert_allclose(rows.gram(ones), Z.T @ Z, atol=1e-11)


@forms
def test_no_magnitude_makes_a_row_too_long(form):
    """Sums of subnormal squares are wrong by any factor, and so is a length made from them."""
    shape = np.array([1.6] + [1.5] * 99)
    X = shape * 10.0 ** np.r_[-323:-290, -290:-100:5][:, None]
    assert not too_long(normalised_rows(form(X), 1.0, None), X)
    assert not too_long(normalised_rows(form(X), 1.0, 0.5), X)


NARROW = [(np.float32, 1.0), (np.float32, 1e25), (np.float16, 40), (np.int8, 40), (np.int32, 1e6)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("dtype", "size"), [*NARROW, (bool, 1)])
def test_narrow_types(dtype, size):
    X = (size * np.random.default_rng(3).standard_normal((100, 30))).astype(dtype)
    for form in FORMS[:2] if dtype == np.float16 else FORMS:
        rows = normalised_rows(form(X), 1.0, None)
        assert not too_long(rows, X)
        np.testing.assert_allclose(entries(rows), directions(X).astype(float), atol=1e-13)


def test_long_rows_keep_their_direction_whatever_the_public_scale():
    """The scale is soft: a row ten times longer is not what a row of that scale is."""
    lengths = np.array([1e-150, 1e-3, 1.0, 30.0, 1e9, 1e150])
    constant = entries(normalised_rows(np.outer(lengths, [0.6, 0.8]), 3.0, 0.5))[:, -1]
    expected = 0.5 / np.hypot(lengths / 3.0, 0.5)
    np.testing.assert_allclose(constant, expected, rtol=1e-12, atol=1e-17)


def map_like(size, condition, seed=0):
    """A symmetric map with eigenvalues from 1/4 up to `condition` / 4."""
    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.standard_normal((size, size)))[0]
    values = 0.25 * np.geomspace(1.0, condition, size)
    transform = (vectors * values) @ vectors.T
    return (transform + transform.T) / 2


def image_norms(rows, X, transform):
    """Norms of the images, in extended precision."""
    image = logical_rows(X, rows._scale, rows._constant) @ transform.astype(np.longdouble)
    return np.sqrt((image**2).sum(axis=1))


@forms
@pytest.mark.parametrize("bias", [None, 0.5])
@pytest.mark.parametrize("condition", [1.0, 30.0, 3000.0])
def test_images_have_norm_one_at_most(form, bias, condition):
    """Planted: normalised rows themselves have images longer than one."""
    X = np.random.default_rng(4).standard_normal((300, 40))
    X[0] = 1e200
    transform = map_like(40 + (bias is not None), condition)
    # Rows along the direction that is compressed most are the least accurate ones.
    X[1:11] = np.linalg.eigh(transform)[1][:40, 0]
    unit = normalised_rows(form(X), 1.0, bias)
    norms = image_norms(unit.clip_images(transform, 1.0, ()), X, transform)
    before = image_norms(unit, X, transform)
    assert norms.max() <= 1
    np.testing.assert_allclose(
        norms.astype(float), np.minimum(before, 1.0).astype(float), rtol=1e-9
    )
    assert condition == 1.0 or before.max() > 1.1


@forms
def test_images_that_are_small_beside_the_map_have_norm_one_at_most(form):
    """Large products cancel in them: the bound allows for their rounding errors."""
    rng = np.random.default_rng(5)
    V = np.linalg.qr(rng.standard_normal((40, 40)))[0]
    stretches = np.append(np.full(30, 2000.0), np.full(10, 1.3))
    transform = (V * stretches) @ V.T
    X = rng.standard_normal((3000, 10)) @ V[:, 30:].T
    unit = normalised_rows(form(X), 1.0, None)
    norms = image_norms(unit.clip_images(transform, 1.0, ()), X, transform)
    assert 1.0 - 1e-9 < norms.max() <= 1.0
    assert image_norms(unit, X, transform).min() > 1.2


def test_clipped_images_keep_directions_and_share_the_matrix():
    X = np.random.default_rng(4).standard_normal((300, 5))
    rows = normalised_rows(X, 1.0, None)
    flat = rows.clip_images(map_like(5, 30.0), 1.0, ())
    assert flat._matrix is X
    ratio = entries(flat) / entries(rows)
    np.testing.assert_allclose(ratio, np.tile(ratio[:, :1], (1, 5)), rtol=1e-13)
    assert (ratio > 0).all()


def test_rows_too_short_to_be_divided_by_their_length_become_zero():
    """The inverse of the smallest lengths is infinite, and infinity times zero is no number."""
    lengths = np.array([0.0, 5e-324, 2.0**-101, 2.0**-99])
    assert inverse_lengths(lengths, 3).tolist() == [0.0, 0.0, 0.0, (1.0 - 11 * 2.0**-52) * 2.0**99]


def test_rows_longer_than_a_stated_norm_keep_the_share_of_the_constant():
    rows = normalised_rows(np.array([[30.0, 40.0]]), 5.0, 0.75, clips=True)
    np.testing.assert_allclose(rows.dense(np.array([0])), [[0.48, 0.64, 0.6]])
