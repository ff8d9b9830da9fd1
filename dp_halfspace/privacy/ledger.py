"""A budget for one data set that outlives fits, copies, processes and crashes."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import threading
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from dp_halfspace.exceptions import BudgetError
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy._ledger_store import (
    LostStore,
    Row,
    Store,
    Transaction,
    checked_terms,
    digest_of,
    found_store,
    opened_store,
)
from dp_halfspace.privacy._log_profiles import check_delta
from dp_halfspace.privacy.events import Event, Gaussian, Pure, Repeated
from dp_halfspace.privacy.profiles import gdp_epsilon
from dp_halfspace.privacy.record import PrivacyRecord

__all__ = ["LedgerEntry", "PrivacyLedger", "open_ledger"]

# A cap of 1 holds ten times .1, although the floats add up to a little more. Far below what
# anybody means by an epsilon, and above the rounding of every record.
_EPSILON_SLACK, _DELTA_SLACK = 2.0**-40, 2.0**-37


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One charge.

    Attributes
    ----------
    number : int
        Counted from 1.
    time : str
        UTC, in ISO format.
    record : PrivacyRecord
        What was paid for.
    """

    number: int
    time: str
    record: PrivacyRecord


class PrivacyLedger:
    """A cap on everything that is ever released about one data set.

    Parameters
    ----------
    path : str, path or None, default=None
        File that holds the ledger, for any number of processes. None keeps it in the memory of
        this process; other processes are then refused.
    epsilon, delta : float
        The cap. Not needed to reopen a file, which keeps its own.
    dataset : str, default="data"
        A name for people.
    adjacency : {"replace-one", "replace-one-label"}, default="replace-one"
        What the cap protects. A ledger of whole records refuses fits that protect labels only.

    Raises
    ------
    ValueError
        If a new ledger has no cap, a number is out of range, or the file is no ledger, is
        damaged or has other terms; the file is unchanged.
    BudgetError
        If the file cannot be created.

    See Also
    --------
    PrivacyRecord : What a fit charges.

    Notes
    -----
    **Privacy.** All entries are composed by their exact profiles: the releases so far are
    (`epsilon`, `delta`)-private together if all of them were made from the same data set and
    charged here, and their budgets were chosen without looking at earlier results. If all are
    Gaussian, or all pure, budgets may be chosen on the way, too. An entry is durable before
    noise is drawn, and there are no refunds. Entries hold public numbers only. A copy, a pickle
    and the text that ``get_params`` shows in its place are further handles on the same account.
    Proof: ``docs/proofs/accounting.md``, section 9.

    Examples
    --------
    >>> from dp_halfspace import AdaptiveMarginClassifier, PrivacyLedger
    >>> from dp_halfspace.datasets import make_halfspace
    >>> X, y = make_halfspace(2000, 5, margin=0.2, random_state=0)
    >>> ledger = PrivacyLedger(epsilon=1.0, delta=1e-6)
    >>> model = AdaptiveMarginClassifier(epsilon=0.5, delta=1e-7, classes=[-1, 1], ledger=ledger)
    >>> _ = model.fit(X, y)
    >>> ledger.spent() <= 0.5 < ledger.remaining()
    True
    >>> model.set_params(epsilon=2.0).fit(X, y)
    Traceback (most recent call last):
    ...
    dp_halfspace.exceptions.BudgetError: this release does not fit into what is left of ...
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        dataset: str | None = None,
        adjacency: str | None = None,
    ) -> None:
        asked = checked_terms(epsilon, delta, dataset, adjacency)
        self._bind(opened_store(path, asked))
        differing = [name for name, value in asked.items() if self._store.terms[name] != value]
        if differing:
            raise ValueError(
                f"{self.handle} was made with other terms: {', '.join(differing)}; "
                "leave them out to reopen it as it is"
            )

    def _bind(self, store: Store) -> None:
        """Start reading a store from its beginning."""
        self._store = store
        self._lock = threading.Lock()
        self._last, self._digest = 0, store.first_digest
        self._spent: Counter[Event] = Counter()

    @property
    def handle(self) -> str:
        """Text that stands for the ledger wherever an estimator takes one."""
        return self._store.handle

    @property
    def epsilon(self) -> float:
        """The cap."""
        return float(self._store.terms["epsilon"])

    @property
    def delta(self) -> float:
        """The cap."""
        return float(self._store.terms["delta"])

    @property
    def dataset(self) -> str:
        """The name for people."""
        return str(self._store.terms["dataset"])

    @property
    def adjacency(self) -> str:
        """What the cap protects."""
        return str(self._store.terms["adjacency"])

    def charge(self, record: PrivacyRecord) -> None:
        """Book a record durably, or refuse it and book nothing.

        Parameters
        ----------
        record : PrivacyRecord
            Everything that is about to be released.

        Raises
        ------
        BudgetError
            If the record and all entries together would pass the cap, if it protects less than
            the ledger does, or if the ledger cannot be written. Nothing is booked.
        ValueError
            If the file has been damaged.
        """
        if record.adjacency != self.adjacency and self.adjacency == "replace-one":
            raise BudgetError(
                f"a release with adjacency {record.adjacency!r} promises nothing about the "
                f"features, which this ledger protects ({self.adjacency!r})"
            )
        with self._lock:
            with self._store.transaction(writes=True) as account:
                self._catch_up(account)
                if not self._holds([*_repeated(self._spent), *record.events]):
                    raise BudgetError(
                        f"this release does not fit into what is left of "
                        f"epsilon={self.epsilon!r}, delta={self.delta!r} for {self.dataset!r}"
                    )
                time = datetime.now(timezone.utc).isoformat(timespec="microseconds")
                row = Row(self._last + 1, time, record.to_json(), "")
                row = row._replace(digest=digest_of(self._digest, row))
                account.insert(row)
            self._last, self._digest = row.number, row.digest
            self._spent.update(record.events)

    def spent(self, delta: float | None = None) -> float:
        """Epsilon of everything charged so far, composed exactly.

        Parameters
        ----------
        delta : float or None, default=None
            In [0, 1); None is that of the cap.

        Returns
        -------
        float
            Rounded up; infinity if nothing is proved at `delta`.
        """
        at = self.delta if delta is None else check_delta(delta)
        return accounting.epsilon(_repeated(self._events()), at)

    def remaining(self, delta: float | None = None) -> float:
        """Largest epsilon of one further fit that would still be accepted.

        Parameters
        ----------
        delta : float or None, default=None
            Of that fit: 0 for pure epsilon, positive for a Gaussian mechanism; None is that of
            the cap.

        Returns
        -------
        float
            0 if nothing is left.
        """
        at = self.delta if delta is None else check_delta(delta)
        spent = _repeated(self._events())

        def further(size: float) -> list[Event]:
            return [*spent, Gaussian(size) if at > 0.0 else Pure(size)]

        if accounting.delta(spent, self.epsilon) > self.delta:
            return 0.0
        if math.isinf(self.epsilon):
            return math.inf
        upper = 1.0
        while self._holds(further(upper)):
            upper *= 2.0
        left = accounting.calibrate(
            further, self.epsilon, self.delta, lower=0.0, upper=upper, rtol=1e-10
        )
        return gdp_epsilon(left, at) if at > 0.0 else left

    def entries(self) -> list[LedgerEntry]:
        """Everything charged so far, in order.

        Returns
        -------
        list of LedgerEntry

        Raises
        ------
        ValueError
            If an entry was changed, or is missing before the last one.
        """
        with self._store.transaction(writes=False) as account:
            rows = account.rows(0)
        self._checked(rows, 0, self._store.first_digest)
        return [LedgerEntry(row.number, row.time, _record(row)) for row in rows]

    def to_json(self) -> str:
        """Return terms and entries as standard JSON."""
        entries = [
            {"number": e.number, "time": e.time, "record": e.record.to_dict()}
            for e in self.entries()
        ]
        return json.dumps({**self._store.terms, "entries": entries}, allow_nan=False)

    def to_csv(self) -> str:
        """Return the entries as a table, with epsilon of all entries up to each of them."""
        out = io.StringIO()
        table = csv.writer(out, lineterminator="\n")
        table.writerow(["number", "time", "epsilon", "delta", "noise", "events", "spent_after"])
        events: Counter[Event] = Counter()
        for entry in self.entries():
            record = entry.record
            events.update(record.events)
            what = "; ".join(event.describe() for event in record.events)
            after = accounting.epsilon(_repeated(events), self.delta)
            table.writerow(
                [entry.number, entry.time, record.epsilon, record.delta, record.noise, what, after]
            )
        return out.getvalue()

    def __repr__(self) -> str:
        return f"PrivacyLedger({self.handle!r})"

    def __copy__(self) -> PrivacyLedger:
        """Return this ledger: there is one account."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> PrivacyLedger:
        """Return this ledger: there is one account."""
        return self

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        """Pickle a handle."""
        return _unpickled, (self.handle,)

    def _holds(self, events: list[Event]) -> bool:
        """Whether a list of events is within the cap."""
        cost = accounting.delta(events, self.epsilon * (1.0 + _EPSILON_SLACK))
        return cost <= self.delta * (1.0 + _DELTA_SLACK)

    def _events(self) -> Counter[Event]:
        """Count everything charged so far."""
        with self._lock, self._store.transaction(writes=False) as account:
            self._catch_up(account)
            return self._spent.copy()

    def _catch_up(self, account: Transaction) -> None:
        """Read the entries that others have added, and check that none was changed."""
        rows = account.rows(max(self._last - 1, 0))
        if self._last:
            known = rows.pop(0) if rows else None
            if known is None or (known.number, known.digest) != (self._last, self._digest):
                raise ValueError(f"the ledger {self.handle} has lost entries, or was replaced")
        self._digest = self._checked(rows, self._last, self._digest)
        self._last += len(rows)
        for row in rows:
            self._spent.update(_record(row).events)

    def _checked(self, rows: list[Row], last: int, digest: str) -> str:
        """Return the digest of the last entry, if all of them follow on what was before."""
        for number, row in enumerate(rows, last + 1):
            digest = digest_of(digest, row)
            if (row.number, row.digest) != (number, digest):
                raise ValueError(f"the ledger {self.handle} is damaged at entry {number}")
        return digest


def open_ledger(ledger: Any) -> Any:
    """Return the ledger that an estimator was given, or that a text stands for.

    Parameters
    ----------
    ledger : str, path or object with a method ``charge``
        A path, or the `handle` of a ledger in memory.

    Returns
    -------
    object with a method ``charge``

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no ledger at a path.

    Examples
    --------
    >>> from dp_halfspace.privacy import PrivacyLedger
    >>> from dp_halfspace.privacy.ledger import open_ledger
    >>> ledger = PrivacyLedger(epsilon=1.0, delta=0.0)
    >>> open_ledger(ledger.handle).epsilon, open_ledger(ledger) is ledger
    (1.0, True)
    """
    if not isinstance(ledger, str | os.PathLike):
        return ledger
    store = found_store(os.fspath(ledger))
    # What has been read of a ledger need not be read again; another file of the same name is
    # another ledger.
    key = store.handle, store.first_digest
    with _OPEN_LOCK:
        if key not in _OPEN:
            _OPEN[key] = _ledger_of(store)
        return _OPEN[key]


_OPEN: dict[tuple[str, str], PrivacyLedger] = {}
_OPEN_LOCK = threading.Lock()


def _ledger_of(store: Store) -> PrivacyLedger:
    """Make another handle on an account."""
    ledger = PrivacyLedger.__new__(PrivacyLedger)
    ledger._bind(store)
    return ledger


def _unpickled(handle: str) -> PrivacyLedger:
    """Find the account again; a model whose ledger is out of reach still predicts."""
    try:
        return _ledger_of(found_store(handle))
    except (OSError, ValueError) as error:
        return _ledger_of(LostStore(handle, str(error)))


def _repeated(events: Counter[Event]) -> list[Event]:
    """List events with their numbers."""
    return [Repeated(event, count) if count > 1 else event for event, count in events.items()]


def _record(row: Row) -> PrivacyRecord:
    """Rebuild the record of an entry, proving its claim again."""
    return PrivacyRecord.from_dict(json.loads(row.record))
