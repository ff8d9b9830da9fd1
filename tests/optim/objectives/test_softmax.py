"""The multinomial objective against differences, the plain formula and two classes."""

import numpy as np
import pytest
from scipy import sparse

from dp_halfspace.optim.objectives import SoftmaxObjective
from dp_halfspace.rows.rows import Rows
from tests.optim.cases import logical_rows, naive_softmax_gradient

RNG = np.random.default_rng(0)
N, D, K = 300, 4, 3
X = RNG.standard_normal((N, D))
TARGETS = RNG.integers(0, K - 1, N)  # the last class is absent
WEIGHTS = RNG.random(N) + 0.1
SCALE = RNG.random(N)
SIZE = K * (D + 1)
LINEAR = RNG.standard_normal(SIZE)
W = 0.7 * RNG.standard_normal(SIZE)


def objective(linear=LINEAR, form=np.asarray):
    return SoftmaxObjective(Rows(form(X), SCALE, 0.5), TARGETS, K, WEIGHTS, 0.3, linear)


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sparse.csr_array])
def test_value_and_gradient_are_the_formula(form):
    J = objective(form=form)
    Z = logical_rows(X, SCALE, 0.5)
    logits = (Z @ W.reshape(K, -1).T).astype(float)
    losses = np.logaddexp.reduce(logits, axis=1) - logits[np.arange(N), TARGETS]
    value, gradient = J.value_and_gradient(W)
    assert value == pytest.approx(WEIGHTS @ losses + 0.15 * W @ W + LINEAR @ W, rel=1e-13)
    expected = naive_softmax_gradient(Z, TARGETS, K, WEIGHTS, 0.3, W) + LINEAR
    np.testing.assert_allclose(gradient, expected.astype(float), atol=1e-11)
    at_zero = objective(linear=None)
    assert J.gradient_lipschitz == N * WEIGHTS.max() * 0.5 * J.rows.row_bound**2 + 0.3
    assert at_zero.initial_gap == pytest.approx(at_zero.value_and_gradient(np.zeros(SIZE))[0])


def test_scores_of_each_row_are_measured_from_its_own_largest():
    """Otherwise all exponentials of a row with small scores would vanish."""
    J = SoftmaxObjective(Rows(np.array([[1.0], [-1.0]])), np.array([0, 1]), 2, np.ones(2), 0.1)
    shift = np.array([1000.0, 1000.5])
    value, gradient = J.value_and_gradient(shift)
    assert value - 0.05 * shift @ shift == pytest.approx(
        np.log1p(np.exp(0.5)) + np.log1p(np.exp(0.5)), rel=1e-9
    )
    assert np.isfinite(gradient).all()
