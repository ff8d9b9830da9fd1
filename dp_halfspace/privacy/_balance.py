"""What a handle has read of its ledger: one object that never changes."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from dp_halfspace.privacy._ledger_store import Row, digest_of
from dp_halfspace.privacy.events import Event, Pure, Repeated
from dp_halfspace.privacy.record import PrivacyRecord

__all__ = ["Balance", "charged", "record_of", "repeated"]


@dataclass(frozen=True, slots=True)
class Balance:
    """The sum of all entries up to one of them.

    It is made whole or not at all. A handle that replaces one by the next in a single step can
    be interrupted anywhere, and has never read an entry without having counted it.

    Attributes
    ----------
    digest : str
        Of the last entry that was read; before the first one, of the ledger.
    last : int
        Number of that entry.
    spent : Counter
        How often each event was charged.
    """

    digest: str
    last: int = 0
    spent: Counter[Event] = field(default_factory=Counter)

    def events(self) -> list[Event]:
        """List everything charged."""
        return repeated(self.spent)

    def knows(self, row: Row) -> bool:
        """Whether a row is the last entry that was read."""
        return (row.number, row.digest) == (self.last, self.digest)

    def after(self, rows: Sequence[Row], handle: str) -> Balance:
        """Add the rows that follow, and check that none of them was changed."""
        last, digest, spent = self.last, self.digest, self.spent.copy()
        for row in rows:
            last, digest = last + 1, digest_of(digest, row)
            if (row.number, row.digest) != (last, digest):
                raise ValueError(f"the ledger {handle} is damaged at entry {last}")
            spent.update(charged(record_of(row)))
        return Balance(digest, last, spent)


def repeated(events: Counter[Event]) -> list[Event]:
    """List events with their numbers."""
    return [Repeated(event, count) if count > 1 else event for event, count in events.items()]


def record_of(row: Row) -> PrivacyRecord:
    """Rebuild the record of an entry, proving its claim again."""
    return PrivacyRecord.from_dict(json.loads(row.record))


def charged(record: PrivacyRecord) -> tuple[Event, ...]:
    """Return what an entry costs; one of seeded noise, as files may hold, has no guarantee."""
    return (Pure(math.inf),) if record.noise == "seeded" else record.events
