"""The search over candidates: the exponential mechanism against its definition by enumeration."""

import math

import numpy as np
import pytest
from scipy import stats

from dp_halfspace.papers import staged_search as module
from dp_halfspace.papers.staged_search import candidate_block, plan_search, run_search
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.mechanisms import ExponentialChoice
from tests.permits import permit_for

FALSE_ALARM = 1e-12  # of the limit: small cells make it 1e-8
EPSILON = 2.0
# Losses of five candidates on two neighbouring data sets: each differs by one at most.
LOSSES = np.array([0.0, 1.0, 2.0, 2.0, 5.0]), np.array([1.0, 0.0, 2.0, 1.0, 4.0])


def planned(stages=1, **changed):
    given = {"epsilon": EPSILON, "delta": 0.0, "n_candidates": 5, "sensitivity": 1.0, **changed}
    budget = Budget.of(given.pop("epsilon"), given.pop("delta"))
    return plan_search(budget, n_stages=stages, **given)


def searched(plan, losses, size=2, seed=0):
    return run_search(plan, size, losses, permit_for(*plan.events), seed=seed)


def number_of(vector):
    """Which of the candidates of the first stage a vector is."""
    drawn = candidate_block((0, 0, 0), 5, np.zeros(2), math.inf)
    return int(np.flatnonzero((drawn == vector).all(axis=1))[0])


def definition(losses, epsilon=EPSILON):
    """Probability of each candidate, by enumeration."""
    weights = np.exp(-epsilon * losses / 2.0)
    return weights / weights.sum()


def observed(losses, draws=1500):
    plan = planned()
    chosen = [number_of(searched(plan, lambda drawn: losses)) for _ in range(draws)]
    return np.bincount(chosen, minlength=5)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("losses", LOSSES)
def test_choice_follows_the_definition(losses):
    counts = observed(losses)
    assert stats.chisquare(counts, definition(losses) * counts.sum()).pvalue > FALSE_ALARM


@pytest.mark.slow
def test_enumeration_sees_a_dropped_factor_two(monkeypatch):
    """Planted: exp(epsilon u) where exp(epsilon u / 2) is meant."""
    honest = ExponentialChoice.perturb
    monkeypatch.setattr(
        ExponentialChoice, "perturb", lambda self, value, source: honest(self, 2 * value, source)
    )
    counts = observed(LOSSES[0])
    assert stats.chisquare(counts, definition(LOSSES[0]) * counts.sum()).pvalue < FALSE_ALARM


def test_two_stages_by_enumeration():
    """Second stage: each centre has losses of its own; the joint distribution is the product."""
    plan = planned(2, epsilon=2 * EPSILON)
    first = candidate_block((0, 0, 0), 5, np.zeros(2), math.inf)
    table = np.array([[3, 1, 0, 2, 4], [0, 0, 1, 5, 5]] + [[1, 1, 1, 0, 2]] * 3, dtype=float)
    expected = definition(LOSSES[0])[:, None] * np.array([definition(row) for row in table])
    assert expected.sum() == pytest.approx(1)
    counts = np.zeros((5, 5))
    for _ in range(800):
        state = {}

        def losses(drawn, state=state):
            if "centre" not in state and not np.array_equal(drawn, first):
                state["centre"] = number_of(drawn[0])
                state["drawn"] = drawn
            return table[state["centre"]] if "centre" in state else LOSSES[0]

        found = searched(plan, losses)
        last = int(np.flatnonzero((state["drawn"] == found).all(axis=1))[0])
        counts[state["centre"], last] += 1
    likely = expected * 800 >= 5
    rest = max(counts[~likely].sum(), 0), expected[~likely].sum() * 800
    result = stats.chisquare(np.r_[counts[likely], rest[0]], np.r_[expected[likely] * 800, rest[1]])
    assert result.pvalue > FALSE_ALARM


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
    plan = planned(stages, delta=delta)
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
