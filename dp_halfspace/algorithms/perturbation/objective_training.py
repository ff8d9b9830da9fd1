"""Training by a perturbed objective on rows of norm one."""

from __future__ import annotations

import math

from dp_halfspace.algorithms.engine.defaults import objective_defaults
from dp_halfspace.algorithms.engine.training import LinearPlan, Problem
from dp_halfspace.algorithms.perturbation.preconditioned_objective import (
    plan_preconditioned_objective,
)
from dp_halfspace.optim.losses import shifted_logistic
from dp_halfspace.optim.risks import empirical_risk
from dp_halfspace.privacy.budget import Budget


def plan_objective_training(problem: Problem, margin: float | None, budget: Budget) -> LinearPlan:
    """Plan a perturbed objective; without a margin, preconditioner and ridge are automatic."""
    n_samples, n_classes = problem.n_samples, problem.n_classes
    epsilon, delta = budget.epsilon, budget.delta
    defaults = objective_defaults(n_samples, problem.n_columns(), n_classes, epsilon, delta)
    linear_map = problem.drawn(defaults.n_components)
    ridge = None
    if margin is not None:
        n_columns = problem.n_columns(linear_map)
        mu = budget.mu if delta > 0 else epsilon / math.sqrt(n_columns + 1)
        # Balances ridge R^2 / 2 with noise^2 / (2 ridge) for a separator of norm R.
        ridge = 2.0 * math.sqrt(n_columns) / mu * margin / (defaults.margin_offset * n_samples)
    loss = shifted_logistic(defaults.margin_offset)
    sizes = problem.sizes(linear_map)
    risk = empirical_risk(loss, n_classes=n_classes, row_norm=1.0, **sizes)
    plan = plan_preconditioned_objective(risk, budget, ridge=ridge, preconditioner=margin is None)
    constant_column = problem.constant(defaults.constant_column)
    offset = defaults.margin_offset
    return LinearPlan(
        problem, "objective_perturbation", margin, offset, constant_column, linear_map, plan
    )
