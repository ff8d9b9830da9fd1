"""The list of releases of a linear fit, and the model that follows from them.

1. Centre and width of every column, unless the scale of rows is stated: three releases.
2. The typical length of the rows, which then counts as one.
3. The second moment of the rows with a constant: the rows are centred, whitened and clipped.
4. Noisy steps of logistic regression on the rows of 3.

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
from scipy import sparse

from dp_halfspace._rounding import UP
from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.data.chunks import apply_to_chunks, sum_over_chunks
from dp_halfspace.data.people import People
from dp_halfspace.data.record_weights import weights_of
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine.features import Features, estimated_numbers, scales_pay
from dp_halfspace.engine.moment import (
    CONSTANT,
    DIRECTIONS,
    LARGEST_STRETCH,
    LONGER,
    WIDEST,
    centring_of,
    moment_noise,
    packed,
)
from dp_halfspace.engine.noise_of_steps import (
    recalibrated,
    rescaled,
    standard_errors,
    step_errors,
)
from dp_halfspace.engine.plan import FitPlan, Fitted, PublicFacts, refuse_projected_rows
from dp_halfspace.engine.release import Release, described, released, run
from dp_halfspace.engine.scales import (
    CLIP,
    SHARE,
    ColumnScalesPlan,
    affordable_scales,
    in_column_scales,
    plan_column_scales,
)
from dp_halfspace.engine.steps import (
    N_AVERAGED,
    N_STEPS,
    Known,
    SlopedRows,
    Walk,
    clipped_slopes,
    clipped_slopes_of_many,
    first_walk,
    into_mapped_ball,
    step_sensitivity,
)
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.door import Door
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.mechanisms import AdditiveNoise, noise_deviation
from dp_halfspace.projection.linear import LinearMap
from dp_halfspace.rows.blocks import (
    FloatArray,
    block_size,
    canonical_csr,
    clip_scales,
    sums_of_squares,
)
from dp_halfspace.rows.chunked_rows import rows_over
from dp_halfspace.rows.float32_rows import clipped_float32_rows, single_block_size
from dp_halfspace.rows.rows import Rows

# Share of mu^2 that few numbers take of what is left: the counts of the classes together, if these
# are to be balanced, and then the length of rows.
NUMBER_SHARE = 0.02
# A squared length is counted in so many steps, a power of two, so that sums are exact.
_SQUARE_STEPS = 2**16
# Share of mu^2 that the second moment takes of what is left then; the steps take the rest.
MOMENT_SHARE = 0.18
# Constant column of rows without a second moment: the longer it is, the shorter have steps to be.
_WIDE_CONSTANT = 0.35
# Largest absolute value of a column in its released scale: a longer tail would shorten its row.
COLUMN_CLIP = 1.5


@dataclass(frozen=True, slots=True)
class Shape:
    """The public numbers that the releases of a fit depend on.

    The rows are those of a table with these `facts`: as they were handed in, in their released
    column `scales`, projected by a public `linear_map`, or their `features`. `constant` is the
    factor of the constant column, 0 without an intercept. The last `n_averaged` points of the steps
    are averaged. With `is_single`, rows are read in float32.
    """

    facts: PublicFacts
    constant: float = 1.0
    scales: ColumnScalesPlan | None = None
    linear_map: LinearMap | None = None
    features: Features | None = None
    is_single: bool = False
    n_averaged: int = N_AVERAGED

    def __post_init__(self) -> None:
        if self.linear_map is not None:
            refuse_projected_rows(self.facts.n_privacy_units, self.linear_map.n_components)

    @property
    def n_columns(self) -> int:
        """Number of columns of rows before their constant."""
        if self.features is not None:
            return self.features.n_columns
        linear_map = self.linear_map
        return self.facts.n_features if linear_map is None else linear_map.n_components

    @property
    def unit(self) -> float:
        """Norm of a row that counts as one, before it is clipped."""
        if self.features is not None:
            return 1.0
        return self.facts.data_norm if self.scales is None else math.sqrt(self.facts.n_features)

    @property
    def kind(self) -> type:
        """The type in which rows are read."""
        return np.float32 if self.is_single else np.float64

    @property
    def n_final(self) -> int:
        """Number of columns of final rows."""
        return self.n_columns + (self.constant > 0.0)

    @property
    def has_moment(self) -> bool:
        """Whether a second moment is released."""
        return self.n_columns <= WIDEST

    @property
    def first_constant(self) -> float:
        """The constant of first rows, which are the rows of the steps if there is no moment."""
        if not self.constant:
            return 0.0
        return CONSTANT if self.has_moment else _WIDE_CONSTANT * self.constant

    def walk(self, known: Known, mu: float) -> Walk:
        """Return the walk so far, or that before the first step, all steps having `mu` together."""
        if known.walk is not None:
            return known.walk
        length = math.hypot(1.0 / _WIDE_CONSTANT, 1.0)
        if known.centring is not None:
            length = known.centring.length
        flat = length / max(1.0, self.constant)
        walk = first_walk(self.n_final, self.facts.n_classes, known.total, mu, flat)
        return replace(walk, n_averaged=self.n_averaged)

    @property
    def block_rows(self) -> int:
        """How many rows are summed at a time."""
        sizes = self.facts.n_privacy_units, self.n_columns
        if self.is_single:
            return single_block_size(*sizes)
        is_changed = self.linear_map is not None or self.features is not None
        return block_size(*sizes, is_sparse=self.facts.is_sparse and not is_changed)


def _of_numbers(release: Release[Known], columns: NDArray[np.intp]) -> Release[Known]:
    """Return the release that asks about some columns of numbers."""

    def ask(known: Known, rows: Any) -> Any:
        return release.ask(known, estimated_numbers(rows, columns))

    return replace(release, ask=ask)


def scaled_rows(shape: Shape, known: Known, data: TrainingData) -> TrainingData:
    """Return the rows in their released column scales."""
    X = in_column_scales(data.X, released(known.scales), COLUMN_CLIP, shape.kind)
    return replace(data, X=X)


def first_rows(shape: Shape, known: Known, data: TrainingData) -> SlopedRows:
    """Return rows in column scales, clipped to the norm that counts as one, with the constant.

    They are divided by the norm that the constant gives the longest of them.
    """
    if shape.features is not None:
        data = shape.features.with_released(known.scales).of(data)
    rows = first_rows_of(shape, known.length, data)
    make = clipped_slopes if shape.facts.n_classes == 2 else clipped_slopes_of_many
    weights = weights_of(known.class_weights, data)
    slopes = rows.apply_to_classes(make, data.class_indices, weights)
    return SlopedRows(rows, slopes, data.weights)


def first_rows_of(shape: Shape, length: float, data: TrainingData) -> Any:
    """Return rows clipped to the norm `length` that counts as one, with the constant."""
    constant = shape.first_constant
    lengthened = math.hypot(1.0, constant)
    constants = (constant / lengthened,) if constant else ()
    unit = shape.unit * length * lengthened
    if shape.is_single:
        return rows_over(clipped_float32_rows, data.X, unit, 1.0 / lengthened, constants)
    how = 1.0 / lengthened, constants, data.people
    return rows_over(clipped_rows_over, data.X, unit, *how)


def clipped_rows_over(
    X: Any, unit: float, longest: float, constants: tuple[float, ...], people: People | None
) -> Rows:
    """Return the rows ``x / unit`` in float64, scaled down to the norm `longest`; see `Rows`."""
    constant = constants[0] if constants else None
    scale = clip_scales(X, longest * unit) / unit
    return Rows(X, scale, constant, row_bound=1.0, people=people)


def final_rows(known: Known, private: SlopedRows) -> SlopedRows:
    """Return the centred, whitened and clipped rows, with the constant that is the same for all."""
    centring = released(known.centring)
    how = centring.to_final, centring.longest, centring.constants
    return replace(private, X=private.X.clip_images(*how))


def length_release(shape: Shape, budget: Budget) -> Release[Known]:
    """Return the release of the mean squared length of the rows.

    Notes
    -----
    **Guarantee.**

    - Adjacency: replace-one, of a record or of a person with all rows.
    - Released: the noisy sum of squared lengths, each relative to the public norm and at most one.
    - Sensitivity: 1; the sum is exact.
    - Proof: ``docs/proofs/engine.md``, section 2.
    """
    noise = length_noise(budget)

    def ask(known: Known, data: TrainingData) -> FloatArray:
        return np.array([sum_of_squares(data, shape.unit)])

    def use(known: Known, answer: FloatArray) -> Known:
        length = length_of(float(answer[0]), shape.facts.n_privacy_units, noise)
        return replace(known, length=length)

    return Release("typical length of the rows", noise.event, lambda known: noise, ask, use)


def length_noise(budget: Budget) -> AdditiveNoise:
    """Return the noise of the sum of squared lengths, which a record moves by one at most."""
    return budget.noise(UP)


def length_of(answer: float, n_samples: int, noise: AdditiveNoise) -> float:
    """Return the norm that counts as one, as a share of the public norm of a row.

    What the noise may hide is counted as length: rows that are too short are read less well, but
    rows that are too long are clipped.
    """
    square = (answer + noise_deviation(noise)) / n_samples
    return min(LONGER * math.sqrt(max(square, 1.0 / _SQUARE_STEPS)), 1.0)


def sum_of_squares(data: TrainingData, unit: float) -> float:
    """Return the sum over records of the squared norm over that of `unit`, at most one for each.

    Each is rounded down to a multiple of a power of two, so that the sum is exact in any order. A
    person counts with the mean over its rows.
    """
    people = data.people
    if people is None:
        return float(sum_over_chunks(_total_square, data.X, unit)) / _SQUARE_STEPS
    squares = people.row_by_row(lambda index: _squares(data.X[index], unit))
    return float(squares @ people.weights_for(_SQUARE_STEPS)) / _SQUARE_STEPS


def _total_square(X: Any, unit: float) -> int:
    return int(_squares(X, unit).sum())


def _squares(X: Any, unit: float) -> NDArray[np.int64]:
    """Return the squared norm of each row over `unit`, at most one, in steps."""
    rows = canonical_csr(X) if sparse.issparse(X) else X
    squares = np.minimum(sums_of_squares(rows) / unit**2, 1.0)
    return (squares * _SQUARE_STEPS).astype(np.int64)


def moment_release(shape: Shape, budget: Budget) -> Release[Known]:
    """Return the release of the second moment, from which the map to centred rows follows.

    Notes
    -----
    **Guarantee.**

    - Adjacency: replace-one, of a record or of a person with all rows.
    - Released: the noisy second moment of rows of norm at most one.
    - Sensitivity: ``sqrt(2)`` in the Frobenius norm, and an allowance for rounding.
    - Proof: ``docs/proofs/engine.md``, section 2.
    """
    sizes = shape.facts.n_privacy_units, shape.block_rows
    noise = moment_noise(*sizes, budget, is_single=shape.is_single)

    def ask(known: Known, private: SlopedRows) -> FloatArray:
        how = () if private.weights is None else (private.weights,)
        return packed(private.X.gram(*how))

    def use(known: Known, answer: FloatArray) -> Known:
        # Without a constant, the moment does not contain the sum of the weights.
        total = math.nan if shape.facts.has_weights and shape.constant else sizes[0]
        distinguished = DIRECTIONS if shape.features is None else shape.features.n_directions
        how = {"constant": shape.constant, "n_directions": distinguished}
        centring, total = centring_of(answer, total, noise, **how)
        return replace(known, centring=centring, total=total)

    return Release("second moment of the columns", noise.event, lambda known: noise, ask, use)


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
    stretch = LARGEST_STRETCH if shape.has_moment else 1.0
    sizes = shape.facts.n_privacy_units, shape.n_final, shape.facts.n_classes, shape.block_rows
    sensitivity = step_sensitivity(*sizes, stretch, is_single=shape.is_single)
    noise = budget.equal_parts(N_STEPS).noise(sensitivity)

    def ask(known: Known, private: SlopedRows) -> FloatArray:
        point = shape.walk(known, budget.mu).ahead
        if known.centring is None:
            return np.asarray(private.X.fused_adjoint(point, private.slopes))
        to_final, size = known.centring.to_final, shape.n_columns
        query = np.concatenate([to_final.T @ point[:size], point[size:]])
        sums = private.X.fused_adjoint(into_mapped_ball(query, point, stretch), private.slopes)
        kept = to_final.shape[1]
        return np.concatenate([to_final @ sums[:kept], sums[kept:]])

    def use(known: Known, answer: FloatArray) -> Known:
        return replace(known, walk=shape.walk(known, budget.mu).after(answer))

    return Release("step", noise.event, lambda known: noise, ask, use)


@dataclass(frozen=True, slots=True, eq=False)
class LinearFit(FitPlan):
    """The releases of a linear fit, and what it states before they are charged."""

    shape: Shape
    releases: list[Release[Any]]
    events: tuple[Event, ...]
    asks: tuple[str, ...]
    public: Mapping[str, Any]

    @property
    def takes(self) -> frozenset[str]:
        """Sums over rows are all that is asked for, and a person's rows are averaged.

        It is not proved that a person counts like a record after a projection.
        """
        takes = {"sample_weight"}
        return frozenset(takes if self.shape.linear_map else takes | {"chunks", "groups"})

    @property
    def known(self) -> Known:
        """What is known before the first release."""
        facts = self.shape.facts
        return Known(class_weights=facts.relative_weights, total=facts.n_privacy_units)

    def with_class_weights(self, weights: FloatArray) -> LinearFit:
        """Weigh the classes by released numbers in [0, 1], for the same events."""
        facts = self.shape.facts.with_class_weights(weights)
        return replace(self, shape=replace(self.shape, facts=facts))

    def run(self, door: Door) -> Fitted:
        """Make the releases, and return the model that follows from them."""
        shape, known = self.shape, self.known
        with single_blas_thread():
            # Features of columns in scales show what is missing.
            shows_missing = shape.features is not None and shape.features.scales is not None
            if shape.scales is None and not shows_missing:
                door = door.map(without_missing)
            if shape.linear_map is not None:
                door = door.map(partial(mapped, shape.linear_map))
            if shape.features is not None and not shape.scales:
                door = door.map(partial(first_rows, shape, known))
            known, _ = run(self.releases, door, known)
        return model_of(shape, known)


def plan_linear(
    facts: PublicFacts,
    budget: Budget,
    *,
    constant: float = 1.0,
    n_averaged: int = N_AVERAGED,
    linear_map: LinearMap | None = None,
) -> LinearFit:
    """Plan a linear fit within a Gaussian budget.

    `constant` is the factor of the constant column, 0 without an intercept; the last `n_averaged`
    points of the steps are averaged. Rows that a public `linear_map` projects have a stated scale.
    """
    sizes = facts.n_privacy_units, facts.n_features
    can_scale = not facts.is_sparse and linear_map is None and facts.n_features <= WIDEST
    paid = None
    if can_scale and (not facts.is_scale_stated or scales_pay(*sizes, budget.mu)):
        paid = affordable_scales(*sizes, budget)
    scales, rest = paid or (None, budget)
    is_single = linear_map is None and (facts.copies_are_single if scales else facts.is_single)
    shape = Shape(facts, constant, scales, linear_map, is_single=is_single, n_averaged=n_averaged)
    public = {
        "data_norm": None if scales else facts.data_norm,
        "private_column_scales": scales is not None,
    }
    return _plan_releases(shape, rest, public)


def _plan_releases(shape: Shape, budget: Budget, public: Mapping[str, Any]) -> LinearFit:
    """Plan the releases of a fit within a Gaussian budget; it states `public`, too.

    The budget has been lowered by that of the scales. Features of rows have a known length.
    """
    releases: list[Release[Any]] = [] if shape.scales is None else shape.scales.releases()
    if shape.features is not None:
        releases = [_of_numbers(release, shape.features.estimated) for release in releases]
    if releases:
        # The scales are those of the rows as they were handed in.
        row_map = scaled_rows if shape.features is None else first_rows
        releases[-1] = replace(releases[-1], row_map=partial(row_map, shape))
    if shape.features is None:
        part, budget = budget.split(NUMBER_SHARE)
        length = length_release(shape, part)
        releases.append(replace(length, row_map=partial(first_rows, shape)))
    if shape.has_moment:
        part, budget = budget.split(MOMENT_SHARE)
        releases.append(replace(moment_release(shape, part), row_map=final_rows))
    releases += [step_release(shape, budget)] * N_STEPS
    stated = {
        "solver": "noisy_gd",
        **public,
        "private_second_moment": shape.has_moment,
        **({"precision": "float32"} if shape.is_single else {}),
    }
    return LinearFit(shape, releases, *described(releases), stated)


def mapped(linear_map: LinearMap, data: TrainingData) -> TrainingData:
    """Return rows that a public map projects."""
    return replace(data, X=linear_map.apply(data.X))


def without_missing(data: TrainingData) -> TrainingData:
    """Return rows with zeros instead of missing entries; sparse rows have none."""
    if sparse.issparse(data.X):
        return data
    return replace(data, X=apply_to_chunks(np.nan_to_num, data.X))


def plan_features(
    facts: PublicFacts,
    budget: Budget,
    features: Features,
    *,
    constant: float = 1.0,
    public: Mapping[str, Any],
) -> LinearFit:
    """Plan a linear fit of features of rows within a Gaussian budget; it states `public`, too.

    `constant` is the factor of the constant column, 0 without an intercept.
    """
    scales, rest = None, budget
    if len(features.estimated):
        part, rest = budget.split(SHARE)
        scales = plan_column_scales(facts.n_privacy_units, len(features.estimated), part)
    # The sums over the rows of people are in float64.
    is_single = not facts.has_people
    shape = Shape(facts, constant, scales, features=features, is_single=is_single)
    return _plan_releases(shape, rest, public)


def in_columns(shape: Shape, known: Known, found: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return coefficients and intercepts for columns in their scales, of those of final rows.

    The `known` map of the rows is undone: post-processing.
    """
    size, intercepts = shape.n_columns, np.zeros(len(found))
    mapped = found
    if known.centring is not None:
        mapped = found[:, :size] @ known.centring.to_final
        if shape.constant:
            intercepts += found[:, size] * known.centring.constants[0]
    lengthened = math.hypot(1.0, shape.first_constant)
    if shape.constant:
        intercepts += mapped[:, size] * (shape.first_constant / lengthened)
    return mapped[:, :size] / (lengthened * (shape.unit * known.length)), intercepts


def model_of(shape: Shape, known: Known) -> Fitted:
    """Return the coefficients for columns in their scales: post-processing."""
    linear_map, features = shape.linear_map, shape.features
    is_binary = shape.facts.n_classes == 2
    if known.centring is not None:
        if shape.constant:
            known = recalibrated(known) if is_binary else rescaled(known)
        if is_binary and features is not None and features.n_joint:
            known = with_shrunk_joint(shape, known, features.n_joint)
    average = np.atleast_2d(released(known.walk).average.T)
    coefficients, intercepts = in_columns(shape, known, average)
    margin = 1.0 / max(float(np.linalg.norm(average)), 1.0)
    if features is not None:
        clips = features.clips_rows and known.centring is not None
        axes, along = noise_of_features(shape, known)
        return Fitted(
            coefficients,
            intercepts,
            features.unit,
            attributes={
                # Half the size, and digits enough for standard errors.
                "coef_axes_": axes.astype(np.float32),
                "coef_axis_std_error_": along,
                "margin_": margin,
                "feature_map_": features.feature_map,
                "n_components_": features.n_columns,
                "row_clip_": released(known.centring).feature_clip() if clips else None,
            },
            scales=features.with_released(known.scales).scales,
            clip=CLIP,
        )
    if linear_map is not None:
        coefficients = linear_map.pull_back(coefficients)
    errors, intercept_errors = errors_of(shape, known)
    clips = known.scales is not None and known.centring is not None
    return Fitted(
        coefficients,
        intercepts,
        shape.unit if known.scales is None else math.inf,
        attributes={
            "coef_std_error_": errors,
            "intercept_std_error_": intercept_errors,
            "margin_": margin,
            "projection_": linear_map,
        },
        scales=known.scales,
        clip=COLUMN_CLIP,
        row_clip=released(known.centring).row_clip(shape.unit * known.length) if clips else None,
    )


def errors_of(shape: Shape, known: Known) -> tuple[FloatArray, FloatArray]:
    """Return the standard errors of coefficients and intercepts: post-processing."""
    walk, linear_map, unit = released(known.walk), shape.linear_map, shape.unit * known.length
    if known.centring is not None:
        of_scales = 0.0, 0.0
        if shape.scales is not None:
            center, width = shape.scales.errors(shape.n_columns)
            of_scales = center / unit, width
        along, widths, intercepts = standard_errors(known, of_scales)
        directions = known.centring.directions.T
        if linear_map is not None:
            # Rows have a stated scale then.
            directions, widths = linear_map.pull_back(directions), np.zeros(1)
        squares = np.square(along) @ np.square(directions) + np.square(widths)
        return np.sqrt(squares) / unit, intercepts
    # Nothing is known of the curvature. Without any, the noise is largest. The columns of a
    # projection have norm one.
    n_scores, n_columns = len(np.atleast_2d(walk.point.T)), shape.n_columns
    if linear_map is not None:
        n_columns = linear_map.n_features_in
    constant = shape.first_constant
    largest = float(walk.errors_along(np.zeros(1))[0][0]) / math.hypot(1.0, constant)
    coefficients = np.full((n_scores, n_columns), largest / unit)
    return coefficients, np.full(n_scores, largest * constant)


def with_shrunk_joint(shape: Shape, known: Known, n_joint: int) -> Known:
    """Return what is known, the coefficients of joint features, which come last, shrunk to zero.

    The factor is the positive part of that of James and Stein, the share of their sum of squares
    that neither the noise of the steps nor that of the sample explains: where columns do not act
    jointly, these features would only carry noise.
    """
    walk, centring = released(known.walk), released(known.centring)
    joint = slice(shape.n_columns - n_joint, shape.n_columns)
    shared = replace(known, centring=centring.with_shared_trace())
    variances = np.square(step_errors(shared)).sum(axis=(0, 1))[:-1]
    by_noise = float((np.square(centring.directions[joint]) @ variances).sum())
    found = float(np.square(walk.average[joint]).sum())
    total = walk.total.copy()
    total[joint] *= 1.0 - by_noise / found if found > by_noise else 0.0
    return replace(known, walk=replace(walk, total=total))


def noise_of_features(shape: Shape, known: Known) -> tuple[FloatArray, FloatArray]:
    """Return orthonormal axes of the features, and standard errors of coefficients along them.

    Only the noise of the steps is counted, not that of the column scales. Directions that the noise
    hides share the variance that the others leave of the trace: some of them are of features that
    are always zero, and of no effect.
    """
    centring = known.centring
    if centring is None:
        return np.eye(shape.n_columns), errors_of(shape, known)[0]
    shared = replace(known, centring=centring.with_shared_trace())
    return centring.directions, standard_errors(shared)[0] / (shape.unit * known.length)
