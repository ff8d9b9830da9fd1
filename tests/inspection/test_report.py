"""The privacy report says what was spent and keeps seed and ledger to itself."""

from dataclasses import dataclass

import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from dp_halfspace.inspection import privacy_report


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


def test_needs_a_fitted_estimator():
    with pytest.raises(NotFittedError):
        privacy_report(Estimator())
