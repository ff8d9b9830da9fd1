"""Plans of PrivateAUCClassifier: a count of the positive records, a direction, a threshold.

The simplest private ranking is the difference of the class means of standardised rows, which is the
direction of the minimiser of every pairwise loss as the regulariser grows. Rows are centred and
scaled by released moments and clipped to the unit ball, each independently, and one noisy sum is
released.

Class weights follow from a noisy count of the positive records, to which a record adds at most one;
what is computed from the noisy count is post-processing. No scale of noise depends on it: weights
are at most one, and every sensitivity is computed for weight one. The threshold is chosen by the
exponential mechanism from a grid that is a function of released coefficients; its loss is the
weighted number of errors. Proofs: ``docs/proofs/auc.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._rounding import FAR_UP, UP
from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.algorithms.engine.class_counts import RAREST
from dp_halfspace.algorithms.engine.defaults import (
    WIDE,
    ObjectiveDefaults,
    engine_defaults,
    longer_path,
    objective_defaults,
    rare_defaults,
    steady_steps,
)
from dp_halfspace.algorithms.engine.noisy_gd import GradientPlan
from dp_halfspace.algorithms.engine.plan import FloatArray, Noise, Plan, rows_over
from dp_halfspace.algorithms.engine.training import Problem, gradient_training
from dp_halfspace.algorithms.perturbation.objective import (
    ObjectivePlan,
    feasible_ridge,
    plan_objective,
)
from dp_halfspace.algorithms.perturbation.output import (
    OutputPlan,
    normalised_row_ridge,
    pair_ridge,
    plan_output,
)
from dp_halfspace.algorithms.perturbation.preconditioned import (
    PreconditionedObjectivePlan,
    plan_preconditioned_objective,
)
from dp_halfspace.data.chunks import apply_to_chunks, sum_over_chunks
from dp_halfspace.data.people import People
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine.plan import FitPlan, Fitted, relative_weights
from dp_halfspace.exceptions import BudgetError
from dp_halfspace.optim.certificate import EPS
from dp_halfspace.optim.losses import get_loss, shifted_logistic
from dp_halfspace.optim.risks import (
    MarginRisk,
    PairRisk,
    SoftmaxRisk,
    balanced_normaliser,
    empirical_risk,
)
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.accounting import mu_beside
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.events import Event, Exponential, Repeated
from dp_halfspace.privacy.mechanisms import (
    ExponentialChoice,
    GaussianNoise,
    NoNoise,
    Permit,
    noise_deviation,
)
from dp_halfspace.rows.blocks import clip_scales
from dp_halfspace.rows.rows import Rows, normalised_rows
from dp_halfspace.rows.single_rows import single_normalised_rows

# Sensitivity of the sums of rows and of their squares together: docs/proofs/auc.md, Lemma 2.
MOMENT_SENSITIVITY = math.sqrt(4.5) * UP
# Share of mu^2, or of epsilon, for the standardisation.
_SHARE = 0.1
# Largest norm of the noise of the means for which normalised rows are standardised.
_MOST_NOISE = 0.7
# The floor that is added to every variance is this share of the mean variance
_MEAN_SHARE = 0.03
# plus this share of the standard deviation of the noise.
_NOISE_SHARE = 0.3
# Standardised rows are clipped at this multiple of their typical length.
_CLIP = 0.7
# Smallest value of that floor.
_SMALLEST_VARIANCE = 1e-8


@dataclass(frozen=True, slots=True)
class StandardisationPlan:
    """The public numbers of one release of means and mean squares.

    The sizes are those of the rows without a constant column. `mechanism` adds noise to one vector,
    the sums of the columns followed by the sums of their squares; `deviation` is that of the noise
    of a mean.
    """

    n_samples: int
    n_columns: int
    mechanism: Noise
    deviation: float

    @property
    def amplification(self) -> float:
        """Upper bound on the factor by which standardisation multiplies a column."""
        floor = max(_NOISE_SHARE * self.deviation, _SMALLEST_VARIANCE)
        return 1.0 / (_CLIP * math.sqrt(floor))


@dataclass(frozen=True, slots=True)
class MeanDifferencePlan:
    """The public numbers of a difference of class means.

    `standardisation` is None if it would cost more than it gains. `copies` of the weighted sum of
    rows are released with noise of `mechanism`, and averaged.
    """

    standardisation: StandardisationPlan | None
    mechanism: Noise
    copies: int = 1

    @property
    def events(self) -> tuple[Event, ...]:
        """Events that a run charges."""
        event: Event = self.mechanism.event
        if self.copies > 1:
            event = Repeated(event, self.copies)
        if self.standardisation is None or isinstance(self.mechanism, NoNoise):
            return (event,)
        return (self.standardisation.mechanism.event, event)

    def run(
        self, rows: Rows, classes: NDArray[np.intp], weights: FloatArray, permit: Permit
    ) -> FloatArray:
        """Release coefficients of rows in the unit ball, with a last column of ones; see `Plan`.

        The coefficient of the last column is minus the score of the released mean row, zero without
        a standardisation.
        """
        # 1. Release the moments, from which the map that standardises rows follows.
        # 2. Clip each standardised row to the unit ball.
        # 3. Release the weighted sum, and map it back to the coordinates of the rows.
        signed = rows.apply_to_classes(_signed_weights, classes, weights)
        with single_blas_thread():
            if self.standardisation is None:
                sums = rows.adjoint(signed)[:-1]
                return np.append(_release_mean(sums, self, permit), 0.0)[None, :]
            transform = release_standardisation(rows, self.standardisation, permit)
            clipped = apply_to_chunks(_clip_to_ball, signed, rows.lengths(transform.T))
            sums = transform.T @ rows.adjoint(clipped)
            return np.asarray(transform @ _release_mean(sums, self, permit))[None, :]


def _signed_weights(classes: NDArray[np.intp], weights: FloatArray) -> FloatArray:
    return np.where(classes == 1, weights, -weights)


def _clip_to_ball(signed: FloatArray, lengths: FloatArray) -> FloatArray:
    """Scale the factors of rows of these lengths, so that no row counts as longer than one."""
    return signed * (1.0 / np.maximum(lengths, 1.0))


def plan_standardisation(
    n_samples: int, n_columns: int, block_rows: int, budget: Budget
) -> StandardisationPlan | None:
    """Fix the public numbers of a release of moments, of rows without a constant column.

    An infinite budget releases the exact moments. Return None for more than 512 columns, or if the
    noise would exceed the means.
    """
    if n_columns > WIDE:
        return None
    n_blocks = -(-n_samples // block_rows)
    # Rounding errors of two sums of n products, for two neighbours: docs/proofs/auc.md, section 2.
    rounding = 2.02 * n_samples * (block_rows + n_blocks + 16) * math.sqrt(2.0) * EPS
    mechanism = budget.noise(MOMENT_SENSITIVITY + rounding)
    spread = noise_deviation(mechanism, 2 * n_columns) / n_samples
    if spread * math.sqrt(n_columns) > _MOST_NOISE:
        return None
    return StandardisationPlan(n_samples, n_columns, mechanism, spread)


def plan_mean_difference(
    n_samples: int, n_columns: int, block_rows: int, budget: Budget
) -> MeanDifferencePlan:
    """Divide a budget between the standardisation and the difference of the class means.

    A record adds to the sum a vector of norm at most one, its weight included. So the sensitivity
    is 2, attained by a row that is replaced by its negative (``docs/proofs/auc.md``, Lemma 3).
    """
    sizes = (n_samples, n_columns, block_rows)
    part, rest = budget.split(_SHARE)
    scale = plan_standardisation(*sizes, part)
    left = budget if scale is None else rest
    return MeanDifferencePlan(scale, left.noise(_sensitivity(*sizes, scale)))


def mean_difference_for(
    engine: GradientPlan, n_samples: int, n_columns: int, block_rows: int
) -> MeanDifferencePlan:
    """Plan a mean difference whose events are among those of `engine`.

    So one of the two can be chosen by a number that was released before: ``docs/proofs/auc.md``,
    section 3, "Several copies".
    """
    step, scale = engine.descent.mechanism, None
    if engine.preconditioner is not None:
        moment = engine.preconditioner.mechanism
        mu = moment.mu if isinstance(moment, GaussianNoise) else math.inf
        scale = plan_standardisation(n_samples, n_columns, block_rows, Budget.gaussian(mu))
    if isinstance(step, NoNoise):
        return MeanDifferencePlan(scale, step)
    sensitivity = _sensitivity(n_samples, n_columns, block_rows, scale)
    copies = engine.descent.steps.n_steps
    return MeanDifferencePlan(scale, GaussianNoise(sensitivity, step.mu), copies)


def _sensitivity(
    n_samples: int, n_columns: int, block_rows: int, scale: StandardisationPlan | None
) -> float:
    """Bound the change of the computed sum: ``docs/proofs/auc.md``, Lemma 3."""
    n_blocks = -(-n_samples // block_rows)
    spread = 1.0 if scale is None else scale.amplification * math.sqrt(2.0 * n_columns)
    # Rounding errors of the image of a row [u, 1] of norm sqrt(2), and of its length.
    row = math.sqrt(2.0) * spread * (n_columns + 16) * EPS * 1.01
    sums = math.sqrt(2.0) * spread * (block_rows + n_blocks + n_columns + 16) * EPS * 1.01
    return 2.0 * (FAR_UP + row + n_samples * (row + sums))


def release_standardisation(rows: Rows, plan: StandardisationPlan, permit: Permit) -> FloatArray:
    """Release means and mean squares, and return the map that standardises rows.

    `rows` lie in the unit ball, with a last column of ones; `permit` is charged with the event
    of the plan's mechanism. The map has the shape (n_columns + 1, n_columns) and is a function
    of what was released: ``[u, 1] @ map`` is the standardised row.

    Notes
    -----
    **Guarantee.**

    - Adjacency: replace-one, of a record or of a person with all rows.
    - Released: noisy sums of the columns and of their squares.
    - Sensitivity: at most ``sqrt(4.5)``, and an allowance for rounding.
    - Proof: ``docs/proofs/auc.md``, section 2.
    """
    n, d = plan.n_samples, plan.n_columns
    moment = rows.gram()
    sums = np.concatenate([moment[:d, d], np.diag(moment)[:d]])
    released = permit.release(sums, plan.mechanism) / n
    centre, squares = np.clip(released[:d], -1.0, 1.0), released[d:]
    variance = np.maximum(squares - centre**2, 0.0)
    floor = _MEAN_SHARE * float(variance.mean()) + _NOISE_SHARE * plan.deviation
    flat = variance + max(floor, _SMALLEST_VARIANCE)
    length = max(float((variance / flat).sum()), 1.0)
    scale = 1.0 / (np.sqrt(flat) * _CLIP * math.sqrt(length))
    return np.vstack([np.diag(scale), -centre * scale])


def _release_mean(sums: FloatArray, plan: MeanDifferencePlan, permit: Permit) -> FloatArray:
    """Release noisy copies and return their mean.

    Notes
    -----
    **Guarantee.**

    - Adjacency: replace-one, of a record or of a person with all rows.
    - Released: noisy copies of the difference of the sums of the classes.
    - Sensitivity: 2, and an allowance for rounding.
    - Proof: ``docs/proofs/auc.md``, section 3.
    """
    total = np.zeros(len(sums))
    for _ in range(plan.copies):
        total += permit.release(sums, plan.mechanism)
    return total / plan.copies


Choice: TypeAlias = ExponentialChoice | NoNoise | None

# Share of mu^2 for the count of the positive records.
_COUNT_SHARE = 0.04
# Share of a pure epsilon for this count.
_PURE_COUNT_SHARE = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingProblem(Problem):
    """Public facts about a fit, before an algorithm is chosen.

    `loss` is a key of `LOSSES`. `alpha` is None for the automatic regulariser, `positive_share` is
    None for a private count. `threshold_share` is the share of the budget for the choice of a
    threshold; if it is zero, `threshold` is the public one.
    """

    n_classes: int = 2
    loss: str
    alpha: float | None
    positive_share: float | None
    threshold_share: float
    threshold: float = 0.0
    budget: Budget

    @property
    def is_pure(self) -> bool:
        """Whether the budget is that of pure DP."""
        return self.budget.is_pure


def pay_for_threshold(problem: RankingProblem) -> tuple[Choice, Budget]:
    """Plan the choice of a threshold that is not public; return the remaining budget, too."""
    budget, share = problem.budget, problem.threshold_share
    if not share:
        return None, budget
    part, left = budget.split(share)
    if budget.is_pure:
        price = part.epsilon
    else:
        # An exponential mechanism costs about as much as a Gaussian one with half its epsilon as
        # mu.
        price = 2.0 * math.sqrt(share) * budget.mu
        if not budget.is_infinite:
            epsilon, delta = budget.epsilon, budget.delta
            if accounting.delta((Exponential(price),), epsilon) > 0.5 * delta:
                # With a large delta this may exceed the whole budget; a share of epsilon cannot.
                price = min(price, share * epsilon)
            left = Budget.gaussian(mu_beside(price, epsilon, delta))
    return plan_threshold(problem.n_samples, problem.n_features, price), left


def plan_count(problem: RankingProblem, budget: Budget) -> tuple[Noise | None, Budget]:
    """Plan the release of the number of positive records, if it is not public."""
    if problem.positive_share is not None:
        return None, budget
    part, left = budget.split(_PURE_COUNT_SHARE if problem.is_pure else _COUNT_SHARE)
    # Replacing a record changes the number by at most one: docs/proofs/auc.md, Lemma 1.
    return part.noise(1.0), left


MECHANISMS = ("noisy_gd", "mean_difference", "objective", "output")
LOSSES = {
    "logistic": "logistic",
    "squared": "squared",
    "huber": "huber_hinge",
    "squared_hinge": "squared_hinge",
}

# The weight of the majority class is the ratio of the class sizes to a power. Weights discard
# signal, which improves a ranking only if the noise is small (measured in docs/evidence/auc.md).
# The power is the strength (`_strength`) over `_POWER_STRENGTH`, up to `_HIGHEST_POWER`.
_HIGHEST_POWER = 0.5
_POWER_STRENGTH = 80.0
# The highest power and the strength for it with pure DP.
_HIGHEST_PURE_POWER = 0.25
_PURE_POWER_STRENGTH = 40.0
# Largest constant column with pure DP: a larger one helps a threshold but not a ranking.
_LARGEST_CONSTANT = 0.25
# Share of the last steps whose iterates are averaged. It is less than for classification, because
# averages improve a direction less than they improve a margin.
_TAIL_FRACTION = 0.25
# The longer the steps should be, the more iterates are averaged, up to this many times as many.
_LARGEST_TAIL = 2.0
# Least strength at which a preconditioner is worth its cost with pure DP, where a share of epsilon
# costs more than a share of mu^2.
_PRECONDITIONER_STRENGTH = 50.0
# With at least this epsilon, it is worth its cost from this strength on.
_PRECONDITIONER_EPSILON = 0.75
_LEAST_STRENGTH = 5.0
# Pure DP without a preconditioner: the stretch (see `ObjectiveDefaults`) at a strength of one, and
# the power of the strength with which it grows. With much noise, a weaker regulariser would let the
# noise saturate the loss.
_PURE_STRETCH = 0.6
_PURE_STRETCH_POWER = 0.7
# Tables of more than `_MANY_COLUMNS` columns are ranked by the mean difference if the rarer class
# has less than this share of the records.
_RARE = 0.03
_MANY_COLUMNS = 40


@dataclass(frozen=True, slots=True)
class Ranker:
    """An algorithm for the direction, and how the rows that it reads are made.

    `constant_column` is the value of the constant column for rows divided by `data_norm`. The rows
    have norm one, or keep their lengths up to `row_bound`. The weight of the majority class is the
    ratio of the class sizes to the power `power`; None gives both classes the same weight and needs
    no count. Noisy steps, which are `mu`-Gaussian private, are adapted to the size of the rarer
    class, and so is the constant column; nothing changes that a scale of noise depends on.
    """

    plan: Plan
    constant_column: float | None
    row_bound: float | None = None
    power: float | None = None
    mu: float = 0.0

    def adapt_to_count(
        self, count: float, deviation: float, problem: RankingProblem
    ) -> tuple[Ranker, FloatArray]:
        """Adapt to a public or released count of positive records; return class weights, too."""
        power, n_samples = self.power or 0.0, problem.n_samples
        if not isinstance(self.plan, GradientPlan):
            return self, class_weights(count, n_samples, deviation=deviation, power=power)
        share = smaller_share(count, n_samples, deviation=deviation)
        sizes = (n_samples, problem.n_columns(), self.mu)
        # In estimated column scales the rows are centred.
        settings = rare_defaults(share, *sizes, power, centred=not problem.clips)
        weights = class_weights(
            count,
            n_samples,
            deviation=max(deviation, settings.n_recounted),
            power=settings.weight_power,
        )
        plan = self.plan.with_step_scale(settings.step_factor, settings.map_power)
        if plan.preconditioner is None:
            return replace(self, plan=plan), weights
        longer = longer_path(share * n_samples, problem.n_columns(), self.mu)
        total = n_samples * (share + (1.0 - share) * float(weights.min()))
        factor = steady_steps(longer, problem.n_columns(), total, plan.descent.step_size)
        plan = plan.with_step_scale(factor, settings.map_power, min(longer, _LARGEST_TAIL))
        constant = self.constant_column and longer * self.constant_column
        return replace(self, plan=plan, constant_column=constant), weights

    @property
    def is_single(self) -> bool:
        """Whether rows are read in float32: see `SingleRows`."""
        return isinstance(self.plan, GradientPlan) and self.plan.descent.is_single

    def rows(self, X: Any, problem: RankingProblem, people: People | None) -> Any:
        """Return the rows that the algorithm reads."""
        scales = (X, problem.data_norm, self.constant_column)
        if self.row_bound is not None:
            return rows_over(_ball_rows, *scales, self.row_bound, people)
        if self.is_single:
            return rows_over(single_normalised_rows, *scales, clips=problem.clips)
        return rows_over(normalised_rows, *scales, clips=problem.clips, people=people)


def _ball_rows(
    X: Any, data_norm: float, constant_column: float | None, row_bound: float, people: People | None
) -> Rows:
    """Return rows that are scaled down to `data_norm` and divided by it."""
    scale = clip_scales(X, data_norm) / data_norm
    return Rows(X, scale, constant_column, row_bound=row_bound, people=people)


@dataclass(frozen=True, slots=True)
class RankingPlan(FitPlan):
    """The releases of a fit: a count of the positive records, a direction, a threshold.

    `count` is None if the number is public or not needed; `threshold` is None if that is public.
    `rare` replaces `ranker`, with the same events, if the count is that of a rare class.
    """

    problem: RankingProblem
    ranker: Ranker
    threshold: Choice
    parameters: Mapping[str, Any]
    count: Noise | None = None
    rare: Ranker | None = None

    @property
    def clips(self) -> bool:
        """Whether rows are scaled down to the public scale, and not only normalised."""
        return self.problem.clips or self.ranker.row_bound is not None

    @property
    def events(self) -> tuple[Event, ...]:
        """Events that a run charges."""
        count = () if self.count is None else (self.count.event,)
        choice = self.threshold
        last = (choice.event,) if isinstance(choice, ExponentialChoice) else ()
        return (*count, *self.ranker.plan.events, *last)

    @property
    def public(self) -> Mapping[str, Any]:
        """Public facts for the record."""
        return self.parameters

    @property
    def is_single(self) -> bool:
        """Whether rows in estimated column scales are a copy in float32."""
        return self.ranker.is_single

    @property
    def takes(self) -> frozenset[str]:
        """Chunks and people, if the fit reads nothing but sums: neither pairs nor pure DP."""
        is_of_sums = self.ranker.power is not None and not self.problem.is_pure
        return frozenset({"chunks", "groups"} if is_of_sums else ())

    def run(self, data: TrainingData, permit: Permit) -> Fitted:
        """Release coefficients for rows as they were handed in, and the threshold.

        The public class weights weigh errors, and affect the threshold alone.
        """
        problem, norm = self.problem, self.problem.data_norm
        X, classes, people = data.X, data.class_indices, data.people
        positive = apply_to_chunks(np.equal, classes, 1)
        ranker, balance = self._release_weights(positive, permit, people)
        rows, constant_column = ranker.rows(X, problem, people), ranker.constant_column
        with single_blas_thread():
            released = ranker.plan.run(rows, classes, balance, permit)[0]
        scaled, threshold = released[: X.shape[1]], problem.threshold
        direction = scaled / norm
        if self.threshold is not None:
            largest = float(np.linalg.norm(direction)) * norm
            centre = 0.0 if constant_column is None else -float(released[-1]) * constant_column
            threshold = release_threshold(
                rows.scores(scaled)
                if constant_column is None
                else rows.margins_over_constant(scaled * constant_column),
                positive,
                relative_weights(problem.class_weights),
                threshold_grid(largest, centre),
                mechanism=self.threshold,
                permit=permit,
                largest=largest,
                people=people,
            )
        scaling = problem.intercept
        intercept = 0.0 if scaling is None else threshold / -scaling * scaling
        return Fitted(direction[None, :], np.array([intercept]), norm if self.clips else math.inf)

    def _release_weights(
        self, positive: Any, permit: Permit, people: People | None
    ) -> tuple[Ranker, FloatArray]:
        """Choose ranker and class weights by the number of positive records, public or released.

        The events are the same for every number.
        """
        n_samples, ranker = self.problem.n_samples, self.ranker
        if ranker.power is None:
            return ranker, np.ones(2)
        if self.count is None:
            count, deviation = (self.problem.positive_share or 0.0) * n_samples, 0.0
        else:
            count = release_count(positive, self.count, permit, people)
            deviation = noise_deviation(self.count)
        if self.rare and smaller_share(count, n_samples, deviation=deviation) < _RARE:
            ranker = self.rare
        return ranker.adapt_to_count(count, deviation, self.problem)


def plan_ranking(problem: RankingProblem, mechanism: str) -> RankingPlan:
    """Plan one fit within a budget, by ``"auto"`` or one of `MECHANISMS`."""
    choice, budget = pay_for_threshold(problem)
    public: dict[str, Any] = {"mechanism": mechanism}
    if mechanism in ("objective", "output"):
        ranker, facts = _pairs(problem, budget, choice, mechanism)
        return RankingPlan(problem, ranker, choice, {**public, **facts})
    count, left = plan_count(problem, budget)
    sizes = (problem.n_samples, problem.n_features, problem.sizes()["block_rows"])
    rare = None
    if mechanism == "mean_difference":
        difference = plan_mean_difference(*sizes, left)
        ranker = _difference(difference)
        public["private_standardisation"] = difference.standardisation is not None
    else:
        ranker = _steps(problem, budget, left)
        public["private_preconditioner"] = getattr(ranker.plan, "preconditioner", None) is not None
        is_wide = mechanism == "auto" and problem.n_features > _MANY_COLUMNS
        if is_wide and isinstance(ranker.plan, GradientPlan):
            rare = _difference(mean_difference_for(ranker.plan, *sizes))
    if ranker.is_single:
        public["precision"] = "float32"
    return RankingPlan(problem, ranker, choice, public, count, rare)


def _steps(problem: RankingProblem, budget: Budget, left: Budget) -> Ranker:
    """Plan a preconditioner and accelerated steps, or for pure DP one perturbed objective."""
    power, columns = _power(problem, budget), problem.n_columns()
    if not problem.is_pure:
        defaults = engine_defaults(problem.n_samples, columns, 2, left.mu)
        defaults = replace(defaults, tail_fraction=_TAIL_FRACTION)
        training = gradient_training(problem, left.mu, defaults=defaults)
        return Ranker(training.algorithm, training.constant_column, power=power, mu=left.mu)
    wanted = objective_defaults(problem.n_samples, columns, 2, left.epsilon, 0.0)
    loss = shifted_logistic(wanted.margin_offset)
    risk = empirical_risk(loss, n_classes=2, row_norm=1.0, **problem.sizes())
    plan = _plan_perturbed(risk, left, _strength(problem, budget), wanted)
    return Ranker(
        plan, problem.constant(min(wanted.constant_column, _LARGEST_CONSTANT)), power=power
    )


def _strength(problem: RankingProblem, budget: Budget) -> float:
    """Return the ratio of curvature to noise in each direction.

    With pure DP the norm of the noise is larger by the square root of the number of columns.
    """
    n_columns = problem.n_columns()
    mu = budget.epsilon / math.sqrt(n_columns) if problem.is_pure else budget.mu
    return problem.n_samples / n_columns * mu / 2.0


def _power(problem: RankingProblem, budget: Budget) -> float:
    """Choose the power of the ratio of the class sizes in the weight of the majority class."""
    strength = _strength(problem, budget)
    if problem.is_pure:
        return min(strength / _PURE_POWER_STRENGTH, _HIGHEST_PURE_POWER)
    return min(strength / _POWER_STRENGTH, _HIGHEST_POWER)


def _plan_perturbed(
    risk: MarginRisk | SoftmaxRisk, budget: Budget, strength: float, defaults: ObjectiveDefaults
) -> PreconditionedObjectivePlan:
    """Plan a perturbed objective of pure DP, with a preconditioner if it is worth its cost."""
    affordable = budget.epsilon >= _PRECONDITIONER_EPSILON and strength >= _LEAST_STRENGTH
    if affordable or strength >= _PRECONDITIONER_STRENGTH:
        return plan_preconditioned_objective(risk, budget)
    ridge = normalised_row_ridge(
        risk,
        budget.epsilon,
        0.0,
        stretch=min(_PURE_STRETCH * strength**_PURE_STRETCH_POWER, defaults.stretch),
        jacobian_share=defaults.jacobian_share,
    )
    return plan_preconditioned_objective(risk, budget, ridge=ridge, preconditioner=False)


def _difference(plan: MeanDifferencePlan) -> Ranker:
    """Rank by a mean difference of rows in the unit ball, with a column of ones."""
    return Ranker(plan, 1.0, math.sqrt(2.0) * UP, power=1.0)


def _pairs(
    problem: RankingProblem, budget: Budget, choice: Choice, mechanism: str
) -> tuple[Ranker, dict[str, Any]]:
    """Plan objective or output perturbation of a sum over pairs of rows in the unit ball."""
    n, share = problem.n_samples, problem.positive_share
    normaliser = balanced_normaliser(n)
    if share is not None:
        normaliser *= 4.0 * share * (1.0 - share)
    loss = get_loss(LOSSES[problem.loss])
    risk = PairRisk(loss, n, problem.n_features, UP, problem.sizes()["block_rows"], normaliser)
    perturbed = mechanism == "objective"
    epsilon, delta = problem.budget.epsilon, problem.budget.delta
    if problem.alpha is None:
        ridge = pair_ridge(risk, epsilon, delta, perturbs_objective=perturbed)
    else:
        # `alpha` is for rows in their own units, the ridge for rows divided by `data_norm`.
        ridge = problem.alpha / problem.data_norm**2
    plan: ObjectivePlan | OutputPlan
    if perturbed:
        epsilon = budget.epsilon if problem.is_pure else epsilon
        is_beside = isinstance(choice, ExponentialChoice) and not problem.is_pure
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
        plan = plan_output(risk, ridge, budget.noise)
    return Ranker(plan, None, risk.row_norm), {
        "loss": problem.loss,
        "alpha": plan.ridge * problem.data_norm**2,
        "pairs": risk.normaliser,
        "certified_gradient": plan.tolerance.certified,
    }


def release_count(
    positive: Any, noise: Noise, permit: Permit, people: People | None = None
) -> float:
    """Release the noisy number of positive records, which may lie outside [0, n].

    A person counts by the share of its rows that are positive; such shares add exactly. `permit` is
    charged with the event of the noise.

    Notes
    -----
    **Guarantee.**

    - Adjacency: replace-one, of a record or of a person with all rows.
    - Released: the noisy number of positive records.
    - Sensitivity: 1.
    - Proof: ``docs/proofs/auc.md``, section 1.
    """
    count = np.array([sum_over_chunks(weight_of, positive, people)])
    return float(permit.release(count, noise)[0])


def weight_of(chosen: NDArray[np.bool_], people: People | None) -> float:
    """Return the exact number of chosen rows, or the sum of their weights for people."""
    return float(np.count_nonzero(chosen) if people is None else people.weights[chosen].sum())


def class_weights(
    count: float, n_samples: int, *, deviation: float = 0.0, power: float = 1.0
) -> FloatArray:
    """Return class weights that compensate for different class sizes; the rarer class has one.

    `count` is the public or noisy number of positive records. It is moved towards one half of all
    records by `deviation`, the standard deviation of its noise. The weight of the majority class is
    ``(n_smaller / n_larger) ** power``. The negative class comes first.
    """
    share = _share(count, n_samples, deviation)
    ratio = (min(share, 1.0 - share) / max(share, 1.0 - share)) ** power
    return np.array([ratio, 1.0]) if share < 0.5 else np.array([1.0, ratio])


def smaller_share(count: float, n_samples: int, *, deviation: float = 0.0) -> float:
    """Return the share of the rarer class, in [0.001, 0.5]; arguments as in `class_weights`."""
    share = _share(count, n_samples, deviation)
    return min(share, 1.0 - share)


def _share(count: float, n_samples: int, deviation: float) -> float:
    """Return the share of the positive records, moved towards one half by the noise."""
    half = n_samples / 2.0
    excess = math.copysign(max(abs(count - half) - deviation, 0.0), count - half)
    return min(max((half + excess) / n_samples, RAREST), 1.0 - RAREST)


# Number of candidate thresholds on each side of the centre.
_PER_SIDE = 31
# Ratio of the distances of neighbouring candidates from the centre.
_RATIO = 2.0 ** (-1.0 / 3.0)
# Width of the ramp on which the loss of a record falls from one to zero, relative to the largest
# score. With a jump, a rounding error could change the loss of a threshold by one for every record.
_STEP = 2.0**-16
# Lower limit on the largest score, against a division by zero.
_SMALLEST = 1e-290
# Number of cells of scores on each side of zero.
_HALF = 4096
# Number of records that are counted at a time.
_BLOCK_ROWS = 2**15


def plan_threshold(n_samples: int, n_columns: int, epsilon: float) -> ExponentialChoice | NoNoise:
    """Return the mechanism that chooses the threshold; infinite `epsilon` takes the best one.

    Replacing a record changes a loss by at most one: ``docs/proofs/auc.md``, Lemma 4.
    """
    if math.isinf(epsilon):
        return NoNoise()
    rounding = n_samples * (n_columns + 16) * 2.0**-36 + 2.0**-50 * n_samples * n_samples
    return ExponentialChoice(FAR_UP + rounding, epsilon)


def threshold_grid(largest: float, centre: float) -> FloatArray:
    """Return 63 candidate thresholds within ``[-largest, largest]``, denser towards a centre.

    `largest` bounds the absolute scores; both arguments are functions of what was released.
    """
    steps = 2.0 * largest * _RATIO ** np.arange(_PER_SIDE)
    grid = np.concatenate([centre - steps, [centre], centre + steps])
    return np.asarray(np.clip(grid, -largest, largest))


def threshold_losses(
    scores: NDArray[Any],
    positive: NDArray[np.bool_],
    weights: FloatArray,
    grid: FloatArray,
    *,
    largest: float,
    people: People | None = None,
) -> FloatArray:
    """Return the weighted number of errors of every threshold.

    `weights` in [0, 1] are those of the negative and the positive class. A record within
    ``2^-17 largest`` of a threshold counts in part. With `people`, the weight of a row is one over
    the number of rows of its person.
    """
    # The loss of a positive record is one minus the loss of a negative record at the same score.
    base = float(weights[1]) * weight_of(positive, people)
    each = None if people is None else people.weights
    # One sum has no more terms than there are people: docs/proofs/persons.md, section 3.
    n_scores = len(scores)
    size = max(min(_BLOCK_ROWS, n_scores if people is None else len(people)), 1)
    # A chunk without rows has one part, which counts nothing.
    parts = [slice(lo, lo + size) for lo in range(0, max(n_scores, 1), size)]
    losses = []
    for part in parts:
        signed = np.where(positive[part], -weights[1], weights[0])
        if each is not None:
            signed *= each[part]
        losses.append(_add_losses(scores[part], signed, grid, largest))
    return base + np.array([math.fsum(column) for column in zip(*losses, strict=True)])


def _add_losses(
    scores: NDArray[Any], signed: FloatArray, grid: FloatArray, largest: float
) -> FloatArray:
    """Return the sum of `signed` over the records above each threshold; those near it in part.

    Cells of scores that no ramp reaches are added as a whole. Only the records in the other cells
    are compared with each threshold.
    """
    unit = max(largest, _SMALLEST)
    scores = np.clip(scores, -largest, largest, dtype=np.float64)
    step, cells = unit * _STEP, _cells(scores, unit)
    ends = _cells(grid - step, unit), _cells(grid + step, unit)
    sums = np.bincount(cells, signed, minlength=2 * _HALF + 1)
    mixed = np.zeros(len(sums), dtype=np.bool_)
    for first, last in zip(*ends, strict=True):
        mixed[first : last + 1] = True
    sums[mixed] = 0.0
    near = np.flatnonzero(mixed[cells])
    ramps = np.subtract.outer(grid, scores[near])
    ramps /= -step
    ramps += 0.5
    np.clip(ramps, 0.0, 1.0, out=ramps)
    above = np.cumsum(sums[::-1])[::-1]
    return np.asarray(above[ends[1]] + ramps @ signed[near])


def _cells(scores: FloatArray, unit: float) -> NDArray[np.intp]:
    """Return the numbers of the cells that scores in [-unit, unit] fall into."""
    return np.asarray(scores * (_HALF / unit) + _HALF, dtype=np.intp)


def release_threshold(
    scores: Any,
    positive: Any,
    weights: FloatArray,
    grid: FloatArray,
    *,
    mechanism: ExponentialChoice | NoNoise,
    permit: Permit,
    largest: float,
    people: People | None = None,
) -> float:
    """Release a threshold of the grid that has few errors.

    Scores may be in chunks. `permit` is charged with the event of `mechanism`.

    Notes
    -----
    **Guarantee.**

    - Adjacency: replace-one, of a record or of a person with all rows.
    - Released: one threshold of a public grid.
    - Sensitivity: 1 for the weighted number of errors of each threshold, and an allowance for
      rounding.
    - Proof: ``docs/proofs/auc.md``, section 4.
    """
    losses = partial(threshold_losses, largest=largest, people=people)
    utilities = -sum_over_chunks(losses, scores, positive, weights, grid)
    return float(grid[permit.choose(utilities, mechanism)])
