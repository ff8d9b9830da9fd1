"""What every projection is: a public linear map of rows, and of coefficients back.

A map is drawn from shapes and public randomness, never from the data, so it may be
released. For every fixed map, replacing one record replaces one row of ``apply(X)``; the
caller clips these rows to a public norm, and that alone bounds the sensitivity. Privacy
therefore holds for every number of components and every draw, lucky or not. How well
norms and margins survive is a matter of accuracy (``docs/proofs/projection.md``).
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

__all__ = [
    "LinearMap",
    "checked_coefficients",
    "checked_features",
    "checked_size",
    "row_blocks",
    "saturated",
]

FloatArray: TypeAlias = NDArray[np.float64]

_SPARSE_ROWS = 8192


@runtime_checkable
class LinearMap(Protocol):
    """A linear map from ``n_features_in`` to ``n_components`` dimensions.

    `RademacherMap` and `HadamardMap` satisfy it.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.projection import LinearMap, draw_rademacher
    >>> isinstance(draw_rademacher(5, 2, np.random.default_rng(0)), LinearMap)
    True
    """

    @property
    def n_features_in(self) -> int:
        """Number of columns that `apply` takes."""

    @property
    def n_components(self) -> int:
        """Number of columns that `apply` returns."""

    def apply(self, X: Any) -> FloatArray:
        """Map every row.

        Parameters
        ----------
        X : ndarray, csr_array or csr_matrix of shape (n, n_features_in)
            Finite real numbers of at most 64 bits. Never copied or densified whole.

        Returns
        -------
        ndarray of shape (n, n_components)
            Finite: where a finite row overflows, the result is cut at the largest double.
            Row ``i`` depends on row ``i``, on the shape and on the map only. Not clipped.
        """

    def pull_back(self, w: FloatArray) -> FloatArray:
        """Return the coefficients that act on a row as `w` acts on its image.

        Parameters
        ----------
        w : ndarray of shape (n_components,) or (K, n_components)

        Returns
        -------
        ndarray of shape (n_features_in,) or (K, n_features_in)
            The transposed map of `w`: ``X @ pull_back(w).T`` is ``apply(X) @ w.T``.
        """

    def to_array(self) -> FloatArray:
        """Return the matrix, of shape (n_components, n_features_in), for small maps."""


def checked_size(name: str, value: int) -> int:
    """Return a number of rows or columns, which is a positive integer.

    Raises
    ------
    ValueError
        If `value` is not an integer or is below 1.
    """
    if not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be a positive integer; got {value!r}.")
    return int(value)


def checked_features(X: Any, n_features: int) -> Any:
    """Return `X` if it is a matrix of real numbers with this many columns.

    Raises
    ------
    ValueError
        If the shape, the type or the sparse format does not fit.
    """
    if sparse.issparse(X):
        if X.format != "csr":
            raise ValueError("sparse X must be in CSR format")
    else:
        X = np.asarray(X)
    if X.dtype.kind not in "biuf" or X.dtype.itemsize > 8:
        raise ValueError("X must be a matrix of real numbers of at most 64 bits")
    if X.ndim != 2 or X.shape[1] != n_features:
        raise ValueError(f"X must have shape (n, {n_features}); got {X.shape}")
    return X


def checked_coefficients(w: FloatArray, n_components: int) -> FloatArray:
    """Return coefficients in float64 if their last axis has this length.

    Raises
    ------
    ValueError
        If the shape does not fit.
    """
    w = np.asarray(w, dtype=np.float64)
    if w.ndim not in (1, 2) or w.shape[-1] != n_components:
        raise ValueError(f"w must have a last axis of length {n_components}; got shape {w.shape}")
    return w


def row_blocks(X: Any, entries: int, *, min_rows: int = 1) -> Iterator[tuple[int, int, Any]]:
    """Read a matrix in blocks of consecutive rows, in float64.

    Parameters
    ----------
    entries : int
        Wanted number of entries of a dense block.

    Notes
    -----
    The bounds are functions of the shape alone.
    """
    n, d = X.shape
    is_sparse = sparse.issparse(X)
    step = _SPARSE_ROWS if is_sparse else max(min_rows, entries // d)
    for lo in range(0, n, step):
        hi = min(lo + step, n)
        block = X[lo:hi]
        if is_sparse:
            yield lo, hi, sparse.csr_array(block, dtype=np.float64)
        else:
            yield lo, hi, np.asarray(block, dtype=np.float64)


def saturated(Z: FloatArray) -> FloatArray:
    """Make every entry finite, in place.

    A finite row near the largest double can map to infinity or, by a difference of
    infinities, to NaN. One such record would turn a whole model into NaN and so be visible
    with certainty; it must stay an ordinary row, which the clipping afterwards handles.

    Returns
    -------
    ndarray of shape (n, k)
        `Z` itself, with NaN set to 0 and infinities to the largest double of their sign.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not np.isfinite(Z.sum())
    if suspicious:
        np.nan_to_num(Z, copy=False)
    return Z
