"""What the sums over pairs of scores share: their result, and sums of many numbers in blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from dp_halfspace.optim.design.blocks import FloatArray

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
