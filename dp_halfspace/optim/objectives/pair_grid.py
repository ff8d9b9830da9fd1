"""The logistic loss over all pairs of a positive and a negative score, in linear time.

Scores fall into cells two units wide. The moments of the scores in a cell stand for the
scores, cells within 40 units meet through a table of the loss at their Chebyshev points, and
beyond that the loss is a straight line. The error for each pair is below 1e-13 before
rounding (``docs/proofs/pairwise.md``, section 2). Second derivatives are only ever multiplied by
vectors; an error of 1e-8 is good enough to steer a solver.

A function of a number in a cell is a polynomial through the Chebyshev points of the cell, replaced
by one of low degree in each equal part of it. What all sums over pairs share is here as well:
results, and sums in blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dp_halfspace.optim.objectives.losses import softplus, softplus_curvature, softplus_slope
from dp_halfspace.rows.blocks import FloatArray

NODES = 22
# Second derivatives only steer the solver: an error of 1e-8 is small enough.
CURVATURE_NODES = 12
# Beyond this many cells, 40 units, exp(-x) < 5e-18.
REACH = 20
CELL_WIDTH = 2.0
# More cells than this are visited in pieces.
MAX_CELLS = 512
# Scores further apart do not see each other: the loss of the pair is straight.
_FAR = CELL_WIDTH * (REACH + 1)
# Width of the gaps that are left between such scores.
_GAP = _FAR + CELL_WIDTH
# In a wider range the place in a cell is lost to rounding, and places would leave their cells.
_MAX_RANGE = 1e15
_FEW_PAIRS, _FEW_PAIRS_PER_CELL = 10_000, 500

# Product with the matrix of second derivatives l''(s_i - t_j) and with its transpose: maps
# columns for the positive and for the negative scores to sums for the positive and for the
# negative scores.
PairProduct: TypeAlias = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]

# How many numbers are added one after the other; public, because it enters the bound on
# rounding errors (docs/proofs/pairwise.md, Theorems 3 and 4).
PAIR_BLOCK = 8192


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


def basis(x: FloatArray, p: int) -> FloatArray:
    """Return the Lagrange polynomials of the Chebyshev points, one row for each number."""
    points = chebyshev_points(p)
    degrees = np.arange(p)
    share = np.full(p, 2.0 / p)
    share[0] = 1.0 / p
    to_nodes = share[:, None] * np.cos(degrees[:, None] * np.arccos(points))
    values = np.empty((p, x.size))
    values[0] = 1.0
    values[1] = x
    double = 2.0 * x
    for m in range(2, p):
        np.multiply(values[m - 1], double, out=values[m])
        values[m] -= values[m - 2]
    return np.ascontiguousarray(values.T @ to_nodes)


@lru_cache(maxsize=8)
def part_table(parts: int, powers: int) -> FloatArray:
    """Return the Lagrange polynomials of a cell as polynomials of low degree in its equal parts.

    A row a node, ``x^m`` of part ``k`` in column ``m * parts + k``; `x` is from -1 to 1 in a part.
    """
    points, local = chebyshev_points(NODES), chebyshev_points(powers)
    centres = (2.0 * np.arange(parts) + 1.0) / parts - 1.0
    x = (centres[:, None] + local / parts).ravel()
    values = np.empty((NODES, x.size))
    for b in range(NODES):
        others = np.delete(points, b)
        values[b] = ((x[:, None] - others) / (points[b] - others)).prod(axis=1)
    to_powers = np.linalg.inv(np.vander(local, powers, increasing=True))
    table = np.einsum("mr,bkr->bmk", to_powers, values.reshape(NODES, parts, powers))
    return np.ascontiguousarray(table.reshape(NODES, powers * parts))


def _differences(p: int) -> FloatArray:
    """Target minus source: sources in rows, cell after cell, targets in columns."""
    points = chebyshev_points(p)
    cells = 2.0 * np.arange(-REACH, REACH + 1)
    return points - (cells[:, None] + points).reshape(-1, 1)


@lru_cache(maxsize=1)
def pair_kernels() -> tuple[FloatArray, FloatArray]:
    """Return slope and value for a positive target, side by side, and slope for a negative.

    From sources at the nodes of neighbouring cells to targets at the nodes of one.
    """
    x = _differences(NODES)
    return np.hstack([softplus_slope(x, 0.0), softplus(x, 0.0)]), softplus_slope(-x, 0.0)


@lru_cache(maxsize=1)
def curvature_kernel() -> FloatArray:
    """Return second derivatives, the same for targets of both kinds."""
    return softplus_curvature(_differences(CURVATURE_NODES), 0.0)


def windows(sources: FloatArray, kernel: FloatArray) -> FloatArray:
    """Add the contributions of the cells within reach of each cell.

    `sources` of shape (k, n_cells, p) are weights at the nodes, for `k` problems; `kernel` of
    shape ((2 * REACH + 1) * p, m) is for the cells from ``-REACH`` to ``REACH``.
    """
    k, n_cells, p = sources.shape
    reach = min(REACH, n_cells - 1)
    padded = np.zeros((k, n_cells + 2 * reach, p))
    padded[:, reach : reach + n_cells] = sources
    width = (2 * reach + 1) * p
    seen = np.lib.stride_tricks.sliding_window_view(padded.reshape(k, -1), width, axis=1)
    lo, hi = (REACH - reach) * p, (REACH + reach + 1) * p
    out: FloatArray = seen[:, ::p] @ kernel[lo:hi]
    return out


def score_range(positive: FloatArray, negative: FloatArray) -> tuple[float, float] | None:
    """Return the smallest and the largest score; None if doubles cannot tell cells apart."""
    low = float(np.minimum(positive.min(), negative.min()))
    high = float(np.maximum(positive.max(), negative.max()))
    return (low, high) if high - low <= _MAX_RANGE else None


def few_pairs(positive: FloatArray, negative: FloatArray, n_cells: int) -> bool:
    """Whether the pairs are so few that the cells would take longer."""
    return positive.size * negative.size < _FEW_PAIRS + _FEW_PAIRS_PER_CELL * n_cells


class Piece(NamedTuple):
    """Consecutive positive scores, the negative ones that they see, and those beyond."""

    positive: slice
    near: slice
    low: float
    high: float


def pieces(positive: FloatArray, negative: FloatArray) -> Iterator[Piece]:
    """Cut sorted scores into pieces of a moderate range."""
    length, lo = CELL_WIDTH * MAX_CELLS - 2.0 * _FAR, 0
    while lo < positive.size:
        first = positive[lo]
        hi = max(lo + 1, int(np.searchsorted(positive, first + 0.9 * length)))
        ends = (first - _FAR, positive[hi - 1] + _FAR)
        near = slice(*(int(v) for v in np.searchsorted(negative, ends)))
        seen = negative[near]
        low = min(first, seen[0]) if seen.size else first
        high = max(positive[hi - 1], seen[-1]) if seen.size else positive[hi - 1]
        yield Piece(slice(lo, hi), near, float(low), float(high))
        lo = hi


class Compressed(NamedTuple):
    """Scores in their order, moved down so that they start at zero and wide gaps shrink."""

    order: NDArray[np.intp]
    scores: FloatArray
    shift: FloatArray


def compressed(positive: FloatArray, negative: FloatArray) -> tuple[Compressed, Compressed]:
    """Sort the scores of both classes and shorten the gaps that no pair can tell."""
    both = np.sort(np.concatenate([positive, negative]))
    surplus = np.maximum(np.diff(both) - _GAP, 0.0)
    wide = np.flatnonzero(surplus)
    # From the lowest score on, so that a difference is rounded in units of the range.
    shift = both[0] + np.append(0.0, np.cumsum(surplus[wide]))
    starts = both[wide + 1]

    def moved(scores: FloatArray) -> Compressed:
        order = np.argsort(scores)
        scores = scores[order]
        down = shift[np.searchsorted(starts, scores, side="right")]
        return Compressed(order, scores - down, down)

    return moved(positive), moved(negative)


# Parts of a cell and coefficients in each part, for many scores in a cell and for few.
_FINE, _COARSE = (512, 4), (128, 5)
# Largest sum of the absolute coefficients of the polynomials in a part of a cell, and the
# error of the table, both summed over the nodes; the tests compute them in 50 digits.
_ABSOLUTE_TABLE, _TABLE_ERROR = 6.6, 5e-13
# Up to so many scores the interpolation matrices are kept between products.
_KEPT_ROWS = 2**16


@dataclass(frozen=True, slots=True)
class _Located:
    """Scores of one class: which part of which cell, and where in it, from -1 to 1."""

    part: NDArray[np.intp]
    place: FloatArray
    nodes: FloatArray
    counts: FloatArray


@dataclass(frozen=True, slots=True)
class _Grid:
    """Cells that hold all scores."""

    low: float
    n_cells: int
    parts: int
    powers: int

    def locate(self, scores: FloatArray) -> _Located:
        """Place scores and carry their moments to the nodes of the cells."""
        size = self.n_cells * self.parts
        part = np.empty(scores.size, dtype=np.intp)
        place = np.empty(scores.size)
        moments = np.zeros((self.powers, size))
        for lo in range(0, scores.size, PAIR_BLOCK):
            block = slice(lo, lo + PAIR_BLOCK)
            index, x = part[block], place[block]
            np.subtract(scores[block], self.low, out=x)
            x *= self.parts / CELL_WIDTH
            index[:] = x
            x -= index
            x *= 2.0
            x -= 1.0
            moments[0] += np.bincount(index, minlength=size)
            power = x
            for m in range(1, self.powers):
                moments[m] += np.bincount(index, power, size)
                if m < self.powers - 1:
                    power = power * x
        cells = moments.reshape(self.powers, self.n_cells, self.parts)
        flat = cells.transpose(1, 0, 2).reshape(self.n_cells, -1)
        nodes = flat @ part_table(self.parts, self.powers).T
        return _Located(part, place, nodes, cells[0].sum(axis=1))

    def evaluate(self, at: _Located, nodes: FloatArray) -> FloatArray:
        """Evaluate functions that are given at the nodes of the cells."""
        flat = nodes @ part_table(self.parts, self.powers)
        cells = flat.reshape(self.n_cells, self.powers, self.parts).transpose(1, 0, 2)
        coefficients = np.ascontiguousarray(cells).reshape(self.powers, -1)
        out = np.empty(at.place.size)
        for lo in range(0, out.size, PAIR_BLOCK):
            block = slice(lo, lo + PAIR_BLOCK)
            index, x, total = at.part[block], at.place[block], out[block]
            # The index is in range; other modes of take copy when they write to an array.
            coefficients[-1].take(index, out=total, mode="clip")
            for m in range(self.powers - 2, -1, -1):
                total *= x
                total += coefficients[m].take(index)
        return out


def logistic_pairs(positive: FloatArray, negative: FloatArray, shift: float = 0.0) -> PairSums:
    """Sum ``log(1 + exp(shift + t_j - s_i))`` over all pairs, with derivatives.

    Either class may be empty. Not a number for scores that are not finite, or beyond a range of
    10^15; never a warning.
    """
    if positive.size == 0 or negative.size == 0:
        return PairSums(0.0, np.zeros(positive.size), np.zeros(negative.size))
    with np.errstate(all="ignore"):
        negative = negative + shift
        ends = score_range(positive, negative)
        if ends is None:
            unknown = (np.full(scores.size, math.nan) for scores in (positive, negative))
            return PairSums(math.nan, *unknown)
        if ends[1] - ends[0] < CELL_WIDTH * MAX_CELLS:
            return _dense_pairs(positive, negative, *ends)
        return _wide_pairs(positive, negative)


def logistic_rounding(n_samples: int, reach: float) -> float:
    """Bound the error of a derivative from `logistic_pairs`, for each pair.

    For `n_samples` scores of at most `reach`, the derivative by a score is off by at most the
    number of scores of the other class times this (``docs/proofs/pairwise.md``, Theorem 3).
    """
    blocks = PAIR_BLOCK + -(-n_samples // PAIR_BLOCK)
    dots = _FINE[0] * _FINE[1] + (2 * REACH + 2) * NODES + 100
    amplified = _ABSOLUTE_TABLE * (_ABSOLUTE_TABLE + 1.0)
    rounding = (amplified * (blocks + dots) + 2.0 * (reach + 1.0)) * 2.0**-53 * 1.01
    return 1e-13 + rounding + 2.1 * (_ABSOLUTE_TABLE + 1.0) * _TABLE_ERROR


def _every_pair(positive: FloatArray, negative: FloatArray) -> PairSums:
    """Sum over pairs one by one."""
    x = positive[:, None] - negative
    slopes = softplus_slope(x, 0.0)
    return PairSums(float(softplus(x, 0.0).sum()), slopes.sum(axis=1), -slopes.sum(axis=0))


def _dense_pairs(positive: FloatArray, negative: FloatArray, low: float, high: float) -> PairSums:
    """Sum over pairs in a moderate range."""
    n_cells = int((high - low) / CELL_WIDTH) + 1
    if few_pairs(positive, negative, n_cells):
        return _every_pair(positive, negative)
    many = 8 * n_cells * _FINE[0] <= positive.size + negative.size
    grid = _Grid(low, n_cells, *(_FINE if many else _COARSE))
    p, q = grid.locate(positive), grid.locate(negative)
    at_positive, at_negative = pair_kernels()
    both = windows(q.nodes[None], at_positive)[0]
    below = windows(p.nodes[None], at_negative)[0]
    above, values = both[:, :NODES], both[:, NODES:]
    value = float((p.nodes * values).sum())
    if n_cells > REACH + 1:
        # Cells that do not see each other: the slope is -1 or 0, the loss -x or 0.
        place = chebyshev_points(NODES) + 1.0
        start = CELL_WIDTH * np.arange(n_cells)
        p_sum, q_sum = (part.nodes @ place + start * part.counts for part in (p, q))
        q_above, q_sum_above = _far_above(q.counts), _far_above(q_sum)
        value += float(p.counts @ q_sum_above - p_sum @ q_above)
        above = above - q_above[:, None]
        below = below - _far_above(p.counts[::-1])[::-1, None]
    return PairSums(value, grid.evaluate(p, above), -grid.evaluate(q, below))


def _far_above(x: FloatArray) -> FloatArray:
    """Sum over the cells that are more than `REACH` further up."""
    out = np.zeros(x.size)
    out[: x.size - REACH - 1] = np.cumsum(x[::-1])[::-1][REACH + 1 :]
    return out


def _surplus(p_shift: FloatArray, q_shift: FloatArray) -> float:
    """Sum what the loss of all pairs loses when gaps are shortened; both are sorted."""
    above = np.searchsorted(q_shift, p_shift, side="right")
    tail = np.append(np.cumsum(q_shift[::-1])[::-1], 0.0)
    return float((tail[above] - (q_shift.size - above) * p_shift).sum())


def _wide_pairs(positive: FloatArray, negative: FloatArray) -> PairSums:
    """Sum over pairs in any range, piece by piece."""
    (p_order, p, p_shift), (q_order, q, q_shift) = compressed(positive, negative)
    p_slopes, q_slopes = np.zeros(p.size), np.zeros(q.size)
    # How many positive scores lie far below each negative one, as differences.
    far_below = np.zeros(q.size + 1)
    value = _surplus(p_shift, q_shift)
    for rows, near, low, high in pieces(p, q):
        if near.stop > near.start:
            sums = _dense_pairs(p[rows], q[near], low, high)
            value += sums.value
            p_slopes[rows] = sums.positive
            q_slopes[near] += sums.negative
        n_rows, n_above = rows.stop - rows.start, q.size - near.stop
        p_slopes[rows] -= n_above
        far_below[near.stop] += n_rows
        if n_above:
            value += n_rows * float(q[near.stop :].sum()) - n_above * float(p[rows].sum())
    q_slopes += np.cumsum(far_below[:-1])
    out_p, out_q = np.empty(p.size), np.empty(q.size)
    out_p[p_order], out_q[q_order] = p_slopes, q_slopes
    return PairSums(value, out_p, out_q)


def logistic_curvature(
    positive: FloatArray, negative: FloatArray, shift: float = 0.0
) -> PairProduct:
    """Return products with the second derivatives of the (shifted) logistic loss of all pairs."""
    if positive.size == 0 or negative.size == 0:
        return lambda v, u: (np.zeros_like(v), np.zeros_like(u))
    with np.errstate(all="ignore"):
        negative = negative + shift
        ends = score_range(positive, negative)
        if ends is None:
            return lambda v, u: (np.full_like(v, np.nan), np.full_like(u, np.nan))
        if ends[1] - ends[0] < CELL_WIDTH * MAX_CELLS:
            return _dense_curvature(positive, negative, *ends)
        return _wide_curvature(positive, negative)


def _dense_curvature(
    positive: FloatArray, negative: FloatArray, low: float, high: float
) -> PairProduct:
    """Second derivatives over pairs in a moderate range."""
    p, n_cells = CURVATURE_NODES, int((high - low) / CELL_WIDTH) + 1

    def made(scores: FloatArray) -> Iterator[Any]:
        """Interpolation matrices, from the nodes of all cells to the scores of a block."""
        for lo in range(0, scores.size, PAIR_BLOCK):
            x = (scores[lo : lo + PAIR_BLOCK] - low) / CELL_WIDTH
            cell = x.astype(np.int32)
            values = basis(2.0 * (x - cell) - 1.0, p)
            index = (cell[:, None] * np.int32(p) + np.arange(p, dtype=np.int32)).ravel()
            indptr = np.arange(0, index.size + 1, p, dtype=np.int32)
            yield sparse.csr_array((values.ravel(), index, indptr), shape=(x.size, n_cells * p))

    keep = positive.size + negative.size <= _KEPT_ROWS
    kept = [list(made(scores)) for scores in (positive, negative)] if keep else None

    def bases(side: int) -> Iterable[Any]:
        return made((positive, negative)[side]) if kept is None else kept[side]

    def from_scores(side: int, v: FloatArray) -> FloatArray:
        """Carry columns to the nodes, and from there to the nodes that they act on."""
        nodes, lo = np.zeros((n_cells * p, v.shape[1])), 0
        for matrix in bases(side):
            nodes += matrix.T @ v[lo : lo + matrix.shape[0]]
            lo += matrix.shape[0]
        # One multiple of a column after the other.
        columns = windows(nodes.T.reshape(v.shape[1], -1, p), curvature_kernel())
        return np.ascontiguousarray(columns.reshape(v.shape[1], -1).T)

    def product(v: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        with np.errstate(all="ignore"):
            at_p, at_q = from_scores(1, u), from_scores(0, v)
            return (
                np.concatenate([matrix @ at_p for matrix in bases(0)]),
                np.concatenate([matrix @ at_q for matrix in bases(1)]),
            )

    return product


def _wide_curvature(positive: FloatArray, negative: FloatArray) -> PairProduct:
    """Second derivatives over pairs in any range; far pairs have none."""
    p, q = compressed(positive, negative)
    seen = [piece for piece in pieces(p.scores, q.scores) if piece.near.stop > piece.near.start]

    def product(v: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        at_p, at_q = np.zeros_like(v), np.zeros_like(u)
        with np.errstate(all="ignore"):
            for piece in seen:
                rows, columns = p.order[piece.positive], q.order[piece.near]
                s, t = p.scores[piece.positive], q.scores[piece.near]
                if few_pairs(s, t, MAX_CELLS):
                    weights = softplus_curvature(s[:, None] - t, 0.0)
                    down, up = weights @ u[columns], weights.T @ v[rows]
                else:
                    dense = _dense_curvature(s, t, piece.low, piece.high)
                    down, up = dense(v[rows], u[columns])
                at_p[rows] = down
                at_q[columns] += up
        return at_p, at_q

    return product
