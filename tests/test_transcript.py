"""A fit is a function of its releases, and no query moves further than its noise covers.

Both data sets are given the same answers, so that every query is compared, not only the first.
"""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from sklearn.base import clone

from dp_halfspace import AdaptiveMarginClassifier, PrivateAUCClassifier, PrivateKernelClassifier
from dp_halfspace.algorithms.selection.threshold import plan_threshold
from dp_halfspace.privacy.mechanisms import GaussianNoise
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


def worst(estimator, trials=15, seed=4):
    """Largest ratio over neighbours, or the first above 1; the fits agree to the last bit."""
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
        if largest > 1.0:
            break
    return largest


@pytest.mark.parametrize("estimator", CASES, ids=label)
def test_every_query_moves_by_its_sensitivity_at_most(estimator):
    # Fits against an adversary are slow, and test_robust_options.py has neighbours of its own.
    slow = type(estimator).__name__ == "OutputPerturbationClassifier" and estimator.adversary_radius
    assert worst(clone(estimator), 4 if slow else 6) <= 1.0


GD = AdaptiveMarginClassifier(epsilon=50.0, data_norm=1.0, classes=[0, 1])
DIFFERENCE = PrivateAUCClassifier("mean_difference", epsilon=50.0, data_norm=1.0, classes=[0, 1])
FEATURES = PrivateKernelClassifier(
    epsilon=50.0, delta=1e-3, n_components=16, margin=0.3, classes=[0, 1], random_state=1
)
RANKING = PrivateAUCClassifier(epsilon=50.0, classes=[0, 1], threshold=0.0, random_state=1)
PHASES = clone(FEATURES).set_params(solver="phased_prox")


@pytest.mark.parametrize(
    ("estimator", "near"),
    [
        (GD, 0.99),
        (clone(DIFFERENCE).set_params(threshold_share=0.5), 0.9),
        (RANKING, 0.99),
        (FEATURES, 0.9),
        (PHASES, 0.5),
    ],
    ids=["steps", "threshold", "ranking", "features", "phases"],
)
def test_queries_come_near_their_bound(estimator, near):
    assert near < worst(estimator, 24) <= 1.0


def halve_threshold(patch):
    """The choice of the threshold, which comes last, is charged half its change."""
    module = importlib.import_module("dp_halfspace.algorithms.fits.auc_budget")

    def halved(n_samples, n_features, epsilon):
        choice = plan_threshold(n_samples, n_features, epsilon)
        return type(choice)(choice.sensitivity / 2, choice.epsilon)

    patch.setattr(module, "plan_threshold", halved)


def halve_differences(patch):
    """The sensitivity of adding a record, used for replacing one."""
    module = importlib.import_module("dp_halfspace.algorithms.gradient.mean_difference")
    honest = module._sensitivity
    patch.setattr(module, "_sensitivity", lambda *a: honest(*a) / 2)


def heavy_rare_class(patch):
    """The larger class weighs one, and the rarer one more."""
    module = importlib.import_module("dp_halfspace.algorithms.fits.auc_training")
    honest = module.class_weights

    def heavy(*args, **kwargs):
        weights = honest(*args, **kwargs)
        return weights / weights.min()

    patch.setattr(module, "class_weights", heavy)


def halve_steps(patch):
    """The same, wherever noise is Gaussian."""
    honest = GaussianNoise.__init__
    patch.setattr(
        GaussianNoise, "__init__", lambda self, sensitivity, mu: honest(self, sensitivity / 2, mu)
    )


@pytest.mark.parametrize(
    ("estimator", "planted"),
    [
        (DIFFERENCE, halve_threshold),
        (DIFFERENCE, halve_differences),
        (RANKING, heavy_rare_class),
        (GD, halve_steps),
        (FEATURES, halve_steps),
        (PHASES, halve_steps),
    ],
)
def test_transcript_test_sees_half_a_sensitivity(monkeypatch, estimator, planted):
    planted(monkeypatch)
    assert worst(estimator, 40) > 1.0


def test_transcript_test_sees_steps_that_follow_the_exact_count(monkeypatch):
    """Planted: the count is paid for and released, and not used."""
    module = importlib.import_module("dp_halfspace.algorithms.fits.auc_training")
    honest = module.release_count

    def exact(positive, plan, permit, people):
        honest(positive, plan, permit, people)
        return float(positive.sum())

    monkeypatch.setattr(module, "release_count", exact)
    with pytest.raises(AssertionError, match="released model"):
        worst(RANKING)


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
