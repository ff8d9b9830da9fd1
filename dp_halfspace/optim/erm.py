"""Output perturbation of regularised empirical risk: the public plan, and its solution.

A plan holds every number that the privacy of the release rests on. It is computed
before the data are looked at, from public quantities alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.optim.attack import Attack
from dp_halfspace.optim.hinge import hinge_tolerance
from dp_halfspace.optim.losses import Loss, huber_hinge
from dp_halfspace.optim.minimisers import certified_minimisers
from dp_halfspace.optim.minimum import Optimizer
from dp_halfspace.optim.robust_bounds import (
    attacked_radius,
    attacked_sensitivity,
    exact_smoothing,
    loss_spread,
    softmax_spread,
    tilted_influence,
)
from dp_halfspace.optim.robust_tolerance import robust_tolerance
from dp_halfspace.optim.rows import Rows
from dp_halfspace.optim.stability import (
    minimiser_radius,
    minimiser_sensitivity,
    softmax_radius,
    softmax_sensitivity,
)
from dp_halfspace.optim.tolerance import gradient_tolerance, softmax_tolerance

__all__ = ["ErmPlan", "RidgeProblem", "minimise", "plan_erm"]

# Below this share of the weighted squared row norm the regulariser is too weak for a certificate.
RIDGE_FLOOR = 1e-8
# Half the width of the parabola at the kink of the hinge with a tilt or an attack.
HINGE_WIDTH = 1e-3


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
    tilt : float
        Tilt ``T`` of the mean loss; 0 for the mean itself.
    attack : Attack or None
        Adversary that moves the features; the loss must then be monotone.
    min_weight : float
        Smallest public class weight. It matters with a tilt only, and 0 is always safe: a light
        and a heavy record differ even where their margins agree.
    """

    loss: Loss
    n_samples: int
    n_columns: int
    n_classes: int
    row_norm: float
    block_rows: int
    max_weight: float = 1.0
    tilt: float = 0.0
    attack: Attack | None = None
    min_weight: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.tilt < math.inf:
            raise ValueError("tilt must be finite and not negative")
        if not 0.0 <= self.min_weight <= self.max_weight:
            raise ValueError("min_weight must be between 0 and max_weight")
        if self.attack is not None:
            self._check_attack(self.attack)
        if self.robust and not self.loss.smooth:
            object.__setattr__(self, "loss", huber_hinge(HINGE_WIDTH))

    def _check_attack(self, attack: Attack) -> None:
        """Refuse an adversary that leaves nothing to learn, or has no closed form."""
        if not self.loss.monotone:
            raise ValueError("an attack needs a monotone loss")
        if attack.n_attacked > self.n_columns:
            raise ValueError("the attack has more columns than there are")
        if attack.radius >= self.row_norm:
            raise ValueError(
                "the radius of the attack must be smaller than the bound on the norm of a row: "
                "otherwise every coefficient that is attacked is 0, whatever the data"
            )

    @property
    def robust(self) -> bool:
        """Whether the mean is tilted or the features are attacked."""
        return self.tilt > 0.0 or self.attack is not None

    @property
    def multinomial(self) -> bool:
        """Whether one softmax model is fitted."""
        several = self.n_classes > 2 and self.attack is None
        return several and self.loss.name in ("logistic", "shifted_logistic")

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
            ``E F(w + b) - F(w)`` without the regulariser, for every ``w`` and data set. Without
            an attack it has no factor of the dimension: a row meets only the noise along itself
            (``docs/proofs/excess_risk.md``). A tilt assumes Gaussian noise, and for the
            quadratic losses a tilt and an attack a slope that holds up to a margin of -1
            (``docs/proofs/robust.md``, section 5).
        """
        weight, pull = self.max_weight, self.max_weight * self._steepest
        if self.multinomial:
            cost = (1 - 1 / self.n_classes) * weight * self.row_norm**2 * variance / 2
        else:
            smooth = self.loss.smoothness * self.row_norm**2 * variance / 2
            lipschitz = self.loss.lipschitz * self.row_norm * math.sqrt(2 * variance / math.pi)
            cost = min(smooth, lipschitz) * weight
        cost += self.tilt * (pull * self.row_norm) ** 2 * variance / 2 if self.tilt else 0.0
        cost += pull * self.attack.of_noise(variance) if self.attack else 0.0
        return cost * self.n_stacked

    @property
    def _steepest(self) -> float:
        """Largest slope of a loss; that at a margin of -1 for a loss that has none."""
        if self.multinomial:
            return math.sqrt(2.0)
        steepest = self.loss.lipschitz
        return steepest if math.isfinite(steepest) else self.loss.slope_bound(1.0)

    def radius(self, ridge: float) -> float:
        """Radius of a ball that holds the minimiser of each separate problem."""
        if self.multinomial:
            return softmax_radius(
                self.n_classes, ridge=ridge, max_weight=self.max_weight, shift=self.loss.shift
            )
        sizes: dict[str, Any] = {
            "row_norm": self.row_norm,
            "ridge": ridge,
            "max_weight": self.max_weight,
        }
        if self.attack is None:
            return minimiser_radius(self.loss, **sizes)
        return attacked_radius(self.loss, self.attack, n_columns=self.n_columns, **sizes)

    def spread(self, ridge: float) -> float:
        """Bound the difference of two records' weighted losses at each separate minimiser."""
        weights = {"max_weight": self.max_weight, "min_weight": self.min_weight}
        at = {"row_norm": self.row_norm, "radius": self.radius(ridge), **weights}
        if self.multinomial:
            return softmax_spread(self.n_classes, shift=self.loss.shift, **at)
        return loss_spread(self.loss, n_columns=self.n_columns, attack=self.attack, **at)

    def sensitivity(self, ridge: float) -> float:
        """Sensitivity of the exact minimiser of each separate problem."""
        sizes: dict[str, Any] = {
            "row_norm": self.row_norm,
            "ridge": ridge,
            "n_samples": self.n_samples,
            "max_weight": self.max_weight,
        }
        if self.multinomial:
            of_mean = softmax_sensitivity(self.n_classes, **sizes, shift=self.loss.shift)
        elif self.attack is None:
            of_mean = minimiser_sensitivity(self.loss, **sizes)
        else:
            of_mean = attacked_sensitivity(
                self.loss, self.attack, n_columns=self.n_columns, **sizes
            )
        if self.tilt == 0.0:
            return of_mean
        return of_mean * tilted_influence(self.tilt, self.spread(ridge), self.n_samples)


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
        ``1e-8 max_weight row_norm^2`` below which nothing can be certified.

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
    ridge = max(ridge, RIDGE_FLOOR * problem.max_weight * problem.row_norm**2)
    problem = _with_smooth_norm(problem, ridge)
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
    if problem.robust:
        rule = robust_tolerance(problem, **public)
        tolerance, distance = rule.target, rule.certified / total_ridge
    elif problem.loss.smooth:
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


def _with_smooth_norm(problem: RidgeProblem, ridge: float) -> RidgeProblem:
    """Put a smoothing that makes no difference in the place of none."""
    attack = problem.attack
    if attack is None or attack.smoothing:
        return problem
    smoothing = exact_smoothing(
        problem.loss,
        attack,
        row_norm=problem.row_norm,
        ridge=ridge,
        sensitivity=problem.sensitivity(ridge),
        max_weight=problem.max_weight,
    )
    return replace(problem, attack=attack.smoothed(smoothing))


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
