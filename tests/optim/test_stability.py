"""Sensitivity and radius of exact minimisers against brute force over adversarial neighbours."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit, lambertw

from dp_halfspace.optim import (
    HINGE,
    LOGISTIC,
    SQUARED,
    SQUARED_HINGE,
    get_loss,
    huber_hinge,
    logistic_diameter,
    minimiser_radius,
    minimiser_sensitivity,
    smoothed_hinge,
    softmax_radius,
    softmax_sensitivity,
)
from dp_halfspace.optim.erm import RidgeProblem, minimise, plan_erm
from dp_halfspace.optim.rows import clipped_rows
from tests.adversarial import neighbouring_pairs

LOSSES = [LOGISTIC, huber_hinge(0.5), smoothed_hinge(0.5), HINGE, SQUARED_HINGE, SQUARED]
# Ratios that the bound must nearly attain: a bound that is far too large is a defect too.
TIGHT = {"hinge": 0.99, "huber_hinge": 0.99, "smoothed_hinge": 0.9, "logistic": 0.9}


@pytest.mark.parametrize(
    ("ridge", "radius"),
    [(1.0, 0.401058), (0.1, 1.668726), (0.01, 5.276974), (0.001, 16.687258)],
)
def test_radius_logistic_anchors(ridge, radius):
    found = minimiser_radius(LOGISTIC, row_norm=1.0, ridge=ridge)
    assert found == pytest.approx(radius, abs=2e-6)


def test_softmax_radius_anchors():
    assert softmax_radius(3, ridge=1.0) ** 2 == pytest.approx(0.463056, abs=1e-6)
    assert softmax_radius(10, ridge=1.0) ** 2 == pytest.approx(1.101003, abs=1e-6)
    # Two classes: the constant of the logistic loss, shifted too.
    shifted = get_loss("shifted_logistic", shift=2.0).self_bound
    assert softmax_radius(2, ridge=1.0, shift=2.0) ** 2 == pytest.approx(shifted, abs=1e-8)
    assert softmax_radius(2, ridge=1.0) ** 2 == pytest.approx(lambertw(1 / math.e).real, abs=1e-8)


@pytest.mark.parametrize(
    ("a", "value"),
    [(0.5, 0.514555), (1, 0.549548), (2, 0.634921), (5, 0.808639), (10, 0.910422), (20, 0.963679)],
)
def test_logistic_diameter_anchors(a, value):
    assert logistic_diameter(a) == pytest.approx(value, abs=1e-6)


def test_logistic_diameter_is_the_radius_of_the_disc():
    """All gradients, rows of every length and direction, lie in the stated ball."""
    theta = np.linspace(0, np.pi, 801)
    lengths = np.linspace(0, 1, 201)[:, None]
    for a in np.geomspace(1e-3, 1e3, 13):
        kappa = logistic_diameter(a)
        top = np.linspace(0, np.pi / 2, 2_000_001)
        best = top[np.argmax(np.sin(top) * expit(a * np.cos(top)))]
        centre = np.cos(best) * expit(a * np.cos(best))
        slope = lengths * expit(a * lengths * np.cos(theta))
        distance = np.hypot(slope * np.cos(theta) - centre, slope * np.sin(theta))
        assert distance.max() <= kappa * (1 + 1e-6)
        assert distance.max() >= kappa * (1 - 1e-4)


def measured(problem: RidgeProblem, ridge: float, X, y, bias=None):
    plan = plan_erm(problem, ridge)
    rows = clipped_rows(X, problem.row_norm, bias)
    return minimise(plan, rows, y, np.ones(problem.n_classes))


def worst_ratios(loss, n_classes, *, row_norm=1.0, trials=160, seed=0):
    """Largest measured / bound for the distance of minimisers and for their norm."""
    rng = np.random.default_rng(seed)
    sensitivity = radius = 0.0
    for X, y, other_X, other_y in neighbouring_pairs(
        rng, trials, row_norm=row_norm, n_classes=n_classes
    ):
        ridge = 10 ** rng.uniform(-2.5, 0.7) * row_norm**2
        problem = RidgeProblem(loss, *X.shape, n_classes, row_norm, 64)
        plan = plan_erm(problem, ridge)
        a, b = (measured(problem, ridge, *data) for data in ((X, y), (other_X, other_y)))
        sensitivity = max(sensitivity, float(np.linalg.norm(a - b)) / plan.sensitivity)
        separate = np.linalg.norm(a, axis=None if problem.multinomial else 1)
        radius = max(radius, float(np.max(separate)) / plan.radius)
    return sensitivity, radius


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_binary_sensitivity_against_brute_force(loss, record_property):
    sensitivity, radius = worst_ratios(loss, 2)
    record_property("measured / bound", float(sensitivity))
    assert sensitivity <= 1
    assert radius <= 1
    assert sensitivity >= TIGHT.get(loss.name, 0.5)


@pytest.mark.parametrize("row_norm", [0.01, 30.0])
def test_the_norm_enters_with_the_right_power(row_norm):
    """A bound with a wrong power of the norm fails at one of the two ends."""
    for loss in (LOGISTIC, huber_hinge(0.5)):
        sensitivity, radius = worst_ratios(loss, 2, row_norm=row_norm, trials=60)
        assert 0.85 <= sensitivity <= 1
        assert radius <= 1


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_multiclass_sensitivity_against_brute_force(loss, record_property):
    sensitivity, radius = worst_ratios(loss, 3, trials=80)
    record_property("measured / bound", float(sensitivity))
    assert sensitivity <= 1
    assert radius <= 1
    assert sensitivity >= 0.3


def test_stacked_bound_is_attained():
    """One row changes all K problems at once: the factor sqrt(K) is not waste."""
    problem = RidgeProblem(huber_hinge(0.5), 1, 1, 4, 1.0, 64)
    a = measured(problem, 100.0, np.array([[1.0]]), np.array([0]))
    b = measured(problem, 100.0, np.array([[-1.0]]), np.array([0]))
    ratio = np.linalg.norm(a - b) / plan_erm(problem, 100.0).sensitivity
    assert 0.99 <= ratio <= 1


def test_weights_are_charged():
    """A heavy record moves the minimiser by its weight."""
    rng = np.random.default_rng(3)
    weights = np.array([0.2, 5.0])
    for loss in (LOGISTIC, huber_hinge(0.5), HINGE, SQUARED_HINGE):
        worst = 0.0
        for X, y, other_X, other_y in neighbouring_pairs(rng, 60):
            problem = RidgeProblem(loss, *X.shape, 2, 1.0, 64, max_weight=5.0)
            plan = plan_erm(problem, 0.5)
            a = minimise(plan, clipped_rows(X, 1.0, None), y, weights)
            b = minimise(plan, clipped_rows(other_X, 1.0, None), other_y, weights)
            assert np.linalg.norm(a) <= plan.radius
            worst = max(worst, float(np.linalg.norm(a - b)) / plan.sensitivity)
        assert TIGHT.get(loss.name, 0.05) - 0.5 <= worst <= 1, loss.name


def test_shifted_logistic_needs_its_own_constants():
    """The disc of the plain logistic loss would be too small for the shifted one."""
    loss = get_loss("shifted_logistic", shift=4.0)
    problem = RidgeProblem(loss, 1, 1, 2, 1.0, 64)
    a = measured(problem, 1.0, np.array([[1.0]]), np.array([1]))
    b = measured(problem, 1.0, np.array([[1.0]]), np.array([0]))
    distance = float(np.linalg.norm(a - b))
    assert distance <= plan_erm(problem, 1.0).sensitivity
    plain = minimiser_sensitivity(LOGISTIC, row_norm=1.0, ridge=1.0, n_samples=1)
    assert distance > 1.5 * plain


def test_brute_force_sees_a_dropped_factor():
    """Planted: half the bound is exceeded by the same search."""
    for loss in (LOGISTIC, HINGE):
        sensitivity, _ = worst_ratios(loss, 2, trials=60)
        assert 2 * sensitivity > 1


def test_softmax_sensitivity_does_not_grow_with_classes():
    few, many = (softmax_sensitivity(k, row_norm=1.0, ridge=0.1, n_samples=50) for k in (3, 1000))
    assert few <= many <= 2 * math.sqrt(2) / (0.1 * 50) * (1 + 1e-8)
