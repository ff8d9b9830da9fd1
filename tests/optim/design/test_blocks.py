"""Products with one block against plain matrix products."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from dp_halfspace.optim.design.blocks import (
    Block,
    add_adjoint,
    add_gram,
    block_size,
    row_squares,
    times,
)
from tests.optim.cases import logical_rows

RNG = np.random.default_rng(0)
N, D = 30, 4
X = RNG.standard_normal((N, D)) * (RNG.random((N, D)) < 0.6)
SCALE = RNG.random(N)
BIASES = [None, 0.5, RNG.standard_normal(N)]
forms = pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
biases = pytest.mark.parametrize("bias", BIASES, ids=["none", "number", "column"])
scales = pytest.mark.parametrize("scale", [None, SCALE], ids=["plain", "scaled"])


@forms
@biases
@scales
@pytest.mark.parametrize("columns", [(), (3,)], ids=["vector", "matrix"])
def test_products(form, bias, scale, columns):
    Z = logical_rows(X, scale, bias).astype(float)
    block = Block(0, N, form(X), form(X).T, scale, bias)
    w = RNG.standard_normal((Z.shape[1], *columns))
    p = RNG.standard_normal((N, *columns))
    np.testing.assert_allclose(times(block, w), Z @ w, atol=1e-14)
    out = np.ones((Z.shape[1], *columns))
    add_adjoint(block, p, out)
    np.testing.assert_allclose(out, 1 + Z.T @ p, atol=1e-13)
    np.testing.assert_allclose(row_squares(block), (Z**2).sum(axis=1), atol=1e-14)


@forms
@biases
@scales
@pytest.mark.parametrize("share", [0.2, 1.0])
def test_gram(form, bias, scale, share):
    Z = logical_rows(X, scale, bias).astype(float)
    weights = RNG.random(N) * (RNG.random(N) < share)
    out = np.ones((Z.shape[1], Z.shape[1]))
    add_gram(Block(0, N, form(X), form(X).T, scale, bias), weights, out)
    np.testing.assert_allclose(out, 1 + Z.T @ (weights[:, None] * Z), atol=1e-13)


@given(st.integers(0, 10**9), st.integers(0, 10**7), st.booleans())
def test_block_sizes_are_reasonable(n, d, is_sparse):
    size = block_size(n, d, is_sparse=is_sparse)
    assert 1 <= size <= max(1, n)
    if not is_sparse:
        assert size * d <= max(200_000, 48 * d)
