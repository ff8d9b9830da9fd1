"""One matrix in every storage: the same products, and no copy of the whole."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from dp_halfspace.algorithms.gradient.preconditioner import Metric
from dp_halfspace.optim.design.blocks import clip_scales
from dp_halfspace.optim.design.rows import Rows, block_size, clipped_rows
from tests.optim.cases import clipped_float128, data_sets, logical_rows

N, D = 9001, 6
RNG = np.random.default_rng(0)
DENSE = RNG.standard_normal((N, D)) * (RNG.random((N, D)) < 0.7)
SCALE = RNG.random(N)
COLUMN = RNG.standard_normal(N)


def storages():
    padded = np.zeros((N, D + 3))
    padded[:, 1 : D + 1] = DENSE
    unaligned = np.zeros(N * D * 8 + 1, dtype=np.uint8)[1:].view(np.float64).reshape(N, D)
    unaligned[:] = DENSE
    yield "C", DENSE
    yield "F", np.asfortranarray(DENSE)
    yield "columns of a wider array", padded[:, 1 : D + 1]
    yield "every other row", np.repeat(DENSE, 2, axis=0)[::2]
    yield "reversed", np.ascontiguousarray(DENSE[::-1])[::-1]
    yield "unaligned", unaligned
    yield "big endian", DENSE.astype(">f8")
    yield "csr array", sparse.csr_array(DENSE)
    yield "csr matrix", sparse.csr_matrix(DENSE)


@pytest.mark.parametrize(
    ("name", "X"), list(storages()), ids=lambda v: v if isinstance(v, str) else ""
)
@pytest.mark.parametrize("scale", [None, SCALE], ids=["plain", "scaled"])
@pytest.mark.parametrize("bias", [None, 0.7, COLUMN], ids=["none", "number", "column"])
def test_products_do_not_depend_on_the_storage(name, X, scale, bias):
    rows = Rows(X, scale, bias)
    Z = logical_rows(DENSE, scale, bias).astype(float)
    assert rows.shape == Z.shape
    w = RNG.standard_normal(Z.shape[1])
    W = RNG.standard_normal((Z.shape[1], 3))
    p, P, weights = RNG.standard_normal(N), RNG.standard_normal((N, 3)), RNG.random(N)
    few = weights * (RNG.random(N) < 0.2)
    np.testing.assert_allclose(rows.margins(w), Z @ w, atol=1e-13)
    np.testing.assert_allclose(rows.margins(W), Z @ W, atol=1e-13)
    np.testing.assert_allclose(rows.adjoint(p), Z.T @ p, atol=1e-10)
    np.testing.assert_allclose(rows.adjoint(P), Z.T @ P, atol=1e-10)
    for c in (weights, few):
        np.testing.assert_allclose(rows.gram(c), Z.T @ (c[:, None] * Z), atol=1e-9)
    fused = rows.fused_adjoint(w, lambda m, lo, hi: np.tanh(m) * p[lo:hi])
    np.testing.assert_allclose(fused, Z.T @ (np.tanh(Z @ w) * p), atol=1e-10)
    fused = rows.fused_adjoint(W, lambda m, lo, hi: m * P[lo:hi])
    np.testing.assert_allclose(fused, Z.T @ ((Z @ W) * P), atol=1e-10)
    assert rows.row_bound == pytest.approx(np.linalg.norm(Z, axis=1).max(), rel=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.uint8, bool])
def test_narrow_types_are_used_at_full_precision(dtype):
    """The same numbers in float64 give the same products to the last digits."""
    X = (4 * DENSE).astype(dtype)
    w = RNG.standard_normal(D)
    forms = [X, np.asfortranarray(X)]
    if dtype != np.float16:
        forms.append(sparse.csr_array(X))
    for form in forms:
        rows = Rows(form, SCALE)
        exact = logical_rows(X.astype(np.float64), SCALE)
        np.testing.assert_allclose(rows.margins(w), (exact @ w).astype(float), atol=1e-14)
        np.testing.assert_allclose(rows.adjoint(SCALE), (exact.T @ SCALE).astype(float), rtol=1e-13)


def test_many_blocks_in_a_fixed_order():
    rows = Rows(DENSE)
    assert rows.block_rows < N
    seen = []

    def record(margins, lo, hi):
        seen.append((lo, hi))
        return margins

    rows.fused_adjoint(np.ones(D), record)
    assert seen[0][0] == 0
    assert seen[-1][1] == N
    assert all(a[1] == b[0] for a, b in pairwise(seen))
    first = Rows(DENSE).adjoint(COLUMN)
    np.testing.assert_array_equal(first, Rows(DENSE.copy()).adjoint(COLUMN))


@pytest.mark.parametrize("case", list(data_sets()), ids=lambda case: case[0])
@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sparse.csr_array])
def test_clipped_rows_of_degenerate_data(case, form):
    _, X, _ = case
    rows = clipped_rows(form(X), 1.0, bias=0.5)
    Z = clipped_float128(X, 1.0, 0.5)
    w = np.linspace(-1, 2, Z.shape[1])
    np.testing.assert_allclose(rows.margins(w), (Z @ w).astype(float), atol=1e-13)
    ones = np.ones(len(X))
    np.testing.assert_allclose(rows.adjoint(ones), (Z.T @ ones).astype(float), atol=1e-12)
    np.testing.assert_allclose(rows.gram(ones), (Z.T @ Z).astype(float), atol=1e-12)
    assert rows.row_bound == pytest.approx(np.hypot(1, 0.5), rel=1e-12)


def test_one_huge_row_leaves_the_others_alone():
    """Without the extreme-row path its margin would be infinite times zero."""
    X = np.array([[1.7e308, 1.7e308, -1.7e308], [0.1, 0.2, 0.3]])
    w = np.array([50.0, 50.0, 50.0])
    for form in (X, np.asfortranarray(X), sparse.csr_array(X)):
        margins = clipped_rows(form, 1.0).margins(w)
        np.testing.assert_allclose(margins, [50 / np.sqrt(3), 30.0], rtol=1e-12)


def test_huge_row_planted_bug():
    X = np.array([[1.7e308, 1.7e308, -1.7e308], [0.1, 0.2, 0.3]])
    rows = clipped_rows(X, 1.0)
    rows._extreme = None
    with np.errstate(all="ignore"):
        assert not np.isfinite(rows.margins(np.full(3, 50.0))).all()


def test_factors_above_the_range_are_applied_first():
    X = np.array([[3e-300, 4e-300], [1.0, 1.0]])
    scale = np.array([1e300, 1.0])
    for form in (X, sparse.csr_array(X)):
        np.testing.assert_allclose(
            Rows(form, scale).margins(np.array([1e-20, 1e-20])), [7e-20, 2e-20]
        )


def test_subset():
    index = np.array([5, 1, 700])
    for X in (DENSE, sparse.csr_array(DENSE)):
        rows = Rows(X, SCALE, COLUMN, row_bound=9.0)
        part = rows.subset(index)
        w = RNG.standard_normal(D + 1)
        np.testing.assert_allclose(part.margins(w), rows.margins(w)[index], rtol=1e-13)
        assert part.row_bound == 9.0
    assert Rows(DENSE, None, 0.5).subset(index).shape == (3, D + 1)


@pytest.mark.parametrize(
    ("name", "X"), list(storages()), ids=lambda v: v if isinstance(v, str) else ""
)
@pytest.mark.parametrize("scale", [None, SCALE], ids=["plain", "scaled"])
@pytest.mark.parametrize("bias", [None, 0.7, COLUMN], ids=["none", "number", "column"])
def test_single_rows_do_not_depend_on_the_storage(name, X, scale, bias):
    """Dense rows, lengths and rescaled rows, against the matrix in extended precision."""
    rows = Rows(X, scale, bias)
    Z = logical_rows(DENSE, scale, bias)
    index = RNG.permutation(N)[:300]
    np.testing.assert_allclose(rows.dense(index), Z[index].astype(float), rtol=1e-15)
    np.testing.assert_allclose(rows.lengths(), np.linalg.norm(Z.astype(float), axis=1), rtol=1e-13)
    transform = RNG.standard_normal((Z.shape[1], 2))
    images = np.linalg.norm(Z.astype(float) @ transform, axis=1)
    np.testing.assert_allclose(rows.lengths(transform.T), images, rtol=1e-9, atol=1e-13)
    upper = np.triu(RNG.standard_normal((Z.shape[1], Z.shape[1])))
    images = np.linalg.norm(Z.astype(float) @ upper.T, axis=1)
    np.testing.assert_allclose(rows.lengths(upper), images, rtol=1e-9, atol=1e-13)
    thin = Metric(3.0, np.linalg.qr(transform)[0], np.array([0.5, 1.0]))
    images = np.linalg.norm((thin @ Z.T.astype(float)).T, axis=1)
    np.testing.assert_allclose(rows.lengths(thin), images, rtol=1e-9, atol=1e-13)
    factor = RNG.random(N)
    scaled = rows.rescaled(factor, row_bound=7.0)
    assert scaled.row_bound == 7.0
    expected = (Z * factor[:, None]).astype(float)
    np.testing.assert_allclose(scaled.dense(index), expected[index], rtol=1e-14)
    w = RNG.standard_normal(Z.shape[1])
    np.testing.assert_allclose(scaled.margins(w), expected @ w, atol=1e-13)
    # The original is untouched.
    np.testing.assert_allclose(rows.margins(w), Z.astype(float) @ w, atol=1e-13)


@given(
    n=st.integers(1, 40),
    d=st.integers(0, 12),
    dtype=st.sampled_from([np.float64, np.float32, np.int32, np.uint8, bool]),
    form=st.sampled_from([np.asarray, np.asfortranarray, sparse.csr_array]),
    seed=st.integers(0, 99),
)
def test_dense_rows_of_any_shape_and_type(n, d, dtype, form, seed):
    rng = np.random.default_rng(seed)
    X = (4 * rng.random((n, d)) * (rng.random((n, d)) < 0.5)).astype(dtype)
    scale, bias = rng.random(n), rng.standard_normal(n)
    index = rng.integers(n, size=int(rng.integers(0, 2 * n)))
    rows = Rows(form(X), scale, bias)
    expected = logical_rows(X.astype(np.float64), scale, bias).astype(float)
    got = rows.dense(index)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, expected[index], rtol=1e-15)
    np.testing.assert_allclose(rows.lengths(), np.linalg.norm(expected, axis=1), rtol=1e-13)


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sparse.csr_array])
def test_extreme_factors_reach_dense_rows_and_lengths(form):
    X = np.array([[1.7e308, 1.7e308, -1.7e308], [0.1, 0.2, 0.3], [3e-300, 0.0, 4e-300]])
    rows = Rows(form(X), np.array([1e-308, 1.0, 1e300]), 0.5)
    expected = np.array([[1.7, 1.7, -1.7, 0.5], [0.1, 0.2, 0.3, 0.5], [3.0, 0.0, 4.0, 0.5]])
    np.testing.assert_allclose(rows.dense(np.array([2, 0, 1])), expected[[2, 0, 1]], rtol=1e-12)
    np.testing.assert_allclose(rows.lengths(), np.linalg.norm(expected, axis=1), rtol=1e-12)
    again = rows.rescaled(np.array([2.0, 0.0, 0.5]), row_bound=9.0)
    scaled = expected * np.array([2.0, 0.0, 0.5])[:, None]
    np.testing.assert_allclose(again.dense(np.arange(3)), scaled, rtol=1e-12)


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sparse.csr_array])
@pytest.mark.parametrize("huge", [1e300, 1e140, 0.0])
def test_other_rows_keep_their_bits(form, huge):
    """What one record is must not change how another one is rounded."""
    X = np.random.default_rng(1).standard_normal((300, 17))
    other = X.copy()
    other[0] *= huge
    w = np.random.default_rng(2).standard_normal((17, 2))
    pair = [clipped_rows(form(x), 1.0) for x in (X, other)]
    index = np.arange(1, 300)
    for read in (lambda r: r.margins(w)[1:], lambda r: r.dense(index), lambda r: r.lengths()[1:]):
        np.testing.assert_array_equal(*(read(rows) for rows in pair))


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, np.float32, sparse.csr_array])
def test_no_copy_of_the_matrix(form):
    X = form(np.random.default_rng(0).standard_normal((60_000, 40)))
    size = X.data.nbytes
    rows = Rows(X, np.ones(60_000), 1.0)
    w = np.ones(41)
    tracemalloc.start()
    rows.fused_adjoint(w, lambda margins, lo, hi: margins)
    clip_scales(X, 1.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.1 * size + 5e6


@given(st.integers(0, 10**9), st.integers(0, 10**7), st.booleans())
def test_block_sizes_are_reasonable(n, d, is_sparse):
    size = block_size(n, d, is_sparse=is_sparse)
    assert 1 <= size <= max(1, n)
    if not is_sparse:
        assert size * d <= max(200_000, 48 * d)


def test_empty_shapes():
    rows = Rows(np.zeros((3, 0)), None, 1.0)
    np.testing.assert_array_equal(rows.margins(np.array([2.0])), [2.0, 2.0, 2.0])
    assert Rows(np.zeros((0, 2))).adjoint(np.zeros(0)).tolist() == [0.0, 0.0]
    assert Rows(np.zeros((0, 2))).row_bound == 0.0


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ((np.ones(3),), "matrix"),
        ((np.array([["a"]]),), "matrix"),
        ((np.ones((3, 2)), np.ones(2)), "scale"),
        ((np.ones((3, 2)), None, np.ones(2)), "bias"),
        ((sparse.coo_array(np.ones((3, 2))),), "CSR"),
        ((np.ones((3, 2), dtype=np.longdouble),), "precision"),
    ],
)
def test_bad_arguments(arguments, word):
    with pytest.raises(ValueError, match=word):
        Rows(*arguments)
