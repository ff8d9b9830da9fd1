"""Fits that select one of a list of classifiers, or that end with such a selection.

For a table of few rows, one classifier of a public list is selected. A public model that a
user states as a prior is on the list, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dp_halfspace.engine.plan import Fitted, PublicFacts, WrappedPlan
from dp_halfspace.estimators._priors import kept_prior
from dp_halfspace.preprocessing.scalers import CellScaler
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.door import Door
from dp_halfspace.selection.rule import COUNTS_PAY, pays_for_stages, small_table_rule
from dp_halfspace.selection.small_tables import SmallModel, TableSelection, plan_small_table
from dp_halfspace.selection.small_trees import (
    StagedSelection,
    TreeSelection,
    plan_small_tree,
    plan_staged_tree,
)


@dataclass(frozen=True, slots=True)
class SmallTableFit(WrappedPlan):
    """A selection for unscaled rows, and further fitted attributes that it sets.

    `counts` states whether the errors of the chosen classifier are counted.
    """

    plan: TableSelection | TreeSelection | StagedSelection
    counts: bool = False
    attributes: Mapping[str, Any] = field(default_factory=dict)

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

    def run(self, door: Door) -> Fitted:
        """Choose a classifier, and express it for unscaled rows."""
        norm, weights = self.facts.data_norm, self.facts.relative_weights
        rows = door.map(lambda data: replace(data, X=np.asarray(data.X, dtype=np.float64) / norm))
        model = self.plan.run(rows, self.facts.n_privacy_units, weights)
        if model.is_prior:
            return kept_prior(self.facts)
        fitted = fitted_of(model, norm)
        return replace(fitted, attributes={**fitted.attributes, **self.attributes})


def fitted_of(model: SmallModel, norm: float = 1.0) -> Fitted:
    """Return a classifier, chosen for rows divided by a public `norm`, for unscaled rows."""
    coefficients, scaler = model.coefficients, None
    if model.exponent is None:
        coefficients = coefficients / norm
    else:
        scaler = CellScaler(model.exponent, norm)
    return Fitted(
        np.atleast_2d(coefficients),
        np.atleast_1d(model.intercept),
        data_norm=math.inf,
        attributes={"scaler_": scaler, "projection_": None, "margin_": 0.0},
        error_share=model.error_share,
    )


def plan_small_fit(
    facts: PublicFacts,
    budget: Budget,
    seed: int | None,
    *,
    counts: bool | None = None,
    widths: tuple[int, ...] | None = None,
    n_unscaled: int | None = None,
) -> SmallTableFit | None:
    """Fix the public numbers of a selection if the table is small; see `small_table_rule`.

    If `counts`, a part of the budget is spent on counting the errors of the chosen classifier; None
    does so with enough records, for classes of equal weight and without a public model. `widths`
    are the numbers of encoded columns of each column of a table, without indicators of what is
    missing, and `n_unscaled` is the number of its columns of numbers without a range; None stands
    for all columns unless a scale is stated. Rows in chunks, sparse rows, rows of people, rows with
    weights and balanced classes are left to the engine.
    """
    is_refused = facts.is_chunked or facts.has_people or facts.has_weights
    if is_refused or facts.is_sparse or facts.balances_classes:
        return None
    if not small_table_rule(facts, budget, widths, n_unscaled):
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
    return SmallTableFit(facts, table, counts)
