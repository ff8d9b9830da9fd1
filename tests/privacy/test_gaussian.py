"""The distribution, the low bits and the exactness of the rounded Gaussian."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtr, ndtri

from dp_halfspace.privacy import noise
from dp_halfspace.privacy.noise import add_noise, noise_on_grid, rounded_gaussian
from dp_halfspace.privacy.randomness import SeededBytes
from tests.privacy.oracles import CAUGHT, FALSE_ALARM, Script, grid_of, seeded

# --- one draw at a time, against mpmath on the same bits -----------------------------------


def mp_quantile(numerator, bits):
    """Return ``|z|`` with tail probability ``numerator * 2**-bits``, to 60 digits."""
    p = mpmath.mpf(numerator) / mpmath.mpf(2) ** bits
    z = mpmath.mpf(-ndtri(float(p)))
    for _ in range(4):
        tail = mpmath.erfc(z / mpmath.sqrt(2)) / 2
        z += (tail - p) / mpmath.npdf(z)
    return z


def ideal_steps(record, value, sigma, grid):
    """Return the grid points that real arithmetic allows for the bits that were read.

    One point if the bits decide, which they must wherever more bits could be read.
    """
    with mpmath.workdps(180):
        word = int.from_bytes(record[:8], "little")
        cell, bits = word >> 1, 64
        for start in range(8, len(record), 8):
            cell = cell << 64 | int.from_bytes(record[start : start + 8], "little")
            bits += 64
        sign = 1 if word & 1 else -1
        allowed = set()
        for end in (cell, cell + 1):
            if end == 0:
                return {None}
            z = sign * mp_quantile(end, bits)
            x = (mpmath.mpf(value) + mpmath.mpf(sigma) * z) / mpmath.mpf(grid)
            allowed.add(int(mpmath.floor(x + mpmath.mpf("0.5"))))
        return allowed


def disagreement(word, value, sigma, grid_bits):
    """Return whether one draw differs from the ideal mechanism on its own bits."""
    source = Script([word])
    grid = grid_of(sigma, grid_bits)
    step = float(rounded_gaussian(value, sigma, source=source, grid_bits=grid_bits)) / grid
    assert step == int(step)
    return ideal_steps(source.record, value, sigma, grid) != {int(step)}


def borderline_word(value, sigma, grid_bits, steps_from_centre, nudge):
    """Return a word whose draw lies ``nudge`` cells from a rounding boundary."""
    grid = grid_of(sigma, grid_bits)
    with mpmath.workdps(60):
        centre = mpmath.floor(mpmath.mpf(value) / grid + 0.5)
        boundary = (centre + steps_from_centre + mpmath.mpf("0.5")) * grid
        z = (boundary - mpmath.mpf(value)) / mpmath.mpf(sigma)
        cell = int(mpmath.erfc(abs(z) / mpmath.sqrt(2)) / 2 * mpmath.mpf(2) ** 64) + nudge
        return 2 * min(max(cell, 0), 2**63 - 1) + (1 if z > 0 else 0)


WORDS = st.one_of(
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**10),
    st.integers(0, 63).map(lambda k: 2**k),
    st.integers(0, 63).map(lambda k: 2**64 - 1 - 2**k),
)
VALUES = st.floats(-100, 100, allow_subnormal=False)
SIGMAS = st.floats(0.01, 100)
GRID_BITS = st.sampled_from([0, 3, 20, 36])


@given(WORDS, VALUES, SIGMAS, GRID_BITS, st.floats(-4, 4), st.integers(-3, 3))
def test_every_draw_is_the_correctly_rounded_one(word, value, sigma, grid_bits, z, nudge):
    """Any word, and one whose draw lies next to a boundary."""
    assert not disagreement(word, value, sigma, grid_bits)
    steps = round(z * sigma / grid_of(sigma, grid_bits))
    word = borderline_word(value, sigma, grid_bits, steps, nudge)
    assert not disagreement(word, value, sigma, grid_bits)


def test_planted_bound_without_the_extreme_cells_is_caught(monkeypatch):
    """1/(V - 1/2) is negative at V = 0, where nothing is certain."""
    for word in range(8):
        assert not disagreement(word, 0.3, 1.7, 20)

    def printed(cells, shift, total, spread):
        size, cells = np.abs(shift), np.asarray(cells, dtype=np.float64)
        rounding = 2.0**-44 * (spread + size) + (np.abs(total) + size + spread) * 2.0**-50
        return rounding + spread / (cells - 0.5)

    monkeypatch.setattr(noise, "_error_bound", printed)
    assert disagreement(0, 0.3, 1.7, 20)


def borderline_failures(trials=20):
    """Count wrong draws among draws one cell from a boundary."""
    steps = [round(s) for s in np.linspace(-2.0, 2.0, trials) * 2.0**20]
    words = [borderline_word(0.3, 1.7, 20, step, i % 3 - 1) for i, step in enumerate(steps)]
    return sum(disagreement(word, 0.3, 1.7, 20) for word in words)


def test_planted_missing_exact_branch_is_caught(monkeypatch):
    assert borderline_failures() == 0
    monkeypatch.setattr(noise, "_error_bound", lambda *args: np.zeros(np.shape(args[0])))
    assert borderline_failures() > 0


# --- the two branches ----------------------------------------------------------------------


@pytest.mark.parametrize("grid_bits", [0, 20, 36])
def test_fast_branch_equals_exact_branch(monkeypatch, grid_bits):
    values = np.repeat([0.0, 0.1], 250)
    fast = rounded_gaussian(values, 2.7, source=seeded(), grid_bits=grid_bits)
    calls, exact_steps = [], noise._exact_steps
    monkeypatch.setattr(noise, "_NDTRI_ERROR", 1.0)
    monkeypatch.setattr(noise, "_exact_steps", lambda *args: calls.append(1) or exact_steps(*args))
    noise.gaussian_grid.cache_clear()
    exact = rounded_gaussian(values, 2.7, source=seeded(), grid_bits=grid_bits)
    noise.gaussian_grid.cache_clear()
    assert len(calls) == 500
    np.testing.assert_array_equal(fast, exact)


def bad_ndtri(size, seed=0):
    """Return an ndtri with errors of random sign and ``size * (1 + |z|)``."""
    rng = np.random.default_rng(seed)

    def function(p, out=None):
        z = ndtri(p)
        z = z + rng.choice([-1.0, 1.0], np.shape(z)) * size * (1 + np.abs(z))
        if out is None:
            return z
        out[...] = z
        return out

    return function


def test_any_ndtri_within_the_assumption_gives_the_same_output(monkeypatch):
    def draw():
        return rounded_gaussian(np.full(4000, 0.1), 2.7, source=seeded(), grid_bits=36)

    expected = draw()
    monkeypatch.setattr(noise, "ndtri", bad_ndtri(0.99 * 2.0**-44))
    np.testing.assert_array_equal(draw(), expected)
    monkeypatch.setattr(noise, "ndtri", bad_ndtri(2.0**-40))
    assert np.any(draw() != expected)


@given(
    st.integers(1, 2**63 - 1),
    st.integers(0, 62),
    st.floats(-0.5, 0.5),
    st.fractions(Fraction(1, 2**30), 2**37, max_denominator=2**40),
)
def test_error_bound_holds_over_the_whole_cell(cell, shift_right, offset, ratio):
    cell >>= shift_right
    spread = float(ratio)
    shift = spread * ndtri(np.array([(float(cell) + 0.5) * 2.0**-64]))
    total = shift + offset
    bound = float(noise._error_bound(np.array([cell]), shift, total, spread)[0])
    if cell < 2:
        assert bound == math.inf
        return
    with mpmath.workdps(60):
        exact_ratio = mpmath.mpf(ratio.numerator) / ratio.denominator
        for end in (cell, cell + 1):
            ideal = mpmath.mpf(offset) - exact_ratio * mp_quantile(end, 64)
            assert abs(ideal - mpmath.mpf(float(total[0]))) <= bound


def test_error_bound_counts_the_rounding_of_the_sum():
    """With little noise it is larger than the errors of the quantile."""
    cell, spread, offset, worst = 3 * 2**61, 2.0**-30, np.linspace(0.3, 0.4, 50), 0.0
    shift = spread * ndtri((float(cell) + 0.5) * 2.0**-64)
    bound = noise._error_bound(cell, shift, offset + shift, spread)
    with mpmath.workdps(60):
        for start, total, most in zip(offset, offset + shift, bound, strict=True):
            ideal = mpmath.mpf(start) - mpmath.mpf(spread) * mp_quantile(cell, 64)
            worst = max(worst, float(abs(ideal - mpmath.mpf(total)) / most))
    assert 2.0**-8 < worst <= 0.5


def ndtri_excess(function, n):
    """Return the largest error over ``2**-44 (1 + |z|)``, tails to ``2**-65``."""
    rng = np.random.default_rng(0)
    branches = [math.exp(-2), math.exp(-32), 2.0**-65, 0.5]
    near = [b * (1 + s * 2.0**-k) for b in branches for k in (10, 30, 50) for s in (-1, 1)]
    sizes = 2.0 ** -rng.uniform(1, 65, n), rng.uniform(0, 0.5, n // 2)
    points = np.concatenate([*sizes, near, branches])
    points = points[(points > 0) & (points <= 0.5)]
    # Lengths and offsets of the array must not matter either (vector instructions).
    values = np.concatenate([function(points[:7]), function(points[7:])])
    worst = 0.0
    with mpmath.workdps(50):
        for p, z in zip(points, values, strict=True):
            x = mpmath.mpf(float(z))
            error = (mpmath.ncdf(x) - mpmath.mpf(float(p))) / mpmath.npdf(x)
            worst = max(worst, float(abs(error) / (1 + abs(x))))
    return worst / 2.0**-44


def test_assumption_on_ndtri_holds_on_this_platform():
    assert ndtri_excess(ndtri, 800) < 1 / 16
    assert ndtri_excess(bad_ndtri(2.0**-43), 50) > 1  # the check sees a worse ndtri


# --- the distribution ----------------------------------------------------------------------------


def rounded_distribution_pvalue(mechanism, value, sigma, grid, n):
    """Chi-square test of the exact cell probabilities of ``Q_g(value + sigma Z)``."""
    steps = np.rint(mechanism(np.full(n, value)) / grid).astype(int)
    centre, reach = round(value / grid), math.ceil(3.5 * sigma / grid)
    labels = np.clip(steps - centre, -reach, reach) + reach
    edges = ((centre + np.arange(-reach, reach) + 0.5) * grid - value) / sigma
    probabilities = np.diff(np.concatenate([[0.0], ndtr(edges), [1.0]]))
    counts = np.bincount(labels, minlength=2 * reach + 1)
    return stats.chisquare(counts, probabilities * n).pvalue


@pytest.mark.parametrize("value", [0.0, 0.3, 0.5, -7.25, 1e6 + 0.1])
@pytest.mark.parametrize("grid_bits", [0, 1, 3])
def test_distribution_on_a_coarse_grid(value, grid_bits):
    def mechanism(values):
        return rounded_gaussian(values, 1.9, source=seeded(1), grid_bits=grid_bits)

    grid = grid_of(1.9, grid_bits)
    assert rounded_distribution_pvalue(mechanism, value, 1.9, grid, 100_000) > FALSE_ALARM


def test_planted_rounding_before_the_noise_is_caught():
    def round_first(values):
        return rounded_gaussian(np.rint(values), 1.9, source=seeded(1), grid_bits=0)

    def half_sigma(values):
        return rounded_gaussian(values, 0.95, source=seeded(1), grid_bits=0)

    assert rounded_distribution_pvalue(round_first, 0.3, 1.9, 1.0, 100_000) < CAUGHT
    assert rounded_distribution_pvalue(half_sigma, 0.3, 1.9, 1.0, 100_000) < CAUGHT


def test_coordinates_are_normal_and_independent():
    draw = rounded_gaussian(np.zeros((25_000, 4)), 2.0, source=seeded(2)) / 2.0
    for wrong, right in ((draw, True), (draw / 1.06, False), (draw + 0.04, False)):
        pvalue = stats.kstest(wrong.ravel(), "norm").pvalue
        assert pvalue > FALSE_ALARM if right else pvalue < CAUGHT
    correlation = np.corrcoef(draw.T)[np.triu_indices(4, 1)]
    assert np.max(np.abs(correlation)) * math.sqrt(25_000) < 5.5
    assert stats.kstest(np.sum(draw**2, axis=1), "chi2", args=(4,)).pvalue > FALSE_ALARM


# --- arguments -----------------------------------------------------------------------------


def test_nan_counts_as_zero_and_infinity_as_the_bound():
    zero = rounded_gaussian(np.zeros(4), 1.0, source=seeded())
    weird = np.array([np.nan, -0.0, 5e-324, -np.nan])
    np.testing.assert_array_equal(rounded_gaussian(weird, 1.0, source=seeded()), zero)
    bound = 2.0**52 * grid_of(1.0)
    huge = np.array([np.inf, -np.inf, 1e308, -1e308])
    edge = np.array([bound, -bound, bound, -bound])
    released = rounded_gaussian(huge, 1.0, source=seeded())
    np.testing.assert_array_equal(released, rounded_gaussian(edge, 1.0, source=seeded()))
    assert np.all(np.abs(np.abs(released) - bound) < 10.0)


def test_outputs_are_the_same_on_every_platform():
    steps = rounded_gaussian([0.1, -2.0, 1e4], 1.0, source=SeededBytes(0, "golden"), grid_bits=36)
    assert [int(s) for s in steps * 2.0**36] == [58492977175, -156624796379, 687223187088086]


def test_scipy_error_settings_do_not_matter():
    with scipy.special.errstate(all="raise"):
        assert rounded_gaussian(np.zeros(20_000), 1.0, source=Script([0, 1, 2])).shape == (20_000,)


def test_rational_sigma_of_the_internal_function_is_exact():
    # A third of a grid step is not a float; compare with real arithmetic on the same bits.
    for seed in range(10):
        source = Script(rest=seeded(seed))
        step = add_noise(0.3, noise_on_grid(Fraction(10**30, 3), 60), source) / 2.0**60
        with mpmath.workdps(60):
            sigma = mpmath.mpf(10) ** 30 / 3
        assert ideal_steps(source.record, 0.3, sigma, 2.0**60) == {int(step)}


def zero_signs():
    """Signs of the released zeros of values on both sides of zero, on a coarse grid."""
    values = np.repeat([0.0, -0.0, 0.3, -0.3, 1e-300, -1e-300], 200)
    released = rounded_gaussian(values, 1.0, source=seeded(), grid_bits=0)
    zeros = released[released == 0.0]
    assert zeros.size > 100
    return np.signbit(zeros)


def test_a_released_zero_has_one_sign(monkeypatch):
    """Planted: zeros keep the sign of what was rounded."""
    assert not zero_signs().any()
    honest = np.add
    keep = lambda a, b, **rest: a if np.isscalar(b) and b == 0.0 else honest(a, b, **rest)  # noqa: E731
    monkeypatch.setattr(noise.np, "add", keep)
    assert 0.1 < zero_signs().mean() < 0.9
