"""The choice among the training algorithms of AdaptiveMarginClassifier, by public numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dp_halfspace._rounding import DOWN
from dp_halfspace.algorithms.engine.defaults import DIRECTIONS_PAY, engine_defaults
from dp_halfspace.algorithms.engine.noisy_gd import GradientPlan, plan_descent
from dp_halfspace.algorithms.engine.training import (
    LinearPlan,
    Problem,
    gradient_training,
    linear_plan,
)
from dp_halfspace.engine.linear import WIDEST
from dp_halfspace.engine.plan import PublicFacts
from dp_halfspace.optim.losses import LOGISTIC
from dp_halfspace.optim.objectives import Adversary
from dp_halfspace.privacy.budget import Budget

if TYPE_CHECKING:
    from dp_halfspace.algorithms.perturbation.centred import CentredFit


def plan_training(
    problem: Problem, solver: str, margin: float | None, budget: Budget
) -> LinearPlan | CentredFit:
    """Plan one fit within a budget; a `margin` of None means that no margin is known.

    For pure DP, the default is a search among directions where it is more accurate, and otherwise
    a perturbed objective. Each branch imports the algorithm that it plans, so that a fit loads no
    other.
    """
    if budget.is_pure and solver in {"phased_prox", "noisy_sgd"}:
        raise ValueError(
            f"solver={solver!r} needs delta > 0: use 'objective_perturbation' or 'noisy_gd'"
        )
    takes_directions = solver == "noisy_gd" and margin is None and problem.n_classes == 2
    strength = problem.n_samples * budget.epsilon
    if budget.is_pure and takes_directions and strength < DIRECTIONS_PAY:
        from dp_halfspace.algorithms.search.halfspace_search import (  # noqa: PLC0415
            plan_direction_training,
        )

        return plan_direction_training(problem, budget)
    if budget.is_pure or solver == "objective_perturbation":
        return _plan_objective(problem, margin, budget)
    mu = budget.mu
    if solver == "noisy_sgd":
        from dp_halfspace.algorithms.published.known_margin import (  # noqa: PLC0415
            plan_single_record_steps,
        )

        return plan_single_record_steps(problem, margin, budget)
    if solver == "phased_prox" or (margin is not None and problem.attack is None):
        from dp_halfspace.algorithms.published.known_margin import (  # noqa: PLC0415
            plan_known_margin,
        )

        return plan_known_margin(problem, solver, margin, mu)
    if problem.attack is not None:
        return _plan_against_adversary(problem, problem.attack, mu)
    return gradient_training(problem, mu, problem.draw_map(None), counts_classes=True)


def _plan_objective(
    problem: Problem, margin: float | None, budget: Budget
) -> LinearPlan | CentredFit:
    """Plan a perturbed objective; a known margin determines the regulariser."""
    from dp_halfspace.algorithms.perturbation.centred import (  # noqa: PLC0415
        COMPONENTS,
        RowsRead,
        plan_centred_objective,
    )

    is_wide = budget.is_pure and problem.n_features > WIDEST
    linear_map = problem.draw_map(COMPONENTS if is_wide else None)
    facts = PublicFacts(
        n_privacy_units=problem.n_samples,
        n_features=problem.n_features,
        n_classes=problem.n_classes,
        class_weights=problem.class_weights,
        data_norm=problem.data_norm,
        is_sparse=problem.is_sparse,
        has_weights=problem.has_weights,
    )
    read, ridge = RowsRead(facts, problem.intercept or 0.0, linear_map), None
    if margin is not None:
        # This balances ridge R^2 / 2 with noise^2 / (2 ridge) for a separator of norm R = 1 /
        # margin.
        size = read.n_final
        mu = budget.epsilon / math.sqrt(size + 1) if budget.is_pure else budget.mu
        ridge = 2.0 * math.sqrt(size) / mu * margin / problem.n_samples
    how: dict[str, Any] = {"ridge": ridge, "has_moment": margin is None}
    plan = plan_centred_objective(read, LOGISTIC, budget, **how)
    n_components = None if linear_map is None else linear_map.n_components
    parameters = {
        "solver": "objective_perturbation",
        "margins": [margin],
        "n_components": [n_components],
    }
    names = ("margin_", "projection_")
    return replace(plan, attributes=names, public={**plan.public, **parameters}, margin=margin)


def _plan_against_adversary(problem: Problem, attack: Adversary, mu: float) -> LinearPlan:
    """Plan accelerated steps against an adversary, on rows that keep their lengths."""
    defaults = engine_defaults(problem.n_samples, problem.n_columns(), problem.n_classes, mu)
    constant_column = problem.constant(defaults.constant_column)
    # The longest row has norm one, constant column included.
    scaled = replace(attack, radius=attack.radius / math.hypot(1.0, constant_column or 0.0))
    if problem.tail_fraction is not None:
        defaults = replace(defaults, tail_fraction=problem.tail_fraction)
    plan = plan_descent(defaults, **problem.sizes(), n_outputs=1, mu=mu * DOWN, attack=scaled)
    steps = GradientPlan(plan, (plan.event,), adversary=scaled)
    return linear_plan(
        problem,
        "noisy_gd",
        steps,
        margin=None,
        margin_offset=plan.steps.margin_offset,
        constant_column=constant_column,
        attack=scaled,
    )
