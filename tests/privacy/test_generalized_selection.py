"""Selection with different sensitivities: normalised scores, privacy, utility."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dp_halfspace.privacy import Exponential
from dp_halfspace.privacy.generalized_selection import GeneralizedChoice
from dp_halfspace.privacy.randomness import OS_RANDOMNESS, SeededBytes

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
