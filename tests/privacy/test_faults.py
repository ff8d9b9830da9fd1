"""Whatever breaks, at whatever step: nothing is released that is not booked, no handle forgets."""

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
from itertools import product
from pathlib import Path

import pytest

import dp_halfspace
from dp_halfspace import OutputPerturbationClassifier, PrivateSearchCV
from dp_halfspace.exceptions import BudgetError
from dp_halfspace.ledger import PrivacyLedger, open_ledger
from dp_halfspace.ledger import store as _ledger_store
from dp_halfspace.metrics import private_score
from dp_halfspace.preprocessing import PrivateScaler
from dp_halfspace.privacy import mechanisms
from dp_halfspace.privacy.events import single_runs
from tests.conftest import separated
from tests.privacy.oracles import pure
from tests.releases import observe_releases

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


def in_a_child(action):
    """Count the marks that a forked process makes before it ends; return its exit code, too."""
    reading, writing = os.pipe()
    child = FORK.Process(target=action, args=[lambda _=None: os.write(writing, b"x")])
    child.start()
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        marks = len(pipe.read())
    child.join()
    return marks, child.exitcode


class Broken(Exception):
    """A defect somewhere below."""


def faulty(path, way, act, runs):
    """Let something happen at calls all over a way; yield what was released, and booked since."""
    PrivacyLedger(path, epsilon=1e5, delta=0.4)
    PAYING[way](path)  # what is computed once for all
    calls = at_call(0, None, lambda: PAYING[way](path))
    for run in range(runs):
        before = len(PrivacyLedger(path).entries())
        yield act(1 + int(0.9 * calls * run / (runs - 1)), lambda: PAYING[way](path)), before


def raising(error):
    """Count the releases of a run in which something is raised."""

    def fail():
        raise error

    def act(number, pay):
        released = []
        # A score replaces what its model raises by a ValueError.
        stops = contextlib.suppress(Broken, KeyboardInterrupt, ValueError)
        with stops, observe_releases(released.append):
            at_call(number, fail, pay)
        return len(released)

    return act


def killed(number, pay):
    """Count the releases of a run that is killed."""

    def run(mark):
        with observe_releases(mark):
            at_call(number, lambda: os.kill(os.getpid(), signal.SIGKILL), pay)

    released, code = in_a_child(run)
    # Draws are repeated until one is accepted: a run of few may end before the call is due.
    assert code in (-signal.SIGKILL, 0)
    return released


FAULTS = {"exception": raising(Broken), "Ctrl-C": raising(KeyboardInterrupt), "kill -9": killed}


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


# By default every fault at a fit, and an exception at whatever else is short.
QUICK = {*(("fit", fault) for fault in FAULTS), *((way, "exception") for way in SHORT)}


@few_and_many
@pytest.mark.parametrize(
    ("way", "fault"),
    [
        pytest.param(*case, marks=[] if case in QUICK else pytest.mark.slow)
        for case in product(PAYING, FAULTS)
    ],
)
def test_whatever_stops_a_fit_releases_nothing_unbooked(tmp_path, way, fault, runs):
    assert_releases_are_booked(tmp_path / "ledger.db", way, fault, runs)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("fault", FAULTS)
def test_fault_test_sees_a_charge_that_waits_for_the_end(tmp_path, monkeypatch, fault):
    """Planted: the permit comes first, and the charge after a release."""
    honest = mechanisms.Permit.release

    def late(record, source, ledger=None):
        permit = mechanisms.Permit(record, source, single_runs(record.events))
        owed[id(permit)] = lambda: open_ledger(ledger).charge(record)
        return permit

    def release(self, value, mechanism):
        released = honest(self, value, mechanism)
        sum(range(10))  # a step between
        dp_halfspace.privacy.profiles.check_delta(0.0)
        owed.pop(id(self), bool)()
        return released

    owed = {}
    module = "dp_halfspace._budget.authorise"
    monkeypatch.setattr(module, late)
    monkeypatch.setattr(mechanisms.Permit, "release", release)
    with pytest.raises(AssertionError):
        assert_releases_are_booked(tmp_path / "ledger.db", "fit", fault, 25)


@few_and_many
def test_a_fork_or_a_thread_at_any_step_books_its_own(tmp_path, monkeypatch, runs):
    """Who forks inside a transaction has a child that is refused, and loses nothing."""
    path = tmp_path / "ledger.db"
    monkeypatch.setattr(_ledger_store, "_WAIT_SECONDS", 0.5)
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

    def run(mark):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        size, ledger = path.stat().st_size, open_ledger(path)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + limit, size + limit))
        try:
            for _ in range(200):
                ledger.charge(pure(0.001))
                mark()
        except BudgetError:
            sys.exit(3)

    paid, code = in_a_child(run)
    assert code == 3
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

        def run(mark):
            if os.getuid() == 0:
                os.setuid(65534)  # nothing is read-only for root
            try:
                with observe_releases(mark):
                    model(path).fit(X, Y)
            except BudgetError:
                sys.exit(3)

        assert in_a_child(run) == (0, 3)
        folder.chmod(0o777)
        assert PrivacyLedger(path).entries() == []


def test_a_table_that_hides_its_entries_is_damaged(tmp_path):
    """One wrong byte in the type of a column, which SQLite itself does not mind."""
    path = tmp_path / "ledger.db"
    PrivacyLedger(path, epsilon=1.0, delta=0.0).charge(pure(0.9))
    text = path.read_bytes()
    assert text.count(b"PRIMARY KEY") == 1
    path.write_bytes(text.replace(b"PRIMARY KEY", b"PRI$ARY KEY"))
    with pytest.raises(ValueError, match="is damaged"):
        PrivacyLedger(path)


def damaged(text, probability):
    """Change, cut or add some bytes of a file."""
    found = bytearray(text)
    for _ in range(probability.randint(1, 8)):
        found[probability.randrange(len(found))] = probability.randrange(256)
    if probability.random() < 0.2:
        found = found[: probability.randrange(len(found))]
    return bytes(found)


REFUSAL = "damaged|lost entries|cannot be used|not a privacy ledger|exceeds|other terms"


@pytest.mark.parametrize("runs", [30, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_damaged_file_never_has_more_left(tmp_path, runs):
    """A damage is noticed, or changes nothing that counts."""
    probability, kept, path = random.Random(0), tmp_path / "kept.db", tmp_path / "ledger.db"
    full = PrivacyLedger(kept, epsilon=1.0, delta=0.0)
    for _ in range(9):
        full.charge(pure(0.1))
    right, unnoticed = kept.read_bytes(), 0
    for _ in range(runs):
        shutil.copy(kept, path)
        old = PrivacyLedger(path)
        assert old.spent() == pytest.approx(0.9)
        path.write_bytes(damaged(right, probability))
        for handle in (lambda _, old=old: old, PrivacyLedger, open_ledger):
            with pytest.raises(ValueError, match=REFUSAL):
                handle(path).charge(pure(0.2))
            with contextlib.suppress(ValueError):
                assert handle(path).spent() == pytest.approx(0.9)
                unnoticed += 1
    assert 0 < unnoticed < 3 * runs
