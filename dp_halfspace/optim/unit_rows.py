"""Rows brought to norm one, in the space of the data or in a released metric.

A halfspace does not change when a row, constant included, is multiplied by a positive
number: normalising costs nothing and wastes no sensitivity on short rows. Every row is
treated by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.optim.blocks import ThinMap
from dp_halfspace.optim.clipping import clip_scales
from dp_halfspace.optim.rows import Rows

if TYPE_CHECKING:
    from dp_halfspace.projection import LinearMap

__all__ = ["flattened", "inverse_lengths", "unit_rows"]

FloatArray: TypeAlias = NDArray[np.float64]


def unit_rows(
    X: Any, data_norm: float, bias: float | None, linear_map: LinearMap | None = None
) -> Rows:
    """Return the rows ``[x / data_norm, bias]``, divided by their norm.

    Parameters
    ----------
    X : ndarray, csr_array or csr_matrix of shape (n, d)
        Finite features.
    data_norm : float
        Public scale of a row. Longer rows are scaled down to it before the constant is appended.
    bias : float or None
        Public constant column, positive; None for none.
    linear_map : LinearMap or None, default=None
        Public map that the clipped features go through; the constant does not.

    Returns
    -------
    Rows
        Of norm at most one as real numbers. Without a constant, a row shorter than
        ``2^-100 data_norm`` becomes zero.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.optim.unit_rows import unit_rows
    >>> unit_rows(np.array([[3.0, 0.0], [0.0, 0.0]]), 3.0, 0.75).margins(np.ones(3)).round(12)
    array([1.4, 1. ])
    """
    scale = clip_scales(X, data_norm) / data_norm
    features = X if linear_map is None else linear_map.apply(X)
    rows = Rows(features, scale, bias, row_bound=1.0 + (bias or 0.0))
    return rows.rescaled(inverse_lengths(rows.lengths(), rows.shape[1]), row_bound=1.0)


def flattened(rows: Rows, transform: FloatArray | ThinMap, *, row_bound: float) -> Rows:
    """Return the rows divided by the norm of their image.

    Parameters
    ----------
    rows : Rows
        Unit rows.
    transform : ndarray of shape (D, D) or ThinMap
        Invertible, released.
    row_bound : float
        Public bound on the norm of the result, from the smallest singular value.

    Returns
    -------
    Rows
        ``z_i`` such that ``transform z_i`` has norm one. The images themselves are never
        formed: a solver multiplies its coefficients by the transposed map instead.
    """
    return rows.rescaled(
        inverse_lengths(rows.lengths(transform), rows.shape[1]), row_bound=row_bound
    )


def inverse_lengths(lengths: FloatArray, size: int) -> FloatArray:
    """Return 1 / length on the side that makes the product at most one.

    Parameters
    ----------
    lengths : ndarray of shape (n,)
        Computed Euclidean norms of rows.
    size : int
        Number of columns.

    Returns
    -------
    ndarray of shape (n,)
        0 for a row shorter than 2^-100: squares of its entries may have underflown, which
        makes the computed length useless.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.optim.unit_rows import inverse_lengths
    >>> inverse_lengths(np.array([2.0, 0.0]), 3).round(9)
    array([0.5, 0. ])
    """
    known = lengths > 2.0**-100
    safe = np.where(known, lengths, 1.0)
    return np.where(known, (1.0 - (size + 8) * 2.0**-52) / safe, 0.0)
