"""What noisy counts say: estimates, and intervals that hold sampling and noise.

A share ``p`` is kept if the noisy ``numerator - p denominator`` is within about two standard
deviations of zero; near 0 and 1, further on the side where no share is, and less far on the other.
Everything here is a function of what was released. Derivation: ``docs/proofs/metrics.md``,
section 4.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from dp_halfspace.metrics._tallies import COUNT, SCALE

__all__ = ["Estimate", "calibration_curve", "estimate", "roc_curve"]

# Value, low end, high end.
Estimate = tuple[Any, Any, Any]
_Quadratic = tuple[float, float, float]

# In deviations: a little more than 95 % of a normal law, and what the tails of one Laplace variable
# add. The last is the one-sided quantile.
_TWO, _LAPLACE = 2.0, 0.185
_INSIDE = float(2.0 * ndtr(_TWO) - 1.0)
_ONE_SIDED = float(ndtri(_INSIDE))
# A recall of which less is known than this may be anything.
_WIDE = 0.5


def estimate(
    metric: str, counts: NDArray[np.float64], n: int, variance: float, *, is_laplace: bool
) -> Estimate:
    """Estimate a metric from noisy counts, each with noise of the given variance."""
    tail = _LAPLACE * variance**2 if is_laplace else 0.0
    if metric == "accuracy":
        return _share(counts[0], n, (variance, n, -n), tail)
    if metric == "confusion_matrix":
        cells = [_share(c, n, (variance, n, -n), tail) for c in counts.ravel()]
        value, low, high = (n * np.reshape(part, counts.shape) for part in np.transpose(cells))
        return value, low, high
    if metric == "brier":
        total, spread = counts / SCALE
        known = min(max(total, 0.0), float(n))
        inner = min(max(spread, 0.0), known * (1.0 - known / n))
        return _share(total, n, (variance / SCALE**2 - inner, n, -n), tail / SCALE**4)
    if metric == "roc_auc":
        return _area(counts, variance)
    if metric == "calibration_curve":
        counts, variance, tail = counts[:2].T / COUNT, variance / COUNT**2, tail / COUNT**4
    recalls = np.array([_recall(wrong, right, variance, tail) for wrong, right in counts])
    value, low, high = recalls.T
    if metric == "calibration_curve":
        return value, low, high
    # Deviations of independent estimates add up in squares, on each side by itself; but where next
    # to nothing is known of a class, the estimate may be off on one side, and they add up.
    is_known = high - low < _WIDE
    ends = []
    for gaps in (value - low, high - value):
        ends.append(math.hypot(*gaps[is_known]) + gaps[~is_known].sum())
    mean, k = float(value.mean()), len(counts)
    return mean, max(0.0, mean - float(ends[0]) / k), min(1.0, mean + float(ends[1]) / k)


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
    """Estimate the area under the curve of scores that are rounded to cells."""
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
    counts: NDArray[np.float64], borders: NDArray[np.float64], shares: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the share of positives and the mean probability of every bin."""
    edges = np.array([0.0, *borders, 1.0])
    place = counts[2] / np.maximum(0.5 * (counts[0] + counts[1]), 0.5 * COUNT)
    means = edges[:-1] + np.diff(edges) * (0.5 + np.clip(place, -0.5, 0.5))
    return shares, means


def roc_curve(counts: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return false and true positive rates from the highest threshold down, both rising."""
    rates = np.cumsum(counts[:, ::-1], axis=1) / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    rising = np.maximum.accumulate(np.clip(rates, 0.0, 1.0), axis=1)
    rising[:, -1] = 1.0
    fpr, tpr = np.column_stack([np.zeros(2), rising])
    return fpr, tpr
