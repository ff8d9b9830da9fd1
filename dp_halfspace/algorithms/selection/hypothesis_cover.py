"""Weighted errors of many linear classifiers at once, where the features are public."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.algorithms.plan import FloatArray

_ENTRIES = 2**20  # scores that are in memory at a time


def log_odds_shift(weights: FloatArray) -> FloatArray:
    """Turn public class weights into a shift of scores: weighting a class multiplies its odds.

    For two classes it is the shift of the score of the second one, of shape (1,).

    >>> log_odds_shift(np.array([1.0, 2.0])).round(3), log_odds_shift(np.ones(3))
    (array([0.693]), array([0., 0., 0.]))
    """
    logs = np.log(weights)
    return np.array([logs[1] - logs[0]]) if len(logs) == 2 else np.asarray(logs - logs.mean())


def linear_losses(
    points: FloatArray, codes: NDArray[np.intp], weights: FloatArray
) -> Callable[[FloatArray], FloatArray]:
    """Return a function from candidates, (m, D) or (m, K D) for ``K > 2``, to weighted errors.

    `points` are public, the class `weights` in (0, 1]. Scores are shifted by `log_odds_shift`,
    too: many candidates make no error on a heavy class. A label changes a loss by at most one: a
    prediction depends on public numbers only, so it is the same on both of two neighbouring data
    sets, rounding included. Two sums of ``n`` weights may differ by ``n^2 2^-52`` more.
    """
    n_samples, n_columns = points.shape
    n_classes = len(weights)
    record_weights, shift = weights[codes], log_odds_shift(weights)
    step = max(1, _ENTRIES // (256 * n_classes))

    def losses(candidates: FloatArray) -> FloatArray:
        total = np.zeros(len(candidates))
        for lo in range(0, n_samples, step):
            block, labels = points[lo : lo + step], codes[lo : lo + step]
            if n_classes == 2:
                predicted = (block @ candidates.T > -shift[0]).astype(np.intp)
            else:
                scores = block @ candidates.reshape(-1, n_columns).T
                predicted = (scores.reshape(len(block), -1, n_classes) + shift).argmax(axis=2)
            total += record_weights[lo : lo + step] @ (predicted != labels[:, None])
        return total

    return losses
