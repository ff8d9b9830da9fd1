"""Sparse matrices of every format as CSR, after a check of all of their indices.

Compiled code of scipy trusts the indices of a matrix, so one that points outside ends the process
or moves an entry to another row. They are therefore compared with the shape first. The error shows
no index, because an index is private.
"""

from __future__ import annotations

from copy import copy
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse

from dp_halfspace._silence import result_or


def checked_csr(X: Any) -> Any:
    """Return a sparse matrix as CSR; the memory of a valid CSR matrix is shared.

    Examples
    --------
    >>> from scipy import sparse
    >>> from dp_halfspace.data.sparse_rows import checked_csr
    >>> checked_csr(sparse.coo_array([[0.0, 2.0]])).toarray()
    array([[0., 2.]])
    """
    # Complex entries are refused later, by a sentence of their own.
    rows = result_or(None, lambda: _as_csr(copy(X)) if X.dtype.kind in "biufc" else None)
    if rows is None:
        raise ValueError("X is a sparse matrix with invalid indices or entries: rebuild it")
    return rows


def _as_csr(X: Any) -> Any | None:
    """Return a copy of a matrix, whose arrays may be replaced, as CSR, None if it is invalid."""
    if X.format in ("csr", "csc", "bsr"):
        is_whole = X.indptr.dtype.kind == X.indices.dtype.kind == "i"
        # Scipy looks at no list of a matrix whose last list ends at zero.
        if not is_whole or (X.indptr[1:] < X.indptr[:-1]).any():
            return None
        X.check_format(full_check=True)
        return X if X.format == "csr" else X.tocsr()
    if X.format == "lil":
        lengths = list(map(len, X.rows))
        if X.shape[:1] != X.rows.shape or lengths != list(map(len, X.data)):
            return None
        values = np.array(list(chain.from_iterable(X.data)), X.dtype)
        column = np.array(list(chain.from_iterable(X.rows)) or np.empty(0, int))
        places = np.repeat(np.arange(X.shape[0]), lengths), column
    else:
        if X.format == "dia" and X.data.shape[:1] != X.offsets.shape:
            return None
        found = X.tocoo()
        values, places = found.data, (found.row, found.col)
    if not all(place.dtype.kind == "i" for place in places):
        return None
    # The constructor checks all places.
    return sparse.coo_array((values, places), shape=X.shape).tocsr()
