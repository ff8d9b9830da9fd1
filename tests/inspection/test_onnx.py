"""A linear model as an ONNX graph predicts what it predicts."""

import sys
import warnings

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from dp_halfspace import (
    AdaptiveMarginClassifier,
    OutputPerturbationClassifier,
    PrivacyWarning,
    PrivateKernelClassifier,
    PrivateThresholdClassifier,
    PureNetworkClassifier,
)
from dp_halfspace.inspection import natural_coefficients, to_onnx
from dp_halfspace.preprocessing import PublicScaler
from dp_halfspace.preprocessing.scalers import CellScaler, RowLengths

RNG = np.random.default_rng(11)
X = np.column_stack([RNG.normal(55, 12, 3000), RNG.normal(260_000, 40_000, 3000)])
X = X.astype(np.float32)
X[::7, 1] = np.nan
Y = (X[:, 0] > 58).astype(int) + (X[:, 0] > 70)
RANGES = PublicScaler([(0, 120), (0, 600_000)])
STATED = {"data_norm": 1.0, "epsilon": 3.0}
SHORT = {"data_norm": 0.3, "epsilon": 3.0}


def equal_predictions(model, rows):
    """Compare a graph with its model."""
    reference = pytest.importorskip("onnx.reference")
    found, scores = reference.ReferenceEvaluator(to_onnx(model)).run(None, {"X": rows})
    expected = model.decision_function(rows)
    assert scores.dtype == np.float32
    assert scores.shape == expected.shape
    np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
    assert found.tolist() == model.predict(rows).tolist()


@pytest.mark.parametrize(
    ("model", "labels"),
    [
        (AdaptiveMarginClassifier(epsilon=3.0), [0, 1]),
        (AdaptiveMarginClassifier(epsilon=3.0), [0, 1, 2]),
        (AdaptiveMarginClassifier(epsilon=3.0), ["low", "some", "very high"]),
        (AdaptiveMarginClassifier(epsilon=3.0), [False, True]),
        (make_pipeline(RANGES, AdaptiveMarginClassifier(**STATED)), [-1.0, 1.0]),
        # Rows longer than data_norm are scaled down to it.
        (
            make_pipeline(RANGES, OutputPerturbationClassifier(**{**STATED, "data_norm": 0.3})),
            [0, 1],
        ),
        (make_pipeline(RANGES, AdaptiveMarginClassifier(epsilon=3.0)), ["a", "b"]),
        (PrivateKernelClassifier(n_components=2, epsilon=3.0), [0, 1]),
    ],
    ids=["two", "three", "texts", "truth", "public", "clipped", "both", "columns alone"],
)
def test_predictions_are_those_of_the_model(model, labels):
    pytest.importorskip("onnx")
    last = model[-1] if hasattr(model, "steps") else model
    last.set_params(classes=labels)
    model.fit(X, np.array(labels)[np.minimum(Y, len(labels) - 1)])
    equal_predictions(model, X)
    if len(labels) == 2:
        assert len(set(model.predict(X).tolist())) == 2


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("norm", [None, 700_000.0])
def test_selections_for_small_tables_predict_the_same(norm, n_classes):
    """They are linear in public cells, and with two classes divided by a length of the row."""
    rows, labels = X[:600], np.minimum(Y, n_classes - 1)[:600]
    if norm is not None:
        rows = np.nan_to_num(rows, nan=250_000.0)
    for epsilon in (0.25, 0.2):
        model = AdaptiveMarginClassifier(epsilon=epsilon, classes=range(n_classes), data_norm=norm)
        equal_predictions(model.fit(rows, labels), rows)
        assert (model.scaler_ is None) or isinstance(model.scaler_, CellScaler)
        with pytest.raises(ValueError, match="no linear score"):
            natural_coefficients(model)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("projection", [None, "rademacher", "hadamard"])
@pytest.mark.parametrize("n_hidden", [3, [3, 2]])
def test_networks_predict_the_same(n_hidden, projection):
    rows = RANGES.fit_transform(X)[:, [0, 1, 0, 1]].astype(np.float32)
    model = PureNetworkClassifier(
        n_hidden=n_hidden,
        n_candidates=100,
        projection=projection,
        n_components=2,
        data_norm=1.2,
        classes=[0, 1],
        epsilon=3.0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        model.fit(rows[:400], (Y > 0).astype(int)[:400])
    equal_predictions(model, rows)
    with pytest.raises(ValueError, match="no linear score"):
        natural_coefficients(model)


@pytest.mark.parametrize("constant", [None, 0.2])
def test_every_cell_is_that_of_the_model(constant):
    """Also next to each border, and for rows whose scores are divided by their lengths."""
    rows = X[:600, :1]
    model = AdaptiveMarginClassifier(epsilon=0.4, classes=[0, 1], data_norm=1.0)
    model.fit(rows, (Y > 0)[:600])
    model.scaler_ = CellScaler(4)
    model.scaler_.fit(rows)
    model.row_lengths_ = RowLengths(4, 1.0, constant)
    model.coef_, model.intercept_ = np.array([[1.0]]), np.array([0.5])
    ends = 16.0 * np.sinh((np.arange(1, 2**14 + 1) - 0.5) / 256)
    near = np.float32(ends[ends < 3e38])
    near = np.concatenate([near, np.nextafter(near, np.float32(0.0)), [np.float32(3e38), 0.0]])
    equal_predictions(model, np.concatenate([near, -near])[:, None])


def test_what_is_not_linear_is_refused():
    pytest.importorskip("onnx")
    model = PrivateKernelClassifier(kernel="additive", classes=[0, 1]).fit(X, Y > 0)
    with pytest.raises(ValueError, match="linear in features"):
        to_onnx(model)


def test_what_wraps_a_linear_model_names_the_model_to_export():
    pytest.importorskip("onnx")
    model = AdaptiveMarginClassifier(classes=[0, 1]).fit(X, (Y > 0).astype(int))
    screening = PrivateThresholdClassifier(model, epsilon=3.0).fit(X, (Y > 0).astype(int))
    for asked in (to_onnx, natural_coefficients):
        with pytest.raises(ValueError, match=f"{asked.__name__} needs a linear model.* inside"):
            asked(screening)


def test_without_onnx_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install onnx"):
        to_onnx(AdaptiveMarginClassifier())
