"""Tables for sums of a smooth function over pairs of numbers that are grouped in cells.

A function of a number in a cell, two units wide, is a polynomial through the Chebyshev points of
the cell, replaced by one of low degree in each equal part of it (``docs/proofs/pairwise.md``,
section 2). Here is as well what all sums over pairs share: results, and sums in blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.optim.design.blocks import FloatArray
from dp_halfspace.optim.objectives.losses import softplus, softplus_curvature, softplus_slope

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
