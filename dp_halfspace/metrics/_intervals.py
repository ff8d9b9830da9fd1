"""Estimates from noisy counts, and intervals that cover sampling and noise.

An interval consists of the shares ``p`` for which the noisy ``numerator - p denominator`` is within
about two standard deviations of zero. Near 0 and 1 the limit is larger on the side where no share
exists, and smaller on the other. Everything here is a function of what was released. Derivation:
``docs/proofs/metrics.md``, section 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from dp_halfspace.metrics._tallies import COUNT, LARGEST_LOG_LOSS, RIGHT, SCALE

# Value, lower end and upper end.
Estimate = tuple[Any, Any, Any]
Curve = tuple[NDArray[np.float64], NDArray[np.float64]]
_Quadratic = tuple[float, float, float]

# Two-sided limit, in standard deviations, that holds a little over 95 % of a normal distribution.
TWO = 2.0
# Addition to this limit for the tails of one Laplace variable.
_LAPLACE = 0.185
# Probability within this limit, and the one-sided quantile of the same probability.
_INSIDE = float(2.0 * ndtr(TWO) - 1.0)
_ONE_SIDED = float(ndtri(_INSIDE))
# Standard deviations that the noisy counts of the highest cells of scores, or of the records in no
# listed group, must exceed.
OUT_OF_NOISE = 3.0
# With less information on a recall than this, its interval is [0, 1].
WIDE = 0.5


@dataclass(frozen=True, slots=True)
class Released:
    """Noisy counts of `n` records, each with noise of this `variance`, normal or of Laplace."""

    counts: NDArray[np.float64]
    n: int
    variance: float
    is_laplace: bool = False

    @property
    def tail(self) -> float:
        """Excess fourth moment of the noise over that of a normal distribution."""
        return _LAPLACE * self.variance**2 if self.is_laplace else 0.0

    def divided_by(self, unit: float) -> Released:
        """Return counts divided by the unit that they are multiples of."""
        return replace(self, counts=self.counts / unit, variance=self.variance / unit**2)


def share_of_right(released: Released) -> Estimate:
    """Estimate the share of correctly predicted records, each of which counts `RIGHT`."""
    right = released.divided_by(RIGHT)
    return _share_of_n(right.counts[0], right)


def classes_beside(released: Released) -> Released:
    """Return the counts of classes, which follow the count of correct predictions."""
    return replace(released, counts=released.counts[1:, None])


def classes_by_rows(released: Released) -> Released:
    """Return counts, one row for each class."""
    return released


def classes_of_bins(released: Released) -> Released:
    """Return the counts of classes in the bins of a calibration curve."""
    bins = released.divided_by(COUNT)
    return replace(bins, counts=bins.counts[:2])


def majority_share(by_class: Released) -> Estimate:
    """Estimate the share of the records that the class with the largest noisy count has.

    The largest of K classes has a share of at least 1/K, whatever the noisy counts are.
    """
    classes = by_class.counts.sum(axis=1)
    whole = replace(by_class, variance=by_class.variance * by_class.counts.shape[1])
    share, low, high = _share_of_n(float(classes.max()), whole)
    least = 1.0 / len(classes)
    return max(share, least), max(low, least), max(high, least)


def counts_of_records(released: Released) -> Estimate:
    """Estimate every count, as a number of records."""
    counts, n = released.counts, released.n
    cells = [_share_of_n(count, released) for count in counts.ravel()]
    value, low, high = (n * np.reshape(part, counts.shape) for part in np.transpose(cells))
    return value, low, high


def mean_loss(released: Released) -> Estimate:
    """Estimate the mean of losses in [0, 1] from their sum and from a sum for their variance."""
    losses, n = released.divided_by(SCALE), released.n
    total, spread = losses.counts
    known = min(max(total, 0.0), float(n))
    inner = min(max(spread, 0.0), known * (1.0 - known / n))
    return _share(total, n, (losses.variance - inner, n, -n), losses.tail)


def mean_log_loss(released: Released) -> Estimate:
    """Estimate the mean of log losses, as that of losses in [0, 1]."""
    value, low, high = mean_loss(released)
    return LARGEST_LOG_LOSS * value, LARGEST_LOG_LOSS * low, LARGEST_LOG_LOSS * high


def recall(released: Released) -> Estimate:
    """Estimate the share of the second class that is predicted as such, from a confusion matrix."""
    (_, _), (missed, found) = released.counts.tolist()
    return _part(missed, found, released)


def precision(released: Released) -> Estimate:
    """Estimate the share of the second class among the records predicted to be of it."""
    (_, false), (_, found) = released.counts.tolist()
    return _part(false, found, released)


def f1(released: Released) -> Estimate:
    """Estimate the harmonic mean of recall and precision, ``2 J / (1 + J)``.

    ``J`` is the share of true positives among all records that are of the second class or predicted
    to be of it.
    """
    (_, false), (missed, found) = released.counts.tolist()
    shares = _part(false + missed, found, released, n_wrong=2)
    value, low, high = (2.0 * share / (1.0 + share) for share in shares)
    return value, low, high


def accuracy_in_table(released: Released) -> Estimate:
    """Estimate the accuracy from a confusion matrix of unknown size."""
    table, k = released.counts, len(released.counts)
    right = float(np.trace(table))
    return _part(float(table.sum()) - right, right, released, n_right=k, n_wrong=k * (k - 1))


def mean_recall_in_table(released: Released) -> Estimate:
    """Estimate the mean recall over classes from a confusion matrix."""
    table, k = released.counts, len(released.counts)
    right = np.diag(table)
    parts = [
        _part(wrong, found, released, n_wrong=k - 1)
        for wrong, found in zip((table.sum(axis=1) - right).tolist(), right.tolist(), strict=True)
    ]
    return mean_of_parts(*np.transpose(parts))


def mean_recall(released: Released) -> Estimate:
    """Estimate the mean recall over classes."""
    return mean_of_parts(*_recalls(released))


def mean_of_parts(
    value: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> Estimate:
    """Return the mean of independent estimates, with its interval."""
    # Standard deviations of independent estimates add up in squares, separately on each side. If
    # almost nothing is known about a class, its estimate may be off to one side, and the deviations
    # themselves add up.
    is_known = high - low < WIDE
    ends = []
    for gaps in (value - low, high - value):
        ends.append(math.hypot(*gaps[is_known]) + gaps[~is_known].sum())
    mean, k = float(value.mean()), len(value)
    return mean, max(0.0, mean - float(ends[0]) / k), min(1.0, mean + float(ends[1]) / k)


def share_in_bins(released: Released) -> Estimate:
    """Estimate the share of the second class in every bin."""
    bins = released.divided_by(COUNT)
    return _recalls(replace(bins, counts=bins.counts[:2].T))


def average_precision(released: Released) -> Estimate:
    """Estimate the mean precision over the ranks of the second class, by cells of scores.

    The variance is that of the linear part of the estimate, with Poisson counts and the noise:
    ``docs/proofs/metrics.md``, section 4.
    """
    negative, positive = released.counts[:, ::-1]
    v, n_cells = released.variance, np.arange(1, positive.size + 1)
    above, false = np.cumsum(positive), np.cumsum(negative)
    # The highest cells are merged until their counts exceed the noise: a precision that is a ratio
    # of two noises carries no information.
    stands_out = above + false >= np.maximum(OUT_OF_NOISE * np.sqrt(2.0 * v * n_cells), 0.5)
    if not stands_out.any() or above[-1] <= 0.0:
        return 0.5, 0.0, 1.0
    first = int(stands_out.argmax())
    above, false = np.maximum(above[first:], 0.0), np.maximum(false[first:], 0.0)
    all_positive, said = max(float(above[-1]), 1.0), np.maximum(above + false, 1.0)
    share, exactness = np.diff(above, prepend=0.0) / all_positive, np.minimum(above / said, 1.0)
    value = float(share @ exactness)

    def from_here_down(terms: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.cumsum(terms[::-1])[::-1]

    variance = 0.0
    for counts, slope in (
        (positive, (exactness - value) / all_positive + from_here_down(share * false / said**2)),
        (negative, -from_here_down(share * above / said**2)),
    ):
        weights = np.square(np.concatenate([np.full(first, slope[0]), slope]))
        variance += float((np.maximum(counts, 0.0) + v) @ weights)
    deviation = TWO * math.sqrt(variance)
    value = min(max(value, 0.0), 1.0)
    # The order within the highest cells is unknown: take half of what it could add.
    unseen = 0.5 * float(share[0] * (1.0 - exactness[0])) if first else 0.0
    return value, max(0.0, value - deviation), min(1.0, value + deviation + max(unseen, 0.0))


def _recalls(released: Released) -> Estimate:
    """Estimate the share of the second of two counts in every row."""
    found = [_part(wrong, right, released) for wrong, right in released.counts.tolist()]
    value, low, high = np.array(found).T
    return value, low, high


def _share_of_n(count: float, released: Released) -> Estimate:
    n = released.n
    return _share(count, n, (released.variance, n, -n), released.tail)


def _share(numerator: float, denominator: float, variance: _Quadratic, tail: float) -> Estimate:
    """Estimate a share; the variance is a quadratic polynomial in it, lowest power first."""
    numerator, denominator = float(numerator), float(denominator)
    value = min(max(numerator / denominator, 0.0), 1.0) if denominator > 0.0 else 0.5
    constant, linear, square = map(float, variance)
    mirrored = constant + linear + square, -linear - 2.0 * square, square
    high = _high_end(numerator, denominator, (constant, linear, square), tail)
    low = 1.0 - _high_end(denominator - numerator, denominator, mirrored, tail)
    return value, min(max(low, 0.0), value), max(min(high, 1.0), value)


def _high_end(numerator: float, denominator: float, variance: _Quadratic, tail: float) -> float:
    """Return the largest share that is compatible with the released numbers."""
    constant, linear, square = variance

    def excess(p: float) -> float:
        v = constant + p * (linear + p * square)
        if v <= 0.0:
            return p * denominator - numerator
        deviation = math.sqrt(v)
        most = TWO + min(tail / v / v, _LAPLACE)
        from_0, from_1 = (q * denominator / deviation / most for q in (p, 1.0 - p))
        if from_0 < 1.0:
            # A noisy count below zero carries as little information as one at zero.
            beyond = ndtr(TWO + (1.0 - from_0) * (_ONE_SIDED - TWO)) - _INSIDE
            most *= -float(ndtri(max(beyond, 1e-99))) / TWO
        elif from_1 < 1.0:
            most *= 1.0 + (1.0 - from_1) * (_ONE_SIDED / TWO - 1.0)
        return p * denominator - numerator - most * deviation

    first = min(max(numerator / denominator, 0.0), 1.0) if denominator > 0.0 else 1.0
    if excess(1.0) <= 0.0 or excess(first) > 0.0:
        return 1.0
    return float(brentq(excess, first, 1.0, xtol=1e-12))


def _part(
    wrong: float, right: float, released: Released, *, n_right: int = 1, n_wrong: int = 1
) -> Estimate:
    """Estimate a ratio of two sums, each of this many noisy counts."""
    n, v = wrong + right, released.variance
    p = min(max(right / n, 0.0), 1.0) if n > 0.0 else 0.5
    tail = released.tail * (n_wrong * p**4 + n_right * (1.0 - p) ** 4)
    variance = n_right * v, n - 2.0 * n_right * v, (n_right + n_wrong) * v - n
    return _share(right, n, variance, tail)


def area_under_curve(released: Released) -> Estimate:
    """Estimate the area under the ROC curve of scores that are rounded to cells.

    Its variance is a quadratic polynomial in it.
    """
    (negative, positive), variance = released.counts, released.variance
    m = len(negative)
    above = np.tri(m, m, -1) + 0.5 * np.eye(m)  # positive cell, negative cell
    n, p = negative.sum(), positive.sum()
    if min(n, p) <= 0.0:
        return 0.5, 0.0, 1.0

    def spread(area: float) -> float:
        kernel = above - area
        noisy_n, noisy_p = negative + variance, positive + variance
        first = noisy_p @ (kernel @ negative) ** 2 + noisy_n @ (positive @ kernel) ** 2
        # The second-order part is contained in both.
        return float(first - noisy_p @ kernel**2 @ noisy_n)

    low, middle, high = spread(0.0), spread(0.5), spread(1.0)
    square = 2.0 * (low + high - 2.0 * middle)
    variances = low, high - low - square, square
    return _share(float(positive @ above @ negative), float(n * p), variances, 0.0)


def calibration_curve(
    counts: NDArray[np.float64], borders: NDArray[np.float64] | None, shares: Any
) -> Curve:
    """Return the share of positives and the mean probability of every bin."""
    assert borders is not None, "bins have borders"
    edges = np.array([0.0, *borders, 1.0])
    place = counts[2] / np.maximum(0.5 * (counts[0] + counts[1]), 0.5 * COUNT)
    means = edges[:-1] + np.diff(edges) * (0.5 + np.clip(place, -0.5, 0.5))
    return shares, means


def precision_recall_curve(
    counts: NDArray[np.float64], borders: NDArray[np.float64] | None, value: Any
) -> Curve:
    """Return precision and recall from the highest threshold down; recall rises."""
    del borders, value
    false, above = np.maximum.accumulate(
        np.maximum(np.cumsum(counts[:, ::-1], axis=1), 0.0), axis=1
    )
    return above / np.maximum(above + false, 1.0), above / max(above[-1], 1.0)


def thresholds_of_roc(borders: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Return the thresholds of a ROC curve: scores of at least each are positive."""
    return np.concatenate([[np.inf], thresholds_of_cells(borders)])


def thresholds_of_cells(borders: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Return the lower ends of cells of scores, from the highest one down."""
    assert borders is not None, "cells of scores have borders"
    return np.concatenate([borders[::-1], [-np.inf]])


def roc_curve(counts: NDArray[np.float64], borders: NDArray[np.float64] | None, area: Any) -> Curve:
    """Return false and true positive rates from the highest threshold down, both rising."""
    del borders, area
    rates = np.cumsum(counts[:, ::-1], axis=1) / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    rising = np.maximum.accumulate(np.clip(rates, 0.0, 1.0), axis=1)
    rising[:, -1] = 1.0
    fpr, tpr = np.column_stack([np.zeros(2), rising])
    return fpr, tpr
