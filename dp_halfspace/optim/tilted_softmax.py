"""The tilted objective of multinomial logistic regression, on the scale of the sum."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.optim._terms import finish, spread
from dp_halfspace.optim._tilt import tilted_mean, tilted_weights
from dp_halfspace.optim.softmax import SoftmaxObjective

__all__ = ["TiltedSoftmaxObjective"]

FloatArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TiltedSoftmaxObjective:
    """``n / T log(mean(exp(T c_i CE_i)))`` with the ridge and the linear term of a softmax.

    Parameters
    ----------
    plain : SoftmaxObjective
        Rows, classes, weights, ridge, linear term and shift.
    tilt : float
        The ``T``, positive.
    mass : float or None, default=None
        What multiplies the tilted mean; None for the number of records.

    Raises
    ------
    ValueError
        If the tilt is not positive.

    References
    ----------
    ``docs/proofs/robust.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.optim.objectives import SoftmaxObjective
    >>> from dp_halfspace.optim.rows import Rows
    >>> from dp_halfspace.optim.tilted_softmax import TiltedSoftmaxObjective
    >>> rows, y = Rows(np.array([[1.0], [1.0]])), np.array([0, 1])
    >>> J = TiltedSoftmaxObjective(SoftmaxObjective(rows, y, 2, np.ones(2), ridge=1.0), tilt=5.0)
    >>> J.gradient(np.zeros(2))
    array([0., 0.])
    """

    plain: SoftmaxObjective
    tilt: float
    mass: float | None = None

    def __post_init__(self) -> None:
        if not 0.0 < self.tilt < math.inf:
            raise ValueError("tilt must be positive and finite")

    @property
    def n_records(self) -> int:
        """Number of records."""
        return self.plain.n_records

    @property
    def size(self) -> int:
        """Number of coefficients, ``K D``."""
        return self.plain.size

    @property
    def ridge(self) -> float:
        """Modulus of strong convexity."""
        return self.plain.ridge

    @property
    def gradient_lipschitz(self) -> float:
        """``n max(c) r^2 (1 / 2 + 2 T max(c)) + ridge``."""
        largest = float(self.plain.weights.max(initial=0.0))
        bend = largest * (0.5 + 2.0 * self.tilt * largest) * self.plain.rows.row_bound**2
        return self._mass * bend + self.ridge

    @property
    def initial_gap(self) -> float:
        """That of equal weights, all as large as the largest; see `SoftmaxObjective`."""
        largest = np.full_like(self.plain.weights, self.plain.weights.max(initial=0.0))
        scale = max(1.0, self._mass / self.n_records)
        return scale * replace(self.plain, weights=largest).initial_gap

    def value_and_gradient(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return ``J(w)`` and its gradient; see `Objective`."""
        with np.errstate(all="ignore"):
            losses, errors = self._records(w)
            value = self._mass * tilted_mean(losses, self.tilt)
            gradient = self._mean_gradient(losses, errors)
            return finish(value, gradient, w, self.ridge, self.plain.linear)

    def gradient(self, w: FloatArray) -> FloatArray:
        """Return the gradient; see `Objective`."""
        with np.errstate(all="ignore"):
            gradient = self._mean_gradient(*self._records(w))
            return finish(0.0, gradient, w, self.ridge, self.plain.linear)[1]

    def hessian(self, w: FloatArray) -> FloatArray:
        """Return a Hessian; see `Objective`."""
        K, D = self.plain.n_classes, self.plain.rows.shape[1]
        out = np.zeros((K, D, K, D))
        with np.errstate(all="ignore"):
            losses, errors = self._records(w)
            p, shares = self._probabilities(errors), self._shares(losses)
            scale = shares * self.plain.weights
            for k in range(K):
                for j in range(k + 1):
                    bends = shares * self.tilt * errors[:, k] * errors[:, j]
                    bends += scale * p[:, k] * ((j == k) - p[:, j])
                    out[k, :, j, :] = self._gram(bends)
                    out[j, :, k, :] = out[k, :, j, :].T
            mean = self._mean_gradient(losses, errors)
            hessian = out.reshape(self.size, self.size)
            hessian -= (self.tilt / self._mass) * np.multiply.outer(mean, mean)
        hessian.flat[:: self.size + 1] += self.ridge
        return hessian

    def hessian_product(self, w: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return the product with a Hessian; see `Objective`."""
        with np.errstate(all="ignore"):
            losses, errors = self._records(w)
            p, shares = self._probabilities(errors), self._shares(losses)
            mean = self._mean_gradient(losses, errors)
            scale = (shares * self.plain.weights)[:, None] * p
            steep = (self.tilt * shares)[:, None] * errors

        def product(v: FloatArray) -> FloatArray:
            def apply(images: FloatArray, lo: int, hi: int) -> FloatArray:
                along = np.einsum("ik,ik->i", errors[lo:hi], images)[:, None]
                images -= np.einsum("ik,ik->i", p[lo:hi], images)[:, None]
                images *= scale[lo:hi]
                images += steep[lo:hi] * along
                return images

            with np.errstate(all="ignore"):
                data = self.plain.rows.fused_adjoint(self._matrix(v), apply)
                out = data.T.ravel() + self.ridge * v
                out -= (self.tilt / self._mass) * float(mean @ v) * mean
                return np.asarray(out)

        return product

    def subsample(self, n_rows: int) -> TiltedSoftmaxObjective | None:
        """Return the objective of evenly spaced runs of rows; see `Objective`."""
        index = spread(self.n_records, n_rows)
        if index is None:
            return None
        part = replace(
            self.plain,
            rows=self.plain.rows.subset(index),
            targets=self.plain.targets[index],
            weights=self.plain.weights[index],
        )
        return replace(self, plain=part, mass=self._mass)

    @property
    def _mass(self) -> float:
        """What multiplies the tilted mean."""
        return float(self.n_records) if self.mass is None else self.mass

    def _matrix(self, w: FloatArray) -> FloatArray:
        """Return the coefficients as one column per class."""
        return np.asarray(w).reshape(self.plain.n_classes, -1).T

    def _records(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the weighted cross-entropies, and ``c_i (p_i - e_target)``."""
        own = np.arange(self.n_records), self.plain.targets
        logits = self.plain.rows.margins(self._matrix(w))
        if self.plain.shift:
            logits[own] -= self.plain.shift
        logits -= logits.max(axis=1, keepdims=True)
        chosen = logits[own]
        np.exp(logits, out=logits)
        sums = logits.sum(axis=1)
        losses = self.plain.weights * (np.log(sums) - chosen)
        logits /= sums[:, None]
        logits[own] -= 1.0
        logits *= self.plain.weights[:, None]
        return losses, logits

    def _probabilities(self, errors: FloatArray) -> FloatArray:
        """Return the softmax from its weighted errors; 0 for records of weight 0."""
        weights = self.plain.weights
        p = errors / np.where(weights > 0.0, weights, 1.0)[:, None]
        p[np.arange(self.n_records), self.plain.targets] += weights > 0.0
        return np.asarray(p)

    def _shares(self, losses: FloatArray) -> FloatArray:
        """Return the weights of the records in the sum, which add up to `mass`."""
        return self._mass * tilted_weights(losses, self.tilt)

    def _mean_gradient(self, losses: FloatArray, errors: FloatArray) -> FloatArray:
        """Return the gradient without ridge and linear term."""
        return np.asarray(self.plain.rows.adjoint(errors * self._shares(losses)[:, None]).T.ravel())

    def _gram(self, bends: FloatArray) -> FloatArray:
        """Return the weighted moment matrix for weights of both signs."""
        gram = self.plain.rows.gram
        return gram(np.maximum(bends, 0.0)) - gram(np.maximum(-bends, 0.0))
