"""What the releases of a ledger asked for: the numbers that their users stated, added up.

A user who asks for epsilon 1 three times reads epsilon 3, each at the delta that was asked for. The
exact composition of the same releases is usually smaller, and decides what a ledger accepts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Context, Decimal

from dp_halfspace.ledger.entries import Part
from dp_halfspace.privacy.record import PrivacyRecord, rounded_text

# Decimal numbers, so that ten times .1 is 1.
_SUM = Context(prec=60)
_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class Requests:
    """The sums of what was asked for about the whole data set and about each part; immutable."""

    count: int = 0
    whole: Decimal = _ZERO
    parts: Mapping[str, Decimal] = field(default_factory=dict)
    deltas: tuple[float, ...] = ()
    # The first part; all others have its rule.
    example: Part | None = None

    def after(self, record: PrivacyRecord, part: Part | None) -> Requests:
        """Add what one more release asked for."""
        asked, deltas = Decimal(repr(record.epsilon)), {*self.deltas, record.delta}
        count, whole, parts = self.count + 1, self.whole, self.parts
        if part is None:
            whole = _SUM.add(whole, asked)
        else:
            parts = {**parts, part.name: _SUM.add(parts.get(part.name, _ZERO), asked)}
        ends = tuple(sorted({min(deltas), max(deltas)}))
        return Requests(count, whole, parts, ends, self.example or part)

    def epsilon(self, part: Part | None = None) -> float:
        """Return the sum for the records with the largest one, or for those of a part."""
        example = part or self.example
        if example is None:
            return float(self.whole)
        own = _ZERO if part is None else self.parts.get(part.name, _ZERO)
        others = sorted(
            (asked for name, asked in self.parts.items() if part is None or name != part.name),
            reverse=True,
        )
        total = _SUM.add(self.whole, own)
        for asked in others[: example.n_touched - (part is not None)]:
            total = _SUM.add(total, asked)
        return float(total)

    def entries(self) -> str:
        """Return the number of entries in words."""
        return "1 entry" if self.count == 1 else f"{self.count} entries"

    def at(self, sign: str = " ") -> str:
        """Return the deltas at which epsilon was asked for, in words."""
        if not self.deltas:
            return ""
        ends = [f"{delta:.3g}" for delta in self.deltas]
        if len(ends) == 1:
            return f"at delta{sign}{ends[0]}"
        return f"at deltas from {ends[0]} to {ends[1]}"

    def describe(self, cap: float, part: Part | None = None) -> str:
        """Return what was asked for of a total budget, and at which delta."""
        if not self.count:
            return "new, no entry"
        asked = f"epsilon {rounded_text(self.epsilon(part))} of {cap:g} asked for"
        return f"{self.entries()}, {asked} {self.at()}"


def composed_by(is_adaptive: bool) -> str:
    """Return the rule that composes releases, in words."""
    return "by the rule of an adaptive ledger" if is_adaptive else "by exact composition"
