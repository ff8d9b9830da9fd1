"""The rule for the accuracy of computed minimisers, from public numbers alone.

A solver only has a computed gradient. The rule bounds, for every data set, the distance of the
computed from the exact gradient. It requires the solver to reach ten times this bound or 1e-7 of
the influence of a record, whichever is larger, and returns the resulting bound on the exact
gradient. All numbers are on the scale of the sum over records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dp_halfspace._rounding import EPS
from dp_halfspace.exceptions import CertificateError
from dp_halfspace.rows.blocks import PLAIN_BLOCKS

# Factor that covers products of first-order errors, and rounding errors of this module.
_SECOND_ORDER = 1.01
# Bound on the effect of underflow, amplified by factors of rows of up to 2^400.
_UNDERFLOW = 2.0**-500
# Range of norms for which the analysis of the rounding errors holds.
_NORMS = (2.0**-100, 2.0**100)
# Least tolerance of a solver, as a share of the largest change of the gradient by one record.
RELATIVE = 1e-7


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The tolerance of a solver and the certificate that follows from it; public.

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
        :func:`~dp_halfspace.optim.solvers.certified_minimum` returns is one of them.
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
    compensated: bool = False,
) -> float:
    """Bound the rounding error of a gradient computed through `Rows`, on all data.

    There are `n_samples` rows of `n_columns` entries and norm at most `row_norm`, summed
    `block_rows` at a time, and the point has norm at most `radius`. `slope` bounds the norm of a
    record's vector of weighted slopes (one number for a margin loss) at such points, `smoothness`
    is its Lipschitz constant as a function of the margins, and `evaluation` bounds the error of
    that vector when it is computed from exact margins, in units of 2^-53. `linear` bounds the norm
    of the linear term. `compensated` says that all sums are those of `Rows`, which add many blocks
    by Kahan's rule.

    The bound is on the Euclidean norm of the error, for any order of the sums within a block and
    with or without fused multiply-add: ``docs/proofs/certificate.md``, Theorem 2; Higham (2002),
    "Accuracy and stability of numerical algorithms", sections 3.1 and 4.2. Raise a
    CertificateError if the first-order analysis does not apply to such sizes, or if numbers could
    over- or underflow.
    """
    if not (_NORMS[0] <= row_norm <= _NORMS[1] and radius <= _NORMS[1]):
        raise CertificateError(
            "the bounds on the norms of a row and of the coefficients exceed the range of float64: "
            "use a data_norm, an intercept_scaling and class weights nearer to 1, or a larger alpha"
        )
    n_blocks = -(-n_samples // block_rows)
    if compensated:
        n_blocks = min(n_blocks, PLAIN_BLOCKS)
    in_margins = n_columns + 3
    in_sums = block_rows + n_blocks + 5
    if max(in_margins, in_sums, n_samples) * EPS > 1e-3:
        raise CertificateError("the data are too large for a certificate in float64")
    mass = n_samples * row_norm
    first_order = EPS * (
        in_sums * mass * slope
        + in_margins * mass * smoothness * row_norm * radius
        + evaluation * mass
        + 3.0 * (mass * slope + ridge * radius + linear)
    )
    tiny = _UNDERFLOW * n_samples * (n_columns + 8) * (1.0 + row_norm) * (1.0 + smoothness)
    return _SECOND_ORDER * first_order + tiny


def error_of_sums(
    n_samples: int, n_columns: int, block_rows: int, *, slope: float, n_outputs: int
) -> float:
    """Bound the rounding error of a sum over `Rows` of norm one, times slopes at exact margins.

    `slope` bounds the norm of the `n_outputs` slopes of a record; everything else is as in
    `gradient_error`.
    """
    return gradient_error(
        n_samples=n_samples,
        n_columns=n_columns,
        block_rows=block_rows,
        row_norm=1.0,
        ridge=0.0,
        radius=1.0,
        slope=slope,
        smoothness=0.0,
        evaluation=2.0 * n_outputs + 32.0,
        compensated=True,
    )


def solver_tolerance(change: float, error: float, linear_error: float, radius: float) -> Tolerance:
    """Return the tolerance for a largest `change` of the gradient by one record.

    `error` bounds the rounding error of a gradient, `linear_error` the distance between the linear
    term that is used and the intended one: ``docs/proofs/certificate.md``, section 3.
    """
    target = max(RELATIVE * change, 10.0 * error)
    certified = target + error + linear_error
    if not 0.0 < 2.0 * certified <= change < math.inf:
        # The linear term is noise, which a larger alpha does not reduce.
        instead = "epsilon, or delta above 0" if linear_error else "alpha, or fewer records"
        raise CertificateError(
            "floating-point error can be as large as the influence of a record: use a larger "
            + instead
        )
    return Tolerance(target, certified, error, radius)
