"""Classes that noisy counts balance: in the budget and the record, with weights of at most one."""

import math
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from dp_halfspace import (
    AdaptiveMarginClassifier,
    LabelPrivateClassifier,
    ObjectivePerturbationClassifier,
    OutputPerturbationClassifier,
    PrivateKernelClassifier,
    PrivateTableClassifier,
)
from dp_halfspace.data.people import People
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine import linear
from dp_halfspace.engine.counts import balancing_weights, count_noise
from dp_halfspace.engine.plan import Fitted, PublicFacts
from dp_halfspace.estimators._wrapped_plans import BalancedFit
from dp_halfspace.exceptions import BudgetError
from dp_halfspace.inspection import model_card
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.interception import intercept_releases
from tests.permits import door_of
from tests.releases import record_releases
from tests.support import fitted, largest_ratio

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


def test_a_part_that_a_large_delta_pays_for_is_not_divided():
    """Its epsilon is zero, beside column scales and counts."""
    model = balanced(AdaptiveMarginClassifier(margin=0.1), epsilon=1e-3, delta=0.499)
    with pytest.raises(BudgetError, match="too small for both column scales and a model"):
        model.plan(X, Y)


@pytest.mark.sampled(3)
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


PUBLISHED = [
    AdaptiveMarginClassifier(data_norm=3.0, margin=0.3),
    PrivateKernelClassifier(data_norm=3.0, margin=0.3),
    OutputPerturbationClassifier(data_norm=3.0, tilt=0.1),
]


@pytest.mark.parametrize("estimator", PUBLISHED, ids=str)
def test_published_algorithms_weigh_the_classes_by_their_counts(estimator):
    model = balanced(estimator, epsilon=100.0)
    found = fitted(model, X[:1000], Y[:1000], random_state=1)
    plain = fitted(model, X[:1000], Y[:1000], random_state=1, class_weight=None)
    assert found.predict(X).mean() > max(plain.predict(X).mean(), 1.5 * Y.mean())


@pytest.mark.parametrize("estimator", [*ESTIMATORS[:4], PrivateTableClassifier()], ids=str)
def test_weighted_records_are_counted_in_both_classes_and_paid_for_in_both(estimator):
    """One count does not follow from the other, and both move when a record is replaced."""
    with record_releases() as releases:
        balanced(estimator).fit(X[:500], Y[:500], sample_weight=np.full(500, 0.5))
    (counts,) = (release for release in releases if release.value.shape == (2,))
    assert counts.value.tolist() == [0.5 * np.sum(Y[:500] == k) for k in (0, 1)]
    assert counts.mechanism.sensitivity >= math.sqrt(2.0)


@pytest.mark.parametrize("kind", [AdaptiveMarginClassifier, PrivateTableClassifier])
def test_no_selection_from_a_list_takes_the_place_of_a_balanced_fit(kind):
    """Its errors would count alike in all classes."""
    model = balanced(kind(), epsilon=0.02)
    assert dict(model.plan(X, Y).public)["private_class_counts"]
    plain = clone(model).set_params(class_weight=None).plan(X, Y)
    assert "n_candidates" in dict(plain.public)


def worst(estimator):
    """Largest move of any release over its sensitivity; nothing else is found."""
    other, labels = X[:300].copy(), Y[:300].copy()
    k = int(np.argmax(labels))
    other[k] = -3.0 * X[k]
    model = balanced(estimator, epsilon=30.0, random_state=1)
    return largest_ratio(model, X[:300], Y[:300], other, labels, random_state=0)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_a_fit_is_a_function_of_its_releases(estimator):
    assert worst(estimator) <= 1.0


def test_a_table_without_a_scale_to_estimate_is_balanced():
    """The counts read the rows as they were handed in, before features are computed."""
    rows, schema = np.where(X[:, :2] > 1.0, "red", "green"), ["red", "green"]
    table = PrivateTableClassifier(schema={"0": schema, "1": schema}, features="additive")
    model = fitted(balanced(table), rows, Y, random_state=1)
    assert dict(model.privacy_.public)["private_column_scales"] == ()
    shares = [model.predict_proba([[first, "green"]])[0, 1] for first in schema]
    assert shares[1] < 0.5 < shares[0]


def test_what_cannot_be_balanced_is_refused():
    for estimator in ESTIMATORS:
        with pytest.raises(ValueError, match="delta > 0"):
            balanced(estimator, delta=0.0).plan(X, Y)
    chosen = AdaptiveMarginClassifier(data_norm=3.0, selection="exponential", margin=[0.1, 0.2])
    with pytest.raises(ValueError, match="selection among margins"):
        balanced(chosen).plan(X, Y)
    with pytest.raises(ValueError, match="margin='auto'"):
        balanced(PrivateKernelClassifier(data_norm=3.0, margin="select")).plan(X, Y)
    with pytest.raises(ValueError, match="'balanced' is supported by AdaptiveMarginClassifier"):
        balanced(LabelPrivateClassifier()).plan(X, Y)


class Inner:
    """A plan that keeps the weights that it is given."""

    def with_class_weights(self, weights):
        self.weights = weights
        return self

    def run(self, door):
        return Fitted(np.zeros((1, 1)), np.zeros(1), 1.0)


def counted(released, *, people=None, weights=None):
    """Run a plan of counts on two records of the second class; return values and class weights.

    The release is answered by given counts.
    """
    codes = np.array([0, 0, 0, 0, 1, 1])
    data = TrainingData(np.zeros((6, 1)), codes, np.array([0, 1]), None, people, weights)
    n_units = 6 if people is None else len(people)
    facts = PublicFacts(
        n_privacy_units=n_units, n_features=1, n_classes=2, class_weights=(1.0, 1.0)
    )
    noise = count_noise(2, Budget.gaussian(50.0), has_weights=weights is not None)
    inner = Inner()
    plan = BalancedFit(facts, noise, inner, (noise.event,))
    seen = []
    with intercept_releases(lambda value, *_: seen.append(value) or np.array(released)):
        fit = plan.run(door_of(data, *plan.events))
    assert fit.attributes["class_weight_"] is inner.weights
    return seen, inner.weights


def test_classes_weigh_by_released_counts_alone():
    """Planted in the list of mutants: the counts of the records."""
    (value,), weights = counted([1.0])
    np.testing.assert_array_equal(value, [2.0])
    noise = count_noise(2, Budget.gaussian(50.0), has_weights=False)
    expected = balancing_weights(np.array([1.0]), 6, noise)
    np.testing.assert_array_equal(weights, expected)
    assert not np.array_equal(weights, counted([4.0])[1])


def test_people_count_once_and_records_by_their_weights():
    (value,), weights = counted([1.0], people=People(np.array([1, 4, 1])))
    # The second person has three rows of the first class and one of the second.
    np.testing.assert_array_equal(value, [1.25])
    # The number of people is public, and that of their rows is not.
    noise = count_noise(2, Budget.gaussian(50.0), has_weights=False)
    np.testing.assert_array_equal(weights, balancing_weights(np.array([1.0]), 3, noise))
    (value,), _ = counted([1.0, 1.0], weights=np.array([1.0, 0.5, 0.25, 0.0, 0.5, 0.125]))
    np.testing.assert_array_equal(value, [1.75, 0.625])


def test_a_balanced_fit_is_recalibrated_with_the_weights_that_its_counts_give(monkeypatch):
    seen = []
    how = lambda known: (seen.append(known.class_weights), known)[1]  # noqa: E731
    monkeypatch.setattr(linear, "recalibrated", how)
    fitted(balanced(AdaptiveMarginClassifier(epsilon=1.0)), X, Y, random_state=0)
    # Few records have the second label.
    assert seen[0][0] < 0.5 * seen[0][1]


@pytest.mark.parametrize(("n_rare", "is_said"), [(20, True), (400, False)])
def test_a_rare_class_that_leaves_little_weight_is_named(n_rare, is_said):
    """By the released weights; a table, whose model is inside, says and shows the same."""
    rows, labels = X[:4000], np.repeat([0, 1, 2], [3000, 1000 - n_rare, n_rare])
    how = {"classes": [0, 1, 2], "random_state": 0}
    table = PrivateTableClassifier(schema=dict.fromkeys("012", "number"))
    for estimator in (AdaptiveMarginClassifier(), table):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = balanced(estimator, **how).fit(rows, labels)
        weights = getattr(model, "model_", model).class_weight_
        text = f"the weight of about {round(4000 / np.mean(1 / weights))}."
        assert any(text in str(w.message) for w in caught) == is_said
        assert (text in model_card(model, title="t")) == is_said
    plain = fitted(model, rows, labels, class_weight=None)
    assert not hasattr(plain.model_, "class_weight_")
