"""The list of releases of a linear fit, and the model that follows from them.

1. Centre and width of every column, unless the scale of rows is stated: three releases.
2. The second moment of the rows with a constant: the rows are centred, whitened and clipped.
3. Noisy steps of logistic regression on the rows of 2.

Proof: ``docs/proofs/engine.md``; constants: ``docs/defaults.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.data.people import People
from dp_halfspace.data.record_weights import weights_of
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine.features import Features, estimated_numbers
from dp_halfspace.engine.moment import (
    CONSTANT,
    LENGTHENED,
    Centring,
    centring_of,
    largest_stretch,
    moment_noise,
    packed,
)
from dp_halfspace.engine.plan import FitPlan, Fitted, PublicFacts
from dp_halfspace.engine.release import Release, events_of, run
from dp_halfspace.engine.scales import (
    KnownScales,
    in_column_scales,
    plan_column_scales,
)
from dp_halfspace.engine.steps import (
    N_STEPS,
    Walk,
    clipped_slopes,
    clipped_slopes_of_many,
    first_walk,
    into_mapped_ball,
    step_sensitivity,
)
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.mechanisms import Permit
from dp_halfspace.rows.blocks import FloatArray, block_size, clip_scales
from dp_halfspace.rows.chunked_rows import rows_over
from dp_halfspace.rows.float32_rows import clipped_float32_rows
from dp_halfspace.rows.rows import Rows
from dp_halfspace.rows.single_rows import single_block_size

# What a part of the budget buys, as a share of mu^2; the steps take the rest.
SCALES_SHARE = 0.06
MOMENT_SHARE = 0.18
# Rows with more columns have no second moment: it would cost more than it gains.
WIDEST = 512
# Largest absolute value of a column in its released scale: a longer tail would shorten its row.
COLUMN_CLIP = 1.5


@dataclass(frozen=True, slots=True, eq=False)
class Known(KnownScales):
    """What is known during a fit: public numbers, and what was released so far."""

    centring: Centring | None = None
    walk: Walk | None = None

    @property
    def released_walk(self) -> Walk:
        """The walk, which is known from the beginning."""
        assert self.walk is not None
        return self.walk

    @property
    def released_centring(self) -> Centring:
        """The map of the rows, after the second moment."""
        assert self.centring is not None
        return self.centring


@dataclass(frozen=True, slots=True)
class Shape:
    """The public facts that the releases of a fit depend on.

    `unit` is the norm of a row that counts as one, before it is clipped. `has_constant` says
    whether there is an intercept, `has_weights` whether records have private weights.
    """

    n_samples: int
    n_columns: int
    n_classes: int
    unit: float
    in_scales: bool
    has_constant: bool = True
    has_weights: bool = False
    is_sparse: bool = False
    is_single: bool = False
    class_weights: tuple[float, ...] = (1.0, 1.0)
    features: Features | None = None

    @property
    def n_scaled(self) -> int:
        """Number of columns whose scales are released."""
        if not self.in_scales:
            return 0
        return self.n_columns if self.features is None else len(self.features.estimated)

    @property
    def kind(self) -> type:
        """The type in which rows are read."""
        return np.float32 if self.is_single else np.float64

    @property
    def n_final(self) -> int:
        """Number of columns of final rows."""
        return self.n_columns + self.has_constant

    def walk(self, total: float, mu: float, radius: float) -> Walk:
        """Return the walk before the first step."""
        return first_walk(self.n_final, self.n_classes, total, mu, radius)

    @property
    def block_rows(self) -> int:
        """How many rows are summed at a time."""
        if self.is_single:
            return single_block_size(self.n_samples, self.n_columns)
        return block_size(self.n_samples, self.n_columns, is_sparse=self.is_sparse)


@dataclass(frozen=True, slots=True, eq=False)
class PrivateRows:
    """The rows behind the door, and the function that computes slopes from their margins."""

    rows: Any
    slopes: Any
    weights: FloatArray | None


def linear_releases(shape: Shape, budget: Budget) -> tuple[list[Release[Any]], float]:
    """Return the releases of a linear fit within a Gaussian budget, and the mu of its steps."""
    moment_share = MOMENT_SHARE if shape.n_columns <= WIDEST else 0.0
    scales_share = SCALES_SHARE if shape.in_scales else 0.0
    shares = scales_share, moment_share, 1.0 - scales_share - moment_share
    scales, moment, steps = budget.parts(shares)
    releases: list[Release[Any]] = []
    if shape.in_scales:
        found = plan_column_scales(shape.n_samples, shape.n_scaled, scales).releases()
        if shape.features is not None:
            found = [_of_numbers(release, shape.features.estimated) for release in found]
        releases += found
        releases[-1] = replace(releases[-1], row_map=partial(first_rows, shape))
    if moment_share:
        releases.append(moment_release(shape, moment, steps.mu))
    return [*releases, *[step_release(shape, steps)] * N_STEPS], steps.mu


def _of_numbers(release: Release[Known], columns: NDArray[np.intp]) -> Release[Known]:
    """Return the release that asks about some columns of numbers."""

    def ask(rows: Any, known: Known) -> Any:
        return release.ask(estimated_numbers(rows, columns), known)

    return replace(release, ask=ask)


def first_rows(shape: Shape, known: Known, data: TrainingData) -> PrivateRows:
    """Return the rows in column scales, clipped to norm one, with the constant.

    They are divided by the norm that the constant gives the longest of them.
    """
    lengthened = LENGTHENED if shape.has_constant else 1.0
    constants = (CONSTANT / lengthened,) if shape.has_constant else ()
    X, unit = data.X, shape.unit * lengthened
    if shape.features is not None:
        data = shape.features.with_released(known.scales).of(data)
        X = data.X
    elif known.scales is not None:
        X = in_column_scales(X, known.scales, COLUMN_CLIP, shape.kind)
    if shape.is_single:
        rows = rows_over(clipped_float32_rows, X, unit, 1.0 / lengthened, constants)
    else:
        rows = rows_over(clipped_rows_over, X, unit, 1.0 / lengthened, constants, data.people)
    make = clipped_slopes if shape.n_classes == 2 else clipped_slopes_of_many
    weights = weights_of(relative_weights(shape.class_weights), data)
    slopes = rows.apply_to_classes(make, data.class_indices, weights)
    return PrivateRows(rows, slopes, data.weights)


def clipped_rows_over(
    X: Any, unit: float, longest: float, constants: tuple[float, ...], people: People | None
) -> Rows:
    """Return the rows ``x / unit`` in float64, scaled down to the norm `longest`; see `Rows`."""
    constant = constants[0] if constants else None
    scale = clip_scales(X, longest * unit) / unit
    return Rows(X, scale, constant, row_bound=1.0, people=people)


def final_rows(known: Known, private: PrivateRows) -> PrivateRows:
    """Return the centred, whitened and clipped rows, with the constant that is the same for all."""
    centring = known.released_centring
    how = centring.to_final, centring.longest, centring.constants
    return replace(private, rows=private.rows.clip_images(*how))


def moment_release(shape: Shape, budget: Budget, steps_mu: float) -> Release[Known]:
    """Return the release of the second moment.

    Notes
    -----
    **Guarantee.**

    - Adjacency: replace-one, of a record or of a person with all rows.
    - Released: the noisy second moment of rows of norm at most one.
    - Sensitivity: ``sqrt(2)`` in the Frobenius norm, and an allowance for rounding.
    - Proof: ``docs/proofs/engine.md``, section 2.
    """
    noise = moment_noise(
        shape.n_samples, shape.n_final, shape.block_rows, budget, is_single=shape.is_single
    )

    def ask(private: PrivateRows, known: Known) -> FloatArray:
        del known
        how = () if private.weights is None else (private.weights,)
        return packed(private.rows.gram(*how))

    def use(known: Known, answer: FloatArray) -> Known:
        total = math.nan if shape.has_weights else shape.n_samples
        centring, total = centring_of(answer, total, noise, has_constant=shape.has_constant)
        walk = shape.walk(total, steps_mu, centring.radius)
        return replace(known, centring=centring, walk=walk)

    return Release(noise.event, lambda known: noise, ask, use, final_rows)


def step_release(shape: Shape, budget: Budget) -> Release[Known]:
    """Return the release of one of the steps, which have the `budget` together.

    Notes
    -----
    **Guarantee.**

    - Adjacency: replace-one, of a record or of a person with all rows.
    - Released: the noisy sum of clipped slopes times final rows, at a released point.
    - Sensitivity: twice the clip, and an allowance for rounding.
    - Proof: ``docs/proofs/engine.md``, sections 4 and 5.
    """
    has_moment = shape.n_columns <= WIDEST
    stretch = largest_stretch(shape.n_columns) if has_moment else 1.0
    sensitivity = step_sensitivity(
        shape.n_samples, shape.n_final, shape.n_classes, shape.block_rows, stretch,
        is_single=shape.is_single,
    )  # fmt: skip
    noise = budget.equal_parts(N_STEPS).noise(sensitivity)

    def ask(private: PrivateRows, known: Known) -> FloatArray:
        point = known.released_walk.ahead
        if known.centring is None:
            return np.asarray(private.rows.fused_adjoint(point, private.slopes))
        to_final, size = known.centring.to_final, shape.n_columns
        query = np.concatenate([to_final.T @ point[:size], point[size:]])
        sums = private.rows.fused_adjoint(into_mapped_ball(query, point, stretch), private.slopes)
        kept = to_final.shape[1]
        return np.concatenate([to_final @ sums[:kept], sums[kept:]])

    def use(known: Known, answer: FloatArray) -> Known:
        return replace(known, walk=known.released_walk.after(answer))

    return Release(noise.event, lambda known: noise, ask, use)


@dataclass(frozen=True, slots=True, eq=False)
class LinearFit(FitPlan):
    """The releases of a linear fit, and what it states before they are charged."""

    shape: Shape
    budget: Budget
    steps_mu: float
    releases: list[Release[Any]]
    events: tuple[Event, ...]
    public: Mapping[str, Any]

    def with_class_weights(self, weights: FloatArray) -> LinearFit:
        """Weigh the classes by public or released numbers, for the same events."""
        shape = replace(self.shape, class_weights=tuple(weights.tolist()))
        return replace(self, shape=shape, releases=linear_releases(shape, self.budget)[0])

    @property
    def takes(self) -> frozenset[str]:
        """Sums over rows are all that is asked for, and a person's rows are averaged."""
        return frozenset({"chunks", "groups", "sample_weight"})

    @property
    def is_single(self) -> bool:
        """Whether rows are read in float32."""
        return self.shape.is_single

    def run(self, data: TrainingData, permit: Permit) -> Fitted:
        """Make the releases, and return the model that follows from them."""
        shape = self.shape
        known = Known(walk=shape.walk(shape.n_samples, self.steps_mu, 1.0 / CONSTANT))
        with single_blas_thread():
            rows = data if shape.in_scales else first_rows(shape, known, data)
            return model_of(shape, run(self.releases, rows, known, permit))


def plan_linear(facts: PublicFacts, budget: Budget, *, has_constant: bool) -> LinearFit:
    """Plan a linear fit within a Gaussian budget."""
    in_scales = not (facts.is_scale_stated or facts.is_sparse)
    shape = Shape(
        n_samples=facts.n_privacy_units,
        n_columns=facts.n_features,
        n_classes=facts.n_classes,
        unit=math.sqrt(facts.n_features) if in_scales else facts.data_norm,
        in_scales=in_scales,
        has_constant=has_constant,
        has_weights=facts.has_weights,
        is_sparse=facts.is_sparse,
        is_single=facts.copies_are_single if in_scales else facts.is_single,
        class_weights=facts.class_weights,
    )
    releases, steps_mu = linear_releases(shape, budget)
    public = {
        "solver": "noisy_gd",
        "data_norm": None if in_scales else facts.data_norm,
        "private_column_scales": in_scales,
        "private_second_moment": shape.n_columns <= WIDEST,
        **({"precision": "float32"} if shape.is_single else {}),
    }
    return LinearFit(shape, budget, steps_mu, releases, events_of(releases), public)


def plan_features(
    facts: PublicFacts,
    budget: Budget,
    features: Features,
    *,
    has_constant: bool,
    public: Mapping[str, Any],
) -> LinearFit:
    """Plan a linear fit of features of rows within a Gaussian budget; it states `public`, too."""
    shape = Shape(
        n_samples=facts.n_privacy_units,
        n_columns=features.n_columns,
        n_classes=facts.n_classes,
        unit=1.0,
        in_scales=len(features.estimated) > 0,
        has_constant=has_constant,
        has_weights=facts.has_weights,
        # The sums over the rows of people are in float64.
        is_single=not facts.has_people,
        class_weights=facts.class_weights,
        features=features,
    )
    releases, steps_mu = linear_releases(shape, budget)
    stated = {
        "solver": "noisy_gd",
        "private_second_moment": shape.n_columns <= WIDEST,
        **public,
    }
    return LinearFit(shape, budget, steps_mu, releases, events_of(releases), stated)


def model_of(shape: Shape, known: Known) -> Fitted:
    """Return the coefficients for columns in their scales: post-processing."""
    average, size = np.atleast_2d(known.released_walk.average.T), shape.n_columns
    intercepts, mapped = np.zeros(len(average)), average
    if known.centring is not None:
        mapped = average[:, :size] @ known.centring.to_final
        if shape.has_constant:
            intercepts += average[:, size] * known.centring.constants[0]
    lengthened, offsets = 1.0, np.zeros(len(average))
    if shape.has_constant:
        lengthened = LENGTHENED
        offsets = mapped[:, size] * (CONSTANT / LENGTHENED)
        intercepts += offsets
    length = max(float(np.linalg.norm(average)), 1.0)
    attributes: dict[str, Any] = {"margin_": 1.0 / length, "projection_": None}
    scales, features, norm = known.scales, shape.features, math.inf
    if features is not None:
        scales, norm = features.with_released(scales).scales, features.unit
        clips = features.clips_rows and known.centring is not None
        attributes = {
            "margin_": 1.0 / length,
            "feature_map_": features.feature_map,
            "n_components_": shape.n_columns,
            "row_clip_": known.released_centring.row_clip(offsets) if clips else None,
        }
    return Fitted(
        mapped[:, :size] / (lengthened * shape.unit),
        intercepts,
        norm,
        attributes=attributes,
        scales=scales,
    )


def relative_weights(class_weights: tuple[float, ...]) -> FloatArray:
    """Return the weights of the classes, the largest one being 1."""
    weights = np.array(class_weights)
    return np.asarray(weights / weights.max())
