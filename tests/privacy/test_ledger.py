"""One account for one data set: nothing is lost, nothing booked twice, the cap never passed."""

from __future__ import annotations

import copy
import csv
import io
import json
import math
import multiprocessing
import os
import pickle
import resource
import signal
import sqlite3
import threading
import time
from contextlib import closing, contextmanager

import pytest

from dp_halfspace.exceptions import BudgetError
from dp_halfspace.privacy import _ledger_store as store_module
from dp_halfspace.privacy import accounting, gdp_epsilon, gdp_mu
from dp_halfspace.privacy._cap import Cap
from dp_halfspace.privacy.events import Gaussian, Pure, Repeated
from dp_halfspace.privacy.ledger import LedgerEntry, PrivacyLedger, open_ledger
from dp_halfspace.privacy.record import PrivacyRecord

FORK = multiprocessing.get_context("fork")


def gaussian(mu, delta=1e-6):
    event = Gaussian(mu)
    return PrivacyRecord(epsilon=gdp_epsilon(mu, delta), delta=delta, events=[event], noise="os")


def pure(epsilon, **changes):
    fields = {"epsilon": epsilon, "delta": 0.0, "events": [Pure(epsilon)], "noise": "os"}
    return PrivacyRecord(**{**fields, **changes})


@pytest.fixture(params=["memory", "file"])
def make(request, tmp_path):
    """Ledgers of both kinds."""

    def ledger(**terms):
        path = tmp_path / "ledger.db" if request.param == "file" else None
        return PrivacyLedger(path, **{"epsilon": 1.0, "delta": 1e-6, **terms})

    return ledger


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study one.db"


# -- the cap ------------------------------------------------------------------------------


def test_entries_are_composed_by_their_profiles(make):
    ledger = make()
    mu = gdp_mu(1.0, 1e-6)
    for _ in range(4):
        ledger.charge(gaussian(0.5 * mu * (1 - 1e-9)))
    assert ledger.spent() == pytest.approx(1.0, rel=1e-6)
    assert ledger.spent(1e-9) == pytest.approx(gdp_epsilon(mu, 1e-9), rel=1e-6)
    with pytest.raises(BudgetError, match="does not fit"):
        ledger.charge(gaussian(0.01 * mu))
    assert len(ledger.entries()) == 4
    assert all(isinstance(entry, LedgerEntry) for entry in ledger.entries())
    assert ledger.remaining() < 1e-3


def test_ten_tenths_fill_one(make):
    ledger = make(delta=0.0)
    for _ in range(10):
        ledger.charge(pure(0.1))
    assert ledger.spent() == pytest.approx(1.0)
    assert ledger.remaining() == 0.0
    with pytest.raises(BudgetError):
        ledger.charge(pure(1e-9))


@pytest.mark.parametrize("kind", ["pure", "gaussian"])
def test_what_remains_can_be_spent_and_no_more(make, kind):
    ledger = make()
    ledger.charge(gaussian(0.7 * gdp_mu(1.0, 1e-6)))
    if kind == "pure":
        left = ledger.remaining(0.0)
        assert 0.0 < left < 1.0
        more = pure(left * (1 + 1e-6))
        ledger_record = pure(left)
    else:
        left = ledger.remaining(1e-8)
        more = gaussian(gdp_mu(left, 1e-8) * (1 + 1e-6), 1e-8)
        ledger_record = gaussian(gdp_mu(left, 1e-8), 1e-8)
    with pytest.raises(BudgetError):
        ledger.charge(more)
    ledger.charge(ledger_record)
    assert ledger.spent() <= 1.0 + 1e-9


def test_no_guarantee_needs_an_infinite_cap(make):
    nothing = PrivacyRecord(epsilon=math.inf, delta=0.0, events=[Pure(math.inf)], noise="none")
    ledger = make()
    with pytest.raises(BudgetError):
        ledger.charge(nothing)
    boundless = PrivacyLedger(epsilon=math.inf, delta=0.0)
    boundless.charge(nothing)
    assert boundless.spent() == boundless.remaining() == math.inf
    assert json.loads(boundless.to_json())["epsilon"] == "inf"


def test_a_refused_record_is_not_booked(make):
    assert_refusals_are_free(make())


def assert_refusals_are_free(ledger):
    for _ in range(3):
        with pytest.raises(BudgetError):
            ledger.charge(pure(1.5))
    assert ledger.entries() == []
    ledger.charge(pure(0.9))
    assert ledger.spent() <= 0.9 * (1 + 1e-9)


def test_refusal_test_sees_a_ledger_that_books_first(make, monkeypatch):
    """Planted: what was refused is in the books."""
    ledger = make()
    monkeypatch.setattr(Cap, "holds", lambda self, events: True)
    with pytest.raises(BaseException, match="DID NOT RAISE"):
        assert_refusals_are_free(ledger)


def test_labels_only_is_less_than_a_whole_record(make):
    labels = pure(0.1, adjacency="replace-one-label")
    with pytest.raises(BudgetError, match="features"):
        make().charge(labels)


def test_seeded_noise_is_refused(make):
    ledger = make()
    with pytest.raises(BudgetError, match="random_state=None"):
        ledger.charge(pure(0.1, noise="seeded"))
    assert ledger.entries() == []


def test_adaptive_is_a_term_of_the_ledger(make, path):
    assert not make().adaptive
    PrivacyLedger(path, epsilon=1.0, delta=0.0, adaptive=True)
    assert PrivacyLedger(path).adaptive
    with pytest.raises(ValueError, match="other terms: adaptive"):
        PrivacyLedger(path, adaptive=False)
    with pytest.raises(ValueError, match="adaptive must be True or False"):
        PrivacyLedger(epsilon=1.0, delta=0.0, adaptive=1)


def test_terms_of_older_and_newer_files(path):
    """Older files do not say that they are not adaptive; newer ones may promise what is unknown."""
    PrivacyLedger(path, epsilon=1.0, delta=0.0).charge(pure(0.1))
    terms = json.loads(PrivacyLedger(path).to_json())
    for name in ("adaptive", "entries"):
        del terms[name]
    rewrite_terms(path, terms)
    older = PrivacyLedger(path, epsilon=1.0, adaptive=False)
    assert not older.adaptive
    assert not open_ledger(path).adaptive
    rewrite_terms(path, {**terms, "rate": 1.0})
    for opening in (PrivacyLedger, open_ledger):
        with pytest.raises(ValueError, match="newer version"):
            opening(path)


def rewrite_terms(path, terms):
    connection = sqlite3.connect(path)
    connection.execute("UPDATE account SET terms = ?", (json.dumps(terms),))
    connection.commit()
    connection.close()


def test_a_ledger_of_labels_takes_both(tmp_path):
    ledger = PrivacyLedger(
        tmp_path / "labels.db", epsilon=1.0, delta=0.0, adjacency="replace-one-label"
    )
    ledger.charge(pure(0.1, adjacency="replace-one-label"))
    ledger.charge(pure(0.1))
    assert ledger.spent() == pytest.approx(0.2)


@pytest.mark.parametrize(
    "terms",
    [{}, {"epsilon": 1.0}, {"delta": 0.1}, {"epsilon": -1.0, "delta": 0.0},
     {"epsilon": math.nan, "delta": 0.0}, {"epsilon": 1.0, "delta": 1.0},
     {"epsilon": 1.0, "delta": 0.0, "adjacency": "add-remove"}],
)  # fmt: skip
def test_terms_are_checked_before_anything_is_made(terms, path):
    for place in (None, path):
        with pytest.raises(ValueError, match=r"cap|epsilon|delta|adjacency"):
            PrivacyLedger(place, **terms)
    assert not path.exists()
    assert list(path.parent.iterdir()) == []


# -- handles ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_every_copy_is_the_same_account(make, copied):
    ledger = make()
    other = copied(ledger)
    other.charge(pure(0.4))
    ledger.charge(pure(0.4))
    assert len(other.entries()) == len(ledger.entries()) == 2
    for handle in (ledger, other):
        with pytest.raises(BudgetError):
            handle.charge(pure(0.4))


def test_the_handle_stands_for_the_ledger(make):
    ledger = make(dataset="trial")
    open_ledger(ledger.handle).charge(pure(0.4))
    assert ledger.spent() == pytest.approx(0.4, rel=1e-5)
    assert open_ledger(ledger.handle).dataset == "trial"
    assert repr(ledger).startswith(f"PrivacyLedger({ledger.handle!r}: 1 entry, epsilon 0.3999")
    own = object()
    assert open_ledger(own) is own


def in_child(action):
    """Run in a forked process; return the name of the exception it ended with, if any."""
    reading, writing = FORK.Pipe(duplex=False)

    def run():
        try:
            action()
            writing.send("")
        except BaseException as error:  # noqa: BLE001 - reported to the parent
            writing.send(type(error).__name__ + ": " + str(error))

    process = FORK.Process(target=run)
    process.start()
    process.join(30)
    return reading.recv()


def test_a_ledger_in_memory_refuses_other_processes():
    ledger = PrivacyLedger(epsilon=1.0, delta=0.0)
    found = in_child(lambda: ledger.charge(pure(0.1)))
    assert found.startswith("BudgetError: this ledger lives in the memory of another process")
    assert ledger.entries() == []


def test_a_pickle_whose_ledger_is_gone_loads_and_refuses(path):
    ledger = PrivacyLedger(path, epsilon=1.0, delta=0.0)
    frozen = pickle.dumps(ledger)
    path.unlink()
    lost = pickle.loads(frozen)
    assert lost.handle == str(path)
    with pytest.raises(BudgetError, match="no ledger"):
        lost.charge(pure(0.1))
    elsewhere = pickle.dumps(PrivacyLedger(epsilon=1.0, delta=0.0))
    store_module._IN_MEMORY.clear()
    with pytest.raises(BudgetError, match="another process"):
        pickle.loads(elsewhere).charge(pure(0.1))


# -- files --------------------------------------------------------------------------------


def test_reopening_needs_no_cap_and_keeps_the_stored_one(path):
    PrivacyLedger(str(path), epsilon=0.5, delta=1e-7, dataset="trial").charge(pure(0.3))
    again = PrivacyLedger(path)
    assert (again.epsilon, again.delta, again.dataset) == (0.5, 1e-7, "trial")
    assert again.spent() == pytest.approx(0.3, rel=1e-5)
    assert PrivacyLedger(path, epsilon=0.5, delta=1e-7).spent() == again.spent()
    before = path.read_bytes()
    for other in ({"epsilon": 0.6}, {"delta": 1e-6}, {"dataset": "other"}):
        with pytest.raises(ValueError, match=f"other terms: {next(iter(other))}"):
            PrivacyLedger(path, **other)
    assert path.read_bytes() == before


def foreign_files(path):
    ledger = PrivacyLedger(path, epsilon=1.0, delta=0.0)
    for _ in range(40):
        ledger.charge(pure(0.01))
    good = path.read_bytes()
    path.unlink()
    yield "empty", b""
    yield "text", b"epsilon,delta\n1,0\n" * 100
    yield "head only", good[:100]
    yield "truncated", good[: len(good) // 2]
    yield "zeroed pages", good[:4096] + bytes(len(good) - 4096)
    yield "other version", good[:60] + b"\0\0\0\7" + good[64:]
    path.unlink()
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE account (terms TEXT)")
    other.commit()
    other.close()
    yield "other application", path.read_bytes()


def test_foreign_and_damaged_files_are_refused_and_left_alone(path):
    for name, content in foreign_files(path):
        path.write_bytes(content)
        for terms in ({}, {"epsilon": 1.0, "delta": 0.0}):
            with pytest.raises(ValueError, match=r"is not a privacy ledger|is damaged"):
                PrivacyLedger(path, **terms)
        with pytest.raises(ValueError, match=r"is not a privacy ledger|is damaged"):
            open_ledger(path)
        assert path.read_bytes() == content, name
        assert [p.name for p in path.parent.iterdir()] == [path.name], name


@pytest.mark.parametrize(
    "tampering",
    ["UPDATE entries SET record = replace(record, '0.3', '0.1')",
     "DELETE FROM entries WHERE number = 2", "DELETE FROM entries WHERE number = 3",
     "UPDATE entries SET time = '2000' WHERE number = 1",
     "UPDATE entries SET number = number + 1 WHERE number = 3"],
)  # fmt: skip
def test_changed_entries_are_noticed(path, tampering):
    ledger = PrivacyLedger(path, epsilon=1.0, delta=0.0)
    for _ in range(3):
        ledger.charge(pure(0.3))
    assert len(ledger.entries()) == 3
    connection = sqlite3.connect(path)
    connection.execute(tampering)
    connection.commit()
    connection.close()
    # Only who has read the last entry can miss it.
    lost_end = "DELETE" in tampering and "number = 3" in tampering
    with pytest.raises(ValueError, match="has lost entries" if lost_end else "damaged"):
        ledger.charge(pure(0.01)) if lost_end else ledger.entries()
    if not lost_end:
        with pytest.raises(ValueError, match="damaged"):
            PrivacyLedger(path).charge(pure(0.01))


def test_another_file_of_the_same_name_is_another_ledger(path):
    ledger = PrivacyLedger(path, epsilon=1.0, delta=0.0)
    open_ledger(path).charge(pure(0.3))
    ledger.charge(pure(0.3))
    kept = path.rename(path.with_suffix(".old"))
    PrivacyLedger(path, epsilon=1.0, delta=0.0)
    assert open_ledger(path).spent() == 0.0
    # Also when the file system gives the new file the number of the old one.
    path.unlink()
    PrivacyLedger(path, epsilon=0.5, delta=0.0)
    assert open_ledger(path).epsilon == 0.5
    with pytest.raises(ValueError, match="was replaced"):
        ledger.charge(pure(0.3))
    assert len(PrivacyLedger(kept).entries()) == 2


def test_a_folder_that_cannot_be_written_refuses(path, monkeypatch):
    with pytest.raises(BudgetError, match="cannot be created"):
        PrivacyLedger(path.parent / "nowhere" / "x.db", epsilon=1.0, delta=0.0)
    ledger = PrivacyLedger(path, epsilon=1.0, delta=0.0)
    honest = store_module._connect

    def read_only(place):
        connection = honest(place)
        connection.execute("PRAGMA query_only = ON")
        return connection

    monkeypatch.setattr(store_module, "_connect", read_only)
    with pytest.raises(BudgetError, match="nothing is released"):
        ledger.charge(pure(0.1))
    monkeypatch.undo()
    assert ledger.entries() == []


def test_a_full_disk_refuses(path):
    ledger = PrivacyLedger(path, epsilon=1e3, delta=0.0)
    ledger.charge(pure(0.1))

    def charge_until_full():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        size = path.stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 4096, size + 4096))
        for _ in range(1000):
            ledger.charge(pure(0.1))

    assert in_child(charge_until_full).startswith("BudgetError")
    entries = len(ledger.entries())
    assert 1 <= entries < 1000
    ledger.charge(pure(0.1))
    assert len(PrivacyLedger(path).entries()) == entries + 1


# -- many writers, and sudden death ----------------------------------------------------------


def charge_many(ledger, times):
    for _ in range(times):
        try:
            ledger.charge(pure(0.1))
        except BudgetError:
            return


def run_writers(ledger, processes, times):
    workers = [FORK.Process(target=charge_many, args=(ledger, times)) for _ in range(processes)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
        assert worker.exitcode == 0


@pytest.mark.parametrize(
    ("processes", "times"), [(4, 6), pytest.param(8, 50, marks=pytest.mark.slow)]
)
def test_every_charge_of_every_process_is_there_once(path, processes, times):
    assert_every_charge_is_there(path, processes, times)


def assert_every_charge_is_there(path, processes, times):
    ledger = PrivacyLedger(path, epsilon=1e3, delta=0.0)
    run_writers(ledger, processes, times)
    numbers = [entry.number for entry in ledger.entries()]
    assert numbers == list(range(1, processes * times + 1))
    assert ledger.spent() == pytest.approx(0.1 * processes * times)


def test_writers_test_sees_a_lost_commit(path, monkeypatch):
    """Planted: a transaction that ends without becoming durable."""
    honest = store_module.FileStore.transaction

    @contextmanager
    def forgetful(self, *, writes):
        with honest(self, writes=writes) as transaction:
            yield transaction
            if writes:
                transaction._connection.execute("ROLLBACK")
                transaction._connection.execute("BEGIN")

    monkeypatch.setattr(store_module.FileStore, "transaction", forgetful)
    with pytest.raises(AssertionError):
        assert_every_charge_is_there(path, 2, 3)


@pytest.mark.parametrize("processes", [4, pytest.param(64, marks=pytest.mark.slow)])
def test_writers_cannot_pass_the_cap_together(path, processes):
    ledger = PrivacyLedger(path, epsilon=1.05, delta=0.0)
    run_writers(ledger, processes, 6)
    assert len(ledger.entries()) == 10
    assert ledger.spent() <= 1.05


def test_threads_charge_once_each(make):
    ledger = make(epsilon=1.05, delta=0.0)
    threads = [threading.Thread(target=charge_many, args=(ledger, 3)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ledger.entries()) == 10


def killed_at_random(path, runs):
    """Charge and release in children that are killed; return what was released, and the books."""
    ledger = PrivacyLedger(path, epsilon=1e3, delta=0.0)
    released = 0
    for run in range(runs):
        reading, writing = os.pipe()
        child = FORK.Process(target=release_for_ever, args=(ledger, writing))
        child.start()
        os.close(writing)
        with os.fdopen(reading, "rb", buffering=0) as pipe:
            released += len(pipe.read(1))
            time.sleep(0.0007 * (run * 37 % 50))
            os.kill(child.pid, signal.SIGKILL)
            child.join()
            released += len(pipe.read())
    return released, ledger


def release_for_ever(ledger, pipe):
    while True:
        ledger.charge(pure(0.001))
        os.write(pipe, b"x")


@pytest.mark.parametrize("runs", [8, pytest.param(100, marks=pytest.mark.slow)])
def test_a_killed_process_loses_no_charge_of_a_release(path, runs):
    released, ledger = killed_at_random(path, runs)
    entries = len(ledger.entries())
    # One charge at most, in each run, was booked and not released.
    assert released <= entries <= released + runs
    assert released >= runs


def test_kill_test_sees_a_release_before_the_charge(path, monkeypatch):
    """Planted: the charge is booked after the release."""

    def hasty(ledger, pipe):
        os.write(pipe, b"x")
        time.sleep(1.0)
        ledger.charge(pure(0.001))

    monkeypatch.setitem(globals(), "release_for_ever", hasty)
    released, ledger = killed_at_random(path, 4)
    assert released > len(ledger.entries())


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_during_a_charge_does_not_hang(path):
    assert_a_fork_can_charge(PrivacyLedger(path, epsilon=1.0, delta=0.0))


def assert_a_fork_can_charge(ledger, patience=30):
    """Fork while another thread is in the middle of a charge."""
    inside = threading.Event()

    def slow_charge():
        with ledger._store.transaction(writes=True):
            inside.set()
            time.sleep(0.5)

    thread = threading.Thread(target=slow_charge)
    thread.start()
    assert inside.wait(10)
    child = FORK.Process(target=lambda: (ledger.charge(pure(0.1)), open_ledger(ledger.handle)))
    child.start()
    child.join(patience)
    hangs = child.is_alive()
    child.kill()
    child.join()
    thread.join()
    assert not hangs
    assert child.exitcode == 0
    assert len(ledger.entries()) == 1
    ledger.charge(pure(0.1))


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_fork_test_sees_a_lock_that_no_fork_waits_for(path, monkeypatch):
    """Planted: each handle has a lock of its own."""
    ledger = PrivacyLedger(path, epsilon=1.0, delta=0.0)
    lock = threading.Lock()

    @contextmanager
    def locked(self, *, writes):
        del writes
        with lock, closing(store_module._connect(self.path)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield store_module._SqlTransaction(connection)
            connection.execute("COMMIT")

    monkeypatch.setattr(store_module.FileStore, "transaction", locked)
    with pytest.raises(AssertionError):
        assert_a_fork_can_charge(ledger, patience=3)


def test_death_inside_a_transaction_leaves_nothing(path):
    ledger = PrivacyLedger(path, epsilon=1.0, delta=0.0)
    ledger.charge(pure(0.1))

    def die():
        with ledger._store.transaction(writes=True) as account:
            account.insert(store_module.Row(2, "now", "x" * 10**6, "?"))
            os.kill(os.getpid(), signal.SIGKILL)

    process = FORK.Process(target=die)
    process.start()
    process.join(30)
    assert process.exitcode == -signal.SIGKILL
    assert len(PrivacyLedger(path).entries()) == 1
    ledger.charge(pure(0.1))
    assert len(ledger.entries()) == 2


# -- exports ------------------------------------------------------------------------------


def test_exports_say_what_the_books_say(make):
    ledger = make(dataset="trial")
    records = [gaussian(0.05), pure(0.2, public={"n_samples": 3}), gaussian(0.05)]
    for record in records:
        ledger.charge(record)
    entries = ledger.entries()
    assert [entry.record for entry in entries] == records
    data = json.loads(ledger.to_json())
    assert data["dataset"] == "trial"
    assert [PrivacyRecord.from_dict(entry["record"]) for entry in data["entries"]] == records
    rows = list(csv.DictReader(io.StringIO(ledger.to_csv())))
    assert [int(row["number"]) for row in rows] == [1, 2, 3]
    together = [Repeated(Gaussian(0.05), 2), Pure(0.2)]
    assert float(rows[-1]["spent_after"]) == accounting.epsilon(together, 1e-6) == ledger.spent()
