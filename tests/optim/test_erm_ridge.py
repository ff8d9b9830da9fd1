"""The automatic regulariser of output perturbation minimises what it says, from public numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dp_halfspace.optim import HINGE, LOGISTIC, SQUARED, SQUARED_HINGE, huber_hinge
from dp_halfspace.optim.attack import Attack
from dp_halfspace.optim.erm import RIDGE_FLOOR, RidgeProblem, plan_erm
from dp_halfspace.optim.erm_ridge import automatic_ridge, bias_cost
from dp_halfspace.optim.robust_bounds import tilted_influence
from dp_halfspace.privacy import gdp_mu

ROBUST = {
    "tilt": {"tilt": 2.0, "min_weight": 1.0},
    "L2": {"attack": Attack(0.2, 2, 10)},
    "inf": {"attack": Attack(0.1, "inf", 9)},
    "both": {"tilt": 2.0, "min_weight": 1.0, "attack": Attack(0.2, 2, 10, 0.0)},
}
each = pytest.mark.parametrize("rest", [{}, *ROBUST.values()], ids=["plain", *ROBUST])
each_robust = pytest.mark.parametrize("rest", list(ROBUST.values()), ids=list(ROBUST))


def problem(loss=LOGISTIC, n=1000, d=10, k=2, norm=1.0, **rest):
    return RidgeProblem(loss, n, d, k, norm, 1000, **rest)


@each
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_automatic_ridge_is_the_best_of_a_fine_grid(epsilon, k, rest):
    case = problem(n=20000, k=k, **rest)
    found = automatic_ridge(case, epsilon, 1e-6, norm_guess=4.0)

    def risk(ridge):
        sensitivity = math.sqrt(case.n_stacked) * case.sensitivity(ridge)
        variance = (sensitivity / gdp_mu(epsilon, 1e-6)) ** 2
        return bias_cost(case, ridge, norm_guess=4.0) + case.noise_cost(variance)

    assert risk(found) <= min(risk(r) for r in np.geomspace(1e-8, 1e3, 300)) * (1 + 1e-6)
    if case.tilt:
        # No single record takes the mean over.
        assert tilted_influence(case.tilt, case.spread(found), 20000) < 2000


@each
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_automatic_ridge_falls_with_the_budget(delta, rest):
    budgets = (0.1, 1.0, 10.0)
    ridges = [automatic_ridge(problem(**rest), e, delta, norm_guess=4.0) for e in budgets]
    assert ridges == sorted(ridges, reverse=True)


def test_bias_of_a_plain_problem_is_not_limited():
    assert bias_cost(problem(k=5), 1e6, norm_guess=4.0) == 8e6


@each_robust
def test_bias_of_a_robust_problem_is_limited_by_the_loss_of_zeros(rest):
    for k, of_zeros in (
        (2, math.log(2)),
        (5, 5 * math.log(2) if "attack" in rest else math.log(5)),
    ):
        case = problem(k=k, max_weight=3.0, **rest)
        few = bias_cost(case, 1e-9, norm_guess=4.0)
        assert few == pytest.approx(8e-9 * (1 if k == 2 else k), rel=1e-6)
        assert bias_cost(case, 1e9, norm_guess=4.0) == pytest.approx(of_zeros, rel=1e-6)


def test_automatic_ridge_at_infinite_epsilon_is_the_floor():
    assert automatic_ridge(problem(norm=2.0), math.inf, 0.0, norm_guess=1.0) == 4 * RIDGE_FLOOR


@each_robust
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    "loss",
    [LOGISTIC, HINGE, SQUARED_HINGE, huber_hinge(0.5), SQUARED],
    ids=lambda loss: loss.name,
)
def test_automatic_ridge_at_infinite_epsilon_gives_a_minimiser(loss, k, rest):
    if loss is SQUARED and "attack" in rest:
        return
    case = problem(loss, n=10**5, k=k, norm=3.0, **rest)
    plan = plan_erm(case, automatic_ridge(case, math.inf, 0.0, norm_guess=1.0))
    certified = plan.tolerance / (plan.ridge * 10**5)
    assert certified <= 1e-3 * plan.radius


@pytest.mark.parametrize("tilt", [50.0, 1e4])
def test_automatic_ridge_with_a_huge_tilt(tilt):
    ridge = automatic_ridge(problem(tilt=tilt), 1.0, 1e-6, norm_guess=4.0)
    assert math.isfinite(plan_erm(problem(tilt=tilt), ridge).sensitivity)
