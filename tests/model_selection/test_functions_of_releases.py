"""What a wrapper of a given model, a score and a search return follows from their releases."""

import math

import numpy as np
import pytest

from dp_halfspace import (
    OutputPerturbationClassifier,
    PrivateConformalClassifier,
    PrivateSearchCV,
    PrivateThresholdClassifier,
)
from dp_halfspace.metrics import private_score
from dp_halfspace.metrics._table import METRICS
from dp_halfspace.privacy.interception import intercept_releases
from tests.model_selection.prefit_models import Rare as Scores
from tests.model_selection.prefit_models import RareChances as Chances
from tests.releases import assert_follows

pytestmark = pytest.mark.usefixtures("plans_are_made_once")
N = 400
RNG = np.random.default_rng(0)
FIRST, SECOND = (RNG.normal(size=(N, 2)) for _ in range(2))
FEW = (FIRST[:, 0] + RNG.normal(size=N) > 1.0).astype(int)
MANY = (SECOND[:, 0] + RNG.normal(size=N) > -0.5).astype(int)
DATA = (FIRST, FEW), (SECOND, MANY)


@pytest.mark.parametrize("target", ["recall", "precision", "fpr"])
@pytest.mark.parametrize("model", [Scores, Chances])
def test_a_threshold(target, model):
    def run(X, y):
        fitted = PrivateThresholdClassifier(model(), target=target, value=0.6, confidence=0.6)
        fitted.fit(X, y)
        return fitted.threshold_, fitted.n_positive_

    assert assert_follows(run, *DATA) == (1 if target == "fpr" else 2)


@pytest.mark.parametrize("target", ["recall", "precision"])
def test_a_target_is_raised_by_the_released_count(target):
    """Planted in the list of mutants: by the exact one."""

    def utilities(count):
        seen = []

        def answer(value, mechanism, source):
            seen.append(np.array(value))
            return np.array([count if len(seen) == 1 else 0.0])

        with intercept_releases(answer):
            PrivateThresholdClassifier(Scores(), target=target, value=0.6, epsilon=50).fit(
                FIRST, FEW
            )
        return seen[1]

    assert utilities(50.0)[0] > utilities(300.0)[0]


def test_sets_of_classes():
    def run(X, y):
        return PrivateConformalClassifier(Chances(), coverage=0.7).fit(X, y).threshold_

    assert assert_follows(run, *DATA) == 1


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("model", [Scores, Chances])
def test_scores(model, delta):
    """All that a score holds; a score without probabilities learns where scores are first."""
    for metric in METRICS:
        if model is Scores and METRICS[metric].methods == ("predict_proba",):
            continue

        def run(X, y, metric=metric):
            found = private_score(model(), X, y, metric=metric, epsilon=20.0, delta=delta)
            return found.value, found.interval, found.majority, str(found)

        assert_follows(run, *DATA)


def test_scores_of_groups():
    def run(X, y):
        groups = np.where(X[:, 1] > 0.0, "a", "b")
        found = private_score(Chances(), X, y, by=groups, by_values=["a"], epsilon=20.0)
        return found.value, found.interval, found.confusion

    assert assert_follows(run, *DATA) == 1


@pytest.mark.parametrize("selection", ["exponential", "gaussian", "random_stopping"])
def test_a_search(selection):
    """The model, its parameters and the number of the run; the noise of runs is answered, too."""
    model = OutputPerturbationClassifier(classes=[0, 1], data_norm=2.0)

    def run(X, y):
        search = PrivateSearchCV(
            model, {"alpha": [0.01, 0.1]}, selection=selection, epsilon=4.0, delta=1e-5,
            random_state=3,
        ).fit(X, y)  # fmt: skip
        assert math.isfinite(search.privacy_.epsilon)
        return search.best_params_, search.best_estimator_.coef_

    with pytest.warns(match="random_state"):
        assert assert_follows(run, *DATA) >= 2
