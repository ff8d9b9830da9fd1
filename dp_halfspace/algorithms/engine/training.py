"""Default training of one model: public problem, plan, and the rows that the plan reads."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.algorithms.engine.defaults import EngineDefaults
from dp_halfspace.algorithms.engine.noisy_gd import GradientPlan, plan_gradient, scaled_rows
from dp_halfspace.algorithms.engine.plan import FloatArray, Plan, rows_over
from dp_halfspace.data.people import People
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.optim.objectives.adversary import Adversary
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.mechanisms import Permit
from dp_halfspace.privacy.randomness import public_generator
from dp_halfspace.rows.rows import Rows, block_size, unit_rows
from dp_halfspace.rows.single_rows import single_block_size, single_unit_rows

if TYPE_CHECKING:
    from dp_halfspace.projection import LinearMap

# Dimension of a projection that nothing else asks for: its image still has a preconditioner.
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

    `margin` is the one that it is built for, None when it needs none; `margin_offset` the score
    that the loss asks of a record; `constant_column` the value of the constant column, relative to
    rows divided by their public scale; `attack` in the units of the rows, which are then scaled
    alike and not brought to norm one.
    """

    solver: str
    margin: float | None
    margin_offset: float
    constant_column: float | None
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
            return scaled_rows(X, data_norm, self.constant_column)
        if self.is_single:
            return rows_over(single_unit_rows, X, data_norm, self.constant_column)
        how = {"clips": clips, "people": people}
        return rows_over(unit_rows, X, data_norm, self.constant_column, self.linear_map, **how)

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
        "relative_constant_column": first.constant_column,
        "solver": first.solver,
        "margins": [candidate.margin for candidate in candidates],
        "private_preconditioner": first.plan.public["private_preconditioner"],
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
    return min(1.0, (training.margin_offset + lowered) / norm)


def gradient_training(
    problem: Problem, defaults: EngineDefaults, mu: float, linear_map: LinearMap | None = None
) -> Training:
    """Private preconditioner and accelerated steps: no margin is needed."""
    if not problem.averaged:
        defaults = replace(defaults, tail_fraction=0.0)
    is_single = problem.is_single and linear_map is None
    sizes = problem.sizes(linear_map, is_single=is_single)
    plan = plan_gradient(defaults, n_classes=problem.n_classes, mu=mu, is_single=is_single, **sizes)
    constant_column = problem.constant(defaults.constant_column)
    return Training("noisy_gd", None, defaults.margin_offset, constant_column, linear_map, plan)
