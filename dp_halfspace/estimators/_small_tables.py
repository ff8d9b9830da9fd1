"""Fits of tables of few rows: one selection among listed classifiers, whoever asks for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from dp_halfspace._sklearn import label_weights, resolved_delta
from dp_halfspace._validation import TrainingData, are_chunks
from dp_halfspace.algorithms.defaults import small_table_rule
from dp_halfspace.algorithms.selection.small_tables import plan_small_table
from dp_halfspace.estimators.base import Prepared
from dp_halfspace.preprocessing.cell_scaler import CellScaler
from dp_halfspace.privacy.mechanisms import Permit


def takes_small_table(estimator: Any, data: TrainingData) -> bool:
    """Tell, by what is public, whether a fit of an estimator of this kind is one selection.

    Rows in chunks, sparse rows and rows that people own are left to the engine.
    """
    if sparse.issparse(data.X) or are_chunks(data.X) or data.people is not None:
        return False
    n_samples, n_features = data.X.shape
    return small_table_rule(
        n_samples=n_samples,
        n_features=n_features,
        n_classes=len(data.classes),
        epsilon=float(estimator.epsilon),
        delta=resolved_delta(estimator.delta, n_samples),
        is_scale_stated=estimator.data_norm is not None,
    )


def prepared_small_table(estimator: Any, data: TrainingData) -> Prepared:
    """Fix the public numbers of a selection, and its record."""
    weights = label_weights(estimator.class_weight, data.classes)
    n_samples, n_features = data.X.shape
    seed = estimator.random_state
    plan = plan_small_table(n_samples, n_features, float(estimator.epsilon), seed=seed)
    record = estimator._record(data, plan.events, **plan.public)
    norm = 1.0 if estimator.data_norm is None else float(estimator.data_norm)
    return Prepared(
        data, weights / weights.max(), plan, record, norm, clips=False, is_small_table=True
    )


def fit_small_table(estimator: Any, ready: Prepared, permit: Permit) -> None:
    """Choose a classifier, and set the fitted attributes."""
    data, norm = ready.data, ready.data_norm
    X = np.nan_to_num(np.asarray(data.X, dtype=np.float64)) / norm
    model = ready.plan.run(X, data.codes, ready.weights, permit)
    coefficients, scaler = model.coefficients, None
    if model.exponent is None:
        coefficients = coefficients / norm
    else:
        scaler = CellScaler(model.exponent, norm).fit(np.zeros((1, data.X.shape[1])))
        if data.feature_names is not None:
            scaler.feature_names_in_ = data.feature_names
    estimator.projection_ = None
    released = np.append(coefficients, model.intercept)[None, :]
    estimator._remember(ready, released, scaler)
