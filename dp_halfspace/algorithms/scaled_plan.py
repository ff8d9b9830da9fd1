"""Fits of columns in their original units: learnt column scales, then a fit in these scales."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dp_halfspace.algorithms.engine.column_scales import (
    ColumnScalesPlan,
    affordable_scales,
    in_column_scales,
)
from dp_halfspace.algorithms.fit_plan import FitPlan, Fitted, PublicFacts
from dp_halfspace.data.validation import TrainingData, are_chunks
from dp_halfspace.exceptions import BudgetError
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.mechanisms import Permit
from dp_halfspace.privacy.record import smallest_delta, smallest_epsilon

# Fraction of the budget that scales and fit together must use; how often that is aimed at, and at
# which fraction; by how much the budget of the fit is lowered afterwards, and how often.
_LEAST_USED, _AIMS, _AIM = 1.0 - 1e-4, 12, 1.0 - 3e-5
_TRIES, _LOWER = 300, 0.99


@dataclass(frozen=True, slots=True)
class ScaledPlan(FitPlan):
    """Release the scales of the columns, then run the inner plan on rows in these scales.

    Without `scales` columns are taken as they are, and a missing entry becomes zero.
    """

    scales: ColumnScalesPlan | None
    inner: FitPlan

    @property
    def events(self) -> tuple[Event, ...]:
        """What a run releases."""
        return (*(() if self.scales is None else self.scales.events), *self.inner.events)

    @property
    def public(self) -> Mapping[str, Any]:
        """What the record says about it."""
        is_learnt = self.scales is not None
        norm = None if is_learnt else 1.0
        return {**self.inner.public, "data_norm": norm, "private_units": is_learnt}

    @property
    def takes(self) -> frozenset[str]:
        """What the inner plan takes: scales are sums over rows, and read no weights."""
        return self.inner.takes

    def run(self, data: TrainingData, permit: Permit) -> Fitted:
        """Learn the scales, and fit a copy of the rows in the precision that the plan counted."""
        if self.scales is None:
            return self.inner.run(replace(data, X=_without_missing(data.X)), permit)
        scales = self.scales.run(data.X, permit, data.people)
        kind = np.float32 if self.inner.is_single else np.float64
        rows = replace(data, X=in_column_scales(data.X, scales, kind=kind))
        return replace(self.inner.run(rows, permit), scales=scales)


def _without_missing(X: Any) -> Any:
    """Return rows with zeros in the place of missing entries; sparse rows have none."""
    if are_chunks(X):
        return X.each(np.nan_to_num)
    return np.nan_to_num(X) if isinstance(X, np.ndarray) else X


def plan_scaled(
    plan: Callable[[PublicFacts, Budget], FitPlan], facts: PublicFacts, budget: Budget
) -> ScaledPlan:
    """Divide a budget between the scales of the columns and a fit in these scales.

    `plan` is that of the fit, a function of public facts and of its part of the budget.
    """
    n_features, epsilon, delta = facts.n_features, budget.epsilon, budget.delta
    paid = None
    if not facts.is_sparse:
        paid = affordable_scales(facts.n_privacy_units, n_features, budget)
    if paid is None:
        return ScaledPlan(None, plan(facts, budget))
    scales, rest = paid
    left = rest.epsilon
    scaled = replace(facts, data_norm=math.sqrt(n_features), in_column_scales=True)
    for trial in range(_TRIES):
        found = ScaledPlan(scales, plan(scaled, Budget.of(left, delta)))
        aims = delta > 0 and trial < _AIMS and math.isfinite(epsilon)
        events = found.events
        fits = math.isinf(epsilon) or smallest_delta(events, epsilon) <= delta
        if fits and (not aims or smallest_delta(events, _LEAST_USED * epsilon) > delta):
            return found
        # Only Gaussian parts divide exactly: others leave more or less than their mu says.
        used = max(smallest_epsilon(events, delta), 0.5 * epsilon) if aims else epsilon
        left *= _AIM * epsilon / used if aims else _LOWER
    raise BudgetError(
        f"epsilon={epsilon:g} leaves nothing for the model beside the column scales: "
        "give data_norm, the PUBLIC scale of a row, or a larger epsilon"
    )
