"""Objective perturbation of regularised empirical risk: the public plan, and its solution.

The released vector is the minimiser of the risk plus a random linear term, itself perturbed
a little because no program finds the minimiser exactly. A plan holds every number that the
privacy of the release rests on, computed from public quantities before the data are read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.optim.erm import RidgeProblem
from dp_halfspace.optim.linear_noise import GaussianLinearTerm, LaplaceLinearTerm
from dp_halfspace.optim.mapped_rows import Design
from dp_halfspace.optim.minimisers import certified_minimisers
from dp_halfspace.optim.minimum import Optimizer
from dp_halfspace.optim.objective_bounds import (
    block_change,
    gradient_change,
    gradient_corners,
    jacobian_log_ratio,
    objective_ridge_floor,
)
from dp_halfspace.optim.objective_plan import (
    OUTPUT_EPSILON,
    OUTPUT_MU,
    ObjectivePlan,
    calibrated,
    with_output,
)
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.mechanisms import NoNoise, Permit
from dp_halfspace.privacy.profiles import gdp_mu

__all__ = [
    "ObjectivePlan",
    "draw_linear",
    "minimise_perturbed",
    "plan_objective",
    "sketch_objective",
]


def plan_objective(
    problem: RidgeProblem,
    ridge: float,
    epsilon: float,
    delta: float,
    *,
    earlier: tuple[Event, ...] = (),
) -> ObjectivePlan:
    """Fix every public number of a perturbed minimisation.

    Parameters
    ----------
    problem : RidgeProblem
        With a smooth loss that never increases and has a bounded slope, no tilt and no attack
        (see :func:`~dp_halfspace.optim.objective_attack.plan_attacked_objective`).
    ridge : float
        Coefficient of the regulariser, per mean loss; raised to
        :func:`objective_ridge_floor`.
    epsilon, delta : float
        Budget of the release; ``delta=0`` asks for pure epsilon.
    earlier : tuple of Event, default=()
        What was released before out of the same budget, with ``delta > 0``.

    Returns
    -------
    ObjectivePlan

    Raises
    ------
    BudgetError
        If `earlier` leaves nothing at this regulariser; see
        :func:`~dp_halfspace.optim.objective_ridge.feasible_ridge`.
    CertificateError
        If floating-point error could be as large as the influence of a record. Decided from
        public numbers, before any data are read.
    ValueError
        If the loss does not qualify.

    References
    ----------
    ``docs/proofs/objective_perturbation.md``. Iyengar, Near, Song, Thakkar, Thakurta and Wang
    (2019), "Towards practical differentially private convex optimization" (the output noise).

    Examples
    --------
    >>> from dp_halfspace.optim import LOGISTIC, RidgeProblem
    >>> from dp_halfspace.optim.objective_perturbation import plan_objective
    >>> problem = RidgeProblem(LOGISTIC, 10000, 20, 2, row_norm=1.0, block_rows=8192)
    >>> plan = plan_objective(problem, 1e-3, epsilon=1.0, delta=1e-6)
    >>> round(plan.linear.sigma, 2), plan.output.sigma * 10 < plan.linear.sigma / 10
    (8.66, True)
    """
    loss = problem.loss
    if not (loss.smooth and loss.monotone and math.isfinite(loss.lipschitz)):
        raise ValueError("objective perturbation needs a smooth, monotone, Lipschitz loss")
    if problem.robust:
        raise ValueError("these bounds are not those of a tilted or attacked loss")
    ridge = max(ridge, objective_ridge_floor(problem, epsilon))
    if math.isinf(epsilon):
        return with_output(problem, ridge, NoNoise(), 0.0)
    if delta == 0:
        return with_output(problem, ridge, *_laplace_terms(problem, ridge, epsilon))
    terms = _gaussian_terms(problem, ridge, epsilon, delta, earlier)
    return with_output(problem, ridge, *terms)


def sketch_objective(
    problem: RidgeProblem, ridge: float, epsilon: float, delta: float
) -> ObjectivePlan:
    """Return a plan whose Gaussian noise is off by a few per cent, fifty times as fast.

    For comparing regularisers. Its events need not stay within the budget, and a record that
    says they do refuses them. With an attack they are not those of the release: the corners and
    the smoothing are those of none.

    Parameters
    ----------
    problem, ridge, delta
        As in :func:`plan_objective`; `ridge` is at least the floor.
    epsilon : float
        Finite.

    Returns
    -------
    ObjectivePlan
    """
    if delta == 0:
        return with_output(problem, ridge, *_laplace_terms(problem, ridge, epsilon))
    log_ratio = jacobian_log_ratio(problem, ridge)
    mu = gdp_mu(epsilon - problem.n_stacked * log_ratio, delta) / math.sqrt(problem.n_stacked)
    corners = gradient_corners(problem)
    term = GaussianLinearTerm(gradient_change(problem), mu, log_ratio, corners)
    return with_output(problem, ridge, term, OUTPUT_MU * mu)


def _laplace_terms(
    problem: RidgeProblem, ridge: float, epsilon: float
) -> tuple[LaplaceLinearTerm, float]:
    """Return the linear term and the epsilon that is left for the output."""
    spent = OUTPUT_EPSILON * epsilon
    # Rounded down, so that the exact sum of all parts is within the budget.
    share = (epsilon - spent) / problem.n_stacked * (1.0 - 2.0**-50)
    log_ratio = jacobian_log_ratio(problem, ridge)
    return LaplaceLinearTerm(block_change(problem), share, log_ratio), spent


def _gaussian_terms(
    problem: RidgeProblem,
    ridge: float,
    epsilon: float,
    delta: float,
    earlier: tuple[Event, ...],
) -> tuple[GaussianLinearTerm, float]:
    """Calibrate the linear term; return it and the mu that is left for the output."""
    log_ratio, corners = jacobian_log_ratio(problem, ridge), gradient_corners(problem)
    copies = problem.n_stacked
    mu, output = calibrated(
        log_ratio, corners, copies=copies, earlier=earlier, epsilon=epsilon, delta=delta
    )
    return GaussianLinearTerm(gradient_change(problem), mu, log_ratio, corners), output


def draw_linear(plan: ObjectivePlan, permit: Permit) -> list[NDArray[np.float64]]:
    """Draw the linear term of each separate problem.

    Parameters
    ----------
    plan : ObjectivePlan
    permit : Permit
        That was charged with the events of the plan.

    Returns
    -------
    list of ndarray of shape (n_blocks, n_columns)
        Private: with the released minimiser they would reveal the gradient of the data.
    """
    zero = np.zeros(plan.shape)
    return [permit.release(zero, plan.linear) for _ in range(plan.problem.n_stacked)]


def minimise_perturbed(
    plan: ObjectivePlan,
    rows: Design,
    codes: NDArray[np.intp],
    weights: NDArray[np.float64],
    linear: Sequence[NDArray[np.float64]],
    *,
    optimizer: Optimizer = "auto",
    surrogate: Design | None = None,
) -> NDArray[np.float64]:
    """Return certified minimisers with a linear term, one row for each released halfspace.

    Parameters
    ----------
    plan : ObjectivePlan
    rows : Design
        Clipped rows, constant column included.
    codes : ndarray of shape (n_samples,)
        Class of each record.
    weights : ndarray of shape (n_classes,)
        Public class weights.
    linear : sequence of ndarray
        As :func:`draw_linear` returns them.
    optimizer : str or callable
        As in :func:`~dp_halfspace.optim.certified_minimum`.
    surrogate : Design or None, default=None
        As in :func:`~dp_halfspace.optim.minimisers.certified_minimisers`.

    Returns
    -------
    ndarray of shape (1, n_columns) or (n_classes, n_columns)
        Within the certified distance of the exact minimiser. Private: it must be perturbed
        before anybody sees it.
    """
    return certified_minimisers(
        plan.problem,
        rows,
        codes,
        weights,
        ridge=plan.ridge,
        tolerance=plan.tolerance.target,
        radius=plan.radius,
        linear=linear,
        optimizer=optimizer,
        surrogate=surrogate,
    )
