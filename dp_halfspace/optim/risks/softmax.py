"""The risk of multinomial logistic regression, for three classes or more.

Everything here is a function of public numbers. Proofs: ``docs/proofs/stability.md``, section 4,
``certificate.md`` and ``objective_perturbation.md``; every bound is rounded up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from scipy.special import lambertw

from dp_halfspace.optim.design.blocks import FloatArray
from dp_halfspace.optim.objectives.softmax import SoftmaxObjective
from dp_halfspace.optim.risks.risk import (
    RIDGE_FLOOR,
    ROOT_UP,
    UP,
    Labelled,
    Risk,
    SlopeBounds,
    Vertices,
)
from dp_halfspace.optim.risks.softmax_gradients import softmax_diameter

# Of a record's vector of slopes p - e_y: its norm, and its Lipschitz constant in the scores.
_SLOPE, _SMOOTHNESS = math.sqrt(2.0), 0.5


@dataclass(frozen=True, slots=True)
class SoftmaxRisk(Risk):
    """Regularised mean cross-entropy of the softmax of the scores, per mean loss.

    Attributes
    ----------
    n_samples, n_columns, n_classes : int
        Sizes; the constant column counts.
    row_norm : float
        Bound on the Euclidean norm of a row, constant column included.
    block_rows : int
        Rows that are summed at a time, see :func:`~dp_halfspace.optim.block_size`.
    shift : float
        Subtracted from the score of a record's own class, from 0 to 100.
    max_weight : float
        Largest public class weight.
    """

    n_samples: int
    n_columns: int
    n_classes: int
    row_norm: float
    block_rows: int
    shift: float = 0.0
    max_weight: float = 1.0

    robust: ClassVar[bool] = False
    perturbable: ClassVar[bool] = True

    @property
    def n_blocks(self) -> int:
        """One vector of coefficients for each class."""
        return self.n_classes

    @property
    def loss_of_zeros(self) -> float:
        """Largest mean loss of coefficients that are all zero."""
        return self.max_weight * math.log1p((self.n_classes - 1) * math.exp(self.shift))

    @property
    def gradient_change(self) -> float:
        """``sqrt(2) c 2 r``; ``objective_perturbation.md``, Lemma 2."""
        return _SLOPE * self.max_weight * 2.0 * self.row_norm * UP

    @property
    def block_change(self) -> float:
        """The changes of the K blocks add up to more than their Euclidean norm (Lemma 2)."""
        return self.gradient_change * (math.sqrt(2.0) * UP)

    @property
    def vertices(self) -> Vertices:
        """Vertices of the set of gradient changes; ``objective_perturbation.md``, Lemma 4."""
        others = self.n_classes - 1
        return (
            (1, 0.0),
            (2 * others, 0.5),
            (others * (others - 1), math.sqrt(0.75) * UP),
            (others, 1.0),
        )

    @property
    def curvature(self) -> float:
        """Largest mean curvature of one record over the directions where it has any."""
        return self.max_weight * self.row_norm**2 / self.n_classes

    @property
    def rank(self) -> int:
        """Number of these directions."""
        return self.n_classes - 1

    @property
    def least_ridge(self) -> float:
        """``1e-8 c r^2``: below it no certificate can be had."""
        return RIDGE_FLOOR * self.max_weight * self.row_norm**2

    def radius(self, ridge: float) -> float:
        """Frobenius norm of the minimiser; ``stability.md``, section 4."""
        peak = float(lambertw((self.n_classes - 1) * math.exp(self.shift - 1.0)).real)
        return math.sqrt(self.max_weight * peak / ridge) * ROOT_UP

    def sensitivity(self, ridge: float) -> float:
        """Frobenius distance of neighbouring minimisers; ``stability.md``, Theorem 5."""
        reach = self.row_norm * self.radius(ridge)
        slope = softmax_diameter(self.n_classes, reach, shift=self.shift)
        width = 2.0 * self.max_weight * self.row_norm * slope
        return width / (ridge * self.n_samples) * ROOT_UP

    def slope_bounds(self, radius: float) -> SlopeBounds:
        """``certificate.md``, section 3."""
        # The subtraction of the shift is rounded once.
        shifting = 0.5 * (self.row_norm * radius + self.shift) if self.shift else 0.0
        return SlopeBounds(
            self.max_weight * _SLOPE,
            self.max_weight * _SMOOTHNESS,
            self.max_weight * (2.0 * self.n_classes + 24.0 + shifting),
        )

    def noise_cost(self, variance: float) -> float:
        """Bound the mean loss that noise of this variance adds; ``excess_risk.md``."""
        return (1 - 1 / self.n_classes) * self.max_weight * self.row_norm**2 * variance / 2

    def objective(
        self, data: Labelled, positive: int, ridge: float, linear: FloatArray | None, radius: float
    ) -> SoftmaxObjective:
        """Return the objective; no class is set apart, and no radius is needed."""
        del positive, radius
        rows, classes, weights = data
        total = self.total(ridge)
        return SoftmaxObjective(
            rows, classes, self.n_classes, weights[classes], total, linear, self.shift
        )
