"""Choice of a margin by what it costs on the data: Bassily, Mohri and Suresh, Algorithm 6."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dp_halfspace._rounding import DOWN, FAR_UP
from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.algorithms.engine.defaults import kernel_engine_defaults
from dp_halfspace.algorithms.engine.noisy_gd import DescentPlan, GradientPlan
from dp_halfspace.algorithms.engine.plan import FloatArray
from dp_halfspace.algorithms.engine.training import LinearPlan, Problem, public_facts
from dp_halfspace.algorithms.fit_plan import relative_weights
from dp_halfspace.algorithms.published.known_margin import (
    margin_slopes,
    plan_known_margin,
    plan_margin_descent,
)
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.optim.losses import huber_hinge
from dp_halfspace.optim.objectives import MarginObjective
from dp_halfspace.optim.solvers import ball_minimum
from dp_halfspace.privacy.accounting import mu_beside
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.events import Event, Pure
from dp_halfspace.privacy.exponential import GeneralizedChoice
from dp_halfspace.privacy.mechanisms import NoNoise, Permit
from dp_halfspace.rows.rows import Rows

# A choice reads the features hundreds of times: so many bytes of them are always kept.
SEARCH_MEMORY = 2**25

# Part of epsilon that the choice takes: it costs three percent of mu.
_CHOICE_SHARE = 0.1

# All candidates take as many steps, so that all cost the same.
_STEPS = 100

# The loss that the steps descend on: the hinge with its corner rounded off.
_LOSS = huber_hinge(0.5)


@dataclass(frozen=True, slots=True)
class MarginPlan:
    """The public numbers of a choice among margins, and of the training after it.

    All candidates cost the same. A computed minimum may be above the exact one by the entry of
    `gaps`; `penalties` are what margins cost whatever the data are.
    """

    candidates: tuple[LinearPlan, ...]
    gaps: tuple[float, ...]
    penalties: tuple[float, ...]
    choice: GeneralizedChoice | NoNoise

    @property
    def events(self) -> tuple[Event, ...]:
        """What a run releases."""
        if isinstance(self.choice, NoNoise):
            return (Pure(math.inf),)
        return (self.choice.event, *self.candidates[0].events)

    @property
    def public(self) -> dict[str, Any]:
        """What a record says about it."""
        return public_facts(self.candidates)

    @property
    def constant_column(self) -> float | None:
        """Value of the constant column of all candidates."""
        return self.candidates[0].constant_column

    def choose(self, rows: Rows, data: TrainingData, permit: Permit) -> LinearPlan:
        """Choose the margin to train for; what the others cost must not leave.

        All candidates read the same rows.
        """
        weights = relative_weights(self.candidates[0].problem.class_weights)
        classes = data.class_indices
        costs = self._costs(rows, np.where(classes == 1, 1.0, -1.0), weights[classes])
        return self.candidates[permit.choose(costs, self.choice, is_cost=True)]

    def _costs(self, rows: Rows, signs: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the least loss of every margin, with its penalty."""
        objective = MarginObjective(rows, signs, weights, _LOSS, ridge=1.0)
        costs = []
        with single_blas_thread():
            for candidate, gap in zip(self.candidates, self.gaps, strict=True):
                radius = 1.0 / float(candidate.margin or 1.0)
                costs.append(ball_minimum(objective, radius, gap))
        return np.add(costs, self.penalties)


def plan_margin_choice(problem: Problem, solver: str, budget: Budget) -> MarginPlan:
    """Divide a budget between the choice of a margin and one training, for two classes.

    `solver` is ``"noisy_gd"`` or ``"phased_prox"``, the published one. `delta` is positive, or
    `epsilon` infinite. Bassily, Mohri and Suresh (2022), Algorithm 6 and Corollary F.2, with the
    sensitivity of a computed minimum: ``docs/proofs/kernel.md``, section 4.
    """
    epsilon, delta = budget.epsilon, budget.delta
    n_samples, n_columns = problem.n_samples, problem.n_columns()
    halvings = max(1, round(0.5 * math.log2(n_samples)))
    margins = [0.5**j for j in range(1, halvings + 1)]
    gaps = tuple((1.0 + 1.0 / margin) / 2.0 for margin in margins)
    mu, choice = math.inf, NoNoise()  # type: float, GeneralizedChoice | NoNoise
    if math.isfinite(epsilon):
        # A loss is between zero and one plus the radius; a computed minimum is off by the gap.
        pairs = zip(margins, gaps, strict=True)
        reach = tuple((1.0 + 1.0 / margin + gap) * FAR_UP for margin, gap in pairs)
        choice = GeneralizedChoice(reach, _CHOICE_SHARE * epsilon)
        mu = mu_beside(choice.epsilon, epsilon, delta) * DOWN
    # What a margin costs on fresh records, and in noise.
    noise = 2.0 * math.sqrt(min(n_samples, n_columns)) / mu
    penalties = tuple((math.sqrt(n_samples) + noise) / margin for margin in margins)
    train = _phased if solver == "phased_prox" else _descents
    return MarginPlan(train(problem, margins, mu), gaps, penalties, choice)


def _phased(problem: Problem, margins: Sequence[float], mu: float) -> tuple[LinearPlan, ...]:
    """One pass of proximal steps for each margin, of equal cost whatever the margin."""
    return tuple(plan_known_margin(problem, "phased_prox", margin, mu) for margin in margins)


def _descents(problem: Problem, margins: Sequence[float], mu: float) -> tuple[LinearPlan, ...]:
    """Noisy steps for each margin, with the noise of one of them."""
    sizes = problem.sizes()
    plans = [
        plan_margin_descent(n_outputs=1, mu=mu, margin=margin, n_steps=_STEPS, **sizes)
        for margin in margins
    ]
    # Allowances for rounding differ a little: the largest serves all.
    noisiest = max(plans, key=lambda plan: getattr(plan.mechanism, "sensitivity", 0.0))
    return tuple(
        _training(problem, margin, replace(plan, mechanism=noisiest.mechanism))
        for margin, plan in zip(margins, plans, strict=True)
    )


def _training(problem: Problem, margin: float, plan: DescentPlan) -> LinearPlan:
    """Wrap the steps for one margin."""
    constant_column = problem.constant(kernel_engine_defaults(problem.n_classes).constant_column)
    steps = GradientPlan(plan, slopes=margin_slopes)
    offset = plan.steps.margin_offset
    return LinearPlan(problem, "noisy_gd", margin, offset, constant_column, None, steps)
