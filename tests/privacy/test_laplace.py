"""The distribution of L2-Laplace noise, the digits of its random variance, and its low bits."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from dp_halfspace.privacy import noise as module
from dp_halfspace.privacy.noise import l2_laplace
from dp_halfspace.privacy.randomness import SeededBytes
from tests.privacy.oracles import CAUGHT, FALSE_ALARM, Constant, Script, grid_of, seeded


def noise(dimension, scale, count, seed=0):
    source = seeded(seed)
    return np.array([l2_laplace(np.zeros(dimension), scale, source=source) for _ in range(count)])


def norm_pvalue(draws, dimension, scale):
    """Kolmogorov-Smirnov test of the norm against Gamma(dimension, scale)."""
    norms = np.linalg.norm(draws, axis=1)
    return stats.kstest(norms, "gamma", args=(dimension, 0, scale)).pvalue


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dimension", [2, 1, 5, 50])
def test_norm_is_gamma(dimension, monkeypatch):
    """Planted: half the scale, and one degree of freedom too many."""
    draws = noise(dimension, 1.5, 400, seed=dimension)
    assert norm_pvalue(draws, dimension, 1.5) > FALSE_ALARM
    assert norm_pvalue(draws, dimension, 3.0) < CAUGHT
    correlated = abs(np.corrcoef(draws[:, 0], draws[:, -1])[0, 1]) * math.sqrt(400)
    assert dimension == 1 or correlated < 6
    if dimension == 2:
        chi = module._draw_chi
        monkeypatch.setattr(module, "_draw_chi", lambda degrees, s: chi(degrees + 1, s))
        assert norm_pvalue(noise(2, 1.5, 1200), 2, 1.5) < CAUGHT


def test_direction_is_uniform_and_independent_of_the_norm():
    draws = noise(3, 2.0, 700, seed=2)
    norms = np.linalg.norm(draws, axis=1)
    # Archimedes: a coordinate of a uniform point on the sphere is uniform.
    for height in (draws / norms[:, None]).T:
        assert stats.kstest(height, "uniform", args=(-1, 2)).pvalue > FALSE_ALARM
        assert abs(stats.spearmanr(height, norms)[0]) * math.sqrt(700) < 6
    # A vector of independent Laplace coordinates has the right marginal tails only.
    product = np.random.default_rng(0).laplace(size=(40_000, 3))
    heights = product[:, 0] / np.linalg.norm(product, axis=1)
    assert stats.kstest(heights, "uniform", args=(-1, 2)).pvalue < CAUGHT


# --- the random variance, against mpmath on the same bytes ---------------------------------


def mp_chi(degrees, record):
    """Return T from the recorded bytes with 300 digits."""
    draws = [int.from_bytes(record[i : i + 32], "little") for i in range(0, len(record), 32)]
    with mpmath.workdps(300):
        uniform = [(mpmath.mpf(v) + 0.5) / mpmath.mpf(2) ** 256 for v in draws]
        pairs = degrees // 2
        square = -2 * mpmath.fsum(mpmath.log(u) for u in uniform[:pairs])
        if degrees % 2:
            a, b = uniform[-2:]
            square += a**2 / (a**2 + b**2) * -2 * mpmath.log(a**2 + b**2)
        return mpmath.sqrt(square)


def chi_error(degrees, source):
    """Return the relative error of T."""
    drawn = module._draw_chi(degrees, source)
    with mpmath.workdps(300):
        ideal = mp_chi(degrees, source.record)
        return abs(mpmath.mpf(drawn.numerator) / drawn.denominator / ideal - 1)


@pytest.mark.parametrize("degrees", [2, 3, 4, 7, 100, 2001])
def test_random_scale_has_more_than_300_bits(degrees, monkeypatch):
    """Also for uniforms next to one. Planted: double precision."""
    sources = [Script(rest=seeded(i)) for i in range(3 if degrees < 200 else 1)]
    if degrees % 2 == 0:  # an odd one draws until it accepts
        sources.append(Script(rest=Constant(255)))
    assert max(chi_error(degrees, source) for source in sources) < 2.0**-300
    monkeypatch.setattr(module, "_MANTISSA_BITS", 53)
    assert chi_error(degrees, Script()) > 2.0**-300


def test_a_tiny_radius_is_released_without_fail(monkeypatch):
    for radius in (Fraction(1, 2**128), Fraction(1, 2**40), Fraction(20)):
        monkeypatch.setattr(module, "_draw_chi", lambda degrees, source, t=radius: t)
        value = np.array([0.0, 0.3, 1e9, 0.5 * 2.0**-20, np.nan])
        released = l2_laplace(value, 1.0, source=seeded())
        grid = grid_of(math.sqrt(5))
        assert np.all(released / grid == np.rint(released / grid))
        allowed = 10 * float(radius) + grid
        assert np.all(np.abs(released - np.where(np.isnan(value), 0, value)) < allowed)


def test_outputs_are_the_same_on_every_platform():
    source = SeededBytes(0, "golden")
    steps = l2_laplace([0.1, -2.0], 1.0, source=source) / grid_of(math.sqrt(2))
    assert [int(s) for s in steps] == [1490277, 620546]
