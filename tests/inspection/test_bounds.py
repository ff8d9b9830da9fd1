"""The excess-risk bounds: against quadrature, against minimisation, and against measurement."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize, stats
from scipy.special import expit

from dp_halfspace.inspection import (
    convex_excess_risk,
    optimal_regularization,
    strongly_convex_excess_risk,
)
from dp_halfspace.inspection._noise_cost import noise_moments
from tests.inspection.risk_problems import draw_noise, exact_multiplier

BUDGETS = [(0.5, 0.0), (1.0, 1e-6), (3.0, 0.0), (8.0, 1e-3)]


def paper_multiplier(epsilon, delta):
    """Sigma of Lowy and Razaviyayn (2021), equation (5), for sensitivity 1."""
    c = math.sqrt(math.log(2 / (math.sqrt(16 * delta + 1) - 1)))
    return (c + math.sqrt(c * c + epsilon)) / (math.sqrt(2) * epsilon)


def mean_coordinate(d, radius_mean):
    """E |<u, b>| by quadrature over the angle between u and a uniform direction."""
    if d == 1:
        return radius_mean
    weight = lambda t: math.sin(t) ** (d - 2)  # noqa: E731
    top = integrate.quad(lambda t: abs(math.cos(t)) * weight(t), 0, math.pi, points=[math.pi / 2])
    return radius_mean * top[0] / integrate.quad(weight, 0, math.pi)[0]


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


def test_moments_of_a_very_long_vector_do_not_overflow():
    moments = noise_moments(10**7, 1.0, 1e-6, linear_model=False)
    assert moments.felt == pytest.approx(math.sqrt(moments.square), rel=1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
@pytest.mark.parametrize("smoothness", [math.inf, 0.25, 40.0])
@pytest.mark.parametrize("linear_model", [False, True])
@pytest.mark.parametrize("n_samples", [50, 50_000])
def test_regularization_minimises_the_bound(epsilon, delta, smoothness, linear_model, n_samples):
    budget = (n_samples, 7, epsilon, delta)
    constants = {
        "lipschitz": 1.3,
        "radius": 2.0,
        "smoothness": smoothness,
        "linear_model": linear_model,
    }

    def value(log_factor):
        return convex_excess_risk(*budget, **constants, regularization=math.exp(log_factor))

    grid = np.linspace(-25, 15, 121)
    start = grid[np.argmin([value(t) for t in grid])]
    best = optimize.minimize_scalar(value, bounds=(start - 0.4, start + 0.4), method="bounded")
    factor = optimal_regularization(*budget, **constants)
    assert value(math.log(factor)) == pytest.approx(best.fun, rel=1e-6)
    assert convex_excess_risk(*budget, **constants) == pytest.approx(best.fun, rel=1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_never_worse_than_the_paper(epsilon, delta):
    n, d, lipschitz, radius, smoothness = 5_000, 9, 0.7, 1.5, 0.3
    rate = d / epsilon if delta == 0 else math.sqrt(2 * d) * paper_multiplier(epsilon, delta)
    rate /= n
    convex = convex_excess_risk(n, d, epsilon, delta, lipschitz=lipschitz, radius=radius)
    assert convex <= 8.5 * lipschitz * radius * math.sqrt(rate) / 4  # Proposition 2.7
    smooth = convex_excess_risk(
        n, d, epsilon, delta, lipschitz=lipschitz, radius=radius, smoothness=smoothness
    )
    paper = 48.5 * smoothness ** (1 / 3) * lipschitz ** (2 / 3) * radius ** (4 / 3)
    assert smooth <= paper * rate ** (2 / 3) / 20  # Proposition 2.8
    own = {"lipschitz": lipschitz, "strong_convexity": 0.1, "regularization": 0.0}
    rough = strongly_convex_excess_risk(n, d, epsilon, delta, **own)
    assert rough <= 2 * lipschitz**2 / 0.1 * rate * (1 + 1e-9)  # Corollary 2.1
    fine = strongly_convex_excess_risk(n, d, epsilon, delta, **own, smoothness=smoothness)
    assert fine <= 4 * smoothness * lipschitz**2 / 0.1**2 * rate**2  # Corollary 2.2


positive = st.floats(1e-3, 1e3)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 10**6),
    st.integers(1, 500),
    st.floats(0.01, 20),
    st.sampled_from([0.0, 1e-9, 1e-4]),
    positive,
    positive,
    st.one_of(st.just(math.inf), positive),
    st.booleans(),
)
def test_bounds_are_monotone(n, d, epsilon, delta, lipschitz, radius, smoothness, linear):
    constants = {
        "lipschitz": lipschitz,
        "radius": radius,
        "smoothness": smoothness,
        "linear_model": linear,
    }
    value = convex_excess_risk(n, d, epsilon, delta, **constants)
    slack = 1 + 1e-7
    assert value > 0
    assert convex_excess_risk(2 * n, d, epsilon, delta, **constants) <= value * slack
    assert convex_excess_risk(n, d, 2 * epsilon, delta, **constants) <= value * slack
    assert convex_excess_risk(n, d + 1, epsilon, delta, **constants) >= value / slack
    assert convex_excess_risk(n, d, epsilon, delta, **constants, gap=1e-6) > value
    assert convex_excess_risk(n, d, epsilon, delta, **{**constants, "linear_model": True}) <= (
        value * slack
    )


# --- measurement -------------------------------------------------------------------------


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


def logistic_problem(n=300, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return X * y[:, None]


def logistic_risk(Z, W):
    return np.logaddexp(0.0, -np.atleast_2d(W) @ Z.T).mean(axis=1)


def logistic_minimiser(Z, factor):
    w = np.zeros(Z.shape[1])
    for _ in range(60):
        p = expit(-Z @ w)
        gradient = -Z.T @ p / len(Z) + factor * w
        hessian = (Z.T * (p * (1 - p))) @ Z / len(Z) + factor * np.eye(Z.shape[1])
        w = w - np.linalg.solve(hessian, gradient)
    assert np.linalg.norm(gradient) < 1e-12
    return w


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
@pytest.mark.parametrize("gap", [0.0, 1e-4])
def test_logistic_regression_stays_below_both_bounds(epsilon, delta, gap):
    Z = logistic_problem()
    n, d = Z.shape
    constants = {"lipschitz": 1.0, "smoothness": 0.25, "linear_model": True}
    radius = 3.0
    factor = optimal_regularization(n, d, epsilon, delta, radius=radius, **constants)
    w = logistic_minimiser(Z, factor)
    best = logistic_risk(Z, w)[0] + factor / 2 * w @ w
    if gap:  # the worst allowed solution in one direction
        step = np.ones(d) / math.sqrt(d)
        rise = lambda t: (  # noqa: E731
            logistic_risk(Z, w + t * step)[0]
            + factor / 2 * np.sum((w + t * step) ** 2)
            - best
            - gap
        )
        w = w + optimize.brentq(rise, 0, 10) * step
    sensitivity = 2 / (factor * n) + 2 * math.sqrt(2 * gap / factor)
    rng = np.random.default_rng(11)
    release = w + draw_noise(rng, 20_000, d, epsilon, delta, sensitivity)
    risk = logistic_risk(Z, release)

    regularised = risk + factor / 2 * np.sum(release**2, axis=1)
    assert regularised.mean() - best <= strongly_convex_excess_risk(
        n, d, epsilon, delta, strong_convexity=factor, gap=gap, **constants
    )
    ball = optimize.minimize(
        lambda v: logistic_risk(Z, v)[0],
        np.zeros(d),
        constraints={"type": "ineq", "fun": lambda v: radius**2 - v @ v},
    )
    convex = convex_excess_risk(
        n, d, epsilon, delta, radius=radius, regularization=factor, gap=gap, **constants
    )
    assert risk.mean() - ball.fun <= convex


def test_convex_bound_is_met_within_a_constant_and_a_quarter_of_it_fails():
    # f(w) = L |w - R|: every record pulls towards R and the regulariser pulls back.
    n, d, epsilon, delta, lipschitz, radius = 500, 1, 1.0, 0.0, 1.0, 1.0
    factor = 2 * lipschitz / radius  # stops the minimiser halfway
    w = lipschitz / factor
    rng = np.random.default_rng(3)
    release = w + draw_noise(rng, 100_000, d, epsilon, delta, 2 * lipschitz / (factor * n))[:, 0]
    excess = (lipschitz * np.abs(release - radius)).mean()
    bound = convex_excess_risk(
        n, d, epsilon, delta, lipschitz=lipschitz, radius=radius, regularization=factor
    )
    assert bound / 4 < excess <= bound


def test_convex_bound_with_little_regularization_is_met_and_half_of_it_fails():
    n, epsilon, delta, lipschitz, radius, factor = 500, 0.5, 1e-5, 1.0, 1.0, 1e-3
    rng = np.random.default_rng(5)
    sensitivity = 2 * lipschitz / (factor * n)
    release = radius + draw_noise(rng, 200_000, 1, epsilon, delta, sensitivity)[:, 0]
    excess = (lipschitz * np.abs(release - radius)).mean()  # f = L |w - R|, minimiser R
    bound = convex_excess_risk(
        n, 1, epsilon, delta, lipschitz=lipschitz, radius=radius, regularization=factor
    )
    assert excess == pytest.approx(bound, rel=0.01)
    assert excess > bound / 2


def test_noise_for_twice_the_sensitivity_breaks_the_bound():
    loss, options = tight_cases(400, 4, 1.0, 0.05)["lipschitz"]
    rng = np.random.default_rng(1)
    noise = draw_noise(rng, 50_000, 4, 1.0, 0.0, 2 * 2.0 / (0.05 * 400))
    bound = strongly_convex_excess_risk(
        400, 4, 1.0, 0.0, lipschitz=1.0, strong_convexity=0.05, **options
    )
    assert (loss(noise) + 0.025 * np.sum(noise**2, axis=1)).mean() > bound


# --- edges -------------------------------------------------------------------------------


def test_no_noise_leaves_only_bias_and_gap():
    args = (100, 3, math.inf, 1e-6)
    assert optimal_regularization(*args, lipschitz=1.0, radius=1.0) == 0.0
    assert convex_excess_risk(*args, lipschitz=1.0, radius=1.0) == 0.0
    assert convex_excess_risk(*args, lipschitz=1.0, radius=1.0, gap=0.25) == 0.25
    assert convex_excess_risk(*args, lipschitz=1.0, radius=2.0, regularization=0.1) == (
        pytest.approx(0.2)
    )
    assert strongly_convex_excess_risk(*args, lipschitz=1.0, strong_convexity=0.1, gap=0.5) == 0.5


def test_given_sensitivity_replaces_the_default_and_allows_an_unbounded_slope():
    args, own = (1000, 4, 1.0, 1e-6), {"strong_convexity": 0.1, "smoothness": 2.0}
    assert strongly_convex_excess_risk(*args, lipschitz=1.0, **own) == pytest.approx(
        strongly_convex_excess_risk(*args, lipschitz=1.0, sensitivity=2 / (0.1 * 1000), **own)
    )
    squared = strongly_convex_excess_risk(*args, lipschitz=math.inf, sensitivity=0.01, **own)
    sigma = 0.01 * exact_multiplier(1.0, 1e-6)
    assert squared == pytest.approx((2.0 + 0.1) / 2 * 4 * sigma**2, rel=1e-6)
