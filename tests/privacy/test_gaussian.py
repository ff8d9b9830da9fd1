"""The law, the low bits and the exactness of the rounded Gaussian."""

import math
import multiprocessing
import os
import warnings
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from scipy.special import ndtr, ndtri

from dp_halfspace.privacy import gaussian
from dp_halfspace.privacy.gaussian import gaussian_on_grid, rounded_gaussian
from dp_halfspace.privacy.randomness import SeededBytes

FALSE_ALARM = 1e-6
CAUGHT = 1e-12


class Script:
    """Given 64-bit words first, a seeded stream afterwards; remembers everything read."""

    kind = "seeded"

    def __init__(self, words, seed=0):
        self.script = b"".join(int(word).to_bytes(8, "little") for word in words)
        self.stream = SeededBytes(seed, "script")
        self.record = b""

    def read(self, n):
        head, self.script = self.script[:n], self.script[n:]
        out = head + self.stream.read(n - len(head))
        self.record += out
        return out


def seeded(seed=0):
    return SeededBytes(seed, "test")


def grid_of(sigma, grid_bits=20):
    return 2.0 ** (math.floor(math.log2(sigma)) - grid_bits)


def naive_gaussian(value, sigma, seed=0):
    """Planted bug: the textbook floating-point mechanism."""
    value = np.asarray(value)
    return value + np.random.default_rng(seed).normal(0.0, sigma, value.shape)


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


@given(WORDS, VALUES, SIGMAS, GRID_BITS)
def test_every_draw_is_the_correctly_rounded_one(word, value, sigma, grid_bits):
    assert not disagreement(word, value, sigma, grid_bits)


@given(VALUES, SIGMAS, GRID_BITS, st.floats(-4, 4), st.integers(-3, 3))
def test_draws_next_to_a_boundary_are_correctly_rounded(value, sigma, grid_bits, z, nudge):
    steps = round(z * sigma / grid_of(sigma, grid_bits))
    word = borderline_word(value, sigma, grid_bits, steps, nudge)
    assert not disagreement(word, value, sigma, grid_bits)


@pytest.mark.parametrize("word", range(8))
@pytest.mark.parametrize("grid_bits", [0, 20, 36])
def test_extreme_cells_go_to_the_exact_branch(word, grid_bits):
    source = Script([word])
    rounded_gaussian(0.3, 1.7, source=source, grid_bits=grid_bits)
    assert len(source.record) > 8
    assert not disagreement(word, 0.3, 1.7, grid_bits)


def test_planted_bound_without_the_extreme_cells_is_caught(monkeypatch):
    # 1/(V - 1/2) is negative at V = 0, where nothing is certain.
    def printed(cells, shift, total, spread):
        cells = np.asarray(cells, dtype=np.float64)
        size = np.abs(shift)
        return (
            2.0**-44 * (spread + size)
            + spread / (cells - 0.5)
            + (np.abs(total) + size + spread) * 2.0**-50
        )

    monkeypatch.setattr(gaussian, "_error_bound", printed)
    assert disagreement(0, 0.3, 1.7, 20)


def borderline_failures(trials=20):
    """Count wrong draws among draws one cell from a boundary."""
    steps = np.linspace(-2.0, 2.0, trials) * 2.0**20
    words = [(borderline_word(0.3, 1.7, 20, round(s), i % 3 - 1), 0.3) for i, s in enumerate(steps)]
    return sum(disagreement(word, value, 1.7, 20) for word, value in words)


def test_planted_missing_exact_branch_is_caught(monkeypatch):
    assert borderline_failures() == 0
    monkeypatch.setattr(gaussian, "_error_bound", lambda *args: np.zeros(np.shape(args[0])))
    assert borderline_failures() > 0


# --- the two branches ----------------------------------------------------------------------


@pytest.mark.parametrize("grid_bits", [0, 20, 36])
@pytest.mark.parametrize("value", [0.0, 0.1])
def test_fast_branch_equals_exact_branch(monkeypatch, grid_bits, value):
    values = np.full(500, value)
    fast = rounded_gaussian(values, 2.7, source=seeded(), grid_bits=grid_bits)
    calls = []
    exact_steps = gaussian._exact_steps
    monkeypatch.setattr(gaussian, "_NDTRI_ERROR", 1.0)
    monkeypatch.setattr(
        gaussian, "_exact_steps", lambda *args: calls.append(1) or exact_steps(*args)
    )
    gaussian._noise.cache_clear()
    exact = rounded_gaussian(values, 2.7, source=seeded(), grid_bits=grid_bits)
    gaussian._noise.cache_clear()
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
    values = np.full(4000, 0.1)
    expected = rounded_gaussian(values, 2.7, source=seeded(), grid_bits=36)
    monkeypatch.setattr(gaussian, "ndtri", bad_ndtri(0.99 * 2.0**-44))
    np.testing.assert_array_equal(
        rounded_gaussian(values, 2.7, source=seeded(), grid_bits=36), expected
    )
    monkeypatch.setattr(gaussian, "ndtri", bad_ndtri(2.0**-40))
    assert np.any(rounded_gaussian(values, 2.7, source=seeded(), grid_bits=36) != expected)


def test_exact_branch_is_as_rare_as_claimed(monkeypatch):
    calls = []
    exact_steps = gaussian._exact_steps
    monkeypatch.setattr(
        gaussian, "_exact_steps", lambda *args: calls.append(1) or exact_steps(*args)
    )
    rounded_gaussian(np.zeros(10_000), 2.0, source=seeded(), grid_bits=36)
    assert 50 < len(calls) < 500
    calls.clear()
    rounded_gaussian(np.zeros(400_000), 2.0, source=seeded())
    assert len(calls) < 10


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
    bound = float(gaussian._error_bound(np.array([cell]), shift, total, spread)[0])
    if cell < 2:
        assert bound == math.inf
        return
    with mpmath.workdps(60):
        exact_ratio = mpmath.mpf(ratio.numerator) / ratio.denominator
        for end in (cell, cell + 1):
            ideal = mpmath.mpf(offset) - exact_ratio * mp_quantile(end, 64)
            assert abs(ideal - mpmath.mpf(float(total[0]))) <= bound


def test_bound_of_common_draws_covers_them():
    cells = 2.0 ** np.arange(46, 63)
    for spread in (2.0**-108, 1.0, 2.0**20.5, 2.0**36.9):
        shift = spread * ndtri((cells + 0.5) * 2.0**-64)
        own = gaussian._error_bound(cells, shift, np.abs(shift) + 0.5, spread)
        far = gaussian._COMMON_Z * spread
        assert np.all(own <= gaussian._error_bound(gaussian._COMMON_CELLS, far, far + 1.0, spread))


def test_hazard_rate_of_the_normal_law():
    # phi(z) / P(Z > z) >= 0.797 for z >= 0: the width of a cell in z.
    for z in np.linspace(0, 30, 200):
        x = mpmath.mpf(float(z))
        assert mpmath.npdf(x) / (mpmath.erfc(x / mpmath.sqrt(2)) / 2) >= 0.797


def ndtri_excess(function):
    """Return the largest error over ``2**-44 (1 + |z|)``, tails to ``2**-65``."""
    rng = np.random.default_rng(0)
    branches = [math.exp(-2), math.exp(-32), 2.0**-65, 0.5]
    near = [b * (1 + s * 2.0**-k) for b in branches for k in (10, 30, 50) for s in (-1, 1)]
    points = np.concatenate(
        [2.0 ** -rng.uniform(1, 65, 1200), rng.uniform(0, 0.5, 800), near, branches]
    )
    points = points[(points > 0) & (points <= 0.5)]
    # Lengths and offsets of the array must not matter either (vector instructions).
    values = np.concatenate([function(points[:7]), function(points[7:])])
    worst = 0.0
    with mpmath.workdps(50):
        for p, z in zip(points, values, strict=True):
            x = mpmath.mpf(float(z))
            error = (mpmath.erfc(-x / mpmath.sqrt(2)) / 2 - mpmath.mpf(float(p))) / mpmath.npdf(x)
            worst = max(worst, float(abs(error) / (1 + abs(x))))
    return worst / 2.0**-44


def test_assumption_on_ndtri_holds_on_this_platform():
    assert ndtri_excess(ndtri) < 1 / 16
    assert ndtri_excess(bad_ndtri(2.0**-43)) > 1  # the check sees a worse ndtri


# --- the law -------------------------------------------------------------------------------


def law_pvalue(draw, sigma=2.0):
    """Kolmogorov-Smirnov test of noise at 0."""
    return stats.kstest(draw / sigma, "norm").pvalue


def rounded_law_pvalue(mechanism, value, sigma, grid, n):
    """Chi-square test of the exact cell probabilities of ``Q_g(value + sigma Z)``."""
    steps = np.rint(mechanism(np.full(n, value)) / grid).astype(int)
    centre, reach = round(value / grid), math.ceil(3.5 * sigma / grid)
    labels = np.clip(steps - centre, -reach, reach) + reach
    edges = ((centre + np.arange(-reach, reach) + 0.5) * grid - value) / sigma
    probabilities = np.diff(np.concatenate([[0.0], ndtr(edges), [1.0]]))
    counts = np.bincount(labels, minlength=2 * reach + 1)
    return stats.chisquare(counts, probabilities * n).pvalue


def test_law_is_normal():
    draw = rounded_gaussian(np.zeros(300_000), 2.0, source=seeded())
    assert law_pvalue(draw) > FALSE_ALARM
    assert law_pvalue(draw / 1.03) < CAUGHT  # sigma 3 % too small
    assert law_pvalue(draw + 0.04) < CAUGHT


@pytest.mark.parametrize("value", [0.0, 0.3, 0.5, -7.25, 1e6 + 0.1])
@pytest.mark.parametrize("grid_bits", [0, 1, 3])
def test_law_on_a_coarse_grid(value, grid_bits):
    def mechanism(values):
        return rounded_gaussian(values, 1.9, source=seeded(1), grid_bits=grid_bits)

    grid = grid_of(1.9, grid_bits)
    assert rounded_law_pvalue(mechanism, value, 1.9, grid, 100_000) > FALSE_ALARM


def test_planted_rounding_before_the_noise_is_caught():
    def round_first(values):
        return rounded_gaussian(np.rint(values), 1.9, source=seeded(1), grid_bits=0)

    def half_sigma(values):
        return rounded_gaussian(values, 0.95, source=seeded(1), grid_bits=0)

    assert rounded_law_pvalue(round_first, 0.3, 1.9, 1.0, 100_000) < CAUGHT
    assert rounded_law_pvalue(half_sigma, 0.3, 1.9, 1.0, 100_000) < CAUGHT


def test_coordinates_are_independent():
    draw = rounded_gaussian(np.zeros((50_000, 4)), 1.0, source=seeded(2))
    correlation = np.corrcoef(draw.T)[np.triu_indices(4, 1)]
    assert np.max(np.abs(correlation)) * math.sqrt(50_000) < 5.5
    assert stats.kstest(np.sum(draw**2, axis=1), "chi2", args=(4,)).pvalue > FALSE_ALARM


# --- low-order bits ------------------------------------------------------------------------


def off_grid(draw, grid):
    return np.mean(np.asarray(draw) != np.rint(np.asarray(draw) / grid) * grid)


def low_bit_pvalue(draw, grid, bits=8):
    """Test that the low bits of the grid index are uniform."""
    index = np.rint(draw / grid).astype(np.int64) & (2**bits - 1)
    return stats.chisquare(np.bincount(index, minlength=2**bits)).pvalue


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 0.1 + 2.0**-30, 1 / 3, 1e5 + 0.7])
def test_low_bits_do_not_depend_on_the_value(value):
    grid = grid_of(2.0)
    draw = rounded_gaussian(np.full(200_000, value), 2.0, source=seeded(3))
    assert off_grid(draw, grid) == 0
    assert off_grid(draw, 2 * grid) > 0.4
    assert low_bit_pvalue(draw, grid) > FALSE_ALARM


def certain_zero(draw):
    """Fraction of draws that prove the value was 0, not 1.

    ``fl(1 + n)`` below 1/4 is a multiple of ``2**-53``; ``fl(0 + n)`` need not be.
    """
    near = draw[np.abs(draw) < 0.25]
    return np.mean(near != np.rint(near * 2.0**53) / 2.0**53)


def reachable(draw, value):
    """Return which outputs are ``fl(value + n)`` for some float ``n`` (Mironov 2012)."""
    noise = draw - value
    hit = noise + value == draw
    for towards in (-np.inf, np.inf):
        neighbour = noise
        for _ in range(4):
            neighbour = np.nextafter(neighbour, towards)
            hit |= neighbour + value == draw
    return hit


def test_reachable_sets_are_the_same_for_all_values():
    zeros, ones = np.zeros(100_000), np.ones(100_000)
    for values in (zeros, ones, zeros + 0.1):
        draw = rounded_gaussian(values, 2.0, source=seeded(4))
        assert certain_zero(draw) == 0
        for candidate in (0.0, 1.0):
            assert reachable(draw, candidate).all()


def test_the_attack_works_on_floating_point_noise():
    draw = naive_gaussian(np.zeros(100_000), 2.0)
    assert certain_zero(draw) > 0.5
    assert np.mean(~reachable(draw, 1.0)) > 0.01
    assert reachable(draw, 0.0).all()
    assert off_grid(draw, grid_of(2.0)) > 0.99


# --- arguments -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [0.5, np.float32(0.5), 3, np.array(0.5), [1, 2, 3], np.zeros((2, 3, 4)), np.zeros((0, 5))],
    ids=repr,
)
def test_shape_and_type(value):
    released = rounded_gaussian(value, 1.0)
    assert isinstance(released, np.ndarray)
    assert released.shape == np.shape(value)
    assert released.dtype == np.float64


def test_input_is_not_modified_and_order_is_kept():
    value = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    before = value.copy()
    released = rounded_gaussian(value, 2.0**-20, source=seeded())
    np.testing.assert_array_equal(value, before)
    np.testing.assert_array_equal(np.rint(released), before)
    assert not np.shares_memory(released, value)


@given(
    hnp.arrays(np.float64, hnp.array_shapes(min_dims=0, max_dims=2), elements=st.floats(width=64)),
    st.one_of(
        st.floats(2.0**-900, 2.0**900), st.sampled_from([2.0**-900, 2.0**900, 1.0, 5e-200, 1e200])
    ),
    GRID_BITS,
)
def test_no_value_raises_or_warns(value, sigma, grid_bits):
    grid = math.ldexp(1.0, math.frexp(sigma)[1] - 1 - grid_bits)
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        released = rounded_gaussian(value, sigma, source=seeded(), grid_bits=grid_bits)
    steps = released / grid
    assert np.all(np.isfinite(released))
    assert np.all(steps == np.rint(steps))
    assert np.all(np.abs(steps) <= 2.0**52)


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


def test_scipy_error_settings_do_not_matter():
    with scipy.special.errstate(all="raise"):
        assert rounded_gaussian(np.zeros(20_000), 1.0, source=Script([0, 1, 2])).shape == (20_000,)


BAD_SCALES = [0, 0.0, -1.0, math.nan, math.inf, -math.inf, 2.0**-901, 2.0**901, True, "1", None, 1j]


@pytest.mark.parametrize(
    "sigma", [*BAD_SCALES, Fraction(10) ** 400, np.array([1.0, 2.0])], ids=repr
)
def test_bad_sigma_is_refused(sigma):
    with pytest.raises(ValueError, match="sigma must be"):
        rounded_gaussian(0.0, sigma)


@pytest.mark.parametrize("grid_bits", [-1, 37, 20.0, True, None, "20"])
def test_bad_grid_bits_are_refused(grid_bits):
    with pytest.raises(ValueError, match="grid_bits must be an int from 0 to 36"):
        rounded_gaussian(0.0, 1.0, grid_bits=grid_bits)


def test_rational_sigma_of_the_internal_function_is_exact():
    # A third of a grid step is not a float; compare with real arithmetic on the same bits.
    for seed in range(10):
        source = Script([], seed)
        step = gaussian_on_grid(0.3, Fraction(10**30, 3), 60, source) / 2.0**60
        with mpmath.workdps(60):
            sigma = mpmath.mpf(10) ** 30 / 3
        assert ideal_steps(source.record, 0.3, sigma, 2.0**60) == {int(step)}


# --- randomness ----------------------------------------------------------------------------


def test_same_bytes_same_output_and_fresh_bytes_fresh_output():
    value = np.linspace(-1, 1, 10_000)
    first = rounded_gaussian(value, 0.7, source=seeded(8))
    np.testing.assert_array_equal(first, rounded_gaussian(value, 0.7, source=seeded(8)))
    assert np.mean(first == rounded_gaussian(value, 0.7, source=seeded(9))) < 0.01
    assert np.mean(rounded_gaussian(value, 0.7) == rounded_gaussian(value, 0.7)) < 0.01


def zero_signs():
    """Signs of the released zeros of values on both sides of zero, on a coarse grid."""
    values = np.repeat([0.0, -0.0, 0.3, -0.3, 1e-300, -1e-300], 200)
    released = rounded_gaussian(values, 1.0, source=SeededBytes(0, "zeros"), grid_bits=0)
    zeros = released[released == 0.0]
    assert zeros.size > 100
    return np.signbit(zeros)


def test_a_released_zero_has_one_sign():
    assert not zero_signs().any()


def test_sign_test_sees_minus_zero(monkeypatch):
    """Planted: zeros keep the sign of what was rounded."""
    honest = np.add
    keep = lambda a, b, **rest: a if np.isscalar(b) and b == 0.0 else honest(a, b, **rest)  # noqa: E731
    monkeypatch.setattr(gaussian.np, "add", keep)
    assert 0.1 < zero_signs().mean() < 0.9


def test_outputs_are_the_same_on_every_platform():
    steps = rounded_gaussian([0.1, -2.0, 1e4], 1.0, source=SeededBytes(0, "golden"), grid_bits=36)
    assert [int(s) for s in steps * 2.0**36] == [58492977175, -156624796379, 687223187088086]


def draw_in_child(seed):
    del seed
    return tuple(rounded_gaussian(np.zeros(3), 1.0).tolist())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_workers_do_not_repeat_noise():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        draws = pool.map(draw_in_child, range(8), chunksize=1)
    draws.append(draw_in_child(0))
    assert len(set(draws)) == 9
