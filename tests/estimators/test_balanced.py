"""Classes that noisy counts balance: in the budget and the record, with weights of at most one."""

import numpy as np
import pytest
from sklearn.base import clone

from dp_halfspace import (
    AdaptiveMarginClassifier,
    LabelPrivateClassifier,
    ObjectivePerturbationClassifier,
    OutputPerturbationClassifier,
    PrivateKernelClassifier,
)
from dp_halfspace.algorithms import wrapped_plans
from dp_halfspace.audit import replay
from dp_halfspace.model_selection import PrivateSearchCV
from dp_halfspace.privacy import accounting
from tests.support import fitted

pytestmark = pytest.mark.filterwarnings("ignore::dp_halfspace.PrivacyWarning")
X = np.random.default_rng(0).normal(size=(6000, 3))
Y = (X[:, 0] + 0.5 * np.random.default_rng(1).normal(size=6000) > 1.8).astype(int)
ESTIMATORS = [
    AdaptiveMarginClassifier(),
    AdaptiveMarginClassifier(data_norm=3.0, solver="objective_perturbation"),
    PrivateKernelClassifier(),
    ObjectivePerturbationClassifier(data_norm=3.0),
    OutputPerturbationClassifier(data_norm=3.0),
    OutputPerturbationClassifier(data_norm=3.0, tilt=0.1),
]


def balanced(estimator, **params):
    return clone(estimator).set_params(
        **{"class_weight": "balanced", "classes": [0, 1], "epsilon": 3.0, **params}
    )


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_counts_are_within_the_budget_and_in_the_record(estimator):
    model = balanced(estimator)
    record = model.plan(X, Y)
    public = dict(record.public)
    assert (public["class_weight"], public["private_class_counts"]) == ("balanced", True)
    assert accounting.delta(record.events, 3.0) <= record.delta
    assert accounting.epsilon(record.events, record.delta) > 2.9
    model = fitted(model, X, Y, random_state=1)
    assert model.privacy_.events == record.events
    # More of the rare class is found than is there, as in a population with equal classes.
    plain = fitted(model, X, Y, random_state=1, class_weight=None)
    assert model.predict(X).mean() > max(plain.predict(X).mean(), 1.5 * Y.mean())


def worst(estimator):
    """Largest move of any release over its sensitivity; nothing else is found."""
    other, labels = X[:300].copy(), Y[:300].copy()
    k = int(np.argmax(labels))
    other[k] = -3.0 * X[k]
    model = balanced(estimator, epsilon=30.0, random_state=1)
    result = replay(model, X[:300], Y[:300], other, labels, n_histories=1, random_state=0)
    assert not [text for text in result.findings if "times the sensitivity" not in text]
    return max(release.ratio for release in result.releases)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_a_fit_is_a_function_of_its_releases(estimator):
    assert worst(estimator) <= 1.0


def test_the_replay_sees_weights_above_one(monkeypatch):
    """Planted: the common class weighs one, and the rare one more."""
    honest = wrapped_plans.balanced_weights
    monkeypatch.setattr(wrapped_plans, "balanced_weights", lambda *a: honest(*a) / honest(*a).min())
    assert worst(OutputPerturbationClassifier(data_norm=3.0)) > 1.0


def test_what_cannot_be_balanced_is_refused():
    for estimator in ESTIMATORS:
        with pytest.raises(ValueError, match="delta > 0"):
            balanced(estimator, delta=0.0).plan(X, Y)
    chosen = AdaptiveMarginClassifier(data_norm=3.0, selection="exponential", margin=[0.1, 0.2])
    with pytest.raises(ValueError, match="selection among margins"):
        balanced(chosen).plan(X, Y)
    with pytest.raises(ValueError, match="margin='auto'"):
        balanced(PrivateKernelClassifier(data_norm=3.0, margin="select")).plan(X, Y)
    with pytest.raises(ValueError, match="'balanced' is refused here"):
        balanced(LabelPrivateClassifier()).plan(X, Y)


@pytest.mark.slow
def test_a_search_balances_its_runs():
    model = balanced(ObjectivePerturbationClassifier(data_norm=3.0), epsilon=1.0)
    search = PrivateSearchCV(model, {"alpha": [0.01, 0.001]}, epsilon=5.0).fit(X, Y)
    assert search.predict(X).mean() > 1.5 * Y.mean()


def test_people_and_chunks_are_counted():
    groups = np.repeat(np.arange(3000), 2)
    model = balanced(AdaptiveMarginClassifier())
    assert model.fit(X, Y, groups=groups).predict(X).mean() > 1.5 * Y.mean()
    assert dict(model.privacy_.public)["n_samples"] == 3000
