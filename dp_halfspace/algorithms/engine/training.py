"""Default training of one model: the public problem, its plan, and the rows that a run reads."""

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
)
from dp_halfspace.algorithms.engine.plan import FloatArray, Plan, rows_over
from dp_halfspace.data.people import People
from dp_halfspace.data.record_weights import weights_of
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine.plan import FitPlan, Fitted, for_rows_as_given, relative_weights
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.mechanisms import Permit, noise_deviation
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

# With rows of a stated scale, class weights are computed as if this many records, times the root of
# the number of columns over mu, belonged to the rarer class instead of the majority: the mean row
# of the majority is not zero there, while estimated column scales are centred.
_RECOUNTED = 3.0
# Counts of more than two classes are released from this n mu on, where they exceed their noise.
_COUNTS_OF_MANY = 125.0
# Default dimension of a projection. It is below the limit of 512 columns for a preconditioner.
_COMPONENTS = 500


@dataclass(frozen=True, slots=True)
class Problem:
    """Public facts about a fit, before an algorithm is chosen.

    `intercept` is the factor of the constant column, None without an intercept. `projection` is a
    key of `PROJECTIONS`, ``"auto"`` or None. `tail_fraction` is the share of the last steps whose
    iterates are averaged, None for that of the algorithm. `seed` is that of public random objects.
    With `is_single` the default steps may read
    the dense rows in float32, and with `of_features` they compute features again at every pass.
    `count` is the noise with which the second of two classes was counted before, if it was.
    `is_table` says that the columns are those of an encoded table, whose scores are calibrated.
    Rows are divided by `data_norm`; with `clips`, longer ones are scaled down to it first.
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
        """Draw the projection; an automatic one has `wanted` components, or is none at all."""
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
        """Return the number of columns of the rows that a solver reads."""
        return int(self.sizes(linear_map)["n_columns"])

    def sizes(
        self, linear_map: LinearMap | None = None, *, is_single: bool = False
    ) -> dict[str, Any]:
        """Return the shape of the rows that a solver reads, and how many it sums at a time."""
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
        """Return the value of the constant column, for rows divided by their public scale."""
        return None if self.intercept is None else default * self.intercept


@dataclass(frozen=True, slots=True)
class LinearPlan(FitPlan):
    """One way to fit a linear model: an algorithm, and how the rows that it reads are made.

    `margin` is the margin that the algorithm is built for, None if it needs none. `margin_offset`
    is the score that the loss asks of a record. `constant_column` is the value of the constant
    column, for rows divided by their public scale. With `is_single` rows
    are read in float32: see `SingleRows`. `counts` are released before the algorithm runs, `mu` is
    the budget of both, and `n_recounted` is as in `balanced_weights`. `rarity` and `population` are
    None until the counts were released. Plans are made by `linear_plan`.
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
    is_single: bool = False
    counts: ClassCountPlan | None = None
    mu: float = 0.0
    n_recounted: float = 0.0
    rarity: Rarity | None = None
    population: tuple[float, ...] | None = None

    def adapt_to_counts(self, data: TrainingData, permit: Permit) -> LinearPlan:
        """Release the counts of the classes, and return a plan that is adapted to them.

        Nothing changes that a scale of noise depends on: ``docs/proofs/rare.md``, section 2. The
        plan that is returned has no counts to release. `population` has the class weights that
        were asked for; the steps may use other ones, and correct the intercept for them.
        """
        if self.counts is None:
            return self
        assert isinstance(self.algorithm, GradientPlan)
        problem, algorithm, noise = self.problem, self.algorithm, noise_deviation(self.counts.noise)
        weights = relative_weights(problem.class_weights)
        # A model with features in addition to the columns overfits single records sooner.
        preconditioner = algorithm.preconditioner
        has_features = preconditioner is not None and preconditioner.behind > 0.0
        # 1. Release the counts. All that follows depends on them and on public numbers alone.
        released, total = self.counts.run(data.class_indices, permit, data.people, data.weights)
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
        # 2. Choose the settings of the steps for a rare class, if there is one.
        settings = None
        if rarity.degree > 0.0 and self.constant_column is not None:
            recounted = max(self.n_recounted - noise, 0.0) / total
            settings = rarity_settings(rarity, weights, algorithm.descent.steps, recounted)
        # 3. With features, measure the signal in a first step with classes of equal total weight.
        if problem.n_classes == 2 and has_features:
            is_plain = not problem.balances_classes and weights[0] == weights[1]
            algorithm = with_first_step(
                algorithm, first_step(released, total, rarity.degree), self.mu, is_plain=is_plain
            )
        # 4. Balance the classes, if this is wanted: the scores are then for balanced classes.
        if problem.balances_classes:
            weights = balanced_weights(released, noise, total, self.n_recounted)
            if settings is not None:
                settings = replace(settings, weights=weights, last_weights=weights)
                settings = replace(settings, score_offset=0.0, intercept_offset=0.0)
            rarity = replace(rarity, share=0.5, degree=0.0)
        # 5. Put the settings into the plan; its events and its noise stay as they are.
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

    @property
    def balances_classes(self) -> bool:
        """Whether the plan itself counts the classes in order to balance them."""
        return self.counts is not None and self.problem.balances_classes

    def rows(self, X: Any, people: People | None) -> Any:
        """Return the rows that the algorithm reads."""
        norm, constant_column = self.problem.data_norm, self.constant_column
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
        return replace(fitted, rarity=plan.rarity, population=plan.population)

    def to_fitted(self, released: FloatArray) -> Fitted:
        """Map released coefficients back to rows as they were handed in: post-processing."""
        norm = self.problem.data_norm
        back = (self.constant_column, self.problem.intercept, norm, self.linear_map)
        return Fitted(
            *for_rows_as_given(released, *back),
            data_norm=norm if self.problem.clips else math.inf,
            attributes={"margin_": asked_margin(self, released), "projection_": self.linear_map},
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
    is_single: bool = False,
    counts: ClassCountPlan | None = None,
    mu: float = 0.0,
    n_recounted: float = 0.0,
) -> LinearPlan:
    """Plan a fit of a linear model: the events, the public facts and the inputs of an algorithm.

    Noisy steps and a perturbed objective can weigh the slopes of records. Noisy steps read nothing
    but sums over rows, so that rows may come in chunks. It is not proved that a person counts like
    a record after a projection, so groups are not accepted there.
    """
    takes = {"sample_weight"} if solver == "objective_perturbation" else set()
    if isinstance(algorithm, GradientPlan):
        is_plain = linear_map is None
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
        is_single=is_single,
        counts=counts,
        mu=mu,
        n_recounted=n_recounted,
    )


def first_step(released: FloatArray, total: float, rare: float) -> FirstStep:
    """Plan a first step in which two classes have the same total weight, by released counts.

    The signal in its gradient shortens all steps if there is little of it. The rarer a class is, by
    the degree `rare` in [0, 1], the less this counts: `rarity_settings` shortens steps then.
    """
    counts = np.clip(released, 0.5, total)
    smaller = float(counts.min())
    return FirstStep(smaller / counts, total, smaller / float(counts.sum()), 1.0 - rare)


def with_first_step(
    algorithm: GradientPlan, first: FirstStep, mu: float, *, is_plain: bool
) -> GradientPlan:
    """Return a plan that begins with the step `first`, and a preconditioner for these counts.

    Scores are shifted for columns that lag only if both classes have the same weight (`is_plain`).
    ``docs/proofs/rare.md``, section 5.
    """
    preconditioner, n_directions = algorithm.preconditioner, EFFECTIVE_DIMENSION
    if preconditioner is not None and preconditioner.lead is None:
        n_directions = resolved_directions(first.share * first.n_samples * mu)
        preconditioner = replace(preconditioner, effective_dimension=n_directions)
    n_curved = float(algorithm.descent.steps.n_curved)
    first = replace(
        first,
        n_directions=max(n_directions, n_curved),
        lag=column_lag(n_curved, n_directions) if is_plain else 0.0,
    )
    return replace(algorithm, first=first, preconditioner=preconditioner)


def asked_margin(training: LinearPlan, released: FloatArray) -> float:
    """Return the margin of normalised rows below which the loss of a record has a large slope.

    This is the known margin, or else the margin offset of the loss divided by the norm of the
    released coefficients (of the largest difference of two classes), at most one: post-processing.
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
    return min(1.0, training.margin_offset / norm)


def gradient_training(
    problem: Problem,
    mu: float,
    linear_map: LinearMap | None = None,
    *,
    defaults: EngineDefaults | None = None,
    counts_classes: bool = False,
) -> LinearPlan:
    """Plan a private preconditioner and accelerated steps, which need no margin.

    Without `defaults` they follow from the sizes. With `counts_classes` a part of the budget counts
    the classes if they are to be balanced, or if this improves the model and there is an intercept
    to adapt.
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
        # Only the published steps need rows that are scaled down to `data_norm`; these steps
        # normalise rows of any length.
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
