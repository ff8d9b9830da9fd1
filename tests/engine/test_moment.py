"""The released second moment: its sensitivity in exact numbers, and directions of LAPACK."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dp_halfspace.engine.moment import CONSTANT, LENGTHENED, centring_of, moment_noise, packed
from dp_halfspace.privacy.budget import Budget


@pytest.mark.parametrize("is_single", [False, True])
@pytest.mark.parametrize(
    ("n", "k", "block"), [(1000, 10, 1000), (300_000, 400, 491), (10**6, 20, 4096), (50, 3, 64)]
)
def test_sensitivity_is_that_of_the_proof(n, k, block, is_single):
    """``certificate.md``, sections 7 to 9, in rational arithmetic: no less, no more.

    The allowance for rounding is a part of the sensitivity, and is computed here from the proofs.
    """
    gamma = Fraction(101, 100) * (block + min(-(-n // block), 256) + 8) / 2**53
    allowance = 2 * gamma * n
    if is_single:
        # Twice the error of a group of 256 rows, added up in float32.
        allowance += 2 * Fraction(102, 100) * (256 + 8) * 256 / 2**24
    found = moment_noise(n, block, Budget.gaussian(1.0), is_single=is_single).sensitivity
    assert found >= math.sqrt(2.0) + float(allowance)
    assert found <= math.sqrt(2.0) + float(allowance) + 2e-12
    # The rounding of the sum itself, if the root were exact: removing it is seen at every size.
    assert Fraction(found) ** 2 > 2 + 2 * allowance


@pytest.mark.sampled(1)
@pytest.mark.parametrize("size", [4, 40, 301, 513])
def test_directions_are_as_orthonormal_as_the_proof_assumes(size):
    """``engine.md``, section 5: up to 2^-20, and by far."""
    rng = np.random.default_rng(0)
    spread = np.append(np.full(min(5, size), 40.0), np.ones(max(size - 5, 0)))
    X = rng.standard_normal((10**4, size)) * spread
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    noise = moment_noise(10**4, 4096, Budget.gaussian(1.0), is_single=False)
    released = packed(X.T @ X)
    released += noise.sigma * rng.standard_normal(released.size)
    V = centring_of(released, 1e4, noise, constant=0.0)[0].directions
    error = np.linalg.norm(V.T @ V - np.eye(V.shape[1]), 2)
    assert error < 2.0**-36


def released_means(mean, mu):
    """Released means of rows, and the error that is stated for each of their entries."""
    rng, n = np.random.default_rng(0), 2000
    inside = np.append(mean, CONSTANT) / LENGTHENED
    noise = moment_noise(n, n, Budget.gaussian(mu), is_single=False)
    exact = packed(n * np.outer(inside, inside))
    found = [
        centring_of(exact + noise.sigma * rng.standard_normal(exact.size), n, noise, constant=1.0)
        for _ in range(8)
    ]
    return np.array([centring.mean for centring, _ in found]), found[0][0].mean_error


def test_the_error_of_a_mean_is_that_of_its_noise():
    found, error = released_means(np.full(40, 0.1), mu=0.3)
    assert np.std(found - 0.1) == pytest.approx(error, rel=0.15)


def test_a_mean_that_is_noise_alone_is_shrunk_to_zero():
    found, error = released_means(np.zeros(40), mu=0.3)
    assert np.std(found) < 0.15 * error


def test_a_total_that_noise_hides_is_at_least_that_noise():
    """The weights of all records are private; noise may make their sum small, or negative."""
    noise = moment_noise(100, 100, Budget.gaussian(0.1), is_single=False)
    for corner in (-5.0, 0.0, 1e-9):
        moment = np.diag([1.0, 1.0, corner])
        centring, total = centring_of(packed(moment), math.nan, noise, constant=1.0)
        assert total >= noise.sigma
        assert np.isfinite(centring.to_final).all()


def test_hidden_directions_are_stretched_as_far_as_noise_allows():
    """Noise can take all of the trace for the direction that it shows, or make it negative."""
    size, n = 30, 1000.0
    noise = moment_noise(1000, 1000, Budget.gaussian(0.1), is_single=False)
    deviation = LENGTHENED**2 * noise.sigma
    edge, allowed = deviation * math.sqrt(2.0 * size), math.sqrt(n * math.sqrt(size) / deviation)
    for first, others in ((1.1 * edge, -0.05 * edge), (0.0, -0.5 * edge)):
        moment = np.diag([first, *[others] * (size - 1), n * CONSTANT**2])
        centring, _ = centring_of(packed(moment / LENGTHENED**2), n, noise, constant=1.0)
        assert 0.5 * allowed < centring.factors.max() <= allowed
