"""The random linear term of objective perturbation for a sum over pairs of records.

It is drawn like any other Gaussian term; what the release of the minimiser costs is another
matter, because a record meets all records of the other class.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dp_halfspace.exceptions import BudgetError
from dp_halfspace.optim.linear_noise import GaussianLinearTerm
from dp_halfspace.optim.pairwise_bounds import (
    PairwiseProblem,
    pairwise_corners,
    pairwise_gradient_change,
    pairwise_jacobian_log_ratio,
)
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.events import Event, ObjectivePerturbation
from dp_halfspace.privacy.profiles import gdp_mu

__all__ = ["PairwiseLinearTerm", "pairwise_linear_term"]


@dataclass(frozen=True, slots=True)
class PairwiseLinearTerm(GaussianLinearTerm):
    """Spherical Gaussian coefficients for an objective that is a sum over pairs.

    Attributes
    ----------
    change, mu, log_ratio, corners
        As those of :class:`~dp_halfspace.optim.linear_noise.GaussianLinearTerm`, with the
        bounds of this module.

    Examples
    --------
    >>> from dp_halfspace.optim.pairwise_bounds import pairwise_corners
    >>> from dp_halfspace.optim.pairwise_noise import PairwiseLinearTerm
    >>> PairwiseLinearTerm(2.0, 0.25, 0.1, pairwise_corners()).event.pairwise
    True
    """

    @property
    def event(self) -> ObjectivePerturbation:
        """What the release of the exact minimiser costs."""
        vertices = tuple((count, length * self.mu) for count, length in self.corners)
        return ObjectivePerturbation(self.log_ratio, vertices, pairwise=True)


def pairwise_linear_term(
    problem: PairwiseProblem,
    ridge: float,
    epsilon: float,
    delta: float,
    *,
    others: tuple[Event, ...] = (),
) -> PairwiseLinearTerm:
    """Calibrate the linear term beside other releases of the same budget.

    Parameters
    ----------
    problem : PairwiseProblem
        With a monotone loss whose slope is bounded.
    ridge : float
        Coefficient of the regulariser.
    epsilon, delta : float
        Budget of all releases together, `delta` positive.
    others : tuple of Event, default=()
        Everything else: what was released before, for example a noisy count or a metric, and
        what hides the error of the solver.

    Returns
    -------
    PairwiseLinearTerm
        Charged for the largest `mu` that the budget allows.

    Raises
    ------
    BudgetError
        If the other releases and the Jacobians leave nothing.
    ValueError
        If the loss does not qualify.

    References
    ----------
    ``docs/proofs/pairwise.md``, section 7, and ``docs/proofs/accounting.md``, section 7.

    Examples
    --------
    >>> from dp_halfspace.optim import LOGISTIC
    >>> from dp_halfspace.optim.pairwise_bounds import PairwiseProblem
    >>> from dp_halfspace.optim.pairwise_noise import pairwise_linear_term
    >>> problem = PairwiseProblem(LOGISTIC, 1001, 1, 1.0, 1001, 250_000.0)
    >>> term = pairwise_linear_term(problem, 1e9, 1.0, 1e-6)
    >>> round(term.sigma / term.change, 4)
    4.3771
    """
    loss = problem.loss
    if not (loss.smooth and loss.monotone and math.isfinite(loss.lipschitz)):
        raise ValueError("objective perturbation needs a smooth, monotone, Lipschitz loss")
    change = pairwise_gradient_change(problem)
    log_ratio = pairwise_jacobian_log_ratio(problem, ridge)

    def events(mu: float) -> tuple[Event, ...]:
        term = PairwiseLinearTerm(change, mu, log_ratio, pairwise_corners())
        return (*others, term.event)

    if accounting.delta(events(0.0), epsilon) > 0.9 * delta:
        raise BudgetError(
            f"the budget epsilon={epsilon!r}, delta={delta!r} is too small: "
            "the other releases leave nothing at this regulariser"
        )
    mu = accounting.calibrate(
        events, epsilon, delta, lower=0.0, upper=gdp_mu(epsilon, delta), rtol=1e-8
    )
    return PairwiseLinearTerm(change, mu, log_ratio, pairwise_corners())
