"""The linear term over pairs against exact densities in one dimension."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

from dp_halfspace.exceptions import BudgetError
from dp_halfspace.optim import pairwise_noise as module
from dp_halfspace.optim.linear_noise import LaplaceLinearTerm
from dp_halfspace.optim.losses import HINGE, LOGISTIC, SQUARED, huber_hinge
from dp_halfspace.optim.pairwise_bounds import (
    PairwiseProblem,
    pairwise_corners,
    pairwise_gradient_change,
    pairwise_jacobian_log_ratio,
    pairwise_ridge_floor,
)
from dp_halfspace.optim.pairwise_noise import PairwiseLinearTerm, pairwise_linear_term
from dp_halfspace.privacy import Gaussian, Pure, accounting, gdp_delta, noise_source
from tests.optim.cases import loss_id

HUBER = huber_hinge(0.5)


def problem_of(loss, n, d=1, Z=None):
    return PairwiseProblem(loss, n, d, 1.0, n, n * n / 4 if Z is None else Z)


# -- exact densities: w has the density of b at b(w), times the derivative of b ------------


def linear_term_at(loss, x, positive, Z, ridge, w):
    """The linear term that makes `w` the minimiser, and its log-derivative."""
    u = (x[positive][:, None] - x[~positive]).ravel()
    margins = w[:, None] * u
    b = -(loss.derivative(margins) * u).sum(axis=1) / Z - ridge * w
    return b, np.log((loss.second_derivative(margins) * u * u).sum(axis=1) / Z + ridge)


def neighbours():
    """Record 0 crosses over, flips, does both, vanishes; crowds on one or both sides."""
    for rest_x, rest_y in (
        ([-1.0], [0]),
        ([-1.0, -1.0, -1.0], [0, 0, 0]),
        ([-1.0, 1.0, -1.0], [0, 1, 1]),
        ([0.3, -1.0, 1.0, -0.5], [1, 1, 1, 1]),
    ):
        for x, y in ((-1.0, 1), (1.0, 0), (-1.0, 0), (0.0, 1)):
            yield tuple(
                (np.array([a, *rest_x]), np.array([c, *rest_y]) == 1) for a, c in ((1.0, 1), (x, y))
            )


def log_densities(loss, data, Z, ridge, w, log_noise):
    for x, positive in data:
        b, log_slope = linear_term_at(loss, x, positive, Z, ridge, w)
        yield log_noise(b) + log_slope


def line(ridge, sigma, change):
    """Points for every w that matters, dense where the loss bends."""
    far = (10 * sigma + 4 * change) / ridge
    near = min(20.0, far)
    points = np.unique(
        np.concatenate([np.linspace(-far, far, 3001), np.linspace(-near, near, 3001)])
    )
    return points, np.gradient(points)


def log_laplace(scale, b):
    return -abs(b) / scale


def log_gaussian(sigma):
    return lambda b: -0.5 * (b / sigma) ** 2 - math.log(sigma * math.sqrt(2 * math.pi))


def worst_ratio(loss, *, shrink=1.0, ridges=(0.02, 0.5, 500.0), earlier=0.0):
    """Largest exact over claimed delta, composed with an earlier Gaussian release."""
    worst, terms = 0.0, {}
    others = (Gaussian(earlier),) if earlier else ()
    for data in neighbours():
        n = len(data[0][0])
        problem = problem_of(loss, n)
        for base, (epsilon, delta) in zip(
            ridges, ((1.0, 1e-2), (3.0, 1e-3), (1.0, 1e-2)), strict=True
        ):
            ridge = max(base, pairwise_ridge_floor(problem, epsilon))
            key = n, ridge, epsilon
            if key not in terms:
                terms[key] = module.pairwise_linear_term(
                    problem, ridge, epsilon, delta, others=others
                )
            term = terms[key]
            sigma = term.sigma * shrink
            w, cell = line(ridge, sigma, term.change)
            logs = list(
                log_densities(loss, data, problem.normaliser, ridge, w, log_gaussian(sigma))
            )
            assert (np.exp(logs[0]) * cell).sum() == pytest.approx(1, abs=5e-3)
            for at in (0.5 * epsilon, epsilon):
                claimed = accounting.delta([*others, term.event], at)
                for p, q in (logs, logs[::-1]):
                    if earlier:
                        rest = np.array([gdp_delta(earlier, at - x) for x in (p - q)[::25]])
                        exact = float((np.exp(p[::25]) * rest * np.gradient(w[::25])).sum())
                    else:
                        excess = -np.expm1(np.minimum(at + q - p, 0.0))
                        exact = float((np.exp(p) * excess * cell).sum())
                    worst = max(worst, exact / claimed)
    return worst


@pytest.mark.parametrize(
    ("loss", "least"), [(HUBER, 0.2), (LOGISTIC, 0.01)], ids=["huber", "logistic"]
)
def test_exact_delta_in_one_dimension(loss, least, record_property):
    ratio = worst_ratio(loss)
    record_property("exact / claimed", float(ratio))
    assert least <= ratio <= 1


@pytest.mark.slow
def test_exact_delta_beside_an_earlier_release():
    assert 0.1 <= worst_ratio(HUBER, earlier=0.1) <= 1


@pytest.mark.parametrize("shrink", [0.5])
def test_too_small_a_sigma_is_seen(shrink):
    """Planted: half of the standard deviation that is charged."""
    assert worst_ratio(HUBER, shrink=shrink) > 1


def test_a_dropped_factor_two_is_seen(monkeypatch):
    """Planted: the radius of the ball instead of its diameter in the change."""
    honest = module.pairwise_gradient_change
    monkeypatch.setattr(module, "pairwise_gradient_change", lambda p: honest(p) / 2)
    assert worst_ratio(HUBER) > 1


def test_a_missing_jacobian_is_seen(monkeypatch):
    """Planted: the ratio of the Jacobians is forgotten."""
    monkeypatch.setattr(module, "pairwise_jacobian_log_ratio", lambda *a: 0.0)
    assert worst_ratio(huber_hinge(0.05)) > 1


def worst_pure_loss(loss, *, shrink=1.0):
    """Largest log-ratio of densities over neighbours and points, over the claimed epsilon."""
    worst = 0.0
    for data in neighbours():
        problem = problem_of(loss, len(data[0][0]))
        for base, epsilon in ((0.05, 2.0), (2.0, 1.0), (50.0, 1.0)):
            ridge = max(base, pairwise_ridge_floor(problem, epsilon))
            term = LaplaceLinearTerm(
                pairwise_gradient_change(problem),
                epsilon,
                pairwise_jacobian_log_ratio(problem, ridge),
            )
            scale = term.scale * shrink
            w = np.linspace(-1, 1, 20_001) * (10 * scale + 4 * term.change) / ridge
            p, q = log_densities(
                loss, data, problem.normaliser, ridge, w, partial(log_laplace, scale)
            )
            worst = max(worst, float(np.abs(p - q).max()) / epsilon)
    return worst


def test_pure_loss():
    assert 0.5 <= worst_pure_loss(LOGISTIC) <= 1
    assert 0.9 <= worst_pure_loss(HUBER) <= 1
    assert worst_pure_loss(HUBER, shrink=0.5) > 1


@pytest.mark.parametrize(
    ("epsilon", "delta", "multiplier"),
    [(1.0, 1e-5, 3.902103), (1.0, 1e-6, 4.377061), (0.5, 1e-6, 8.366050)],
)
def test_calibration_anchors(epsilon, delta, multiplier):
    term = pairwise_linear_term(problem_of(LOGISTIC, 1001), 1e12, epsilon, delta)
    assert term.sigma / term.change == pytest.approx(multiplier, rel=1e-5)


def test_a_tenth_for_an_earlier_release():
    """At 10 % of mu^2 for what came before, the multiplier is 4.635 and not 4.61."""
    before = Gaussian(math.sqrt(0.1) / 4.224679)
    term = pairwise_linear_term(problem_of(LOGISTIC, 1001), 1e12, 1.0, 1e-6, others=(before,))
    assert term.sigma / term.change == pytest.approx(4.635, abs=0.002)
    assert accounting.delta([before, term.event], 1.0) <= 1e-6
    assert accounting.delta([before, term.event], 1.0) >= 0.999e-6


@pytest.mark.parametrize("loss", [LOGISTIC, HUBER], ids=loss_id)
@pytest.mark.parametrize(
    "others", [(), (Gaussian(0.05),), (Pure(0.2),), (Gaussian(0.02), Pure(0.1))]
)
def test_budget_is_met_and_used(loss, others):
    problem = problem_of(loss, 1000, 10)
    ridge = pairwise_ridge_floor(problem, 1.0)
    term = pairwise_linear_term(problem, ridge, 1.0, 1e-6, others=others)
    assert 0.99e-6 <= accounting.delta([*others, term.event], 1.0) <= 1e-6
    assert term.event.pairwise
    assert term.log_ratio <= 0.5


def test_events_say_what_is_charged():
    term = PairwiseLinearTerm(2.0, 0.25, 0.1, pairwise_corners())
    assert term.sigma == pytest.approx(8.0, rel=1e-8)
    assert term.event.log_ratio == 0.1
    counts, mus = zip(*term.event.vertices, strict=True)
    assert counts == (1, 1, 2)
    assert mus == pytest.approx((0.0, math.sqrt(0.75) * 0.25, 0.25))


@pytest.mark.filterwarnings("ignore:random_state")
def test_the_term_is_drawn_like_any_other():
    term = PairwiseLinearTerm(2.0, 0.25, 0.1, pairwise_corners())
    draw = term.perturb(np.zeros((1, 4000)), noise_source(0))
    assert draw.std() == pytest.approx(8.0, rel=0.05)
    assert np.linalg.norm(draw) <= term.norm_bound(1, 4000)
    assert term.rounding(1, 4000) < 1e-6


def test_refusals():
    problem = problem_of(LOGISTIC, 100, 5)
    with pytest.raises(BudgetError):
        pairwise_linear_term(problem, 1.0, 1.0, 1e-6, others=(Gaussian(1.0),))
    with pytest.raises(BudgetError):
        pairwise_linear_term(problem, 1e-9, 1.0, 1e-6)
    for loss in (HINGE, SQUARED):
        with pytest.raises(ValueError, match="Lipschitz"):
            pairwise_linear_term(problem_of(loss, 100), 1.0, 1.0, 1e-6)
