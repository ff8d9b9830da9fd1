"""Choice of the regulariser of output perturbation, from public numbers."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize_scalar

from dp_halfspace.exceptions import CertificateError
from dp_halfspace.optim.erm import RIDGE_FLOOR, RidgeProblem, plan_erm
from dp_halfspace.privacy.profiles import gdp_mu

__all__ = ["automatic_ridge", "bias_cost"]

# What a good model is guessed to save of the loss of zeros; see docs/defaults.md.
_SAVED = 1.0 / 3.0
_GRID = 100
# Distance to the minimiser without noise, as a share of the largest norm it can have.
_CLOSE = 1e-3


def bias_cost(problem: RidgeProblem, ridge: float, *, norm_guess: float) -> float:
    """Guess what a regulariser costs.

    Parameters
    ----------
    problem : RidgeProblem
    ridge : float
        Coefficient of the regulariser, per mean loss.
    norm_guess : float
        Public guess of the norm of a good vector of coefficients.

    Returns
    -------
    float
        ``ridge norm_guess^2 / 2``. With a tilt or an attack the noise can leave nothing of a
        model; then this counts for every released vector, and tends to a third of the loss of
        zeros, because no regulariser costs more than the whole model saves.

    Examples
    --------
    >>> from dp_halfspace.optim import LOGISTIC, RidgeProblem
    >>> from dp_halfspace.optim.erm_ridge import bias_cost
    >>> tilted = RidgeProblem(LOGISTIC, 1000, 10, 2, row_norm=1.0, block_rows=1000, tilt=1.0)
    >>> [round(bias_cost(tilted, ridge, norm_guess=4.0), 3) for ridge in (0.001, 0.1, 10.0)]
    [0.008, 0.179, 0.23]
    """
    plain = ridge * norm_guess**2 / 2
    if not problem.robust:
        return plain
    plain *= problem.n_released / problem.n_columns
    if problem.multinomial:
        of_zeros = math.log1p((problem.n_classes - 1) * math.exp(problem.loss.shift))
    else:
        of_zeros = problem.loss.at_zero * problem.n_stacked
    return plain / (1.0 + plain / (_SAVED * problem.max_weight * of_zeros))


def automatic_ridge(
    problem: RidgeProblem, epsilon: float, delta: float, *, norm_guess: float
) -> float:
    """Choose the regulariser that balances bias and noise, from public numbers.

    Minimises :func:`bias_cost` plus :meth:`RidgeProblem.noise_cost`, the noise being that of
    the sensitivity at the candidate.

    Parameters
    ----------
    problem : RidgeProblem
    epsilon, delta : float
        Budget of the release.
    norm_guess : float
        Public guess of the norm of a good vector of coefficients.

    Returns
    -------
    float
        Coefficient of the regulariser, per mean loss. Without noise the smallest that can be
        solved for.

    References
    ----------
    Lowy and Razaviyayn (2021), Propositions C.1 and C.2 balance the same two terms in closed
    form; here the noise multipliers are exact, the sensitivity is that at each candidate, and
    the cost of the noise has no factor of the dimension.

    Examples
    --------
    >>> from dp_halfspace.optim import LOGISTIC, RidgeProblem, automatic_ridge
    >>> problem = RidgeProblem(LOGISTIC, 10000, 10, 2, row_norm=1.0, block_rows=8192)
    >>> 1e-3 < automatic_ridge(problem, 1.0, 1e-8, norm_guess=4.0) < 1e-2
    True
    """
    if math.isinf(epsilon):
        return _least_ridge(problem)
    # Variance of one coefficient for a sensitivity of one.
    unit_variance = (
        (problem.n_released + 1) / epsilon**2 if delta == 0 else 1 / gdp_mu(epsilon, delta) ** 2
    )

    def risk(log_ridge: float) -> float:
        ridge = math.exp(log_ridge)
        sensitivity = math.sqrt(problem.n_stacked) * problem.sensitivity(ridge)
        noise = problem.noise_cost(unit_variance * sensitivity**2)
        return bias_cost(problem, ridge, norm_guess=norm_guess) + noise

    unit = math.log(problem.row_norm**2)
    bounds = (unit + math.log(RIDGE_FLOOR), unit + math.log(1e4))
    if problem.robust:
        # One record takes over within a small range of ridges: there may be two minima.
        grid = np.linspace(*bounds, _GRID).tolist()
        best = min(range(_GRID), key=lambda i: risk(grid[i]))
        bounds = grid[max(best - 1, 0)], grid[min(best + 1, _GRID - 1)]
    return math.exp(float(minimize_scalar(risk, bounds=bounds, method="bounded").x))


def _least_ridge(problem: RidgeProblem) -> float:
    """Return the floor, in robust problems the smallest tenfold of it that gives a minimiser.

    What is certified is a share of the influence of a record. A tilt can make that as large as
    the ball of all minimisers, and then any point would do.
    """
    ridge = RIDGE_FLOOR * problem.row_norm**2
    while problem.robust and ridge < problem.row_norm**2:
        try:
            plan = plan_erm(problem, ridge)
        except CertificateError:
            pass
        else:
            if plan.tolerance <= _CLOSE * plan.radius * ridge * problem.n_samples:
                break
        ridge *= 10.0
    return ridge
