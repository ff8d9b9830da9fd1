"""Whatever object a ledger is, copies of an estimator charge it and never a copy of it."""

from __future__ import annotations

import copy
import pickle

import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline

import dp_halfspace
from dp_halfspace import BudgetError, OutputPerturbationClassifier, PrivacyLedger, PrivateSearchCV
from dp_halfspace._budget import SharedLedger
from tests.conftest import separated
from tests.instances import ESTIMATORS
from tests.support import Book

X, Y = separated(120, 3, 2)


class Office(Book):
    """One that says how a pickle finds it again."""

    def __reduce__(self):
        OFFICES["main"] = self
        return office, ("main",)


OFFICES: dict[str, Office] = {}


def office(name):
    return OFFICES[name]


def searched(ledger=None, inner=None):
    model = OutputPerturbationClassifier(classes=[0, 1], ledger=inner)
    return PrivateSearchCV(model, {"alpha": [0.1, 1.0]}, epsilon=5.0, ledger=ledger)


EVERY = [*(getattr(dp_halfspace, name)() for name in ESTIMATORS), searched()]
every_estimator = pytest.mark.parametrize("estimator", EVERY, ids=lambda e: type(e).__name__)


def charged(estimator, ledger):
    return clone(estimator).set_params(ledger=ledger)


@every_estimator
def test_copies_charge_the_same_account(estimator):
    model = charged(estimator, Book())
    assert clone(model).ledger is model.ledger
    assert copy.copy(model).ledger is model.ledger
    assert copy.deepcopy(model).ledger is model.ledger
    assert clone(clone(make_pipeline(model)))[-1].ledger is model.ledger
    assert copy.deepcopy([make_pipeline(model)])[0][-1].ledger is model.ledger
    assert vars(clone(model)).keys() == vars(model).keys()


@every_estimator
def test_a_pickle_has_no_copy_of_the_account(estimator):
    model = charged(estimator, Book())
    thawed = pickle.loads(pickle.dumps(model))
    with pytest.raises(BudgetError, match="stayed in the process"):
        thawed.ledger.charge(None)
    # No detour leads back to an account of one's own.
    for detour in (clone(thawed), copy.deepcopy(thawed), pickle.loads(pickle.dumps(thawed))):
        with pytest.raises(BudgetError, match="stayed in the process"):
            detour.ledger.charge(None)
    assert model.ledger.records == []


def test_what_stands_for_an_account_stays_in_a_pickle(tmp_path):
    for ledger in (None, "study.db", tmp_path / "study.db", Office()):
        model = charged(EVERY[0], ledger)
        assert pickle.loads(pickle.dumps(model)).ledger == ledger
    ledger = PrivacyLedger(epsilon=1.0, delta=0.0)
    thawed = pickle.loads(pickle.dumps(charged(EVERY[0], ledger)))
    assert thawed.ledger.handle == ledger.handle


def folds_charged(model, **params):
    """How many of five folds reach the account of the model."""
    ledger = model.ledger
    cross_val_score(model, X, Y, cv=KFold(5), **params)
    return len(ledger.records)


MODELS = [OutputPerturbationClassifier(classes=[0, 1]), searched()]
each_model = pytest.mark.parametrize("model", MODELS, ids=["estimator", "search"])


@each_model
def test_every_fold_is_charged(model):
    assert folds_charged(charged(model, Book())) == 5
    with parallel_config(backend="threading"):
        assert folds_charged(charged(model, Book()), n_jobs=2) == 5


@each_model
def test_that_test_sees_a_clone_with_an_account_of_its_own(model, monkeypatch):
    """Planted: parameters are copied as scikit-learn copies them."""
    monkeypatch.setattr(SharedLedger, "__sklearn_clone__", BaseEstimator.__sklearn_clone__)
    own = copy.copy(model).set_params(ledger=Book())
    assert folds_charged(own) == 0


@pytest.mark.parametrize("model", [MODELS[0], pytest.param(MODELS[1], marks=pytest.mark.slow)])
def test_other_processes_refuse_what_they_cannot_reach(model):
    ledger = Book()
    own = charged(model, ledger)
    with pytest.raises(BudgetError, match="Use a PrivacyLedger with a path"):
        cross_val_score(own, X, Y, cv=KFold(2), n_jobs=2, error_score="raise")
    assert ledger.records == []


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
