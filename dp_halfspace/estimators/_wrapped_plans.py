"""Plans around other plans: estimated column scales, and classes balanced by noisy counts.

Replacing a record changes the one count of two classes by at most one, or two counts of more
classes by one each, so that counts cost little; what is computed from noisy counts is
post-processing. No scale of noise depends on them: class weights are at most one, and every
sensitivity is computed for weight one. Proof: ``docs/proofs/rare.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from dp_halfspace._rounding import UP
from dp_halfspace.data.chunks import Chunks, sum_over_chunks
from dp_halfspace.data.people import People
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine.counts import class_counts
from dp_halfspace.engine.plan import FitPlan, Fitted, PublicFacts
from dp_halfspace.engine.scales import (
    ColumnScalesPlan,
    affordable_scales,
    in_column_scales,
)
from dp_halfspace.exceptions import BudgetError
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.mechanisms import GaussianNoise, NoNoise, Permit, noise_deviation
from dp_halfspace.rows.blocks import FloatArray

# The first attempts to divide a budget between column scales and a fit aim at this fraction of it.
_AIM = 1.0 - 3e-5
# An attempt is accepted if it uses at least this fraction of the budget.
_LEAST_USED = 1.0 - 1e-4
# Number of attempts that aim at that fraction.
_AIMS = 12
# Later attempts lower the budget of the fit by this factor until the events fit into the budget.
_LOWER = 0.99
# Largest number of attempts.
_TRIES = 300
# Least and largest share of mu^2 for the counts.
_LEAST_SHARE = 0.02
_LARGEST_SHARE = 0.03
# Between these limits the square root of the share is this number over n mu.
_COUNTED = 26.0
# Every class is assumed to hold at least this share of the records.
_RAREST = 0.001


@dataclass(frozen=True, slots=True)
class ScaledPlan(FitPlan):
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

    def run(self, data: TrainingData, permit: Permit) -> Fitted:
        """Estimate the scales, and fit a copy of the rows in the precision that was planned."""
        if self.scales is None:
            return self.inner.run(replace(data, X=_without_missing(data.X)), permit)
        scales = self.scales.run(data.X, permit, data.people)
        kind = np.float32 if self.inner.is_single else np.float64
        clip = self.inner.column_clip
        rows = replace(data, X=in_column_scales(data.X, scales, clip, kind))
        return replace(self.inner.run(rows, permit), scales=scales, clip=clip)


def _without_missing(X: Any) -> Any:
    """Return rows with zeros instead of missing entries; sparse rows have none."""
    if isinstance(X, Chunks):
        return X.each(np.nan_to_num)
    return np.nan_to_num(X) if isinstance(X, np.ndarray) else X


def plan_scaled(
    plan: Callable[[PublicFacts, Budget], FitPlan], facts: PublicFacts, budget: Budget
) -> ScaledPlan:
    """Divide a budget between the scales of the columns and a fit in these scales.

    `plan` plans the fit, a function of public facts and of its part of the budget.
    """
    n_features, epsilon, delta = facts.n_features, budget.epsilon, budget.delta
    paid = None
    if not facts.is_sparse:
        paid = affordable_scales(facts.n_privacy_units, n_features, budget)
    if paid is None:
        inner = plan(facts, budget)
        public = {**inner.public, "data_norm": facts.data_norm, "private_column_scales": False}
        return ScaledPlan(None, inner, inner.events, public, inner.takes)
    scales, rest = paid
    left = rest.epsilon
    scaled = replace(
        facts,
        data_norm=math.sqrt(n_features),
        is_scale_stated=False,
        in_column_scales=True,
        is_single=facts.copies_are_single,
    )
    for trial in range(_TRIES):
        inner = plan(scaled, Budget.of(left, delta))
        events = (*scales.events, *inner.events)
        fits = math.isinf(epsilon) or accounting.delta(events, epsilon) <= delta
        # The first attempts aim at nearly all of the budget; later ones only have to fit into it.
        aims = delta > 0 and trial < _AIMS and math.isfinite(epsilon)
        if fits and (not aims or accounting.delta(events, _LEAST_USED * epsilon) > delta):
            public = {**inner.public, "data_norm": None, "private_column_scales": True}
            return ScaledPlan(scales, inner, events, public, inner.takes)
        # Only Gaussian events add up exactly by their mu; others cost more or less together.
        used = max(accounting.epsilon(events, delta), 0.5 * epsilon) if aims else epsilon
        left *= _AIM * epsilon / used if aims else _LOWER
    raise BudgetError(
        f"epsilon={epsilon:g} is too small for both column scales and a model: give "
        "data_norm, the PUBLIC scale of a row, or a larger epsilon"
    )


@dataclass(frozen=True, slots=True)
class ClassCountPlan:
    """The public numbers of noisy counts of the classes.

    Of two classes only the second is counted, because the number of records is public. If records
    have weights, their sums are released instead; the sum of all weights is private, so every class
    is counted.
    """

    n_samples: int
    n_classes: int
    noise: GaussianNoise | NoNoise
    are_weighed: bool = False

    def run(
        self,
        classes: Any,
        permit: Permit,
        people: People | None = None,
        weights: FloatArray | None = None,
    ) -> tuple[FloatArray, float]:
        """Release noisy numbers of records of each class, and return the number of all records.

        A person is counted by the shares of its rows in each class, a record by its weight; both
        sums are exact. The number of all records is public. If they have weights, the sum of the
        released numbers is returned instead, limited to [1, n].

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one, of a record or of a person with all rows.
        - Released: noisy counts of the classes.
        - Sensitivity: 1 for two classes, ``sqrt(2)`` for more classes or with weights of records.
        - Proof: ``docs/proofs/rare.md``, section 1; ``persons.md`` and ``weights.md``.
        """
        exact = sum_over_chunks(class_counts, classes, self.n_classes, people, weights)
        if self.n_classes == 2 and not self.are_weighed:
            second = float(permit.release(exact[1:], self.noise)[0])
            return np.array([self.n_samples - second, second]), self.n_samples
        counts = permit.release(exact, self.noise)
        if not self.are_weighed:
            return counts, self.n_samples
        return counts, float(np.clip(counts.sum(), 1.0, max(self.n_samples, 1.0)))


def plan_class_counts(
    n_samples: int, n_classes: int, mu: float, *, are_weighed: bool = False
) -> tuple[ClassCountPlan, float]:
    """Plan the counts within a part of a Gaussian budget; return the remaining mu, too."""
    if math.isinf(mu):
        return ClassCountPlan(n_samples, n_classes, NoNoise(), are_weighed), mu
    share = min(max((_COUNTED / (n_samples * mu)) ** 2, _LEAST_SHARE), _LARGEST_SHARE)
    part, rest = Budget.gaussian(mu).split(share)
    # docs/proofs/rare.md, Lemma 1; with weights of records, docs/proofs/weights.md, Lemma 1.
    sensitivity = UP if n_classes == 2 and not are_weighed else math.sqrt(2.0) * UP
    noise = GaussianNoise(sensitivity, part.mu)
    return ClassCountPlan(n_samples, n_classes, noise, are_weighed), rest.mu


def balanced_weights(counts: FloatArray, deviation: float, total: float) -> FloatArray:
    """Return class weights of at most one, inversely proportional to released class sizes.

    The rarest class has weight one. For these sizes the standard deviation of the noise is
    subtracted from the largest class and added to every other one, in case it made a class look
    rarer than it is.
    """
    kept = np.clip(counts, 0.0, total)
    common = int(np.argmax(kept))
    sizes = np.maximum(kept + deviation, _RAREST * total)
    sizes[common] = max(kept[common] - deviation, float(np.delete(sizes, common).max()))
    sizes = np.minimum(sizes, sizes[common])
    return np.asarray(sizes.min() / sizes)


class WeighedPlan(FitPlan, Protocol):
    """A plan whose classes can have weights of at most one for the same events."""

    def with_class_weights(self, weights: FloatArray) -> WeighedPlan:
        """Weigh the classes by numbers in [0, 1]: ``docs/proofs/rare.md``, Lemma 3."""
        ...


@dataclass(frozen=True, slots=True)
class BalancedPlan(FitPlan):
    """Release counts of the classes, then run the inner plan with weights that balance them.

    The plan takes the inputs that the inner plan takes: counts are sums of weights over rows.
    """

    counts: ClassCountPlan
    inner: WeighedPlan
    events: tuple[Event, ...]
    public: Mapping[str, Any]
    takes: frozenset[str]
    is_single: bool

    @property
    def column_clip(self) -> float:
        """That of the inner plan."""
        return self.inner.column_clip

    def run(self, data: TrainingData, permit: Permit) -> Fitted:
        """Count the classes, weigh them and run the inner plan."""
        counts, total = self.counts.run(data.class_indices, permit, data.people, data.weights)
        weights = balanced_weights(counts, noise_deviation(self.counts.noise), total)
        return self.inner.with_class_weights(weights).run(data, permit)


def plan_balanced(
    plan: Callable[[PublicFacts, Budget], Any], facts: PublicFacts, budget: Budget
) -> FitPlan:
    """Divide a budget between counts of the classes and a fit with weights that follow from them.

    `plan` plans the fit, a function of public facts and of its part of the budget.
    """
    if budget.is_pure:
        raise ValueError(
            "class_weight='balanced' needs delta > 0: for pure epsilon give PUBLIC weights"
        )
    found: FitPlan = plan(facts, budget)
    if not hasattr(found, "with_class_weights"):
        raise ValueError(
            "class_weight='balanced' is not supported together with a selection among "
            "margins: give PUBLIC weights, or the default margin and selection"
        )
    sizes = (facts.n_privacy_units, facts.n_classes)
    counts, left = plan_class_counts(*sizes, budget.mu, are_weighed=facts.has_weights)
    rest = budget if budget.is_infinite else Budget.gaussian(left, budget.delta)
    for _ in range(_TRIES):
        inner, epsilon = plan(facts, rest), budget.epsilon
        events = (counts.noise.event, *inner.events)
        if math.isinf(epsilon) or accounting.delta(events, epsilon) <= budget.delta:
            public = {**inner.public, "private_class_counts": True}
            return BalancedPlan(counts, inner, events, public, inner.takes, inner.is_single)
        # Only Gaussian events add up exactly by their mu; others cost more together.
        rest = Budget.of(_LOWER * rest.epsilon, budget.delta)
    raise BudgetError(
        f"epsilon={budget.epsilon:g} is too small for both class counts and a model: "
        "give PUBLIC weights of the classes, or a larger epsilon"
    )
