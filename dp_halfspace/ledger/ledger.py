"""A budget for one data set that outlives fits, copies, processes and crashes."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from dp_halfspace.exceptions import BudgetError
from dp_halfspace.ledger.cap import Cap
from dp_halfspace.ledger.store import (
    LostStore,
    Row,
    Store,
    Transaction,
    belongs_to_ledger,
    checked_terms,
    digest_of,
    found_store,
    opened_store,
)
from dp_halfspace.ledger.view import (
    Asked,
    Books,
    LedgerEntry,
    LedgerPlan,
    audit_page,
    csv_text,
    entries_text,
    planned_releases,
    summary_text,
)
from dp_halfspace.privacy.events import Event, Pure, Repeated
from dp_halfspace.privacy.profiles import check_delta
from dp_halfspace.privacy.record import ADJACENCIES, PrivacyRecord


@dataclass(frozen=True, slots=True)
class Balance:
    """The sum of all entries up to one of them, which has the number `last` and the digest.

    It is made whole or not at all. A handle that replaces one by the next in a single step can
    be interrupted anywhere, and has never read an entry without having counted it.
    """

    digest: str
    last: int = 0
    spent: Counter[Event] = field(default_factory=Counter)

    def events(self) -> list[Event]:
        """List everything charged."""
        return [Repeated(event, n) if n > 1 else event for event, n in self.spent.items()]

    def after(self, rows: Sequence[Row], handle: str) -> Balance:
        """Add the rows that follow, and check that none of them was changed."""
        last, digest, spent = self.last, self.digest, self.spent.copy()
        for row in rows:
            last, digest = last + 1, digest_of(digest, row)
            if (row.number, row.digest) != (last, digest):
                raise ValueError(f"the ledger {handle} is damaged at entry {last}")
            record = record_of(row)
            # Seeded noise, as files may hold it, has no guarantee.
            spent.update((Pure(math.inf),) if record.noise == "seeded" else record.events)
        return Balance(digest, last, spent)


def record_of(row: Row) -> PrivacyRecord:
    """Rebuild the record of an entry, proving its claim again."""
    return PrivacyRecord.from_dict(json.loads(row.record))


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
    adjacency : {"replace-one", "replace-one-label", "replace-one-person"}, default="replace-one"
        What the cap protects. A ledger of whole records refuses fits that protect labels only, and
        one of people with all their rows refuses fits that protect single records, too.
    adaptive : bool, default=False
        Whether budgets may be chosen by looking at earlier results. True accepts less: Gaussian
        and purely private releases only, and those only within a cap on the sum of their squared
        mu, or on the sum of their epsilons.

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
    **Privacy.** The releases so far are (`epsilon`, `delta`)-private together if all of them were
    made from the same data set and charged here, and their budgets were chosen without looking at
    earlier results; entries are composed by their exact profiles. Budgets may be chosen by earlier
    results in three cases: with ``adaptive=True``, with a cap of ``delta=0``, or if every release
    that is ever charged is Gaussian. Otherwise a choice on the way can exceed `delta`.

    An entry is durable before noise is drawn, and there are no refunds. Entries hold public numbers
    only. Seeded noise is refused: who knows the seed can subtract it. A copy, a pickle and the text
    that ``get_params`` shows in its place are further handles on the same account. A file must
    be on a local disk: locks of network file systems are not reliable.
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
        adaptive: bool | None = None,
    ) -> None:
        asked = checked_terms(
            epsilon=epsilon, delta=delta, dataset=dataset, adjacency=adjacency, adaptive=adaptive
        )
        self._bind(opened_store(path, asked))
        stored = self._store.terms
        differing = [name for name, value in asked.items() if stored[name] != value]
        if differing:
            raise ValueError(
                f"{self.handle} was made with other terms: {', '.join(differing)}; "
                "leave them out to reopen it as it is"
            )

    def _bind(self, store: Store) -> None:
        """Start reading a store from its beginning."""
        self._store = store
        self._balance = Balance(store.first_digest)

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

    @property
    def adaptive(self) -> bool:
        """Whether budgets may be chosen by looking at earlier results."""
        return bool(self._store.terms["adaptive"])

    def charge(self, record: PrivacyRecord) -> None:
        """Book a record durably, or refuse it and book nothing.

        Raises
        ------
        BudgetError
            If the record and all entries together would pass the cap, if it protects less than
            the ledger does or has seeded noise, or if the ledger cannot be written. Nothing is
            booked.
        ValueError
            If the file has been damaged, or was replaced by that of another ledger.
        """
        self._check_kind(record)
        cap = self._cap()
        with self._store.transaction(writes=True) as account:
            balance = self._caught_up(account)
            fits = cap.holds([*balance.events(), *record.events])
            if fits:
                time = datetime.now(timezone.utc).isoformat(timespec="microseconds")
                row = Row(balance.last + 1, time, record.to_json(), "")
                row = row._replace(digest=digest_of(balance.digest, row))
                account.insert(row)
        if fits:
            # Durable. Who is interrupted before this step reads the entry as anybody else's.
            self._balance = balance.after([row], self.handle)
        else:
            raise BudgetError(
                f"this release does not fit into what is left of epsilon={self.epsilon!r}, "
                f"delta={self.delta!r} for {self.dataset!r}: "
                + cap.refusal(balance.events(), record)
            )

    def spent(self, delta: float | None = None) -> float:
        """Epsilon of everything charged so far.

        Parameters
        ----------
        delta : float or None, default=None
            In [0, 1); None is that of the cap.

        Returns
        -------
        float
            Rounded up; infinity if nothing is proved at `delta`. With ``adaptive=True`` it says how
            much of the cap is used, and the promise is the cap.
        """
        at = self.delta if delta is None else check_delta(delta)
        return self._cap().spent(self._events(), at)

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
        return self._cap().remaining(self._events(), at)

    def entries(self) -> list[LedgerEntry]:
        """Everything charged so far, in order; a changed or missing entry raises ValueError."""
        return [entry for entry, _ in self._books().posted]

    def to_json(self) -> str:
        """Return terms and entries as standard JSON."""
        entries = [
            {"number": e.number, "time": e.time, "record": e.record.to_dict()}
            for e in self.entries()
        ]
        return json.dumps({**self._store.terms, "entries": entries}, allow_nan=False)

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the entries as a table, with epsilon of all entries up to each of them.

        With a `path` they are written to that file, too; a file of a ledger is refused. Texts that
        a spreadsheet would take for a formula begin with an apostrophe.
        """
        return _written(csv_text(self._books()), path)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return a page for an auditor to print and sign; with a `path` it is written, too.

        A file of a ledger is refused. The page holds the terms, what is spent and left, every
        entry, and the digest of them all: public numbers, and neither the path of the ledger nor
        what the records state as public.
        """
        return _written(audit_page(self._books()), path)

    def summary(self) -> str:
        """Text for people: what is promised, how much is spent, and what is left."""
        return summary_text(self._books())

    def plan(self, *epsilons: float, **asked: Asked) -> LedgerPlan:
        """Say how many more releases of which size fit; nothing is charged.

        Parameters
        ----------
        *epsilons : float
            Sizes of releases at the delta of the cap; .1, .3 and 1 if nothing is asked.
        **asked : PrivacyRecord, float or tuple (epsilon, delta)
            Releases under names: what ``plan(X, y)`` of an estimator or of a search returns, or
            numbers, for a Gaussian release or for delta = 0 a purely private one. That is what an
            ``AdaptiveMarginClassifier`` and ``private_score`` with this budget release.

        Returns
        -------
        LedgerPlan
            It prints as a table. For each release `count` is exact: as many are accepted if
            nothing else is charged, and not one more.

        Raises
        ------
        BudgetError
            If a record is of a kind that the ledger refuses.

        Notes
        -----
        **Privacy.** A function of public numbers, so asking costs nothing.

        Examples
        --------
        >>> from dp_halfspace import PrivacyLedger
        >>> ledger = PrivacyLedger(epsilon=1.0, delta=1e-6)
        >>> ledger.plan(fit=(0.5, 1e-7), evaluation=0.1)
        epsilon 0 of 1 spent at delta 1e-06
        release     epsilon  delta  how many fit  spent after one
        fit             0.5  1e-07             4          0.44442
        evaluation      0.1  1e-06            73              0.1
        one of each fits at once
        """
        sizes = epsilons if epsilons or asked else (0.1, 0.3, 1.0)
        for record in asked.values():
            if isinstance(record, PrivacyRecord):
                self._check_kind(record)
        every = {**{f"epsilon {size:g}": size for size in sizes}, **asked}
        return planned_releases(self._cap(), self._events(), every)

    def close(self) -> None:
        """Let go of the account: this handle refuses everything from now on.

        No file is open between two calls, so that this is for order only. Opening the path again
        gives another handle. ``with PrivacyLedger(path) as ledger:`` closes at the end.
        """
        account = self._store.first_digest
        self._bind(LostStore(self.handle, "this ledger was closed: open it again", account))

    def __enter__(self) -> PrivacyLedger:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        try:
            spent = self.spent()
            cap = f"cap epsilon={self.epsilon:g}, delta={self.delta:g}"
        except (BudgetError, ValueError):
            return f"PrivacyLedger({self.handle!r}: out of reach)"
        return f"PrivacyLedger({self.handle!r}: {entries_text(self._balance.last, spent)}, {cap})"

    def __copy__(self) -> PrivacyLedger:
        """Return this ledger: there is one account."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> PrivacyLedger:
        """Return this ledger: there is one account."""
        return self

    def __getstate__(self) -> dict[str, str]:
        """Keep a handle and whose it is, in a pickle as in a file of skops."""
        return {"handle": self.handle, "account": self._store.first_digest}

    def __setstate__(self, state: dict[str, str]) -> None:
        """Find the account again; a model whose ledger is out of reach still predicts."""
        handle, account = state["handle"], state["account"]
        try:
            store = found_store(handle)
        except (OSError, ValueError) as error:
            store = LostStore(handle, str(error))
        if not isinstance(store, LostStore) and store.first_digest != account:
            reason = f"the file of the ledger {handle} was replaced by another ledger"
            store = LostStore(handle, reason)
        if isinstance(store, LostStore):
            store = replace(store, first_digest=account)
        self._bind(store)

    def _check_kind(self, record: PrivacyRecord) -> None:
        """Refuse what no budget can pay for."""
        if record.noise == "seeded":
            raise BudgetError(
                "a ledger refuses noise from a seed: whoever knows the seed can subtract it. Set "
                "random_state=None for a release, or ledger=None to try things out"
            )
        if ADJACENCIES.index(record.adjacency) < ADJACENCIES.index(self.adjacency):
            unprotected = (
                "the features" if "label" in record.adjacency else "all rows of one person"
            )
            raise BudgetError(
                f"a release with adjacency {record.adjacency!r} promises nothing about "
                f"{unprotected}, which this ledger protects ({self.adjacency!r})"
            )

    def _cap(self) -> Cap:
        """Return the rule of what is accepted."""
        return Cap(self.epsilon, self.delta, self.adaptive)

    def _books(self) -> Books:
        """Read everything anew."""
        with self._store.transaction(writes=False) as account:
            rows = account.rows(0)
        balance, posted = Balance(self._store.first_digest), []
        for row in rows:
            balance = balance.after([row], self.handle)
            posted.append((LedgerEntry(row.number, row.time, record_of(row)), balance.events()))
        return Books(self.dataset, self.adjacency, self._cap(), balance.digest, posted)

    def _events(self) -> list[Event]:
        """List everything charged so far."""
        with self._store.transaction(writes=False) as account:
            return self._caught_up(account).events()

    def _caught_up(self, account: Transaction) -> Balance:
        """Read the entries that have been added, and check that none was changed."""
        balance = self._balance
        rows = account.rows(max(balance.last - 1, 0))
        known = (balance.last, balance.digest)
        if balance.last and (not rows or (rows[0].number, rows[0].digest) != known):
            raise ValueError(f"the ledger {self.handle} has lost entries, or was replaced")
        # One step, after which and before which the handle is a true account of some entries;
        # threads that share it may set each other back, and then read again.
        self._balance = balance = balance.after(rows[bool(balance.last) :], self.handle)
        return balance


def _written(text: str, path: str | os.PathLike[str] | None) -> str:
    """Return a text, after writing it where that is asked for."""
    if path is not None:
        if belongs_to_ledger(Path(path)):
            raise ValueError(f"{path} is a file of a privacy ledger: write to another one")
        Path(path).write_text(text, encoding="utf-8")
    return text


def open_ledger(ledger: Any) -> Any:
    """Return the ledger that an estimator was given, or that a text stands for.

    A text is a path, or the `handle` of a ledger in memory; anything else is returned as it is.

    Examples
    --------
    >>> from dp_halfspace.privacy import PrivacyLedger
    >>> from dp_halfspace.ledger.ledger import open_ledger
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
    known = _OPEN.get(key)
    if known is None or isinstance(known._store, LostStore):
        known = _OPEN[key] = _ledger_of(store)
    return known


_OPEN: dict[tuple[str, str], PrivacyLedger] = {}


def _ledger_of(store: Store) -> PrivacyLedger:
    """Make another handle on an account."""
    ledger = PrivacyLedger.__new__(PrivacyLedger)
    ledger._bind(store)
    return ledger
