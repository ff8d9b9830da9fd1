"""Private minimisers of a sum over all pairs of records of two classes, by perturbation.

Proofs: ``docs/proofs/pairwise.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from dp_halfspace._rounding import UP
from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.data.record_weights import WeighedRows, weighed
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine.plan import Fitted, PublicFacts, WrappedPlan
from dp_halfspace.exceptions import BudgetError
from dp_halfspace.optim.losses import get_loss
from dp_halfspace.papers.objective import PerturbedMinimiser, feasible_ridge, plan_objective
from dp_halfspace.papers.output import pair_ridge, plan_output
from dp_halfspace.papers.pair_objective import PairRisk, balanced_normaliser
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.door import Door
from dp_halfspace.privacy.mechanisms import ExponentialChoice, NoNoise
from dp_halfspace.rows.blocks import block_size, clip_scales
from dp_halfspace.rows.rows import Rows

Choice: TypeAlias = ExponentialChoice | NoNoise | None


@dataclass(frozen=True, slots=True)
class RankingProblem:
    """Public facts about a fit, before an algorithm is chosen.

    `facts` have no weights of classes, which weigh errors at the threshold alone: those are
    `error_weights`, the largest one 1. `loss` is one of `PAIRWISE_LOSSES`, `constant` the factor of
    the constant column. `alpha` is None for the automatic regulariser, `positive_share` for a
    private one.
    `threshold_share` is the share of the budget for the choice of a threshold; if it is zero,
    `threshold` is the public one.
    """

    facts: PublicFacts
    loss: str
    constant: float
    alpha: float | None
    positive_share: float | None
    threshold_share: float
    threshold: float = 0.0
    error_weights: tuple[float, ...] = (1.0, 1.0)


@dataclass(frozen=True, slots=True)
class PairFit(WrappedPlan):
    """Objective or output perturbation of a sum over pairs of rows in the unit ball."""

    plan: PerturbedMinimiser

    def run(self, door: Door) -> Fitted:
        """Release the direction of rows that are scaled down to the public norm."""
        norm = self.facts.data_norm
        with single_blas_thread():
            released = self.plan.run(door.map(partial(_unit_rows, norm)))
        return Fitted(released / norm, np.zeros(1), norm)


def _unit_rows(norm: float, data: TrainingData) -> WeighedRows:
    rows = Rows(data.X, clip_scales(data.X, norm) / norm, row_bound=UP)
    return weighed(rows, np.ones(2), data)


def plan_pairs(
    problem: RankingProblem, budget: Budget, left: Budget, choice: Choice, mechanism: str
) -> tuple[PairFit, dict[str, Any]]:
    """Plan objective or output perturbation of a sum over pairs; `left` is what the choice left."""
    facts, share = problem.facts, problem.positive_share
    n, d, norm = facts.n_privacy_units, facts.n_features, facts.data_norm
    normaliser = balanced_normaliser(n)
    if share is not None:
        normaliser *= 4.0 * share * (1.0 - share)
    loss = get_loss(problem.loss)
    risk = PairRisk(loss, n, d, UP, block_size(n, d, is_sparse=facts.is_sparse), normaliser)
    perturbed = mechanism == "objective"
    epsilon, delta = budget.epsilon, budget.delta
    if problem.alpha is None:
        ridge = pair_ridge(risk, epsilon, delta, perturbs_objective=perturbed)
    else:
        # `alpha` is for rows in their own units, the ridge for rows divided by `data_norm`.
        ridge = problem.alpha / norm**2
    if perturbed:
        epsilon = left.epsilon if budget.is_pure else epsilon
        is_beside = isinstance(choice, ExponentialChoice) and not budget.is_pure
        others = (choice.event,) if choice and is_beside else ()
        room = feasible_ridge(risk, ridge, epsilon, delta, others)
        if room is None:
            raise BudgetError(
                f"the budget epsilon={epsilon!r}, delta={delta!r} is too small: the "
                "threshold uses all of it, and nothing remains for the ranking. Lower "
                "threshold_share"
            )
        plan = plan_objective(risk, room, epsilon, delta, earlier=others)
    else:
        plan = plan_output(risk, ridge, left.noise)
    return PairFit(facts, plan), {
        "loss": problem.loss,
        "alpha": plan.ridge * norm**2,
        "pairs": risk.normaliser,
        "certified_gradient": plan.tolerance.certified,
    }
