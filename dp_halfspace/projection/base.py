"""What every projection is: a public linear map of rows, and of coefficients back.

A map is drawn from shapes and public randomness, so it may be released. Replacing one record
replaces one row of ``apply(X)``; the caller clips rows to a public norm, and that alone bounds the
sensitivity, for every number of components and every draw. How well norms and margins survive is a
matter of accuracy (``docs/proofs/projection.md``).
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

FloatArray: TypeAlias = NDArray[np.float64]
SingleArray: TypeAlias = NDArray[np.float32]

_SPARSE_ROWS = 8192


@runtime_checkable
class RowMap(Protocol):
    """A public map of rows, one by one."""

    @property
    def n_features_in(self) -> int:
        """Number of columns that `apply` takes."""

    @property
    def n_components(self) -> int:
        """Number of columns that `apply` returns."""

    def apply(self, X: Any) -> Any:
        """Map every row of a dense or CSR matrix of finite real numbers of at most 64 bits.

        The images are finite. Row ``i`` depends on row ``i``, its position, the shape and the map
        only. `X` is never copied or densified whole.
        """


@runtime_checkable
class LinearMap(RowMap, Protocol):
    """A linear map. Its images are not clipped."""

    def apply(self, X: Any) -> FloatArray:
        """Map every row; see `RowMap.apply`."""

    def pull_back(self, w: FloatArray) -> FloatArray:
        """Return coefficients of shape (n_features_in,) or (K, n_features_in).

        They act on a row as `w` acts on its image: ``X @ pull_back(w).T`` is ``apply(X) @ w.T``.
        """

    def to_array(self) -> FloatArray:
        """Return the matrix, of shape (n_components, n_features_in), for small maps."""


def checked_size(name: str, value: int, *, least: int = 1) -> int:
    """Return a number of things, or raise ValueError if it is no integer or too small."""
    if not isinstance(value, Integral) or value < least:
        kind = "a positive integer" if least == 1 else f"an integer, at least {least}"
        raise ValueError(f"{name} must be {kind}; got {value!r}.")
    return int(value)


def checked_features(X: Any, n_features: int) -> Any:
    """Return `X`, or raise ValueError if it is no real matrix with this many columns."""
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
    """Return float64, or raise ValueError if the last axis of `w` has another length."""
    w = np.asarray(w, dtype=np.float64)
    if w.ndim not in (1, 2) or w.shape[-1] != n_components:
        raise ValueError(f"w must have a last axis of length {n_components}; got shape {w.shape}")
    return w


def row_blocks(X: Any, entries: int, *, min_rows: int = 1) -> Iterator[tuple[int, int, Any]]:
    """Read a matrix in float64 by blocks of rows, of about `entries` numbers where it is dense.

    The bounds of the blocks are functions of the shape alone.
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
    """Make every entry finite, in place: 0 for NaN, the largest double for infinity.

    A finite row near the largest double can map to infinity or, by a difference of infinities, to
    NaN. One such record would turn a whole model into NaN and so be visible with certainty; it must
    stay an ordinary row, which the clipping afterwards handles.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not np.isfinite(Z.sum())
    if suspicious:
        np.nan_to_num(Z, copy=False)
    return Z


def within_unit_ball(rows: FloatArray) -> FloatArray:
    """Divide every row that is longer than one by its length."""
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return np.asarray(rows / np.maximum(lengths, 1.0)[:, None])


def padded(n_features: int) -> int:
    """Return the smallest power of two that is not below the number of features."""
    return 1 << (n_features - 1).bit_length()


def dense(rows: Any) -> Any:
    """Return rows, sparse ones as an array."""
    return rows.toarray() if sparse.issparse(rows) else rows
