"""Whatever breaks, at whatever step: nothing is released that is not booked, no handle forgets."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import threading
from functools import partial
from pathlib import Path

import pytest

import dp_halfspace
from dp_halfspace import OutputPerturbationClassifier, PrivateSearchCV
from dp_halfspace.exceptions import BudgetError
from dp_halfspace.metrics import private_score
from dp_halfspace.preprocessing import PrivateScaler
from dp_halfspace.privacy import PrivacyLedger, _ledger_store, mechanisms, open_ledger
from dp_halfspace.privacy.events import Pure
from dp_halfspace.privacy.mechanisms import observing
from dp_halfspace.privacy.record import PrivacyRecord
from tests.conftest import separated

FORK = multiprocessing.get_context("fork")
PACKAGE = str(Path(dp_halfspace.__file__).parent)
X, Y = separated(60, 2)
PUBLIC = OutputPerturbationClassifier(data_norm=1.0, classes=[0, 1]).fit(X, Y)
ALPHAS = {"alpha": [0.1, 1.0]}

pytestmark = [
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded"),
    # A call can be that of something being cleared away, where nobody hears an exception.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
few_and_many = pytest.mark.parametrize("runs", [5, pytest.param(100, marks=pytest.mark.slow)])


def pure(epsilon):
    return PrivacyRecord(epsilon=epsilon, delta=0.0, events=[Pure(epsilon)], noise="os")


def model(path):
    return OutputPerturbationClassifier(data_norm=1.0, classes=[0, 1], ledger=path)


# What pays, and then releases.
SHORT = {
    "fit": lambda path: model(path).fit(X, Y),
    "units": lambda path: PrivateScaler(ledger=path).fit(X),
    "score": lambda path: private_score(PUBLIC, X, Y, ledger=path),
}
PAYING = {
    **SHORT,
    "search": lambda path: PrivateSearchCV(model(path), ALPHAS, selection="exponential").fit(X, Y),
}


def at_call(number, action, run):
    """Run, and act at a call of a function of the package; return how many calls there were."""
    seen = 0

    def look(frame, event, _):
        nonlocal seen
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            seen += 1
            if seen == number:
                action()

    sys.setprofile(look)
    try:
        run()
    finally:
        sys.setprofile(None)
    return seen


class Broken(Exception):
    """A defect somewhere below."""


def fail():
    raise Broken


def interrupt():
    raise KeyboardInterrupt


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def faulty(path, way, act, runs):
    """Let something happen at calls all over a way; yield what was released, and booked since."""
    PrivacyLedger(path, epsilon=1e5, delta=0.4)
    pay, before = PAYING[way], 1
    pay(path)  # what is computed once for all
    calls = at_call(0, None, lambda: pay(path))
    for run in range(runs):
        before = len(PrivacyLedger(path).entries())
        number = 1 + int(0.9 * calls * run / (runs - 1))
        yield act(lambda pay=pay, number=number: (number, lambda: pay(path))), before


def in_this_process(action):
    """Count the releases of a run in which something is raised."""

    def act(task):
        number, run = task()
        released = []
        with contextlib.suppress(Broken, KeyboardInterrupt), observing(released.append):
            at_call(number, action, run)
        return len(released)

    return act


def in_a_child(task):
    """Count the releases of a run that is killed."""
    reading, writing = os.pipe()

    def run():
        number, pay = task()
        with observing(lambda _: os.write(writing, b"x")):
            at_call(number, die, pay)

    child = FORK.Process(target=run)
    child.start()
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        released = len(pipe.read())
    child.join()
    # Draws are repeated until one is accepted: a run of few may end before the call is due.
    assert child.exitcode in (-signal.SIGKILL, 0)
    return released


FAULTS = {
    "exception": in_this_process(fail),
    "Ctrl-C": in_this_process(interrupt),
    "kill -9": in_a_child,
}


def assert_releases_are_booked(path, way, fault, runs):
    unbooked = 0
    for released, before in faulty(path, way, FAULTS[fault], runs):
        ledger = PrivacyLedger(path)
        booked = len(ledger.entries()) - before
        unbooked += booked == 0
        assert booked <= 1
        assert booked or not released
        # The handle that went through it knows as much as one that was not there.
        assert open_ledger(path).spent() == ledger.spent()
        assert len(list(path.parent.iterdir())) <= 2, "the ledger, and what a killed process left"
    assert 0 < unbooked < runs


@few_and_many
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("way", [*SHORT, pytest.param("search", marks=pytest.mark.slow)])
def test_whatever_stops_a_fit_releases_nothing_unbooked(tmp_path, way, fault, runs):
    assert_releases_are_booked(tmp_path / "ledger.db", way, fault, runs)


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_test_sees_a_charge_that_waits_for_the_end(tmp_path, monkeypatch, fault):
    """Planted: the permit comes first, and the charge with the last release."""
    honest = mechanisms.Permit.release

    def late(record, source, ledger=None):
        permit = mechanisms.Permit(record, source)
        owed[id(permit)] = lambda: open_ledger(ledger).charge(record)
        return permit

    def release(self, value, mechanism):
        released = honest(self, value, mechanism)
        sum(range(10))  # a step between
        dp_halfspace.privacy.profiles.check_delta(0.0)
        owed.pop(id(self))()
        return released

    owed = {}
    module = "dp_halfspace.estimators.output_perturbation.authorise"
    monkeypatch.setattr(module, late)
    monkeypatch.setattr(mechanisms.Permit, "release", release)
    with pytest.raises(AssertionError):
        assert_releases_are_booked(tmp_path / "ledger.db", "fit", fault, 25)


@few_and_many
def test_a_fork_or_a_thread_at_any_step_books_its_own(tmp_path, monkeypatch, runs):
    """Who forks inside a transaction has a child that is refused, and loses nothing."""
    path = tmp_path / "ledger.db"
    monkeypatch.setattr(_ledger_store, "_WAIT_SECONDS", 1.0)
    PrivacyLedger(path, epsilon=1e5, delta=0.4)
    model(path).fit(X, Y)
    calls = at_call(0, None, lambda: model(path).fit(X, Y))

    def charge():
        try:
            open_ledger(path).charge(pure(0.001))
        except BudgetError:
            sys.exit(3)

    for run in range(runs):
        before = len(PrivacyLedger(path).entries())
        thread, child = threading.Thread(target=charge), FORK.Process(target=charge)
        helper = child if run % 2 else thread
        at_call(1 + run * calls // runs, helper.start, lambda: model(path).fit(X, Y))
        helper.join(60)
        assert not helper.is_alive()
        refused = run % 2 and child.exitcode == 3
        assert not run % 2 or child.exitcode in (0, 3)
        assert len(PrivacyLedger(path).entries()) - before == 2 - refused


# -- disks and files ------------------------------------------------------------------------


def charges_until(limit, path):
    """Charge on a disk with so many bytes left; return how often, as the child saw it."""
    reading, writing = os.pipe()

    def run():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        size = path.stat().st_size
        ledger = open_ledger(path)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + limit, size + limit))
        try:
            for _ in range(200):
                ledger.charge(pure(0.001))
                os.write(writing, b"x")
        except BudgetError:
            sys.exit(3)

    child = FORK.Process(target=run)
    child.start()
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        paid = len(pipe.read())
    child.join()
    assert child.exitcode == 3
    return paid


@few_and_many
def test_a_disk_that_is_full_at_any_byte_loses_no_charge(tmp_path, runs):
    path = tmp_path / "ledger.db"
    ledger = PrivacyLedger(path, epsilon=1e5, delta=0.0)
    ledger.charge(pure(0.001))
    for run in range(runs):
        before = len(ledger.entries())
        limit = (run * 12289 // runs) - 8192 if run % 2 else 4096 * (run % 4)
        paid = charges_until(max(limit, -path.stat().st_size), path)
        assert len(ledger.entries()) - before == paid
        assert open_ledger(path).spent() == pytest.approx(0.001 * (before + paid))


@pytest.mark.parametrize("locked", ["file", "folder", "both"])
def test_what_may_not_be_written_refuses_a_fit(locked):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "ledger.db"
        PrivacyLedger(path, epsilon=1e5, delta=0.4)
        path.chmod(0o666 if locked == "folder" else 0o444)
        folder.chmod(0o777 if locked == "file" else 0o555)

        def run():
            if os.getuid() == 0:
                os.setuid(65534)  # nothing is read-only for root
            released = []
            try:
                with observing(released.append):
                    model(path).fit(X, Y)
            except BudgetError:
                sys.exit(9 if released else 3)

        child = FORK.Process(target=run)
        child.start()
        child.join()
        folder.chmod(0o777)
        assert child.exitcode == 3
        assert PrivacyLedger(path).entries() == []


REFUSAL = "damaged|lost entries|cannot be used|not a privacy ledger|does not fit|other terms"


def ledger_itself(ledger, path):
    del path
    return ledger


def damaged(text, chance):
    """Change, cut or add some bytes of a file."""
    found = bytearray(text)
    for _ in range(chance.randint(1, 8)):
        found[chance.randrange(len(found))] = chance.randrange(256)
    if chance.random() < 0.2:
        found = found[: chance.randrange(len(found))]
    return bytes(found)


def test_a_table_that_hides_its_entries_is_damaged(tmp_path):
    """One wrong byte in the type of a column, which SQLite itself does not mind."""
    path = tmp_path / "ledger.db"
    PrivacyLedger(path, epsilon=1.0, delta=0.0).charge(pure(0.9))
    text = path.read_bytes()
    assert text.count(b"PRIMARY KEY") == 1
    path.write_bytes(text.replace(b"PRIMARY KEY", b"PRI$ARY KEY"))
    with pytest.raises(ValueError, match="is damaged"):
        PrivacyLedger(path)


@pytest.mark.parametrize("runs", [30, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_damaged_file_never_has_more_left(tmp_path, runs):
    """A damage is noticed, or changes nothing that counts."""
    chance, kept, path = random.Random(0), tmp_path / "kept.db", tmp_path / "ledger.db"
    full = PrivacyLedger(kept, epsilon=1.0, delta=0.0)
    for _ in range(9):
        full.charge(pure(0.1))
    right, unnoticed = kept.read_bytes(), 0
    for _ in range(runs):
        shutil.copy(kept, path)
        old = PrivacyLedger(path)
        assert old.spent() == pytest.approx(0.9)
        path.write_bytes(damaged(right, chance))
        for handle in (partial(ledger_itself, old), PrivacyLedger, open_ledger):
            with pytest.raises(ValueError, match=REFUSAL):
                handle(path).charge(pure(0.2))
            with contextlib.suppress(ValueError):
                assert handle(path).spent() == pytest.approx(0.9)
                unnoticed += 1
    assert 0 < unnoticed < 3 * runs
