"""The minimum over a ball: against an independent solver, within the gap, by sensitivity."""

import numpy as np
import pytest
from scipy.optimize import minimize

from dp_halfspace.optim.losses import huber_hinge
from dp_halfspace.optim.objectives import MarginObjective
from dp_halfspace.papers import margin_selection as module
from dp_halfspace.papers.margin_selection import ball_minimum
from dp_halfspace.rows.rows import Rows
from tests.adversarial import neighbouring_pairs

LOSS = huber_hinge(0.5)


def objective(X, y):
    signs = np.where(np.asarray(y) == 1, 1.0, -1.0)
    return MarginObjective(Rows(X, row_bound=1.0), signs, np.ones(len(signs)), LOSS, ridge=1.0)


def reference(X, y, radius):
    """By a general solver for constrained problems."""
    signs = np.where(np.asarray(y) == 1, 1.0, -1.0)
    found = minimize(
        lambda w: LOSS.value(signs * (X @ w)).sum(),
        np.zeros(X.shape[1]),
        jac=lambda w: X.T @ (signs * LOSS.derivative(signs * (X @ w))),
        constraints={"type": "ineq", "fun": lambda w: radius**2 - w @ w, "jac": lambda w: -2 * w},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    return found.fun


@pytest.mark.parametrize("radius", [0.5, 2.0, 16.0])
def test_value_is_within_the_gap_of_the_minimum(radius):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = (X[:, 0] + 0.3 * rng.standard_normal(60) > 0).astype(int)
    for gap in (1.0, 1e-3):
        value = ball_minimum(objective(X, y), radius, gap)
        exact = reference(X, y, radius)
        assert exact - 1e-6 <= value <= exact + gap + 1e-6


def worst_ratio(radius, gap):
    """Change of the value over one record, in units of what is charged for it."""
    rng = np.random.default_rng(1)
    worst = 0.0
    for X, y, other_X, other_y in neighbouring_pairs(rng, 24):
        values = [
            ball_minimum(objective(*data), radius, gap) for data in ((X, y), (other_X, other_y))
        ]
        worst = max(worst, abs(values[0] - values[1]) / (1 + radius + gap))
    return worst


def test_sensitivity_against_brute_force():
    assert 0.2 < worst_ratio(3.0, 0.1) <= 1


def test_sensitivity_is_nearly_attained():
    """Many copies of one record fix the separator; one against them pays 1 + radius."""
    X = np.ones((400, 1))
    y = np.ones(400, dtype=int)
    flipped = y.copy()
    flipped[0] = 0
    values = [ball_minimum(objective(X, labels), 3.0, 0.01) for labels in (y, flipped)]
    assert 0.6 * 4 < abs(values[0] - values[1]) <= 4.01


def test_the_search_goes_on_until_the_excess_is_proved(monkeypatch):
    """Also where the first point is known to be within one and a half of the gap."""
    honest, points = module.certified_minimum, []

    def at_zero_first(objective, gamma, *, radius):
        points.append(honest(objective, gamma, radius=radius))
        return points[-1] if len(points) > 1 else np.zeros(objective.size)

    monkeypatch.setattr(module, "certified_minimum", at_zero_first)
    J = objective(np.eye(3), [1, 1, 0])
    excess_at_zero = 2.0 * float(np.linalg.norm(J.gradient(np.zeros(3))))
    ball_minimum(J, 2.0, excess_at_zero / 1.5)
    assert len(points) > 1


@pytest.mark.parametrize("X", [np.zeros((5, 2)), np.ones((5, 2)) / 2, np.full((1, 1), 1e-300)])
def test_degenerate_rows(X):
    labels = np.arange(len(X)) % 2
    assert ball_minimum(objective(X, labels), 8.0, 0.5) <= len(X) * LOSS.at_zero + 0.5


def test_gap_test_sees_a_solver_that_stops_early(monkeypatch):
    """Planted: the excess is never looked at."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = (X[:, 0] > 0).astype(int)
    monkeypatch.setattr(
        module, "certified_minimum", lambda objective, gamma, *, radius: np.zeros(objective.size)
    )
    honest = MarginObjective.value_and_gradient
    monkeypatch.setattr(
        MarginObjective,
        "value_and_gradient",
        lambda J, w: (honest(J, w)[0], np.zeros_like(w)),
    )
    assert ball_minimum(objective(X, y), 2.0, 1e-3) > reference(X, y, 2.0) + 1e-3
