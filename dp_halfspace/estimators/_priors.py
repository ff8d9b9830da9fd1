"""A public linear model that a user states as a prior: its numbers, and the fit that keeps it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from dp_halfspace._params import NUMBER_RANGE
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine.plan import Fitted, LinearPrior, PublicFacts
from dp_halfspace.engine.scales import ColumnScales
from dp_halfspace.preprocessing.scalers import ColumnScaler

_WANTED = (
    "prior must be a fitted linear model with coef_ and intercept_, with or without a "
    "StandardScaler before it, or a pair (coefficients, intercepts)"
)


def read_prior(prior: Any, data: TrainingData) -> LinearPrior:
    """Return the numbers of a public model, for the columns and the labels of `data`."""
    model = prior.estimator if isinstance(prior, FrozenEstimator) else prior
    if isinstance(model, tuple | list):
        if len(model) != 2:
            raise ValueError(_WANTED)
        return _checked(model[0], model[1], data)
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    last = steps[-1]
    if not all(hasattr(last, name) for name in ("coef_", "intercept_", "classes_")):
        raise ValueError(f"{_WANTED}; {type(last).__name__} has none, or is not fitted")
    if isinstance(getattr(last, "scaler_", None), ColumnScaler):
        steps = [*steps[:-1], last.scaler_, last]
    elif getattr(last, "scaler_", None) is not None:
        raise ValueError("prior uses logarithms of the columns, so it is not linear")
    if hasattr(last, "support_vectors_") and len(data.classes) > 2:
        raise ValueError("prior compares classes in pairs: use LinearSVC, which scores each class")
    names = getattr(steps[0], "feature_names_in_", None)
    seen = data.feature_names
    if names is not None and seen is not None and list(names) != list(seen):
        raise ValueError("prior was fitted to other columns than those of X, or in another order")
    found = _checked(last.coef_, last.intercept_, data, last.classes_)
    coefficients, intercepts, fill = found.coefficients, found.intercepts, found.fill
    for step in reversed(steps[:-1]):
        fill, scale = _scales(step)
        coefficients = coefficients / scale
        intercepts = intercepts - coefficients @ fill
    return LinearPrior(coefficients, intercepts, fill)


def _scales(step: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return centre and width of every column of a scaler."""
    if isinstance(step, ColumnScaler):
        scales = step._scales()[0]
        return scales.center, scales.scale
    if not isinstance(step, StandardScaler):
        raise ValueError(f"{_WANTED}; {type(step).__name__} is another step")
    # A scaler that does not centre may know the mean all the same.
    center = step.mean_ if step.with_mean else 0.0
    scale = 1.0 if step.scale_ is None else step.scale_
    ones = np.ones(step.n_features_in_)
    return center * ones, scale * ones


def _checked(
    coefficients: Any, intercepts: Any, data: TrainingData, classes: Any = None
) -> LinearPrior:
    """Validate shapes, numbers and labels, and sort the labels in the order of the fit."""
    n_features, n_classes = data.X.shape[1], len(data.classes)
    fill = np.zeros(n_features)
    size = 1 if n_classes == 2 else n_classes
    try:
        found = np.array(coefficients, dtype=np.float64).reshape(size, n_features)
        offsets = np.array(intercepts, dtype=np.float64) + np.zeros(size)
        offsets = offsets.reshape(size)
    except (TypeError, ValueError):
        raise ValueError(
            f"prior must have {size} x {n_features} coefficients and {size} intercepts: one row "
            "for two classes, else one for each class; one column for each column of X"
        ) from None
    if not (np.abs(np.column_stack([found, offsets])) <= NUMBER_RANGE[1]).all():
        raise ValueError(
            f"prior contains a number that is not finite or beyond {NUMBER_RANGE[1]:g}"
        )
    wanted = data.classes.tolist()
    own = wanted if classes is None else list(np.asarray(classes).tolist())
    if sorted(map(str, own)) != sorted(map(str, wanted)) or set(own) != set(wanted):
        raise ValueError("prior was fitted to other labels than those of classes")
    if size == 1:
        sign = 1.0 if own == wanted else -1.0
        return LinearPrior(sign * found, sign * offsets, fill)
    order = [own.index(label) for label in wanted]
    return LinearPrior(found[order], offsets[order], fill)


def kept_prior(facts: PublicFacts) -> Fitted:
    """Return the public model of `facts` like a fitted one; it fills in missing values itself."""
    prior = facts.prior
    assert prior is not None
    intercepts, scales = prior.intercepts, None
    if not (facts.is_scale_stated or facts.is_sparse):
        intercepts = intercepts + prior.coefficients @ prior.fill
        scales = ColumnScales(prior.fill, np.ones(len(prior.fill)))
    own = {"margin_": 0.0, "projection_": None}
    return Fitted(prior.coefficients, intercepts, math.inf, own, scales=scales, clip=math.inf)
