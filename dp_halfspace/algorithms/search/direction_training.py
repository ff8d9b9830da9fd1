"""Pure training by a search among directions that do not depend on the data."""

from __future__ import annotations

import math

from dp_halfspace.algorithms.engine.training import LinearPlan, Problem
from dp_halfspace.algorithms.search.halfspace_search import direction_defaults, plan_directions
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.randomness import public_generator


def plan_direction_training(
    problem: Problem,
    budget: Budget,
    *,
    n_directions: int | None = None,
    n_stages: int | None = None,
    lattice: bool = False,
    margin: float | None = None,
) -> LinearPlan:
    """Plan a search among data-independent directions, pure DP, for two classes.

    A tenth of `margin` is asked of a record; with None only errors count.
    """
    epsilon = budget.epsilon
    defaults = direction_defaults(problem.n_samples, problem.n_features, epsilon)
    linear_map, constant_column = (
        problem.drawn(defaults.n_components),
        problem.constant(defaults.constant_column),
    )
    # Without noise the result is a function of the data, so the directions are fixed.
    seed = 0 if problem.seed is None and math.isinf(epsilon) else problem.seed
    words = public_generator(seed, "directions").integers(2**32, size=4).tolist()
    plan = plan_directions(
        problem.n_columns(linear_map),
        epsilon=epsilon,
        n_directions=n_directions or defaults.n_directions,
        n_stages=n_stages or defaults.n_stages,
        constant=constant_column,
        spherical=linear_map is not None,
        lattice=lattice,
        seed=tuple(words),
        margin=margin,
    )
    return LinearPlan(
        problem, "exponential_mechanism", None, 0.0, constant_column, linear_map, plan
    )
