"""The risk of multinomial logistic regression, for three classes or more.

Everything here is a function of public numbers. Proofs: ``docs/proofs/stability.md``, section 4,
``certificate.md`` and ``objective_perturbation.md``; every bound is rounded up.

All gradients of records at coefficients ``W`` lie in a ball round ``beta W``, for every number
``beta``. Its radius is a maximum over two numbers, bounded from above on cells that are refined
where it matters (``stability.md``, Theorem 5).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit, lambertw, wrightomega

from dp_halfspace._rounding import FAR_UP, UP
from dp_halfspace.optim.objectives.softmax import SoftmaxObjective
from dp_halfspace.optim.risks.risk import RIDGE_FLOOR, Labelled, Risk, SlopeBounds, Vertices
from dp_halfspace.rows.blocks import FloatArray

__all__ = ["SoftmaxRisk", "softmax_diameter"]

# Of a record's vector of slopes p - e_y: its norm, and its Lipschitz constant in the scores.
_SLOPE, _SMOOTHNESS = math.sqrt(2.0), 0.5
# The maximum is bounded up to this much; the squares of the radii are between 1/2 and 2.
_SLACK = 2e-4
_ROUNDS = 40


@dataclass(frozen=True, slots=True)
class SoftmaxRisk(Risk):
    """Regularised mean cross-entropy of the softmax of the scores, per mean loss.

    Attributes
    ----------
    n_samples, n_columns, n_classes : int
        Sizes; the constant column counts.
    row_norm : float
        Bound on the Euclidean norm of a row, constant column included.
    block_rows : int
        Rows that are summed at a time, see :func:`~dp_halfspace.optim.block_size`.
    shift : float
        Subtracted from the score of a record's own class, from 0 to 100.
    max_weight : float
        Largest public class weight.
    """

    n_samples: int
    n_columns: int
    n_classes: int
    row_norm: float
    block_rows: int
    shift: float = 0.0
    max_weight: float = 1.0

    robust: ClassVar[bool] = False
    perturbable: ClassVar[bool] = True

    @property
    def n_blocks(self) -> int:
        """One vector of coefficients for each class."""
        return self.n_classes

    @property
    def loss_of_zeros(self) -> float:
        """Largest mean loss of coefficients that are all zero."""
        return self.max_weight * math.log1p((self.n_classes - 1) * math.exp(self.shift))

    @property
    def gradient_change(self) -> float:
        """``sqrt(2) c 2 r``; ``objective_perturbation.md``, Lemma 2."""
        return _SLOPE * self.max_weight * 2.0 * self.row_norm * UP

    @property
    def block_change(self) -> float:
        """The changes of the K blocks add up to more than their Euclidean norm (Lemma 2)."""
        return self.gradient_change * (math.sqrt(2.0) * UP)

    @property
    def vertices(self) -> Vertices:
        """Vertices of the set of gradient changes; ``objective_perturbation.md``, Lemma 4."""
        others = self.n_classes - 1
        return (
            (1, 0.0),
            (2 * others, 0.5),
            (others * (others - 1), math.sqrt(0.75) * UP),
            (others, 1.0),
        )

    @property
    def curvature(self) -> float:
        """Largest mean curvature of one record over the directions where it has any."""
        return self.max_weight * self.row_norm**2 / self.n_classes

    @property
    def rank(self) -> int:
        """Number of these directions."""
        return self.n_classes - 1

    @property
    def least_ridge(self) -> float:
        """``1e-8 c r^2``: below it no certificate can be had."""
        return RIDGE_FLOOR * self.max_weight * self.row_norm**2

    def radius(self, ridge: float) -> float:
        """Frobenius norm of the minimiser; ``stability.md``, section 4."""
        peak = float(lambertw((self.n_classes - 1) * math.exp(self.shift - 1.0)).real)
        return math.sqrt(self.max_weight * peak / ridge) * FAR_UP

    def sensitivity(self, ridge: float) -> float:
        """Frobenius distance of neighbouring minimisers; ``stability.md``, Theorem 5."""
        reach = self.row_norm * self.radius(ridge)
        slope = softmax_diameter(self.n_classes, reach, shift=self.shift)
        width = 2.0 * self.max_weight * self.row_norm * slope
        return width / (ridge * self.n_samples) * FAR_UP

    def slope_bounds(self, radius: float) -> SlopeBounds:
        """``certificate.md``, section 3."""
        # The subtraction of the shift is rounded once.
        shifting = 0.5 * (self.row_norm * radius + self.shift) if self.shift else 0.0
        return SlopeBounds(
            self.max_weight * _SLOPE,
            self.max_weight * _SMOOTHNESS,
            self.max_weight * (2.0 * self.n_classes + 24.0 + shifting),
        )

    def noise_cost(self, variance: float) -> float:
        """Bound the mean loss that noise of this variance adds; ``excess_risk.md``."""
        return (1 - 1 / self.n_classes) * self.max_weight * self.row_norm**2 * variance / 2

    def objective(
        self, data: Labelled, positive: int, ridge: float, linear: FloatArray | None, radius: float
    ) -> SoftmaxObjective:
        """Return the objective; no class is set apart, and no radius is needed."""
        del positive, radius
        rows, classes, weights = data
        total = self.total(ridge)
        return SoftmaxObjective(
            rows, classes, self.n_classes, weights[classes], total, linear, self.shift
        )


def softmax_diameter(n_classes: int, reach: float, *, shift: float = 0.0) -> float:
    """Half the diameter of the gradients of the multinomial logistic loss.

    Parameters
    ----------
    n_classes : int
        At least 2.
    reach : float
        Frobenius norm of the coefficients times the norm of a row.
    shift : float, default=0.0
        Subtracted from the score of a record's own class, at most 100.

    Returns
    -------
    float
        In units of the norm of a row, at most ``sqrt(2)``. An upper bound for coefficients of
        this or a smaller norm.

    References
    ----------
    ``docs/proofs/stability.md``, Theorem 5.

    Examples
    --------
    >>> from dp_halfspace.optim import softmax_diameter
    >>> round(softmax_diameter(3, 0.0), 4), round(softmax_diameter(3, 5.0), 2)
    (0.8165, 1.22)
    """
    if reach <= 0.0:
        return _largest_gradient(n_classes, 0.0, shift) * FAR_UP
    return _diameter(n_classes, reach, shift)


@lru_cache(maxsize=4096)  # Fits with the same public numbers share the work.
def _diameter(n_classes: int, reach: float, shift: float) -> float:
    """Bound half the diameter: the smaller of two balls, round zero and round `beta` ``W``."""
    squares, pulls = _candidates(n_classes, shift)

    def square(beta: float) -> float:
        return float(np.max(squares + 2.0 * beta * pulls)) + (beta * reach) ** 2

    # Every beta gives a bound; this one is nearly the best.
    bounds = 1e-2 / (1.0 + reach), 2.0 / (1.0 + reach)
    beta = float(minimize_scalar(square, bounds=bounds, method="bounded").x)
    ball = math.sqrt(_ceiling(beta, n_classes, shift) + (beta * reach) ** 2)
    return min(_largest_gradient(n_classes, reach, shift), ball) * FAR_UP


def _largest_gradient(n_classes: int, reach: float, shift: float) -> float:
    """Bound the norm of the gradient of a row of norm one: the ball round zero."""
    others = n_classes - 1
    rise = math.sqrt(n_classes / others) * reach if reach <= 2.0 else math.sqrt(2.0) * reach
    slope = 1.0 / (1.0 + math.exp(-rise - shift) / others)
    # Sum of squares of the shares of the other classes: ratios are at most exp(sqrt(2) reach).
    alone = 1.0 / (1.0 + (others - 1) * math.exp(-math.sqrt(2.0) * reach))
    even = math.cosh(min(reach / math.sqrt(2.0), 300.0)) ** 2 / others
    return slope * math.sqrt(1.0 + min(alone, even))


def _shares(n_classes: int, ratio: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return sum of squares and entropy of one share and equal others, by log of their ratio."""
    others = n_classes - 2
    share = 1.0 / (1.0 + others * np.exp(-ratio))
    squares = share**2 * (1.0 + others * np.exp(-2.0 * ratio))
    finite = np.where(np.isinf(ratio), 0.0, ratio)
    return squares, (1.0 - share) * finite - np.log(share)


@lru_cache(maxsize=64)
def _candidates(n_classes: int, shift: float) -> tuple[FloatArray, FloatArray]:
    """Return squared norms of gradients, and minus their products with the scores, on a grid."""
    top = 12.0 + math.log(n_classes)
    logit = shift + np.linspace(-6.0, top, 91)[:, None]
    squares, entropy = _shares(n_classes, np.linspace(0.0, top, 61)[None, :])
    pi = expit(logit)
    return pi**2 * (1.0 + squares), pi * (shift - logit + entropy)


def _ceiling(beta: float, n_classes: int, shift: float) -> float:
    """Bound ``|g|^2 - 2 beta <g, z>`` over all scores ``z``; ``g`` is softmax minus one-hot."""
    top = 12.0 + math.log(n_classes)
    logit = np.concatenate([[-np.inf], shift + np.linspace(-6.0, top, 25), [np.inf]])
    ratio = np.append(np.linspace(0.0, top, 17), np.inf)
    low, near = (grid.ravel() for grid in np.meshgrid(logit[:-1], ratio[:-1]))
    high, far = (grid.ravel() for grid in np.meshgrid(logit[1:], ratio[1:]))
    cells, best, upper = _Cells(low, high, near, far), -math.inf, math.inf
    for _ in range(_ROUNDS):
        bounds, along = _bounds(beta, n_classes, shift, cells)
        best = max(best, float(np.max(_values(beta, n_classes, shift, *cells.middle()))))
        keep = bounds > best + _SLACK
        if not keep.any():
            # Every cell that was dropped, now or before, is below this.
            return best + _SLACK
        upper = float(bounds.max())
        cells = _Cells(*(edge[keep] for edge in cells)).split(along[keep])
    return upper


class _Cells(NamedTuple):
    """Ranges of the logit of ``pi``, and of the logarithm of the ratio of the shares."""

    low: FloatArray
    high: FloatArray
    near: FloatArray
    far: FloatArray

    def middle(self) -> tuple[FloatArray, FloatArray]:
        """Return a point inside of each cell."""
        with np.errstate(invalid="ignore"):
            logit = np.where(np.isinf(self.low), self.high - 4.0, (self.low + self.high) / 2.0)
            logit = np.where(np.isinf(self.high), self.low + 4.0, logit)
            ratio = np.where(np.isinf(self.far), self.near + 4.0, (self.near + self.far) / 2.0)
        return logit, ratio

    def split(self, along: NDArray[np.bool_]) -> _Cells:
        """Cut each cell in two, where `along` across the ratios, else across the logits."""
        logit, ratio = self.middle()
        return _Cells(
            np.concatenate([self.low, np.where(along, self.low, logit)]),
            np.concatenate([np.where(along, self.high, logit), self.high]),
            np.concatenate([self.near, np.where(along, ratio, self.near)]),
            np.concatenate([np.where(along, ratio, self.far), self.far]),
        )


def _values(
    beta: float, n_classes: int, shift: float, logit: FloatArray, ratio: FloatArray
) -> FloatArray:
    """Return what is maximised, at points."""
    squares, entropy = _shares(n_classes, ratio)
    pi = expit(logit)
    return np.asarray(pi**2 * (1.0 + squares) + 2.0 * beta * pi * (shift + entropy - logit))


def _bounds(
    beta: float, n_classes: int, shift: float, cells: _Cells
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Bound what is maximised, in cells; and say where the range of the ratio is what costs."""
    # Squares grow with the ratio and entropies fall; pi (b - logit pi) rises up to its peak.
    squares, entropy = _shares(n_classes, cells.near)
    pulled = shift + entropy
    peak = pulled - 1.0 - np.real(wrightomega(pulled - 1.0))
    at = np.clip(peak, cells.low, cells.high)
    top, most = expit(cells.high), 1.0 + _shares(n_classes, cells.far)[0]
    monotone = top**2 * most + 2.0 * beta * expit(at) * (pulled - at)
    # From the corner of both lower ends the value rises at most as fast as its slopes allow.
    others = n_classes - 2
    share = 1.0 / (1.0 + others * np.exp(-cells.near))
    gap = (1.0 - np.exp(-cells.far)) / (1.0 + others * np.exp(-cells.far))
    steep = np.where(share < 0.5, 0.25, share * (1.0 - share))
    along = 2.0 * top * steep * np.maximum(top * gap - beta * cells.near, 0.0)
    across = 0.5 * (top * (1.0 + squares) + beta * (pulled - cells.low - 1.0 - np.exp(cells.low)))
    with np.errstate(invalid="ignore"):
        along = np.where(along > 0.0, along * (cells.far - cells.near), 0.0)
        across = np.where(across > 0.0, across * (cells.high - cells.low), 0.0)
        corner = _values(beta, n_classes, shift, cells.low, cells.near)
    return np.fmin(monotone, corner + along + across), along > across
