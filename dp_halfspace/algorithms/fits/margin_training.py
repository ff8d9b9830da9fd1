"""The ways in which AdaptiveMarginClassifier can fit, as plans of public numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.algorithms.defaults import engine_defaults, objective_defaults
from dp_halfspace.algorithms.gradient.descent import GradientPlan, plan_gradient
from dp_halfspace.algorithms.gradient.margin_gd import (
    default_margin,
    margin_slopes,
    plan_margin_descent,
)
from dp_halfspace.algorithms.gradient.noisy_gd import plan_descent
from dp_halfspace.algorithms.gradient.phased_gd import plan_phased_prox
from dp_halfspace.algorithms.perturbation.preconditioned_objective import (
    plan_preconditioned_objective,
)
from dp_halfspace.algorithms.plan import Plan
from dp_halfspace.algorithms.selection.halfspace_search import (
    DIRECTIONS_PAY,
    direction_defaults,
    plan_directions,
)
from dp_halfspace.optim.design.rows import block_size
from dp_halfspace.optim.objectives.adversary import Adversary
from dp_halfspace.optim.objectives.losses import shifted_logistic
from dp_halfspace.optim.risks.empirical import empirical_risk
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.profiles import gdp_mu
from dp_halfspace.privacy.randomness import public_generator
from dp_halfspace.projection import (
    PROJECTIONS,
    LinearMap,
    draw_projection,
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

# Up to here the metric still applies to what was projected.
_COMPONENTS = 500


@dataclass(frozen=True, slots=True)
class Problem:
    """What is public about a fit before a way is chosen.

    Attributes
    ----------
    is_sparse : bool
        Storage of the features.
    intercept : float or None
        Factor of the constant column, None for no such column.
    projection : str or None
        A key of `PROJECTIONS`, ``"auto"`` or None.
    averaged : bool
        Whether iterates are averaged.
    seed : int or None
        Of public random objects.
    attack : Adversary or None, default=None
        In units of the public scale of a row.
    """

    n_samples: int
    n_features: int
    n_classes: int
    is_sparse: bool
    intercept: float | None
    projection: str | None
    n_components: int | None
    averaged: bool
    seed: int | None
    attack: Adversary | None = None

    def drawn(self, wanted: int | None) -> LinearMap | None:
        """Draw the projection; `wanted` is the number of components of the automatic one."""
        kind = self.projection
        if kind == "auto" and (wanted or self.n_components):
            kind = "rademacher"
        if kind is None or kind == "auto":
            return None
        size = self.n_components or wanted or _COMPONENTS
        rng = public_generator(self.seed, "projection")
        return draw_projection(kind, self.n_features, size, rng)

    def n_columns(self, linear_map: LinearMap | None) -> int:
        """Columns of the rows that a solver sees."""
        features = self.n_features if linear_map is None else linear_map.n_components
        return features + (self.intercept is not None)

    def block_rows(self, linear_map: LinearMap | None) -> int:
        """Rows that are summed at a time."""
        if linear_map is None:
            return block_size(self.n_samples, self.n_features, is_sparse=self.is_sparse)
        return block_size(self.n_samples, linear_map.n_components, is_sparse=False)


@dataclass(frozen=True, slots=True)
class Training:
    """One way to fit, fixed by public numbers.

    Attributes
    ----------
    solver : str
        The one that is used.
    margin : float or None
        The margin that it is built for; None when it needs none.
    shift : float
        Score at which a record is content.
    bias : float or None
        Constant column, relative to rows divided by their public scale.
    n_columns : int
        Columns of the rows, constant column included.
    plan : Plan
        From unit rows to private coefficients.
    attack : Adversary or None
        In the units of the rows, which are then scaled alike and not brought to norm one.
    """

    solver: str
    margin: float | None
    shift: float
    bias: float | None
    linear_map: LinearMap | None
    n_columns: int
    plan: Plan
    attack: Adversary | None = None

    @property
    def events(self) -> tuple[Event, ...]:
        """What a run releases."""
        return self.plan.events


def asked_margin(training: Training, released: FloatArray) -> float:
    """Return the margin of unit rows below which a record still pulls at the model.

    Parameters
    ----------
    released : ndarray of shape (1, n_columns) or (K, n_columns)
        Private coefficients for unit rows.

    Returns
    -------
    float
        The known margin, or the score that the loss asks for over the norm of the released
        coefficients (the largest difference of two classes), at most one: post-processing.
    """
    if training.margin is not None:
        return training.margin
    gram = released @ released.T
    squares = np.diag(gram)
    largest = float(squares.max())
    if len(released) > 1:
        largest = float((squares[:, None] + squares[None, :] - 2.0 * gram).max())
    norm = math.sqrt(max(largest, 0.0))
    if norm == 0.0:
        return 1.0
    attack = training.attack
    lowered = 0.0 if attack is None else attack.radius * attack.dual_norm(released[0])
    return min(1.0, (training.shift + lowered) / norm)


def plan_training(
    problem: Problem, solver: str, margin: float | None, epsilon: float, delta: float
) -> Training:
    """Plan one fit within a budget.

    Parameters
    ----------
    margin : float or None
        None for a solver that needs none, or for the default of one that does.
    epsilon, delta : float
        Zero `delta` asks for pure epsilon: of a search among directions where that is the better
        one and neither a margin nor a solver was asked for, else of a perturbed objective.
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
    n_directions, n_stages : int or None, default=None
        None for the default of public sizes.
    margin : float or None, default=None
        Margin of which a tenth is asked of a record; with None only errors count.
    """
    defaults = direction_defaults(problem.n_samples, problem.n_features, epsilon)
    linear_map = problem.drawn(defaults.n_components)
    bias = _constant(problem, defaults.bias)
    n_columns = problem.n_columns(linear_map)
    # Without noise the result is a function of the data, so the directions are fixed.
    seed = 0 if problem.seed is None and math.isinf(epsilon) else problem.seed
    numbers = public_generator(seed, "directions").integers(2**32, size=4)
    words = tuple(int(word) for word in numbers)
    plan = plan_directions(
        n_columns,
        epsilon=epsilon,
        n_directions=n_directions or defaults.n_directions,
        n_stages=n_stages or defaults.n_stages,
        constant=bias,
        spherical=linear_map is not None,
        lattice=lattice,
        seed=words,
        margin=margin,
    )
    name = "exponential_mechanism"
    return Training(name, None, 0.0, bias, linear_map, n_columns, plan)


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
    plan = plan_gradient(
        defaults,
        n_samples=problem.n_samples,
        n_columns=n_columns,
        n_classes=problem.n_classes,
        block_rows=problem.block_rows(linear_map),
        mu=mu,
    )

    bias = _constant(problem, defaults.bias)
    return Training("noisy_gd", None, defaults.shift, bias, linear_map, n_columns, plan)


def _attacked(problem: Problem, attack: Adversary, mu: float) -> Training:
    """Accelerated steps on rows that keep their lengths, against an adversary."""
    n_columns = problem.n_columns(None)
    defaults = engine_defaults(problem.n_samples, n_columns, problem.n_classes, mu)
    bias = _constant(problem, defaults.bias)
    # The longest row has norm one, constant column included.
    scaled = replace(attack, radius=attack.radius / math.hypot(1.0, bias or 0.0))
    plan = plan_descent(
        defaults if problem.averaged else replace(defaults, window=0.0),
        n_samples=problem.n_samples,
        n_columns=n_columns,
        n_outputs=1,
        block_rows=problem.block_rows(None),
        mu=mu * (1.0 - 2.0**-40),
        attack=scaled,
    )

    return Training(
        "noisy_gd", None, defaults.shift, bias, None, n_columns,
        GradientPlan(plan, adversary=scaled), attack=scaled,
    )  # fmt: skip


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

    steps = GradientPlan(plan, slopes=margin_slopes)
    return Training("noisy_gd", margin, plan.steps.shift, bias, linear_map, n_columns, steps)


def _phased(problem: Problem, margin: float | None, mu: float) -> Training:
    """One pass of proximal steps for one margin."""
    if margin is None:
        margin = default_margin(problem.n_samples, problem.n_columns(None), mu)
    linear_map, bias, kept = _known(problem, margin, mu)
    n_columns = problem.n_columns(linear_map)
    order = public_generator(problem.seed, "permutation").permutation(problem.n_samples)
    plan = plan_phased_prox(problem.n_samples, n_columns, mu=mu, margin=kept, order=order)
    return Training("phased_prox", margin, margin, bias, linear_map, n_columns, plan)


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
    risk = empirical_risk(
        shifted_logistic(defaults.shift),
        n_samples,
        n_columns,
        n_classes,
        row_norm=1.0,
        block_rows=problem.block_rows(linear_map),
    )
    plan = plan_preconditioned_objective(risk, epsilon, delta, ridge=ridge, metric=margin is None)

    return Training(
        "objective_perturbation", margin, defaults.shift, _constant(problem, defaults.bias),
        linear_map, n_columns, plan,
    )  # fmt: skip
