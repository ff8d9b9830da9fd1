"""How much of an effect is noise: fits to simulated tables that look like the released model.

Rows have the public schema and the released units, labels the released probabilities, so the fits
read no private row and cost nothing. They differ from each other in their noise alone, and so do
the effects of a column between them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from dp_halfspace._params import resolved_delta
from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.data.schema import Column
from dp_halfspace.exceptions import BudgetError, PrivacyWarning
from dp_halfspace.privacy.profiles import gdp_epsilon, gdp_mu

FloatArray = NDArray[np.float64]

# Rows of a simulated table at most: of more, the noise in a mean is that of a larger epsilon.
_MOST_ROWS = 4000
# Words of a simulated column of texts.
_N_WORDS = 1000


def noise_deviations(
    model: Any, curves: Callable[[Any], list[FloatArray]], n_fits: int
) -> list[FloatArray] | None:
    """Return the standard deviation of the noise in every number of `curves` of a model.

    None where nothing is known of it: without noise, without probabilities, and of a model that
    was chosen from a list, whose effects are those of one of its classifiers or of another.
    """
    known = math.isfinite(model.epsilon) and hasattr(model, "predict_proba")
    if n_fits == 0 or not known or hasattr(model.model_, "row_lengths_"):
        return None
    found = []
    with warnings.catch_warnings(), single_blas_thread():
        # What a fit says of a simulated table is not about the model.
        warnings.simplefilter("ignore", PrivacyWarning)
        X, y, terms = _simulated_table(model)
        for seed in range(n_fits):
            other = clone(model).set_params(**terms, random_state=seed, ledger=None)
            try:
                other.fit(X, y)
            except BudgetError:
                return None
            other.units_, other.calibration_ = model.units_, model.calibration_
            found.append(curves(other))
    size, sizes = _size(curves(model)), map(_size, found)
    # How steep a model is as a whole says nothing about single columns.
    scaled = [
        [size / own * part for part in parts]
        for parts, own in zip(found, sizes, strict=True)
        if own > 0
    ]
    if len(scaled) < n_fits:
        return None
    return [np.std(parts, axis=0, ddof=1) for parts in zip(*scaled, strict=True)]


def _size(curves: list[FloatArray]) -> float:
    """Return the length of all numbers of all curves."""
    return math.sqrt(sum(float(np.square(curve).sum()) for curve in curves))


def _simulated_table(model: Any) -> tuple[NDArray[Any], NDArray[Any], dict[str, Any]]:
    """Return rows and labels, and the parameters of fits with as much noise as the model has."""
    n_samples = int(dict(model.privacy_.public)["n_samples"])
    n_rows, rng = min(n_samples, _MOST_ROWS), np.random.default_rng(0)
    columns = model.encoding_.columns
    scales = iter(zip(model.units_.center, model.units_.scale, strict=True))
    X = np.full((n_rows, len(columns)), None, dtype=object)
    for place, column in enumerate(columns):
        if column.kind != "drop":
            X[:, place] = list(_cells(column, n_rows, rng, scales))
    # Columns as simulated, dates as numbers of days.
    schema = {str(place): _rule(column) for place, column in enumerate(columns)}
    chances = model.predict_proba(X).cumsum(axis=1)
    codes = (chances < rng.random((n_rows, 1))).sum(axis=1)
    labels = model.classes_[np.minimum(codes, len(model.classes_) - 1)]
    terms = {**_budget(model, n_samples, n_rows), "schema": schema, "classes": model.classes_}
    terms["threshold"] = None
    return X, labels, terms


def _budget(model: Any, n_samples: int, n_rows: int) -> dict[str, float]:
    """Return the budget at which the noise in a mean of `n_rows` is that of all rows."""
    epsilon, delta = float(model.privacy_.epsilon), resolved_delta(model.delta, n_samples)
    if n_rows < n_samples:
        more = n_samples / n_rows
        epsilon = gdp_epsilon(more * gdp_mu(epsilon, delta), delta) if delta else more * epsilon
    return {"epsilon": epsilon, "delta": delta}


def _cells(
    column: Column, n_rows: int, rng: np.random.Generator, scales: Iterator[tuple[float, float]]
) -> Any:
    """Return entries of a column: normal ones in its units, or categories of one frequency."""
    if column.is_number:
        centre, scale = next(scales)
        return np.clip(centre + scale * rng.standard_normal(n_rows), column.low, column.high)
    words = column.categories or tuple(f"word {k}" for k in range(_N_WORDS))
    return (words[k] for k in rng.integers(len(words), size=n_rows))


def _rule(column: Column) -> Any:
    """Return the rule of a schema for a simulated column."""
    if column.is_number:
        return [column.low, column.high] if column.has_range else "number"
    return list(column.categories) or column.kind
