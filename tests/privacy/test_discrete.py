"""Exact integer samplers against exact probabilities."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dp_halfspace.privacy import discrete
from dp_halfspace.privacy.discrete import bernoulli_exp, discrete_laplace, uniform_below
from dp_halfspace.privacy.randomness import SeededBytes

FALSE_ALARM = 1e-6
CAUGHT = 1e-12


def seeded(seed=0):
    return SeededBytes(seed, "test")


class Bytes:
    """Given bytes, then an error."""

    kind = "seeded"

    def __init__(self, content):
        self.content = content

    def read(self, n):
        if n > len(self.content):
            raise EOFError
        out, self.content = self.content[:n], self.content[n:]
        return out


# --- uniform integers ----------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 7, 100, 128, 200, 256])
def test_every_outcome_has_the_same_number_of_bytes(n):
    counts = dict.fromkeys(range(n), 0)
    for byte in range(256):
        try:
            counts[uniform_below(n, Bytes(bytes([byte])))] += 1
        except EOFError:  # rejected: a second byte is asked for
            continue
    assert len(set(counts.values())) == 1
    assert sum(counts.values()) > 128 or n == 1


def test_two_byte_outcomes_are_equally_likely():
    counts = np.zeros(1000, dtype=int)
    for pair in itertools.product(range(256), repeat=2):
        try:
            counts[uniform_below(1000, Bytes(bytes(pair)))] += 1
        except EOFError:
            continue
    assert np.all(counts == 64)


def test_large_ranges():
    n = 2**300 + 12345
    draws = [uniform_below(n, seeded(s)) for s in range(200)]
    assert all(0 <= draw < n for draw in draws)
    assert stats.kstest([draw / n for draw in draws], "uniform").pvalue > FALSE_ALARM
    assert uniform_below(10**400) != uniform_below(10**400)


@pytest.mark.parametrize("n", [0, -3])
def test_empty_range_is_refused(n):
    with pytest.raises(ValueError, match="n must be at least 1"):
        uniform_below(n)


# --- Bernoulli(exp(-gamma)) ----------------------------------------------------------------


def bernoulli_pvalue(gamma, claimed, trials=8000):
    source = seeded(1)
    hits = sum(bernoulli_exp(gamma, source) for _ in range(trials))
    return stats.binomtest(hits, trials, math.exp(-claimed)).pvalue


@pytest.mark.parametrize(
    "gamma", [Fraction(1, 10**30), Fraction(1, 3), Fraction(9, 10), 1, Fraction(5, 2), 3]
)
def test_bernoulli_exp_frequency(gamma):
    assert bernoulli_pvalue(gamma, gamma) > FALSE_ALARM


def test_planted_wrong_exponents_are_caught():
    assert bernoulli_pvalue(Fraction(1, 2), Fraction(1, 4)) < CAUGHT
    assert bernoulli_pvalue(Fraction(5, 2), Fraction(1, 2)) < CAUGHT


def test_run_length_has_the_probabilities_of_the_series(monkeypatch):
    # P(run >= k) = gamma^k / k!, the terms of exp(-gamma): one uniform integer for each factor.
    gamma, limits = Fraction(3, 7), []

    def record(n, source):
        limits.append(n)
        return 0 if len(limits) < 5 else n - 1

    monkeypatch.setattr(discrete, "uniform_below", record)
    assert bernoulli_exp(gamma)
    assert limits == [7, 14, 21, 28, 35]
    reached = [math.prod(Fraction(3, n) for n in limits[:k]) for k in range(5)]
    assert reached == [gamma**k / math.factorial(k) for k in range(5)]


def test_bernoulli_exp_extremes():
    assert all(bernoulli_exp(0, seeded(s)) for s in range(100))
    assert not any(bernoulli_exp(10**300, seeded(s)) for s in range(100))
    assert not any(bernoulli_exp(Fraction(10**300, 7), seeded(s)) for s in range(100))
    with pytest.raises(ValueError, match="gamma must be nonnegative"):
        bernoulli_exp(Fraction(-1, 2))


# --- discrete Laplace ----------------------------------------------------------------------


def laplace_probabilities(scale, reach):
    """Return P(k) for ``|k| < reach`` and the two tails, by summing the series exactly."""
    k = np.arange(-reach, reach + 1)
    weight = np.exp(-np.abs(k) / float(scale))
    tail = math.exp(-reach / float(scale)) / (1 - math.exp(-1 / float(scale)))
    weight[[0, -1]] = tail
    return weight / weight.sum()


def laplace_pvalue(draws, scale, value=0):
    reach = max(1, math.ceil(3 * scale))
    labels = np.clip(np.array(draws) - value, -reach, reach) + reach
    counts = np.bincount(labels, minlength=2 * reach + 1)
    return stats.chisquare(counts, laplace_probabilities(scale, reach) * len(draws)).pvalue


def sample(scale, count=6000, value=0, seed=2):
    source = seeded(seed)
    return [discrete_laplace(value, scale, source=source) for _ in range(count)]


@pytest.mark.parametrize(
    "scale", [0.3, Fraction(1, 2), 1, 1.5, Fraction(5, 2), 10, np.float32(0.7)]
)
@pytest.mark.parametrize("value", [0, -12])
def test_discrete_laplace_law(scale, value):
    draws = sample(scale, value=value)
    assert laplace_pvalue(draws, scale, value) > FALSE_ALARM


def test_probabilities_of_the_oracle_are_the_closed_form():
    scale = 2.5
    expected = math.tanh(1 / (2 * scale)) * math.exp(-3 / scale)
    assert laplace_probabilities(scale, 20)[20 + 3] == pytest.approx(expected, rel=1e-3)


def test_planted_bugs_are_caught():
    def two_zeros(source):
        # The sign is drawn without refusing minus zero.
        magnitude = abs(discrete_laplace(0, 1.5, source=source))
        while magnitude == 0 and uniform_below(2, source):
            magnitude = abs(discrete_laplace(0, 1.5, source=source))
        return magnitude * (-1) ** uniform_below(2, source)

    source = seeded(3)
    assert laplace_pvalue([two_zeros(source) for _ in range(6000)], 1.5) < CAUGHT
    assert laplace_pvalue(sample(0.75), 1.5) < CAUGHT
    assert laplace_pvalue(np.array(sample(1.5)) + 1, 1.5) < CAUGHT
    rounded = np.rint(np.random.default_rng(0).laplace(0, 1.5, 20_000)).astype(int)
    assert laplace_pvalue(rounded, 1.5) < CAUGHT


@settings(max_examples=60, deadline=None)
@given(
    st.integers(-(10**40), 10**40),
    st.one_of(
        st.floats(min_value=0, exclude_min=True, allow_infinity=False),
        st.fractions(min_value=Fraction(1, 10**20), max_value=10**20),
    ),
)
def test_any_value_and_any_scale(value, scale):
    released = discrete_laplace(value, scale, source=seeded())
    assert type(released) is int
    assert abs(released - value) <= 1 + 200 * Fraction(scale)


def test_values_only_shift_the_output():
    shift = np.array(sample(3.25, 200, value=10**6)) - np.array(sample(3.25, 200))
    assert np.all(shift == 10**6)
    assert discrete_laplace(np.int64(5), 1e-6) == 5


@pytest.mark.parametrize("scale", [0, -1, 0.0, math.nan, math.inf, True, "1", None])
def test_bad_scale_is_refused(scale):
    with pytest.raises(ValueError, match="scale must be a positive finite number"):
        discrete_laplace(0, scale)


def test_same_bytes_same_output_and_fresh_bytes_fresh_output():
    assert sample(50, 20, seed=9) == sample(50, 20, seed=9)
    assert discrete_laplace(0, 2**70) != discrete_laplace(0, 2**70)
