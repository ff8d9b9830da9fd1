"""What people build around classifiers: pipelines, columns, meta-estimators, pandas output."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.model_selection import KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

import dp_halfspace
from dp_halfspace import (
    AdaptiveMarginClassifier,
    OutputPerturbationClassifier,
    PrivacyLedger,
    PrivateSearchCV,
)
from tests.conftest import separated
from tests.instances import ESTIMATORS
from tests.support import one_of_each

X, Y = separated(300, 3, 2, seed=1)


def half(rows):
    return rows / 2.0


@pytest.fixture
def frame():
    colours = np.where(Y == 1, "red", "blue")
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "colour": colours})


NUMBERS = (FunctionTransformer(half, feature_names_out="one-to-one"), ["a", "b", "c"])


def named(model):
    """Public columns under their own names, then the model."""
    columns = make_column_transformer(NUMBERS, verbose_feature_names_out=False)
    return make_pipeline(columns, model)


@one_of_each
def test_pipeline_of_columns(estimator, frame):
    """Public rules: ranges and categories that are stated, not learnt."""
    words = (OneHotEncoder(categories=[["blue", "red"]]), ["colour"])
    columns = make_column_transformer(NUMBERS, words)
    model = make_pipeline(columns, clone(estimator).set_params(epsilon=20.0, classes=[0, 1]))
    assert model.fit(frame, Y).predict(frame).shape == Y.shape
    assert model[-1].privacy_.epsilon == 20.0


SEARCH = PrivateSearchCV(OutputPerturbationClassifier(classes=[0, 1]), {"alpha": [0.01, 0.1]})


@pytest.mark.parametrize(
    "estimator",
    [*(getattr(dp_halfspace, name)(classes=[0, 1]) for name in ESTIMATORS), SEARCH],
    ids=[*ESTIMATORS, "PrivateSearchCV"],
)
def test_pandas_output_keeps_the_names_of_columns(estimator, frame):
    with sklearn.config_context(transform_output="pandas"):
        model = named(clone(estimator)).fit(frame, Y)
        assert set(model.predict(frame)) <= {0, 1}
    assert list(model[-1].feature_names_in_) == ["a", "b", "c"]


def test_one_against_rest_pays_for_every_class():
    """It works, and costs one release for each class: K classes in one fit cost one."""
    X3, y3 = separated(300, 3, 3)
    ledger = PrivacyLedger(epsilon=10.0, delta=1e-3)
    model = AdaptiveMarginClassifier(ledger=ledger)
    OneVsRestClassifier(model).fit(X3, y3)
    assert len(ledger.entries()) == 3
    model.set_params(classes=[0, 1, 2]).fit(X3, y3)
    assert len(ledger.entries()) == 4


def test_calibration_charges_every_fit():
    ledger = PrivacyLedger(epsilon=10.0, delta=1e-3)
    model = AdaptiveMarginClassifier(ledger=ledger, classes=[0, 1])
    calibrated = CalibratedClassifierCV(model, cv=KFold(3)).fit(X, Y)
    assert len(ledger.entries()) == 3
    assert calibrated.predict_proba(X).shape == (300, 2)
