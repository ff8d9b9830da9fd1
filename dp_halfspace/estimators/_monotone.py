"""Monotone effects: released curves of an additive model, replaced by the nearest monotone ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dp_halfspace.algorithms.engine.column_scales import CLIP
from dp_halfspace.projection import AdditiveMap

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
    reach = max(CLIP * width, data_norm)
    values = np.linspace(-reach, reach, _POINTS)
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
