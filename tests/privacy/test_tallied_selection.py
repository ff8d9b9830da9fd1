"""The exponential mechanism on a tally is the exponential mechanism on the candidates."""

import math

import numpy as np
import pytest
from scipy.stats import chisquare

from dp_halfspace.privacy import Exponential, Pure, exponential, exponential_mechanism
from dp_halfspace.privacy.exponential import CountedChoice, TalliedChoice, TalliedChoices
from dp_halfspace.privacy.randomness import OS_RANDOMNESS, SeededBytes

COSTS = np.array([3, 0, 7, 3, 5, 3, 0, 4])
EPSILON = 0.8


def definition(costs, epsilon):
    weights = [math.exp(-epsilon * cost / 2) for cost in costs]
    return np.array(weights) / sum(weights)


def assert_distribution(choice, draws=6000):
    source = SeededBytes(0, "test")
    drawn = [int(choice.perturb(COSTS, source)[0]) for _ in range(draws)]
    observed = np.bincount(drawn, minlength=len(COSTS))
    assert chisquare(observed, draws * definition(COSTS, EPSILON)).pvalue > 1e-4


@pytest.mark.parametrize("draws", [1500, pytest.param(200_000, marks=pytest.mark.slow)])
def test_distribution_is_the_definition(draws):
    """Planted: weights exp(-epsilon cost), as if a record moved all costs in one direction."""
    assert_distribution(TalliedChoice(EPSILON), draws)
    with pytest.raises(AssertionError):
        assert_distribution(TalliedChoice(2 * EPSILON), 600)


def test_multiplicities_stand_for_copies():
    """Enumeration of all starts of a word: the share of each index is that of its copies."""
    utilities, copies = np.array([0.0, -2.0, -5.0]), np.array([2, 7, 1])
    weights = copies * np.exp(0.3 * utilities)
    source = SeededBytes(1, "test")
    draws = [
        exponential_mechanism(utilities, 0.6, multiplicities=copies, source=source)
        for _ in range(2000)
    ]
    observed = np.bincount(draws, minlength=3)
    assert chisquare(observed, 2000 * weights / weights.sum()).pvalue > 1e-4


def test_extremes():
    costs = np.full(10**5, 1000)
    costs[7] = 2
    assert TalliedChoice(100.0).perturb(costs, OS_RANDOMNESS).tolist() == [7.0]
    (chosen,) = TalliedChoice(1e-9).perturb(costs, OS_RANDOMNESS)
    assert 0 <= chosen < len(costs)
    assert TalliedChoice(0.5).event == Exponential(0.5)


def assert_distribution_of_two(choices, draws=1000):
    source = SeededBytes(2, "test")
    drawn = np.array([choices.perturb(COSTS, source) for _ in range(draws)], dtype=int)
    parts = [definition(part, EPSILON) for part in choices.parts(COSTS)]
    expected = draws * np.multiply.outer(*parts).ravel()
    observed = np.bincount(drawn @ [len(parts[1]), 1], minlength=len(expected))
    assert chisquare(observed, expected).pvalue > 1e-4


def test_distribution_of_several_choices_is_the_definition():
    """That of all combinations. Planted: each list has the whole change of a record for itself."""
    assert_distribution_of_two(TalliedChoices((3, 5), EPSILON))
    assert TalliedChoices((3, 5), EPSILON).event == Exponential(EPSILON)
    with pytest.raises(AssertionError):
        assert_distribution_of_two(TalliedChoices((3, 5), 2 * EPSILON), 500)


def log_distribution(costs):
    """Logarithms of the distribution of all combinations of two lists."""
    parts = TalliedChoices(tuple(map(len, costs)), EPSILON).parts(np.concatenate(costs))
    return np.add.outer(*(np.log(definition(part, EPSILON)) for part in parts))


def test_neighbouring_combinations_are_within_the_budget():
    """A record leaves one list for the other, or stays: log-ratios by enumeration.

    Planted: a record that is counted in both lists.
    """
    rng, worst, planted = np.random.default_rng(0), 0.0, 0.0
    steep, early = np.r_[1, np.full(200, 40)], np.r_[1, np.zeros(200, int)]
    for trial in range(60):
        costs = [rng.integers(1, 40, size=rng.integers(2, 30)) for _ in range(2)]
        old, new, other = (rng.integers(2, size=len(costs[k])) for k in (0, 0, 1))
        if trial % 3 == 0:
            costs, old, new, other = [steep, steep], 1 - early, early, early
        before = log_distribution([costs[0] + old, costs[1]])
        stays, moves = [costs[0] + new, costs[1]], [costs[0], costs[1] + other]
        worst = max(
            worst, *(np.abs(log_distribution(after) - before).max() for after in (stays, moves))
        )
        both = log_distribution([costs[0] + old, costs[1] + 1 - other])
        planted = max(
            planted, np.abs(log_distribution([costs[0] + new, costs[1] + other]) - both).max()
        )
    assert 0.95 * EPSILON < worst <= EPSILON * (1 + 1e-12)
    assert planted > 1.5 * EPSILON


PART, SPAN = 0.6, 300


def counted_distribution(costs, rates=None, span=(-SPAN, SPAN)):
    """Distribution of a candidate and of noisy costs within a span, by the definition."""
    below, above = map(float, CountedChoice(EPSILON, PART).rates) if rates is None else rates
    noise = np.arange(span[0], span[1] + 1) - np.array(costs)[:, None]
    shape = np.exp(np.where(noise < 0, below, -above) * noise)
    # What a geometric series has on both sides, beyond the span included.
    shape /= 1.0 / -np.expm1(-above) + 1.0 / np.expm1(below)
    return definition(costs, PART)[:, None] * shape


def assert_counted_distribution(drawn, rates):
    # Candidates, and their noisy costs in five parts.
    edges = np.array([0, 1, 3, 8]) + SPAN
    expected = np.add.reduceat(counted_distribution(COSTS, rates), np.r_[0, edges], axis=1)
    parts = np.searchsorted(edges, drawn[:, 1] + SPAN, side="right")
    observed = np.zeros_like(expected)
    np.add.at(observed, (drawn[:, 0], parts), 1)
    expected *= len(drawn)
    for whole, part in ((expected.ravel(), observed.ravel()), (expected.sum(1), observed.sum(1))):
        assert chisquare(part, whole, sum_check=False).pvalue > 1e-4


@pytest.mark.parametrize("draws", [1400, pytest.param(200_000, marks=pytest.mark.slow)])
def test_distribution_of_a_counted_choice_is_the_definition(draws):
    """Planted: noise that falls off as slowly above the cost as below, or as fast.

    Of 1400 draws each has a p-value below 1e-100.
    """
    choice, source = CountedChoice(EPSILON, PART), SeededBytes(3, "test")
    drawn = np.array([choice.perturb(COSTS, source) for _ in range(draws)], dtype=int)
    assert_counted_distribution(drawn, None)
    assert choice.event == Pure(EPSILON)
    for rates in ((EPSILON - PART, EPSILON - PART), (EPSILON, EPSILON)):
        with pytest.raises(AssertionError):
            assert_counted_distribution(drawn, rates)


@pytest.mark.parametrize("part", [0.0, -0.1, EPSILON, 2 * EPSILON, math.nan])
def test_a_counted_choice_needs_a_part_for_either(part):
    with pytest.raises(ValueError, match="choice_epsilon"):
        CountedChoice(EPSILON, part)


def largest_ratio(rates):
    """Largest log-ratio of neighbouring distributions, over costs that move by one at most."""
    rng, worst = np.random.default_rng(0), 0.0
    for trial in range(24):
        costs = rng.integers(1, 40, size=rng.integers(2, 30))
        change = rng.integers(-1, 2, size=len(costs))
        if trial % 3:
            # One cost against all others, either way.
            costs = np.r_[20, np.full(400, 20)]
            change = np.r_[1, np.full(400, -1)] * (1 if trial % 3 == 1 else -1)
        distributions = [
            counted_distribution(c, rates, (-60, 119)) for c in (costs, costs + change)
        ]
        worst = max(worst, np.abs(np.log(distributions[0]) - np.log(distributions[1])).max())
    return worst


def test_neighbouring_counted_choices_are_within_the_budget():
    """Candidate and count together, by enumeration.

    Planted: a narrow side below as well, a side above that is narrower than the budget, and the
    budget of the choice forgotten.
    """
    assert 0.99 * EPSILON < largest_ratio(None) <= EPSILON * (1 + 1e-9)
    for rates in ((EPSILON, EPSILON), (EPSILON - PART, 1.2 * EPSILON), (EPSILON, EPSILON - PART)):
        assert largest_ratio(rates) > 1.1 * EPSILON


@pytest.mark.slow
def test_distribution_test_sees_costs_without_their_multiplicity(monkeypatch):
    """Planted: a cost is as likely with one candidate as with many."""

    def forgetful(utilities, epsilon, *, multiplicities, source):
        del multiplicities
        return exponential_mechanism(utilities, epsilon, source=source)

    monkeypatch.setattr(exponential, "exponential_mechanism", forgetful)
    with pytest.raises(AssertionError):
        assert_distribution(TalliedChoice(EPSILON), 1500)
