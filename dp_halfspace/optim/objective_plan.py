"""The public numbers of a perturbed minimisation, and what hides the error of its solver."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from scipy.optimize import brentq

from dp_halfspace.exceptions import BudgetError
from dp_halfspace.optim.erm import RidgeProblem
from dp_halfspace.optim.linear_noise import GaussianLinearTerm, LaplaceLinearTerm
from dp_halfspace.optim.objective_bounds import Corners, gradient_change
from dp_halfspace.optim.robust_tolerance import robust_tolerance
from dp_halfspace.optim.tolerance import Tolerance, gradient_tolerance, softmax_tolerance
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.events import Event, Gaussian, Repeated
from dp_halfspace.privacy.mechanisms import GaussianNoise, L2LaplaceNoise, NoNoise
from dp_halfspace.privacy.profiles import gdp_mu

__all__ = [
    "OUTPUT_EPSILON",
    "OUTPUT_MU",
    "LinearTerm",
    "ObjectivePlan",
    "calibrated",
    "with_output",
]

LinearTerm: TypeAlias = GaussianLinearTerm | LaplaceLinearTerm | NoNoise
OutputNoise: TypeAlias = GaussianNoise | L2LaplaceNoise | NoNoise

# What hiding the error of the solver may cost: a share of the signal to noise ratio (squares
# add, so a share of 1/400 of the budget) or of the pure epsilon.
OUTPUT_MU = 0.05
OUTPUT_EPSILON = 0.01
# Rounding of the few operations that lead to a bound.
_UP = 1.0 + 2.0**-40


@dataclass(frozen=True, slots=True)
class ObjectivePlan:
    """Everything public about one perturbed minimisation.

    Attributes
    ----------
    problem : RidgeProblem
    ridge : float
        Coefficient of the regulariser, per mean loss.
    radius : float
        Bound on the norm of each separate minimiser.
    tolerance : Tolerance
        What the solver has to certify for each of them, on the scale of the sum.
    linear : GaussianLinearTerm, LaplaceLinearTerm or NoNoise
        The random linear term, drawn once for each separate problem.
    output : GaussianNoise, L2LaplaceNoise or NoNoise
        Noise that hides the error of the solver.
    """

    problem: RidgeProblem
    ridge: float
    radius: float
    tolerance: Tolerance
    linear: LinearTerm
    output: OutputNoise

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that is going to be released."""
        return (_for_each_problem(self.linear.event, self.problem), self.output.event)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the coefficients of one separate problem."""
        problem = self.problem
        return (problem.n_classes if problem.multinomial else 1, problem.n_columns)


def _for_each_problem(event: Event, problem: RidgeProblem) -> Event:
    """Compose one event for each separate problem."""
    return event if problem.n_stacked == 1 else Repeated(event, problem.n_stacked)


@lru_cache(maxsize=256)
def calibrated(
    log_ratio: float,
    corners: Corners,
    *,
    copies: int,
    earlier: tuple[Event, ...],
    epsilon: float,
    delta: float,
) -> tuple[float, float]:
    """Divide what is left of a budget between the linear term and the output.

    Parameters
    ----------
    log_ratio : float
        Bound on the logarithm of the ratio of the Jacobians.
    corners : tuple of (int, float)
        As in :class:`~dp_halfspace.optim.linear_noise.GaussianLinearTerm`.
    copies : int
        How many linear terms are drawn.
    earlier : tuple of Event
    epsilon, delta : float
        Budget, with a positive `delta`.

    Returns
    -------
    mu : float
        Of each linear term.
    output : float
        Of the output noise.

    Raises
    ------
    BudgetError
        If nothing is left.
    """
    # Folds and grids ask again: hence the cache.
    ceiling = gdp_mu(epsilon, delta)

    def events(mu: float, output: float) -> tuple[Event, ...]:
        event = GaussianLinearTerm(1.0, mu, log_ratio, corners).event
        return (*earlier, Repeated(event, copies), Gaussian(output))

    if accounting.delta(events(0.0, 0.0), epsilon) > 0.9 * delta:
        raise BudgetError(
            f"the budget epsilon={epsilon!r}, delta={delta!r} is too small: "
            "the earlier releases leave nothing at this regulariser"
        )
    output = OUTPUT_MU * ceiling
    # The corners share one delta: with many of them and a tiny epsilon less is left.
    while accounting.delta(events(0.0, output), epsilon) > 0.9 * delta:
        output /= 2.0

    def excess(value: float) -> float:
        return math.log(max(accounting.delta(events(value, output), epsilon), 1e-320) / delta)

    # The root is only a guess that saves most of the bisection, which has the last word.
    upper = ceiling
    if excess(ceiling) > 0.0:
        guess = brentq(excess, 0.0, ceiling, xtol=1e-9 * ceiling, rtol=1e-9) * (1.0 - 4e-9)
        upper = guess if excess(guess) <= 0.0 else ceiling
    mu = accounting.calibrate(
        lambda value: events(value, output), epsilon, delta, lower=0.0, upper=upper, rtol=1e-8
    )
    return mu, output


def with_output(
    problem: RidgeProblem, ridge: float, linear: LinearTerm, budget: float
) -> ObjectivePlan:
    """Fix the tolerance for a linear term, and the noise that hides the error.

    Parameters
    ----------
    problem : RidgeProblem
    ridge : float
        Coefficient of the regulariser, per mean loss.
    linear : GaussianLinearTerm, LaplaceLinearTerm or NoNoise
    budget : float
        The mu, or the pure epsilon, of the output noise.

    Returns
    -------
    ObjectivePlan

    Raises
    ------
    CertificateError
        If floating-point error could be as large as the influence of a record.
    """
    blocks = problem.n_classes if problem.multinomial else 1
    size = rounding = 0.0
    if not isinstance(linear, NoNoise):
        # The norm that is drawn depends on the data once the minimiser is known; a bound on
        # it does not.
        size = linear.norm_bound(blocks, problem.n_columns)
        rounding = linear.rounding(blocks, problem.n_columns)
    total_ridge = ridge * problem.n_samples
    radius = _data_radius(problem, ridge) + size / total_ridge * _UP
    public: dict[str, Any] = {
        "change": gradient_change(problem),
        "n_samples": problem.n_samples,
        "n_columns": problem.n_columns,
        "block_rows": problem.block_rows,
        "row_norm": problem.row_norm,
        "ridge": total_ridge,
        "radius": radius,
        "max_weight": problem.max_weight,
        "linear": size,
        "linear_error": rounding,
    }
    if problem.robust:
        tolerance = robust_tolerance(problem, **public)
    elif problem.multinomial:
        tolerance = softmax_tolerance(problem.n_classes, **public, shift=problem.loss.shift)
    else:
        tolerance = gradient_tolerance(problem.loss, **public)
    sensitivity = 2.0 * math.sqrt(problem.n_stacked) * tolerance.certified / total_ridge * _UP
    output: OutputNoise = NoNoise()
    if isinstance(linear, GaussianLinearTerm):
        output = GaussianNoise(sensitivity, budget)
    elif isinstance(linear, LaplaceLinearTerm):
        output = L2LaplaceNoise(sensitivity, budget)
    return ObjectivePlan(problem, ridge, radius, tolerance, linear, output)


def _data_radius(problem: RidgeProblem, ridge: float) -> float:
    """Bound how far the data pull a minimiser; the linear term comes on top."""
    if problem.attack is None:
        return problem.radius(ridge)
    # A sharper radius rests on what holds without a linear term only.
    return math.sqrt(problem.max_weight * problem.loss.self_bound / ridge) * _UP
