"""The choice among the published algorithms and those of pure DP, by public numbers."""

from __future__ import annotations

import math
from dataclasses import replace

from dp_halfspace.engine.linear import Shape
from dp_halfspace.engine.moment import WIDEST
from dp_halfspace.estimators._centred import COMPONENTS, CentredFit, plan_centred_objective
from dp_halfspace.optim.losses import LOGISTIC
from dp_halfspace.optim.risks import empirical_risk
from dp_halfspace.papers.halfspace_search import plan_direction_training
from dp_halfspace.papers.known_margin import plan_known_margin
from dp_halfspace.papers.objective import plan_objective
from dp_halfspace.papers.output import perturbed_row_ridge
from dp_halfspace.papers.training import LinearTraining, Problem
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.projection.features import AdditiveMap, FeatureMap
from dp_halfspace.selection.rule import DIRECTIONS_PAY

# Value of the constant column for a perturbed objective of rows of norm one, before the rows have
# that norm.
_CONSTANT = 0.25
# Value of the constant column for columns with features, relative to that for columns alone.
_FEATURE_CONSTANT = 2.5


def plan_training(
    problem: Problem, solver: str, margin: float | None, budget: Budget
) -> LinearTraining | CentredFit:
    """Plan one fit within a budget; a `margin` of None means that no margin is known.

    For pure DP, the default is a search among directions where it is more accurate, and otherwise
    a perturbed objective.
    """
    if budget.is_pure and solver in {"phased_prox", "noisy_sgd"}:
        raise ValueError(
            f"solver={solver!r} needs delta > 0: use 'objective_perturbation' or 'noisy_gd'"
        )
    takes_directions = solver == "noisy_gd" and margin is None and problem.facts.n_classes == 2
    strength = problem.facts.n_privacy_units * budget.epsilon
    if budget.is_pure and takes_directions and strength < DIRECTIONS_PAY:
        return plan_direction_training(problem, budget)
    if budget.is_pure or solver == "objective_perturbation":
        if margin is None:
            return _centred_objective(problem, budget)
        return plan_objective_of_rows(problem, margin, budget)
    return plan_known_margin(problem, solver, margin, budget)


def _centred_objective(problem: Problem, budget: Budget) -> CentredFit:
    """Plan a perturbed objective of centred rows, which needs no margin."""
    is_wide = budget.is_pure and problem.facts.n_features > WIDEST
    linear_map = problem.draw_map(COMPONENTS if is_wide else None)
    shape = Shape(problem.facts, problem.intercept or 0.0, linear_map=linear_map)
    plan = plan_centred_objective(shape, LOGISTIC, budget)
    n_drawn = None if linear_map is None else linear_map.n_components
    stated = {"solver": "objective_perturbation", "margins": [None], "n_components": [n_drawn]}
    return replace(plan, attributes=("margin_", "projection_"), public={**plan.public, **stated})


def plan_objective_of_rows(
    problem: Problem, margin: float | None, budget: Budget
) -> LinearTraining:
    """Plan a perturbed objective of rows of norm one, without a moment.

    A known margin determines the regulariser.
    """
    linear_map = problem.draw_map(None)
    sizes = problem.sizes(linear_map)
    n_classes, size = problem.facts.n_classes, sizes["n_columns"]
    # Weights of classes are relative to the largest one.
    risk = empirical_risk(LOGISTIC, n_classes=n_classes, row_norm=1.0, **sizes)
    if margin is None:
        ridge = perturbed_row_ridge(risk, budget.epsilon, budget.delta)
    else:
        # This balances ridge R^2 / 2 with noise^2 / (2 ridge) for a separator of norm 1 / margin.
        mu = budget.epsilon / math.sqrt(size + 1) if budget.is_pure else budget.mu
        ridge = 2.0 * math.sqrt(size) / mu * margin / problem.facts.n_privacy_units
    plan = plan_objective(risk, ridge, budget.epsilon, budget.delta)
    constant = problem.constant(_CONSTANT)
    return LinearTraining(
        problem, "objective_perturbation", plan, margin, 1.0, constant, linear_map
    )


def plan_kernel_training(
    problem: Problem,
    solver: str,
    margin: float | None,
    budget: Budget,
    *,
    feature_map: FeatureMap,
) -> LinearTraining:
    """Plan one fit on dense features by a published algorithm, within a budget.

    `problem` describes the features. Pure DP perturbs the objective.
    """
    is_curved = isinstance(feature_map, AdditiveMap) and not feature_map.is_linear
    if is_curved and problem.intercept is not None:
        problem = replace(problem, intercept=_FEATURE_CONSTANT * problem.intercept)
    # The search among directions favours those of few columns, which does not suit features.
    if (budget.is_pure and solver == "noisy_gd") or solver == "objective_perturbation":
        return plan_objective_of_rows(problem, margin, budget)
    plan = plan_training(problem, solver, margin, budget)
    assert isinstance(plan, LinearTraining)  # because the objective is not perturbed
    return plan
