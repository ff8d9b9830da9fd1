"""Perturbed sums over pairs: the minimiser, public plans, sensitivities, budgets."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from dp_halfspace import CertificateError, privacy
from dp_halfspace.optim import LOGISTIC, SQUARED, SQUARED_HINGE, huber_hinge
from dp_halfspace.optim import ranking as module
from dp_halfspace.optim.pairwise_bounds import PairwiseProblem, default_normaliser
from dp_halfspace.optim.ranking import (
    automatic_ranking_ridge,
    plan_objective_ranking,
    plan_output_ranking,
    run_ranking,
)
from dp_halfspace.optim.rows import clipped_rows
from dp_halfspace.privacy import Exponential, PrivacyRecord, authorise, noise_source
from dp_halfspace.privacy.mechanisms import recording
from tests.adversarial import neighbouring_pairs

HUBER = huber_hinge(0.5)
LOSSES = [LOGISTIC, SQUARED, HUBER, SQUARED_HINGE]


def problem_of(n, d, loss=LOGISTIC, norm=1.0):
    norm *= 1 + 2.0**-50
    return PairwiseProblem(loss, n, d, norm, max(n, 1), default_normaliser(n))


def run(plan, X, positive, norm=1.0):
    exact = any(event == privacy.Pure(math.inf) for event in plan.events)
    epsilon, noise = (math.inf, "none") if exact else (1e6, "os")
    record = PrivacyRecord(epsilon=epsilon, delta=1e-3, events=plan.events, noise=noise)
    with recording() as releases:
        w = run_ranking(
            plan, clipped_rows(X, norm), positive, authorise(record, noise_source(None))
        )
    return w, releases


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_without_noise_it_is_the_minimiser_over_all_pairs(loss):
    rng = np.random.default_rng(0)
    X, positive = rng.uniform(-0.4, 0.4, (60, 3)), rng.random(60) < 0.3
    X[positive] += 0.15
    differences = (X[positive][:, None] - X[~positive][None]).reshape(-1, 3)
    ridge, normaliser = 0.05, default_normaliser(60)

    def objective(w):
        return loss.value(differences @ w).sum() / normaliser + ridge / 2 * w @ w

    found = minimize(objective, np.zeros(3), method="BFGS", options={"gtol": 1e-9})
    plan = plan_output_ranking(problem_of(60, 3, loss), ridge, mu=math.inf)
    np.testing.assert_allclose(run(plan, X, positive)[0], found.x, atol=1e-5)


def test_squared_loss_is_the_closed_form():
    rng = np.random.default_rng(1)
    X, positive = rng.uniform(-0.4, 0.4, (50, 3)), rng.random(50) < 0.4
    differences = (X[positive][:, None] - X[~positive][None]).reshape(-1, 3)
    z, ridge = default_normaliser(50), 0.1
    closed = np.linalg.solve(
        2 * differences.T @ differences / z + ridge * np.eye(3), 2 * differences.sum(axis=0) / z
    )
    plan = plan_output_ranking(problem_of(50, 3, SQUARED), ridge, mu=math.inf)
    np.testing.assert_allclose(run(plan, X, positive)[0], closed, rtol=1e-9)


def worst_ratio(loss):
    rng = np.random.default_rng(2)
    worst = 0.0
    for X, y, other, flipped in neighbouring_pairs(rng, 80):
        plan = plan_output_ranking(problem_of(*X.shape, loss), 3.0, mu=1.0)
        a, b = (run(plan, f, t == 1)[1][-1].value for f, t in ((X, y), (other, flipped)))
        worst = max(worst, float(np.linalg.norm(a - b)) / plan.output.sensitivity)
    return worst


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_sensitivity_against_brute_force(loss):
    assert 0.1 < worst_ratio(loss) <= 1.0


def test_brute_force_sees_a_small_sensitivity(monkeypatch):
    """Planted: half the sensitivity."""
    honest = module.pairwise_sensitivity
    monkeypatch.setattr(module, "pairwise_sensitivity", lambda *a: honest(*a) / 2)
    assert worst_ratio(HUBER) > 1.0


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
def test_objective_plans_meet_the_budget(epsilon, delta):
    others = (Exponential(0.02 * epsilon),) if delta else ()
    plan = plan_objective_ranking(problem_of(1000, 5), 1e-4, epsilon, delta, others=others)
    events = (*others, *plan.events)
    assert epsilon * (1 - 1e-5) <= privacy.epsilon(events, delta) <= epsilon * (1 + 1e-12)
    assert plan.ridge >= 1e-4


def test_objective_perturbation_is_the_minimiser_of_its_own_objective():
    """An independent gradient at the query, with the linear term that was drawn."""
    rng = np.random.default_rng(3)
    X, positive = rng.uniform(-0.4, 0.4, (80, 3)), rng.random(80) < 0.3
    plan = plan_objective_ranking(problem_of(80, 3), 0.2, 2.0, 1e-4)
    _, (linear, exact) = run(plan, X, positive)
    w, z = exact.value, default_normaliser(80)
    differences = (X[positive][:, None] - X[~positive][None]).reshape(-1, 3)
    slopes = LOGISTIC.derivative(differences @ w)
    gradient = differences.T @ slopes / z + plan.ridge * w + linear.released.ravel()
    assert np.linalg.norm(gradient) <= plan.tolerance.certified


def test_that_test_sees_an_unconverged_solver(monkeypatch):
    """Planted: the solver stops at its start."""

    def lazy(objective, gamma, *, radius):
        return np.zeros(objective.size)

    monkeypatch.setattr(module, "certified_minimum", lazy)
    with pytest.raises(AssertionError):
        test_objective_perturbation_is_the_minimiser_of_its_own_objective()


def test_an_infinite_slope_is_refused():
    for loss in (SQUARED, SQUARED_HINGE):
        with pytest.raises(ValueError, match="Lipschitz"):
            plan_objective_ranking(problem_of(100, 3, loss), 0.1, 1.0, 1e-6)


def test_a_regulariser_beyond_floating_point_is_refused():
    with pytest.raises(CertificateError):
        plan_output_ranking(problem_of(10**8, 5), 1e-8, mu=1.0)


@pytest.mark.parametrize("labels", [np.zeros(20, dtype=bool), np.ones(20, dtype=bool)])
def test_an_empty_class_gives_noise_round_zero(labels):
    X = np.full((20, 2), 0.3)
    plan = plan_output_ranking(problem_of(20, 2), 0.5, mu=1.0)
    w, releases = run(plan, X, labels)
    np.testing.assert_array_equal(releases[-1].value, np.zeros(2))
    assert np.isfinite(w).all()


def test_the_automatic_regulariser_depends_on_the_product_only():
    """Only alpha Z matters: public class counts change alpha, not the fit."""
    for perturbs in (True, False):
        a = problem_of(1000, 5)
        b = PairwiseProblem(LOGISTIC, 1000, 5, a.row_norm, 1000, a.normaliser / 10)
        products = [
            automatic_ranking_ridge(p, 1.0, 1e-6, perturbs_objective=perturbs) * p.normaliser
            for p in (a, b)
        ]
        assert products[0] == pytest.approx(products[1]) or not perturbs
    assert automatic_ranking_ridge(a, math.inf, 0.0, perturbs_objective=True) < 1e-7
