"""Every constant of the training algorithms, in one place.

All are functions of public numbers. ``docs/defaults.md`` lists each and names the page with the
measurements behind it. Budgets `mu` are Gaussian signal to noise ratios; columns include the
constant one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dp_halfspace.algorithms.engine.class_counts import Rarity
from dp_halfspace.algorithms.engine.plan import FloatArray

# Below this n epsilon a search among directions is more accurate than a perturbed objective.
DIRECTIONS_PAY = 1500.0
# Below this n epsilon a selection from listed classifiers is more accurate than linear steps in
# estimated column scales.
SMALL = 900.0
# A selection from listed classifiers has at most this many classes.
MOST_CLASSES = 7
# The same limits of n epsilon in comparison with steps in stated scales, which spend nothing on
# scales, and with steps on features: for two classes, and for more.
SMALL_OF_TWO_IN_SCALE = 600.0
SMALL_IN_SCALE = 300.0
# Below this n epsilon a fit is a selection if there are two classes and a public model is listed.
SMALL_WITH_PRIOR = 3000.0
# From this n epsilon on, over the number of classes, two selections in sequence are more accurate.
STAGES_PAY = 1000.0
# Rows of more columns have no preconditioner: the noise of its release would cost more than it
# gains.
WIDE = 512
# Upper limit on the step size times the number of records: with little noise the curvature of the
# loss limits the steps.
MAX_STRIDE = 2000.0
# Share of mu^2, or of epsilon, for the preconditioner.
PRECONDITIONER_SHARE = 0.2
# Number of directions that the preconditioner may distinguish.
EFFECTIVE_DIMENSION = 20.0
# For features and two classes the preconditioner may distinguish one direction for this many
# records of the rarer class, times mu.
_RECORDS_PER_DIRECTION = 85.0
# For features and two classes it distinguishes at most this many directions.
_MOST_DIRECTIONS = 100.0
# The path has its planned length if the signal of the first step exceeds the square root of (path
# length times average curvature times number of coefficients, over this number); otherwise it is
# shorter.
PATH_OF_SIGNAL = 75.0
# Shortest path, relative to the planned length.
SHORTEST_PATH = 0.2
# If a path is shorter, and the logarithm of the ratio of the class sizes is at least this number,
# the whole shift of the score is applied.
UNLIKE = 0.4
# Number of columns with features for each direction of the preconditioner, beyond the first, at
# which coefficients of columns lag behind the intercept as far as they may.
_LAGGING = 2.0
# Fewest and most features of a kernel.
_FEWEST = 64
_MOST = 600
# Most features of a kernel, constant included, that have a preconditioner.
_MAX_COLUMNS = 2049
# Number of features of one column; with many records there are twice as many.
FEW_TERMS = 4
# If the number of records of the rarer class, times mu, is well below this one, the rarity of the
# class undoes this lengthening.
_LENGTHENED = 30.0
# Length scales relative to the public scale of a row: one coarse scale, and a range of fine ones.
_COARSE = 0.7
_FINE = (0.04, 0.35)
# For two classes the share of fine length scales is this number over the number of records.
_FINE_RECORDS = 2000.0
# Largest share of fine length scales.
_LARGEST_FINE_SHARE = 0.5
# Rankings: number of records of the rarer class, times mu, at which the preconditioner has the
# power 1/2.
_RESOLVED = 10.0
# Rankings: the weight of the majority class is computed as if this many of its records, times the
# root of the number of columns over mu, belonged to the rarer class.
_RECOUNTED = 8.0
# Number of records, and number of records times mu, from which on half of the steps read half of
# the rows, if features are computed again at every pass.
_HALVED_ROWS = 2**19
_HALVED_SIGNAL = 2e5
# Rankings: share of the records up to which a class is rare.
_EVEN = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Settings of noisy gradient steps.

    `margin_offset` is the margin at which the logistic loss has half of its largest slope. `clip`
    bounds the norm of a record's slope. `path_length` is the sum of the lengths of all steps if
    every record had the largest slope in one direction, in units that follow from the noise; the
    norm of the result is of this order (``docs/proofs/noisy_gradient.md``). The iterates of the
    last `tail_fraction` of the steps are averaged; `momentum` is that of Nesterov's method.
    `smoothness`, the Lipschitz constant of the slopes, enters the allowance for rounding errors
    only. From the average, one more step along the mean of the gradients of these steps is
    `last_step` times as long as the path. `rare_step_factor` multiplies the steps if a class is
    very rare. `n_curved` is the number of columns that have features of their own.
    """

    margin_offset: float
    clip: float
    n_steps: int
    path_length: float
    tail_fraction: float
    momentum: float = 0.8
    smoothness: float = 0.5
    max_stride: float = MAX_STRIDE
    last_step: float = 0.0
    rare_step_factor: float = 1.0
    n_curved: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineDefaults(Steps):
    """Settings of the engine for one shape of the data and one budget.

    `constant_column` is the value of the constant column, for rows divided by their public scale.
    `preconditioner_share` is the share of mu^2 for the preconditioner. The last five are arguments
    of :func:`~dp_halfspace.algorithms.engine.preconditioner.plan_preconditioner`.
    """

    constant_column: float
    preconditioner_share: float = PRECONDITIONER_SHARE
    preconditioner_columns: int = WIDE
    effective_dimension: float = EFFECTIVE_DIMENSION
    lead: int | None = None
    stretch: float = 1.0
    behind: float = 0.0


def engine_defaults(n_samples: int, n_columns: int, n_classes: int, mu: float) -> EngineDefaults:
    """Return the settings of the engine for public sizes and a budget."""
    wide = n_columns > WIDE
    share = 0.0 if wide else PRECONDITIONER_SHARE
    if n_classes > 2:
        return EngineDefaults(
            constant_column=0.1 if wide else 0.2,
            preconditioner_share=share,
            margin_offset=3.0,
            clip=1.0,
            n_steps=20 if wide else 30,
            path_length=1.0 if wide else 4.25 / n_classes**0.25,
            tail_fraction=0.1 if wide else 0.35,
        )
    strength = _strength(n_samples, n_columns, mu)
    path_length = min(max(1.6 * strength**0.25, 1.8), 3.0)
    # With less noise the iterate can come closer to the optimum, which takes more steps.
    steps = round(min(max(80.0 * mu, 20), 60))
    return EngineDefaults(
        constant_column=_wide_constant_column(strength) if wide else 0.2,
        preconditioner_share=share,
        margin_offset=4.0 if wide else 2.0,
        clip=0.5 if wide else 0.7,
        n_steps=steps + 4 if wide else steps,
        path_length=min(4.0 * strength**0.6, 3.8) if wide else path_length,
        tail_fraction=0.3 if wide else 0.5,
    )


def _strength(n_samples: int, n_columns: int, mu: float) -> float:
    """Return the ratio of curvature to noise in each direction, for at most 1000 directions."""
    return max(n_samples / min(n_columns, 1000) * mu / 2.0, 1e-12)


def _wide_constant_column(strength: float) -> float:
    """Return the value of the constant column for rows of more than `WIDE` columns."""
    return min(max(0.06 / math.sqrt(strength), 0.1), 0.5)


# The following constants are for classification with a rare class. "Signal" is the number of
# records of the rarer class, times mu.
#
# Signal at which the preconditioner has the power 1/2.
_MAPPED = 5.0
# Signal at which steps are half as long.
_HALF_STEP_OF_RARE = 20.0
# Signal at which half of the adjustments for few records remain.
_FADED = 200.0
# With a strong signal this part of the steps, the last ones, has no class weights, for two classes
# and for more; with a weaker one, less.
_UNWEIGHTED = 0.5
_UNWEIGHTED_OF_MANY = 0.7
# Signal at which half of that part of the steps has none, and the step after the average is half as
# long.
_PHASED = 50.0
# With few records of the rarer of two classes, length of the step after the average relative to the
# path, with and without features.
_LAST_STEP_OF_RARE = 0.25
# Offset of the released intercept, relative to that of the last steps, with many records of the
# rarer of two classes, where the scores exceed the noise; and with few of a very rare one.
_LEAST_OFFSET = 0.7
_LARGEST_OFFSET = 2.0
# Signal at which that offset is half way between the two.
_SETTLED = 65.0
# Power of the ratio of the class sizes in the weight of the majority class, with many records.
_LEAST_POWER = 0.3
# Number that is added to the margin offset with few records of the rarer class.
_FURTHER = 2.0
# Factor of the constant column with few records of the rarer class.
_LONGER = 4.0
# From this mu on the noise is too small to keep a model from overfitting few records: steps are
# shorter.
_NOISELESS = 0.5
# At this mu above `_NOISELESS`, steps are shorter by the factor sqrt(2).
_CLEARER = 0.6
# Smallest factor by which such steps are shorter. Without noise, it is the factor of the rarest
# classes.
_SHORTEST = 0.3
# Number of records of the rarer class at which half of this shortening remains.
_MANY_RECORDS = 400.0
# A larger share of the rarer classes counts as this one in the offset of the scores.
_EVEN_SHARE = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class RaritySettings:
    """Settings of noisy steps for a rare class: public or released numbers.

    Steps are `step_factor` times as long, the preconditioner has the power `map_power`, and the
    constant column is `constant` times as large. `score_offset` is added to the score of the common
    class before slopes are computed. The first `weighted_part` of the steps uses the class
    `weights` and the part `weighted_offset_part` of this offset; the other steps use `last_weights`
    and the whole offset. The step after the average is `last_step` times as long as the path. At
    the end `intercept_offset` is added to the intercept.
    """

    margin_offset: float
    constant: float
    step_factor: float
    map_power: float
    weights: FloatArray
    last_weights: FloatArray
    score_offset: float
    intercept_offset: float
    weighted_offset_part: float
    weighted_part: float
    last_step: float


def rarity_settings(
    rarity: Rarity, weights: FloatArray, steps: Steps, recounted_share: float = 0.0
) -> RaritySettings:
    """Return the settings of steps for released counts and public class weights of at most one.

    The weight of the common class is a power of the ratio of the class sizes, as if
    `recounted_share` of all records belonged to the smaller class in addition.
    """
    degree, records, share = rarity.degree, rarity.records, rarity.share
    fade = 1.0 / (1.0 + (records / _FADED) ** 2)
    power = _LEAST_POWER + (1.0 - _LEAST_POWER) * fade
    offset = steps.margin_offset + _FURTHER * degree * fade
    mapped = 1.0 / (1.0 + (_MAPPED / records) ** 2)
    even = min(share + recounted_share, 0.5)
    weighed = weights.copy()
    weighed[rarity.common] *= (even / (1.0 - even)) ** (power * degree)
    rare = min(share, _EVEN_SHARE)
    odds = min(steps.clip, 1.0) * rare / (1.0 - rare)
    score_offset = degree * (offset - math.log(odds / (1.0 - odds)))
    # If a class is hardly rare, its scores may separate it although there are few records.
    further = (_LARGEST_OFFSET - _LEAST_OFFSET) * degree / (1.0 + (records / _SETTLED) ** 2)
    last_offset, unweighted, last_step = _LEAST_OFFSET + further, _UNWEIGHTED, _LAST_STEP_OF_RARE
    if rarity.is_of_many:
        last_offset = 1.0 + (_LARGEST_OFFSET - 1.0) / (1.0 + (records / _PHASED) ** 2)
        unweighted, last_step = _UNWEIGHTED_OF_MANY, steps.last_step
    return RaritySettings(
        margin_offset=offset,
        constant=_LONGER ** (degree * fade * mapped),
        step_factor=(1.0 + (_HALF_STEP_OF_RARE / records) ** 2) ** -degree
        * _step_factor_without_noise(rarity)
        * steps.rare_step_factor ** (degree ** (1.0 / (1.0 + (_LENGTHENED / records) ** 4))),
        map_power=mapped**degree,
        weights=weighed / weighed.max(),
        last_weights=weights,
        score_offset=score_offset,
        intercept_offset=last_offset * score_offset,
        weighted_offset_part=1.0 - power,
        weighted_part=1.0 - unweighted / (1.0 + (_PHASED / records) ** 2),
        last_step=(1.0 - degree) * steps.last_step
        + degree * last_step / (1.0 + (records / _PHASED) ** 4),
    )


def _step_factor_without_noise(rarity: Rarity) -> float:
    """Return a factor of the step size, in (0, 1], for noise too small to prevent overfitting."""
    if math.isinf(rarity.mu):
        return float(_SHORTEST**rarity.degree)
    clear = max(rarity.mu - _NOISELESS, 0.0) / _CLEARER
    few = 1.0 / (1.0 + (rarity.records / rarity.mu / _MANY_RECORDS) ** 2)
    return float(max(_SHORTEST, (1.0 + clear**2) ** (-0.5 * rarity.degree * few)))


def n_kernel_components(n_samples: int, mu: float) -> int:
    """Return the number of features that the noise leaves room for, an even number.

    That is ``n_samples mu``, within [64, 600]; `mu` may be infinite.
    """
    return 2 * round(min(max(n_samples * mu, _FEWEST), _MOST) / 2.0)


def length_scales(
    kernel: str, n_samples: int, n_features: int, n_classes: int, size: int
) -> FloatArray:
    """Return `size` length scales of the automatic kernel, relative to the scale of a row.

    Coarse scales come first. The fewer records there are, the larger is the share of fine scales,
    because no public number says how far apart the rows are. The share falls with the number of
    classes.
    """
    share = min(_FINE_RECORDS / n_samples, _LARGEST_FINE_SHARE) * 2.0 / n_classes
    n_fine = round(size * share)
    # Midpoints of equal parts of the logarithmic range.
    low, high = (math.log(scale) for scale in _FINE)
    middles = (np.arange(n_fine) + 0.5) / max(n_fine, 1)
    scales = np.concatenate([np.full(size - n_fine, _COARSE), np.exp(low + (high - low) * middles)])
    # The Laplacian kernel adds the differences of all columns, which is up to sqrt(d) times as much
    # as their Euclidean norm.
    return np.asarray(scales * (math.sqrt(n_features) if kernel == "laplacian" else 1.0))


def halved_steps(n_samples: int, mu: float, n_steps: int) -> int:
    """Return the step before which steps read half of the rows, to save time.

    Relative to the sum, the noise of such a step is twice as large, so there are such steps only if
    there is little noise: ``docs/proofs/noisy_gradient.md``, "Steps on half of the rows".
    """
    is_large = n_samples >= _HALVED_ROWS and n_samples * mu >= _HALVED_SIGNAL
    return n_steps // 2 + 1 if is_large else 0


def resolved_directions(records: float) -> float:
    """Return how many directions of features the preconditioner distinguishes, with two classes.

    `records` is the number of records of the rarer class times mu, a released number.
    """
    return min(max(records / _RECORDS_PER_DIRECTION, EFFECTIVE_DIMENSION), _MOST_DIRECTIONS)


def column_lag(n_curved: float, n_directions: float) -> float:
    """Return how far the coefficients of columns lag behind the intercept, in [0, 1].

    A row is divided among `n_curved` columns; the preconditioner distinguishes `n_directions`.
    """
    return min(max(n_curved / n_directions - 1.0, 0.0) / _LAGGING, 1.0)


def kernel_engine_defaults(n_classes: int) -> EngineDefaults:
    """Return the settings of the engine for features of a kernel."""
    is_binary = n_classes == 2
    return EngineDefaults(
        constant_column=0.5,
        margin_offset=2.0 if is_binary else 3.0,
        clip=0.5 if is_binary else 1.0,
        n_steps=40,
        path_length=3.5 if is_binary else 4.25 / n_classes**0.25,
        tail_fraction=0.5,
        preconditioner_columns=_MAX_COLUMNS,
        effective_dimension=100.0,
    )


def small_table_rule(
    *,
    n_samples: int,
    n_features: int,
    n_classes: int,
    epsilon: float,
    delta: float,
    is_scale_stated: bool,
    has_features: bool = False,
    has_prior: bool = False,
) -> bool:
    """Return whether a fit of dense rows is a selection from a list, by public numbers alone.

    It is one for at most 512 columns and two to seven classes if ``n epsilon`` is below 900. If
    scales are stated, or if steps would use features of columns, the limit is 600 for two classes
    and 300 for more; for pure DP and estimated column scales it is 1500; with a public model in the
    list and two classes it is 3000.
    """
    if not 2 <= n_classes <= MOST_CLASSES or not n_features <= WIDE or math.isinf(epsilon):
        return False
    pays = SMALL
    if is_scale_stated or has_features:
        pays = SMALL_OF_TWO_IN_SCALE if n_classes == 2 else SMALL_IN_SCALE
    if delta == 0 and not is_scale_stated:
        pays = DIRECTIONS_PAY
    if has_prior and n_classes == 2:
        pays = SMALL_WITH_PRIOR
    return n_samples * epsilon < pays


def pays_for_stages(n_samples: int, n_classes: int, epsilon: float) -> bool:
    """Return whether a small table of several classes gets two selections, by public numbers."""
    return n_samples * epsilon >= STAGES_PAY / n_classes
