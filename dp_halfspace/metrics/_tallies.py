"""The counts behind a score: sums of whole numbers over the records, of small sensitivity.

A person with several records counts as one, by weights or by the mean over the records. The sums
are exact and so are their sensitivities. Proof: ``docs/proofs/metrics.md``, sections 1 and 3.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dp_halfspace.data.people import People
from dp_halfspace.data.validation import look_up
from dp_halfspace.exceptions import warn_caller
from dp_halfspace.rows.blocks import FloatArray

# Positions of labels, or of predicted ones, among the sorted classes.
Codes: TypeAlias = NDArray[np.intp]
# Log losses over the largest one are multiples of 1 / SCALE.
SCALE = 2**16
# Log losses are clipped at this, in nats: a probability of .0067.
LARGEST_LOG_LOSS = 5.0
# Units that a correct prediction counts, where the class of its record counts one.
RIGHT = 4
# Borders at multiples of a half in log-odds. For scores of unknown scale, thirds of
# their width where most of them are, and increasingly wide steps beyond; the quartiles of a normal
# distribution are 1.35 standard deviations apart.
HALF_LOG_ODDS = expit(np.linspace(-8.0, 8.0, 33))
_WIDTHS = np.sinh(np.linspace(-4.2, 4.2, 33)) / 1.35


def signed_sizes(low: int, high: int, per_octave: int) -> FloatArray:
    """Return zero, and both signs of sizes from 2^low to 2^high, so many for a factor of two."""
    sizes = 2.0 ** (np.arange(low * per_octave, high * per_octave + 1) / per_octave)
    return np.concatenate([-sizes[::-1], [0.0], sizes])


# Candidates for the quartiles of such scores.
PLACES = signed_sizes(-24, 32, 128)


@dataclass(frozen=True, slots=True)
class Cells:
    """Definition of the cells: classes, borders of scores, owners of records, public groups."""

    n_classes: int
    borders: FloatArray | None = None
    people: People | None = None
    n_groups: int = 1
    # Sums of weights are exact for integer factors up to this.
    largest: int = RIGHT

    @property
    def weights(self) -> FloatArray | None:
        """Weights of the records of a person, which sum to at most one; None without people."""
        return None if self.people is None else self.people.weights_for(self.largest)


def between_places(values: FloatArray, people: People | None) -> FloatArray:
    """Count the records, or people, from each of the public places up to the next."""
    weights = None if people is None else people.weights
    counts = np.bincount(np.searchsorted(PLACES, values), weights, len(PLACES) + 1)
    return counts.astype(np.float64)


def places(counts: FloatArray, n: int) -> FloatArray:
    """Return minus the distance of each public place from the two quartiles, in records."""
    below = np.cumsum(counts)[:-1]
    return np.asarray(-np.abs(below - np.array([[0.25], [0.75]]) * n))


def cells_between(ends: FloatArray) -> FloatArray:
    """Return borders of cells for scores whose quartiles were released, in any order."""
    width = np.ptp(ends) + 2.0**-8 * np.abs(ends).max() + PLACES[PLACES > 0.0].min()
    return np.asarray(ends.mean() + width * _WIDTHS)


def chances_of_truth(model: Any, X: Any, codes: Codes, classes: NDArray[Any]) -> FloatArray:
    """Return the predicted probability of the class of each record."""
    return probabilities_of_all(model, X, codes, classes)[np.arange(len(codes)), codes]


def probabilities_of_all(model: Any, X: Any, codes: Codes, classes: NDArray[Any]) -> FloatArray:
    """Return the probabilities of the sorted classes; NaN counts as zero."""
    found = _numbers(model, "predict_proba", X, (len(codes), len(classes)))
    return np.nan_to_num(found[:, np.argsort(np.asarray(model.classes_))])


def predicted_classes(model: Any, X: Any, codes: Codes, classes: NDArray[Any]) -> Codes:
    """Return the class index that the model predicts for each record; `classes` are sorted.

    An unknown label is a wrong prediction, and counts as the class after that of the record. An
    exception would reveal something about the record.
    """
    found = look_up(_answers_in_shape(model, "predict", X, codes.shape), classes)
    return np.where(found >= 0, found, (codes + 1) % len(classes))


def scores_of(model: Any, X: Any, codes: Codes, classes: NDArray[Any]) -> FloatArray:
    """Return the score of each record for the second class: a probability, if there is one."""
    if hasattr(model, "predict_proba"):
        return probabilities_of_all(model, X, codes, classes)[:, 1]
    scores = _numbers(model, "decision_function", X, codes.shape)
    # A positive score is one for the second class of the model, which need not be sorted.
    is_sorted = np.argsort(np.asarray(model.classes_))[1] == 1
    return np.nan_to_num(scores if is_sorted else -scores)


def warn_of_like_probabilities(model: Any, what: str) -> None:
    """Warn where public candidates for scores cannot tell the probabilities of a model apart.

    That a fit was the selection of one classifier is a released fact.
    """
    if getattr(model, "certainty_", None) is not None and hasattr(model, "predict_proba"):
        warn_caller(
            "the model is one selected classifier, whose probabilities hardly differ between "
            f"records with the same predicted label: {what}"
        )


def log_losses_of(model: Any, X: Any, codes: Codes, classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return minus the logarithm of the probability of the truth, in `LARGEST_LOG_LOSS`/SCALE."""
    chances = chances_of_truth(model, X, codes, classes)
    # Below the smallest of these, and for NaN, the loss is the largest one.
    chances = np.clip(chances, 0.5 * np.exp(-LARGEST_LOG_LOSS), 1.0)
    loss = -np.log(chances) / LARGEST_LOG_LOSS
    return np.asarray(np.rint(SCALE * np.clip(loss, 0.0, 1.0)).astype(np.int64))


def _answers_in_shape(model: Any, method: str, X: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return the output of a method of the model in its shape; one label or score may be a row."""
    given = getattr(model, method)(X)
    # For a list, numpy would choose one type by all outputs: one text turns all numbers into texts.
    answers = np.asarray(given, dtype=object if isinstance(given, list | tuple) else None)
    if answers.shape == (*shape, 1) and len(shape) == 1:
        return answers[:, 0]
    if answers.shape != shape:
        wanted = "(n_samples,)" if len(shape) == 1 else f"(n_samples, {shape[1]})"
        raise ValueError(f"model.{method} must return an array of shape {wanted}")
    return answers


def _numbers(model: Any, method: str, X: Any, shape: tuple[int, ...]) -> FloatArray:
    """Return outputs as floats; an exception would quote the value that is not a number."""
    answers = _answers_in_shape(model, method, X, shape)
    with suppress(TypeError, ValueError, OverflowError):
        return np.array(answers, dtype=np.float64)
    raise ValueError(f"model.{method} must return real numbers")


def count_right_beside_classes(values: NDArray[Any], codes: Codes, cells: Cells) -> FloatArray:
    """Count the correctly predicted records, in units of `RIGHT`, and the records of each class."""
    by_class = count_right_by_class(values, codes, cells)
    return np.append(RIGHT * by_class[:, 1].sum(), by_class.sum(axis=1))


def count_right_by_class(values: NDArray[Any], codes: Codes, cells: Cells) -> FloatArray:
    """Count the wrongly and the correctly predicted records of each class."""
    return _histogram(codes, (values == codes).astype(np.intp), (cells.n_classes, 2), cells.weights)


def count_confusions(values: NDArray[Any], codes: Codes, cells: Cells) -> FloatArray:
    """Count the records of each class by the class that is predicted.

    With groups, the classes of the first group come first, then those of the others.
    """
    k = cells.n_classes
    return _histogram(codes, values, (cells.n_groups * k, k), cells.weights)


def count_scores(values: NDArray[Any], codes: Codes, cells: Cells) -> FloatArray:
    """Count the records of each class by the cell of their score."""
    assert cells.borders is not None, "cells of scores have borders"
    found = np.searchsorted(cells.borders, values, side="right")
    return _histogram(codes, found, (cells.n_classes, len(cells.borders) + 1), cells.weights)


def sum_losses(values: NDArray[Any], codes: Codes, cells: Cells) -> FloatArray:
    """Sum the losses of all records, or of the means of all people."""
    people = cells.people
    if people is not None:
        values = np.add.reduceat(values, people.starts) // people.counts
    # The second sum serves for the variance of the losses. It does not raise the sensitivity.
    spread = values * (SCALE - values) // SCALE
    return np.array([values.sum(), spread.sum()], dtype=np.float64)


def _histogram(
    rows: Codes,
    columns: Codes,
    shape: tuple[int, int],
    weights: FloatArray | None,
) -> FloatArray:
    """Add the weights of the records of every cell of a table."""
    counts = np.bincount(rows * shape[1] + columns, weights, shape[0] * shape[1])
    return counts.astype(np.float64).reshape(shape)
