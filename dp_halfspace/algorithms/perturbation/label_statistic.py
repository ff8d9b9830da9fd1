"""A logistic model whose labels enter through one sum: all that label privacy has to protect.

The logistic loss is ``ln(2 cosh(z / 2)) - y z / 2`` with ``z = <w, x>``: a function of the
features, which are public here, minus a linear function of ``s = 1/2 sum_i y_i x_i``. For
``K > 2`` classes the same holds with ``S = sum_i (e_{y_i} - 1/K) x_i``. The sum is released
once; every model that is then fitted to it is free. Proofs: ``docs/proofs/label_privacy.md``.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.optim.design.rows import Rows
from dp_halfspace.optim.objectives.losses import LOGISTIC
from dp_halfspace.optim.objectives.margin import MarginObjective
from dp_halfspace.optim.objectives.softmax import SoftmaxObjective
from dp_halfspace.optim.solvers.minimum import certified_minimum

__all__ = [
    "label_statistic",
    "statistic_minimiser",
    "statistic_ridge",
    "statistic_sensitivity",
]

FloatArray: TypeAlias = NDArray[np.float64]

# Prior variance of a coefficient of a unit row where noise rules; the ratio of noise to
# curvature at which it is doubled; its limit; mean curvature of the loss relative to zero.
# Chosen on satimage and ijcnn1, see docs/estimators/label_private.md.
_PRIOR, _BALANCE, _LARGEST_PRIOR, _CURVATURE = 0.3, 3.0, 10.0, 0.6
_TOLERANCE = 1e-7


def label_statistic(rows: Rows, codes: NDArray[np.intp], n_classes: int) -> FloatArray:
    """Return the sum through which the labels enter a logistic model.

    Parameters
    ----------
    rows : Rows of shape (n, D)
        Public rows of norm at most one.
    codes : ndarray of shape (n,), int
        Private labels from 0 to ``n_classes - 1``.

    Returns
    -------
    ndarray of shape (1, D) or (n_classes, D)
        ``1/2 sum y_i x_i`` with y = -1 for class 0 and 1 for class 1; with more classes
        ``sum (e_{y_i} - 1/K) x_i``.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.algorithms.perturbation.label_statistic import label_statistic
    >>> from dp_halfspace.optim.design.rows import Rows
    >>> label_statistic(Rows(np.eye(2)), np.array([0, 1]), 2)
    array([[-0.5,  0.5]])
    """
    if n_classes == 2:
        return rows.adjoint(np.where(codes == 1, 0.5, -0.5))[None, :]
    indicators = np.full((len(codes), n_classes), -1.0 / n_classes)
    indicators[np.arange(len(codes)), codes] += 1.0
    return np.ascontiguousarray(rows.adjoint(indicators).T)


def statistic_sensitivity(n_samples: int, n_classes: int, block_rows: int) -> float:
    """Bound the Euclidean change of `label_statistic` when one label is replaced.

    Parameters
    ----------
    block_rows : int
        Rows that are summed at a time.

    Returns
    -------
    float
        1 for two classes, ``sqrt(2)`` for more, plus what rounding can add.

    References
    ----------
    ``docs/proofs/label_privacy.md``, section 1.

    Examples
    --------
    >>> from dp_halfspace.algorithms.perturbation.label_statistic import statistic_sensitivity
    >>> round(statistic_sensitivity(1000, 2, 100), 9), round(statistic_sensitivity(1000, 7, 9), 9)
    (1.0, 1.414213562)
    """
    exact = 1.0 if n_classes == 2 else math.sqrt(2.0)
    terms = block_rows + math.ceil(n_samples / block_rows) + 8
    return exact * (1.0 + 2.0**-40) + 2.02 * terms * 2.0**-53 * n_samples


def statistic_ridge(n_samples: int, n_columns: int, n_classes: int, noise_variance: float) -> float:
    """Return the ridge that balances shrinkage against noise.

    Parameters
    ----------
    noise_variance : float
        Of a coordinate of the released statistic.

    Returns
    -------
    float
        Positive.

    Examples
    --------
    >>> from dp_halfspace.algorithms.perturbation.label_statistic import statistic_ridge
    >>> statistic_ridge(4435, 32, 2, 0.0)
    0.1
    >>> round(statistic_ridge(4435, 32, 2, 100.0), 1)
    13.0
    """
    share = 1.0 / n_classes
    curvature = _CURVATURE * share * (1.0 - share) * n_samples / n_columns
    ratio = noise_variance / curvature
    prior = min(_PRIOR * (1.0 + (_BALANCE / max(ratio, 1e-9)) ** 1.5), _LARGEST_PRIOR)
    return float((ratio + 1.0) / prior)


def statistic_minimiser(rows: Rows, statistic: FloatArray, ridge: float) -> FloatArray:
    """Fit the logistic model that belongs to a released statistic: post-processing.

    Parameters
    ----------
    rows : Rows of shape (n, D)
        Public.
    statistic : ndarray of shape (1, D) or (K, D)
        Released, any real numbers.
    ridge : float
        Positive.

    Returns
    -------
    ndarray of shape (1, D) or (K, D)
        Minimiser of ``sum ln(2 cosh(<w, x_i> / 2)) - <s, w> + ridge / 2 ||w||^2``, or of its
        counterpart with ``ln sum_k exp <w_k, x_i>``. It exists for every statistic.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.algorithms.perturbation.label_statistic import statistic_minimiser
    >>> from dp_halfspace.optim.design.rows import Rows
    >>> bool(statistic_minimiser(Rows(np.eye(2)), np.array([[-0.4, 0.2]]), 0.1)[0, 1] > 0)
    True
    """
    objective = _objective(rows, statistic, ridge)
    # Strong convexity: the minimiser is no farther from zero than this.
    steepest = float(np.linalg.norm(objective.gradient(np.zeros(objective.size))))
    radius = 1.0 + steepest / ridge
    found = certified_minimum(objective, _TOLERANCE * max(1.0, steepest), radius=radius)
    return found.reshape(statistic.shape)


def _objective(
    rows: Rows, statistic: FloatArray, ridge: float
) -> MarginObjective | SoftmaxObjective:
    """Give every record the same label, and take back what that adds, by a linear term."""
    n_samples, n_classes = rows.shape[0], len(statistic)
    ones = np.ones(n_samples)
    total = rows.adjoint(ones)
    if n_classes == 1:
        return MarginObjective(rows, ones, ones, LOGISTIC, ridge, 0.5 * total - statistic[0])
    linear = -statistic - total / n_classes
    linear[0] += total
    codes = np.zeros(n_samples, dtype=np.intp)
    return SoftmaxObjective(rows, codes, n_classes, ones, ridge, linear.ravel())
