"""Callbacks of scikit-learn see each release of a fit, and the model after the last one."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from dp_halfspace import (
    AdaptiveMarginClassifier,
    ObjectivePerturbationClassifier,
    PrivacyLedger,
    PrivateAUCClassifier,
    PrivateKernelClassifier,
    PrivateTableClassifier,
    PrivateThresholdClassifier,
    PureHalfspaceClassifier,
)
from dp_halfspace._sklearn_compat import without_callbacks
from dp_halfspace.estimators import base
from dp_halfspace.model_selection import PrivateSearchCV
from dp_halfspace.privacy import PrivacyRecord, geometric_run_count, random_stopping_event
from dp_halfspace.privacy.events import Either, single_runs

needs_callbacks = pytest.mark.skipif(
    not hasattr(AdaptiveMarginClassifier(), "set_callbacks"), reason="scikit-learn before 1.9"
)


class Watching:
    """Keeps all that a callback is given, and asks the fit to stop."""

    def __init__(self):
        self.seen = []

    def setup(self, estimator, context):
        self.seen.append(("setup", context.max_subtasks))

    def on_fit_task_begin(
        self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None
    ):
        self.see("begin", estimator, context, (X, y, metadata), fitted_estimator)

    def on_fit_task_end(
        self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None
    ):
        self.see("end", estimator, context, (X, y, metadata), fitted_estimator)
        return True

    def teardown(self, estimator, context):
        self.seen.append(("teardown", None))

    def see(self, when, estimator, context, private, model):
        assert private == (None, None, None)
        # Before the end there is nothing in the estimator but its parameters.
        is_end = when == "end" and context.task_name == "fit"
        own = {name for name in vars(estimator) if not name.startswith("_")}
        assert is_end or own <= set(estimator.get_params())
        assert (model is not None) == is_end
        self.seen.append((when, context.task_name))


def table(n=400, n_classes=3):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 4)), np.arange(n) % n_classes


@needs_callbacks
@pytest.mark.parametrize(
    ("model", "n_classes"),
    [
        (AdaptiveMarginClassifier(epsilon=5.0), 3),
        (AdaptiveMarginClassifier(epsilon=0.1), 2),
        (PrivateKernelClassifier(epsilon=5.0), 2),
        (PrivateAUCClassifier(), 2),
        (ObjectivePerturbationClassifier(), 2),
        (PureHalfspaceClassifier(), 2),
        (PrivateTableClassifier(epsilon=9.0, schema={str(j): "number" for j in range(4)}), 2),
    ],
    ids=str,
)
def test_each_release_is_one_task_and_nothing_private_is_passed(model, n_classes):
    X, y = table(n_classes=n_classes)
    watching = Watching()
    model = clone(model).set_params(classes=list(range(n_classes))).set_callbacks(watching)
    model.fit(X, y)
    (kind, planned), *tasks, last = watching.seen
    assert (kind, last) == ("setup", ("teardown", None))
    assert planned == sum(single_runs(model.privacy_.events).values())
    assert tasks[0] == ("begin", "fit")
    assert tasks[-1] == ("end", "fit")
    inner = tasks[1:-1]
    assert inner == [("begin", "release"), ("end", "release")] * (len(inner) // 2)
    # Scales of columns that need no second count are released once less.
    assert planned - 1 <= len(inner) // 2 <= planned
    assert model.predict(X).shape == y.shape


@needs_callbacks
def test_a_number_of_tasks_that_is_not_public_is_not_shown():
    X, y = table(n_classes=2)
    watching = Watching()
    model = AdaptiveMarginClassifier(
        epsilon=3.0, selection="random_stopping", classes=[0, 1], data_norm=3.0, margin=[0.1, 0.3]
    )
    model.set_callbacks(watching).fit(X, y)
    assert [each for each in watching.seen if "release" in each] == []
    assert watching.seen[0] == ("setup", 0)


@needs_callbacks
def test_the_budget_is_charged_before_the_first_task_of_a_release(tmp_path):
    X, y = table()
    ledger = PrivacyLedger(tmp_path / "l.db", epsilon=5.0, delta=1e-3)

    class Reading(Watching):
        def see(self, when, estimator, context, private, model):
            super().see(when, estimator, context, private, model)
            if context.task_name == "release":
                assert len(ledger.entries()) == 1

    reading = Reading()
    model = AdaptiveMarginClassifier(epsilon=2.0, classes=[0, 1, 2], ledger=ledger)
    model.set_callbacks(reading).fit(X, y)
    assert ("end", "release") in reading.seen
    model.set_callbacks()
    model.fit(X, y)
    assert len(ledger.entries()) == 2


@needs_callbacks
def test_a_refused_fit_and_a_failing_callback_are_torn_down():
    X, y = table()
    watching = Watching()
    model = AdaptiveMarginClassifier(epsilon=-1.0, classes=[0, 1, 2]).set_callbacks(watching)
    with pytest.raises(ValueError, match="epsilon"):
        model.fit(X, y)

    class Failing(Watching):
        def see(self, when, estimator, context, private, model):
            if context.task_name == "release":
                raise KeyError("stop")

    failing = Failing()
    with pytest.raises(KeyError, match="stop"):
        clone(model).set_params(epsilon=2.0).set_callbacks(failing).fit(X, y)
    assert failing.seen[-1] == ("teardown", None)
    assert not hasattr(model, "_callback_fit_ctx")


@needs_callbacks
@pytest.mark.filterwarnings("ignore::dp_halfspace.PrivacyWarning")
def test_a_search_of_scikit_learn_may_pass_its_callbacks_on_and_ours_takes_none():
    X, y = table()
    monitor = pytest.importorskip("sklearn.callback").ScoringMonitor(scoring="accuracy")
    model = AdaptiveMarginClassifier(epsilon=2.0, classes=[0, 1, 2]).set_callbacks(monitor)
    model.fit(X, y)
    # Scores of the training rows would be private: none is computed.
    assert all("accuracy" not in row for row in monitor.get_logs().data)
    watching = Watching()
    inner = clone(model).set_callbacks(watching)
    GridSearchCV(inner, {"epsilon": [1.0, 2.0]}, cv=2, refit=False).fit(X, y)
    assert watching.seen.count(("begin", "fit")) == 4
    assert not hasattr(PrivateSearchCV(model, {"epsilon": [1.0]}), "set_callbacks")


@needs_callbacks
def test_runs_of_a_search_leave_the_callbacks_of_a_frozen_model():
    """Its clones are itself, so they would be taken from the model of the user."""
    watched = AdaptiveMarginClassifier().set_callbacks(Watching())
    for model in (watched, make_pipeline(watched)):
        without_callbacks(PrivateThresholdClassifier(FrozenEstimator(model)))
        assert hasattr(watched, "_skl_callbacks")
    without_callbacks(PrivateThresholdClassifier(make_pipeline(watched)))
    assert not hasattr(watched, "_skl_callbacks")


def test_versions_without_callbacks_fit_as_before(monkeypatch):
    monkeypatch.setattr(base, "HAS_CALLBACKS", False)
    model = AdaptiveMarginClassifier(epsilon=9.0, classes=[0, 1, 2])
    assert not hasattr(model, "set_callbacks")
    assert model.fit(*table()).coef_.shape == (3, 4)


def test_the_number_of_releases_is_open_where_a_release_decides_it():
    """One column, or thirty steps: what follows a count of the classes depends on it."""
    rare = PrivateTableClassifier(epsilon=1.0, classes=[0, 1], schema={"0": "number"})
    record = rare.plan(*table(600, 1))
    assert any(isinstance(event, Either) for event in record.events)
    assert base._n_releases(record) is None
    steps = rare.set_params(features="linear").plan(*table(600, 1))
    assert base._n_releases(steps) == sum(single_runs(steps.events).values()) > 30
    # The number of runs of a random stopping is secret.
    runs = random_stopping_event(geometric_run_count(2.0), 1e-4)
    record = PrivacyRecord(epsilon=9.0, delta=1e-3, events=(runs,), noise="os")
    assert base._n_releases(record) == 0
