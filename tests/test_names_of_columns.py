"""Columns with the names of attributes of tables: what is read of a frame is never their cells."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import LinearSVC

from dp_halfspace import AdaptiveMarginClassifier
from dp_halfspace._repeated_fits import _columns_of
from dp_halfspace._silence import result_or

RNG = np.random.default_rng(0)
A, Y = RNG.standard_normal(300), np.arange(300) % 2


@pytest.mark.parametrize("name", ["column_names", "columns", "shape"])
def test_fits_are_counted_by_the_names_of_columns_and_no_cell(name):
    assert _columns_of(pd.DataFrame({"a": A, name: A + Y})) == ("a", name)


@pytest.mark.parametrize("named", [True, False])
def test_a_warning_about_names_stays_one_where_warnings_are_errors(named):
    """Not "X is not numeric"."""
    rows = pd.DataFrame({"a": A, "b": A + Y}), np.column_stack([A, A + Y])
    model = AdaptiveMarginClassifier(classes=[0, 1], epsilon=5.0).fit(rows[not named], Y)
    for X in (rows[named], rows[named].astype(object)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning, match="feature names, but AdaptiveMarginClassifier"):
                model.predict(X)


def test_a_name_of_several_columns_is_refused_by_itself_or_accepted():
    """It is accepted where scikit-learn, before version 1.9, accepts it."""
    rows = pd.DataFrame(np.column_stack([A, A + Y, A]), columns=["a", "b", "a"])
    model = AdaptiveMarginClassifier(classes=[0, 1], epsilon=5.0)
    if result_or(None, lambda: LinearSVC().fit(rows, Y)) is None:
        with pytest.raises(ValueError, match=r"^X has several columns 'a': column names must be"):
            model.fit(rows, Y)
    else:
        assert len(model.fit(rows, Y).predict(rows)) == len(rows)


def test_frames_of_dask_may_have_a_column_that_is_named_like_their_chunks():
    dask = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame({"a": A, "chunks": A + Y})
    model = AdaptiveMarginClassifier(classes=[0, 1], epsilon=5.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(frame, Y)
    found = model.predict(dask.from_pandas(frame, npartitions=2)).compute()
    assert found.tolist() == model.predict(frame).tolist()
