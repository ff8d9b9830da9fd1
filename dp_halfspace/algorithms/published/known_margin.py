"""Training for a margin that is known: noisy descent, phased prox, steps on single records."""

from __future__ import annotations

from dp_halfspace.algorithms.engine.defaults import engine_defaults
from dp_halfspace.algorithms.engine.noisy_gd import GradientPlan
from dp_halfspace.algorithms.engine.training import LinearPlan, Problem
from dp_halfspace.algorithms.published.margin_gd import (
    default_margin,
    margin_slopes,
    plan_margin_descent,
    plan_mean_descent,
)
from dp_halfspace.algorithms.published.phased_gd import plan_phased_prox
from dp_halfspace.algorithms.published.single_records import plan_single_records
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.randomness import public_generator
from dp_halfspace.projection import PROJECTIONS, LinearMap, jl_dimension, jl_distortion, jl_margin


def plan_known_margin(problem: Problem, solver: str, margin: float | None, mu: float) -> LinearPlan:
    """Plan one fit that is mu-Gaussian private, for a margin of rows of norm one.

    `solver` is ``"noisy_gd"`` or ``"phased_prox"``; without a margin the one below which noise
    alone costs half of the training error stands for it.
    """
    plan = _phased if solver == "phased_prox" else _descent
    return plan(problem, _margin(problem, margin, mu), mu)


def plan_single_record_steps(problem: Problem, margin: float | None, budget: Budget) -> LinearPlan:
    """Plan one fit by steps on single records, whose profile is not Gaussian; see above."""
    mu = budget.mu
    margin = _margin(problem, margin, mu)
    linear_map, constant_column, kept = _known(problem, margin, mu)
    plan = plan_single_records(
        problem.n_samples,
        problem.n_columns(linear_map),
        margin=kept,
        budget=budget,
        tail_fraction=problem.tail_fraction(0.5),
    )
    return LinearPlan(
        problem, "noisy_sgd", margin, plan.threshold, constant_column, linear_map, plan
    )


def _margin(problem: Problem, margin: float | None, mu: float) -> float:
    """Return the margin given, or the one that noise alone affords."""
    if margin is not None:
        return margin
    return default_margin(problem.n_samples, problem.n_columns(), mu)


def _known(
    problem: Problem, margin: float, mu: float
) -> tuple[LinearMap | None, float | None, float]:
    """Projection, constant column and what is left of the margin, where it is known."""
    is_named = problem.projection in PROJECTIONS
    linear_map = problem.drawn(jl_dimension(margin, problem.n_samples) if is_named else None)
    if linear_map is not None:
        distortion = jl_distortion(linear_map.n_components, problem.n_samples)
        # The published algorithms count on a third; more is proved for many components.
        margin = max(jl_margin(margin, distortion=distortion), margin / 3.0)
    n_columns = problem.n_columns(linear_map)
    constant_column = engine_defaults(
        problem.n_samples, n_columns, problem.n_classes, mu
    ).constant_column
    return linear_map, problem.constant(constant_column), margin


def _descent(problem: Problem, margin: float, mu: float) -> LinearPlan:
    """Noisy gradient steps for one margin."""
    linear_map, constant_column, kept = _known(problem, margin, mu)
    n_outputs = 1 if problem.n_classes == 2 else problem.n_classes
    sizes = problem.sizes(linear_map)
    if problem.iterate == "mean" and n_outputs == 1:
        plan = plan_mean_descent(**sizes, mu=mu, margin=kept)
    else:
        tail = problem.tail_fraction(0.5)
        plan = plan_margin_descent(
            **sizes, n_outputs=n_outputs, mu=mu, margin=kept, tail_fraction=tail
        )
    steps = GradientPlan(plan, slopes=margin_slopes)
    offset = plan.steps.margin_offset
    return LinearPlan(problem, "noisy_gd", margin, offset, constant_column, linear_map, steps)


def _phased(problem: Problem, margin: float, mu: float) -> LinearPlan:
    """One pass of proximal steps for one margin."""
    linear_map, constant_column, kept = _known(problem, margin, mu)
    n_samples, n_columns = problem.n_samples, problem.n_columns(linear_map)
    order = public_generator(problem.seed, "permutation").permutation(n_samples)
    plan = plan_phased_prox(n_samples, n_columns, mu=mu, margin=kept, order=order)
    return LinearPlan(problem, "phased_prox", margin, margin, constant_column, linear_map, plan)
