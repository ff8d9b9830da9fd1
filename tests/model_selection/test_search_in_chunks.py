"""Searches on rows in chunks, which are charged once and do not fail after that."""

import numpy as np
import pytest

from dp_halfspace import OutputPerturbationClassifier, PrivacyLedger, PrivateSearchCV
from dp_halfspace.datasets import in_chunks

X = np.random.default_rng(0).standard_normal((3000, 3))
Y = (X[:, 0] > 0.0).astype(int)
MODEL = OutputPerturbationClassifier(data_norm=3.0, classes=[0, 1])


def right(model, X, y):
    return np.asarray(model.predict(X)) == y


def dask_chunks(array):
    return pytest.importorskip("dask.array").from_array(array, chunks=(1000, *array.shape[1:]))


@pytest.mark.parametrize("scoring", ["accuracy", "roc_auc", right])
@pytest.mark.parametrize("cut", [lambda array: in_chunks(array, 1000), dask_chunks])
@pytest.mark.parametrize("labels_too", [False, True])
def test_rows_and_labels_may_be_in_chunks(scoring, cut, labels_too):
    ledger = PrivacyLedger(epsilon=10.0, delta=1e-3)
    rows, labels = cut(X), cut(Y) if labels_too else Y
    grid = {"fit_intercept": [True, False]}
    search = PrivateSearchCV(MODEL, grid, epsilon=9.0, scoring=scoring, ledger=ledger)
    search.fit(rows, labels)
    assert len(ledger.entries()) == 1
    assert search.score(rows, labels) == search.score(X, Y) > 0.9
