"""Bounds on the effect of one record on the minimiser of a sum over all pairs of two classes.

Proofs: ``docs/proofs/pairwise.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from dp_halfspace._rounding import EPS, FAR_UP, UP
from dp_halfspace.optim.losses import Loss
from dp_halfspace.optim.risks import Risk, SlopeBounds, Task, Vertices, minimiser_radius
from dp_halfspace.papers.pair_objective import (
    PAIR_BLOCK,
    PairwiseObjective,
    logistic_rounding,
)
from dp_halfspace.rows.mapped_rows import Design
from dp_halfspace.rows.rows import Rows

# A larger epsilon counts as this one in the floor of the regulariser; its exponential is a float.
_LARGEST_FLOOR_EPSILON = 100.0


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
        Rows that are summed at a time, see :func:`~dp_halfspace.rows.blocks.block_size`.
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
        """Largest number of pairs that contain one record, over the normaliser; never zero."""
        return max(1, self.n_samples - 1) / self.normaliser

    @property
    def mass(self) -> float:
        """Largest number of pairs, at least one, over the normaliser."""
        return max(1, self.n_samples * self.n_samples // 4) / self.normaliser * UP

    @property
    def gradient_change(self) -> float:
        """``(n - 1) L D / Z``; ``pairwise.md``, Lemma 7. Infinite for unbounded slopes."""
        return self.partners * self.loss.lipschitz * self.diameter * UP

    @property
    def vertices(self) -> Vertices:
        """Vertices of the set of gradient changes of a pair; ``pairwise.md``, Lemma 9."""
        return ((1, 0.0), (1, math.sqrt(0.75) * UP), (2, 1.0))

    @property
    def curvature(self) -> float:
        """Bound on the curvature of all pairs that contain one record."""
        return self.partners * self.loss.smoothness * self.diameter**2

    def total(self, ridge: float) -> float:
        """Return the coefficient of ``||w||^2 / 2`` in the objective, which is normalised."""
        return ridge

    def radius(self, ridge: float) -> float:
        """Bound the norm of the minimiser without a linear term: ``pairwise.md``, Lemma 6."""
        return minimiser_radius(
            self.loss, row_norm=self.diameter, ridge=ridge, max_weight=self.mass
        )

    def sensitivity(self, ridge: float) -> float:
        """Return ``(n - 1) B D / (ridge Z)``, with ``B`` the largest slope within the radius.

        The bound holds for every number of positive records, and for records that change their
        class: ``pairwise.md``, Theorem 8.
        """
        slope = self.loss.slope_bound(self.diameter * self.radius(ridge))
        return self.partners * slope * self.diameter / ridge * FAR_UP

    def log_ratio(self, ridge: float) -> float:
        """Bound the logarithm of the ratio of the Jacobians: ``pairwise.md``, Theorem 10."""
        one = self.partners * self.loss.smoothness * self.row_norm**2 / ridge
        rank = min(self.n_columns, max(1, self.n_samples - 1))
        if rank == 1:
            return math.log1p(4.0 * one) * UP
        others = rank - 1

        def slope(c: float) -> float:
            """Return a decreasing function with the sign of the derivative of the bound in `c`."""
            return 1.0 / (one * (1.0 + c) ** 2) + (1.0 - c) / others - c

        # In the worst case all other rows lie opposite to the record, at the distance c from zero.
        c = 1.0 if slope(1.0) >= 0.0 else float(brentq(slope, 0.0, 1.0, xtol=1e-15, rtol=1e-14))
        own = math.log1p(one * (1.0 + c) ** 2)
        rest = others * math.log1p(one * (1.0 - c * c) / others)
        return (own + rest) * FAR_UP

    def ridge_floor(self, epsilon: float) -> float:
        """Return the smallest regulariser at which the Jacobians take at most half of epsilon."""
        if math.isnan(epsilon) or epsilon <= 0.0:
            raise ValueError("epsilon must be positive")
        # The floor of a larger epsilon would underflow, and the floor for a smaller one is larger.
        epsilon = min(epsilon, _LARGEST_FLOOR_EPSILON)
        curvature = self.curvature
        # The log ratio is at least log(1 + curvature / ridge), its value for one direction, and at
        # most curvature / ridge, the bound by the trace.
        low = 0.999 * curvature * math.exp(-epsilon / 2.0) / -math.expm1(-epsilon / 2.0)
        high = 1.001 * curvature / (epsilon / 2.0)

        def excess(log_ridge: float) -> float:
            return self.log_ratio(math.exp(log_ridge)) - epsilon / 2.0

        ridge = math.exp(brentq(excess, math.log(low), math.log(high), xtol=1e-12))
        while self.log_ratio(ridge) > epsilon / 2.0:
            ridge *= FAR_UP
        return ridge

    def slope_bounds(self, radius: float) -> SlopeBounds:
        """Bound the slopes and their errors, those of interpolation included.

        ``pairwise.md``, Theorem 5.
        """
        largest_margin = self.row_norm * radius
        slope = self.loss.slope_bound(2.0 * largest_margin)
        # The absolute derivatives with respect to all scores add up to at most twice the number of
        # pairs times the slope; Theorem 2 of the certificate needs their mean over records.
        per_record = 2.0 * self.mass / self.n_samples
        return SlopeBounds(
            per_record * slope,
            per_record * 2.0 * self.loss.smoothness,
            per_record * (self.pair_error(largest_margin) / EPS + 4.0 * slope),
        )

    def pair_error(self, largest_margin: float) -> float:
        """Bound the error of the derivative with respect to a score, for each pair in its sum.

        It is that of interpolation and rounding at exact scores of at most `largest_margin`:
        ``pairwise.md``, Theorems 3 and 4.
        """
        n = self.n_samples
        if self.loss.name == "logistic":
            return logistic_rounding(n)
        sums = PAIR_BLOCK + -(-n // PAIR_BLOCK) + 8
        return 8.0 * sums * (largest_margin + 1.0) * EPS * 1.01

    def noise_cost(self, variance: float) -> float:
        """Return the mean loss that noise adds; it changes a pair along its difference only."""
        return self.mass * self.loss.smoothness * self.diameter**2 * variance / 2.0

    def objective(self, rows: Design, classes: NDArray[np.intp], task: Task) -> PairwiseObjective:
        """Return the objective; pairs have no class weights."""
        if not isinstance(rows, Rows):
            raise TypeError("a sum over pairs reads the rows themselves")
        is_positive = classes == task.positive
        return PairwiseObjective(
            rows, is_positive, self.loss, self.total(task.ridge), self.normaliser, task.linear
        )


def balanced_normaliser(n_samples: int) -> float:
    """Return ``n^2 / 4``, the number of pairs of two classes of the same size."""
    return n_samples * n_samples / 4.0
