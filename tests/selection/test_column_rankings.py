"""A column that ranks a rare class: costs by brute force, what is released, planted bugs."""

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import floor

import numpy as np
import pytest

from dp_halfspace.privacy.exponential import TalliedChoice
from dp_halfspace.privacy.randomness import SeededBytes
from dp_halfspace.rows.directions import asinh_cells
from dp_halfspace.selection import column_rankings
from dp_halfspace.selection.column_rankings import choose_column, missed_records
from tests.adversarial import neighbouring_pairs
from tests.permits import table_door
from tests.releases import record_releases


def wild(n, d, seed=0):
    """Columns of all sizes with ties, missing entries and the largest numbers, and classes."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((n, d)), 1) * 10.0 ** rng.integers(-9, 9, d)
    X[0], X[1, 0], X[2] = np.nan, 1e308, -np.inf
    return X, (rng.random(n) < 0.3).astype(int)


def expected_miss(score, is_rare):
    """The mean number of rare records below the top, over all ways to decide between equal ones."""
    size = max(1, 3 * len(score) // 10)
    ranked = sorted(zip(-score, is_rare, strict=True))
    end = ranked[size - 1][0]
    above, equal = ([r for s, r in ranked if keeps(s)] for keeps in (end.__gt__, end.__eq__))
    part = Fraction(size - len(above), len(equal))
    return int(is_rare.sum()) - int(sum(above)) - part * int(sum(equal))


@pytest.mark.parametrize("n", [1, 5, 40])
def test_costs_are_the_rare_records_below_the_top(n):
    X, y = wild(max(n, 3), 3)
    for column, is_rare in product(X[:n].T, (y[:n] == 1, y[:n] == 0)):
        cells = asinh_cells(column, column_rankings._EXPONENT).astype(float)
        expected = [floor(expected_miss(score, is_rare)) for score in (cells, -cells)]
        assert missed_records(column, is_rare).tolist() == expected


def largest_change():
    """The largest change of a cost between neighbours, extreme ones and ties among them."""
    worst, rng = 0, np.random.default_rng(1)
    for seed in range(150):
        n = int(rng.integers(2, 14))
        X, y = np.round(rng.standard_normal((n, 1)), seed % 2), rng.integers(2, size=n)
        if seed % 3 == 0:
            y[1:] = seed % 2
        X[0] = rng.choice([-1e9, 1e9, 0.0])
        other, labels = X.copy(), y.copy()
        other[0] = rng.choice([-1e9, 1e9, np.nan])
        labels[0] = rng.integers(2)
        worst = max(worst, change_of_cost(X, y, other, labels))
    for pair in neighbouring_pairs(rng, 100):
        worst = max(worst, change_of_cost(*pair))
    return worst


def change_of_cost(X, y, other, labels):
    """The larger change with either class as the rare one, for a public choice of it."""
    changes = [
        missed_records(X[:, 0], y == rare) - missed_records(other[:, 0], labels == rare)
        for rare in (0, 1)
    ]
    return np.abs(changes).max()


def test_a_record_changes_a_cost_by_one_at_most():
    assert largest_change() == 1


def test_all_neighbours_of_a_few_records_differ_by_one_at_most():
    """All multisets of up to five records with three values and two labels."""
    records, worst = list(product((-1.0, np.nan, 1.0), (False, True))), 0
    for n in range(1, 6):
        costs = {}
        for table in combinations_with_replacement(range(len(records)), n):
            column, is_rare = (
                np.array(part) for part in zip(*(records[i] for i in table), strict=True)
            )
            costs[table] = missed_records(column, is_rare)
            scores = np.nan_to_num(column)
            expected = [floor(expected_miss(score, is_rare)) for score in (scores, -scores)]
            assert costs[table].tolist() == expected
        for table, place, record in product(costs, range(n), range(len(records))):
            other = tuple(sorted((*table[:place], *table[place + 1 :], record)))
            worst = max(worst, np.abs(costs[other] - costs[table]).max())
    assert worst == 1


def test_the_bound_is_attained_by_one_record_of_the_rarer_class():
    """From below all others to above them, and with a new label below them."""
    is_rare = np.arange(100) < 4
    ends = [np.r_[end, -9.0 * np.ones(3), np.zeros(96)] for end in (-9.0, 1.0)]
    costs = [missed_records(column, is_rare)[0] for column in ends]
    assert costs == [4, 3]
    assert missed_records(ends[0], np.arange(100) < 5)[0] == 4
    assert missed_records(np.r_[ends[0][:4], -9.0, ends[0][5:]], np.arange(100) < 5)[0] == 5


def test_each_candidate_ranks_by_what_was_counted():
    X, y = wild(60, 4)
    asked, repeats = [], np.array([1, 3, 0, 2])
    for common, number in product((0, 1), range(12)):
        choice = Fixed(1.0, number, asked)
        model = choose_column(table_door(X, y, choice.event), common, repeats, choice)
        scores = asinh_cells(X, model.exponent).astype(float) @ model.coefficients
        scores = scores + model.intercept
        assert np.all(scores > 0) if common else np.all(scores < 0)
        column = np.flatnonzero(model.coefficients)[0]
        is_opposite = int(model.coefficients[column] < 0.0)
        start = 2 * repeats[:column].sum() + is_opposite * repeats[column]
        assert start <= number < start + repeats[column]
        # A rare first class has the smallest scores.
        direction, is_rare = (-1.0, y == 0) if common else (1.0, y == 1)
        missed = missed_records(X[:, column], is_rare)[int(is_opposite != common)]
        assert missed == floor(expected_miss(direction * scores, is_rare))
        assert asked[-1][number] == missed


@dataclass(frozen=True)
class Fixed(TalliedChoice):
    """A choice that is known beforehand."""

    number: int = 0
    asked: list = field(default_factory=list, compare=False)

    def perturb(self, value, source):
        """Return the number, and note the costs."""
        del source
        self.asked.append(value)
        return np.array([float(self.number)])


def test_one_choice_is_released_and_nothing_else():
    X, y = wild(50, 2)
    choice, ones = TalliedChoice(0.5), np.ones(2, dtype=int)
    door = table_door(X, y, choice.event, source=SeededBytes(0, "noise"))
    with record_releases() as releases:
        choose_column(door, 0, ones, choice)
    assert [release.mechanism for release in releases] == [choice]
    with pytest.raises(RuntimeError, match="not charged"):
        choose_column(table_door(X, y), 0, ones, choice)
