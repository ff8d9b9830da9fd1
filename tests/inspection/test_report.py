"""The privacy report says what was spent and keeps seed and ledger to itself."""

import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, Normalizer

from dp_halfspace import OutputPerturbationClassifier, PrivacyLedger, PrivateSearchCV
from dp_halfspace.inspection import privacy_report
from tests.conftest import separated

X, Y = separated(60, 3, 2)
PRIVATE = OutputPerturbationClassifier(epsilon=5.0, classes=[0, 1], random_state=None)


def lines_of(estimator):
    return privacy_report(clone(estimator).fit(X, Y)).splitlines()


@pytest.mark.filterwarnings("ignore:earlier pipeline steps")
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
    model = clone(PRIVATE).set_params(epsilon=7.0)
    search = PrivateSearchCV(model, {"alpha": [0.1, 1.0]}, epsilon=7.0)
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
    with pytest.raises(ValueError, match="has no privacy record"):
        lines_of(model)


@pytest.mark.filterwarnings("ignore:random_state")
@pytest.mark.parametrize(
    "secret", [{"random_state": 918273}, {"ledger": PrivacyLedger(epsilon=9.0, delta=1e-2)}]
)
def test_seed_and_ledger_are_given_and_not_shown(secret):
    lines = lines_of(clone(PRIVATE).set_params(**secret))
    assert "918273" not in "\n".join(lines)
    for name in ("random_state", "ledger"):
        assert f"  {name}: {'given, not shown' if name in secret else None}" in lines
