"""Sums over all pairs of a positive and a negative record, and the influence of one record.

``J(w) = (1 / Z) sum_ij l(<x_i - x_j, w>) + ridge / 2 ||w||^2 + <linear, w>`` is a surrogate of one
minus the area under the ROC curve. The number of pairs is private, `Z` is public. A gradient reads
the data twice; in between it takes linear time, or sorts. No pass warns.

The logistic loss is a smooth function of both scores. If a cell, two units wide, holds many scores,
weights at the Chebyshev points of the cell replace them. The weighted sum is computed at the
Chebyshev points of the cells of the other class, and interpolated from there. Beyond 40 units the
loss is a straight line. The error for each pair is below 1e-15 before rounding
(``docs/proofs/pairwise.md``, section 2).

The squared loss is a function of the means and the squares of the scores of both classes
(``pairwise.md``, section 3). `PairRisk` has the bounds of sections 4 to 7 there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from numpy.typing import NDArray
from scipy.optimize import brentq

from dp_halfspace._memory import NUMBER_BYTES, rows_of_block
from dp_halfspace._params import require
from dp_halfspace._rounding import EPS, FAR_UP, UP
from dp_halfspace.optim.losses import Loss, softplus, softplus_curvature, softplus_slope
from dp_halfspace.optim.objectives import Objective, depth, finish
from dp_halfspace.optim.risks import Risk, SlopeBounds, Task, Vertices, minimiser_radius
from dp_halfspace.rows.blocks import FloatArray
from dp_halfspace.rows.mapped_rows import Design

# Number of Chebyshev points of a cell.
NODES = 22
# The same for second derivatives. They only guide the solver, so an error of 1e-8 is small enough.
CURVATURE_NODES = 12
# At this distance from the centre of a cell and beyond, the loss is a straight line up to an error
# of exp(-40) < 5e-18.
_CURVED_WITHIN = 41.0
# Largest absolute score: of larger ones rounding would leave no place within a cell.
_LARGEST_SCORE = 1e15
# The next three constants are computed by the tests. Lebesgue constant of `NODES` points: the
# largest sum of absolute Lagrange polynomials.
_LEBESGUE = 2.97
# Bound on the sum of the errors of computed Lagrange polynomials.
_BASIS_ERROR = 1e-13
# Bound on the sum of absolute Chebyshev coefficients of a slope within a cell.
_COEFFICIENTS = 2.35

# Product with the matrix of second derivatives l''(s_i - t_j) and with its transpose: maps
# columns for the positive and for the negative scores to sums for the positive and for the
# negative scores.
PairProduct: TypeAlias = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]

# Size of the blocks of numbers that are added one after the other. It is public, because it enters
# the bound on rounding errors (docs/proofs/pairwise.md, Theorems 3 and 4).
PAIR_BLOCK = 2048


class PairSums(NamedTuple):
    """Sum of ``l(s_i - t_j)`` over all pairs, and its derivatives with respect to the scores."""

    value: float
    positive: FloatArray
    negative: FloatArray


def block_sum(x: FloatArray) -> float:
    """Add numbers, block after block."""
    full = x.size - x.size % PAIR_BLOCK
    blocks = x[:full].reshape(-1, PAIR_BLOCK).sum(axis=1)
    return float(blocks.sum() + x[full:].sum())


def prefix_sums(x: FloatArray) -> FloatArray:
    """Return the sums of the first 0, 1, ... rows of an array, added block after block."""
    n = len(x)
    out = np.zeros((n + 1, *x.shape[1:]))
    before = np.zeros(x.shape[1:])
    for lo in range(0, n, PAIR_BLOCK):
        part = out[lo + 1 : lo + PAIR_BLOCK + 1]
        np.cumsum(x[lo : lo + PAIR_BLOCK], axis=0, out=part)
        last = part[-1].copy()
        part += before
        before = before + last
    return out


def chebyshev_points(p: int) -> FloatArray:
    """Return the zeros of the Chebyshev polynomial of degree `p`."""
    return np.cos(np.pi * (np.arange(p) + 0.5) / p)


def chebyshev_transform(p: int) -> FloatArray:
    """Return the matrix from values at `p` Chebyshev points to Chebyshev coefficients."""
    degrees = np.arange(p)
    share = np.full(p, 2.0 / p)
    share[0] = 1.0 / p
    return np.asarray(share[:, None] * np.cos(degrees[:, None] * np.arccos(chebyshev_points(p))))


def _are_small(positive: FloatArray, negative: FloatArray) -> bool:
    """Return whether all scores are finite and small enough for places within cells."""
    return bool(max(np.abs(positive).max(), np.abs(negative).max()) <= _LARGEST_SCORE)


@dataclass(frozen=True, slots=True)
class _Cells:
    """Scores in cells two units wide, the interval of the Chebyshev points.

    `order` arranges scores by cell; `places` are the arranged scores relative to the centres of
    their cells. Cell ``k`` holds the scores from ``starts[k]`` to ``starts[k + 1]``.
    """

    order: NDArray[np.intp]
    places: FloatArray
    starts: list[int]
    centres: FloatArray

    def each(self) -> Iterator[tuple[float, slice]]:
        """Yield the centre of each cell and the range of its scores."""
        for centre, (lo, hi) in zip(self.centres.tolist(), pairwise(self.starts), strict=True):
            yield centre, slice(lo, hi)


def _find_cells(scores: FloatArray) -> _Cells:
    """Arrange scores by cell, in the order of the cells."""
    cells = np.floor(scores / 2.0)
    lowest = cells.min()
    is_narrow = cells.max() - lowest < 2**15
    # numpy sorts integers of 16 bits in linear time.
    order = np.argsort((cells - lowest).astype(np.int16) if is_narrow else cells, kind="stable")
    centres = 2.0 * cells[order] + 1.0
    starts = np.flatnonzero(np.diff(centres, prepend=math.nan) != 0.0)
    return _Cells(order, scores[order] - centres, [*starts.tolist(), scores.size], centres[starts])


def _blocks(scores: slice) -> Iterator[slice]:
    """Divide a range of scores into blocks."""
    for start in range(scores.start, scores.stop, PAIR_BLOCK):
        yield slice(start, min(start + PAIR_BLOCK, scores.stop))


@dataclass(frozen=True, slots=True)
class _Sources:
    """Weighted points that replace the scores of one class: the scores, or the nodes of a cell."""

    centres: FloatArray
    places: FloatArray
    weights: FloatArray

    def near(self, centre: float) -> slice:
        """Return the range of the points for which the loss is curved, seen from a cell."""
        ends = np.searchsorted(self.centres, (centre - _CURVED_WITHIN, centre + _CURVED_WITHIN))
        return slice(*ends.tolist())


def _condense(cells: _Cells, n_nodes: int, columns: FloatArray) -> _Sources:
    """Replace the scores of cells that hold many by weights at the Chebyshev points of the cell.

    Polynomials of degree below `n_nodes` have the same sums, weighted by `columns`, over both.
    """
    points, transform = chebyshev_points(n_nodes), chebyshev_transform(n_nodes)
    centres, places, weights = [], [], []
    for centre, scores in cells.each():
        if scores.stop - scores.start <= n_nodes:
            places.append(cells.places[scores])
            weights.append(columns[cells.order[scores]])
        else:
            moments = np.zeros((n_nodes, columns.shape[1]))
            for block in _blocks(scores):
                values = chebvander(cells.places[block], n_nodes - 1)
                moments += values.T @ columns[cells.order[block]]
            places.append(points)
            weights.append(transform.T @ moments)
        centres.append(np.full(places[-1].size, centre))
    return _Sources(np.concatenate(centres), np.concatenate(places), np.concatenate(weights))


def _evaluate(
    cells: _Cells, n_nodes: int, function: Callable[[float, FloatArray], FloatArray]
) -> FloatArray:
    """Return the values of a smooth function at scores, by interpolation in cells with many.

    The function takes the centre of a cell and k places relative to it, and returns k rows.
    """
    points, transform = chebyshev_points(n_nodes), chebyshev_transform(n_nodes)
    out = []
    for centre, scores in cells.each():
        if scores.stop - scores.start <= n_nodes:
            out.append(function(centre, cells.places[scores]))
            continue
        coefficients = transform @ function(centre, points)
        for block in _blocks(scores):
            out.append(chebvander(cells.places[block], n_nodes - 1) @ coefficients)
    found = np.concatenate(out)
    found[cells.order] = found.copy()
    return found


def _sum_softplus(targets: _Cells, sources: _Cells, sign: float) -> FloatArray:
    """Return two columns: the sum of ``log(1 + exp(-x))`` and of its derivative, for each target.

    `x` is ``target - source``, or ``source - target`` if `sign` is -1.
    """
    seen = _condense(sources, NODES, np.ones((sources.order.size, 1)))
    scores = seen.centres + seen.places
    # Scores are measured from one of them, so that a common shift causes no cancellation.
    origin = float(scores[scores.size // 2])
    weights = seen.weights[:, 0]
    before = prefix_sums(np.column_stack([weights, weights * (scores - origin)]))

    def sums(centre: float, places: FloatArray) -> FloatArray:
        near = seen.near(centre)
        beyond, total = before[-1] - before[near.stop] if sign > 0.0 else before[near.start]
        values = sign * (total - beyond * ((centre - origin) + places))
        slopes = np.full(places.size, -beyond)
        for block in _blocks(near):
            x = sign * (places[:, None] - ((seen.centres[block] - centre) + seen.places[block]))
            values += softplus(x) @ weights[block]
            slopes += softplus_slope(x) @ weights[block]
        return np.column_stack([values, slopes])

    return _evaluate(targets, NODES, sums)


def logistic_pairs(positive: FloatArray, negative: FloatArray) -> PairSums:
    """Sum ``log(1 + exp(t_j - s_i))`` over all pairs, with derivatives.

    Either class may be empty. The result is not a number if a score is not finite, or beyond 10^15.
    Nothing warns.
    """
    if positive.size == 0 or negative.size == 0:
        return PairSums(0.0, np.zeros(positive.size), np.zeros(negative.size))
    with np.errstate(all="ignore"):
        if not _are_small(positive, negative):
            unknown = (np.full(scores.size, math.nan) for scores in (positive, negative))
            return PairSums(math.nan, *unknown)
        p_cells, q_cells = _find_cells(positive), _find_cells(negative)
        values, slopes = _sum_softplus(p_cells, q_cells, 1.0).T
        return PairSums(float(values.sum()), slopes, -_sum_softplus(q_cells, p_cells, -1.0)[:, 1])


def logistic_rounding(n_samples: int) -> float:
    """Bound the error of a derivative from `logistic_pairs`, for each pair.

    For `n_samples` scores, the derivative by a score is off by at most the number of scores of the
    other class times this (``docs/proofs/pairwise.md``, Theorem 3).
    """
    sums = (PAIR_BLOCK + -(-n_samples // PAIR_BLOCK) + 60) * 2.0**-53
    products = 2.0 * NODES**2 * 2.0**-53
    at_points = (_COEFFICIENTS + _LEBESGUE) * sums + products + _BASIS_ERROR
    return 1e-15 + 1.01 * (_LEBESGUE * at_points + 2.0 * products + _BASIS_ERROR)


def logistic_curvature(positive: FloatArray, negative: FloatArray) -> PairProduct:
    """Return products with the second derivatives of the logistic loss of all pairs."""
    is_empty = positive.size == 0 or negative.size == 0
    is_known = not is_empty and _are_small(positive, negative)

    def multiply(targets: _Cells, sources: _Cells, columns: FloatArray) -> FloatArray:
        seen = _condense(sources, CURVATURE_NODES, columns)

        def sums(centre: float, places: FloatArray) -> FloatArray:
            total = np.zeros((places.size, columns.shape[1]))
            for block in _blocks(seen.near(centre)):
                x = places[:, None] - ((seen.centres[block] - centre) + seen.places[block])
                total += softplus_curvature(x) @ seen.weights[block]
            return total

        return _evaluate(targets, CURVATURE_NODES, sums)

    def product(v: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        if not is_known:
            unknown = 0.0 if is_empty else math.nan
            at_positive = np.full((positive.size, u.shape[1]), unknown)
            return at_positive, np.full((negative.size, v.shape[1]), unknown)
        with np.errstate(all="ignore"):
            p_cells, q_cells = _find_cells(positive), _find_cells(negative)
            return multiply(p_cells, q_cells, u), multiply(q_cells, p_cells, v)

    return product


def squared_pairs(positive: FloatArray, negative: FloatArray) -> PairSums:
    """Sum ``(1 - (s_i - t_j))^2`` over all pairs."""
    n, m = positive.size, negative.size
    if n == 0 or m == 0:
        return PairSums(0.0, np.zeros(n), np.zeros(m))
    with np.errstate(all="ignore"):
        s_mean, t_mean = block_sum(positive) / n, block_sum(negative) / m
        s, t = positive - s_mean, negative - t_mean
        gap = 1.0 - (s_mean - t_mean)
        value = n * m * gap * gap + m * block_sum(s * s) + n * block_sum(t * t)
        # Rounding errors of the means remain in s and t, whose sums are almost zero.
        return PairSums(value, (2.0 * m) * (s - gap), (2.0 * n) * (t + gap))


def squared_curvature(positive: FloatArray, negative: FloatArray) -> PairProduct:
    """Return products with the constant matrix of second derivatives, all of them 2."""

    def product(v: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        with np.errstate(all="ignore"):
            at_p = np.tile(2.0 * u.sum(axis=0), (len(v), 1))
            at_q = np.tile(2.0 * v.sum(axis=0), (len(u), 1))
        return at_p, at_q

    return product


# For each loss name, the function that sums over pairs with the derivatives of the sum, and the one
# that returns products with the second derivatives. Either class may be empty. Nothing warns; sums
# of numbers that are not finite are not finite.
_PAIR_FUNCTIONS: dict[str, tuple[Callable[..., PairSums], Callable[..., PairProduct]]] = {
    "logistic": (logistic_pairs, logistic_curvature),
    "squared": (squared_pairs, squared_curvature),
}
PAIRWISE_LOSSES = tuple(_PAIR_FUNCTIONS)


@dataclass(frozen=True, slots=True)
class PairwiseObjective(Objective):
    """Sum of a loss over all pairs of a positive and a negative record, with a ridge.

    Parameters
    ----------
    rows : Rows of shape (n, D)
        The ``x_i``. A constant column cancels in every pair; leave it out.
    positive : ndarray of shape (n,), bool
        Which records are positive; a class may be empty, the loss is then zero.
    loss : Loss
        The logistic or the squared loss.
    ridge : float
        Positive.
    normaliser : float
        The public `Z` by which the sum over pairs is divided, positive.
    linear : ndarray of shape (D,) or None, default=None
        Coefficients of the linear term.

    References
    ----------
    Wang, Yang, Lei, Ying and Zhang (2021), "Differentially private empirical risk minimization
    for AUC maximization"; ``docs/proofs/pairwise.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.optim.losses import SQUARED
    >>> from dp_halfspace.papers.pair_objective import PairwiseObjective
    >>> from dp_halfspace.rows.rows import Rows
    >>> rows = Rows(np.array([[1.0], [0.0], [-1.0]]))
    >>> J = PairwiseObjective(rows, np.array([True, False, False]), SQUARED, 1.0, normaliser=2.0)
    >>> J.value_and_gradient(np.array([1.0]))
    (1.0, array([3.]))
    """

    rows: Design
    positive: NDArray[np.bool_]
    loss: Loss
    ridge: float
    normaliser: float
    linear: FloatArray | None = None
    _split: tuple[NDArray[np.intp], NDArray[np.intp]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.positive.shape != self.rows.shape[:1] or self.positive.dtype != np.bool_:
            raise ValueError("positive must be a mask with one entry per row")
        if self.loss.name not in PAIRWISE_LOSSES:
            raise ValueError(f"the loss of pairs must be one of {PAIRWISE_LOSSES}")
        require("positive and finite", normaliser=self.normaliser, ridge=self.ridge)
        if self.linear is not None and self.linear.shape != (self.size,):
            raise ValueError("linear must have one entry per coefficient")
        split = np.flatnonzero(self.positive), np.flatnonzero(~self.positive)
        object.__setattr__(self, "_split", split)

    @property
    def gradient_lipschitz(self) -> float:
        """``n_positive n_negative / Z beta (2 r)^2 + ridge``."""
        diameter = 2.0 * self.rows.row_bound
        return self._mass * self.loss.smoothness * diameter * diameter + self.ridge

    @property
    def initial_gap(self) -> float:
        """``n_positive n_negative / Z l(0) + ||linear||^2 / (2 ridge)``."""
        return self._mass * self.loss.at_zero + depth(self.linear, self.ridge)

    @property
    def _mass(self) -> float:
        """Number of pairs over the normaliser."""
        positive, negative = self._split
        return positive.size * negative.size / self.normaliser

    def value_and_gradient(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return ``J(w)`` and its gradient; see `Objective`."""
        positive, negative = self._split
        with np.errstate(all="ignore"):
            scores = self.rows.margins(w)
            sums = _PAIR_FUNCTIONS[self.loss.name][0](scores[positive], scores[negative])
            scores[positive] = sums.positive
            scores[negative] = sums.negative
            gradient = self.rows.adjoint(scores) / self.normaliser
            return finish(sums.value / self.normaliser, gradient, w, self.ridge, self.linear)

    def gradient(self, w: FloatArray) -> FloatArray:
        """Return the gradient; see `Objective`."""
        return self.value_and_gradient(w)[1]

    def hessian(self, w: FloatArray) -> FloatArray:
        """Return a (generalised) Hessian; see `Objective`."""
        product = self._product(w)
        step = min(self.size, rows_of_block(NUMBER_BYTES * self.rows.shape[0]))
        identity = np.eye(self.size)
        parts = [product(identity[:, k : k + step]) for k in range(0, self.size, step)]
        hessian = np.concatenate(parts, axis=1)
        return 0.5 * (hessian + hessian.T)

    def hessian_product(self, w: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return the product with a (generalised) Hessian; see `Objective`."""
        product = self._product(w)
        return lambda v: product(v[:, None])[:, 0]

    def subsample(self, n_rows: int) -> PairwiseObjective | None:
        """Return the objective of evenly spaced records; see `Objective`.

        It has as many records of one class as of the other, if possible, because the rarer class
        limits the information in pairs.
        """
        positive, negative = self._split
        n_rows_here = min(n_rows, self.rows.shape[0] // 4)
        if 2 * n_rows_here < n_rows or min(positive.size, negative.size) == 0:
            return None
        n_positive = min(positive.size, max(n_rows_here // 2, n_rows_here - negative.size))
        n_negative = min(negative.size, n_rows_here - n_positive)
        chosen = [
            part[np.linspace(0, part.size - 1, count).astype(np.intp)]
            for part, count in ((positive, n_positive), (negative, n_negative))
        ]
        index = np.sort(np.concatenate(chosen))
        share = (n_positive / positive.size) * (n_negative / negative.size)
        return replace(
            self,
            rows=self.rows.subset(index),
            positive=self.positive[index],
            normaliser=self.normaliser * share,
        )

    def _product(self, w: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return the product of the Hessian with the columns of a matrix."""
        positive, negative = self._split
        with np.errstate(all="ignore"):
            scores = self.rows.margins(w)
            curvature = _PAIR_FUNCTIONS[self.loss.name][1](scores[positive], scores[negative])
            sums = curvature(np.ones((positive.size, 1)), np.ones((negative.size, 1)))

        def product(v: FloatArray) -> FloatArray:
            with np.errstate(all="ignore"):
                image = self.rows.margins(v)
                p, q = image[positive], image[negative]
                p_cross, q_cross = curvature(p, q)
                image[positive] = sums[0] * p - p_cross
                image[negative] = sums[1] * q - q_cross
                return self.rows.adjoint(image) / self.normaliser + self.ridge * v

        return product


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
    # Those of the set of gradient changes of a pair: ``pairwise.md``, Lemma 9.
    vertices: ClassVar[Vertices] = ((1, 0.0), (1, math.sqrt(0.75) * UP), (2, 1.0))

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
        evaluation = per_record * (self.pair_error(largest_margin) / EPS + 4.0 * slope)
        return SlopeBounds(per_record * slope, per_record * 2.0 * self.loss.smoothness, evaluation)

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
        is_positive = classes == task.positive
        return PairwiseObjective(
            rows, is_positive, self.loss, self.total(task.ridge), self.normaliser, task.linear
        )


def balanced_normaliser(n_samples: int) -> float:
    """Return ``n^2 / 4``, the number of pairs of two classes of the same size."""
    return n_samples * n_samples / 4.0
