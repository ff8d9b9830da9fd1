"""The first of a list of candidates that meets a target, chosen by the exponential mechanism.

What a candidate has beyond the target moves by at most one if a record is replaced; so does the
utility that is made of it here. Proofs: ``docs/proofs/operating_points.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.privacy.exponential import ParallelChoice
from dp_halfspace.privacy.mechanisms import ExponentialChoice, NoNoise

# Shares of counts, and slacks, are multiples of one over this: what is computed of counts is exact.
COUNT_GRID = 2**12


def rounded_up(number: float) -> float:
    """Return the next multiple of the unit; at least one of them where it is tiny."""
    return math.ceil(number * COUNT_GRID) / COUNT_GRID


def rounded_down(number: float) -> float:
    """Return the last multiple of the unit that is not larger."""
    return math.floor(number * COUNT_GRID) / COUNT_GRID


def crossing_utilities(excess: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return utilities that are nonnegative for the first candidate with an excess of zero.

    A candidate is as good as its own excess and as what all candidates before it lack: each
    utility is a minimum of numbers that move as much as the excesses do. Candidates stand along
    the last axis, the preferred ones first.
    """
    before = np.maximum.accumulate(excess, axis=-1)[..., :-1]
    utilities = excess.copy()
    np.minimum(utilities[..., 1:], -before, out=utilities[..., 1:])
    return utilities


def chosen_places(
    released: NDArray[np.float64], mechanism: ExponentialChoice | ParallelChoice | NoNoise
) -> NDArray[np.intp]:
    """Return the numbers of the chosen candidates; without noise those of the best."""
    if isinstance(mechanism, NoNoise):
        return np.atleast_1d(released.argmax(axis=-1))
    return released.astype(np.intp)


@dataclass(frozen=True, slots=True)
class Slack:
    """What a target is raised by, so that it is met in spite of the noise of a choice.

    Attributes
    ----------
    n_candidates : int
        Number of candidates; the last one always meets the target.
    rate : float
        Weight of a candidate is the exponential of this times its utility.
    """

    n_candidates: int
    rate: float

    def for_failure(self, beta: float) -> float:
        """Return the slack for which the choice fails with probability `beta` at most."""
        if math.isinf(self.rate):
            return 0.0
        return rounded_up(math.log(max(self.n_candidates - 1, 1) / beta) / self.rate)

    @property
    def usual_variance(self) -> float:
        """Variance of the excess of the chosen candidate, where one stands at every rank."""
        return 2.0 / self.rate**2

    def for_mean(self) -> float:
        """Return what failures cost in the mean, in records, with a slack for `beta` = 1."""
        return 0.0 if math.isinf(self.rate) else rounded_up(1.0 / (math.e * self.rate))
