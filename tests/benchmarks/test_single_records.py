"""The published steps on single records: what one step, and all of them, can reveal."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks import single_records
from benchmarks.single_records import delta_of_steps, published_sigma, step_loss, step_profile
from dp_halfspace.privacy import gdp_delta

RATE = 0.02


def measured(mu, epsilon, others, old, new):
    """Integrate the profile of a step: the replaced record pulls by `old`, then by `new`."""
    o = np.linspace(-12.0, 12.0 + mu, 40_001)
    rest = (1.0 - RATE) * norm.pdf(o, others)
    excess = rest + RATE * norm.pdf(o, old)
    excess = excess - math.exp(epsilon) * (rest + RATE * norm.pdf(o, new))
    return float(np.maximum(excess, 0.0).sum() * (o[1] - o[0]))


def worst(mu, epsilon):
    """Return the largest measured profile over gradients that are `mu` apart at most."""
    places = np.linspace(0.0, mu, 3)
    return max(measured(mu, epsilon, *three) for three in itertools.product(places, repeat=3))


@pytest.mark.parametrize("mu", [0.3, 2.0])
@pytest.mark.parametrize("epsilon", [-0.01, 0.0, 0.005, 0.03])
def test_no_neighbour_exceeds_the_profile_of_a_step_and_one_attains_it(mu, epsilon):
    """Also shown to fail: the sensitivity of adding a record, which is half as large."""
    found = worst(mu, epsilon)
    bound = float(step_profile(np.array([epsilon]), mu, RATE)[0])
    assert found <= bound * (1 + 1e-6) + 1e-12
    if bound > 1e-9:
        assert found > 0.99 * bound
        assert found > float(step_profile(np.array([epsilon]), mu / 2, RATE)[0]) * (1 + 1e-6)


@pytest.mark.parametrize("count", [1, 30])
def test_steps_on_all_records_are_gaussian(count):
    total = step_loss(0.1, 1.0).repeat(count)
    for epsilon in (0.0, 0.5, 1.0):
        loss = np.maximum(-np.expm1(np.minimum(epsilon - total.losses, 0.0)), 0.0)
        exact = gdp_delta(0.1 * math.sqrt(count), epsilon)
        assert exact * (1 - 1e-12) <= float(total.mass @ loss) + total.cut <= 1.02 * exact + 1e-14


def test_secret_draws_are_worth_the_root_of_the_number_of_records():
    """Revealed, a record is drawn about n times; the published noise spends less than it says."""
    n, delta = 50, 1.0 / 50**2
    mu = 2.0 * n * single_records.LIPSCHITZ / single_records.calibrated_sigma(n, 1.0, delta)
    assert delta_of_steps(n, mu, 1.0) <= delta < delta_of_steps(n, 1.02 * mu, 1.0)
    assert gdp_delta(mu * math.sqrt(n), 1.0) > 100 * delta
    spent = 2.0 * n * single_records.LIPSCHITZ / published_sigma(n, 1.0, delta)
    assert delta_of_steps(n, spent, 0.2) < delta


def test_the_comparison_runs(capsys):
    single_records.main(["--sizes", "40", "--draws", "3"])
    assert "full batch, last" in capsys.readouterr().out
