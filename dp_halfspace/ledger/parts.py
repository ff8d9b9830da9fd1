"""What one record has taken part in, where releases are about disjoint parts of the data set.

``docs/proofs/accounting.md``, section 10.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from dp_halfspace.exceptions import BudgetError
from dp_halfspace.ledger.entries import Part
from dp_halfspace.privacy.events import (
    Event,
    Exponential,
    Gaussian,
    Pure,
    Repeated,
    single_runs,
)


@dataclass(frozen=True, slots=True)
class Spending:
    """All events of a ledger: those of releases about the whole data set, and of each part.

    Never changed after it was made.
    """

    whole: Counter[Event] = field(default_factory=Counter)
    parts: Mapping[str, Counter[Event]] = field(default_factory=dict)
    # The first part that was charged: all others have its rule.
    example: Part | None = None

    def after(self, releases: Iterable[tuple[Iterable[Event], Part | None]]) -> Spending:
        """Add the events of releases, each about a part, or about the whole data set."""
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
        """List what one replaced record may have taken part in: events that add up, in each case.

        With a `part`, only cases in which the record belongs to it, before or after.
        """
        example = part or self.example
        if example is None:
            return [_listed(self.whole)]
        _check_rule(self.example, example)
        others = [name for name in self.parts if part is None or name != part.name]
        fixed = () if part is None else (part.name,)
        count = min(example.n_touched - len(fixed), len(others))
        others = _costliest(others, self.parts, count)
        cases = []
        for chosen in combinations(others, count):
            total = self.whole.copy()
            # In one order, whichever part was asked for: then what it costs is known.
            for name in sorted((*fixed, *chosen)):
                total.update(self.parts.get(name, {}))
            cases.append(total)
        # Many parts often hold the same events.
        return [_listed(case) for case in {frozenset(c.items()): c for c in cases}.values()]

    def describe(self) -> str:
        """Say in a sentence how parts are added up; empty if there are none."""
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
    """Leave out parts that cost no more than `count` others that are kept, whatever is added."""
    runs = {name: single_runs(_listed(parts[name])) for name in names}
    kept: list[str] = []
    for name in sorted(names, key=lambda name: -_squares(runs[name])):
        if sum(_is_no_costlier(runs[name], runs[other]) for other in kept) < count:
            kept.append(name)
    return kept


def _squares(runs: Counter[Event]) -> float:
    """Mu^2 of all Gaussian releases together, which says all that they cost."""
    return math.fsum(e.mu**2 * n for e, n in runs.items() if isinstance(e, Gaussian))


def _is_no_costlier(one: Counter[Event], other: Counter[Event]) -> bool:
    """Whether each release of one list has its own in the other that costs as much, or more.

    The k-th largest are compared, of pure releases and of choices; others are to be equal.
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
    """Refuse a part that may share records with those charged before."""
    if example is not None and example.rule != part.rule:
        raise BudgetError(
            f"the part {part.name!r} may share records with the part {example.name!r}: this ledger "
            f"divides the data set by {_describe_rule(example)}, not by {_describe_rule(part)}. "
            "All parts of a ledger follow one rule"
        )


def _describe_rule(part: Part) -> str:
    """Say how records are divided."""
    if part.fixed_by is not None:
        return f"the public fact {part.fixed_by!r}"
    return f"the cells of each of {part.n_records} records"


def _listed(counts: Counter[Event]) -> list[Event]:
    """List events, equal ones together."""
    return [Repeated(event, n) if n > 1 else event for event, n in counts.items()]
