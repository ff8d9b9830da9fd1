"""How much to regularise, from public numbers: bias against noise.

Each rule adds what a regulariser costs a good model to what its noise costs every model, and
takes the regulariser with the least sum. No privacy rests on these rules.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize_scalar

from dp_halfspace.algorithms.perturbation.objective import ObjectivePlan, sketch_objective
from dp_halfspace.algorithms.perturbation.output import plan_output
from dp_halfspace.exceptions import CertificateError
from dp_halfspace.optim.risks.margin import MarginRisk, jacobian_floor
from dp_halfspace.optim.risks.pairs import PairRisk
from dp_halfspace.optim.risks.risk import RIDGE_FLOOR
from dp_halfspace.optim.risks.softmax import SoftmaxRisk
from dp_halfspace.privacy.mechanisms import GaussianNoise, L2LaplaceNoise, NoNoise
from dp_halfspace.privacy.profiles import gdp_mu

__all__ = ["bias_cost", "objective_ridge", "output_ridge", "pair_ridge", "unit_row_ridge"]

# What a good model is guessed to save of the loss of zeros; see docs/defaults.md.
_SAVED = 1.0 / 3.0
_GRID = 100
# Distance to the minimiser without noise, as a share of the largest norm it can have.
_CLOSE = 1e-3
# Worse than any risk, and finite for the arithmetic of the search.
_OUT_OF_REACH = 1e100
# Norm that a good ranking is guessed to need, in units of 1 / row_norm.
_RANKING_NORM = 5.0


def bias_cost(risk: MarginRisk | SoftmaxRisk, ridge: float, *, norm_guess: float) -> float:
    """Guess what a regulariser costs.

    Parameters
    ----------
    ridge : float
        Coefficient of the regulariser, per mean loss.
    norm_guess : float
        Public guess of the norm of a good vector of coefficients.

    Returns
    -------
    float
        ``ridge norm_guess^2 / 2``. With a tilt or an adversary the noise can leave nothing of a
        model; then this counts for every released vector, and tends to a third of the loss of
        zeros, because no regulariser costs more than the whole model saves.

    Examples
    --------
    >>> from dp_halfspace.algorithms.perturbation.regulariser import bias_cost
    >>> from dp_halfspace.optim import LOGISTIC, empirical_risk
    >>> tilted = empirical_risk(LOGISTIC, 1000, 10, 2, row_norm=1.0, block_rows=1000, tilt=1.0)
    >>> [round(bias_cost(tilted, ridge, norm_guess=4.0), 3) for ridge in (0.001, 0.1, 10.0)]
    [0.008, 0.179, 0.23]
    """
    plain = ridge * norm_guess**2 / 2
    if not risk.robust:
        return plain
    plain *= risk.n_released / risk.n_columns
    return plain / (1.0 + plain / (_SAVED * risk.loss_of_zeros))


def output_ridge(
    risk: MarginRisk | SoftmaxRisk, epsilon: float, delta: float, *, norm_guess: float
) -> float:
    """Choose the regulariser of output perturbation.

    Minimises :func:`bias_cost` plus :meth:`Risk.noise_cost`, the noise being that of the
    regulariser.

    Parameters
    ----------
    epsilon, delta : float
        Budget of the release.
    norm_guess : float
        Public guess of the norm of a good vector of coefficients.

    Returns
    -------
    float
        Per mean loss. Without noise the floor below which nothing can be certified.

    References
    ----------
    Lowy and Razaviyayn (2021), Corollary 2.1, has the same balance in closed form; here the
    noise multipliers are exact, the sensitivity is that at each candidate, and the cost of the
    noise has no factor of the dimension.

    Examples
    --------
    >>> from dp_halfspace.algorithms.perturbation.regulariser import output_ridge
    >>> from dp_halfspace.optim import LOGISTIC, empirical_risk
    >>> risk = empirical_risk(LOGISTIC, 10000, 10, 2, row_norm=1.0, block_rows=8192)
    >>> 1e-3 < output_ridge(risk, 1.0, 1e-8, norm_guess=4.0) < 1e-2
    True
    """
    if math.isinf(epsilon):
        return _least_ridge(risk)
    # Variance of one coefficient for a sensitivity of one.
    unit_variance = (
        (risk.n_released + 1) / epsilon**2 if delta == 0 else 1 / gdp_mu(epsilon, delta) ** 2
    )

    def cost(log_ridge: float) -> float:
        ridge = math.exp(log_ridge)
        sensitivity = math.sqrt(risk.n_stacked) * risk.sensitivity(ridge)
        noise = risk.noise_cost(unit_variance * sensitivity**2)
        return bias_cost(risk, ridge, norm_guess=norm_guess) + noise

    unit = math.log(risk.row_norm**2)
    bounds = (unit + math.log(RIDGE_FLOOR), unit + math.log(1e4))
    if risk.robust:
        # One record takes over within a small range of ridges: there may be two minima.
        grid = np.linspace(*bounds, _GRID).tolist()
        best = min(range(_GRID), key=lambda i: cost(grid[i]))
        bounds = grid[max(best - 1, 0)], grid[min(best + 1, _GRID - 1)]
    return math.exp(float(minimize_scalar(cost, bounds=bounds, method="bounded").x))


def _least_ridge(risk: MarginRisk | SoftmaxRisk) -> float:
    """Return the floor, in robust problems the smallest tenfold of it that gives a minimiser.

    What is certified is a share of the influence of a record. A tilt can make that as large as
    the ball of all minimisers, and then any point would do.
    """
    ridge = RIDGE_FLOOR * risk.row_norm**2
    while risk.robust and ridge < risk.row_norm**2:
        try:
            plan = plan_output(risk, ridge, lambda sensitivity: NoNoise())
        except CertificateError:
            pass
        else:
            if plan.tolerance.target <= _CLOSE * plan.radius * risk.total(ridge):
                break
        ridge *= 10.0
    return ridge


def objective_ridge(
    risk: MarginRisk | SoftmaxRisk, epsilon: float, delta: float, *, norm_guess: float
) -> float:
    """Choose the regulariser of objective perturbation.

    Minimises ``ridge ||w||^2 / 2 + E ||b||^2 / (2 (ridge + curvature))`` plus what the
    output noise costs, with ``||w||`` guessed and ``b`` the linear term per record. Without
    curvature the second term bounds what the linear term adds to the objective; the curvature
    is that of rows of full length spread evenly over all coefficients, which no data set
    exceeds on average.

    Parameters
    ----------
    epsilon, delta : float
        Budget of the release.
    norm_guess : float
        Public guess of the norm of a good vector of coefficients between two classes.

    Returns
    -------
    float
        Per mean loss, at least :meth:`Risk.ridge_floor`.

    References
    ----------
    Wang, Yang, Lei, Ying and Zhang (2021), Theorem 7, balances the first two terms without
    curvature, in closed form. ``docs/proofs/objective_perturbation.md``, section 7.

    Examples
    --------
    >>> from dp_halfspace.algorithms.perturbation.regulariser import objective_ridge
    >>> from dp_halfspace.optim import LOGISTIC, empirical_risk
    >>> risk = empirical_risk(LOGISTIC, 10000, 20, 2, row_norm=1.0, block_rows=8192)
    >>> 1e-4 < objective_ridge(risk, 1.0, 1e-8, norm_guess=2.0) < 1e-2
    True
    """
    floor = risk.ridge_floor(epsilon)
    if math.isinf(epsilon):
        return floor
    curvature = risk.curvature * risk.rank * risk.n_stacked / risk.n_released
    # Two classes of a softmax hold half the vector of the binary model each.
    copies = risk.n_classes / 4.0 if isinstance(risk, SoftmaxRisk) else risk.n_stacked
    squared_norm = copies * norm_guess * norm_guess

    def cost(log_ridge: float) -> float:
        ridge = math.exp(log_ridge)
        try:
            plan = sketch_objective(risk, ridge, epsilon, delta)
        except CertificateError:
            return _OUT_OF_REACH
        bias = ridge * squared_norm / 2.0
        noise = _squared_linear_term(plan, risk) / (2.0 * (ridge + curvature))
        return bias + noise + risk.noise_cost(_output_variance(plan, risk.n_released))

    bounds = (math.log(floor), math.log(max(floor, 1e4 * risk.row_norm**2)) + 1.0)
    found = minimize_scalar(cost, bounds=bounds, method="bounded", options={"xatol": 1e-2})
    return math.exp(float(found.x))


def _squared_linear_term(plan: ObjectivePlan, risk: MarginRisk | SoftmaxRisk) -> float:
    """Mean squared norm of the linear terms, per record."""
    if isinstance(plan.linear, NoNoise):
        return 0.0
    variance = plan.linear.variance(risk.n_columns)
    return risk.n_released * variance / risk.n_samples**2


def _output_variance(plan: ObjectivePlan, n_released: int) -> float:
    """Variance that the output noise adds to a coefficient."""
    if isinstance(plan.output, GaussianNoise):
        return plan.output.sigma * plan.output.sigma
    if isinstance(plan.output, L2LaplaceNoise):
        return (n_released + 1) * plan.output.scale * plan.output.scale
    return 0.0


def unit_row_ridge(
    risk: MarginRisk | SoftmaxRisk,
    epsilon: float,
    delta: float,
    *,
    stretch: float,
    jacobian_share: float,
    mu_share: float = 1.0,
) -> float:
    """Choose the regulariser of objective perturbation in proportion to the noise.

    Parameters
    ----------
    risk : MarginRisk or SoftmaxRisk
        Of rows of norm one.
    epsilon, delta : float
        Budget.
    stretch : float
        Standard deviation of the linear term over the regulariser, on the scale of the sum.
    jacobian_share : float
        Largest share of `epsilon` that the ratio of the Jacobians may take.
    mu_share : float, default=1.0
        Share of ``mu^2`` that an earlier release leaves; for ``delta > 0``.

    Returns
    -------
    float
        Per mean loss.

    References
    ----------
    Wang, Yang, Lei, Ying and Zhang (2021), Theorem 7: the same proportion to the noise, with
    ``sqrt(d) / ||w||`` in place of ``1 / stretch``. ``docs/proofs/objective_perturbation.md``,
    section 7.

    Examples
    --------
    >>> from dp_halfspace.algorithms.perturbation.regulariser import unit_row_ridge
    >>> from dp_halfspace.optim import LOGISTIC, empirical_risk
    >>> risk = empirical_risk(LOGISTIC, 10000, 20, 2, row_norm=1.0, block_rows=8192)
    >>> ridge = unit_row_ridge(risk, 1.0, 0.0, stretch=2.0, jacobian_share=0.5)
    >>> round(10000 * ridge, 3)
    4.583
    """
    if math.isinf(epsilon):
        return risk.ridge_floor(epsilon)
    copies = risk.n_stacked
    if delta == 0:
        spread = risk.block_change * copies / epsilon * math.sqrt(risk.n_columns + 1)
    else:
        spread = risk.gradient_change / (math.sqrt(mu_share / copies) * gdp_mu(epsilon, delta))
    floor = jacobian_floor(risk.curvature, jacobian_share * epsilon / (risk.rank * copies))
    return max(spread / stretch, floor) / risk.n_samples


def pair_ridge(risk: PairRisk, epsilon: float, delta: float, *, perturbs_objective: bool) -> float:
    """Choose the regulariser of a sum over pairs.

    Parameters
    ----------
    epsilon, delta : float
        What the release may cost; zero `delta` means pure epsilon.
    perturbs_objective : bool
        Otherwise the minimiser is perturbed.

    Returns
    -------
    float
        Balances the regulariser at a guessed norm with the loss that the noise adds. Its
        product with the normaliser, on which alone the fit depends, is a function of n, d
        and the budget.

    References
    ----------
    Wang, Yang, Lei, Ying and Zhang (2021), Remarks 1 and 2, with corrected constants:
    ``docs/estimators/auc.md``.

    Examples
    --------
    >>> from dp_halfspace.algorithms.perturbation.regulariser import pair_ridge
    >>> from dp_halfspace.optim import LOGISTIC
    >>> from dp_halfspace.optim.risks.pairs import PairRisk
    >>> risk = PairRisk(LOGISTIC, 1000, 5, 1.0, 1000, 250_000.0)
    >>> low = pair_ridge(risk, 8.0, 1e-6, perturbs_objective=True)
    >>> low < pair_ridge(risk, 1.0, 1e-6, perturbs_objective=True)
    True
    """
    if math.isinf(epsilon):
        return RIDGE_FLOOR * risk.row_norm**2
    d = risk.n_columns
    spread = math.sqrt(d) / gdp_mu(epsilon, delta) if delta > 0 else math.sqrt(d * d + d) / epsilon
    guess = _RANKING_NORM / risk.row_norm
    if perturbs_objective:
        return risk.gradient_change * spread / guess
    # A pair meets only the noise along itself, hence the share of one direction.
    curvature = risk.loss.smoothness * risk.diameter**2 / d
    slope = risk.loss.slope_bound(risk.diameter * guess)
    change = risk.partners * slope * risk.diameter * spread
    return float((2.0 * curvature * (change / guess) ** 2) ** (1.0 / 3.0))
