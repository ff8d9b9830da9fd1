"""Objectives that are sums over all pairs of a positive and a negative record.

``J(w) = (1 / Z) sum_ij l(<x_i - x_j, w>) + ridge / 2 ||w||^2 + <linear, w>``, a surrogate of one
minus the area under the ROC curve; the number of pairs is private, `Z` is public. A gradient reads
the data twice and takes linear time in between, or sorts. No pass raises a warning.

The logistic loss: scores fall into cells two units wide. The moments of the scores in a cell stand
for the scores, cells within 40 units meet through a table of the loss at their Chebyshev points,
and beyond that the loss is a straight line. The error for each pair is below 1e-13 before rounding
(``docs/proofs/pairwise.md``, section 2). A function of a number in a cell is a polynomial through
the Chebyshev points of the cell, replaced by one of low degree in each equal part of it.

Piecewise quadratic losses are summed by sorting: of ``x = knot - (s_i - t_j)`` they are
``max(x, 0)^2``, or a parabola up to a width and a straight line from there. For each score the
pairs on the parabola are one or two runs of sorted scores, and their sums differences of prefix
sums, exact up to rounding (``pairwise.md``, section 3).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dp_halfspace.optim.losses import Loss, softplus, softplus_curvature, softplus_slope
from dp_halfspace.optim.objectives import OverRows, check_terms, depth, finish
from dp_halfspace.rows.blocks import FloatArray
from dp_halfspace.rows.rows import Rows

# Chebyshev points of a cell.
NODES = 22
# Second derivatives only steer the solver: an error of 1e-8 is small enough.
CURVATURE_NODES = 12
# Cells on either side whose scores are not far: beyond, 40 units, exp(-x) < 5e-18.
NEAR_CELLS = 20
# Width of a cell, in units of the scores.
CELL_WIDTH = 2.0
# Scores in more cells than this are cut into pieces.
MAX_CELLS = 512
# The loss of a pair of scores further apart is a straight line.
_FAR = CELL_WIDTH * (NEAR_CELLS + 1)
# Width of the gaps that are left between such scores.
_GAP = _FAR + CELL_WIDTH
# Widest range of scores: in a wider one the place in a cell would be lost to rounding.
_MAX_RANGE = 1e15
# Fewer pairs than this, and so many more for each cell, are summed one by one.
_FEW_PAIRS = 10_000
_FEW_PAIRS_PER_CELL = 500

# Product with the matrix of second derivatives l''(s_i - t_j) and with its transpose: maps
# columns for the positive and for the negative scores to sums for the positive and for the
# negative scores.
PairProduct: TypeAlias = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]

# Numbers that are added one after the other; public, because it enters the bound on rounding
# errors (docs/proofs/pairwise.md, Theorems 3 and 4).
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


def lagrange_basis(x: FloatArray, p: int) -> FloatArray:
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
    cells = 2.0 * np.arange(-NEAR_CELLS, NEAR_CELLS + 1)
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


def sum_windows(sources: FloatArray, kernel: FloatArray) -> FloatArray:
    """Add the contributions of the near cells of each cell.

    `sources` of shape (k, n_cells, p) are weights at the nodes, for `k` problems; `kernel` of
    shape ((2 * REACH + 1) * p, m) is for the cells from ``-REACH`` to ``NEAR_CELLS``.
    """
    k, n_cells, p = sources.shape
    near = min(NEAR_CELLS, n_cells - 1)
    padded = np.zeros((k, n_cells + 2 * near, p))
    padded[:, near : near + n_cells] = sources
    width = (2 * near + 1) * p
    seen = np.lib.stride_tricks.sliding_window_view(padded.reshape(k, -1), width, axis=1)
    lo, hi = (NEAR_CELLS - near) * p, (NEAR_CELLS + near + 1) * p
    out: FloatArray = seen[:, ::p] @ kernel[lo:hi]
    return out


def score_range(positive: FloatArray, negative: FloatArray) -> tuple[float, float] | None:
    """Return the smallest and the largest score; None if the range is too wide for doubles."""
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


def cut_pieces(positive: FloatArray, negative: FloatArray) -> Iterator[Piece]:
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


class CompressedScores(NamedTuple):
    """Scores in their order, moved down so that they start at zero and wide gaps shrink."""

    order: NDArray[np.intp]
    scores: FloatArray
    shift: FloatArray


def compress_gaps(
    positive: FloatArray, negative: FloatArray
) -> tuple[CompressedScores, CompressedScores]:
    """Sort the scores of both classes and shorten wide gaps, which change no derivative."""
    both = np.sort(np.concatenate([positive, negative]))
    surplus = np.maximum(np.diff(both) - _GAP, 0.0)
    wide = np.flatnonzero(surplus)
    # From the lowest score on, so that a difference is rounded in units of the range.
    shift = both[0] + np.append(0.0, np.cumsum(surplus[wide]))
    starts = both[wide + 1]

    def moved(scores: FloatArray) -> CompressedScores:
        order = np.argsort(scores)
        scores = scores[order]
        down = shift[np.searchsorted(starts, scores, side="right")]
        return CompressedScores(order, scores - down, down)

    return moved(positive), moved(negative)


# Parts of a cell and coefficients in each part, for many scores in a cell,
_FINE_PARTS = (512, 4)
# and for few.
_COARSE_PARTS = (128, 5)
# Largest sum of the absolute coefficients of the polynomials in a part of a cell, summed over the
# nodes; the tests compute it, and the error of the table, in 50 digits.
_ABSOLUTE_TABLE = 6.6
_TABLE_ERROR = 5e-13
# Scores, at most, whose interpolation matrices are kept between products.
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
            return _sum_dense(positive, negative, *ends)
        return _sum_wide(positive, negative)


def logistic_rounding(n_samples: int, largest_score: float) -> float:
    """Bound the error of a derivative from `logistic_pairs`, for each pair.

    For `n_samples` scores of at most `largest_score`, the derivative by a score is off by at most
    the number of scores of the other class times this (``docs/proofs/pairwise.md``, Theorem 3).
    """
    blocks = PAIR_BLOCK + -(-n_samples // PAIR_BLOCK)
    dots = _FINE_PARTS[0] * _FINE_PARTS[1] + (2 * NEAR_CELLS + 2) * NODES + 100
    amplified = _ABSOLUTE_TABLE * (_ABSOLUTE_TABLE + 1.0)
    rounding = (amplified * (blocks + dots) + 2.0 * (largest_score + 1.0)) * 2.0**-53 * 1.01
    return 1e-13 + rounding + 2.1 * (_ABSOLUTE_TABLE + 1.0) * _TABLE_ERROR


def _sum_every_pair(positive: FloatArray, negative: FloatArray) -> PairSums:
    """Sum over pairs one by one."""
    x = positive[:, None] - negative
    slopes = softplus_slope(x, 0.0)
    return PairSums(float(softplus(x, 0.0).sum()), slopes.sum(axis=1), -slopes.sum(axis=0))


def _sum_dense(positive: FloatArray, negative: FloatArray, low: float, high: float) -> PairSums:
    """Sum over pairs in a moderate range."""
    n_cells = int((high - low) / CELL_WIDTH) + 1
    if few_pairs(positive, negative, n_cells):
        return _sum_every_pair(positive, negative)
    many = 8 * n_cells * _FINE_PARTS[0] <= positive.size + negative.size
    grid = _Grid(low, n_cells, *(_FINE_PARTS if many else _COARSE_PARTS))
    p, q = grid.locate(positive), grid.locate(negative)
    at_positive, at_negative = pair_kernels()
    both = sum_windows(q.nodes[None], at_positive)[0]
    below = sum_windows(p.nodes[None], at_negative)[0]
    above, values = both[:, :NODES], both[:, NODES:]
    value = float((p.nodes * values).sum())
    if n_cells > NEAR_CELLS + 1:
        # Of scores in far cells the slope is -1 or 0, the loss -x or 0.
        place = chebyshev_points(NODES) + 1.0
        start = CELL_WIDTH * np.arange(n_cells)
        p_sum, q_sum = (part.nodes @ place + start * part.counts for part in (p, q))
        q_above, q_sum_above = _far_above(q.counts), _far_above(q_sum)
        value += float(p.counts @ q_sum_above - p_sum @ q_above)
        above = above - q_above[:, None]
        below = below - _far_above(p.counts[::-1])[::-1, None]
    return PairSums(value, grid.evaluate(p, above), -grid.evaluate(q, below))


def _far_above(x: FloatArray) -> FloatArray:
    """Sum over the cells that are more than `NEAR_CELLS` further up."""
    out = np.zeros(x.size)
    out[: x.size - NEAR_CELLS - 1] = np.cumsum(x[::-1])[::-1][NEAR_CELLS + 1 :]
    return out


def _gap_losses(p_shift: FloatArray, q_shift: FloatArray) -> float:
    """Sum by how much shorter gaps lower the loss of all pairs; both are sorted."""
    above = np.searchsorted(q_shift, p_shift, side="right")
    tail = np.append(np.cumsum(q_shift[::-1])[::-1], 0.0)
    return float((tail[above] - (q_shift.size - above) * p_shift).sum())


def _sum_wide(positive: FloatArray, negative: FloatArray) -> PairSums:
    """Sum over pairs in any range, piece by piece."""
    (p_order, p, p_shift), (q_order, q, q_shift) = compress_gaps(positive, negative)
    p_slopes, q_slopes = np.zeros(p.size), np.zeros(q.size)
    # Numbers of positive scores far below each negative one, as differences.
    far_below = np.zeros(q.size + 1)
    value = _gap_losses(p_shift, q_shift)
    for rows, near, low, high in cut_pieces(p, q):
        if near.stop > near.start:
            sums = _sum_dense(p[rows], q[near], low, high)
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
            values = lagrange_basis(2.0 * (x - cell) - 1.0, p)
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
        columns = sum_windows(nodes.T.reshape(v.shape[1], -1, p), curvature_kernel())
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
    p, q = compress_gaps(positive, negative)
    seen = [piece for piece in cut_pieces(p.scores, q.scores) if piece.near.stop > piece.near.start]

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


Index = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class _Bands:
    """For each target: the sorted sources less than a width above it, in two runs.

    One above it in its own stretch of that width, one below its place in the next stretch.
    """

    place: FloatArray
    source_place: FloatArray
    start: Index
    middle: Index
    end: Index


def _find_bands(targets: FloatArray, sources: FloatArray, width: float) -> _Bands:
    """Find the runs; both arrays are sorted."""
    stretch, place = np.divmod(targets, width)
    source_stretch, source_place = np.divmod(sources, width)
    first = np.searchsorted(source_stretch, stretch)
    middle = np.searchsorted(source_stretch, stretch + 1.0)
    last = np.searchsorted(source_stretch, stretch + 1.0, side="right")
    start = np.clip(np.searchsorted(sources, targets, side="right"), first, middle)
    end = np.clip(np.searchsorted(sources, targets + width), middle, last)
    return _Bands(place, source_place, start, middle, end)


def _sum_one_side(targets: FloatArray, sources: FloatArray, width: float) -> FloatArray:
    """Sum ``min(max(source - target, 0), width)`` over the sources, for sorted targets."""
    bands = _find_bands(targets, sources, width)
    sums = prefix_sums(bands.source_place)
    in_next = bands.end - bands.middle
    inside = sums[bands.end] - sums[bands.start] - bands.place * (bands.end - bands.start)
    return inside + width * (in_next + (sources.size - bands.end))


def _sum_ramp(targets: FloatArray, sources: FloatArray, width: float) -> float:
    """Sum the parabola, ``x^2 / (2 width)`` up to the width, and the line beyond it."""
    bands = _find_bands(targets, sources, width)
    powers = np.column_stack([bands.source_place, bands.source_place**2])
    sums = prefix_sums(powers)
    total = np.zeros(targets.size)
    for lo, hi, offset in (
        (bands.start, bands.middle, -bands.place),
        (bands.middle, bands.end, width - bands.place),
    ):
        first, second = (sums[hi] - sums[lo]).T
        total += second + offset * (2.0 * first + offset * (hi - lo))
    beyond = sources.size - bands.end
    # From one of the scores, so that a common shift does not cancel.
    origin = sources[sources.size // 2] if sources.size else 0.0
    tail = np.append(np.cumsum((sources - origin)[::-1])[::-1], 0.0)[bands.end]
    line = tail - beyond * ((targets - origin) + 0.5 * width)
    return float((total / (2.0 * width) + line).sum())


def ramp_pairs(positive: FloatArray, negative: FloatArray, knot: float, width: float) -> PairSums:
    """Sum over all pairs a loss that is zero from the knot on, a parabola below it, then a line.

    Either class may be empty. Not a number where scores are not finite; never a warning.
    """
    with np.errstate(all="ignore"):
        p_order, q_order = np.argsort(positive), np.argsort(negative)
        s, t = positive[p_order], negative[q_order] + knot
        p, q = np.empty(s.size), np.empty(t.size)
        p[p_order] = _sum_one_side(s, t, width) / -width
        # For the negative scores the order is reversed.
        q[q_order] = _sum_one_side(-t[::-1], -s[::-1], width)[::-1] / width
        return PairSums(_sum_ramp(s, t, width), p, q)


def ramp_curvature(
    positive: FloatArray, negative: FloatArray, knot: float, width: float
) -> PairProduct:
    """Return products with the second derivatives of the loss of :func:`ramp_pairs`."""
    return _band_curvature(positive, negative, knot, width, width)


def _band_curvature(
    positive: FloatArray, negative: FloatArray, knot: float, width: float, divisor: float
) -> PairProduct:
    """Return products with ``1 / divisor`` where a pair is less than `width` below the knot."""
    with np.errstate(all="ignore"):
        p_order, q_order = np.argsort(positive), np.argsort(negative)
        s, t = positive[p_order], negative[q_order] + knot
        p_run = np.searchsorted(t, s, side="right"), np.searchsorted(t, s + width)
        q_run = np.searchsorted(s, t - width, side="right"), np.searchsorted(s, t)

    def product(v: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        with np.errstate(all="ignore"):
            at_p = _sum_runs(u[q_order], p_run, p_order) / divisor
            at_q = _sum_runs(v[p_order], q_run, q_order) / divisor
        return at_p, at_q

    return product


def _sum_runs(x: FloatArray, run: tuple[Index, Index], order: Index) -> FloatArray:
    """Add rows in runs and undo the order of the results."""
    sums = prefix_sums(x)
    lo, hi = run
    out = np.empty((order.size, *x.shape[1:]))
    out[order] = sums[np.maximum(lo, hi)] - sums[lo]
    return out


def parabola_pairs(positive: FloatArray, negative: FloatArray) -> PairSums:
    """Sum the squared hinge ``max(1 - (s_i - t_j), 0)^2`` over all pairs."""
    with np.errstate(all="ignore"):
        p_order, q_order = np.argsort(positive), np.argsort(negative)
        s, t = positive[p_order], negative[q_order] + 1.0
        above = np.searchsorted(t, s, side="right")
        below = np.searchsorted(s, t)
        t_sums, s_sums = prefix_sums(t), prefix_sums(s)
        p, q = np.empty(s.size), np.empty(t.size)
        n_above = t.size - above
        first = t_sums[-1] - t_sums[above] - s * n_above
        p[p_order] = -2.0 * first
        q[q_order] = 2.0 * (t * below - s_sums[below])
        # From the mean of the scores, so that squares of a common shift do not cancel.
        centre = (t_sums[-1] / max(t.size, 1)) if t.size else 0.0
        squares = prefix_sums((t - centre) ** 2)
        c = s - centre
        firsts = first + c * n_above  # sum of t - centre over those above
        value = (squares[-1] - squares[above]) - c * (2.0 * firsts - c * n_above)
        return PairSums(float(value.sum()) + 0.0, p, q)


def parabola_curvature(positive: FloatArray, negative: FloatArray) -> PairProduct:
    """Return products with the second derivatives of the squared hinge of all pairs."""
    return _band_curvature(positive, negative, 1.0, np.inf, 0.5)


# Entries of the columns that a dense Hessian is multiplied by at a time.
_CHUNK = 2**22


def _sum_squares(positive: FloatArray, negative: FloatArray) -> PairSums:
    """Sum ``(1 - (s_i - t_j))^2`` over all pairs."""
    n, m = positive.size, negative.size
    if n == 0 or m == 0:
        return PairSums(0.0, np.zeros(n), np.zeros(m))
    with np.errstate(all="ignore"):
        s_mean, t_mean = block_sum(positive) / n, block_sum(negative) / m
        s, t = positive - s_mean, negative - t_mean
        gap = 1.0 - (s_mean - t_mean)
        value = n * m * gap * gap + m * block_sum(s * s) + n * block_sum(t * t)
        # The rounding of the means is left in s and t, which sum to almost zero.
        return PairSums(value, (2.0 * m) * (s - gap), (2.0 * n) * (t + gap))


def _square_curvature(positive: FloatArray, negative: FloatArray) -> PairProduct:
    """Return products with the matrix of twos."""

    def product(v: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        with np.errstate(all="ignore"):
            at_p = np.tile(2.0 * u.sum(axis=0), (len(v), 1))
            at_q = np.tile(2.0 * v.sum(axis=0), (len(u), 1))
        return at_p, at_q

    return product


# By name of a loss: sums over pairs, and products with the second derivatives. Both are called
# with the scores and with the parameters of the loss.
_LOGISTIC = logistic_pairs, logistic_curvature
_RAMP = ramp_pairs, ramp_curvature
_FAMILIES: dict[str, tuple[Callable[..., PairSums], Callable[..., PairProduct]]] = {
    "logistic": _LOGISTIC,
    "shifted_logistic": _LOGISTIC,
    "huber_hinge": _RAMP,
    "smoothed_hinge": _RAMP,
    "squared_hinge": (parabola_pairs, parabola_curvature),
    "squared": (_sum_squares, _square_curvature),
}
PAIRWISE_LOSSES = tuple(_FAMILIES)


def _parameters(loss: Loss) -> dict[str, Any]:
    """Return the parameters of a loss of a family."""
    return getattr(loss.value, "keywords", {})


def pair_sums(loss: Loss, positive: FloatArray, negative: FloatArray) -> PairSums:
    """Sum ``l(s_i - t_j)`` over all pairs, with the derivative by every score.

    Either class may be empty. Never a warning; what is not finite stays so.
    """
    return _FAMILIES[loss.name][0](positive, negative, **_parameters(loss))


def pair_curvature(loss: Loss, positive: FloatArray, negative: FloatArray) -> PairProduct:
    """Return products with the matrix ``l''(s_i - t_j)`` and with its transpose."""
    return _FAMILIES[loss.name][1](positive, negative, **_parameters(loss))


@dataclass(frozen=True, slots=True)
class PairwiseObjective(OverRows):
    """Sum of a loss over all pairs of a positive and a negative record, with a ridge.

    Parameters
    ----------
    rows : Rows of shape (n, D)
        The ``x_i``. A constant column cancels in every pair; leave it out.
    positive : ndarray of shape (n,), bool
        Which records are positive; a class may be empty, the loss is then zero.
    loss : Loss
        Smooth, of one of the names in `PAIRWISE_LOSSES`.
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
    >>> from dp_halfspace.optim.pairs import PairwiseObjective
    >>> from dp_halfspace.rows.rows import Rows
    >>> rows = Rows(np.array([[1.0], [0.0], [-1.0]]))
    >>> J = PairwiseObjective(rows, np.array([True, False, False]), SQUARED, 1.0, normaliser=2.0)
    >>> J.value_and_gradient(np.array([1.0]))
    (1.0, array([3.]))
    """

    rows: Rows
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
        if not 0.0 < self.normaliser < math.inf:
            raise ValueError("normaliser must be positive and finite")
        check_terms(self.ridge, self.linear, self.size)
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
            sums = pair_sums(self.loss, scores[positive], scores[negative])
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
        step = max(1, min(self.size, _CHUNK // max(1, self.rows.shape[0])))
        identity = np.eye(self.size)
        with np.errstate(all="ignore"):
            parts = [product(identity[:, k : k + step]) for k in range(0, self.size, step)]
            hessian = np.concatenate(parts, axis=1)
        return 0.5 * (hessian + hessian.T)

    def hessian_product(self, w: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return the product with a (generalised) Hessian; see `Objective`."""
        product = self._product(w)

        def single(v: FloatArray) -> FloatArray:
            with np.errstate(all="ignore"):
                return product(v[:, None])[:, 0]

        return single

    def subsample(self, n_rows: int) -> PairwiseObjective | None:
        """Return the objective of evenly spaced records; see `Objective`.

        As many of one class as of the other, if possible: the rarer one says how much pairs say.
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
            curvature = pair_curvature(self.loss, scores[positive], scores[negative])
            sums = curvature(np.ones((positive.size, 1)), np.ones((negative.size, 1)))

        def product(v: FloatArray) -> FloatArray:
            image = self.rows.margins(v)
            p, q = image[positive], image[negative]
            p_cross, q_cross = curvature(p, q)
            image[positive] = sums[0] * p - p_cross
            image[negative] = sums[1] * q - q_cross
            data: FloatArray = self.rows.adjoint(image) / self.normaliser
            return data + self.ridge * v

        return product
