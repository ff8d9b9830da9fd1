"""The ways in which PrivateAUCClassifier can fit, as plans of public numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._sklearn import single_blas_thread
from dp_halfspace.algorithms.defaults import ObjectiveDefaults, engine_defaults, objective_defaults
from dp_halfspace.algorithms.fits.auc_budget import (
    Budget,
    Choice,
    RankingProblem,
    pay_for_threshold,
    plan_share,
)
from dp_halfspace.algorithms.gradient.descent import GradientPlan, plan_gradient
from dp_halfspace.algorithms.gradient.mean_difference import (
    MeanDifferencePlan,
    mean_difference_for,
    plan_mean_difference,
    run_mean_difference,
)
from dp_halfspace.algorithms.perturbation.objective import (
    ObjectivePlan,
    feasible_ridge,
    plan_objective,
)
from dp_halfspace.algorithms.perturbation.output import OutputPlan, plan_output
from dp_halfspace.algorithms.perturbation.preconditioned_objective import (
    PreconditionedObjectivePlan,
    plan_preconditioned_objective,
)
from dp_halfspace.algorithms.perturbation.regulariser import pair_ridge, unit_row_ridge
from dp_halfspace.algorithms.selection.class_counts import class_weights, smaller_share
from dp_halfspace.exceptions import BudgetError
from dp_halfspace.optim.design.rows import Rows, clip_scales, unit_rows
from dp_halfspace.optim.objectives.losses import get_loss, shifted_logistic
from dp_halfspace.optim.risks.empirical import empirical_risk
from dp_halfspace.optim.risks.margin import MarginRisk
from dp_halfspace.optim.risks.pairs import PairRisk, balanced_normaliser
from dp_halfspace.optim.risks.softmax import SoftmaxRisk
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.mechanisms import ExponentialChoice, Permit

__all__ = ["LOSSES", "MECHANISMS", "RankingProblem", "Training", "plan_training"]

FloatArray: TypeAlias = NDArray[np.float64]
Positive: TypeAlias = NDArray[np.bool_]
Direction: TypeAlias = tuple[FloatArray, float]
Run: TypeAlias = Callable[[Any, Positive, Permit], Direction]

MECHANISMS = ("noisy_gd", "mean_difference", "objective", "output")
LOSSES = {
    "logistic": "logistic",
    "squared": "squared",
    "huber": "huber_hinge",
    "squared_hinge": "squared_hinge",
}

# In the gradient the larger class weighs the ratio of the sizes to a power. Weights discard
# signal, which pays once the noise is small: measured in docs/estimators/auc.md.
_HIGHEST_POWER, _POWER_STRENGTH = 0.5, 80.0
_HIGHEST_PURE_POWER, _PURE_POWER_STRENGTH = 0.25, 40.0
_LARGEST_CONSTANT = 0.25
# Share of the last steps that are averaged: a direction gains less from averages than a margin.
_WINDOW = 0.25
# A metric takes its share of a pure epsilon in full: it needs little noise, or a large
# epsilon and less noise than signal.
_METRIC_STRENGTH, _METRIC_EPSILON, _LEAST_STRENGTH = 50.0, 0.75, 5.0
# Without one: where noise is large a weak regulariser would saturate the loss before the noise.
_PURE_STRETCH, _PURE_STRETCH_POWER = 0.6, 0.7
# A class rarer than this, among more columns than this, is ranked by the mean difference.
_RARE, _MANY_COLUMNS = 0.03, 40


@dataclass(frozen=True, slots=True)
class Training:
    """One way to fit, fixed by public numbers.

    Attributes
    ----------
    mechanism : str
        One of `MECHANISMS`.
    events : tuple of Event
        Everything that a fit releases, the threshold included.
    run : callable
        From features, positives and permit to coefficients in units of the data and the
        score round which a threshold is looked for.
    threshold : ExponentialChoice, NoNoise or None
        None for a threshold that is given.
    public : dict
        What else the record should say.
    """

    mechanism: str
    events: tuple[Event, ...]
    run: Run
    threshold: Choice
    public: dict[str, Any]


def plan_training(problem: RankingProblem, mechanism: str) -> Training:
    """Plan one fit within a budget.

    Parameters
    ----------
    mechanism : str
        ``"auto"`` or one of `MECHANISMS`.

    Raises
    ------
    CertificateError, ValueError
        From public numbers, before any data are read.
    """
    choice, budget = pay_for_threshold(problem)
    plans: dict[str, Callable[[RankingProblem, Budget, Choice], _Plan]] = {
        "auto": _weighted_objective if problem.is_pure else _automatic,
        "noisy_gd": _weighted_objective if problem.is_pure else _noisy_gd,
        "mean_difference": _mean_difference,
        "objective": _objective,
        "output": _output,
    }
    events, run, public = plans[mechanism](problem, budget, choice)
    if isinstance(choice, ExponentialChoice):
        events = (*events, choice.event)
    return Training(mechanism, events, run, choice, public)


_Plan: TypeAlias = tuple[tuple[Event, ...], Run, dict[str, Any]]


def _noisy_gd(problem: RankingProblem, budget: Budget, choice: Choice) -> _Plan:
    """Plan a metric and accelerated steps with weighted classes."""
    del choice
    events, share_of, left = plan_share(problem, budget)
    plan, bias = _plan_gradient(problem, left)
    power = _power(problem, budget)

    def run(X: Any, positive: Positive, permit: Permit) -> Direction:
        count, deviation = share_of(positive, permit)
        weights = class_weights(count, problem.n_samples, deviation=deviation, power=power)
        return _run_engine(
            plan, problem, bias, X=X, positive=positive, weights=weights, permit=permit
        )

    return (*events, *plan.events), run, {"private_metric": plan.metric is not None}


def _automatic(problem: RankingProblem, budget: Budget, choice: Choice) -> _Plan:
    """Plan the steps, and a mean difference of the same price for a rare class."""
    if problem.n_features <= _MANY_COLUMNS:
        return _noisy_gd(problem, budget, choice)
    n = problem.n_samples
    events, share_of, left = plan_share(problem, budget)
    plan, bias = _plan_gradient(problem, left)
    other = mean_difference_for(plan, n, problem.n_features, problem.block_rows)
    power = _power(problem, budget)

    def run(X: Any, positive: Positive, permit: Permit) -> Direction:
        count, deviation = share_of(positive, permit)
        # Whatever the released count decides, the events are the same.
        if smaller_share(count, n, deviation=deviation) < _RARE:
            weights = class_weights(count, n, deviation=deviation)
            return _run_difference(
                other, problem, X=X, positive=positive, weights=weights, permit=permit
            )
        weights = class_weights(count, n, deviation=deviation, power=power)
        return _run_engine(
            plan, problem, bias, X=X, positive=positive, weights=weights, permit=permit
        )

    return (*events, *plan.events), run, {"private_metric": plan.metric is not None}


def _strength(problem: RankingProblem, budget: Budget) -> float:
    """Return curvature over noise, per direction; pure noise is longer by a root."""
    mu = budget.epsilon / math.sqrt(problem.n_columns) if problem.is_pure else budget.mu
    return problem.n_samples / problem.n_columns * mu / 2.0


def _power(problem: RankingProblem, budget: Budget) -> float:
    """Choose the power of the class weights."""
    strength = _strength(problem, budget)
    if problem.is_pure:
        return min(strength / _PURE_POWER_STRENGTH, _HIGHEST_PURE_POWER)
    return min(strength / _POWER_STRENGTH, _HIGHEST_POWER)


def _plan_gradient(problem: RankingProblem, budget: Budget) -> tuple[GradientPlan, float | None]:
    """Plan the engine; return the constant column, too."""
    defaults = engine_defaults(problem.n_samples, problem.n_columns, 2, budget.mu)
    defaults = replace(defaults, window=_WINDOW)
    plan = plan_gradient(
        defaults,
        n_samples=problem.n_samples,
        n_columns=problem.n_columns,
        n_classes=2,
        block_rows=problem.block_rows,
        mu=budget.mu,
    )
    return plan, None if problem.intercept is None else defaults.bias * problem.intercept


def _run_engine(
    plan: GradientPlan,
    problem: RankingProblem,
    bias: float | None,
    *,
    X: Any,
    positive: Positive,
    weights: FloatArray,
    permit: Permit,
) -> Direction:
    """Take the steps on unit rows."""
    rows = unit_rows(X, problem.data_norm, bias)
    released = plan.run(rows, positive.astype(np.intp), weights, permit)
    return _in_units_of_data(released, problem, bias)


def _weighted_objective(problem: RankingProblem, budget: Budget, choice: Choice) -> _Plan:
    """Plan one perturbed objective of the same rows: what pure epsilon can pay for."""
    del choice
    events, share_of, left = plan_share(problem, budget)
    defaults = objective_defaults(problem.n_samples, problem.n_columns, 2, left.epsilon, 0.0)
    # A large constant column helps a threshold, and only shortens what ranks.
    constant = min(defaults.bias, _LARGEST_CONSTANT)
    bias = None if problem.intercept is None else constant * problem.intercept
    risk = empirical_risk(
        shifted_logistic(defaults.shift),
        problem.n_samples,
        problem.n_columns,
        2,
        row_norm=1.0,
        block_rows=problem.block_rows,
    )
    plan = _plan_perturbed(risk, left.epsilon, _strength(problem, budget), defaults)
    power = _power(problem, budget)

    def run(X: Any, positive: Positive, permit: Permit) -> Direction:
        count, deviation = share_of(positive, permit)
        weights = class_weights(count, problem.n_samples, deviation=deviation, power=power)
        rows = unit_rows(X, problem.data_norm, bias)
        codes = positive.astype(np.intp)
        released = plan.run(rows, codes, weights, permit)
        return _in_units_of_data(released, problem, bias)

    return (*events, *plan.events), run, {"private_metric": plan.metric is not None}


def _plan_perturbed(
    risk: MarginRisk | SoftmaxRisk, epsilon: float, strength: float, defaults: ObjectiveDefaults
) -> PreconditionedObjectivePlan:
    """Plan a metric where a pure epsilon can pay for it, else a regulariser for much noise."""
    affordable = epsilon >= _METRIC_EPSILON and strength >= _LEAST_STRENGTH
    if affordable or strength >= _METRIC_STRENGTH:
        return plan_preconditioned_objective(risk, epsilon, 0.0)
    ridge = unit_row_ridge(
        risk,
        epsilon,
        0.0,
        stretch=min(_PURE_STRETCH * strength**_PURE_STRETCH_POWER, defaults.stretch),
        jacobian_share=defaults.jacobian_share,
    )
    return plan_preconditioned_objective(risk, epsilon, 0.0, ridge=ridge, metric=False)


def _in_units_of_data(
    released: FloatArray, problem: RankingProblem, bias: float | None
) -> Direction:
    """Undo the public scale; the constant column says where the classes meet."""
    coefficients = released[0, : problem.n_features] / problem.data_norm
    return coefficients, 0.0 if bias is None else -float(released[0, -1]) * bias


def _mean_difference(problem: RankingProblem, budget: Budget, choice: Choice) -> _Plan:
    """Plan the difference of the class means of standardised rows."""
    del choice
    n = problem.n_samples
    events, share_of, left = plan_share(problem, budget)
    plan = plan_mean_difference(
        n, problem.n_features, problem.block_rows, mu=left.mu, epsilon=left.epsilon
    )

    def run(X: Any, positive: Positive, permit: Permit) -> Direction:
        count, deviation = share_of(positive, permit)
        weights = class_weights(count, n, deviation=deviation)
        return _run_difference(
            plan, problem, X=X, positive=positive, weights=weights, permit=permit
        )

    standardised = plan.standardisation is not None
    return (*events, *plan.events), run, {"private_standardisation": standardised}


def _run_difference(
    plan: MeanDifferencePlan,
    problem: RankingProblem,
    *,
    X: Any,
    positive: Positive,
    weights: FloatArray,
    permit: Permit,
) -> Direction:
    """Take the difference on rows in the unit ball."""
    scale = clip_scales(X, problem.data_norm) / problem.data_norm
    rows = Rows(X, scale, 1.0, row_bound=math.sqrt(2.0) * (1.0 + 2.0**-50))
    w, centre = run_mean_difference(plan, rows, positive, weights, permit)
    return w / problem.data_norm, centre


def _pairs(problem: RankingProblem) -> PairRisk:
    """Describe the sum over pairs of rows in the unit ball."""
    n, share = problem.n_samples, problem.positive_share
    normaliser = balanced_normaliser(n)
    if share is not None:
        normaliser *= 4.0 * share * (1.0 - share)
    return PairRisk(
        get_loss(LOSSES[problem.loss]),
        n,
        problem.n_features,
        1.0 + 2.0**-50,
        problem.block_rows,
        normaliser,
    )


def _pair_ridge(problem: RankingProblem, risk: PairRisk, *, perturbs_objective: bool) -> float:
    """Return the regulariser of rows divided by `data_norm`, which keeps every scale in reach."""
    if problem.alpha is not None:
        return problem.alpha / problem.data_norm**2
    return pair_ridge(risk, problem.epsilon, problem.delta, perturbs_objective=perturbs_objective)


def _output(problem: RankingProblem, budget: Budget, choice: Choice) -> _Plan:
    """Plan the exact minimiser of the sum over pairs, with noise."""
    del choice
    risk = _pairs(problem)
    ridge = _pair_ridge(problem, risk, perturbs_objective=False)
    return _ranking(problem, risk, plan_output(risk, ridge, budget.noise))


def _objective(problem: RankingProblem, budget: Budget, choice: Choice) -> _Plan:
    """Plan the exact minimiser of the sum over pairs with a random linear term."""
    risk = _pairs(problem)
    ridge = _pair_ridge(problem, risk, perturbs_objective=True)
    epsilon = budget.epsilon if problem.is_pure else problem.epsilon
    others: tuple[Event, ...] = ()
    if isinstance(choice, ExponentialChoice) and not problem.is_pure:
        others = (choice.event,)
    room = feasible_ridge(risk, ridge, epsilon, problem.delta, others)
    if room is None:
        raise BudgetError(
            f"the budget epsilon={epsilon!r}, delta={problem.delta!r} is too small: the threshold "
            "leaves nothing for the ranking; lower threshold_share"
        )
    plan = plan_objective(risk, room, epsilon, problem.delta, earlier=others)
    return _ranking(problem, risk, plan)


def _ranking(problem: RankingProblem, risk: PairRisk, plan: OutputPlan | ObjectivePlan) -> _Plan:
    """Run a plan of pairs on the clipped rows, divided by their norm."""

    def run(X: Any, positive: Positive, permit: Permit) -> Direction:
        scale = clip_scales(X, problem.data_norm) / problem.data_norm
        rows = Rows(X, scale, row_bound=risk.row_norm)
        with single_blas_thread():
            w = plan.run(rows, positive.astype(np.intp), np.ones(2), permit)
        return w[0] / problem.data_norm, 0.0

    public = {
        "loss": problem.loss,
        "alpha": plan.ridge * problem.data_norm**2,
        "pairs": risk.normaliser,
        "certified_gradient": plan.tolerance.certified,
    }
    return plan.events, run, public
