"""What a ledger accepts: a cap, and the rule by which entries are added up against it.

`Cap` is the rule for one list of events, `Account` for all that one record may have taken part in.

The plain rule composes exact profiles, for budgets that were fixed beforehand; the adaptive one is
a filter for budgets that earlier results decide on. ``docs/proofs/accounting.md``, section 9.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dp_halfspace._rounding import UP
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.events import Event, Exponential, Gaussian, Pure, Repeated, single_runs
from dp_halfspace.privacy.profiles import gdp_epsilon, gdp_mu
from dp_halfspace.privacy.record import PrivacyRecord, rounded_text

# A cap of 1 holds ten times .1, although the floats add up to a little more. Far below what
# anybody means by an epsilon, and above the rounding of every record.
_EPSILON_SLACK = 2.0**-40
_DELTA_SLACK = 2.0**-37
# A pure DP release of size e is no worse than Gaussian noise of mu = sqrt(pi / 2) e, an
# exponential mechanism than half of it; rounded up. Section 9, lemma 6.
_MU_OF_PURE = math.sqrt(0.5 * math.pi) * UP
_MU_OF_EXPONENTIAL = 0.5 * _MU_OF_PURE
# More fits of one size than this are not counted.
MOST_FITS = 10**6
# Smallest mu and largest number of releases that are added up: squares neither underflow nor raise.
_SMALLEST_MU = 1e-150
_LARGEST_COUNT = 2.0**600


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
            infer=True,
        )
        return gdp_epsilon(left, delta) if delta > 0.0 else left

    def count(self, spent: Sequence[Event], events: Sequence[Event]) -> int:
        """How often all of `events` are accepted, up to `MOST_FITS` times."""

        def fits(count: int) -> bool:
            return self.holds([*spent, *(Repeated(event, count) for event in events)])

        most = 1
        while most <= MOST_FITS and fits(most):
            most *= 2
        refused = range(min(most, MOST_FITS + 1))
        return bisect_left(refused, True, lo=most // 2 + 1, key=lambda n: not fits(n)) - 1

    def _compared(self, events: Sequence[Event]) -> Sequence[Event]:
        """Return what is compared with the cap: events that are no better than those given."""
        if not self.adaptive:
            return events
        # Within the cap by its sum alone, a pure DP list can take no part in delta.
        pure = _as_pure(events)
        if pure <= self.epsilon * (1.0 + _EPSILON_SLACK):
            return [Pure(pure)]
        return [Gaussian(_as_gaussian(events))]


@dataclass(frozen=True, slots=True)
class Account:
    """A cap, and all that one replaced record may have taken part in: every case is within it.

    A case is a list of events that add up. There are several only where releases are about disjoint
    parts of the data set: ``docs/proofs/accounting.md``, section 10.
    """

    cap: Cap
    cases: Sequence[Sequence[Event]]

    def holds(self, events: Sequence[Event] = ()) -> bool:
        """Whether further events are within the cap in every case."""
        return all(self.cap.holds([*case, *events]) for case in self.cases)

    def spent(self, delta: float, events: Sequence[Event] = ()) -> float:
        """Epsilon of the costliest case, with further events, rounded up."""
        most = 0.0
        for case in self._costliest_first():
            total = [*case, *events]
            # A case that is known to cost no more needs one evaluation, no search for its epsilon.
            if self.cap.adaptive or accounting.delta(total, most) > delta:
                most = max(most, self.cap.spent(total, delta))
        return most

    def remaining(self, delta: float, *, rtol: float = 1e-10) -> float:
        """Largest epsilon of one further fit, Gaussian or for delta = 0 pure, that is accepted."""
        left = math.inf
        for case in self._costliest_first():
            # A case that accepts as much needs no search for what it has left.
            if left == math.inf or not self._accepts(case, left, delta):
                left = min(left, self.cap.remaining(case, delta, rtol=rtol))
        return left

    def _costliest_first(self) -> Sequence[Sequence[Event]]:
        """Order the cases, roughly; it decides how long others take, and nothing else."""
        if len(self.cases) == 1:
            return self.cases
        return sorted(self.cases, key=lambda case: -accounting.delta(case, 0.0))

    def _accepts(self, case: Sequence[Event], epsilon: float, delta: float) -> bool:
        """Whether one case leaves room for a further fit, Gaussian or for delta = 0 pure."""
        if epsilon == 0.0:
            return True
        further = Gaussian(gdp_mu(epsilon, delta)) if delta > 0.0 else Pure(epsilon)
        return self.cap.holds([*case, further])

    def count(self, events: Sequence[Event]) -> int:
        """How often all of `events` are accepted, up to `MOST_FITS` times."""
        return min(self.cap.count(case, events) for case in self.cases)

    def refusal(self, record: PrivacyRecord) -> str:
        """Return the text of a refusal: in public numbers what was asked for, spent and left."""
        # Less is left for a Gaussian release than for a pure one: name what is left for this kind.
        cap, is_pure = self.cap, math.isfinite(_as_pure(record.events))
        kind = 0.0 if is_pure else cap.delta
        at = 0.0 if is_pure else record.delta or cap.delta
        asked = rounded_text(cap.spent(record.events, kind))
        used = rounded_text(self.spent(cap.delta))
        left, most = (rounded_text(self.remaining(d, rtol=1e-4), up=False) for d in (kind, at))
        release = "pure DP release" if is_pure else "Gaussian release"
        text = (
            f"The release asks for epsilon={asked} at delta={kind!r}. Epsilon={used} at "
            f"delta={cap.delta!r} is spent, and epsilon={left} at delta={kind!r} is left. "
        )
        if cap.adaptive and math.isinf(_as_gaussian(record.events)):
            text += "An adaptive ledger takes Gaussian and pure DP releases only. "
        if float(most):
            return text + f"A {release} at delta={at!r} fits up to epsilon={most}"
        return text + f"No {release} fits any more"


def _as_pure(events: Sequence[Event]) -> float:
    """Sum of the epsilons, rounded up; infinity if a release is not pure DP."""
    total = Fraction(0)
    for event, count in single_runs(events).items():
        if isinstance(event, Pure | Exponential) and math.isfinite(event.epsilon):
            total += Fraction(event.epsilon) * count
        elif event != Gaussian(0.0):
            return math.inf
    return accounting.round_up(total) if total < _LARGEST_COUNT else math.inf


def _as_gaussian(events: Sequence[Event]) -> float:
    """Mu of one Gaussian release that is no better than all events, in any adaptive order."""
    total = 0.0
    for event, count in single_runs(events).items():
        if isinstance(event, Gaussian):
            mu = event.mu
        elif isinstance(event, Pure | Exponential):
            mu = (_MU_OF_PURE if isinstance(event, Pure) else _MU_OF_EXPONENTIAL) * event.epsilon
        else:
            return math.inf
        mu = max(mu, _SMALLEST_MU) if mu else 0.0
        total += min(count, _LARGEST_COUNT) * mu * mu
    return math.sqrt(total) * UP
