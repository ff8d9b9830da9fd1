"""How near the majority class a mechanism can stay: ``docs/proofs/small_tables.md``, section 10."""

import numpy as np
import pytest
from scipy.optimize import linprog


def smallest_largest_loss(n, epsilon):
    """Solve for the mechanism with the smallest largest loss over all tables without features.

    The unknowns are the probabilities of the second label for 0 to `n` records of it, and the loss.
    """
    rows, limits = [], []

    def at_most(terms, limit):
        row = np.zeros(n + 2)
        for place, value in terms:
            row[place] = value
        rows.append(row)
        limits.append(limit)

    factor = np.exp(epsilon)
    for here in range(n + 1):
        for there in {here - 1, here + 1} & set(range(n + 1)):
            at_most([(here, 1.0), (there, -factor)], 0.0)
            # The same for the other label.
            at_most([(here, -1.0), (there, factor)], factor - 1.0)
        more = abs(n - 2 * here) / n
        if 2 * here < n:
            at_most([(here, more), (n + 1, -1.0)], 0.0)
        else:
            at_most([(here, -more), (n + 1, -1.0)], -more)
    goal = np.append(np.zeros(n + 1), 1.0)
    return linprog(goal, np.array(rows), np.array(limits), bounds=[(0.0, 1.0)] * (n + 2)).fun


@pytest.mark.parametrize(("n", "epsilon"), [(10, 1.0), (20, 0.5), (40, 0.5), (60, 1.0), (60, 0.1)])
def test_no_mechanism_is_nearer_to_the_majority_class_than_the_bound(n, epsilon):
    differences = np.arange(2, n + 1, 2)
    bound = np.max(differences / (2.0 * n) * np.exp(-epsilon * differences / 2.0))
    assert smallest_largest_loss(n, epsilon) == pytest.approx(bound, rel=1e-6)
    assert bound <= (1.0 + 1e-9) / (np.e * n * epsilon)


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0])
def test_two_constant_classifiers_lose_less_than_twice_the_bound(epsilon):
    n = 400
    differences = np.arange(2, n + 1, 2)
    smallest = differences / (2.0 * n) * np.exp(-epsilon * differences / 2.0)
    chosen = differences / n / (1.0 + np.exp(epsilon * differences / 2.0))
    assert np.all(smallest <= (1.0 + 1e-12) * chosen)
    assert np.all(chosen <= (2.0 + 1e-12) * smallest)
    assert chosen.max() <= 0.557 / (n * epsilon)


def test_the_bound_is_above_the_goal_for_the_smallest_budgets_only():
    found = {n_epsilon: smallest_largest_loss(120, n_epsilon / 120) for n_epsilon in (20, 30)}
    assert found[20] > 0.015 > found[30]
