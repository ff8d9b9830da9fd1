"""The ways in which AdaptiveMarginClassifier can fit, as plans of public numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._people import People
from dp_halfspace._rounding import DOWN
from dp_halfspace._validation import TrainingData
from dp_halfspace.algorithms.defaults import (
    DIRECTIONS_PAY,
    EngineDefaults,
    engine_defaults,
    objective_defaults,
)
from dp_halfspace.algorithms.gradient.margin_gd import (
    default_margin,
    margin_slopes,
    plan_margin_descent,
)
from dp_halfspace.algorithms.gradient.noisy_gd import (
    GradientPlan,
    plan_descent,
    plan_gradient,
    scaled_rows,
)
from dp_halfspace.algorithms.plan import FloatArray, Plan, rows_over
from dp_halfspace.optim.design.rows import Rows, block_size, unit_rows
from dp_halfspace.optim.design.single_rows import single_block_size, single_unit_rows
from dp_halfspace.optim.objectives.adversary import Adversary
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.mechanisms import Permit
from dp_halfspace.privacy.profiles import gdp_mu
from dp_halfspace.privacy.randomness import public_generator

if TYPE_CHECKING:
    from dp_halfspace.projection import LinearMap

# Other ways than the default one import what they need when they are planned: few fits need it.
# Up to here the metric still applies to what was projected.
_COMPONENTS = 500


def reads_single(
    data: TrainingData, scales: tuple[float, float], *, stated: bool, in_units: bool
) -> bool:
    """Tell, by what is public, whether rows are read in float32.

    Dense ones that are so and whose scale is stated, and copies in learnt units; the scales of
    rows and intercept must be in its reach.
    """
    near_one = all(2.0**-20 <= scale <= 2.0**20 for scale in scales)
    is_so = stated and isinstance(data.X, np.ndarray) and data.X.dtype == np.float32
    return (is_so or in_units) and data.people is None and near_one


@dataclass(frozen=True, slots=True)
class Problem:
    """What is public about a fit before a way is chosen.

    `intercept` is the factor of the constant column, None for no such column; `projection` a key
    of `PROJECTIONS`, ``"auto"`` or None; `seed` that of public random objects; `attack` is in
    units of the public scale of a row; `is_single` tells of dense rows that the default steps
    may read in float32.
    """

    n_samples: int
    n_features: int
    n_classes: int
    is_sparse: bool
    intercept: float | None
    projection: str | None = None
    n_components: int | None = None
    averaged: bool = True
    seed: int | None = None
    attack: Adversary | None = None
    is_single: bool = False

    def drawn(self, wanted: int | None) -> LinearMap | None:
        """Draw the projection; `wanted` is the number of components of the automatic one."""
        kind = self.projection
        if kind == "auto" and (wanted or self.n_components):
            kind = "rademacher"
        if kind is None or kind == "auto":
            return None
        from dp_halfspace.projection import draw_projection  # noqa: PLC0415

        size = self.n_components or wanted or _COMPONENTS
        rng = public_generator(self.seed, "projection")
        return draw_projection(kind, self.n_features, size, rng)

    def n_columns(self, linear_map: LinearMap | None = None) -> int:
        """Columns of the rows that a solver sees."""
        return int(self.sizes(linear_map)["n_columns"])

    def sizes(
        self, linear_map: LinearMap | None = None, *, is_single: bool = False
    ) -> dict[str, Any]:
        """Shape of the rows that a solver sees, and how many of them are summed at a time."""
        kept = self.n_features if linear_map is None else linear_map.n_components
        is_sparse = self.is_sparse and linear_map is None
        block_rows = block_size(self.n_samples, kept, is_sparse=is_sparse)
        if is_single:
            block_rows = single_block_size(self.n_samples, kept)
        return {
            "n_samples": self.n_samples,
            "n_columns": kept + (self.intercept is not None),
            "block_rows": block_rows,
        }

    def constant(self, default: float) -> float | None:
        """Value of the constant column, relative to rows divided by their public scale."""
        return None if self.intercept is None else default * self.intercept


@dataclass(frozen=True, slots=True)
class Training:
    """One way to fit, fixed by public numbers: a plan, and the rows that it reads.

    `margin` is the one that it is built for, None when it needs none; `shift` the score that the
    loss asks of a record; `bias` the constant column, relative to rows divided by their public
    scale; `attack` in the units of the rows, which are then scaled alike and not brought to norm
    one.
    """

    solver: str
    margin: float | None
    shift: float
    bias: float | None
    linear_map: LinearMap | None
    plan: Plan
    attack: Adversary | None = None

    @property
    def is_automatic(self) -> bool:
        """Whether these are the default steps, which need neither margin nor bound."""
        return self.solver == "noisy_gd" and self.margin is None and self.attack is None

    @property
    def is_single(self) -> bool:
        """Whether it reads rows of float32 in float32: see `SingleRows`."""
        return isinstance(self.plan, GradientPlan) and self.plan.descent.is_single

    @property
    def protects_people(self) -> bool:
        """Whether a person with any number of rows counts like a record: see `Rows.people`.

        Such steps ask for nothing but sums over rows, so they read rows in chunks, too.
        """
        others = self.attack or self.linear_map
        return isinstance(self.plan, GradientPlan) and others is None

    def rows(self, X: Any, data_norm: float, people: People | None, *, clips: bool) -> Any:
        """Return the rows that it reads, made from rows of a public scale."""
        if self.attack is not None:
            return scaled_rows(X, data_norm, self.bias)
        if self.is_single:
            return rows_over(single_unit_rows, X, data_norm, self.bias)
        how = {"clips": clips, "people": people}
        return rows_over(unit_rows, X, data_norm, self.bias, self.linear_map, **how)

    @property
    def events(self) -> tuple[Event, ...]:
        """What a run releases."""
        return self.plan.events

    @property
    def public(self) -> dict[str, Any]:
        """What a record says about it."""
        return public_facts((self,))

    def run(
        self, rows_of: RowsOf, classes: NDArray[np.intp], weights: FloatArray, permit: Permit
    ) -> tuple[Training, FloatArray]:
        """Train on its rows: a selection with a single candidate, which wins."""
        return self, self.plan.run(rows_of(self), classes, weights, permit)


# Candidates of a selection differ in projection and constant column, so each has its own rows.
RowsOf: TypeAlias = Callable[[Training], Rows]


def public_facts(candidates: Sequence[Training]) -> dict[str, Any]:
    """Return what a record says about a fit that can take any of these ways."""
    first = candidates[0]
    maps = [candidate.linear_map for candidate in candidates]
    return {
        "relative_constant_column": first.bias,
        "solver": first.solver,
        "margins": [candidate.margin for candidate in candidates],
        "private_metric": first.plan.public["private_metric"],
        "n_components": [None if drawn is None else drawn.n_components for drawn in maps],
        **({"precision": "float32"} if first.is_single else {}),
    }


def asked_margin(training: Training, released: FloatArray) -> float:
    """Return the margin of unit rows below which a record still pulls at the model.

    That is the known margin, or the score that the loss asks for over the norm of the released
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


def check_phased_prox(solver: str, n_classes: int, *, is_pure: bool) -> None:
    """Refuse ``"phased_prox"`` where there is none."""
    if solver == "phased_prox" and (n_classes > 2 or is_pure):
        raise ValueError(
            "Only binary classification is supported by solver='phased_prox', and only "
            "delta > 0: use 'objective_perturbation' or 'noisy_gd'"
        )


def plan_training(
    problem: Problem, solver: str, margin: float | None, epsilon: float, delta: float
) -> Training:
    """Plan one fit within a budget; no margin is asked for where it is None.

    Pure epsilon comes from a search among directions where that is the better one and neither a
    margin nor a solver was asked for, else from a perturbed objective.
    """
    is_pure = delta == 0 and math.isfinite(epsilon)
    takes_directions = solver == "noisy_gd" and margin is None and problem.n_classes == 2
    if is_pure and takes_directions and problem.n_samples * epsilon < DIRECTIONS_PAY:
        return plan_direction_training(problem, epsilon)
    if is_pure or solver == "objective_perturbation":
        return _objective(problem, margin, epsilon, delta)
    return plan_gaussian_training(problem, solver, margin, gdp_mu(epsilon, delta))


def plan_gaussian_training(
    problem: Problem, solver: str, margin: float | None, mu: float
) -> Training:
    """Plan one fit that is mu-Gaussian private; parameters as in `plan_training`."""
    if solver == "phased_prox":
        return _phased(problem, margin, mu)
    if problem.attack is not None:
        return _attacked(problem, problem.attack, mu)
    if margin is not None:
        return _descent(problem, margin, mu)
    linear_map = problem.drawn(None)
    sizes = (problem.n_samples, problem.n_columns(linear_map), problem.n_classes)
    return gradient_training(problem, engine_defaults(*sizes, mu), mu, linear_map)


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

    A tenth of `margin` is asked of a record; with None only errors count.
    """
    from dp_halfspace.algorithms.selection.halfspace_search import (  # noqa: PLC0415
        direction_defaults,
        plan_directions,
    )

    defaults = direction_defaults(problem.n_samples, problem.n_features, epsilon)
    linear_map, bias = problem.drawn(defaults.n_components), problem.constant(defaults.bias)
    # Without noise the result is a function of the data, so the directions are fixed.
    seed = 0 if problem.seed is None and math.isinf(epsilon) else problem.seed
    words = public_generator(seed, "directions").integers(2**32, size=4).tolist()
    plan = plan_directions(
        problem.n_columns(linear_map),
        epsilon=epsilon,
        n_directions=n_directions or defaults.n_directions,
        n_stages=n_stages or defaults.n_stages,
        constant=bias,
        spherical=linear_map is not None,
        lattice=lattice,
        seed=tuple(words),
        margin=margin,
    )
    return Training("exponential_mechanism", None, 0.0, bias, linear_map, plan)


def gradient_training(
    problem: Problem, defaults: EngineDefaults, mu: float, linear_map: LinearMap | None = None
) -> Training:
    """Private metric and accelerated steps: no margin is needed."""
    if not problem.averaged:
        defaults = replace(defaults, window=0.0)
    is_single = problem.is_single and linear_map is None
    sizes = problem.sizes(linear_map, is_single=is_single)
    plan = plan_gradient(defaults, n_classes=problem.n_classes, mu=mu, is_single=is_single, **sizes)
    bias = problem.constant(defaults.bias)
    return Training("noisy_gd", None, defaults.shift, bias, linear_map, plan)


def _attacked(problem: Problem, attack: Adversary, mu: float) -> Training:
    """Accelerated steps on rows that keep their lengths, against an adversary."""
    defaults = engine_defaults(problem.n_samples, problem.n_columns(), problem.n_classes, mu)
    bias = problem.constant(defaults.bias)
    # The longest row has norm one, constant column included.
    scaled = replace(attack, radius=attack.radius / math.hypot(1.0, bias or 0.0))
    plan = plan_descent(
        defaults if problem.averaged else replace(defaults, window=0.0),
        **problem.sizes(),
        n_outputs=1,
        mu=mu * DOWN,
        attack=scaled,
    )
    steps = GradientPlan(plan, adversary=scaled)
    return Training("noisy_gd", None, plan.steps.shift, bias, None, steps, attack=scaled)


def _known(
    problem: Problem, margin: float, mu: float
) -> tuple[LinearMap | None, float | None, float]:
    """Projection, constant column and what is left of the margin, where it is known."""
    from dp_halfspace.projection import (  # noqa: PLC0415
        PROJECTIONS,
        jl_dimension,
        jl_distortion,
        jl_margin,
    )

    is_named = problem.projection in PROJECTIONS
    linear_map = problem.drawn(jl_dimension(margin, problem.n_samples) if is_named else None)
    if linear_map is not None:
        distortion = jl_distortion(linear_map.n_components, problem.n_samples)
        # The published algorithms count on a third; more is proved for many components.
        margin = max(jl_margin(margin, distortion=distortion), margin / 3.0)
    n_columns = problem.n_columns(linear_map)
    bias = engine_defaults(problem.n_samples, n_columns, problem.n_classes, mu).bias
    return linear_map, problem.constant(bias), margin


def _descent(problem: Problem, margin: float, mu: float) -> Training:
    """Noisy gradient steps for one margin."""
    linear_map, bias, kept = _known(problem, margin, mu)
    n_outputs = 1 if problem.n_classes == 2 else problem.n_classes
    plan = plan_margin_descent(
        **problem.sizes(linear_map),
        n_outputs=n_outputs,
        mu=mu,
        margin=kept,
        averaged=problem.averaged,
    )
    steps = GradientPlan(plan, slopes=margin_slopes)
    return Training("noisy_gd", margin, plan.steps.shift, bias, linear_map, steps)


def _phased(problem: Problem, margin: float | None, mu: float) -> Training:
    """One pass of proximal steps for one margin."""
    from dp_halfspace.algorithms.gradient.phased_gd import plan_phased_prox  # noqa: PLC0415

    if margin is None:
        margin = default_margin(problem.n_samples, problem.n_columns(), mu)
    linear_map, bias, kept = _known(problem, margin, mu)
    n_samples, n_columns = problem.n_samples, problem.n_columns(linear_map)
    order = public_generator(problem.seed, "permutation").permutation(n_samples)
    plan = plan_phased_prox(n_samples, n_columns, mu=mu, margin=kept, order=order)
    return Training("phased_prox", margin, margin, bias, linear_map, plan)


def _objective(problem: Problem, margin: float | None, epsilon: float, delta: float) -> Training:
    """Minimise a perturbed objective; the metric and an automatic ridge without a margin."""
    from dp_halfspace.algorithms.perturbation.preconditioned_objective import (  # noqa: PLC0415
        plan_preconditioned_objective,
    )
    from dp_halfspace.optim.objectives.losses import shifted_logistic  # noqa: PLC0415
    from dp_halfspace.optim.risks.empirical import empirical_risk  # noqa: PLC0415

    n_samples, n_classes = problem.n_samples, problem.n_classes
    defaults = objective_defaults(n_samples, problem.n_columns(), n_classes, epsilon, delta)
    linear_map = problem.drawn(defaults.n_components)
    ridge = None
    if margin is not None:
        n_columns = problem.n_columns(linear_map)
        mu = gdp_mu(epsilon, delta) if delta > 0 else epsilon / math.sqrt(n_columns + 1)
        # Balances ridge R^2 / 2 with noise^2 / (2 ridge) for a separator of norm R.
        ridge = 2.0 * math.sqrt(n_columns) / mu * margin / (defaults.shift * n_samples)
    loss = shifted_logistic(defaults.shift)
    sizes = problem.sizes(linear_map)
    risk = empirical_risk(loss, n_classes=n_classes, row_norm=1.0, **sizes)
    plan = plan_preconditioned_objective(risk, epsilon, delta, ridge=ridge, metric=margin is None)
    bias = problem.constant(defaults.bias)
    return Training("objective_perturbation", margin, defaults.shift, bias, linear_map, plan)
