"""How many records are positive: a noisy count, and class weights made from it.

Replacing a record changes the count by one at most, so it costs next to nothing; what is
computed from the noisy count is free. No scale of noise is: weights are at most one, and
one is what every sensitivity is computed with.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._chunks import summed
from dp_halfspace._people import People
from dp_halfspace.algorithms.plan import FloatArray, Noise
from dp_halfspace.algorithms.units.plan import deviation
from dp_halfspace.privacy.mechanisms import Permit

# A class is assumed to hold at least this share of the records.
_RAREST = 0.001


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
    positive: Any, plan: CountPlan, permit: Permit, people: People | None = None
) -> float:
    """Release the number of positive records as any real number, which has to be clamped.

    A person counts by the share of positive rows; such shares add exactly.
    Sensitivity one: ``docs/proofs/auc.md``, section 1. `permit` is charged with the event of the
    plan's mechanism.
    """
    count = np.array([summed(weight_of, positive, people)])
    return float(permit.release(count, plan.mechanism)[0])


def weight_of(chosen: NDArray[np.bool_], people: People | None) -> float:
    """Return the number of chosen rows, or the sum of their shares of people; exact."""
    return float(np.count_nonzero(chosen) if people is None else people.weights[chosen].sum())


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
