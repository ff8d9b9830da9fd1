"""Dense rows of float32 for the engine: sums of few rows in float32, of groups in float64.

A record changes the sum of its own group only, so that the rounding errors of one group count in
the allowance: ``docs/proofs/engine.md``, section 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._arrays import SingleArray
from dp_halfspace._memory import CACHED_NUMBERS
from dp_halfspace.data.record_weights import Weights
from dp_halfspace.rows.blocks import (
    LONGEST,
    PLAIN_BLOCKS,
    Coefficients,
    FloatArray,
    block_size,
    is_blas_layout,
    sum_of_parts,
    sums_of_squares,
)

# Unit roundoff of float32, round to nearest.
SINGLE_EPS = float(np.finfo(np.float32).epsneg)
# Rounding errors of a group may be at most this fraction of the influence of a record.
SINGLE_SHARE = 2.0**-9
# Number of rows of a group of a second moment, and the largest one of a gradient.
GRAM_GROUP = 256


def group_size(condition: float) -> int:
    """Return how many rows are summed in float32 after a map with this condition number.

    A function of released numbers: the largest power of two whose rounding errors, amplified by the
    map, are within `SINGLE_SHARE` of the influence of a record.
    """
    size = GRAM_GROUP
    while size > 1 and 1.02 * SINGLE_EPS * size * (size + 6) * condition > SINGLE_SHARE:
        size //= 2
    return size


@dataclass(slots=True, eq=False)
class Float32Rows:
    """The rows ``(scale[i] * X[i], constants[i])`` of a dense array of float32.

    `X` is read where it is stored. `scale` and `constants`, of shape (n,) and (n, k), are float32.
    `group` rows of a gradient are summed in float32. Made by `clipped_float32_rows`.
    """

    _matrix: SingleArray
    _scale: SingleArray
    _constants: SingleArray
    group: int

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the logical matrix, constant columns included."""
        return len(self._matrix), self._matrix.shape[1] + self._constants.shape[1]

    @property
    def block_rows(self) -> int:
        """Number of rows in a block; the last one may be smaller."""
        return single_block_size(*self._matrix.shape)

    @property
    def state(self) -> tuple[SingleArray, SingleArray]:
        """Data of the rows in addition to the matrix: their factors and constants."""
        return self._scale, self._constants

    def over(self, X: SingleArray, state: tuple[SingleArray, SingleArray]) -> Float32Rows:
        """Return rows like these of another matrix, each with its own part of a state."""
        return replace(self, _matrix=X, _scale=state[0], _constants=state[1])

    def apply_to_classes(
        self, make: Callable[[Any, Any], Any], class_indices: NDArray[Any], weights: Weights
    ) -> Any:
        """Return ``make(class_indices, weights of the rows)``; see `Rows.apply_to_classes`."""
        return make(class_indices, weights[class_indices].astype(np.float32))

    def clip_images(
        self, to_final: FloatArray, longest: float, last: tuple[float, ...]
    ) -> Float32Rows:
        """Return rows whose images have norm at most `longest`; see `Rows.clip_images`."""
        n, size = self.shape
        bounds = np.empty(n, dtype=np.float32)
        single = np.asfortranarray(to_final.T, dtype=np.float32)
        # Rounding errors of an image, and of the factors that multiply X and its constants, for
        # rows of norm at most one: docs/proofs/engine.md, section 5.
        error = 1.5 * (size + 20) * SINGLE_EPS * float(np.linalg.norm(to_final)) + 2.0**-60
        for lo, *block in self._blocks():
            for part, rows in _write_rows(*block):
                images = rows @ single
                squares = np.einsum("ij,ij->i", images, images)
                bounds[lo + part.start : lo + part.stop] = np.sqrt(squares)
        bounds *= 1.0 + (len(to_final) + 12) * SINGLE_EPS
        bounds += error
        factor = longest * _factors_of(np.maximum(bounds, longest, out=bounds))
        kept, added = factor[:, None] * self._constants, np.full((n, len(last)), last, np.float32)
        condition = 1.01 * float(np.linalg.norm(to_final, 2))
        return replace(
            self,
            _scale=factor * self._scale,
            _constants=np.column_stack([kept, added]),
            group=group_size(max(1.0, condition)),
        )

    def fused_adjoint(self, w: FloatArray, coefficients: Coefficients) -> FloatArray:
        """Return ``Z^T p(Z w)``: margins, `p` and sums of groups in float32; see `Rows`."""
        d = self._matrix.shape[1]
        single = np.ascontiguousarray(w, dtype=np.float32)

        def part(lo: int, X: Any, scale: Any, constants: Any) -> FloatArray:
            with np.errstate(over="ignore", invalid="ignore"):
                margins = X @ single[:d]
                np.multiply(margins.T, scale, out=margins.T)
            # A row without a factor may be too large for a product.
            margins[scale == 0.0] = 0.0
            margins += constants @ single[d:]
            factors = coefficients(margins, lo, lo + len(X))
            block = np.empty(w.shape)
            block[d:] = constants.astype(np.float64).T @ factors.astype(np.float64)
            np.multiply(factors.T, scale, out=factors.T)
            columns = factors.reshape(len(X), -1)
            sums = np.zeros((columns.shape[1], d))
            add_products(columns, X, self.group, sums)
            block[:d] = sums.T.reshape(block[:d].shape)
            return block

        return self._sum_blocks(w.shape, part)

    def gram(self, weights: FloatArray | None = None) -> FloatArray:
        """Return ``Z^T diag(weights) Z``, groups summed in float32; see `Rows`."""
        each = None if weights is None else weights.astype(np.float32)[:, None]
        shape = self.shape[1], self.shape[1]

        def part(lo: int, *block: Any) -> FloatArray:
            out = np.zeros(shape)
            for at, rows in _write_rows(*block):
                left = rows if each is None else rows * each[lo + at.start : lo + at.stop]
                add_products(left, rows, GRAM_GROUP, out)
            return out

        return self._sum_blocks(shape, part)

    def _sum_blocks(self, shape: tuple[int, ...], part: Callable[..., FloatArray]) -> FloatArray:
        """Add the contributions of all blocks."""
        is_plain = len(self._matrix) <= PLAIN_BLOCKS * self.block_rows
        return sum_of_parts((part(*block) for block in self._blocks()), shape, is_plain=is_plain)

    def _blocks(self) -> Iterator[tuple[int, SingleArray, SingleArray, SingleArray]]:
        """Yield the first index, the rows, the factors and the constants of every block."""
        n, step = len(self._matrix), self.block_rows
        is_ready = is_blas_layout(self._matrix)
        for lo in range(0, n, step):
            part = slice(lo, lo + step)
            X = self._matrix[part]
            if not is_ready:  # decided by shape and strides, never by the entries
                X = X.copy(order="K")
            yield lo, X, self._scale[part], self._constants[part]


def _write_rows(
    X: SingleArray, scale: SingleArray, constants: SingleArray
) -> Iterator[tuple[slice, SingleArray]]:
    """Yield the rows of a block, some at a time, in an array that may be overwritten."""
    n_rows, d = X.shape
    size = d + constants.shape[1]
    # The rows that are written at a time stay in the cache, twice as many as of float64.
    step = max(1, 2 * CACHED_NUMBERS // (GRAM_GROUP * size)) * GRAM_GROUP
    work = np.empty((step, size), dtype=np.float32)
    for lo in range(0, n_rows, step):
        part = slice(lo, min(lo + step, n_rows))
        rows = work[: part.stop - lo]
        with np.errstate(over="ignore", invalid="ignore"):
            np.multiply(X[part], scale[part, None], out=rows[:, :d])
        rows[:, d:] = constants[part]
        yield part, rows


def add_products(left: SingleArray, right: SingleArray, group: int, total: FloatArray) -> None:
    """Add ``left^T right`` to a total of float64, groups of rows summed in float32."""
    whole = len(right) - len(right) % group
    for part in slice(0, whole), slice(whole, len(right)):
        size = min(group, part.stop - part.start)
        if size:
            factors = left[part].reshape(-1, size, left.shape[1]).transpose(0, 2, 1)
            sums = np.matmul(factors, right[part].reshape(-1, size, right.shape[1]))
            total += np.add.reduce(sums, axis=0, dtype=np.float64)


def _factors_of(bounds: SingleArray) -> SingleArray:
    """Return the factors that divide rows by bounds on their norms; `bounds` is overwritten.

    The factor is zero for a row that needs one that float32 cannot apply safely: one outside
    ``[1 / LONGEST, LONGEST]``.
    """
    with np.errstate(divide="ignore"):
        factor = np.divide(1.0 - 2.0**-21, bounds, out=bounds)
    factor[(factor < 1.0 / LONGEST) | (factor > LONGEST)] = 0.0
    return factor


def single_block_size(n_rows: int, n_columns: int) -> int:
    """Return how many rows of a float32 matrix are read at a time, in whole groups."""
    size = block_size(n_rows, -(-n_columns // 2), is_sparse=False)
    return size if size < GRAM_GROUP else size - size % GRAM_GROUP


def clipped_float32_rows(
    X: SingleArray, unit: float, longest: float, constants: tuple[float, ...]
) -> Float32Rows:
    """Return the rows ``x / unit``, scaled down to the norm `longest`, and constant columns.

    Notes
    -----
    **Guarantee.**

    - Adjacency: replace-one.
    - Released: nothing; the rows are private.
    - Sensitivity: a row has norm at most `longest` before its constants, and depends on its own
      record and on public numbers; sums differ in the group of the replaced record alone.
    - Proof: ``docs/proofs/engine.md``, section 5.
    """
    n, d = X.shape
    bounds, step = np.empty(n, dtype=np.float32), single_block_size(n, d)
    for lo in range(0, n, step):
        rows = X[lo : lo + step]
        with np.errstate(over="ignore", under="ignore"):
            squares = np.einsum("ij,ij->i", rows, rows).astype(np.float64)
        # Other sums of squares are accurate in float32.
        unsafe = np.flatnonzero(~((squares > 1.0 / LONGEST) & (squares < LONGEST**2)))
        if unsafe.size:
            # The result is in C order for every order of X and every number of rows.
            squares[unsafe] = sums_of_squares(np.ascontiguousarray(rows[unsafe], dtype=np.float64))
        with np.errstate(over="ignore"):
            bounds[lo : lo + step] = np.sqrt(squares)
    bounds *= 1.0 + (d + 12) * SINGLE_EPS
    scale = longest * _factors_of(np.maximum(bounds, longest * unit, out=bounds))
    # There may be no constants.
    columns = np.full((n, len(constants)), constants, np.float32)
    return Float32Rows(X, scale.astype(np.float32), columns, group_size(1.0))
