"""What noisy counts say: estimates, and intervals that hold sampling and noise.

A share ``p`` is kept if the noisy ``numerator - p denominator`` is within `z` standard deviations
of zero, a quadratic inequality. Everything here is a function of what was released.
Derivation: ``docs/proofs/metrics.md``, section 3.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.metrics._tallies import COUNT, SCALE

__all__ = ["Estimate", "calibration_curve", "estimate", "roc_curve"]

# Value, low end, high end.
Estimate = tuple[Any, Any, Any]
_Quadratic = tuple[float, float, float]


def estimate(
    metric: str, counts: NDArray[np.float64], n: int, variance: float, z: float
) -> Estimate:
    """Estimate a metric from noisy counts, each with noise of the given variance."""
    if metric == "accuracy":
        return _share(counts[0], n, (variance, n, -n), z)
    if metric == "confusion_matrix":
        cells = [_share(c, n, (variance, n, -n), z) for c in counts.ravel()]
        value, low, high = (n * np.reshape(part, counts.shape) for part in np.transpose(cells))
        return value, low, high
    if metric == "brier":
        total, spread = counts / SCALE
        total = min(max(total, 0.0), float(n))
        inner = min(max(spread, 0.0), total * (1.0 - total / n))
        return _share(total, n, (variance / SCALE**2 - inner, n, -n), z)
    if metric == "roc_auc":
        return _area(counts, variance, z)
    if metric == "calibration_curve":
        pairs, variance = counts[:2].T / COUNT, variance / COUNT**2
    else:
        pairs = counts
    recalls = np.array([_recall(wrong, right, variance, z) for wrong, right in pairs])
    value, low, high = recalls.T
    if metric == "calibration_curve":
        return value, low, high
    # Deviations of independent estimates add up in squares, on each side by itself.
    below, above = np.hypot.reduce(value - low), np.hypot.reduce(high - value)
    mean, k = float(value.mean()), len(counts)
    return mean, max(0.0, mean - float(below) / k), min(1.0, mean + float(above) / k)


def _share(numerator: float, denominator: float, variance: _Quadratic, z: float) -> Estimate:
    """Estimate a share; the variance is a quadratic polynomial in it, lowest power first."""
    if denominator <= 0.0:
        return 0.5, 0.0, 1.0
    # A share is between 0 and 1: what noise brings beyond is further from every one of them.
    numerator, denominator = min(max(float(numerator), 0.0), denominator), float(denominator)
    value = numerator / denominator
    constant, linear, square = (z**2 * float(part) for part in variance)
    a, b = denominator**2 - square, denominator * numerator + linear / 2.0
    inside = b**2 - a * (numerator**2 - constant)
    if a <= 0.0 or inside < 0.0:
        return value, 0.0, 1.0
    half = math.sqrt(inside)
    return value, max(0.0, min(value, (b - half) / a)), min(1.0, max(value, (b + half) / a))


def _recall(wrong: float, right: float, variance: float, z: float) -> Estimate:
    """Estimate the share of a class that is predicted right; both counts are noisy."""
    n = wrong + right
    return _share(right, n, (variance, n - 2.0 * variance, 2.0 * variance - n), z)


def _area(counts: NDArray[np.float64], variance: float, z: float) -> Estimate:
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
    return _share(float(positive @ above @ negative), float(n * p), variances, z)


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
