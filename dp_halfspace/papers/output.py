"""Output perturbation: the minimiser of a regularised risk, with noise.

The risk bounds how far one record can move the exact minimiser. The solver certifies a bound on its
distance from the exact minimiser, and twice that distance is added. The sum is the sensitivity that
the noise is calibrated to. If no regulariser is stated, a rule minimises the sum of its bias for a
good model and of the cost of the noise, from public numbers; no privacy rests on these rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from dp_halfspace._rounding import UP
from dp_halfspace.exceptions import CertificateError
from dp_halfspace.optim.risks import RIDGE_FLOOR, MarginRisk, Risk, jacobian_floor, tolerance
from dp_halfspace.optim.solvers import Optimizer
from dp_halfspace.papers.objective import (
    GaussianLinearTerm,
    LaplaceLinearTerm,
    PerturbedMinimiser,
    sketch_objective,
)
from dp_halfspace.papers.pair_objective import PairRisk
from dp_halfspace.privacy.mechanisms import AnyNoise, NoNoise, noise_deviation
from dp_halfspace.privacy.profiles import gdp_mu


def plan_output(
    risk: Risk,
    ridge: float,
    noise: Callable[[float], AnyNoise],
    *,
    optimizer: Optimizer = "auto",
    projects: bool = False,
) -> PerturbedMinimiser:
    """Fix every public number of a noisy minimiser.

    `ridge` is raised to :attr:`Risk.least_ridge`; `noise` turns a sensitivity into the mechanism
    that the budget covers. Raise a `CertificateError` if rounding errors alone would double the
    noise; this depends on public numbers, and no data have been read.

    References: ``docs/proofs/stability.md``, section 5, and ``docs/proofs/certificate.md``; for
    pairs ``docs/proofs/pairwise.md``.
    """
    ridge = max(ridge, risk.least_ridge)
    radius, exact, total = risk.radius(ridge), risk.sensitivity(ridge), risk.total(ridge)
    goal = tolerance(risk, ridge, radius, exact * total)
    sensitivity = math.sqrt(risk.n_stacked) * (exact + 2.0 * (goal.certified / total)) * UP
    output = noise(sensitivity)
    return PerturbedMinimiser(
        risk, ridge, radius, goal, sensitivity, output, None, optimizer, projects
    )


# Assumed share of the loss of zero coefficients that a good model saves; see
# ``docs/defaults.md``.
_SAVED = 1.0 / 3.0
# Number of regularisers on the first grid of a search.
_GRID_RIDGES = 100
# Largest certified distance to the minimiser if there is no noise, as a share of its largest norm.
_CLOSE_SHARE = 1e-3
# Cost of a regulariser for which no plan exists: larger than any risk, and finite so that the
# search can interpolate.
_OUT_OF_REACH = 1e100
# After a preconditioner: factors of the rules for few and for many records.
_FEW_RECORDS = 20.0
_MANY_RECORDS = 10.0
# Objective perturbation of rows of norm one: standard deviation of the linear term relative to the
# regulariser, both on the scale of the sum; and largest share of epsilon for the Jacobians.
_STRETCH = 1.5
_JACOBIAN_SHARE = 0.35
# Assumed norm of the coefficients of a good ranking, in units of 1 / row_norm.
_RANKING_NORM = 5.0


def bias_cost(risk: Risk, ridge: float, *, norm_guess: float) -> float:
    """Estimate the bias of a regulariser, per mean loss.

    It is ``ridge norm_guess^2 / 2`` with a guess of the norm of a good vector of coefficients. With
    a tilt or an adversary, the noise can exceed the whole model. There the estimate is multiplied
    by the number of released vectors, and limited to a third of the loss of zero coefficients,
    because a regulariser cannot cost more than a good model saves.
    """
    plain = ridge * norm_guess**2 / 2
    if not risk.robust:
        return plain
    plain *= risk.n_released / risk.n_columns
    loss_of_zeros = risk.max_weight * risk.loss.at_zero * risk.n_stacked
    return plain / (1.0 + plain / (_SAVED * loss_of_zeros))


@lru_cache(maxsize=256)  # Candidates of a search and folds have the same public numbers.
def output_ridge(risk: Risk, epsilon: float, delta: float, *, norm_guess: float) -> float:
    """Choose the regulariser of output perturbation, per mean loss.

    It minimises :func:`bias_cost` plus :meth:`Risk.noise_cost` for the noise that the regulariser
    entails. Without noise it is the floor below which nothing can be certified.

    Lowy and Razaviyayn (2021), Corollary 2.1, has the same balance in closed form; here the
    noise multipliers are exact, the sensitivity is that at each candidate, and the cost of the
    noise has no factor of the dimension.
    """
    if math.isinf(epsilon):
        return _least_ridge(risk)
    # Variance of one coefficient for a sensitivity of one.
    if delta == 0:
        unit_variance = (risk.n_released + 1) / epsilon**2
    else:
        unit_variance = 1 / gdp_mu(epsilon, delta) ** 2

    def cost(log_ridge: float) -> float:
        ridge = math.exp(log_ridge)
        sensitivity = math.sqrt(risk.n_stacked) * risk.sensitivity(ridge)
        noise = risk.noise_cost(unit_variance * sensitivity**2)
        return bias_cost(risk, ridge, norm_guess=norm_guess) + noise

    unit = math.log(risk.row_norm**2)
    bounds = (unit + math.log(RIDGE_FLOOR), unit + math.log(1e4))
    if risk.robust:
        # With a tilt, the influence of one record rises steeply within a small range of ridges, so
        # that there may be two minima.
        grid = np.linspace(*bounds, _GRID_RIDGES).tolist()
        best = min(range(_GRID_RIDGES), key=lambda i: cost(grid[i]))
        bounds = grid[max(best - 1, 0)], grid[min(best + 1, _GRID_RIDGES - 1)]
    return math.exp(float(minimize_scalar(cost, bounds=bounds, method="bounded").x))


def mapped_row_ridge(risk: Risk, mu: float) -> float:
    """Choose the regulariser of output perturbation of centred rows of norm one.

    With many records it is proportional to ``1 / (n mu)``, so that the noise of one coefficient is
    at most a fifth. With few records for each coefficient it is larger, so that the norm of the
    noise stays in proportion to that of the minimisers. So it is in proportion to the slope of a
    loss, too, which of a quadratic loss is that at the largest norm of its minimisers. `mu` is the
    signal to noise ratio of the release. Evidence: ``docs/defaults.md``.
    """
    if math.isinf(mu):
        return risk.least_ridge
    strength = float(risk.n_samples * mu)
    few = _FEW_RECORDS * math.sqrt(risk.n_released) / strength**1.5
    ridge = float(risk.max_weight * min(1.0, max(few, _MANY_RECORDS / strength)))
    if not isinstance(risk, MarginRisk) or math.isfinite(risk.loss.lipschitz):
        return ridge
    loss = risk.loss

    def wanted(candidate: float) -> float:
        return ridge * loss.slope_bound(risk.row_norm * risk.radius(candidate))

    return float(brentq(lambda candidate: wanted(candidate) - candidate, ridge, wanted(ridge)))


def _least_ridge(risk: Risk) -> float:
    """Return the floor; for robust risks, the floor times the first power of ten that is useful.

    The solver certifies a distance in proportion to the influence of a record. With a tilt this
    influence can be as large as the ball of all minimisers, and any point would be accepted.
    """
    ridge = RIDGE_FLOOR * risk.row_norm**2
    while risk.robust and ridge < risk.row_norm**2:
        with suppress(CertificateError):
            plan = plan_output(risk, ridge, lambda sensitivity: NoNoise())
            if plan.tolerance.target <= _CLOSE_SHARE * plan.radius * risk.total(ridge):
                break
        ridge *= 10.0
    return ridge


def objective_ridge(risk: Risk, epsilon: float, delta: float, *, norm_guess: float) -> float:
    """Choose the regulariser of objective perturbation, at least :meth:`Risk.ridge_floor`.

    It minimises ``ridge ||w||^2 / 2 + E ||b||^2 / (2 (ridge + curvature))`` plus the cost of the
    output noise, where ``||w||`` is guessed and ``b`` is the linear term per record. Without the
    curvature, the second term bounds what the linear term adds to the objective. The curvature is
    that of rows of full length spread evenly over all coefficients, which no data set exceeds on
    average. `norm_guess` is the norm of the difference between two classes.

    Wang, Yang, Lei, Ying and Zhang (2021), Theorem 7, balances the first two terms without
    curvature, in closed form. ``docs/proofs/objective_perturbation.md``, section 7.
    """
    floor = risk.ridge_floor(epsilon)
    if math.isinf(epsilon):
        return floor
    curvature = risk.curvature * risk.rank * risk.n_stacked / risk.n_released
    # In a softmax, each of two classes has half of the coefficients of the binary model.
    copies = risk.n_blocks / 4.0 if risk.n_blocks > 1 else risk.n_stacked
    squared_norm = copies * norm_guess * norm_guess

    def cost(log_ridge: float) -> float:
        ridge = math.exp(log_ridge)
        try:
            plan = sketch_objective(risk, ridge, epsilon, delta)
        except CertificateError:
            return _OUT_OF_REACH
        bias = ridge * squared_norm / 2.0
        assert isinstance(plan.linear, GaussianLinearTerm | LaplaceLinearTerm)
        linear = risk.n_released * plan.linear.variance(risk.n_columns) / risk.n_samples**2
        output = noise_deviation(plan.output, risk.n_released) ** 2
        return bias + linear / (2.0 * (ridge + curvature)) + risk.noise_cost(output)

    bounds = (math.log(floor), math.log(max(floor, 1e4 * risk.row_norm**2)) + 1.0)
    found = minimize_scalar(cost, bounds=bounds, method="bounded", options={"xatol": 1e-2})
    return math.exp(float(found.x))


def perturbed_row_ridge(
    risk: Risk, epsilon: float, delta: float, *, mu_share: float = 1.0
) -> float:
    """Choose the regulariser of objective perturbation of rows of norm one from the noise.

    The standard deviation of the linear term is `_STRETCH` times the regulariser, on the scale of
    the sum, and the Jacobians take at most `_JACOBIAN_SHARE` of `epsilon`. `mu_share` is the share
    of ``mu^2`` that an earlier release leaves, for ``delta > 0``.

    Wang, Yang, Lei, Ying and Zhang (2021), Theorem 7: the same proportion to the noise, with
    ``sqrt(d) / ||w||`` in place of ``1 / _STRETCH``. ``docs/proofs/objective_perturbation.md``,
    section 7.
    """
    if math.isinf(epsilon):
        return risk.ridge_floor(epsilon)
    copies = risk.n_stacked
    if delta == 0:
        spread = risk.block_change * copies / epsilon * math.sqrt(risk.n_columns + 1)
    else:
        spread = risk.gradient_change / (math.sqrt(mu_share / copies) * gdp_mu(epsilon, delta))
    floor = jacobian_floor(risk.curvature, _JACOBIAN_SHARE * epsilon / (risk.rank * copies))
    return max(spread / _STRETCH, floor) / risk.n_samples


def pair_ridge(risk: PairRisk, epsilon: float, delta: float, *, perturbs_objective: bool) -> float:
    """Choose the regulariser of a sum over pairs whose objective or minimiser is perturbed.

    It balances the regulariser at a guessed norm with the loss that the noise adds. The fit depends
    only on its product with the normaliser, which is a function of n, d and the budget.
    Wang, Yang, Lei, Ying and Zhang (2021), Remarks 1 and 2, with corrected constants:
    ``docs/evidence/auc.md``.
    """
    if math.isinf(epsilon):
        return RIDGE_FLOOR * risk.row_norm**2
    d = risk.n_columns
    spread = math.sqrt(d) / gdp_mu(epsilon, delta) if delta > 0 else math.sqrt(d * d + d) / epsilon
    guess = _RANKING_NORM / risk.row_norm
    if perturbs_objective:
        return risk.gradient_change * spread / guess
    # The noise changes the margin of a pair only along the difference of its rows, which is one of
    # d directions.
    curvature = risk.loss.smoothness * risk.diameter**2 / d
    slope = risk.loss.slope_bound(risk.diameter * guess)
    change = risk.partners * slope * risk.diameter * spread
    return float((2.0 * curvature * (change / guess) ** 2) ** (1.0 / 3.0))
