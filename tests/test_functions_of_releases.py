"""What a part of an algorithm returns follows from its releases: other data, the same answers.

Audits replay whole fits; here every part is replayed by itself, where nothing that comes after it
can hide an exact number in the place of a released one.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from dp_halfspace.data.people import People
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine import linear
from dp_halfspace.engine.scales import Columns, plan_column_scales
from dp_halfspace.metrics._held_out import HeldOut
from dp_halfspace.papers.halfspace_search import plan_directions
from dp_halfspace.papers.known_margin import plan_known_margin
from dp_halfspace.papers.staged_search import plan_search, run_search
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.rows.rows import normalised_rows
from dp_halfspace.selection.small_tables import plan_small_table
from dp_halfspace.selection.small_trees import plan_small_tree, plan_staged_tree
from tests.permits import door_of, problem_of, rows_door, table_door
from tests.releases import assert_follows, largest_move

N = 60
RNG = np.random.default_rng(0)
# Two data sets of the same shape, a narrow column far from zero in both.
FIRST, SECOND = (
    np.column_stack([RNG.normal(size=(N, 2)), 50.0 + RNG.normal(size=N)]) for _ in range(2)
)
FEW, MANY = np.arange(N) % 6 == 0, np.arange(N) % 2 == 0
CODES = {2: (1 * FEW, 1 * MANY), 3: (np.arange(N) % 3, np.arange(N) % 5 % 3)}
OWNERS = People(np.tile([1, 4], N // 5)), People(np.tile([1, 9], N // 10))


def test_an_exact_number_beside_a_release_is_seen():
    """Planted: the exact sum of the rows."""
    scales = plan_column_scales(N, 3, Budget.gaussian(5.0))

    def run(X):
        return scales.run(door_of(Columns(X, None), *scales.events)), X.sum()

    with pytest.raises(AssertionError, match="Arrays are not equal"):
        assert_follows(run, [FIRST], [SECOND])


@pytest.mark.parametrize("owners", [(None, None), OWNERS], ids=["records", "people"])
def test_scales_of_columns(owners):
    """Two columns round zero, and one that is counted again."""
    n = N if owners[0] is None else len(owners[0])
    plan = plan_column_scales(n, 3, Budget.gaussian(50.0))
    owners = (owners[0], owners[0])
    run = lambda X, people: plan.run(door_of(Columns(X, people), *plan.events))  # noqa: E731
    assert assert_follows(run, *zip((FIRST, 1.1 * SECOND), owners, strict=True)) == 3


def unit_rows(X):
    return normalised_rows(X, 1.0, 0.5, None, clips=False)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_noisy_steps(n_classes):
    problem = problem_of(N, 3, n_classes)
    plan = plan_known_margin(problem, "noisy_gd", 0.9, Budget.gaussian(5.0)).algorithm
    ones = np.ones(n_classes)

    def run(X, codes):
        return plan.run(rows_door(unit_rows(X), codes, ones, *plan.events))

    assert_follows(run, *zip((FIRST, SECOND), CODES[n_classes], strict=True))


@pytest.mark.parametrize("counts", [False, True])
def test_selections_of_small_tables(counts):
    how = {"seed": 0, "counts": counts}
    plans = [
        (2, replace(plan_small_table(N, 3, 2.0, **how), n_candidates=200, n_constants=5)),
        (3, replace(plan_small_tree(N, 3, 3, 2.0, **how), n_pairs=20, n_constants=5)),
        (3, replace(plan_staged_tree(N, 3, 3, 2.0, **how), n_cuts=20)),
    ]
    for n_classes, plan in plans:
        ones = np.ones(n_classes)

        def run(X, codes, plan=plan, ones=ones):
            return plan.run(table_door(X, codes, *plan.events), N, ones)

        assert_follows(run, *zip((FIRST, SECOND), CODES[n_classes], strict=True))


def test_searches_and_a_count():
    plan = plan_directions(4, epsilon=2.0, n_directions=200, n_stages=3, constant=0.5)

    def run(X, codes):
        return plan.run(rows_door(unit_rows(X), codes, np.ones(2), *plan.events))

    assert_follows(run, *zip((FIRST, SECOND), CODES[2], strict=True))
    search = plan_search(Budget.of(2.0, 0.0), n_candidates=50, n_stages=3, sensitivity=1.0)

    def chosen(X):
        losses = lambda candidates: (candidates @ X.T).sum(axis=1)  # noqa: E731
        return run_search(search, 3, door_of(losses, *search.events), seed=0)

    assert_follows(chosen, [FIRST], [-SECOND])


def persons(n_rows, label):
    """Rows of twenty people, of which the third has so many, all in a far corner."""
    counts = np.array([2, 1, n_rows, *[1, 3] * 8, 4])
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 3))
    codes = rng.integers(2, size=100)
    head, tail = int(counts[:2].sum()), int(counts[3:].sum())
    side = 1.0 if n_rows > 1 else -1.0
    own = np.tile([[8.0 * side, -5.0, 3.0 * side]], (n_rows, 1))
    labels = np.full(n_rows, label)
    return (
        np.vstack([X[:head], own, X[head : head + tail]]),
        np.concatenate([codes[:head], labels, codes[head : head + tail]]),
        People(counts),
    )


def parts_with_people():
    """Parts of algorithms that count people, as functions of rows, classes and owners."""
    n = 20
    for n_classes in (2, 3):
        problem = problem_of(n, 3, n_classes)
        training = plan_known_margin(problem, "noisy_gd", 0.5, Budget.gaussian(5.0))
        yield lambda X, y, people, plan=training, k=n_classes: plan.run(
            door_of(TrainingData(X, y, np.arange(k), None, people), *plan.events)
        )
    scales = plan_column_scales(n, 3, Budget.gaussian(5.0))
    yield lambda X, y, people: scales.run(door_of(Columns(X, people), *scales.events))


def worst_person(run):
    """Fifty rows in one corner for one row in another, of the same or of the other class."""
    labels = product((0, 1), repeat=2)
    return max(largest_move(run, persons(1, k), persons(50, m)) for k, m in labels)


def test_a_person_moves_a_release_by_its_sensitivity_at_most():
    for run in parts_with_people():
        assert 0.8 < worst_person(run) <= 1.0


@pytest.mark.slow
def test_rows_that_are_counted_one_by_one_are_seen(monkeypatch):
    """Planted: each row of a person weighs one."""
    monkeypatch.setattr(People, "weights_for", lambda self, largest: np.ones(self.counts.sum()))
    for run in parts_with_people():
        assert worst_person(run) > 2.0


# Places at which parts of fits and of scores compute each row.
PLACES = {
    "held-out records": lambda data: HeldOut(
        data.X, data.class_indices, data.classes, data.people, np.arange(len(data.X))
    ).outcomes(lambda model, rows, codes, classes: np.arange(1.0, len(codes) + 1.0), None),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_row_is_computed_where_its_person_stands(name):
    found = []
    for X, y, people in (persons(1, 0), persons(50, 1)):
        places = PLACES[name](TrainingData(X, y, np.arange(2), None, people))
        found.append(np.delete(places, np.s_[3 : 3 + people.counts[2]], axis=0))
    np.testing.assert_array_equal(*found)


def test_lengths_of_rows_are_computed_where_their_persons_stand(monkeypatch):
    """All first rows come first, in the order of the people."""
    honest, sizes = linear._squares, []
    monkeypatch.setattr(
        linear, "_squares", lambda X, unit: (sizes.append(len(X)), honest(X, unit))[1]
    )
    for X, y, people in (persons(1, 0), persons(50, 1)):
        linear.sum_of_squares(TrainingData(X, y, np.arange(2), None, people), 1.0)
        assert sizes[0] == len(people)
        sizes.clear()
