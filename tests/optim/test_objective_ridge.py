"""Rules for the regulariser: closed forms, floors, monotone in the budget."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from dp_halfspace.optim import LOGISTIC, huber_hinge, shifted_logistic
from dp_halfspace.optim.erm import RIDGE_FLOOR, RidgeProblem
from dp_halfspace.optim.objective_bounds import jacobian_log_ratio, objective_ridge_floor
from dp_halfspace.optim.objective_perturbation import plan_objective
from dp_halfspace.optim.objective_ridge import (
    automatic_objective_ridge,
    feasible_ridge,
    unit_row_ridge,
)
from dp_halfspace.privacy import Gaussian, accounting, gdp_mu

CASES = [
    RidgeProblem(LOGISTIC, 5000, 20, 2, 1.0, 1000),
    RidgeProblem(shifted_logistic(3.0), 5000, 20, 7, 1.0, 1000),
    RidgeProblem(huber_hinge(0.5), 5000, 20, 3, 1.0, 1000, 2.0),
]
by_case = pytest.mark.parametrize("case", CASES, ids=["binary", "softmax", "rest"])
DELTAS = pytest.mark.parametrize("delta", [0.0, 1e-7])


def rule(case, epsilon, delta, stretch=2.0, share=0.35, **rest):
    return unit_row_ridge(case, epsilon, delta, stretch=stretch, jacobian_share=share, **rest)


def test_closed_forms():
    binary, softmax, rest = CASES
    n = 5000
    mu = math.sqrt(0.8) * gdp_mu(0.1, 1e-7)
    assert n * rule(binary, 0.1, 1e-7, mu_share=0.8) == pytest.approx(2.0 / mu / 2.0)
    assert n * rule(binary, 0.1, 0.0) == pytest.approx(2.0 * math.sqrt(21) / 0.1 / 2.0)
    assert n * rule(softmax, 0.1, 0.0) == pytest.approx(4.0 * math.sqrt(21) / 0.1 / 2.0)
    assert n * rule(softmax, 0.1, 1e-7) == pytest.approx(math.sqrt(8) / gdp_mu(0.1, 1e-7) / 2.0)
    repeated = 4.0 * math.sqrt(3) / gdp_mu(0.1, 1e-7) / 2.0
    assert n * rule(rest, 0.1, 1e-7, share=100.0) == pytest.approx(repeated)
    # A stretch without limit leaves the Jacobian's share.
    floor = 0.25 / math.expm1(0.35)
    assert n * rule(binary, 1.0, 1e-7, stretch=1e9) == pytest.approx(floor)


@by_case
@DELTAS
def test_jacobian_keeps_to_its_share(case, delta):
    for epsilon in (0.01, 1.0, 20.0):
        ridge = rule(case, epsilon, delta, stretch=1e9)
        spent = case.n_stacked * jacobian_log_ratio(case, ridge)
        assert spent == pytest.approx(0.35 * epsilon, rel=1e-6)


@by_case
@DELTAS
def test_ridge_falls_with_the_budget(case, delta):
    ridges = [rule(case, epsilon, delta) for epsilon in (0.1, 0.5, 3.0)]
    assert ridges == sorted(ridges, reverse=True)
    automatic = [
        automatic_objective_ridge(case, epsilon, delta, norm_guess=2.0)
        for epsilon in (0.1, 0.5, 3.0)
    ]
    assert automatic == sorted(automatic, reverse=True)
    for epsilon, ridge in zip((0.1, 0.5, 3.0), automatic, strict=True):
        assert ridge >= objective_ridge_floor(case, epsilon) * (1 - 1e-9)


@by_case
def test_infinite_budget_leaves_the_floor(case):
    assert rule(case, math.inf, 1e-7) == RIDGE_FLOOR
    assert automatic_objective_ridge(case, math.inf, 0.0, norm_guess=1.0) == RIDGE_FLOOR


def test_automatic_ridge_is_near_the_best_of_its_own_criterion():
    """A good guess of the norm, ten times as large: a hundredth to a tenth of the ridge."""
    small, large = (
        automatic_objective_ridge(CASES[0], 0.5, 1e-7, norm_guess=guess) for guess in (1.0, 10.0)
    )
    assert 1e-3 * small < large < 0.2 * small


def test_feasible_ridge_leaves_half_of_delta():
    earlier = (Gaussian(math.sqrt(0.2) * gdp_mu(1.0, 1e-7)),)
    for case in CASES:
        ridge = feasible_ridge(case, 1e-9, 1.0, 1e-7, earlier)
        plan = plan_objective(case, ridge, 1.0, 1e-7, earlier=earlier)
        assert plan.ridge == ridge
        assert accounting.delta((*earlier, *plan.events), 1.0) <= 1e-7
    assert feasible_ridge(CASES[0], 0.5, 1.0, 1e-7, earlier) == 0.5
    assert feasible_ridge(CASES[0], 1e-9, 1.0, 0.0) == objective_ridge_floor(CASES[0], 1.0)


def test_feasible_ridge_gives_up_when_earlier_releases_took_everything():
    earlier = (Gaussian(gdp_mu(1.0, 1e-7)),)
    assert feasible_ridge(CASES[0], 1e-3, 1.0, 1e-7, earlier) is None
    many = replace(CASES[1], n_classes=200)
    assert feasible_ridge(many, 1e-3, 1e-3, 0.2, (Gaussian(0.3),)) is None
