"""How often a chosen classifier errs: a noisy count, and what it says beside a public guess."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dp_halfspace._rounding import DOWN, FAR_DOWN
from dp_halfspace.algorithms.engine.plan import FloatArray
from dp_halfspace.privacy.exponential import CountedChoice
from dp_halfspace.privacy.mechanisms import Permit
from dp_halfspace.privacy.noise import DiscreteLaplaceNoise

# n epsilon of a count that says enough, and the least and the largest part of a budget for it, of
# two classes and of more.
_ENOUGH, _LEAST, _MOST, _MOST_OF_SEVERAL = 20.0, 0.05, 0.25, 0.15
# Shares of errors that are held for possible, as parts of that of a guess.
_PARTS = (np.arange(100) + 0.5) / 100.0
# Errors on other records beyond those that were counted, by e (1 - e) and epsilon of the choice: it
# fits records by chance the more, the larger its epsilon is.
_OPTIMISM = 0.125
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
        rate = self.noise.epsilon
        return share_of(noisy, self.n_samples, (rate, rate), self.n_classes)


def counted_share(
    noisy: float, n_samples: int, choice: CountedChoice, n_classes: int, *, is_constant: bool
) -> float:
    """Return the share of errors of a chosen classifier, by its noisy count: post-processing.

    A constant classifier fits no record by chance.
    """
    below, above = map(float, choice.rates)
    share = share_of(noisy, n_samples, (below, above), n_classes)
    if is_constant:
        return share
    more = _OPTIMISM * choice.choice_epsilon * share * (1.0 - share)
    return float(min(share + more, _PARTS[-1] * (1.0 - 1.0 / n_classes)))


def share_of(noisy: float, n_samples: int, rates: tuple[float, float], n_classes: int = 2) -> float:
    """Return the mean share of errors, given a noisy count: post-processing.

    The noise falls off with these `rates` below and above the count. A guess among `n_classes` is
    wrong in ``1 - 1 / n_classes`` of the cases; shares are below. All are equally likely beforehand
    with two classes; with more, a share is as likely as it is large.
    """
    shares = _PARTS * (1.0 - 1.0 / n_classes)
    noise = noisy - shares * n_samples
    distance: FloatArray = np.where(noise < 0.0, -rates[0] * noise, rates[1] * noise)
    likely = np.exp(distance.min() - distance)
    if n_classes > 2:
        likely *= shares
    return float(likely @ shares / likely.sum())


def _part_of(n_samples: int, epsilon: float, n_classes: int) -> float:
    """Return the part of a pure budget that is spent on a count."""
    most = _MOST if n_classes == 2 else _MOST_OF_SEVERAL
    return min(max(_ENOUGH / (n_samples * epsilon), _LEAST), most)


def plan_counted_choice(n_samples: int, epsilon: float, n_classes: int = 2) -> CountedChoice:
    """Plan a choice and the count of its errors at a pure budget."""
    whole = epsilon * DOWN
    return CountedChoice(whole, whole * (1.0 - _part_of(n_samples, epsilon, n_classes)))


def plan_error_count(n_samples: int, epsilon: float, n_classes: int) -> tuple[ErrorCount, float]:
    """Plan a count as a part of a pure budget; return the epsilon that is left."""
    part = epsilon * _part_of(n_samples, epsilon, n_classes)
    noise = DiscreteLaplaceNoise(1, part)
    return ErrorCount(n_samples, noise, n_classes), (epsilon - part) * FAR_DOWN
