"""A fit is a function of its releases, and no query moves further than its noise covers.

Both data sets are given the same answers, so that every query is compared, not only the first.
"""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from sklearn.base import clone

from dp_halfspace import AdaptiveMarginClassifier, PrivateAUCClassifier
from dp_halfspace.algorithms.selection.threshold import plan_threshold
from tests.adversarial import neighbouring_pairs
from tests.instances import adjacency, instances, label, with_enough_records
from tests.transcript import replayed

# The seed fixes public maps; the noise is replayed. The draws of a selection are not releases,
# and neither is the place in a tally of directions: these have tests of their own.
pytestmark = pytest.mark.filterwarnings("ignore:random_state")
CASES = [
    model
    for model in instances(classes=[0, 1], random_state=1)
    if model.get_params().get("selection", "none") == "none"
    and model.get_params().get("margin", "auto") != "select"
    and type(model).__name__ != "PureHalfspaceClassifier"
    and not (type(model).__name__ == "AdaptiveMarginClassifier" and model.delta == 0)
    and model.get_params().get("mechanism") != "randomized_response"
]


def worst(estimator, trials=25, seed=4):
    """Largest ratio over neighbours; the fitted attributes are the same to the last bit."""
    rng, largest = np.random.default_rng(seed), 0.0
    for X, y, other_X, other_y in neighbouring_pairs(rng, trials):
        if adjacency(estimator) == "replace-one-label":
            other_X = X
        extra = len(with_enough_records(estimator, y)[0]) - len(y)
        pairs = [
            (np.vstack([rows, np.zeros((extra, X.shape[1]))]), np.append(labels, np.zeros(extra)))
            for rows, labels in ((X, y), (other_X, other_y))
        ]
        transcript, (a, b) = replayed(estimator, *pairs)
        assert a.privacy_ == b.privacy_
        points = np.vstack([np.eye(X.shape[1]), np.zeros(X.shape[1])])
        scores = [model.decision_function(points) for model in (a, b)]
        np.testing.assert_array_equal(*scores, err_msg="released model")
        largest = max([largest, *transcript.ratios()])
    return largest


@pytest.mark.parametrize("estimator", CASES, ids=label)
def test_every_query_moves_by_its_sensitivity_at_most(estimator):
    assert worst(clone(estimator)) <= 1.0


def test_queries_of_steps_come_near_their_bound():
    assert worst(AdaptiveMarginClassifier(epsilon=50.0, classes=[0, 1]), 60) > 0.99


def test_threshold_comes_near_its_bound():
    model = PrivateAUCClassifier(
        mechanism="mean_difference", epsilon=50.0, classes=[0, 1], threshold_share=0.5
    )
    assert 0.9 < worst(model, 60) <= 1.0


def test_transcript_test_sees_half_a_sensitivity_late_in_a_fit(monkeypatch):
    """Planted: the choice of the threshold, which comes last, is charged half its change."""
    module = importlib.import_module("dp_halfspace.algorithms.fits.auc_budget")

    def halved(n_samples, n_features, epsilon):
        choice = plan_threshold(n_samples, n_features, epsilon)
        return type(choice)(choice.sensitivity / 2, choice.epsilon)

    monkeypatch.setattr(module, "plan_threshold", halved)
    assert worst(PrivateAUCClassifier("mean_difference", epsilon=50.0, classes=[0, 1]), 60) > 1.0


def test_transcript_test_sees_an_attribute_made_from_the_data(monkeypatch):
    """Planted: the intercept is moved by the mean of the first column."""
    honest = AdaptiveMarginClassifier.fit

    def leaky(self, X, y):
        model = honest(self, X, y)
        model.intercept_ = model.intercept_ + X[:, 0].mean()
        return model

    monkeypatch.setattr(AdaptiveMarginClassifier, "fit", leaky)
    with pytest.raises(AssertionError, match="released model"):
        worst(AdaptiveMarginClassifier(classes=[0, 1]))
