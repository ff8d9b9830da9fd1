"""The privacy report says what was spent and keeps seed and ledger to itself."""

from dataclasses import dataclass

import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, Normalizer

from dp_halfspace import OutputPerturbationClassifier, PrivateSearchCV
from dp_halfspace.inspection import privacy_report
from tests.conftest import separated

X, Y = separated(60, 3, 2)
PRIVATE = OutputPerturbationClassifier(epsilon=5.0, classes=[0, 1], random_state=None)


@dataclass(frozen=True)
class Record:
    def summary(self):
        return "(1, 1e-6)-DP, replace-one"


class Estimator(BaseEstimator):
    def __init__(self, epsilon=1.0, classes=None, random_state=None, ledger=None):
        self.epsilon = epsilon
        self.classes = classes
        self.random_state = random_state
        self.ledger = ledger

    def fit(self):
        self.privacy_ = Record()
        return self


def test_names_estimator_record_and_public_parameters():
    lines = privacy_report(Estimator(epsilon=0.5, classes=["a", "b"]).fit()).splitlines()
    assert lines == [
        "Estimator",
        "(1, 1e-6)-DP, replace-one",
        "Parameters (all public):",
        "  classes: ['a', 'b']",
        "  epsilon: 0.5",
        "  ledger: None",
        "  random_state: None",
    ]


def test_withholds_seed_and_ledger():
    text = privacy_report(Estimator(random_state=73_519, ledger="/home/secret.db").fit())
    assert "73519" not in text.replace("_", "")
    assert "secret" not in text
    assert text.count("given, not shown") == 2


def lines_of(estimator):
    return privacy_report(clone(estimator).fit(X, Y)).splitlines()


def test_steps_that_see_private_rows_are_named():
    lines = lines_of(make_pipeline(MaxAbsScaler(), make_pipeline(Normalizer(), PRIVATE)))
    notes = [line.split(".")[0] for line in lines if line.startswith("Not covered")]
    assert notes == ["Not covered: Normalizer", "Not covered: MaxAbsScaler"]


def test_what_a_search_on_exact_scores_did_is_not_covered():
    grid = {"outputperturbationclassifier__alpha": [0.1, 1.0]}
    model = GridSearchCV(make_pipeline(Normalizer(), PRIVATE), grid, cv=KFold(2))
    lines = lines_of(model)
    assert lines[0] == "OutputPerturbationClassifier"
    assert any("the choice by GridSearchCV, its scores" in line for line in lines)


def test_a_private_search_is_reported_as_a_whole():
    search = PrivateSearchCV(PRIVATE, {"alpha": [0.1, 1.0]}, epsilon=7.0)
    lines = lines_of(make_pipeline(search))
    assert lines[0] == "PrivateSearchCV"
    assert "  epsilon: 7.0" in lines
    assert not [line for line in lines if "Not covered" in line]


@pytest.mark.parametrize("model", [make_pipeline(PRIVATE), GridSearchCV(PRIVATE, {})])
def test_an_unfitted_pipeline_or_search_is_not_fitted(model):
    with pytest.raises(NotFittedError):
        privacy_report(model)


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        make_pipeline(LogisticRegression()),
        GridSearchCV(PRIVATE, {"alpha": [1.0]}, cv=KFold(2), refit=False),
    ],
)
def test_what_has_no_record_is_said_to_have_none(model):
    with pytest.raises(ValueError, match="has no record of what it spent"):
        lines_of(model)
