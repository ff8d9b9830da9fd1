"""How often the intervals of private scores cover the truth, over a grid of made-up populations.

``python -m benchmarks.score_grid [METRIC ...] --runs 2000 --part 13``: 200 to 10,000 records are
drawn from populations whose scores are known, as counts, and released with the noise of epsilon .3
to 3, ``delta`` 0 and 1 / n^2. A row is one metric: the cells of the grid, the least coverage, the
share of cells below .95 less two standard errors, the mean coverage, the mean width, and the mean
error of the value. ``--part 13`` takes every thirteenth cell. A cell has a seed of its own.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy starts its threads
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm

from dp_halfspace.metrics import METRICS, _intervals, _tallies, score
from dp_halfspace.metrics._intervals import Estimate, Released, within_range
from dp_halfspace.privacy.mechanisms import noise_deviation
from dp_halfspace.privacy.noise import DiscreteLaplaceNoise
from dp_halfspace.privacy.profiles import gdp_mu

BUDGETS = (200, 500, 1000, 2000, 10000), (0.3, 1.0, 3.0), (False, True)
# Share of the rarest class, or of the positives.
RARE = (0.02, 0.06, 0.2, 0.5)
# Classes, share of the rarest, recall, and whether that of the rarest is one half.
TABLES = ((2, 4, 7), (0.02, 0.1, 0.5), (0.5, 0.8, 0.95, 0.99, 1.0), (False, True))
# Share of positives, recall, false positive rate.
TWO_CLASSES = (RARE, (0.5, 0.8, 0.95, 1.0), (0.0, 0.02, 0.15))
# Share of positives, distance of the classes in standard deviations of the score.
SCORES = (RARE, (0.0, 1.0, 2.0, 4.0, math.inf))
LOSSES = (RARE, (0.0, 1.0, 2.0, 4.0))
# Share of the records in the group that is scored.
GROUP = 0.4


def confusion(k: int, rare: float, recall: float, is_mixed: bool) -> Any:
    """Return the share of records of every class and prediction; errors are spread evenly."""
    rare = min(rare, 1.0 / k)
    shares = np.append(np.full(k - 1, (1.0 - rare) / (k - 1)), rare)
    recalls = np.append(np.full(k - 1, recall), 0.5 if is_mixed else recall)
    errors = np.outer((1.0 - recalls) / (k - 1), np.ones(k))
    np.fill_diagonal(errors, recalls)
    return shares[:, None] * errors


def of_two_classes(rare: float, recall: float, false: float) -> Any:
    """Return the confusion matrix of two classes."""
    return np.array([[1.0 - rare], [rare]]) * [[1.0 - false, false], [1.0 - recall, recall]]


def in_cells(rare: float, distance: float, borders: Any = _tallies.HALF_LOG_ODDS) -> Any:
    """Return the share of records of both classes in cells of the score, a true probability."""
    shares = np.array([[1.0 - rare], [rare]])
    if math.isinf(distance):
        return shares * (np.arange(len(borders) + 1) == [[0], [len(borders)]])
    # Scores of a model that knows nothing have a distribution, too.
    cuts = (logit(borders) - logit(rare)) / (distance or 0.5)
    inside = norm.cdf(cuts - np.array([[-0.5], [0.5]]) * distance)
    return shares * np.diff(inside, axis=1, prepend=0.0, append=1.0)


_NORMAL = np.linspace(-5.0, 5.0, 401)


def by_score(rare: float, distance: float) -> Any:
    """Return the share of records of both classes at points of a normal distribution."""
    del distance
    return np.outer([1.0 - rare, rare], norm.pdf(_NORMAL) / norm.pdf(_NORMAL).sum())


def log_losses(rare: float, distance: float) -> Any:
    """Return the loss, over the largest one, at these points of scores that are true chances."""
    side = np.array([[-1.0], [1.0]])
    odds = distance * (distance / 2.0 + side * _NORMAL) + side * logit(rare)
    chance, largest = expit(odds), _tallies.LARGEST_LOG_LOSS
    return np.minimum(-np.log(np.maximum(chance, 1e-9)), largest) / largest


def mean_recall(shares: Any) -> Any:
    """Return the mean recall of a population."""
    return np.mean(np.diagonal(shares) / shares.sum(axis=1))


def average_precision(shares: Any) -> Any:
    """Return the average precision of cells."""
    false, true = np.cumsum(shares[:, ::-1], axis=1)
    return shares[1, ::-1] @ (true / np.maximum(false + true, 1e-99)) / true[-1]


def precision(shares: Any) -> Any:
    """Return the share of the second class among the records predicted to be of it, 0 of none."""
    return shares[1, 1] / np.maximum(shares[:, 1].sum(), 1e-99)


def area(shares: Any) -> Any:
    """Return the area under the curve of cells."""
    negative, positive = shares / shares.sum(axis=1, keepdims=True)
    return positive @ (np.cumsum(negative) - negative / 2.0)


def _right_and_classes(tables: Any) -> Any:
    right = _tallies.RIGHT * np.trace(tables, axis1=1, axis2=2)
    return np.concatenate([right[:, None], tables.sum(axis=2)], axis=1)


def _wrong_and_right(tables: Any) -> Any:
    right = np.diagonal(tables, axis1=1, axis2=2)
    return np.stack([tables.sum(axis=2) - right, right], axis=2)


def _as_drawn(tables: Any) -> Any:
    return tables


class Case(NamedTuple):
    """What the grid draws for a metric: population, truth, counts, and whose noise they have."""

    levels: tuple[Any, ...]
    shares: Callable[..., Any]
    truth: Callable[[Any], Any]
    metric: str
    counts: Callable[[Any], Any] = _as_drawn
    estimate: Callable[[Released], Estimate] | None = None
    # Share of the records that are in the tables.
    part: float = 1.0
    # Losses instead of counts.
    losses: Callable[..., Any] | None = None


def _by_group(metric: str, truth: Callable[[Any], Any]) -> Case:
    in_group = METRICS[metric].in_group
    assert in_group is not None

    def estimate(released: Released) -> Estimate:
        return within_range(in_group(released))

    return Case(TABLES, confusion, truth, "confusion_matrix", estimate=estimate, part=GROUP)


CASES = {
    "accuracy": Case(TABLES, confusion, np.trace, "accuracy", _right_and_classes),
    "accuracy by group": _by_group("accuracy", np.trace),
    "average_precision": Case(SCORES, in_cells, average_precision, "average_precision"),
    "balanced_accuracy": Case(
        TABLES, confusion, mean_recall, "balanced_accuracy", _wrong_and_right
    ),
    "balanced_accuracy by group": _by_group("balanced_accuracy", mean_recall),
    "confusion_matrix": Case(TABLES, confusion, _as_drawn, "confusion_matrix"),
    "f1": Case(
        TWO_CLASSES, of_two_classes, lambda t: 2.0 * t[1, 1] / (t[1].sum() + t[:, 1].sum()), "f1"
    ),
    "log_loss": Case(LOSSES, by_score, np.mean, "log_loss", losses=log_losses),
    "majority": Case(
        TABLES, confusion, lambda t: t.sum(axis=1).max(), "balanced_accuracy", _wrong_and_right,
        _intervals.majority_share,
    ),
    "precision": Case(TWO_CLASSES, of_two_classes, precision, "precision"),
    "recall": Case(TWO_CLASSES, of_two_classes, lambda t: t[1, 1] / t[1].sum(), "recall"),
    "roc_auc": Case(SCORES, in_cells, area, "roc_auc"),
}  # fmt: skip


class Found(NamedTuple):
    """Coverage, width, value and truth, each a mean over the runs of a cell."""

    coverage: float
    width: float
    value: float
    truth: float


def grid(name: str, part: int = 1) -> Iterator[tuple[Any, ...]]:
    """Yield records, epsilon, whether delta is 0, and the population, for every `part`-th cell."""
    levels = (*BUDGETS, *CASES[name].levels)
    # Every level of every factor is in as many cells.
    steps = (1, 2, 3, 5, 7, 11, 13)
    for places in itertools.product(*(range(len(each)) for each in levels)):
        if sum(a * b for a, b in zip(places, steps, strict=False)) % part == 0:
            yield tuple(each[k] for each, k in zip(levels, places, strict=True))


def released(
    rng: np.random.Generator, metric: str, counts: Any, n: int, *, epsilon: float, delta: float
) -> Released:
    """Add the noise of a call to counts of n records, one release for every run."""
    mu = gdp_mu(epsilon, delta) if delta and math.isfinite(epsilon) else 0.0
    noise = score._noise(METRICS[metric], epsilon, mu)
    deviation = noise_deviation(noise)
    is_laplace = isinstance(noise, DiscreteLaplaceNoise)
    if isinstance(noise, DiscreteLaplaceNoise):
        ended = -math.expm1(-noise.epsilon / noise.sensitivity)
        first, second = rng.geometric(ended, (2, *counts.shape))
        drawn = first - second
    else:
        drawn = deviation * rng.standard_normal(counts.shape)
    return Released(counts + drawn, n, deviation**2, is_laplace)


def releases(
    name: str, n: int, epsilon: float, is_pure: bool, *population: Any, runs: int
) -> tuple[Released, Any]:
    """Draw samples of n records and the noise of a call; return them with the truth."""
    case = CASES[name]
    shares = case.shares(*population)
    rng = np.random.default_rng(zlib.crc32(repr((name, n, epsilon, is_pure, population)).encode()))
    everybody = np.append(case.part * shares.ravel(), 1.0 - case.part)
    tables = rng.multinomial(n, everybody / everybody.sum(), size=runs)[:, :-1]
    if case.losses is None:
        truth, counts = case.truth(shares), tables.reshape(runs, *shares.shape).astype(float)
    else:
        loss = case.losses(*population)
        truth, counts = METRICS[case.metric].largest * np.sum(shares * loss), sums(tables, loss)
    delta = 0.0 if is_pure else 1.0 / n**2
    return released(rng, case.metric, case.counts(counts), n, epsilon=epsilon, delta=delta), truth


def sums(tables: Any, loss: Any) -> Any:
    """Return the sums that are released, from the number of records with every loss."""
    unit = _tallies.SCALE
    whole = np.rint(unit * loss).ravel()
    return np.stack([tables @ whole, tables @ (whole * (unit - whole) // unit)], axis=1)


def figures(name: str, *cell: Any, runs: int) -> Found:
    """Return what the intervals of a cell of the grid are."""
    return found(name, *releases(name, *cell, runs=runs))


def found(name: str, released: Released, truth: Any) -> Found:
    """Compare the intervals of releases with the truth."""
    case = CASES[name]
    metric = METRICS[case.metric]
    if case.estimate is not None:
        value, low, high = case.estimate(released)
    elif math.isfinite(metric.largest):
        value, low, high = within_range(metric.estimate(released), metric.largest)
    else:
        truth = released.n * truth
        value, low, high = within_range(metric.estimate(released), released.n)
    # The truth is rounded. A bin that nobody is in has none.
    inside = (low <= truth + 1e-9) & (truth <= high + 1e-9)
    truth = np.broadcast_to(truth, inside.shape)
    is_there = ~np.isnan(truth)
    parts = (inside, high - low, value, truth)
    return Found(*(float(part[is_there].mean()) for part in parts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("metrics", nargs="*", metavar="METRIC")
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--part", type=int, default=13)
    options = parser.parse_args()
    least = 0.95 - 2.0 * math.sqrt(0.95 * 0.05 / options.runs)
    print("| metric | cells | least | below | mean | width | error of the value |")
    print("|---|" + "---|" * 6)
    for name in options.metrics or CASES:
        rows = [figures(name, *cell, runs=options.runs) for cell in grid(name, options.part)]
        covered, width, value, truth = np.array(rows).T
        print(
            f"| {name} | {len(rows)} | {covered.min():.3f} | {np.mean(covered < least):.3f} | "
            f"{covered.mean():.3f} | {width.mean():.4f} | {np.abs(value - truth).mean():.4f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
