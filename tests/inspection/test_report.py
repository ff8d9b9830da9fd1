"""What a record covers of a pipeline or a search, and what stands around it without one."""

import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, Normalizer

from dp_halfspace import OutputPerturbationClassifier, PrivateSearchCV
from dp_halfspace.inspection.card import private_part
from tests.conftest import separated

X, Y = separated(60, 3, 2)
PRIVATE = OutputPerturbationClassifier(epsilon=5.0, classes=[0, 1], random_state=None)


def uncovered(estimator):
    """The class that has a record, and what stands around it without one."""
    inner, said = private_part(clone(estimator).fit(X, Y))
    return type(inner).__name__, [text.split(".")[0] for text in said]


@pytest.mark.filterwarnings("ignore:steps of this pipeline")
def test_steps_that_see_private_rows_are_named():
    _, said = uncovered(make_pipeline(MaxAbsScaler(), make_pipeline(Normalizer(), PRIVATE)))
    assert said == ["Not covered: Normalizer", "Not covered: MaxAbsScaler"]


def test_a_private_search_is_covered_as_a_whole():
    model = clone(PRIVATE).set_params(epsilon=7.0)
    search = PrivateSearchCV(model, {"alpha": [0.1, 1.0]}, epsilon=7.0)
    # The best model has the record of the search.
    assert uncovered(make_pipeline(search)) == ("OutputPerturbationClassifier", [])


@pytest.mark.parametrize("model", [make_pipeline(PRIVATE), PrivateSearchCV(PRIVATE, {})])
def test_an_unfitted_pipeline_or_search_is_not_fitted(model):
    with pytest.raises(NotFittedError):
        private_part(model)


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        make_pipeline(LogisticRegression()),
        GridSearchCV(PRIVATE, {"alpha": [1.0]}, cv=KFold(2)),
    ],
)
def test_what_has_no_record_is_said_to_have_none(model):
    with pytest.raises(ValueError, match="has no privacy record"):
        uncovered(model)
