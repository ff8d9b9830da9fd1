"""Cutting the scores of two classes into pieces of a moderate range."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dp_halfspace.optim.objectives._cells import REACH
from dp_halfspace.optim.objectives._pairs import FloatArray

__all__ = ["CELL_WIDTH", "MAX_CELLS", "Piece", "few_pairs", "pieces", "score_range", "shifts"]

CELL_WIDTH = 2.0
# More cells than this are visited in pieces.
MAX_CELLS = 512
# Scores further apart do not see each other: the loss of the pair is straight.
FAR = CELL_WIDTH * (REACH + 1)
# Width of the gaps that are left between such scores.
_GAP = FAR + CELL_WIDTH
_FEW_PAIRS, _FEW_PAIRS_PER_CELL = 10_000, 500


def score_range(positive: FloatArray, negative: FloatArray) -> tuple[float, float]:
    """Return the smallest and the largest score; not a number if one is."""
    low = np.minimum(positive.min(), negative.min())
    high = np.maximum(positive.max(), negative.max())
    return float(low), float(high)


def few_pairs(positive: FloatArray, negative: FloatArray, n_cells: int) -> bool:
    """Whether the pairs are so few that the cells would take longer."""
    return positive.size * negative.size < _FEW_PAIRS + _FEW_PAIRS_PER_CELL * n_cells


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive positive scores, the negative ones that they see, and those beyond."""

    positive: slice
    near: slice
    low: float
    high: float


def pieces(positive: FloatArray, negative: FloatArray) -> Iterator[Piece]:
    """Cut sorted scores into pieces of a moderate range."""
    length, lo = CELL_WIDTH * MAX_CELLS - 2.0 * FAR, 0
    while lo < positive.size:
        first = positive[lo]
        hi = max(lo + 1, int(np.searchsorted(positive, first + 0.9 * length)))
        ends = (first - FAR, positive[hi - 1] + FAR)
        near = slice(*(int(v) for v in np.searchsorted(negative, ends)))
        seen = negative[near]
        low = min(first, seen[0]) if seen.size else first
        high = max(positive[hi - 1], seen[-1]) if seen.size else positive[hi - 1]
        yield Piece(slice(lo, hi), near, float(low), float(high))
        lo = hi


def shifts(positive: FloatArray, negative: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return how far sorted scores move down when they start at zero and wide gaps shrink."""
    both = np.sort(np.concatenate([positive, negative]))
    surplus = np.maximum(np.diff(both) - _GAP, 0.0)
    wide = np.flatnonzero(surplus)
    # From the lowest score on, so that a difference is rounded in units of the range.
    shift = both[0] + np.append(0.0, np.cumsum(surplus[wide]))
    starts = both[wide + 1]
    p, q = (shift[np.searchsorted(starts, s, side="right")] for s in (positive, negative))
    return p, q
