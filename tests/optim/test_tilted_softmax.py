"""The tilted softmax objective: formulas, derivatives, extreme numbers, minimisers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp

from dp_halfspace.optim import LOGISTIC
from dp_halfspace.optim.erm import RidgeProblem, minimise, plan_erm
from dp_halfspace.optim.objectives import SoftmaxObjective
from dp_halfspace.optim.rows import Rows, clipped_rows
from dp_halfspace.optim.tilted_softmax import TiltedSoftmaxObjective

RNG = np.random.default_rng(0)
N, D, K = 50, 3, 4
X = RNG.standard_normal((N, D))
Y = RNG.integers(0, K, N)
WEIGHTS = RNG.random(N) + 0.1
LINEAR = RNG.standard_normal(K * D)
W = RNG.standard_normal(K * D)
each_tilt = pytest.mark.parametrize("tilt", [0.3, 5.0, 50.0])


def objective(tilt, weights=WEIGHTS, shift=0.0):
    plain = SoftmaxObjective(clipped_rows(X, 2.0), Y, K, weights, 0.3, LINEAR, shift)
    return TiltedSoftmaxObjective(plain, tilt)


@each_tilt
@pytest.mark.parametrize("shift", [0.0, 1.5])
def test_value_is_the_formula(tilt, shift):
    J = objective(tilt, shift=shift)
    logits = J.plain.rows.margins(W.reshape(K, D).T)
    logits[np.arange(N), Y] -= shift
    losses = -WEIGHTS * log_softmax(logits, axis=1)[np.arange(N), Y]
    expected = N * (logsumexp(tilt * losses) - np.log(N)) / tilt + 0.15 * W @ W + LINEAR @ W
    value, gradient = J.value_and_gradient(W)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_array_equal(J.gradient(W), gradient)


@each_tilt
@pytest.mark.parametrize("shift", [0.0, 1.5])
def test_derivatives_against_differences(tilt, shift):
    J = objective(tilt, shift=shift)
    step, identity = 1e-5, np.eye(K * D)
    numeric = [
        (J.value_and_gradient(W + step * e)[0] - J.value_and_gradient(W - step * e)[0]) / 2e-5
        for e in identity
    ]
    np.testing.assert_allclose(J.gradient(W), numeric, rtol=1e-6, atol=1e-6)
    numeric = [(J.gradient(W + step * e) - J.gradient(W - step * e)) / 2e-5 for e in identity]
    hessian = J.hessian(W)
    np.testing.assert_allclose(hessian, numeric, atol=1e-6 * np.abs(hessian).max())
    v = RNG.standard_normal(K * D)
    np.testing.assert_allclose(J.hessian_product(W)(v), hessian @ v, rtol=1e-9, atol=1e-10)


@each_tilt
def test_public_constants_bound_the_curvature_and_the_gap(tilt):
    J = objective(tilt)
    for w in (np.zeros(K * D), W, 3 * W):
        eigenvalues = np.linalg.eigvalsh(J.hessian(w))
        assert eigenvalues[-1] <= J.gradient_lipschitz
        assert eigenvalues[0] >= J.ridge * (1 - 1e-9)
    at_zero = J.value_and_gradient(np.zeros(K * D))[0]
    points = 2 * RNG.standard_normal((50, K * D)) * RNG.random()
    assert at_zero - min(J.value_and_gradient(w)[0] for w in points) <= J.initial_gap


def test_a_small_tilt_is_the_plain_objective():
    J = objective(1e-9)
    np.testing.assert_allclose(J.gradient(W), J.plain.gradient(W), rtol=1e-6)
    np.testing.assert_allclose(J.hessian(W), J.plain.hessian(W), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("tilt", [50.0, 1e4, 1e300])
@pytest.mark.parametrize("size", [0.0, 1.0, 1e8, 1e200])
def test_nothing_overflows_or_warns(tilt, size):
    J = objective(tilt, np.where(np.arange(N) % 5 == 0, 0.0, 1.0))
    _, gradient = J.value_and_gradient(size * W)
    J.hessian(size * W)
    J.hessian_product(size * W)(W)
    assert np.isfinite(gradient).all()


def test_subsample_resembles_the_whole():
    rows, y = Rows(RNG.standard_normal((5000, 2))), RNG.integers(0, 3, 5000)
    J = TiltedSoftmaxObjective(SoftmaxObjective(rows, y, 3, np.ones(5000), 0.3), 0.5)
    part = J.subsample(512)
    w = np.array([0.5, -0.2, 0.1, 0.3, 0.0, 0.4])
    whole = J.gradient(w)
    assert part.n_records == 512
    assert np.linalg.norm(part.gradient(w) - whole) < 0.4 * np.linalg.norm(whole)
    assert J.subsample(4000) is None
    assert part.initial_gap >= part.value_and_gradient(np.zeros(6))[0]


@each_tilt
def test_minimisers_meet_their_tolerance(tilt):
    for absent in (False, True):
        y = np.where(Y == K - 1, 0, Y) if absent else Y
        problem = RidgeProblem(LOGISTIC, N, D, K, 1.0, N, tilt=tilt, min_weight=1.0)
        plan = plan_erm(problem, 0.05)
        found = minimise(plan, clipped_rows(X, 1.0), y, np.ones(K))
        plain = SoftmaxObjective(clipped_rows(X, 1.0), y, K, np.ones(N), 0.05 * N)
        gradient = TiltedSoftmaxObjective(plain, tilt).gradient(found.ravel())
        assert np.linalg.norm(gradient) <= plan.tolerance
        assert np.linalg.norm(found) <= plan.radius * (1 + 1e-6)


@pytest.mark.parametrize("tilt", [0.0, -1.0, math.inf, math.nan])
def test_bad_tilts(tilt):
    with pytest.raises(ValueError, match="tilt"):
        objective(tilt)
