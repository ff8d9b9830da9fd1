"""Every fit is a plan of public numbers that is charged before it is run.

An estimator turns `PublicFacts` and a budget into a `FitPlan`. The events of the plan are what a
run releases, and they are fixed before any row is read. A run asks questions about the rows through
their `Door`, and what it returns is a function of what was released. A `LinearPrior` is a public
model that a selection may return (``docs/proofs/prior.md``).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Protocol

import numpy as np

from dp_halfspace._memory import NUMBER_BYTES, refuse_beyond_memory
from dp_halfspace.engine.moment import RowClip
from dp_halfspace.engine.scales import CLIP, ColumnScales
from dp_halfspace.privacy.door import Door
from dp_halfspace.privacy.events import Event
from dp_halfspace.projection.linear import LinearMap
from dp_halfspace.rows.blocks import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class LinearPrior:
    """A public linear model: scores ``X @ coefficients.T + intercepts`` of columns as handed in.

    For two classes `coefficients` have one row, for more classes one row for each class. The public
    numbers `fill`, of shape (n_features,), replace missing entries.
    """

    coefficients: FloatArray
    intercepts: FloatArray
    fill: FloatArray

    def over(self, data_norm: float) -> LinearPrior:
        """Return the model for rows that were divided by a public number."""
        return LinearPrior(self.coefficients * data_norm, self.intercepts, self.fill / data_norm)

    @property
    def text(self) -> str:
        """Public facts for the record."""
        numbers = np.concatenate([self.coefficients.ravel(), self.intercepts, self.fill])
        return f"public linear model, SHA-256 {sha256(numbers.tobytes()).hexdigest()[:16]}"


# Arrays of the size of the coefficients, and of the scores of all records, that a fit may hold at
# one time, measured with 50 and 5000 classes.
_COPIES_OF_COEFFICIENTS = 13
_COPIES_OF_SCORES = 2


@dataclass(frozen=True, slots=True)
class PublicFacts:
    """All facts about a table that planning a fit may use.

    Attributes
    ----------
    n_privacy_units : int
        Number of people, or of records.
    n_classes : int
        Size of the public label set.
    class_weights : tuple of float
        Public weights of the classes, in the order of the classes.
    data_norm : float
        Scale of a row, infinite if there is none.
    is_scale_stated : bool
        Whether `data_norm` was stated; longer rows may be scaled down to it then.
    in_column_scales : bool
        Whether the run will be given rows in estimated column scales.
    is_single : bool
        Whether rows are read in float32: dense rows that are stored in float32 and whose scale is
        stated, and copies in estimated column scales; both only if the scales of rows and intercept
        are in the range of float32 and each record is one row.
    copies_are_single : bool
        Whether copies in estimated column scales would be read in float32.
    balances_classes : bool
        Whether noisy counts are to balance the classes; then `class_weights` are ones.
    has_weights : bool
        Whether records have weights of their own, which are private.
    features : array or None
        All features, where the labels alone are private.
    prior : LinearPrior or None
        A public model of the columns as they were handed in.
    """

    n_privacy_units: int
    n_features: int
    n_classes: int
    class_weights: tuple[float, ...]
    data_norm: float = 1.0
    is_scale_stated: bool = True
    in_column_scales: bool = False
    is_sparse: bool = False
    is_chunked: bool = False
    is_single: bool = False
    copies_are_single: bool = False
    has_people: bool = False
    balances_classes: bool = False
    has_weights: bool = False
    features: Any = None
    prior: LinearPrior | None = None

    @property
    def relative_weights(self) -> FloatArray:
        """Weights of the classes, the largest one being 1."""
        return np.array(self.class_weights) / max(self.class_weights)

    def with_class_weights(self, weights: FloatArray) -> PublicFacts:
        """Return the facts with released weights of the classes."""
        return replace(self, class_weights=tuple(weights.tolist()))

    def refuse_beyond_memory(self, n_columns: int) -> None:
        """Refuse a model of `n_columns` columns whose coefficients would not fit into memory."""
        n_outputs = 1 if self.n_classes == 2 else self.n_classes
        refuse_beyond_memory(
            _COPIES_OF_COEFFICIENTS * NUMBER_BYTES * n_outputs * n_columns,
            f"a model of {n_columns} columns and {self.n_classes} classes",
            "use fewer columns, classes or n_components",
        )

    def refuse_scores_of_all(self) -> None:
        """Refuse a minimiser that keeps the scores of all records, if they would not fit."""
        if self.is_chunked or self.n_classes == 2:
            return
        refuse_beyond_memory(
            _COPIES_OF_SCORES * NUMBER_BYTES * self.n_privacy_units * self.n_classes,
            f"a minimiser for {self.n_classes} classes and all of these records",
            "use AdaptiveMarginClassifier, which reads some rows at a time, or fewer records",
        )

    def refuse_unsupported(self, takes: Collection[str]) -> None:
        """Refuse chunks, people or weights of records for which the plan has no proof."""
        if self.is_chunked and "chunks" not in takes:
            raise ValueError(
                "rows in chunks are not supported with these parameters: "
                "AdaptiveMarginClassifier, PrivateKernelClassifier, PrivateTableClassifier, "
                "PrivateAUCClassifier and OutputPerturbationClassifier support them with their "
                "default parameters. Give the rows as an array, from dask by X.compute()"
            )
        if self.has_people and "groups" not in takes:
            raise ValueError(
                "groups is not supported with these parameters: AdaptiveMarginClassifier, "
                "PrivateKernelClassifier, PrivateTableClassifier and PrivateAUCClassifier protect "
                "people with their default parameters, which have delta > 0"
            )
        if self.has_weights and "sample_weight" not in takes:
            raise ValueError(
                "sample_weight is not supported with these parameters: AdaptiveMarginClassifier, "
                "PrivateKernelClassifier, PrivateTableClassifier, OutputPerturbationClassifier and "
                "ObjectivePerturbationClassifier weigh records with their default parameters. "
                "class_weight weighs labels"
            )


def refuse_projected_rows(n_samples: int, n_components: int) -> None:
    """Refuse a projection whose images of all rows would not fit into memory."""
    refuse_beyond_memory(
        NUMBER_BYTES * n_samples * n_components,
        f"a projection of all rows to {n_components} components",
        "use fewer n_components, or projection=None",
    )


@dataclass(frozen=True, slots=True)
class Fitted:
    """The released values of a run; post-processing may use them freely.

    `coefficients` are for rows as they were handed in, or in the column `scales` if these were
    estimated, clipped at `clip`. `data_norm` is the norm to which rows are scaled down at
    prediction, infinite if they are not. `attributes` are further fitted attributes by name.
    `error_share` is the released share of errors of a selection for a small table. `row_clip`
    shortens long rows in the column scales.
    """

    coefficients: FloatArray
    intercepts: FloatArray
    data_norm: float
    attributes: Mapping[str, Any] = field(default_factory=dict)
    scales: ColumnScales | None = None
    clip: float = math.inf
    error_share: float | None = None
    row_clip: RowClip | None = None


class FitPlan(Protocol):
    """All public numbers of one fit; a run makes only the releases that its events describe."""

    @property
    def events(self) -> tuple[Event, ...]:
        """Events that a run charges."""
        ...

    @property
    def public(self) -> Mapping[str, Any]:
        """Public facts for the record."""
        ...

    @property
    def takes(self) -> frozenset[str]:
        """The kinds of inputs that a run accepts, in addition to one row in memory for each record.

        ``"chunks"`` means that it reads nothing but sums over rows; ``"groups"``, that a person
        with any number of rows counts like a record (``docs/proofs/persons.md``);
        ``"sample_weight"``, that weights of records in [0, 1] do not change its cost
        (``docs/proofs/weights.md``).
        """
        return frozenset()

    @property
    def asks(self) -> tuple[str, ...]:
        """What each of the events asks for, in words; without words of its own, what it costs."""
        return tuple(event.describe() for event in self.events)

    @property
    def column_clip(self) -> float:
        """Largest absolute value that a run is given of a column in its estimated scale."""
        return CLIP

    def run(self, door: Door) -> Fitted:
        """Fit the training data behind the door, whose permit was charged with `events`."""
        ...


@dataclass(frozen=True, slots=True)
class WrappedPlan(FitPlan):
    """A fit that transforms the rows and then runs another plan, with the events of that plan."""

    facts: PublicFacts
    plan: Any

    @property
    def events(self) -> tuple[Event, ...]:
        """Events that a run charges."""
        return tuple(self.plan.events)

    @property
    def public(self) -> Mapping[str, Any]:
        """Public facts for the record."""
        return dict(self.plan.public)


def for_rows_as_given(
    released: FloatArray,
    constant_column: float | None,
    data_norm: float,
    linear_map: LinearMap | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return coefficients and intercepts for rows before scaling and projection: post-processing.

    The rows were divided by `data_norm`. With an intercept, their last entry was `constant_column`.
    """
    n_kept = released.shape[1] - (constant_column is not None)
    features = released[:, :n_kept]
    if linear_map is not None:
        features = linear_map.pull_back(features)
    intercepts = np.zeros(len(released))
    if constant_column is not None:
        intercepts = released[:, -1] * constant_column
    return np.ascontiguousarray(features / data_norm), intercepts
