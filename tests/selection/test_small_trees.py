"""One selection among trees of two cuts: distribution, exact counts, what one record can do."""

from fractions import Fraction

import numpy as np
import pytest

from dp_halfspace.privacy.exponential import TalliedChoice
from dp_halfspace.rows.directions import FEWEST, CellStream, asinh_cells
from dp_halfspace.selection.small_tables import share_of
from dp_halfspace.selection.small_trees import (
    TreeSelection,
    forms,
    plan_small_tree,
)
from tests.selection.test_small_tables import EPSILON, assert_one_choice, largest_change, wild


def small_plan(n_columns, n_classes=3, n_pairs=14, seed=(1,)):
    return TreeSelection(n_columns, n_classes, n_pairs, 3, TalliedChoice(EPSILON), seed)


def costs(plan, X, codes, weights=None):
    weights = np.ones(plan.n_classes) if weights is None else weights
    return np.concatenate(list(plan.costs(X, codes, weights)))


def test_labels_of_leaves_differ_and_the_list_is_as_long_as_it_says():
    for n_classes in (3, 4, 7):
        found = forms(n_classes)
        assert all(len(set(labels)) == len(shape.leaves) for _, shape, labels in found)
        assert len(set(found)) == len(found)
        plan = small_plan(2, n_classes)
        counted = costs(plan, np.zeros((5, 2)), np.zeros(5, dtype=int))
        assert dict(plan.public)["n_candidates"] == len(counted)
    # Two cuts of two leaves, and twice four trees of three.
    assert len(forms(3)) == 2 * 6 + 2 * 4 * 6


def test_more_records_of_a_class_than_fit_into_a_byte_are_counted():
    """Equal rows of one class are all counted, or none is."""
    assert set(costs(small_plan(1), np.ones((600, 1)), np.zeros(600, dtype=int))) == {0, 600}


@pytest.mark.parametrize(("d", "n_classes"), [(1, 3), (4, 3), (3, 5)])
def test_a_candidate_predicts_what_was_counted(d, n_classes):
    """Numbers of the list lead to linear models with exactly their errors, by their weights."""
    X, codes = wild(60, d, n_classes, seed=1)
    plan, weights = small_plan(d, n_classes), 0.5 ** np.arange(n_classes)
    counted = costs(plan, X, codes, weights)
    rng = np.random.default_rng(0)
    tables = {None: X}
    kinds = set()
    for number in [*rng.permutation(len(counted))[:120], len(counted) - 1]:
        model = plan.candidate(int(number))
        if model.exponent not in tables:
            tables[model.exponent] = asinh_cells(X, model.exponent).astype(float)
        scores = tables[model.exponent] @ model.coefficients.T + model.intercept
        wrong = scores.argmax(axis=1) != codes
        assert int(weights[codes[wrong]].sum()) == counted[number]
        best = np.sort(scores, axis=1)
        assert (best[:, -1] > best[:, -2]).all()
        kinds.add(int(model.coefficients.any(axis=1).sum()))
    assert kinds == {0, 2, 3}


def test_scores_of_a_tree_are_exact():
    """At the largest cells and coefficients that a list can hold."""
    plan = small_plan(30, 3, 200)
    X = wild(20, 30, 3)[0]
    X[:10] = np.sign(np.random.default_rng(2).standard_normal((10, 30))) * 1e300
    for number in np.random.default_rng(0).permutation(plan.n_listed)[:20]:
        model = plan.candidate(int(number))
        if model.exponent is None:
            continue
        cells = asinh_cells(X, model.exponent).astype(float)
        scores = cells @ model.coefficients.T + model.intercept
        for row, found in zip(cells.tolist(), scores.tolist(), strict=True):
            for a, b, score in zip(
                model.coefficients.tolist(), model.intercept.tolist(), found, strict=True
            ):
                exact = sum(Fraction(u) * Fraction(v) for u, v in zip(a, row, strict=True))
                assert Fraction(score) == exact + Fraction(b)


def test_a_record_changes_a_cost_by_one_at_most():
    weights = (1.0, 0.3, 0.5, 0.9), (0.77, 1.0, 1.0, 0.1), (1.0,) * 4
    plan_of = lambda d, seed: small_plan(d, 4, 20, seed)  # noqa: E731
    assert largest_change(plan_of, weights, 18, n_classes=4) == 1


def test_one_choice_is_released_and_nothing_else():
    plan = plan_small_tree(30, 2, 3, EPSILON, seed=0)
    assert_one_choice(plan, *wild(30, 2, 3), np.ones(3))


def test_shares_of_errors_of_many_classes_stay_below_those_of_a_guess():
    for n_classes in (2, 3, 7):
        guess = 1.0 - 1.0 / n_classes
        shares = [share_of(noisy, 400, (0.5, 0.5), n_classes) for noisy in (-1e4, 40.0, 100.0, 1e4)]
        assert shares == sorted(shares)
        assert 0.0 < shares[0] < 0.02
        assert 0.95 * guess < shares[-1] < guess
        # A count that says nothing leaves the mean of the prior.
        prior = guess * (1.0 / 2.0 if n_classes == 2 else 2.0 / 3.0)
        assert share_of(40.0, 400, (1e-9, 1e-9), n_classes) == pytest.approx(prior, rel=1e-3)


def test_the_list_is_public_randomness_with_constants_and_of_bounded_length():
    first, second = (plan_small_tree(300, 4, 3, 1.0, seed=3) for _ in range(2))
    assert first == second
    assert first != plan_small_tree(300, 4, 3, 1.0, seed=4)
    assert plan_small_tree(300, 4, 3, 1.0, seed=None) != plan_small_tree(300, 4, 3, 1.0, seed=None)
    for n_classes in range(3, 8):
        for n_samples in (100, 3000, 10**6):
            plan = plan_small_tree(n_samples, 20, n_classes, 1.0, seed=0)
            listed = dict(plan.public)["n_candidates"]
            assert n_classes * plan.n_constants / listed == pytest.approx(0.1, abs=0.005)
            assert listed < 5e6
        assert plan_small_tree(10**12, 20, n_classes, 1.0, seed=0).n_pairs == FEWEST
    assert isinstance(first.cells, CellStream)
