"""The method of multipliers for a sum of hinges: exact kinks from smooth minimisations.

A Huber hinge of width ``h`` gives the dual variables ``c / 2 + c (1 - m) / (2 h)``, cut to
``[0, c]``. Small widths would bring them near the exact ones, at the price of dividing
rounding errors of the margins by ``h``. Centred at the previous dual variables instead of
``c / 2``, moderate widths are enough: the error shrinks with every new centre.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.optim.descent import newton, newton_cg, point_at
from dp_halfspace.optim.objectives import MAX_DENSE, MarginObjective

__all__ = ["ProximalHinge", "multiplier_steps"]

FloatArray: TypeAlias = NDArray[np.float64]

_FIRST_WIDTH, _LAST_WIDTH, _FACTOR = 0.3, 1e-10, 4.0
_STEPS = 40
_NEWTON_STEPS, _CG_PASSES = 300, 5000


@dataclass(frozen=True, slots=True)
class ProximalHinge:
    """The sum of hinges, smoothed by a penalty on moving away from dual variables.

    ``max_a sum_i a_i (1 - m_i) - (width / c_i) (a_i - centre_i)^2 + ridge / 2 ||w||^2`` over
    ``0 <= a_i <= c_i``, with the weights ``c`` and the signed margins ``m`` of `hinges`.

    Parameters
    ----------
    hinges : MarginObjective
        Rows, signs, weights and ridge; no linear term.
    centre : ndarray of shape (n,)
        Dual variables, between 0 and the weights.
    width : float
        Positive.

    References
    ----------
    Rockafellar (1976), "Augmented Lagrangians and applications of the proximal point
    algorithm in convex programming".

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.optim.losses import HINGE
    >>> from dp_halfspace.optim.objectives import MarginObjective
    >>> from dp_halfspace.optim.proximal import ProximalHinge
    >>> from dp_halfspace.optim.rows import Rows
    >>> J = MarginObjective(Rows(np.eye(2)), np.ones(2), np.ones(2), HINGE, ridge=1.0)
    >>> ProximalHinge(J, np.full(2, 0.5), 1.0).duals(np.array([0.0, 1.0]), 0, 2)
    array([1. , 0.5])
    """

    hinges: MarginObjective
    centre: FloatArray
    width: float

    @property
    def size(self) -> int:
        """Number of coefficients."""
        return self.hinges.size

    @property
    def ridge(self) -> float:
        """Modulus of strong convexity."""
        return self.hinges.ridge

    @property
    def initial_gap(self) -> float:
        """``(1 + width) sum(c)``: at most ``sum(c)`` at 0, never below ``-width sum(c)``."""
        return (1.0 + self.width) * float(self.hinges.weights.sum())

    def duals(self, margins: FloatArray, lo: int, hi: int) -> FloatArray:
        """Return the maximising dual variables of the records ``lo`` to ``hi - 1``.

        Parameters
        ----------
        margins : ndarray of shape (hi - lo,)
            Signed margins.
        lo, hi : int
            Range of records.

        Returns
        -------
        ndarray of shape (hi - lo,)
        """
        return np.clip(self._unconstrained(margins, lo, hi), 0.0, self.hinges.weights[lo:hi])

    def gradient(self, w: FloatArray) -> FloatArray:
        """Return the gradient; see `SmoothFunction`."""
        rows, signs = self.hinges.rows, self.hinges.signs

        def slopes(margins: FloatArray, lo: int, hi: int) -> FloatArray:
            duals = self.duals(margins * signs[lo:hi], lo, hi)
            duals *= signs[lo:hi]
            return -duals

        with np.errstate(all="ignore"):
            return rows.fused_adjoint(w, slopes) + self.ridge * w

    def hessian(self, w: FloatArray) -> FloatArray:
        """Return a generalised Hessian; see `SmoothFunction`."""
        with np.errstate(all="ignore"):
            hessian = self.hinges.rows.gram(self._curvature(w))
        hessian.flat[:: self.size + 1] += self.ridge
        return hessian

    def hessian_product(self, w: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return the product with a generalised Hessian; see `SmoothFunction`."""
        with np.errstate(all="ignore"):
            curvature = self._curvature(w)

        def product(v: FloatArray) -> FloatArray:
            def scale(margins: FloatArray, lo: int, hi: int) -> FloatArray:
                margins *= curvature[lo:hi]
                return margins

            with np.errstate(all="ignore"):
                return self.hinges.rows.fused_adjoint(v, scale) + self.ridge * v

        return product

    def _unconstrained(self, margins: FloatArray, lo: int, hi: int) -> FloatArray:
        """Return the maximiser over all real numbers."""
        step = self.hinges.weights[lo:hi] / (2.0 * self.width)
        return self.centre[lo:hi] + step * (1.0 - margins)

    def _curvature(self, w: FloatArray) -> FloatArray:
        """Return the second derivatives in the margins: 0 where a dual variable is at an end."""
        margins = self.hinges.rows.margins(w) * self.hinges.signs
        free = self._unconstrained(margins, 0, margins.size)
        weights = self.hinges.weights
        return np.where((free > 0.0) & (free < weights), weights / (2.0 * self.width), 0.0)


def multiplier_steps(
    hinges: MarginObjective, gap: float
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield points and dual variables that approach the minimiser of a sum of hinges.

    Parameters
    ----------
    hinges : MarginObjective
        With the hinge as loss and no linear term.
    gap : float
        Duality gap that is wanted; sets how exactly each step is computed.

    Yields
    ------
    w : ndarray of shape (size,)
    alpha : ndarray of shape (n,)
        Between 0 and the weights; ``w`` is nearly the point that belongs to it.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.optim.losses import HINGE
    >>> from dp_halfspace.optim.objectives import MarginObjective
    >>> from dp_halfspace.optim.proximal import multiplier_steps
    >>> from dp_halfspace.optim.rows import Rows
    >>> J = MarginObjective(Rows(np.array([[0.3]])), np.ones(1), np.ones(1), HINGE, ridge=0.05)
    >>> *_, (w, alpha) = multiplier_steps(J, 1e-9)
    >>> w.round(6), alpha.round(3)
    (array([3.333333]), array([0.556]))
    """
    w, alpha = np.zeros(hinges.size), hinges.weights / 2.0
    width = _FIRST_WIDTH
    # A residual gradient g leaves a gap of |g|^2 / ridge.
    target = math.sqrt(0.1 * gap * hinges.ridge)
    for _ in range(_STEPS):
        smoothed = ProximalHinge(hinges, alpha, width)
        start = point_at(smoothed, w)
        if hinges.size <= MAX_DENSE:
            w = newton(smoothed, start, target, _NEWTON_STEPS).w
        else:
            w = newton_cg(smoothed, start, target, _CG_PASSES).w
        alpha = smoothed.duals(hinges.rows.margins(w) * hinges.signs, 0, hinges.signs.size)
        yield w, alpha
        width = max(width / _FACTOR, _LAST_WIDTH)
