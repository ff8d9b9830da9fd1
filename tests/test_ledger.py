"""Fits that share one account: folds, grids, processes and plain parameters."""

import json
import multiprocessing
import pickle
import sqlite3
from contextlib import closing

import numpy as np
import pytest
import skops.io
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from dp_halfspace import BudgetError, OutputPerturbationClassifier, PrivacyLedger, PrivateSearchCV
from dp_halfspace.privacy._ledger_store import Row, digest_of
from dp_halfspace.privacy.mechanisms import recording
from tests.conftest import separated
from tests.support import every_estimator, one_of_each

X, Y = separated(120, 3, 2)
DEFAULT = OutputPerturbationClassifier()
FORK = multiprocessing.get_context("fork")


def charged(estimator, ledger):
    return clone(estimator).set_params(ledger=ledger, classes=[0, 1])


def generous(path=None):
    """A ledger for estimators of every adjacency."""
    return PrivacyLedger(path, epsilon=1e5, delta=0.4, adjacency="replace-one-label")


@every_estimator
def test_parameters_stay_plain_and_lead_to_the_same_account(estimator):
    ledger = generous()
    model = charged(estimator, ledger)
    params = model.get_params()
    json.dumps(params)
    assert params["ledger"] == ledger.handle
    twin = type(model)(**params).fit(X, Y)
    assert [entry.record for entry in ledger.entries()] == [twin.privacy_]
    assert model.ledger is ledger is clone(model).ledger


def assert_refused(model, ledger, match):
    """Before any noise, and without a trace in model or ledger."""
    before = dict(vars(model))
    with recording() as releases, pytest.raises(BudgetError, match=match):
        model.fit(X, Y)
    assert releases == []
    assert vars(model) == before
    assert ledger.entries() == []


@pytest.mark.filterwarnings("ignore:random_state")
@pytest.mark.parametrize(
    ("params", "match"),
    [({}, "what is left"), ({"random_state": 0}, "random_state=None"), ({"epsilon": np.inf}, None)],
    ids=["a full ledger", "a seed", "an infinite epsilon"],
)
@one_of_each
def test_a_ledger_refuses_before_any_noise(estimator, params, match):
    small = PrivacyLedger(epsilon=1e-9, delta=0.0, adjacency="replace-one-label")
    ledger = generous() if params else small
    assert_refused(charged(estimator, ledger).set_params(**params), ledger, match)


@pytest.mark.filterwarnings("ignore:random_state")
def test_a_seeded_search_is_refused_before_any_noise():
    ledger = generous()
    model = OutputPerturbationClassifier(classes=[0, 1])
    search = PrivateSearchCV(model, {"alpha": [0.1, 1.0]}, random_state=0, ledger=ledger)
    assert_refused(search, ledger, "random_state=None")


def test_every_fold_and_every_candidate_is_charged(tmp_path):
    for ledger in (generous(), generous(tmp_path / "study.db")):
        model = make_pipeline(Normalizer(), charged(DEFAULT, ledger))
        cross_val_score(model, X, Y, cv=KFold(3))
        assert len(ledger.entries()) == 3
        step = model.steps[-1][0]
        grid = {f"{step}__epsilon": [0.5, 1.0]}
        search = GridSearchCV(model, grid, cv=KFold(2)).fit(X, Y)
        assert len(ledger.entries()) == 3 + 2 * 2 + 1
        assert search.best_estimator_.steps[-1][1].ledger.handle == ledger.handle


def test_worker_processes_charge_a_file(tmp_path):
    ledger = generous(tmp_path / "study.db")
    model = charged(DEFAULT, ledger)
    cross_val_score(model, X, Y, cv=KFold(4), n_jobs=2)
    assert len(ledger.entries()) == 4
    by_path = charged(DEFAULT, str(tmp_path / "study.db"))
    Parallel(n_jobs=2)(delayed(clone(by_path).fit)(X, Y) for _ in range(2))
    assert len(ledger.entries()) == 6


def test_worker_processes_cannot_charge_a_ledger_in_memory():
    ledger = generous()
    with pytest.raises(BudgetError, match="give the ledger a path"):
        Parallel(n_jobs=2)(delayed(charged(DEFAULT, ledger).fit)(X, Y) for _ in range(2))
    assert ledger.entries() == []


def test_a_path_without_a_ledger_is_a_clear_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no ledger at"):
        charged(DEFAULT, tmp_path / "nowhere.db").fit(X, Y)


def test_a_model_predicts_where_its_ledger_is_not(tmp_path):
    ledger = generous(tmp_path / "study.db")
    model = charged(DEFAULT, ledger).fit(X, Y)
    frozen = pickle.dumps(model)
    (tmp_path / "study.db").unlink()
    thawed = pickle.loads(frozen)
    np.testing.assert_array_equal(thawed.predict(X), model.predict(X))
    with pytest.raises(BudgetError, match="no ledger"):
        thawed.fit(X, Y)


@one_of_each
@pytest.mark.parametrize("kind", ["memory", "file", "path"])
def test_a_model_survives_skops(estimator, kind, tmp_path):
    ledger = generous(None if kind == "memory" else tmp_path / "study.db")
    model = charged(estimator, ledger.handle if kind == "path" else ledger)
    assert_skops_keeps(model, ledger)
    assert_skops_keeps(model.fit(X, Y), ledger)


def assert_skops_keeps(model, ledger):
    saved = skops.io.dumps(model)
    loaded = skops.io.loads(saved, trusted=skops.io.get_untrusted_types(data=saved))
    assert loaded.get_params() == model.get_params()
    before = len(ledger.entries())
    if hasattr(model, "privacy_"):
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        assert loaded.privacy_ == model.privacy_
    loaded.fit(X, Y)
    assert len(ledger.entries()) == before + 1


def test_a_ledger_that_cannot_be_read_releases_nothing_in_any_fold(tmp_path):
    """An entry of a newer version, and a search that goes on after errors."""
    path = str(tmp_path / "study.db")
    full = PrivacyLedger(path, epsilon=1.0, delta=1e-3)
    charged(DEFAULT, full).set_params(epsilon=1.0, delta=1e-3).fit(X, Y)
    row = Row(2, "now", json.dumps({"unheard": 1}), "")
    row = row._replace(digest=digest_of(full._balance.digest, row))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO entries VALUES (?,?,?,?)", row)
    model = charged(DEFAULT, path)
    with recording() as releases:
        with pytest.raises(ValueError, match="All the 4 fits failed"):
            cross_val_score(model, X, Y, cv=KFold(4), error_score=np.nan)
        with pytest.raises(ValueError, match="a record has the fields"):
            model.fit(X, Y)
    assert releases == []


def fit_often(path, times):
    for _ in range(times):
        charged(DEFAULT, path).fit(X, Y)


@pytest.mark.parametrize(
    ("processes", "times"), [(3, 4), pytest.param(8, 50, marks=pytest.mark.slow)]
)
def test_fits_of_many_processes_are_all_charged(tmp_path, processes, times):
    path = str(tmp_path / "study.db")
    ledger = generous(path)
    workers = [FORK.Process(target=fit_often, args=(path, times)) for _ in range(processes)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(300)
        assert worker.exitcode == 0
    assert [e.number for e in ledger.entries()] == list(range(1, processes * times + 1))
