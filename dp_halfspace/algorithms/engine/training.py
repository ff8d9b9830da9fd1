"""Default training of one model: public problem, plan, and the rows that the plan reads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dp_halfspace.algorithms.engine.class_counts import (
    ClassCountPlan,
    Rarity,
    balanced_weights,
    plan_class_counts,
    rarity_of,
)
from dp_halfspace.algorithms.engine.defaults import (
    EFFECTIVE_DIMENSION,
    EngineDefaults,
    column_lag,
    engine_defaults,
    rarity_settings,
    resolved_directions,
)
from dp_halfspace.algorithms.engine.noisy_gd import (
    LARGEST_SCORE_OFFSET,
    FirstStep,
    GradientPlan,
    plan_gradient,
    scaled_rows,
)
from dp_halfspace.algorithms.engine.plan import FloatArray, Plan, noise_deviation, rows_over
from dp_halfspace.algorithms.fit_plan import (
    FitPlan,
    Fitted,
    for_rows_as_given,
    relative_weights,
)
from dp_halfspace.data.people import People
from dp_halfspace.data.record_weights import weights_of
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.optim.objectives import Adversary
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.mechanisms import Permit
from dp_halfspace.privacy.noise import DiscreteLaplaceNoise
from dp_halfspace.privacy.randomness import public_generator
from dp_halfspace.rows.blocks import block_size
from dp_halfspace.rows.rows import normalised_rows
from dp_halfspace.rows.single_rows import (
    feature_block_size,
    single_block_size,
    single_normalised_rows,
)

if TYPE_CHECKING:
    from dp_halfspace.projection import LinearMap

# Records times mu, for each root of a column, that are counted for the rarer class when classes are
# weighted, in stated scales: there the mean of the majority class is not at the origin.
_RECOUNTED = 3.0
# From this n mu on counts of more than two classes exceed their noise, and are released.
_COUNTS_OF_MANY = 125.0
# Default dimension of a projection: small enough for a preconditioner of the image.
_COMPONENTS = 500


@dataclass(frozen=True, slots=True)
class Problem:
    """Public facts about a fit, before an algorithm is chosen.

    `intercept` is the factor of the constant column, None for no such column; `projection` a key
    of `PROJECTIONS`, ``"auto"`` or None; `tail_fraction` the share of the last steps whose iterates
    are averaged, None for that of the algorithm; `seed` that of public random objects; `attack` is
    in units of the public scale of a row; `is_single` tells of dense rows that the default steps
    may read in float32, `of_features` of features that they then make at every pass. `count` is the
    noise of a count of the second of two classes that the default steps are given. `is_table` says
    that the columns are those of an encoded table, whose scores are calibrated. Rows are divided by
    `data_norm`, to which longer ones are scaled down first if it `clips`.
    """

    n_samples: int
    n_features: int
    n_classes: int
    is_sparse: bool
    intercept: float | None
    projection: str | None = None
    n_components: int | None = None
    tail_fraction: float | None = None
    seed: int | None = None
    attack: Adversary | None = None
    is_single: bool = False
    of_features: bool = False
    class_weights: tuple[float, ...] = (1.0, 1.0)
    data_norm: float = 1.0
    clips: bool = True
    is_scale_stated: bool = False
    balances_classes: bool = False
    has_weights: bool = False
    count: DiscreteLaplaceNoise | None = None
    is_table: bool = False

    def draw_map(self, wanted: int | None) -> LinearMap | None:
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
            made = feature_block_size if self.of_features else single_block_size
            block_rows = made(self.n_samples, kept)
        return {
            "n_samples": self.n_samples,
            "n_columns": kept + (self.intercept is not None),
            "block_rows": block_rows,
        }

    def constant(self, default: float) -> float | None:
        """Value of the constant column, relative to rows divided by their public scale."""
        return None if self.intercept is None else default * self.intercept


@dataclass(frozen=True, slots=True)
class LinearPlan(FitPlan):
    """One way to fit a linear model: an algorithm, and the rows that it reads.

    `margin` is the one that it is built for, None when it needs none; `margin_offset` the score
    that the loss asks of a record; `constant_column` the value of the constant column, relative to
    rows divided by their public scale; `attack` in the units of the rows, which are then scaled
    alike and not brought to norm one. It `is_single` if it reads rows of float32 in float32: see
    `SingleRows`. Made by `linear_plan`.
    """

    problem: Problem
    solver: str
    margin: float | None
    margin_offset: float
    constant_column: float | None
    linear_map: LinearMap | None
    algorithm: Plan
    events: tuple[Event, ...]
    public: Mapping[str, Any]
    takes: frozenset[str]
    attack: Adversary | None = None
    is_single: bool = False
    counts: ClassCountPlan | None = None
    mu: float = 0.0
    n_recounted: float = 0.0
    rarity: Rarity | None = None
    population: tuple[float, ...] | None = None

    def adapt_to_counts(self, data: TrainingData, permit: Permit) -> LinearPlan:
        """Release the counts of the classes, and adapt to them what no noise depends on.

        The plan that is returned has no counts to release, and class weights of its own;
        `population` has the weights of the population that its scores are for.
        """
        if self.counts is None:
            return self
        assert isinstance(self.algorithm, GradientPlan)
        problem, noise = self.problem, noise_deviation(self.counts.noise)
        released, total = self.counts.run(data.class_indices, permit, data.people, data.weights)
        weights = relative_weights(problem.class_weights)
        # A model with features behind the columns overfits single records sooner.
        preconditioner = self.algorithm.preconditioner
        has_features = preconditioner is not None and preconditioner.behind > 0.0
        rarity = rarity_of(
            released,
            weights,
            noise,
            total,
            self.mu,
            has_features=has_features,
            n_columns=self.algorithm.descent.n_columns,
            is_table=problem.is_table,
        )
        settings = None
        if rarity.degree > 0.0 and self.constant_column is not None:
            recounted = max(self.n_recounted - noise, 0.0) / total
            settings = rarity_settings(rarity, weights, self.algorithm.descent.steps, recounted)
        algorithm = self.algorithm
        if problem.n_classes == 2 and has_features and preconditioner is not None:
            first = first_step(released, total, rarity.degree)
            n_directions = EFFECTIVE_DIMENSION
            if preconditioner.lead is None:
                n_directions = resolved_directions(first.share * total * self.mu)
                preconditioner = replace(preconditioner, effective_dimension=n_directions)
            n_curved = float(self.algorithm.descent.steps.n_curved)
            is_plain = not problem.balances_classes and weights[0] == weights[1]
            first = replace(
                first,
                n_directions=max(n_directions, n_curved),
                lag=column_lag(n_curved, n_directions) if is_plain else 0.0,
            )
            algorithm = replace(algorithm, first=first, preconditioner=preconditioner)
        if problem.balances_classes:
            weights = balanced_weights(released, noise, total, self.n_recounted)
            if settings is not None:
                settings = replace(settings, weights=weights, last_weights=weights)
                settings = replace(settings, score_offset=0.0, intercept_offset=0.0)
            rarity = replace(rarity, share=0.5, degree=0.0)
        population, offset, constant = weights, self.margin_offset, self.constant_column
        if settings is not None and constant is not None:
            weights, offset = settings.weights, settings.margin_offset
            constant = constant * settings.constant
            algorithm = algorithm.for_rarity(rarity.common, settings, constant)
        return replace(
            self,
            problem=replace(problem, class_weights=tuple(weights.tolist())),
            margin_offset=offset,
            constant_column=constant,
            algorithm=algorithm,
            counts=None,
            rarity=rarity,
            population=tuple(population.tolist()),
        )

    def with_class_weights(self, weights: FloatArray) -> LinearPlan:
        """Weigh the classes by public or released numbers in [0, 1], for the same events."""
        return replace(self, problem=replace(self.problem, class_weights=tuple(weights.tolist())))

    def with_count(self, second: float) -> LinearPlan:
        """Follow a number of records of the second class that was released before."""
        assert self.counts is not None
        return replace(self, counts=replace(self.counts, released=second))

    @property
    def balances_classes(self) -> bool:
        """Whether counts of its own balance the classes."""
        return self.counts is not None and self.problem.balances_classes

    def rows(self, X: Any, people: People | None) -> Any:
        """Return the rows that it reads."""
        norm, constant_column = self.problem.data_norm, self.constant_column
        if self.attack is not None:
            return scaled_rows(X, norm, constant_column)
        if self.is_single:
            return rows_over(single_normalised_rows, X, norm, constant_column)
        how = {"clips": self.problem.clips, "people": people}
        return rows_over(normalised_rows, X, norm, constant_column, self.linear_map, **how)

    def run(self, data: TrainingData, permit: Permit) -> Fitted:
        """Make the rows, train on them and map the coefficients back."""
        plan = self.adapt_to_counts(data, permit)
        rows = plan.rows(data.X, data.people)
        weights: Any = weights_of(relative_weights(plan.problem.class_weights), data)
        fitted = plan.to_fitted(plan.algorithm.run(rows, data.class_indices, weights, permit))
        return replace(fitted, rarity=plan.rarity)

    def to_fitted(self, released: FloatArray) -> Fitted:
        """Map released coefficients back to rows as they were given: post-processing."""
        norm = self.problem.data_norm
        back = (self.constant_column, self.problem.intercept, norm, self.linear_map)
        return Fitted(
            *for_rows_as_given(released, *back),
            data_norm=norm if self.problem.clips else math.inf,
            attributes={
                "margin_": asked_margin(self, released),
                "projection_": self.linear_map,
            },
        )


def linear_plan(
    problem: Problem,
    solver: str,
    algorithm: Plan,
    *,
    margin: float | None,
    margin_offset: float,
    constant_column: float | None,
    linear_map: LinearMap | None = None,
    attack: Adversary | None = None,
    is_single: bool = False,
    counts: ClassCountPlan | None = None,
    mu: float = 0.0,
    n_recounted: float = 0.0,
) -> LinearPlan:
    """Plan a fit of a linear model by an algorithm, and say what it releases and may be given.

    Noisy steps and a perturbed objective can weigh the slopes of records; noisy steps need nothing
    of the rows but sums, so that rows may be in chunks. Under an attack, or behind a projection, it
    is not proved that a person counts like a record.
    """
    takes = {"sample_weight"} if solver == "objective_perturbation" else set()
    if isinstance(algorithm, GradientPlan):
        is_plain = attack is None and linear_map is None
        takes = {"sample_weight", *(("chunks", "groups") if is_plain else ())}
    counted = () if counts is None or counts.counted_before else (counts.noise.event,)
    return LinearPlan(
        problem,
        solver,
        margin,
        margin_offset,
        constant_column,
        linear_map,
        algorithm,
        events=(*counted, *algorithm.events),
        public={
            "relative_constant_column": constant_column,
            "solver": solver,
            "margins": [margin],
            "private_preconditioner": getattr(algorithm, "preconditioner", None) is not None,
            "n_components": [None if linear_map is None else linear_map.n_components],
            **({"precision": "float32"} if is_single else {}),
            **({} if counts is None else {"private_class_counts": True}),
        },
        takes=frozenset(takes),
        attack=attack,
        is_single=is_single,
        counts=counts,
        mu=mu,
        n_recounted=n_recounted,
    )


def first_step(released: FloatArray, total: float, rare: float) -> FirstStep:
    """Plan a first step with two classes of the same weight, by released counts.

    What it shows shortens the other steps, the less the rarer a class is, by the degree `rare`:
    a rare class has a `step_factor` of its own.
    """
    counts = np.clip(released, 0.5, total)
    smaller = float(counts.min())
    return FirstStep(smaller / counts, total, smaller / float(counts.sum()), 1.0 - rare)


def asked_margin(training: LinearPlan, released: FloatArray) -> float:
    """Return the margin of normalised rows below which the loss of a record has a large slope.

    That is the known margin, or the margin offset of the loss over the norm of the released
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
    return min(1.0, (training.margin_offset + lowered) / norm)


def gradient_training(
    problem: Problem,
    mu: float,
    linear_map: LinearMap | None = None,
    *,
    defaults: EngineDefaults | None = None,
    counts_classes: bool = False,
) -> LinearPlan:
    """Private preconditioner and accelerated steps: no margin is needed.

    `defaults` are None for those of the sizes. With `counts_classes` a part of the budget counts
    the classes, where they are to be balanced, or where this pays and there is an intercept to
    adapt.
    """
    n_samples, n_classes = problem.n_samples, problem.n_classes
    counts, mu_of_steps = None, mu
    pays = problem.has_weights or n_classes == 2 or n_samples * mu >= _COUNTS_OF_MANY
    if counts_classes and (problem.balances_classes or (problem.intercept is not None and pays)):
        if problem.count is not None:
            counts = ClassCountPlan(n_samples, n_classes, problem.count, counted_before=True)
        else:
            counts, mu_of_steps = plan_class_counts(
                n_samples, n_classes, mu, are_weighed=problem.has_weights
            )
    is_single = problem.is_single and linear_map is None
    sizes = problem.sizes(linear_map, is_single=is_single)
    if defaults is None:
        defaults = engine_defaults(n_samples, sizes["n_columns"], n_classes, mu)
    if problem.tail_fraction is not None:
        defaults = replace(defaults, tail_fraction=problem.tail_fraction)
    plan = plan_gradient(
        defaults,
        n_classes=n_classes,
        mu=mu_of_steps,
        is_single=is_single,
        of_features=problem.of_features,
        largest_score_offset=0.0 if counts is None else LARGEST_SCORE_OFFSET,
        **sizes,
    )
    n_recounted = 0.0
    if problem.is_scale_stated and math.isfinite(mu):
        n_recounted = _RECOUNTED * math.sqrt(min(sizes["n_columns"], EFFECTIVE_DIMENSION)) / mu
    return linear_plan(
        # The proof of published steps needs longer rows to be scaled down, that of these does not.
        replace(problem, clips=False),
        "noisy_gd",
        plan,
        margin=None,
        margin_offset=defaults.margin_offset,
        constant_column=problem.constant(defaults.constant_column),
        linear_map=linear_map,
        is_single=is_single,
        counts=counts,
        mu=mu,
        n_recounted=n_recounted,
    )
