"""What suffices is above what is necessary, and both are what their proofs say."""

import math

import numpy as np
import pytest
from scipy.special import softmax

from dp_halfspace.privacy import gdp_mu
from dp_halfspace.projection import jl_dimension
from dp_halfspace.theory import (
    margin_risk_bound,
    margin_sample_complexity,
    pure_bounds,
    pure_error_lower_bound,
    pure_lower_bound,
    pure_risk_bound,
)


def sphere(rng, n, d):
    X = rng.standard_normal((n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.parametrize(("d", "margin", "error"), [(3, 0.05, 0.05), (10, 0.02, 0.1)])
def test_packing_by_sampling(d, margin, error):
    """The cap that one halfspace takes, measured: 1 / size of it is the count of the proof."""
    rng = np.random.default_rng(0)
    X = sphere(rng, 400_000, d)
    near = np.mean(np.abs(X[:, 0]) < margin)
    angle = 2 * math.pi * (error * (1 - near) + near)
    cap = np.mean(np.arccos(np.clip(X[:, 1], -1, 1)) <= angle)
    found = math.exp(pure_bounds._log_packing(d, margin, error))
    assert found == pytest.approx(1 / cap - 1, rel=0.05)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("margin", [0.3, 0.03])
@pytest.mark.parametrize("d", [2, 40, 3000])
def test_necessary_is_below_sufficient(epsilon, margin, d):
    enough = margin_sample_complexity(d, epsilon, 0.0, margin, error=0.1, beta=0.1)
    assert pure_lower_bound(d, epsilon, margin, error=0.1, beta=0.1) <= enough
    assert pure_risk_bound(enough, d, epsilon, margin, beta=0.1) <= 0.1
    assert pure_risk_bound(enough - 1, d, epsilon, margin, beta=0.1) > 0.1
    for n in (30, 1000, 10**6):
        assert pure_error_lower_bound(n, d, epsilon, margin).error <= pure_risk_bound(
            n, d, epsilon, margin, beta=0.1
        )


def test_the_smallest_number_is_found_wherever_it_is():
    for smallest in range(1, 70):
        assert pure_bounds._smallest(smallest.__le__) == smallest


def test_gaussian_complexity_inverts_its_bound():
    n = margin_sample_complexity(20, 1.0, 1e-6, 0.3, error=0.2)
    bound = margin_risk_bound(n, 20, 1.0, 1e-6, 0.3, n_steps=n, population=True)
    assert 0.19 < bound <= 0.2
    # With many columns, of projected rows; half of beta is for the projection.
    args, own = (10**5, 8.0, 1e-6, 0.9), {"beta": 0.1, "population": True}
    n = margin_sample_complexity(*args, error=0.2, beta=0.1)
    short, enough = (
        margin_risk_bound(m, *args, n_steps=m, n_components=jl_dimension(0.9, m, 0.05), **own)
        for m in (n - 1, n)
    )
    assert enough <= 0.2 < short


MANY = [pytest.param(40, id="few"), pytest.param(1000, id="many", marks=pytest.mark.slow)]


@pytest.mark.parametrize("runs", MANY)
def test_a_quarter_of_these_records_is_not_enough(runs):
    """Noise across the margin: rows at one distance of it, in as many directions as there are.

    With so little budget the sample is as good as its distribution, which the steps are taken on.
    """
    epsilon, delta, d, margin, error, n_steps = 1e-3, 1e-8, 20, 0.07, 0.25, 400
    n = margin_sample_complexity(d, epsilon, delta, margin, error=error)
    rng, side = np.random.default_rng(0), math.sqrt(1 - margin**2)

    def fresh(n):
        deviation = 2 * math.sqrt(n_steps) / (n * gdp_mu(epsilon, delta))
        step = 1 / margin / math.sqrt(n_steps * (1 + d * deviation**2))
        W, total = np.zeros((runs, d)), np.zeros((runs, d))
        for _ in range(n_steps):
            total += W
            along, across = margin * W[:, :1], side * W[:, 1:]
            up, down = along + across < 1, along - across < 1
            pull = np.empty_like(W)
            pull[:, 0] = margin * (up + down * 1.0).mean(axis=1) / 2
            pull[:, 1:] = side * (up * 1.0 - down) / (2 * (d - 1))
            W = W + step * (pull + deviation * rng.standard_normal(W.shape))
        along, across = margin * total[:, :1], side * total[:, 1:]
        return np.mean([along + across <= 0, along - across <= 0])

    assert fresh(n) <= error < fresh(n / 4)


def test_a_quarter_of_the_records_for_pure_dp_is_not_enough():
    """Two halfspaces in one column, and a failure that must be rare."""
    epsilon, error, beta = 0.05, 0.9, 1e-6
    n = margin_sample_complexity(1, epsilon, 0.0, 1.0, error=error, beta=beta)

    def failure(n):  # all records have one sign, and the other halfspace is chosen
        return softmax([0.0, -epsilon * n / 2])[1]

    assert failure(n) <= beta < failure(n / 2)
