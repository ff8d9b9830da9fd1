"""Fits that select one of a list of classifiers, or that end with such a selection.

For a table of few rows, one classifier of a public list is selected. A public model that a
user states as a prior is on the list, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from dp_halfspace._params import NUMBER_RANGE
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine.plan import (
    Fitted,
    LinearPrior,
    PublicFacts,
    WrappedPlan,
    relative_weights,
)
from dp_halfspace.engine.scales import ColumnScales
from dp_halfspace.preprocessing.scalers import CellScaler, ColumnScaler
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.mechanisms import Permit
from dp_halfspace.selection.rule import COUNTS_PAY, pays_for_stages, small_table_rule
from dp_halfspace.selection.small_tables import TableSelection, plan_small_table
from dp_halfspace.selection.small_trees import (
    StagedSelection,
    TreeSelection,
    plan_small_tree,
    plan_staged_tree,
)


@dataclass(frozen=True, slots=True)
class SmallTableFit(WrappedPlan):
    """A selection for unscaled rows, and the fitted attributes that it sets.

    `counts` states whether the errors of the chosen classifier are counted. Rows are divided by
    `norm_of_rows` before features are computed; infinity for an estimator without features.
    """

    plan: TableSelection | TreeSelection | StagedSelection
    attributes: Mapping[str, Any]
    counts: bool = False
    norm_of_rows: float = math.inf

    @property
    def asks(self) -> tuple[str, ...]:
        """What each event asks for, in words."""
        if isinstance(self.plan, StagedSelection):
            steps = ("a first cut", "trees on both sides of it", "number of their errors")
            return steps[: len(self.events)]
        one = f"one of {self.plan.public['n_candidates']} listed classifiers"
        return (f"{one}, and the number of its errors" if self.counts else one,)

    @property
    def public(self) -> Mapping[str, Any]:
        """Public facts for the record."""
        prior = self.facts.prior
        return {**self.plan.public, **({} if prior is None else {"prior": prior.text})}

    def run(self, data: TrainingData, permit: Permit) -> Fitted:
        """Choose a classifier, and express it for unscaled rows."""
        norm, weights = self.facts.data_norm, relative_weights(self.facts.class_weights)
        X = np.asarray(data.X, dtype=np.float64) / norm
        model = self.plan.run(X, data.class_indices, weights, permit)
        if model.is_prior:
            return kept_prior(self.facts)
        coefficients, scaler = model.coefficients, None
        if model.exponent is None:
            coefficients = coefficients / norm
        else:
            scaler = CellScaler(model.exponent, norm)
        own: dict[str, Any] = {"scaler_": scaler, "projection_": None}
        return Fitted(
            np.atleast_2d(coefficients),
            np.atleast_1d(model.intercept),
            data_norm=self.norm_of_rows,
            attributes={**own, **self.attributes},
            error_share=model.error_share,
        )


def plan_small_fit(
    facts: PublicFacts,
    budget: Budget,
    seed: int | None,
    attributes: Mapping[str, Any] | None = None,
    *,
    counts: bool | None = None,
    n_indicators: int = 0,
) -> SmallTableFit | None:
    """Fix the public numbers of a selection if the table is small; see `small_table_rule`.

    The fit also sets these `attributes`. If `counts`, a part of the budget is spent on counting the
    errors of the chosen classifier; None does so with enough records, for classes of equal weight
    and without a public model. The rule does not count the last `n_indicators` columns, which
    show what is missing. Rows in chunks, sparse rows, rows of people and rows with weights are left
    to the engine.
    """
    if facts.is_sparse or facts.is_chunked or facts.has_people or facts.has_weights:
        return None
    if not small_table_rule(
        n_samples=facts.n_privacy_units,
        n_features=facts.n_features - n_indicators,
        n_classes=facts.n_classes,
        epsilon=budget.epsilon,
        delta=budget.delta,
        has_prior=facts.prior is not None,
    ):
        return None
    sizes = facts.n_privacy_units, facts.n_features
    if counts is None:
        is_plain = facts.prior is None and len(set(facts.class_weights)) == 1
        counts = is_plain and sizes[0] * budget.epsilon >= COUNTS_PAY
    prior = None if facts.prior is None else facts.prior.over(facts.data_norm)
    how: dict[str, Any] = {"seed": seed, "counts": counts}
    table: TableSelection | TreeSelection | StagedSelection
    if facts.n_classes == 2:
        table = plan_small_table(*sizes, budget.epsilon, prior=prior, **how)
    elif prior is None and pays_for_stages(sizes[0], facts.n_classes, budget.epsilon):
        table = plan_staged_tree(*sizes, facts.n_classes, budget.epsilon, **how)
    else:
        table = plan_small_tree(*sizes, facts.n_classes, budget.epsilon, prior=prior, **how)
    return SmallTableFit(facts, table, attributes or {}, counts)


FloatArray = NDArray[np.float64]

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
    center = 0.0 if step.mean_ is None else step.mean_
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
