"""Blocks of consecutive rows of a design matrix: products, and bounds on the norms of rows.

The sizes of the blocks and the order in which they are added are public. A record must never be
able to make the factor of another record, or a result, undefined, because that would be visible
with certainty. Proofs: ``docs/proofs/certificate.md``, section 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dp_halfspace._arrays import FloatArray as FloatArray  # noqa: PLC0414 (others import it here)
from dp_halfspace._memory import AT_ONCE, CACHED_NUMBERS, LONG_BLOCK
from dp_halfspace.data.chunks import add_compensated
from dp_halfspace.data.sparse_rows import checked_csr
from dp_halfspace.projection.linear import to_dense

# Number of entries of a block: 1.5 MB of float64, which stay in the cache between their two uses.
_SUMMED_ENTRIES = 3 * 2**16
# Largest number of blocks that are added by ordinary summation. More blocks are added by Kahan
# summation, whose error does not grow with their number.
PLAIN_BLOCKS = 256
# Rows are scaled to norm one up to this norm, in units of the public scale.
LONGEST = 2.0**60
# Sums of squares in this range are accurate, because no relevant term under- or overflows.
_SAFE = (1e-200, 1e200)


def into_ball(point: FloatArray, radius: float) -> FloatArray:
    """Return the point of the ball around zero that is nearest to `point`."""
    norm = float(np.linalg.norm(point))
    return point if norm <= radius else point * (radius / norm)


# Maps the margins of the rows lo to hi - 1, which may be overwritten, to numbers for these rows.
Coefficients: TypeAlias = Callable[[Any, int, int], Any]


class Block(NamedTuple):
    """Consecutive rows in float64, with the factors and the constants that are not yet applied.

    `constant` is the last column, a number for all rows or one for each, or an array of several
    columns.
    """

    lo: int
    hi: int
    matrix: Any
    transpose: Any
    scale: FloatArray | None
    constant: FloatArray | float | None


def block_size(n_rows: int, n_columns: int, *, is_sparse: bool) -> int:
    """Return how many rows of a matrix of this shape are read, and summed, at a time.

    The result is between 1 and `n_rows`. It does not depend on the number of nonzero entries, which
    is private.

    Examples
    --------
    >>> from dp_halfspace.rows.blocks import block_size
    >>> block_size(100_000, 50, is_sparse=False)
    3932
    """
    size = LONG_BLOCK if is_sparse else _SUMMED_ENTRIES // max(n_columns, 1)
    return max(1, min(n_rows, size, LONG_BLOCK))


def sum_of_parts(
    parts: Iterable[FloatArray], shape: tuple[int, ...], *, is_plain: bool
) -> FloatArray:
    """Add the contributions of blocks in their order, each by the one addition of the error bounds.

    They are added by Kahan's rule unless there are few: ``docs/proofs/certificate.md``, section 8,
    ``persons.md``, section 3.
    """
    total = np.zeros(shape)
    return sum(parts, total) if is_plain else add_compensated(chain([total], parts))


def sparse_view(kind: Any, arrays: tuple[Any, Any, Any], shape: tuple[int, int]) -> Any:
    """Return a sparse matrix of views; the constructor would copy parts of larger arrays."""
    matrix = kind(shape, dtype=arrays[0].dtype)
    matrix.data, matrix.indices, matrix.indptr = arrays
    return matrix


def is_blas_layout(X: Any) -> bool:
    """Return whether X is an array, and products with blocks of its rows need no copy."""
    if not isinstance(X, np.ndarray):
        return False
    inner, outer = sorted(X.strides)
    return bool(X.flags.aligned and inner == X.itemsize and outer % X.itemsize == 0)


def is_in_place(X: Any) -> bool:
    """Return whether blocks of rows of a matrix can be used in place, without work space."""
    return sparse.issparse(X) or (is_blas_layout(X) and X.dtype == np.float64)


def multiply_rows(block: Block, w: FloatArray) -> FloatArray:
    """Return the margins of a block."""
    d = block.matrix.shape[1]
    margins: FloatArray = block.matrix @ w[:d]
    if block.scale is not None:
        np.multiply(margins.T, block.scale, out=margins.T)
    constant = block.constant
    if isinstance(constant, np.ndarray) and constant.ndim > 1:
        margins += constant @ w[d:]
    elif constant is not None:
        margins += np.multiply.outer(constant, w[d])
    return margins


def adjoint_part(block: Block, p: FloatArray) -> FloatArray:
    """Return the contribution of the block to ``Z^T p``."""
    d = block.matrix.shape[1]
    out = np.zeros((d + n_constants(block.constant), *p.shape[1:]))
    scaled = p if block.scale is None else (p.T * block.scale).T
    out[:d] += block.transpose @ scaled
    if isinstance(block.constant, np.ndarray):
        out[d:] += block.constant.T @ p if block.constant.ndim > 1 else (block.constant @ p)[None]
    elif block.constant is not None:
        out[d] += block.constant * p.sum(axis=0)
    return out


def row_squares(block: Block) -> FloatArray:
    """Return the squared norms of the logical rows."""
    squares = sums_of_squares(block.matrix)
    if block.scale is not None:
        squares = squares * block.scale**2
    if block.constant is not None:
        own = np.square(block.constant)
        squares = squares + (own.sum(axis=1) if own.ndim > 1 else own)
    return squares


def n_constants(constant: FloatArray | float | None) -> int:
    """Return how many columns follow those of the matrix."""
    if constant is None:
        return 0
    return constant.shape[1] if isinstance(constant, np.ndarray) and constant.ndim > 1 else 1


def sums_of_squares(matrix: Any) -> FloatArray:
    """Return the squared norms of the rows of an array or a CSR matrix, as stored."""
    if not sparse.issparse(matrix):
        with np.errstate(over="ignore"):
            return np.asarray(np.einsum("ij,ij->i", matrix, matrix), dtype=np.float64)
    n_rows, step = matrix.shape[0], AT_ONCE
    squares = np.empty(n_rows)
    for lo in range(0, n_rows, step):
        ends = matrix.indptr[lo : lo + step + 1]
        # Squares are computed in float64 for every stored type; in float32 they would be rounded or
        # overflow.
        data = matrix.data[ends[0] : ends[-1]].astype(np.float64)
        row = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        with np.errstate(over="ignore"):
            np.square(data, out=data)
        squares[lo : lo + step] = np.bincount(row, data, minlength=len(ends) - 1)
    return squares


def write_rows(block: Block, out: FloatArray) -> None:
    """Write the logical rows of a block."""
    d = block.matrix.shape[1]
    scale = 1.0 if block.scale is None else block.scale[:, None]
    np.multiply(to_dense(block.matrix), scale, out=out[:, :d])
    if block.constant is not None:
        out[:, d:].T[...] = np.transpose(block.constant)


def take_rows(matrix: Any, lo: int, hi: int) -> Any:
    """Return some rows of a CSR matrix, as views."""
    ends = matrix.indptr[lo : hi + 1]
    stored = slice(ends[0], ends[-1])
    arrays = (matrix.data[stored], matrix.indices[stored], ends - ends[0])
    return sparse_view(sparse.csr_array, arrays, (hi - lo, matrix.shape[1]))


def gram_part(block: Block, weights: FloatArray) -> FloatArray:
    """Return the contribution of the block to ``Z^T diag(weights) Z``."""
    d = block.matrix.shape[1]
    root = np.sqrt(weights)
    matrix, constant = block.matrix, block.constant
    factor = root if block.scale is None else root * block.scale
    used = np.flatnonzero(root)
    if 2 * used.size < root.size:
        matrix, factor, root = matrix[used], factor[used], root[used]
        constant = constant[used] if isinstance(constant, np.ndarray) else constant
    size = d + n_constants(constant)
    part = np.zeros((size, size))
    # Rows are scaled some at a time, because a scaled copy of all could be as large as the matrix.
    is_sparse = sparse.issparse(matrix)
    step = max(1, len(factor) if is_sparse else CACHED_NUMBERS // max(d, 1))
    for lo in range(0, len(factor), step):
        rows = slice(lo, lo + step)
        scaled = scale_rows(matrix if is_sparse else matrix[rows], factor[rows])
        part[:d, :d] += to_dense(scaled.T @ scaled)
        if constant is not None:
            each = constant[rows] if isinstance(constant, np.ndarray) else constant
            weighted = np.transpose(root[rows] * np.transpose(each))
            cross = scaled.T @ weighted
            part[d:, :d] += cross.T.reshape(-1, d)
            part[:d, d:] += cross.reshape(d, -1)
            part[d:, d:] += weighted.T @ weighted
    return part


def scale_rows(matrix: Any, factor: FloatArray) -> Any:
    """Multiply rows by factors in float64; the indices of a CSR matrix are shared."""
    if not sparse.issparse(matrix):
        return np.multiply(matrix, factor[:, None], dtype=np.float64)
    data = matrix.data.astype(np.float64) * np.repeat(factor, np.diff(matrix.indptr))
    return sparse_view(sparse.csr_array, (data, matrix.indices, matrix.indptr), matrix.shape)


def canonical_csr(X: Any) -> Any:
    """Return a CSR array without duplicate entries, which shares memory if possible.

    If an entry is stored twice, the norm of a row is not the norm of its stored numbers. Duplicates
    are found by the indices, because the flag on `X` may be out of date. The result is finite if
    `X` is finite.
    """
    X = checked_csr(X)
    shared = sparse.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
    if shared.has_canonical_format:
        return shared
    summed = sparse.csr_array(shared, dtype=np.float64, copy=True)
    with np.errstate(over="ignore"):
        summed.sum_duplicates()
    largest = np.finfo(np.float64).max
    np.clip(summed.data, -largest, largest, out=summed.data)
    return summed


def clip_scales(X: Any, bound: float) -> FloatArray:
    """Return the factors that bring every row of `X` to a norm of at most `bound`.

    Parameters
    ----------
    X : ndarray, csr_array or csr_matrix of shape (n, d)
        Finite real numbers, of any magnitude.
    bound : float
        Public bound, in ``[1e-100, 1e100]``.

    Returns
    -------
    ndarray of shape (n,)
        In [0, 1]. The real number ``||scale[i] * X[i]||`` is at most `bound`, and so is the
        norm after the product has been rounded entry by entry. Entry ``i`` depends on row
        ``i``, the bound and ``d`` only.

    Notes
    -----
    **Guarantee.**

    - Adjacency: replace-one.
    - Released: nothing; the factors are private.
    - Sensitivity: a scaled row has a norm of at most `bound`, and replacing a record changes no
      bit of the factors of others.
    - Proof: ``docs/proofs/certificate.md``, section 1.

    Rows within ``4 (d + 8)`` units of rounding of the bound are scaled too, since the
    computed norm cannot tell on which side they are.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.rows.blocks import clip_scales
    >>> clip_scales(np.array([[3e200, 4e200], [0.0, 0.0], [0.6, 0.0]]), 1.0)
    array([2.e-201, 1.e+000, 1.e+000])
    """
    return scales_and_lengths(X, bound)[0]


def scales_and_lengths(X: Any, bound: float) -> tuple[FloatArray, FloatArray]:
    """Return the factors, and the norms of the scaled rows."""
    if not 1e-100 <= bound <= 1e100:
        raise ValueError("the bound on the norm of a row must be in [1e-100, 1e100]")
    if sparse.issparse(X):
        X = canonical_csr(X)
    n, d = X.shape
    target = bound * (1.0 - (d + 8) * 2.0**-52)
    step = min(AT_ONCE, block_size(n, d, is_sparse=False))
    if sparse.issparse(X):
        squares = sums_of_squares(X)
    else:
        squares = np.empty(n)
        for lo in range(0, n, step):
            squares[lo : lo + step] = sums_of_squares(_to_row_order(X[lo : lo + step]))
    scales = _scales_from_squares(squares, target)
    with np.errstate(invalid="ignore"):
        lengths = scales * np.sqrt(squares)
    unsafe = np.flatnonzero(~((squares > _SAFE[0]) & (squares < _SAFE[1])))
    for lo in range(0, unsafe.size, step):
        rows = unsafe[lo : lo + step]
        largest, shapes = _split_largest(X[rows])
        ratios = sums_of_squares(shapes)
        scales[rows] = _scales_from_ratios(largest, ratios, target)
        with np.errstate(over="ignore"):
            lengths[rows] = np.minimum(largest * np.sqrt(ratios), target)
    return scales, lengths


def _to_row_order(rows: NDArray[Any]) -> FloatArray:
    """Cast some rows to C order in float64, so that all layouts and types are treated alike."""
    return np.ascontiguousarray(rows, dtype=np.float64)


def _scales_from_squares(squares: FloatArray, target: float) -> FloatArray:
    """Return min(1, target / norm) for norms that are neither tiny nor huge."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.minimum(1.0, target / np.sqrt(squares)))


def _split_largest(rows: Any) -> tuple[FloatArray, Any]:
    """Return the largest absolute value of every row, and the rows divided by it."""
    if not sparse.issparse(rows):
        rows = _to_row_order(rows)
        largest = np.abs(rows).max(axis=1, initial=0.0)
        return largest, rows / np.where(largest > 0.0, largest, 1.0)[:, None]
    data = rows.data.astype(np.float64)
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    largest = np.zeros(rows.shape[0])
    np.maximum.at(largest, row, np.abs(data))
    data /= np.where(largest > 0.0, largest, 1.0)[row]
    return largest, sparse.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)


def _scales_from_ratios(largest: FloatArray, squares: FloatArray, target: float) -> FloatArray:
    """Return min(1, target / norm) for ``norm = largest * sqrt(squares)``; 1 for a zero row."""
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        factor = target / largest / np.sqrt(squares)
    factor = np.where(largest > 0.0, np.minimum(1.0, factor), 1.0)
    # A subnormal quotient has an absolute error of up to two spacings, which are subtracted; from
    # other factors this subtracts nothing.
    return np.asarray(np.maximum(factor - 2.0 * math.ulp(0.0), 0.0))
