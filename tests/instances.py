"""The one table of estimator instances that every common test runs over."""

from __future__ import annotations

import inspect
import math
from functools import cache
from typing import Any

import numpy as np

import dp_halfspace

# For each public estimator: variants that take different paths through the code. Where none
# is stated, rows are in public units of scale one.
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "AdaptiveMarginClassifier": [
        {"data_norm": None},
        {},
        {"data_norm": None, "solver": "noisy_gd"},
        {"solver": "noisy_gd"},
        {"delta": 0.0},
        {"solver": "objective_perturbation"},
        {"margin": 0.1},
        {"margin": 0.2, "iterate": "last"},
        {"margin": 0.2, "iterate": "mean"},
        {"selection": "exponential"},
    ],
    "LabelPrivateClassifier": [
        {},
        {"delta": 0.0, "n_fourier": 100},
        {"kernel": "linear", "n_components": None, "whitening": 0.0},
        {"mechanism": "randomized_response", "n_fourier": 100},
        {"mechanism": "randomized_response", "n_fourier": 100, "delta": 0.0},
        {"mechanism": "net", "n_fourier": 100},
        {"mechanism": "net", "n_fourier": 100, "delta": 0.0},
        {"mechanism": "net", "n_fourier": 100, "margin": 0.1},
    ],
    "ObjectivePerturbationClassifier": [
        {"data_norm": None},
        {},
        {"delta": 0.0},
        {"rows": "clipped"},
        {"loss": "logistic", "rows": "clipped", "delta": 0.0},
        {"loss": "huber_hinge"},
        {"loss": "huber_hinge", "preconditioner": False, "delta": 0.0},
        {"alpha": 0.5},
    ],
    "OutputPerturbationClassifier": [
        {"data_norm": None},
        {},
        {"preconditioner": False},
        {"delta": 0.0},
        {"loss": "huber_hinge"},
        {"loss": "huber_hinge", "delta": 0.0},
        {"loss": "hinge"},
        {"loss": "squared_hinge"},
        {"loss": "squared"},
        {"tilt": 0.5},
        {"tilt": 0.2, "loss": "squared", "delta": 0.0},
        {"adversary_radius": 0.2},
        {"adversary_radius": 0.1, "adversary_norm": "inf", "loss": "huber_hinge", "delta": 0.0},
        {"tilt": 0.3, "adversary_radius": 0.1, "loss": "hinge"},
    ],
    "PrivateAUCClassifier": [
        {"data_norm": None},
        {},
        {"delta": 0.0, "threshold_share": 0.1},
        {"mechanism": "objective"},
        {"mechanism": "objective", "delta": 0.0},
        {"mechanism": "output", "loss": "squared"},
        {"mechanism": "output", "delta": 0.0},
    ],
    "PrivateKernelClassifier": [
        {"data_norm": None},
        {},
        {"kernel": "additive", "n_components": 600},
        {"kernel": "rbf"},
        {"kernel": "rbf", "length_scale": 2.0, "n_components": 101, "cache_size": 0.0},
        {"kernel": "polynomial", "degree": 2, "n_components": 64},
        {"kernel": "rbf", "delta": 0.0, "n_components": 46},
        {"kernel": "additive", "delta": 0.0},
        {"kernel": "rbf", "margin": 0.2, "n_components": 64},
        {"kernel": "rbf", "margin": "select", "n_components": 64},
        {"kernel": "rbf", "solver": "objective_perturbation", "n_components": 32},
        {"kernel": "rbf", "solver": "phased_prox", "margin": 0.2, "n_components": 32},
    ],
    "PureHalfspaceClassifier": [
        {"data_norm": None},
        {},
        {"n_stages": 1},
        {"projection": "rademacher", "n_components": 5},
        {"n_stages": 3, "n_directions": 5000},
        {"margin": 0.3, "n_stages": 2, "n_directions": 2000},
    ],
    "PureNetworkClassifier": [
        {"data_norm": None, "n_candidates": 500},
        {"n_candidates": 500},
        {"n_hidden": 3, "n_candidates": 300, "projection": "rademacher", "n_components": 3},
        {"n_hidden": (4, 2), "n_candidates": 300},
    ],
}

# Not for scikit-learn's checks: one of them weights a class by 1e7 and expects it to be
# predicted nearly everywhere, which no halfspace through the origin can do, and no ranking
# whose threshold is given.
THROUGH_ORIGIN: dict[str, list[dict[str, Any]]] = {
    "AdaptiveMarginClassifier": [{"fit_intercept": False}],
    "LabelPrivateClassifier": [{"fit_intercept": False}],
    "ObjectivePerturbationClassifier": [{"fit_intercept": False}],
    "OutputPerturbationClassifier": [{"fit_intercept": False}],
    "PrivateAUCClassifier": [
        {"fit_intercept": False},
        {"class_counts": [200, 200], "threshold": 0.0},
    ],
    "PrivateKernelClassifier": [{"fit_intercept": False}],
    "PureHalfspaceClassifier": [{"fit_intercept": False}],
    "PureNetworkClassifier": [{"fit_intercept": False, "n_candidates": 300}],
}

# Further ways of AdaptiveMarginClassifier, for its own tests and the cheap ones of all.
WAYS: list[dict[str, Any]] = [
    {"margin": 0.1},
    {"margin": 0.1, "iterate": "last"},
    {"solver": "objective_perturbation", "margin": 0.1},
    {"solver": "phased_prox"},
    {"solver": "phased_prox", "margin": 0.1},
    {"margin": [0.05, 0.2], "selection": "exponential"},
    {"margin": [0.05, 0.2], "selection": "gaussian", "solver": "phased_prox"},
    {"margin": [0.05, 0.2], "selection": "random_stopping", "solver": "phased_prox"},
    {"margin": 0.3, "projection": "rademacher", "n_components": 4},
    {"projection": "hadamard", "n_components": 4},
    {"solver": "phased_prox", "projection": "hadamard", "margin": 0.3, "n_components": 4},
]

# What the classes that do not protect whole records protect instead.
_ADJACENCY = {"LabelPrivateClassifier": "replace-one-label"}

# Classes that refuse a public product of records and epsilon below this.
_SMALLEST_BUDGET = {"PureNetworkClassifier": 20.0}

# Parameters that tell variants apart.
SHOWN = {
    "loss", "delta", "alpha", "rows", "data_norm", "fit_intercept", "solver", "margin", "selection",
    "mechanism", "threshold", "kernel", "preconditioner", "cache_size", "projection",
    "n_stages", "n_hidden", "tilt", "adversary_radius", "adversary_norm",
}  # fmt: skip

# Tables of strings and missing values have common tests of their own,
# tests/estimators/test_table.py, and so have classes that wrap a fitted model.
_OWN_TESTS = {
    "PrivateConformalClassifier", "PrivateTableClassifier", "PrivateThresholdClassifier",
}  # fmt: skip
ESTIMATORS = [n for n in dp_halfspace.__all__ if n.endswith("Classifier") and n not in _OWN_TESTS]


def _scale(name: str) -> dict[str, Any]:
    """Return the public scale of rows of a variant that states none."""
    return {} if name == "LabelPrivateClassifier" else {"data_norm": 1.0}


def made(name: str, **params: Any) -> Any:
    """Return an estimator by its name; networks choose among few candidates."""
    few = {"n_candidates": 500} if name == "PureNetworkClassifier" else {}
    return getattr(dp_halfspace, name)(**{**few, **params})


def instances(*, through_origin: bool = True, **common: Any) -> list[Any]:
    """Every variant of every estimator, with `common` parameters on top."""
    return [
        getattr(dp_halfspace, name)(**{**_scale(name), **variant, **common})
        for name in ESTIMATORS
        for variant in VARIANTS[name] + (THROUGH_ORIGIN.get(name, []) if through_origin else [])
    ]


def with_ways() -> list[Any]:
    """Every variant, and the further ways."""
    return [
        *instances(),
        *(dp_halfspace.AdaptiveMarginClassifier(data_norm=1.0, **way) for way in WAYS),
    ]


def adjacency(estimator: Any) -> str:
    """Return which data sets are neighbours for an estimator."""
    return _ADJACENCY.get(type(estimator).__name__, "replace-one")


def with_enough_records(estimator: Any, *columns: Any) -> list[Any]:
    """Repeat records until an estimator takes so few of them."""
    smallest = _SMALLEST_BUDGET.get(type(estimator).__name__, 0.0)
    times = max(1, math.ceil(smallest / estimator.epsilon / len(columns[0])))
    return [np.concatenate([column] * times) for column in columns]


@cache
def _defaults(kind: type) -> dict[str, Any]:
    return {k: v.default for k, v in inspect.signature(kind).parameters.items()}


def label(estimator: Any) -> str:
    """Name a variant in the list of tests."""
    name = type(estimator).__name__
    usual = {**_defaults(type(estimator)), **_scale(name)}
    params = estimator.get_params(deep=False).items()
    changed = {k: v for k, v in params if k in SHOWN and v != usual[k]}
    return name + "-" + "-".join(f"{k}={v}" for k, v in changed.items())
