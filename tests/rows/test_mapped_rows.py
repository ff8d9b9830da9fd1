"""Rows through a map: the same numbers whether images are formed or not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dp_halfspace.rows import mapped_rows as module
from dp_halfspace.rows.mapped_rows import FormedRows, MappedRows, formed_block_rows
from dp_halfspace.rows.rows import normalised_rows

N, D = 5000, 7
RNG = np.random.default_rng(5)
X = RNG.standard_normal((N, D)) * np.geomspace(1.0, 1e-3, D) * (RNG.random((N, D)) < 0.7)
X[:, 0] = RNG.standard_normal(N)
X[3] = 0.0  # the only empty row
FORMS = [np.asarray, np.asfortranarray, sparse.csr_array]
each_form = pytest.mark.parametrize("form", FORMS, ids=["C", "F", "CSR"])
each_bias = pytest.mark.parametrize("bias", [None, 0.25])


def map_of(size):
    """An ill-conditioned map."""
    turned = np.linalg.qr(np.random.default_rng(1).standard_normal((size, size)))[0]
    return (turned * np.geomspace(0.3, 200.0, size)) @ turned.T


LONGEST, LAST = 0.8, (0.6,)


def images(rows, transform):
    """Clipped images with a constant in extended precision, from the logical rows."""
    Z = rows.dense(np.arange(N)).astype(np.float128) @ transform.T.astype(np.float128)
    lengths = np.sqrt((Z**2).sum(axis=1, keepdims=True))
    Z *= LONGEST / np.maximum(lengths, LONGEST)
    return np.column_stack([Z, np.full(N, LAST[0])]).astype(float)


def mapped_rows(rows, transform):
    """The same rows, never formed."""
    size = len(transform)
    whole = np.zeros((size + 1, transform.shape[1] + 1))
    whole[:size, :-1], whole[size, -1] = transform, 1.0
    return MappedRows(rows.clip_images(transform, LONGEST, LAST), whole)


@each_form
@each_bias
def test_all_products_are_those_of_the_clipped_images(form, bias):
    rows = normalised_rows(form(X), 1.0, bias)
    size = rows.shape[1]
    transform = map_of(size)
    Z = images(rows, transform)
    w, p, c = RNG.standard_normal((size + 1, 3)), RNG.standard_normal((N, 2)), RNG.random(N)
    for design in (mapped_rows(rows, transform), FormedRows(rows, transform, LONGEST, LAST)):
        assert design.shape == (N, size + 1)
        assert design.row_bound == 1.0 + 2.0**-40
        close = {"rtol": 1e-9, "atol": 1e-9}
        np.testing.assert_allclose(design.margins(w), Z @ w, **close)
        np.testing.assert_allclose(design.margins(w[:, 0]), Z @ w[:, 0], **close)
        np.testing.assert_allclose(design.adjoint(p), Z.T @ p, **close)
        fused = design.fused_adjoint(w, lambda m, lo, hi: np.tanh(m) * c[lo:hi, None])
        np.testing.assert_allclose(fused, Z.T @ (np.tanh(Z @ w) * c[:, None]), **close)
        np.testing.assert_allclose(design.gram(c), (Z * c[:, None]).T @ Z, **close)
        index = np.array([5, 3, 4999])
        np.testing.assert_allclose(design.subset(index).margins(w), Z[index] @ w, **close)
        assert design.subset(index).row_bound == design.row_bound


@each_form
@each_bias
def test_no_formed_row_is_longer_than_the_bound(form, bias):
    rows = normalised_rows(form(X), 1.0, bias)
    formed = FormedRows(rows, map_of(rows.shape[1]), LONGEST, LAST)
    blocks = [Z.astype(np.float128)[:, :-1] for _, _, Z in formed.blocks()]
    lengths = np.sqrt((np.concatenate(blocks) ** 2).sum(axis=1))
    assert lengths.max() <= LONGEST * (1.0 + 2.0**-52)
    assert lengths.max() > LONGEST - 1e-12


@pytest.mark.parametrize(("n", "d"), [(1, 1), (10, 600), (10**6, 3), (10**5, 51), (50, 10**5)])
def test_images_are_formed_in_no_larger_blocks_than_rows_are_read(n, d):
    size = formed_block_rows(n, d)
    for form in (sparse.csr_array((n, d)), np.broadcast_to(0.0, (n, d))):
        assert 1 <= size <= module.block_size(n, d, is_sparse=sparse.issparse(form))


def test_as_many_images_are_formed_at_a_time_as_the_bound_counts():
    rows = normalised_rows(np.ones((20_000, 9)), 1.0, 0.5)
    formed = FormedRows(rows, np.eye(10), LONGEST, LAST)
    sizes = [hi - lo for lo, hi, _ in formed.blocks()]
    assert max(sizes) == formed.block_rows == formed_block_rows(*formed.shape) < rows.block_rows
