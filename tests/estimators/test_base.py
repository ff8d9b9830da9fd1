"""The shared base: defaults, parameters, prediction."""

from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils import get_tags

from dp_halfspace import OutputPerturbationClassifier, PrivateSearchCV
from dp_halfspace._params import resolved_delta
from tests.conftest import separated
from tests.instances import instances, label, with_enough_records


def test_automatic_delta():
    assert resolved_delta("auto", 1000) == 1e-6
    assert resolved_delta("auto", 1) == 0.25
    assert resolved_delta("auto", 2) == 0.25
    assert resolved_delta(0, 10) == 0.0
    assert resolved_delta(1e-7, 10) == 1e-7


def test_ties_go_to_the_first_class():
    X, y = np.zeros((10, 1)), np.arange(10) % 2
    model = OutputPerturbationClassifier(epsilon=np.inf, classes=[0, 1]).fit(X, y)
    assert model.predict([[0.0]]) == [0]


CHANGED = {
    "data_norm": 0.01,
    "intercept_scaling": 7.0,
    "fit_intercept": False,
    "tilt": 0.3,
    "adversary_radius": 0.005,
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("estimator", instances(classes=[0, 1]), ids=label)
def test_parameters_set_after_the_fit_change_no_prediction(estimator):
    X, y = with_enough_records(estimator, *separated(60, 4, norm=1.5))
    scores = estimator.fit(X, y).decision_function(X)
    known = estimator.get_params()
    estimator.set_params(**{name: value for name, value in CHANGED.items() if name in known})
    np.testing.assert_array_equal(estimator.decision_function(X), scores)


def test_tilt_set_after_the_fit_changes_no_probability():
    X, y = separated(60, 4, 3)
    model = OutputPerturbationClassifier(classes=[0, 1, 2]).fit(X, y)
    expected = model.predict_proba(X)
    np.testing.assert_array_equal(model.set_params(tilt=0.3).predict_proba(X), expected)


def test_weights_of_classes_are_those_that_are_stated():
    model = OutputPerturbationClassifier(classes=[0, 1], class_weight={0: 0.25, 1: 4.0})
    facts = model._facts(model._validate(np.zeros((4, 2)), [0, 1, 0, 1], None))
    assert facts.class_weights == (0.25, 4.0)


def test_rows_beyond_the_stated_norm_are_scored_as_they_were_fitted():
    X, y = np.array([[0.6, 0.8], [-0.6, -0.8]] * 20), [1, 0] * 20
    model = OutputPerturbationClassifier(
        epsilon=np.inf, data_norm=1.0, classes=[0, 1], preconditioner=False
    )
    scores = model.fit(X, y).decision_function(np.array([[0.6, 0.8], [6.0, 8.0], [0.3, 0.4]]))
    assert scores[0] == pytest.approx(scores[1], rel=1e-12)
    assert scores[2] != pytest.approx(scores[0], rel=1e-3)


@pytest.mark.parametrize("kind", [clone, lambda model: PrivateSearchCV(model, {})])
def test_a_score_weighs_the_records_as_asked(kind):
    X, y = separated(60, 4)
    model = kind(OutputPerturbationClassifier(classes=[0, 1])).fit(X, y)
    labels, weights = model.predict(X), np.arange(1.0, 61.0)
    labels[:20] = 1 - labels[:20]
    assert model.score(X, labels) == pytest.approx(40 / 60)
    assert model.score(X, labels, weights) == pytest.approx(1.0 - 210.0 / 1830.0)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.score(X, labels[:1])


@pytest.mark.sampled(16)
@pytest.mark.parametrize("estimator", instances(), ids=label)
def test_a_class_says_whether_it_takes_more_than_two_classes(estimator):
    X, y = with_enough_records(estimator, *separated(60, 4, 3))
    takes = get_tags(estimator).classifier_tags.multi_class
    with nullcontext() if takes else pytest.raises(ValueError, match=r"classes|binary"):
        estimator.set_params(classes=[0, 1, 2]).plan(X, y)
