"""Selection with different sensitivities: normalised scores, privacy, utility."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dp_halfspace.privacy import Exponential, selection
from dp_halfspace.privacy.randomness import OS_RANDOMNESS, SeededBytes
from dp_halfspace.privacy.selection import GeneralizedChoice

REACH = (1.0, 3.0, 40.0)


def worst_change(choice, trials=4000):
    """Largest change of a normalised score when every cost moves as far as it may."""
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(trials):
        costs = rng.uniform(-200, 200, size=3)
        moved = costs + np.array(REACH) * rng.choice([-1.0, 1.0, 0.3], size=3)
        change = choice.normalised(costs) - choice.normalised(moved)
        worst = max(worst, np.abs(change).max())
    return worst


def test_normalised_scores_change_by_one_at_most():
    assert 0.99 < worst_change(GeneralizedChoice(REACH, 0.5)) <= 1 + 1e-9


def test_that_test_sees_a_sensitivity_that_is_too_small():
    """Planted: half of one of them."""
    assert worst_change(GeneralizedChoice((1.0, 3.0, 20.0), 0.5)) > 1 + 1e-9


def rounded_change(trials=3000):
    """Largest excess over one of a computed score, over what is allowed; and over one alone.

    Neighbours whose costs move as far as they may in exact arithmetic, with costs up to 10^9
    sensitivities and every size of the term that raises them.
    """
    rng = np.random.default_rng(0)
    relative, absolute = 0.0, 0.0
    for _ in range(trials):
        reach = np.exp2(rng.uniform(0, 8, rng.integers(2, 6)))
        choice = GeneralizedChoice(tuple(reach.tolist()), float(10 ** rng.uniform(-10, 1)))
        costs = rng.uniform(-1, 1, len(reach)) * 10 ** rng.uniform(0, 9) * reach
        moved = costs + rng.choice([-1.0, 1.0], len(reach)) * reach
        for i, bound in enumerate(reach):
            while abs(Fraction(moved[i]) - Fraction(costs[i])) > Fraction(bound):
                moved[i] = np.nextafter(moved[i], costs[i])
        excess = np.abs(choice.normalised(costs) - choice.normalised(moved)).max() - 1.0
        relative = max(relative, excess / (choice.sensitivity - 1.0))
        absolute = max(absolute, excess)
    return relative, absolute


def test_rounded_scores_change_by_the_sensitivity_at_most():
    relative, absolute = rounded_change()
    assert 0.01 < relative <= 1.0
    # Neither one nor a constant that is right for a large budget would do for a small one.
    assert absolute > 2.0**-20


def used(monkeypatch, choice):
    """Which sensitivity the mechanism is given."""
    given = []
    monkeypatch.setattr(
        selection,
        "exponential_mechanism",
        lambda scores, epsilon, *, sensitivity, source: given.append((epsilon, sensitivity)) or 0,
    )
    choice.perturb(np.zeros(len(choice.sensitivities)), OS_RANDOMNESS)
    return given[0]


@pytest.mark.parametrize("epsilon", [1e-10, 0.1, 3.0])
def test_the_mechanism_is_given_the_proved_sensitivity(monkeypatch, epsilon):
    t = 2 / epsilon * math.log(3 / 0.05)
    given = used(monkeypatch, GeneralizedChoice(REACH, epsilon))
    assert given[0] == epsilon
    assert given[1] == pytest.approx(1 + 2**-20 + t * 2**-49, rel=1e-15)
    assert given[1] >= 1 + 2**-20


def test_those_tests_see_a_sensitivity_of_one(monkeypatch):
    """Planted: no allowance for rounding."""
    monkeypatch.setattr(GeneralizedChoice, "sensitivity", 1.0 + 1e-30)
    with pytest.raises(AssertionError):
        test_the_mechanism_is_given_the_proved_sensitivity(monkeypatch, 0.1)
    monkeypatch.setattr(GeneralizedChoice, "sensitivity", 1.0 + 2.0**-52)
    with pytest.raises(AssertionError):
        test_rounded_scores_change_by_the_sensitivity_at_most()


def test_scores_are_not_negative_and_the_best_has_none():
    scores = GeneralizedChoice(REACH, 1.0).normalised(np.array([3.0, -100.0, 50.0]))
    assert scores.min() == 0
    assert (scores >= 0).all()


def test_choice_has_the_law_of_the_exponential_mechanism():
    choice = GeneralizedChoice(REACH, 2.0)
    costs = np.array([1.0, 2.0, 3.0])
    source = SeededBytes(0, "test")
    drawn = [int(choice.perturb(costs, source)[0]) for _ in range(4000)]
    weights = np.exp(-choice.normalised(costs))
    expected = weights / weights.sum()
    shares = np.bincount(drawn, minlength=3) / 4000
    np.testing.assert_allclose(shares, expected, atol=5 * math.sqrt(0.25 / 4000))


def test_promise_on_the_chosen_cost():
    choice = GeneralizedChoice(REACH, 1.0, beta=0.05)
    costs = np.array([900.0, 500.0, 100.0])
    t = 2 * math.log(3 / 0.05)
    promised = (costs + 2 * t * np.array(REACH)).min()
    source = SeededBytes(0, "test")
    chosen = [costs[int(choice.perturb(costs, source)[0])] for _ in range(300)]
    assert np.mean(np.array(chosen) <= promised) > 0.9


def test_event():
    assert GeneralizedChoice(REACH, 0.25).event == Exponential(0.25)


def test_no_score_raises():
    choice = GeneralizedChoice(REACH, 1.0)
    for costs in ([np.nan, 1.0, 2.0], [np.inf, 1.0, 2.0], [-np.inf, np.inf, np.nan]):
        with np.errstate(all="ignore"):
            assert choice.perturb(np.array(costs), OS_RANDOMNESS)[0] in (0.0, 1.0, 2.0)


@pytest.mark.parametrize("n", [1, 2])
def test_few_candidates(n):
    choice = GeneralizedChoice((2.0,) * n, 5.0)
    assert choice.perturb(np.arange(n) * 1000.0, OS_RANDOMNESS)[0] == 0
