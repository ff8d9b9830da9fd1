"""Private selection of a margin within one budget, after or before the training.

Either the candidates for a grid of margins are trained, and their errors are compared: Wang, Zhu
and Wang (2025), Algorithms 2, 3, 4 and 6. Or the least losses of the margins are compared, each
over the ball of the separators of that margin, and one is trained: Bassily, Mohri and Suresh
(2022), Algorithm 6; proof: ``docs/proofs/kernel.md``, section 4.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np

from dp_halfspace._params import MOST_TRAINED
from dp_halfspace._rounding import DOWN, FAR_UP, UP
from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.data.record_weights import WeighedRows
from dp_halfspace.engine.plan import FitPlan, Fitted
from dp_halfspace.optim.losses import huber_hinge
from dp_halfspace.optim.objectives import MarginObjective
from dp_halfspace.optim.risks import MarginRisk
from dp_halfspace.optim.solvers import certified_minimum
from dp_halfspace.papers.known_margin import (
    FEWEST_STEPS,
    HALF_WIDTH,
    default_margin,
    margin_steps,
    plan_descent,
    plan_known_margin,
)
from dp_halfspace.papers.training import LinearTraining, Problem
from dp_halfspace.privacy.accounting import mu_beside
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.door import Door
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.exponential import GeneralizedChoice
from dp_halfspace.privacy.mechanisms import ExponentialChoice, GaussianNoise, NoNoise, authorise
from dp_halfspace.privacy.random_stopping import (
    RunCountDistribution,
    calibrate_random_stopping,
    random_stopping_event,
    run_count_distribution,
    select_best,
)
from dp_halfspace.privacy.record import PrivacyRecord
from dp_halfspace.rows.blocks import FloatArray, into_ball
from dp_halfspace.theory.margin_guarantees import CHOICE_SHARE

# Share of mu^2 for scores: half as in the papers, and less for random stopping, where each run
# releases one score only.
SCORE_SHARES = {"gaussian": 0.5, "random_stopping": 0.2}

# Accepted probability that random stopping never tries a given margin.
_MISS = 0.1

# Parameter eta of the distribution of the number of runs: fewer runs than with a geometric
# distribution, at little cost.
STOPPING_SHAPE = 2.0


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

    def run(self, door: Door) -> Fitted:
        """Train candidates on their own rows and release the selected one."""
        every = door.map(lambda data: [candidate.rows(data) for candidate in self.candidates])
        best, released = self._attempts(every) if self.distribution else self._choice(every)
        return self.candidates[best].to_fitted(released)

    def _choice(self, every: Door) -> tuple[int, FloatArray]:
        """Train all candidates, and choose one by its errors.

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one.
        - Released: all trained candidates, and the number of one, or all scores.
        - Sensitivity: 1 for a score, and an allowance for rounding.
        - Proof: ``docs/proofs/selection.md``, section 6.
        """
        trained = [
            candidate.algorithm.run(every.map(itemgetter(i)))
            for i, candidate in enumerate(self.candidates)
        ]

        def ask(rows: list[WeighedRows]) -> FloatArray:
            return np.concatenate(list(map(_score, trained, self.penalties, rows)))

        best = every.choose(ask, self.choice)
        return best, trained[best]

    def _attempts(self, every: Door) -> tuple[int, FloatArray]:
        """Train candidates a random number of times, and release the best model.

        Nothing else may be released, neither the scores nor the number of runs.

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one.
        - Released: one trained candidate.
        - Sensitivity: 1 for its score, and an allowance for rounding.
        - Proof: ``docs/proofs/selection.md``, section 6.
        """
        record = every.permit.record
        source = every.permit.consume(self.events[0])

        def attempt(i: int) -> tuple[FloatArray, float]:
            candidate, penalty = self.candidates[i], self.penalties[i]
            inner = PrivacyRecord(
                epsilon=record.epsilon,
                delta=record.delta,
                events=(*candidate.events, self.choice.event),
                noise=record.noise,
            )
            # The selection as a whole was charged. The permit of one run charges no ledger, and its
            # releases never leave this method one by one.
            own = every.under(authorise(inner, source)).map(itemgetter(i))
            released = candidate.algorithm.run(own)
            score = own.release(lambda rows: _score(released, penalty, rows), self.choice)
            return released, float(score[0])

        assert self.distribution is not None
        return select_best(attempt, range(len(self.candidates)), self.distribution, source)


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
    if count > MOST_TRAINED:
        raise ValueError(f"margin is a list of at most {MOST_TRAINED} numbers: use fewer")
    distribution = None
    choice: ExponentialChoice | GaussianNoise | NoNoise
    score_bound = _score_bound(problem, population=population)
    if math.isinf(epsilon):
        each, choice = budget, NoNoise()
    elif kind == "exponential":
        choice = ExponentialChoice(score_bound, CHOICE_SHARE * epsilon)
        each = Budget.gaussian(mu_beside(choice.epsilon, epsilon, delta)).equal_parts(count)
    else:
        total, runs = budget.mu, count
        if kind == "random_stopping":
            distribution = run_count_distribution(count, _MISS, eta=STOPPING_SHAPE)
            total, runs = calibrate_random_stopping(distribution, epsilon, delta), 1
        part, rest = Budget.gaussian(total).split(SCORE_SHARES[kind])
        each = rest.equal_parts(runs)
        # A record moves each of the scores by at most `score_bound`, so their vector by at most
        # this length: `docs/proofs/selection.md`, section 6.
        choice = GaussianNoise(score_bound * math.sqrt(runs), part.mu)
    candidates = tuple(plan_known_margin(problem, solver, margin, each) for margin in margins)
    events = (*(event for c in candidates for event in c.events), choice.event)
    if distribution is not None:
        events = (random_stopping_event(distribution, total),)
    maps = [candidate.linear_map for candidate in candidates]
    penalties = tuple(_penalty(problem, problem.n_columns(m)) if population else 0.0 for m in maps)
    public = public_facts(candidates)
    return MarginSelection(candidates, penalties, choice, distribution, events, public)


def _penalty(problem: Problem, n_columns: int) -> float:
    """Return the penalty for the dimension: Wang et al. (2025), (3), without its constant term."""
    return 2.5 * n_columns * math.log(2 * problem.facts.n_privacy_units)


def _score_bound(problem: Problem, *, population: bool) -> float:
    """Bound the change of a computed score by one and the rounding errors of two weighted counts.

    Proof: ``docs/proofs/selection.md``, Lemma 4.
    """
    largest = float(problem.facts.n_privacy_units)
    if population:
        # A projection has no more columns than the data.
        largest += _penalty(problem, problem.n_columns())
    return UP + (problem.facts.n_classes + 4) * 2.0**-52 * largest


def _score(released: FloatArray, penalty: float, data: WeighedRows) -> FloatArray:
    """Return minus the sum of the class weights of misclassified records, and of a penalty.

    A record adds at most one to the sum.
    """
    scores, weights = data.rows.scores(released.T), np.asarray(data.weights)
    guess = (scores[:, 0] > 0).astype(np.intp) if len(released) == 1 else scores.argmax(axis=1)
    wrong = np.bincount(data.classes[guess != data.classes], minlength=len(weights))
    return np.array([-float(wrong @ weights) - penalty])


# Value of the constant column beside features of a kernel.
_KERNEL_CONSTANT = 0.5
# The loss of the steps: a hinge whose corner is replaced by a parabola.
_LOSS = huber_hinge(HALF_WIDTH)
# Larger noise counts as this one in the public terms of the costs, so that no cost is more than
# 10^9 times its sensitivity: docs/proofs/kernel.md, Lemma 5.
_LARGEST_NOISE = 1e9


@dataclass(frozen=True, slots=True)
class MarginChoice:
    """The public numbers of a choice among margins, and of the training after it.

    All candidates have the same events. The computed minimum for a margin exceeds the exact one by
    at most its entry of `gaps`; `penalties` are the public terms of the costs of the margins.
    """

    candidates: tuple[LinearTraining, ...]
    gaps: tuple[float, ...]
    penalties: tuple[float, ...]
    choice: GeneralizedChoice | NoNoise

    @property
    def events(self) -> tuple[Event, ...]:
        """Events that a run charges."""
        return (self.choice.event, *self.candidates[0].events)

    @property
    def public(self) -> dict[str, Any]:
        """Public facts for the record."""
        return public_facts(self.candidates)

    def choose_margin(self, door: Door) -> LinearTraining:
        """Choose the margin to train for; the costs of the margins must not be released.

        All candidates read the same rows.

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one.
        - Released: the index of one margin.
        - Sensitivity: for each candidate ``1 + 1 / margin``, the largest loss of a record, plus the
          gap of its computed minimum.
        - Proof: ``docs/proofs/kernel.md``, section 4.
        """
        return self.candidates[door.choose(self._costs, self.choice, is_cost=True)]

    def _costs(self, data: WeighedRows) -> FloatArray:
        """Return the cost of every margin: its least loss plus its penalty."""
        signs, weights = np.where(data.classes == 1, 1.0, -1.0), data.weights[data.classes]
        objective = MarginObjective(data.rows, signs, weights, _LOSS, ridge=1.0)
        costs = []
        with single_blas_thread():
            for candidate, gap in zip(self.candidates, self.gaps, strict=True):
                radius = 1.0 / float(candidate.margin or 1.0)
                costs.append(ball_minimum(objective, radius, gap))
        return np.add(costs, self.penalties)


def plan_margin_choice(problem: Problem, solver: str, budget: Budget) -> MarginChoice:
    """Divide a budget between the choice of a margin and one training, for two classes.

    `solver` is ``"noisy_gd"``, or ``"phased_prox"`` as published. Either delta is positive or
    epsilon is infinite. Bassily, Mohri and Suresh (2022), Algorithm 6 and Corollary F.2, with the
    sensitivity of a computed minimum: ``docs/proofs/kernel.md``, section 4.
    """
    epsilon, delta = budget.epsilon, budget.delta
    n_samples, n_columns = problem.facts.n_privacy_units, problem.n_columns()
    halvings = max(1, round(0.5 * math.log2(n_samples)))
    margins = [0.5**j for j in range(1, halvings + 1)]
    gaps = tuple((1.0 + 1.0 / margin) / 2.0 for margin in margins)
    mu, choice = math.inf, NoNoise()  # type: float, GeneralizedChoice | NoNoise
    if math.isfinite(epsilon):
        mu = mu_beside(CHOICE_SHARE * epsilon, epsilon, delta) * DOWN
    # Bounds on what a margin costs on fresh records and because of noise.
    noise = min(2.0 * math.sqrt(min(n_samples, n_columns)) / mu, _LARGEST_NOISE)
    penalties = tuple((math.sqrt(n_samples) + noise) / margin for margin in margins)
    if math.isfinite(epsilon):
        # The loss of a record is in [0, 1 + 1 / margin], and a computed minimum exceeds the exact
        # one by at most the gap, and roundings: docs/proofs/kernel.md, Lemma 2.
        sensitivities = tuple(
            (1.0 + 1.0 / margin + gap + _cost_rounding(problem, 1.0 / margin, penalty)) * FAR_UP
            for margin, gap, penalty in zip(margins, gaps, penalties, strict=True)
        )
        choice = GeneralizedChoice(sensitivities, CHOICE_SHARE * epsilon)
    if solver == "phased_prox":
        each = Budget.gaussian(mu)
        plans = tuple(plan_known_margin(problem, solver, margin, each) for margin in margins)
    else:
        plans = _plan_descents(problem, margins, mu)
    return MarginChoice(plans, gaps, penalties, choice)


def _cost_rounding(problem: Problem, radius: float, penalty: float) -> float:
    """Bound what rounding errors add to the change of a cost: ``kernel.md``, section 4."""
    n_samples = problem.facts.n_privacy_units
    risk = MarginRisk(_LOSS, **problem.sizes(), n_classes=2, row_norm=1.0)
    error = risk.gradient_error(2.0 / radius, radius, 0.0)
    return 10.0 * (1.0 + radius) * error + 2.0**-51 * (n_samples + penalty)


def _plan_descents(
    problem: Problem, margins: Sequence[float], mu: float
) -> tuple[LinearTraining, ...]:
    """Plan noisy steps for each margin; all have the same events."""
    constant_column = problem.constant(_KERNEL_CONSTANT)
    shape = problem.facts.n_privacy_units, problem.n_columns(), 1
    # All candidates take the same number of steps, so that all of them cost the same.
    steps = [margin_steps(*shape, mu=mu, margin=m, n_steps=FEWEST_STEPS) for m in margins]
    plans = [plan_descent(each, **problem.sizes(), n_outputs=1, mu=mu) for each in steps]
    # The allowances for rounding errors differ a little, so all plans get the largest noise.
    noisiest = max(plans, key=lambda plan: getattr(plan.mechanism, "sensitivity", 0.0))
    plans = [replace(plan, mechanism=noisiest.mechanism) for plan in plans]
    return tuple(
        LinearTraining(problem, "noisy_gd", plan, margin, plan.steps.margin_offset, constant_column)
        for margin, plan in zip(margins, plans, strict=True)
    )


# Share of the gap for the gradient at a certified minimiser.
_OF_GRADIENT = 1.0 / 16.0
# Divisor of the multiplier from one problem to the next. Problems with large multipliers are solved
# quickly, so they come first.
_MULTIPLIER_DIVISOR = 8.0


def ball_minimum(objective: MarginObjective, radius: float, gap: float) -> float:
    """Return the smallest sum of losses in a ball, up to a public gap.

    The loss of the objective is smooth and convex; its ridge is ignored, and it has no linear term.
    A multiplier of the constraint is found by bisection, where each step is a certified
    minimisation. The search ends when ``<g, w> + radius |g|``, which by convexity bounds the excess
    over the minimum in the ball, is at most the gap. It always ends, because this bound is
    continuous in the multiplier, and small if the norm of the minimiser is the radius. The running
    time depends on the data. Proof: ``docs/proofs/kernel.md``, section 4.
    """
    gamma = _OF_GRADIENT * gap / radius
    # The first multiplier is twice the largest gradient over the radius, so that the minimiser is
    # inside the ball.
    steepest = float(objective.weights.sum()) * objective.loss.lipschitz * objective.rows.row_bound
    low, high = 0.0, max(2.0 * steepest / radius, gap / radius**2)
    ridge = high
    while True:
        penalised = replace(objective, ridge=ridge)
        bound = math.sqrt(2.0 * penalised.initial_gap / ridge)
        w = certified_minimum(penalised, gamma, radius=bound)
        is_inside = float(np.linalg.norm(w)) <= radius
        w = into_ball(w, radius)
        value, gradient = penalised.value_and_gradient(w)
        gradient = gradient - ridge * w
        if float(gradient @ w) + radius * float(np.linalg.norm(gradient)) <= gap:
            return value - ridge / 2.0 * float(w @ w)
        low, high = (low, ridge) if is_inside else (ridge, high)
        ridge = high / _MULTIPLIER_DIVISOR if low == 0.0 else math.sqrt(low * high)
