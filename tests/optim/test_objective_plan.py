"""Plans of perturbed minimisations: radius, shapes, shares of the budget."""

from __future__ import annotations

import math
from dataclasses import astuple, replace

import pytest

from dp_halfspace.optim import LOGISTIC, RidgeProblem, huber_hinge, shifted_logistic
from dp_halfspace.optim.attack import Attack
from dp_halfspace.optim.linear_noise import GaussianLinearTerm
from dp_halfspace.optim.objective_bounds import gradient_change, gradient_corners
from dp_halfspace.optim.objective_plan import OUTPUT_MU, calibrated, with_output
from dp_halfspace.optim.robust_tolerance import robust_tolerance
from dp_halfspace.optim.tolerance import gradient_tolerance, softmax_tolerance
from dp_halfspace.privacy import Gaussian, Repeated, accounting, gdp_mu
from dp_halfspace.privacy.mechanisms import NoNoise

PROBLEM = RidgeProblem(LOGISTIC, 1000, 10, 2, row_norm=1.0, block_rows=1000)
CORNERS = gradient_corners(PROBLEM)


@pytest.mark.parametrize("copies", [1, 5])
def test_calibration_spends_the_budget(copies):
    budget = {"epsilon": 1.0, "delta": 1e-6}
    mu, output = calibrated(0.01, CORNERS, copies=copies, earlier=(), **budget)
    event = GaussianLinearTerm(1.0, mu, 0.01, CORNERS).event
    spent = accounting.delta([Repeated(event, copies), Gaussian(output)], 1.0)
    assert 1e-6 * (1 - 1e-5) < spent <= 1e-6
    assert output == OUTPUT_MU * gdp_mu(1.0, 1e-6)


def test_shape_and_events_follow_the_problem():
    several = replace(PROBLEM, n_classes=4)
    linear = GaussianLinearTerm(2.0, 0.1, 0.01, CORNERS)
    plan = with_output(several, 0.1, linear, 0.01)
    assert plan.shape == (4, 10)
    assert len(plan.events) == 2
    stacked = with_output(replace(several, loss=huber_hinge()), 0.1, linear, 0.01)
    assert stacked.shape == (1, 10)
    assert stacked.events[0] == Repeated(linear.event, 4)


def test_without_noise_the_radius_is_that_of_the_data():
    assert with_output(PROBLEM, 0.1, NoNoise(), 0.0).radius == PROBLEM.radius(0.1)


def test_an_attack_has_the_radius_that_a_linear_term_leaves():
    """No sharper radius, which would need the optimality of the data alone."""
    attacked = replace(PROBLEM, attack=Attack(0.5, 2, 10))
    linear = GaussianLinearTerm(2.0, 0.1, 0.01, CORNERS)
    plan = with_output(attacked, 0.1, linear, 0.01)
    data = math.sqrt(LOGISTIC.self_bound / 0.1)
    assert plan.radius >= data + linear.norm_bound(1, 10) / 100
    assert plan.radius == pytest.approx(data + linear.norm_bound(1, 10) / 100)
    assert attacked.radius(0.1) < data


@pytest.mark.parametrize("kind", ["margin", "stacked", "classes", "attacked"])
def test_the_certificate_knows_the_linear_term_the_weights_and_the_shift(kind):
    """Numbers that reach the rule, written out; the reach of an attack lengthens the rows."""
    loss = shifted_logistic(2.0) if kind == "classes" else huber_hinge()
    k = {"stacked": 3, "classes": 4}.get(kind, 2)
    attack = Attack(0.5, 2, 10, 1e-3) if kind == "attacked" else None
    problem = replace(PROBLEM, loss=loss, n_classes=k, max_weight=3.0, attack=attack)
    linear, total = GaussianLinearTerm(200.0, 0.1, 0.01, CORNERS), 0.1 * 1000
    blocks = k if kind == "classes" else 1
    size = linear.norm_bound(blocks, 10)
    data = math.sqrt(3.0 * loss.self_bound / 0.1) if attack else problem.radius(0.1)
    public = {
        "change": gradient_change(problem),
        "n_samples": 1000,
        "n_columns": 10,
        "block_rows": 1000,
        "row_norm": 1.0,
        "ridge": total,
        "radius": data + size / total,
        "max_weight": 3.0,
        "linear": size,
        "linear_error": linear.rounding(blocks, 10),
    }
    if kind == "classes":
        rule = softmax_tolerance(4, **public, shift=2.0)
    elif kind == "attacked":
        rule = robust_tolerance(problem, **public)
    else:
        rule = gradient_tolerance(loss, **public)
    plan = with_output(problem, 0.1, linear, 0.01)
    assert plan.tolerance.float_error >= rule.float_error
    assert astuple(plan.tolerance) == pytest.approx(astuple(rule), rel=1e-10)
    needed = 2.0 * math.sqrt(problem.n_stacked) * rule.certified / total
    assert needed <= plan.output.sensitivity <= needed * (1 + 1e-9)
