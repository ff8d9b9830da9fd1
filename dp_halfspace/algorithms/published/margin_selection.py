"""Selection of a margin from a grid: the private ways of the papers, in one budget."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._rounding import UP
from dp_halfspace.algorithms.engine.plan import FloatArray
from dp_halfspace.algorithms.engine.training import LinearPlan, Problem, public_facts
from dp_halfspace.algorithms.fit_plan import FitPlan, Fitted, relative_weights
from dp_halfspace.algorithms.published.known_margin import default_margin, plan_known_margin
from dp_halfspace.data.validation import TrainingData
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
    calibrate_selection,
    run_count_distribution,
    select_best,
    selection_event,
)
from dp_halfspace.privacy.record import PrivacyRecord
from dp_halfspace.rows.rows import Rows

# Share of mu^2 that pays for scores: half where the papers say so, less where scores are few.
_SCORE_SHARE = {"gaussian": 0.5, "random_stopping": 0.2}

# Part of epsilon that one exponential mechanism takes: it costs three percent of mu.
_CHOICE_SHARE = 0.1

# Accepted probability that random stopping never tries a given margin.
_MISS = 0.1

# Shape of the distribution of the number of runs: fewer runs than a geometric distribution at
# little cost.
_SHAPE = 2.0

_POPULATION_BETA = 0.05


@dataclass(frozen=True, slots=True)
class SelectionPlan(FitPlan):
    """The public numbers of a selection.

    `penalties` are added to the error counts of the candidates; `choice` is of the index, of all
    scores, or of one score; `distribution` that of the number of runs, for random stopping.
    """

    candidates: tuple[LinearPlan, ...]
    penalties: tuple[float, ...]
    choice: ExponentialChoice | GaussianNoise | NoNoise
    distribution: RunCountDistribution | None
    releases: tuple[Event, ...]
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def events(self) -> tuple[Event, ...]:
        """What a run releases."""
        return self.releases

    @property
    def public(self) -> Mapping[str, Any]:
        """What a record says about it."""
        return {**public_facts(self.candidates), **self.parameters}

    def run(self, data: TrainingData, permit: Permit) -> Fitted:
        """Train candidates and release the chosen one.

        Nothing else may leave: not the scores, nor how many runs there were.
        """
        classes = data.class_indices
        rows = cache(lambda i: self.candidates[i].rows(data.X, None))
        weights = relative_weights(self.candidates[0].problem.class_weights)

        def train(i: int, paid: Permit) -> tuple[FloatArray, float]:
            candidate = self.candidates[i]
            released = candidate.algorithm.run(rows(i), classes, candidate.weights(data), paid)
            return released, -_errors(rows(i), classes, weights, released) - self.penalties[i]

        indices = list(range(len(self.candidates)))
        if self.distribution is not None:
            source = permit.consume(self.releases[0])

            def attempt(i: int) -> tuple[FloatArray, float]:
                inner = PrivacyRecord(
                    epsilon=permit.record.epsilon,
                    delta=permit.record.delta,
                    events=(*self.candidates[i].events, self.choice.event),
                    noise=permit.record.noise,
                )
                # The selection as a whole is charged; its parts are never seen one by one.
                paid = authorise(inner, source)
                released, score = train(i, paid)
                return released, float(paid.release(np.array([score]), self.choice)[0])

            best, released = select_best(attempt, indices, self.distribution, source)
            return self.candidates[best].fitted(released)
        trained = [train(i, permit) for i in indices]
        best = permit.choose(np.array([score for _, score in trained]), self.choice)
        return self.candidates[best].fitted(trained[best][0])


def margin_grid(problem: Problem, budget: Budget) -> list[float]:
    """Return margins round the smallest one that noise permits: half, once, twice, four times."""
    centre = default_margin(problem.n_samples, problem.n_columns(), budget.mu)
    return sorted({min(centre * factor, 1.0) for factor in (0.5, 1.0, 2.0, 4.0)})


def plan_selection(
    problem: Problem,
    solver: str,
    kind: str,
    margins: Sequence[float],
    budget: Budget,
    *,
    population: bool,
) -> SelectionPlan:
    """Divide a budget between the candidates and the choice among them.

    `population` scores estimate the error on fresh records. Wang, Zhu and Wang (2025),
    Algorithms 2, 3, 4 and 6; ``docs/proofs/selection.md``.
    """
    count, epsilon, delta = len(margins), budget.epsilon, budget.delta
    distribution = None
    choice: ExponentialChoice | GaussianNoise | NoNoise
    score_bound = _score_bound(problem, population=population)
    if math.isinf(epsilon):
        each, choice = math.inf, NoNoise()
    elif kind == "exponential":
        choice = ExponentialChoice(score_bound, _CHOICE_SHARE * epsilon)
        beside = Budget.gaussian(mu_beside(choice.epsilon, epsilon, delta))
        each = beside.equal_parts(count).mu
    else:
        distribution = (
            run_count_distribution(count, _MISS, eta=_SHAPE) if kind == "random_stopping" else None
        )
        total = (
            budget.mu if distribution is None else calibrate_selection(distribution, epsilon, delta)
        )
        runs = 1 if distribution is not None else count
        part, rest = Budget.gaussian(total).split(_SCORE_SHARE[kind])
        each = rest.equal_parts(runs).mu
        choice = GaussianNoise(score_bound * math.sqrt(runs), part.mu)
    candidates = tuple(plan_known_margin(problem, solver, margin, each) for margin in margins)
    events = (*(event for c in candidates for event in c.events), choice.event)
    if math.isinf(epsilon):
        events = (Pure(math.inf),)
    elif distribution is not None:
        events = (selection_event(distribution, total),)
    maps = [candidate.linear_map for candidate in candidates]
    penalties = tuple(_penalty(problem, problem.n_columns(m)) if population else 0.0 for m in maps)
    return SelectionPlan(candidates, penalties, choice, distribution, events)


def _penalty(problem: Problem, n_columns: int) -> float:
    """Bound what a class of this dimension owes to chance: Wang et al. (2025), equation 3."""
    capacity = n_columns * math.log(2 * problem.n_samples) + math.log(4.0 / _POPULATION_BETA)
    return 2.5 * capacity


def _score_bound(problem: Problem, *, population: bool) -> float:
    """Bound the change of a computed score: one, and the rounding of two weighted counts."""
    largest = float(problem.n_samples)
    if population:
        # No projection has more columns than the data.
        largest += _penalty(problem, problem.n_columns())
    return UP + (problem.n_classes + 4) * 2.0**-52 * largest


def _errors(
    rows: Rows, class_indices: NDArray[np.intp], weights: FloatArray, released: FloatArray
) -> float:
    """Count the records with a wrong prediction, each by its class weight.

    A record changes the count by one at most.
    """
    scores = rows.scores(released.T)
    guess = (scores[:, 0] > 0).astype(np.intp) if len(released) == 1 else scores.argmax(axis=1)
    wrong = np.bincount(class_indices[guess != class_indices], minlength=len(weights))
    return float(wrong @ weights)
