"""A threshold on released scores, chosen by the exponential mechanism over a public grid.

The grid is a function of released coefficients; the score of a threshold is the weighted
number of errors, to which a record adds at most one. Proof: ``docs/proofs/auc.md``.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.privacy.mechanisms import ExponentialChoice, NoNoise, Permit

__all__ = ["plan_threshold", "release_threshold", "threshold_grid", "threshold_losses"]

FloatArray: TypeAlias = NDArray[np.float64]

# Candidates on each side of the centre, and how much nearer each is than the one before.
_PER_SIDE, _RATIO = 31, 2.0 ** (-1.0 / 3.0)
# Width of the step from right to wrong, relative to the largest score: with a jump a
# rounding error could move the score of a threshold by one for every record.
_STEP = 2.0**-16


def plan_threshold(n_samples: int, n_columns: int, epsilon: float) -> ExponentialChoice | NoNoise:
    """Return the mechanism that chooses the threshold.

    Parameters
    ----------
    n_samples, n_columns : int
        Shape of the rows.
    epsilon : float
        What the choice may cost; infinity takes the best threshold.

    Examples
    --------
    >>> from dp_halfspace.algorithms.selection.threshold import plan_threshold
    >>> 1.0 < plan_threshold(10**5, 50, 0.1).sensitivity < 1.001
    True
    """
    if math.isinf(epsilon):
        return NoNoise()
    rounding = n_samples * (n_columns + 16) * 2.0**-36 + 2.0**-50 * n_samples * n_samples
    return ExponentialChoice(1.0 + 2.0**-30 + rounding, epsilon)


def threshold_grid(largest: float, centre: float) -> FloatArray:
    """Return candidate thresholds, denser towards a centre.

    Parameters
    ----------
    largest : float
        Bound on the absolute scores, from released coefficients.
    centre : float
        Where a threshold is expected, from released numbers.

    Returns
    -------
    ndarray of shape (63,)
        Within ``[-largest, largest]``.

    Examples
    --------
    >>> from dp_halfspace.algorithms.selection.threshold import threshold_grid
    >>> grid = threshold_grid(1.0, 0.25)
    >>> len(grid), float(grid.min()), float(grid.max()), bool((grid == 0.25).any())
    (63, -1.0, 1.0, True)
    """
    steps = 2.0 * largest * _RATIO ** np.arange(_PER_SIDE)
    grid = np.concatenate([centre - steps, [centre], centre + steps])
    return np.asarray(np.clip(grid, -largest, largest))


def threshold_losses(
    scores: FloatArray,
    positive: NDArray[np.bool_],
    weights: FloatArray,
    grid: FloatArray,
    *,
    largest: float,
) -> FloatArray:
    """Return the weighted number of errors of every threshold.

    Parameters
    ----------
    weights : ndarray of shape (2,)
        Of the negative and the positive class, in [0, 1].
    largest : float
        As in :func:`threshold_grid`. A record within ``2^-17 largest`` of a threshold counts
        in part.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.algorithms.selection.threshold import threshold_losses
    >>> scores, positive = np.array([-0.5, 0.1, 0.7]), np.array([False, False, True])
    >>> threshold_losses(scores, positive, np.ones(2), np.array([-1.0, 0.4, 0.9]), largest=1.0)
    array([2., 0., 1.])
    """
    step = max(largest * _STEP, 1e-300)
    # A positive record is wrong below the threshold: one minus what a negative one would add.
    base = float(weights[1]) * np.count_nonzero(positive)
    signed = np.where(positive, -weights[1], weights[0])
    shares = (np.clip((scores - t) / step + 0.5, 0.0, 1.0) for t in grid)
    return base + np.array([float(signed @ share) for share in shares])


def release_threshold(
    scores: FloatArray,
    positive: NDArray[np.bool_],
    weights: FloatArray,
    grid: FloatArray,
    *,
    mechanism: ExponentialChoice | NoNoise,
    permit: Permit,
    largest: float,
) -> float:
    """Choose a threshold with few errors.

    Parameters
    ----------
    scores, positive, weights, grid, largest
        As in :func:`threshold_losses`.
    mechanism : ExponentialChoice or NoNoise
        From :func:`plan_threshold`.
    permit : Permit
        Charged with the event of `mechanism`.

    Returns
    -------
    float
        One of the grid. Private; free to be used.
    """
    utilities = -threshold_losses(scores, positive, weights, grid, largest=largest)
    released = permit.release(utilities, mechanism)
    index = int(released.argmax()) if isinstance(mechanism, NoNoise) else int(released[0])
    return float(grid[index])
