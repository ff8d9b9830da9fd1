"""The search over candidates: the exponential mechanism against its definition by enumeration."""

import itertools
import math

import numpy as np
import pytest

from dp_halfspace.papers import staged_search as module
from dp_halfspace.papers.staged_search import candidate_block, plan_search, run_search
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.interception import intercept_releases
from tests.permits import door_of

EPSILON = 2.0
# Losses of five candidates on two neighbouring data sets: each differs by one at most.
LOSSES = np.array([0.0, 1.0, 2.0, 2.0, 5.0]), np.array([1.0, 0.0, 2.0, 1.0, 4.0])


def planned(stages=1, **changed):
    given = {"epsilon": EPSILON, "delta": 0.0, "n_candidates": 5, "sensitivity": 1.0, **changed}
    budget = Budget.of(given.pop("epsilon"), given.pop("delta"))
    return plan_search(budget, n_stages=stages, **given)


def searched(plan, losses, size=2, seed=0):
    return run_search(plan, size, door_of(losses, *plan.events), seed=seed)


def number_of(vector):
    """Which of the candidates of the first stage a vector is."""
    drawn = candidate_block((0, 0, 0), 5, np.zeros(2), math.inf)
    return int(np.flatnonzero((drawn == vector).all(axis=1))[0])


def answered(plan, losses, choices):
    """Run a search whose choices are given; return what they were made from, and the result."""
    seen, given = [], iter(choices)

    def answer(value, mechanism, source):
        assert mechanism == plan.mechanism
        seen.append(value.tolist())
        return np.array([float(next(given))])

    with intercept_releases(answer):
        return seen, searched(plan, losses)


@pytest.mark.parametrize("losses", LOSSES)
def test_a_candidate_is_chosen_by_the_mechanism_from_the_exact_losses(losses):
    """Tests of the mechanism say with which probability."""
    for k in range(5):
        seen, found = answered(planned(), lambda drawn: losses, [k])
        assert seen == [(-losses).tolist()]
        assert number_of(found) == k


def test_two_stages_by_enumeration():
    """Second stage: the losses are those of candidates round the one that was chosen."""
    plan = planned(2, epsilon=2 * EPSILON)
    assert [event.epsilon for event in plan.events] == pytest.approx([EPSILON] * 2)
    first = candidate_block((0, 0, 0), 5, np.zeros(2), math.inf)
    table = np.array([[3, 1, 0, 2, 4], [0, 0, 1, 5, 5], [1, 1, 1, 0, 2], [2] * 5, [4] * 5])
    for centre, last in itertools.product(range(5), repeat=2):
        drawn = []

        def losses(candidates, drawn=drawn):
            drawn.append(candidates)
            return LOSSES[0] if len(drawn) == 1 else table[number_of(candidates[0])]

        seen, found = answered(plan, losses, [centre, last])
        np.testing.assert_array_equal(drawn[0], first)
        np.testing.assert_array_equal(found, drawn[1][last])
        assert seen == [(-LOSSES[0]).tolist(), (-table[centre]).tolist()]


def test_every_stage_draws_its_own_steps():
    drawn = []

    def losses(candidates):
        drawn.append(candidates)
        return np.arange(5.0)

    searched(planned(2, epsilon=math.inf), losses)
    steps = drawn[1] * math.sqrt(2.0) - drawn[0][0]
    assert not np.isclose(steps[1:], drawn[0][1:]).any()


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("stages", [1, 4])
def test_stages_spend_the_budget(stages, delta):
    plan = planned(stages, delta=delta, radius=2.0, shrink=0.5)
    assert plan.radii == (math.inf, 2.0, 1.0, 0.5)[:stages]
    assert len(plan.events) == stages
    spent = accounting.epsilon(plan.events, delta)
    assert EPSILON * (1 - 1e-6) <= spent <= EPSILON


def test_blocks_are_the_same_when_read_again_and_start_with_the_centre():
    centre = np.ones(3)
    again = [candidate_block((1, 2, 0), 4, centre, 0.5) for _ in range(2)]
    np.testing.assert_array_equal(*again)
    np.testing.assert_array_equal(again[0][0], centre)
    assert not np.array_equal(again[0], candidate_block((1, 2, 1), 4, centre, 0.5))


def test_winner_of_a_later_block_is_found_again(monkeypatch):
    monkeypatch.setattr(module, "_CANDIDATES_PER_BLOCK", 2)
    plan = planned(1, epsilon=math.inf)
    for winner in range(5):
        calls = iter(np.split(np.where(np.arange(5) == winner, 0.0, 1.0), [2, 4]))
        found = searched(plan, lambda drawn, c=calls: next(c), seed=3)
        block = candidate_block((3, 0, winner // 2), 2 - winner // 4, np.zeros(2), math.inf)
        np.testing.assert_array_equal(found, block[winner % 2])
