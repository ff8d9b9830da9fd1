"""What people see of a ledger: how many more releases fit, its entries as CSV, and a page to sign.

Functions of entries, which hold public numbers only; nothing here charges or draws anything.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from html import escape
from typing import Any, TypeAlias

from dp_halfspace._html import aligned, csv_cell, page, table
from dp_halfspace.ledger.cap import MOST_FITS, Cap
from dp_halfspace.privacy.events import Event, Gaussian, Pure
from dp_halfspace.privacy.profiles import check_delta, check_nonnegative, gdp_mu
from dp_halfspace.privacy.record import NEIGHBOURS, PrivacyRecord, rounded_text

Asked: TypeAlias = "PrivacyRecord | float | tuple[float, float]"
_FIELDS = ("number", "time", "epsilon", "delta", "noise", "events", "spent_after")
_DELTAS = (1e-5, 1e-7, 1e-9)


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One charge: its number from 1 on, the time (UTC, in ISO format) and what was charged."""

    number: int
    time: str
    record: PrivacyRecord


@dataclass(frozen=True, slots=True)
class Books:
    """A ledger as it was at one moment: entries, each with all events up to it.

    The digest covers its terms.
    """

    dataset: str
    adjacency: str
    cap: Cap
    digest: str
    posted: Sequence[tuple[LedgerEntry, Sequence[Event]]]

    @property
    def events(self) -> Sequence[Event]:
        """Everything charged."""
        return self.posted[-1][1] if self.posted else ()


@dataclass(frozen=True, slots=True)
class PlannedRelease:
    """A release of one size: how many fit, and epsilon of all at the delta of the cap after one."""

    name: str
    epsilon: float
    delta: float
    count: int
    spent_after: float


@dataclass(frozen=True, slots=True, repr=False)
class LedgerPlan:
    """How many more releases fit under a cap; prints as a table.

    Attributes
    ----------
    epsilon, delta : float
        The cap.
    spent : float
        Epsilon of all entries at `delta`.
    releases : tuple of PlannedRelease
        Each with its `name`, `epsilon` and `delta`; `count`, how many such releases and no others
        still fit (at most 1,000,000); `spent_after`, epsilon at the delta of the cap after one.
    fits_together : bool
        Whether one of each fits.
    """

    epsilon: float
    delta: float
    spent: float
    releases: tuple[PlannedRelease, ...]
    fits_together: bool

    def __repr__(self) -> str:
        rows = [("release", "epsilon", "delta", "how many fit", "spent after one")]
        rows += [
            (
                one.name,
                f"{one.epsilon:g}",
                f"{one.delta:.3g}",
                str(one.count) if one.count < MOST_FITS else f"{MOST_FITS} or more",
                rounded_text(one.spent_after) if one.count else "-",
            )
            for one in self.releases
        ]
        spent = rounded_text(self.spent)
        head = f"epsilon {spent} of {self.epsilon:g} spent at delta {self.delta:g}"
        one = f"one of each {'fits' if self.fits_together else 'does not fit'} at once"
        return "\n".join([head, *aligned(rows), *([one] if len(self.releases) > 1 else [])])


def planned_releases(cap: Cap, spent: Sequence[Event], asked: Mapping[str, Asked]) -> LedgerPlan:
    """Say how many releases of each size fit beside what has been spent."""
    sizes = {name: _size(name, what, cap.delta) for name, what in asked.items()}
    releases = tuple(
        PlannedRelease(
            name, epsilon, delta, cap.count(spent, events), cap.spent([*spent, *events], cap.delta)
        )
        for name, (epsilon, delta, events) in sizes.items()
    )
    together = [*spent, *(event for *_, events in sizes.values() for event in events)]
    used = cap.spent(spent, cap.delta)
    return LedgerPlan(cap.epsilon, cap.delta, used, releases, cap.holds(together))


def _size(name: str, what: Asked, delta: float) -> tuple[float, float, Sequence[Event]]:
    """Return epsilon, delta and events of a release: as planned, Gaussian, or for 0 pure."""
    if isinstance(what, PrivacyRecord):
        return what.epsilon, what.delta, what.events
    epsilon, at = what if isinstance(what, tuple) else (what, delta)
    epsilon, at = check_nonnegative(f"epsilon of {name!r}", epsilon), check_delta(at)
    if math.isinf(epsilon):
        return epsilon, at, [Pure(epsilon)]
    return epsilon, at, [Gaussian(gdp_mu(epsilon, at)) if at > 0.0 else Pure(epsilon)]


def entries_text(count: int, spent: float) -> str:
    """Say how much is booked."""
    if not count:
        return "new, no entry"
    return f"{count} {'entry' if count == 1 else 'entries'}, epsilon {rounded_text(spent)} spent"


def summary_text(books: Books) -> str:
    """Say what a ledger promises, holds and has left."""
    cap = books.cap
    state = entries_text(len(books.posted), cap.spent(books.events, cap.delta))
    lines = [f"Ledger of {books.dataset!r}: {state}.", f"Promise: {_promise(books)}"]
    return "\n".join(
        [
            *lines,
            "Left:",
            *(f"  - {kind}: epsilon {left}" for kind, left in _left(cap, books.events)),
        ]
    )


def csv_text(books: Books) -> str:
    """Return entries as a table, with epsilon of all entries up to each of them."""
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(_FIELDS)
    lines.writerows(map(csv_cell, line) for line in _lines(books))
    return out.getvalue()


def _lines(books: Books) -> Iterator[tuple[Any, ...]]:
    """Describe each entry."""
    for entry, events in books.posted:
        record = entry.record
        what = "; ".join(event.describe() for event in record.events)
        after = books.cap.spent(events, books.cap.delta)
        yield entry.number, entry.time, record.epsilon, record.delta, record.noise, what, after


def audit_page(books: Books) -> str:
    """Return the page for an auditor."""
    cap = books.cap
    entries = [
        (
            number,
            time[:19].replace("T", " "),
            f"epsilon {epsilon:g}, delta {delta:g}",
            what,
            rounded_text(after),
        )
        for number, time, epsilon, delta, _, what, after in _lines(books)
    ]
    spent = [
        (f"at delta {delta:g}", f"epsilon {rounded_text(cap.spent(books.events, delta))}")
        for delta in sorted({cap.delta, *_DELTAS}, reverse=True)
    ]
    left = [(kind, f"epsilon {size}") for kind, size in _left(cap, books.events)]
    sections = {
        "What is promised": f'<p class="claim">{escape(_promise(books))}</p>',
        "What is spent": "<p>All entries together, composed by their exact privacy profiles and "
        f"rounded up.</p>\n{table(*spent)}",
        "What is left": table(*left),
        "Entries": table(("Entry", "Time (UTC)", "Claim", "Released", "Epsilon so far"), *entries)
        if entries
        else "<p>None: the ledger is new.</p>",
        "Digest": "<p>SHA-256 of the last entry and, through it, of all entries before and of the "
        "terms, whose digest is the first: each covers the JSON text of [digest before, number, "
        "time, record].</p>\n"
        f"<p><code>{books.digest}</code></p>",
        "Signed": table(("Name", ""), ("Place and date", ""), ("Signature", ""), kind="sign"),
    }
    day = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    return page(f"Privacy ledger of {books.dataset}, {day}", sections)


def _promise(books: Books) -> str:
    """Say in a sentence what a cap promises."""
    cap = books.cap
    free = cap.adaptive or cap.delta == 0.0
    when = "" if free else ", if their budgets did not follow earlier results"
    return (
        f"All releases from this data set that are booked here are together ({cap.epsilon:g}, "
        f"{cap.delta:g})-differentially private{when}; {NEIGHBOURS[books.adjacency]}."
    )


def _left(cap: Cap, spent: Sequence[Event]) -> list[tuple[str, str]]:
    """List kinds of one more release, each with the largest epsilon that fits."""
    kinds = {"one more purely private release": 0.0}
    if cap.delta > 0.0:
        kinds[f"or one more Gaussian release at delta {cap.delta:g}"] = cap.delta
    return [
        (kind, rounded_text(cap.remaining(spent, delta, rtol=1e-8), up=False))
        for kind, delta in kinds.items()
    ]
