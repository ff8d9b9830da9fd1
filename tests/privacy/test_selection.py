"""Selection probabilities against enumeration; exactness of every accepted trial."""

import math
import warnings
from fractions import Fraction
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from dp_halfspace.privacy import exponential, noise
from dp_halfspace.privacy.exponential import exponential_mechanism
from tests.privacy.oracles import CAUGHT, FALSE_ALARM, Script, seeded


def exponential_probabilities(utilities, epsilon, sensitivity):
    """Return the probabilities of the exponential mechanism in mpmath."""
    with mpmath.workdps(50):
        rate = mpmath.mpf(float(epsilon)) / (2 * mpmath.mpf(float(sensitivity)))
        weights = [mpmath.exp(rate * (mpmath.mpf(float(u)) - max(utilities))) for u in utilities]
        return np.array([float(w / mpmath.fsum(weights)) for w in weights])


def frequency_pvalue(utilities, epsilon, sensitivity=1.0, *, claim=None, draws=3000):
    """Chi-square test of frequencies against ``claim = (epsilon, sensitivity)``."""
    source, rest = seeded(5), {"sensitivity": sensitivity}
    picks = [exponential_mechanism(utilities, epsilon, source=source, **rest) for _ in range(draws)]
    counts = np.bincount(picks, minlength=len(utilities))
    distribution = exponential_probabilities(utilities, *(claim or (epsilon, sensitivity)))
    likely = distribution * draws >= 5
    if not likely.all():
        counts = np.append(counts[likely], counts[~likely].sum())
        distribution = np.append(
            distribution[likely], max(distribution[~likely].sum(), 1e-9 / draws)
        )
    return stats.chisquare(counts, distribution * draws / distribution.sum()).pvalue


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


LONG = pytest.param(np.linspace(0, 4, 7), 1.3, 1.0, 60_000, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("utilities", "epsilon", "sensitivity", "draws"), [*((*case, 700) for case in CASES), LONG]
)
def test_frequencies_match_enumeration(utilities, epsilon, sensitivity, draws):
    assert frequency_pvalue(utilities, epsilon, sensitivity, draws=draws) > FALSE_ALARM


# --- exactness of one trial ----------------------------------------------------------------


def flip_disagrees(word, utility, best, epsilon):
    """Return whether one flip differs from ``U < exp(-gap)`` on the bits that were read."""
    source = Script([word])
    candidates = exponential._check_candidates([utility, best], epsilon, 1.0)
    accepted = bool(exponential._draw_successes(*candidates, np.array([0]), source)[0])
    words = [source.record[i : i + 8] for i in range(0, len(source.record), 8)]
    cell = int.from_bytes(b"".join(word[::-1] for word in words), "big")
    with mpmath.workdps(250):
        edge = threshold(utility, best, epsilon) * mpmath.mpf(2) ** (64 * len(words))
        return not (cell + 1 <= edge if accepted else cell >= edge)


def threshold(utility, best, epsilon):
    return mpmath.exp((mpmath.mpf(utility) - mpmath.mpf(best)) * mpmath.mpf(epsilon) / 2)


def borderline_word(utility, best, epsilon, nudge):
    with mpmath.workdps(60):
        edge = int(mpmath.floor(threshold(utility, best, epsilon) * mpmath.mpf(2) ** 64))
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


def test_gaps_of_undecided_trials_are_exact(monkeypatch):
    """The difference of two floats needs more digits than a float."""
    held = []
    monkeypatch.setattr(
        exponential, "random_events", lambda probabilities, enclosure, _: held.append(enclosure(0))
    )
    exponential._draw_successes(
        *exponential._check_candidates([1.0, 2.0**-60], 2.0, 1.0), np.array([1]), seeded()
    )
    assert held[0](200) == noise.exp_minus(1 - Fraction(1, 2**60), 200)


def test_planted_float_comparison_is_caught(monkeypatch):
    def failures():
        return sum(
            flip_disagrees(borderline_word(-k / 7, 0.0, 1.3, nudge), -k / 7, 0.0, 1.3)
            for k in range(1, 20)
            for nudge in (-1, 0, 1)
        )

    assert failures() == 0
    monkeypatch.setattr(noise, "THRESHOLD_ERROR", -1.0)
    assert failures() > 0


def test_any_exp_within_the_assumption_gives_the_same_output(monkeypatch):
    def flips(n):
        candidates = exponential._check_candidates(np.linspace(-3, 3, n), 1.7, 0.9)
        return exponential._draw_successes(*candidates, np.arange(n), seeded())

    few, expected = flips(400), flips(100_000)
    with monkeypatch.context() as patch:  # the exact branch for all
        patch.setattr(noise, "THRESHOLD_ERROR", 2.0**65)
        np.testing.assert_array_equal(flips(400), few)
    exp, signs = np.exp, np.random.default_rng(0).choice([-1.0, 1.0], 100_000)
    monkeypatch.setattr(np, "exp", lambda x: exp(x) + signs * 0.99 * 2.0**-41)
    np.testing.assert_array_equal(flips(100_000), expected)
    monkeypatch.setattr(np, "exp", lambda x: exp(x) + signs * 2.0**-12)
    assert np.any(flips(100_000) != expected)


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
    kept = exponential._draw_indices(len(words), count, Script(words))
    expected = [w % count for w in words if w < 2**64 - 2**64 % count]
    assert kept.tolist() == expected


# --- extremes and arguments ----------------------------------------------------------------


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
        source, given = seeded(7), np.array(utilities)
        found = [exponential_mechanism(given, 2.0, source=source) for _ in range(60)]
        np.testing.assert_array_equal(given, utilities)
        return found

    plain = picks([0.0, 1.0, 0.0, 0.0, 1.0])
    assert picks([0.0, 1.0, math.nan, -math.inf, math.inf]) == plain
    assert picks([math.nan] * 5) == picks([math.inf] * 5) == picks([0.0] * 5)
    assert picks([math.nan, -math.inf, math.inf, math.nan, 7.0]) == picks([7.0] * 5)
    for utility in (math.nan, -math.inf, 1e308):
        assert picks([utility]) == [0] * 60


@given(
    hnp.arrays(np.float64, st.integers(1, 30), elements=st.floats(width=64)),
    st.floats(1e-200, 1e200),
)
def test_no_score_raises_or_warns(utilities, epsilon):
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        picked = exponential_mechanism(utilities, epsilon, source=seeded())
    assert 0 <= picked < utilities.size


BAD_NUMBERS = [0, -1.0, math.nan, math.inf, True, "1", None]
BAD = [
    *((([1.0, 2.0], bad), {}, "epsilon must be a positive finite number") for bad in BAD_NUMBERS),
    *(
        (([1.0], 1.0), {"sensitivity": bad}, "sensitivity must be a positive finite number")
        for bad in BAD_NUMBERS
    ),
    *(((bad, 1.0), {}, "nonempty 1-d array") for bad in ([], 1.0, [[1.0, 2.0]])),
    *((([1.0], a), {"sensitivity": 1 / a}, "between 2") for a in (1e300, 1e-300)),
    (([1.0, 2.0], 1.0), {"multiplicities": [3]}, "the shape of utilities"),
]


@pytest.mark.parametrize(("arguments", "rest", "message"), BAD)
def test_bad_arguments_are_refused(arguments, rest, message):
    with pytest.raises(ValueError, match=message):
        exponential_mechanism(*arguments, **rest)
    _, rate = exponential._check_candidates([0.0, 1.0], Fraction(1, 3), 0.1)
    assert rate == Fraction(1, 3) / (2 * Fraction(0.1))


def test_same_bytes_same_output_and_fresh_bytes_fresh_output():
    utilities = np.zeros(10_000)
    drawn = [exponential_mechanism(utilities, 1.0, source=seeded(3)) for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert len({exponential_mechanism(utilities, 1.0) for _ in range(10)}) > 5


def assert_the_number_of_trials_is_public():
    """How many random bytes are asked for at once tells the number of candidates, no more."""
    for utilities in (np.zeros(500), -1000.0 * np.arange(500.0)):
        sizes, source = [], seeded()
        read = lambda n, sizes=sizes, source=source: sizes.append(n) or source.read(n)  # noqa: E731
        counting = SimpleNamespace(kind="seeded", read=read, branches=source.branches)
        exponential_mechanism(utilities, 1.0, source=counting)
        assert sizes[0] == 8 * 500


def test_the_number_of_trials_at_a_time_is_public(monkeypatch):
    """Planted: as many trials as there are best candidates."""
    assert_the_number_of_trials_is_public()
    honest = exponential._draw_indices

    def curious(batch, count, source):
        return honest(batch if batch < count else exponential._TRIALS[0], count, source)

    monkeypatch.setattr(exponential, "_draw_indices", curious)
    with pytest.raises(AssertionError):
        assert_the_number_of_trials_is_public()


@pytest.mark.slow
def test_planted_factor_two_is_caught():
    utilities = [0.0, 1.0, 2.0, 3.0]
    assert frequency_pvalue(utilities, 2.0, claim=(1.0, 1.0)) < CAUGHT
    assert frequency_pvalue(utilities, 1.0, 2.0, claim=(1.0, 1.0)) < CAUGHT
