"""What suffices is above what is necessary, and both are what their proofs say."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from dp_halfspace.theory import (
    margin_risk_bound,
    margin_sample_complexity,
    pure_error_lower_bound,
    pure_lower_bound,
    pure_risk_bound,
    sample_complexity,
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
    found = math.exp(sample_complexity._log_packing(d, margin, error))
    assert found == pytest.approx(1 / cap - 1, rel=0.05)


@pytest.mark.sampled(3)
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


def test_error_bound_is_a_contradiction_of_privacy():
    """Recompute the packing argument from the numbers that are returned."""
    n, d, epsilon, margin, beta = 3000, 50, 0.1, 0.01, 0.1
    case = pure_error_lower_bound(n, d, epsilon, margin, beta=beta)
    inner = margin / math.sqrt(1 - margin**2)
    log_count = sample_complexity._log_packing(case.dimension, inner, case.error / case.share)
    # Some number of changed records m is not exceeded but with probability beta / 2, and
    # (K - 1) (1 - 3 beta / 2) exp(-epsilon m) > beta.
    m = binom.isf(beta / 2 * (1 + 1e-9), n, case.share)
    assert math.exp(log_count - epsilon * m) * (1 - 1.5 * beta) > beta
    assert binom.sf(m, n, case.share) <= beta / 2 * (1 + 1e-9)


def test_gaussian_complexity_inverts_its_bound():
    n = margin_sample_complexity(20, 1.0, 1e-6, 0.3, error=0.2)
    bound = margin_risk_bound(n, 20, 1.0, 1e-6, 0.3, n_steps=n, population=True)
    assert 0.19 < bound <= 0.2
