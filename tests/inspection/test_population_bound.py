"""Bounds on fresh records: on laws with a few records, where every mean can be computed."""

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats
from scipy.special import expit

from dp_halfspace.inspection import (
    population_risk_bound,
    strongly_convex_excess_risk,
)
from dp_halfspace.inspection._noise_cost import noise_moments, published_rate
from tests.inspection.risk_problems import draw_noise

BUDGETS = [(0.5, 0.0), (1.0, 1e-6), (8.0, 1e-3), (math.inf, 0.0)]


def parts(bound):
    return bound.noise + bound.sampling + bound.bias + bound.gap


def noise_square(d, epsilon, delta):
    return noise_moments(d, epsilon, delta, linear_model=False).square


# --- two kinds of records, one coefficient: the mean over the samples is a sum ---------------


def two_point_mean(n, share, excess):
    """Mean of a function of the share of the first kind of record in the sample."""
    counts = np.arange(n + 1)
    weights = stats.binom.pmf(counts, n, share)
    return float(weights @ np.array([excess(k / n) for k in counts]))


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
@pytest.mark.parametrize("n", [1, 7, 200])
def test_linear_losses_meet_the_smooth_bound(n, epsilon, delta):
    # f(w, x) = x w with x = +-L: the minimiser is a mean, and its variance is all there is.
    slope, ridge = 1.3, 0.7
    bound = population_risk_bound(
        n, 1, epsilon, delta, lipschitz=slope, strong_convexity=ridge, smoothness=1e-12
    )
    # F(w) = ridge w^2 / 2, least at 0; w = -mean / ridge.
    sample = two_point_mean(n, 0.5, lambda p: (slope * (2 * p - 1)) ** 2 / (2 * ridge))
    noise = ridge / 2 * noise_square(1, epsilon, delta) * (2 * slope / (ridge * n)) ** 2
    assert sample + noise == pytest.approx(bound.value, rel=1e-9)
    # Wrong bounds that this would find out: no sampling, half of it, half of the noise.
    assert sample + noise > bound.noise
    assert sample + noise > bound.noise + 0.51 * bound.sampling
    if noise:
        assert sample + noise > bound.noise / 4 + bound.sampling + 1e-12


def median_minimiser(p, ridge, slope):
    """Minimiser of slope (p |w - 1| + (1 - p) |w + 1|) + ridge w^2 / 2."""
    return float(np.clip(slope * (2 * p - 1) / ridge, -1.0, 1.0))


@pytest.mark.parametrize("share", [0.5, 0.55, 0.9])
@pytest.mark.parametrize("n", [3, 30, 301])
@pytest.mark.parametrize("ridge", [0.02, 0.3, 3.0])
def test_absolute_losses_stay_below_the_bound_for_rough_ones(n, share, ridge):
    slope = 0.8

    def risk(w, p):
        return slope * (p * abs(w - 1) + (1 - p) * abs(w + 1)) + ridge / 2 * w * w

    best = risk(median_minimiser(share, ridge, slope), share)
    measured = two_point_mean(
        n, share, lambda p: risk(median_minimiser(p, ridge, slope), share) - best
    )
    bound = population_risk_bound(n, 1, math.inf, 0.0, lipschitz=slope, strong_convexity=ridge)
    assert bound.value == pytest.approx(
        slope**2 / (ridge * n) * (0.75 * math.sqrt(3) + 0.5 / n), rel=1e-12
    )
    assert measured <= bound.value


def test_the_bound_for_rough_losses_is_used_to_a_third():
    slope, ridge, n, share = 1.0, 1.0, 9, 0.5
    best = slope
    measured = two_point_mean(
        n,
        share,
        lambda p: slope + ridge / 2 * median_minimiser(p, ridge, slope) ** 2 - best,
    )
    bound = population_risk_bound(n, 1, math.inf, 0.0, lipschitz=slope, strong_convexity=ridge)
    assert bound.value / 3 < measured <= bound.value


@pytest.mark.parametrize("n", [1, 4, 50])
def test_strongly_convex_losses_stay_below_the_bound_for_leaving_one_out(n):
    # f(w, x) = mu (w - x)^2 / 2 with x = +-1: slope 2 mu on [-1, 1].
    mu = 0.6
    measured = two_point_mean(n, 0.5, lambda p: mu / 2 * (2 * p - 1) ** 2)
    constants = {"lipschitz": 2 * mu, "strong_convexity": mu}
    whole = population_risk_bound(n, 1, math.inf, 0.0, **constants)
    bound = population_risk_bound(n, 1, math.inf, 0.0, **constants, regularization=0.0)
    assert bound.value == pytest.approx((2 * mu) ** 2 / (mu * n))
    assert bound.value < whole.value
    assert measured <= bound.value
    assert measured > bound.value / 10


# --- logistic regression on a law with six records ---------------------------------------------


def law():
    rng = np.random.default_rng(5)
    Z = rng.standard_normal((6, 2))
    Z /= np.maximum(1.0, np.linalg.norm(Z, axis=1, keepdims=True))
    Z[0] = [1.0, 0.0]
    return Z, np.array([0.35, 0.25, 0.15, 0.1, 0.1, 0.05])


def risk_of(Z, weights, W):
    return np.logaddexp(0.0, -W @ Z.T) @ weights


def minimisers(Z, shares, ridge):
    """Regularised logistic minimisers for many samples, given by the shares of the records."""
    W = np.zeros((len(shares), Z.shape[1]))
    for _ in range(20):
        p = expit(-W @ Z.T)
        gradient = -(shares * p) @ Z + ridge * W
        curved = shares * p * (1 - p)
        hessian = np.einsum("ik,ka,kb->iab", curved, Z, Z) + ridge * np.eye(Z.shape[1])
        W = W - np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
    assert np.abs(gradient).max() < 1e-12
    return W


@cache
def sample_minimisers(n, ridge, draws):
    """Minimisers of many samples of the law."""
    Z, weights = law()
    shares = np.random.default_rng(n).multinomial(n, weights, size=draws) / n
    return minimisers(Z, shares, ridge)


@cache
def least_risk(radius):
    """Least risk of a model in a ball."""
    Z, weights = law()
    return optimize.minimize(
        lambda v: risk_of(Z, weights, v[None])[0],
        np.zeros(2),
        constraints={"type": "ineq", "fun": lambda v: radius**2 - v @ v},
    ).fun


def measured_excess(n, epsilon, delta, ridge, *, radius=None, draws=5000, halved=False):
    """Mean excess on fresh records over samples and noise, and three standard errors."""
    Z, weights = law()
    W = sample_minimisers(n, ridge, draws)
    if math.isfinite(epsilon):
        sensitivity = 2 / (ridge * n) * (0.5 if halved else 1.0)
        rng = np.random.default_rng(n)
        W = W + draw_noise(rng, draws, 2, epsilon, delta, sensitivity)
    risk = risk_of(Z, weights, W)
    if radius is None:
        risk = risk + ridge / 2 * np.sum(W**2, axis=1)
        best = minimisers(Z, weights[None], ridge)
        least = risk_of(Z, weights, best)[0] + ridge / 2 * np.sum(best**2)
    else:
        least = least_risk(radius)
    excess = risk - least
    return excess.mean(), 3 * excess.std() / math.sqrt(draws)


LOGISTIC = {"lipschitz": 1.0, "smoothness": 0.25, "linear_model": True}


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
@pytest.mark.parametrize(("n", "ridge"), [(20, 0.3), (100, 0.05), (1000, 0.01)])
def test_logistic_regression_stays_below_both_bounds(n, ridge, epsilon, delta):
    bound = population_risk_bound(n, 2, epsilon, delta, strong_convexity=ridge, **LOGISTIC)
    mean, error = measured_excess(n, epsilon, delta, ridge)
    assert mean + error <= bound.value
    ball = population_risk_bound(n, 2, epsilon, delta, radius=2.0, regularization=ridge, **LOGISTIC)
    mean, error = measured_excess(n, epsilon, delta, ridge, radius=2.0)
    assert mean + error <= ball.value


def test_a_bound_without_the_sample_is_wrong():
    n, ridge = 20, 0.3
    mean, error = measured_excess(n, math.inf, 0.0, ridge)
    on_sample = strongly_convex_excess_risk(n, 2, math.inf, 0.0, strong_convexity=ridge, **LOGISTIC)
    assert on_sample == 0.0 < mean - error


def test_a_bound_for_half_of_the_noise_is_wrong():
    n, ridge, epsilon = 20, 0.3, 0.1
    mean, error = measured_excess(n, epsilon, 0.0, ridge)
    half = population_risk_bound(
        n, 2, epsilon, 0.0, strong_convexity=ridge, sensitivity=1 / (ridge * n), **LOGISTIC
    )
    assert mean - error > half.value
    assert measured_excess(n, epsilon, 0.0, ridge, halved=True)[0] <= half.value


@pytest.mark.parametrize("radius", [None, 2.0])
def test_the_worst_solution_that_the_gap_allows(radius):
    n, ridge, gap, draws = 50, 0.1, 1e-3, 1000
    Z, weights = law()
    rng = np.random.default_rng(1)
    shares = rng.multinomial(n, weights, size=draws) / n
    W = minimisers(Z, shares, ridge)
    # Away from the law's minimiser, as far as the gap lets it go in that direction.
    away = W - minimisers(Z, weights[None], ridge)
    away /= np.linalg.norm(away, axis=1, keepdims=True)

    def objective(V):
        return np.sum(shares * np.logaddexp(0.0, -V @ Z.T), axis=1) + ridge / 2 * np.sum(
            V**2, axis=1
        )

    low, high = np.zeros(draws), np.full(draws, 2.0)
    for _ in range(60):
        middle = (low + high) / 2
        inside = objective(W + middle[:, None] * away) - objective(W) <= gap
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    V = W + low[:, None] * away
    assert low.max() <= math.sqrt(2 * gap / ridge) * (1 + 1e-9)
    best = minimisers(Z, weights[None], ridge)
    if radius is None:
        least = risk_of(Z, weights, best)[0] + ridge / 2 * np.sum(best**2)
        mean = (risk_of(Z, weights, V) + ridge / 2 * np.sum(V**2, axis=1)).mean() - least
        target = {"strong_convexity": ridge}
    else:
        mean = risk_of(Z, weights, V).mean() - risk_of(Z, weights, best)[0]
        assert np.linalg.norm(best) <= radius
        target = {"radius": radius, "regularization": ridge}
    bound = population_risk_bound(n, 2, math.inf, 0.0, gap=gap, **target, **LOGISTIC)
    assert mean <= bound.value
    assert bound.value > population_risk_bound(n, 2, math.inf, 0.0, **target, **LOGISTIC).value


# --- algebra -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
@pytest.mark.parametrize("smoothness", [math.inf, 0.25, 40.0, 1e-9])
@pytest.mark.parametrize("n", [2, 50_000])
def test_chosen_regularization_minimises_the_bound(epsilon, delta, smoothness, n):
    constants = {"lipschitz": 1.3, "smoothness": smoothness, "radius": 2.0}
    bound = population_risk_bound(n, 7, epsilon, delta, **constants)

    def value(log_factor):
        return population_risk_bound(
            n, 7, epsilon, delta, **constants, regularization=math.exp(log_factor)
        ).value

    grid = np.linspace(-15, 15, 121)
    start = grid[np.argmin([value(t) for t in grid])]
    best = optimize.minimize_scalar(value, bounds=(start - 0.4, start + 0.4), method="bounded")
    assert bound.value == pytest.approx(best.fun, rel=1e-6)
    assert bound.value == value(math.log(bound.regularization)) or bound.value == pytest.approx(
        value(math.log(bound.regularization)), rel=1e-9
    )


def test_no_noise_leaves_what_is_known_without_privacy():
    n, slope, radius, ridge = 400, 1.5, 2.0, 0.01
    rough = population_risk_bound(n, 9, math.inf, 1e-6, lipschitz=slope, strong_convexity=ridge)
    constant = 0.75 * math.sqrt(3) + 0.5 / n
    assert rough.value == rough.sampling == pytest.approx(constant * slope**2 / (ridge * n))
    ball = population_risk_bound(n, 9, math.inf, 0.0, lipschitz=slope, radius=radius)
    assert ball.value == pytest.approx(slope * radius * math.sqrt(2 * constant / n))
    # More budget comes arbitrarily near.
    near = population_risk_bound(n, 9, 1e9, 0.0, lipschitz=slope, radius=radius)
    assert near.value == pytest.approx(ball.value, rel=1e-6)


def test_noise_is_made_for_the_inexact_solution():
    own = {"lipschitz": 1.0, "strong_convexity": 0.1}
    exact = population_risk_bound(100, 2, 1.0, 0.0, **own)
    inexact = population_risk_bound(100, 2, 1.0, 0.0, **own, gap=1e-4)
    distance = math.sqrt(2e-4 / 0.1)
    assert inexact.sensitivity == pytest.approx(0.2 + 2 * distance)
    assert inexact.noise > exact.noise
    assert inexact.sampling + inexact.gap == pytest.approx(
        exact.sampling + 2 * distance + 0.05 * distance**2
    )


positive = st.floats(1e-3, 1e3)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 10**6),
    st.integers(1, 500),
    st.one_of(st.floats(0.01, 20), st.just(math.inf)),
    st.sampled_from([0.0, 1e-9, 1e-4]),
    positive,
    positive,
    st.one_of(st.just(math.inf), positive),
    st.booleans(),
)
def test_monotone_additive_and_not_above_the_paper(
    n, d, epsilon, delta, lipschitz, size, smoothness, linear
):
    own = {"lipschitz": lipschitz, "smoothness": smoothness, "linear_model": linear}
    slack = 1 + 1e-7
    for target in ({"strong_convexity": size}, {"radius": size}):
        bound = population_risk_bound(n, d, epsilon, delta, **own, **target)
        assert bound.value == pytest.approx(parts(bound))
        assert min(bound.noise, bound.sampling, bound.bias, bound.gap) >= 0
        assert bound.published is None or bound.published >= bound.value / slack
        changes = [
            population_risk_bound(2 * n, d, epsilon, delta, **own, **target),
            population_risk_bound(n, d, 2 * epsilon, delta, **own, **target),
            population_risk_bound(n, d, epsilon, delta, **{**own, "linear_model": True}, **target),
        ]
        assert max(change.value for change in changes) <= bound.value * slack
        assert population_risk_bound(n, d + 1, epsilon, delta, **own, **target).value >= (
            bound.value / slack
        )
        assert population_risk_bound(n, d, epsilon, delta, **own, **target, gap=1e-3).value > (
            bound.value / slack
        )


def test_the_papers_numbers():
    n, d, slope, mu, beta = 2000, 6, 1.2, 0.5, 3.0
    t = d / (0.7 * n)
    args, own = (n, d, 0.7, 0.0), {"lipschitz": slope, "strong_convexity": mu}
    rough = population_risk_bound(*args, **own, regularization=0.0)
    assert rough.published == pytest.approx(2 * slope**2 / mu * (1 / n + t))
    fine = population_risk_bound(*args, **own, regularization=0.0, smoothness=beta)
    assert fine.published == pytest.approx(slope**2 / mu * (2 / n + 4 * beta / mu * t**2))
    # With a regulariser the paper's loss has it inside, and twice the slope.
    assert population_risk_bound(*args, **own).published == pytest.approx(4 * rough.published)
    ball = population_risk_bound(*args, lipschitz=slope, radius=2.0)
    number = slope * 2.0 * (127 * math.sqrt(t) + 0.5 / math.sqrt(n))
    assert ball.published == pytest.approx(number)
    smooth = population_risk_bound(*args, lipschitz=slope, radius=2.0, smoothness=beta)
    number = (beta * slope**2 * 2.0**4) ** (1 / 3) * (11 / math.sqrt(n) + 83 * t ** (2 / 3))
    assert smooth.published == pytest.approx(min(number, ball.published))
    c = math.sqrt(math.log(2 / (math.sqrt(16e-5 + 1) - 1)))
    t = math.sqrt(d) * (c + math.sqrt(c * c + 0.7)) / (0.7 * n)
    assert published_rate(n, d, 0.7, 1e-5) == pytest.approx(t)
    gauss = population_risk_bound(n, d, 0.7, 1e-5, lipschitz=slope, radius=2.0)
    number = slope * 2.0 * (19 * math.sqrt(t) + 0.5 / math.sqrt(n))
    assert gauss.published == pytest.approx(number)


def test_no_number_of_the_paper_where_it_has_no_proof():
    own = {"lipschitz": 1.0}
    # d > epsilon n.
    assert population_risk_bound(10, 50, 1.0, 0.0, **own, strong_convexity=1.0).published is None
    assert population_risk_bound(10, 50, 1.0, 0.0, **own, radius=1.0).published is None
    # Hardly any noise: Proposition D.1 has dropped the term for the sample.
    assert population_risk_bound(100, 1, 1e6, 0.0, **own, radius=1.0).published is None


# --- refusals ----------------------------------------------------------------------------------
