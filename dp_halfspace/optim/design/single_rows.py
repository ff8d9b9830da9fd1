"""Dense rows of float32, in float32: what one record can change is a sum of few rows.

Lengths are bounded from above, so rows keep their norm. Sums are those of short groups, added in
float64: all groups but that of the replaced record stay the same to the last bit, so only the
roundings of one count. Proofs: ``docs/proofs/certificate.md``, section 9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import strmm

from dp_halfspace.optim.design.blocks import Block, FloatArray, ThinMap, sums_of_squares, times
from dp_halfspace.optim.design.rows import Rows, inverse_lengths

__all__ = [
    "GRAM_GROUP",
    "SINGLE_SHARE",
    "SINGLE_UNIT",
    "SingleRows",
    "group_size",
    "single_unit_rows",
]

SingleArray: TypeAlias = NDArray[np.float32]

# Unit roundoff of float32, round to nearest.
SINGLE_UNIT = 2.0**-24
# What the roundings of a group may add to the reach of a record, relative to it.
SINGLE_SHARE = 2.0**-9
_LARGEST_GROUP = 256
# Rows of a group of a second moment.
GRAM_GROUP = 128
_WORK_ENTRIES = 2**16
# Sums of squares within these are accurate in float32; smaller factors of a row become zero.
_SAFE, _SMALLEST = (2.0**-60, 2.0**120), 2.0**-120


def group_size(condition: float) -> int:
    """Return how many rows are summed in float32 behind a map of this condition number.

    A function of what was released: the largest power of two whose roundings, stretched by the
    map, are within `SINGLE_SHARE` of what a record can do.
    """
    size = _LARGEST_GROUP
    while size > 1 and 1.02 * SINGLE_UNIT * size * (size + 6) * condition > SINGLE_SHARE:
        size //= 2
    return size


class SingleRows(Rows):
    """Rows of a dense float32 array with factors in float32; made by `single_unit_rows`.

    Before `behind`, sums of a gradient are for rows that no map has stretched.
    """

    __slots__ = ("_group",)
    precision: ClassVar[Any] = np.float32
    extreme: ClassVar[float] = 2.0**40

    def __init__(self, *given: Any, condition: float = 1.0, **named: Any) -> None:
        super().__init__(*given, **named)
        self._group = group_size(condition)

    def behind(self, condition: float) -> SingleRows:
        """Return the same rows for sums that a map of this condition number will stretch."""
        state = {"row_bound": self._bound, "condition": condition}
        return SingleRows(self._matrix, self._scale, self._bias, **state)

    def rescaled(self, factor: FloatArray, *, row_bound: float) -> SingleRows:
        """Return the rows, each times its own factor and hardly shorter; see `Rows`."""
        single = (np.where(factor > _SMALLEST, factor, 0.0) * (1.0 - 2.0**-22)).astype(np.float32)
        scale = single if self._scale is None else single * self._scale
        bias = None if self._bias is None else single * self._bias
        return SingleRows(self._matrix, scale, bias, row_bound=row_bound)

    def fused_adjoint(
        self, w: FloatArray, coefficients: Callable[[Any, int, int], Any]
    ) -> FloatArray:
        """Return ``Z^T p(Z w)``: margins, `p` and sums of groups in float32; see `Rows`."""
        single = np.ascontiguousarray(w, dtype=np.float32)

        def add(block: Block, out: FloatArray) -> None:
            p = coefficients(times(block, single), block.lo, block.hi)
            _add_groups(block, p, self._group, out)

        return self._summed(w.shape, add)

    def gram(self, weights: FloatArray) -> FloatArray:
        """Return ``Z^T diag(weights) Z``, groups summed in float32; see `Rows`."""

        def add(block: Block, out: FloatArray) -> None:
            root, total = np.sqrt(weights[block.lo : block.hi]), np.zeros_like(out)
            for where, rows in self._filled(block):
                rows *= root[where, None]
                for part in _grouped(rows, GRAM_GROUP):
                    products = np.matmul(part.transpose(0, 2, 1), part)
                    total += products.sum(axis=0, dtype=np.float64)
            out += total

        return self._summed((self.shape[1], self.shape[1]), add)

    def _lengths(self, transform: FloatArray | ThinMap | None) -> FloatArray:
        """Return bounds on the norms of rows, or of their images, that are hardly larger."""
        n, size = self.shape
        bounds = np.empty(n)
        if transform is None:
            for block in self._blocks():
                bounds[block.lo : block.hi] = _row_bounds(block)
            return bounds
        formed = transform if isinstance(transform, np.ndarray) else transform @ np.eye(size)
        root = np.asfortranarray(np.linalg.qr(formed, mode="r"), dtype=np.float32)
        error = 1.02 * (size + 8) * SINGLE_UNIT * float(np.linalg.norm(formed)) + 2.0**-60
        for block in self._blocks():
            for where, rows in self._filled(block):
                images = strmm(1.0, root, rows.T, overwrite_b=1).T
                squares = np.einsum("ij,ij->i", images, images).astype(np.float64)
                bounds[block.lo : block.hi][where] = np.sqrt(squares)
        bounds *= 1.0 + (size + 8) * SINGLE_UNIT
        bounds += error * self.row_bound
        return bounds

    def _filled(self, block: Block) -> Iterator[tuple[slice, SingleArray]]:
        """Write out the rows of a block in float32, some at a time, which may be overwritten."""
        d = block.matrix.shape[1]
        step = max(1, _WORK_ENTRIES // (GRAM_GROUP * self.shape[1])) * GRAM_GROUP
        work = np.empty((step, self.shape[1]), dtype=np.float32)
        for lo in range(0, block.hi - block.lo, step):
            where = slice(lo, min(lo + step, block.hi - block.lo))
            rows = work[: where.stop - lo]
            scale = 1.0 if block.scale is None else block.scale[where, None]
            np.multiply(block.matrix[where], scale, out=rows[:, :d])
            if block.bias is not None:
                rows[:, d] = block.bias[where] if np.ndim(block.bias) else block.bias
            yield where, rows


def single_unit_rows(X: SingleArray, data_norm: float, bias: float | None) -> SingleRows:
    """Return the rows ``[x / data_norm, bias]``, divided by their norm; see `unit_rows`.

    `data_norm` must be within 2^20 of one.
    """
    constant = None if bias is None else np.float32(bias * data_norm)
    rows = SingleRows(X, None, constant, row_bound=np.inf)
    return rows.rescaled(inverse_lengths(rows.lengths(), rows.shape[1]), row_bound=1.0)


def _row_bounds(block: Block) -> FloatArray:
    """Bound the norms of the rows of a block; those out of reach of float32 in float64."""
    with np.errstate(over="ignore", under="ignore"):
        squares = np.einsum("ij,ij->i", block.matrix, block.matrix).astype(np.float64)
    unsafe = np.flatnonzero(~((squares > _SAFE[0]) & (squares < _SAFE[1])))
    if unsafe.size:
        squares[unsafe] = sums_of_squares(block.matrix[unsafe].astype(np.float64))
    if block.scale is not None:
        squares *= np.square(block.scale, dtype=np.float64)
    if block.bias is not None:
        squares += np.square(block.bias, dtype=np.float64)
    return np.sqrt(squares) * (1.0 + (block.matrix.shape[1] + 8) * SINGLE_UNIT)


def _grouped(rows: Any, group: int) -> Iterator[Any]:
    """Yield the rows in groups of a size, then what is left, as arrays (groups, size, columns)."""
    whole = len(rows) - len(rows) % group
    if whole:
        yield rows[:whole].reshape(-1, group, *rows.shape[1:])
    if whole < len(rows):
        yield rows[whole:][None]


def _add_groups(block: Block, p: SingleArray, group: int, out: FloatArray) -> None:
    """Add the block's part of ``Z^T p``, summed in float32 within groups, in float64 beyond."""
    d = block.matrix.shape[1]
    scaled = (p if block.scale is None else (p.T * block.scale).T).reshape(len(p), -1)
    total = np.zeros(out[:d].shape)
    for rows, factors in zip(_grouped(block.matrix, group), _grouped(scaled, group), strict=True):
        sums = np.matmul(factors.transpose(0, 2, 1), rows)
        total += sums.sum(axis=0, dtype=np.float64).T.reshape(total.shape)
    # One addition for each block: that is what the bound on rounding errors counts.
    out[:d] += total
    if block.bias is not None:
        out[d] += (p.T * block.bias).T.sum(axis=0, dtype=np.float64)
