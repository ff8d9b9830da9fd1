"""Reports of a ledger: a summary, and a table."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dp_halfspace._html import csv_cell
from dp_halfspace.ledger.cap import Account, Cap, Spending
from dp_halfspace.ledger.entries import LedgerEntry, Part
from dp_halfspace.ledger.requests import Requests, composed_by
from dp_halfspace.privacy.record import NEIGHBOURS, rounded_text

_CSV_HEADER = (
    *("number", "time", "estimator", "purpose", "responsible", "part"),
    *("epsilon", "delta", "noise", "events"),
    *("asked_after", "spent_after", "spent_delta"),
)
_WHOLE = "the whole data set"


@dataclass(frozen=True, slots=True)
class Statement:
    """All entries of a ledger at one moment, each with the total up to it; public facts only."""

    dataset: str
    adjacency: str
    cap: Cap
    entries: Sequence[tuple[LedgerEntry, Spending, Requests]]
    parts: Sequence[Part] = ()

    def summary(self) -> str:
        """Return a text with the guarantee, the entries and the remaining budget of a ledger."""
        asked = self._requests()
        state = f"Ledger of {self.dataset!r}: {asked.describe(self.cap.epsilon)}."
        if asked.count:
            spent = describe_spent(self._spent(), self.cap)
            state += f" {spent[0].upper()}{spent[1:]}, which decides what is accepted."
        left = (f"  - {kind}: epsilon {epsilon}" for kind, epsilon in self._left())
        head = [state, f"Promise: {self._promise()}", "Left:"]
        return "\n".join([*head, *left, *([self._other_deltas()] if self.cap.delta else [])])

    def to_csv(self) -> str:
        """Return entries as a table, with epsilon of all entries up to each of them."""
        out = io.StringIO()
        lines = csv.writer(out, lineterminator="\n")
        lines.writerow(_CSV_HEADER)
        for (entry, _, asked), spent in zip(self.entries, self._spent_after(), strict=True):
            record = entry.record
            stated = entry.estimator, entry.purpose, entry.responsible, entry.part
            events = "; ".join(event.describe() for event in record.events)
            claim = record.epsilon, record.delta, record.noise, events
            after = asked.epsilon(), spent, self.cap.delta
            texts = ("" if text is None else text for text in stated)
            line = (entry.number, entry.time, *texts, *claim, *after)
            lines.writerow(map(csv_cell, line))
        return out.getvalue()

    def _spending(self) -> Spending:
        return self.entries[-1][1] if self.entries else Spending()

    def _requests(self) -> Requests:
        return self.entries[-1][2] if self.entries else Requests()

    def _spent(self) -> float:
        return Account(self.cap, self._spending().cases()).spent(self.cap.delta)

    def _spent_after(self) -> Iterator[float]:
        """Epsilon of the entries up to each of them; a part changes only its own cases."""
        parts, most = {part.name: part for part in self.parts}, 0.0
        for entry, spending, _ in self.entries:
            part = None if entry.part is None else parts[entry.part]
            most = max(most, Account(self.cap, spending.cases(part)).spent(self.cap.delta))
            yield most

    def _promise(self) -> str:
        """Return the guarantee of the total budget in sentences."""
        cap = self.cap
        is_free = cap.adaptive or cap.delta == 0.0
        condition = "" if is_free else ", if their budgets did not depend on earlier results"
        parts = self._spending().describe()
        return (
            f"All releases from this data set that are charged here are together ({cap.epsilon:g}, "
            f"{cap.delta:g})-differentially private{condition}; {NEIGHBOURS[self.adjacency]}."
            + (f" {parts}" if parts else "")
        )

    def _left(self) -> list[tuple[str, str]]:
        """Return the kinds of one further release, each with the largest accepted epsilon."""
        kinds = {"one more pure DP release": 0.0}
        if self.cap.delta > 0.0:
            kinds[f"or one more Gaussian release at delta {self.cap.delta:g}"] = self.cap.delta
        spending, left = self._spending(), []
        for part in (None, *self.parts):
            account = Account(self.cap, spending.cases(part))
            about = f", about the part {part.name!r}" if part else ""
            if part is None and self.parts:
                about = f", about {_WHOLE}"
            for kind, delta in kinds.items():
                epsilon = account.remaining(delta)
                left.append((kind + about, rounded_text(epsilon, up=False)))
        return left

    def _other_deltas(self) -> str:
        """Explain why other deltas have other epsilons."""
        return (
            "What releases spend together is usually less than the sum of what they ask for, so "
            "more than the difference may be left. Spent and left are stated at delta "
            f"{self.cap.delta:g}, that of the total budget. The same noise has a larger epsilon at "
            "a smaller delta, so remaining(delta) for a smaller delta may exceed the total "
            "epsilon, and such a release charges no more than is left."
        )


def describe_spent(spent: float, cap: Cap) -> str:
    """Describe what the entries cost together, at the delta of the total budget."""
    rule = composed_by(cap.adaptive)
    return (
        f"{rule}, epsilon {rounded_text(spent)} of {cap.epsilon:g} is spent at delta {cap.delta:g}"
    )
