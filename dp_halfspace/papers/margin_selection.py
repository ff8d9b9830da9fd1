"""Private selection of a trained model, among those for a grid of margins, within one budget.

The candidates are trained, and their errors are compared: Wang, Zhu and Wang (2025), Algorithms 2,
3, 4 and 6.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._rounding import UP
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine.plan import FitPlan, Fitted, relative_weights
from dp_halfspace.papers.known_margin import (
    default_margin,
    plan_known_margin,
)
from dp_halfspace.papers.training import LinearTraining, Problem
from dp_halfspace.privacy.accounting import mu_beside
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.events import Event, Pure
from dp_halfspace.privacy.mechanisms import (
    ExponentialChoice,
    GaussianNoise,
    NoNoise,
    Permit,
    authorise,
)
from dp_halfspace.privacy.random_stopping import (
    RunCountDistribution,
    calibrate_random_stopping,
    random_stopping_event,
    run_count_distribution,
    select_best,
)
from dp_halfspace.privacy.record import PrivacyRecord
from dp_halfspace.rows.blocks import FloatArray
from dp_halfspace.rows.rows import Rows
from dp_halfspace.theory.margin_guarantees import CHOICE_SHARE

# Share of mu^2 for scores: half as in the papers, and less for random stopping, where each run
# releases one score only.
_SCORE_SHARES = {"gaussian": 0.5, "random_stopping": 0.2}

# Accepted probability that random stopping never tries a given margin.
_MISS = 0.1

# Parameter eta of the distribution of the number of runs: fewer runs than with a geometric
# distribution, at little cost.
_SHAPE = 2.0

# Failure probability in the penalty for the dimension. It has no effect on the selection:
# docs/proofs/selection.md, section 6.
_POPULATION_BETA = 0.05
# Largest number of margins to choose from: a plan is made for each, and shares the budget.
_MOST_MARGINS = 1000


def public_facts(candidates: Sequence[LinearTraining]) -> dict[str, Any]:
    """Return the public facts of a fit that may return any of the candidates."""
    facts = [candidate.public for candidate in candidates]
    lists = {name: [each[name][0] for each in facts] for name in ("margins", "n_components")}
    return {**facts[0], **lists}


@dataclass(frozen=True, slots=True)
class MarginSelection(FitPlan):
    """The public numbers of a selection.

    `penalties` are added to the error counts of the candidates. `choice` is the mechanism that
    releases the index, all scores, or one score; `distribution` is that of the number of runs, for
    random stopping.
    """

    candidates: tuple[LinearTraining, ...]
    penalties: tuple[float, ...]
    choice: ExponentialChoice | GaussianNoise | NoNoise
    distribution: RunCountDistribution | None
    events: tuple[Event, ...]
    public: Mapping[str, Any]

    def run(self, data: TrainingData, permit: Permit) -> Fitted:
        """Train candidates and release the selected one.

        Nothing else may be released, neither the scores nor the number of runs.

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one.
        - Released: one trained candidate.
        - Sensitivity: 1 for the score of a released candidate, and an allowance for rounding.
        - Proof: ``docs/proofs/selection.md``, section 6.
        """
        classes = data.class_indices
        rows = cache(lambda i: self.candidates[i].rows(data.X, None))
        weights = relative_weights(self.candidates[0].problem.facts.class_weights)

        def train(i: int, paid: Permit) -> tuple[FloatArray, float]:
            candidate = self.candidates[i]
            released = candidate.algorithm.run(rows(i), classes, weights, paid)
            return released, -_errors(rows(i), classes, weights, released) - self.penalties[i]

        indices = list(range(len(self.candidates)))
        if self.distribution is not None:
            source = permit.consume(self.events[0])

            def attempt(i: int) -> tuple[FloatArray, float]:
                inner = PrivacyRecord(
                    epsilon=permit.record.epsilon,
                    delta=permit.record.delta,
                    events=(*self.candidates[i].events, self.choice.event),
                    noise=permit.record.noise,
                )
                # The selection as a whole was charged. The permit of one run charges no ledger,
                # and its releases never leave this method one by one.
                paid = authorise(inner, source)
                released, score = train(i, paid)
                return released, float(paid.release(np.array([score]), self.choice)[0])

            best, released = select_best(attempt, indices, self.distribution, source)
            return self.candidates[best].to_fitted(released)
        trained = [train(i, permit) for i in indices]
        best = permit.choose(np.array([score for _, score in trained]), self.choice)
        return self.candidates[best].to_fitted(trained[best][0])


def margin_grid(problem: Problem, budget: Budget) -> list[float]:
    """Return half, once, twice and four times `default_margin`, none above one."""
    centre = default_margin(problem.facts.n_privacy_units, problem.n_columns(), budget.mu)
    return sorted({min(centre * factor, 1.0) for factor in (0.5, 1.0, 2.0, 4.0)})


def plan_selection(
    problem: Problem,
    solver: str,
    kind: str,
    margins: Sequence[float],
    budget: Budget,
    *,
    population: bool,
) -> MarginSelection:
    """Divide a budget between the candidates and the choice among them.

    `population` scores estimate the error on fresh records. Wang, Zhu and Wang (2025),
    Algorithms 2, 3, 4 and 6; ``docs/proofs/selection.md``.
    """
    count, epsilon, delta = len(margins), budget.epsilon, budget.delta
    if count > _MOST_MARGINS:
        raise ValueError(f"margin is a list of at most {_MOST_MARGINS} numbers: use fewer")
    distribution = None
    choice: ExponentialChoice | GaussianNoise | NoNoise
    score_bound = _score_bound(problem, population=population)
    if math.isinf(epsilon):
        each, choice = math.inf, NoNoise()
    elif kind == "exponential":
        choice = ExponentialChoice(score_bound, CHOICE_SHARE * epsilon)
        beside = Budget.gaussian(mu_beside(choice.epsilon, epsilon, delta))
        each = beside.equal_parts(count).mu
    else:
        total, runs = budget.mu, count
        if kind == "random_stopping":
            distribution = run_count_distribution(count, _MISS, eta=_SHAPE)
            total, runs = calibrate_random_stopping(distribution, epsilon, delta), 1
        part, rest = Budget.gaussian(total).split(_SCORE_SHARES[kind])
        each = rest.equal_parts(runs).mu
        # A record moves each of the scores by at most `score_bound`, so their vector by at most
        # this length: `docs/proofs/selection.md`, section 6.
        choice = GaussianNoise(score_bound * math.sqrt(runs), part.mu)
    candidates = tuple(plan_known_margin(problem, solver, margin, each) for margin in margins)
    events = (*(event for c in candidates for event in c.events), choice.event)
    if math.isinf(epsilon):
        events = (Pure(math.inf),)
    elif distribution is not None:
        events = (random_stopping_event(distribution, total),)
    maps = [candidate.linear_map for candidate in candidates]
    penalties = tuple(_penalty(problem, problem.n_columns(m)) if population else 0.0 for m in maps)
    public = public_facts(candidates)
    return MarginSelection(candidates, penalties, choice, distribution, events, public)


def _penalty(problem: Problem, n_columns: int) -> float:
    """Bound the errors on fresh records beyond those in training: Wang et al. (2025), (3)."""
    capacity = n_columns * math.log(2 * problem.facts.n_privacy_units) + math.log(
        4.0 / _POPULATION_BETA
    )
    return 2.5 * capacity


def _score_bound(problem: Problem, *, population: bool) -> float:
    """Bound the change of a computed score by one and the rounding errors of two weighted counts.

    Proof: ``docs/proofs/selection.md``, Lemma 4.
    """
    largest = float(problem.facts.n_privacy_units)
    if population:
        # A projection has no more columns than the data.
        largest += _penalty(problem, problem.n_columns())
    return UP + (problem.facts.n_classes + 4) * 2.0**-52 * largest


def _errors(
    rows: Rows, class_indices: NDArray[np.intp], weights: FloatArray, released: FloatArray
) -> float:
    """Return the sum of the class weights of misclassified records; a record adds at most one."""
    scores = rows.scores(released.T)
    guess = (scores[:, 0] > 0).astype(np.intp) if len(released) == 1 else scores.argmax(axis=1)
    wrong = np.bincount(class_indices[guess != class_indices], minlength=len(weights))
    return float(wrong @ weights)
