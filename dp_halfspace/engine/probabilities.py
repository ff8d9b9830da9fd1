"""Probabilities of the classes in closed form, from the scores of the clipped logistic loss.

The steps stop where the sum of clipped slopes vanishes. The probabilities at which the expected
clipped slope of a record vanishes are therefore the link of the loss; nothing is released for them.
Derivation: ``docs/proofs/engine.md``, section 6.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_softmax

from dp_halfspace.engine.steps import CLIP
from dp_halfspace.rows.blocks import FloatArray


def log_probabilities_of(scores: FloatArray) -> FloatArray:
    """Return the logarithm of the probability of every class for every row.

    `scores` are the log odds of the second of two classes, of shape (n,), or one score for each
    class, of shape (n, n_classes). The result is finite for finite scores.
    """
    columns = np.column_stack([np.zeros(len(scores)), scores]) if scores.ndim == 1 else scores
    logarithms = np.asarray(log_softmax(columns, axis=1))
    found = np.exp(logarithms)
    # The norm of e_y - p, the vector of slopes of a record of class y before it is clipped.
    squares = np.einsum("ij,ij->i", found, found)[:, None] + 1.0 - 2.0 * found
    logarithms += np.log(np.maximum(np.sqrt(np.maximum(squares, 0.0)) / CLIP, 1.0))
    return np.asarray(log_softmax(logarithms, axis=1))


def probabilities_of(scores: FloatArray) -> FloatArray:
    """Return the probability of every class for every row; see `log_probabilities_of`."""
    return np.asarray(np.exp(log_probabilities_of(scores)))
