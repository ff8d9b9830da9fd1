"""What a score counts: whole numbers, summed over the records, that one record moves little.

A person with several records counts like one, by weights or by the mean of them. The sums are exact
and so are their sensitivities. Proof: ``docs/proofs/metrics.md``, sections 1 and 3.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from dp_halfspace.data.people import People

__all__ = [
    "COUNT",
    "SCALE",
    "SENSITIVITIES",
    "between_places",
    "cells_between",
    "outcomes",
    "places",
    "public_thresholds",
    "tally",
]

# Losses of the Brier score are rounded to multiples of 1 / SCALE.
SCALE = 2**16
# Of a calibration curve: what a record counts for, and half a bin, in whole units.
COUNT, _HALF = 64, 16
# Of every metric under the replacement of one record: in the sum of absolute values, and Euclidean.
SENSITIVITIES: dict[str, tuple[int, float]] = {
    "accuracy": (1, 1.0),
    "balanced_accuracy": (2, math.sqrt(2.0)),
    "confusion_matrix": (2, math.sqrt(2.0)),
    "roc_auc": (2, math.sqrt(2.0)),
    "calibration_curve": (2 * COUNT + 2 * _HALF, 96.0),
    "brier": (SCALE, float(SCALE)),
}
# Half units of log-odds; tenths; and of scores whose scale is not known, thirds of their width
# where most of them are and ever wider steps beyond.
_PROBABILITIES = expit(np.linspace(-8.0, 8.0, 33))
_TENTHS = np.arange(1, 10) / 10.0
_WIDTHS = np.sinh(np.linspace(-4.2, 4.2, 33))
# Where quartiles of such scores may lie; they are as far apart as 1.35 deviations of a normal law.
_SIZES = 2.0 ** (np.arange(-24 * 128, 32 * 128 + 1) / 128.0)
PLACES = np.concatenate([-_SIZES[::-1], [0.0], _SIZES])
_QUARTILES = 1.35


def public_thresholds(
    metric: str, model: Any, given: ArrayLike | None
) -> NDArray[np.float64] | None:
    """Return the public borders of the cells of scores; None if they are to be learnt."""
    if given is None:
        if metric == "calibration_curve":
            return _TENTHS
        return _PROBABILITIES if hasattr(model, "predict_proba") else None
    borders = np.asarray(given, dtype=np.float64)
    if borders.ndim != 1 or not borders.size or not (np.diff(borders) > 0).all():
        raise ValueError("thresholds must be None or an increasing list of public numbers")
    if metric == "calibration_curve" and not (borders[0] > 0.0 and borders[-1] < 1.0):
        raise ValueError("thresholds of a calibration curve must be between 0 and 1")
    return borders


def between_places(values: NDArray[np.float64], people: People | None) -> NDArray[np.float64]:
    """Count the records, or people, from each of the public places up to the next."""
    weights = None if people is None else people.weights
    counts = np.bincount(np.searchsorted(PLACES, values), weights, len(PLACES) + 1)
    return counts.astype(np.float64)


def places(counts: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return how far each of the public places is from the two quartiles, in records, negative."""
    below = np.cumsum(counts)[:-1]
    scores: NDArray[np.float64] = -np.abs(below - np.array([[0.25], [0.75]]) * n)
    return scores


def cells_between(ends: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return borders of cells for scores whose quartiles were released, in any order."""
    width = np.ptp(ends) + 2.0**-8 * np.abs(ends).max() + _SIZES[0]
    borders: NDArray[np.float64] = ends.mean() + width / _QUARTILES * _WIDTHS
    return borders


def outcomes(
    X: Any, metric: str, model: Any, codes: NDArray[np.intp], classes: NDArray[Any]
) -> NDArray[Any]:
    """Return what the model makes of each record: a code, a score, or a loss in whole units.

    `classes` are sorted; those of the model need not be.
    """
    n = len(codes)
    if metric not in ("roc_auc", "calibration_curve", "brier"):
        return _coded_labels(_shaped(model, "predict", X, (n,)), codes, classes)
    order = np.argsort(np.asarray(model.classes_))
    if not hasattr(model, "predict_proba"):
        scores = _numbers(_shaped(model, "decision_function", X, (n,)), "decision_function")
        # A positive score is one for the second class of the model.
        return np.nan_to_num(scores if order[1] == 1 else -scores)
    answers = _shaped(model, "predict_proba", X, (n, len(classes)))
    chances = _numbers(answers, "predict_proba")[:, order]
    if metric != "brier":
        return np.nan_to_num(chances[:, 1])
    chances[np.arange(n), codes] -= 1.0
    loss = np.nan_to_num(0.5 * (chances**2).sum(axis=1), nan=1.0)
    whole: NDArray[np.int64] = np.rint(SCALE * np.clip(loss, 0.0, 1.0)).astype(np.int64)
    return whole


def _shaped(model: Any, method: str, X: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return what a method of the model answers, in its shape; one label or score may be a row."""
    answers = np.asarray(getattr(model, method)(X))
    if answers.shape == (*shape, 1) and len(shape) == 1:
        return answers[:, 0]
    if answers.shape != shape:
        wanted = "(n_samples,)" if len(shape) == 1 else f"(n_samples, {shape[1]})"
        raise ValueError(f"model.{method} must return an array of shape {wanted}")
    return answers


def _numbers(answers: NDArray[Any], method: str) -> NDArray[np.float64]:
    """Return answers as floats; an error would quote the one that is no number."""
    with suppress(TypeError, ValueError, OverflowError):
        return np.array(answers, dtype=np.float64)
    raise ValueError(f"model.{method} must return real numbers")


def _coded_labels(
    labels: NDArray[Any], codes: NDArray[np.intp], classes: NDArray[Any]
) -> NDArray[np.intp]:
    """Return the positions of predicted labels; what is none of the classes is a wrong one.

    It counts as the class behind that of the record: an exception would be an answer about it.
    """
    if labels.dtype.kind == classes.dtype.kind and labels.dtype.kind in "biufUS":
        found = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
        is_class = classes[found] == labels
    else:
        positions = {label: code for code, label in enumerate(classes.tolist())}
        found = np.array([_position(label, positions) for label in labels.tolist()], dtype=np.intp)
        is_class = found >= 0
    return np.where(is_class, found, (codes + 1) % len(classes))


def _position(label: Any, positions: dict[Any, int]) -> int:
    """Return the position of a label, or -1 for what is none."""
    with suppress(TypeError, ValueError):  # it cannot be looked up
        return positions.get(label, -1)
    return -1


def tally(
    values: NDArray[Any],
    codes: NDArray[np.intp],
    *,
    metric: str,
    n_classes: int,
    thresholds: NDArray[np.float64] | None,
    people: People | None = None,
) -> NDArray[np.float64]:
    """Sum the outcomes of all records, or of all people, who own consecutive ones."""
    if metric == "brier":
        if people is not None:
            values = np.add.reduceat(values, people.starts) // people.counts
        # The second sum says how the losses vary, and costs nothing.
        spread = values * (SCALE - values) // SCALE
        return np.array([values.sum(), spread.sum()], dtype=np.float64)
    weights = None if people is None else people.weights_for(COUNT)
    if thresholds is not None:
        cells = np.searchsorted(thresholds, values, side="right")
        counts = _histogram(codes, cells, (2, len(thresholds) + 1), weights)
        if metric == "roc_auc":
            return counts
        edges = np.array([0.0, *thresholds, 1.0])
        share = (values - edges[cells]) / np.diff(edges)[cells]
        place = np.rint(_HALF * np.clip(2.0 * share - 1.0, -1.0, 1.0))
        place = place if weights is None else place * weights
        return np.vstack([COUNT * counts, np.bincount(cells, place, counts.shape[1])])
    if metric == "confusion_matrix":
        return _histogram(codes, values, (n_classes, n_classes), weights)
    hits = (values == codes).astype(np.intp)
    if metric == "accuracy":
        return _histogram(0 * hits, hits, (1, 2), weights)[0, 1:]
    return _histogram(codes, hits, (n_classes, 2), weights)


def _histogram(
    rows: NDArray[np.intp],
    columns: NDArray[np.intp],
    shape: tuple[int, int],
    weights: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    """Add the weights of the records of every cell of a table."""
    counts = np.bincount(rows * shape[1] + columns, weights, shape[0] * shape[1])
    return counts.astype(np.float64).reshape(shape)
