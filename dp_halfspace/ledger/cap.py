"""What a ledger accepts: a cap, and the rule by which entries are added up against it.

The plain rule composes exact profiles, for budgets that were fixed beforehand; the adaptive one is
a filter for budgets that earlier results decide on. ``docs/proofs/accounting.md``, section 9.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.events import Event, Exponential, Gaussian, Pure, Repeated, single_runs
from dp_halfspace.privacy.profiles import gdp_epsilon
from dp_halfspace.privacy.record import PrivacyRecord, rounded_text

# A cap of 1 holds ten times .1, although the floats add up to a little more. Far below what
# anybody means by an epsilon, and above the rounding of every record.
_EPSILON_SLACK, _DELTA_SLACK = 2.0**-40, 2.0**-37
# A purely private release of size e is no worse than Gaussian noise of mu = sqrt(pi / 2) e, an
# exponential mechanism than half of it; rounded up. Section 9, lemma 6.
_PURE = math.sqrt(0.5 * math.pi) * (1.0 + 2.0**-40)
_RANGE = 0.5 * _PURE
# More fits of one size than this are not counted.
MOST_FITS = 10**6
_TINY, _COUNT = 1e-150, 2.0**600  # squares neither underflow nor raise


@dataclass(frozen=True, slots=True)
class Cap:
    """The most that may be spent; `adaptive` if earlier results may decide on later budgets."""

    epsilon: float
    delta: float
    adaptive: bool

    def holds(self, events: Sequence[Event]) -> bool:
        """Whether a list of events is within the cap."""
        cost = accounting.delta(self._compared(events), self.epsilon * (1.0 + _EPSILON_SLACK))
        return cost <= self.delta * (1.0 + _DELTA_SLACK)

    def spent(self, events: Sequence[Event], delta: float) -> float:
        """Epsilon of a list of events by the rule of this cap, rounded up."""
        if not self.adaptive:
            return accounting.epsilon(events, delta)
        gaussian = accounting.epsilon([Gaussian(_as_gaussian(events))], delta)
        return min(gaussian, _as_pure(events))

    def remaining(self, spent: Sequence[Event], delta: float, *, rtol: float = 1e-10) -> float:
        """Largest epsilon of one further fit, Gaussian or for delta = 0 pure, that is accepted."""

        def further(size: float) -> Sequence[Event]:
            return [*spent, Gaussian(size) if delta > 0.0 else Pure(size)]

        if accounting.delta(self._compared(spent), self.epsilon) > self.delta:
            return 0.0
        if math.isinf(self.epsilon):
            return math.inf
        if self.delta == 0.0:
            left = self.epsilon - self.spent(spent, 0.0) if delta == 0.0 else 0.0
            return max(math.nextafter(left, 0.0), 0.0)
        upper = 1.0
        while self.holds(further(upper)):
            upper *= 2.0
        left = accounting.calibrate(
            lambda size: self._compared(further(size)),
            self.epsilon,
            self.delta,
            lower=0.0,
            upper=upper,
            rtol=rtol,
        )
        return gdp_epsilon(left, delta) if delta > 0.0 else left

    def count(self, spent: Sequence[Event], events: Sequence[Event]) -> int:
        """How often all of `events` are accepted, up to `MOST_FITS` times."""

        def fits(count: int) -> bool:
            return self.holds([*spent, *(Repeated(event, count) for event in events)])

        if not fits(1):
            return 0
        least, most = 1, 2
        while most <= MOST_FITS and fits(most):
            least, most = most, 2 * most
        most = min(most, MOST_FITS + 1)
        while most - least > 1:
            middle = (least + most) // 2
            least, most = (middle, most) if fits(middle) else (least, middle)
        return least

    def refusal(self, spent: Sequence[Event], record: PrivacyRecord) -> str:
        """Say in public numbers what was asked for, spent and left."""
        # What is left is less for a Gaussian release than for a pure one; say it for its kind.
        is_pure = math.isfinite(_as_pure(record.events))
        kind = 0.0 if is_pure else self.delta
        at = 0.0 if is_pure else record.delta or self.delta
        asked = rounded_text(self.spent(record.events, kind))
        used = rounded_text(self.spent(spent, self.delta))
        left, most = (
            rounded_text(self.remaining(spent, d, rtol=1e-4), up=False) for d in (kind, at)
        )
        release = "purely private release" if is_pure else "Gaussian release"
        text = (
            f"it asks for epsilon={asked} at delta={kind!r}; spent is {used} at "
            f"delta={self.delta!r}, left is {left} at delta={kind!r}; "
        )
        if float(most):
            text += f"a {release} at delta={at!r} fits up to epsilon={most}"
        else:
            text += f"no {release} fits any more"
        if self.adaptive and math.isinf(_as_gaussian(record.events)):
            text += "; an adaptive ledger takes Gaussian and purely private releases only"
        return text

    def _compared(self, events: Sequence[Event]) -> Sequence[Event]:
        """Return what is compared with the cap: events that are no better than those given."""
        if not self.adaptive:
            return events
        # Within the cap by its sum alone, a purely private list can take no part in delta.
        pure = _as_pure(events)
        if pure <= self.epsilon * (1.0 + _EPSILON_SLACK):
            return [Pure(pure)]
        return [Gaussian(_as_gaussian(events))]


def _as_pure(events: Sequence[Event]) -> float:
    """Sum of the epsilons, rounded up; infinity if a release is not purely private."""
    total = Fraction(0)
    for event, count in single_runs(events).items():
        if isinstance(event, Pure | Exponential) and math.isfinite(event.epsilon):
            total += Fraction(event.epsilon) * count
        elif event != Gaussian(0.0):
            return math.inf
    return accounting.rounded_up(total) if total < _COUNT else math.inf


def _as_gaussian(events: Sequence[Event]) -> float:
    """Mu of one Gaussian release that is no better than all events, in any adaptive order."""
    total = 0.0
    for event, count in single_runs(events).items():
        if isinstance(event, Gaussian):
            mu = event.mu
        elif isinstance(event, Pure | Exponential):
            mu = (_PURE if isinstance(event, Pure) else _RANGE) * event.epsilon
        else:
            return math.inf
        mu = max(mu, _TINY) if mu else 0.0
        total += min(count, _COUNT) * mu * mu
    return math.sqrt(total) * (1.0 + 2.0**-45)
