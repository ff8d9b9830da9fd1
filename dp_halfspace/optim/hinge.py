"""Certified minimisers for the hinge, whose minimum sits on kinks that floats miss.

No gradient is small near such a minimum, so the certificate is a duality gap. Proofs in
``docs/proofs/certificate.md``, section 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._sklearn import single_blas_thread
from dp_halfspace.exceptions import CertificateError
from dp_halfspace.optim.objectives import MarginObjective
from dp_halfspace.optim.proximal import multiplier_steps
from dp_halfspace.optim.tolerance import UNIT, check_scales

__all__ = [
    "HingeTolerance",
    "certified_hinge",
    "dual_accelerated_gradient",
    "duality_gap",
    "hinge_tolerance",
]

FloatArray: TypeAlias = NDArray[np.float64]

_RELATIVE = 5e-3
_CHECK_EVERY = 20


@dataclass(frozen=True, slots=True)
class HingeTolerance:
    """What a solver has to reach and what is then certain; public.

    Attributes
    ----------
    gap : float
        Computed duality gap to reach, on the scale of the sum over records.
    distance : float
        Bound on the distance to the exact minimiser of a point that reaches it.
    radius : float
        Norm of points for which this holds.
    """

    gap: float
    distance: float
    radius: float


def hinge_tolerance(
    *,
    change: float,
    n_samples: int,
    n_columns: int,
    block_rows: int,
    row_norm: float,
    ridge: float,
    radius: float,
    max_weight: float = 1.0,
) -> HingeTolerance:
    """Fix the tolerance for a sum of hinge losses, from public numbers.

    Parameters
    ----------
    change : float
        ``2 row_norm max_weight``; the sensitivity of the minimiser times `ridge`.
    n_samples, n_columns : int
        Shape of the logical matrix, constant column included.
    block_rows : int
        Rows that are summed at a time (:attr:`~dp_halfspace.optim.rows.Rows.block_rows`).
    row_norm, ridge : float
        Bound on the norm of a row, constant column included; coefficient of
        ``||w||^2 / 2``.
    radius : float
        Bound on the norm of the exact minimiser.
    max_weight : float, default=1.0
        Largest public weight of a record.

    Returns
    -------
    HingeTolerance
        Its `distance` is 0.5 % of the sensitivity, or more if rounding errors of the gap
        ask for it.

    Raises
    ------
    CertificateError
        If `distance` would exceed half the sensitivity.

    References
    ----------
    ``docs/proofs/certificate.md``, Theorem 6.

    Examples
    --------
    >>> from dp_halfspace.optim.hinge import hinge_tolerance
    >>> sizes = {"n_samples": 1000, "n_columns": 10, "block_rows": 1000, "row_norm": 1.0}
    >>> hinge_tolerance(change=2.0, **sizes, ridge=10.0, radius=10.0).distance
    0.001
    """
    sensitivity = change / ridge
    largest = radius + sensitivity
    check_scales(row_norm, largest)
    n_blocks = -(-n_samples // block_rows)
    mass = n_samples * max_weight
    in_margins = UNIT * (n_columns + 3)
    in_sums = UNIT * (block_rows + n_blocks + 6)
    if max(in_margins, in_sums, UNIT * n_samples) > 1e-7:
        raise CertificateError("the data are too large for a certificate in float64")
    of_margins = mass * in_margins * row_norm * largest
    of_point = (in_sums * mass * row_norm) ** 2 / ridge
    error = 1.01 * (of_margins + of_point) + 2.0**-500 * mass * (n_columns + 8)
    distance = max(_RELATIVE * sensitivity, math.sqrt(5.0 * error / ridge))
    if not 2.0 * distance <= sensitivity:
        raise CertificateError(
            "floating-point error can be as large as the influence of a record; "
            "use a larger regulariser, fewer records or a smaller row norm"
        )
    return HingeTolerance(0.99 * ridge * distance**2 / 2.0 - error, distance, largest)


def certified_hinge(objective: MarginObjective, gap: float, *, radius: float) -> FloatArray:
    """Return a point that is certified to be near the minimiser of a sum of hinges.

    Parameters
    ----------
    objective : MarginObjective
        With the hinge as loss and no linear term.
    gap : float
        Public duality gap to reach, from :func:`hinge_tolerance`.
    radius : float
        Public bound on the norm of the exact minimiser.

    Returns
    -------
    ndarray of shape (size,)
        Within the `distance` of the tolerance.

    Raises
    ------
    ValueError
        If a parameter is out of range; decided without looking at the data.

    Notes
    -----
    No exception, warning or message depends on the data. The time taken does.

    References
    ----------
    ``docs/proofs/certificate.md``, section 5. Beck and Teboulle (2009), "A fast iterative
    shrinkage-thresholding algorithm for linear inverse problems", Theorem 4.4.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.optim.hinge import certified_hinge
    >>> from dp_halfspace.optim.losses import HINGE
    >>> from dp_halfspace.optim.objectives import MarginObjective
    >>> from dp_halfspace.optim.rows import clipped_rows
    >>> rows = clipped_rows(np.array([[0.3]]), 1.0)
    >>> J = MarginObjective(rows, np.ones(1), np.ones(1), HINGE, ridge=0.05)
    >>> certified_hinge(J, 1e-9, radius=5.0).round(6)
    array([3.333333])
    """
    if objective.loss.name != "hinge" or objective.linear is not None:
        raise ValueError("the loss must be the hinge, without a linear term")
    if not (0.0 < gap < math.inf and 0.0 < radius < math.inf):
        raise ValueError("gap and radius must be positive and finite")
    largest = radius + math.sqrt(2.0 * gap / objective.ridge)
    goal = gap * (1.0 - 1e-6)
    with single_blas_thread(), np.errstate(all="ignore"):
        closest, best = math.inf, objective.weights / 2.0
        for w, alpha in multiplier_steps(objective, goal):
            found = duality_gap(objective, w, alpha)
            if found <= goal and float(np.linalg.norm(w)) <= largest:
                return w
            if found < closest:
                closest, best = found, alpha
        return dual_accelerated_gradient(objective, goal, best)


def duality_gap(objective: MarginObjective, w: FloatArray, alpha: FloatArray) -> float:
    """Return the computed bound on how far the objective at a point is above its minimum.

    Parameters
    ----------
    objective : MarginObjective
        With the hinge as loss and no linear term.
    w : ndarray of shape (size,)
        Any point.
    alpha : ndarray of shape (n,)
        Any dual variables, between 0 and the weights.

    Returns
    -------
    float
        At least 0. The sum of the gaps of the records, plus `ridge` times the squared
        distance of `w` to the point that belongs to `alpha`; half of this product would
        do in real arithmetic, the other half covers rounding errors of that point.

    References
    ----------
    ``docs/proofs/certificate.md``, Lemma 5.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.optim.hinge import duality_gap
    >>> from dp_halfspace.optim.losses import HINGE
    >>> from dp_halfspace.optim.objectives import MarginObjective
    >>> from dp_halfspace.optim.rows import Rows
    >>> J = MarginObjective(Rows(np.array([[0.5]])), np.ones(1), np.ones(1), HINGE, ridge=1.0)
    >>> duality_gap(J, np.array([0.5]), np.array([1.0]))
    0.0
    """
    shortfall = 1.0 - objective.rows.margins(w) * objective.signs
    # Products of numbers that are not negative: every term has full relative accuracy.
    terms = np.where(shortfall > 0.0, (objective.weights - alpha) * shortfall, -alpha * shortfall)
    apart = w - _point_of(objective, alpha)
    return float(terms.sum()) + objective.ridge * float(apart @ apart)


def _point_of(objective: MarginObjective, alpha: FloatArray) -> FloatArray:
    """Return the point that belongs to dual variables."""
    return objective.rows.adjoint(alpha * objective.signs) / objective.ridge


def dual_accelerated_gradient(
    objective: MarginObjective, gap: float, start: FloatArray | None = None
) -> FloatArray:
    """Maximise the dual by accelerated projected gradient steps, in a number known beforehand.

    Parameters
    ----------
    objective : MarginObjective
        With the hinge as loss and no linear term.
    gap : float
        Distance of the dual value to its maximum that the number of steps guarantees. A
        computed duality gap as small as this ends the iteration earlier.
    start : ndarray of shape (n,) or None, default=None
        Dual variables to start from, between 0 and the weights; None for the middle.

    Returns
    -------
    ndarray of shape (size,)
        Within ``sqrt(2 gap / ridge)`` of the minimiser, in real arithmetic.

    References
    ----------
    ``docs/proofs/certificate.md``, Theorem 7.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.optim.hinge import dual_accelerated_gradient
    >>> from dp_halfspace.optim.losses import HINGE
    >>> from dp_halfspace.optim.objectives import MarginObjective
    >>> from dp_halfspace.optim.rows import clipped_rows
    >>> rows = clipped_rows(np.array([[0.3]]), 1.0)
    >>> J = MarginObjective(rows, np.ones(1), np.ones(1), HINGE, ridge=0.05)
    >>> dual_accelerated_gradient(J, 1e-9).round(4)
    array([3.3333])
    """
    rows, signs, weights = objective.rows, objective.signs, objective.weights
    lipschitz = rows.shape[0] * max(rows.row_bound, 1e-100) ** 2 / objective.ridge
    alpha = weights / 2.0 if start is None else start
    farthest = np.maximum(alpha, weights - alpha)
    steps = math.ceil(math.sqrt(2.0 * lipschitz * float(farthest @ farthest) / gap))
    extrapolated, t = alpha, 1.0
    for step in range(steps):
        if step % _CHECK_EVERY == 0:
            w = _point_of(objective, alpha)
            if duality_gap(objective, w, alpha) <= gap:
                return w
        w = _point_of(objective, extrapolated)
        ascent = 1.0 - rows.margins(w) * signs
        previous = alpha
        alpha = np.clip(extrapolated + ascent / lipschitz, 0.0, weights)
        following = (1.0 + math.sqrt(1.0 + 4.0 * t * t)) / 2.0
        extrapolated = alpha + (t - 1.0) / following * (alpha - previous)
        t = following
    return _point_of(objective, alpha)
