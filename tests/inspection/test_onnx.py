"""A linear model as an ONNX graph predicts what it predicts."""

import sys

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from dp_halfspace import (
    AdaptiveMarginClassifier,
    OutputPerturbationClassifier,
    PrivateKernelClassifier,
    PrivateThresholdClassifier,
    PureNetworkClassifier,
)
from dp_halfspace.inspection import natural_coefficients, to_onnx
from dp_halfspace.preprocessing import PublicScaler

RNG = np.random.default_rng(11)
X = np.column_stack([RNG.normal(55, 12, 3000), RNG.normal(260_000, 40_000, 3000)])
X = X.astype(np.float32)
X[::7, 1] = np.nan
Y = (X[:, 0] > 58).astype(int) + (X[:, 0] > 70)
RANGES = PublicScaler([(0, 120), (0, 600_000)])
STATED = {"data_norm": 1.0, "epsilon": 3.0}


def equal_predictions(model, rows):
    """Compare a graph with its model."""
    reference = pytest.importorskip("onnx.reference")
    evaluator, expected = (
        reference.ReferenceEvaluator(to_onnx(model)),
        model.decision_function(rows),
    )
    for n in (len(rows), 1):
        found, scores = evaluator.run(None, {"X": rows[:n]})
        assert scores.dtype == np.float32
        assert scores.shape == expected[:n].shape
        close = {"rtol": 1e-6, "atol": 1e-6 * np.abs(expected).max()}
        np.testing.assert_allclose(scores, expected[:n], **close)
        assert found.tolist() == model.predict(rows[:n]).tolist()


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
            make_pipeline(
                RANGES, OutputPerturbationClassifier(preconditioner=False, data_norm=0.3)
            ),
            [0, 1],
        ),
        # Columns keep their units, and missing entries are zeros.
        (AdaptiveMarginClassifier(epsilon=0.005, margin=0.1), [0, 1]),
        (make_pipeline(RANGES, AdaptiveMarginClassifier(epsilon=3.0)), ["a", "b"]),
        (PrivateKernelClassifier(n_components=2, epsilon=3.0), [0, 1]),
    ],
    ids=["two", "three", "texts", "truth", "public", "clipped", "filled", "both", "columns alone"],
)
def test_predictions_are_those_of_the_model(model, labels):
    pytest.importorskip("onnx")
    last = model[-1] if hasattr(model, "steps") else model
    last.set_params(classes=labels)
    model.fit(X, np.array(labels)[np.minimum(Y, len(labels) - 1)])
    equal_predictions(model, X)
    if len(labels) == 2:
        assert len(set(model.predict(X).tolist())) == 2


def test_a_score_of_zero_is_one_for_the_first_label():
    model = AdaptiveMarginClassifier(classes=[0, 1]).fit(X, np.minimum(Y, 1))
    model.coef_, model.intercept_ = 0.0 * model.coef_, 0.0 * model.intercept_
    equal_predictions(model, X)


@pytest.mark.filterwarnings("ignore::dp_halfspace.PrivacyWarning")
def test_what_is_not_linear_is_refused():
    """Features, networks, and what was selected for few records."""
    pytest.importorskip("onnx")
    small = AdaptiveMarginClassifier(epsilon=0.25, classes=[0, 1])
    network = PureNetworkClassifier(data_norm=1.2, classes=[0, 1], n_candidates=100)
    rows = RANGES.fit_transform(X[:400])
    for model, given in (
        (PrivateKernelClassifier(kernel="additive", classes=[0, 1]), X),
        (small, X[:400]),
        (network, np.nan_to_num(rows)),
    ):
        model.fit(given, (Y > 0).astype(int)[: len(given)])
        with pytest.raises(ValueError, match="needs a linear score"):
            to_onnx(model)


def test_what_wraps_a_linear_model_names_the_model_to_export():
    pytest.importorskip("onnx")
    model = AdaptiveMarginClassifier(classes=[0, 1]).fit(X, (Y > 0).astype(int))
    screening = PrivateThresholdClassifier(model, epsilon=3.0).fit(X, (Y > 0).astype(int))
    for asked in (to_onnx, natural_coefficients):
        with pytest.raises(ValueError, match=f"{asked.__name__} needs a linear model.* wraps one"):
            asked(screening)


def test_without_onnx_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install .*onnx"):
        to_onnx(AdaptiveMarginClassifier())
