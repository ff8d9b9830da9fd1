"""Objectives: regularised sums of margin losses or cross-entropies, over one table or over chunks.

Objectives are on the scale of the sum over records: a sum of losses, a ridge term
``ridge / 2 ||w||^2`` and a linear term ``<linear, w>``. A gradient reads the data once, or twice
with a tilt. No pass warns, whatever the data and the point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from operator import methodcaller
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from dp_halfspace._memory import AT_ONCE
from dp_halfspace._params import checked_size, require
from dp_halfspace._rounding import FAR_UP, TINY, UP
from dp_halfspace.data.chunks import Chunks
from dp_halfspace.optim.losses import Loss
from dp_halfspace.rows.blocks import FloatArray
from dp_halfspace.rows.chunked_rows import ChunkedRows
from dp_halfspace.rows.mapped_rows import Design
from dp_halfspace.rows.rows import Rows

# Largest number of coefficients for which a dense Hessian is formed.
MAX_DENSE = 512
# Number of consecutive rows in each run of a subsample.
_RUN_ROWS = 64


class Objective(Protocol):
    """A smooth, strongly convex function for the solvers, a sum over rows.

    No member may warn or raise because of the data; a value beyond the largest double is
    infinite or not a number.
    """

    __slots__ = ()
    rows: Any
    # Modulus of strong convexity, positive.
    ridge: float

    @property
    def size(self) -> int:
        """Number of coefficients."""
        return int(self.rows.shape[1])

    @property
    def n_records(self) -> int:
        """Number of records in the sum."""
        return int(self.rows.shape[0])

    @property
    def initial_gap(self) -> float:
        """Bound on ``J(0)`` minus the minimum."""

    @property
    def gradient_lipschitz(self) -> float:
        """Bound on the largest eigenvalue of every Hessian."""

    def value_and_gradient(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return ``J(w)`` and its gradient."""

    def gradient(self, w: FloatArray) -> FloatArray:
        """Return the gradient."""

    def hessian(self, w: FloatArray) -> FloatArray:
        """Return a (generalised) Hessian; called only if `size` is at most `MAX_DENSE`."""

    def hessian_product(self, w: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return the product of a (generalised) Hessian at `w` with a vector, as a function."""

    def subsample(self, n_rows: int) -> Objective | None:
        """Return an objective that approximates this one by about `n_rows` records.

        Their weights are scaled up. Return None if it would not be much cheaper.
        """
        return None


def finish(
    total: float, gradient: FloatArray, w: FloatArray, ridge: float, linear: FloatArray | None
) -> tuple[float, FloatArray]:
    """Add the ridge and the linear term to value and gradient."""
    gradient = gradient + ridge * w
    value = total + 0.5 * ridge * float(w @ w)
    if linear is not None:
        gradient += linear
        value += float(linear @ w)
    return value, gradient


def depth(linear: FloatArray | None, ridge: float) -> float:
    """Return minus the minimum of ridge and linear term, the only terms that may be negative."""
    return 0.0 if linear is None else float(linear @ linear) / (2.0 * ridge)


def spread(n: int, n_rows: int) -> NDArray[np.intp] | None:
    """Return the indices of about `n_rows` rows in evenly spaced runs.

    These are at most a quarter of all rows. Return None if that is less than half of `n_rows`.
    """
    runs = min(-(-n_rows // _RUN_ROWS), n // (4 * _RUN_ROWS))
    if 2 * runs * _RUN_ROWS < n_rows:
        return None
    starts = np.linspace(0, n - _RUN_ROWS, runs).astype(np.intp)
    return (starts[:, None] + np.arange(_RUN_ROWS)).ravel()


# Ridge of the objective of one chunk. It is positive, as objectives require, but has no effect:
# ridge and linear term are added once, to the sum over all chunks.
NO_RIDGE = float(np.finfo(np.float64).smallest_subnormal)


@dataclass(slots=True, eq=False)
class ChunkedObjective(Objective):
    """The sum of ``make(rows, classes)`` over chunks, with ridge and linear term.

    A subsample would have to read every chunk, so there is none. Rounding errors are within the
    bound for all rows at once: ``docs/proofs/certificate.md``, section 8.
    """

    make: Callable[..., Objective]
    rows: ChunkedRows
    classes: Chunks
    size: int = field()
    ridge: float
    linear: FloatArray | None
    initial_gap: float = field(init=False)
    gradient_lipschitz: float = field(init=False)

    def __post_init__(self) -> None:
        gap, lipschitz = self._total(_bounds).tolist()
        self.initial_gap = gap + depth(self.linear, self.ridge)
        self.gradient_lipschitz = lipschitz + self.ridge

    def value_and_gradient(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return ``J(w)`` and its gradient; see `Objective`."""
        found = self._total(partial(_value_and_gradient, w))
        return finish(float(found[0]), found[1:], w, self.ridge, self.linear)

    def gradient(self, w: FloatArray) -> FloatArray:
        """Return the gradient; see `Objective`."""
        return finish(0.0, self._total(methodcaller("gradient", w)), w, self.ridge, self.linear)[1]

    def hessian(self, w: FloatArray) -> FloatArray:
        """Return a (generalised) Hessian; see `Objective`."""
        hessian = self._total(methodcaller("hessian", w))
        hessian.flat[:: self.size + 1] += self.ridge
        return hessian

    def hessian_product(self, w: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return the product with a (generalised) Hessian, which reads all chunks every time."""
        return lambda v: self._total(partial(_product, w, v)) + self.ridge * v

    def _total(self, ask: Callable[[Objective], FloatArray]) -> FloatArray:
        """Return the sum over chunks of a function of their objectives."""
        return self.rows.total(_ask_chunk, self.classes, self.make, ask)


def _ask_chunk(rows: Rows, classes: Any, make: Any, ask: Any) -> Any:
    return ask(make(rows, classes))


def _bounds(part: Objective) -> FloatArray:
    return np.array([part.initial_gap, part.gradient_lipschitz])


def _value_and_gradient(w: FloatArray, part: Objective) -> FloatArray:
    return np.append(*part.value_and_gradient(w))


def _product(w: FloatArray, v: FloatArray, part: Objective) -> FloatArray:
    return part.hessian_product(w)(v)


# Smallest smoothing: squares of smaller numbers would underflow.
SMALLEST_SMOOTHING = math.sqrt(TINY)


@dataclass(frozen=True, slots=True)
class Adversary:
    """The adversary of robust training, which may change the features of every record slightly.

    Parameters
    ----------
    radius : float
        Largest norm of a change of one record's features, in the units of the features that
        the model is fitted to; positive.
    norm : {2, "inf"}
        Norm of the change. Its dual, which acts on the coefficients, is the Euclidean norm or
        the sum of absolute values.
    n_features : int
        Number of columns, the first ones, that can be changed; a constant column cannot.
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
    >>> from dp_halfspace.optim.objectives import Adversary
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
        require("positive and finite", radius=self.radius)
        if self.norm not in (2, "inf"):
            raise ValueError("norm must be 2 or 'inf'")
        checked_size("n_features", self.n_features)
        if not SMALLEST_SMOOTHING <= self.smoothing < math.inf:
            raise ValueError(f"smoothing must be at least {SMALLEST_SMOOTHING} and finite")

    @property
    def k(self) -> float:
        """Largest Euclidean norm of a gradient of the dual norm, rounded up."""
        return 1.0 if self.norm == 2 else math.sqrt(self.n_features) * UP

    @property
    def added_row_norm(self) -> float:
        """``radius * k``: decrease of a margin, per unit of the coefficients."""
        return self.radius * self.k * UP

    @property
    def slack(self) -> float:
        """Largest increase of a margin by the smoothing: ``radius * smoothing`` per kink."""
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
        # This equals sqrt(size^2 + smoothing^2) - smoothing without cancellation.
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
        """Return the terms that the norm adds, and ``sqrt(term^2 + smoothing^2)`` for each."""
        part = w[: self.n_features]
        size = np.abs(part) if self.norm == "inf" else np.array([np.linalg.norm(part)])
        return size, np.hypot(size, self.smoothing)


class _Attack(NamedTuple):
    """The adversary at a point: the gradient of its effect on a margin, and the sum of slopes."""

    adversary: Adversary
    slope: FloatArray
    slope_sum: float


@dataclass(frozen=True, slots=True)
class MarginObjective(Objective):
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
        Moves every row to lower its margin.
    radius : float, default=inf
        Norm up to which `gradient_lipschitz` has to hold. A tilted loss whose slope has no
        bound needs one.
    mass : float or None, default=None
        Factor of a tilted mean; None for the number of records.

    References
    ----------
    Li, Beirami, Sanjabi and Smith (2021), "Tilted empirical risk minimization". Lowy and
    Razaviyayn (2021), section 5. ``docs/proofs/robust.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.optim.losses import SQUARED
    >>> from dp_halfspace.optim.objectives import MarginObjective
    >>> from dp_halfspace.rows.rows import Rows
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

    @property
    def gradient_lipschitz(self) -> float:
        """``n max(c) (beta a^2 + T max(c) B^2 a^2 + B curvature) + ridge``.

        ``a`` is the norm of a row and what an adversary adds to it, ``B`` the largest slope at
        points of three times `radius`, where the iterates of an accelerated method stay.
        """
        length, curvature = self.rows.row_bound, 0.0
        if self.adversary is not None:
            length, curvature = length + self.adversary.added_row_norm, self.adversary.curvature
        slope = self.loss.lipschitz
        if math.isfinite(self.radius):
            slope = self.loss.slope_bound(3.0 * length * self.radius)
        largest = float(self.weights.max(initial=0.0))
        smoothness = self.loss.smoothness * length**2
        if self.tilt:
            smoothness += self.tilt * largest * (slope * length) ** 2
        if curvature:
            smoothness += slope * curvature
        return self._mass * largest * smoothness + self.ridge

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
                gradient, _ = self._loss_gradient(w, self._tilt_weights(losses))
            else:
                gradient, value = self._loss_gradient(w, self.weights, valued=True)
            return finish(value, gradient, w, self.ridge, self.linear)

    def gradient(self, w: FloatArray) -> FloatArray:
        """Return the gradient; see `Objective`."""
        with np.errstate(all="ignore"):
            gradient, _ = self._loss_gradient(w, self._shares(w))
            return finish(0.0, gradient, w, self.ridge, self.linear)[1]

    def hessian(self, w: FloatArray) -> FloatArray:
        """Return a (generalised) Hessian; see `Objective`."""
        with np.errstate(all="ignore"):
            curvatures, mean, attack = self._curvature(w)
            hessian = self.rows.gram(curvatures)
            if attack is not None:
                cross = np.multiply.outer(self.rows.adjoint(curvatures * self.signs), attack.slope)
                hessian -= cross + cross.T
                hessian += total(curvatures) * np.multiply.outer(attack.slope, attack.slope)
                hessian -= attack.slope_sum * attack.adversary.hessian_product(w, np.eye(self.size))
            if mean is not None:
                hessian -= (self.tilt / self._mass) * np.multiply.outer(mean, mean)
        hessian.flat[:: self.size + 1] += self.ridge
        return hessian

    def hessian_product(self, w: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return the product with a (generalised) Hessian; see `Objective`."""
        with np.errstate(all="ignore"):
            curvatures, mean, attack = self._curvature(w)

        def product(v: FloatArray) -> FloatArray:
            sums = 0.0

            def scale(images: FloatArray, lo: int, hi: int) -> FloatArray:
                nonlocal sums
                if attack is None:
                    images *= curvatures[lo:hi]
                    return images
                images -= self.signs[lo:hi] * float(attack.slope @ v)
                images *= curvatures[lo:hi]
                sums += float(images @ self.signs[lo:hi])
                return images

            with np.errstate(all="ignore"):
                out = self.rows.fused_adjoint(v, scale) + self.ridge * v
                if attack is not None:
                    moved = attack.slope_sum * attack.adversary.hessian_product(w, v)
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
            # A tilt acts on single losses, so their weights are kept, and the factor of the mean
            # stays that of all records.
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
        """Factor of the tilted mean, the number of records unless it is given."""
        return float(self.n_records) if self.mass is None else self.mass

    def _attack_size(self, w: FloatArray) -> float:
        """Return the amount by which the adversary lowers every margin."""
        return self.adversary.radius * self.adversary.dual_norm(w) if self.adversary else 0.0

    def _margins(self, w: FloatArray) -> FloatArray:
        """Return the margins under attack."""
        margins = self.rows.margins(w)
        margins *= self.signs
        margins -= self._attack_size(w)
        return margins

    def _losses(self, w: FloatArray) -> FloatArray:
        """Return the weighted losses."""
        return self.weights * self.loss.value(self._margins(w))

    def _tilt_weights(self, losses: FloatArray) -> FloatArray:
        """Return the class weights times the weights of the records in the tilted mean."""
        return self.weights * (self._mass * tilted_weights(losses, self.tilt))

    def _shares(self, w: FloatArray) -> FloatArray:
        """Return the weight of every loss at a point."""
        return self._tilt_weights(self._losses(w)) if self.tilt else self.weights

    def _loss_gradient(
        self, w: FloatArray, shares: FloatArray, *, valued: bool = False
    ) -> tuple[FloatArray, float]:
        """Return the gradient of the losses, and with `valued` their sum, in one pass."""
        lowered, value = self._attack_size(w), 0.0
        margin_slopes = np.empty(0) if self.adversary is None else np.empty(self.n_records)

        def slopes(margins: FloatArray, lo: int, hi: int) -> FloatArray:
            nonlocal value
            margins *= self.signs[lo:hi]
            if lowered:
                margins -= lowered
            if valued:
                value += float(shares[lo:hi] @ self.loss.value(margins))
            slopes = self.loss.derivative(margins)
            slopes *= shares[lo:hi]
            if margin_slopes.size:
                margin_slopes[lo:hi] = slopes
            slopes *= self.signs[lo:hi]
            return slopes

        gradient = self.rows.fused_adjoint(w, slopes)
        if self.adversary is not None:
            gradient -= self.adversary.radius * total(margin_slopes) * self.adversary.gradient(w)
        return gradient, value

    def _curvature(self, w: FloatArray) -> tuple[FloatArray, FloatArray | None, _Attack | None]:
        """Return the parts of a Hessian.

        These are the second derivatives with respect to the margins, without the term of the
        squared mean; the mean gradient of a tilted loss, from which that term follows; and the
        terms of the adversary.
        """
        margins, shares = self._margins(w), self._shares(w)
        curvatures, mean, attack = self.loss.second_derivative(margins), None, None
        slopes = self.loss.derivative(margins) if self.tilt or self.adversary else None
        if slopes is not None and self.adversary is not None:
            radius = self.adversary.radius
            slope, slope_sum = radius * self.adversary.gradient(w), radius * total(slopes * shares)
            attack = _Attack(self.adversary, slope, slope_sum)
        if slopes is not None and self.tilt:
            mean, _ = self._loss_gradient(w, shares)
            slopes *= slopes
            slopes *= self.tilt * self.weights
            curvatures += slopes
        curvatures *= shares
        return curvatures, mean, attack


def total(values: FloatArray) -> float:
    """Return the sum of numbers, added in runs of `AT_ONCE`, and then of the sums of the runs.

    The bound on rounding errors counts both, which are far fewer terms than those of one long sum.
    """
    return float(np.add.reduceat(values, np.arange(0, values.size, AT_ONCE)).sum())


def tilted_weights(values: FloatArray, tilt: float) -> FloatArray:
    """Return ``exp(tilt v_i)`` divided by the sum, for a positive tilt."""
    weights: FloatArray = values - values.max()
    weights *= tilt
    np.exp(weights, out=weights)
    weights /= total(weights)
    return weights


def tilted_mean(values: FloatArray, tilt: float) -> float:
    """Return ``log(mean(exp(tilt v_i))) / tilt``, for a positive tilt."""
    top = values.max()
    # log1p and expm1 keep the digits of a logarithm near 0, for a small tilt.
    return float(top + np.log1p(total(np.expm1(tilt * (values - top))) / values.size) / tilt)


@dataclass(frozen=True, slots=True)
class SoftmaxObjective(Objective):
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

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.optim.objectives import SoftmaxObjective
    >>> from dp_halfspace.rows.rows import Rows
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
        """``sum(c) log(K) + ||linear||^2 / (2 ridge)``."""
        total = float(self.weights.sum()) * math.log(self.n_classes)
        return total * FAR_UP + depth(self.linear, self.ridge)

    def value_and_gradient(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return ``J(w)`` and its gradient; see `Objective`."""
        return self._evaluate(w, valued=True)

    def gradient(self, w: FloatArray) -> FloatArray:
        """Return the gradient; see `Objective`."""
        return self._evaluate(w, valued=False)[1]

    def hessian(self, w: FloatArray) -> FloatArray:
        """Return a (generalised) Hessian; see `Objective`."""
        D = self.rows.shape[1]
        hessian = np.zeros((self.n_classes, D, self.n_classes, D))
        with np.errstate(all="ignore"):
            p = softmax(self.rows.margins(self._matrix(w)), axis=1)
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
            p = softmax(self.rows.margins(self._matrix(w)), axis=1)

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

    def _evaluate(self, w: FloatArray, *, valued: bool) -> tuple[float, FloatArray]:
        """Return the gradient, and with `valued` also ``J(w)``, in one pass."""
        total = 0.0

        def errors(logits: FloatArray, lo: int, hi: int) -> FloatArray:
            nonlocal total
            own = np.arange(hi - lo), self.targets[lo:hi]
            if valued:
                losses = logsumexp(logits, axis=1) - logits[own]
                total += float(self.weights[lo:hi] @ losses)
            slopes = softmax(logits, axis=1)
            slopes[own] -= 1.0
            slopes *= self.weights[lo:hi, None]
            return np.asarray(slopes)

        with np.errstate(all="ignore"):
            gradient = self.rows.fused_adjoint(self._matrix(w), errors)
            return finish(total, gradient.T.ravel(), w, self.ridge, self.linear)
