"""The choice among the training algorithms of AdaptiveMarginClassifier, by public numbers."""

from __future__ import annotations

from dp_halfspace.algorithms.engine.defaults import DIRECTIONS_PAY
from dp_halfspace.algorithms.engine.training import LinearPlan, Problem, gradient_training
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
    if solver == "phased_prox" or margin is not None:
        from dp_halfspace.algorithms.published.known_margin import (  # noqa: PLC0415
            plan_known_margin,
        )

        return plan_known_margin(problem, solver, margin, mu)
    return gradient_training(problem, mu, problem.draw_map(None), counts_classes=True)
