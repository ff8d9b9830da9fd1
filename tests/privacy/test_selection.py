"""Selection probabilities against enumeration; exactness of every accepted trial."""

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

from dp_halfspace.privacy import _exact, selection
from dp_halfspace.privacy.randomness import SeededBytes
from dp_halfspace.privacy.selection import exponential_mechanism

FALSE_ALARM = 1e-6
CAUGHT = 1e-12


def seeded(seed=0):
    return SeededBytes(seed, "test")


class Script:
    """Given 64-bit words first, a seeded stream afterwards; remembers everything read."""

    kind = "seeded"

    def __init__(self, words):
        self.script = b"".join(int(word).to_bytes(8, "little") for word in words)
        self.stream = seeded(1)
        self.record = b""

    def read(self, n):
        head, self.script = self.script[:n], self.script[n:]
        out = head + self.stream.read(n - len(head))
        self.record += out
        return out


def exponential_probabilities(utilities, epsilon, sensitivity):
    """Return the probabilities of the exponential mechanism in mpmath."""
    with mpmath.workdps(50):
        rate = mpmath.mpf(float(epsilon)) / (2 * mpmath.mpf(float(sensitivity)))
        weights = [mpmath.exp(rate * (mpmath.mpf(float(u)) - max(utilities))) for u in utilities]
        return np.array([float(w / mpmath.fsum(weights)) for w in weights])


def frequency_pvalue(utilities, epsilon, sensitivity=1.0, *, claim=None, draws=3000):
    """Chi-square test of the frequencies against the law at ``claim = (epsilon, sensitivity)``."""
    source = seeded(5)
    picks = [
        exponential_mechanism(utilities, epsilon, sensitivity=sensitivity, source=source)
        for _ in range(draws)
    ]
    counts = np.bincount(picks, minlength=len(utilities))
    law = exponential_probabilities(utilities, *(claim or (epsilon, sensitivity)))
    likely = law * draws >= 5
    if likely.all():
        return stats.chisquare(counts, law * draws).pvalue
    merged = np.append(counts[likely], counts[~likely].sum())
    expected = np.append(law[likely], law[~likely].sum()) * draws
    return stats.chisquare(merged, np.maximum(expected, 1e-9)).pvalue


CASES = [
    ([0.0, 1.0, 2.0], 1.0, 1.0),
    ([0.0, 0.0, 0.0, 0.0, 0.0], 3.0, 1.0),
    ([5, 5, 4, 1], 1.5, 0.5),
    ([-1e300, 0.0, 1.0, 1.0], 1.0, 1.0),
    ([0.3, 0.1, -0.7, 0.2, 1e-9, 0.3], 4.0, 0.25),
    (np.array([3, 1, 2], dtype=np.int8), 1.0, 1.0),
    (np.float32([0.5, 0.25]), 2.0, 1.0),
    ([1e16, 1e16 + 2.0], 1.0, 1.0),
]


@pytest.mark.parametrize(("utilities", "epsilon", "sensitivity"), CASES)
def test_frequencies_match_enumeration(utilities, epsilon, sensitivity):
    assert frequency_pvalue(utilities, epsilon, sensitivity) > FALSE_ALARM


def test_planted_factor_two_is_caught():
    utilities = [0.0, 1.0, 2.0, 3.0]
    assert frequency_pvalue(utilities, 2.0, claim=(1.0, 1.0)) < CAUGHT
    assert frequency_pvalue(utilities, 1.0, 2.0, claim=(1.0, 1.0)) < CAUGHT


@pytest.mark.slow
def test_frequencies_at_length():
    utilities = np.linspace(0, 4, 7)
    assert frequency_pvalue(utilities, 1.3, draws=60_000) > FALSE_ALARM


# --- exactness of one trial ----------------------------------------------------------------


def flip_disagrees(word, utility, best, epsilon):
    """Return whether one flip differs from ``U < exp(-gap)`` on the bits that were read."""
    source = Script([word])
    candidates = selection._checked_candidates([utility, best], epsilon, 1.0)
    accepted = bool(selection._flips(candidates, np.array([0]), source)[0])
    cell, bits = 0, 0
    for start in range(0, len(source.record), 8):
        cell = cell << 64 | int.from_bytes(source.record[start : start + 8], "little")
        bits += 64
    with mpmath.workdps(250):
        gap = (mpmath.mpf(best) - mpmath.mpf(utility)) * mpmath.mpf(epsilon) / 2
        edge = mpmath.exp(-gap) * mpmath.mpf(2) ** bits
        return not (cell + 1 <= edge if accepted else cell >= edge)


def borderline_word(utility, best, epsilon, nudge):
    with mpmath.workdps(60):
        gap = (mpmath.mpf(best) - mpmath.mpf(utility)) * mpmath.mpf(epsilon) / 2
        edge = int(mpmath.floor(mpmath.exp(-gap) * mpmath.mpf(2) ** 64))
    return min(max(edge + nudge, 0), 2**64 - 1)


@given(
    st.floats(-50, 50),
    st.floats(0, 100),
    st.floats(0.01, 10),
    st.one_of(st.integers(-3, 3), st.integers(-(2**26), 2**26)),
)
def test_borderline_trials_are_decided_exactly(best, gap, epsilon, nudge):
    utility = best - gap
    word = borderline_word(utility, best, epsilon, nudge)
    assert not flip_disagrees(word, utility, best, epsilon)


def test_planted_float_comparison_is_caught(monkeypatch):
    def failures():
        return sum(
            flip_disagrees(borderline_word(-k / 7, 0.0, 1.3, nudge), -k / 7, 0.0, 1.3)
            for k in range(1, 20)
            for nudge in (-1, 0, 1)
        )

    assert failures() == 0
    monkeypatch.setattr(_exact, "THRESHOLD_ERROR", -1.0)
    assert failures() > 0


def test_exact_branch_equals_fast_branch(monkeypatch):
    candidates = selection._checked_candidates(np.linspace(-3, 3, 400), 1.7, 0.9)
    everyone = np.arange(400)
    fast = selection._flips(candidates, everyone, seeded())
    monkeypatch.setattr(_exact, "THRESHOLD_ERROR", 2.0**65)
    np.testing.assert_array_equal(selection._flips(candidates, everyone, seeded()), fast)


def test_any_exp_within_the_assumption_gives_the_same_output(monkeypatch):
    candidates = selection._checked_candidates(np.linspace(-3, 3, 100_000), 1.7, 0.9)
    everyone = np.arange(100_000)
    expected = selection._flips(candidates, everyone, seeded())
    exp, signs = np.exp, np.random.default_rng(0).choice([-1.0, 1.0], 100_000)
    monkeypatch.setattr(np, "exp", lambda x: exp(x) + signs * 0.99 * 2.0**-41)
    np.testing.assert_array_equal(selection._flips(candidates, everyone, seeded()), expected)
    monkeypatch.setattr(np, "exp", lambda x: exp(x) + signs * 2.0**-12)
    assert np.any(selection._flips(candidates, everyone, seeded()) != expected)


def exp_error(function):
    """Return the largest absolute error of ``exp(-x)`` for gaps ``x`` of all sizes."""
    rng = np.random.default_rng(0)
    gaps = np.concatenate(
        [rng.uniform(0, 1, 500), rng.uniform(0, 50, 500), 2.0 ** rng.uniform(-60, 10, 500), [0.0]]
    )
    values = np.concatenate([function(-gaps[:5]), function(-gaps[5:])])
    with mpmath.workdps(40):
        return max(
            float(abs(mpmath.exp(-mpmath.mpf(float(x))) - mpmath.mpf(float(v))))
            for x, v in zip(gaps, values, strict=True)
        )


def test_assumption_on_exp_holds_on_this_platform():
    assert exp_error(np.exp) < 2.0**-51
    assert exp_error(lambda x: np.exp(x) + 2.0**-40) > 2.0**-41


@pytest.mark.parametrize("count", [1, 3, 5, 7, 2**32 + 1])
def test_indices_are_unbiased(count):
    # Words at both ends of the range: the last incomplete multiple of count is dropped.
    words = [0, count - 1, count, 2**64 - 1, 2**64 - 2**64 % count - 1, 2**64 - 2**64 % count]
    words = [w for w in words if w < 2**64]
    kept = selection._uniform_indices(len(words), count, Script(words))
    expected = [w % count for w in words if w < 2**64 - 2**64 % count]
    assert kept.tolist() == expected


# --- extremes and arguments ----------------------------------------------------------------


def test_one_candidate():
    for utility in (0.0, math.nan, math.inf, -math.inf, 1e308):
        assert exponential_mechanism([utility], 1.0) == 0


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_far_better_candidate_is_found_among_many(size):
    utilities = np.zeros(size)
    utilities[size // 3] = 1e308
    assert exponential_mechanism(utilities, 1.0) == size // 3
    utilities = np.arange(size) * 1000
    picked = exponential_mechanism(utilities, 1.0)
    assert picked == size - 1
    assert type(picked) is int


def test_not_finite_scores_never_beat_the_worst_finite_one():
    def picks(utilities):
        source = seeded(7)
        return [exponential_mechanism(utilities, 2.0, source=source) for _ in range(200)]

    plain = picks([0.0, 1.0, 0.0, 0.0, 1.0])
    assert picks([0.0, 1.0, math.nan, -math.inf, math.inf]) == plain
    assert picks([math.nan] * 5) == picks([math.inf] * 5) == picks([0.0] * 5)
    assert picks([math.nan, -math.inf, math.inf, math.nan, 7.0]) == picks([7.0] * 5)


@given(
    hnp.arrays(np.float64, st.integers(1, 30), elements=st.floats(width=64)),
    st.floats(1e-200, 1e200),
)
def test_no_score_raises_or_warns(utilities, epsilon):
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        picked = exponential_mechanism(utilities, epsilon, source=seeded())
    assert 0 <= picked < utilities.size


@pytest.mark.parametrize("bad", [0, -1.0, math.nan, math.inf, True, "1", None])
def test_bad_public_numbers_are_refused(bad):
    with pytest.raises(ValueError, match="epsilon must be a positive finite number"):
        exponential_mechanism([1.0, 2.0], bad)
    with pytest.raises(ValueError, match="sensitivity must be a positive finite number"):
        exponential_mechanism([1.0, 2.0], 1.0, sensitivity=bad)


def test_bad_shapes_and_ratios_are_refused():
    for utilities in ([], 1.0, [[1.0, 2.0]]):
        with pytest.raises(ValueError, match="nonempty 1-d array"):
            exponential_mechanism(utilities, 1.0)
    for epsilon, sensitivity in ((1e300, 1e-300), (1e-300, 1e300)):
        with pytest.raises(ValueError, match="between 2"):
            exponential_mechanism([1.0, 2.0], epsilon, sensitivity=sensitivity)


def test_rational_parameters_are_exact():
    candidates = selection._checked_candidates([0.0, 1.0], Fraction(1, 3), 0.1)
    assert candidates.rate == Fraction(1, 3) / (2 * Fraction(0.1))
    assert exponential_mechanism([0.0, 1.0], Fraction(1, 3)) in (0, 1)


def test_same_bytes_same_output_and_fresh_bytes_fresh_output():
    utilities = np.zeros(10_000)
    assert exponential_mechanism(utilities, 1.0, source=seeded(3)) == exponential_mechanism(
        utilities, 1.0, source=seeded(3)
    )
    assert len({exponential_mechanism(utilities, 1.0) for _ in range(10)}) > 5


def test_utilities_are_not_modified():
    utilities = np.array([1.0, math.nan, math.inf])
    exponential_mechanism(utilities, 1.0)
    assert np.isnan(utilities[1])
    assert utilities[2] == math.inf


def first_reads(utilities):
    """How many random bytes are asked for before the first trial can be decided."""
    sizes, source = [], seeded()

    class Counting:
        kind = "seeded"

        def read(self, n):
            sizes.append(n)
            return source.read(n)

    exponential_mechanism(utilities, 1.0, source=Counting())
    return sizes[:2]


def test_the_number_of_trials_at_a_time_is_public():
    """It depends on the number of candidates, not on how many of them are good."""
    alike, apart = np.zeros(500), -1000.0 * np.arange(500.0)
    assert first_reads(alike)[0] == first_reads(apart)[0] == 8 * 500


def test_that_test_sees_a_number_that_depends_on_the_scores(monkeypatch):
    """Planted: as many trials as there are best candidates."""
    honest = selection._uniform_indices

    def curious(batch, count, source):
        return honest(batch if batch < count else selection._FEWEST_TRIALS, count, source)

    monkeypatch.setattr(selection, "_uniform_indices", curious)
    with pytest.raises(AssertionError):
        test_the_number_of_trials_at_a_time_is_public()
