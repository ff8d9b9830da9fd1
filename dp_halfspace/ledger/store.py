"""Storage of ledger entries: in the memory of one process, or in an SQLite file.

A store handles texts and their order, and nothing about privacy. The terms have a digest, and every
entry has a digest of itself, of all entries before it and of the terms. The number and the digest
of the last entry are stored separately, so that missing entries at the end are detected. A
transaction excludes every other writer, and is durable when it ends; a process that is killed
inside a transaction changes nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from uuid import uuid4

from dp_halfspace.exceptions import BudgetError
from dp_halfspace.privacy.events import number_to_json
from dp_halfspace.privacy.profiles import check_delta, check_nonnegative
from dp_halfspace.privacy.record import ADJACENCIES

# "dphl" in the header of a file, which identifies it before SQLite opens it.
_APPLICATION = 0x6470686C
_FORMAT = 2
# Seconds that a connection waits for others.
_WAIT_SECONDS = 60.0
# Suffixes of the files that SQLite keeps next to an open database.
COMPANIONS = ("-journal", "-wal", "-shm")
# A ledger that is being created has a second name for a moment; others wait this many times 10 ms.
_NAME_CHECKS = 100
_TERM_NAMES = {"id", "dataset", "adjacency", "adaptive", "epsilon", "delta"}
# A message of SQLite may quote a damaged name that is not valid text.
_SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
_SCHEMA = """
CREATE TABLE account (
    terms TEXT NOT NULL, digest TEXT NOT NULL, last INTEGER NOT NULL, head TEXT NOT NULL
);
CREATE TABLE entries (
    number INTEGER PRIMARY KEY, time TEXT NOT NULL, record TEXT NOT NULL, digest TEXT NOT NULL
);
"""


class Row(NamedTuple):
    """One entry as it is stored."""

    number: int
    time: str
    record: str
    digest: str


def digest_of(previous: str, row: Row) -> str:
    """Return the digest that an entry must have."""
    text = json.dumps([previous, row.number, row.time, row.record])
    return hashlib.sha256(text.encode()).hexdigest()


def _text_of(terms: dict[str, Any]) -> str:
    return json.dumps(terms, sort_keys=True)


@dataclass(slots=True)
class _MemoryTransaction:
    """The entries at the start of the transaction, and those that it adds."""

    _rows: tuple[Row, ...]
    added: tuple[Row, ...] = ()

    def rows(self, after: int) -> list[Row]:
        """Return the entries with numbers beyond one, in order."""
        return list(self._rows[after:])

    def insert(self, row: Row) -> None:
        """Add an entry."""
        self.added = (*self.added, row)


@dataclass(slots=True)
class _HasTerms:
    """A store with its terms, which never change."""

    terms: dict[str, Any]

    @property
    def first_digest(self) -> str:
        """The digest before the first entry, which is different for every ledger."""
        return hashlib.sha256(_text_of(self.terms).encode()).hexdigest()


@dataclass(slots=True)
class MemoryStore(_HasTerms):
    """Entries in the memory of the process that made them.

    Another process, including a forked one, is refused, because it would spend a copy of the
    budget.
    """

    _process: int = field(default_factory=os.getpid)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _rows: tuple[Row, ...] = ()

    @property
    def handle(self) -> str:
        """Text by which the store is found again, in this process."""
        return f"memory:{self.terms['id']}"

    @contextmanager
    def transaction(self, *, writes: bool) -> Iterator[Transaction]:
        """Exclude all other writers until the end of the block, where changes become durable."""
        if os.getpid() != self._process:
            raise BudgetError(_LOST)
        if not writes:
            yield _MemoryTransaction(self._rows)
            return
        with self._lock:
            begun = self._rows
            transaction = _MemoryTransaction(begun)
            yield transaction
            # Only a signal handler of this thread can have run in between; its entries are kept.
            if self._rows is not begun:
                raise BudgetError("another charge interrupted this one: charge again")
            self._rows = begun + transaction.added


_LOST = (
    "this ledger lives in the memory of another process, which cannot be charged from here: "
    "give the ledger a path to share it between processes"
)


@dataclass(frozen=True, slots=True)
class LostStore:
    """A store that is not available and refuses all calls; it knows whose account is lost."""

    handle: str
    first_digest: str
    reason: str

    @property
    def terms(self) -> dict[str, Any]:
        """Refuse."""
        raise BudgetError(self.reason)

    def transaction(self, *, writes: bool) -> AbstractContextManager[Transaction]:
        """Refuse."""
        raise BudgetError(self.reason)


class _Account(NamedTuple):
    """The single row about a ledger in its file: terms, their digest, and the last entry."""

    terms: str
    digest: str
    last: int
    head: str


@dataclass(frozen=True, slots=True)
class _SqlTransaction:
    """A transaction of SQLite."""

    _connection: sqlite3.Connection
    _path: Path
    _account: _Account

    def rows(self, after: int) -> list[Row]:
        """Return the entries with numbers beyond one, in order."""
        query = "SELECT number, time, record, digest FROM entries WHERE number > ? ORDER BY number"
        rows = [Row(*values) for values in self._connection.execute(query, (after,))]
        known = self._account.last, self._account.head
        is_whole = (rows[-1].number, rows[-1].digest) == known if rows else after >= known[0]
        # A single wrong bit can turn a text into a blob, which has no digest.
        if not (is_whole and all(isinstance(text, str) for row in rows for text in row[1:])):
            raise ValueError(f"the ledger {self._path} is damaged, or has lost entries at its end")
        return rows

    def insert(self, row: Row) -> None:
        """Add an entry."""
        self._connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?)", row)
        self._connection.execute("UPDATE account SET last = ?, head = ?", (row.number, row.digest))


# A process must not fork while SQLite has a connection: in the child, its locks would be held
# forever by threads that do not exist there. So a fork waits until this process has no connection.
# A thread that forks inside its own transaction does not wait for itself.
_connected = threading.RLock()


def _free_in_child() -> None:
    """Make a new lock in a forked child, where the thread that holds the old one does not exist."""
    global _connected  # noqa: PLW0603 - a lock cannot be freed for somebody else
    _connected = threading.RLock()


if hasattr(os, "register_at_fork"):
    # The name is looked up at each fork, because a child replaces the lock.
    os.register_at_fork(
        before=lambda: _connected.acquire(),  # noqa: PLW0108
        after_in_parent=lambda: _connected.release(),  # noqa: PLW0108
        after_in_child=_free_in_child,
    )


Transaction: TypeAlias = _MemoryTransaction | _SqlTransaction


@dataclass(slots=True)
class FileStore(_HasTerms):
    """Entries in a file, for any number of threads and processes.

    No connection outlives a transaction, and no fork happens inside one.
    """

    path: Path

    @property
    def handle(self) -> str:
        """The absolute path."""
        return str(self.path)

    @classmethod
    def open(cls, path: Path) -> FileStore:
        """Open an existing file, which is read and not modified.

        A file that is no ledger, or is damaged, raises a ValueError.
        """
        if not path.exists():
            raise FileNotFoundError(
                f"there is no ledger at {path}: give epsilon and delta to make one"
            )
        # The first bytes identify a ledger. SQLite may write to a file that it opens, to recover
        # after a killed process, so it must not open other files.
        header = _header(path)
        if not _is_ledger(header) or int.from_bytes(header[60:64], "big") != _FORMAT:
            raise ValueError(f"{path} is not a privacy ledger of this version")
        _refuse_second_name(path)
        try:
            with _connected, _connect(path) as connection:
                (found,) = connection.execute("PRAGMA quick_check").fetchone()
                terms = json.loads(_account_in(connection, path).terms)
            check_terms(**terms)
        except (*_SQLITE_ERRORS, ValueError, TypeError) as error:
            raise ValueError(f"the ledger {path} is damaged, or cannot be read") from error
        # A term that is unknown here may promise something.
        if found != "ok" or set(terms) != _TERM_NAMES:
            raise ValueError(f"the ledger {path} is damaged, or of a newer version")
        return cls(terms, path)

    @classmethod
    def create(cls, path: Path, terms: dict[str, Any]) -> FileStore:
        """Create a file; if it exists already, or is created meanwhile, it is opened instead.

        The file appears under its name complete, or not at all.
        """
        try:
            handle, name = tempfile.mkstemp(prefix=path.name, suffix=".new", dir=path.parent)
        except OSError as error:
            # The name in the message of the system would be that of a temporary file.
            raise BudgetError(f"the ledger {path} cannot be created: {error.strerror}") from error
        os.close(handle)
        new = Path(name)
        try:
            with _connected, _connect(new) as connection:
                connection.executescript(_SCHEMA)
                digest = cls(terms, path).first_digest
                account = _Account(_text_of(terms), digest, 0, digest)
                connection.execute("INSERT INTO account VALUES (?, ?, ?, ?)", account)
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                connection.execute(f"PRAGMA user_version = {_FORMAT}")
            # Neither of them replaces an existing file.
            (os.rename if os.name == "nt" else os.link)(new, path)
        except FileExistsError:
            pass  # another process was faster; whether it agrees on the terms is checked
        except (sqlite3.Error, OSError) as error:
            raise BudgetError(f"the ledger {path} cannot be created: {error}") from error
        finally:
            new.unlink(missing_ok=True)
        return cls.open(path)

    @contextmanager
    def transaction(self, *, writes: bool) -> Iterator[Transaction]:
        """Exclude all other writers, as in other stores; an error of SQLite becomes a BudgetError.

        A file of another ledger, or a damaged file, raises a ValueError.
        """
        _refuse_second_name(self.path)
        try:
            with _connected:
                before = _identity(self.path)
                with _connect(self.path) as connection:
                    connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
                    account = _account_in(connection, self.path)
                    if account.digest != self.first_digest:
                        text = (
                            f"the file of the ledger {self.handle} was replaced by another ledger"
                        )
                        raise ValueError(f"{text}: open it again if that is the one to charge")
                    yield _SqlTransaction(connection, self.path, account)
                    # The entry is durable before noise is drawn; after an exception this is not
                    # reached.
                    connection.execute("COMMIT")
                if _identity(self.path) != before:
                    raise BudgetError(
                        f"the file of the ledger {self.handle} was replaced while it was in use, "
                        "so nothing is released"
                    )
        except _SQLITE_ERRORS as error:
            raise BudgetError(
                f"the ledger {self.path} cannot be used, so nothing is released: {error}"
            ) from error


def belongs_to_ledger(path: Path) -> bool:
    """Whether a path is a file of a ledger, or a file that SQLite keeps next to one."""
    place = Path(os.path.realpath(path))
    owners = [place.with_name(place.name.removesuffix(end)) for end in ("", *COMPANIONS)]
    return any(owner.is_file() and _is_ledger(_header(owner)) for owner in owners)


def _header(path: Path) -> bytes:
    """Return the first bytes of a file, which identify it; none if it cannot be read."""
    with suppress(OSError), path.open("rb") as file:
        return file.read(100)
    return b""


def _is_ledger(header: bytes) -> bool:
    """Whether the first 100 bytes of a file are those of a ledger, of any version."""
    is_sqlite = header[:16] == b"SQLite format 3\0" and len(header) == 100
    return is_sqlite and int.from_bytes(header[68:72], "big") == _APPLICATION


def _refuse_second_name(path: Path) -> None:
    """Refuse a file that has several names (hard links), before SQLite opens it.

    SQLite keeps the journal of an unfinished transaction under the name that was opened. Under
    another name of the file it would not be found, and later it would undo entries that were added
    meanwhile. Symbolic links are resolved by SQLite.
    """
    for _ in range(_NAME_CHECKS):
        try:
            if path.stat().st_nlink <= 1:
                return
        except OSError:
            return  # SQLite states what is wrong
        time.sleep(0.01)
    raise BudgetError(
        f"the file of the ledger {path} has a second name (a hard link), under which a charge "
        "could be lost, so nothing is released: remove that name, or make it a symbolic link"
    )


def _identity(path: Path) -> tuple[int, int] | None:
    """Return the identity of a file, which a file that replaces it does not share, or None."""
    with suppress(OSError):
        found = path.stat()
        return found.st_dev, found.st_ino
    return None


def _account_in(connection: sqlite3.Connection, path: Path) -> _Account:
    """Return the terms and the last entry of a file, after a check of its tables and digest."""
    tables = connection.execute("SELECT sql FROM sqlite_master").fetchall()
    # With another type of `number`, no entry would be found.
    is_whole = "".join(f"\n{sql};" for (sql,) in tables) + "\n" == _SCHEMA
    rows = connection.execute("SELECT terms, digest, last, head FROM account").fetchall()
    if is_whole and len(rows) == 1:
        account = _Account(*rows[0])
        kinds = tuple(map(type, account)) == (str, str, int, str)
        is_whole = kinds and hashlib.sha256(account.terms.encode()).hexdigest() == account.digest
        if is_whole and (account.last or account.head == account.digest):
            return account
    raise ValueError(f"the ledger {path} is damaged: its terms are not as they were made")


@contextmanager
def _connect(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a connection that waits for other connections and makes every commit durable."""
    name = f"{path.as_uri()}?mode=rw"
    opened = sqlite3.connect(name, uri=True, timeout=_WAIT_SECONDS, isolation_level=None)
    with closing(opened) as connection:
        connection.execute("PRAGMA synchronous = EXTRA")
        yield connection


Store: TypeAlias = MemoryStore | FileStore | LostStore

# Ledgers in memory, by handle. They are kept for the life of the process, because a handle without
# its entries would allow the budget to be spent again.
_IN_MEMORY: dict[str, MemoryStore] = {}


def find_store(handle: str, account: str = "") -> Store:
    """Find a store by its handle; one in the memory of another process is refused.

    So is another ledger than the one with the first digest `account`.
    """
    if handle.startswith("memory:") and handle not in _IN_MEMORY:
        raise BudgetError(_LOST)
    store: Store = _IN_MEMORY.get(handle) or FileStore.open(Path(handle).absolute())
    if account not in ("", store.first_digest):
        raise ValueError(f"the file of the ledger {handle} was replaced by another ledger")
    return store


def open_store(path: str | os.PathLike[str] | None, terms: dict[str, Any]) -> Store:
    """Open or make a store."""
    # The id identifies a ledger, also against a later one under the same name.
    defaults = {"dataset": "data", "adjacency": "replace-one", "adaptive": False}
    complete = {"id": uuid4().hex, **defaults, **terms}
    if not isinstance(path, str | os.PathLike | None):
        raise ValueError(f"path must be a text, a path or None, got {path!r}: write epsilon=")
    if path is not None:
        place = Path(path).absolute()
        if place.exists():
            return FileStore.open(place)
    if not {"epsilon", "delta"} <= set(terms):
        absent = "" if path is None else f"the file {place} does not exist, and "
        raise ValueError(f"{absent}a new ledger needs its total budget: epsilon and delta")
    if path is not None:
        return FileStore.create(place, complete)
    store = MemoryStore(complete)
    _IN_MEMORY[store.handle] = store
    return store


def check_terms(**asked: Any) -> dict[str, Any]:
    """Return the terms that were asked for, not None, as JSON can hold them."""
    terms = {name: value for name, value in asked.items() if value is not None}
    if "epsilon" in terms:
        terms["epsilon"] = number_to_json(check_nonnegative("epsilon", terms["epsilon"]))
    if "delta" in terms:
        terms["delta"] = check_delta(terms["delta"])
    if "dataset" in terms:
        terms["dataset"] = str(terms["dataset"])
    if terms.get("adjacency", "replace-one") not in ADJACENCIES:
        raise ValueError(f"adjacency must be one of {ADJACENCIES}, got {terms['adjacency']!r}")
    if not isinstance(terms.get("adaptive", True), bool):
        raise ValueError(f"adaptive must be True or False, got {terms['adaptive']!r}")
    return terms
