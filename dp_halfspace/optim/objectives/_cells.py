"""Tables for sums of a smooth function over pairs of numbers that are grouped in cells.

Cells are two units wide. A function of a number in a cell is a polynomial through the
Chebyshev points of the cell; in each of the equal parts of the cell that polynomial is in
turn replaced by one of low degree, in powers of the place in the part. The tables are exact
to a few units of the last place, which the tests check (``docs/proofs/pairwise.md``, section 2).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dp_halfspace.optim.objectives._pairs import FloatArray
from dp_halfspace.optim.objectives.losses import softplus, softplus_curvature, softplus_slope

__all__ = [
    "CURVATURE_NODES",
    "NODES",
    "REACH",
    "basis",
    "chebyshev_points",
    "curvature_kernel",
    "pair_kernels",
    "part_table",
    "windows",
]

NODES = 22
# Second derivatives only steer the solver: an error of 1e-8 is small enough.
CURVATURE_NODES = 12
# Beyond this many cells, 40 units, exp(-x) < 5e-18.
REACH = 20


class PairKernels(NamedTuple):
    """Products with sources at nodes of neighbouring cells, for targets at nodes of one."""

    positive: FloatArray
    negative: FloatArray


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
    """Return the Lagrange polynomials of a cell as polynomials of low degree in its parts.

    Parameters
    ----------
    parts : int
        Equal parts of a cell.
    powers : int
        Coefficients of a polynomial in one part.

    Returns
    -------
    ndarray of shape (NODES, powers * parts)
        Coefficient of ``x^m`` in part ``k`` in column ``m * parts + k``, where `x` runs from
        -1 to 1 in the part.
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
def pair_kernels() -> PairKernels:
    """Return slope and value for a positive target, side by side, and slope for a negative."""
    x = _differences(NODES)
    positive = np.hstack([softplus_slope(x, 0.0), softplus(x, 0.0)])
    return PairKernels(positive, softplus_slope(-x, 0.0))


@lru_cache(maxsize=1)
def curvature_kernel() -> FloatArray:
    """Return second derivatives, the same for targets of both kinds."""
    return softplus_curvature(_differences(CURVATURE_NODES), 0.0)


def windows(sources: FloatArray, kernel: FloatArray) -> FloatArray:
    """Add the contributions of the cells within reach of each cell.

    Parameters
    ----------
    sources : ndarray of shape (k, n_cells, p)
        Weights at the nodes, for `k` problems.
    kernel : ndarray of shape ((2 * REACH + 1) * p, m)
        For the cells from ``-REACH`` to ``REACH``.
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
