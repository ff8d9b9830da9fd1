"""Options that several estimators have.

Tilts and adversaries are checked, projections explained, and released curves of an additive model
made monotone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dp_halfspace._params import is_public_number
from dp_halfspace.algorithms.engine.column_scales import CLIP
from dp_halfspace.algorithms.fit_plan import PublicFacts
from dp_halfspace.exceptions import warn_caller
from dp_halfspace.optim.losses import Loss
from dp_halfspace.optim.objectives import Adversary
from dp_halfspace.optim.risks import MarginRisk
from dp_halfspace.projection import PROJECTIONS, AdditiveMap, jl_dimension

# Part of the weight of all others that a single record may have without a warning.
_SHARE = 0.1
# Noise, relative to that without a tilt, up to which there is no warning.
_FACTOR = 10.0


def checked_tilt(tilt: float) -> float:
    """Return the tilt, or say why there can be none: the tilted risk would not be convex."""
    if tilt != 0.0 and not is_public_number(tilt):
        raise ValueError(
            "tilt must be 0, or between 1e-50 and 1e50. A negative tilt, which plays the largest "
            "losses down, is not a convex problem, and an infinite one has no bounded "
            "sensitivity: use tilt=0 for the mean loss, a larger tilt for larger weights of the "
            "largest losses"
        )
    return float(tilt)


def planned_attack(
    radius: float,
    norm: Literal[2, "inf"],
    smoothing: float,
    *,
    loss: Loss,
    facts: PublicFacts,
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
        # A row can have all its length in one column, so the limit is the same for both norms.
        raise ValueError(
            "adversary_radius must be 0, or at least 1e-50 and less than data_norm: an adversary "
            "who moves rows by their largest norm leaves nothing of them, and the coefficients of "
            "every data set are zero. Use a smaller adversary_radius, in the units of the "
            "columns, or 0 for no adversary"
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
    """Warn if single records can weigh so much that the noise exceeds all of them.

    Regulariser and risk are public, so the warning says nothing about the data.
    """
    factor = risk.influence(ridge)
    share = factor / risk.n_samples
    if factor > _FACTOR and share > _SHARE / (1.0 + _SHARE):
        warn_caller(
            f"with tilt={risk.tilt:g} and alpha={ridge:.3g} one record can have "
            f"{100 * share:.0f} % of all the weight, and the noise is {factor:.0f} times that of "
            "tilt=0 at the same alpha. Use alpha='auto', a larger alpha or a smaller tilt"
        )


# A projected score errs by about one over the root of the components: by half of the margin here.
_PER_SQUARE = 4.0


def warn_of_projection(
    kind: str | None,
    n_drawn: int | None,
    *,
    n_columns: int,
    n_samples: int,
    margin: float | None,
) -> None:
    """Warn where a projection by name is none, or leaves nothing of a known margin.

    `n_drawn` is the number of components, None where no map was drawn for rows of `n_columns`.
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


FloatArray: TypeAlias = NDArray[np.float64]
# Position of a column, its values in column scales, and the effect at each of them.
Curve: TypeAlias = tuple[int, FloatArray, FloatArray]

DIRECTIONS = ("increasing", "decreasing")
# Values of a curve.
_POINTS = 1025


def read_directions(monotone: Any, names: Sequence[str]) -> dict[int, bool]:
    """Return which columns, by position, are to be increasing, and which decreasing."""
    if not isinstance(monotone, Mapping) or not monotone:
        raise ValueError(
            'monotone must map names of columns to "increasing" or "decreasing", for example '
            '{"age": "increasing"}'
        )
    place = {name: position for position, name in enumerate(names)}
    found = {}
    for name, direction in monotone.items():
        if str(name) not in place:
            raise ValueError(f"monotone names {name!r}, which is no column of numbers or dates")
        if direction not in DIRECTIONS:
            raise ValueError(
                f'monotone[{name!r}] must be "increasing" or "decreasing", got {direction!r}'
            )
        found[place[str(name)]] = direction == DIRECTIONS[0]
    return found


def monotone_curves(
    margins: Callable[[FloatArray], FloatArray],
    feature_map: Any,
    data_norm: float,
    n_outputs: int,
    directions: Mapping[int, bool],
) -> tuple[Curve, ...]:
    """Return the monotone curves nearest to those of an additive model.

    `margins` are the scores of rows in column scales. Nearest by squares that are weighted as
    entries of a normal column would be, by the algorithm of pool adjacent violators.
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
    values = np.linspace(-end, end, _POINTS)
    weights = np.exp(-0.5 * np.square(values / width)) + np.finfo(np.float64).eps
    curves = []
    for position, is_increasing in directions.items():
        rows = np.zeros((_POINTS + 1, n_columns))
        rows[1:, position] = values
        scores = margins(rows)[:, 0]
        nearest = IsotonicRegression(increasing=is_increasing)
        effects = nearest.fit_transform(values, scores[1:] - scores[0], sample_weight=weights)
        curves.append((position, values, np.asarray(effects, dtype=np.float64)))
    return tuple(curves)


def split_rows(X: Any, curves: Sequence[Curve]) -> tuple[FloatArray, FloatArray]:
    """Return rows without the columns of curves, and the sum of the effects of these columns.

    A column that is left out is zero, which a missing entry is, too.
    """
    rows = np.array(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    total = np.zeros(len(rows))
    for position, values, effects in curves:
        total += np.interp(rows[:, position], values, effects)
        rows[:, position] = 0.0
    return rows, total
