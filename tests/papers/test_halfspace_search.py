"""The search is the exponential mechanism over its stream, by enumeration."""

import math
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import softmax

from dp_halfspace.papers import halfspace_search as direction_search
from dp_halfspace.papers.halfspace_search import plan_directions
from dp_halfspace.papers.staged_search import default_stages
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.interception import intercept_releases
from dp_halfspace.rows import directions as margin_counts
from dp_halfspace.rows.directions import DirectionStream, unit_length
from dp_halfspace.rows.rows import normalised_rows
from tests.conftest import separated
from tests.permits import problem_of, rows_door
from tests.releases import record_releases

EPSILON, SEED = 0.6, (5, 6)


@pytest.fixture
def problem():
    X, codes = separated(12, 2, seed=3)
    return normalised_rows(X, 1.0, 0.5), codes


@pytest.fixture(autouse=True)
def _one_thread_already(monkeypatch):
    """Many tiny searches: holding the threads would take most of the time."""
    monkeypatch.setattr(direction_search, "single_blas_thread", nullcontext)


def search(plan, problem):
    return plan.run(rows_door(*problem, np.ones(2), *plan.events))[0]


def small_plan(**params):
    given = {"epsilon": EPSILON, "n_directions": 12, "n_stages": 1, "constant": 0.5, "seed": SEED}
    return plan_directions(3, **{**given, **params})


def definition(plan, problem):
    """Every candidate with its cost, by the definition of the utilities."""
    rows, codes = problem
    stream = DirectionStream(3, plan.n_directions, (*SEED, 0), constant=0.5)
    blocks = np.hstack([stream.block(b) for b in range(stream.n_blocks)]).astype(float)
    integers = np.rint(rows.dense(np.arange(len(codes))) * (4094.0 - math.sqrt(3) / 2))
    found = integers @ blocks
    positive = (codes == 1)[:, None]
    signed = np.where(positive, found, -found)
    costs = [(signed <= 0).sum(axis=0), (signed >= 0).sum(axis=0)]
    if plan.margin is not None:
        lengths = (4094.0 - math.sqrt(3) / 2) * np.sqrt((blocks**2).sum(axis=0))
        signed = np.where(positive, found, -found) / lengths
        costs = [(sense * signed < plan.margin / 10).sum(axis=0) for sense in (1, -1)]
    return unit_length(np.hstack([blocks, -blocks])).T, np.concatenate(costs)


def assert_chosen_by_definition(plan, problem):
    """Each candidate is what its number stands for, and is chosen from the exact costs."""
    candidates, costs = definition(plan, problem)
    for number, expected in enumerate(candidates):

        def answer(value, mechanism, source, number=number):
            assert mechanism == plan.choice
            np.testing.assert_array_equal(value, costs)
            return np.array([float(number)])

        with intercept_releases(answer):
            np.testing.assert_allclose(search(plan, problem), expected, atol=1e-9)


@pytest.mark.parametrize("params", [{}, {"margin": 1.0}])
def test_every_direction_is_chosen_by_the_mechanism_from_the_exact_costs(params, problem):
    """Tests of the mechanism say with which probability."""
    assert_chosen_by_definition(small_plan(**params), problem)


def test_definition_test_sees_the_whole_of_a_margin_where_a_tenth_is_asked_for(
    problem, monkeypatch
):
    """Planted: another utility, as private as the published one."""
    monkeypatch.setattr(margin_counts, "_SHARE", 1.0)
    with pytest.raises(AssertionError):
        assert_chosen_by_definition(small_plan(margin=1.0), problem)


def test_definition_test_sees_errors_counted_on_half_the_records(problem, monkeypatch):
    """Planted: every second record of a class has no negative score."""
    honest = margin_counts.counts_below

    def some(block, rows, index, limits):
        return honest(block, rows, index[::2], limits)

    monkeypatch.setattr(margin_counts, "counts_below", some)
    with pytest.raises(AssertionError):
        assert_chosen_by_definition(small_plan(), problem)


def test_neighbours_are_within_epsilon_and_nearly_attain_it():
    codes = np.ones(40, dtype=int)
    flipped = codes.copy()
    flipped[0] = 0
    rows = normalised_rows(np.tile([[0.6, 0.8]], (40, 1)), 1.0, 0.5)
    one, other = (definition(small_plan(), (rows, labels))[1] for labels in (codes, flipped))
    one, other = (softmax(-EPSILON * costs / 2) for costs in (one, other))
    assert 0.95 * EPSILON < np.abs(np.log(one / other)).max() <= EPSILON * (1 + 1e-9)


def test_stages_look_round_the_winner_and_share_the_budget():
    X, codes = separated(400, 4)
    rows = normalised_rows(X, 1.0, 0.5)
    plan = plan_directions(5, epsilon=30.0, n_directions=500, n_stages=3, constant=0.5, seed=SEED)
    assert len(plan.events) == 3
    assert sum(event.epsilon for event in plan.events) <= 30.0
    assert sum(event.epsilon for event in plan.events) >= 30.0 * (1 - 1e-9)
    assert plan.radii == (1.0, 0.5)
    with record_releases() as releases:
        search(plan, (rows, codes))
    assert len(releases) == 3
    assert all(r.value.shape == (500,) and r.value.max() <= 400 for r in releases)


def test_each_stage_draws_directions_of_its_own(problem, monkeypatch):
    streams = []
    keep = lambda plan, door, stream: streams.append(stream) or np.ones(3)  # noqa: E731
    monkeypatch.setattr(direction_search.DirectionSearch, "_choose", keep)
    search(small_plan(n_stages=3), problem)
    assert [stream.seed for stream in streams] == [(*SEED, stage) for stage in range(3)]


def test_what_is_too_large_is_refused():
    with pytest.raises(ValueError, match="project"):
        plan_directions(2**16 + 1, epsilon=1.0, n_directions=10, n_stages=1)


def test_stages_are_those_of_the_pages():
    """One for each 350 of n epsilon, at least one and at most eight."""
    stages = [default_stages(n, 350.0) for n in (10, 500, 700, 1050, 2800, 10**6)]
    assert stages == [1, 1, 2, 3, 8, 8]


@pytest.mark.parametrize(("number", "entry"), [(0, 1), (3, -1), (5, -1), (6, 2), (11, -2)])
def test_a_number_is_that_of_its_own_block(number, entry):
    """Two blocks of three directions, each followed by their negatives."""
    blocks = [np.full((2, 3), k, dtype=np.float32) for k in (1.0, 2.0)]
    stream = SimpleNamespace(block=blocks.__getitem__, lengths=[6, 6])
    door = SimpleNamespace(choose=lambda *_, **__: number)
    chosen = direction_search.DirectionSearch(2, 6, (), None)._choose(door, stream)
    assert chosen.tolist() == [entry, entry]


def test_directions_are_drawn_anew_unless_there_is_no_noise():
    def seed(epsilon):
        budget = Budget.of(epsilon, 0.0)
        return direction_search.plan_direction_training(problem_of(100, 3), budget).algorithm.seed

    assert seed(1.0) != seed(1.0)
    assert seed(math.inf) == seed(math.inf)


def test_fewer_directions_are_listed_for_many_records():
    def n_directions(n_samples):
        problem = problem_of(n_samples, 3)
        return direction_search.plan_direction_training(
            problem, Budget.of(1.0, 0.0)
        ).algorithm.n_directions

    assert [n_directions(n) for n in (100, 10**5, 10**9)] == [50_000, 10_000, 1_000]


def test_stages_and_projected_columns_follow_from_records_times_epsilon():
    for epsilon, radii in ((0.5, (1.0,)), (1.0, (1.0, 0.5, 0.25))):
        plan = direction_search.plan_direction_training(
            problem_of(1400, 3), Budget.of(epsilon, 0.0)
        ).algorithm
        assert plan.radii == radii
    rows = direction_search._default_rows
    assert [rows(64, 1e9), rows(200, 1e3), rows(200, 6400.0)] == [(0.5, None), (1.0, 32), (1.0, 64)]
    assert [rows(65, 1e9), rows(512, 9.0), rows(513, 6400.0)] == [(1.0, 65), (1.0, 32), (2.0, 64)]
