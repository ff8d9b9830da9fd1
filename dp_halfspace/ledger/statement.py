"""Reports of a ledger: a summary, a table, and a page to sign."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from html import escape

from dp_halfspace._html import csv_cell, page, printable, table
from dp_halfspace.ledger.cap import Account, Cap, Spending
from dp_halfspace.ledger.entries import LedgerEntry, Part
from dp_halfspace.privacy.events import (
    Either,
    Event,
    Exponential,
    Gaussian,
    ObjectivePerturbation,
    Pure,
    RandomStopping,
    SampledGaussian,
    single_runs,
)
from dp_halfspace.privacy.record import NEIGHBOURS, PrivacyRecord, rounded_text

_CSV_HEADER = (
    *("number", "time", "estimator", "purpose", "responsible", "part"),
    *("epsilon", "delta", "noise", "events", "spent_after", "spent_delta"),
)
_PAGE_HEADER = ("Entry", "Time (UTC)", "Release", "Purpose", "Responsible", "About")
_WHOLE = "the whole data set"
# Names of the kinds of events, in singular and plural.
_WORDS: dict[type[Event], tuple[str, str]] = {
    Gaussian: ("Gaussian release", "Gaussian releases"),
    SampledGaussian: ("step on a secret record", "steps on secret records"),
    Pure: ("pure DP release", "pure DP releases"),
    Exponential: ("choice by the exponential mechanism", "choices by the exponential mechanism"),
    ObjectivePerturbation: ("perturbed objective", "perturbed objectives"),
    RandomStopping: ("choice by random stopping", "choices by random stopping"),
    Either: ("choice or Gaussian release", "choices or Gaussian releases"),
}


@dataclass(frozen=True, slots=True)
class Statement:
    """All entries of a ledger at one moment, each with the total up to it; public facts only.

    The digest covers its terms.
    """

    dataset: str
    adjacency: str
    cap: Cap
    digest: str
    entries: Sequence[tuple[LedgerEntry, Spending]]
    parts: Sequence[Part] = ()

    def summary(self) -> str:
        """Return a text with the guarantee, the entries and the remaining budget of a ledger."""
        state = describe_entries(len(self.entries), self._spent(), self.cap.delta)
        left = (f"  - {kind}: epsilon {epsilon}" for kind, epsilon in self._left())
        head = [f"Ledger of {self.dataset!r}: {state}.", f"Promise: {self._promise()}", "Left:"]
        return "\n".join([*head, *left, *([self._other_deltas()] if self.cap.delta else [])])

    def to_csv(self) -> str:
        """Return entries as a table, with epsilon of all entries up to each of them."""
        out = io.StringIO()
        lines = csv.writer(out, lineterminator="\n")
        lines.writerow(_CSV_HEADER)
        for (entry, _), spent in zip(self.entries, self._spent_after(), strict=True):
            record = entry.record
            stated = entry.estimator, entry.purpose, entry.responsible, entry.part
            events = "; ".join(event.describe() for event in record.events)
            claim = record.epsilon, record.delta, record.noise, events
            after = spent, self.cap.delta
            texts = ("" if text is None else text for text in stated)
            line = (entry.number, entry.time, *texts, *claim, *after)
            lines.writerow(map(csv_cell, line))
        return out.getvalue()

    def to_html(self) -> str:
        """Return the page for an auditor."""
        at = f"at delta {self.cap.delta:g}"
        spent = f"epsilon {rounded_text(self._spent())} of {self.cap.epsilon:g}"
        left = [(kind, f"epsilon {epsilon}") for kind, epsilon in self._left()]
        entries = "<p>None: the ledger is new.</p>"
        if self.entries:
            names = (*_PAGE_HEADER, "Epsilon", "Epsilon so far")
            head = "".join(f'<th scope="col">{name}</th>' for name in names)
            entries = (
                f"<p>Every epsilon is {at}, that of the total budget. The claim of a "
                "fit at its own delta is in its details.</p>\n"
                + "\n".join(["<table>", f"<tr>{head}</tr>", *self._page_rows(), "</table>"])
            )
        sections = {
            "What is promised": f'<p class="claim">{escape(self._promise())}</p>',
            "What is spent": "<p>All entries together, composed by their exact privacy profiles "
            f"and rounded up.</p>\n{table((at, spent))}",
            "What is left": table(*left),
            "Entries": entries,
            "Digest": "<p>SHA-256 digest of the last entry, which covers all entries and the "
            "terms: each digest is that of the JSON text of [previous digest, number, "
            "time, record], in which the record contains everything that this page "
            "states about an entry. The digest before the first entry is that of the "
            f"terms.</p>\n<p><code>{self.digest}</code></p>",
            "Signed": table(("Name", ""), ("Place and date", ""), ("Signature", ""), kind="sign"),
        }
        day = datetime.now(timezone.utc).strftime("%Y-%m-%d")
        return page(f"Privacy ledger of {self.dataset}, {day}", sections)

    def _page_rows(self) -> Iterator[str]:
        """Return one line for each entry, in words; events are details."""
        for (entry, _), spent in zip(self.entries, self._spent_after(), strict=True):
            cells = (
                entry.time[:19].replace("T", " "),
                entry.purpose or "",
                entry.responsible or "",
                _WHOLE if entry.part is None else entry.part,
                rounded_text(self.cap.spent(entry.record.events, self.cap.delta)),
                rounded_text(spent),
            )
            time, *others = (f"<td>{escape(printable(cell))}</td>" for cell in cells)
            release = f"<td>{_describe_release(entry)}\n{_list_events(entry.record)}</td>"
            number = f'<th scope="row">{entry.number}</th>'
            yield f"<tr>{number}{time}{release}{''.join(others)}</tr>"

    def _spending(self) -> Spending:
        """Return what all entries have spent."""
        return self.entries[-1][1] if self.entries else Spending()

    def _spent(self) -> float:
        """Epsilon of all entries at the delta of the cap."""
        return Account(self.cap, self._spending().cases()).spent(self.cap.delta)

    def _spent_after(self) -> Iterator[float]:
        """Epsilon of the entries up to each of them; a part changes only its own cases."""
        parts, most = {part.name: part for part in self.parts}, 0.0
        for entry, spending in self.entries:
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
            f"Spent and left are stated at delta {self.cap.delta:g}, that of the total budget. The "
            "same noise has a larger epsilon at a smaller delta, so remaining(delta) for a smaller "
            "delta may exceed the total epsilon, and such a release charges no more than is left."
        )


def _describe_release(entry: LedgerEntry) -> str:
    """Describe a release and the estimator that made it."""
    who = "A release" if entry.estimator is None else entry.estimator
    counts = Counter[type[Event]]()
    for event, count in single_runs(entry.record.events).items():
        counts[type(event)] += count
    what = ", ".join(f"{n} {_WORDS[kind][n > 1]}" for kind, n in counts.items())
    return escape(printable(f"{who}: {what or 'nothing that depends on the data'}"))


def _list_events(record: PrivacyRecord) -> str:
    """Return the claim of a release and its events, as an element that can be expanded."""
    lines = [f"claimed: epsilon {record.epsilon:g} at delta {record.delta:g}"]
    lines += [event.describe() for event in record.events]
    items = "".join(f"<li>{escape(printable(line))}</li>" for line in lines)
    return f"<details><summary>events</summary><ul>{items}</ul></details>"


def describe_entries(count: int, spent: float, delta: float) -> str:
    """Describe the spent budget and its delta."""
    if not count:
        return "new, no entry"
    entries = "1 entry" if count == 1 else f"{count} entries"
    return f"{entries}, epsilon {rounded_text(spent)} spent at delta {delta:g}"
