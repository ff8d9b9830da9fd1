"""One account for one data set: nothing is lost, nothing booked twice, the cap never passed."""

import copy
import math
import multiprocessing
import pickle
import sqlite3
import threading
import time
from contextlib import closing, contextmanager
from functools import partial

import pytest

from dp_halfspace.exceptions import BudgetError
from dp_halfspace.ledger import store as store_module
from dp_halfspace.ledger.cap import Cap
from dp_halfspace.ledger.ledger import LedgerEntry, PrivacyLedger, open_ledger
from dp_halfspace.privacy import gdp_epsilon, gdp_mu
from dp_halfspace.privacy.events import Gaussian, Pure
from dp_halfspace.privacy.record import PrivacyRecord
from tests.ledger.files import execute
from tests.privacy.oracles import pure

FORK = multiprocessing.get_context("fork")


def of_mu(mu, delta=1e-6):
    event = Gaussian(mu)
    return PrivacyRecord(epsilon=gdp_epsilon(mu, delta), delta=delta, events=[event], noise="os")


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
    ledger, mu = make(), gdp_mu(1.0, 1e-6)
    for _ in range(4):
        ledger.charge(of_mu(0.5 * mu * (1 - 1e-9)))
    assert ledger.spent() == pytest.approx(1.0, rel=1e-6)
    assert ledger.spent(1e-9) == pytest.approx(gdp_epsilon(mu, 1e-9), rel=1e-6)
    assert ledger.spent(0.0) == math.inf
    for ask in (ledger.spent, ledger.remaining):
        with pytest.raises(ValueError, match="delta"):
            ask(1.0)
    with pytest.raises(BudgetError, match="exceeds the remaining budget"):
        ledger.charge(of_mu(0.01 * mu))
    assert [type(entry) for entry in ledger.entries()] == 4 * [LedgerEntry]
    assert ledger.entries()[0].time.endswith("+00:00")
    assert ledger.remaining() < 1e-3


def test_no_guarantee_needs_an_infinite_cap(make):
    nothing = PrivacyRecord(epsilon=math.inf, delta=0.0, events=[Pure(math.inf)], noise="none")
    with pytest.raises(BudgetError):
        make().charge(nothing)
    boundless = PrivacyLedger(epsilon=math.inf, delta=0.0)
    boundless.charge(nothing)
    assert (boundless.spent(), boundless.remaining()) == (math.inf, 1e6)


def assert_refusals_are_free(ledger):
    for _ in range(3):
        with pytest.raises(BudgetError):
            ledger.charge(pure(1.5))
    assert ledger.entries() == []
    ledger.charge(pure(0.9))
    assert ledger.spent() <= 0.9 * (1 + 1e-9)


def test_a_refused_record_is_not_booked(make, monkeypatch):
    """Planted: what was refused is in the books."""
    assert_refusals_are_free(make())
    ledger = PrivacyLedger(epsilon=1.0, delta=1e-6)
    monkeypatch.setattr(Cap, "holds", lambda self, events: True)
    with pytest.raises(BaseException, match="DID NOT RAISE"):
        assert_refusals_are_free(ledger)


def test_labels_only_is_less_than_a_whole_record(make):
    labels = pure(0.1, adjacency="replace-one-label")
    with pytest.raises(BudgetError, match=r"replace-one-label.* whole records"):
        make().charge(labels)
    ledger = PrivacyLedger(epsilon=1.0, delta=0.0, adjacency="replace-one-label")
    for record in (labels, pure(0.1)):
        ledger.charge(record)
    assert ledger.spent() == pytest.approx(0.2)


def test_seeded_noise_is_refused(make):
    ledger = make()
    with pytest.raises(BudgetError, match="random_state=None"):
        ledger.charge(pure(0.1, noise="seeded"))
    assert ledger.entries() == []


def test_a_claim_without_a_release_is_refused(make):
    """Entries are added up by their events: a claim without any would be free."""
    ledger = make()
    claim = PrivacyRecord(epsilon=0.9, delta=0.0, events=[], noise="os")
    with pytest.raises(BudgetError, match="lists no events"):
        ledger.charge(claim)
    assert ledger.entries() == []


def test_a_charge_in_the_middle_of_a_charge_is_not_lost(monkeypatch):
    """A signal handler may charge while its own thread does: a lock does not stop it."""
    ledger = PrivacyLedger(epsilon=1.0, delta=0.0)
    honest, inside = Cap.holds, []

    def interrupted(self, events):
        if not inside:
            inside.append(True)
            ledger.charge(pure(0.25))
        return honest(self, events)

    monkeypatch.setattr(Cap, "holds", interrupted)
    with pytest.raises(BudgetError, match="another charge interrupted"):
        ledger.charge(pure(0.5))
    assert ledger.spent() == pytest.approx(0.25)


def test_a_charge_in_the_middle_of_a_reading_is_no_lost_entry(monkeypatch):
    """Another thread may charge after the entries were taken, and before they are added up."""
    ledger = PrivacyLedger(epsilon=1.0, delta=0.0)
    ledger.charge(pure(0.25))
    honest = store_module._MemoryTransaction

    def interrupted(rows):
        monkeypatch.undo()
        ledger.charge(pure(0.5))
        return honest(rows)

    monkeypatch.setattr(store_module, "_MemoryTransaction", interrupted)
    assert ledger.spent() == 0.25
    assert ledger.spent() == 0.75


def test_a_charge_waits_for_the_charge_of_another_thread():
    ledger = PrivacyLedger(epsilon=1.0, delta=0.0)
    other = threading.Thread(target=ledger.charge, args=(pure(0.5),))
    with ledger._store.transaction(writes=True):
        other.start()
        other.join(0.2)
        assert other.is_alive()
    other.join(60.0)
    assert ledger.spent() == 0.5


def test_a_charge_is_on_the_disk_when_it_ends(path):
    """The strictest setting of SQLite: the folder is written, too."""
    PrivacyLedger(path, epsilon=1.0, delta=0.0)
    with store_module._connect(path) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)


@pytest.mark.parametrize("term", [{"rate": 1.0}, {"adjacency": "add-a-record"}])
def test_terms_of_newer_files(path, term):
    """They may promise what is unknown here."""
    ledger = PrivacyLedger(path, epsilon=1.0, delta=0.0)
    newer = store_module.FileStore({**ledger._store.terms, **term}, path)
    path.unlink()
    text, digest = store_module._text_of(newer.terms), newer.first_digest
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(store_module._SCHEMA)
        connection.execute("INSERT INTO account VALUES (?, ?, 0, ?)", [text, digest, digest])
        connection.execute(f"PRAGMA application_id = {store_module._APPLICATION}")
        connection.execute(f"PRAGMA user_version = {store_module._FORMAT}")
    for opening in (PrivacyLedger, open_ledger):
        with pytest.raises(ValueError, match=r"newer version|cannot be read"):
            opening(path)


BAD_TERMS = [
    {},
    {"epsilon": 1.0},
    {"delta": 0.1},
    {"epsilon": -1.0, "delta": 0.0},
    {"epsilon": math.nan, "delta": 0.0},
    {"epsilon": True, "delta": 0.0},
    {"epsilon": 1j, "delta": 0.0},
    {"epsilon": [1.0], "delta": 0.0},
    {"epsilon": 1.0, "delta": False},
    {"epsilon": 1.0, "delta": 1.0},
    {"epsilon": 1.0, "delta": 0.0, "adjacency": "add-remove"},
    {"epsilon": 1.0, "delta": 0.0, "adaptive": 1},
]


@pytest.mark.parametrize("terms", BAD_TERMS)
def test_terms_are_checked_before_anything_is_made(terms, path):
    for place in (None, path):
        with pytest.raises(ValueError, match=r"cap|epsilon|delta|adjacency|adaptive"):
            PrivacyLedger(place, **terms)
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
    ledger, own = make(dataset="trial"), object()
    open_ledger(ledger.handle).charge(pure(0.4))
    assert ledger.spent() == pytest.approx(0.4, rel=1e-5)
    assert open_ledger(ledger.handle).dataset == "trial"
    assert repr(ledger).startswith(f"PrivacyLedger({ledger.handle!r}: 1 entry, epsilon 0.4 of ")
    assert open_ledger(own) is own


def test_a_relative_path_means_the_same_file_in_another_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    PrivacyLedger("study.db", epsilon=1.0, delta=0.0)
    ledger = open_ledger("study.db")
    monkeypatch.chdir(tmp_path.parent)
    ledger.charge(pure(0.4))
    assert ledger.handle == str(tmp_path / "study.db")


def in_child(action):
    """Run in a forked process; return the exception it ended with, if any, as a text."""
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
    terms = {"epsilon": 0.5, "delta": 1e-7, "dataset": "trial", "adaptive": True}
    PrivacyLedger(str(path), **terms).charge(pure(0.3))
    again = PrivacyLedger(path)
    assert {name: getattr(again, name) for name in terms} == terms
    assert PrivacyLedger(path, epsilon=0.5, delta=1e-7).spent() == again.spent() > 0.29
    before = path.read_bytes()
    assert PrivacyLedger(epsilon=1.0, delta=0.0, dataset=path).dataset == str(path)
    for name, value in {"epsilon": 0.6, "delta": 1e-6, "dataset": "x", "adaptive": False}.items():
        with pytest.raises(ValueError, match=f"other terms: .*{name}"):
            PrivacyLedger(path, **{name: value})
    assert path.read_bytes() == before


def foreign_files(path):
    ledger = PrivacyLedger(path, epsilon=1.0, delta=0.0)
    for _ in range(10):
        ledger.charge(pure(0.01))
    good = path.read_bytes()
    yield "empty", b""
    yield "text", b"epsilon,delta\n1,0\n" * 100
    yield "head only", good[:100]
    yield "truncated", good[: len(good) // 2]
    yield "zeroed pages", good[:4096] + bytes(len(good) - 4096)
    for version in (b"\1", b"\7"):
        yield "other version", good[:60] + b"\0\0\0" + version + good[64:]
    path.unlink()
    execute(path, "CREATE TABLE account (terms TEXT)")
    yield "other application", path.read_bytes()


def test_foreign_and_damaged_files_are_refused_and_left_alone(path):
    for name, content in foreign_files(path):
        path.write_bytes(content)
        for opening in (partial(PrivacyLedger, epsilon=1.0, delta=0.0), PrivacyLedger, open_ledger):
            with pytest.raises(ValueError, match=r"is not a privacy ledger|is damaged"):
                opening(path)
        assert path.read_bytes() == content, name
        assert [p.name for p in path.parent.iterdir()] == [path.name], name


@pytest.mark.parametrize(
    "tampering",
    ["UPDATE entries SET record = replace(record, '0.3', '0.1')",
     "DELETE FROM entries WHERE number = 2",
     "UPDATE entries SET time = '2000' WHERE number = 1",
     "UPDATE entries SET number = number + 1 WHERE number = 3"],
)  # fmt: skip
def test_changed_entries_are_noticed(path, tampering):
    ledger = PrivacyLedger(path, epsilon=1.0, delta=0.0)
    for _ in range(3):
        ledger.charge(pure(0.3))
    assert len(ledger.entries()) == 3
    execute(path, tampering)
    reads = (ledger.entries, ledger.summary)
    for action in (*reads, lambda: PrivacyLedger(path).charge(pure(0.01))):
        with pytest.raises(ValueError, match="damaged"):
            action()


def test_a_changed_entry_with_a_digest_of_its_own_is_noticed(path):
    """Each digest covers all entries before it, so that of the next one does not fit."""
    ledger = PrivacyLedger(path, epsilon=1.0, delta=0.0)
    for _ in range(2):
        ledger.charge(pure(0.3))
    with ledger._store.transaction(writes=False) as transaction:
        row = transaction.rows(0)[0]
    row = row._replace(record=row.record.replace("0.3", "0.1"))
    digest = store_module.digest_of(ledger._store.first_digest, row)
    execute(path, f"UPDATE entries SET record = '{row.record}', digest = '{digest}' WHERE number=1")
    for action in (ledger.entries, lambda: PrivacyLedger(path).spent()):
        with pytest.raises(ValueError, match="damaged"):
            action()


def test_a_file_that_appears_meanwhile_is_not_replaced(path):
    PrivacyLedger(path, epsilon=1.0, delta=0.0).charge(pure(0.3))
    terms = {**PrivacyLedger(path)._store.terms, "id": "other", "epsilon": 9.0}
    assert store_module.FileStore.create(path, terms).terms["epsilon"] == 1.0
    assert PrivacyLedger(path).spent() == 0.3


@pytest.mark.parametrize("n_kept", [1, 2])
def test_an_older_copy_of_the_file_is_noticed_by_who_has_read_more(path, n_kept):
    """It is whole, so only the entries that were read before tell that others are gone."""
    ledger = PrivacyLedger(path, epsilon=1.0, delta=0.0)
    for number in range(1, 4):
        ledger.charge(pure(0.1))
        if number == n_kept:
            older = path.read_bytes()
    path.write_bytes(older)
    for action in (ledger.spent, ledger.remaining, lambda: ledger.charge(pure(0.1))):
        with pytest.raises(ValueError, match=rf"{path.name} has lost entries, or was replaced"):
            action()


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


def test_a_folder_that_is_not_there_refuses(path):
    with pytest.raises(BudgetError, match=r"x\.db cannot be created: No such file or directory$"):
        PrivacyLedger(path.parent / "nowhere" / "x.db", epsilon=1.0, delta=0.0)


def test_a_budget_in_the_place_of_the_path_is_refused():
    with pytest.raises(ValueError, match=r"path must be .* got 1\.0: write epsilon="):
        PrivacyLedger(1.0, delta=1e-6)


def test_a_path_without_a_ledger_is_named_if_no_total_is_given(path):
    with pytest.raises(ValueError, match=r"\.db does not exist, and a new ledger needs its total"):
        PrivacyLedger(path)
    with pytest.raises(ValueError, match=r"^a new ledger needs its total"):
        PrivacyLedger()


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
        assert_no_charge_is_lost_and_the_cap_is_kept(path, 2)


def assert_no_charge_is_lost_and_the_cap_is_kept(path, processes):
    ledger = PrivacyLedger(path, epsilon=1.05, delta=0.0)
    run_writers(ledger, processes, 6)
    assert [entry.number for entry in ledger.entries()] == list(range(1, 11))
    assert ledger.spent() == pytest.approx(1.0)


@pytest.mark.parametrize("processes", [4, pytest.param(64, marks=pytest.mark.slow)])
def test_writers_book_each_charge_once_and_cannot_pass_the_cap_together(path, processes):
    assert_no_charge_is_lost_and_the_cap_is_kept(path, processes)


def assert_a_fork_can_charge(ledger, patience=30):
    """Fork while another thread is in the middle of a charge."""
    inside = threading.Event()

    def slow_charge():
        with ledger._store.transaction(writes=True):
            inside.set()
            time.sleep(0.1)

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
def test_a_fork_during_a_charge_does_not_hang(path, monkeypatch):
    """Planted: each handle has a lock of its own."""
    assert_a_fork_can_charge(PrivacyLedger(path, epsilon=1.0, delta=0.0))
    lock = threading.Lock()

    @contextmanager
    def locked(self, *, writes):
        del writes
        with lock, store_module._connect(self.path) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield store_module._SqlTransaction(
                connection, self.path, store_module._account_in(connection, self.path)
            )
            connection.execute("COMMIT")

    ledger = PrivacyLedger(path.with_name("other.db"), epsilon=1.0, delta=0.0)
    monkeypatch.setattr(store_module.FileStore, "transaction", locked)
    with pytest.raises(AssertionError):
        assert_a_fork_can_charge(ledger, patience=0.7)


def test_a_writer_excludes_others_from_its_beginning(path, monkeypatch):
    """Not only from its first entry on: it has read what another one would add to."""
    ledger = PrivacyLedger(path, epsilon=1.0, delta=0.0)
    monkeypatch.setattr(store_module, "_WAIT_SECONDS", 0.0)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(BudgetError, match="locked"), ledger._store.transaction(writes=True):
            pytest.fail("two writers at once")


def test_a_charge_waits_for_another_process(path):
    ledger = PrivacyLedger(path, epsilon=1.0, delta=0.0)
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        threading.Timer(0.05, other.execute, ["COMMIT"]).start()
        ledger.charge(pure(0.1))
    assert len(ledger.entries()) == 1


def test_no_process_forks_while_a_file_is_open(path, monkeypatch):
    """Not while it is made, opened, read or charged: a child would hold the locks of its parent."""
    honest, free = store_module._connect, []

    def fork():
        if store_module._connected.acquire(blocking=False):
            store_module._connected.release()
            free.append(True)

    @contextmanager
    def connect(place):
        with honest(place) as connection:
            thread = threading.Thread(target=fork)
            thread.start()
            thread.join()
            yield connection

    monkeypatch.setattr(store_module, "_connect", connect)
    PrivacyLedger(path, epsilon=1.0, delta=0.0)
    ledger = PrivacyLedger(path)
    ledger.charge(pure(0.1))
    assert ledger.spent() == 0.1
    assert not free


def test_every_thread_of_a_fork_can_charge(path):
    ledger = PrivacyLedger(path, epsilon=1.0, delta=0.0)

    def charge():
        thread = threading.Thread(target=ledger.charge, args=(pure(0.1),), daemon=True)
        thread.start()
        thread.join(5)
        assert not thread.is_alive()

    assert in_child(charge) == ""
    assert len(ledger.entries()) == 1
