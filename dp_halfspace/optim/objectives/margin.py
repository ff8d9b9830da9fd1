"""Sums of a margin loss, tilted towards the largest losses or against an adversary if asked.

``J(w) = n / T log(mean(exp(T c_i l(y_i <z_i, w> - rho N(w))))) + ridge / 2 ||w||^2 + <linear, w>``
with the smoothed dual norm ``N`` of an adversary of radius ``rho``. For ``T = 0`` this is the sum
of the losses. Every gradient reads the data once, with a tilt twice; no pass raises a warning,
whatever the data and the point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.optim.objectives.adversary import Adversary
from dp_halfspace.optim.objectives.function import OverRows, check_terms, depth, finish, spread
from dp_halfspace.optim.objectives.losses import Loss
from dp_halfspace.rows.blocks import FloatArray
from dp_halfspace.rows.mapped_rows import Design

# Numbers are added in runs of this length, and then the sums: the bound on rounding errors
# counts both, and one long sum would have as many terms as records.
RUN = 1024


class _Attack(NamedTuple):
    """The adversary at a point: gradient of what it takes from a margin, and sum of the slopes."""

    adversary: Adversary
    slope: FloatArray
    pull: float


@dataclass(frozen=True, slots=True)
class MarginObjective(OverRows):
    """Weighted sum, or tilted mean, of a margin loss, with a ridge and a linear term.

    Parameters
    ----------
    rows : Design of shape (n, D)
        The ``z_i``.
    signs : ndarray of shape (n,)
        The ``y_i``, in {-1, +1}, of any numeric type.
    weights : ndarray of shape (n,)
        The ``c_i``, at least 0.
    loss : Loss
        Smooth; monotone if there is an adversary.
    ridge : float
        Positive.
    linear : ndarray of shape (D,) or None, default=None
        Coefficients of the linear term.
    tilt : float, default=0.0
        The ``T``, at least 0.
    adversary : Adversary or None, default=None
        Who moves every row to lower its margin.
    radius : float, default=inf
        Norm up to which `gradient_lipschitz` has to hold. A tilted loss whose slope has no
        bound needs one.
    mass : float or None, default=None
        What multiplies a tilted mean; None for the number of records.

    References
    ----------
    Li, Beirami, Sanjabi and Smith (2021), "Tilted empirical risk minimization". Lowy and
    Razaviyayn (2021), section 5. ``docs/proofs/robust.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.optim import SQUARED, MarginObjective, Rows
    >>> rows = Rows(np.array([[1.0], [1.0]]))
    >>> J = MarginObjective(rows, np.array([1.0, -1.0]), np.ones(2), SQUARED, ridge=2.0)
    >>> J.value_and_gradient(np.array([1.0]))
    (5.0, array([6.]))
    """

    rows: Design
    signs: NDArray[np.float64] | NDArray[np.int8]
    weights: FloatArray
    loss: Loss
    ridge: float
    linear: FloatArray | None = None
    tilt: float = 0.0
    adversary: Adversary | None = None
    radius: float = math.inf
    mass: float | None = None

    def __post_init__(self) -> None:
        n = self.rows.shape[0]
        if self.signs.shape != (n,) or self.weights.shape != (n,):
            raise ValueError("signs and weights must have one entry per row")
        if not 0.0 <= self.tilt < math.inf:
            raise ValueError("tilt must be finite and not negative")
        if self.adversary is not None and not self.loss.monotone:
            raise ValueError("an adversary needs a monotone loss")
        check_terms(self.ridge, self.linear, self.size)

    @property
    def gradient_lipschitz(self) -> float:
        """``n max(c) (beta a^2 + T max(c) B^2 a^2 + B curvature) + ridge``, ``a = r + reach``.

        ``B`` is the largest slope at points of three times `radius`, where the iterates of an
        accelerated method stay.
        """
        length, curvature = self.rows.row_bound, 0.0
        if self.adversary is not None:
            length, curvature = length + self.adversary.reach, self.adversary.curvature
        slope = self.loss.lipschitz
        if math.isfinite(self.radius):
            slope = self.loss.slope_bound(3.0 * length * self.radius)
        largest = float(self.weights.max(initial=0.0))
        bend = self.loss.smoothness * length**2
        if self.tilt:
            bend += self.tilt * largest * (slope * length) ** 2
        if curvature:
            bend += slope * curvature
        return self._mass * largest * bend + self.ridge

    @property
    def initial_gap(self) -> float:
        """``sum(c) l(0) + ||linear||^2 / (2 ridge)``, since losses are not negative."""
        weights = float(self.weights.sum())
        if self.tilt:
            weights = self._mass * float(self.weights.max(initial=0.0))
        return weights * self.loss.at_zero + depth(self.linear, self.ridge)

    def value_and_gradient(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return ``J(w)`` and its gradient; see `Objective`."""
        with np.errstate(all="ignore"):
            if self.tilt:
                losses = self._losses(w)
                value = self._mass * tilted_mean(losses, self.tilt)
                gradient, _ = self._pull(w, self._tilted(losses))
            else:
                gradient, value = self._pull(w, self.weights, valued=True)
            return finish(value, gradient, w, self.ridge, self.linear)

    def gradient(self, w: FloatArray) -> FloatArray:
        """Return the gradient; see `Objective`."""
        with np.errstate(all="ignore"):
            gradient, _ = self._pull(w, self._shares(w))
            return finish(0.0, gradient, w, self.ridge, self.linear)[1]

    def hessian(self, w: FloatArray) -> FloatArray:
        """Return a (generalised) Hessian; see `Objective`."""
        with np.errstate(all="ignore"):
            bends, mean, attack = self._curvature(w)
            hessian = self.rows.gram(bends)
            if attack is not None:
                cross = np.multiply.outer(self.rows.adjoint(bends * self.signs), attack.slope)
                hessian -= cross + cross.T
                hessian += total(bends) * np.multiply.outer(attack.slope, attack.slope)
                hessian -= attack.pull * attack.adversary.hessian_product(w, np.eye(self.size))
            if mean is not None:
                hessian -= (self.tilt / self._mass) * np.multiply.outer(mean, mean)
        hessian.flat[:: self.size + 1] += self.ridge
        return hessian

    def hessian_product(self, w: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return the product with a (generalised) Hessian; see `Objective`."""
        with np.errstate(all="ignore"):
            bends, mean, attack = self._curvature(w)

        def product(v: FloatArray) -> FloatArray:
            sums = 0.0

            def scale(images: FloatArray, lo: int, hi: int) -> FloatArray:
                nonlocal sums
                if attack is None:
                    images *= bends[lo:hi]
                    return images
                images -= self.signs[lo:hi] * float(attack.slope @ v)
                images *= bends[lo:hi]
                sums += float(images @ self.signs[lo:hi])
                return images

            with np.errstate(all="ignore"):
                out = self.rows.fused_adjoint(v, scale) + self.ridge * v
                if attack is not None:
                    moved = attack.pull * attack.adversary.hessian_product(w, v)
                    out -= sums * attack.slope + moved
                if mean is not None:
                    out -= (self.tilt / self._mass) * float(mean @ v) * mean
                return out

        return product

    def subsample(self, n_rows: int) -> MarginObjective | None:
        """Return the objective of evenly spaced runs of rows; see `Objective`."""
        index = spread(self.rows.shape[0], n_rows)
        if index is None:
            return None
        if self.tilt:
            # A tilt acts on single losses: not their weights grow, but that of the whole mean.
            return replace(self.records(index, 1.0), mass=self._mass)
        return self.records(index, self.rows.shape[0] / index.size)

    def records(self, index: NDArray[np.intp], factor: float) -> MarginObjective:
        """Return the objective of some records, their weights multiplied by a factor."""
        return replace(
            self,
            rows=self.rows.subset(index),
            signs=self.signs[index],
            weights=self.weights[index] * factor,
        )

    @property
    def _mass(self) -> float:
        """What multiplies the tilted mean."""
        return float(self.n_records) if self.mass is None else self.mass

    def _lowered(self, w: FloatArray) -> float:
        """Return what the adversary takes from every margin."""
        return self.adversary.radius * self.adversary.dual_norm(w) if self.adversary else 0.0

    def _margins(self, w: FloatArray) -> FloatArray:
        """Return the margins that the adversary leaves."""
        margins = self.rows.margins(w)
        margins *= self.signs
        margins -= self._lowered(w)
        return margins

    def _losses(self, w: FloatArray) -> FloatArray:
        """Return the weighted losses."""
        return self.weights * self.loss.value(self._margins(w))

    def _tilted(self, losses: FloatArray) -> FloatArray:
        """Return the class weights times the weights of the records in the tilted mean."""
        return self.weights * (self._mass * tilted_weights(losses, self.tilt))

    def _shares(self, w: FloatArray) -> FloatArray:
        """Return how much every loss counts at a point."""
        return self._tilted(self._losses(w)) if self.tilt else self.weights

    def _pull(
        self, w: FloatArray, shares: FloatArray, *, valued: bool = False
    ) -> tuple[FloatArray, float]:
        """Return the gradient of the losses, and their sum if asked, in one pass."""
        lowered, value = self._lowered(w), 0.0
        pulls = np.empty(0) if self.adversary is None else np.empty(self.n_records)

        def slopes(margins: FloatArray, lo: int, hi: int) -> FloatArray:
            nonlocal value
            margins *= self.signs[lo:hi]
            if lowered:
                margins -= lowered
            if valued:
                value += float(shares[lo:hi] @ self.loss.value(margins))
            slopes = self.loss.derivative(margins)
            slopes *= shares[lo:hi]
            if pulls.size:
                pulls[lo:hi] = slopes
            slopes *= self.signs[lo:hi]
            return slopes

        gradient = self.rows.fused_adjoint(w, slopes)
        if self.adversary is not None:
            gradient -= self.adversary.radius * total(pulls) * self.adversary.gradient(w)
        return gradient, value

    def _curvature(self, w: FloatArray) -> tuple[FloatArray, FloatArray | None, _Attack | None]:
        """Return what Hessians are made of.

        The second derivatives in the margins, all but the square of the mean; the mean gradient
        of a tilted loss; what the adversary adds.
        """
        margins, shares = self._margins(w), self._shares(w)
        bends, mean, attack = self.loss.second_derivative(margins), None, None
        slopes = self.loss.derivative(margins) if self.tilt or self.adversary else None
        if slopes is not None and self.adversary is not None:
            radius = self.adversary.radius
            slope, pull = radius * self.adversary.gradient(w), radius * total(slopes * shares)
            attack = _Attack(self.adversary, slope, pull)
        if slopes is not None and self.tilt:
            mean, _ = self._pull(w, shares)
            slopes *= slopes
            slopes *= self.tilt * self.weights
            bends += slopes
        bends *= shares
        return bends, mean, attack


def total(values: FloatArray) -> float:
    """Add numbers in runs."""
    return float(np.add.reduceat(values, np.arange(0, values.size, RUN)).sum())


def tilted_weights(values: FloatArray, tilt: float) -> FloatArray:
    """Return ``exp(tilt v_i)`` divided by the sum; equal weights without a tilt."""
    if tilt == 0.0:
        return np.full(values.size, 1.0 / values.size)
    weights: FloatArray = values - values.max()
    weights *= tilt
    np.exp(weights, out=weights)
    weights /= total(weights)
    return weights


def tilted_mean(values: FloatArray, tilt: float) -> float:
    """Return ``log(mean(exp(tilt v_i))) / tilt``, the mean without a tilt."""
    if tilt == 0.0:
        return total(values) / values.size
    top = values.max()
    # A small tilt: the logarithm of a number near 1 has lost nothing in log1p and expm1.
    return float(top + np.log1p(total(np.expm1(tilt * (values - top))) / values.size) / tilt)
