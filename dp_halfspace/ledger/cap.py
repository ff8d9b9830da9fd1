"""What a ledger accepts: a cap on the total privacy loss, and the rule that composes entries.

The plain rule composes exact privacy profiles, for budgets that are fixed in advance. The adaptive
rule is a privacy filter, for budgets that may depend on earlier results.
``docs/proofs/accounting.md``, section 9.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dp_halfspace._rounding import TINY, UP
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.events import Either, Event, Exponential, Gaussian, Pure, single_runs

# The factor by which a computed delta exceeds the true one, so that rounding refuses no release.
_CAP_DELTA_SLACK = 2.0**-37
# A pure DP release of size e costs at most as much as Gaussian noise of mu = sqrt(pi / 2) e, an
# exponential mechanism at most as much as half of it; rounded up. Section 9, lemma 6.
_MU_OF_PURE = math.sqrt(0.5 * math.pi) * UP


@dataclass(frozen=True, slots=True)
class Cap:
    """The total budget; `adaptive` if later budgets may depend on earlier results."""

    epsilon: float
    delta: float
    adaptive: bool

    def holds(self, events: Sequence[Event]) -> bool:
        """Whether a list of events is within the cap."""
        # A cap of 1 admits ten releases of .1, although the floats add up to slightly more.
        epsilon = self.epsilon * UP
        if self.adaptive:
            # A pure DP list whose sum is within the cap uses nothing of delta.
            pure = _as_pure(events)
            events = [Pure(pure) if pure <= epsilon else Gaussian(_as_gaussian(events))]
        if self.delta == 0.0:
            # A sum; the delta of releases beyond it is of no interest.
            return accounting.epsilon(events, 0.0) <= epsilon
        return accounting.delta(events, epsilon) <= self.delta * (1.0 + _CAP_DELTA_SLACK)

    def spent(self, events: Sequence[Event], delta: float) -> float:
        """Epsilon of a list of events by the rule of this cap, rounded up."""
        if not self.adaptive:
            return accounting.epsilon(events, delta)
        gaussian = accounting.epsilon([Gaussian(_as_gaussian(events))], delta)
        return min(gaussian, _as_pure(events))


def _as_pure(events: Sequence[Event]) -> float:
    """Return the sum of the epsilons, rounded up, or infinity if a release is not pure DP."""
    total = Fraction(0)
    for event, count in single_runs(events).items():
        if isinstance(event, Pure | Exponential) and math.isfinite(event.epsilon):
            total += Fraction(event.epsilon) * count
        elif event != Gaussian(0.0):
            return math.inf
    return accounting.round_up(total) if total < sys.float_info.max else math.inf


def _as_gaussian(events: Sequence[Event]) -> float:
    """Return mu of one Gaussian release that costs at least as much as all events, in any order."""
    total = 0.0
    for event, count in single_runs(events).items():
        if isinstance(event, Gaussian):
            mu = event.mu
        elif isinstance(event, Pure):
            mu = _MU_OF_PURE * event.epsilon
        elif isinstance(event, Exponential | Either):
            mu = max(getattr(event, "mu", 0.0), 0.5 * _MU_OF_PURE * event.epsilon)
        else:
            return math.inf
        if count > sys.float_info.max:
            return math.inf
        # The smallest numbers of all lose digits.
        total = math.hypot(total, math.sqrt(count) * (max(mu, TINY) if mu else 0.0))
    return total * UP
