"""What a score counts: whole numbers, summed over the records, that one record moves little.

The sums are exact and so are their sensitivities. Proof: ``docs/proofs/metrics.md``, section 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from dp_halfspace._validation import label_codes
from dp_halfspace.algorithms.units.plan import Units

__all__ = ["SCALE", "SENSITIVITIES", "cells_around", "outcomes", "public_thresholds", "tally"]

# Losses of the Brier score are rounded to multiples of 1 / SCALE.
SCALE = 2**16
# Of every metric under the replacement of one record: in the sum of absolute values, and Euclidean.
SENSITIVITIES: dict[str, tuple[int, float]] = {
    "accuracy": (1, 1.0),
    "balanced_accuracy": (2, math.sqrt(2.0)),
    "confusion_matrix": (2, math.sqrt(2.0)),
    "roc_auc": (2, math.sqrt(2.0)),
    "brier": (SCALE, float(SCALE)),
}
# Half units of log-odds; and of scores whose scale is not known, quarters of their width.
_PROBABILITIES = expit(np.linspace(-8.0, 8.0, 33))
_WIDTHS = np.linspace(-3.0, 3.0, 25)


def public_thresholds(model: Any, given: ArrayLike | None) -> NDArray[np.float64] | None:
    """Return the public borders of the cells of scores; None if they are to be learnt."""
    if given is None:
        return _PROBABILITIES if hasattr(model, "predict_proba") else None
    borders = np.asarray(given, dtype=np.float64)
    if borders.ndim != 1 or not borders.size or not (np.diff(borders) > 0).all():
        raise ValueError("thresholds must be None or an increasing list of public numbers")
    return borders


def cells_around(units: Units) -> NDArray[np.float64]:
    """Return borders of cells in released units of one column of scores."""
    borders: NDArray[np.float64] = units.center + units.scale * _WIDTHS
    return borders


def outcomes(
    X: Any, metric: str, model: Any, codes: NDArray[np.intp], classes: NDArray[Any]
) -> NDArray[Any]:
    """Return what the model makes of each record: a code, a score, or a loss in whole units."""
    if metric not in ("roc_auc", "brier"):
        return label_codes(model.predict(X), classes)[0]
    if not hasattr(model, "predict_proba"):
        return np.nan_to_num(np.array(model.decision_function(X), dtype=np.float64))
    chances = np.array(model.predict_proba(X), dtype=np.float64)
    if metric == "roc_auc":
        return np.nan_to_num(chances[:, 1])
    chances[np.arange(len(chances)), codes] -= 1.0
    loss = np.nan_to_num(0.5 * (chances**2).sum(axis=1), nan=1.0)
    whole: NDArray[np.int64] = np.rint(SCALE * np.clip(loss, 0.0, 1.0)).astype(np.int64)
    return whole


def tally(
    values: NDArray[Any],
    metric: str,
    codes: NDArray[np.intp],
    n_classes: int,
    thresholds: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    """Sum the outcomes of all records."""
    if metric == "brier":
        # The second sum says how the losses vary, and costs nothing.
        spread = values * (SCALE - values) // SCALE
        return np.array([values.sum(), spread.sum()], dtype=np.float64)
    if thresholds is not None:
        cells = np.searchsorted(thresholds, values, side="right")
        return _histogram(codes, cells, (2, len(thresholds) + 1))
    if metric == "confusion_matrix":
        return _histogram(codes, values, (n_classes, n_classes))
    hits = (values == codes).astype(np.intp)
    if metric == "accuracy":
        return np.array([hits.sum()], dtype=np.float64)
    return _histogram(codes, hits, (n_classes, 2))


def _histogram(
    rows: NDArray[np.intp], columns: NDArray[np.intp], shape: tuple[int, int]
) -> NDArray[np.float64]:
    """Count the records of every cell of a table."""
    counts = np.bincount(rows * shape[1] + columns, minlength=shape[0] * shape[1])
    return counts.astype(np.float64).reshape(shape)
