"""Second derivatives of the logistic loss over all pairs of a positive and a negative score.

They are only ever multiplied by vectors, through interpolation between Chebyshev points of
cells that are two units wide; an error of 1e-8 is good enough to steer a solver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from dp_halfspace.optim.design.blocks import FloatArray
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
from dp_halfspace.optim.objectives._pairs import PAIR_BLOCK, PairProduct
from dp_halfspace.optim.objectives.losses import softplus_curvature

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
