"""The public plan of output perturbation: tolerance inside, cost of the noise, choice of ridge."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dp_halfspace.exceptions import CertificateError
from dp_halfspace.optim import HINGE, LOGISTIC, SQUARED_HINGE, huber_hinge, shifted_logistic
from dp_halfspace.optim.erm import (
    RIDGE_FLOOR,
    RidgeProblem,
    automatic_ridge,
    minimise,
    plan_erm,
)
from dp_halfspace.optim.rows import clipped_rows
from dp_halfspace.optim.stability import softmax_sensitivity
from dp_halfspace.privacy import gdp_mu

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


def test_automatic_ridge_minimises_what_it_says():
    case = problem(n=5000, d=20)
    found = automatic_ridge(case, 1.0, 1e-6, norm_guess=4.0)

    def risk(ridge):
        variance = (case.sensitivity(ridge) / gdp_mu(1.0, 1e-6)) ** 2
        return ridge * 8 + case.noise_cost(variance)

    for factor in (0.5, 0.9, 1.1, 2.0):
        assert risk(found) <= risk(factor * found)


def test_automatic_ridge_at_infinite_epsilon_is_the_floor():
    assert automatic_ridge(problem(norm=2.0), math.inf, 0.0, norm_guess=1.0) == 4 * RIDGE_FLOOR


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_automatic_ridge_falls_with_the_budget(delta):
    ridges = [automatic_ridge(problem(), e, delta, norm_guess=4.0) for e in (0.1, 1.0, 10.0)]
    assert ridges == sorted(ridges, reverse=True)


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
