"""The choice of the first candidate that meets a target: excesses and utilities of candidates.

The excess of a candidate over the target changes by at most one if a record is replaced, and so
does the utility that is computed from it here. Proofs: ``docs/proofs/operating_points.md``.
"""

from __future__ import annotations

import math

import numpy as np

from dp_halfspace.rows.blocks import FloatArray

# Targets and slacks are multiples of one over this, so that everything computed from counts is
# exact.
COUNT_GRID = 2**12
# Up to this multiple of the records that a target takes, all or none are often predicted positive.
AMPLE = 1.5


def rounded_up(number: float) -> float:
    """Return the next multiple of the unit, which is at least one unit."""
    return math.ceil(number * COUNT_GRID) / COUNT_GRID


def safe_target(target: str, value: float) -> float:
    """Return the value of a target on the grid, in the direction that is harder to meet."""
    if target in ("recall", "precision"):
        return min(rounded_up(value), 1.0)
    return math.floor(value * COUNT_GRID) / COUNT_GRID


def candidates(target: str, borders: FloatArray) -> FloatArray:
    """Return thresholds, preferred ones first: high ones for a recall, else low ones."""
    ends = np.concatenate([[math.inf], borders[::-1], [-math.inf]])
    return ends if target == "recall" else ends[::-1]


def excess_of(target: str, value: float, positive: FloatArray, negative: FloatArray) -> FloatArray:
    """Return the excess of every candidate over the target, in the order of `candidates`.

    `positive` and `negative` are the numbers above each candidate, from the highest one down, and
    the value is on the grid.
    """
    if target == "recall":
        return np.asarray(positive - value * positive[-1])
    if target == "precision":
        return np.asarray((1.0 - value) * positive - value * negative)[::-1]
    return np.asarray(value * negative[-1] - negative)[::-1]


def most_and_variance(target: str, value: float) -> tuple[float, float]:
    """Return the largest possible excess, and its sampling variance, for each record that counts.

    These are the positive records, or the negative ones for a false positive rate. Where a
    precision is met, at most the number of positive records over the precision are predicted
    positive, and that is what the variance assumes.
    """
    if target == "recall":
        return 1.0 - value, value * (1.0 - value)
    if target == "precision":
        return 1.0 - value, 1.0 - value
    return value, value * (1.0 - value)


def crossing_utilities(excess: FloatArray) -> FloatArray:
    """Return utilities that are nonnegative for the first candidate with an excess of zero.

    The utility of a candidate is the minimum of its own excess and of the deficits of all
    candidates before it. It changes by no more than the excesses do. Candidates are along the last
    axis, the preferred ones first.
    """
    before = np.maximum.accumulate(excess, axis=-1)[..., :-1]
    utilities = excess.copy()
    np.minimum(utilities[..., 1:], -before, out=utilities[..., 1:])
    return utilities
