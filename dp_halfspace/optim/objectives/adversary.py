"""A bounded change of the features by an adversary, and what it does to a margin.

The worst change of norm at most ``radius`` lowers every margin by ``radius`` times the dual norm of
the coefficients, which is used in a smoothed form: ``docs/proofs/robust.md``, section 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dp_halfspace._rounding import UP
from dp_halfspace.rows.blocks import FloatArray

# Below, squares of the smoothing would underflow.
_SMALLEST = 1e-100


@dataclass(frozen=True, slots=True)
class Adversary:
    """The adversary of robust training: it may move the features of every record a little.

    Parameters
    ----------
    radius : float
        Largest norm of a change of one record's features, in the units of the features that
        the model is fitted to; positive.
    norm : {2, "inf"}
        Norm of the change. Its dual, which acts on the coefficients, is the Euclidean norm or
        the sum of absolute values.
    n_features : int
        So many columns, the first ones, can be moved; a constant column cannot.
    smoothing : float, default=1e-3
        Width of the parabola that replaces the kink of the dual norm, in the units of the
        coefficients; positive.

    Notes
    -----
    The smoothed dual norm is ``sqrt(||w||^2 + smoothing^2) - smoothing``, for ``norm="inf"``
    the sum of this over the coordinates: convex, 0 at 0 and never above the norm. After Lowy and
    Razaviyayn (2021), section 5.2.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.optim import Adversary
    >>> adversary = Adversary(0.1, "inf", n_features=2, smoothing=1e-9)
    >>> round(adversary.dual_norm(np.array([3.0, -4.0, 100.0])), 6)
    7.0
    >>> adversary.gradient(np.array([3.0, -4.0, 100.0]))
    array([ 1., -1.,  0.])
    """

    radius: float
    norm: Literal[2, "inf"]
    n_features: int
    smoothing: float = 1e-3

    def __post_init__(self) -> None:
        if not 0.0 < self.radius < math.inf:
            raise ValueError("radius must be positive and finite")
        if self.norm not in (2, "inf"):
            raise ValueError("norm must be 2 or 'inf'")
        if self.n_features < 1:
            raise ValueError("n_features must be at least 1")
        if not _SMALLEST <= self.smoothing < math.inf:
            raise ValueError(f"smoothing must be at least {_SMALLEST} and finite")

    @property
    def k(self) -> float:
        """Largest Euclidean norm of a gradient of the dual norm, rounded up."""
        return 1.0 if self.norm == 2 else math.sqrt(self.n_features) * UP

    @property
    def reach(self) -> float:
        """``radius * k``: by how much a margin falls, per unit of the coefficients."""
        return self.radius * self.k * UP

    @property
    def slack(self) -> float:
        """By how much the smoothing can raise a margin: ``radius * smoothing`` per kink."""
        kinks = 1 if self.norm == 2 else self.n_features
        return self.radius * self.smoothing * kinks * UP

    @property
    def curvature(self) -> float:
        """Bound on the eigenvalues of a Hessian of ``radius`` times the dual norm."""
        return self.radius / self.smoothing

    def of_noise(self, variance: float) -> float:
        """Bound `radius` times the mean dual norm of noise of a variance on each coefficient."""
        if self.norm == 2:
            return self.radius * math.sqrt(self.n_features * variance)
        return self.radius * self.n_features * math.sqrt(2.0 * variance / math.pi)

    def dual_norm(self, w: FloatArray) -> float:
        """Return the smoothed dual norm of the coefficients."""
        size, root = self._root(w)
        # Without the difference of two nearly equal numbers.
        return float(np.sum(size * (size / (root + self.smoothing))))

    def gradient(self, w: FloatArray) -> FloatArray:
        """Return the gradient of the smoothed dual norm."""
        out = np.zeros_like(w)
        out[: self.n_features] = w[: self.n_features] / self._root(w)[1]
        return out

    def hessian_product(self, w: FloatArray, v: FloatArray) -> FloatArray:
        """Return the product of the Hessian of the smoothed dual norm with columns."""
        d = self.n_features
        out = np.zeros_like(v)
        _, root = self._root(w)
        part, top = w[:d], v[:d]
        if self.norm == 2:
            u = part / root
            out[:d] = (top - np.multiply.outer(u, u @ top)) / root
        else:
            curvature = (self.smoothing / root) ** 2 / root
            out[:d] = (top.T * curvature).T
        return out

    def _root(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the sizes that the norm adds up, and each with the smoothing in quadrature."""
        part = w[: self.n_features]
        size = np.abs(part) if self.norm == "inf" else np.array([np.linalg.norm(part)])
        return size, np.hypot(size, self.smoothing)
