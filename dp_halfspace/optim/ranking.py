"""Output and objective perturbation of a regularised sum over all pairs.

The surrogate of one minus the area under the ROC curve, minimised exactly. A plan holds
every number that the privacy of the release rests on, from public quantities alone: class
counts enter none of them. Proofs: ``docs/proofs/pairwise.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._sklearn import single_blas_thread
from dp_halfspace.exceptions import BudgetError
from dp_halfspace.optim.linear_noise import GaussianLinearTerm, LaplaceLinearTerm
from dp_halfspace.optim.minimum import certified_minimum
from dp_halfspace.optim.pairwise import PairwiseObjective
from dp_halfspace.optim.pairwise_bounds import (
    PairwiseProblem,
    pairwise_gradient_change,
    pairwise_jacobian_log_ratio,
    pairwise_radius,
    pairwise_ridge_floor,
    pairwise_sensitivity,
)
from dp_halfspace.optim.pairwise_noise import pairwise_linear_term
from dp_halfspace.optim.pairwise_tolerance import pairwise_tolerance
from dp_halfspace.optim.rows import Rows
from dp_halfspace.optim.tolerance import Tolerance
from dp_halfspace.privacy.events import Event, Gaussian
from dp_halfspace.privacy.mechanisms import GaussianNoise, L2LaplaceNoise, NoNoise, Permit
from dp_halfspace.privacy.profiles import gdp_mu

__all__ = [
    "RankingPlan",
    "automatic_ranking_ridge",
    "plan_objective_ranking",
    "plan_output_ranking",
    "run_ranking",
]

FloatArray: TypeAlias = NDArray[np.float64]
LinearTerm: TypeAlias = GaussianLinearTerm | LaplaceLinearTerm | None
OutputNoise: TypeAlias = GaussianNoise | L2LaplaceNoise | NoNoise

# What hiding the error of the solver may cost, as in objective perturbation of one record.
_OUTPUT_MU, _OUTPUT_EPSILON = 0.05, 0.01
# Norm that a good ranking is guessed to need, in units of 1 / row_norm.
_NORM_GUESS = 5.0
# Smallest regulariser without noise, relative to the squared norm of a row.
_SMALLEST_RIDGE = 1e-8
_UP = 1.0 + 2.0**-40


@dataclass(frozen=True, slots=True)
class RankingPlan:
    """The public numbers of one minimisation.

    Attributes
    ----------
    problem : PairwiseProblem
    ridge : float
        Coefficient of the regulariser.
    radius : float
        Bound on the norm of the minimiser.
    tolerance : Tolerance
        What the solver has to certify.
    linear : GaussianLinearTerm, LaplaceLinearTerm or None
        The random linear term of objective perturbation.
    output : GaussianNoise, L2LaplaceNoise or NoNoise
        Noise on the minimiser.
    """

    problem: PairwiseProblem
    ridge: float
    radius: float
    tolerance: Tolerance
    linear: LinearTerm
    output: OutputNoise

    @property
    def events(self) -> tuple[Event, ...]:
        """What the fit costs."""
        first = () if self.linear is None else (self.linear.event,)
        return (*first, self.output.event)


def automatic_ranking_ridge(
    problem: PairwiseProblem, epsilon: float, delta: float, *, perturbs_objective: bool
) -> float:
    """Choose a regulariser from public numbers.

    Parameters
    ----------
    problem : PairwiseProblem
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
    >>> from dp_halfspace.optim import LOGISTIC
    >>> from dp_halfspace.optim.pairwise_bounds import PairwiseProblem
    >>> from dp_halfspace.optim.ranking import automatic_ranking_ridge
    >>> problem = PairwiseProblem(LOGISTIC, 1000, 5, 1.0, 1000, 250_000.0)
    >>> low = automatic_ranking_ridge(problem, 8.0, 1e-6, perturbs_objective=True)
    >>> low < automatic_ranking_ridge(problem, 1.0, 1e-6, perturbs_objective=True)
    True
    """
    if math.isinf(epsilon):
        return _SMALLEST_RIDGE * problem.row_norm**2
    d = problem.n_columns
    spread = math.sqrt(d) / gdp_mu(epsilon, delta) if delta > 0 else math.sqrt(d * d + d) / epsilon
    guess = _NORM_GUESS / problem.row_norm
    if perturbs_objective:
        return pairwise_gradient_change(problem) * spread / guess
    # A pair meets only the noise along itself, hence the share of one direction.
    curvature = problem.loss.smoothness * problem.diameter**2 / d
    slope = problem.loss.slope_bound(problem.diameter * guess)
    change = problem.partners * slope * problem.diameter * spread
    return float((2.0 * curvature * (change / guess) ** 2) ** (1.0 / 3.0))


def plan_output_ranking(
    problem: PairwiseProblem, ridge: float, *, mu: float = 0.0, epsilon: float = 0.0
) -> RankingPlan:
    """Fix the public numbers of one noisy minimiser.

    Parameters
    ----------
    problem : PairwiseProblem
    ridge : float
    mu, epsilon : float
        What the release may cost, as a Gaussian signal to noise ratio or as a pure epsilon;
        the other one is zero. Infinity means no noise.

    Returns
    -------
    RankingPlan

    Raises
    ------
    CertificateError
        If rounding errors could be as large as the influence of a record.
    """
    ridge = max(ridge, _SMALLEST_RIDGE * problem.row_norm**2)
    radius, exact = pairwise_radius(problem, ridge), pairwise_sensitivity(problem, ridge)
    tolerance = _tolerance(problem, ridge, radius, exact * ridge)
    sensitivity = (exact + 2.0 * tolerance.certified / ridge) * _UP
    output: OutputNoise = NoNoise()
    if math.isfinite(mu) and math.isfinite(epsilon):
        laplace = mu == 0.0
        output = L2LaplaceNoise(sensitivity, epsilon) if laplace else GaussianNoise(sensitivity, mu)
    return RankingPlan(problem, ridge, radius, tolerance, None, output)


def plan_objective_ranking(
    problem: PairwiseProblem,
    ridge: float,
    epsilon: float,
    delta: float,
    *,
    others: tuple[Event, ...] = (),
) -> RankingPlan:
    """Fix the public numbers of a perturbed minimisation.

    Parameters
    ----------
    problem : PairwiseProblem
        With a monotone loss of bounded slope.
    ridge : float
        Raised until the Jacobians leave half of the budget.
    epsilon, delta : float
        Budget of everything together; of this release alone with ``delta=0``.
    others : tuple of Event, default=()
        What else is released out of the same budget, with a positive `delta`.

    Returns
    -------
    RankingPlan

    Raises
    ------
    CertificateError
        If rounding errors could be as large as the influence of a record.
    ValueError
        If the loss does not qualify.
    """
    loss, change = problem.loss, pairwise_gradient_change(problem)
    if not (loss.smooth and loss.monotone and math.isfinite(loss.lipschitz)):
        raise ValueError("objective perturbation needs a smooth, monotone, Lipschitz loss")
    if math.isinf(epsilon):
        return plan_output_ranking(problem, ridge, mu=math.inf)
    ridge = max(ridge, pairwise_ridge_floor(problem, epsilon))
    linear: GaussianLinearTerm | LaplaceLinearTerm
    if delta == 0:
        spent = _OUTPUT_EPSILON * epsilon
        log_ratio = pairwise_jacobian_log_ratio(problem, ridge)
        linear = LaplaceLinearTerm(change, (epsilon - spent) * (1.0 - 2.0**-50), log_ratio)
    else:
        spent = _OUTPUT_MU * gdp_mu(epsilon, delta)
        events = (*others, Gaussian(spent))
        linear, ridge = _gaussian_term(problem, ridge, epsilon, delta, events)
    size = linear.norm_bound(1, problem.n_columns)
    rounding = linear.rounding(1, problem.n_columns)
    radius = pairwise_radius(problem, ridge) + size / ridge * _UP
    tolerance = _tolerance(problem, ridge, radius, change, linear=size, linear_error=rounding)
    sensitivity = 2.0 * tolerance.certified / ridge * _UP
    output: OutputNoise = (
        L2LaplaceNoise(sensitivity, spent) if delta == 0 else GaussianNoise(sensitivity, spent)
    )
    return RankingPlan(problem, ridge, radius, tolerance, linear, output)


def _gaussian_term(
    problem: PairwiseProblem,
    ridge: float,
    epsilon: float,
    delta: float,
    others: tuple[Event, ...],
) -> tuple[GaussianLinearTerm, float]:
    """Calibrate the linear term, with a regulariser that leaves it something."""
    for _ in range(100):
        try:
            return pairwise_linear_term(problem, ridge, epsilon, delta, others=others), ridge
        except BudgetError:
            ridge *= 1.5
    raise BudgetError(
        f"the budget epsilon={epsilon!r}, delta={delta!r} is too small: "
        "the other releases leave nothing for the ranking"
    )


def _tolerance(
    problem: PairwiseProblem, ridge: float, radius: float, change: float, **linear: float
) -> Tolerance:
    """Fix what the solver has to certify."""
    public: dict[str, Any] = {
        "change": change,
        "n_samples": problem.n_samples,
        "n_columns": problem.n_columns,
        "block_rows": problem.block_rows,
        "row_norm": problem.row_norm,
        "ridge": ridge,
        "radius": radius,
        "normaliser": problem.normaliser,
        **linear,
    }
    return pairwise_tolerance(problem.loss, **public)


def run_ranking(
    plan: RankingPlan, rows: Rows, positive: NDArray[np.bool_], permit: Permit
) -> FloatArray:
    """Fit the coefficients within the budget of a plan.

    Parameters
    ----------
    plan : RankingPlan
    rows : Rows
        Within the norm of the problem that was planned, without a constant column.
    positive : ndarray of shape (n_samples,), bool
    permit : Permit
        Charged with the events of the plan.

    Returns
    -------
    ndarray of shape (n_columns,)
        Private; free to be used.

    Notes
    -----
    Newton's method is tried first; for the squared loss its first step is the solution in
    closed form.
    """
    problem = plan.problem
    with single_blas_thread():
        linear = None
        if plan.linear is not None:
            linear = permit.release(np.zeros((1, problem.n_columns)), plan.linear).ravel()
        objective = PairwiseObjective(
            rows, positive, problem.loss, plan.ridge, problem.normaliser, linear
        )
        exact = certified_minimum(objective, plan.tolerance.target, radius=plan.radius)
        return permit.release(exact, plan.output)
