"""The objective of multinomial logistic regression, on the scale of the sum over records."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._rounding import FAR_UP
from dp_halfspace.optim.objectives.function import OverRows, check_terms, depth, finish, spread
from dp_halfspace.rows.blocks import FloatArray
from dp_halfspace.rows.mapped_rows import Design


@dataclass(frozen=True, slots=True)
class SoftmaxObjective(OverRows):
    """Weighted cross-entropy of the softmax, with a ridge and a linear term.

    Parameters
    ----------
    rows : Design of shape (n, D)
        The ``z_i``.
    targets : ndarray of shape (n,), int
        Class of each record, from 0 to ``n_classes - 1``.
    n_classes : int
        Public number of classes ``K``, at least 2; a class may be absent.
    weights : ndarray of shape (n,)
        The ``c_i``, at least 0.
    ridge : float
        Positive.
    linear : ndarray of shape (K * D,) or None, default=None
        Coefficients of the linear term.
    shift : float, default=0.0
        Subtracted from the score of a record's own class, so that a record of a smaller
        margin still pulls; not negative.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.optim import Rows, SoftmaxObjective
    >>> J = SoftmaxObjective(Rows(np.array([[1.0]])), np.array([0]), 2, np.ones(1), ridge=1.0)
    >>> J.gradient(np.zeros(2))
    array([-0.5,  0.5])
    """

    rows: Design
    targets: NDArray[np.intp]
    n_classes: int
    weights: FloatArray
    ridge: float
    linear: FloatArray | None = None
    shift: float = 0.0

    def __post_init__(self) -> None:
        n = self.rows.shape[0]
        if self.targets.shape != (n,) or self.weights.shape != (n,):
            raise ValueError("targets and weights must have one entry per row")
        if self.n_classes < 2:
            raise ValueError("n_classes must be at least 2")
        if not 0.0 <= self.shift < math.inf:
            raise ValueError("shift must be finite and not negative")
        check_terms(self.ridge, self.linear, self.size)

    @property
    def size(self) -> int:
        """Number of coefficients, ``K D``."""
        return self.n_classes * self.rows.shape[1]

    @property
    def gradient_lipschitz(self) -> float:
        """``n max(c) r^2 / 2 + ridge``."""
        largest = self.rows.shape[0] * float(self.weights.max(initial=0.0))
        return largest * 0.5 * self.rows.row_bound**2 + self.ridge

    @property
    def initial_gap(self) -> float:
        """``sum(c) log(1 + (K - 1) exp(shift)) + ||linear||^2 / (2 ridge)``."""
        at_zero = self.shift + math.log(math.exp(-self.shift) + self.n_classes - 1)
        total = float(self.weights.sum()) * at_zero
        return total * FAR_UP + depth(self.linear, self.ridge)

    def value_and_gradient(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return ``J(w)`` and its gradient; see `Objective`."""
        return self._evaluated(w, valued=True)

    def gradient(self, w: FloatArray) -> FloatArray:
        """Return the gradient; see `Objective`."""
        return self._evaluated(w, valued=False)[1]

    def hessian(self, w: FloatArray) -> FloatArray:
        """Return a (generalised) Hessian; see `Objective`."""
        D = self.rows.shape[1]
        hessian = np.zeros((self.n_classes, D, self.n_classes, D))
        with np.errstate(all="ignore"):
            p = self._probabilities(w)
            for k in range(self.n_classes):
                own = self.rows.gram(self.weights * p[:, k] * (1.0 - p[:, k]))
                hessian[k, :, k, :] = own
                for j in range(k):
                    cross = -self.rows.gram(self.weights * p[:, k] * p[:, j])
                    hessian[k, :, j, :] = hessian[j, :, k, :] = cross
        out = hessian.reshape(self.size, self.size)
        out.flat[:: self.size + 1] += self.ridge
        return out

    def hessian_product(self, w: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return the product with a (generalised) Hessian; see `Objective`."""
        with np.errstate(all="ignore"):
            p = self._probabilities(w)

        def product(v: FloatArray) -> FloatArray:
            def scale(a: FloatArray, lo: int, hi: int) -> FloatArray:
                q = p[lo:hi]
                a -= np.einsum("ik,ik->i", q, a)[:, None]
                a *= q
                a *= self.weights[lo:hi, None]
                return a

            with np.errstate(all="ignore"):
                data = self.rows.fused_adjoint(self._matrix(v), scale)
                return data.T.ravel() + self.ridge * v

        return product

    def subsample(self, n_rows: int) -> SoftmaxObjective | None:
        """Return the objective of evenly spaced runs of rows; see `Objective`."""
        index = spread(self.rows.shape[0], n_rows)
        return None if index is None else self.records(index, self.rows.shape[0] / index.size)

    def records(self, index: NDArray[np.intp], factor: float) -> SoftmaxObjective:
        """Return the objective of some records, their weights multiplied by a factor."""
        return replace(
            self,
            rows=self.rows.subset(index),
            targets=self.targets[index],
            weights=self.weights[index] * factor,
        )

    def _matrix(self, w: FloatArray) -> FloatArray:
        """Return the coefficients as one column per class."""
        return np.asarray(w).reshape(self.n_classes, -1).T

    def _evaluated(self, w: FloatArray, *, valued: bool) -> tuple[float, FloatArray]:
        """Return the gradient, and ``J(w)`` if asked, in one pass."""
        total = 0.0

        def errors(logits: FloatArray, lo: int, hi: int) -> FloatArray:
            nonlocal total
            own = np.arange(hi - lo), self.targets[lo:hi]
            self._centre(logits, lo, hi)
            if valued:
                losses = np.log(np.exp(logits).sum(axis=1)) - logits[own]
                total += float(self.weights[lo:hi] @ losses)
            _normalise(logits)
            logits[own] -= 1.0
            logits *= self.weights[lo:hi, None]
            return logits

        with np.errstate(all="ignore"):
            gradient = self.rows.fused_adjoint(self._matrix(w), errors)
            return finish(total, gradient.T.ravel(), w, self.ridge, self.linear)

    def _centre(self, logits: FloatArray, lo: int, hi: int) -> None:
        """Lower the scores of the records' own classes, then bring the largest ones to zero."""
        if self.shift:
            logits[np.arange(hi - lo), self.targets[lo:hi]] -= self.shift
        logits -= logits.max(axis=1, keepdims=True)

    def _probabilities(self, w: FloatArray) -> FloatArray:
        """Return the softmax of the shifted scores of all records."""
        logits = self.rows.margins(self._matrix(w))
        self._centre(logits, 0, len(logits))
        _normalise(logits)
        return logits


def _normalise(logits: FloatArray) -> None:
    """Overwrite centred scores by their softmax."""
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=1, keepdims=True)
