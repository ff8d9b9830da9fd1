"""Private weights of records in [0, 1], validated and rounded down so that sums are exact.

A weight belongs to its record: replacing the record replaces the weight. Proofs:
``docs/proofs/weights.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_halfspace._arrays import FloatArray
from dp_halfspace.data.chunks import Chunks
from dp_halfspace.data.frame import column_of
from dp_halfspace.data.people import EXACT_BITS, GRID_BITS
from dp_halfspace.data.validation import TrainingData

# Smallest public number of records for which weights are accepted.
_FEWEST_WEIGHTED = 20


@dataclass(frozen=True, slots=True, eq=False)
class RecordWeights:
    """Weights of records times those of their classes, indexed by the classes of all records.

    `classes` of shape (n_classes,) are public or released, `records` of shape (n_samples,) are
    private and in [0, 1].
    """

    classes: FloatArray
    records: FloatArray

    def __getitem__(self, class_indices: NDArray[np.intp]) -> FloatArray:
        return np.asarray(self.classes[class_indices] * self.records)


# Weights of the classes only, or of the classes and records; both are indexed by the classes of all
# records.
Weights: TypeAlias = FloatArray | RecordWeights


def weights_of(classes: FloatArray, data: TrainingData) -> Weights:
    """Return the weights of the classes, combined with those of the records if there are any."""
    return classes if data.weights is None else RecordWeights(classes, data.weights)


@dataclass(frozen=True, slots=True, eq=False)
class WeighedRows:
    """What an algorithm is to read: rows, the classes of the records, and their weights.

    The rows have the public norm that was planned, constant column included. `surrogate` are the
    same rows with cheaper passes, if there are any.
    """

    rows: Any
    classes: Any
    weights: Weights
    surrogate: Any = None


def weighed(rows: Any, classes: FloatArray, data: TrainingData) -> WeighedRows:
    """Return rows made of training data, weighed by the weights of the classes."""
    return WeighedRows(rows, data.class_indices, weights_of(classes, data))


def with_sample_weight(data: TrainingData, sample_weight: ArrayLike) -> TrainingData:
    """Return a training set with weights of the records; errors never show a weight."""
    if data.people is not None:
        raise ValueError("sample_weight is not supported together with groups: give one of them")
    if isinstance(data.X, Chunks):
        raise ValueError("sample_weight is not supported for rows in chunks: give X as an array")
    return replace(data, weights=_checked(sample_weight, data.X.shape[0]))


def _checked(sample_weight: ArrayLike, n_samples: int) -> FloatArray:
    """Return weights, rounded down to multiples of a public power of two."""
    if n_samples < _FEWEST_WEIGHTED:
        raise ValueError(
            f"sample_weight needs at least {_FEWEST_WEIGHTED} records, got {n_samples}: give none"
        )
    what = "one number in [0, 1] for each record"
    weights = column_of("sample_weight", sample_weight, n_samples, what).numbers()
    if not ((weights >= 0.0) & (weights <= 1.0)).all():
        raise ValueError(
            "sample_weight contains a value that is not a number in [0, 1]: divide by a PUBLIC "
            "bound, and replace missing weights by a rule that does not depend on the private data"
        )
    bits = min(GRID_BITS, EXACT_BITS - n_samples.bit_length())
    return np.asarray(np.ldexp(np.floor(np.ldexp(weights, bits)), -bits))
