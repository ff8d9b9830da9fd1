"""A margin by what it costs on the data: Algorithm 6 of Bassily et al., then one training."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._sklearn import single_blas_thread
from dp_halfspace.algorithms.fits.kernel_training import constant_column
from dp_halfspace.algorithms.fits.margin_training import Problem, Training
from dp_halfspace.algorithms.gradient.descent import GradientPlan
from dp_halfspace.algorithms.gradient.margin_gd import margin_slopes, plan_margin_descent
from dp_halfspace.algorithms.gradient.noisy_gd import DescentPlan
from dp_halfspace.optim.design.rows import Rows
from dp_halfspace.optim.objectives.losses import huber_hinge
from dp_halfspace.optim.objectives.margin import MarginObjective
from dp_halfspace.optim.solvers.ball_minimum import ball_minimum
from dp_halfspace.privacy.accounting import calibrate
from dp_halfspace.privacy.events import Event, Exponential, Gaussian, Pure
from dp_halfspace.privacy.mechanisms import NoNoise, Permit
from dp_halfspace.privacy.profiles import gdp_mu
from dp_halfspace.privacy.selection import GeneralizedChoice

__all__ = ["MarginPlan", "choose_margin", "kept_memory", "plan_margin_choice"]

FloatArray: TypeAlias = NDArray[np.float64]

# Part of epsilon that the choice takes: it costs three percent of mu.
_CHOICE_SHARE = 0.1
# All candidates take as many steps, so that all cost the same.
_STEPS = 100
# A search reads the features hundreds of times: so many bytes of them are always kept.
_SEARCH_MEMORY = 2**25
# The loss that the steps descend on: the hinge with its corner rounded off.
_LOSS = huber_hinge(0.5)


@dataclass(frozen=True, slots=True)
class MarginPlan:
    """The public numbers of a choice among margins, and of the training after it.

    Attributes
    ----------
    candidates : tuple of Training
        One for each margin; all cost the same.
    gaps : tuple of float
        How far a computed minimum may be above the exact one.
    penalties : tuple of float
        What a margin costs whatever the data are.
    """

    candidates: tuple[Training, ...]
    gaps: tuple[float, ...]
    penalties: tuple[float, ...]
    choice: GeneralizedChoice | NoNoise
    events: tuple[Event, ...]


def plan_margin_choice(problem: Problem, epsilon: float, delta: float) -> MarginPlan:
    """Divide a budget between the choice of a margin and one training.

    Parameters
    ----------
    problem : Problem
        Of the features, two classes.
    epsilon, delta : float
        Positive `delta`, or infinite `epsilon`.

    References
    ----------
    Bassily, Mohri and Suresh (2022), Algorithm 6 and Corollary F.2, with the sensitivity of
    a computed minimum. ``docs/proofs/kernel.md``, section 4.
    """
    n_samples, n_columns = problem.n_samples, problem.n_columns(None)
    halvings = max(1, round(0.5 * math.log2(n_samples)))
    margins = [0.5**j for j in range(1, halvings + 1)]
    gaps = tuple((1.0 + 1.0 / margin) / 2.0 for margin in margins)
    mu, choice = _divided(margins, gaps, epsilon, delta)
    # What a margin costs on fresh records, and in noise.
    noise = 2.0 * math.sqrt(min(n_samples, n_columns)) / mu
    penalties = tuple((math.sqrt(n_samples) + noise) / margin for margin in margins)
    plans = [
        plan_margin_descent(
            n_samples=n_samples,
            n_columns=n_columns,
            n_outputs=1,
            block_rows=problem.block_rows(None),
            mu=mu,
            margin=margin,
            n_steps=_STEPS,
        )
        for margin in margins
    ]
    # Allowances for rounding differ a little: the largest serves all.
    noisiest = max(plans, key=lambda plan: getattr(plan.mechanism, "sensitivity", 0.0))
    candidates = tuple(
        _training(problem, margin, replace(plan, mechanism=noisiest.mechanism))
        for margin, plan in zip(margins, plans, strict=True)
    )
    events: tuple[Event, ...] = (choice.event, *candidates[0].plan.events)
    if math.isinf(epsilon):
        events = (Pure(math.inf),)
    return MarginPlan(candidates, gaps, penalties, choice, events)


def _training(problem: Problem, margin: float, plan: DescentPlan) -> Training:
    """Wrap the steps for one margin."""
    bias = constant_column(problem)
    steps = GradientPlan(plan, slopes=margin_slopes)
    return Training("noisy_gd", margin, plan.steps.shift, bias, None, plan.n_columns, steps)


def _divided(
    margins: list[float], gaps: tuple[float, ...], epsilon: float, delta: float
) -> tuple[float, GeneralizedChoice | NoNoise]:
    """Divide a budget: signal to noise ratio of the training, and the choice."""
    if math.isinf(epsilon):
        return math.inf, NoNoise()
    # A loss is between zero and one plus the radius; a computed minimum is off by the gap.
    reach = tuple(
        (1.0 + 1.0 / margin + gap) * (1.0 + 2.0**-30)
        for margin, gap in zip(margins, gaps, strict=True)
    )
    choice = GeneralizedChoice(reach, _CHOICE_SHARE * epsilon)
    mu = calibrate(
        lambda mu: [Gaussian(mu), Exponential(choice.epsilon)],
        epsilon,
        delta,
        lower=0.0,
        upper=gdp_mu(epsilon, delta),
    )
    return mu * (1.0 - 2.0**-40), choice


def kept_memory(plan: Training | MarginPlan, memory: int) -> int:
    """Return how many bytes of features to keep when `memory` is asked for; public."""
    return max(memory, _SEARCH_MEMORY) if isinstance(plan, MarginPlan) else memory


def choose_margin(
    plan: MarginPlan,
    rows: Rows,
    codes: NDArray[np.intp],
    weights: FloatArray,
    permit: Permit,
) -> Training:
    """Choose a margin within the budget of a plan.

    Parameters
    ----------
    rows : Rows
        Of norm at most one.
    codes : ndarray of shape (n_samples,)
        Class of each record.
    weights : ndarray of shape (2,)
        Public class weights in [0, 1].
    permit : Permit
        Charged with the events of the plan.

    Returns
    -------
    Training
        Still to be run. Its margin is private; what the others cost must not leave.
    """
    signs = np.where(codes == 1, 1.0, -1.0)
    objective = MarginObjective(rows, signs, weights[codes], _LOSS, ridge=1.0)
    costs = []
    with single_blas_thread():
        for candidate, gap, penalty in zip(plan.candidates, plan.gaps, plan.penalties, strict=True):
            radius = 1.0 / float(candidate.margin or 1.0)
            costs.append(ball_minimum(objective, radius, gap) + penalty)
    released = permit.release(np.array(costs), plan.choice)
    is_index = isinstance(plan.choice, GeneralizedChoice)
    return plan.candidates[int(released[0]) if is_index else int(released.argmin())]
