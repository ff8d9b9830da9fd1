"""Dense rows of float32, with sums of few rows in float32 and of groups in float64.

Computed lengths are upper bounds, so rows keep a norm of at most one. Sums of short groups are
taken in float32 and added in float64. Replacing a record changes the sum of its own group only, so
only the rounding errors of one group count. Proofs: ``docs/proofs/certificate.md``, section 9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import strmm

from dp_halfspace.data.record_weights import Weights
from dp_halfspace.rows.blocks import (
    LONGEST,
    PLAIN_BLOCKS,
    FloatArray,
    ThinMap,
    block_size,
    is_blas_layout,
    sums_of_squares,
)
from dp_halfspace.rows.rows import add_part

if TYPE_CHECKING:
    pass


SingleArray: TypeAlias = NDArray[np.float32]
SingleBlock: TypeAlias = tuple[int, SingleArray, SingleArray, Any]

# Unit roundoff of float32, round to nearest.
SINGLE_EPS = 2.0**-24
# Rounding errors of a group may be at most this fraction of the influence of a record.
SINGLE_SHARE = 2.0**-9
# Largest number of rows of a group of a gradient.
_LARGEST_GROUP = 256
# Number of rows of a group of a second moment.
GRAM_GROUP = 256
# Number of entries that are written at a time.
_WORK_ENTRIES = 2**16
# Number of features that are computed at a time.
_FEATURE_ENTRIES = 3 * 2**18
# Sums of squares in this range are accurate in float32.
SAFE_SQUARES = (2.0**-60, 2.0**120)
# A row that needs a factor outside this range becomes zero.
_SAFE_FACTORS = (2.0**-60, 2.0**60)


def group_size(condition: float) -> int:
    """Return how many rows are summed in float32 after a map with this condition number.

    A function of released numbers: the largest power of two whose rounding errors, amplified by the
    map, are within `SINGLE_SHARE` of the influence of a record.
    """
    size = _LARGEST_GROUP
    while size > 1 and 1.02 * SINGLE_EPS * size * (size + 6) * condition > SINGLE_SHARE:
        size //= 2
    return size


@dataclass(slots=True, eq=False)
class SingleRows:
    """The rows ``scale[i] * (X[i], constant[i])`` of a dense float32 array, in float32.

    The class has those methods of `Rows` that the default steps use. `constant` is a number for all
    rows, or None for no such column. `group` rows of a gradient are summed in float32. The rows are
    made by `single_normalised_rows`.
    """

    _matrix: SingleArray
    _constant: SingleArray | np.float32 | None
    _scale: Any
    row_bound: float
    group: int

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the logical matrix, constant column included."""
        n, d = self._matrix.shape
        return n, d + (self._constant is not None)

    @property
    def block_rows(self) -> int:
        """Number of rows in a block; the last one may be smaller."""
        return single_block_size(*self._matrix.shape)

    @property
    def state(self) -> tuple[SingleArray | None]:
        """Data of the rows in addition to the matrix: their factors."""
        return (self._scale,)

    def over(self, X: SingleArray, state: tuple[SingleArray]) -> SingleRows:
        """Return rows like these of another matrix, each with its own factor."""
        return replace(self, _matrix=X, _scale=state[0])

    def apply_to_classes(
        self, make: Callable[[Any, FloatArray], Any], class_indices: NDArray[Any], weights: Weights
    ) -> Any:
        """Return ``make(class_indices, weights of the rows)``; see `Rows.apply_to_classes`."""
        return make(class_indices, weights[class_indices].astype(np.float32))

    def normalise_images(
        self, transform: FloatArray | ThinMap, *, row_bound: float, condition: float
    ) -> SingleRows:
        """Return the rows divided by an upper bound on the norm of their image.

        `row_bound` is a public bound on the norm of the new rows, `condition` that of the map. A
        row that needs a factor outside the range of float32 becomes zero.
        """
        n, size = self.shape
        bounds = np.empty(n, dtype=np.float32)
        formed = transform if isinstance(transform, np.ndarray) else transform @ np.eye(size)
        root = np.asfortranarray(np.linalg.qr(formed, mode="r"), dtype=np.float32)
        error = 1.02 * (size + 12) * SINGLE_EPS * float(np.linalg.norm(formed)) + 2.0**-60
        for lo, *block in self._blocks():
            for part, rows in _write_rows(*block):
                images = strmm(1.0, root, rows.T, overwrite_b=1).T
                squares = np.einsum("ij,ij->i", images, images)
                bounds[lo + part.start : lo + part.stop] = np.sqrt(squares)
        bounds *= 1.0 + (size + 12) * SINGLE_EPS
        bounds += error * self.row_bound
        factor = factors_of(bounds)
        factor *= self._scale
        return replace(self, _scale=factor, row_bound=row_bound, group=group_size(condition))

    def margins_over_constant(self, w: FloatArray) -> SingleArray:
        """Return margins of the features over the constant column; see `Rows`."""
        single = np.ascontiguousarray(w, dtype=np.float32)
        out = np.empty(self.shape[0], dtype=np.float32)
        for lo, X, scale, constant in self._blocks():
            with np.errstate(over="ignore", invalid="ignore"):
                out[lo : lo + len(X)] = X @ single / constant
            out[lo : lo + len(X)][scale == 0.0] = 0.0
        return out

    def fused_adjoint(
        self,
        w: FloatArray,
        coefficients: Callable[[Any, int, int], Any],
        part: tuple[int, int] = (0, 1),
    ) -> FloatArray:
        """Return ``Z^T p(Z w)``: margins, `p` and sums of groups in float32; see `Rows`.

        With a `part` (i, k), block i and every k-th block after it are read.
        """
        d = len(w) - (self._constant is not None)
        single = np.ascontiguousarray(w, dtype=np.float32)
        total = np.zeros(w.shape)
        is_plain = len(self._matrix) <= PLAIN_BLOCKS * self.block_rows
        missing = None if is_plain else np.zeros(w.shape)
        for lo, X, scale, constant in self._blocks(part):
            with np.errstate(over="ignore", invalid="ignore"):
                margins = X @ single[:d]
                if constant is not None:
                    margins += np.multiply.outer(constant, single[d])
                # The transposed views have one factor for each row, with one output or more.
                np.multiply(margins.T, scale, out=margins.T)
            # Rows without a factor may be too large for a product. They are read in place, because
            # products of the other rows with a copy of another layout would be rounded differently.
            margins[scale == 0.0] = 0.0
            factors = coefficients(margins, lo, lo + len(X))
            np.multiply(factors.T, scale, out=factors.T)
            columns = factors.reshape(len(X), -1)
            sums, block = np.zeros((columns.shape[1], d)), np.empty(w.shape)
            add_products(columns, X, self.group, sums)
            block[:d] = sums.T.reshape(block[:d].shape)
            if isinstance(constant, np.ndarray):
                block[d] = constant.astype(np.float64) @ factors.astype(np.float64)
            elif constant is not None:
                block[d] = float(constant) * np.add.reduce(factors, axis=0, dtype=np.float64)
            add_part(block, total, missing)
        return total

    def gram(self) -> FloatArray:
        """Return ``Z^T Z``, groups summed in float32; see `Rows`."""
        total = np.zeros((self.shape[1], self.shape[1]))
        is_plain = len(self._matrix) <= PLAIN_BLOCKS * self.block_rows
        missing = None if is_plain else np.zeros_like(total)
        for _, *block in self._blocks():
            part = np.zeros_like(total)
            for _, rows in _write_rows(*block):
                add_products(rows, rows, GRAM_GROUP, part)
            add_part(part, total, missing)
        return total

    def _blocks(self, part: tuple[int, int] = (0, 1)) -> Iterator[SingleBlock]:
        """Yield the first index, the rows, the factors and the constants of every block."""
        n, step, constant = len(self._matrix), self.block_rows, self._constant
        is_ready = is_blas_layout(self._matrix)
        for lo in range(part[0] * step, n, part[1] * step):
            X, scale = self._matrix[lo : lo + step], self._scale[lo : lo + step]
            if not is_ready:  # decided by shape and strides, never by the entries
                X = X.copy(order="K")
            own = constant[lo : lo + step] if isinstance(constant, np.ndarray) else constant
            yield lo, X, scale, own


def _write_rows(
    X: SingleArray, scale: SingleArray, constant: Any
) -> Iterator[tuple[slice, SingleArray]]:
    """Yield the rows of a block, some at a time, in an array that may be overwritten."""
    n_rows, d = X.shape
    size = d + (constant is not None)
    step = max(1, _WORK_ENTRIES // (GRAM_GROUP * size)) * GRAM_GROUP
    work = np.empty((step, size), dtype=np.float32)
    for lo in range(0, n_rows, step):
        part = slice(lo, min(lo + step, n_rows))
        rows = work[: part.stop - lo]
        np.multiply(X[part], scale[part, None], out=rows[:, :d])
        if constant is not None:
            own = constant[part] if isinstance(constant, np.ndarray) else constant
            np.multiply(own, scale[part], out=rows[:, d])
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


def factors_of(bounds: SingleArray) -> SingleArray:
    """Return the factors that divide rows by bounds on their norms; `bounds` is overwritten.

    The factor is zero for a row that needs one outside the range of float32.
    """
    with np.errstate(divide="ignore"):
        factor = np.divide(1.0 - 2.0**-21, bounds, out=bounds)
    factor[(factor < _SAFE_FACTORS[0]) | (factor > _SAFE_FACTORS[1])] = 0.0
    return factor


def single_block_size(n_rows: int, n_columns: int) -> int:
    """Return how many rows of a float32 matrix are read at a time, in whole groups."""
    size = block_size(n_rows, -(-n_columns // 2), is_sparse=False)
    return size if size < _LARGEST_GROUP else size - size % _LARGEST_GROUP


def feature_block_size(n_rows: int, n_features: int) -> int:
    """Return how many rows of features are computed at a time, in whole groups if possible."""
    n_groups = max(1, _FEATURE_ENTRIES // (_LARGEST_GROUP * n_features))
    return max(1, min(n_rows, n_groups * _LARGEST_GROUP))


def single_normalised_rows(
    X: SingleArray, data_norm: float, constant: float | None, *, clips: bool = False
) -> SingleRows:
    """Return the rows ``[x / data_norm, constant]``, divided by their norm; see `normalised_rows`.

    `data_norm` must be within 2^20 of one, and the ratio of `constant` to its default within 2^22.

    Notes
    -----
    **Guarantee.**

    - Adjacency: replace-one.
    - Released: nothing; the rows are private.
    - Sensitivity: a row has norm at most one, and sums differ in the group of the replaced record
      alone.
    - Proof: ``docs/proofs/certificate.md``, section 9.
    """
    n, size = len(X), X.shape[1] + (constant is not None)
    bounds, step = np.empty(n, dtype=np.float32), single_block_size(*X.shape)
    column: Any = None
    if constant is not None:
        column = np.empty(n, np.float32) if clips else np.float32(constant * data_norm)
    for lo in range(0, n, step):
        block = slice(lo, lo + step)
        rows, last = X[block], column
        with np.errstate(over="ignore", under="ignore"):
            squares = np.einsum("ij,ij->i", rows, rows).astype(np.float64)
        unsafe = np.flatnonzero(~((squares > SAFE_SQUARES[0]) & (squares < SAFE_SQUARES[1])))
        if unsafe.size:
            # The result is in C order for every order of X and every number of rows.
            exact = np.ascontiguousarray(rows[unsafe], dtype=np.float64)
            squares[unsafe] = sums_of_squares(exact)
        if isinstance(column, np.ndarray):
            # A row is not scaled down; instead its entry of the constant column is scaled up.
            column[block] = constant * np.clip(np.sqrt(squares), data_norm, LONGEST)
            last = column[block]
        if last is not None:
            squares += np.square(last, dtype=np.float64)
        with np.errstate(over="ignore"):
            bounds[block] = np.sqrt(squares)
    bounds *= 1.0 + (size + 12) * SINGLE_EPS
    return SingleRows(X, column, factors_of(bounds), 1.0, group_size(1.0))


def sample_groups(X: Any, stride: int) -> Any:
    """Return the rows of every `stride`-th group."""
    return X[np.arange(len(X)) // GRAM_GROUP % stride == 0]
