"""A threshold and prediction sets of rows in chunks are those of the same rows in an array."""

import numpy as np
import pandas as pd
import pytest

from dp_halfspace import (
    AdaptiveMarginClassifier,
    PrivateConformalClassifier,
    PrivateThresholdClassifier,
)
from dp_halfspace.datasets import in_chunks

X = np.random.default_rng(0).standard_normal((3000, 3))
Y = (X[:, 0] > 0.0).astype(int)
MODEL = AdaptiveMarginClassifier(classes=[0, 1], epsilon=9.0).fit(X, Y)


def array_of_dask(rows):
    return pytest.importorskip("dask.array").from_array(rows, chunks=(1000, 3))


def frame_of_dask(rows):
    return pytest.importorskip("dask.dataframe").from_pandas(pd.DataFrame(rows), npartitions=3)


@pytest.mark.parametrize("cut", [lambda rows: in_chunks(rows, 1000), array_of_dask, frame_of_dask])
def test_rows_in_chunks_are_predicted(cut):
    threshold = PrivateThresholdClassifier(MODEL, epsilon=9.0).fit(X, Y)
    assert np.asarray(threshold.predict(cut(X))).tolist() == threshold.predict(X).tolist()
    assert threshold.score(cut(X), Y) == threshold.score(X, Y)
    sets = PrivateConformalClassifier(MODEL, epsilon=9.0).fit(X, Y)
    assert np.asarray(sets.predict_set(cut(X))).tolist() == sets.predict_set(X).tolist()
