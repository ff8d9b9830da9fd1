"""The ways in which AdaptiveMarginClassifier can fit, as plans of public numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._sklearn import single_blas_thread
from dp_halfspace.estimators._margin_problem import Problem, Training, asked_margin
from dp_halfspace.optim.attack import Attack
from dp_halfspace.optim.attacked_rows import AttackedRows
from dp_halfspace.optim.defaults import engine_defaults
from dp_halfspace.optim.direction_search import (
    DIRECTIONS_PAY,
    direction_defaults,
    plan_directions,
    run_directions,
)
from dp_halfspace.optim.engine import plan_engine, run_engine
from dp_halfspace.optim.erm import RidgeProblem
from dp_halfspace.optim.losses import shifted_logistic
from dp_halfspace.optim.margin_descent import (
    default_margin,
    margin_slopes,
    plan_margin_descent,
)
from dp_halfspace.optim.noisy_gd import clipped_slopes, descend, plan_descent
from dp_halfspace.optim.objective_defaults import objective_defaults
from dp_halfspace.optim.objective_engine import plan_objective_engine, run_objective_engine
from dp_halfspace.optim.phased_prox import plan_phased_prox, run_phased_prox
from dp_halfspace.optim.rows import Rows
from dp_halfspace.privacy.mechanisms import Permit
from dp_halfspace.privacy.profiles import gdp_mu
from dp_halfspace.privacy.randomness import public_generator
from dp_halfspace.projection import (
    PROJECTIONS,
    LinearMap,
    jl_dimension,
    jl_distortion,
    jl_margin,
)

__all__ = [
    "Problem",
    "Training",
    "asked_margin",
    "plan_direction_training",
    "plan_gaussian_training",
    "plan_training",
]

FloatArray: TypeAlias = NDArray[np.float64]


def plan_training(
    problem: Problem, solver: str, margin: float | None, epsilon: float, delta: float
) -> Training:
    """Plan one fit within a budget.

    Parameters
    ----------
    problem : Problem
    solver : {"noisy_gd", "objective_perturbation", "phased_prox"}
    margin : float or None
        None for a solver that needs none, or for the default of one that does.
    epsilon, delta : float
        Zero `delta` asks for pure epsilon: of a search among directions where that is the better
        one and neither a margin nor a solver was asked for, else of a perturbed objective.

    Returns
    -------
    Training
    """
    is_pure = delta == 0 and math.isfinite(epsilon)
    if is_pure and margin is None and solver == "noisy_gd":
        strength = problem.n_samples * epsilon
        if strength < DIRECTIONS_PAY and problem.n_classes == 2:
            return plan_direction_training(problem, epsilon)
    if is_pure or solver == "objective_perturbation":
        return _objective(problem, margin, epsilon, delta)
    mu = math.inf if math.isinf(epsilon) else gdp_mu(epsilon, delta)
    return plan_gaussian_training(problem, solver, margin, mu)


def plan_gaussian_training(
    problem: Problem, solver: str, margin: float | None, mu: float
) -> Training:
    """Plan one fit that is mu-Gaussian private; parameters as in `plan_training`."""
    if solver == "phased_prox":
        return _phased(problem, margin, mu)
    if problem.attack is not None:
        return _attacked(problem, problem.attack, mu)
    return _automatic(problem, mu) if margin is None else _descent(problem, margin, mu)


def plan_direction_training(
    problem: Problem,
    epsilon: float,
    *,
    n_directions: int | None = None,
    n_stages: int | None = None,
    lattice: bool = False,
    margin: float | None = None,
) -> Training:
    """Plan a search among data-independent directions, purely private, for two classes.

    Parameters
    ----------
    problem : Problem
    epsilon : float
    n_directions, n_stages : int or None, default=None
        None for the default of public sizes.
    lattice : bool, default=False
    margin : float or None, default=None
        Margin of which a tenth is asked of a record; with None only errors count.

    Returns
    -------
    Training
    """
    defaults = direction_defaults(problem.n_samples, problem.n_features, epsilon)
    linear_map = problem.drawn(defaults.n_components)
    bias = _constant(problem, defaults.bias)
    n_columns = problem.n_columns(linear_map)
    plan = plan_directions(
        n_columns,
        epsilon=epsilon,
        n_directions=n_directions or defaults.n_directions,
        n_stages=n_stages or defaults.n_stages,
        constant=bias,
        spherical=linear_map is not None,
        lattice=lattice,
        margin=margin,
    )
    # Without noise the result is a function of the data, so the directions are fixed.
    seed = 0 if problem.seed is None and math.isinf(epsilon) else problem.seed
    numbers = public_generator(seed, "directions").integers(2**32, size=4)
    words = tuple(int(word) for word in numbers)

    def run(rows: Rows, codes: NDArray[np.intp], weights: FloatArray, permit: Permit) -> FloatArray:
        return run_directions(plan, rows, codes, weights, permit, seed=words)

    name = "exponential_mechanism"
    return Training(name, None, 0.0, bias, linear_map, n_columns, plan.events, run)


def _constant(problem: Problem, default: float) -> float | None:
    """Scale the default constant column."""
    return None if problem.intercept is None else default * problem.intercept


def _automatic(problem: Problem, mu: float) -> Training:
    """Metric and accelerated steps: no margin is needed."""
    linear_map = problem.drawn(None)
    n_columns = problem.n_columns(linear_map)
    defaults = engine_defaults(problem.n_samples, n_columns, problem.n_classes, mu)
    if not problem.averaged:
        defaults = replace(defaults, window=0.0)
    plan = plan_engine(
        defaults,
        n_samples=problem.n_samples,
        n_columns=n_columns,
        n_classes=problem.n_classes,
        block_rows=problem.block_rows(linear_map),
        mu=mu,
    )

    def run(rows: Rows, codes: NDArray[np.intp], weights: FloatArray, permit: Permit) -> FloatArray:
        return run_engine(plan, rows, codes, weights, permit)

    bias = _constant(problem, defaults.bias)
    return Training(
        "noisy_gd", None, defaults.shift, bias, linear_map, n_columns, plan.events, run,
        plan.metric is not None,
    )  # fmt: skip


def _attacked(problem: Problem, attack: Attack, mu: float) -> Training:
    """Accelerated steps on rows that keep their lengths, against an adversary."""
    n_columns = problem.n_columns(None)
    defaults = engine_defaults(problem.n_samples, n_columns, problem.n_classes, mu)
    bias = _constant(problem, defaults.bias)
    # The longest row has norm one, constant column included.
    scaled = replace(attack, radius=attack.radius / math.hypot(1.0, bias or 0.0))
    plan = plan_descent(
        n_samples=problem.n_samples,
        n_columns=n_columns,
        n_outputs=1,
        block_rows=problem.block_rows(None),
        mu=mu * (1.0 - 2.0**-40),
        shift=defaults.shift,
        clip=defaults.clip,
        n_steps=defaults.n_steps,
        momentum=defaults.momentum,
        scale=defaults.scale,
        window=defaults.window if problem.averaged else 0.0,
        attack=scaled,
    )

    def run(rows: Rows, codes: NDArray[np.intp], weights: FloatArray, permit: Permit) -> FloatArray:
        attacked = AttackedRows(rows, np.where(codes == 1, 1.0, -1.0), scaled)
        with single_blas_thread():
            return descend(attacked, clipped_slopes(plan, codes, weights[codes]), plan, permit)

    return Training(
        "noisy_gd", None, plan.shift, bias, None, n_columns, (plan.event,), run, attack=scaled
    )


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
    bias = engine_defaults(problem.n_samples, n_columns, problem.n_classes, mu).bias
    return linear_map, _constant(problem, bias), margin


def _descent(problem: Problem, margin: float, mu: float) -> Training:
    """Noisy gradient steps for one margin."""
    linear_map, bias, kept = _known(problem, margin, mu)
    n_columns = problem.n_columns(linear_map)
    plan = plan_margin_descent(
        n_samples=problem.n_samples,
        n_columns=n_columns,
        n_outputs=1 if problem.n_classes == 2 else problem.n_classes,
        block_rows=problem.block_rows(linear_map),
        mu=mu,
        margin=kept,
        averaged=problem.averaged,
    )

    def run(rows: Rows, codes: NDArray[np.intp], weights: FloatArray, permit: Permit) -> FloatArray:
        with single_blas_thread():
            return descend(rows, margin_slopes(plan, codes, weights[codes]), plan, permit)

    return Training("noisy_gd", margin, plan.shift, bias, linear_map, n_columns, (plan.event,), run)


def _phased(problem: Problem, margin: float | None, mu: float) -> Training:
    """One pass of proximal steps for one margin."""
    if margin is None:
        margin = default_margin(problem.n_samples, problem.n_columns(None), mu)
    linear_map, bias, kept = _known(problem, margin, mu)
    n_columns = problem.n_columns(linear_map)
    plan = plan_phased_prox(problem.n_samples, n_columns, mu=mu, margin=kept)
    order = public_generator(problem.seed, "permutation").permutation(problem.n_samples)

    def run(rows: Rows, codes: NDArray[np.intp], weights: FloatArray, permit: Permit) -> FloatArray:
        return run_phased_prox(plan, rows, codes, weights, permit, order=order)

    return Training("phased_prox", margin, margin, bias, linear_map, n_columns, (plan.event,), run)


def _objective(problem: Problem, margin: float | None, epsilon: float, delta: float) -> Training:
    """Minimise a perturbed objective; the metric and an automatic ridge without a margin."""
    n_samples, n_classes = problem.n_samples, problem.n_classes
    defaults = objective_defaults(n_samples, problem.n_columns(None), n_classes, epsilon, delta)
    linear_map = problem.drawn(defaults.n_components)
    n_columns = problem.n_columns(linear_map)
    ridge = None
    if margin is not None:
        mu = gdp_mu(epsilon, delta) if delta > 0 else epsilon / math.sqrt(n_columns + 1)
        # Balances ridge R^2 / 2 with noise^2 / (2 ridge) for a separator of norm R.
        ridge = 2.0 * math.sqrt(n_columns) / mu * margin / (defaults.shift * n_samples)
    risk = RidgeProblem(
        shifted_logistic(defaults.shift),
        n_samples,
        n_columns,
        n_classes,
        row_norm=1.0,
        block_rows=problem.block_rows(linear_map),
        max_weight=1.0,
    )
    plan = plan_objective_engine(risk, epsilon, delta, ridge=ridge, metric=margin is None)

    def run(rows: Rows, codes: NDArray[np.intp], weights: FloatArray, permit: Permit) -> FloatArray:
        return run_objective_engine(plan, rows, codes, weights, permit)

    return Training(
        "objective_perturbation", margin, defaults.shift, _constant(problem, defaults.bias),
        linear_map, n_columns, plan.events, run, plan.metric is not None,
    )  # fmt: skip
