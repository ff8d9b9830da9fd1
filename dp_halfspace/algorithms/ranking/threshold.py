"""What a ranking needs beside its direction: a count of the positive records, and a threshold.

Replacing a record changes the count by one at most, so it costs next to nothing; what is
computed from the noisy count is free. No scale of noise is: weights are at most one, and
one is what every sensitivity is computed with.

The threshold on released scores is chosen by the exponential mechanism over a public grid, a
function of released coefficients; the score of a threshold is the weighted number of errors, to
which a record adds at most one. Proof: ``docs/proofs/auc.md``.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._rounding import FAR_UP
from dp_halfspace.algorithms.engine.plan import FloatArray, Noise
from dp_halfspace.data.chunks import sum_over_chunks
from dp_halfspace.data.people import People
from dp_halfspace.privacy.mechanisms import ExponentialChoice, NoNoise, Permit

# A class is assumed to hold at least this share of the records.
_RAREST = 0.001


def release_count(
    positive: Any, noise: Noise, permit: Permit, people: People | None = None
) -> float:
    """Release the number of positive records as any real number, which has to be clamped.

    A person counts by the share of positive rows; such shares add exactly.
    Sensitivity one: ``docs/proofs/auc.md``, section 1. `permit` is charged with the event of the
    noise.
    """
    count = np.array([sum_over_chunks(weight_of, positive, people)])
    return float(permit.release(count, noise)[0])


def weight_of(chosen: NDArray[np.bool_], people: People | None) -> float:
    """Return the number of chosen rows, or the sum of their shares of people; exact."""
    return float(np.count_nonzero(chosen) if people is None else people.weights[chosen].sum())


def class_weights(
    count: float, n_samples: int, *, deviation: float = 0.0, power: float = 1.0
) -> FloatArray:
    """Return weights that make up for classes of different size, the rarer one having one.

    `count` is the public or noisy number of positive records, `deviation` that of its noise: the
    classes are taken to be nearer to each other in size than they seem, by so much. The majority
    class weighs ``(n_smaller / n_larger) ** power``. The negative class comes first.
    """
    share = _share(count, n_samples, deviation)
    ratio = (min(share, 1.0 - share) / max(share, 1.0 - share)) ** power
    return np.array([ratio, 1.0]) if share < 0.5 else np.array([1.0, ratio])


def smaller_share(count: float, n_samples: int, *, deviation: float = 0.0) -> float:
    """Return the share of the rarer class, in [0.001, 0.5]; arguments as in `class_weights`."""
    share = _share(count, n_samples, deviation)
    return min(share, 1.0 - share)


def _share(count: float, n_samples: int, deviation: float) -> float:
    """Return the share of the positive records, moved towards one half by the noise."""
    half = n_samples / 2.0
    excess = math.copysign(max(abs(count - half) - deviation, 0.0), count - half)
    return min(max((half + excess) / n_samples, _RAREST), 1.0 - _RAREST)


# Candidates on each side of the centre, and how much nearer each is than the one before.
_PER_SIDE, _RATIO = 31, 2.0 ** (-1.0 / 3.0)
# Width of the step from right to wrong, relative to the largest score: with a jump a
# rounding error could move the score of a threshold by one for every record.
_STEP, _SMALLEST = 2.0**-16, 1e-290
# Cells of scores on each side of zero, and records that are counted at a time.
_HALF, _BLOCK_ROWS = 4096, 2**15


def plan_threshold(n_samples: int, n_columns: int, epsilon: float) -> ExponentialChoice | NoNoise:
    """Return the mechanism that chooses the threshold; infinite `epsilon` takes the best one."""
    if math.isinf(epsilon):
        return NoNoise()
    rounding = n_samples * (n_columns + 16) * 2.0**-36 + 2.0**-50 * n_samples * n_samples
    return ExponentialChoice(FAR_UP + rounding, epsilon)


def threshold_grid(largest: float, centre: float) -> FloatArray:
    """Return 63 candidate thresholds within ``[-largest, largest]``, denser towards a centre.

    `largest` bounds the absolute scores; both numbers come from what was released.
    """
    steps = 2.0 * largest * _RATIO ** np.arange(_PER_SIDE)
    grid = np.concatenate([centre - steps, [centre], centre + steps])
    return np.asarray(np.clip(grid, -largest, largest))


def threshold_losses(
    scores: NDArray[Any],
    positive: NDArray[np.bool_],
    weights: FloatArray,
    grid: FloatArray,
    *,
    largest: float,
    people: People | None = None,
) -> FloatArray:
    """Return the weighted number of errors of every threshold.

    `weights` in [0, 1] are of the negative and the positive class. A record within
    ``2^-17 largest`` of a threshold counts in part, and so does a row that one of `people` owns.
    """
    # A positive record is wrong below the threshold: one minus what a negative one would add.
    base = float(weights[1]) * weight_of(positive, people)
    each = None if people is None else people.weights
    # No more terms in one sum than there are people: docs/proofs/persons.md, section 4.
    size = min(_BLOCK_ROWS, len(scores) if people is None else len(people))
    parts = [slice(lo, lo + size) for lo in range(0, len(scores), size)]
    losses = []
    for part in parts:
        signed = np.where(positive[part], -weights[1], weights[0])
        if each is not None:
            signed *= each[part]
        losses.append(_added(scores[part], signed, grid, largest))
    return base + np.array([math.fsum(column) for column in zip(*losses, strict=True)])


def _added(
    scores: NDArray[Any], signed: FloatArray, grid: FloatArray, largest: float
) -> FloatArray:
    """Add up what the records above each threshold count, those near it in part.

    Whole cells of scores are added at once: only records in cells that a ramp reaches are looked
    at for each threshold.
    """
    unit = max(largest, _SMALLEST)
    scores = np.clip(scores, -largest, largest, dtype=np.float64)
    step, cells = unit * _STEP, _cells(scores, unit)
    ends = _cells(grid - step, unit), _cells(grid + step, unit)
    sums = np.bincount(cells, signed, minlength=2 * _HALF + 1)
    mixed = np.zeros(len(sums), dtype=np.bool_)
    for first, last in zip(*ends, strict=True):
        mixed[first : last + 1] = True
    sums[mixed] = 0.0
    near = np.flatnonzero(mixed[cells])
    ramps = np.subtract.outer(grid, scores[near])
    ramps /= -step
    ramps += 0.5
    np.clip(ramps, 0.0, 1.0, out=ramps)
    above = np.cumsum(sums[::-1])[::-1]
    return np.asarray(above[ends[1]] + ramps @ signed[near])


def _cells(scores: FloatArray, unit: float) -> NDArray[np.intp]:
    """Return the numbers of the cells that scores up to a unit fall into, in the same order."""
    return np.asarray(scores * (_HALF / unit) + _HALF, dtype=np.intp)


def release_threshold(
    scores: Any,
    positive: Any,
    weights: FloatArray,
    grid: FloatArray,
    *,
    mechanism: ExponentialChoice | NoNoise,
    permit: Permit,
    largest: float,
    people: People | None = None,
) -> float:
    """Choose a threshold of the grid with few errors: private, free to be used.

    Scores may be in chunks. `permit` is charged with the event of `mechanism`.
    """
    losses = partial(threshold_losses, largest=largest, people=people)
    utilities = -sum_over_chunks(losses, scores, positive, weights, grid)
    return float(grid[permit.choose(utilities, mechanism)])
