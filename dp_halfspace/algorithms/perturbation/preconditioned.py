"""Output and objective perturbation of normalised rows after a private preconditioner.

Each row is mapped by the released preconditioner and brought back to norm one, independently of
other rows. Then one regularised minimiser for all mapped rows is released, with noise or with a
random linear term. The regulariser acts on the coefficients of the mapped rows. Derivations:
``docs/proofs/stability.md``, section 8, ``objective_perturbation.md``, section 8, and
``preconditioner.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.algorithms.engine.defaults import PRECONDITIONER_SHARE, objective_defaults
from dp_halfspace.algorithms.engine.plan import FloatArray
from dp_halfspace.algorithms.engine.preconditioner import (
    PreconditionerPlan,
    plan_preconditioner,
    release_preconditioner,
)
from dp_halfspace.algorithms.engine.training import LinearPlan, Problem, linear_plan
from dp_halfspace.algorithms.perturbation.objective import (
    ObjectivePlan,
    feasible_ridge,
    plan_objective,
)
from dp_halfspace.algorithms.perturbation.output import (
    OutputPlan,
    mapped_row_ridge,
    normalised_row_ridge,
    plan_output,
)
from dp_halfspace.data.record_weights import Weights
from dp_halfspace.optim.losses import shifted_logistic
from dp_halfspace.optim.risks import MarginRisk, SoftmaxRisk, empirical_risk
from dp_halfspace.optim.solvers import Optimizer
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.events import Event, Gaussian
from dp_halfspace.privacy.mechanisms import GaussianNoise, L2LaplaceNoise, Permit
from dp_halfspace.rows.mapped_rows import FormedRows, MappedRows, formed_block_rows
from dp_halfspace.rows.rows import Rows, precondition_rows


def release_mapped_rows(
    rows: Rows, plan: PreconditionerPlan, permit: Permit
) -> tuple[FormedRows, MappedRows]:
    """Release the second moment; return the mapped rows, formed at every pass, or never formed.

    The certificate needs mapped rows that are formed, because the map would amplify the rounding
    errors of products with unmapped rows. The solver may use the faster rows that are never formed.
    """
    # A rotation of the mapped rows changes no distribution, and makes the map triangular.
    released = release_preconditioner(rows, plan, permit)
    transform = np.asarray(np.linalg.qr(released @ np.eye(plan.n_columns), mode="r"))
    unmapped = precondition_rows(rows, transform, row_bound=plan.compression)
    return FormedRows(rows, transform), MappedRows(unmapped, transform)


class Mapped(NamedTuple):
    """Released coefficients for unmapped rows, and the released map.

    The minimiser was computed for the images of rows under `transform`, brought to norm one.
    """

    coefficients: FloatArray
    transform: FloatArray


@dataclass(frozen=True, slots=True)
class PreconditionedOutputPlan:
    """The public numbers of a preconditioner and of one noisy minimiser for the mapped rows."""

    preconditioner: PreconditionerPlan
    output: OutputPlan

    @property
    def events(self) -> tuple[Event, ...]:
        """Events that a run charges."""
        return (self.preconditioner.mechanism.event, *self.output.events)

    @property
    def public(self) -> dict[str, Any]:
        """Public facts for the record."""
        return self.output.public

    def run(
        self, rows: Rows, classes: NDArray[np.intp], weights: Weights, permit: Permit
    ) -> Mapped:
        """Release the map and the minimiser; `rows` have norm one, otherwise as in `Plan`."""
        # 1. Release the second moment, from which the preconditioner follows.
        # 2. Release the certified minimiser for the mapped rows, of norm one again, with noise.
        # 3. Map its coefficients back: post-processing.
        with single_blas_thread():
            formed, surrogate = release_mapped_rows(rows, self.preconditioner, permit)
            found = self.output.run(formed, classes, weights, permit, surrogate=surrogate)
            return Mapped(np.asarray(found @ formed.transform), formed.transform)


def mean_squares(transform: FloatArray, power: float) -> tuple[float, float]:
    """Estimate two means over normalised rows from a released map and its power: post-processing.

    The first is the mean squared length of the image of a row, the second the mean square of the
    last entry of a row. The map is ``(H / n)^(-power / 2)``, where ``H`` is a moment of trace n
    plus a floor, which is subtracted again: ``docs/proofs/preconditioner.md``, section 2.
    """
    squares, directions = eigh(transform.T @ transform)
    moment = squares ** (-1.0 / power)
    floor = max(float(moment.sum()) - 1.0, 0.0) / len(moment)
    moment = np.maximum(moment - floor, 0.0)
    return float(squares @ moment), float(directions[-1] ** 2 @ moment)


def plan_preconditioned_output(
    risk: MarginRisk | SoftmaxRisk,
    budget: Budget,
    *,
    ridge: float | None = None,
    power: float = 1.0,
    optimizer: Optimizer = "auto",
    projects: bool = False,
) -> PreconditionedOutputPlan | None:
    """Divide a budget between the preconditioner and one noisy minimiser, for ``delta > 0``.

    The rows of the risk have norm at most one. `ridge` is per mean loss and raised to a public
    floor; None chooses it from public sizes. `power` is that of the preconditioner. Return None if
    the preconditioner is not worth its cost: with more than 512 columns, or if the noise would
    exceed the moment. Raise errors as :func:`plan_output` does.
    """
    part, rest = budget.split(PRECONDITIONER_SHARE)
    sizes = (risk.n_samples, risk.n_columns, risk.block_rows)
    preconditioner = plan_preconditioner(*sizes, mu=part.mu)
    if preconditioner is None:
        return None
    formed = formed_block_rows(risk.n_samples, risk.n_columns)
    mapped = replace(risk, row_norm=1.0, block_rows=formed)
    plan = plan_output(
        mapped,
        mapped_row_ridge(mapped, rest.mu) if ridge is None else ridge,
        rest.noise,
        optimizer=optimizer,
        projects=projects,
    )
    return PreconditionedOutputPlan(replace(preconditioner, power=power), plan)


# Largest edge of the spectrum of pure noise, relative to the trace of the moment, for which a
# preconditioner is worth its cost.
_PURE_EDGE = 4.0


@dataclass(frozen=True, slots=True)
class PreconditionedObjectivePlan:
    """The public numbers of a perturbed minimisation, with a preconditioner if it is worth it."""

    preconditioner: PreconditionerPlan | None
    objective: ObjectivePlan

    @property
    def events(self) -> tuple[Event, ...]:
        """Events that a run charges."""
        if self.preconditioner is None:
            return self.objective.events
        return (self.preconditioner.mechanism.event, *self.objective.events)

    @property
    def public(self) -> dict[str, Any]:
        """Public facts for the record."""
        return {"private_preconditioner": self.preconditioner is not None, **self.objective.public}

    def run(
        self, rows: Rows, classes: NDArray[np.intp], weights: Weights, permit: Permit
    ) -> FloatArray:
        """Release the minimiser in the coordinates of the rows as given; see `Plan`."""
        # 1. Release the second moment, from which the preconditioner follows.
        # 2. Release the minimiser of the perturbed risk of the mapped rows, of norm one again.
        # 3. Map its coefficients back: post-processing.
        with single_blas_thread():
            if self.preconditioner is None:
                return self.objective.run(rows, classes, weights, permit)
            formed, surrogate = release_mapped_rows(rows, self.preconditioner, permit)
            found = self.objective.run(formed, classes, weights, permit, surrogate=surrogate)
            return np.asarray(found @ formed.transform)


def plan_preconditioned_objective(
    risk: MarginRisk | SoftmaxRisk,
    budget: Budget,
    *,
    ridge: float | None = None,
    preconditioner: bool = True,
    optimizer: Optimizer = "auto",
) -> PreconditionedObjectivePlan:
    """Divide a budget between the preconditioner and a perturbed minimisation.

    With `preconditioner`, the rows of the risk have norm at most one, and a preconditioner is
    released if it is worth its cost. `ridge` is per mean loss and raised to a public floor; None
    chooses it for normalised rows. Raise errors as :func:`plan_objective` does.
    """
    epsilon, delta = budget.epsilon, budget.delta
    part, rest = budget.split(PRECONDITIONER_SHARE)
    released = _plan_preconditioner(risk, part) if preconditioner else None
    if released is None:
        ridge = _automatic(risk, epsilon, delta, 1.0) if ridge is None else ridge
        plan = plan_objective(risk, ridge, epsilon, delta, optimizer=optimizer)
        return PreconditionedObjectivePlan(None, plan)
    event = released.mechanism.event
    # A Gaussian release and a perturbed objective are accounted for together.
    earlier: tuple[Event, ...] = (event,) if isinstance(event, Gaussian) else ()
    left = rest.epsilon if budget.is_pure else epsilon
    formed = formed_block_rows(risk.n_samples, risk.n_columns)
    mapped = replace(risk, row_norm=1.0, block_rows=formed)
    if ridge is None:
        ridge = _automatic(mapped, left, delta, 1.0 - PRECONDITIONER_SHARE)
    room = feasible_ridge(mapped, ridge, left, delta, earlier)
    if room is None:
        return plan_preconditioned_objective(
            risk, budget, ridge=ridge, preconditioner=False, optimizer=optimizer
        )
    plan = plan_objective(mapped, room, left, delta, earlier=earlier, optimizer=optimizer)
    return PreconditionedObjectivePlan(released, plan)


def _automatic(risk: MarginRisk | SoftmaxRisk, epsilon: float, delta: float, share: float) -> float:
    """Choose the regulariser for normalised rows; the minimisation has `share` of mu^2."""
    sizes = (risk.n_samples, risk.n_columns, risk.n_classes)
    defaults = objective_defaults(*sizes, epsilon, delta)
    limits = {"stretch": defaults.stretch, "jacobian_share": defaults.jacobian_share}
    return normalised_row_ridge(risk, epsilon, delta, **limits, mu_share=share)


def _plan_preconditioner(
    risk: MarginRisk | SoftmaxRisk, budget: Budget
) -> PreconditionerPlan | None:
    """Plan the preconditioner; return None if it is not worth its cost."""
    sizes = (risk.n_samples, risk.n_columns, risk.block_rows)
    if not budget.is_pure:
        return plan_preconditioner(*sizes, mu=budget.mu)
    # Only the sensitivity and the bounds of this plan are used, so its mu does not matter.
    reference = plan_preconditioner(*sizes, mu=1e12)
    # A packed coefficient has a standard deviation of about n_columns * scale.
    edge = math.sqrt(2.0) * risk.n_columns**1.5 / budget.epsilon
    if reference is None or not isinstance(reference.mechanism, GaussianNoise):
        return None
    if edge > _PURE_EDGE * risk.n_samples:
        return None
    mechanism = L2LaplaceNoise(reference.mechanism.sensitivity, budget.epsilon)
    return replace(reference, mechanism=mechanism, edge=edge)


def plan_objective_training(problem: Problem, margin: float | None, budget: Budget) -> LinearPlan:
    """Plan a perturbed objective; without a margin there may be a preconditioner."""
    n_samples, n_classes = problem.n_samples, problem.n_classes
    epsilon, delta = budget.epsilon, budget.delta
    defaults = objective_defaults(n_samples, problem.n_columns(), n_classes, epsilon, delta)
    linear_map = problem.draw_map(defaults.n_components)
    ridge = None
    if margin is not None:
        n_columns = problem.n_columns(linear_map)
        mu = budget.mu if delta > 0 else epsilon / math.sqrt(n_columns + 1)
        # This balances ridge R^2 / 2 with noise^2 / (2 ridge) for a separator of norm R.
        ridge = 2.0 * math.sqrt(n_columns) / mu * margin / (defaults.margin_offset * n_samples)
    loss = shifted_logistic(defaults.margin_offset)
    sizes = problem.sizes(linear_map)
    risk = empirical_risk(loss, n_classes=n_classes, row_norm=1.0, **sizes)
    plan = plan_preconditioned_objective(risk, budget, ridge=ridge, preconditioner=margin is None)
    constant_column = problem.constant(defaults.constant_column)
    return linear_plan(
        problem,
        "objective_perturbation",
        plan,
        margin=margin,
        margin_offset=defaults.margin_offset,
        constant_column=constant_column,
        linear_map=linear_map,
    )
