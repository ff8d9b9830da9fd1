"""Fits whose classes are balanced by noisy counts: the counts first, then the fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from dp_halfspace.algorithms.engine.class_counts import (
    ClassCountPlan,
    balanced_weights,
    plan_class_counts,
)
from dp_halfspace.algorithms.engine.plan import FloatArray, noise_deviation
from dp_halfspace.algorithms.fit_plan import FitPlan, Fitted, PublicFacts
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.exceptions import BudgetError
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.mechanisms import Permit
from dp_halfspace.privacy.record import smallest_delta

# By how much the budget of the fit is lowered where its events cost more, and how often.
_LOWER, _TRIES = 0.99, 300


class WeighedPlan(FitPlan, Protocol):
    """A plan of which classes can weigh less than one for the same events."""

    def with_class_weights(self, weights: FloatArray) -> WeighedPlan:
        """Weigh the classes by numbers in [0, 1]: ``docs/proofs/rare.md``, section 3."""
        ...


@dataclass(frozen=True, slots=True)
class BalancedPlan(FitPlan):
    """Release counts of the classes, then run the inner plan with weights that balance them."""

    counts: ClassCountPlan
    inner: WeighedPlan

    @property
    def events(self) -> tuple[Event, ...]:
        """What a run releases."""
        return (*self.counts.events, *self.inner.events)

    @property
    def public(self) -> Mapping[str, Any]:
        """What the record says about it."""
        return {**self.inner.public, "private_class_counts": True}

    @property
    def takes(self) -> frozenset[str]:
        """What the inner plan takes: counts are sums over rows, of their weights."""
        return self.inner.takes

    @property
    def is_single(self) -> bool:
        """Whether the inner plan reads rows in float32."""
        return self.inner.is_single

    def run(self, data: TrainingData, permit: Permit) -> Fitted:
        """Count, weigh and fit."""
        counts = self.counts.run(data.class_indices, permit, data.people, data.weights)
        total = self.counts.total(counts)
        weights = balanced_weights(counts, noise_deviation(self.counts.noise), total)
        return self.inner.with_class_weights(weights).run(data, permit)


def plan_balanced(
    plan: Callable[[PublicFacts, Budget], Any], facts: PublicFacts, budget: Budget
) -> FitPlan:
    """Divide a budget between counts of the classes and a fit that is weighed by them.

    `plan` is that of the fit, a function of public facts and of its part of the budget; plans
    that count the classes themselves get all of it.
    """
    if budget.is_pure:
        raise ValueError(
            "class_weight='balanced' needs delta > 0: for pure epsilon give PUBLIC weights"
        )
    found: FitPlan = plan(facts, budget)
    if getattr(found, "balances_classes", False):
        return found
    if not hasattr(found, "with_class_weights"):
        raise ValueError(
            "class_weight='balanced' is not supported beside a selection among margins: give "
            "PUBLIC weights, or the default margin and selection"
        )
    sizes = (facts.n_privacy_units, facts.n_classes)
    counts, left = plan_class_counts(*sizes, budget.mu, are_weighed=facts.has_weights)
    rest = budget if budget.is_infinite else Budget.gaussian(left, budget.delta)
    for _ in range(_TRIES):
        balanced = BalancedPlan(counts, plan(facts, rest))
        epsilon = budget.epsilon
        if math.isinf(epsilon) or smallest_delta(balanced.events, epsilon) <= budget.delta:
            return balanced
        # Only Gaussian parts divide exactly: others cost more than their mu says.
        rest = Budget.of(_LOWER * rest.epsilon, budget.delta)
    raise BudgetError(
        f"epsilon={budget.epsilon:g} leaves nothing for the model beside the counts of the "
        "classes: give PUBLIC weights of the classes, or a larger epsilon"
    )
