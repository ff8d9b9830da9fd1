"""Second derivatives of the logistic loss over all pairs of a positive and a negative score.

They are only ever multiplied by vectors, through interpolation between Chebyshev points of
cells that are two units wide; an error of 1e-8 is good enough to steer a solver.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from dp_halfspace.optim.objectives._cells import (
    CELL_WIDTH,
    CURVATURE_NODES,
    MAX_CELLS,
    basis,
    compressed,
    curvature_kernel,
    few_pairs,
    pieces,
    score_range,
    windows,
)
from dp_halfspace.optim.objectives._pairs import PAIR_BLOCK, FloatArray, PairProduct
from dp_halfspace.optim.objectives.losses import softplus_curvature

__all__ = ["logistic_curvature"]

# Up to so many scores the interpolation matrices are kept between products.
_KEPT_ROWS = 2**16


def logistic_curvature(
    positive: FloatArray, negative: FloatArray, shift: float = 0.0
) -> PairProduct:
    """Return products with the second derivatives of the (shifted) logistic loss of all pairs.

    They map arrays of shape (n_positive, k) and (n_negative, k) to the sums over the negative
    and over the positive scores, in the same shapes, with a relative error of about 1e-8.
    """
    if positive.size == 0 or negative.size == 0:
        return lambda v, u: (np.zeros_like(v), np.zeros_like(u))
    with np.errstate(all="ignore"):
        negative = negative + shift
        ends = score_range(positive, negative)
        if ends is None:
            return lambda v, u: (np.full_like(v, np.nan), np.full_like(u, np.nan))
        if ends[1] - ends[0] < CELL_WIDTH * MAX_CELLS:
            return _DenseCurvature(positive, negative, *ends).product
        return _wide_curvature(positive, negative)


class _DenseCurvature:
    """Second derivatives over pairs in a moderate range."""

    def __init__(self, positive: FloatArray, negative: FloatArray, low: float, high: float) -> None:
        self._low = low
        self._n_cells = int((high - low) / CELL_WIDTH) + 1
        self._scores = (positive, negative)
        keep = positive.size + negative.size <= _KEPT_ROWS
        self._kept = [list(self._bases(s)) if keep else None for s in self._scores]

    def product(self, v: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Apply the matrix of second derivatives and its transpose."""
        with np.errstate(all="ignore"):
            from_p, from_q = self._to_nodes(0, v), self._to_nodes(1, u)
            kernel = curvature_kernel()
            # One multiple of a column after the other, as columns of the nodes.
            at_p, at_q = (
                windows(x.T.reshape(len(x.T), -1, CURVATURE_NODES), kernel).reshape(len(x.T), -1)
                for x in (from_q, from_p)
            )
            return self._at_scores(0, at_p.T), self._at_scores(1, at_q.T)

    def _bases(self, scores: FloatArray) -> Iterator[Any]:
        """Interpolation matrices, from the nodes of all cells to the scores of a block."""
        p = CURVATURE_NODES
        for lo in range(0, scores.size, PAIR_BLOCK):
            x = (scores[lo : lo + PAIR_BLOCK] - self._low) / CELL_WIDTH
            cell = x.astype(np.int32)
            values = basis(2.0 * (x - cell) - 1.0, p)
            index = (cell[:, None] * np.int32(p) + np.arange(p, dtype=np.int32)).ravel()
            indptr = np.arange(0, index.size + 1, p, dtype=np.int32)
            shape = (x.size, self._n_cells * p)
            yield sparse.csr_array((values.ravel(), index, indptr), shape=shape)

    def _blocks(self, side: int) -> Iterator[Any]:
        kept = self._kept[side]
        return self._bases(self._scores[side]) if kept is None else iter(kept)

    def _to_nodes(self, side: int, v: FloatArray) -> FloatArray:
        out = np.zeros((self._n_cells * CURVATURE_NODES, v.shape[1]))
        lo = 0
        for matrix in self._blocks(side):
            out += matrix.T @ v[lo : lo + matrix.shape[0]]
            lo += matrix.shape[0]
        return out

    def _at_scores(self, side: int, nodes: FloatArray) -> FloatArray:
        nodes = np.ascontiguousarray(nodes)
        return np.concatenate([matrix @ nodes for matrix in self._blocks(side)])


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
                    dense = _DenseCurvature(s, t, piece.low, piece.high)
                    down, up = dense.product(v[rows], u[columns])
                at_p[rows] = down
                at_q[columns] += up
        return at_p, at_q

    return product
