"""The risk of a margin loss: two classes, or each class against the rest.

With a tilt the mean loss becomes ``log(mean(exp(T l))) / T``; an adversary lowers every margin.
All is a function of public numbers: ``docs/proofs/stability.md``, ``robust.md`` and others;
every bound is rounded up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit

from dp_halfspace._rounding import FAR_UP, UP
from dp_halfspace.exceptions import CertificateError
from dp_halfspace.optim.objectives.adversary import Adversary
from dp_halfspace.optim.objectives.losses import Loss
from dp_halfspace.optim.objectives.margin import RUN, MarginObjective
from dp_halfspace.optim.risks.risk import RIDGE_FLOOR, Labelled, Risk, SlopeBounds, Vertices
from dp_halfspace.optim.solvers.certificate import UNIT
from dp_halfspace.rows.blocks import FloatArray

# Rounds in which the radius with an adversary is improved.
_ROUNDS = 100
# Above this the rounding errors of the weights of a tilted mean are not of first order.
_LARGEST_EXPONENT_ERROR = 1e-3


@dataclass(frozen=True, slots=True)
class MarginRisk(Risk):
    """Regularised mean of a margin loss, per mean loss.

    Attributes
    ----------
    loss : Loss
        Smooth margin loss.
    n_samples, n_columns, n_classes : int
        Sizes; the constant column counts. With three classes or more, each class against the
        rest is a problem of its own.
    row_norm : float
        Bound on the Euclidean norm of a row, constant column included.
    block_rows : int
        Rows that are summed at a time, see :func:`~dp_halfspace.optim.block_size`.
    max_weight : float
        Largest public class weight.
    tilt : float
        Tilt ``T`` of the mean loss; 0 for the mean itself.
    adversary : Adversary or None
        Who moves the features; the loss must then be monotone.
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
    adversary: Adversary | None = None
    min_weight: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.tilt < math.inf:
            raise ValueError("tilt must be finite and not negative")
        if not 0.0 <= self.min_weight <= self.max_weight:
            raise ValueError("min_weight must be between 0 and max_weight")
        if self.adversary is None:
            return
        if not self.loss.monotone:
            raise ValueError("an adversary needs a monotone loss")
        if self.adversary.n_features > self.n_columns:
            raise ValueError("the adversary moves more columns than there are")

    @property
    def robust(self) -> bool:
        """Whether the mean is tilted or the features are moved."""
        return self.tilt > 0.0 or self.adversary is not None

    @property
    def perturbable(self) -> bool:
        """Whether objective perturbation applies."""
        loss = self.loss
        return loss.monotone and math.isfinite(loss.lipschitz) and not self.robust

    @property
    def n_stacked(self) -> int:
        """How many separate binary problems are solved."""
        return self.n_classes if self.n_classes > 2 else 1

    @property
    def row_length(self) -> float:
        """Bound on the norm of the gradient of a record's margin."""
        return self.row_norm + (self.adversary.reach if self.adversary else 0.0)

    @property
    def loss_of_zeros(self) -> float:
        """Largest mean loss of coefficients that are all zero."""
        return self.max_weight * self.loss.at_zero * self.n_stacked

    @property
    def gradient_change(self) -> float:
        """``2 c L r``; ``objective_perturbation.md``, Lemma 2."""
        return self.loss.lipschitz * self.max_weight * 2.0 * self.row_norm * UP

    @property
    def vertices(self) -> Vertices:
        """Vertices of the square of two slopes; ``objective_perturbation.md``, Lemma 4."""
        return ((1, 0.0), (2, 0.5), (1, 1.0))

    @property
    def curvature(self) -> float:
        """Largest curvature that one record gives to the objective."""
        return self.max_weight * self.row_norm**2 * self.loss.smoothness

    @property
    def least_ridge(self) -> float:
        """``1e-8 c r^2``: below it no certificate can be had."""
        return RIDGE_FLOOR * self.max_weight * self.row_norm**2

    def radius(self, ridge: float) -> float:
        """``stability.md``, Lemma 1, and ``robust.md``, Lemma 2."""
        sizes = {"row_norm": self.row_norm, "ridge": ridge, "max_weight": self.max_weight}
        radius = minimiser_radius(self.loss, **sizes)
        if self.adversary is None:
            return radius
        # Whatever holds every minimiser may be put into the right side: every round is a bound.
        for _ in range(_ROUNDS):
            margin = self._highest_margin(radius) * FAR_UP
            pull = self.loss.self_bound
            if margin < self.loss.self_argmax:
                pull = min(pull, float(self.loss.h(np.asarray(margin))))
            radius = min(radius, math.sqrt(self.max_weight * pull / ridge) * FAR_UP)
        return radius

    def sensitivity(self, ridge: float) -> float:
        """``stability.md``, Theorems 3 and 4, and ``robust.md``, Theorem 4."""
        reach = self.row_length * self.radius(ridge)
        if self.adversary is None:
            is_logistic = self.loss.name == "logistic"
            slope = logistic_diameter(reach) if is_logistic else self.loss.slope_bound(reach)
            width = 2.0 * self.max_weight * self.row_norm * slope
        else:
            reach *= FAR_UP
            width = self.loss.slope_bound(reach) * max(2.0 * self.row_norm, self.row_length)
            if self.loss.name == "logistic":
                width = min(width, 2.0 * self.row_length * logistic_diameter(reach))
            width *= self.max_weight
        of_mean = width / (ridge * self.n_samples) * FAR_UP
        return of_mean * self.influence(ridge)

    def influence(self, ridge: float) -> float:
        """Bound the weight of one record in a tilted mean, in units of its weight in the mean.

        ``n C / (C + n - 1)`` for ``C = exp(tilt spread)``; ``robust.md``, Lemma 3.
        """
        if self.tilt == 0.0:
            return 1.0
        n, spread = self.n_samples, self.spread(ridge)
        share = 1.0 / (1.0 + (n - 1) * math.exp(-self.tilt * spread * FAR_UP))
        return min(float(n), n * share * FAR_UP)

    def spread(self, ridge: float) -> float:
        """Bound the difference of two records' weighted losses at a minimiser.

        ``robust.md``, Lemma 3. Records of different weights differ where their margins agree.
        """
        radius = self.radius(ridge)
        lowest = self.row_length * radius
        highest = self._highest_margin(radius) * FAR_UP
        most = self.max_weight * float(self.loss.value(-lowest * FAR_UP))
        least = self.min_weight * float(self.loss.value(min(highest, self.loss.minimiser)))
        return most - least + most * (FAR_UP - 1.0)

    def slope_bounds(self, radius: float) -> SlopeBounds:
        """``certificate.md``, section 3; with a tilt or an adversary ``robust.md``, Theorem 5.

        The weights of a tilted mean are exponentials of losses: an error of a loss becomes a
        relative error of a weight, ``tilt`` times as large.
        """
        loss, weight, lowest = self.loss, self.max_weight, self.row_length * radius
        slope = loss.slope_bound(lowest)
        # Errors in units of UNIT: of slopes, of weights relative to themselves.
        of_slope, in_weights = 8.0 * slope + 16.0 * loss.smoothness, 0.0
        if self.robust:
            exponent = self._exponent_error(lowest, slope)
            sums = 2.0 * (RUN + self.n_samples / RUN)
            in_weights = 2.0 * exponent + 40.0 + sums + self.n_columns
            of_slope += loss.smoothness * 18.0 * lowest
        evaluation = weight * (of_slope + slope * in_weights)
        return SlopeBounds(weight * slope, weight * loss.smoothness, evaluation)

    def _exponent_error(self, lowest: float, slope: float) -> float:
        """Bound the error of the exponents of a tilted mean, in units of UNIT."""
        most = float(self.loss.value(-lowest))
        of_margin, of_value = (self.n_columns + 20) * lowest, 24.0 * most + 4.0 * (1.0 + slope)
        error = self.tilt * self.max_weight * (slope * of_margin + of_value + 6.0 * most)
        if error * UNIT > _LARGEST_EXPONENT_ERROR:
            raise CertificateError(
                "the tilt is so large that rounding errors of the losses can change the weights"
            )
        return error

    def noise_cost(self, variance: float) -> float:
        """Bound the mean loss that spherical noise on the coefficients adds.

        Without an adversary it has no factor of the dimension: a row meets only the noise along
        itself (``excess_risk.md``). A tilt assumes Gaussian noise, and for the quadratic losses
        a tilt and an adversary a slope that holds up to a margin of -1 (``robust.md``, section 5).
        """
        loss, weight = self.loss, self.max_weight
        smooth = loss.smoothness * self.row_norm**2 * variance / 2
        lipschitz = loss.lipschitz * self.row_norm * math.sqrt(2 * variance / math.pi)
        steepest = loss.lipschitz if math.isfinite(loss.lipschitz) else loss.slope_bound(1.0)
        cost, pull = min(smooth, lipschitz) * weight, weight * steepest
        cost += self.tilt * (pull * self.row_norm) ** 2 * variance / 2 if self.tilt else 0.0
        cost += pull * self.adversary.of_noise(variance) if self.adversary else 0.0
        return cost * self.n_stacked

    def objective(
        self, data: Labelled, positive: int, ridge: float, linear: FloatArray | None, radius: float
    ) -> MarginObjective:
        """Return the objective of one class against the rest."""
        return MarginObjective(
            data.rows,
            np.where(data.classes == positive, 1.0, -1.0),
            data.weights[data.classes],
            self.loss,
            self.total(ridge),
            linear,
            self.tilt,
            self.adversary,
            radius if self.robust else math.inf,
        )

    def _highest_margin(self, norm: float) -> float:
        """Bound the margins that an adversary leaves, at coefficients of at most a norm."""
        plain, adversary = self.row_norm * norm, self.adversary
        if adversary is None or adversary.n_features < self.n_columns:
            return plain
        return min(plain, max(self.row_norm - adversary.radius, 0.0) * norm + adversary.slack)


def minimiser_radius(
    loss: Loss, *, row_norm: float, ridge: float, max_weight: float = 1.0
) -> float:
    """Bound the norm of the minimiser of the mean loss plus ``ridge / 2 ||w||^2``.

    Parameters
    ----------
    loss : Loss
        Convex margin loss.
    row_norm : float
        Bound on the Euclidean norm of a row, constant feature included.
    ridge : float
        Coefficient of the regulariser, per mean loss.
    max_weight : float, default=1.0
        Largest public class weight.

    Returns
    -------
    float
        Radius of a ball round zero that holds the minimiser of every data set.

    References
    ----------
    ``docs/proofs/stability.md``, Lemma 1.

    Examples
    --------
    >>> from dp_halfspace.optim import LOGISTIC, minimiser_radius
    >>> round(minimiser_radius(LOGISTIC, row_norm=1.0, ridge=0.01), 4)
    5.277
    """
    outer = math.sqrt(max_weight * loss.self_bound / ridge)
    if row_norm * outer >= loss.self_argmax:
        return outer * FAR_UP

    def excess(radius: float) -> float:
        slope = abs(float(loss.derivative(np.asarray(row_norm * radius))))
        return ridge * radius - max_weight * row_norm * slope

    return float(brentq(excess, 0.0, outer * FAR_UP, xtol=1e-300, rtol=1e-12)) * FAR_UP


def logistic_diameter(a: float) -> float:
    """Half the diameter of the gradients of the logistic loss at a vector of norm `a`.

    Parameters
    ----------
    a : float
        Norm of the vector times the norm of a row.

    Returns
    -------
    float
        ``max sin(t) sigmoid(a cos(t))``, in units of the norm of a row; between 1/2 and 1.

    References
    ----------
    ``docs/proofs/stability.md``, Theorem 4.

    Examples
    --------
    >>> from dp_halfspace.optim import logistic_diameter
    >>> round(logistic_diameter(1.0), 6)
    0.549548
    """
    found = minimize_scalar(
        lambda t: -math.sin(t) * float(expit(a * math.cos(t))),
        bounds=(0.0, math.pi / 2),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return min(1.0, -float(found.fun) * FAR_UP)
