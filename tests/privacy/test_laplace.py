"""The law of L2-Laplace noise, the digits of its random variance, and its low bits."""

import math
import warnings
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from dp_halfspace.privacy import laplace
from dp_halfspace.privacy.laplace import l2_laplace
from dp_halfspace.privacy.randomness import SeededBytes

FALSE_ALARM = 1e-6
CAUGHT = 1e-12


def seeded(seed=0):
    return SeededBytes(seed, "test")


def grid_of(scale, dimension):
    return 2.0 ** (math.floor(math.log2(scale * math.sqrt(dimension))) - 20)


class Recorded:
    """A seeded stream that remembers what was read."""

    kind = "seeded"

    def __init__(self, seed):
        self.stream = seeded(seed)
        self.record = b""

    def read(self, n):
        out = self.stream.read(n)
        self.record += out
        return out


def noise(dimension, scale, count, seed=0):
    source = seeded(seed)
    return np.array([l2_laplace(np.zeros(dimension), scale, source=source) for _ in range(count)])


def norm_pvalue(draws, dimension, scale):
    """Kolmogorov-Smirnov test of the norm against Gamma(dimension, scale)."""
    norms = np.linalg.norm(draws, axis=1)
    return stats.kstest(norms, "gamma", args=(dimension, 0, scale)).pvalue


@pytest.mark.parametrize("dimension", [1, 2, 5, 50])
def test_norm_is_gamma(dimension):
    draws = noise(dimension, 1.5, 1200, seed=dimension)
    assert norm_pvalue(draws, dimension, 1.5) > FALSE_ALARM
    assert norm_pvalue(draws, dimension, 3.0) < CAUGHT  # half the scale
    correlated = abs(np.corrcoef(draws[:, 0], draws[:, -1])[0, 1]) * math.sqrt(1200)
    assert dimension == 1 or correlated < 6


def test_planted_wrong_degrees_of_freedom_are_caught(monkeypatch):
    chi = laplace._chi_variate
    monkeypatch.setattr(laplace, "_chi_variate", lambda degrees, source: chi(degrees + 1, source))
    assert norm_pvalue(noise(2, 1.5, 1500), 2, 1.5) < CAUGHT


def test_one_coordinate_is_laplace():
    draws = noise(1, 0.7, 4000, seed=1)[:, 0]
    assert stats.kstest(draws, "laplace", args=(0, 0.7)).pvalue > FALSE_ALARM
    assert stats.kstest(draws, "norm", args=(0, 0.7 * math.sqrt(2))).pvalue < CAUGHT


def test_direction_is_uniform_and_independent_of_the_norm():
    draws = noise(3, 2.0, 1500, seed=2)
    norms = np.linalg.norm(draws, axis=1)
    # Archimedes: a coordinate of a uniform point on the sphere is uniform.
    for axis in range(3):
        height = draws[:, axis] / norms
        assert stats.kstest(height, "uniform", args=(-1, 2)).pvalue > FALSE_ALARM
        assert abs(stats.spearmanr(height, norms)[0]) * math.sqrt(1500) < 6
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


def chi_error(degrees, seed):
    """Return the relative error of T."""
    source = Recorded(seed)
    drawn = laplace._chi_variate(degrees, source)
    with mpmath.workdps(300):
        ideal = mp_chi(degrees, source.record)
        return abs(mpmath.mpf(drawn.numerator) / drawn.denominator / ideal - 1)


@pytest.mark.parametrize("degrees", [2, 3, 4, 7, 100, 2001])
def test_random_scale_has_more_than_300_bits(degrees):
    assert max(chi_error(degrees, seed) for seed in range(3)) < 2.0**-300


def test_planted_double_precision_scale_is_caught(monkeypatch):
    monkeypatch.setattr(laplace, "_MANTISSA_BITS", 53)
    assert chi_error(100, 0) > 2.0**-300


def test_a_uniform_next_to_one_keeps_its_digits():
    class Ones:
        kind = "seeded"

        def read(self, n):
            return b"\xff" * n

    drawn = laplace._chi_variate(2, Ones())
    with mpmath.workdps(300):
        ideal = mpmath.sqrt(-2 * mpmath.log1p(-(mpmath.mpf(2) ** -257)))
        assert abs(mpmath.mpf(drawn.numerator) / drawn.denominator / ideal - 1) < 2.0**-300


def test_a_tiny_radius_is_released_without_fail(monkeypatch):
    for radius in (Fraction(1, 2**128), Fraction(1, 2**40), Fraction(20)):
        monkeypatch.setattr(laplace, "_chi_variate", lambda degrees, source, t=radius: t)
        value = np.array([0.0, 0.3, 1e9, 0.5 * 2.0**-20, np.nan])
        released = l2_laplace(value, 1.0, source=seeded())
        grid = grid_of(1.0, 5)
        assert np.all(released / grid == np.rint(released / grid))
        allowed = 10 * float(radius) + grid
        assert np.all(np.abs(released - np.where(np.isnan(value), 0, value)) < allowed)


# --- low-order bits ------------------------------------------------------------------------


def laplace_reachable(outputs, value, scale):
    """Return which outputs ``value + scale * sign * log(u)`` can give, u in 2**-53 steps.

    The inverse-CDF attack of Mironov (2012), section 4.
    """
    hit = np.zeros(outputs.size, dtype=bool)
    with np.errstate(all="ignore"):
        magnitude = np.abs(outputs - value) / scale
        centre = np.rint(np.exp(-magnitude) * 2.0**53)
        sign = np.sign(outputs - value)
        for step in range(-4, 5):
            u = np.clip(centre + step, 1, 2.0**53) * 2.0**-53
            hit |= value - sign * (scale * np.log(u)) == outputs
    return hit


def test_reachable_sets_of_a_float_laplace_differ():
    rng = np.random.default_rng(0)
    u = rng.integers(1, 2**53, 20_000) * 2.0**-53
    outputs = 0.0 - rng.choice([-1.0, 1.0], u.size) * (2.0 * np.log(u))
    assert np.mean(laplace_reachable(outputs, 0.0, 2.0)) > 0.5
    assert np.mean(laplace_reachable(outputs, 1.0, 2.0)) < 0.45


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1])
def test_outputs_stay_on_one_public_grid(value):
    for dimension in (1, 4, 1000):
        grid = grid_of(2.0, dimension)
        draws = np.concatenate(
            [l2_laplace(np.full(dimension, value), 2.0, source=seeded(s)) for s in range(100)]
        )
        assert np.all(draws / grid == np.rint(draws / grid))
        assert np.mean(draws / (2 * grid) != np.rint(draws / (2 * grid))) > 0.25


def test_low_bits_do_not_depend_on_the_value():
    for value in (0.0, 1.0, 0.1, 0.1 + 2.0**-30):
        draws = np.concatenate(
            [l2_laplace(np.full(1000, value), 2.0, source=seeded(s)) for s in range(50)]
        )
        index = np.rint(draws / grid_of(2.0, 1000)).astype(np.int64) & 255
        assert stats.chisquare(np.bincount(index, minlength=256)).pvalue > FALSE_ALARM
    naive = np.random.default_rng(0).laplace(0.0, 2.0, 50_000)
    assert np.mean(naive != np.rint(naive * 2.0**20) / 2.0**20) > 0.9


# --- arguments -----------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.5, np.array(0.5), [1, 2], np.zeros((2, 3)), np.zeros((0, 2))])
def test_shape_and_type(value):
    released = l2_laplace(value, 1.0)
    assert released.shape == np.shape(value)
    assert released.dtype == np.float64


@given(
    hnp.arrays(np.float64, hnp.array_shapes(min_dims=0, max_dims=2), elements=st.floats(width=64)),
    st.one_of(st.floats(2.0**-900, 2.0**900), st.sampled_from([2.0**-900, 2.0**900])),
)
def test_no_value_raises_or_warns(value, scale):
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        released = l2_laplace(value, scale, source=seeded())
    assert np.all(np.isfinite(released))


@pytest.mark.parametrize(
    "scale", [0.0, -1.0, math.nan, math.inf, 2.0**-901, 2.0**901, True, "1", None]
)
def test_bad_scale_is_refused(scale):
    with pytest.raises(ValueError, match="scale must be"):
        l2_laplace(np.zeros(2), scale)


def test_same_bytes_same_output_and_fresh_bytes_fresh_output():
    value = np.zeros(100)
    first = l2_laplace(value, 1.0, source=seeded(3))
    np.testing.assert_array_equal(first, l2_laplace(value, 1.0, source=seeded(3)))
    assert np.mean(l2_laplace(value, 1.0) == l2_laplace(value, 1.0)) < 0.1


def test_outputs_are_the_same_on_every_platform():
    steps = l2_laplace([0.1, -2.0], 1.0, source=SeededBytes(0, "golden")) / grid_of(1.0, 2)
    assert [int(s) for s in steps] == [1490277, 620546]


@pytest.mark.parametrize("bits", [-1, 31, 2.0])
def test_grid_outside_its_range_is_refused(bits):
    with pytest.raises(ValueError, match="grid_bits"):
        l2_laplace(np.zeros(3), 1.0, grid_bits=bits)
