"""Bounds on fresh records: distributions with a few records, where means can be computed."""

import math

import numpy as np
import pytest
from scipy import stats

from dp_halfspace.theory import population_risk_bound
from dp_halfspace.theory.bounds import noise_moments, published_rate

BUDGETS = [(0.5, 0.0), (1.0, 1e-6), (8.0, 1e-3), (math.inf, 0.0)]


def noise_square(d, epsilon, delta):
    return noise_moments(d, epsilon, delta, linear_model=False).square


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

    def risk(w, ridge=ridge):
        return slope * (share * abs(w - 1) + (1 - share) * abs(w + 1)) + ridge / 2 * w * w

    def mean_risk(ridge_of_risk):
        return two_point_mean(
            n, share, lambda p: risk(median_minimiser(p, ridge, slope), ridge_of_risk)
        )

    measured = mean_risk(ridge) - risk(median_minimiser(share, ridge, slope))
    bound = population_risk_bound(n, 1, math.inf, 0.0, lipschitz=slope, strong_convexity=ridge)
    assert bound.value == pytest.approx(
        slope**2 / (ridge * n) * (0.75 * math.sqrt(3) + 0.5 / n), rel=1e-12
    )
    assert measured <= bound.value
    ball = population_risk_bound(
        n, 1, math.inf, 0.0, lipschitz=slope, radius=1.0, regularization=ridge
    )
    assert mean_risk(0.0) - risk(1.0, 0.0) <= ball.value


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
    assert published_rate(n, d, math.inf, 1e-5) == 0.0
    gauss = population_risk_bound(n, d, 0.7, 1e-5, lipschitz=slope, radius=2.0)
    number = slope * 2.0 * (19 * math.sqrt(t) + 0.5 / math.sqrt(n))
    assert gauss.published == pytest.approx(number)
    beta = 0.01
    smooth = population_risk_bound(n, d, 0.7, 1e-5, lipschitz=slope, radius=2.0, smoothness=beta)
    number = (beta * slope**2 * 2.0**4) ** (1 / 3) * (11 / math.sqrt(n) + 43 * t ** (2 / 3))
    assert smooth.published == pytest.approx(number)
