"""Accuracy by rule, without tuning, within one budget: digits, and the benchmark data."""

import math
import os

import numpy as np
import pytest
from sklearn.datasets import load_digits

import dp_halfspace
from benchmarks.problems import load

# What a fit exceeds, which reaches .87 with standard deviation .012
# (adaptive margin), .81 with .035 (output perturbation).
DIGITS = [
    ("AdaptiveMarginClassifier", {"epsilon": 3.0}, 0.75),
    ("ObjectivePerturbationClassifier", {"epsilon": 8.0}, 0.72),
    ("ObjectivePerturbationClassifier", {"epsilon": 8.0, "delta": 0.0}, 0.7),
    ("OutputPerturbationClassifier", {"epsilon": 8.0}, 0.65),
]


@pytest.mark.parametrize(("name", "params", "least"), DIGITS)
def test_digits_within_one_budget(name, params, least):
    X, y = load_digits(return_X_y=True)
    X = X / 16
    model = getattr(dp_halfspace, name)(data_norm=4.0, classes=range(10), **params)
    assert model.fit(X[:1257], y[:1257]).score(X[1257:], y[1257:]) > least
    assert model.privacy_.epsilon == params["epsilon"]


ADAPTIVE, KERNEL = "AdaptiveMarginClassifier", "PrivateKernelClassifier"
LABEL, OUTPUT = "LabelPrivateClassifier", "OutputPerturbationClassifier"
# Each goal is above the share of the majority class (.905 of ijcnn1, .946 of reuters, .764 of
# adult, .541 of satimage), and at least four standard errors of a mean of six fits below what such
# fits reach (docs/benchmarks.md). Since there is one engine for all classes, sparse rows are fitted
# less accurately, those of reuters no better than by the majority class below epsilon 3, and so are
# rows before output perturbation.
GOALS = [
    (ADAPTIVE, "satimage", 6.0, {0.1: 0.85, 1.0: 0.911}),
    (ADAPTIVE, "ijcnn1", 2.0, {0.3: 0.915, 1.0: 0.928}),
    (ADAPTIVE, "adult", math.sqrt(14), {0.1: 0.82, 1.0: 0.845}),
    (ADAPTIVE, "reuters", 1.0, {3.0: 0.953}),
    (OUTPUT, "satimage", 6.0, {0.3: 0.878, 1.0: 0.9}),
    (OUTPUT, "satimage6", 6.0, {0.3: 0.724, 1.0: 0.73}),
    (OUTPUT, "ijcnn1", 2.0, {0.3: 0.893, 1.0: 0.904}),
    (OUTPUT, "adult", math.sqrt(14), {0.3: 0.827, 1.0: 0.839}),
    (KERNEL, "satimage", 6.0, {0.3: 0.899, 1.0: 0.922, 3.0: 0.93}),
    (KERNEL, "ijcnn1", 2.0, {0.3: 0.92, 1.0: 0.928, 3.0: 0.938}),
    (KERNEL, "adult", math.sqrt(14), {0.3: 0.84, 1.0: 0.844, 3.0: 0.847}),
    (LABEL, "satimage", None, {0.3: 0.924, 1.0: 0.934, 3.0: 0.939}),
]


@pytest.mark.slow
@pytest.mark.skipif("DP_HALFSPACE_DATA" not in os.environ, reason="needs the benchmark data")
@pytest.mark.parametrize(("name", "table", "norm", "goals"), GOALS)
def test_accuracy_on_real_data(name, table, norm, goals):
    """Means of six fits, of rows in the layout in which they are documented."""
    data = load(table)
    for epsilon, goal in goals.items():
        model = getattr(dp_halfspace, name)(epsilon=epsilon, classes=data.classes)
        model.set_params(**({"data_norm": norm} if norm else {}))
        scores = [
            model.fit(data.X_train, data.y_train).score(data.X_test, data.y_test) for _ in range(6)
        ]
        assert np.mean(scores) > goal
