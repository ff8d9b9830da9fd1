"""How many candidates run is a secret: nothing that steps, scorings or callbacks do shows it.

Each test runs a search with few and with many runs of random stopping, and compares what it shows.
"""

import io
import logging
import runpy
import sys
import threading
import warnings
from contextlib import nullcontext
from multiprocessing.pool import ThreadPool
from types import SimpleNamespace

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from dp_halfspace import (
    AdaptiveMarginClassifier,
    OutputPerturbationClassifier,
    PrivateSearchCV,
    _silence,
)
from dp_halfspace._repeated_fits import fits_not_counted
from dp_halfspace.model_selection import _search_runs as candidates
from dp_halfspace.privacy.random_stopping import RunCountDistribution
from tests.conftest import separated

pytestmark = pytest.mark.usefixtures("plans_are_made_once")
X, Y = separated(120, 3, 2)
MODEL = OutputPerturbationClassifier(classes=[0, 1], data_norm=1.0, preconditioner=False)
TALKER = logging.getLogger("tests.talker")


def search(estimator, **params):
    options = {"epsilon": 5.0, "selection": "random_stopping", **params}
    return PrivateSearchCV(estimator, options.pop("grid", {}), **options)


def runs_of(monkeypatch, count):
    monkeypatch.setattr(RunCountDistribution, "draw", lambda distribution, source: count)


VERBOSE = MODEL.__class__(**{**MODEL.get_params(), "verbose": 1})


@pytest.mark.sampled(1)
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_verbose_fits_do_not_count_runs(monkeypatch, capfd, n_jobs):
    """In the processes of workers, too."""
    shown = []
    for count in (1, 6):
        runs_of(monkeypatch, count)
        with parallel_config(verbose=10):
            fitted = search(VERBOSE, n_jobs=n_jobs).fit(X, Y)
        shown.append(tuple(capfd.readouterr()))
    assert shown == [("", "")] * 2
    # What is released has the parameters that were given.
    assert fitted.best_estimator_.verbose == VERBOSE.verbose == 1


class Talking(dict):
    """A value of a grid that says when it is copied."""

    def __deepcopy__(self, memo):
        print("copied")
        return Talking(self)


def test_values_of_a_grid_that_talk_do_not_count_runs(monkeypatch, capfd):
    """A candidate is made where its run begins, with copies of its parameters."""
    shown, grid = [], {"class_weight": [Talking({0: 1.0, 1: 1.0})]}
    for count in (1, 6):
        runs_of(monkeypatch, count)
        search(MODEL, grid=grid).fit(X, Y)
        shown.append(capfd.readouterr())
    assert "copied" in shown[0].out
    assert shown[0] == shown[1]


def test_candidates_are_told_to_say_nothing(monkeypatch, capfd):
    """They would print where no redirection reaches: dropping output is the second line."""
    monkeypatch.setattr(_silence, "_DROPPED_OUTPUT", nullcontext())
    runs_of(monkeypatch, 3)
    search(VERBOSE).fit(X, Y)
    assert capfd.readouterr().out == ""


def talk():
    """Say something in every way that Python has."""
    print("a score prints")
    print("a score prints an error", file=sys.stderr)
    print("bytes", file=sys.stdout, flush=True)
    sys.stdout.buffer.write(b"a score writes bytes")
    TALKER.critical("a score logs")
    warnings.warn("a score warns", UserWarning, stacklevel=1)


def talking_score(model, X, y):
    talk()
    return np.ones(len(y))


@pytest.fixture
def log():
    """A handler that keeps a stream of its own, as most do."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    TALKER.addHandler(handler)
    yield stream
    TALKER.removeHandler(handler)


def heard(monkeypatch, capfd, log, count, **params):
    runs_of(monkeypatch, count)
    before = sys.stdout, sys.stderr, logging.root.manager.disable
    with warnings.catch_warnings(record=True) as said, parallel_config(backend="threading"):
        warnings.simplefilter("always")
        filters = list(warnings.filters)
        search(MODEL, scoring=talking_score, **params).fit(X, Y)
        assert warnings.filters == filters
    assert (sys.stdout, sys.stderr, logging.root.manager.disable) == before
    return [*capfd.readouterr(), log.getvalue(), *(str(w.message) for w in said)]


@pytest.mark.parametrize("selection", ["random_stopping", "exponential"])
@pytest.mark.parametrize("n_jobs", [None, 4])
def test_what_functions_say_in_runs_is_dropped(monkeypatch, capfd, log, n_jobs, selection):
    """Whatever the order in which threads begin and end; afterwards all is as it was."""
    params = {"n_jobs": n_jobs, "selection": selection}
    if selection == "exponential":
        params |= {"n_repeats": 8, "epsilon": 9.0}
    for count in (1, 6):
        assert not any(heard(monkeypatch, capfd, log, count, **params))
    print("heard again")
    TALKER.critical("logged again")
    assert capfd.readouterr().out == "heard again\n"
    assert log.getvalue() == "logged again\n"


def test_a_run_drops_what_is_said_by_itself(capsys, log):
    """Where runs are processes, nothing that the search redirects reaches them."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        candidates.train_and_score(
            clone(MODEL), 0, X=X, y=Y, scoring=talking_score, noise=None, seed=None
        )
    assert [*capsys.readouterr(), log.getvalue(), *said] == ["", "", ""]


def test_threads_that_overlap_restore_what_they_found(monkeypatch):
    """The first to come is the first to go."""
    monkeypatch.setattr(logging.root.manager, "disable", logging.DEBUG)
    before = sys.stdout, sys.stderr, logging.root.manager.disable
    dropped = _silence._Shared(_silence._drop_streams_and_logs)
    dropped.__enter__()
    dropped.__enter__()
    nowhere = sys.stdout
    dropped.__exit__(None, None, None)
    assert sys.stdout is nowhere is not before[0]
    dropped.__exit__(None, None, None)
    assert (sys.stdout, sys.stderr, logging.root.manager.disable) == before


def test_output_is_dropped_after_an_interrupt_while_it_was_turned_off():
    """Otherwise all later fits of the process would show what their steps print."""
    interrupts = iter([True])

    def drop(restored):
        _silence._drop_streams_and_logs(restored)
        if next(interrupts, False):
            raise KeyboardInterrupt

    before, dropped = sys.stdout, _silence._Shared(drop)
    with pytest.raises(KeyboardInterrupt), dropped:
        pass
    assert sys.stdout is before
    with dropped:
        assert sys.stdout is not before
    assert sys.stdout is before


def test_blocks_that_overlap_are_silent_and_restore_the_filters():
    """Two threads enter, the first one leaves first, and a step of the second one warns."""
    first, second = _silence.drop_output(), _silence.drop_output()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        filters = list(warnings.filters)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        talk()
        second.__exit__(None, None, None)
        assert warnings.filters == filters
    assert not said


def test_filters_of_threads_are_set_in_each_thread():
    """As in Python 3.14 without its lock: what one thread ignores, another one would show."""
    own = threading.local()

    def ignore(restored):
        restored.callback(setattr, own, "ignores", getattr(own, "ignores", False))
        own.ignores = True

    block, seen = _silence._OfThread(ignore), []

    def run(_):
        with block:
            with block:
                pass
            seen.append(own.ignores)
        seen.append(own.ignores)

    with block, ThreadPool(1) as pool:
        pool.map(run, range(2))
    assert seen == [True, False] * 2
    assert own.ignores is False


@pytest.mark.parametrize("each", [False, True])
def test_the_interpreter_says_whose_the_filters_are(each, monkeypatch):
    monkeypatch.setattr(sys, "flags", SimpleNamespace(context_aware_warnings=each))
    kind = type(runpy.run_path(_silence.__file__)["IGNORED_WARNINGS"]).__name__
    assert kind == ("_OfThread" if each else "_Shared")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("selection", ["random_stopping", "exponential"])
def test_searches_in_threads_leave_the_filters_as_they_were(selection):
    """Otherwise a later warning, such as the one of a seed, would be lost."""
    model = search(MODEL, selection=selection, grid={"alpha": [0.1, 1.0]})
    model.plan(X, Y)

    def uncounted(_):
        with fits_not_counted():
            clone(model).fit(X, Y)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        filters = list(warnings.filters)
        with ThreadPool(4) as pool:
            pool.map(uncounted, range(6))
        assert warnings.filters == filters


class Counter:
    """A callback as scikit-learn takes them; clones share it."""

    def __init__(self):
        self.calls = 0

    def called(self, *given, **facts):
        self.calls += 1

    setup = teardown = on_fit_task_begin = on_fit_task_end = called


def test_callbacks_do_not_count_runs(monkeypatch):
    pytest.importorskip("sklearn.callback")
    model, counter = AdaptiveMarginClassifier(classes=[0, 1], data_norm=1.0), Counter()
    model.set_callbacks(counter)
    for count in (1, 6):
        runs_of(monkeypatch, count)
        search(model).fit(X, Y)
        assert counter.calls == 0
    # Those of the user's own estimator stay, and are called by its own fits.
    model.fit(X, Y)
    assert counter.calls > 0


def test_errors_in_runs_do_not_quote_records():
    def scoring(model, X, y):
        raise KeyError(X[0])

    with pytest.raises(ValueError, match="or the scoring failed") as seen:
        search(MODEL, scoring=scoring).fit(X, Y)
    assert seen.value.__context__ is None


class Own(OutputPerturbationClassifier):
    """Somebody's subclass, which may do anything in its fit."""


class Alike(LogisticRegression):
    """Has the names of the parameters of a private classifier, and no privacy."""

    epsilon, delta, ledger = 1.0, "auto", None


@pytest.mark.parametrize("model", [Own(classes=[0, 1]), Alike()])
def test_only_classifiers_of_the_package_are_searched(model):
    with pytest.raises(ValueError, match="must be a classifier of this package"):
        search(model).fit(X, Y)
