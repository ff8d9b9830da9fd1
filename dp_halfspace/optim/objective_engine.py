"""Objective perturbation on unit rows, in a private metric where that pays.

The metric is released first; rows are mapped by it and brought back to norm one, each by
itself, so what follows is an ordinary perturbed minimisation. One plan for two and for K
classes, for pure epsilon and for (epsilon, delta). Proofs:
``docs/proofs/objective_perturbation.md``, section 8, and ``docs/proofs/metric.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._sklearn import single_blas_thread
from dp_halfspace.optim.erm import RidgeProblem
from dp_halfspace.optim.mapped_rows import (
    Design,
    FormedRows,
    MappedRows,
    formed_block_rows,
)
from dp_halfspace.optim.metric import MetricPlan, plan_metric, release_metric
from dp_halfspace.optim.minimum import Optimizer
from dp_halfspace.optim.objective_attack import plan_attacked_objective
from dp_halfspace.optim.objective_defaults import METRIC_SHARE, objective_defaults
from dp_halfspace.optim.objective_perturbation import (
    ObjectivePlan,
    draw_linear,
    minimise_perturbed,
    plan_objective,
)
from dp_halfspace.optim.objective_ridge import feasible_ridge, unit_row_ridge
from dp_halfspace.optim.rows import Rows
from dp_halfspace.optim.unit_rows import flattened
from dp_halfspace.privacy.events import Event, Gaussian, Pure
from dp_halfspace.privacy.mechanisms import GaussianNoise, L2LaplaceNoise, Permit
from dp_halfspace.privacy.profiles import gdp_mu

__all__ = ["ObjectiveEnginePlan", "plan_objective_engine", "run_objective_engine"]

FloatArray: TypeAlias = NDArray[np.float64]

# Pure noise is worth its price up to an edge of this many times the trace of the moment.
_PURE_EDGE = 4.0


@dataclass(frozen=True, slots=True)
class ObjectiveEnginePlan:
    """The public numbers of a fit.

    Attributes
    ----------
    metric : MetricPlan or None
        None where the metric would cost more than it brings, or was not wanted.
    objective : ObjectivePlan
    """

    metric: MetricPlan | None
    objective: ObjectivePlan

    @property
    def events(self) -> tuple[Event, ...]:
        """What the fit costs."""
        if self.metric is None:
            return self.objective.events
        return (self.metric.mechanism.event, *self.objective.events)


def plan_objective_engine(
    problem: RidgeProblem,
    epsilon: float,
    delta: float,
    *,
    ridge: float | None = None,
    metric: bool = True,
) -> ObjectiveEnginePlan:
    """Divide a budget between the metric and a perturbed minimisation.

    Parameters
    ----------
    problem : RidgeProblem
        On the rows as given. With ``metric=True`` their norm is at most one. With an attack
        there is no metric: the rows of the metric are no linear image of those attacked.
    epsilon, delta : float
        Budget; ``delta=0`` asks for pure epsilon, infinity for no noise.
    ridge : float or None, default=None
        Coefficient of the regulariser, per mean loss; raised to a public floor. None
        chooses it for unit rows.
    metric : bool, default=True
        Whether to release a metric where that is worth its price.

    Returns
    -------
    ObjectiveEnginePlan

    Raises
    ------
    CertificateError, ValueError
        As :func:`~dp_halfspace.optim.objective_perturbation.plan_objective`.

    Examples
    --------
    >>> from dp_halfspace.optim import LOGISTIC, RidgeProblem
    >>> from dp_halfspace.optim.objective_engine import plan_objective_engine
    >>> problem = RidgeProblem(LOGISTIC, 10000, 20, 2, row_norm=1.0, block_rows=8192)
    >>> [type(event).__name__ for event in plan_objective_engine(problem, 1.0, 1e-8).events]
    ['Gaussian', 'ObjectivePerturbation', 'Gaussian']
    >>> [type(event).__name__ for event in plan_objective_engine(problem, 1.0, 0.0).events]
    ['Pure', 'Pure', 'Pure']
    """
    released = _plan_metric(problem, epsilon, delta) if metric and not problem.attack else None
    if released is None:
        ridge = _automatic(problem, epsilon, delta, 1.0) if ridge is None else ridge
        plan_for = plan_attacked_objective if problem.attack else plan_objective
        return ObjectiveEnginePlan(None, plan_for(problem, ridge, epsilon, delta))
    event = released.mechanism.event
    earlier: tuple[Event, ...] = (event,) if isinstance(event, Gaussian) else ()
    left = epsilon
    if isinstance(event, Pure) and not math.isinf(epsilon):
        left = epsilon - event.epsilon
    formed = formed_block_rows(problem.n_samples, problem.n_columns)
    mapped = replace(problem, row_norm=1.0, block_rows=formed)
    if ridge is None:
        ridge = _automatic(mapped, left, delta, 1.0 - METRIC_SHARE)
    room = feasible_ridge(mapped, ridge, left, delta, earlier)
    if room is None:
        return plan_objective_engine(problem, epsilon, delta, ridge=ridge, metric=False)
    plan = plan_objective(mapped, room, left, delta, earlier=earlier)
    return ObjectiveEnginePlan(released, plan)


def _automatic(problem: RidgeProblem, epsilon: float, delta: float, share: float) -> float:
    """Choose the regulariser for unit rows; `share` of mu^2 is left to the minimisation."""
    sizes = (problem.n_samples, problem.n_columns, problem.n_classes)
    defaults = objective_defaults(*sizes, epsilon, delta)
    return unit_row_ridge(
        problem,
        epsilon,
        delta,
        stretch=defaults.stretch,
        jacobian_share=defaults.jacobian_share,
        mu_share=share,
    )


def _plan_metric(problem: RidgeProblem, epsilon: float, delta: float) -> MetricPlan | None:
    """Plan the metric, or None where it is not worth its price."""
    sizes = (problem.n_samples, problem.n_columns, problem.block_rows)
    if math.isinf(epsilon):
        return plan_metric(*sizes, mu=math.inf)
    if delta > 0:
        return plan_metric(*sizes, mu=math.sqrt(METRIC_SHARE) * gdp_mu(epsilon, delta))
    # Of a metric with next to no noise only the sensitivity is used.
    reference = plan_metric(*sizes, mu=1e12)
    share = METRIC_SHARE * epsilon
    # A packed coefficient has the standard deviation n_columns * scale, nearly.
    edge = math.sqrt(2.0) * problem.n_columns**1.5 / share
    if reference is None or not isinstance(reference.mechanism, GaussianNoise):
        return None
    if edge > _PURE_EDGE * problem.n_samples:
        return None
    mechanism = L2LaplaceNoise(reference.mechanism.sensitivity, share)
    return replace(reference, mechanism=mechanism, edge=edge)


def run_objective_engine(
    plan: ObjectiveEnginePlan,
    rows: Rows,
    codes: NDArray[np.intp],
    weights: FloatArray,
    permit: Permit,
    *,
    optimizer: Optimizer = "auto",
) -> FloatArray:
    """Fit the coefficients within the budget of a plan.

    Parameters
    ----------
    plan : ObjectiveEnginePlan
    rows : Rows
        Within the norm of the problem that was planned, constant column included.
    codes : ndarray of shape (n_samples,)
        Class of each record.
    weights : ndarray of shape (n_classes,)
        Public class weights.
    permit : Permit
        Charged with the events of the plan.
    optimizer : str or callable, default="auto"
        As in :func:`~dp_halfspace.optim.certified_minimum`.

    Returns
    -------
    ndarray of shape (1, n_columns) or (n_classes, n_columns)
        Coefficients for the rows as given. Private; free to be used.
    """
    with single_blas_thread():
        transform, surrogate = None, None
        design: Design = rows
        if plan.metric is not None:
            # A rotation of the images changes no law, and makes half of the map zero.
            released = release_metric(rows, plan.metric, permit)
            transform = np.asarray(np.linalg.qr(released @ np.eye(plan.metric.n_columns), mode="r"))
            # Without the images, roundings would be stretched by the metric: the solver may do
            # without them, the certificate may not.
            design = FormedRows(rows, transform)
            unmapped = flattened(rows, transform, row_bound=plan.metric.compression)
            surrogate = MappedRows(unmapped, transform)
        linear = draw_linear(plan.objective, permit)
        exact = minimise_perturbed(
            plan.objective,
            design,
            codes,
            weights,
            linear,
            optimizer=optimizer,
            surrogate=surrogate,
        )
        coefficients = permit.release(exact, plan.objective.output)
        return coefficients if transform is None else coefficients @ transform
