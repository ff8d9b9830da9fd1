"""A logistic model whose labels enter through one sum: all that label privacy has to protect.

The logistic loss is ``ln(2 cosh(z / 2)) - y z / 2`` with ``z = <w, x>``: a function of the
features, which are public here, minus a linear function of ``s = 1/2 sum_i y_i x_i``. For
``K > 2`` classes the same holds with ``S = sum_i (e_{y_i} - 1/K) x_i``. The sum is released
once; every model that is then fitted to it is free. Proofs: ``docs/proofs/label_privacy.md``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.algorithms.plan import FloatArray
from dp_halfspace.optim.design.rows import Rows
from dp_halfspace.optim.objectives.losses import LOGISTIC
from dp_halfspace.optim.objectives.margin import MarginObjective
from dp_halfspace.optim.objectives.softmax import SoftmaxObjective
from dp_halfspace.optim.solvers.minimum import certified_minimum

# Prior variance of a coefficient of a unit row where noise rules; the ratio of noise to
# curvature at which it is doubled; its limit; mean curvature of the loss relative to zero.
# Chosen on satimage and ijcnn1, see docs/estimators/label_private.md.
_PRIOR, _BALANCE, _LARGEST_PRIOR, _CURVATURE = 0.3, 3.0, 10.0, 0.6
_TOLERANCE = 1e-7


def label_statistic(rows: Rows, codes: NDArray[np.intp], n_classes: int) -> FloatArray:
    """Return the sum through which the private labels `codes` enter a logistic model.

    For public rows of norm at most one it is ``1/2 sum y_i x_i``, of shape (1, D), with y = -1
    for class 0; with more classes ``sum (e_{y_i} - 1/K) x_i``, of shape (n_classes, D).
    """
    if n_classes == 2:
        return rows.adjoint(np.where(codes == 1, 0.5, -0.5))[None, :]
    indicators = np.full((len(codes), n_classes), -1.0 / n_classes)
    indicators[np.arange(len(codes)), codes] += 1.0
    return np.ascontiguousarray(rows.adjoint(indicators).T)


def statistic_sensitivity(n_samples: int, n_classes: int, block_rows: int) -> float:
    """Bound the Euclidean change of `label_statistic` when one label is replaced.

    It is 1 for two classes, ``sqrt(2)`` for more, plus what rounding can add in sums of
    `block_rows` at a time: ``docs/proofs/label_privacy.md``, section 1.
    """
    exact = 1.0 if n_classes == 2 else math.sqrt(2.0)
    terms = block_rows + math.ceil(n_samples / block_rows) + 8
    return exact * (1.0 + 2.0**-40) + 2.02 * terms * 2.0**-53 * n_samples


def statistic_ridge(n_samples: int, n_columns: int, n_classes: int, noise_variance: float) -> float:
    """Return the ridge that balances shrinkage against the noise of a coordinate."""
    share = 1.0 / n_classes
    curvature = _CURVATURE * share * (1.0 - share) * n_samples / n_columns
    ratio = noise_variance / curvature
    prior = min(_PRIOR * (1.0 + (_BALANCE / max(ratio, 1e-9)) ** 1.5), _LARGEST_PRIOR)
    return float((ratio + 1.0) / prior)


def statistic_minimiser(rows: Rows, statistic: FloatArray, ridge: float) -> FloatArray:
    """Fit the logistic model that belongs to a released statistic: post-processing.

    Returns the minimiser of ``sum ln(2 cosh(<w, x_i> / 2)) - <s, w> + ridge / 2 ||w||^2``, or of
    its counterpart with ``ln sum_k exp <w_k, x_i>``. It exists for every statistic.
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
