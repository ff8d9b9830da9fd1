"""One matrix in every storage: the same products, and no copy of the whole."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from dp_halfspace.data.people import People
from dp_halfspace.rows import blocks
from dp_halfspace.rows.blocks import clip_scales
from dp_halfspace.rows.rows import Rows, clipped_rows, rescale_state
from tests.optim.cases import clipped_float128, data_sets, logical_rows

N, D = 9001, 6
RNG = np.random.default_rng(0)
DENSE = RNG.standard_normal((N, D)) * (RNG.random((N, D)) < 0.7)
SCALE = RNG.random(N)
COLUMN = RNG.standard_normal(N)
FORMS = [np.asarray, np.asfortranarray, sparse.csr_array]


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


@pytest.mark.sampled(25)
@pytest.mark.parametrize("X", dict(storages()).values(), ids=dict(storages()))
@pytest.mark.parametrize("scale", [None, SCALE], ids=["plain", "scaled"])
@pytest.mark.parametrize("bias", [None, 0.7, COLUMN], ids=["none", "number", "column"])
def test_products_do_not_depend_on_the_storage(X, scale, bias):
    rows = Rows(X, scale, bias)
    Z = logical_rows(DENSE, scale, bias).astype(float)
    assert rows.shape == Z.shape
    w, W = RNG.standard_normal(Z.shape[1]), RNG.standard_normal((Z.shape[1], 3))
    p, P, weights = RNG.standard_normal(N), RNG.standard_normal((N, 3)), RNG.random(N)
    few = weights * (RNG.random(N) < 0.2)
    np.testing.assert_allclose(rows.margins(w), Z @ w, atol=1e-13)
    np.testing.assert_allclose(rows.margins(W), Z @ W, atol=1e-13)
    np.testing.assert_allclose(rows.scores(W), Z @ W, atol=1e-13)
    np.testing.assert_allclose(rows.adjoint(p), Z.T @ p, atol=1e-10)
    np.testing.assert_allclose(rows.adjoint(P), Z.T @ P, atol=1e-10)
    for c in (weights, few):
        np.testing.assert_allclose(rows.gram(c), Z.T @ (c[:, None] * Z), atol=1e-9)
    fused = rows.fused_adjoint(w, lambda m, lo, hi: np.tanh(m) * p[lo:hi])
    np.testing.assert_allclose(fused, Z.T @ (np.tanh(Z @ w) * p), atol=1e-10)
    fused = rows.fused_adjoint(W, lambda m, lo, hi: m * P[lo:hi])
    np.testing.assert_allclose(fused, Z.T @ ((Z @ W) * P), atol=1e-10)
    assert rows.row_bound == pytest.approx(np.linalg.norm(Z, axis=1).max(), rel=1e-8)
    part = Rows(X, scale, bias, row_bound=9.0).subset(np.array([5, 1, 700]))
    np.testing.assert_allclose(part.margins(w), Z[[5, 1, 700]] @ w, atol=1e-13)
    assert part.row_bound == 9.0


def test_the_last_block_of_scores_may_be_a_single_row():
    n = blocks.block_size(10**6, 3, is_sparse=False) + 1
    rows = Rows(np.ones((n, 3), order="F"))
    assert rows.block_rows == n - 1
    for w in np.eye(3):
        np.testing.assert_array_equal(rows.scores(w), 1.0)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_blocks_in_one_work_space_are_read_one_after_the_other(kind):
    """Those of another type, and those with factors that are applied to their rows."""
    X, plain = np.outer(np.arange(9000), np.ones(50)).astype(kind), np.ones(9000)
    extreme = plain.copy()
    extreme[[1, 8000]] = 2.0**-500
    for scale in (plain, extreme):
        rows = Rows(X, scale)
        assert rows.block_rows < 4500
        for _ in range(2):
            np.testing.assert_array_equal(rows.margins(np.ones(50)), 50.0 * X[:, 0] * scale)
    sizes = [hi - lo for lo, hi, _ in rows.images(np.eye(50), 10**6)]
    assert max(sizes) == rows.block_rows


@pytest.mark.sampled(25)
@pytest.mark.parametrize("X", dict(storages()).values(), ids=dict(storages()))
@pytest.mark.parametrize("scale", [None, SCALE], ids=["plain", "scaled"])
@pytest.mark.parametrize("bias", [None, 0.7, COLUMN], ids=["none", "number", "column"])
def test_single_rows_do_not_depend_on_the_storage(X, scale, bias):
    """Dense rows, lengths and rescaled rows, against the matrix in extended precision."""
    rows = Rows(X, scale, bias)
    Z = logical_rows(DENSE, scale, bias).astype(float)
    index = RNG.permutation(N)[:300]
    np.testing.assert_allclose(rows.dense(index), Z[index], rtol=1e-15)
    np.testing.assert_allclose(rows.lengths(), np.linalg.norm(Z, axis=1), rtol=1e-13)
    thin = RNG.standard_normal((Z.shape[1], 2))
    for transform in (thin.T, RNG.standard_normal((Z.shape[1], Z.shape[1]))):
        images = np.linalg.norm((transform @ Z.T).T, axis=1)
        np.testing.assert_allclose(rows.lengths(transform), images, rtol=1e-9, atol=1e-13)
    factor = RNG.random(N)
    scaled = rows.over(X, rescale_state(rows.state, factor))
    expected, w = Z * factor[:, None], RNG.standard_normal(Z.shape[1])
    np.testing.assert_allclose(scaled.dense(index), expected[index], rtol=1e-14)
    np.testing.assert_allclose(scaled.margins(w), expected @ w, atol=1e-13)
    # The original is untouched.
    np.testing.assert_allclose(rows.margins(w), Z @ w, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.uint8, bool])
def test_narrow_types_are_used_at_full_precision(dtype):
    """The same numbers in float64 give the same products to the last digits."""
    X, w, index = (4 * DENSE).astype(dtype), RNG.standard_normal(D), RNG.integers(N, size=99)
    for form in FORMS[: 2 if dtype == np.float16 else 3]:
        rows = Rows(form(X), SCALE)
        exact = logical_rows(X.astype(np.float64), SCALE)
        np.testing.assert_allclose(rows.margins(w), (exact @ w).astype(float), atol=1e-14)
        np.testing.assert_allclose(rows.adjoint(SCALE), (exact.T @ SCALE).astype(float), rtol=1e-13)
        assert rows.dense(index).dtype == np.float64
        np.testing.assert_allclose(rows.dense(index), exact[index].astype(float), rtol=1e-15)


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


def test_only_few_blocks_are_added_one_by_one(monkeypatch):
    """The error of a plain sum grows with the number of its terms."""
    monkeypatch.setattr(blocks, "_SUMMED_ENTRIES", 1)
    for n, expected in ((200, 2.0**53), (401, 2.0**53 + 400.0)):
        p = np.append(2.0**53, np.ones(n - 1))
        assert Rows(np.ones((n, 1))).adjoint(p).tolist() == [expected]


@pytest.mark.parametrize("case", list(data_sets()), ids=lambda case: case[0])
@pytest.mark.parametrize("form", FORMS)
def test_clipped_rows_of_degenerate_data(case, form):
    _, X, _ = case
    rows = clipped_rows(form(X), 1.0, constant=0.5)
    Z = clipped_float128(X, 1.0, 0.5)
    w, ones = np.linspace(-1, 2, Z.shape[1]), np.ones(len(X))
    np.testing.assert_allclose(rows.margins(w), (Z @ w).astype(float), atol=1e-13)
    np.testing.assert_allclose(rows.adjoint(ones), (Z.T @ ones).astype(float), atol=1e-12)
    np.testing.assert_allclose(rows.gram(ones), (Z.T @ Z).astype(float), atol=1e-12)
    assert rows.row_bound == pytest.approx(np.hypot(1, 0.5), rel=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_huge_rows_have_finite_margins(form):
    """Without the path of extreme rows a margin would be infinite times zero."""
    X = np.array([[1.7e308, 1.7e308, -1.7e308], [0.1, 0.2, 0.3]])
    rows = clipped_rows(form(X), 1.0)
    np.testing.assert_allclose(rows.margins(np.full(3, 50.0)), [50 / np.sqrt(3), 30], rtol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_extreme_factors_reach_dense_rows_and_lengths(form):
    X = np.array([[1.7e308, 1.7e308, -1.7e308], [0.1, 0.2, 0.3], [3e-300, 0.0, 4e-300]])
    rows = Rows(form(X), np.array([1e-308, 1.0, 1e300]), 0.5)
    expected = np.array([[1.7, 1.7, -1.7, 0.5], [0.1, 0.2, 0.3, 0.5], [3.0, 0.0, 4.0, 0.5]])
    np.testing.assert_allclose(rows.margins(np.ones(4)), expected.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(rows.dense(np.array([2, 0, 1])), expected[[2, 0, 1]], rtol=1e-12)
    np.testing.assert_allclose(rows.lengths(), np.linalg.norm(expected, axis=1), rtol=1e-12)
    both = Rows(form(X), rows.state[0], np.full((3, 2), 0.5)).lengths()
    np.testing.assert_allclose(both, np.hypot(rows.lengths(), 0.5), rtol=1e-12)
    again = rows.over(form(X), rescale_state(rows.state, np.array([2.0, 0.0, 0.5])))
    scaled = expected * np.array([2.0, 0.0, 0.5])[:, None]
    np.testing.assert_allclose(again.dense(np.arange(3)), scaled, rtol=1e-12)


@pytest.mark.sampled(2)
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


def test_empty_shapes():
    rows = Rows(np.zeros((3, 0)), None, 1.0)
    np.testing.assert_array_equal(rows.margins(np.array([2.0])), [2.0, 2.0, 2.0])
    assert Rows(np.zeros((0, 2))).adjoint(np.zeros(0)).tolist() == [0.0, 0.0]
    assert Rows(np.zeros((0, 2))).row_bound == 0.0


def test_a_sum_of_parts_by_kahan_keeps_what_single_additions_lose():
    parts = [np.array([part]) for part in [1.0, *[2.0**-53] * 64]]
    assert blocks.sum_of_parts(parts, (1,), is_plain=False) == 1.0 + 2.0**-47
    assert blocks.sum_of_parts(parts, (1,), is_plain=True) == 1.0


def test_images_of_rows_are_measured_where_their_persons_stand(monkeypatch):
    """Factors of clipped images are those of places that no other person moves."""
    seen, honest = [], People.row_by_row
    monkeypatch.setattr(
        People, "row_by_row", lambda *given: (seen.append(given[2]), honest(*given))[1]
    )
    rows = Rows(np.ones((5, 1)), people=People(np.array([3, 2])))
    clipped = rows.clip_images(np.eye(1), 0.5, ())
    assert seen == [rows.block_rows]
    np.testing.assert_allclose(clipped.margins(np.ones(1)), 0.5)


def test_more_blocks_than_a_table_of_one_row_for_each_person_has_are_added_by_kahan(monkeypatch):
    """The bound on rounding errors counts the blocks of such a table, whose number is public."""
    added, honest = [], blocks.add_compensated
    monkeypatch.setattr(
        blocks, "add_compensated", lambda parts: added.append(len(all := [*parts])) or honest(all)
    )
    for counts in ([6], [2] * 3, [1] * 6):
        Rows(np.ones((6, 1)), people=People(np.array(counts))).adjoint(np.ones(6))
    assert added == [7, 3]
