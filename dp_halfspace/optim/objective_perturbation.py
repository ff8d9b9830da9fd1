"""Objective perturbation of regularised empirical risk: the public plan, and its solution.

The released vector is the minimiser of the risk plus a random linear term, itself perturbed
a little because no program finds the minimiser exactly. A plan holds every number that the
privacy of the release rests on, computed from public quantities before the data are read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from dp_halfspace.exceptions import BudgetError
from dp_halfspace.optim.erm import RidgeProblem
from dp_halfspace.optim.linear_noise import GaussianLinearTerm, LaplaceLinearTerm
from dp_halfspace.optim.mapped_rows import Design
from dp_halfspace.optim.minimisers import certified_minimisers
from dp_halfspace.optim.minimum import Optimizer
from dp_halfspace.optim.objective_bounds import (
    Corners,
    block_change,
    gradient_change,
    gradient_corners,
    jacobian_log_ratio,
    objective_ridge_floor,
)
from dp_halfspace.optim.tolerance import Tolerance, gradient_tolerance, softmax_tolerance
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.events import Event, Gaussian, Repeated
from dp_halfspace.privacy.mechanisms import GaussianNoise, L2LaplaceNoise, NoNoise, Permit
from dp_halfspace.privacy.profiles import gdp_mu

__all__ = [
    "ObjectivePlan",
    "draw_linear",
    "minimise_perturbed",
    "plan_objective",
    "sketch_objective",
]

LinearTerm: TypeAlias = GaussianLinearTerm | LaplaceLinearTerm | NoNoise
OutputNoise: TypeAlias = GaussianNoise | L2LaplaceNoise | NoNoise

# What hiding the error of the solver may cost: a share of the signal to noise ratio (squares
# add, so a share of 1/400 of the budget) or of the pure epsilon.
_OUTPUT_MU = 0.05
_OUTPUT_EPSILON = 0.01
# Rounding of the few operations that lead to a bound.
_UP = 1.0 + 2.0**-40


@dataclass(frozen=True, slots=True)
class ObjectivePlan:
    """Everything public about one perturbed minimisation.

    Attributes
    ----------
    problem : RidgeProblem
    ridge : float
        Coefficient of the regulariser, per mean loss.
    radius : float
        Bound on the norm of each separate minimiser.
    tolerance : Tolerance
        What the solver has to certify for each of them, on the scale of the sum.
    linear : GaussianLinearTerm, LaplaceLinearTerm or NoNoise
        The random linear term, drawn once for each separate problem.
    output : GaussianNoise, L2LaplaceNoise or NoNoise
        Noise that hides the error of the solver.
    """

    problem: RidgeProblem
    ridge: float
    radius: float
    tolerance: Tolerance
    linear: LinearTerm
    output: OutputNoise

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that is going to be released."""
        return (_for_each_problem(self.linear.event, self.problem), self.output.event)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the coefficients of one separate problem."""
        problem = self.problem
        return (problem.n_classes if problem.multinomial else 1, problem.n_columns)


def plan_objective(
    problem: RidgeProblem,
    ridge: float,
    epsilon: float,
    delta: float,
    *,
    earlier: tuple[Event, ...] = (),
    drift: float = 0.0,
) -> ObjectivePlan:
    """Fix every public number of a perturbed minimisation.

    Parameters
    ----------
    problem : RidgeProblem
        With a smooth loss that never increases and has a bounded slope.
    ridge : float
        Coefficient of the regulariser, per mean loss; raised to
        :func:`objective_ridge_floor`.
    epsilon, delta : float
        Budget of the release; ``delta=0`` asks for pure epsilon.
    earlier : tuple of Event, default=()
        What was released before out of the same budget, with ``delta > 0``.
    drift : float, default=0.0
        Bound on the sum over the common records of how much their rows may differ, relative
        to `row_norm`, because the other record is a different one.

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
    ridge = max(ridge, objective_ridge_floor(problem, epsilon))
    if math.isinf(epsilon):
        return _with_output(problem, ridge, NoNoise(), 0.0, drift)
    if delta == 0:
        return _with_output(problem, ridge, *_laplace_terms(problem, ridge, epsilon), drift)
    terms = _gaussian_terms(problem, ridge, epsilon, delta, earlier)
    return _with_output(problem, ridge, *terms, drift)


def sketch_objective(
    problem: RidgeProblem, ridge: float, epsilon: float, delta: float
) -> ObjectivePlan:
    """Return a plan whose Gaussian noise is off by a few per cent, fifty times as fast.

    For comparing regularisers. Its events need not stay within the budget, and a record that
    says they do refuses them.

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
        return plan_objective(problem, ridge, epsilon, delta)
    log_ratio = jacobian_log_ratio(problem, ridge)
    mu = gdp_mu(epsilon - problem.n_stacked * log_ratio, delta) / math.sqrt(problem.n_stacked)
    corners = gradient_corners(problem)
    term = GaussianLinearTerm(gradient_change(problem), mu, log_ratio, corners)
    return _with_output(problem, ridge, term, _OUTPUT_MU * mu, 0.0)


def _laplace_terms(
    problem: RidgeProblem, ridge: float, epsilon: float
) -> tuple[LaplaceLinearTerm, float]:
    """Return the linear term and the epsilon that is left for the output."""
    spent = _OUTPUT_EPSILON * epsilon
    # Rounded down, so that the exact sum of all parts is within the budget.
    share = (epsilon - spent) / problem.n_stacked * (1.0 - 2.0**-50)
    log_ratio = jacobian_log_ratio(problem, ridge)
    return LaplaceLinearTerm(block_change(problem), share, log_ratio), spent


def _for_each_problem(event: Event, problem: RidgeProblem) -> Event:
    """Compose one event for each separate problem."""
    return event if problem.n_stacked == 1 else Repeated(event, problem.n_stacked)


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
    mu, output = _calibrated(
        log_ratio, corners, copies=copies, earlier=earlier, epsilon=epsilon, delta=delta
    )
    return GaussianLinearTerm(gradient_change(problem), mu, log_ratio, corners), output


@lru_cache(maxsize=256)
def _calibrated(
    log_ratio: float,
    corners: Corners,
    *,
    copies: int,
    earlier: tuple[Event, ...],
    epsilon: float,
    delta: float,
) -> tuple[float, float]:
    """Return the mu of the linear term and that of the output; folds and grids ask again."""
    ceiling = gdp_mu(epsilon, delta)

    def events(mu: float, output: float) -> tuple[Event, ...]:
        event = GaussianLinearTerm(1.0, mu, log_ratio, corners).event
        return (*earlier, Repeated(event, copies), Gaussian(output))

    if accounting.delta(events(0.0, 0.0), epsilon) > 0.9 * delta:
        raise BudgetError("the earlier releases leave nothing at this regulariser")
    output = _OUTPUT_MU * ceiling
    # The corners share one delta: with many of them and a tiny epsilon less is left.
    while accounting.delta(events(0.0, output), epsilon) > 0.9 * delta:
        output /= 2.0

    def excess(value: float) -> float:
        return math.log(max(accounting.delta(events(value, output), epsilon), 1e-320) / delta)

    # The root is only a guess that saves most of the bisection, which has the last word.
    upper = ceiling
    if excess(ceiling) > 0.0:
        guess = brentq(excess, 0.0, ceiling, xtol=1e-9 * ceiling, rtol=1e-9) * (1.0 - 4e-9)
        upper = guess if excess(guess) <= 0.0 else ceiling
    mu = accounting.calibrate(
        lambda value: events(value, output), epsilon, delta, lower=0.0, upper=upper, rtol=1e-8
    )
    return mu, output


def _with_output(
    problem: RidgeProblem, ridge: float, linear: LinearTerm, budget: float, drift: float
) -> ObjectivePlan:
    """Fix the tolerance for a linear term, and the noise that hides the error."""
    blocks = problem.n_classes if problem.multinomial else 1
    size = rounding = 0.0
    if not isinstance(linear, NoNoise):
        # The norm that is drawn depends on the data once the minimiser is known; a bound on
        # it does not.
        size = linear.norm_bound(blocks, problem.n_columns)
        rounding = linear.rounding(blocks, problem.n_columns)
    total_ridge = ridge * problem.n_samples
    radius = problem.radius(ridge) + size / total_ridge * _UP
    public: dict[str, Any] = {
        "change": gradient_change(problem),
        "n_samples": problem.n_samples,
        "n_columns": problem.n_columns,
        "block_rows": problem.block_rows,
        "row_norm": problem.row_norm,
        "ridge": total_ridge,
        "radius": radius,
        "max_weight": problem.max_weight,
        "linear": size,
        "linear_error": rounding,
    }
    tolerance = (
        softmax_tolerance(problem.n_classes, **public, shift=problem.loss.shift)
        if problem.multinomial
        else gradient_tolerance(problem.loss, **public)
    )
    certified = tolerance.certified + drift * _record_slope(problem, tolerance.radius)
    sensitivity = 2.0 * math.sqrt(problem.n_stacked) * certified / total_ridge * _UP
    output: OutputNoise = NoNoise()
    if isinstance(linear, GaussianLinearTerm):
        output = GaussianNoise(sensitivity, budget)
    elif isinstance(linear, LaplaceLinearTerm):
        output = L2LaplaceNoise(sensitivity, budget)
    return ObjectivePlan(problem, ridge, radius, tolerance, linear, output)


def _record_slope(problem: RidgeProblem, radius: float) -> float:
    """Bound how fast a record's gradient changes with its row, relative to `row_norm`."""
    slope, smoothness = problem.loss.lipschitz, problem.loss.smoothness
    if problem.multinomial:
        slope, smoothness = math.sqrt(2.0), 0.5
    reach = smoothness * problem.row_norm * radius
    return problem.max_weight * problem.row_norm * (slope + reach) * _UP


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
