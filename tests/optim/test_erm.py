"""The public plan of output perturbation: tolerance inside, cost of the noise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dp_halfspace.exceptions import CertificateError
from dp_halfspace.optim import HINGE, LOGISTIC, SQUARED_HINGE, huber_hinge, shifted_logistic
from dp_halfspace.optim.attack import Attack
from dp_halfspace.optim.erm import (
    RIDGE_FLOOR,
    RidgeProblem,
    minimise,
    plan_erm,
)
from dp_halfspace.optim.rows import clipped_rows
from dp_halfspace.optim.stability import softmax_sensitivity

SMOOTH = [LOGISTIC, huber_hinge(0.5), SQUARED_HINGE]


def problem(loss=LOGISTIC, n=1000, d=10, k=2, norm=1.0, **rest):
    return RidgeProblem(loss, n, d, k, norm, 1000, **rest)


@pytest.mark.parametrize("loss", [*SMOOTH, HINGE], ids=lambda loss: loss.name)
@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("n", [1, 100, 100000])
def test_planned_sensitivity_covers_the_tolerance(loss, k, n):
    """Exact sensitivity plus twice the distance that the solver certifies, and little more."""
    case = problem(loss, n=n, k=k)
    plan = plan_erm(case, 0.1)
    exact = math.sqrt(case.n_stacked) * case.sensitivity(0.1)
    total = 0.1 * n
    if loss.smooth:
        certified = 2 * math.sqrt(case.n_stacked) * plan.tolerance / total
    else:
        certified = 2 * math.sqrt(case.n_stacked) * math.sqrt(2 * plan.tolerance / total)
    assert exact + certified <= plan.sensitivity <= exact * (1.02 if loss is HINGE else 1.001)


def test_ridge_has_a_floor():
    assert plan_erm(problem(norm=3.0), 1e-20).ridge == RIDGE_FLOOR * 9


def test_plan_refuses_what_cannot_be_certified():
    with pytest.raises(CertificateError):
        plan_erm(problem(n=10**12), 1e-4)


@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: loss.name)
@pytest.mark.parametrize("k", [2, 4])
def test_cost_of_noise_bounds_the_measured_one(loss, k):
    """Brute force: the mean loss that spherical noise adds, rows of full length."""
    rng = np.random.default_rng(0)
    n, d, variance = 200, 6, 0.3
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.integers(k, size=n)
    case = problem(loss, n=n, d=d, k=k)

    def mean_loss(W):
        if case.multinomial:
            scores = X @ W.T
            return np.mean(np.logaddexp.reduce(scores, axis=1) - scores[np.arange(n), y])
        if k == 2:
            return loss.value(np.where(y == 1, 1, -1) * (X @ W[0])).mean()
        signs = np.where(y[:, None] == np.arange(k), 1, -1)
        return loss.value(signs * (X @ W.T)).sum(axis=1).mean()

    worst = 0.0
    for scale in (0.0, 0.5, 2.0):
        W = scale * rng.standard_normal((1 if k == 2 else k, d))
        noisy = [
            mean_loss(W + math.sqrt(variance) * rng.standard_normal(W.shape)) for _ in range(400)
        ]
        worst = max(worst, (np.mean(noisy) - mean_loss(W)) / case.noise_cost(variance))
    # 400 draws leave a few per cent of Monte Carlo error.
    assert 0.2 < worst < 1.1


def moved_minimiser(shift, ridge):
    """Largest distance of the minimisers of two data sets of one record, three classes."""
    plan = plan_erm(problem(shifted_logistic(shift), n=1, d=1, k=3, norm=1 + 2.0**-50), ridge)

    def fitted(x, label):
        rows = clipped_rows(np.array([[x]]), 1.0)
        return minimise(plan, rows, np.array([label]), np.ones(3))

    start = fitted(1.0, 0)
    return max(np.linalg.norm(start - fitted(x, k)) for x in (-1.0, 1.0) for k in (0, 1)), plan


@pytest.mark.parametrize(("shift", "ridge"), [(2.0, 10.0), (4.0, 10.0), (12.0, 100.0)])
def test_shifted_softmax_is_covered_and_the_plain_bound_would_not_do(shift, ridge):
    moved, plan = moved_minimiser(shift, ridge)
    assert 0.8 * plan.sensitivity < moved <= plan.sensitivity
    plain = softmax_sensitivity(3, row_norm=1.0, ridge=ridge, n_samples=1)
    assert moved > 1.05 * plain


ROBUST = {
    "tilt": {"tilt": 2.0, "min_weight": 1.0},
    "L2": {"attack": Attack(0.2, 2, 10)},
    "inf": {"attack": Attack(0.1, "inf", 9)},
    "both": {"tilt": 2.0, "min_weight": 1.0, "attack": Attack(0.2, 2, 10, 0.0)},
}
each_robust = pytest.mark.parametrize("rest", list(ROBUST.values()), ids=list(ROBUST))


@each_robust
@pytest.mark.parametrize("loss", [*SMOOTH, HINGE], ids=lambda loss: loss.name)
@pytest.mark.parametrize("k", [2, 5])
def test_planned_sensitivity_of_robust_problems_covers_the_tolerance(loss, k, rest):
    plan = plan_erm(problem(loss, k=k, **rest), 0.3)
    exact = math.sqrt(plan.problem.n_stacked) * plan.problem.sensitivity(0.3)
    certified = 2 * math.sqrt(plan.problem.n_stacked) * plan.tolerance / 300
    assert exact + certified <= plan.sensitivity <= exact * 1.001


@each_robust
def test_the_hinge_is_rounded_where_it_has_no_certificate(rest):
    case = problem(HINGE, **rest)
    assert case.loss.name == "huber_hinge"
    assert case.loss.smooth
    t = np.linspace(-3, 3, 10001)
    excess = case.loss.value(t) - HINGE.value(t)
    assert excess.min() >= -1e-12
    assert excess.max() <= 1e-3 / 4 + 1e-12
    assert problem(HINGE).loss is HINGE


def test_no_smoothing_becomes_a_tiny_one_in_the_plan():
    case = problem(attack=Attack(0.2, 2, 10, 0.0))
    plan = plan_erm(case, 0.1)
    assert 0 < plan.problem.attack.smoothing < 1e-6
    assert plan.problem.attack.smoothed(0.0) == case.attack
    assert plan.problem.sensitivity(0.1) == pytest.approx(case.sensitivity(0.1), rel=1e-6)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("rest", [ROBUST["tilt"], {"attack": Attack(0.2, "inf", 6)}])
def test_cost_of_noise_with_a_tilt_or_an_attack(k, rest):
    """Brute force: what spherical noise adds to the tilted or the robust mean loss."""
    rng = np.random.default_rng(0)
    n, d = 100, 6
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.integers(k, size=n)
    case = problem(LOGISTIC, n=n, d=d, k=k, **rest)
    attack, tilt = case.attack, case.tilt

    def mean_loss(W):
        if case.multinomial:
            scores = X @ W.T
            losses = np.logaddexp.reduce(scores, axis=1) - scores[np.arange(n), y]
            return np.log(np.mean(np.exp(tilt * losses))) / tilt
        total = 0.0
        for code, w in zip([1] if k == 2 else range(k), W, strict=True):
            margins = np.where(y == code, 1, -1) * (X @ w)
            if attack is not None:
                margins -= attack.radius * attack.dual_norm(w)
            losses = LOGISTIC.value(margins)
            total += np.log(np.mean(np.exp(tilt * losses))) / tilt if tilt else losses.mean()
        return total

    for variance in (0.03, 1.0):
        for scale in (0.0, 1.0):
            W = scale * rng.standard_normal((1 if k == 2 else k, d))
            noise = math.sqrt(variance) * rng.standard_normal((300, *W.shape))
            added = np.mean([mean_loss(W + b) for b in noise]) - mean_loss(W)
            assert added <= 1.1 * case.noise_cost(variance)
