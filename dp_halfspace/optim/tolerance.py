"""The one rule for how exactly a minimiser is computed, from public numbers alone.

A solver can only see a computed gradient. The rule bounds, for every data set, how far
that is from the exact one, asks the solver for ten times this bound or for 1e-7 of the
influence of a record, whichever is larger, and reports what is then certain about the
exact gradient. Everything is on the scale of the sum over records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dp_halfspace.exceptions import CertificateError
from dp_halfspace.optim.losses import Loss

__all__ = [
    "UNIT",
    "Tolerance",
    "check_positive",
    "check_scales",
    "gradient_error",
    "gradient_tolerance",
    "softmax_tolerance",
    "solver_tolerance",
]

# Unit roundoff of float64, round to nearest.
UNIT = 2.0**-53
# Products of errors of first order, and the arithmetic of this module.
_SECOND_ORDER = 1.01
# Bounds what underflow can do, amplified by factors of rows of up to 2^400.
_UNDERFLOW = 2.0**-500
_SMALLEST, _LARGEST = 2.0**-100, 2.0**100
_RELATIVE = 1e-7


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What a solver has to reach and what is then certain; public.

    Attributes
    ----------
    target : float
        Norm of the computed gradient to reach.
    certified : float
        Bound on the norm of the exact gradient at a point that reaches `target`, errors
        of the linear term included. The distance to the minimiser is at most
        ``certified / ridge``.
    float_error : float
        Bound on the error of a computed gradient at points of norm up to `radius`.
    radius : float
        Norm of points for which the bounds hold; every point that
        :func:`~dp_halfspace.optim.minimum.certified_minimum` returns is one of them.
    """

    target: float
    certified: float
    float_error: float
    radius: float


def gradient_error(
    *,
    n_samples: int,
    n_columns: int,
    block_rows: int,
    row_norm: float,
    ridge: float,
    radius: float,
    slope: float,
    smoothness: float,
    evaluation: float,
    linear: float = 0.0,
) -> float:
    """Bound the rounding error of a gradient computed through `Rows`, on all data.

    Parameters
    ----------
    n_samples, n_columns : int
        Shape of the logical matrix, constant column included.
    block_rows : int
        Rows that are summed at a time (:attr:`~dp_halfspace.optim.rows.Rows.block_rows`).
    row_norm : float
        Bound on the Euclidean norm of a row, constant column included.
    ridge : float
        Coefficient of ``||w||^2 / 2``.
    radius : float
        Bound on the norm of the point.
    slope : float
        Bound on the norm of a record's vector of weighted slopes (one number for a margin
        loss) at points of that norm.
    smoothness : float
        Lipschitz constant of that vector as a function of the margins.
    evaluation : float
        Bound on the error of that vector when it is computed from exact margins, in units
        of 2^-53.
    linear : float, default=0.0
        Bound on the norm of the linear term.

    Returns
    -------
    float
        Bound on the Euclidean norm of the error, for any order of the sums within a block
        and with or without fused multiply-add.

    Raises
    ------
    CertificateError
        If the sizes are so large that the analysis of first order does not apply, or the
        norms so extreme that numbers over- or underflow.

    References
    ----------
    ``docs/proofs/certificate.md``, Theorem 2. Higham (2002), "Accuracy and stability of
    numerical algorithms", sections 3.1 and 4.2.

    Examples
    --------
    >>> from dp_halfspace.optim.tolerance import gradient_error
    >>> sizes = {"n_samples": 10**5, "n_columns": 51, "block_rows": 3932, "row_norm": 1.0}
    >>> error = gradient_error(
    ...     **sizes, ridge=100.0, radius=17.0, slope=1.0, smoothness=0.25, evaluation=12.0
    ... )
    >>> 4e-8 < error < 8e-8
    True
    """
    check_scales(row_norm, radius)
    n_blocks = -(-n_samples // block_rows)
    in_margins = n_columns + 3
    in_sums = block_rows + n_blocks + 5
    if max(in_margins, in_sums, n_samples) * UNIT > 1e-3:
        raise CertificateError("the data are too large for a certificate in float64")
    mass = n_samples * row_norm
    first_order = UNIT * (
        in_sums * mass * slope
        + in_margins * mass * smoothness * row_norm * radius
        + evaluation * mass
        + 3.0 * (mass * slope + ridge * radius + linear)
    )
    tiny = _UNDERFLOW * n_samples * (n_columns + 8) * (1.0 + row_norm) * (1.0 + smoothness)
    return _SECOND_ORDER * first_order + tiny


def gradient_tolerance(
    loss: Loss,
    *,
    change: float,
    n_samples: int,
    n_columns: int,
    block_rows: int,
    row_norm: float,
    ridge: float,
    radius: float,
    max_weight: float = 1.0,
    linear: float = 0.0,
    linear_error: float = 0.0,
) -> Tolerance:
    """Fix the tolerance for a sum of margin losses.

    Parameters
    ----------
    loss : Loss
        Smooth margin loss.
    change : float
        How much the gradient of the sum can change when one record is replaced, for
        example ``2 row_norm max_weight slope``; the sensitivity of the minimiser times
        `ridge`.
    n_samples, n_columns, block_rows, row_norm, ridge
        As in :func:`gradient_error`.
    radius : float
        Bound on the norm of the exact minimiser.
    max_weight : float, default=1.0
        Largest public weight of a record.
    linear : float, default=0.0
        Bound on the norm of the linear term; with objective perturbation a public one
        that holds but for a negligible probability, never the norm that was drawn.
    linear_error : float, default=0.0
        Bound on the distance of the linear term that is used to the one that is meant,
        for example half its grid times the root of its dimension.

    Returns
    -------
    Tolerance

    Raises
    ------
    CertificateError
        If twice the certified gradient exceeds `change`: the allowance for inexact
        minimisers would more than double the noise.
    ValueError
        If the loss is not smooth or a number is out of range.

    References
    ----------
    ``docs/proofs/certificate.md``, section 3.

    Examples
    --------
    >>> from dp_halfspace.optim.losses import LOGISTIC
    >>> from dp_halfspace.optim.tolerance import gradient_tolerance
    >>> sizes = {"n_samples": 1000, "n_columns": 10, "block_rows": 1000, "row_norm": 1.0}
    >>> rule = gradient_tolerance(LOGISTIC, change=2.0, **sizes, ridge=10.0, radius=6.0)
    >>> rule.target
    2e-07
    """
    if not loss.smooth:
        raise ValueError("the loss must be smooth")
    check_positive(change=change, row_norm=row_norm, ridge=ridge, max_weight=max_weight)
    largest = radius + change / ridge
    slope = loss.slope_bound(row_norm * largest)
    error = gradient_error(
        n_samples=n_samples,
        n_columns=n_columns,
        block_rows=block_rows,
        row_norm=row_norm,
        ridge=ridge,
        radius=largest,
        slope=max_weight * slope,
        smoothness=max_weight * loss.smoothness,
        evaluation=max_weight * (8.0 * slope + 16.0 * loss.smoothness),
        linear=linear,
    )
    return solver_tolerance(change, error, linear_error, largest)


def softmax_tolerance(
    n_classes: int,
    *,
    change: float,
    n_samples: int,
    n_columns: int,
    block_rows: int,
    row_norm: float,
    ridge: float,
    radius: float,
    max_weight: float = 1.0,
    linear: float = 0.0,
    linear_error: float = 0.0,
    shift: float = 0.0,
) -> Tolerance:
    """Fix the tolerance for multinomial logistic regression.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    change, n_samples, n_columns, block_rows, row_norm, ridge
        As in :func:`gradient_tolerance`; `n_columns` is that of the matrix, not the
        number of coefficients.
    radius, max_weight, linear, linear_error : float
        As in :func:`gradient_tolerance`, for all classes together.
    shift : float, default=0.0
        Subtracted from the score of a record's own class, not negative.

    Returns
    -------
    Tolerance

    Raises
    ------
    CertificateError
        As in :func:`gradient_tolerance`.

    References
    ----------
    ``docs/proofs/certificate.md``, section 3.

    Examples
    --------
    >>> from dp_halfspace.optim.tolerance import softmax_tolerance
    >>> sizes = {"n_samples": 1000, "n_columns": 10, "block_rows": 1000, "row_norm": 1.0}
    >>> rule = softmax_tolerance(5, change=2.83, **sizes, ridge=10.0, radius=8.0)
    >>> rule.certified < 3e-7
    True
    """
    check_positive(change=change, row_norm=row_norm, ridge=ridge, max_weight=max_weight)
    largest = radius + change / ridge
    # The subtraction of the shift is rounded once.
    shifting = 0.5 * (row_norm * largest + shift) if shift else 0.0
    error = gradient_error(
        n_samples=n_samples,
        n_columns=n_columns,
        block_rows=block_rows,
        row_norm=row_norm,
        ridge=ridge,
        radius=largest,
        slope=max_weight * math.sqrt(2.0),
        smoothness=max_weight * 0.5,
        evaluation=max_weight * (2.0 * n_classes + 24.0 + shifting),
        linear=linear,
    )
    return solver_tolerance(change, error, linear_error, largest)


def check_scales(row_norm: float, radius: float) -> None:
    """Refuse norms at which a double may over- or underflow; both are public.

    Parameters
    ----------
    row_norm, radius : float
        Bounds on the norm of a row and of a point.

    Raises
    ------
    CertificateError
        If one of them is out of reach.

    Examples
    --------
    >>> from dp_halfspace.optim.tolerance import check_scales
    >>> check_scales(1.0, 100.0)
    """
    if not (_SMALLEST <= row_norm <= _LARGEST and radius <= _LARGEST):
        raise CertificateError(
            "the bounds on the norms of a row and of the coefficients are out of reach of float64: "
            "use a data_norm, an intercept_scaling and class weights nearer to 1, or a larger alpha"
        )


def check_positive(**numbers: float) -> None:
    """Refuse public numbers that are not positive and finite."""
    for name, number in numbers.items():
        if not 0.0 < number < math.inf:
            raise ValueError(f"{name} must be positive and finite")


def solver_tolerance(change: float, error: float, linear_error: float, radius: float) -> Tolerance:
    """Apply the rule."""
    target = max(_RELATIVE * change, 10.0 * error)
    certified = target + error + linear_error
    if not 2.0 * certified <= change:
        raise CertificateError(
            "floating-point error can be as large as the influence of a record; "
            "use a larger regulariser, fewer records or a smaller row norm"
        )
    return Tolerance(target, certified, error, radius)
