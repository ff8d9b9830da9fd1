"""How exactly tilted and robust minimisers are computed, from public numbers alone.

The weights of a tilted mean are exponentials of losses: an error of a loss becomes a relative
error of a weight, ``tilt`` times as large. Proofs in ``docs/proofs/robust.md``, section 4.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dp_halfspace.exceptions import CertificateError
from dp_halfspace.optim._tilt import RUN
from dp_halfspace.optim.tolerance import (
    UNIT,
    Tolerance,
    check_positive,
    gradient_error,
    solver_tolerance,
)

if TYPE_CHECKING:
    from dp_halfspace.optim.erm import RidgeProblem

__all__ = ["robust_error", "robust_tolerance"]

# Above this the errors of the weights are not of first order.
_LARGEST_EXPONENT_ERROR = 1e-3


def robust_error(
    problem: RidgeProblem,
    *,
    n_samples: int,
    n_columns: int,
    block_rows: int,
    row_norm: float,
    ridge: float,
    radius: float,
    max_weight: float,
    linear: float = 0.0,
) -> float:
    """Bound the rounding error of a gradient of a tilted mean of losses, on all data.

    Parameters
    ----------
    problem : RidgeProblem
        Loss, number of classes, tilt and attack; an attack must have a smoothing.
    n_samples, n_columns, block_rows, row_norm, ridge, radius, linear
        As in :func:`~dp_halfspace.optim.tolerance.gradient_error`.
    max_weight : float
        Largest public weight of a record.

    Returns
    -------
    float
        Bound on the Euclidean norm of the error.

    Raises
    ------
    CertificateError
        If the tilt is so large that rounding errors of the losses show in the weights, or as in
        :func:`~dp_halfspace.optim.tolerance.gradient_error`.
    ValueError
        If the loss or the dual norm is not smooth.

    References
    ----------
    ``docs/proofs/robust.md``, Theorem 5.

    Examples
    --------
    >>> from dp_halfspace.optim import LOGISTIC, RidgeProblem
    >>> from dp_halfspace.optim.robust_tolerance import robust_error
    >>> sizes = {"n_samples": 1000, "n_columns": 10, "block_rows": 1000, "row_norm": 1.0}
    >>> public = {"ridge": 100.0, "radius": 2.0, "max_weight": 1.0, **sizes}
    >>> problems = [RidgeProblem(LOGISTIC, 1000, 10, 2, 1.0, 1000, tilt=T) for T in (0.0, 1e3)]
    >>> mild, strong = (robust_error(problem, **public) for problem in problems)
    >>> mild < 1e-9 < strong < 1e-7
    True
    """
    attack = problem.attack
    if not problem.loss.smooth or (attack is not None and not attack.smoothing):
        raise ValueError("loss and dual norm must be smooth")
    length = row_norm + (attack.reach if attack else 0.0)
    lowest = length * radius
    slope, smoothness, most, of_slope, of_value = _of_record(problem, row_norm, radius, lowest)
    # Errors in units of UNIT: of margins, of exponents, of weights relative to themselves.
    of_margin = (n_columns + 20) * lowest
    exponent = 0.0
    if problem.tilt:
        exponent = problem.tilt * max_weight * (slope * of_margin + of_value + 6.0 * most)
    if exponent * UNIT > _LARGEST_EXPONENT_ERROR:
        raise CertificateError(
            "the tilt is so large that rounding errors of the losses can change the weights"
        )
    in_weights = 2.0 * exponent + 40.0 + 2.0 * (RUN + n_samples / RUN) + n_columns
    of_slope += smoothness * 18.0 * lowest
    return gradient_error(
        n_samples=n_samples,
        n_columns=n_columns,
        block_rows=block_rows,
        row_norm=length,
        ridge=ridge,
        radius=radius,
        slope=max_weight * slope,
        smoothness=max_weight * smoothness,
        evaluation=max_weight * (of_slope + slope * in_weights),
        linear=linear,
    )


def robust_tolerance(
    problem: RidgeProblem,
    *,
    change: float,
    n_samples: int,
    n_columns: int,
    block_rows: int,
    row_norm: float,
    ridge: float,
    radius: float,
    max_weight: float,
    linear: float = 0.0,
    linear_error: float = 0.0,
) -> Tolerance:
    """Fix the tolerance for a tilted mean of losses, with an attack or without.

    Parameters
    ----------
    problem : RidgeProblem
        As in :func:`robust_error`.
    change, n_samples, n_columns, block_rows, row_norm, ridge, radius, max_weight
        As in :func:`~dp_halfspace.optim.gradient_tolerance`.
    linear, linear_error : float, default=0.0
        As in :func:`~dp_halfspace.optim.gradient_tolerance`.

    Returns
    -------
    Tolerance

    Raises
    ------
    CertificateError
        As in :func:`robust_error` and :func:`~dp_halfspace.optim.gradient_tolerance`.
    ValueError
        If a number is out of range or a function is not smooth.

    References
    ----------
    ``docs/proofs/robust.md``, Theorem 5 and section 4.

    Examples
    --------
    >>> from dp_halfspace.optim import LOGISTIC, RidgeProblem
    >>> from dp_halfspace.optim.robust_tolerance import robust_tolerance
    >>> problem = RidgeProblem(LOGISTIC, 1000, 10, 2, 1.0, 1000, tilt=2.0)
    >>> sizes = {"n_samples": 1000, "n_columns": 10, "block_rows": 1000, "row_norm": 1.0}
    >>> public = {"change": 5.0, "ridge": 100.0, "radius": 2.0, "max_weight": 1.0}
    >>> robust_tolerance(problem, **public, **sizes).target
    5e-07
    """
    check_positive(change=change, row_norm=row_norm, ridge=ridge, max_weight=max_weight)
    largest = radius + change / ridge
    error = robust_error(
        problem,
        n_samples=n_samples,
        n_columns=n_columns,
        block_rows=block_rows,
        row_norm=row_norm,
        ridge=ridge,
        radius=largest,
        max_weight=max_weight,
        linear=linear,
    )
    return solver_tolerance(change, error, linear_error, largest)


def _of_record(
    problem: RidgeProblem, row_norm: float, largest: float, lowest: float
) -> tuple[float, float, float, float, float]:
    """Return slope, smoothness, largest value, and the errors of slopes and values."""
    loss = problem.loss
    if not problem.multinomial:
        slope, most = loss.slope_bound(lowest), float(loss.value(-lowest))
        of_slope = 8.0 * slope + 16.0 * loss.smoothness
        return slope, loss.smoothness, most, of_slope, 24.0 * most + 4.0 * (1.0 + slope)
    margin = row_norm * largest + loss.shift
    most = 1.5 * margin + math.log(problem.n_classes)
    of_slope = 2.0 * problem.n_classes + 24.0 + 0.5 * margin
    return math.sqrt(2.0), 0.5, most, of_slope, 2.0 * problem.n_classes + 24.0 + 6.0 * margin
