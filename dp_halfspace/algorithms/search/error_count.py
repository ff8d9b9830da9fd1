"""How often a chosen classifier errs: a noisy count, and what it says beside a public guess."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dp_halfspace.algorithms.engine.plan import FloatArray
from dp_halfspace.privacy.discrete import DiscreteLaplaceNoise
from dp_halfspace.privacy.mechanisms import Permit

# n epsilon of a count that says enough, and the least and the largest part of a budget for it.
_ENOUGH, _LEAST, _MOST = 15.0, 0.05, 0.25
# Shares of errors that are held for possible; those near zero and near one half are twice as
# likely as the others: tables of a rare class, and tables of which little can be learnt.
_SHARES = (np.arange(100) + 0.5) / 200.0
_RARE, _HARD, _LIKELIER = 0.08, 0.4, 2.0
# Without a count.
USUAL_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class ErrorCount:
    """The public numbers of one noisy count of errors among `n_samples` records."""

    n_samples: int
    noise: DiscreteLaplaceNoise

    def run(self, n_errors: int, permit: Permit) -> float:
        """Release a share of errors: the mean of those that explain the noisy count.

        Replacing a record moves the count by one at most: ``docs/proofs/small_tables.md``,
        section 6. `permit` is charged with the event of the noise.
        """
        noisy = float(permit.release(np.array([float(n_errors)]), self.noise)[0])
        return share_of(noisy, self.n_samples, self.noise.epsilon)


def share_of(noisy: float, n_samples: int, epsilon: float) -> float:
    """Return the mean share of errors, given a noisy count: post-processing."""
    distance: FloatArray = np.abs(noisy - _SHARES * n_samples) * epsilon
    likely = np.exp(distance.min() - distance)
    likely[(_SHARES < _RARE) | (_SHARES > _HARD)] *= _LIKELIER
    return float(likely @ _SHARES / likely.sum())


def plan_error_count(n_samples: int, epsilon: float) -> tuple[ErrorCount, float]:
    """Plan a count as a part of a pure budget; return the epsilon that is left."""
    part = epsilon * min(max(_ENOUGH / (n_samples * epsilon), _LEAST), _MOST)
    noise = DiscreteLaplaceNoise(1, part)
    return ErrorCount(n_samples, noise), (epsilon - part) * (1.0 - 2.0**-30)
