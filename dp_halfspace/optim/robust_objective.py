"""Tilted and adversarially robust objectives, on the scale of the sum over records.

``J(w) = n / T log(mean(exp(T c_i l(y_i <z_i, w> - radius N(w))))) + ridge / 2 ||w||^2
+ <linear, w>``, with the smoothed dual norm ``N`` of an attack; for a tilt ``T = 0`` the plain
sum of the losses. The weights of the records are computed from differences of losses, so no
tilt overflows; no pass raises a warning, whatever the data and the point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.optim._terms import check_terms, depth, finish, spread
from dp_halfspace.optim._tilt import tilted_mean, tilted_weights, total
from dp_halfspace.optim.attack import Attack
from dp_halfspace.optim.losses import Loss
from dp_halfspace.optim.mapped_rows import Design

__all__ = ["RobustObjective"]

FloatArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RobustObjective:
    """Tilted mean of margin losses under attack, with a ridge and a linear term.

    Parameters
    ----------
    rows : Design of shape (n, D)
        The ``z_i``.
    signs : ndarray of shape (n,)
        The ``y_i``, in {-1, +1}, of any numeric type.
    weights : ndarray of shape (n,)
        The ``c_i``, at least 0.
    loss : Loss
        Smooth; monotone if there is an attack.
    ridge : float
        Positive.
    tilt : float, default=0.0
        The ``T``, at least 0.
    attack : Attack or None, default=None
        With a smoothing, for every method but the value of `value_and_gradient`.
    linear : ndarray of shape (D,) or None, default=None
        Coefficients of the linear term.
    radius : float, default=inf
        Norm up to which `gradient_lipschitz` has to hold. A tilted loss whose slope has no
        bound needs one.
    mass : float or None, default=None
        What multiplies the tilted mean; None for the number of records.

    Raises
    ------
    ValueError
        If a number or a shape does not fit.

    References
    ----------
    Li, Beirami, Sanjabi and Smith (2021), "Tilted empirical risk minimization". Lowy and
    Razaviyayn (2021), section 5. ``docs/proofs/robust.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.optim.attack import Attack
    >>> from dp_halfspace.optim.losses import SQUARED_HINGE
    >>> from dp_halfspace.optim.robust_objective import RobustObjective
    >>> from dp_halfspace.optim.rows import Rows
    >>> rows, attack = Rows(np.array([[1.0], [1.0]])), Attack(0.5, 2, 1, smoothing=0.0)
    >>> J = RobustObjective(rows, np.ones(2), np.ones(2), SQUARED_HINGE, 2.0, attack=attack)
    >>> J.value_and_gradient(np.array([1.0]))
    (1.5, array([1.]))
    """

    rows: Design
    signs: NDArray[np.float64] | NDArray[np.int8]
    weights: FloatArray
    loss: Loss
    ridge: float
    tilt: float = 0.0
    attack: Attack | None = None
    linear: FloatArray | None = None
    radius: float = math.inf
    mass: float | None = None

    def __post_init__(self) -> None:
        n = self.rows.shape[0]
        if self.signs.shape != (n,) or self.weights.shape != (n,):
            raise ValueError("signs and weights must have one entry per row")
        if not 0.0 <= self.tilt < math.inf:
            raise ValueError("tilt must be finite and not negative")
        if self.attack is not None and not self.loss.monotone:
            raise ValueError("an attack needs a monotone loss")
        check_terms(self.ridge, self.linear, self.size)

    @property
    def n_records(self) -> int:
        """Number of records."""
        return self.rows.shape[0]

    @property
    def size(self) -> int:
        """Number of coefficients."""
        return self.rows.shape[1]

    @property
    def gradient_lipschitz(self) -> float:
        """``n max(c) (beta a^2 + T max(c) B^2 a^2 + B curvature) + ridge``, ``a = r + reach``.

        ``B`` is the largest slope at points of three times `radius`, where the iterates of an
        accelerated method stay.
        """
        length, curvature = self.rows.row_bound, 0.0
        if self.attack is not None:
            length, curvature = length + self.attack.reach, self.attack.curvature
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
        """``n max(c) l(0) + ||linear||^2 / (2 ridge)``, since losses are not negative."""
        most = float(self.weights.max(initial=0.0)) * self.loss.at_zero
        return self._mass * most + depth(self.linear, self.ridge)

    def value_and_gradient(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return ``J(w)`` and its gradient; see `Objective`."""
        with np.errstate(all="ignore"):
            margins = self._margins(w)
            losses = self.weights * self.loss.value(margins)
            value = self._mass * tilted_mean(losses, self.tilt)
            gradient = self._mean_gradient(w, self._pulls(margins, self._shares(losses)))
            return finish(value, gradient, w, self.ridge, self.linear)

    def gradient(self, w: FloatArray) -> FloatArray:
        """Return the gradient; see `Objective`."""
        with np.errstate(all="ignore"):
            margins = self._margins(w)
            gradient = self._mean_gradient(w, self._pulls(margins, self._shares_at(margins)))
            return finish(0.0, gradient, w, self.ridge, self.linear)[1]

    def hessian(self, w: FloatArray) -> FloatArray:
        """Return a (generalised) Hessian; see `Objective`."""
        with np.errstate(all="ignore"):
            margins = self._margins(w)
            shares = self._shares_at(margins)
            pulls, bends = self._pulls(margins, shares), self._bends(margins, shares)
            hessian = self.rows.gram(bends)
            if self.attack is not None:
                u = self.attack.radius * self.attack.gradient(w)
                cross = np.multiply.outer(self.rows.adjoint(bends * self.signs), u)
                hessian -= cross + cross.T
                hessian += total(bends) * np.multiply.outer(u, u)
                identity = np.eye(self.size)
                hessian -= self._attack_pull(pulls) * self.attack.hessian_product(w, identity)
            if self.tilt:
                mean = self._mean_gradient(w, pulls)
                hessian -= (self.tilt / self._mass) * np.multiply.outer(mean, mean)
        hessian.flat[:: self.size + 1] += self.ridge
        return hessian

    def hessian_product(self, w: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return the product with a (generalised) Hessian; see `Objective`."""
        with np.errstate(all="ignore"):
            margins = self._margins(w)
            shares = self._shares_at(margins)
            pulls, bends = self._pulls(margins, shares), self._bends(margins, shares)
            mean = self._mean_gradient(w, pulls) if self.tilt else None
            attack = self.attack
            u = None if attack is None else attack.radius * attack.gradient(w)

        def product(v: FloatArray) -> FloatArray:
            fall = 0.0 if u is None else float(u @ v)
            sums = 0.0

            def scale(images: FloatArray, lo: int, hi: int) -> FloatArray:
                nonlocal sums
                images *= self.signs[lo:hi]
                images -= fall
                images *= bends[lo:hi]
                sums += float(images.sum())
                images *= self.signs[lo:hi]
                return images

            with np.errstate(all="ignore"):
                out = self.rows.fused_adjoint(v, scale) + self.ridge * v
                if u is not None and attack is not None:
                    out -= sums * u + self._attack_pull(pulls) * attack.hessian_product(w, v)
                if mean is not None:
                    out -= (self.tilt / self._mass) * float(mean @ v) * mean
                return out

        return product

    def subsample(self, n_rows: int) -> RobustObjective | None:
        """Return the objective of evenly spaced runs of rows; see `Objective`."""
        index = spread(self.rows.shape[0], n_rows)
        if index is None:
            return None
        return replace(
            self,
            rows=self.rows.subset(index),
            signs=self.signs[index],
            weights=self.weights[index],
            mass=self._mass,
        )

    @property
    def _mass(self) -> float:
        """What multiplies the tilted mean."""
        return float(self.n_records) if self.mass is None else self.mass

    def _margins(self, w: FloatArray) -> FloatArray:
        """Return the margins under attack."""
        margins = self.rows.margins(w)
        margins *= self.signs
        if self.attack is not None:
            margins -= self.attack.radius * self.attack.dual_norm(w)
        return margins

    def _shares(self, losses: FloatArray) -> FloatArray:
        """Return the weights of the records in the sum, which add up to `mass`."""
        return self._mass * tilted_weights(losses, self.tilt)

    def _shares_at(self, margins: FloatArray) -> FloatArray:
        """Return the same from margins; without a tilt no loss is needed."""
        if self.tilt == 0.0:
            return self._shares(margins)
        return self._shares(self.weights * self.loss.value(margins))

    def _pulls(self, margins: FloatArray, shares: FloatArray) -> FloatArray:
        """Return the derivatives of the mean in the margins."""
        pulls = self.loss.derivative(margins)
        pulls *= self.weights
        pulls *= shares
        return pulls

    def _bends(self, margins: FloatArray, shares: FloatArray) -> FloatArray:
        """Return the second derivatives in the margins, all but the square of the mean."""
        bends = self.loss.second_derivative(margins)
        bends *= self.weights
        if self.tilt:
            bends += self.tilt * (self.weights * self.loss.derivative(margins)) ** 2
        bends *= shares
        return bends

    def _attack_pull(self, pulls: FloatArray) -> float:
        """Return the derivative of the mean in minus the dual norm; not positive."""
        return 0.0 if self.attack is None else self.attack.radius * total(pulls)

    def _mean_gradient(self, w: FloatArray, pulls: FloatArray) -> FloatArray:
        """Return the gradient without ridge and linear term."""
        gradient = self.rows.adjoint(pulls * self.signs)
        if self.attack is not None:
            gradient -= self._attack_pull(pulls) * self.attack.gradient(w)
        return gradient
