"""A privacy ledger: the total budget of one data set, kept across fits, copies and processes.

`PrivacyLedger` is a handle on the account. The module ``cap`` decides what may be charged,
``entries`` defines the content of an entry and adds entries up, ``reports`` writes texts, and
``store`` keeps the entries.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from typing import Any, TypeAlias

from dp_halfspace.exceptions import BudgetError
from dp_halfspace.ledger import reports
from dp_halfspace.ledger.advice import largest_epsilon
from dp_halfspace.ledger.cap import Cap
from dp_halfspace.ledger.entries import Balance, LedgerEntry, entry_of, known_facts, text_of
from dp_halfspace.ledger.store import (
    LostStore,
    Row,
    Store,
    Transaction,
    check_terms,
    digest_of,
    find_store,
    open_store,
)
from dp_halfspace.privacy.profiles import check_delta
from dp_halfspace.privacy.record import ADJACENCIES, PrivacyRecord

# The record of one release as a function of its epsilon, where everything else is fixed.
Plan: TypeAlias = Callable[[float], PrivacyRecord]


@dataclass(slots=True)
class _Reading:
    """What was read of a store; shared by handles that state different purposes."""

    balance: Balance


class PrivacyLedger:
    """The total budget for everything that is ever released about one data set.

    Parameters
    ----------
    path : str, path or None, default=None
        File that stores the ledger, for any number of processes. None keeps it in the memory of
        this process; other processes are then refused.
    epsilon, delta : float
        The cap: the total budget. Not needed to reopen a file, which stores its own.
    dataset : str, default="data"
        A name for human readers.
    adjacency : {"replace-one", "replace-one-label", "replace-one-person"}, default="replace-one"
        What the cap protects. A ledger of whole records refuses fits that protect labels only, and
        one of people with all their rows refuses fits that protect single records, too.
    adaptive : bool, default=False
        Whether budgets may be chosen by looking at earlier results. True accepts less: Gaussian
        and pure DP releases only, and those only within a cap on the sum of their squared
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
    that is ever charged is Gaussian. Otherwise budgets that depend on earlier results can exceed
    `delta`.

    An entry is durable before noise is drawn, and there are no refunds. Entries hold public numbers
    only. Seeded noise is refused: anyone who knows the seed can subtract it. A copy, a pickle and
    the text that ``get_params`` shows for a ledger are further handles on the same account. A file
    must be on a local disk: locks of network file systems are not reliable. Proof:
    ``docs/proofs/accounting.md``, section 9.

    Reports state first what was asked for, at the delta that was asked for, and then the exact
    composition of the same releases, which is usually smaller and decides what is accepted. It is
    stated at a delta, by default that of the cap. The same noise has a larger
    epsilon at a smaller delta, so ``remaining(delta)`` may exceed the cap's epsilon there.

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
    >>> ledger.entries()[0].estimator
    'AdaptiveMarginClassifier'
    >>> model.set_params(epsilon=2.0).fit(X, y)
    Traceback (most recent call last):
    ...
    dp_halfspace.exceptions.BudgetError: this release exceeds the remaining budget of ...
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
        asked = check_terms(
            epsilon=epsilon, delta=delta, dataset=dataset, adjacency=adjacency, adaptive=adaptive
        )
        self._bind(open_store(path, asked))
        differing = [name for name, value in asked.items() if self._store.terms[name] != value]
        if differing:
            raise ValueError(f"{self.handle} has other terms: to reopen it, leave out {differing}")

    def _bind(self, store: Store, about: Mapping[str, str] | None = None) -> None:
        """Start reading a store from its beginning."""
        self._store, self._reading = store, _Reading(Balance(store.first_digest))
        self._about = dict(about or {})
        self._plan: Plan | None = None

    def annotated(self, *, purpose: str | None) -> PrivacyLedger:
        """Return a handle on the same account whose entries state a purpose.

        Parameters
        ----------
        purpose : str or None
            Purpose of the releases, a public text; None states none.

        Returns
        -------
        PrivacyLedger
            Pass it to an estimator instead of this one, which is unchanged. The text that
            ``get_params`` shows for either is the same, and states no purpose.

        Raises
        ------
        ValueError
            If the text is empty.

        Examples
        --------
        >>> from dp_halfspace import PrivacyLedger
        >>> from dp_halfspace.privacy import Pure, PrivacyRecord
        >>> ledger = PrivacyLedger(epsilon=1.0, delta=0.0)
        >>> triage = ledger.annotated(purpose="triage model")
        >>> triage.charge(PrivacyRecord(epsilon=0.5, delta=0.0, events=[Pure(0.5)], noise="os"))
        >>> [entry.purpose for entry in ledger.entries()]
        ['triage model']
        """
        if purpose is not None and (not isinstance(purpose, str) or not purpose.strip()):
            raise ValueError(f"purpose must be a text that is not empty, got {purpose!r}")
        return self._stating(purpose=purpose)

    def for_estimator(self, name: str, plan: Plan | None = None) -> PrivacyLedger:
        """Return a handle whose entries name the class or function that makes a release.

        Every fit and score of this package charges such a handle.

        Parameters
        ----------
        name : str
            Name of the class or function, a public text.
        plan : function or None, default=None
            Public function of epsilon that returns the record of the same release with that
            epsilon, or raises ValueError if there is none. A refusal then names an epsilon that is
            accepted.

        Returns
        -------
        PrivacyLedger
            A further handle on the same account.
        """
        other = self._stating(estimator=name)
        other._plan = plan
        return other

    def _stating(self, **about: str | None) -> PrivacyLedger:
        """Return a further handle whose entries state a text, or no longer state it."""
        other = PrivacyLedger.__new__(type(self))
        stated = {**self._about, **about}
        other._about = {name: text for name, text in stated.items() if text is not None}
        other._store, other._reading, other._plan = self._store, self._reading, self._plan
        return other

    @property
    def handle(self) -> str:
        """Text that can be passed to an estimator instead of the ledger."""
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
        """The name for human readers."""
        return str(self._store.terms["dataset"])

    @property
    def adjacency(self) -> str:
        """Adjacency of the guarantee."""
        return str(self._store.terms["adjacency"])

    @property
    def adaptive(self) -> bool:
        """Whether budgets may be chosen by looking at earlier results."""
        return bool(self._store.terms["adaptive"])

    def charge(self, record: PrivacyRecord) -> None:
        """Charge a record durably, or refuse it and charge nothing.

        Raises
        ------
        BudgetError
            If the record and all entries together would exceed the cap, if the record lists no
            release, protects less than the ledger does or has seeded noise, or if the ledger cannot
            be written. Nothing is charged.
        ValueError
            If the file has been damaged, or was replaced by that of another ledger.
        """
        self._check_kind(record)
        known = self._reading.balance
        with self._store.transaction(writes=True) as transaction:
            balance = self._catch_up(transaction, known)
            fits = self._cap.holds([*balance.events, *record.events])
            if fits:
                time = datetime.now(timezone.utc).isoformat(timespec="microseconds")
                row = Row(balance.last + 1, time, text_of(record, self._about), "")
                row = row._replace(digest=digest_of(balance.digest, row))
                transaction.insert(row)
        if not fits:
            raise BudgetError(
                f"this release exceeds the remaining budget of {self.dataset!r}. "
                f"{reports.describe_refusal(self._cap, balance, record)}"
                f"{self._advice(balance, record.epsilon)}"
            )
        # The entry is durable. A handle that is interrupted before this step reads it like an
        # entry of another handle.
        self._reading.balance = balance.after([row], self.handle)

    def asked(self) -> float:
        """Sum of the epsilons that everything charged so far asked for.

        Returns
        -------
        float
            Each epsilon is the one that was asked for, at the delta that was asked for: three fits
            with epsilon 1 have asked for 3. The exact composition of the same releases, `spent`,
            is usually smaller and decides what is accepted.
        """
        return float(self._current().asked)

    def spent(self, delta: float | None = None) -> float:
        """Epsilon of everything charged so far, by exact composition.

        Parameters
        ----------
        delta : float or None, default=None
            In [0, 1); None is that of the cap.

        Returns
        -------
        float
            Rounded up; infinity if nothing is proved at `delta`. With ``adaptive=True`` it is the
            used part of the cap, and the guarantee is the cap.
        """
        at = self.delta if delta is None else check_delta(delta)
        return self._cap.spent(self._current().events, at)

    def remaining(self, delta: float | None = None) -> float:
        """Epsilon of the largest single Gaussian release that would still be accepted.

        Parameters
        ----------
        delta : float or None, default=None
            Delta of that release, None is that of the cap. With 0 it is a pure DP release instead.

        Returns
        -------
        float
            Epsilon of four digits of that release at its own delta, up to 1e6; 0 if nothing is
            left. It may exceed the epsilon of the cap if `delta` is below that of the cap: noise
            with epsilon 3 at delta 1e-6 has epsilon 3.6 at 1e-8, and its charge is the same. The
            remaining epsilon of a pure DP release may be smaller or larger than that of a Gaussian
            one. A fit may make several releases of both kinds, so `remaining_for` is what is left
            for a fit.

        Examples
        --------
        >>> from dp_halfspace import PrivacyLedger
        >>> ledger = PrivacyLedger(epsilon=3.0, delta=1e-6)
        >>> ledger.remaining(), ledger.remaining(1e-8)
        (3.0, 3.583)
        """
        at = self.delta if delta is None else check_delta(delta)
        return reports.largest_single(self._cap, self._current(), at)

    def remaining_for(self, release: Any, *data: Any, **options: Any) -> float:
        """Epsilon with which a fit to given data would be accepted now.

        Parameters
        ----------
        release : estimator of this package, or function
            The estimator to be fitted; its own epsilon is not used, and nothing is fitted or
            charged. Or a public function, without `data`, that returns the record of a release with
            a given epsilon, and raises ValueError if there is none.
        *data : X, y
            What would be fitted, as for the ``plan`` of the estimator.
        **options
            `groups` and `sample_weight`, as for ``plan``.

        Returns
        -------
        float
            Epsilon of four digits, at the delta of the estimator, up to 1e6; 0 if none is found.
            The fit with this epsilon is accepted, as long as nothing else is charged, and that with
            the next number of four digits is not. A plan may change its kind with epsilon, so some
            larger epsilon may be accepted, too, and some smaller one refused.

        Raises
        ------
        ValueError
            If the estimator refuses its parameters or the data.

        Notes
        -----
        **Privacy.** A function of public numbers, so calling it uses no budget.

        Examples
        --------
        >>> from dp_halfspace import AdaptiveMarginClassifier, PrivacyLedger
        >>> from dp_halfspace.datasets import make_halfspace
        >>> X, y = make_halfspace(2000, 5, margin=0.2, random_state=0)
        >>> ledger = PrivacyLedger(epsilon=1.0, delta=1e-6)
        >>> model = AdaptiveMarginClassifier(delta=1e-7, classes=[-1, 1], ledger=ledger)
        >>> _ = model.set_params(epsilon=0.5).fit(X, y)
        >>> left = ledger.remaining_for(model, X, y)
        >>> _ = model.set_params(epsilon=left).fit(X, y)
        """
        if not (hasattr(release, "_plans") or callable(release)):
            raise ValueError(
                "release must be an estimator of this package, or a function of epsilon, got "
                f"{type(release).__name__}: of a pipeline, give the last step"
            )
        plan: Plan = release._plans(*data, **options) if hasattr(release, "_plans") else release
        return largest_epsilon(partial(self._accepts, self._current(), plan), self.epsilon)

    def entries(self) -> list[LedgerEntry]:
        """Everything charged so far, in order; a changed or missing entry raises ValueError."""
        with self._store.transaction(writes=False) as transaction:
            rows = transaction.rows(0)
        Balance(self._store.first_digest).after(rows, self.handle)
        return [entry_of(row) for row in rows]

    def summary(self) -> str:
        """Text for human readers: the guarantee, the spent and the remaining budget."""
        self.entries()  # which checks every entry again
        terms = {"dataset": self.dataset, "adjacency": self.adjacency}
        return reports.summarise(self._cap, self._current(), **terms)

    def __repr__(self) -> str:
        try:
            state = reports.describe_state(self._cap, self._current())
            cap = f"cap epsilon={self.epsilon:g}, delta={self.delta:g}"
        except (BudgetError, ValueError) as error:
            return f"PrivacyLedger({self.handle!r}: not available, {error})"
        return f"PrivacyLedger({self.handle!r}: {state}; {cap})"

    def __copy__(self) -> PrivacyLedger:
        """Return this ledger, because there is only one account."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> PrivacyLedger:
        """Return this ledger, because there is only one account."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Store the handle and what it states, for pickle and skops."""
        return {"handle": self.handle, "account": self._store.first_digest, "about": self._about}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Find the account again; a model whose ledger is lost still predicts."""
        handle, account = state["handle"], state["account"]
        store: Store
        try:
            store = find_store(handle, account)
        except (OSError, ValueError) as error:
            store = LostStore(handle, account, str(error))
        self._bind(store, known_facts(state["about"]))

    def _check_kind(self, record: PrivacyRecord) -> None:
        """Refuse a record without releases, with seeded noise, or with a weaker adjacency."""
        if not record.events:
            raise BudgetError("the record lists no events: list releases, such as [Pure(epsilon)]")
        if record.noise == "seeded":
            raise BudgetError(
                "a ledger refuses noise from a seed, because anyone who knows the seed can "
                "subtract it. Set random_state=None for a release, or ledger=None for experiments"
            )
        if ADJACENCIES.index(record.adjacency) < ADJACENCIES.index(self.adjacency):
            raise BudgetError(
                f"a release with adjacency {record.adjacency!r} does not protect what this ledger "
                f"protects, {self.adjacency!r}: give groups, or use a class for whole records"
            )

    def _accepts(self, balance: Balance, plan: Plan, epsilon: float) -> bool | None:
        """Whether a planned release would be accepted; None if epsilon is too small for one."""
        try:
            record = plan(epsilon)
        except ValueError:
            return None
        with suppress(BudgetError):
            self._check_kind(record)
            return self._cap.holds([*balance.events, *record.events])
        return False

    def _advice(self, balance: Balance, refused: float) -> str:
        """Name an accepted epsilon of the release that is charged, if its plan is known."""
        if self._plan is None:
            return ""
        left = largest_epsilon(partial(self._accepts, balance, self._plan), refused)
        if not left:
            return ". None of the smaller epsilons that were tried is accepted for it"
        record = self._plan(left)
        spent = reports.describe_spent(self._cap, [*balance.events, *record.events])
        accepted = f"epsilon {record.epsilon:g} at delta {record.delta:.3g}"
        return f". The same release is accepted with {accepted}: {spent} would then be spent"

    @property
    def _cap(self) -> Cap:
        return Cap(self.epsilon, self.delta, self.adaptive)

    def _current(self) -> Balance:
        """Return the sum of the charges so far, after reading new entries."""
        known = self._reading.balance
        with self._store.transaction(writes=False) as transaction:
            return self._catch_up(transaction, known)

    def _catch_up(self, transaction: Transaction, balance: Balance) -> Balance:
        """Read the entries that have been added, and check that none was modified.

        The balance was known before the transaction began, which then has all of its entries.
        """
        rows = transaction.rows(max(balance.last - 1, 0))
        known = (balance.last, balance.digest)
        if balance.last and (not rows or (rows[0].number, rows[0].digest) != known):
            raise ValueError(f"the ledger {self.handle} has lost entries, or was replaced")
        # A single assignment: before and after it, the handle is consistent with some entries.
        # Threads that share it may set each other back, and then read the entries again.
        balance = balance.after(rows[bool(balance.last) :], self.handle)
        self._reading.balance = balance
        return balance


def open_ledger(ledger: Any) -> Any:
    """Return the ledger that was passed to an estimator, as an object or as a text.

    A text is a path, or the `handle` of a ledger in memory; anything else is returned as it is.

    Examples
    --------
    >>> from dp_halfspace import PrivacyLedger
    >>> from dp_halfspace.ledger.ledger import open_ledger
    >>> ledger = PrivacyLedger(epsilon=1.0, delta=0.0)
    >>> open_ledger(ledger.handle).epsilon, open_ledger(ledger) is ledger
    (1.0, True)
    """
    if not isinstance(ledger, str | os.PathLike):
        return ledger
    store = find_store(os.fspath(ledger))
    # Entries that have been read need not be read again; another file of the same name is another
    # ledger.
    key = store.handle, store.first_digest
    if key not in _OPEN_LEDGERS:
        _OPEN_LEDGERS[key] = _new_handle(store)
    return _OPEN_LEDGERS[key]


_OPEN_LEDGERS: dict[tuple[str, str], PrivacyLedger] = {}


def _new_handle(store: Store) -> PrivacyLedger:
    ledger = PrivacyLedger.__new__(PrivacyLedger)
    ledger._bind(store)
    return ledger
