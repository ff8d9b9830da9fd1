"""Intervals of private scores: how often they cover, how wide they are, and what they consist of.

Releases are drawn as counts, many at a time (``benchmarks/score_grid.py``).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks import score_grid
from benchmarks.score_grid import CASES, figures, grid, releases
from dp_halfspace.metrics import METRICS, _intervals
from dp_halfspace.metrics._intervals import Released, area_under_curve, within_range

INF = math.inf
# On each side of an interval are two percent of a normal distribution.
LIMIT = norm.ppf(0.98)
# A recall of one, classes that are hardly there, rankings without an error, rare losses.
HARD = [
    ("accuracy", 500, 0.3, True, 4, 0.1, 1.0, False),
    ("accuracy by group", 500, 0.3, True, 4, 0.1, 1.0, False),
    ("average_precision", 500, 1.0, False, 0.06, INF),
    ("average_precision", 500, 3.0, True, 0.06, 0.0),
    ("average_precision", 2000, 0.3, False, 0.5, 0.0),
    ("average_precision", 2000, 1.0, True, 0.02, 1.0),
    ("balanced_accuracy", 500, 1.0, False, 2, 0.5, 1.0, False),
    ("balanced_accuracy", 2000, 1.0, False, 7, 0.5, 0.99, False),
    ("balanced_accuracy", 1000, 0.3, False, 7, 0.1, 1.0, False),
    ("balanced_accuracy by group", 200, 0.3, False, 7, 0.02, 1.0, False),
    ("balanced_accuracy by group", 2000, 0.3, True, 7, 0.02, 0.99, False),
    ("balanced_accuracy by group", 1000, 3.0, True, 2, 0.02, 0.5, False),
    ("confusion_matrix", 500, 0.3, True, 4, 0.1, 1.0, False),
    ("f1", 200, 1.0, True, 0.02, 0.5, 0.02),
    ("log_loss", 200, 3.0, True, 0.5, 1.0),
    ("log_loss", 500, 1.0, True, 0.02, 4.0),
    ("majority", 1000, 1.0, False, 7, 0.5, 0.8, False),
    ("precision", 200, 1.0, True, 0.02, 0.5, 0.02),
    ("recall", 200, 3.0, True, 0.02, 0.5, 0.02),
    ("roc_auc", 200, 0.3, True, 0.2, INF),
    ("roc_auc", 500, 0.3, False, 0.5, INF),
]
# Widths on every thirteenth cell of the grid, `python -m benchmarks.score_grid`.
WIDTHS = {
    "accuracy": 0.058, "accuracy by group": 0.221, "average_precision": 0.500,
    "balanced_accuracy": 0.174, "balanced_accuracy by group": 0.376,
    "confusion_matrix": 41.8, "f1": 0.262,
    "log_loss": 0.178, "majority": 0.082, "precision": 0.267, "recall": 0.319, "roc_auc": 0.444,
}  # fmt: skip


def least_coverage(runs):
    """95 %, less two standard errors."""
    return 0.95 - 2.0 * math.sqrt(0.95 * 0.05 / runs)


@pytest.mark.parametrize(("name", "cell"), [(name, cell) for name, *cell in HARD])
def test_intervals_cover_where_noise_or_few_records_decide(name, cell):
    found = figures(name, *cell, runs=400)
    assert found.coverage >= least_coverage(400), found


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_intervals_cover_on_a_grid(name):
    rows = [(figures(name, *cell, runs=2000), cell) for cell in grid(name, 13)]
    below = [row for row in rows if row[0].coverage < least_coverage(2000)]
    assert not below
    assert np.mean([found.width for found, _ in rows]) < 1.05 * WIDTHS[name]


def test_every_metric_is_on_the_grid():
    assert {case.metric for case in CASES.values()} == set(METRICS)
    assert set(WIDTHS) == set(CASES) == {name for name, *_ in HARD}
    for name in CASES:
        cells = list(grid(name, 13))
        assert len(cells) > 30
        assert all(len(set(column)) > 1 for column in zip(*cells, strict=True))


ORDINARY = {"f1": (0.5, 0.8, 0.15), "precision": (0.5, 0.8, 0.15), "recall": (0.5, 0.8, 0.15)}
ORDINARY |= {name: (0.5, 1.0) for name, case in CASES.items() if len(case.levels) == 2}
SINGLE = sorted(set(CASES) - {"majority"})


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("budget", [(1000, 3.0, False), (4000, 0.3, False), (4000, 0.1, True)])
def test_intervals_are_as_wide_as_the_estimate_varies(name, budget):
    """Mostly sampling; as much noise; mostly noise, of Laplace."""
    released, _ = releases(name, *budget, *ORDINARY.get(name, (4, 0.1, 0.8, False)), runs=400)
    value, low, high = (CASES[name].estimate or METRICS[name].estimate)(released)
    ratio = np.mean(np.mean(high - low, axis=0) / np.std(value, axis=0)) / (2.0 * LIMIT)
    assert 0.86 < ratio < 1.25


@pytest.mark.parametrize(
    ("name", "population", "bias"),
    [
        ("average_precision", (0.06, 2.0), 0.035),
        ("roc_auc", (0.06, 2.0), 0.01),
        ("balanced_accuracy", (2, 0.06, 0.8, False), 0.02),
    ],
)
def test_values_of_rare_classes_are_not_too_low(name, population, bias):
    found = figures(name, 2000, 3.0, False, *population, runs=400)
    assert abs(found.value - found.truth) < bias, found


def test_the_limit_of_a_mean_recall_counts_sampling_and_the_noise_of_every_class():
    """A recall of one half, of 1000 records and the noise of three counts, for each of three."""
    row = [500.0, 300.0, 200.0]
    table = Released(np.array([np.roll(row, j) for j in range(3)]), 3000, 400.0)
    value, low, high = _intervals.mean_recall_in_table(table)
    for p in (0.5 - (value - low) * 3**0.5, 0.5 + (high - value) * 3**0.5):
        deviation = np.sqrt(1000 * p * (1 - p) + 400 * ((1 - p) ** 2 + 2 * p**2))
        assert abs(500 - 1000 * p) == pytest.approx(LIMIT * deviation, rel=0.02)


def test_a_recall_that_noise_takes_out_of_its_range_balances_another():
    """Two classes without an error, of which noise says 1.1 and .9."""
    counts = np.array([[-20.0, 220.0], [20.0, 180.0]])
    value, low, high = within_range(_intervals.mean_recall(Released(counts, 400, 200.0)))
    assert value == pytest.approx(1.0)
    assert high == 1.0
    assert low < 0.95


def test_a_class_of_which_nothing_is_known_may_have_any_recall():
    counts = np.array([[100.0, 900.0], [3.0, 4.0]])
    value, low, high = within_range(_intervals.mean_recall(Released(counts, 1007, 100.0)))
    assert low < 0.45
    assert high > 0.95
    assert low < value < high


@pytest.mark.parametrize(("share", "spread"), [(0.99, 4.0), (0.5, 1.0)])
def test_shares_near_their_ends_are_covered_by_intervals_that_are_not_empty(share, spread):
    rng = np.random.default_rng(0)
    noisy = rng.binomial(100, share, 4000) + spread * rng.standard_normal(4000)
    released = Released(noisy, 100, spread**2)
    value, low, high = within_range(_intervals._share_of_n(noisy, released))
    assert np.mean((low <= share) & (share <= high)) > 0.95
    assert (high - low).min() > 0.0
    assert ((low <= value) & (value <= high)).all()


def test_a_share_with_noise_of_laplace_alone_has_its_quantile():
    value, low, high = _intervals._share_of_n(np.array(5e8), Released(0.0, 10**9, 1e14, True))
    wide = -math.log(0.04) / math.sqrt(2.0) * 1e7 / 1e9
    assert (float(value - low), float(high - value)) == pytest.approx((wide, wide), rel=1e-4)


def test_intervals_at_once_divide_what_they_may_miss():
    released = Released(np.zeros((2, 2)), 4, 1.0)
    for k in (1, 3, 15):
        assert released.at_once(k).limit == pytest.approx(norm.ppf(1.0 - 0.02 / k))


def test_the_lower_end_of_the_majority_holds_for_every_class():
    counts = np.array([[1500.0, 500.0], *[[500.0, 500.0]] * 6])
    value, low, high = _intervals.majority_share(Released(counts, 8000, 900.0))
    for end, limit in ((low, norm.ppf(1.0 - 0.02 / 7)), (high, LIMIT)):
        wide = limit * math.sqrt(8000 * end * (1.0 - end) + 2 * 900.0)
        assert abs(end - value) * 8000 == pytest.approx(wide, rel=1e-4)


def test_the_interval_of_an_area_is_mirrored_with_the_scores():
    rng = np.random.default_rng(0)
    counts = rng.poisson([np.linspace(20, 2, 9), np.linspace(1, 25, 9)]).astype(float)
    for area in (counts, counts[:, ::-1]):
        value, low, high = area_under_curve(Released(area, area.sum(), 9.0))
        other = area_under_curve(Released(area[:, ::-1], area.sum(), 9.0))
        assert (1.0 - value, 1.0 - high, 1.0 - low) == pytest.approx(other)


@pytest.mark.parametrize("name", SINGLE)
def test_every_release_of_many_has_the_interval_that_it_has_alone(name):
    cell = next(iter(grid(name, 13)))
    released, _ = releases(name, *cell, runs=3)
    estimate = CASES[name].estimate or METRICS[name].estimate
    for k in range(3):
        for many, alone in zip(
            estimate(released), estimate(replace(released, counts=released.counts[k])), strict=True
        ):
            np.testing.assert_allclose(many[k], alone, rtol=1e-9, atol=1e-9)


def test_populations_of_the_grid_are_shares_of_records():
    for name, case in CASES.items():
        for cell in grid(name, 13):
            shares = case.shares(*cell[3:])
            assert shares.sum() == pytest.approx(1.0)
            assert shares.min() >= 0.0
    perfect = score_grid.in_cells(0.2, INF)
    assert score_grid.area(perfect) == score_grid.average_precision(perfect) == 1.0
    assert score_grid.average_precision(score_grid.in_cells(0.2, 0.0)) == pytest.approx(0.2)


@pytest.mark.slow
def test_planted_bug_half_the_variance_is_seen(monkeypatch):
    honest, caught = _intervals._limit, []
    monkeypatch.setattr(
        _intervals, "_limit", lambda sampling, noise, r: honest(sampling, 0.5 * noise, r)
    )
    for name in SINGLE:
        try:
            test_intervals_are_as_wide_as_the_estimate_varies(name, (4000, 0.1, True))
        except AssertionError:
            caught.append(name)
    assert len(caught) > len(SINGLE) // 2


@pytest.mark.parametrize("name", ["roc_auc", "average_precision"])
def test_noise_that_all_counts_of_scores_have_in_common_is_removed(name):
    """Their total is the public number of records."""
    counts = np.array([[40.0, 30.0, 20.0, 10.0], [5.0, 10.0, 20.0, 30.0]])
    plain, shifted = (METRICS[name].estimate(Released(counts + c, 165, 9.0)) for c in (0.0, 7.0))
    np.testing.assert_allclose(shifted, plain, atol=1e-6)
