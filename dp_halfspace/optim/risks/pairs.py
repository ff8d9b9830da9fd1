"""The risk of a loss over all pairs of a positive and a negative record.

The sum over pairs is divided by a public `Z`. A replaced record may change its class: nothing here
depends on the numbers of positive and negative records. Proofs: ``docs/proofs/pairwise.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from scipy.optimize import brentq

from dp_halfspace._rounding import FAR_UP, UP
from dp_halfspace.optim.objectives.losses import Loss
from dp_halfspace.optim.objectives.pair_grid import PAIR_BLOCK, logistic_rounding
from dp_halfspace.optim.objectives.pairs import PAIRWISE_LOSSES, PairwiseObjective
from dp_halfspace.optim.risks.margin import minimiser_radius
from dp_halfspace.optim.risks.risk import Labelled, Risk, SlopeBounds, Vertices
from dp_halfspace.optim.solvers.certificate import UNIT
from dp_halfspace.rows.blocks import FloatArray
from dp_halfspace.rows.rows import Rows

# With this much the Jacobians cost nothing, and the exponential of it is still a float.
_LARGEST_EPSILON = 100.0


@dataclass(frozen=True, slots=True)
class PairRisk(Risk):
    """A regularised sum over pairs.

    Attributes
    ----------
    loss : Loss
        Smooth loss of the difference of two scores.
    n_samples, n_columns : int
        Sizes.
    row_norm : float
        Bound on the Euclidean norm of a row.
    block_rows : int
        Rows that are summed at a time, see :func:`~dp_halfspace.optim.block_size`.
    normaliser : float
        Divisor of the sum over pairs. Public, or computed from a count that was released
        before with noise: then everything holds given that release.
    """

    loss: Loss
    n_samples: int
    n_columns: int
    row_norm: float
    block_rows: int
    normaliser: float

    pairwise: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.loss.name not in PAIRWISE_LOSSES:
            raise ValueError(f"the loss of pairs must be one of {PAIRWISE_LOSSES}")

    @property
    def perturbable(self) -> bool:
        """Whether objective perturbation applies."""
        loss = self.loss
        return loss.monotone and math.isfinite(loss.lipschitz)

    @property
    def diameter(self) -> float:
        """Bound on the norm of the difference of two rows."""
        return 2.0 * self.row_norm

    @property
    def partners(self) -> float:
        """Pairs that a record can take part in, over the normaliser; never zero."""
        return max(1, self.n_samples - 1) / self.normaliser

    @property
    def mass(self) -> float:
        """Largest number of pairs over the normaliser; at least one pair is counted."""
        return max(1, self.n_samples * self.n_samples // 4) / self.normaliser * UP

    @property
    def gradient_change(self) -> float:
        """``(n - 1) L D / Z``; Lemma 7. Infinite for a loss without a bound on its slope."""
        return self.partners * self.loss.lipschitz * self.diameter * UP

    @property
    def vertices(self) -> Vertices:
        """Vertices of the set of gradient changes of a pair; Lemma 9."""
        return ((1, 0.0), (1, math.sqrt(0.75) * UP), (2, 1.0))

    @property
    def curvature(self) -> float:
        """Largest curvature that the pairs of one record give to the objective."""
        return self.partners * self.loss.smoothness * self.diameter**2

    def total(self, ridge: float) -> float:
        """Coefficient of ``||w||^2 / 2`` in the objective, which is normalised already."""
        return ridge

    def radius(self, ridge: float) -> float:
        """Norm of the minimiser without linear term; Lemma 6."""
        return minimiser_radius(
            self.loss, row_norm=self.diameter, ridge=ridge, max_weight=self.mass
        )

    def sensitivity(self, ridge: float) -> float:
        """``(n - 1) B D / (ridge Z)``, ``B`` the steepest slope within the radius; Theorem 8.

        For every number of positive records, and for records that change their class.
        """
        slope = self.loss.slope_bound(self.diameter * self.radius(ridge))
        return self.partners * slope * self.diameter / ridge * FAR_UP

    def log_ratio(self, ridge: float) -> float:
        """Logarithm of the largest ratio of Jacobians; Theorem 10."""
        one = self.partners * self.loss.smoothness * self.row_norm**2 / ridge
        rank = min(self.n_columns, max(1, self.n_samples - 1))
        if rank == 1:
            return math.log1p(4.0 * one) * UP
        others = rank - 1

        def slope(c: float) -> float:
            """Has the sign of the derivative of the bound in `c`, and decreases."""
            return 1.0 / (one * (1.0 + c) ** 2) + (1.0 - c) / others - c

        # All other rows at the distance c from the centre, opposite to the record.
        c = 1.0 if slope(1.0) >= 0.0 else float(brentq(slope, 0.0, 1.0, xtol=1e-15, rtol=1e-14))
        along = math.log1p(one * (1.0 + c) ** 2)
        across = others * math.log1p(one * (1.0 - c * c) / others)
        return (along + across) * FAR_UP

    def ridge_floor(self, epsilon: float) -> float:
        """Smallest regulariser at which the Jacobians take half of the budget."""
        if math.isnan(epsilon) or epsilon <= 0.0:
            raise ValueError("epsilon must be positive")
        # Beyond, the floor underflows; one for a smaller epsilon is only larger.
        epsilon = min(epsilon, _LARGEST_EPSILON)
        curvature = self.curvature
        # J is at least log(1 + curvature / ridge), the value for one direction, and at most its
        # trace bound curvature / ridge.
        low = 0.999 * curvature * math.exp(-epsilon / 2.0) / -math.expm1(-epsilon / 2.0)
        high = 1.001 * curvature / (epsilon / 2.0)

        def excess(log_ridge: float) -> float:
            return self.log_ratio(math.exp(log_ridge)) - epsilon / 2.0

        ridge = math.exp(brentq(excess, math.log(low), math.log(high), xtol=1e-12))
        while self.log_ratio(ridge) > epsilon / 2.0:
            ridge *= FAR_UP
        return ridge

    def slope_bounds(self, radius: float) -> SlopeBounds:
        """Interpolation in place of the sum over all pairs counts as rounding; Theorem 5."""
        reach = self.row_norm * radius
        slope = self.loss.slope_bound(2.0 * reach)
        # The sum of the absolute derivatives by all scores is at most twice the number of pairs
        # times the slope: what Theorem 2 of the certificate needs per record, on average.
        per_record = 2.0 * self.mass / self.n_samples
        return SlopeBounds(
            per_record * slope,
            per_record * 2.0 * self.loss.smoothness,
            per_record * (self.pair_error(reach) / UNIT + 4.0 * slope),
        )

    def pair_error(self, reach: float) -> float:
        """Error of a derivative by a score, for each pair that it sums over; Theorems 3 and 4.

        At exact scores of at most `reach`; interpolation and rounding.
        """
        loss, n = self.loss, self.n_samples
        if loss.name in ("logistic", "shifted_logistic"):
            reach += abs(loss.shift)
            # The shift is added to the negative scores, rounded once.
            return logistic_rounding(n, reach) + (reach * UNIT if loss.shift else 0.0)
        sums = PAIR_BLOCK + -(-n // PAIR_BLOCK) + 8
        if math.isfinite(loss.lipschitz):
            return (2.0 * sums + 4.0 * loss.smoothness * (reach + 3.0)) * UNIT * 1.01
        return 8.0 * sums * (reach + 1.0) * UNIT * 1.01

    def noise_cost(self, variance: float) -> float:
        """Mean loss that noise adds: a pair meets only the noise along its difference."""
        return self.mass * self.loss.smoothness * self.diameter**2 * variance / 2.0

    def objective(
        self, data: Labelled, positive: int, ridge: float, linear: FloatArray | None, radius: float
    ) -> PairwiseObjective:
        """Return the objective; pairs have no class weights."""
        del radius
        if not isinstance(data.rows, Rows):
            raise TypeError("a sum over pairs reads the rows themselves")
        is_positive = data.classes == positive
        return PairwiseObjective(
            data.rows, is_positive, self.loss, self.total(ridge), self.normaliser, linear
        )


def balanced_normaliser(n_samples: int) -> float:
    """Return ``n^2 / 4``, the number of pairs of two classes of the same size."""
    return n_samples * n_samples / 4.0
