"""Choice of the regulariser of objective perturbation, from public numbers."""

from __future__ import annotations

import math

from scipy.optimize import minimize_scalar

from dp_halfspace.exceptions import CertificateError
from dp_halfspace.optim.erm import RidgeProblem
from dp_halfspace.optim.linear_noise import GaussianLinearTerm
from dp_halfspace.optim.objective_bounds import (
    block_change,
    gradient_change,
    gradient_corners,
    jacobian_log_ratio,
    objective_ridge_floor,
    record_curvature,
)
from dp_halfspace.optim.objective_perturbation import ObjectivePlan, sketch_objective
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.events import Event, Repeated
from dp_halfspace.privacy.mechanisms import GaussianNoise, L2LaplaceNoise, NoNoise
from dp_halfspace.privacy.profiles import gdp_mu

__all__ = ["automatic_objective_ridge", "feasible_ridge", "unit_row_ridge"]


# Worse than any risk, and finite for the arithmetic of the search.
_OUT_OF_REACH = 1e100


def automatic_objective_ridge(
    problem: RidgeProblem, epsilon: float, delta: float, *, norm_guess: float
) -> float:
    """Choose the regulariser that balances bias and noise.

    Minimises ``ridge ||w||^2 / 2 + E ||b||^2 / (2 (ridge + curvature))`` plus what the
    output noise costs, with ``||w||`` guessed and ``b`` the linear term per record. Without
    curvature the second term bounds what the linear term adds to the objective; the curvature
    is that of rows of full length spread evenly over all coefficients, which no data set
    exceeds on average.

    Parameters
    ----------
    problem : RidgeProblem
    epsilon, delta : float
        Budget of the release.
    norm_guess : float
        Public guess of the norm of a good vector of coefficients between two classes.

    Returns
    -------
    float
        Coefficient of the regulariser, per mean loss; at least
        :func:`~dp_halfspace.optim.objective_bounds.objective_ridge_floor`.

    References
    ----------
    Wang, Yang, Lei, Ying and Zhang (2021), Theorem 7, balances the first two terms without
    curvature, in closed form. ``docs/proofs/objective_perturbation.md``, section 7.

    Examples
    --------
    >>> from dp_halfspace.optim import LOGISTIC, RidgeProblem
    >>> from dp_halfspace.optim.objective_ridge import automatic_objective_ridge
    >>> problem = RidgeProblem(LOGISTIC, 10000, 20, 2, row_norm=1.0, block_rows=8192)
    >>> ridge = automatic_objective_ridge(problem, 1.0, 1e-8, norm_guess=2.0)
    >>> 1e-4 < ridge < 1e-2
    True
    """
    floor = objective_ridge_floor(problem, epsilon)
    if math.isinf(epsilon):
        return floor
    mean, rank = record_curvature(problem)
    curvature = mean * rank * problem.n_stacked / problem.n_released
    # Two classes of a softmax hold half the vector of the binary model each.
    copies = problem.n_classes / 4.0 if problem.multinomial else problem.n_stacked
    squared_norm = copies * norm_guess * norm_guess

    def risk(log_ridge: float) -> float:
        ridge = math.exp(log_ridge)
        try:
            plan = sketch_objective(problem, ridge, epsilon, delta)
        except CertificateError:
            return _OUT_OF_REACH
        bias = ridge * squared_norm / 2.0
        noise = _squared_linear_term(plan) / (2.0 * (ridge + curvature))
        return bias + noise + problem.noise_cost(_output_variance(plan))

    bounds = (math.log(floor), math.log(max(floor, 1e4 * problem.row_norm**2)) + 1.0)
    found = minimize_scalar(risk, bounds=bounds, method="bounded", options={"xatol": 1e-2})
    return math.exp(float(found.x))


def unit_row_ridge(
    problem: RidgeProblem,
    epsilon: float,
    delta: float,
    *,
    stretch: float,
    jacobian_share: float,
    mu_share: float = 1.0,
) -> float:
    """Choose the regulariser in proportion to the noise, for rows of norm one.

    Parameters
    ----------
    problem : RidgeProblem
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
        Coefficient of the regulariser, per mean loss.

    References
    ----------
    Wang, Yang, Lei, Ying and Zhang (2021), Theorem 7: the same proportion to the noise, with
    ``sqrt(d) / ||w||`` in place of ``1 / stretch``. ``docs/proofs/objective_perturbation.md``,
    section 7.

    Examples
    --------
    >>> from dp_halfspace.optim import LOGISTIC, RidgeProblem
    >>> from dp_halfspace.optim.objective_ridge import unit_row_ridge
    >>> problem = RidgeProblem(LOGISTIC, 10000, 20, 2, row_norm=1.0, block_rows=8192)
    >>> ridge = unit_row_ridge(problem, 1.0, 0.0, stretch=2.0, jacobian_share=0.5)
    >>> round(10000 * ridge, 3)
    4.583
    """
    if math.isinf(epsilon):
        return objective_ridge_floor(problem, epsilon)
    copies = problem.n_stacked
    if delta == 0:
        scale = block_change(problem) * copies / epsilon
        spread = scale * math.sqrt(problem.n_columns + 1)
    else:
        mu = math.sqrt(mu_share / copies) * gdp_mu(epsilon, delta)
        spread = gradient_change(problem) / mu
    curvature, rank = record_curvature(problem)
    share = jacobian_share * epsilon / (rank * copies)
    # 1 / (exp(share) - 1), without overflow.
    odds = math.exp(-share) / -math.expm1(-share)
    return max(spread / stretch, curvature * odds) / problem.n_samples


def feasible_ridge(
    problem: RidgeProblem,
    ridge: float,
    epsilon: float,
    delta: float,
    earlier: tuple[Event, ...] = (),
) -> float | None:
    """Raise a regulariser until earlier releases and the Jacobian leave half of `delta`.

    Parameters
    ----------
    problem, ridge, epsilon, delta, earlier
        As in :func:`~dp_halfspace.optim.objective_perturbation.plan_objective`, with a
        positive `delta` unless `earlier` is empty.

    Returns
    -------
    float or None
        Per mean loss; None when no regulariser is enough.

    Examples
    --------
    >>> from dp_halfspace.optim import LOGISTIC, RidgeProblem
    >>> from dp_halfspace.optim.objective_ridge import feasible_ridge
    >>> from dp_halfspace.privacy import Gaussian
    >>> problem = RidgeProblem(LOGISTIC, 10000, 20, 2, row_norm=1.0, block_rows=8192)
    >>> feasible_ridge(problem, 1e-3, 1.0, 1e-6, (Gaussian(0.1),))
    0.001
    """
    ridge = max(ridge, objective_ridge_floor(problem, epsilon))
    if not earlier:
        return ridge

    corners, copies = gradient_corners(problem), problem.n_stacked

    def fits(log_ratio: float) -> bool:
        event = GaussianLinearTerm(1.0, 0.0, log_ratio, corners).event
        events = (*earlier, Repeated(event, copies))
        return accounting.remembered_delta(events, epsilon) <= 0.5 * delta

    if not fits(0.0):
        return None
    while not fits(jacobian_log_ratio(problem, ridge)):
        ridge *= 1.3
    return ridge


def _squared_linear_term(plan: ObjectivePlan) -> float:
    """Mean squared norm of the linear terms, per record."""
    problem = plan.problem
    if isinstance(plan.linear, NoNoise):
        return 0.0
    variance = plan.linear.variance(problem.n_columns)
    return problem.n_released * variance / problem.n_samples**2


def _output_variance(plan: ObjectivePlan) -> float:
    """Variance that the output noise adds to a coefficient."""
    if isinstance(plan.output, GaussianNoise):
        return plan.output.sigma * plan.output.sigma
    if isinstance(plan.output, L2LaplaceNoise):
        return (plan.problem.n_released + 1) * plan.output.scale * plan.output.scale
    return 0.0
