"""Regularised objectives, on the scale of the sum over records.

Margin losses: ``J(w) = sum_i c_i l(y_i <z_i, w>) + ridge / 2 ||w||^2 + <linear, w>``.
Multinomial logistic regression: the same with the cross-entropy of the softmax of
``(<z_i, w_1>, ..., <z_i, w_K>)``, for ``w = (w_1, ..., w_K)`` flattened.

Every gradient reads the data once, block by block; no pass raises a warning, whatever
the data and the point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.optim._terms import MAX_DENSE, check_terms, depth, finish, spread
from dp_halfspace.optim.losses import Loss
from dp_halfspace.optim.mapped_rows import Design
from dp_halfspace.optim.softmax import SoftmaxObjective

__all__ = [
    "MAX_DENSE",
    "MarginObjective",
    "Objective",
    "SmoothFunction",
    "SoftmaxObjective",
]

FloatArray: TypeAlias = NDArray[np.float64]


class SmoothFunction(Protocol):
    """A smooth, strongly convex function, as a descent method sees it.

    No member may warn or raise because of the data; a value beyond the largest double is
    infinite or not a number.
    """

    @property
    def size(self) -> int:
        """Number of coefficients."""

    @property
    def ridge(self) -> float:
        """Modulus of strong convexity, positive."""

    @property
    def initial_gap(self) -> float:
        """Bound on ``J(0)`` minus the minimum."""

    def gradient(self, w: FloatArray) -> FloatArray:
        """Return the gradient.

        Parameters
        ----------
        w : ndarray of shape (size,)

        Returns
        -------
        ndarray of shape (size,)
        """

    def hessian(self, w: FloatArray) -> FloatArray:
        """Return a (generalised) Hessian; called only if `size` is at most `MAX_DENSE`.

        Parameters
        ----------
        w : ndarray of shape (size,)

        Returns
        -------
        ndarray of shape (size, size)
        """

    def hessian_product(self, w: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return the product with a (generalised) Hessian at `w`, as a function.

        Parameters
        ----------
        w : ndarray of shape (size,)

        Returns
        -------
        callable
            Maps an ndarray of shape (size,) to one of the same shape.
        """


class Objective(SmoothFunction, Protocol):
    """A function that :func:`~dp_halfspace.optim.minimum.certified_minimum` can minimise."""

    @property
    def n_records(self) -> int:
        """Number of records in the sum."""

    @property
    def gradient_lipschitz(self) -> float:
        """Bound on the largest eigenvalue of every Hessian."""

    def value_and_gradient(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return ``J(w)`` and its gradient.

        Parameters
        ----------
        w : ndarray of shape (size,)

        Returns
        -------
        value : float
        gradient : ndarray of shape (size,)
        """

    def subsample(self, n_rows: int) -> Objective | None:
        """Return a cheaper objective that resembles this one.

        Parameters
        ----------
        n_rows : int
            About how many records to keep; their weights are scaled up.

        Returns
        -------
        Objective or None
            None when it would not be much cheaper.
        """


@dataclass(frozen=True, slots=True)
class MarginObjective:
    """Weighted sum of a margin loss, with a ridge and a linear term.

    Parameters
    ----------
    rows : Design of shape (n, D)
        The ``z_i``.
    signs : ndarray of shape (n,)
        The ``y_i``, in {-1, +1}, of any numeric type.
    weights : ndarray of shape (n,)
        The ``c_i``, at least 0.
    loss : Loss
        Margin loss; smooth for every method but `value`.
    ridge : float
        Positive.
    linear : ndarray of shape (D,) or None, default=None
        Coefficients of the linear term.

    Raises
    ------
    ValueError
        If `ridge` is not positive or a shape does not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.optim.losses import SQUARED
    >>> from dp_halfspace.optim.objectives import MarginObjective
    >>> from dp_halfspace.optim.rows import Rows
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

    def __post_init__(self) -> None:
        n = self.rows.shape[0]
        if self.signs.shape != (n,) or self.weights.shape != (n,):
            raise ValueError("signs and weights must have one entry per row")
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
        """``n max(c) beta r^2 + ridge``."""
        largest = self.rows.shape[0] * float(self.weights.max(initial=0.0))
        return largest * self.loss.smoothness * self.rows.row_bound**2 + self.ridge

    @property
    def initial_gap(self) -> float:
        """``sum(c) l(0) + ||linear||^2 / (2 ridge)``, since losses are not negative."""
        return float(self.weights.sum()) * self.loss.at_zero + depth(self.linear, self.ridge)

    def value_and_gradient(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return ``J(w)`` and its gradient; see `Objective`."""
        total = 0.0

        def slopes(margins: FloatArray, lo: int, hi: int) -> FloatArray:
            nonlocal total
            margins *= self.signs[lo:hi]
            total += float(self.weights[lo:hi] @ self.loss.value(margins))
            return self._slopes(margins, lo, hi)

        with np.errstate(all="ignore"):
            gradient = self.rows.fused_adjoint(w, slopes)
            return finish(total, gradient, w, self.ridge, self.linear)

    def gradient(self, w: FloatArray) -> FloatArray:
        """Return the gradient; see `Objective`."""

        def slopes(margins: FloatArray, lo: int, hi: int) -> FloatArray:
            margins *= self.signs[lo:hi]
            return self._slopes(margins, lo, hi)

        with np.errstate(all="ignore"):
            gradient = self.rows.fused_adjoint(w, slopes)
            return finish(0.0, gradient, w, self.ridge, self.linear)[1]

    def hessian(self, w: FloatArray) -> FloatArray:
        """Return a (generalised) Hessian; see `Objective`."""
        with np.errstate(all="ignore"):
            hessian = self.rows.gram(self._curvature(w))
        hessian.flat[:: self.size + 1] += self.ridge
        return hessian

    def hessian_product(self, w: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return the product with a (generalised) Hessian; see `Objective`."""
        with np.errstate(all="ignore"):
            curvature = self._curvature(w)

        def product(v: FloatArray) -> FloatArray:
            def scale(margins: FloatArray, lo: int, hi: int) -> FloatArray:
                margins *= curvature[lo:hi]
                return margins

            with np.errstate(all="ignore"):
                return self.rows.fused_adjoint(v, scale) + self.ridge * v

        return product

    def subsample(self, n_rows: int) -> MarginObjective | None:
        """Return the objective of evenly spaced runs of rows; see `Objective`."""
        index = spread(self.rows.shape[0], n_rows)
        if index is None:
            return None
        scale = self.rows.shape[0] / index.size
        return replace(
            self,
            rows=self.rows.subset(index),
            signs=self.signs[index],
            weights=self.weights[index] * scale,
        )

    def _slopes(self, margins: FloatArray, lo: int, hi: int) -> FloatArray:
        """Return ``c_i y_i l'(m_i)`` for signed margins ``m_i``."""
        slopes = self.loss.derivative(margins)
        slopes *= self.signs[lo:hi]
        slopes *= self.weights[lo:hi]
        return slopes

    def _curvature(self, w: FloatArray) -> FloatArray:
        """Return ``c_i l''(m_i)``."""
        curvature = self.loss.second_derivative(self.rows.margins(w) * self.signs)
        curvature *= self.weights
        return curvature
