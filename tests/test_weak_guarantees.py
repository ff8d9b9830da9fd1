"""What a fit says of a budget that promises little, from public numbers alone."""

import math
import warnings

import numpy as np
import pytest

from dp_halfspace import (
    AdaptiveMarginClassifier,
    OutputPerturbationClassifier,
    PrivacyWarning,
    PrivateConformalClassifier,
    PrivateSearchCV,
)
from dp_halfspace.metrics import private_score
from dp_halfspace.preprocessing import PrivateScaler
from tests.conftest import separated
from tests.model_selection.prefit_models import Rare, Several

X, Y = separated(60, 3)
MODEL = OutputPerturbationClassifier(classes=[0, 1], data_norm=1.0)


def said(model, data=(X, Y)):
    """Texts of all warnings of a fit but of its outlook, which has tests of its own."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(*data)
    assert {w.category for w in caught} <= {PrivacyWarning}
    assert {w.filename for w in caught} <= {__file__}
    return [text for w in caught if "expect about" not in (text := str(w.message))]


def fits():
    """Everything with a fit of its own way to pay."""
    yield lambda **budget: MODEL.__class__(classes=[0, 1], data_norm=1.0, **budget)
    yield lambda **budget: PrivateSearchCV(MODEL, {}, **budget)


@pytest.mark.parametrize("kind", fits())
def test_a_large_epsilon_is_said_once(kind):
    (text,) = said(kind(epsilon=10.0))
    assert text.startswith("epsilon=10 is a weak guarantee")
    assert "exp(10)" in text
    assert said(kind(epsilon=9.99)) == []


def test_no_guarantee_at_all_was_asked_for():
    assert said(MODEL.__class__(classes=[0, 1], data_norm=1.0, epsilon=math.inf)) == []


@pytest.mark.parametrize("kind", fits())
def test_a_large_delta_is_said_once(kind):
    (text,) = said(kind(delta=0.02))
    assert text.startswith("delta=0.02 is more than 1/n for 60 records")
    assert said(kind(delta=1.0 / 60.0)) == []


def test_of_people_their_number_counts():
    model = AdaptiveMarginClassifier(classes=[0, 1], data_norm=1.0, delta=0.05, epsilon=1.0)
    with pytest.warns(PrivacyWarning, match="more than 1/n for 30 persons"):
        model.fit(X, Y, groups=np.arange(60) // 2)


def test_what_wraps_a_model_says_it_too():
    rows, labels = Several().records(np.random.default_rng(0), 60)
    (text,) = said(PrivateConformalClassifier(Several(), epsilon=12.0), (rows, labels))
    assert text.startswith("epsilon=12 is a weak guarantee")


def test_a_scaler_says_it_too():
    (text,) = said(PrivateScaler(epsilon=12.0), (X,))
    assert text.startswith("epsilon=12 is a weak guarantee")


def test_a_score_says_it_too():
    with pytest.warns(PrivacyWarning) as caught:
        private_score(Rare(), X, Y, epsilon=10.0, delta=0.02)
    first, second = (str(w.message) for w in caught)
    assert first.startswith("epsilon=10 is a weak guarantee")
    assert second.startswith("delta=0.02 is more than 1/n for 60 records")
    assert {w.filename for w in caught} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        private_score(Rare(), X, Y, epsilon=9.99)
        private_score(Rare(), X, Y, epsilon=math.inf)


def test_nothing_of_the_data_is_said():
    rng = np.random.default_rng(0)
    texts = {
        tuple(said(MODEL.__class__(classes=[0, 1], epsilon=11.0, delta=0.1), (rows, labels)))
        for rows, labels in ((X, Y), (1e6 * X, 1 - Y), (rng.random((60, 3)), 0 * Y))
    }
    assert len(texts) == 1
    assert len(texts.pop()) >= 2


def test_a_plan_says_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        MODEL.__class__(classes=[0, 1], data_norm=1.0, epsilon=50.0).plan(X, Y)
