"""The multinomial objective against differences, the plain formula and two classes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

from dp_halfspace.optim.design.rows import Rows, clipped_rows
from dp_halfspace.optim.objectives.losses import LOGISTIC
from dp_halfspace.optim.objectives.margin import MarginObjective
from dp_halfspace.optim.objectives.softmax import SoftmaxObjective
from tests.optim.cases import data_sets, logical_rows, naive_softmax_gradient

RNG = np.random.default_rng(0)
N, D, K = 300, 4, 3
X = RNG.standard_normal((N, D))
TARGETS = RNG.integers(0, K - 1, N)  # the last class is absent
WEIGHTS = RNG.random(N) + 0.1
SCALE = RNG.random(N)
SIZE = K * (D + 1)
LINEAR = RNG.standard_normal(SIZE)
W = 0.7 * RNG.standard_normal(SIZE)


def objective(linear=LINEAR, form=np.asarray, shift=0.0):
    return SoftmaxObjective(Rows(form(X), SCALE, 0.5), TARGETS, K, WEIGHTS, 0.3, linear, shift)


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
    np.testing.assert_array_equal(J.gradient(W), gradient)


def test_shift_lowers_the_score_of_the_own_class():
    logits = (logical_rows(X, SCALE, 0.5) @ W.reshape(K, -1).T).astype(float)
    logits[np.arange(N), TARGETS] -= 2.0
    losses = np.logaddexp.reduce(logits, axis=1) - logits[np.arange(N), TARGETS]
    value = objective(shift=2.0).value_and_gradient(W)[0]
    assert value == pytest.approx(WEIGHTS @ losses + 0.15 * W @ W + LINEAR @ W, rel=1e-13)
    at_zero = objective(linear=None, shift=2.0)
    assert at_zero.initial_gap == pytest.approx(at_zero.value_and_gradient(np.zeros(SIZE))[0])


@pytest.mark.parametrize("shift", [0.0, 2.0])
def test_derivatives_against_differences(shift):
    J = objective(shift=shift)
    step = 1e-5
    numeric = [
        (J.value_and_gradient(W + e)[0] - J.value_and_gradient(W - e)[0]) / (2 * step)
        for e in step * np.eye(SIZE)
    ]
    np.testing.assert_allclose(J.gradient(W), numeric, rtol=1e-6, atol=1e-6)
    numeric = np.column_stack(
        [(J.gradient(W + e) - J.gradient(W - e)) / (2 * step) for e in step * np.eye(SIZE)]
    )
    hessian = J.hessian(W)
    np.testing.assert_allclose(hessian, numeric, rtol=1e-6, atol=1e-6)
    v = RNG.standard_normal(SIZE)
    np.testing.assert_allclose(J.hessian_product(W)(v), hessian @ v, rtol=1e-11, atol=1e-11)


def test_two_classes_are_logistic_regression():
    """With coefficients w and -w it is the logistic loss of 2 w."""
    targets = (TARGETS > 0).astype(int)
    rows = Rows(X)
    softmax = SoftmaxObjective(rows, targets, 2, WEIGHTS, 0.3)
    binary = MarginObjective(rows, 2.0 * targets - 1, WEIGHTS, LOGISTIC, 0.3)
    w = RNG.standard_normal(D)
    gradient = softmax.gradient(np.concatenate([-w, w])).reshape(2, D)
    np.testing.assert_allclose(gradient[1], -gradient[0], atol=1e-12)
    data_part = gradient[1] - 0.3 * w
    np.testing.assert_allclose(data_part, binary.gradient(2 * w) - 0.6 * w, atol=1e-12)


def test_public_constants_bound_the_curvature_and_the_gap():
    J = SoftmaxObjective(clipped_rows(X, 1.0, 0.5), TARGETS, K, WEIGHTS, 0.3, LINEAR)
    for w in (np.zeros(SIZE), W, 3 * W):
        eigenvalues = np.linalg.eigvalsh(J.hessian(w))
        assert eigenvalues[-1] <= J.gradient_lipschitz
        assert eigenvalues[0] >= J.ridge * (1 - 1e-12)
    at_zero = J.value_and_gradient(np.zeros(SIZE))[0]
    lowest = min(J.value_and_gradient(w)[0] for w in RNG.standard_normal((200, SIZE)))
    assert at_zero - lowest <= J.initial_gap


@pytest.mark.parametrize("case", list(data_sets()), ids=lambda case: case[0])
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e8, 1e200])
def test_no_point_and_no_data_warn(case, scale):
    _, features, signs = case
    targets = (signs > 0).astype(int)
    J = SoftmaxObjective(clipped_rows(features, 1.0), targets, 3, np.ones(len(signs)), 0.1)
    w = scale * np.linspace(-1, 1, J.size)
    J.value_and_gradient(w)
    J.hessian(w)
    J.hessian_product(w)(w)


def test_subsample():
    n = 5000
    J = SoftmaxObjective(
        Rows(RNG.standard_normal((n, 2))), RNG.integers(0, 3, n), 3, np.ones(n), 0.3
    )
    part = J.subsample(512)
    assert part.rows.shape == (512, 2)
    assert part.weights.sum() == pytest.approx(n)
    assert J.subsample(4000) is None


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"ridge": math.nan}, "ridge"),
        ({"targets": TARGETS[1:]}, "targets"),
        ({"weights": WEIGHTS[1:]}, "weights"),
        ({"n_classes": 1}, "n_classes"),
        ({"linear": np.ones(D)}, "linear"),
        ({"shift": -1.0}, "shift"),
    ],
)
def test_bad_arguments(change, word):
    good = {"targets": TARGETS, "n_classes": K, "weights": WEIGHTS, "ridge": 1.0}
    with pytest.raises(ValueError, match=word):
        SoftmaxObjective(Rows(X), **{**good, **change})
