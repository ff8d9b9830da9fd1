"""Sparse matrices of every format as CSR, after a check of all of their indices.

Compiled code of scipy trusts the indices of a matrix, so one that points outside ends the process
or moves an entry to another row. Every index is therefore compared with the shape here, by numpy
and Python alone, before scipy reads the matrix. The error shows no index, because an index is
private.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


def checked_csr(X: Any) -> Any:
    """Return a sparse matrix as CSR; the memory of a valid CSR matrix is shared.

    Examples
    --------
    >>> from scipy import sparse
    >>> from dp_halfspace.data.sparse_rows import checked_csr
    >>> checked_csr(sparse.coo_array([[0.0, 2.0]])).toarray()
    array([[0., 2.]])
    """
    try:
        # Complex entries are refused later, by a sentence of their own.
        rows = _READERS[X.format](X) if X.dtype.kind in "biufc" else None
    except (ValueError, TypeError, IndexError, AttributeError, OverflowError, KeyError):
        rows = None
    if rows is None:  # raised outside the handler, so that no other message is its context
        raise ValueError("X is a sparse matrix with invalid indices or entries: rebuild it")
    return rows


def _read_csr(X: Any) -> Any | None:
    """Return a CSR matrix without the space behind its last entry, None if it is invalid."""
    n_stored = _check_compressed(X, *X.shape)
    if n_stored is None:
        return None
    if n_stored == len(X.data):
        return X
    arrays = (X.data[:n_stored], X.indices[:n_stored], X.indptr)
    return sparse.csr_array(arrays, shape=X.shape)


def _read_csc(X: Any) -> Any | None:
    return None if _check_compressed(X, *X.shape[::-1]) is None else X.tocsr()


def _read_bsr(X: Any) -> Any | None:
    _, height, width = X.data.shape
    n_rows, n_columns = X.shape
    if n_rows % height or n_columns % width:
        return None
    is_valid = _check_compressed(X, n_rows // height, n_columns // width) is not None
    return X.tocsr() if is_valid else None


def _check_compressed(X: Any, n_lists: int, n_places: int) -> int | None:
    """Return the number of entries of `n_lists` lists of places, None if a place is outside.

    No list may end before it starts, or behind the arrays.
    """
    ends, places = X.indptr, X.indices
    is_whole = ends.dtype.kind == places.dtype.kind == "i" and ends.shape == (n_lists + 1,)
    if not is_whole or places.shape != X.data.shape[:1] or ends[0] != 0:
        return None
    n_stored = int(ends[-1])
    if n_stored > len(places) or (ends[1:] < ends[:-1]).any():
        return None
    return n_stored if _are_below(places[:n_stored], n_places) else None


def _are_below(places: NDArray[Any], limit: int) -> bool:
    """Return whether signed integers are at least 0 and below a limit, in one pass.

    Negative numbers are large unsigned ones.
    """
    unsigned = places.view(places.dtype.str.replace("i", "u"))
    return not len(places) or int(unsigned.max()) < limit


def _read_coo(X: Any) -> Any | None:
    return _from_triples(X.data, X.row, X.col, X.shape)


def _read_dok(X: Any) -> Any | None:
    row, column = np.array(list(X.keys()) or np.empty((0, 2), int)).T
    return _from_triples(np.array(list(X.values()), X.dtype), row, column, X.shape)


def _read_lil(X: Any) -> Any | None:
    if X.rows.shape != X.data.shape or X.rows.shape != X.shape[:1]:
        return None
    lengths = list(map(len, X.rows))
    if lengths != list(map(len, X.data)):
        return None
    column = np.array(list(chain.from_iterable(X.rows)) or np.empty(0, int))
    values = np.array(list(chain.from_iterable(X.data)), X.dtype)
    return _from_triples(values, np.repeat(np.arange(X.shape[0]), lengths), column, X.shape)


def _read_dia(X: Any) -> Any | None:
    """Return the diagonals as rows; a diagonal, or a part of one, may lie outside the matrix."""
    (n_rows, n_columns), offsets = X.shape, X.offsets.tolist()
    if X.data.ndim != 2 or len(X.data) != len(set(offsets)) or X.offsets.dtype.kind != "i":
        return None
    spans = [(max(k, 0), min(n_rows + k, n_columns, X.data.shape[1])) for k in offsets]
    spans = [(low, max(low, high)) for low, high in spans]
    values = [d[low:high] for d, (low, high) in zip(X.data, spans, strict=True)]
    columns = [np.arange(low, high) for low, high in spans]
    rows = [column - k for column, k in zip(columns, offsets, strict=True)]
    nothing = np.empty(0, np.intp)
    row, column = (np.concatenate([nothing, *each]) for each in (rows, columns))
    stored = np.concatenate([X.data.ravel()[:0], *values])
    return _from_triples(stored, row, column, X.shape)


def _from_triples(
    values: NDArray[Any], row: NDArray[Any], column: NDArray[Any], shape: tuple[int, int]
) -> Any | None:
    """Return a CSR matrix of values at places, None if a place is outside the matrix."""
    is_whole = row.dtype.kind == column.dtype.kind == "i" and values.ndim == 1
    if not is_whole or not row.shape == column.shape == values.shape:
        return None
    if not (_are_below(row, shape[0]) and _are_below(column, shape[1])):
        return None
    return sparse.coo_array((values, (row, column)), shape=shape).tocsr()


_READERS: dict[str, Callable[[Any], Any | None]] = {
    "bsr": _read_bsr,
    "coo": _read_coo,
    "csc": _read_csc,
    "csr": _read_csr,
    "dia": _read_dia,
    "dok": _read_dok,
    "lil": _read_lil,
}
