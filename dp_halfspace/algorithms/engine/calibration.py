"""How sure a trained classifier may be: noisy counts of scores, then a line through them.

Every record is counted once, in a cell of its score and of whether its label is the higher one of
two. A slope and, for two classes, an offset turn scores into log odds: those that explain the
noisy counts best, drawn to a public guess by the noise. Proof: ``docs/proofs/calibration.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from dp_halfspace._rounding import FAR_DOWN, UP
from dp_halfspace.algorithms.engine.column_scales import deviation
from dp_halfspace.algorithms.engine.plan import FloatArray
from dp_halfspace.data.chunks import summed
from dp_halfspace.data.people import People
from dp_halfspace.privacy.discrete import DiscreteLaplaceNoise
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.mechanisms import GaussianNoise, NoNoise, Permit
from dp_halfspace.privacy.profiles import gdp_epsilon, gdp_mu

# Part of mu^2, or of epsilon; below this n mu (n epsilon / 2) of that part nothing is counted.
_SHARE, _PURE_SHARE, _LEAST_STRENGTH = 0.04, 0.1, 25.0
# Log odds for a score, before anything is known, and how far that may be wrong.
DEFAULT_SLOPE = 0.1
_LOG_SLOPES = np.linspace(math.log(0.005), math.log(2.0), 61)
_OFFSETS = np.linspace(-2.0, 2.0, 41)
_SLOPE_DEVIATION, _OFFSET_DEVIATION = 0.5, 0.2
# Cells [2^(k/2), 2^((k+1)/2)) of the size of a score, on both sides of zero.
_LOWEST, _HIGHEST = 0, 11
_PER_SIDE = _HIGHEST - _LOWEST + 1
_ENDS = 2.0 ** (np.arange(_LOWEST + 1, _HIGHEST + 1) / 2.0)
_SENSITIVITY, _PURE_SENSITIVITY = math.sqrt(2.0) * UP, 2


@dataclass(frozen=True, slots=True)
class CalibrationPlan:
    """The public numbers of noisy counts of scores.

    Run on scores of shape (n,), positive for the second of two classes, or (n, n_classes).
    """

    n_samples: int
    noise: GaussianNoise | DiscreteLaplaceNoise | NoNoise

    @property
    def events(self) -> tuple[Event, ...]:
        """What a run releases."""
        return (self.noise.event,)

    def run(
        self,
        scores: Any,
        classes: Any,
        weights: FloatArray,
        permit: Permit,
        people: People | None = None,
    ) -> tuple[float, float]:
        """Return slope and offset of the log odds; `weights` are those of the classes."""
        is_binary = len(weights) == 2
        counts = permit.release(summed(score_counts, scores, classes, people), self.noise)
        used = np.outer(weights, np.ones(counts.shape[1])) if is_binary else np.ones(counts.shape)
        offsets = _OFFSETS if is_binary else np.zeros(1)
        return _likeliest(counts, used, deviation(self.noise), offsets)


def affordable_calibration(
    n_samples: int, epsilon: float, delta: float
) -> tuple[CalibrationPlan | None, float]:
    """Plan the counts as a part of a budget; return the epsilon that is left at the same delta.

    No plan where the counts would drown in the noise.
    """
    if math.isinf(epsilon):
        return CalibrationPlan(n_samples, NoNoise()), epsilon
    if delta == 0:
        part = _PURE_SHARE * epsilon
        if n_samples * part < 2.0 * _LEAST_STRENGTH:
            return None, epsilon
        noise = DiscreteLaplaceNoise(_PURE_SENSITIVITY, part)
        return CalibrationPlan(n_samples, noise), (epsilon - part) * FAR_DOWN
    mu = gdp_mu(epsilon, delta)
    part = mu * math.sqrt(_SHARE)
    if n_samples * part < _LEAST_STRENGTH:
        return None, epsilon
    left = gdp_epsilon(mu * math.sqrt(1.0 - _SHARE) * FAR_DOWN, delta)
    return CalibrationPlan(n_samples, GaussianNoise(_SENSITIVITY, part)), left


def score_counts(
    scores: FloatArray, classes: NDArray[np.intp], people: People | None = None
) -> FloatArray:
    """Count records by score and by whether the label is the lower or the higher one of two.

    For two classes these are the labels. Of more classes they are those of the two highest scores,
    which are compared by their difference; records of other labels count nowhere. Exact, of shape
    (2, 2 * _PER_SIDE); replacing a record moves it by at most ``sqrt(2)``, by 2 in absolute values.
    """
    is_higher = classes == 1
    counted = np.ones(len(classes), dtype=bool)
    if scores.ndim == 2:
        order = np.argsort(scores, axis=1, kind="stable")
        rows = np.arange(len(scores))
        first, second = order[:, -1], order[:, -2]
        scores = scores[rows, first] - scores[rows, second]
        is_higher = classes == first
        counted = is_higher | (classes == second)
    # Comparisons with the ends of cells, so that no rounding depends on where a row stands.
    place = np.searchsorted(_ENDS, np.abs(scores), side="right")
    cell = np.where(scores < 0, _PER_SIDE - 1 - place, _PER_SIDE + place)
    cell += 2 * _PER_SIDE * is_higher
    weights = np.ones(len(classes)) if people is None else people.weights
    counts = np.bincount(cell[counted], weights[counted], minlength=4 * _PER_SIDE)
    return counts.reshape(2, 2 * _PER_SIDE).astype(np.float64)


def _likeliest(
    counts: FloatArray, weights: FloatArray, deviation: float, offsets: FloatArray
) -> tuple[float, float]:
    """Return the mean line of all those on a public grid, by how well they explain the counts."""
    size = 2.0 ** ((np.arange(_LOWEST, _HIGHEST + 1) + 0.5) / 2.0)
    score = np.concatenate([-size[::-1], size])
    odds = np.exp(_LOG_SLOPES)[:, None, None] * score + offsets[:, None]
    chance = expit(odds)
    # Unlike a likelihood, a difference of counts is zero in the mean whatever the noise.
    lower, higher = weights
    excess = higher * (1.0 - chance) * counts[1] - lower * chance * counts[0]
    scale = (higher * (1.0 - chance)) ** 2 + (lower * chance) ** 2
    total = np.maximum(lower * counts[0] + higher * counts[1], 1.0)
    variance = deviation**2 * scale + total * chance * (1.0 - chance) + 1.0
    fit = (excess**2 / variance + np.log(variance)).sum(axis=2)
    fit += ((_LOG_SLOPES - math.log(DEFAULT_SLOPE)) / _SLOPE_DEVIATION)[:, None] ** 2
    fit += (offsets / _OFFSET_DEVIATION) ** 2
    belief = softmax(-0.5 * fit)
    return (
        float(np.exp(belief.sum(axis=1) @ _LOG_SLOPES)),
        float(belief.sum(axis=0) @ offsets),
    )
