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
        # A pure DP list whose sum is within the cap uses nothing of delta.
        is_pure = accounting.epsilon(events, 0.0) <= epsilon
        if is_pure or self.delta == 0.0:
            return is_pure
        if self.adaptive:
            events = [Gaussian(_as_gaussian(events))]
        return accounting.delta(events, epsilon) <= self.delta * (1.0 + _CAP_DELTA_SLACK)

    def spent(self, events: Sequence[Event], delta: float) -> float:
        """Epsilon of a list of events by the rule of this cap, rounded up."""
        if not self.adaptive:
            return accounting.epsilon(events, delta)
        gaussian = accounting.epsilon([Gaussian(_as_gaussian(events))], delta)
        return min(gaussian, accounting.epsilon(events, 0.0))


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
