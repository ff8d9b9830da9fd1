"""The file of a ledger: every damage is seen or harmless, another ledger never stands in for it."""

import contextlib
import multiprocessing
import os
import pickle
import random
import signal
import sqlite3
from functools import partial
from hashlib import sha256

import numpy as np
import pytest

from dp_halfspace import AdaptiveMarginClassifier
from dp_halfspace.exceptions import BudgetError
from dp_halfspace.inspection import model_card
from dp_halfspace.ledger import ledger as ledger_module
from dp_halfspace.ledger import store as store_module
from dp_halfspace.ledger.ledger import PrivacyLedger, open_ledger
from tests.ledger.files import execute
from tests.privacy.oracles import pure

FORK = multiprocessing.get_context("fork")


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "_NAME_CHECKS", 2)
    return tmp_path / "study one.db"


def made(path, n_entries):
    ledger = PrivacyLedger(path, epsilon=1.0, delta=1e-6)
    for _ in range(n_entries):
        ledger.charge(pure(0.1))
    return ledger


# -- one wrong bit --------------------------------------------------------------------------


def state(ledger):
    terms = ledger.epsilon, ledger.delta, ledger.dataset, ledger.adjacency, ledger.adaptive
    return *terms, ledger.spent(), len(ledger.entries())


def flips(content, every):
    """Places of bits: all, or some of those in bytes that are not zero."""
    used = [8 * i + bit for i, byte in enumerate(content) if byte for bit in range(8)]
    return range(8 * len(content)) if every else random.Random(0).sample(used, 100)


def handle_on(full, balance=None):
    """A handle that was made before the damage; without a balance it has read nothing."""
    handle = ledger_module._new_handle(full._store)
    handle._reading.balance = balance or handle._reading.balance
    return handle


def assert_every_flip_is_seen_or_harmless(path, n_entries, places):
    full = made(path, n_entries)
    right, expected, seen = path.read_bytes(), state(full), 0
    makers = (
        lambda: PrivacyLedger(path),
        lambda: handle_on(full),
        lambda balance=full._reading.balance: handle_on(full, balance),
    )
    for place in places(right):
        wrong = bytearray(right)
        wrong[place // 8] ^= 1 << place % 8
        path.write_bytes(wrong)
        for make in makers:
            try:
                assert state(make()) == expected, place
            except (BudgetError, ValueError):
                seen += 1
    assert seen


EVERY = [pytest.param(n_entries, True, marks=pytest.mark.slow) for n_entries in (0, 3)]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("n_entries", "every"), [(0, False), (1, False), (3, False), *EVERY])
def test_every_wrong_bit_is_seen_or_harmless(path, n_entries, every):
    assert_every_flip_is_seen_or_harmless(path, n_entries, lambda right: flips(right, every))


def test_a_damaged_file_leaves_no_connection_open(path, monkeypatch):
    old, opened = made(path, 1), []

    def connect(*args, **options):
        opened.append(sqlite3.Connection(*args, **options))
        return opened[-1]

    # The number of pages and the format of the schema, in the header that SQLite reads first.
    path.write_bytes(path.read_bytes()[:16] + bytes(84) + path.read_bytes()[100:])
    monkeypatch.setattr(store_module.sqlite3, "connect", connect)
    with pytest.raises(BudgetError):
        old.charge(pure(0.1))
    assert len(opened) == 1
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[0].execute("SELECT 1")


def number_of(right):
    """Places of the bits of the cap in the text of the terms."""
    start = right.index(b'"epsilon": 1.0') + len(b'"epsilon": ')
    return range(8 * start, 8 * start + 24)


def test_flip_test_sees_terms_without_a_digest(path, monkeypatch):
    """Planted: the digest of the terms is that of whatever they say."""

    def unsealed(connection, _):
        text, _, *last = connection.execute("SELECT * FROM account").fetchone()
        return store_module._Account(text, sha256(text.encode()).hexdigest(), *last)

    assert_every_flip_is_seen_or_harmless(path, 0, number_of)
    monkeypatch.setattr(store_module, "_account_in", unsealed)
    path.unlink()
    with pytest.raises(AssertionError):
        assert_every_flip_is_seen_or_harmless(path, 0, number_of)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("n_entries", [0, 2])
@pytest.mark.parametrize(
    "change",
    [
        "terms = replace(terms, '1.0', '9.0')",
        "terms = CAST(terms AS BLOB)",
        "digest = 'x'",
        "digest = CAST(digest AS BLOB)",
        "last = last + 1",
        "head = 'x'",
        "last = 'many'",
    ],
)
def test_the_account_is_as_it_was_made(path, n_entries, change):
    old, unread = made(path, n_entries), PrivacyLedger(path)
    execute(path, f"UPDATE account SET {change}")
    for handle in (lambda: PrivacyLedger(path), lambda: old, lambda: unread):
        for action in (PrivacyLedger.spent, lambda ledger: ledger.charge(pure(0.1))):
            with pytest.raises(ValueError, match="is damaged"):
                action(handle())


def test_a_second_account_is_damage(path):
    made(path, 0)
    execute(path, "INSERT INTO account SELECT * FROM account")
    with pytest.raises(ValueError, match="is damaged"):
        PrivacyLedger(path)


def test_damage_of_pages_that_hold_no_entry_is_seen_when_a_file_is_opened(path):
    made(path, 1)
    content = bytearray(path.read_bytes())
    content[36:40] = (3).to_bytes(4, "big")  # pages that SQLite counts as free
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is damaged"):
        PrivacyLedger(path)


@pytest.mark.parametrize("column", ["time", "record", "digest"])
def test_a_text_that_became_a_blob_is_damage(path, column):
    made(path, 2)
    execute(path, f"UPDATE entries SET {column} = CAST({column} AS BLOB) WHERE number = 1")
    with pytest.raises(ValueError, match="is damaged, or has lost entries"):
        PrivacyLedger(path).spent()


@pytest.mark.parametrize("lost", ["number = 3", "number > 1", "number > 0"])
def test_entries_lost_at_the_end_are_missed_by_who_has_never_read_them(path, lost):
    made(path, 3)
    execute(path, f"DELETE FROM entries WHERE {lost}")
    for action in (PrivacyLedger.spent, lambda ledger: ledger.charge(pure(0.1))):
        with pytest.raises(ValueError, match="damaged, or has lost entries at its end"):
            action(PrivacyLedger(path))


# -- another file under the same name --------------------------------------------------------


@pytest.mark.parametrize("n_read", [0, 1])
def test_a_handle_does_not_charge_a_ledger_that_took_the_name_of_its_own(path, n_read):
    """Also where neither has an entry, and where the terms are the same but for the id."""
    old = made(path, n_read)
    frozen = pickle.dumps(old)
    path.unlink()
    new = made(path, 0)
    for action in (old.spent, lambda: old.charge(pure(0.1)), old.entries):
        with pytest.raises(ValueError, match=rf"{path.name} was replaced by another ledger"):
            action()
    thawed = pickle.loads(frozen)
    with pytest.raises(BudgetError, match=rf"{path.name} was replaced by another ledger"):
        thawed.charge(pure(0.1))
    with pytest.raises(BudgetError, match="was replaced by another ledger"):
        pickle.loads(pickle.dumps(thawed)).charge(pure(0.1))
    assert new.entries() == []
    assert "not available" in repr(old)


def test_another_history_of_the_same_length_is_seen_by_who_has_read_the_first(path):
    """A backup is put back, and a release is charged to it: its entry has the same number."""
    reader = made(path, 0)
    backup = path.read_bytes()
    reader.charge(pure(0.1))
    path.write_bytes(backup)
    PrivacyLedger(path).charge(pure(0.4))
    for use in (reader.spent, partial(reader.charge, pure(0.2))):
        with pytest.raises(ValueError, match="has lost entries, or was replaced"):
            use()
    assert len(PrivacyLedger(path).entries()) == 1


def test_a_file_that_is_replaced_during_a_charge_releases_nothing(path, monkeypatch):
    ledger = made(path, 1)
    honest = store_module._SqlTransaction.insert

    def insert(self, row):
        honest(self, row)
        monkeypatch.undo()
        path.rename(path.with_name("moved.db"))
        made(path, 0)

    monkeypatch.setattr(store_module._SqlTransaction, "insert", insert)
    with pytest.raises(BudgetError, match="so nothing is released"):
        ledger.charge(pure(0.1))


def killed_in_a_charge(path):
    """End the process in the middle of a charge that has already written to the file."""
    honest = store_module._SqlTransaction.insert

    def insert(self, row):
        self._connection.execute("PRAGMA cache_size = 1")
        honest(self, row)
        self._connection.execute("CREATE TABLE filler (a)")
        for _ in range(100):
            self._connection.execute("INSERT INTO filler VALUES (zeroblob(9000))")
        os.kill(os.getpid(), signal.SIGKILL)

    store_module._refuse_second_name = lambda path: None
    store_module._SqlTransaction.insert = insert
    PrivacyLedger(path).charge(pure(0.1))


def charge_under_two_names(path):
    """Kill a charge under one name, charge under another; return who was accepted and is booked."""
    ledger, other = made(path, 1), path.with_name("other name.db")
    other.hardlink_to(path)
    process = FORK.Process(target=killed_in_a_charge, args=(other,))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    accepted = 1
    with contextlib.suppress(BudgetError):
        ledger.charge(pure(0.1))
        accepted += 1
    with contextlib.suppress(BudgetError):
        PrivacyLedger(other)  # SQLite undoes the unfinished charge
    other.unlink()
    return accepted, len(PrivacyLedger(path).entries())


@pytest.mark.skipif(os.name == "nt", reason="processes are killed by a signal")
def test_no_charge_is_lost_under_a_second_name_of_the_file(path):
    accepted, booked = charge_under_two_names(path)
    assert accepted <= booked


@pytest.mark.skipif(os.name == "nt", reason="processes are killed by a signal")
def test_second_name_test_sees_a_lost_charge(path, monkeypatch):
    """Planted: file names are not checked."""
    monkeypatch.setattr(store_module, "_refuse_second_name", lambda path: None)
    with pytest.raises(AssertionError):
        test_no_charge_is_lost_under_a_second_name_of_the_file(path)


def test_every_use_of_a_second_name_is_refused(path):
    ledger, other = made(path, 1), path.with_name("other.db")
    other.hardlink_to(path)
    for use in (
        lambda: ledger.charge(pure(0.1)),
        ledger.entries,
        lambda: PrivacyLedger(other),
        lambda: open_ledger(path).charge(pure(0.1)),
    ):
        with pytest.raises(BudgetError, match="has a second name"):
            use()
    other.unlink()
    ledger.charge(pure(0.1))
    # A symbolic link is the same account: SQLite resolves it.
    other.symlink_to(path)
    open_ledger(other).charge(pure(0.1))
    assert len(ledger.entries()) == 3


def test_a_name_that_soon_disappears_is_waited_for(path, monkeypatch):
    """A file that is being created has two names for a moment."""
    made(path, 1)
    other = path.with_name("other.db")
    other.hardlink_to(path)
    monkeypatch.setattr(store_module.time, "sleep", lambda seconds: other.unlink())
    assert len(PrivacyLedger(path).entries()) == 1


def test_a_pickle_goes_through_a_process_that_cannot_reach_it(path):
    """As a model does that a worker fitted: back home it is the account it was."""
    ledger = PrivacyLedger(epsilon=1.0, delta=0.0)
    frozen = pickle.dumps(ledger)
    kept = store_module._IN_MEMORY.pop(ledger.handle)
    there = pickle.dumps(pickle.loads(frozen))
    store_module._IN_MEMORY[ledger.handle] = kept
    pickle.loads(there).charge(pure(0.25))
    assert ledger.spent() == 0.25


# -- exports ----------------------------------------------------------------------------------


def names_of(path):
    """Spellings of the file, and of those that SQLite keeps beside it."""
    folder = path.parent
    (folder / "link.db").symlink_to(path)
    (folder / "below").mkdir()
    yield from (path, str(path), folder / "link.db")
    os.link(path, folder / "hard.db")
    yield folder / "hard.db"
    (folder / "hard.db").unlink()
    yield folder / "below" / ".." / path.name
    yield os.path.relpath(path)
    for end in ("-journal", "-wal", "-shm"):
        yield f"{path}{end}"
        yield folder / f"link.db{end}"
        (folder / f"to{end}").symlink_to(f"{path}{end}")
        yield folder / f"to{end}"


def assert_exports_spare_ledgers(path):
    made(path, 1)
    before = path.read_bytes()
    model = AdaptiveMarginClassifier(classes=[0, 1], data_norm=1.0)
    model.fit(np.zeros((9, 1)), np.arange(9) % 2)
    for name in names_of(path):
        with pytest.raises(ValueError, match="is a file of a privacy ledger"):
            model_card(model, name)
    assert path.read_bytes() == before
    model_card(model, path.with_suffix(".html"))
    model_card(model, path.with_suffix(".html"))


def test_exports_are_never_written_over_a_ledger(path):
    assert_exports_spare_ledgers(path)
    execute(path.with_name("other"), "CREATE TABLE another_database (x)")
    assert not store_module.belongs_to_ledger(path.with_name("other"))


def test_export_test_sees_a_ledger_that_is_known_by_its_name_only(path, monkeypatch):
    """Planted: paths are compared as they are spelled."""
    known = "dp_halfspace.inspection.card.belongs_to_ledger"
    monkeypatch.setattr(known, lambda place: place == path)
    with pytest.raises(BaseException, match="DID NOT RAISE"):
        assert_exports_spare_ledgers(path)
