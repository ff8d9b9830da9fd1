"""The excess-risk bounds: against quadrature, against minimisation, and against measurement."""

import math

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from dp_halfspace.theory import (
    convex_excess_risk,
    objective_risk_bound,
    optimal_regularization,
    population_risk_bound,
    strongly_convex_excess_risk,
)
from dp_halfspace.theory.bounds import noise_moments
from tests.theory.risk_problems import draw_noise, exact_multiplier

BUDGETS = [(0.5, 0.0), (1.0, 1e-6), (3.0, 0.0), (8.0, 1e-3)]


def mean_coordinate(d, radius_mean):
    """E |<u, b>| by quadrature over the angle between u and a uniform direction."""
    if d == 1:
        return radius_mean
    weight = lambda t: math.sin(t) ** (d - 2)  # noqa: E731
    top = integrate.quad(lambda t: abs(math.cos(t)) * weight(t), 0, math.pi, points=[math.pi / 2])
    return radius_mean * top[0] / integrate.quad(weight, 0, math.pi)[0]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("d", [1, 2, 3, 17])
@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_moments_agree_with_quadrature(d, epsilon, delta):
    if delta:
        radius = stats.chi(d, scale=exact_multiplier(epsilon, delta))
    else:
        radius = stats.gamma(d, scale=1 / epsilon)
    density = lambda t, power: t**power * radius.pdf(t)  # noqa: E731
    first, second = (
        integrate.quad(density, 0, radius.isf(1e-15), args=(p,), limit=200)[0] for p in (1, 2)
    )
    general = noise_moments(d, epsilon, delta, linear_model=False)
    linear = noise_moments(d, epsilon, delta, linear_model=True)
    assert general.felt == pytest.approx(first, rel=1e-6)
    assert general.felt_square == general.square == pytest.approx(second, rel=1e-6)
    assert linear.square == pytest.approx(second, rel=1e-6)
    assert linear.felt == pytest.approx(mean_coordinate(d, first), rel=1e-6)
    assert linear.felt_square == pytest.approx(second / d, rel=1e-6)


@pytest.mark.sampled(20)
@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
@pytest.mark.parametrize("smoothness", [math.inf, 0.25, 40.0])
@pytest.mark.parametrize("linear_model", [False, True])
@pytest.mark.parametrize("n_samples", [50, 50_000])
@pytest.mark.parametrize("population", [False, True])
def test_regularization_minimises_the_bound(
    epsilon, delta, smoothness, linear_model, n_samples, population
):
    budget = (n_samples, 7, epsilon, delta)
    constants = {
        "lipschitz": 1.3,
        "radius": 2.0,
        "smoothness": smoothness,
        "linear_model": linear_model,
    }

    def value(log_factor):
        factor = math.exp(log_factor)
        if population:
            return population_risk_bound(*budget, **constants, regularization=factor).value
        return convex_excess_risk(*budget, **constants, regularization=factor)

    grid = np.linspace(-25, 15, 121)
    start = grid[np.argmin([value(t) for t in grid])]
    best = optimize.minimize_scalar(value, bounds=(start - 0.4, start + 0.4), method="bounded")
    if population:
        chosen = population_risk_bound(*budget, **constants)
        factor, reached = chosen.regularization, chosen.value
    else:
        factor = optimal_regularization(*budget, **constants)
        reached = convex_excess_risk(*budget, **constants)
    assert value(math.log(factor)) == pytest.approx(best.fun, rel=1e-6)
    assert reached == pytest.approx(best.fun, rel=1e-6)


def tight_cases(n, d, lipschitz, smoothness):
    """Objectives whose noise costs exactly what Lemma 1 allows, and the optional constants."""
    u = np.zeros(d)
    u[0] = 1.0
    norm = lambda w: np.linalg.norm(w, axis=-1)  # noqa: E731
    return {
        "lipschitz": (lambda w: lipschitz * norm(w), {}),
        "smooth": (lambda w: smoothness / 2 * norm(w) ** 2, {"smoothness": smoothness}),
        "lipschitz linear": (lambda w: lipschitz * np.abs(w @ u), {"linear_model": True}),
        "smooth linear": (
            lambda w: smoothness / 2 * (w @ u) ** 2,
            {"smoothness": smoothness, "linear_model": True},
        ),
    }


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", ["lipschitz", "smooth", "lipschitz linear", "smooth linear"])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.7, 0.0), (1.0, 1e-5)])
def test_strongly_convex_bound_is_met_and_half_of_it_is_not(case, epsilon, delta):
    n, d, factor, lipschitz = 400, 5, 0.05, 1.0
    smoothness = 0.05
    loss, options = tight_cases(n, d, lipschitz, smoothness)[case]
    rng = np.random.default_rng(7)
    noise = draw_noise(rng, 200_000, d, epsilon, delta, 2 * lipschitz / (factor * n))
    # The minimiser of the regularised objective is 0 in every case.
    excess = loss(noise) + factor / 2 * np.sum(noise**2, axis=1)
    bound = strongly_convex_excess_risk(
        n, d, epsilon, delta, lipschitz=lipschitz, strong_convexity=factor, **options
    )
    assert excess.mean() == pytest.approx(bound, rel=0.02)
    assert excess.mean() > bound / 2  # a halved bound is wrong here


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_convex_bound_with_little_regularization_is_met_and_half_of_it_fails(delta):
    n, epsilon, lipschitz, radius, factor = 500, 0.5, 1.0, 1.0, 1e-3
    rng = np.random.default_rng(5)
    sensitivity = 2 * lipschitz / (factor * n)
    release = radius + draw_noise(rng, 200_000, 1, epsilon, delta, sensitivity)[:, 0]
    excess = (lipschitz * np.abs(release - radius)).mean()  # f = L |w - R|, minimiser R
    bound = convex_excess_risk(
        n, 1, epsilon, delta, lipschitz=lipschitz, radius=radius, regularization=factor
    )
    assert excess == pytest.approx(bound, rel=0.01)
    assert excess > bound / 2


def test_no_noise_leaves_only_bias_and_gap():
    args = (100, 3, math.inf, 1e-6)
    assert optimal_regularization(*args, lipschitz=1.0, radius=1.0) == 0.0
    assert convex_excess_risk(*args, lipschitz=1.0, radius=1.0) == 0.0
    assert convex_excess_risk(*args, lipschitz=1.0, radius=1.0, gap=0.25) == 0.25
    assert convex_excess_risk(*args, lipschitz=1.0, radius=2.0, regularization=0.1) == (
        pytest.approx(0.2)
    )
    assert strongly_convex_excess_risk(*args, lipschitz=1.0, strong_convexity=0.1, gap=0.5) == 0.5
    own = {"radius": 1.0, "smoothness": 0.25, "regularization": 1e-9}
    assert objective_risk_bound(*args, **own).noise == 0.0
    assert 0.0 < objective_risk_bound(100, 3, 1500.0, 0.0, **own).noise < math.inf


@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_a_distance_from_the_minimiser_costs_the_slope_along_it(ridge):
    args, own = (1000, 4, 1.0, 1e-6), {"strong_convexity": 0.1, "regularization": ridge}
    exact, loose = (
        population_risk_bound(*args, lipschitz=1.3, gap=gap, **own) for gap in (0.0, 1e-9)
    )
    distance = math.sqrt(2e-9 / 0.1)
    slope = 1.3 if ridge == 0.0 else 2 * 1.3
    assert loose.sampling - exact.sampling == pytest.approx(slope * distance, rel=1e-4)
    assert loose.gap == pytest.approx(ridge / 2 * distance**2)


def test_given_sensitivity_replaces_the_default_and_allows_an_unbounded_slope():
    args, own = (1000, 4, 1.0, 1e-6), {"strong_convexity": 0.1, "smoothness": 2.0}
    assert strongly_convex_excess_risk(*args, lipschitz=1.0, **own) == pytest.approx(
        strongly_convex_excess_risk(*args, lipschitz=1.0, sensitivity=2 / (0.1 * 1000), **own)
    )
    assert population_risk_bound(*args, lipschitz=1.0, sensitivity=0.5, **own).sensitivity == 0.5
    squared = strongly_convex_excess_risk(*args, lipschitz=math.inf, sensitivity=0.01, **own)
    sigma = 0.01 * exact_multiplier(1.0, 1e-6)
    assert squared == pytest.approx((2.0 + 0.1) / 2 * 4 * sigma**2, rel=1e-6)
