"""What a ranking chooses beside its direction: a count of positive records, and a threshold.

Replacing a record changes the count by one at most, so it costs next to nothing; class weights
made from it are at most one, and one is what every sensitivity is computed with. The threshold is
chosen by the exponential mechanism from a grid that is a function of released coefficients; its
score is the weighted number of errors, to which a record adds at most one. Proof:
``docs/proofs/auc.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._people import People
from dp_halfspace.algorithms.plan import FloatArray, Noise, deviation
from dp_halfspace.algorithms.selection.staged_search import released_choice
from dp_halfspace.privacy.mechanisms import ExponentialChoice, NoNoise, Permit

# A class is assumed to hold at least this share of the records.
_RAREST = 0.001
# Candidates on each side of the centre, and how much nearer each is than the one before.
_PER_SIDE, _RATIO = 31, 2.0 ** (-1.0 / 3.0)
# Width of the step from right to wrong, relative to the largest score: with a jump a
# rounding error could move the score of a threshold by one for every record.
_STEP = 2.0**-16


@dataclass(frozen=True, slots=True)
class CountPlan:
    """The public numbers of one noisy count; the mechanism is for a number of sensitivity one."""

    n_samples: int
    mechanism: Noise

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise."""
        return deviation(self.mechanism)


def release_count(
    positive: NDArray[np.bool_], plan: CountPlan, permit: Permit, people: People | None = None
) -> float:
    """Release the number of positive records as any real number, which has to be clamped.

    A person counts by the share of positive rows; such shares add exactly.
    Sensitivity one: ``docs/proofs/auc.md``, section 1. `permit` is charged with the event of the
    plan's mechanism.
    """
    weights = np.ones(len(positive)) if people is None else people.weights
    count = np.array([weights[positive].sum()])
    return float(permit.release(count, plan.mechanism)[0])


def class_weights(
    count: float, n_samples: int, *, deviation: float = 0.0, power: float = 1.0
) -> FloatArray:
    """Return weights that make up for classes of different size, the rarer one having one.

    `count` is the public or noisy number of positive records, `deviation` that of its noise: the
    classes are taken to be nearer to each other in size than they seem, by so much. The larger
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


def plan_threshold(n_samples: int, n_columns: int, epsilon: float) -> ExponentialChoice | NoNoise:
    """Return the mechanism that chooses the threshold; infinite `epsilon` takes the best one."""
    if math.isinf(epsilon):
        return NoNoise()
    rounding = n_samples * (n_columns + 16) * 2.0**-36 + 2.0**-50 * n_samples * n_samples
    return ExponentialChoice(1.0 + 2.0**-30 + rounding, epsilon)


def threshold_grid(largest: float, centre: float) -> FloatArray:
    """Return 63 candidate thresholds within ``[-largest, largest]``, denser towards a centre.

    `largest` bounds the absolute scores; both numbers come from what was released.
    """
    steps = 2.0 * largest * _RATIO ** np.arange(_PER_SIDE)
    grid = np.concatenate([centre - steps, [centre], centre + steps])
    return np.asarray(np.clip(grid, -largest, largest))


def threshold_losses(
    scores: FloatArray,
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
    step = max(largest * _STEP, 1e-300)
    # A positive record is wrong below the threshold: one minus what a negative one would add.
    each = np.ones(len(scores)) if people is None else people.weights
    base = float(weights[1]) * float(each[positive].sum())
    signed = np.where(positive, -weights[1], weights[0]) * each
    # No more terms in one sum than there are people: docs/proofs/persons.md, section 4.
    size = len(scores) if people is None else len(people)
    parts = [slice(lo, lo + size) for lo in range(0, len(scores), size)]
    shares = (np.clip((scores - t) / step + 0.5, 0.0, 1.0) for t in grid)
    return base + np.array([math.fsum(signed[p] @ s[p] for p in parts) for s in shares])


def release_threshold(
    scores: FloatArray,
    positive: NDArray[np.bool_],
    weights: FloatArray,
    grid: FloatArray,
    *,
    mechanism: ExponentialChoice | NoNoise,
    permit: Permit,
    largest: float,
    people: People | None = None,
) -> float:
    """Choose a threshold of the grid with few errors: private, free to be used.

    `permit` is charged with the event of `mechanism`.
    """
    utilities = -threshold_losses(scores, positive, weights, grid, largest=largest, people=people)
    return float(grid[released_choice(utilities, mechanism, permit)])
