"""Probabilities from the scores of clipped steps, without a release: the link of the clipped loss.

Steps follow slopes ``e_y - p`` that are clipped, where ``e_y`` is one at the class of a record and
``p`` the softmax of its scores. Where the expected clipped slope vanishes, the probability of a
class is proportional to ``p_y`` times the factor by which its slope is clipped.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax

from dp_halfspace.engine.steps import CLIP
from dp_halfspace.rows.blocks import FloatArray


def log_odds(scores: FloatArray) -> FloatArray:
    """Return the log odds of the second of two classes, or log probabilities up to a constant.

    `scores` have shape (n,), or (n, n_classes) with the constant of each row.
    """
    if scores.ndim == 1:
        # The slopes of two classes are of the same size, and each is clipped to one half.
        up, down = log_expit(scores), log_expit(-scores)
        return np.asarray(up + _factor(2.0 * expit(-scores)) - down - _factor(2.0 * expit(scores)))
    p = softmax(scores, axis=1)
    squares = 1.0 - 2.0 * p + np.square(p).sum(axis=1, keepdims=True)
    lengths = np.sqrt(np.maximum(squares, 0.0))
    return np.asarray(log_softmax(scores, axis=1) + _factor(lengths / CLIP))


def _factor(ratio: FloatArray) -> FloatArray:
    return np.log(np.maximum(1.0, ratio))


def probabilities(scores: FloatArray) -> FloatArray:
    """Return the probabilities of all classes, of shape (n, n_classes)."""
    found = log_odds(scores)
    if found.ndim == 1:
        return np.column_stack([expit(-found), expit(found)])
    return np.asarray(softmax(found, axis=1))
