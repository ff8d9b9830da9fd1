"""Probabilities of the classes in closed form, from the scores of the clipped logistic loss.

The steps stop where the sum of clipped slopes vanishes. The probabilities at which the expected
clipped slope of a record vanishes are therefore the link of the loss; nothing is released for them.
Derivation: ``docs/proofs/engine.md``, section 6.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_expit, log_softmax

from dp_halfspace.engine.steps import CLIP
from dp_halfspace.rows.blocks import FloatArray

# Largest absolute score of a selected classifier, less one.
SURER = 0.1
# Multiples to which scores are rounded before they become log odds, and the size from which on
# they are not. The log odds of two multiples differ by at least half of this number, which is more
# than the rounding errors of log odds, so that these never fall where scores rise.
_GRID = 2.0**-36
_FAR = 256.0


def log_odds_of(scores: FloatArray) -> FloatArray:
    """Return the log odds of the second of two classes, of shape (n,), for scores of this shape.

    They are non-decreasing functions of the scores, in floating point too.
    """
    sizes = np.abs(scores)
    return link_of(
        np.copysign(np.where(sizes < _FAR, np.round(sizes / _GRID) * _GRID, sizes), scores)
    )


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
    found = np.exp(logarithms)
    # The norm of e_y - p, the vector of slopes of a record of class y before it is clipped.
    squares = np.einsum("ij,ij->i", found, found)[:, None] + 1.0 - 2.0 * found
    logarithms += np.log(np.maximum(np.sqrt(np.maximum(squares, 0.0)) / CLIP, 1.0))
    return of_log_odds(logarithms)


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
        return np.asarray(
            sure[:, None] * (scores.argmax(axis=1)[:, None] == np.arange(scores.shape[1]))
        )
    return np.asarray(np.sign(scores) * sure)
