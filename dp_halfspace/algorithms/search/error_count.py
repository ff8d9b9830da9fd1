"""How often a chosen classifier errs: a noisy count, and what it says beside a public guess."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dp_halfspace._rounding import FAR_DOWN
from dp_halfspace.algorithms.engine.plan import FloatArray
from dp_halfspace.privacy.mechanisms import Permit
from dp_halfspace.privacy.noise import DiscreteLaplaceNoise

# n epsilon of a count that says enough, and the least and the largest part of a budget for it, of
# two classes and of more.
_ENOUGH, _LEAST, _MOST, _MOST_OF_SEVERAL = 20.0, 0.05, 0.25, 0.15
# Shares of errors that are held for possible, as parts of that of a guess.
_PARTS = (np.arange(100) + 0.5) / 100.0
# Without a count.
USUAL_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class ErrorCount:
    """The public numbers of one noisy count of errors among `n_samples` records."""

    n_samples: int
    noise: DiscreteLaplaceNoise
    n_classes: int = 2

    def run(self, n_errors: int, permit: Permit) -> float:
        """Release a share of errors: the mean of those that explain the noisy count.

        Replacing a record moves the count by one at most: ``docs/proofs/small_tables.md``,
        section 6. `permit` is charged with the event of the noise.
        """
        noisy = float(permit.release(np.array([float(n_errors)]), self.noise)[0])
        return share_of(noisy, self.n_samples, self.noise.epsilon, self.n_classes)


def share_of(noisy: float, n_samples: int, epsilon: float, n_classes: int = 2) -> float:
    """Return the mean share of errors, given a noisy count: post-processing.

    A guess among `n_classes` is wrong in ``1 - 1 / n_classes`` of the cases; shares are below. All
    are equally likely beforehand with two classes; with more, a share is as likely as it is large.
    """
    shares = _PARTS * (1.0 - 1.0 / n_classes)
    distance: FloatArray = np.abs(noisy - shares * n_samples) * epsilon
    likely = np.exp(distance.min() - distance)
    if n_classes > 2:
        likely *= shares
    return float(likely @ shares / likely.sum())


def plan_error_count(
    n_samples: int, epsilon: float, n_classes: int = 2
) -> tuple[ErrorCount, float]:
    """Plan a count as a part of a pure budget; return the epsilon that is left."""
    most = _MOST if n_classes == 2 else _MOST_OF_SEVERAL
    part = epsilon * min(max(_ENOUGH / (n_samples * epsilon), _LEAST), most)
    noise = DiscreteLaplaceNoise(1, part)
    return ErrorCount(n_samples, noise, n_classes), (epsilon - part) * FAR_DOWN
