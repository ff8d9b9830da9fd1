"""The first of a list of candidates that meets a target, chosen by the exponential mechanism.

What a candidate has beyond the target moves by at most one if a record is replaced; so does the
utility that is made of it here. Proofs: ``docs/proofs/operating_points.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import lambertw

from dp_halfspace.privacy.exponential import ParallelChoice
from dp_halfspace.privacy.mechanisms import ExponentialChoice, NoNoise

# Shares of counts, and slacks, are multiples of one over this: what is computed of counts is exact.
COUNT_GRID = 2**12
# Natural logarithm of the weight of a candidate over that of the one before it.
_STEP = 0.1


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


@dataclass(frozen=True, slots=True)
class MeanSlack:
    """What a target is raised by, so that it is met in the mean over the noise of a choice.

    Each step from the last candidate, which always meets the target, costs a public ``step`` of
    utility: however many candidates miss the target, together they weigh at most ``odds`` times
    the first that meets it. ``docs/proofs/operating_points.md``, section 3.

    Attributes
    ----------
    rate : float
        Weight of a candidate is the exponential of this times its utility.
    """

    rate: float

    @property
    def step(self) -> float:
        """Utility that a candidate loses against the next one: a weight of about nine tenths."""
        return 0.0 if math.isinf(self.rate) else rounded_up(_STEP / self.rate)

    @property
    def odds(self) -> float:
        """Bound on the weight of all candidates before one, in weights of that one."""
        return 1.0 / math.expm1(self.rate * self.step)

    @property
    def mean(self) -> float:
        """Records that the target is raised by: the mean cost of choices that miss it."""
        if math.isinf(self.rate):
            return 0.0
        if self.rate > 1.0:
            return rounded_up(math.log1p(self.odds) / self.rate)
        # The record that is left out moves the weights of others by this factor at most.
        moved = math.exp(self.rate)
        return rounded_up(moved * float(lambertw(self.odds / (math.e * moved)).real) / self.rate)

    def for_failure(self, beta: float) -> float:
        """Return what all but the last must lack, to be chosen with probability `beta` at most."""
        if math.isinf(self.rate):
            return 0.0
        return rounded_up(max(math.log(self.odds / beta), 0.0) / self.rate)
