"""Fits of tables of few rows: one selection among listed classifiers, whoever asks for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from dp_halfspace._params import label_weights
from dp_halfspace.algorithms.search.small_tables import BIAS, plan_small_table
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.estimators.base import Prepared
from dp_halfspace.preprocessing.cell_scaler import CellScaler, RowLengths
from dp_halfspace.privacy.mechanisms import Permit


def planned_small_table(estimator: Any, data: TrainingData, *, counts: bool = False) -> Prepared:
    """Fix the public numbers of a selection, and its record.

    A part of the budget counts the errors of what was chosen if `counts`.
    """
    weights = label_weights(estimator.class_weight, data.classes)
    n_samples, n_features = data.X.shape
    budget, seed = float(estimator.epsilon), estimator.random_state
    plan = plan_small_table(n_samples, n_features, budget, seed=seed, counts=counts)
    record = estimator._record(data, plan.events, **plan.public)
    norm = 1.0 if estimator.data_norm is None else float(estimator.data_norm)
    return Prepared(
        data, weights / weights.max(), plan, record, norm, clips=False, is_small_table=True
    )


def fit_small_table(estimator: Any, ready: Prepared, permit: Permit) -> float:
    """Choose a classifier, and set the fitted attributes; return its share of errors."""
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
    is_direction = model.exponent is None and bool(model.coefficients.any())
    constant = BIAS if is_direction else None
    estimator.row_lengths_ = RowLengths(model.exponent or 0, norm, constant)
    return float(model.error_share)
