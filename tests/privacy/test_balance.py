"""A handle that is interrupted anywhere has never read an entry without having counted it."""

import contextlib
import gc
import itertools
import json
import shutil
import sqlite3
import sys
import threading
from collections import Counter
from decimal import Decimal

import pytest

from dp_halfspace.exceptions import BudgetError
from dp_halfspace.ledger import PrivacyLedger, cap, entries, ledger, open_ledger
from dp_halfspace.ledger import store as _ledger_store
from dp_halfspace.ledger.entries import Balance
from dp_halfspace.ledger.store import Row, digest_of
from dp_halfspace.privacy.events import Pure, Repeated
from tests.ledger.files import insert
from tests.privacy.oracles import pure

# An interruption may reach a generator that is being closed, where Python can only warn of it.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
MODULES = (_ledger_store, ledger, entries, cap, contextlib)
TRACED = {module.__file__ for module in MODULES} | {__file__}


def row_after(digest, number, record):
    row = Row(number, "2026-01-01", record, "")
    return row._replace(digest=digest_of(digest, row))


# -- balances -------------------------------------------------------------------------------


def test_a_balance_is_made_whole_or_not_at_all():
    start = Balance("first")
    one = row_after("first", 1, pure(0.1).to_json())
    two = row_after(one.digest, 2, pure(0.1).to_json())
    both = start.after([one, two], "here")
    assert (both.last, both.digest, both.counts) == (2, two.digest, Counter({Pure(0.1): 2}))
    assert (both.asked, both.deltas) == (Decimal("0.2"), {0.0})
    assert start.after([one], "here").after([two], "here") == both
    assert start == Balance("first")
    for rows in ([two], [one, one], [one, two._replace(time="later")]):
        with pytest.raises(ValueError, match="damaged at entry"):
            start.after(rows, "here")


def test_equal_releases_of_one_record_count_each():
    row = row_after("first", 1, pure(0.2, events=[Pure(0.1), Pure(0.1)]).to_json())
    assert Balance("first").after([row], "here").events == [Repeated(Pure(0.1), 2)]


# -- an exception at every step -----------------------------------------------------------------


class Interrupted(BaseException):
    """Stands for Ctrl-C."""


def interrupted(action, step, register=sys.settrace):
    """Run, but raise at a step; return whether there was such a step.

    Traced, a step is a line; profiled, a call that begins or ends, which is where signals come in.
    """
    left = step

    def trace(frame, event, _):
        nonlocal left
        if frame.f_code.co_filename not in TRACED:
            return None
        if register is sys.setprofile and event not in ("call", "c_return"):
            return None
        left -= 1
        if left == 0:
            raise Interrupted
        return trace

    def run():
        register(trace)
        try:
            action()
        except (Interrupted, BudgetError):
            pass
        finally:
            register(None)
        yield

    # A handler of errors that is interrupted itself leaves its error with this generator: left with
    # the thread, it would be the context of every error of later tests.
    next(run())
    # Lines that close a connection, or leave a lock, were interrupted before they did.
    gc.collect(1)
    if register is sys.settrace:
        _ledger_store._connected = threading.RLock()
    return left <= 0


def in_memory(tmp_path):
    """Make ledgers of nine tenths of their cap, with handles that have read nothing of it."""
    while True:
        full = nearly_full()
        yield lambda full=full: ledger._new_handle(full._store)


def nearly_full(path=None):
    full = PrivacyLedger(path, epsilon=1.0, delta=0.0)
    for _ in range(3):
        full.charge(pure(0.3))
    return full


def by_path(tmp_path):
    """As `in_memory`; the handle is that which every estimator with this path shares."""
    kept, place = tmp_path / "kept.db", tmp_path / "ledger.db"
    nearly_full(kept)
    while True:
        shutil.copy(kept, place)
        ledger._OPEN_LEDGERS.clear()
        yield lambda: open_ledger(place)


KINDS = {"memory": in_memory, "path": by_path}
ACTIONS = {
    "charge": lambda handle: handle.charge(pure(0.1)),
    "read": lambda handle: handle.spent(),
    "refused": lambda handle: handle.charge(pure(0.2)),
}


def assert_nothing_is_left_that_was_spent(kind, action, tmp_path):
    """Interrupt an action at each of its lines, and go on with the same handle."""
    for step, make in enumerate(KINDS[kind](tmp_path), 1):
        handle = make()
        reached = interrupted(lambda handle=handle: ACTIONS[action](handle), step)
        booked = len(handle.entries())
        assert booked in ((3, 4) if action == "charge" else (3,))
        assert handle.spent() == pytest.approx(0.3 * 3 + 0.1 * (booked - 3))
        if booked == 3:
            handle.charge(pure(0.1))
        with pytest.raises(BudgetError):
            handle.charge(pure(0.1))
        assert len(make().entries()) == 4
        if not reached:
            assert step > 20
            return


def assert_no_lock_stays(kind, action, tmp_path):
    """Interrupt an action where signals come in; other threads can use the ledger afterwards."""
    for step, make in enumerate(KINDS[kind](tmp_path), 1):
        handle = make()
        reached = interrupted(lambda handle=handle: ACTIONS[action](handle), step, sys.setprofile)
        thread = threading.Thread(target=refused, args=[handle], daemon=True)
        thread.start()
        thread.join(10)
        assert not thread.is_alive()
        if not reached:
            assert step > 20
            return


def refused(handle):
    with pytest.raises(BudgetError):
        handle.charge(pure(0.2))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_interruption_leaves_more_than_the_entries_do(kind, action, tmp_path_factory):
    assert_nothing_is_left_that_was_spent(kind, action, tmp_path_factory.mktemp("entries"))
    assert_no_lock_stays(kind, action, tmp_path_factory.mktemp("locks"))


def test_lock_test_sees_a_lock_that_only_success_gives_back(tmp_path, monkeypatch):
    """Planted: no ``finally``."""

    @contextlib.contextmanager
    def transaction(self, *, writes):
        self._lock.acquire()
        transaction = _ledger_store._MemoryTransaction(self._rows)
        yield transaction
        self._rows += transaction.added
        self._lock.release()

    monkeypatch.setattr(_ledger_store.MemoryStore, "transaction", transaction)
    monkeypatch.setattr(
        threading.Thread, "join", lambda self, _, join=threading.Thread.join: join(self, 0.2)
    )
    with pytest.raises(AssertionError):
        assert_no_lock_stays("memory", "charge", tmp_path)


def test_an_entry_that_cannot_be_read_stops_every_charge(tmp_path):
    """As a newer version may have written it."""
    place = tmp_path / "ledger.db"
    account = PrivacyLedger(place, epsilon=1.0, delta=0.0)
    account.charge(pure(0.5))
    text = json.dumps({**pure(0.5).to_dict(), "events": [{"type": "Unheard", "mu": 1.0}]})
    insert(account, text)
    for handle in (account, open_ledger(place)) * 3:
        for action in (lambda handle=handle: handle.charge(pure(0.3)), handle.spent):
            with pytest.raises(ValueError, match="unknown event type"):
                action()
    with contextlib.closing(sqlite3.connect(place)) as connection:
        assert connection.execute("SELECT count(*) FROM entries").fetchone() == (2,)


def two_steps(first):
    """Planted: the handle moves on before it has summed, or sums before it moves on."""

    def caught_up(self, account, known):
        whole = known.after(account.rows(known.last), self.handle)
        position, spent = (whole, known) if first == "position" else (known, whole)
        self._reading.balance = Balance(position.digest, position.last, spent.counts)
        self._reading.balance = whole
        return whole

    return caught_up


FAST = [
    ("position", "memory", "read"),
    ("position", "path", "charge"),
    ("sum", "memory", "charge"),
    ("sum", "path", "read"),
]


EVERY = itertools.product(("position", "sum"), KINDS, ACTIONS)


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("first", "kind", "action"),
    [*FAST, *(pytest.param(*case, marks=pytest.mark.slow) for case in EVERY if case not in FAST)],
)
def test_interruption_test_sees_two_steps_in_place_of_one(
    kind, action, first, tmp_path, monkeypatch
):
    monkeypatch.setattr(PrivacyLedger, "_catch_up", two_steps(first))
    with pytest.raises(AssertionError):
        assert_nothing_is_left_that_was_spent(kind, action, tmp_path)


@pytest.mark.slow
def test_interruption_test_sees_a_charge_that_is_counted_before_it_is_booked(tmp_path, monkeypatch):
    """Planted: a rolled back charge stays with the handle, which then calls the file damaged."""
    honest = _ledger_store._MemoryTransaction.insert
    handles = []

    def hasty(self, row):
        honest(self, row)
        for handle in handles[-1:]:
            handle._reading.balance = handle._reading.balance.after([row], "here")

    remembering = ledger._new_handle
    monkeypatch.setattr(
        ledger, "_new_handle", lambda store: handles.append(remembering(store)) or handles[-1]
    )
    made = in_memory(tmp_path)

    def making(_):
        for make in made:
            yield make
            handles.clear()

    monkeypatch.setitem(KINDS, "memory", making)
    monkeypatch.setattr(_ledger_store._MemoryTransaction, "insert", hasty)
    with pytest.raises(ValueError, match="lost entries"):
        assert_nothing_is_left_that_was_spent("memory", "charge", tmp_path)


def test_a_charge_inside_a_charge_of_the_same_thread_loses_nothing():
    """As a signal handler would do it."""
    account = PrivacyLedger(epsilon=1.0, delta=0.0)
    row = row_after(account._store.first_digest, 1, pure(0.5).to_json())

    def both():
        with account._store.transaction(writes=True) as outer:
            outer.insert(row)
            account.charge(pure(0.4))

    with pytest.raises(BudgetError, match="charge again"):
        both()
    assert account.spent() == pytest.approx(0.4)
    assert len(account.entries()) == 1
