"""The sums of a ledger: the events of its releases, and the epsilons that users asked for.

Both are kept for the whole data set and for each part, so that the releases that one record can
have taken part in are listed and added up in one way: ``docs/proofs/accounting.md``, section 10.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Context, Decimal
from itertools import combinations

from dp_halfspace.exceptions import BudgetError
from dp_halfspace.ledger.entries import Part
from dp_halfspace.privacy.events import Event, Pure, Repeated
from dp_halfspace.privacy.record import PrivacyRecord

# Decimal numbers, so that ten times .1 is 1.
_SUM = Context(prec=60)


@dataclass(frozen=True, slots=True)
class Spending:
    """All events of a ledger and what they asked for, by the name of the part; immutable.

    The name of the whole data set is None.
    """

    events: Mapping[str | None, Counter[Event]] = field(default_factory=dict)
    requests: Mapping[str | None, Decimal] = field(default_factory=dict)
    deltas: frozenset[float] = frozenset()
    # The first part that was charged; all others must have its rule.
    first_part: Part | None = None

    def after(self, releases: Iterable[tuple[PrivacyRecord, Part | None]]) -> Spending:
        """Add releases, each about a part or about the whole data set."""
        events = {name: own.copy() for name, own in self.events.items()}
        requests, deltas, first_part = dict(self.requests), set(self.deltas), self.first_part
        for record, part in releases:
            _check_rule(first_part, part)
            first_part = first_part or part
            name = None if part is None else part.name
            # Entries with seeded noise, which a file may contain, have no guarantee.
            new = (Pure(math.inf),) if record.noise == "seeded" else record.events
            events.setdefault(name, Counter()).update(new)
            asked = Decimal(repr(record.epsilon))
            requests[name] = _SUM.add(requests.get(name, Decimal(0)), asked)
            deltas.add(record.delta)
        return Spending(events, requests, frozenset(deltas), first_part)

    def cases(self, part: Part | None = None) -> list[list[Event]]:
        """List, for each case, the events that one replaced record may have taken part in.

        With a `part`, only cases in which the record belongs to it, before or after.
        """
        found = {}
        for names in self._names_of_cases(part):
            total = Counter[Event]()
            for name in names:
                total.update(self.events.get(name, {}))
            # Many parts often have the same events.
            found[frozenset(total.items())] = total
        return [
            [Repeated(event, n) if n > 1 else event for event, n in case.items()]
            for case in found.values()
        ]

    def asked(self, part: Part | None = None) -> float:
        """Return the sum of what was asked for, for the case in which it is largest."""
        sums = []
        for names in self._names_of_cases(part):
            total = Decimal(0)
            for name in names:
                total = _SUM.add(total, self.requests.get(name, Decimal(0)))
            sums.append(total)
        return float(max(sums))

    def _names_of_cases(self, part: Part | None) -> list[list[str | None]]:
        """List, for each case, the whole data set and the parts that a record can be in."""
        example = part or self.first_part
        if example is None:
            return [[None]]
        _check_rule(self.first_part, part)
        own = [] if part is None else [part.name]
        others = [name for name in self.events if name is not None and name not in own]
        count = min(example.n_touched - len(own), len(others))
        # In one order for every requested part, so that the cost of equal cases is equal.
        return [[None, *sorted((*own, *chosen))] for chosen in combinations(others, count)]

    def describe_parts(self) -> str:
        """Describe in a sentence how parts are composed; empty if there are none."""
        if self.first_part is None:
            return ""
        if self.first_part.fixed_by is not None:
            return (
                " Releases about disjoint parts count once, for the part that costs most: it is "
                f"stated that {self.first_part.fixed_by!r}, a public fact, decides to which part a "
                "record belongs, and that a replaced record stays in its part."
            )
        return (
            " Releases about disjoint parts count for the two parts that together cost most: the "
            "cells of a record decide to which part it belongs, so that replacing it can change "
            f"two. It is stated that every such release reads all {self.first_part.n_records} "
            "records."
        )


def _check_rule(first: Part | None, part: Part | None) -> None:
    """Refuse a part that may share records with another one."""
    if first is not None and part is not None and first.rule != part.rule:
        raise BudgetError(
            f"the part {part.name!r} may share records with the part {first.name!r}: this ledger "
            f"divides the data set by {first.rule}, not by {part.rule}. All parts of a ledger "
            "follow one rule"
        )
