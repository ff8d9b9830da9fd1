"""The choice among the training algorithms of AdaptiveMarginClassifier, by public numbers."""

from __future__ import annotations

import math
from dataclasses import replace

from dp_halfspace._rounding import DOWN
from dp_halfspace.algorithms.engine.defaults import DIRECTIONS_PAY, engine_defaults
from dp_halfspace.algorithms.engine.noisy_gd import GradientPlan, plan_descent
from dp_halfspace.algorithms.engine.training import (
    LinearPlan,
    Problem,
    gradient_training,
    linear_plan,
)
from dp_halfspace.optim.objectives import Adversary
from dp_halfspace.privacy.budget import Budget


def plan_training(
    problem: Problem, solver: str, margin: float | None, budget: Budget
) -> LinearPlan:
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
        from dp_halfspace.algorithms.perturbation.preconditioned import (  # noqa: PLC0415
            plan_objective_training,
        )

        return plan_objective_training(problem, margin, budget)
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
