"""A column that ranks a rare class: costs by brute force, what is released, planted bugs."""

from contextlib import nullcontext
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from dp_halfspace.algorithms.search import column_rankings
from dp_halfspace.algorithms.search.column_rankings import (
    ColumnRankingPlan,
    pair_costs,
    plan_column_ranking,
)
from dp_halfspace.algorithms.search.directions import asinh_cells
from dp_halfspace.privacy.exponential import TalliedChoice
from dp_halfspace.privacy.randomness import SeededBytes
from tests.adversarial import neighbouring_pairs
from tests.algorithms.support import permit_for
from tests.releases import record_releases


@pytest.fixture(autouse=True)
def _one_thread_already(monkeypatch):
    """As for small tables: holding the threads would take most of the time."""
    monkeypatch.setattr(column_rankings, "single_blas_thread", nullcontext)


def wild(n, d, seed=0):
    """Columns of all sizes with ties, missing entries and the largest numbers, and classes."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((n, d)), 1) * 10.0 ** rng.integers(-9, 9, d)
    X[0], X[1, 0], X[2] = np.nan, 1e308, -np.inf
    return X, (rng.random(n) < 0.3).astype(int)


def test_costs_are_pairs_in_the_wrong_order():
    X, y = wild(40, 3)
    for j in range(3):
        cells = asinh_cells(X[:, j], column_rankings._EXPONENT)
        pairs = [(a, b) for a in cells[y == 0] for b in cells[y == 1]]
        wrong = sum((a > b) + Fraction(int(a == b), 2) for a, b in pairs)
        expected = [wrong // 40, (len(pairs) - wrong) // 40]
        assert pair_costs(X[:, [j]], y).tolist() == expected


def largest_change():
    """The largest change of a cost between neighbours, extreme ones among them."""
    worst, rng = 0, np.random.default_rng(1)
    for seed in range(150):
        n = int(rng.integers(2, 12))
        X, y = np.round(rng.standard_normal((n, 1)), 1), rng.integers(2, size=n)
        if seed % 3 == 0:
            y[1:] = seed % 2
        X[0] = rng.choice([-1e9, 1e9, 0.0])
        other, labels = X.copy(), y.copy()
        other[0] = rng.choice([-1e9, 1e9, np.nan])
        labels[0] = rng.integers(2)
        worst = max(worst, np.abs(pair_costs(X, y) - pair_costs(other, labels)).max())
    for X, y, other, labels in neighbouring_pairs(rng, 100):
        costs = [pair_costs(*pair) for pair in ((X[:, [0]], y), (other[:, [0]], labels))]
        worst = max(worst, np.abs(costs[0] - costs[1]).max())
    return worst


def test_a_record_changes_a_cost_by_one_at_most():
    assert largest_change() == 1


def test_the_bound_is_attained_by_one_record_of_the_rarer_class():
    """From below all others to above them, beside one that is below them in both."""
    y = np.r_[1, 1, np.zeros(998, dtype=int)]
    costs = [pair_costs(np.r_[end, -9.0, np.zeros(998)][:, None], y) for end in (-1.0, 1.0)]
    assert [cost.tolist() for cost in costs] == [[1, 0], [0, 0]]


def test_brute_force_sees_pairs_that_count_twice(monkeypatch):
    honest = np.searchsorted

    class Twice:
        """numpy with another search."""

        searchsorted = staticmethod(lambda *a, **k: 2 * honest(*a, **k))

        def __getattr__(self, name):
            return getattr(np, name)

    monkeypatch.setattr(column_rankings, "np", Twice())
    assert largest_change() > 1


def test_each_candidate_ranks_by_what_was_counted():
    X, y = wild(60, 4)
    plan = plan_column_ranking((1, 1, 2), 1.0)
    assert plan.repeats == (60, 60, 30, 30)
    assert plan.n_listed == 360
    for common in (0, 1):
        for number in range(0, plan.n_listed, 15):
            fixed = ColumnRankingPlan(plan.repeats, Fixed(1.0, number))
            model = fixed.run(X, y, common, permit_for(fixed.choice.event))
            scores = asinh_cells(X, model.exponent).astype(float) @ model.coefficients
            scores = scores + model.intercept
            assert np.all(scores > 0) if common else np.all(scores < 0)
            column = np.flatnonzero(model.coefficients)[0]
            is_opposite = int(model.coefficients[column] < 0.0)
            start = 2 * sum(plan.repeats[:column]) + is_opposite * plan.repeats[column]
            assert start <= number < start + plan.repeats[column]
            pairs = [np.sign(b - a) for a in scores[y == 0] for b in scores[y == 1]]
            wrong = Fraction(int(len(pairs) - sum(pairs)), 2)
            assert pair_costs(X[:, [column]], y)[is_opposite] == wrong // 60


@dataclass(frozen=True)
class Fixed(TalliedChoice):
    """A choice that is known beforehand."""

    number: int = 0

    def perturb(self, value, source):
        """Return the number."""
        del value, source
        return np.array([float(self.number)])


def test_one_choice_is_released_and_nothing_else():
    X, y = wild(50, 2)
    plan = plan_column_ranking((1, 1), 0.5)
    with record_releases() as releases:
        plan.run(X, y, 0, permit_for(*plan.events, source=SeededBytes(0, "noise")))
    assert [release.mechanism for release in releases] == [plan.choice]
    with pytest.raises(RuntimeError, match="not charged"):
        plan.run(X, y, 0, permit_for())


def test_columns_share_a_place_in_the_list_where_they_encode_one():
    plan = plan_column_ranking((1, 30, 200), 1.0)
    parts = np.split(np.array(plan.repeats), [1, 31])
    assert [part.sum() for part in parts] == [60, 60, 200]
