"""Factors that bring rows to a bounded norm, in floating point and without exception.

One record must never be able to make the factor of another one, or a result, undefined:
that would be visible with certainty. Proofs in ``docs/proofs/certificate.md``, section 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dp_halfspace.optim.design.blocks import FloatArray, block_size, sums_of_squares

_MAX_ROWS = 1024  # a block of sparse rows is copied more than once
# Sums of squares in this range are accurate: nothing that matters under- or overflows.
_SAFE = (1e-200, 1e200)
_TINY = 2.0**-1000


def canonical_csr(X: Any) -> Any:
    """Return a CSR array without duplicate entries that shares memory when it can.

    The norm of a row is not the norm of its stored numbers when an entry is stored twice.
    Whether it is, is looked up in the indices: the flag on `X` may be out of date.
    What is returned is finite when `X` is.
    """
    if X.format != "csr":
        raise ValueError("sparse X must be in CSR format")
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
    Rows within ``4 (d + 8)`` units of rounding of the bound are scaled too, since the
    computed norm cannot tell on which side they are.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.optim import clip_scales
    >>> clip_scales(np.array([[3e200, 4e200], [0.0, 0.0], [0.6, 0.0]]), 1.0)
    array([2.e-201, 1.e+000, 1.e+000])
    """
    return scales_and_lengths(X, bound)[0]


def scales_and_lengths(X: Any, bound: float) -> tuple[FloatArray, FloatArray]:
    """Return the factors, and the norms of the rows after them."""
    if not 1e-100 <= bound <= 1e100:
        raise ValueError("the bound on the norm of a row must be in [1e-100, 1e100]")
    if sparse.issparse(X):
        X = canonical_csr(X)
    n, d = X.shape
    target = bound * (1.0 - (d + 8) * 2.0**-52)
    step = min(_MAX_ROWS, block_size(n, d, is_sparse=False))
    if sparse.issparse(X):
        squares = sums_of_squares(X)
    else:
        squares = np.empty(n)
        for lo in range(0, n, step):
            squares[lo : lo + step] = sums_of_squares(_in_row_order(X[lo : lo + step]))
    scales = _from_squares(squares, target)
    with np.errstate(invalid="ignore"):
        lengths = scales * np.sqrt(squares)
    unsafe = np.flatnonzero(~((squares > _SAFE[0]) & (squares < _SAFE[1])))
    for lo in range(0, unsafe.size, step):
        rows = unsafe[lo : lo + step]
        largest, shapes = _split(X[rows])
        ratios = sums_of_squares(shapes)
        scales[rows] = _from_ratios(largest, ratios, target)
        with np.errstate(over="ignore"):
            lengths[rows] = np.minimum(largest * np.sqrt(ratios), target)
    return scales, lengths


def _in_row_order(rows: NDArray[Any]) -> FloatArray:
    """Cast some rows, so that float32, integers and columns in memory take the same path."""
    return np.ascontiguousarray(rows, dtype=np.float64)


def _from_squares(squares: FloatArray, target: float) -> FloatArray:
    """Return min(1, target / norm), for norms neither tiny nor huge."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.minimum(1.0, target / np.sqrt(squares)))


def _split(rows: Any) -> tuple[FloatArray, Any]:
    """Return the largest absolute value of every row, and the rows divided by it."""
    if not sparse.issparse(rows):
        rows = _in_row_order(rows)
        largest = np.abs(rows).max(axis=1, initial=0.0)
        return largest, rows / np.where(largest > 0.0, largest, 1.0)[:, None]
    data = rows.data.astype(np.float64)
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    largest = np.zeros(rows.shape[0])
    np.maximum.at(largest, row, np.abs(data))
    data /= np.where(largest > 0.0, largest, 1.0)[row]
    return largest, sparse.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)


def _from_ratios(largest: FloatArray, squares: FloatArray, target: float) -> FloatArray:
    """Return min(1, target / norm) for ``norm = largest * sqrt(squares)``; 1 for a zero row."""
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        factor = target / largest / np.sqrt(squares)
    factor = np.where(largest > 0.0, np.minimum(1.0, factor), 1.0)
    # A subnormal quotient has an absolute error of up to two spacings: step below it.
    lower = np.maximum(factor - 2.0 * math.ulp(0.0), 0.0)
    return np.where(factor < _TINY, lower, factor)
