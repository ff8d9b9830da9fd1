"""Flags of floating point show rows that over- or underflow: none leaves this library.

A warning, or an exception under ``np.errstate(all="raise")``, is an output. A fit is quiet as a
whole; here is what runs outside of it, and in other threads, where settings of numpy do not follow.
"""

import warnings

import numpy as np
import pytest

from dp_halfspace import (
    AdaptiveMarginClassifier,
    LabelPrivateClassifier,
    ObjectivePerturbationClassifier,
    OutputPerturbationClassifier,
    PrivacyWarning,
    PrivateAUCClassifier,
    PrivateKernelClassifier,
    PrivateTableClassifier,
    PureNetworkClassifier,
)
from dp_halfspace.data.chunks import DaskChunks, LocalChunks
from dp_halfspace.engine.scales import ColumnScales, in_column_scales
from dp_halfspace.metrics import private_score
from dp_halfspace.preprocessing import PrivateScaler, PublicScaler
from tests.conftest import separated

RNG = np.random.default_rng(0)
ROWS, LABELS = separated(400, 3)
# Sums, squares, products and quotients of these over- and underflow, each in its own way.
WILD = RNG.choice([1e308, -1e308, 1e300, 1e-310, 5e-324, -1e-160, 1e160, 0.0, 1.0], size=(60, 3))
WILD32 = RNG.choice([3e38, -3e38, 1e-45, 1e-30, 1e25, 0.0, 1.0], size=(60, 3)).astype("f4")
STATED = {"classes": [0, 1], "data_norm": 1.0, "epsilon": 5.0}
FEATURES = {**STATED, "n_components": 16}
MODELS = {
    "margin": AdaptiveMarginClassifier(**STATED),
    "units": AdaptiveMarginClassifier(classes=[0, 1]),
    "signs": AdaptiveMarginClassifier(
        margin=0.3, projection="rademacher", n_components=2, **STATED
    ),
    "hadamard": AdaptiveMarginClassifier(
        margin=0.3, projection="hadamard", n_components=2, **STATED
    ),
    "output": OutputPerturbationClassifier(loss="logistic", **STATED),
    "softmax": OutputPerturbationClassifier(
        preconditioner=False, **{**STATED, "classes": [0, 1, 2]}
    ),
    "objective": ObjectivePerturbationClassifier(**STATED),
    "ranking": PrivateAUCClassifier(**STATED),
    "additive": PrivateKernelClassifier(classes=[0, 1]),
    "rbf": PrivateKernelClassifier(kernel="rbf", **FEATURES),
    "polynomial": PrivateKernelClassifier(kernel="polynomial", **FEATURES),
    "labels": LabelPrivateClassifier(classes=[0, 1]),
    "labels of rows as they are": LabelPrivateClassifier(kernel="linear", classes=[0, 1]),
    "network": PureNetworkClassifier(n_candidates=50, **STATED),
    "table": PrivateTableClassifier(
        classes=[0, 1], epsilon=9.0, schema=dict.fromkeys("012", "number")
    ),
    "private scaler": PrivateScaler(epsilon=5.0),
    "public scaler": PublicScaler([(0, 1e300), (-1e-300, 1e-300), (0, 1)]),
}
QUIET = pytest.mark.filterwarnings("ignore::dp_halfspace.exceptions.PrivacyWarning")


def answers(model, rows):
    """Everything that a fitted model says of rows."""
    methods = ("decision_function", "predict", "predict_proba", "transform")
    return [getattr(model, name)(rows) for name in methods if hasattr(model, name)]


@pytest.mark.sampled(10)
@QUIET
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("rows", [WILD, WILD32], ids=["f8", "f4"])
def test_predictions_raise_no_flag(name, rows):
    model = MODELS[name]
    model = model.fit(ROWS, LABELS) if hasattr(model, "classes") else model.fit(ROWS)
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        # Of public numbers: few rows, and projections to two columns.
        warnings.simplefilter("ignore", PrivacyWarning)
        for found in answers(model, rows):
            assert len(found) == len(rows)
        if hasattr(model, "plan"):
            model.plan(*((rows, LABELS[:60]) if hasattr(model, "classes") else (rows,)))


@pytest.mark.sampled(1)
@QUIET
@pytest.mark.parametrize("name", ["margin", "units", "softmax", "ranking", "table", "additive"])
def test_fits_and_predictions_in_other_threads_raise_no_flag(name):
    """Dask computes in threads that have settings of numpy of their own."""
    da = pytest.importorskip("dask.array")
    rows = np.vstack([ROWS, WILD])
    labels = np.append(LABELS, np.arange(60) % 2)
    with np.errstate(all="raise"), warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model = MODELS[name].fit(da.from_array(rows, chunks=(230, 3)), labels)
        for found in answers(model, da.from_array(WILD, chunks=(30, 3))):
            found.compute(scheduler="threads")
        private_score(model, da.from_array(rows, chunks=(230, 3)), labels)
    assert not [w for w in seen if issubclass(w.category, RuntimeWarning)]


def squared(numbers):
    return numbers * numbers


@pytest.mark.parametrize("kind", [LocalChunks, DaskChunks])
def test_what_is_computed_of_chunks_raises_no_flag(kind):
    pytest.importorskip("dask")
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        (found,) = kind.of([np.array([1e300, 1e-300])]).each(squared).values()
    assert found.tolist() == [np.inf, 0.0]


def test_rows_in_learnt_units_are_rounded_silently():
    """Of an entry near the centre of its column little is left in float32."""
    units = ColumnScales(np.zeros(3), np.ones(3))
    with np.errstate(all="raise"):
        rounded = in_column_scales(np.array([[1e-44, 1e-300, 1.0]]), units, kind=np.float32)
    assert rounded.dtype == np.float32
    assert rounded[0, 1:].tolist() == [0.0, 1.0]


class Overflowing:
    """A model of somebody else that computes with the row."""

    classes_ = np.array([0, 1])

    def decision_function(self, X):
        return X[:, 0] * 1e300 / X[:, 1]

    def predict(self, X):
        return (self.decision_function(X) > 0.0).astype(int)


@pytest.mark.parametrize("metric", ["accuracy", "roc_auc"])
def test_scores_raise_no_flag(metric):
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        found = private_score(Overflowing(), WILD, LABELS[:60], metric=metric, epsilon=5.0)
    assert 0.0 <= found.value <= 1.0
