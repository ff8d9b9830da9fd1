"""Probabilities of the classes in closed form, from the scores of the clipped logistic loss.

The steps stop where the sum of clipped slopes vanishes. The probabilities at which the expected
clipped slope of a record vanishes are therefore the link of the loss; nothing is released for them.

Steps that noise shortens end before, and so does a regularised risk. Two released sums over the
records, of slopes and of slopes times scores, which vanish at the least sum of the losses, say how
far. If scores are normal and the log odds of a label are those of its score but for an intercept
and a factor, two equations tell these two numbers.

Derivation: ``docs/proofs/engine.md``, section 6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import least_squares
from scipy.special import expit, log_expit, log_softmax, softmax

from dp_halfspace.engine.steps import CLIP
from dp_halfspace.rows.blocks import FloatArray

# Largest absolute score of a selected classifier, less one.
SURER = 0.1
# Multiples to which scores are rounded before they become log odds, and the size from which on
# they are not. The log odds of two multiples differ by at least half of this number, which is more
# than the rounding errors of log odds, so that these never fall where scores rise.
_GRID = 2.0**-36
_FAR = 256.0
# Points and weights of the mean over a standard normal number.
NODES, _weights = np.polynomial.hermite_e.hermegauss(31)
MASSES = _weights / _weights.sum()
# Prior standard deviation of the logarithm of the factor of the coefficients.
_DOUBT = 0.5
# Number of points of a distribution of the scores of several classes.
_N_POINTS = 512
# The tolerance of corrections is tight, so that machines which round differently return the same
# model.
_PRECISE = dict.fromkeys(("ftol", "xtol", "gtol"), 1e-14)


def log_odds_of(scores: FloatArray) -> FloatArray:
    """Return the log odds of the second of two classes, of shape (n,), for scores of this shape.

    They are non-decreasing functions of the scores, in floating point too.
    """
    sizes = np.abs(scores)
    rounded = np.where(sizes < _FAR, np.round(sizes / _GRID) * _GRID, sizes)
    return link_of(np.copysign(rounded, scores))


def link_of(scores: FloatArray) -> FloatArray:
    """Return the log odds of `log_odds_of` without the rounding to multiples."""
    sizes = np.abs(scores)
    odds = np.maximum(sizes + np.log1p(np.exp(-sizes)) - np.log(2.0), 0.0)
    return np.asarray(np.copysign(odds, scores))


def of_log_odds(odds: FloatArray) -> FloatArray:
    """Return the logarithm of the probability of every class for every row.

    `odds` are the log odds of the second of two classes, of shape (n,), or those of each class up
    to a constant, of shape (n, n_classes).
    """
    if odds.ndim == 1:
        return np.column_stack([log_expit(-odds), log_expit(odds)])
    return np.asarray(log_softmax(odds, axis=1))


def log_probabilities_of(scores: FloatArray) -> FloatArray:
    """Return the logarithm of the probability of every class after steps with clipped slopes.

    `scores` have the shape of `of_log_odds`. The result is finite for finite ones.
    """
    if scores.ndim == 1:
        return of_log_odds(log_odds_of(scores))
    logarithms = of_log_odds(scores)
    return of_log_odds(logarithms + np.log(_excess(np.exp(logarithms), CLIP)))


def _excess(p: FloatArray, clip: float) -> FloatArray:
    """Return by what factor the slopes of a record of each class exceed a clip, at least one.

    The slopes of class y are ``e_y - p``, `p` being the softmax of the scores of a row.
    """
    squares = np.einsum("ij,ij->i", p, p)[:, None] + 1.0 - 2.0 * p
    return np.asarray(np.maximum(np.sqrt(np.maximum(squares, 0.0)) / clip, 1.0))


def probabilities_of(scores: FloatArray) -> FloatArray:
    """Return the probability of every class for every row; see `log_probabilities_of`."""
    return np.asarray(np.exp(log_probabilities_of(scores)))


def certainty_of(error_share: float, n_classes: int) -> float:
    """Return the log odds of a correct prediction over each wrong class."""
    return math.log((1.0 - error_share) * (n_classes - 1) / error_share)


def surety(scores: FloatArray) -> FloatArray:
    """Map scores of a selected classifier to numbers of size about one, in the same order.

    The signs stay. With several classes, the largest score becomes a number of this size, the
    larger the farther it is from the least score, and the others zero.
    """
    several = scores.ndim == 2
    size = np.ptp(scores, axis=1) if several else np.abs(scores)
    sure = 1.0 + SURER * size / (1.0 + size)
    if several:
        is_largest = scores.argmax(axis=1)[:, None] == np.arange(scores.shape[1])
        return np.asarray(sure[:, None] * is_largest)
    return np.asarray(np.sign(scores) * sure)


def corrected_line(
    intercept: float,
    scores: FloatArray,
    found: FloatArray,
    deviations: FloatArray,
    *,
    class_weights: FloatArray,
    total: float,
    clip: float,
    odds_of: Callable[[FloatArray], FloatArray],
) -> tuple[float, float]:
    """Return the intercept and the factor of the scores that explain two sums over the records.

    `scores` are the nodes of a normal distribution of scores without the intercept. `found` are the
    means of slopes, clipped to `clip`, and of slopes times scores; `deviations` are those of their
    noise. `odds_of` maps right scores to log odds. What noise explains of the means counts as zero.
    """
    found = _shown(found, deviations)
    # Slopes of records of the second and of the first class.
    second = np.minimum(expit(-intercept - scores), clip) * class_weights[1]
    first = np.minimum(expit(intercept + scores), clip) * class_weights[0]
    prior_odds = math.log(class_weights[1] / class_weights[0])

    def misfit(corrected: FloatArray) -> FloatArray:
        odds = odds_of(corrected[0] + math.exp(corrected[1]) * scores) - prior_odds
        slopes = MASSES * (expit(odds) * second - expit(-odds) * first)
        sums = np.array([slopes.sum(), slopes @ scores])
        return np.append((sums - found) / deviations, corrected[1] / _DOUBT)

    # No class is rarer than one record, before the classes are weighted.
    widest = max(math.log(max(total, 2.0)) + abs(prior_odds), abs(intercept))
    limits = [-widest, -np.inf], [widest, np.inf]
    corrected = least_squares(misfit, [intercept, 0.0], "3-point", limits, **_PRECISE).x
    return float(corrected[0]), math.exp(corrected[1])


def _shown(found: FloatArray, deviations: FloatArray) -> FloatArray:
    """Return numbers without what noise of these deviations explains of them."""
    # A single number is worth a correction if its square is more than twice its variance.
    hidden = 2.0 * np.square(deviations)
    return found * np.maximum(1.0 - hidden / np.maximum(np.square(found), hidden), 0.0)


@dataclass(frozen=True, slots=True)
class ScoresOfMany:
    """A normal distribution of the scores of several classes, by points of equal probability.

    Scores are the `intercepts` plus one of the `points`, of shape (n_points, n_classes), whose mean
    is zero. The slopes of a record, of a softmax with these scores, are clipped to the norm `clip`
    and multiplied by the weight of its class.
    """

    intercepts: FloatArray
    points: FloatArray
    class_weights: FloatArray
    clip: float

    @classmethod
    def of(
        cls,
        intercepts: FloatArray,
        covariance: FloatArray,
        class_weights: FloatArray,
        clip: float,
    ) -> ScoresOfMany:
        """Return the distribution with this mean and `covariance`."""
        variances, directions = eigh(covariance)
        # The symmetric root is a continuous function of the covariance.
        root = (directions * np.sqrt(np.maximum(variances, 0.0))) @ directions.T
        half = np.random.default_rng(0).standard_normal((_N_POINTS // 2, len(covariance)))
        return cls(intercepts, np.vstack([half, -half]) @ root, class_weights, clip)

    @property
    def curvatures(self) -> FloatArray:
        """The mean second derivative of a record's loss by each score, without the clip."""
        p = softmax(self.intercepts + self.points, axis=1)
        return np.asarray((p * (1.0 - p)).mean(axis=0) / np.mean(1.0 / self.class_weights))

    @property
    def slope_variances(self) -> FloatArray:
        """The variance of the slope of a record by each score."""
        p, kept = self._slopes()
        squares = self._records(1.0) * np.square(kept)
        total = squares.sum(axis=1, keepdims=True)
        return np.asarray((squares * (1.0 - 2.0 * p) + np.square(p) * total).mean(axis=0))

    def factor(self, found: float, noise: float, doubt: float) -> float:
        """Return the factor of the points that explains a mean over the records.

        `found` is the mean of slopes times points, which vanishes if the factor is one, `noise` the
        deviation of its noise, and `doubt` that of what else is not known of it. What noise
        explains of the mean counts as zero.
        """
        p, kept = self._slopes()
        shown = float(_shown(np.array([found]), np.array([noise]))[0])

        def misfit(logarithm: FloatArray) -> FloatArray:
            own = self._records(math.exp(logarithm[0])) * kept
            slopes = own - p * own.sum(axis=1, keepdims=True)
            mean = float(np.einsum("ij,ij->", slopes, self.points)) / len(p)
            return np.array([(mean - shown) / math.hypot(noise, doubt), logarithm[0] / _DOUBT])

        return math.exp(least_squares(misfit, [0.0], "3-point", **_PRECISE).x[0])

    def _slopes(self) -> tuple[FloatArray, FloatArray]:
        """Return the softmax of the scores, and what a record of each class keeps of its slopes."""
        p = softmax(self.intercepts + self.points, axis=1)
        return p, self.class_weights / _excess(p, self.clip)

    def _records(self, factor: float) -> FloatArray:
        """Return the shares of the classes among records, the points times a factor being right."""
        p = softmax(self.intercepts + factor * self.points, axis=1)
        shares = p * _excess(p, self.clip) / self.class_weights
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))
