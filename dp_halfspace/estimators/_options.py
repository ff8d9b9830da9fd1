"""Options that several estimators have.

The functions validate tilts and adversaries, warn about projections, and make the released curves
of an additive model monotone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy import sparse

from dp_halfspace._params import is_public_number
from dp_halfspace.engine.plan import PublicFacts
from dp_halfspace.engine.scales import CLIP
from dp_halfspace.exceptions import warn_caller
from dp_halfspace.optim.losses import Loss
from dp_halfspace.optim.objectives import Adversary
from dp_halfspace.optim.risks import MarginRisk
from dp_halfspace.projection.features import AdditiveMap
from dp_halfspace.projection.linear import PROJECTIONS, LinearMap, draw_projection, jl_dimension
from dp_halfspace.rows.blocks import FloatArray

# Largest weight of a single record without a warning, relative to the weight of all others.
_RECORD_SHARE = 0.1
# Largest noise without a warning, relative to that without a tilt.
_NOISE_FACTOR = 10.0


def checked_tilt(tilt: float) -> float:
    """Return the tilt, or raise if the tilted risk is not convex."""
    if tilt != 0.0 and not is_public_number(tilt):
        raise ValueError(
            "tilt must be 0, or between 1e-50 and 1e50. A negative tilt, which "
            "reduces the weight of the largest losses, is not a convex problem, and "
            "an infinite one has no bounded sensitivity: use tilt=0 for the mean "
            "loss, a larger tilt for larger weights of the largest losses"
        )
    return float(tilt)


def planned_attack(
    radius: float, norm: Literal[2, "inf"], smoothing: float, *, loss: Loss, facts: PublicFacts
) -> Adversary | None:
    """Return the adversary of a fit, or None without one.

    `radius` is in the units of the data, `smoothing` in units of ``1 / data_norm``; the constant
    column is not attacked.
    """
    data_norm = facts.data_norm
    if radius != 0.0 and not facts.is_scale_stated:
        raise ValueError(
            "adversary_radius is in the units of the columns: give data_norm, the PUBLIC "
            "scale of a row in these units, too"
        )
    if radius != 0.0 and not (is_public_number(radius) and radius < data_norm):
        # The whole norm of a row can be in one column, so the limit is the same for both norms.
        raise ValueError(
            "adversary_radius must be 0, or at least 1e-50 and less than data_norm: "
            "an adversary who moves rows by their largest norm can move every row to "
            "zero, so that all coefficients are zero. Use a smaller adversary_radius, "
            "in the units of the columns, or 0 for no adversary"
        )
    if radius == 0.0:
        return None
    if not loss.monotone:
        raise ValueError(
            f"adversary_radius needs a loss that falls with the margin, and loss={loss.name!r} "
            "rises beyond 1. Use 'squared_hinge', 'logistic' or another hinge, or "
            "adversary_radius=0"
        )
    return Adversary(float(radius), norm, facts.n_features, float(smoothing) / data_norm)


def warn_of_tilt(risk: MarginRisk, ridge: float) -> None:
    """Warn if single records can have so much weight that the noise exceeds the sum of all.

    Regulariser and risk are public, so the warning reveals nothing about the data.
    """
    factor = risk.influence(ridge)
    share = factor / risk.n_samples
    if factor > _NOISE_FACTOR and share > _RECORD_SHARE / (1.0 + _RECORD_SHARE):
        warn_caller(
            f"with tilt={risk.tilt:g} and alpha={ridge:.3g} one record can have "
            f"{100 * share:.0f} % of all the weight, and the noise is {factor:.0f} times that of "
            "tilt=0 at the same alpha. Use alpha='auto', a larger alpha or a smaller tilt"
        )


def draw_map(
    kind: str | None, n_features: int, n_components: int, rng: np.random.Generator
) -> LinearMap | None:
    """Draw a public projection, if one is wanted."""
    return None if kind is None else draw_projection(kind, n_features, n_components, rng)


# The error of a projected score is about one over the square root of the number of components: half
# of the margin at this value.
_PER_SQUARE = 4.0


def warn_of_projection(
    kind: str | None, n_drawn: int | None, *, n_columns: int, n_samples: int, margin: float | None
) -> None:
    """Warn if a requested projection is not applied, or destroys a known margin.

    `n_drawn` is the number of components, or None if no map was drawn for rows of `n_columns`.
    """
    if kind not in PROJECTIONS:
        return
    if n_drawn is None:
        wanted = "" if margin is None else f" (jl_dimension: {jl_dimension(margin, n_samples)})"
        warn_caller(
            f"projection={kind!r} draws no map: it would have as many components as the {n_columns}"
            f" columns, or more{wanted}. State a smaller n_components, or use projection=None"
        )
    elif margin is not None and n_drawn < _PER_SQUARE / margin**2:
        warn_caller(
            f"n_components={n_drawn} is far below what a margin of {margin:g} needs: scores change "
            f"by more than half of it. Use {math.ceil(_PER_SQUARE / margin**2)} or more, or "
            "projection=None"
        )


# Position of a column, its values in column scales, and the effect at each value.
Curve: TypeAlias = tuple[int, FloatArray, FloatArray]

_MONOTONE = ("increasing", "decreasing")
# Number of values of a curve.
_ISOTONIC_POINTS = 1025


def read_directions(monotone: Any, names: Sequence[str]) -> dict[int, bool]:
    """Return the positions of columns with an increasing and with a decreasing effect."""
    if not isinstance(monotone, Mapping) or not monotone:
        raise ValueError(
            'monotone must map names of columns to "increasing" or "decreasing", for example '
            '{"age": "increasing"}'
        )
    place = {name: position for position, name in enumerate(names)}
    found = {}
    for name, direction in monotone.items():
        if str(name) not in place:
            raise ValueError(f"monotone names {name!r}, which is not a column of numbers or dates")
        if direction not in _MONOTONE:
            raise ValueError(
                f'monotone[{name!r}] must be "increasing" or "decreasing", got {direction!r}'
            )
        found[place[str(name)]] = direction == _MONOTONE[0]
    return found


def monotone_curves(
    margins: Callable[[FloatArray], FloatArray],
    feature_map: Any,
    data_norm: float,
    n_outputs: int,
    directions: Mapping[int, bool],
) -> tuple[Curve, ...]:
    """Return the monotone curves nearest to those of an additive model.

    `margins` are the scores of rows in column scales. The curves minimise squared differences,
    weighted like the entries of a normally distributed column, and are found by the
    pool-adjacent-violators algorithm.
    """
    from sklearn.isotonic import IsotonicRegression  # noqa: PLC0415 (loads slowly)

    is_additive = isinstance(feature_map, AdditiveMap) and feature_map.fourier is None
    if not is_additive or n_outputs != 1:
        raise ValueError(
            "with_monotone needs a score of two classes that is a sum of curves: "
            'features="additive" or "linear" of PrivateTableClassifier, or kernel="additive"'
        )
    n_columns = feature_map.n_features_in
    width = data_norm / (feature_map.length or np.sqrt(n_columns))
    end = max(CLIP * width, data_norm)
    values = np.linspace(-end, end, _ISOTONIC_POINTS)
    weights = np.exp(-0.5 * np.square(values / width)) + np.finfo(np.float64).eps
    curves = []
    for position, is_increasing in directions.items():
        rows = np.zeros((_ISOTONIC_POINTS + 1, n_columns))
        rows[1:, position] = values
        scores = margins(rows)[:, 0]
        nearest = IsotonicRegression(increasing=is_increasing)
        found = nearest.fit_transform(values, scores[1:] - scores[0], sample_weight=weights)
        # The means of the regression may be out of order by a rounding error.
        in_order = np.maximum if is_increasing else np.minimum
        effects = in_order.accumulate(np.asarray(found, dtype=np.float64))
        curves.append((position, values, effects))
    return tuple(curves)


def split_rows(X: Any, curves: Sequence[Curve]) -> tuple[FloatArray, FloatArray]:
    """Return rows without the columns of curves, and the sum of the effects of these columns.

    A column that is left out is set to zero, like a missing entry.
    """
    rows = np.array(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    total = np.zeros(len(rows))
    for position, values, effects in curves:
        total += _interpolated(rows[:, position], values, effects)
        rows[:, position] = 0.0
    return rows, total


def _interpolated(at: FloatArray, values: FloatArray, effects: FloatArray) -> FloatArray:
    """Interpolate a monotone curve: no step of the result is against it, in floating point too."""
    place = np.clip(np.searchsorted(values, at, "right"), 1, len(values) - 1)
    low, high = effects[place - 1], effects[place]
    share = (at - values[place - 1]) / (values[place] - values[place - 1])
    found = low + np.clip(share, 0.0, 1.0) * (high - low)
    return np.clip(found, np.minimum(low, high), np.maximum(low, high))


# Number of rows whose terms are in memory at a time.
_SUMMED_ROWS = 4096


def sums_of_terms(features: Any, coefficients: FloatArray) -> FloatArray:
    """Return the score of each row, summed in an order that depends on nothing but its length.

    Equal rows have equal sums, wherever they are in a table; a product of matrices may round a row
    by its place.
    """
    out = np.empty(features.shape[0])
    for lo in range(0, len(out), _SUMMED_ROWS):
        rows = slice(lo, min(lo + _SUMMED_ROWS, len(out)))
        np.add.reduce(np.ascontiguousarray(features[rows] * coefficients), axis=1, out=out[rows])
    return out
