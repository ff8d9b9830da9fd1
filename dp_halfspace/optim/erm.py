"""Output perturbation of regularised empirical risk: the public plan, and its solution.

A plan holds every number that the privacy of the release rests on. It is computed
before the data are looked at, from public quantities alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from dp_halfspace.optim.hinge import hinge_tolerance
from dp_halfspace.optim.losses import Loss
from dp_halfspace.optim.minimisers import certified_minimisers
from dp_halfspace.optim.minimum import Optimizer
from dp_halfspace.optim.rows import Rows
from dp_halfspace.optim.stability import (
    minimiser_radius,
    minimiser_sensitivity,
    softmax_radius,
    softmax_sensitivity,
)
from dp_halfspace.optim.tolerance import gradient_tolerance, softmax_tolerance
from dp_halfspace.privacy.profiles import gdp_mu

__all__ = ["ErmPlan", "RidgeProblem", "automatic_ridge", "minimise", "plan_erm"]

# Below this share of the squared row norm the regulariser is too weak for any certificate.
RIDGE_FLOOR = 1e-8


@dataclass(frozen=True, slots=True)
class RidgeProblem:
    """A regularised risk minimisation, described by public numbers only.

    Attributes
    ----------
    loss : Loss
        Margin loss. A logistic loss, shifted or not, with three classes or more means the
        multinomial model; any other loss is then used one class against the rest, stacked.
    n_samples, n_columns, n_classes : int
        Sizes; the constant column counts.
    row_norm : float
        Bound on the Euclidean norm of a row, constant column included.
    block_rows : int
        Rows that are summed at a time, see :func:`~dp_halfspace.optim.block_size`.
    max_weight : float
        Largest public class weight.
    """

    loss: Loss
    n_samples: int
    n_columns: int
    n_classes: int
    row_norm: float
    block_rows: int
    max_weight: float = 1.0

    @property
    def multinomial(self) -> bool:
        """Whether one softmax model is fitted."""
        return self.n_classes > 2 and self.loss.name in ("logistic", "shifted_logistic")

    @property
    def n_stacked(self) -> int:
        """How many separate binary problems are solved."""
        return self.n_classes if self.n_classes > 2 and not self.multinomial else 1

    @property
    def n_released(self) -> int:
        """Number of coefficients that are released."""
        return self.n_columns * (1 if self.n_classes == 2 else self.n_classes)

    def noise_cost(self, variance: float) -> float:
        """Bound the mean loss that spherical noise on the coefficients adds.

        Parameters
        ----------
        variance : float
            Variance of each coefficient's noise.

        Returns
        -------
        float
            ``E F(w + b) - F(w)`` without the regulariser, for every ``w`` and data set. It has
            no factor of the dimension: a row meets only the noise along itself
            (``docs/proofs/excess_risk.md``).
        """
        if self.multinomial:
            return (1 - 1 / self.n_classes) * self.max_weight * self.row_norm**2 * variance / 2
        smooth = self.loss.smoothness * self.row_norm**2 * variance / 2
        lipschitz = self.loss.lipschitz * self.row_norm * math.sqrt(2 * variance / math.pi)
        return min(smooth, lipschitz) * self.n_stacked * self.max_weight

    def radius(self, ridge: float) -> float:
        """Radius of a ball that holds the minimiser of each separate problem."""
        if self.multinomial:
            return softmax_radius(
                self.n_classes, ridge=ridge, max_weight=self.max_weight, shift=self.loss.shift
            )
        return minimiser_radius(
            self.loss, row_norm=self.row_norm, ridge=ridge, max_weight=self.max_weight
        )

    def sensitivity(self, ridge: float) -> float:
        """Sensitivity of the exact minimiser of each separate problem."""
        sizes: dict[str, Any] = {
            "row_norm": self.row_norm,
            "ridge": ridge,
            "n_samples": self.n_samples,
            "max_weight": self.max_weight,
        }
        if self.multinomial:
            return softmax_sensitivity(self.n_classes, **sizes, shift=self.loss.shift)
        return minimiser_sensitivity(self.loss, **sizes)


@dataclass(frozen=True, slots=True)
class ErmPlan:
    """Everything public about one minimisation.

    Attributes
    ----------
    problem : RidgeProblem
    ridge : float
        Coefficient of the regulariser, per mean loss.
    radius : float
        Bound on the norm of each separate exact minimiser.
    tolerance : float
        What the solver must certify for each separate problem, on the scale of the sum
        over records: the norm of the gradient, or the duality gap of a non-smooth loss.
    sensitivity : float
        Bound on the distance of the *computed* minimisers of neighbouring data sets, all
        problems together: exact sensitivity, twice the certified distance, rounding.
    """

    problem: RidgeProblem
    ridge: float
    radius: float
    tolerance: float
    sensitivity: float


def plan_erm(problem: RidgeProblem, ridge: float) -> ErmPlan:
    """Fix every public number of a minimisation.

    Parameters
    ----------
    problem : RidgeProblem
    ridge : float
        Coefficient of the regulariser, per mean loss; raised to the floor
        ``1e-8 row_norm^2`` below which nothing can be certified.

    Returns
    -------
    ErmPlan

    Raises
    ------
    CertificateError
        If floating-point error alone would double the noise. Decided from public
        numbers, before any data are read.

    References
    ----------
    ``docs/proofs/stability.md`` section 5 and ``docs/proofs/certificate.md``.
    """
    ridge = max(ridge, RIDGE_FLOOR * problem.row_norm**2)
    radius, exact = problem.radius(ridge), problem.sensitivity(ridge)
    total_ridge = ridge * problem.n_samples
    public: dict[str, Any] = {
        "change": exact * total_ridge,
        "n_samples": problem.n_samples,
        "n_columns": problem.n_columns,
        "block_rows": problem.block_rows,
        "row_norm": problem.row_norm,
        "ridge": total_ridge,
        "radius": radius,
        "max_weight": problem.max_weight,
    }
    if problem.loss.smooth:
        rule = (
            softmax_tolerance(problem.n_classes, **public, shift=problem.loss.shift)
            if problem.multinomial
            else gradient_tolerance(problem.loss, **public)
        )
        tolerance, distance = rule.target, rule.certified / total_ridge
    else:
        hinge = hinge_tolerance(**public)
        tolerance, distance = hinge.gap, hinge.distance
    sensitivity = math.sqrt(problem.n_stacked) * (exact + 2.0 * distance) * (1.0 + 2.0**-40)
    return ErmPlan(problem, ridge, radius, tolerance, sensitivity)


def automatic_ridge(
    problem: RidgeProblem, epsilon: float, delta: float, *, norm_guess: float
) -> float:
    """Choose the regulariser that balances bias and noise, from public numbers.

    Minimises ``ridge norm_guess^2 / 2 + noise_cost``, the noise being that of the
    sensitivity at the candidate.

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
        Coefficient of the regulariser, per mean loss.

    References
    ----------
    Lowy and Razaviyayn (2021), Propositions C.1 and C.2 balance the same two terms in closed
    form; here the noise multipliers are exact, the sensitivity is that at each candidate, and
    the cost of the noise has no factor of the dimension.
    """
    if math.isinf(epsilon):
        return RIDGE_FLOOR * problem.row_norm**2
    # Variance of one coefficient for a sensitivity of one.
    unit_variance = (
        (problem.n_released + 1) / epsilon**2 if delta == 0 else 1 / gdp_mu(epsilon, delta) ** 2
    )

    def risk(log_ridge: float) -> float:
        ridge = math.exp(log_ridge)
        sensitivity = math.sqrt(problem.n_stacked) * problem.sensitivity(ridge)
        return ridge * norm_guess**2 / 2 + problem.noise_cost(unit_variance * sensitivity**2)

    unit = math.log(problem.row_norm**2)
    bounds = (unit + math.log(RIDGE_FLOOR), unit + math.log(1e4))
    return math.exp(float(minimize_scalar(risk, bounds=bounds, method="bounded").x))


def minimise(
    plan: ErmPlan,
    rows: Rows,
    codes: NDArray[np.intp],
    weights: NDArray[np.float64],
    optimizer: Optimizer = "auto",
) -> NDArray[np.float64]:
    """Return a certified minimiser, one row for each released halfspace.

    Parameters
    ----------
    plan : ErmPlan
    rows : Rows
        Clipped rows, constant column included.
    codes : ndarray of shape (n_samples,)
        Class of each record.
    weights : ndarray of shape (n_classes,)
        Public class weights.
    optimizer : str or callable
        As in :func:`~dp_halfspace.optim.certified_minimum`.

    Returns
    -------
    ndarray of shape (1, n_columns) or (n_classes, n_columns)
        Within the certified distance of the exact minimiser on every data set. Private:
        it must be perturbed before anybody sees it.
    """
    return certified_minimisers(
        plan.problem,
        rows,
        codes,
        weights,
        ridge=plan.ridge,
        tolerance=plan.tolerance,
        radius=plan.radius,
        optimizer=optimizer,
    )
