"""Noisy counts of the classes, from which weights follow that balance them.

The counts are one release. Weights are at most one and multiply slopes after these were clipped, so
that no sensitivity depends on them. Proof: ``docs/proofs/rare.md``, sections 1 and 2.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._rounding import TINY, UP
from dp_halfspace.data.chunks import sum_over_chunks
from dp_halfspace.data.people import People
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.mechanisms import AdditiveNoise, noise_deviation
from dp_halfspace.rows.blocks import FloatArray


def count_noise(n_classes: int, budget: Budget, *, has_weights: bool) -> AdditiveNoise:
    """Return the noise of the counts.

    Of two classes only the second is counted, because the number of records is public; if records
    have weights, the sum of all weights is private, so every class is counted. A record moves one
    count by at most one, or two counts.
    """
    is_one = n_classes == 2 and not has_weights
    return budget.noise(UP if is_one else math.sqrt(2.0) * UP)


def counts_asked(data: TrainingData, n_classes: int) -> FloatArray:
    """Return the exact counts; a person counts by the shares of its rows in each class."""
    how = n_classes, data.people, data.weights
    counts = np.asarray(sum_over_chunks(class_counts, data.class_indices, *how))
    return counts[1:] if n_classes == 2 and data.weights is None else counts


def class_counts(
    classes: NDArray[np.intp],
    n_classes: int,
    people: People | None = None,
    weights: FloatArray | None = None,
) -> FloatArray:
    """Return the exact number of rows of each class, or the sum of their weights.

    With `people`, the weight of a row is one over the number of rows of its person.

    Replacing a record moves each count by at most one and the vector by at most ``sqrt(2)``.
    """
    weights = weights if people is None else people.weights
    return np.bincount(classes, weights, minlength=n_classes).astype(np.float64)


def balancing_weights(released: FloatArray, n_samples: int, noise: Any) -> FloatArray:
    """Return the released size of the rarest class over that of each: post-processing.

    Sizes of four classes and more are shrunk to their mean, as James and Stein do but by twice the
    squares of the noise: otherwise chance would make some of many classes rare. The standard
    deviation of the noise that is left is subtracted from the largest size and added to every other
    one, in case it made a class look rarer than it is. A size below one record counts as that.
    """
    if len(released) == 1:
        released = np.array([n_samples - released[0], released[0]])
    common, deviation = int(np.argmax(released)), noise_deviation(noise)
    if len(released) > 3:
        mean = released.mean()
        by_noise = 2.0 * (len(released) - 3) * deviation**2
        kept = 1.0 - by_noise / max(float(np.square(released - mean).sum()), by_noise, TINY)
        released, deviation = mean + kept * (released - mean), kept * deviation
    sizes = np.maximum(np.clip(released, 0.0, n_samples) + deviation, 1.0)
    sizes[common] -= 2.0 * deviation
    sizes[common] = sizes.max()
    return np.asarray(sizes.min() / sizes)
