"""Laplace noise on the integers: digits against the distribution, the exact branch, an audit."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from dp_halfspace.privacy import Pure
from dp_halfspace.privacy import noise as module
from dp_halfspace.privacy.noise import DiscreteLaplaceNoise
from dp_halfspace.privacy.randomness import OS_RANDOMNESS, SeededBytes
from tests.privacy.oracles import FALSE_ALARM


def distribution(rate, reach):
    """Probabilities of -reach, ..., reach by the definition."""
    q = np.exp(-rate)
    return (1 - q) / (1 + q) * q ** np.abs(np.arange(-reach, reach + 1))


def draws(noise, count=40_000, seed=0):
    return noise.perturb(np.zeros((count // 4, 4)), SeededBytes(seed, "test")).ravel()


def p_value(sample, rate):
    reach = int(4 / rate) + 1
    cells = np.clip(sample, -reach - 1, reach + 1).astype(int) + reach + 1
    tail = (1 - distribution(rate, reach).sum()) / 2
    expected = np.r_[tail, distribution(rate, reach), tail] * len(sample)
    return stats.chisquare(np.bincount(cells, minlength=len(expected)), expected).pvalue


def test_a_fraction_is_never_released():
    """Whole noise would not hide it."""
    released = DiscreteLaplaceNoise(1, 1.0).perturb(np.full(50, 3.25), OS_RANDOMNESS)
    assert (released == np.rint(released)).all()


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(2, 1.0), (2, 5.0), (20, 0.7)])
def test_noise_follows_the_distribution(sensitivity, epsilon):
    """Planted: half the scale."""
    noise = DiscreteLaplaceNoise(sensitivity, epsilon)
    sample = draws(noise)
    assert p_value(sample, epsilon / sensitivity) > FALSE_ALARM
    assert p_value(sample, epsilon / sensitivity / 2) < FALSE_ALARM
    assert sample.std() == pytest.approx(noise.deviation, rel=0.05)
    assert noise.event == Pure(epsilon)


@pytest.mark.parametrize("rate", [Fraction(1, 2**53), Fraction(1, 3), Fraction(40)])
def test_digits_make_up_the_geometric_distribution_exactly(rate):
    """The product of the enclosed probabilities of the digits of k is ``q^k (1 - q)``."""
    with mpmath.workdps(300):
        gamma = mpmath.mpf(rate.numerator) / rate.denominator
        n_digits = math.ceil(math.log2(512 / rate))
        assert n_digits <= 62
        ones = [module._share(rate * 2**j, 1, 500) / mpmath.mpf(2) ** 500 for j in range(n_digits)]
        for k in (0, 1, 5, 2**n_digits // 700):
            probability = mpmath.fprod(p if k >> j & 1 else 1 - p for j, p in enumerate(ones))
            exact = mpmath.exp(-gamma * k) * -mpmath.expm1(-gamma)
            assert abs(probability / exact - 1) < mpmath.mpf(2) ** -100


def test_digits_are_asked_for_with_their_chances(monkeypatch):
    asked = []

    def events(probabilities, enclosure, source):
        asked.append((float(probabilities[0]), enclosure(0)(64) / 2**64))
        return np.zeros(probabilities.size, dtype=bool)

    monkeypatch.setattr(module, "random_events", events)
    released = DiscreteLaplaceNoise(4, 1.0).perturb(np.array([7.0]), OS_RANDOMNESS)
    assert released.tolist() == [7.0]
    expected = [1 / (1 + math.exp(2.0**j / 4)) for j in range(11)]
    np.testing.assert_allclose([fast for fast, _ in asked], expected, rtol=1e-13)
    np.testing.assert_allclose([slow for _, slow in asked], expected, rtol=1e-13, atol=2.0**-60)


@pytest.mark.parametrize(
    ("sensitivity", "epsilon", "word"),
    [(2, 0.0, "epsilon"), (2, math.inf, "epsilon"), (2**20, 1e-12, "1048576 x 2")],
)
def test_bad_numbers_are_refused(sensitivity, epsilon, word):
    with pytest.raises(ValueError, match=word):
        DiscreteLaplaceNoise(sensitivity, epsilon)
