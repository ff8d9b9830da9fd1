"""Thresholds of calibrated scores for a recall, a precision or a rate of false positives.

They cost nothing: all is computed from the counts of scores that were released for the calibration.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from dp_halfspace.algorithms.engine.calibration import CalibrationCurve

# What a threshold can be chosen for.
TARGETS = ("recall", "precision", "false_positive_rate")
# Scores of one cell are taken to be spread evenly over so many places; and deviations from the
# estimate to both ends of an interval that holds the truth nine times out of ten.
_PLACES, _REACH = 32, 1.645
# Part of the records of a cell that may lie on the other side of a threshold within it.
_UNEVEN = 0.15


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """A threshold, and what it is expected to reach: a function of what was released.

    Parameters
    ----------
    target : str
        ``"recall"``, ``"precision"`` or ``"false_positive_rate"`` of the second class.
    wanted : float
        The value that was asked for, in (0, 1).
    log_odds : float
        Rows whose calibrated log odds are larger have the second label.
    estimate : float
        What is expected of the target.
    interval : tuple of float
        Ends of an interval for it, at 90 %, by the noise of the counts and by their size.
    """

    target: str
    wanted: float
    log_odds: float
    estimate: float
    interval: tuple[float, float]


def operating_point(curve: CalibrationCurve, target: str, wanted: float) -> OperatingPoint:
    """Choose the threshold that comes up to a target with the most, or least, positives.

    Of thresholds with the recall, the highest; of those with the precision, or with no more false
    positives, the lowest.
    """
    seen = curve.counts
    assert seen is not None
    lower, higher = seen.weights
    # The number of records of a cell cannot be negative; and their scores are spread evenly.
    sizes = np.maximum(seen.counts.sum(axis=0), 0.0)
    part = (np.arange(_PLACES) + 0.5) / _PLACES
    places = (seen.edges[:-1, None] + np.diff(seen.edges)[:, None] * part).ravel()
    mass = np.repeat(sizes, _PLACES) / _PLACES
    odds = curve(places)
    chance = expit(odds - math.log(higher / lower))
    # From the highest score down; the first threshold is above all.
    true = np.concatenate([[0.0], np.cumsum((mass * chance * higher)[::-1])])
    false = np.concatenate([[0.0], np.cumsum((mass * (1.0 - chance) * lower)[::-1])])
    cells = np.concatenate([[0.0], np.repeat(np.arange(1.0, len(sizes) + 1), _PLACES)])
    ends = np.concatenate(
        [[odds[-1] + 1.0], (odds[::-1][:-1] + odds[::-1][1:]) / 2.0, [odds[0] - 1.0]]
    )
    total, rest = max(true[-1], 1e-9), max(false[-1], 1e-9)
    noise = seen.deviation**2
    if target == "recall":
        reached = true / total
        fits = np.flatnonzero(reached >= wanted)
        place = int(fits[0]) if len(fits) else len(ends) - 1
        first, second, n_second = true[place], total - true[place], len(sizes) - cells[place]
    elif target == "precision":
        reached = true / np.maximum(true + false, 1e-9)
        fits = np.flatnonzero(reached >= wanted)
        place = int(fits[-1]) if len(fits) else int(np.argmax(reached))
        first, second, n_second = true[place], false[place], cells[place]
    else:
        reached = false / rest
        place = int(np.flatnonzero(reached <= wanted)[-1])
        first, second, n_second = false[place], rest - false[place], len(sizes) - cells[place]
    both = max(first + second, 1e-9)
    variance = second**2 * (cells[place] * noise + first) + first**2 * (n_second * noise + second)
    # Scores of the cell of the threshold need not be spread evenly.
    cell = slice(max(int(cells[place]) - 1, 0) * _PLACES, max(int(cells[place]), 1) * _PLACES + 1)
    of_target = false if target == "false_positive_rate" else true
    uneven = _UNEVEN * float(of_target[cell][-1] - of_target[cell][0]) / both
    spread = _REACH * math.hypot(math.sqrt(variance) / both**2, uneven)
    estimate = float(reached[place])
    interval = max(estimate - spread, 0.0), min(estimate + spread, 1.0)
    return OperatingPoint(target, wanted, float(ends[place]), estimate, interval)
