"""Training of one linear model: the public problem, its plan, and the rows that a run reads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from scipy.spatial.distance import cdist

from dp_halfspace._memory import NUMBER_BYTES, by_blocks
from dp_halfspace._rounding import TINY
from dp_halfspace.data.record_weights import WeighedRows, weighed
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine.plan import (
    FitPlan,
    Fitted,
    PublicFacts,
    for_rows_as_given,
    refuse_projected_rows,
)
from dp_halfspace.privacy.door import Door
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.randomness import public_generator
from dp_halfspace.projection.linear import LinearMap, draw_projection
from dp_halfspace.rows.blocks import FloatArray, block_size
from dp_halfspace.rows.chunked_rows import rows_over
from dp_halfspace.rows.rows import normalised_rows

# Default dimension of a projection, if no margin is known.
PROJECTED = 500


class Algorithm(Protocol):
    """A private training algorithm whose public numbers are fixed before the data are read.

    A fit makes a plan, charges its events, and only then runs it.
    """

    @property
    def events(self) -> tuple[Event, ...]:
        """Events that a run charges."""

    def run(self, door: Door) -> FloatArray:
        """Train within the budget on the `WeighedRows` behind a door.

        Its permit is charged with `events`. Return released coefficients of shape (1, n_columns) or
        (n_classes, n_columns); using them further is post-processing.
        """


@dataclass(frozen=True, slots=True)
class Problem:
    """Public facts about a table, and the parameters that published algorithms share.

    `intercept` is the factor of the constant column, None without an intercept. `projection` is a
    key of `PROJECTIONS`, ``"auto"`` or None. `tail_fraction` is the share of the last steps whose
    iterates are averaged. `seed` is that of public random objects.
    """

    facts: PublicFacts
    intercept: float | None
    projection: str | None = None
    n_components: int | None = None
    tail_fraction: float = 0.5
    seed: int | None = None

    def draw_map(self, wanted: int | None) -> LinearMap | None:
        """Draw the projection; an automatic one has `wanted` components, or is none at all."""
        kind = self.projection
        if kind == "auto" and (wanted or self.n_components):
            kind = "rademacher"
        if kind is None or kind == "auto":
            return None
        size = self.n_components or wanted or PROJECTED
        rng = public_generator(self.seed, "projection")
        return draw_projection(kind, self.facts.n_features, size, rng)

    def n_columns(self, linear_map: LinearMap | None = None) -> int:
        """Return the number of columns of the rows that a solver reads."""
        return int(self.sizes(linear_map)["n_columns"])

    def sizes(self, linear_map: LinearMap | None = None) -> dict[str, Any]:
        """Return the shape of the rows that a solver reads, and how many it sums at a time."""
        facts = self.facts
        kept = facts.n_features if linear_map is None else linear_map.n_components
        is_sparse = facts.is_sparse and linear_map is None
        return {
            "n_samples": facts.n_privacy_units,
            "n_columns": kept + (self.intercept is not None),
            "block_rows": block_size(facts.n_privacy_units, kept, is_sparse=is_sparse),
        }

    def constant(self, default: float) -> float | None:
        """Return the value of the constant column, for rows divided by their public scale."""
        return None if self.intercept is None else default * self.intercept


@dataclass(frozen=True, slots=True)
class LinearTraining(FitPlan):
    """One way to fit a linear model: an algorithm, and how the rows that it reads are made.

    `margin` is the margin that the algorithm is built for, None if it needs none. `margin_offset`
    is the score that the loss asks of a record. `constant_column` is the value of the constant
    column, for rows divided by their public scale. `public` are the facts for the record, which
    begin with those of the plan itself.
    """

    problem: Problem
    solver: str
    algorithm: Algorithm
    margin: float | None
    margin_offset: float
    constant_column: float | None
    linear_map: LinearMap | None = None
    public: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n_components = None if self.linear_map is None else self.linear_map.n_components
        if n_components is not None:
            refuse_projected_rows(self.problem.facts.n_privacy_units, n_components)
        own = {
            "relative_constant_column": self.constant_column,
            "solver": self.solver,
            "margins": [self.margin],
            "n_components": [n_components],
        }
        object.__setattr__(self, "public", {**own, **self.public})

    @property
    def events(self) -> tuple[Event, ...]:
        """Events that a run charges."""
        return self.algorithm.events

    @property
    def takes(self) -> frozenset[str]:
        """The kinds of inputs that a run accepts, see `FitPlan`.

        Noisy steps and a perturbed objective can weigh the slopes of records. Noisy steps read
        nothing but sums over rows, so that rows may come in chunks. It is not proved that a person
        counts like a record after a projection, so groups are not accepted there.
        """
        takes = {"sample_weight"} if self.solver == "objective_perturbation" else set()
        if self.solver == "noisy_gd":
            takes = {"sample_weight", *(("chunks", "groups") if self.linear_map is None else ())}
        return frozenset(takes)

    def with_class_weights(self, weights: FloatArray) -> LinearTraining:
        """Weigh the classes by public or released numbers in [0, 1], for the same events."""
        facts = self.problem.facts.with_class_weights(weights)
        return replace(self, problem=replace(self.problem, facts=facts))

    def rows(self, data: TrainingData) -> WeighedRows:
        """Return the rows that the algorithm reads."""
        norm, constant_column = self.problem.facts.data_norm, self.constant_column
        how = {"clips": self.problem.facts.is_scale_stated, "people": data.people}
        rows = rows_over(normalised_rows, data.X, norm, constant_column, self.linear_map, **how)
        return weighed(rows, self.problem.facts.relative_weights, data)

    def run(self, door: Door) -> Fitted:
        """Make the rows, train on them and map the coefficients back."""
        return self.to_fitted(self.algorithm.run(door.map(self.rows)))

    def to_fitted(self, released: FloatArray) -> Fitted:
        """Map released coefficients back to rows as they were handed in: post-processing."""
        norm = self.problem.facts.data_norm
        return Fitted(
            *for_rows_as_given(released, self.constant_column, norm, self.linear_map),
            data_norm=norm if self.problem.facts.is_scale_stated else math.inf,
            attributes={"margin_": asked_margin(self, released), "projection_": self.linear_map},
        )


def asked_margin(training: LinearTraining, released: FloatArray) -> float:
    """Return the margin of normalised rows below which the loss of a record has a large slope.

    This is the known margin, or else the margin offset of the loss divided by the norm of the
    released coefficients (of the largest difference of two classes), at most one: post-processing.
    """
    if training.margin is not None:
        return training.margin
    # Two classes have one vector, whose difference from zero is meant.
    others = released if len(released) > 1 else np.zeros(released.shape)
    row_bytes = NUMBER_BYTES * len(released)
    largest = by_blocks(lambda some: cdist(some, others).max(axis=1), released, row_bytes).max()
    return min(1.0, training.margin_offset / max(float(largest), TINY))
