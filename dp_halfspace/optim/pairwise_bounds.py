"""What one record can do to a sum over pairs, from public numbers alone.

The objective is ``(1 / Z) sum_ij l(<x_i - x_j, w>) + ridge / 2 ||w||^2 + <linear, w>`` with
a public `Z`. A replaced record may change its class, so the numbers of positive and negative
records are private; nothing here depends on them. Every bound is rounded up; notation and
proofs are in ``docs/proofs/pairwise.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.optimize import brentq

from dp_halfspace.optim.losses import Loss
from dp_halfspace.optim.objective_bounds import Corners
from dp_halfspace.optim.pairwise_tolerance import pair_mass
from dp_halfspace.optim.stability import minimiser_radius

__all__ = [
    "PairwiseProblem",
    "default_normaliser",
    "pairwise_corners",
    "pairwise_gradient_change",
    "pairwise_jacobian_log_ratio",
    "pairwise_radius",
    "pairwise_ridge_floor",
    "pairwise_sensitivity",
]

# Rounding of the few operations that lead to a bound.
_UP = 1.0 + 2.0**-40
# The same with the tolerance of a root finder.
_ROOT_UP = 1.0 + 1e-9
# With this much the Jacobians cost nothing, and the exponential of it is still a float.
_LARGEST_EPSILON = 100.0


@dataclass(frozen=True, slots=True)
class PairwiseProblem:
    """A regularised sum over pairs, described by public numbers only.

    Attributes
    ----------
    loss : Loss
        Smooth loss of the difference of two scores.
    n_samples, n_columns : int
        Sizes.
    row_norm : float
        Bound on the Euclidean norm of a row.
    block_rows : int
        Rows that are summed at a time, see :func:`~dp_halfspace.optim.block_size`.
    normaliser : float
        Divisor of the sum over pairs. Public, or computed from a count that was released
        before with noise: then everything holds given that release.
    """

    loss: Loss
    n_samples: int
    n_columns: int
    row_norm: float
    block_rows: int
    normaliser: float

    @property
    def diameter(self) -> float:
        """Bound on the norm of the difference of two rows."""
        return 2.0 * self.row_norm

    @property
    def partners(self) -> float:
        """Pairs that a record can take part in, over the normaliser; never zero."""
        return max(1, self.n_samples - 1) / self.normaliser


def default_normaliser(n_samples: int) -> float:
    """Return ``n^2 / 4``, the number of pairs of two classes of the same size.

    Parameters
    ----------
    n_samples : int

    Returns
    -------
    float

    Examples
    --------
    >>> from dp_halfspace.optim.pairwise_bounds import default_normaliser
    >>> default_normaliser(10)
    25.0
    """
    return n_samples * n_samples / 4.0


def pairwise_radius(problem: PairwiseProblem, ridge: float) -> float:
    """Bound the norm of the minimiser of the objective without linear term.

    Parameters
    ----------
    problem : PairwiseProblem
    ridge : float
        Coefficient of the regulariser.

    Returns
    -------
    float
        With a linear term `b` add ``||b|| / ridge``.

    References
    ----------
    ``docs/proofs/pairwise.md``, Lemma 6.

    Examples
    --------
    >>> from dp_halfspace.optim import LOGISTIC
    >>> from dp_halfspace.optim.pairwise_bounds import PairwiseProblem, pairwise_radius
    >>> round(pairwise_radius(PairwiseProblem(LOGISTIC, 1000, 5, 0.5, 1000, 250_000.0), 0.01), 4)
    5.277
    """
    return minimiser_radius(
        problem.loss,
        row_norm=problem.diameter,
        ridge=ridge,
        max_weight=pair_mass(problem.n_samples, problem.normaliser),
    )


def pairwise_sensitivity(problem: PairwiseProblem, ridge: float) -> float:
    """Bound the distance of the minimisers of two data sets that differ in one record.

    Parameters
    ----------
    problem : PairwiseProblem
    ridge : float
        Coefficient of the regulariser.

    Returns
    -------
    float
        ``(n - 1) B D / (ridge Z)``, `B` the steepest slope within the radius. Holds for every
        number of positive records and for records that change their class.

    References
    ----------
    ``docs/proofs/pairwise.md``, Theorem 8.

    Examples
    --------
    >>> from dp_halfspace.optim import huber_hinge
    >>> from dp_halfspace.optim.pairwise_bounds import PairwiseProblem, pairwise_sensitivity
    >>> problem = PairwiseProblem(huber_hinge(0.5), 101, 5, 1.0, 101, 2500.0)
    >>> round(pairwise_sensitivity(problem, 1.0), 6)
    0.08
    """
    reach = problem.diameter * pairwise_radius(problem, ridge)
    slope = problem.loss.slope_bound(reach)
    return problem.partners * slope * problem.diameter / ridge * _ROOT_UP


def pairwise_gradient_change(problem: PairwiseProblem) -> float:
    """Bound the change of the gradient, at any point, when a record is replaced.

    Parameters
    ----------
    problem : PairwiseProblem

    Returns
    -------
    float
        ``(n - 1) L D / Z``; infinite for a loss without a bound on its slope.

    References
    ----------
    ``docs/proofs/pairwise.md``, Lemma 7.

    Examples
    --------
    >>> from dp_halfspace.optim import LOGISTIC
    >>> from dp_halfspace.optim.pairwise_bounds import PairwiseProblem, pairwise_gradient_change
    >>> problem = PairwiseProblem(LOGISTIC, 101, 5, 1.0, 101, 2500.0)
    >>> round(pairwise_gradient_change(problem), 9)
    0.08
    """
    return problem.partners * problem.loss.lipschitz * problem.diameter * _UP


def pairwise_corners() -> Corners:
    """Return the corners of the set of gradient changes of a pair, by their length.

    Returns
    -------
    tuple of (int, float)
        Number and length in units of :func:`pairwise_gradient_change`.

    References
    ----------
    ``docs/proofs/pairwise.md``, Lemma 9.

    Examples
    --------
    >>> from dp_halfspace.optim.pairwise_bounds import pairwise_corners
    >>> [count for count, _ in pairwise_corners()]
    [1, 1, 2]
    """
    return ((1, 0.0), (1, math.sqrt(0.75) * _UP), (2, 1.0))


def pairwise_jacobian_log_ratio(problem: PairwiseProblem, ridge: float) -> float:
    """Bound the logarithm of the ratio of the Jacobians of neighbouring data sets.

    Parameters
    ----------
    problem : PairwiseProblem
    ridge : float
        Coefficient of the regulariser.

    Returns
    -------
    float

    References
    ----------
    ``docs/proofs/pairwise.md``, Theorem 10.

    Examples
    --------
    >>> from dp_halfspace.optim import LOGISTIC
    >>> from dp_halfspace.optim.pairwise_bounds import (
    ...     PairwiseProblem,
    ...     pairwise_jacobian_log_ratio,
    ... )
    >>> problem = PairwiseProblem(LOGISTIC, 101, 20, 2.0, 101, 100.0)
    >>> round(pairwise_jacobian_log_ratio(problem, 1.0), 6)
    1.914574
    """
    one = problem.partners * problem.loss.smoothness * problem.row_norm**2 / ridge
    rank = min(problem.n_columns, max(1, problem.n_samples - 1))
    if rank == 1:
        return math.log1p(4.0 * one) * _UP
    others = rank - 1

    def slope(c: float) -> float:
        """Has the sign of the derivative of the bound in `c`, and decreases."""
        return 1.0 / (one * (1.0 + c) ** 2) + (1.0 - c) / others - c

    # All other rows at the distance c from the centre, opposite to the record.
    c = 1.0 if slope(1.0) >= 0.0 else float(brentq(slope, 0.0, 1.0, xtol=1e-15, rtol=1e-14))
    along = math.log1p(one * (1.0 + c) ** 2)
    across = others * math.log1p(one * (1.0 - c * c) / others)
    return (along + across) * _ROOT_UP


def pairwise_ridge_floor(problem: PairwiseProblem, epsilon: float) -> float:
    """Smallest regulariser at which the Jacobians take half of the budget.

    Parameters
    ----------
    problem : PairwiseProblem
    epsilon : float
        Budget, positive and finite.

    Returns
    -------
    float

    Examples
    --------
    >>> from dp_halfspace.optim import LOGISTIC
    >>> from dp_halfspace.optim.pairwise_bounds import (
    ...     PairwiseProblem,
    ...     pairwise_jacobian_log_ratio,
    ...     pairwise_ridge_floor,
    ... )
    >>> problem = PairwiseProblem(LOGISTIC, 1000, 5, 1.0, 1000, 250_000.0)
    >>> ridge = pairwise_ridge_floor(problem, 1.0)
    >>> 0.4999 < pairwise_jacobian_log_ratio(problem, ridge) <= 0.5
    True
    """
    if not 0.0 < epsilon < math.inf:
        raise ValueError("epsilon must be positive and finite")
    # Beyond, the floor underflows; one for a smaller epsilon is only larger.
    epsilon = min(epsilon, _LARGEST_EPSILON)
    curvature = problem.partners * problem.loss.smoothness * problem.diameter**2
    # J is at least log(1 + curvature / ridge), the value for one direction, and at most its
    # trace bound curvature / ridge.
    low = 0.999 * curvature * math.exp(-epsilon / 2.0) / -math.expm1(-epsilon / 2.0)
    high = 1.001 * curvature / (epsilon / 2.0)

    def excess(log_ridge: float) -> float:
        return pairwise_jacobian_log_ratio(problem, math.exp(log_ridge)) - epsilon / 2.0

    ridge = math.exp(brentq(excess, math.log(low), math.log(high), xtol=1e-12))
    while pairwise_jacobian_log_ratio(problem, ridge) > epsilon / 2.0:
        ridge *= 1.0 + 1e-9
    return ridge
