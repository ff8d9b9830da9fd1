"""Two selections for several classes: exact counts, what is released, what one record can do."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dp_halfspace.privacy.exponential import TalliedChoice, TalliedChoices
from dp_halfspace.privacy.interception import intercept_releases
from dp_halfspace.rows.directions import asinh_cells
from dp_halfspace.selection import small_trees
from dp_halfspace.selection.small_tables import share_of
from dp_halfspace.selection.small_trees import (
    StagedSelection,
    _Cut,
    halves,
    plan_staged_tree,
)
from tests.adversarial import stretched_pairs
from tests.permits import table_door
from tests.releases import record_releases
from tests.selection.test_small_tables import wild

EPSILON = 0.5


@pytest.fixture(autouse=True)
def _short_lists(monkeypatch):
    monkeypatch.setattr(small_trees, "list_sizes", lambda n_samples, n_classes: (12, 3))


def small_plan(n_columns, n_classes=4, n_cuts=14, seed=(1,)):
    return StagedSelection(n_columns, n_classes, 60, n_cuts, (EPSILON, EPSILON), seed)


def counted(plan, X, codes, numbers, weights=None):
    """Fit with these numbers of candidates, and a count; return the model and what was counted."""
    given, seen = iter(numbers), []

    def answer(value, mechanism, source):
        numbers = np.array(next(given), dtype=float)
        if isinstance(mechanism, TalliedChoices):
            seen.append(mechanism.parts(value))
            return numbers % mechanism.lengths
        seen.append(value)
        return numbers % len(value) if isinstance(mechanism, TalliedChoice) else numbers

    weights = np.ones(plan.n_classes) if weights is None else weights
    with intercept_releases(answer):
        model = plan.run(table_door(X, codes, *plan.events), len(X), weights)
    return model, seen


def test_halves_are_all_of_them():
    for n_classes in range(3, 8):
        sizes = {n_classes // 2, n_classes - n_classes // 2}
        every = {row for row in product((False, True), repeat=n_classes) if sum(row) in sizes}
        rows = halves(n_classes).tolist()
        assert {tuple(row) for row in rows} == every
        assert len(rows) == len(every)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n_classes", [3, 4, 5, 7])
def test_what_was_counted_is_predicted(n_classes):
    """Of three and four classes on the wildest rows, of more but for a row that touches a cut."""
    X, codes = wild(60, 3, n_classes, seed=1)
    if n_classes > 4:
        X = np.random.default_rng(3).standard_normal((60, 3))
    plan = plan_staged_tree(60, 3, n_classes, 1.0, seed=0, counts=True)
    plan = replace(plan, n_cuts=14)
    rng, labels, astray = np.random.default_rng(0), set(), 0
    for _ in range(25):
        number, *chosen = rng.integers(10**6, size=3).tolist()
        model, (first, sides, errors) = counted(plan, X, codes, [[number], chosen, [7.0]])
        scores = asinh_cells(X, model.exponent).astype(float) @ model.coefficients.T
        found = (scores + model.intercept).argmax(axis=1)
        labels |= set(found.tolist())
        own = [int(part[k % len(part)]) for part, k in zip(sides, chosen, strict=True)]
        assert errors[0] == first[number % len(first)] + sum(own)
        astray += abs(int((found != codes).sum()) - int(errors[0]))
        rates = (plan.count.epsilon,) * 2
        assert model.error_share == share_of(7.0, 60, rates, n_classes)
    assert labels == set(range(n_classes))
    assert astray <= (0 if n_classes <= 4 else 1)


def test_errors_count_by_the_weights_of_their_labels():
    """Of the first cut and of the trees on its two sides, each rounded down."""
    X, codes = wild(60, 3, 4, seed=1)
    plan, weights = small_plan(3), 0.5 ** np.arange(4)
    for number, *chosen in np.random.default_rng(0).integers(10**6, size=(20, 3)).tolist():
        model, (first, sides) = counted(plan, X, codes, [[number], chosen], weights)
        place = number % len(first)
        cut = plan._cut(place)
        is_above = asinh_cells(X, cut.exponent).astype(float) @ cut.coefficients > cut.threshold
        astray = cut.labels_above[codes] != is_above
        assert first[place] == int(weights[codes[astray]].sum())
        scores = asinh_cells(X, model.exponent).astype(float) @ model.coefficients.T
        wrong = ((scores + model.intercept).argmax(axis=1) != codes) & ~astray
        for above, (part, k) in enumerate(zip(sides, chosen, strict=True)):
            own = wrong & (is_above == above)
            assert part[k % len(part)] == int(weights[codes[own]].sum())


def test_scores_are_exact_in_any_order():
    """Of four classes, at the largest cells and coefficients of a list."""
    X, codes = wild(20, 30, 4)
    X[:10] = np.sign(np.random.default_rng(2).standard_normal((10, 30))) * 1e300
    plan, rng = small_plan(30), np.random.default_rng(0)
    for numbers in rng.integers(10**6, size=(10, 3)).tolist():
        model, _ = counted(plan, X, codes, [numbers[:1], numbers[1:]])
        cells = asinh_cells(X, model.exponent).astype(float)
        order = rng.permutation(30)
        scores = cells @ model.coefficients.T + model.intercept
        again = cells[:, order] @ model.coefficients[:, order].T + model.intercept
        np.testing.assert_array_equal(scores, again)
        np.testing.assert_array_equal(
            scores[3:4], cells[3:4] @ model.coefficients.T + model.intercept
        )


def test_a_cut_below_is_small_where_cells_are_zero():
    """Whatever the thresholds: scores of rows without numbers are those of thresholds alone."""
    step = small_trees.SCORE_STEP
    for first in (0.5, 3.0, 1e5, -(2.0**24)):
        for lower in (-0.5, 40.0, 1e6, 2.0**24):
            weight = small_trees.weight_below(first * step, lower * step)
            assert weight <= 2.0**-14
            assert np.log2(weight) % 1.0 == 0.0
            assert weight * abs(lower) <= max(2.0**-13 * abs(first), 2.0**-26 * abs(lower))


def largest_changes(trials=36):
    """Largest change of a cost of a first cut, of a sum of costs of sides, and of the count."""
    worst, rng = np.zeros(3), np.random.default_rng(2)
    for trial, *data in stretched_pairs(trials, n_classes=5):
        weights = np.array([(1.0, 0.3, 0.5, 0.9, 1.0), (0.77, 1.0, 1.0, 0.1, 0.2), (1.0,) * 5])
        weights = weights[trial % 3]
        count = plan_staged_tree(60, 2, 5, 1.0, seed=0, counts=True).count
        plan = replace(small_plan(data[0][0].shape[1], 5, 14, (trial,)), count=count)
        numbers = [rng.integers(10**6, size=1), rng.integers(10**6, size=2), [0.0]]
        values = [counted(plan, *one, numbers, weights)[1] for one in data]
        changes = [np.abs(values[0][0] - values[1][0]).max()]
        apart = [a - b for a, b in zip(values[0][1], values[1][1], strict=True)]
        ends = [abs(sum(end(part) for part in apart)) for end in (np.max, np.min)]
        # Errors are counted where all weights are one.
        exact = np.abs(values[0][2] - values[1][2]).max() if weights.min() == 1.0 else 0.0
        worst = np.maximum(worst, [*changes, max(ends), exact])
    return worst.tolist()


def test_a_record_changes_a_cost_by_one_at_most():
    assert largest_changes() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(("n_classes", "counts"), [(6, False), (6, True), (5, False)])
def test_two_choices_are_released_within_the_budget(n_classes, counts):
    X, codes = wild(60, 2, n_classes)
    plan = plan_staged_tree(60, 2, n_classes, EPSILON, seed=0, counts=counts)
    plan = replace(plan, n_cuts=14)
    assert EPSILON * (1 - 1e-8) <= sum(event.epsilon for event in plan.events) <= EPSILON
    with record_releases() as releases:
        plan.run(table_door(X, codes, *plan.events), 60, np.ones(n_classes))
    assert [release.mechanism.event for release in releases] == list(plan.events)
    first, sides = (release.mechanism for release in releases[:2])
    assert first == TalliedChoice(plan.epsilons[0])
    assert sides == TalliedChoices(sides.lengths, plan.epsilons[1])
    sizes = [np.size(release.released) for release in releases]
    assert sizes == [1, 2, 1][: len(sizes)]
    listed = len(releases[0].value) + len(releases[1].value)
    assert dict(plan.public)["n_candidates"] == listed
    assert dict(plan.public)["private_preconditioner"] is False


def test_the_lists_are_public_randomness_and_three():
    first, second = (plan_staged_tree(300, 4, 5, 1.0, seed=3) for _ in range(2))
    assert first == second
    assert first != plan_staged_tree(300, 4, 5, 1.0, seed=4)
    assert plan_staged_tree(300, 4, 5, 1.0, seed=None) != plan_staged_tree(
        300, 4, 5, 1.0, seed=None
    )
    labels = np.array([True, True, False, False, False])
    cut = _Cut(0, np.zeros(4), 0.0, labels)
    seeds = {first._side(cut, above=above).cells.seed for above in (False, True)}
    assert len({first.cells.seed, *seeds}) == 3
    assert sum(width for *_, width in small_plan(3, n_cuts=14).cells.blocks) == 14


def test_both_stages_stay_within_the_budget():
    """To the last bit: the float nearest to the rest may be above it."""
    for k in range(1, 60):
        plan = plan_staged_tree(60, 2, 6, k / 10, seed=0)
        assert sum(map(Fraction, plan.epsilons)) <= Fraction(k / 10)
