"""Fits that share one account: folds, grids, processes, copies and plain parameters."""

import copy
import json
import pickle

import numpy as np
import pytest
import skops.io
from joblib import Parallel, delayed, parallel_config
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

import dp_halfspace
from dp_halfspace import BudgetError, OutputPerturbationClassifier, PrivacyLedger, PrivateSearchCV
from dp_halfspace._budget import SharedLedger
from tests.conftest import separated
from tests.instances import ESTIMATORS
from tests.ledger.files import insert
from tests.releases import record_releases
from tests.support import Book, every_estimator, one_of_each

X, Y = separated(120, 3, 2)
QUICK = {"data_norm": 1.0, "preconditioner": False}
DEFAULT = OutputPerturbationClassifier(**QUICK)


def charged(estimator, ledger):
    return clone(estimator).set_params(ledger=ledger, classes=[0, 1])


def generous(path=None):
    """A ledger for estimators of every adjacency."""
    return PrivacyLedger(path, epsilon=1e5, delta=0.4, adjacency="replace-one-label")


@pytest.mark.sampled(10)
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
    with record_releases() as releases, pytest.raises(BudgetError, match=match):
        model.fit(X, Y)
    assert releases == []
    assert vars(model) == before
    assert ledger.entries() == []


@pytest.mark.sampled(8)
@pytest.mark.filterwarnings("ignore:random_state")
@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({}, "remaining budget"),
        ({"random_state": 0}, "random_state=None"),
        ({"epsilon": np.inf}, None),
    ],
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


# Processes that are forked start at once, interpreters of their own take seconds.
each_backend = pytest.mark.parametrize(
    "backend", ["multiprocessing", pytest.param("loky", marks=pytest.mark.slow)]
)


@each_backend
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_worker_processes_charge_a_file(tmp_path, backend):
    ledger = generous(tmp_path / "study.db")
    model = charged(DEFAULT, ledger)
    by_path = charged(DEFAULT, str(tmp_path / "study.db"))
    with parallel_config(backend, n_jobs=2):
        cross_val_score(model, X, Y, cv=KFold(4))
        assert len(ledger.entries()) == 4
        Parallel()(delayed(clone(by_path).fit)(X, Y) for _ in range(2))
    assert len(ledger.entries()) == 6


def refusal(model):
    """What a fit is refused with: an error that a worker raises would end all of them."""
    try:
        model.fit(X, Y)
    except BudgetError as error:
        return str(error)


@each_backend
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_worker_processes_refuse_what_they_cannot_reach(backend):
    ledger, book = generous(), Book()
    with parallel_config(backend, n_jobs=2):
        said = Parallel()(delayed(refusal)(charged(DEFAULT, ledger)) for _ in range(2))
        assert all("a path" in text for text in said)
        assert not ledger.entries()
        # A ledger of somebody else's says so itself, here by refusing to leave its process.
        with pytest.raises((pickle.PicklingError, TypeError)):
            Parallel()(delayed(refusal)(charged(DEFAULT, book)) for _ in range(2))
    assert not book.records


def test_a_path_without_a_ledger_is_a_clear_error(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"there is no ledger at .*epsilon and delta to make one"
    ):
        charged(DEFAULT, tmp_path / "nowhere.db").fit(X, Y)


@pytest.mark.sampled(5)
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


# -- copies of an estimator charge whatever object a ledger is, and never a copy of it --------


class Office(Book):
    """One that says how a pickle finds it again."""

    def __reduce__(self):
        OFFICES["main"] = self
        return office, ("main",)


OFFICES = {}


def office(name):
    return OFFICES[name]


def searched(ledger=None, inner=None):
    model = OutputPerturbationClassifier(classes=[0, 1], ledger=inner, **QUICK)
    return PrivateSearchCV(model, {"alpha": [0.1, 1.0]}, epsilon=5.0, ledger=ledger)


def sharing(estimator, ledger):
    return clone(estimator).set_params(ledger=ledger)


EVERY = [*(getattr(dp_halfspace, name)() for name in ESTIMATORS), searched()]
MODELS = [OutputPerturbationClassifier(classes=[0, 1], **QUICK), searched()]
each_class = pytest.mark.parametrize("estimator", EVERY, ids=lambda e: type(e).__name__)


@each_class
def test_copies_charge_the_same_account(estimator):
    model = sharing(estimator, Book())
    assert clone(model).ledger is model.ledger
    assert copy.copy(model).ledger is model.ledger
    assert copy.deepcopy(model).ledger is model.ledger
    assert clone(clone(make_pipeline(model)))[-1].ledger is model.ledger
    assert copy.deepcopy([make_pipeline(model)])[0][-1].ledger is model.ledger
    assert vars(clone(model)).keys() == vars(model).keys()


class Copied:
    """A ledger of which Python copies the attributes, the records included."""

    def __init__(self):
        self.records = []

    def charge(self, record):
        self.records.append(record)


class CopiedByPickle(Copied):
    """One whose pickle is a second account."""

    def __getstate__(self):
        return dict(vars(self))

    def __deepcopy__(self, memo):
        return self


class CopiedByClone(Copied):
    """One whose clone is a second account."""

    def __reduce__(self):
        raise TypeError("stays in its process")


@pytest.mark.parametrize("kind", [Copied, CopiedByPickle, CopiedByClone])
def test_a_ledger_whose_copy_is_an_account_of_its_own_is_refused(kind):
    for estimator in MODELS:
        ledger = kind()
        with record_releases() as releases, pytest.raises(TypeError, match="a separate account"):
            sharing(estimator, ledger).fit(X, Y)
        assert releases == ledger.records == []


def test_what_stands_for_an_account_stays_in_a_pickle(tmp_path):
    for ledger in (None, "study.db", tmp_path / "study.db", Office()):
        model = sharing(EVERY[0], ledger)
        assert pickle.loads(pickle.dumps(model)).ledger == ledger
    ledger = PrivacyLedger(epsilon=1.0, delta=0.0)
    thawed = pickle.loads(pickle.dumps(sharing(EVERY[0], ledger)))
    assert thawed.ledger.handle == ledger.handle


def folds_charged(model, **params):
    """How many of three folds reach the account of the model."""
    ledger = model.ledger
    cross_val_score(model, X, Y, cv=KFold(3), **params)
    return len(ledger.records)


each_model = pytest.mark.parametrize("model", MODELS, ids=["estimator", "search"])


@each_model
def test_every_fold_is_charged(model):
    assert folds_charged(sharing(model, Book())) == 3
    with parallel_config(backend="threading"):
        assert folds_charged(sharing(model, Book()), n_jobs=2) == 3


@pytest.mark.parametrize("selection", ["exponential", "random_stopping"])
def test_further_fits_of_a_searched_model_are_charged(selection):
    ledger = Book()
    fitted = searched(ledger).set_params(selection=selection).fit(X, Y)
    assert ledger.records == [fitted.privacy_]
    for _ in range(3):
        fitted.best_estimator_.fit(X, Y)
    clone(fitted.best_estimator_).fit(X, Y)
    assert len(ledger.records) == 1 + 4
    assert fitted.get_params()["ledger"] is ledger


def test_the_ledger_of_the_estimator_pays_if_the_search_has_none():
    inner, outer = Book(), Book()
    fitted = searched(inner=inner).fit(X, Y)
    assert inner.records == [fitted.privacy_]
    assert fitted.best_estimator_.ledger is inner
    searched(outer, inner).fit(X, Y)
    assert (len(inner.records), len(outer.records)) == (1, 1)


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


def test_a_model_predicts_where_its_ledger_is_not(tmp_path):
    ledger = generous(tmp_path / "study.db")
    model = charged(DEFAULT, ledger).fit(X, Y)
    frozen = pickle.dumps(model)
    (tmp_path / "study.db").unlink()
    thawed = pickle.loads(frozen)
    np.testing.assert_array_equal(thawed.predict(X), model.predict(X))
    with pytest.raises(BudgetError, match="no ledger"):
        thawed.fit(X, Y)


def test_a_ledger_that_cannot_be_read_releases_nothing_in_any_fold(tmp_path):
    """An entry of a newer version, and a search that goes on after errors."""
    path = str(tmp_path / "study.db")
    full = PrivacyLedger(path, epsilon=1.0, delta=1e-3)
    charged(DEFAULT, full).set_params(epsilon=1.0, delta=1e-3).fit(X, Y)
    insert(full, json.dumps({"unheard": 1}))
    model = charged(DEFAULT, path)
    with record_releases() as releases:
        with pytest.raises(ValueError, match="All the 4 fits failed"):
            cross_val_score(model, X, Y, cv=KFold(4), error_score=np.nan)
        with pytest.raises(ValueError, match="a record has the fields"):
            model.fit(X, Y)
    assert releases == []


@pytest.mark.slow
@each_model
def test_that_test_sees_a_clone_with_an_account_of_its_own(model, monkeypatch):
    """Planted: a ledger that is copied with the parameters."""
    monkeypatch.setattr(SharedLedger, "__sklearn_clone__", BaseEstimator.__sklearn_clone__)
    monkeypatch.setattr(Book, "__deepcopy__", lambda self, memo: Book())
    own = copy.copy(model).set_params(ledger=Book())
    assert folds_charged(own) == 0
