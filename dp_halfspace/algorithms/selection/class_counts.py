"""How many records are positive: a noisy count, and class weights made from it.

Replacing a record changes the count by one at most, so it costs next to nothing; what is
computed from the noisy count is free. No scale of noise is: weights are at most one, and
one is what every sensitivity is computed with.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.privacy.mechanisms import GaussianNoise, L2LaplaceNoise, NoNoise, Permit

__all__ = ["CountPlan", "class_weights", "release_count", "smaller_share"]

FloatArray: TypeAlias = NDArray[np.float64]

# A class is assumed to hold at least this share of the records.
_RAREST = 0.01


@dataclass(frozen=True, slots=True)
class CountPlan:
    """The public numbers of one noisy count.

    Attributes
    ----------
    mechanism : GaussianNoise, L2LaplaceNoise or NoNoise
        For a number of sensitivity one.
    """

    n_samples: int
    mechanism: GaussianNoise | L2LaplaceNoise | NoNoise

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise."""
        if isinstance(self.mechanism, GaussianNoise):
            return self.mechanism.sigma
        if isinstance(self.mechanism, L2LaplaceNoise):
            return math.sqrt(2.0) * self.mechanism.scale
        return 0.0


def release_count(positive: NDArray[np.bool_], plan: CountPlan, permit: Permit) -> float:
    """Release the number of positive records.

    Parameters
    ----------
    permit : Permit
        Charged with the event of the plan's mechanism.

    Returns
    -------
    float
        Any real number; clamp it.

    Notes
    -----
    Privacy: sensitivity one, ``docs/proofs/auc.md``, section 1.
    """
    count = np.array([float(np.count_nonzero(positive))])
    return float(permit.release(count, plan.mechanism)[0])


def class_weights(
    count: float, n_samples: int, *, deviation: float = 0.0, power: float = 1.0
) -> FloatArray:
    """Return weights that make up for classes of different size, the rarer one having one.

    Parameters
    ----------
    count : float
        Number of positive records, public or with noise.
    deviation : float, default=0.0
        Standard deviation of the noise of the count. The classes are taken to be nearer to
        each other in size than they seem, by so much.
    power : float, default=1.0
        The larger class weighs ``(n_smaller / n_larger) ** power``.

    Returns
    -------
    ndarray of shape (2,)
        Weights of the negative and of the positive class, in (0, 1].

    Examples
    --------
    >>> from dp_halfspace.algorithms.selection.class_counts import class_weights
    >>> class_weights(200.0, 1000), class_weights(200.0, 1000, power=0.5)
    (array([0.25, 1.  ]), array([0.5, 1. ]))
    >>> class_weights(-7.0, 1000, power=0.0), class_weights(520.0, 1000, deviation=50.0)
    (array([1., 1.]), array([1., 1.]))
    """
    share = _share(count, n_samples, deviation)
    ratio = (min(share, 1.0 - share) / max(share, 1.0 - share)) ** power
    return np.array([ratio, 1.0]) if share < 0.5 else np.array([1.0, ratio])


def smaller_share(count: float, n_samples: int, *, deviation: float = 0.0) -> float:
    """Return the share of the rarer class, in [0.01, 0.5].

    Parameters
    ----------
    count, n_samples, deviation
        As in :func:`class_weights`.

    Examples
    --------
    >>> from dp_halfspace.algorithms.selection.class_counts import smaller_share
    >>> round(smaller_share(800.0, 1000), 6), smaller_share(20.0, 1000, deviation=9.0)
    (0.2, 0.029)
    """
    share = _share(count, n_samples, deviation)
    return min(share, 1.0 - share)


def _share(count: float, n_samples: int, deviation: float) -> float:
    """Return the share of the positive records, moved towards one half by the noise."""
    half = n_samples / 2.0
    excess = math.copysign(max(abs(count - half) - deviation, 0.0), count - half)
    return min(max((half + excess) / n_samples, _RAREST), 1.0 - _RAREST)
