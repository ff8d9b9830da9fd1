"""Images of rows under a released matrix, and features that are computed block by block.

Images of rows are clipped to a norm. A pass can multiply the coefficients by the matrix and read
only the rows, or it can form the images block by block. The first way takes no more time than
without a map, but the matrix amplifies its rounding errors. The second way has the rounding errors
of ordinary rows.

Features may need too much memory to be kept. As many blocks as fit into a public amount of memory
are kept in float32; the others are computed again at every pass. All arithmetic on features is in
float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dp_halfspace._arrays import SingleArray
from dp_halfspace._rounding import UP
from dp_halfspace.projection.features import FeatureMap
from dp_halfspace.rows.blocks import (
    Coefficients,
    FloatArray,
    block_size,
    canonical_csr,
    clip_scales,
    scale_rows,
    sum_of_parts,
    sums_of_squares,
)
from dp_halfspace.rows.rows import Rows, inverse_lengths

# Blocks of images are smaller than blocks of rows by this factor, because images need work space in
# addition to the rows.
_FEWER = 4


def formed_block_rows(n_rows: int, n_columns: int) -> int:
    """Return how many images are formed, and summed, at a time; a function of their public shape.

    The result is at most the number of rows that are read at a time, for every layout of the data.
    """
    return block_size(n_rows, _FEWER * n_columns, is_sparse=False)


@dataclass(frozen=True, slots=True)
class MappedRows:
    """Images of rows, of norm at most about one, that are never formed.

    The map has shape (K, D); the `rows` are scaled so that their images are.
    """

    rows: Rows
    transform: FloatArray
    # Bound on the norm of a row.
    row_bound: ClassVar[float] = UP

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix."""
        return self.rows.shape[0], self.transform.shape[0]

    def margins(self, w: FloatArray) -> FloatArray:
        """Return ``Z w``; see `Rows`."""
        return self.rows.margins(self.transform.T @ w)

    def adjoint(self, p: FloatArray) -> FloatArray:
        """Return ``Z^T p``; see `Rows`."""
        return self.transform @ self.rows.adjoint(p)

    def fused_adjoint(self, w: FloatArray, coefficients: Coefficients) -> FloatArray:
        """Return ``Z^T p(Z w)``; see `Rows`."""
        return self.transform @ self.rows.fused_adjoint(self.transform.T @ w, coefficients)

    def gram(self, weights: FloatArray) -> FloatArray:
        """Return ``Z^T diag(weights) Z``; see `Rows`."""
        product = self.transform @ self.rows.gram(weights) @ self.transform.T
        return 0.5 * (product + product.T)

    def subset(self, index: NDArray[np.intp]) -> Rows:
        """Return the images with these indices, of which there are few, formed."""
        return Rows(self.rows.dense(index) @ self.transform.T, row_bound=UP)


@dataclass(frozen=True, slots=True)
class FormedRows:
    """Images of rows, clipped to the norm `longest`, with constants; formed at every pass.

    The map `transform` has shape (K, D). A row is a vector of floats, the computed image times the
    computed factor, followed by the `constants`; with ``longest^2 + |constants|^2 <= 1`` its norm
    is at most ``1 + 2^-40``. Replacing a record changes no bit of other rows:
    ``docs/proofs/certificate.md``, section 7.
    """

    rows: Rows
    transform: FloatArray
    longest: float
    constants: tuple[float, ...] = ()
    # Bound on the norm of a row.
    row_bound: ClassVar[float] = UP

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix."""
        return self.rows.shape[0], len(self.transform) + len(self.constants)

    @property
    def block_rows(self) -> int:
        """Number of rows that are formed, and summed, at a time."""
        return formed_block_rows(*self.shape)

    def margins(self, w: FloatArray) -> FloatArray:
        """Return ``Z w``; see `Rows`."""
        out = np.empty((self.shape[0], *w.shape[1:]))
        for lo, hi, formed in self.blocks():
            out[lo:hi] = formed @ w
        return out

    def adjoint(self, p: FloatArray) -> FloatArray:
        """Return ``Z^T p``; see `Rows`."""
        parts = (formed.T @ p[lo:hi] for lo, hi, formed in self.blocks())
        return sum_of_parts(parts, (self.shape[1], *p.shape[1:]), is_plain=True)

    def fused_adjoint(self, w: FloatArray, coefficients: Coefficients) -> FloatArray:
        """Return ``Z^T p(Z w)``; see `Rows`."""
        parts = (formed.T @ coefficients(formed @ w, lo, hi) for lo, hi, formed in self.blocks())
        return sum_of_parts(parts, w.shape, is_plain=True)

    def gram(self, weights: FloatArray) -> FloatArray:
        """Return ``Z^T diag(weights) Z``; see `Rows`."""
        scaled = (formed * np.sqrt(weights[lo:hi])[:, None] for lo, hi, formed in self.blocks())
        shape = self.shape[1], self.shape[1]
        return sum_of_parts((each.T @ each for each in scaled), shape, is_plain=True)

    def subset(self, index: NDArray[np.intp]) -> FormedRows:
        """Return the rows with these numbers."""
        return replace(self, rows=self.rows.subset(index))

    def blocks(self) -> Iterator[tuple[int, int, FloatArray]]:
        """Form the rows block by block."""
        for lo, hi, images in self.rows.images(self.transform, self.block_rows):
            # An upper bound on the length, so that no row counts as longer than `longest`.
            lengths = np.sqrt(sums_of_squares(images)) * (1.0 + (images.shape[1] + 8) * 2.0**-52)
            factor = self.longest / np.maximum(lengths, self.longest)
            formed = np.empty((hi - lo, self.shape[1]))
            np.multiply(images, factor[:, None], out=formed[:, : images.shape[1]])
            formed[:, images.shape[1] :] = self.constants
            yield lo, hi, formed


# Types of rows for which objectives are implemented.
Design: TypeAlias = Rows | MappedRows | FormedRows


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """A matrix of features, made by `clipped_features`; the features of the first rows are `kept`.

    The factors `scale` divide the rows of `X` by their public scale.
    """

    X: Any
    scale: FloatArray
    feature_map: FeatureMap
    kept: SingleArray

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix."""
        return self.X.shape[0], self.feature_map.n_components

    def __getitem__(self, rows: slice | NDArray[np.intp]) -> SingleArray:
        """Return the features of some rows, as float32."""
        if isinstance(rows, slice) and rows.stop is not None and rows.stop <= len(self.kept):
            return self.kept[rows]
        return self.feature_map.apply(scale_rows(self.X[rows], self.scale[rows]))


class FeatureRows(Rows):
    """Rows ``(scale[i] * features[i], constant[i])``; everything else is as in `Rows`."""

    __slots__ = ()

    def _as_read(self, X: Features) -> Features:
        """Return the features, which replace the array of `Rows`."""
        return X

    def dense(self, index: NDArray[np.intp]) -> FloatArray:
        """Return some rows as an array, with norms within the bound; see `Rows.dense`.

        Features that are computed in other blocks than before may differ in the last bit, which may
        make a row longer.
        """
        out = super().dense(index)
        if self._bound is None:
            return out
        inverse = inverse_lengths(np.sqrt(sums_of_squares(out)), out.shape[1])
        out *= np.minimum(1.0, self._bound * inverse)[:, None]
        return out


def clipped_features(
    X: Any,
    data_norm: float,
    feature_map: FeatureMap,
    *,
    memory: int,
    longest: float = 1.0,
) -> Features:
    """Return the features of the rows of `X`, divided by the public `data_norm`.

    Scaled rows that are longer than `longest` are scaled down to it. The number of rows whose
    features are kept between passes is a function of the shape and of `memory`, in bytes.
    """
    X = canonical_csr(X) if sparse.issparse(X) else X
    scale = clip_scales(X, data_norm * longest) / data_norm
    n, k = X.shape[0], feature_map.n_components
    made = Features(X, scale, feature_map, np.empty((0, k), dtype=np.float32))
    step = block_size(n, k, is_sparse=False)
    n_kept = n if 4 * n * k <= memory else memory // (4 * k) // step * step
    kept = np.empty((n_kept, k), dtype=np.float32)
    for lo in range(0, n_kept, step):
        hi = min(lo + step, n_kept)
        kept[lo:hi] = made[lo:hi]
    return Features(X, scale, feature_map, kept)


def normalised_feature_rows(features: Features, constant: float | None) -> FeatureRows:
    """Return the rows ``[features, constant]``, divided by their norm; `constant` is public.

    As real numbers, the norms are at most one for any features: ``docs/proofs/kernel.md``, section
    2.
    """
    return FeatureRows(features, constant=constant).normalised()
