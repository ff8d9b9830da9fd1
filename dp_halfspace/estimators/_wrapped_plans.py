"""Plans around other plans: estimated column scales, and classes balanced by noisy counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

from dp_halfspace._budget import warn_of_scales
from dp_halfspace.engine.counts import balancing_weights, count_noise, counts_asked
from dp_halfspace.engine.features import scales_pay
from dp_halfspace.engine.linear import NUMBER_SHARE, without_missing
from dp_halfspace.engine.moment import WIDEST
from dp_halfspace.engine.plan import FitPlan, Fitted, PublicFacts
from dp_halfspace.engine.scales import (
    ColumnScalesPlan,
    affordable_scales,
    in_column_scales,
)
from dp_halfspace.exceptions import BudgetError, warn_caller
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.door import Door
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.mechanisms import AdditiveNoise

# Plans a fit, a function of public facts and of its part of a budget.
Planner: TypeAlias = Callable[[PublicFacts, Budget], FitPlan]

# An attempt to divide a budget between a fit and what precedes it is accepted if it leaves at most
# this fraction of the budget unused; the next attempt aims at half of it.
_UNUSED = 6e-5
# Largest number of attempts, of which the last one that fits is taken if none is accepted.
_TRIES = 12


@dataclass(frozen=True, slots=True)
class ScaledFit(FitPlan):
    """Release the scales of the columns, then run the inner plan on rows in these scales.

    If `scales` is None, columns keep their units, and a missing entry becomes zero. The plan takes
    the inputs that the inner plan takes, since scales are sums over rows and read no weights of
    records.
    """

    scales: ColumnScalesPlan | None
    inner: FitPlan
    events: tuple[Event, ...]
    public: Mapping[str, Any]
    takes: frozenset[str]

    def run(self, door: Door) -> Fitted:
        """Estimate the scales, and fit a copy of the rows in them."""
        if self.scales is None:
            return self.inner.run(door.map(without_missing))
        scales, clip = self.scales.run(door), self.inner.column_clip
        rows = door.map(lambda data: replace(data, X=in_column_scales(data.X, scales, clip)))
        return replace(self.inner.run(rows), scales=scales, clip=clip)


def plan_rows(
    plan: Planner, facts: PublicFacts, budget: Budget, *, centres: bool = False
) -> FitPlan:
    """Divide a budget between a fit and what is released before it: column scales, class counts.

    Scales are estimated if none was stated, as far as the budget allows. A norm of the rows is no
    substitute for them if the fit centres rows, and then they are estimated where they pay.
    """
    wanted: Planner = partial(plan_balanced, plan)
    size = facts.n_privacy_units, facts.n_features
    is_plain = facts.is_sparse or facts.n_features > WIDEST or not centres
    if facts.is_scale_stated and (is_plain or not scales_pay(*size, budget.mu)):
        return wanted(facts, budget)
    paid = None if facts.is_sparse else affordable_scales(*size, budget)
    if paid is None:
        inner = wanted(facts, budget)
        if not facts.is_scale_stated:
            warn_of_unscaled_columns(facts, budget)
        public = {**inner.public, "data_norm": facts.data_norm, "private_column_scales": False}
        return ScaledFit(None, inner, inner.events, public, inner.takes)
    scales, rest = paid
    scaled = replace(
        facts,
        data_norm=math.sqrt(facts.n_features),
        is_scale_stated=False,
        in_column_scales=True,
    )
    inner = _fit_beside(
        scales.events,
        lambda left: wanted(scaled, left),
        budget,
        Budget.of(rest.epsilon, budget.delta),
        "both column scales and a model: give data_norm, the PUBLIC scale of a row, or a larger "
        "epsilon",
    )
    public = {**inner.public, "data_norm": None, "private_column_scales": True}
    return ScaledFit(scales, inner, (*scales.events, *inner.events), public, inner.takes)


def warn_of_unscaled_columns(facts: PublicFacts, budget: Budget, *, most: float = math.inf) -> None:
    """Warn that columns keep their units, by public facts alone; how X is stored is public.

    The fit estimates scales of at most so many columns, whatever the budget is.
    """
    if facts.is_sparse:
        warn_caller(
            "X is sparse, so the scales of its columns are not estimated: give dense "
            "columns (sparse_threshold=0 of ColumnTransformer, sparse_output=False of encoders) "
            "or the PUBLIC norm of a row as data_norm, which silences this warning"
        )
    elif facts.n_features > most:
        warn_caller(
            f"X has {facts.n_features} columns, and scales are estimated for at most {most}, so "
            "the columns are not scaled: if their scales differ, the model may be no better than "
            "the majority class. State the PUBLIC scale of a row as data_norm, or use fewer columns"
        )
    else:
        warn_of_scales(facts.n_privacy_units, facts.n_features, budget.epsilon)


def _fit_beside(
    first: tuple[Event, ...],
    plan: Callable[[Budget], Any],
    budget: Budget,
    left: Budget,
    purpose: str,
) -> Any:
    """Plan a fit for what other events leave of a budget; `left` is the first attempt."""
    epsilon, delta = budget.epsilon, budget.delta
    found = None
    for _ in range(_TRIES):
        inner = plan(left)
        events = (*first, *inner.events)
        if budget.is_infinite:
            return inner
        if accounting.delta(events, epsilon) <= delta:
            found = inner
            # Pure DP adds up exactly, so that all of the budget is used. An epsilon of zero, which
            # a large delta allows for, cannot be divided.
            is_whole = budget.is_pure or epsilon == 0.0
            if is_whole or accounting.delta(events, (1.0 - _UNUSED) * epsilon) > delta:
                break
        # Only Gaussian events add up exactly by their mu; others cost more or less together.
        used = max(accounting.epsilon(events, delta), 0.5 * epsilon)
        left = Budget.of(left.epsilon * (1.0 - 0.5 * _UNUSED) * epsilon / used, delta)
    if found is None:
        raise BudgetError(f"epsilon={epsilon:g} is too small for {purpose}")
    return found


@dataclass(frozen=True, slots=True)
class BalancedFit(FitPlan):
    """Release counts of the classes, then run the inner plan with weights that balance them.

    The plan takes the inputs that the inner plan takes: counts are sums of weights over rows.
    """

    facts: PublicFacts
    noise: AdditiveNoise
    inner: Any
    events: tuple[Event, ...]
    public: Mapping[str, Any]
    takes: frozenset[str]
    asks: tuple[str, ...]
    column_clip: float

    def run(self, door: Door) -> Fitted:
        """Count the classes, weigh them and run the inner plan.

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one, of a record or of a person with all rows.
        - Released: noisy counts of the classes, and what the inner plan releases.
        - Sensitivity: 1 for two classes, ``sqrt(2)`` for more classes or with weights of records.
        - Proof: ``docs/proofs/rare.md``, section 1; ``persons.md`` and ``weights.md``.
        """
        n_classes = self.facts.n_classes
        counts = door.release(lambda data: counts_asked(data, n_classes), self.noise)
        weights = balancing_weights(counts, self.facts.n_privacy_units, self.noise)
        # Weights of at most one have the same cost: docs/proofs/rare.md, Lemma 3.
        weighed: FitPlan = self.inner.with_class_weights(weights)
        fitted = weighed.run(door)
        return replace(fitted, attributes={**fitted.attributes, "class_weight_": weights})


def plan_balanced(plan: Planner, facts: PublicFacts, budget: Budget) -> FitPlan:
    """Plan a fit; divide the budget between it and counts of the classes if these balance them."""
    if not facts.balances_classes:
        return plan(facts, budget)
    if budget.is_pure:
        raise ValueError(
            "class_weight='balanced' needs delta > 0: for pure epsilon give PUBLIC weights"
        )
    if not hasattr(plan(facts, budget), "with_class_weights"):
        raise ValueError(
            "class_weight='balanced' is not supported together with a selection among "
            "margins: give PUBLIC weights, or the default margin and selection"
        )
    part, rest = budget.split(NUMBER_SHARE)
    noise = count_noise(facts.n_classes, part, has_weights=facts.has_weights)
    inner = _fit_beside(
        (noise.event,),
        lambda left: plan(facts, left),
        budget,
        rest,
        "both class counts and a model: give PUBLIC weights of the classes, or a larger epsilon",
    )
    events, public = (noise.event, *inner.events), {**inner.public, "private_class_counts": True}
    own = inner.takes, ("sizes of the classes", *inner.asks), inner.column_clip
    return BalancedFit(facts, noise, inner, events, public, *own)
