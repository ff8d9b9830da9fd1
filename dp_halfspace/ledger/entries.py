"""Ledger entries, their texts, and the sum of all that were read.

An entry is stored as one text that contains the record of the release and what is stated about it,
so the chain of digests covers both.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal

from dp_halfspace.ledger.store import Row, digest_of
from dp_halfspace.privacy.events import Event, Pure, Repeated
from dp_halfspace.privacy.record import PrivacyRecord

# Field of the stored text in addition to those of the record, and the facts that it may contain.
_ABOUT = "about"
_STATED = {"estimator", "purpose"}
# Decimal numbers, so that ten times .1 is 1, in a context that no other code changes.
_SUM = Context()


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One charge.

    Attributes
    ----------
    number : int
        Number of the entry, from 1 on.
    time : str
        Time of the charge in UTC, in ISO format.
    record : PrivacyRecord
        The record that was charged.
    estimator : str or None
        Class or function that made the release.
    purpose : str or None
        Text that was stated by the handle that was charged.
    """

    number: int
    time: str
    record: PrivacyRecord
    estimator: str | None = None
    purpose: str | None = None


def text_of(record: PrivacyRecord, about: Mapping[str, str]) -> str:
    """Write a record and what is stated about it, as an entry stores them."""
    return json.dumps({**record.to_dict(), _ABOUT: dict(about)}, allow_nan=False)


def entry_of(row: Row) -> LedgerEntry:
    """Read a stored entry, and prove the claim of its record again."""
    data = json.loads(row.record)
    about = known_facts(data.pop(_ABOUT, {}))
    return LedgerEntry(row.number, row.time, PrivacyRecord.from_dict(data), **about)


def known_facts(about: Mapping[str, str]) -> dict[str, str]:
    """Return what is stated; a fact of another version may be a rule of how releases add up."""
    unknown = set(about) - _STATED
    if unknown:
        raise ValueError(f"an entry states {sorted(unknown)}, which this version does not know")
    return dict(about)


@dataclass(frozen=True, slots=True)
class Balance:
    """The sum of all entries up to one of them, which has the number `last` and the digest.

    It is immutable. A handle replaces one balance by the next in a single step, so it can be
    interrupted anywhere without having read an entry that it did not count.
    """

    digest: str
    last: int = 0
    counts: Mapping[Event, int] = field(default_factory=dict)
    # The sum of the epsilons that were asked for, and the deltas of all entries.
    asked: Decimal = Decimal(0)
    deltas: frozenset[float] = frozenset()

    def after(self, rows: Sequence[Row], handle: str) -> Balance:
        """Add the rows that follow, and check that none of them was modified."""
        last, digest, asked = self.last, self.digest, self.asked
        counts, deltas = Counter(self.counts), set(self.deltas)
        for row in rows:
            last, digest = last + 1, digest_of(digest, row)
            if (row.number, row.digest) != (last, digest):
                raise ValueError(f"the ledger {handle} is damaged at entry {last}")
            record = entry_of(row).record
            # Entries with seeded noise, which a file may contain, have no guarantee.
            counts.update((Pure(math.inf),) if record.noise == "seeded" else record.events)
            asked = _SUM.add(asked, Decimal(repr(record.epsilon)))
            deltas.add(record.delta)
        return Balance(digest, last, counts, asked, frozenset(deltas))

    @property
    def events(self) -> list[Event]:
        """All releases, equal ones together."""
        return [Repeated(event, n) if n > 1 else event for event, n in self.counts.items()]
