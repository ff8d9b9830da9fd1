"""What noisy counts say: estimates, and intervals that hold sampling and noise.

A share ``p`` is kept if the noisy ``numerator - p denominator`` is within about two standard
deviations of zero; near 0 and 1, further on the side where no share is, and less far on the other.
Everything here is a function of what was released. Derivation: ``docs/proofs/metrics.md``,
section 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from dp_halfspace.metrics._tallies import COUNT, SCALE

# Value, low end, high end.
Estimate = tuple[Any, Any, Any]
Curve = tuple[NDArray[np.float64], NDArray[np.float64]]
_Quadratic = tuple[float, float, float]

# In deviations: a little more than 95 % of a normal law, and what the tails of one Laplace variable
# add. The last is the one-sided quantile.
_TWO, _LAPLACE = 2.0, 0.185
_INSIDE = float(2.0 * ndtr(_TWO) - 1.0)
_ONE_SIDED = float(ndtri(_INSIDE))
# A recall of which less is known than this may be anything.
_WIDE = 0.5


@dataclass(frozen=True, slots=True)
class Released:
    """Noisy counts of `n` records, each with noise of this `variance`, normal or of Laplace."""

    counts: NDArray[np.float64]
    n: int
    variance: float
    is_laplace: bool = False

    @property
    def tail(self) -> float:
        """Fourth moment of the noise that a normal law does not have."""
        return _LAPLACE * self.variance**2 if self.is_laplace else 0.0

    def in_units(self, unit: float) -> Released:
        """Return counts divided by the unit that they are multiples of."""
        return replace(self, counts=self.counts / unit, variance=self.variance / unit**2)


def share_of_records(released: Released) -> Estimate:
    """Estimate the share of the records that are counted by the first number."""
    return _share_of_n(released.counts[0], released)


def counts_of_records(released: Released) -> Estimate:
    """Estimate every count, as a number of records."""
    counts, n = released.counts, released.n
    cells = [_share_of_n(count, released) for count in counts.ravel()]
    value, low, high = (n * np.reshape(part, counts.shape) for part in np.transpose(cells))
    return value, low, high


def mean_loss(released: Released) -> Estimate:
    """Estimate the mean of losses in [0, 1] from their sum and a sum that says how they vary."""
    losses, n = released.in_units(SCALE), released.n
    total, spread = losses.counts
    known = min(max(total, 0.0), float(n))
    inner = min(max(spread, 0.0), known * (1.0 - known / n))
    return _share(total, n, (losses.variance - inner, n, -n), losses.tail)


def mean_recall(released: Released) -> Estimate:
    """Estimate the mean over classes of the share that is predicted right."""
    value, low, high = _recalls(released)
    # Deviations of independent estimates add up in squares, on each side by itself; but where next
    # to nothing is known of a class, the estimate may be off on one side, and they add up.
    is_known = high - low < _WIDE
    ends = []
    for gaps in (value - low, high - value):
        ends.append(math.hypot(*gaps[is_known]) + gaps[~is_known].sum())
    mean, k = float(value.mean()), len(value)
    return mean, max(0.0, mean - float(ends[0]) / k), min(1.0, mean + float(ends[1]) / k)


def share_in_bins(released: Released) -> Estimate:
    """Estimate the share of the second class in every bin."""
    bins = released.in_units(COUNT)
    return _recalls(replace(bins, counts=bins.counts[:2].T))


def area_under_curve(released: Released) -> Estimate:
    """Estimate the area under the ROC curve of scores that are rounded to cells."""
    return _area(released.counts, released.variance)


def _recalls(released: Released) -> Estimate:
    """Estimate the share of the second of two counts in every row."""
    noise = released.variance, released.tail
    found = [_recall(wrong, right, *noise) for wrong, right in released.counts.tolist()]
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
    """Return the largest share that the released numbers do not speak against."""
    constant, linear, square = variance

    def excess(p: float) -> float:
        v = constant + p * (linear + p * square)
        if v <= 0.0:
            return p * denominator - numerator
        deviation = math.sqrt(v)
        most = _TWO + min(tail / v / v, _LAPLACE)
        from_0, from_1 = (q * denominator / deviation / most for q in (p, 1.0 - p))
        if from_0 < 1.0:
            # Noise that goes below zero says as little as noise at zero.
            beyond = ndtr(_TWO + (1.0 - from_0) * (_ONE_SIDED - _TWO)) - _INSIDE
            most *= -float(ndtri(max(beyond, 1e-99))) / _TWO
        elif from_1 < 1.0:
            most *= 1.0 + (1.0 - from_1) * (_ONE_SIDED / _TWO - 1.0)
        return p * denominator - numerator - most * deviation

    first = min(max(numerator / denominator, 0.0), 1.0) if denominator > 0.0 else 1.0
    if excess(1.0) <= 0.0 or excess(first) > 0.0:
        return 1.0
    return float(brentq(excess, first, 1.0, xtol=1e-12))


def _recall(wrong: float, right: float, variance: float, tail: float) -> Estimate:
    """Estimate the share of a class that is predicted right; both counts are noisy."""
    n = wrong + right
    p = min(max(right / n, 0.0), 1.0) if n > 0.0 else 0.5
    tail *= p**4 + (1.0 - p) ** 4
    return _share(right, n, (variance, n - 2.0 * variance, 2.0 * variance - n), tail)


def _area(counts: NDArray[np.float64], variance: float) -> Estimate:
    """Estimate the area; its variance is a quadratic polynomial in it."""
    negative, positive = counts
    m = counts.shape[1]
    above = np.tri(m, m, -1) + 0.5 * np.eye(m)  # positive cell, negative cell
    n, p = negative.sum(), positive.sum()
    if min(n, p) <= 0.0:
        return 0.5, 0.0, 1.0

    def spread(area: float) -> float:
        kernel = above - area
        noisy_n, noisy_p = negative + variance, positive + variance
        first = noisy_p @ (kernel @ negative) ** 2 + noisy_n @ (positive @ kernel) ** 2
        # The part of second order is in both.
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


def roc_curve(counts: NDArray[np.float64], borders: NDArray[np.float64] | None, area: Any) -> Curve:
    """Return false and true positive rates from the highest threshold down, both rising."""
    del borders, area
    rates = np.cumsum(counts[:, ::-1], axis=1) / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    rising = np.maximum.accumulate(np.clip(rates, 0.0, 1.0), axis=1)
    rising[:, -1] = 1.0
    fpr, tpr = np.column_stack([np.zeros(2), rising])
    return fpr, tpr
