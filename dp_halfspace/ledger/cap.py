"""What a ledger accepts: a cap on the total privacy loss, and the rule that composes entries.

`Cap` is the rule for one list of events, `Account` the rule for every list of releases that one
record can have taken part in. The plain rule composes exact privacy profiles, for budgets that are
fixed in advance. The adaptive rule is a privacy filter, for budgets that may depend on earlier
results. ``docs/proofs/accounting.md``, section 9. `Parts` says what one record can have taken part
in where releases are about disjoint parts of the data set (section 10).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations

from dp_halfspace._rounding import UP
from dp_halfspace.exceptions import BudgetError
from dp_halfspace.ledger.entries import Part
from dp_halfspace.ledger.requests import Requests, composed_by
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.events import (
    Either,
    Event,
    Exponential,
    Gaussian,
    Pure,
    Repeated,
    single_runs,
)
from dp_halfspace.privacy.profiles import gdp_epsilon, gdp_mu
from dp_halfspace.privacy.record import PrivacyRecord, rounded_text

# A cap of 1 admits ten releases of .1, although the floats add up to slightly more. The tolerance
# is far below any meaningful difference of epsilon, and above the rounding error of a record.
_EPSILON_SLACK = 2.0**-40
_DELTA_SLACK = 2.0**-37
# A pure DP release of size e costs at most as much as Gaussian noise of mu = sqrt(pi / 2) e, an
# exponential mechanism at most as much as half of it; rounded up. Section 9, lemma 6.
_MU_OF_PURE = math.sqrt(0.5 * math.pi) * UP
_MU_OF_EXPONENTIAL = 0.5 * _MU_OF_PURE
# A refusal says what an adaptive ledger adds to the epsilon of a release from this factor on.
_NOTED = 1.1
# More fits of one size than this are not counted.
MOST_FITS = 10**6
# Smallest mu and largest number of releases that are added up: squares neither underflow nor raise.
_SMALLEST_MU = 1e-150
_LARGEST_COUNT = 2.0**600
_NOTHING = Requests()


@dataclass(frozen=True, slots=True)
class Cap:
    """The total budget; `adaptive` if later budgets may depend on earlier results."""

    epsilon: float
    delta: float
    adaptive: bool

    def holds(self, events: Sequence[Event]) -> bool:
        """Whether a list of events is within the cap."""
        events, epsilon = self._events_to_compare(events), self.epsilon * (1.0 + _EPSILON_SLACK)
        if self.delta == 0.0:
            # A sum; the delta of releases beyond it is of no interest.
            return accounting.epsilon(events, 0.0) <= epsilon
        return accounting.delta(events, epsilon) <= self.delta * (1.0 + _DELTA_SLACK)

    def spent(self, events: Sequence[Event], delta: float) -> float:
        """Epsilon of a list of events by the rule of this cap, rounded up."""
        if not self.adaptive:
            return accounting.epsilon(events, delta)
        gaussian = accounting.epsilon([Gaussian(_as_gaussian(events))], delta)
        return min(gaussian, _as_pure(events))

    def remaining(self, spent: Sequence[Event], delta: float) -> float:
        """Epsilon of the largest Gaussian release, for delta = 0 pure one, that is accepted."""

        def further(size: float) -> Sequence[Event]:
            return [*spent, Gaussian(size) if delta > 0.0 else Pure(size)]

        if accounting.delta(self._events_to_compare(spent), self.epsilon) > self.delta:
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
            lambda size: self._events_to_compare(further(size)),
            self.epsilon,
            self.delta,
            lower=0.0,
            upper=upper,
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

    def _events_to_compare(self, events: Sequence[Event]) -> Sequence[Event]:
        """Return the events to compare with the cap, which cost at least as much as those given."""
        if not self.adaptive:
            return events
        # A pure DP list whose sum is within the cap uses nothing of delta.
        pure = _as_pure(events)
        if pure <= self.epsilon * (1.0 + _EPSILON_SLACK):
            return [Pure(pure)]
        return [Gaussian(_as_gaussian(events))]


@dataclass(frozen=True, slots=True)
class Account:
    """A cap, and every list of releases that one replaced record may have taken part in.

    A case is a list of events that are composed; each case must be within the cap. There are
    several cases only if releases are about disjoint parts of the data set:
    ``docs/proofs/accounting.md``, section 10.
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
            # A case that is known to cost no more needs one evaluation instead of a search for its
            # epsilon.
            if self.cap.adaptive or accounting.delta(total, most) > delta:
                most = max(most, self.cap.spent(total, delta))
        return most

    def remaining(self, delta: float) -> float:
        """Epsilon of the largest Gaussian release, for delta = 0 pure one, that is accepted."""
        left = math.inf
        for case in self._costliest_first():
            # A case that accepts as much needs no search for its remaining budget.
            if left == math.inf or not self._accepts(case, left, delta):
                left = min(left, self.cap.remaining(case, delta))
        return left

    def _costliest_first(self) -> Sequence[Sequence[Event]]:
        """Order the cases roughly by cost; the order affects the running time only."""
        if len(self.cases) == 1:
            return self.cases
        return sorted(self.cases, key=lambda case: -accounting.delta(case, 0.0))

    def _accepts(self, case: Sequence[Event], epsilon: float, delta: float) -> bool:
        """Whether one case leaves room for a Gaussian release, or for delta = 0 a pure one."""
        if epsilon == 0.0:
            return True
        further = Gaussian(gdp_mu(epsilon, delta)) if delta > 0.0 else Pure(epsilon)
        return self.cap.holds([*case, further])

    def count(self, events: Sequence[Event]) -> int:
        """How often all of `events` are accepted, up to `MOST_FITS` times."""
        return min(self.cap.count(case, events) for case in self.cases)

    def refusal(
        self, record: PrivacyRecord, asked: Requests = _NOTHING, part: Part | None = None
    ) -> list[str]:
        """Say what is asked for, what was before, and what both together would cost."""
        cap = self.cap
        spent, total = (
            rounded_text(self.spent(cap.delta, events)) for events in ((), record.events)
        )
        before = ""
        if asked.count:
            so_far = f"epsilon={rounded_text(asked.epsilon(part))} {asked.at('=')}"
            before = f", after {so_far} in {asked.entries()}"
        rule = composed_by(cap.adaptive)
        text = [
            f"The release asks for epsilon={rounded_text(record.epsilon)} at "
            f"delta={record.delta}{before}",
            f"{rule[0].upper()}{rule[1:]}, epsilon={spent} at delta={cap.delta!r} is spent, and it "
            f"would be epsilon={total} with this release",
        ]
        if not cap.adaptive or math.isfinite(_as_pure(record.events)):
            return text
        if math.isinf(_as_gaussian(record.events)):
            return [*text, "An adaptive ledger accepts Gaussian and pure DP releases only"]
        counted, plain = (
            rule.spent(record.events, cap.delta) for rule in (cap, replace(cap, adaptive=False))
        )
        if counted > _NOTED * plain:
            text.append(
                "An adaptive ledger counts a pure DP release, or a choice between one and Gaussian "
                "noise, as the Gaussian noise that covers it, and this release as epsilon="
                f"{rounded_text(counted)}; with adaptive=False, for budgets that are fixed in "
                f"advance, it counts as epsilon={rounded_text(plain)}"
            )
        return text


def _as_pure(events: Sequence[Event]) -> float:
    """Return the sum of the epsilons, rounded up, or infinity if a release is not pure DP."""
    total = Fraction(0)
    for event, count in single_runs(events).items():
        if isinstance(event, Pure | Exponential) and math.isfinite(event.epsilon):
            total += Fraction(event.epsilon) * count
        elif event != Gaussian(0.0):
            return math.inf
    return accounting.round_up(total) if total < _LARGEST_COUNT else math.inf


def _as_gaussian(events: Sequence[Event]) -> float:
    """Return mu of one Gaussian release that costs at least as much as all events, in any order."""
    total = 0.0
    for event, count in single_runs(events).items():
        if isinstance(event, Gaussian):
            mu = event.mu
        elif isinstance(event, Pure | Exponential):
            mu = (_MU_OF_PURE if isinstance(event, Pure) else _MU_OF_EXPONENTIAL) * event.epsilon
        elif isinstance(event, Either):
            mu = max(event.mu, _MU_OF_EXPONENTIAL * event.epsilon)
        else:
            return math.inf
        mu = max(mu, _SMALLEST_MU) if mu else 0.0
        total += min(count, _LARGEST_COUNT) * mu * mu
    return math.sqrt(total) * UP


@dataclass(frozen=True, slots=True)
class Spending:
    """All events of a ledger, those about the whole data set and those about each part.

    It is immutable.
    """

    whole: Counter[Event] = field(default_factory=Counter)
    parts: Mapping[str, Counter[Event]] = field(default_factory=dict)
    # The first part that was charged; all others must have its rule.
    example: Part | None = None

    def after(self, releases: Iterable[tuple[Iterable[Event], Part | None]]) -> Spending:
        """Add the events of releases, each about a part or about the whole data set."""
        whole, example = self.whole.copy(), self.example
        parts = {name: own.copy() for name, own in self.parts.items()}
        for events, part in releases:
            if part is None:
                whole.update(events)
                continue
            _check_rule(example, part)
            example = example or part
            parts.setdefault(part.name, Counter()).update(events)
        return Spending(whole, parts, example)

    def cases(self, part: Part | None = None) -> list[list[Event]]:
        """List, for each case, the events that one replaced record may have taken part in.

        With a `part`, only cases in which the record belongs to it, before or after.
        """
        example = part or self.example
        if example is None:
            return [_list_events(self.whole)]
        _check_rule(self.example, example)
        others = [name for name in self.parts if part is None or name != part.name]
        fixed = () if part is None else (part.name,)
        count = min(example.n_touched - len(fixed), len(others))
        others = _costliest(others, self.parts, count)
        cases = []
        for chosen in combinations(others, count):
            total = self.whole.copy()
            # In one order for every requested part, so that the cached cost can be used.
            for name in sorted((*fixed, *chosen)):
                total.update(self.parts.get(name, {}))
            cases.append(total)
        # Many parts often have the same events.
        return [_list_events(case) for case in {frozenset(c.items()): c for c in cases}.values()]

    def describe(self) -> str:
        """Describe in a sentence how parts are composed; empty if there are none."""
        if self.example is None:
            return ""
        if self.example.fixed_by is not None:
            return (
                "Releases about disjoint parts count once, for the part that costs most: it is "
                f"stated that {self.example.fixed_by!r}, a public fact, decides to which part a "
                "record belongs, and that a replaced record stays in its part."
            )
        return (
            "Releases about disjoint parts count for the two parts that together cost most: the "
            "cells of a record decide to which part it belongs, so that replacing it can change "
            f"two. It is stated that every such release reads all {self.example.n_records} records."
        )


def _costliest(names: list[str], parts: Mapping[str, Counter[Event]], count: int) -> list[str]:
    """Leave out parts that never cost more than each of `count` other parts, which are kept."""
    runs = {name: single_runs(_list_events(parts[name])) for name in names}
    kept: list[str] = []
    for name in sorted(names, key=lambda name: -_squares(runs[name])):
        if sum(_is_no_costlier(runs[name], runs[other]) for other in kept) < count:
            kept.append(name)
    return kept


def _squares(runs: Counter[Event]) -> float:
    """Return the sum of mu^2 of all Gaussian releases, which determines their cost."""
    return math.fsum(e.mu**2 * n for e, n in runs.items() if isinstance(e, Gaussian))


def _is_no_costlier(one: Counter[Event], other: Counter[Event]) -> bool:
    """Whether each release of one list is matched by one in the other that costs at least as much.

    The k-th largest pure releases and choices are compared; other events must be equal.
    """

    def as_large(runs: Counter[Event], event: Event) -> int:
        if not isinstance(event, Pure | Exponential):
            return runs[event]
        alike = ((e, n) for e, n in runs.items() if isinstance(e, type(event)))
        return sum(n for e, n in alike if e.epsilon >= event.epsilon)

    if _squares(one) > _squares(other):
        return False
    others = (event for event in one if not isinstance(event, Gaussian))
    return all(as_large(one, event) <= as_large(other, event) for event in others)


def _check_rule(example: Part | None, part: Part) -> None:
    if example is not None and example.rule != part.rule:
        raise BudgetError(
            f"the part {part.name!r} may share records with the part {example.name!r}: this ledger "
            f"divides the data set by {_describe_rule(example)}, not by {_describe_rule(part)}. "
            "All parts of a ledger follow one rule"
        )


def _describe_rule(part: Part) -> str:
    if part.fixed_by is not None:
        return f"the public fact {part.fixed_by!r}"
    return f"the cells of each of {part.n_records} records"


def _list_events(counts: Counter[Event]) -> list[Event]:
    """Return events, with equal ones next to each other."""
    return [Repeated(event, n) if n > 1 else event for event, n in counts.items()]
