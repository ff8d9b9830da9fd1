"""How exactly the minimiser of a sum over pairs is computed, from public numbers alone.

The rule is the one of :mod:`dp_halfspace.optim.tolerance`; only the error of a computed
gradient is another. It includes the error of the interpolation that replaces the sum over
all pairs of a positive and a negative score.
"""

from __future__ import annotations

import math

from dp_halfspace.optim._pairs import PAIR_BLOCK
from dp_halfspace.optim.losses import Loss
from dp_halfspace.optim.pair_cells import logistic_rounding
from dp_halfspace.optim.pairwise import PAIRWISE_LOSSES
from dp_halfspace.optim.tolerance import (
    UNIT,
    Tolerance,
    check_positive,
    gradient_error,
    solver_tolerance,
)

__all__ = ["pair_error", "pairwise_gradient_error", "pairwise_tolerance"]


def pair_error(loss: Loss, n_samples: int, reach: float) -> float:
    """Bound the error of a derivative by a score, for each pair that it sums over.

    Parameters
    ----------
    loss : Loss
    n_samples : int
        Number of records.
    reach : float
        Bound on the absolute scores.

    Returns
    -------
    float
        At exact scores; interpolation and rounding.

    References
    ----------
    ``docs/proofs/pairwise.md``, Theorems 3 and 4.

    Examples
    --------
    >>> from dp_halfspace.optim.losses import LOGISTIC
    >>> from dp_halfspace.optim.pairwise_tolerance import pair_error
    >>> 1e-13 < pair_error(LOGISTIC, 10**6, 100.0) < 1e-10
    True
    """
    if loss.name in ("logistic", "shifted_logistic"):
        reach += abs(loss.shift)
        # The shift is added to the negative scores, rounded once.
        adding = reach * UNIT if loss.shift else 0.0
        return logistic_rounding(n_samples, reach) + adding
    sums = PAIR_BLOCK + -(-n_samples // PAIR_BLOCK) + 8
    if math.isfinite(loss.lipschitz):
        return (2.0 * sums + 4.0 * loss.smoothness * (reach + 3.0)) * UNIT * 1.01
    return 8.0 * sums * (reach + 1.0) * UNIT * 1.01


def pairwise_gradient_error(
    loss: Loss,
    *,
    n_samples: int,
    n_columns: int,
    block_rows: int,
    row_norm: float,
    ridge: float,
    radius: float,
    normaliser: float,
    linear: float = 0.0,
) -> float:
    """Bound the error of a computed gradient of a `PairwiseObjective`, on all data.

    Parameters
    ----------
    loss, normaliser
        Of the objective.
    n_samples, n_columns, block_rows, row_norm, ridge, radius, linear
        As in :func:`~dp_halfspace.optim.tolerance.gradient_error`.

    Returns
    -------
    float
        Bound on the Euclidean norm of the error.

    Raises
    ------
    CertificateError
        As in :func:`~dp_halfspace.optim.tolerance.gradient_error`.

    References
    ----------
    ``docs/proofs/pairwise.md``, Theorem 5.

    Examples
    --------
    >>> from dp_halfspace.optim.losses import LOGISTIC
    >>> from dp_halfspace.optim.pairwise_tolerance import pairwise_gradient_error
    >>> sizes = {"n_samples": 10**5, "n_columns": 50, "block_rows": 3932, "row_norm": 1.0}
    >>> error = pairwise_gradient_error(
    ...     LOGISTIC, **sizes, ridge=1e-3, radius=17.0, normaliser=2.5e9
    ... )
    >>> 1e-11 < error < 2e-10
    True
    """
    reach = row_norm * radius
    slope = loss.slope_bound(2.0 * reach)
    # The sum of the absolute derivatives by all scores is at most twice the number of pairs
    # times the slope: what Theorem 2 of the certificate needs per record, on average.
    per_record = 2.0 * pair_mass(n_samples, normaliser) / n_samples
    return gradient_error(
        n_samples=n_samples,
        n_columns=n_columns,
        block_rows=block_rows,
        row_norm=row_norm,
        ridge=ridge,
        radius=radius,
        slope=per_record * slope,
        smoothness=per_record * 2.0 * loss.smoothness,
        evaluation=per_record * (pair_error(loss, n_samples, reach) / UNIT + 4.0 * slope),
        linear=linear,
    )


def pair_mass(n_samples: int, normaliser: float) -> float:
    """Bound the number of pairs over the normaliser; at least one pair is counted.

    Parameters
    ----------
    n_samples : int
        Number of records of both classes together.
    normaliser : float
        Public divisor of the sum over pairs.

    Returns
    -------
    float
        ``floor(n^2 / 4) / Z``, rounded up.

    Examples
    --------
    >>> from dp_halfspace.optim.pairwise_tolerance import pair_mass
    >>> round(pair_mass(10, 25.0), 12)
    1.0
    """
    return max(1, n_samples * n_samples // 4) / normaliser * (1.0 + 2.0**-50)


def pairwise_tolerance(
    loss: Loss,
    *,
    change: float,
    n_samples: int,
    n_columns: int,
    block_rows: int,
    row_norm: float,
    ridge: float,
    radius: float,
    normaliser: float,
    linear: float = 0.0,
    linear_error: float = 0.0,
) -> Tolerance:
    """Fix the tolerance for a sum over pairs.

    Parameters
    ----------
    loss : Loss
        Smooth, of one of the names in
        :data:`~dp_halfspace.optim.pairwise.PAIRWISE_LOSSES`.
    change : float
        How much the gradient can change when one record is replaced: the sensitivity of the
        minimiser times `ridge`, or
        :func:`~dp_halfspace.optim.pairwise_bounds.pairwise_gradient_change`.
    n_samples, n_columns, block_rows, row_norm, ridge, radius, linear, linear_error
        As in :func:`~dp_halfspace.optim.tolerance.gradient_tolerance`, on the scale of the
        objective.
    normaliser : float
        Public divisor of the sum over pairs.

    Returns
    -------
    Tolerance

    Raises
    ------
    CertificateError
        If twice the certified gradient exceeds `change`; decided before data are read.
    ValueError
        If the loss does not qualify or a number is out of range.

    References
    ----------
    ``docs/proofs/pairwise.md``, section 4.

    Examples
    --------
    >>> from dp_halfspace.optim.losses import LOGISTIC
    >>> from dp_halfspace.optim.pairwise_tolerance import pairwise_tolerance
    >>> rule = pairwise_tolerance(
    ...     LOGISTIC, change=8e-3, n_samples=1000, n_columns=10, block_rows=1000,
    ...     row_norm=1.0, ridge=0.01, radius=5.3, normaliser=250_000.0,
    ... )
    >>> rule.target < 1e-8
    True
    """
    if loss.name not in PAIRWISE_LOSSES:
        raise ValueError(f"the loss of pairs must be one of {PAIRWISE_LOSSES}")
    check_positive(change=change, row_norm=row_norm, ridge=ridge, normaliser=normaliser)
    largest = radius + change / ridge
    error = pairwise_gradient_error(
        loss,
        n_samples=n_samples,
        n_columns=n_columns,
        block_rows=block_rows,
        row_norm=row_norm,
        ridge=ridge,
        radius=largest,
        normaliser=normaliser,
        linear=linear,
    )
    return solver_tolerance(change, error, linear_error, largest)
