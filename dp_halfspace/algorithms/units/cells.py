"""Counts of the entries of each column, in cells that nobody had to choose from the data.

A record adds at most one to one cell of every column, so replacing it moves the counts of d
columns by at most ``sqrt(2 d)`` in Euclidean norm and ``2 d`` in absolute value. Counts are
integers, or sums of weights on a grid: exact in any order of summation. Proof:
``docs/proofs/units.md``, section 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.algorithms.plan import FloatArray

__all__ = ["HIGHEST", "LOWEST", "N_OCTAVES", "linear_counts", "octave_counts"]


# Octaves [2^k, 2^(k+1)) on both sides of zero; what is nearer to zero counts as zero.
LOWEST, HIGHEST = -120, 119
N_OCTAVES = HIGHEST - LOWEST + 1
_BLOCK_ENTRIES = 2**18


def octave_counts(X: NDArray[Any], weights: FloatArray | None = None) -> FloatArray:
    """Count the entries of each column by sign and octave; NaN counts nowhere.

    Parameters
    ----------
    weights : ndarray of shape (n_samples,) or None
        What each row counts; None stands for one.

    Returns
    -------
    ndarray of shape (n_features, 2 * N_OCTAVES + 1)
        From the most negative octave over zero, in the middle, to the most positive one.
    """
    n_samples, n_features = X.shape
    n_cells = 2 * N_OCTAVES + 2  # the last one takes what is missing
    first = np.arange(n_features) * n_cells
    counts = np.zeros(n_features * n_cells)
    step = max(1, _BLOCK_ENTRIES // n_features)
    for lo in range(0, n_samples, step):
        block = np.ascontiguousarray(X[lo : lo + step], dtype=np.float64)
        octave = (block.view(np.int64) >> 52 & 0x7FF) - 1023
        distance = np.clip(octave - (LOWEST - 1), 0, N_OCTAVES)
        cell = N_OCTAVES + np.where(np.signbit(block), -distance, distance)
        cell[np.isnan(block)] = n_cells - 1
        each = None if weights is None else np.repeat(weights[lo : lo + step], n_features)
        counts += np.bincount((cell + first).ravel(), each, minlength=len(counts))
    return counts.reshape(n_features, n_cells)[:, :-1].copy()


def linear_counts(
    X: NDArray[Any],
    low: FloatArray,
    high: FloatArray,
    n_cells: int,
    weights: FloatArray | None = None,
) -> FloatArray:
    """Count the entries of each column in equal cells; what is outside is in the nearest one.

    Parameters
    ----------
    low, high : ndarray of shape (n_features,)
        Ends of the range, released before.
    weights : ndarray of shape (n_samples,) or None
        As in `octave_counts`.

    Returns
    -------
    ndarray of shape (n_features, n_cells)
    """
    counts = np.zeros((X.shape[1], n_cells))
    for j, (start, end) in enumerate(zip(low, high, strict=True)):
        column = np.asarray(X[:, j], dtype=np.float64)
        known = ~np.isnan(column)
        column = np.clip(column[known], start, end)
        cell = np.minimum((column - start) / (end - start) * n_cells, n_cells - 1)
        each = None if weights is None else weights[known]
        counts[j] = np.bincount(cell.astype(np.intp), each, minlength=n_cells)
    return counts
