"""Fits of tables of few rows: one selection among listed classifiers, whoever asks for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dp_halfspace.algorithms.engine.defaults import (
    SMALL_OF_SEVERAL,
    pays_for_stages,
    small_table_rule,
)
from dp_halfspace.algorithms.fit_plan import Fitted, PublicFacts, WrappedPlan, relative_weights
from dp_halfspace.algorithms.search.small_tables import BIAS, SmallTablePlan, plan_small_table
from dp_halfspace.algorithms.search.small_trees import SmallTreePlan, plan_small_tree
from dp_halfspace.algorithms.search.staged_trees import StagedTreePlan, plan_staged_tree
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.preprocessing.scalers import CellScaler, RowLengths
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.mechanisms import Permit


@dataclass(frozen=True, slots=True)
class SmallTableFit(WrappedPlan):
    """A selection for rows as they are, and the fitted attributes that it leaves.

    `counts` tells whether the errors of what is chosen are counted.
    """

    plan: SmallTablePlan | SmallTreePlan | StagedTreePlan
    attributes: Mapping[str, Any]
    counts: bool = False

    def run(self, data: TrainingData, permit: Permit) -> Fitted:
        """Choose a classifier, and write it for rows as they were given."""
        norm, weights = self.facts.data_norm, relative_weights(self.facts.class_weights)
        X = np.asarray(data.X, dtype=np.float64) / norm
        model = self.plan.run(X, data.class_indices, weights, permit)
        if model.is_prior:
            from dp_halfspace.estimators._priors import kept_prior  # noqa: PLC0415

            return kept_prior(self.facts, data.feature_names)
        coefficients, scaler = model.coefficients, None
        if model.exponent is None:
            coefficients = coefficients / norm
        else:
            scaler = CellScaler(model.exponent, norm).fit(np.zeros((1, data.X.shape[1])))
            if data.feature_names is not None:
                scaler.feature_names_in_ = data.feature_names
        own: dict[str, Any] = {"scaler_": scaler, "projection_": None}
        if self.facts.n_classes == 2:
            is_direction = model.exponent is None and bool(model.coefficients.any())
            constant = BIAS if is_direction else None
            own["row_lengths_"] = RowLengths(model.exponent or 0, norm, constant)
        return Fitted(
            np.atleast_2d(coefficients),
            np.atleast_1d(model.intercept),
            data_norm=math.inf,
            attributes={**own, **self.attributes},
            error_share=model.error_share,
        )


def plan_small_fit(
    facts: PublicFacts,
    budget: Budget,
    seed: int | None,
    attributes: Mapping[str, Any] | None = None,
    *,
    counts: bool = False,
    several: float = SMALL_OF_SEVERAL,
) -> SmallTableFit | None:
    """Fix the public numbers of a selection if the table is small; see `small_table_rule`.

    The fit leaves these `attributes`, too. A part of the budget counts the errors of what was
    chosen if `counts`; tables of more than two classes are small below `several`. Rows in chunks,
    sparse rows, rows that people own and rows with weights are left to the engine.
    """
    if facts.is_sparse or facts.is_chunked or facts.has_people or facts.has_weights:
        return None
    if not small_table_rule(
        n_samples=facts.n_privacy_units,
        n_features=facts.n_features,
        n_classes=facts.n_classes,
        epsilon=budget.epsilon,
        delta=budget.delta,
        is_scale_stated=facts.is_scale_stated,
        several=several,
        has_prior=facts.prior is not None,
    ):
        return None
    sizes = facts.n_privacy_units, facts.n_features
    is_staged = facts.n_classes > 2 and pays_for_stages(sizes[0], facts.n_classes, budget.epsilon)
    if is_staged and facts.prior is not None:
        # The engine can choose between its result and the public model, two selections cannot.
        return None
    prior = None if facts.prior is None else facts.prior.over(facts.data_norm)
    how: dict[str, Any] = {"seed": seed, "counts": counts}
    table: SmallTablePlan | SmallTreePlan | StagedTreePlan
    if facts.n_classes == 2:
        table = plan_small_table(*sizes, budget.epsilon, prior=prior, **how)
    elif is_staged:
        table = plan_staged_tree(*sizes, facts.n_classes, budget.epsilon, **how)
    else:
        table = plan_small_tree(*sizes, facts.n_classes, budget.epsilon, prior=prior, **how)
    return SmallTableFit(facts, table, attributes or {}, counts)
