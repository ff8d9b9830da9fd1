"""Rows seen through a released map: fast passes that never form them, and exact ones that do.

Row ``i`` is ``A x_i``, brought to norm one. A pass can multiply coefficients by ``A`` and read
``x_i`` alone, or form the images block by block. The first costs no more than without a map,
but its roundings are stretched by ``A``; the second has the roundings of ordinary rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.rows.blocks import FloatArray, block_size, sums_of_squares
from dp_halfspace.rows.rows import Rows, inverse_lengths

# Images are work space, beside which the data are read: a quarter of a block of these.
_FEWER = 4


def formed_block_rows(n_rows: int, n_columns: int) -> int:
    """Return how many images are formed, and summed, at a time, from their public shape.

    At most as many as are read at a time, whatever the layout of the data.
    """
    return block_size(n_rows, _FEWER * n_columns, is_sparse=False)


@dataclass(frozen=True, slots=True)
class _Images:
    """Rows of norm at most one that are images under a released map of shape (K, D)."""

    rows: Rows
    transform: FloatArray

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix."""
        return self.rows.shape[0], self.transform.shape[0]

    @property
    def row_bound(self) -> float:
        """Bound on the norm of a row."""
        return 1.0


class MappedRows(_Images):
    """Images of rows, of norm at most one (see `preconditioned`), which are never formed."""

    __slots__ = ()

    def margins(self, w: FloatArray) -> FloatArray:
        """Return ``Z w``; see `Rows`."""
        return self.rows.margins(self.transform.T @ w)

    def adjoint(self, p: FloatArray) -> FloatArray:
        """Return ``Z^T p``; see `Rows`."""
        return self.transform @ self.rows.adjoint(p)

    def fused_adjoint(
        self, w: FloatArray, coefficients: Callable[[FloatArray, int, int], FloatArray]
    ) -> FloatArray:
        """Return ``Z^T p(Z w)``; see `Rows`."""
        return self.transform @ self.rows.fused_adjoint(self.transform.T @ w, coefficients)

    def gram(self, weights: FloatArray) -> FloatArray:
        """Return ``Z^T diag(weights) Z``; see `Rows`."""
        product = self.transform @ self.rows.gram(weights) @ self.transform.T
        return 0.5 * (product + product.T)

    def subset(self, index: NDArray[np.intp]) -> Rows:
        """Return the rows with these numbers, formed: there are few of them."""
        return Rows(self.rows.dense(index) @ self.transform.T, row_bound=1.0)


class FormedRows(_Images):
    """The images of rows, brought to norm one, formed again at every pass.

    The float image times the float factor, as real numbers, is the row; its norm is at most one.
    Replacing a record changes no bit of the others: ``docs/proofs/certificate.md``, section 7.
    """

    __slots__ = ()

    @property
    def block_rows(self) -> int:
        """Number of rows that are formed, and summed, at a time."""
        return formed_block_rows(*self.shape)

    def margins(self, w: FloatArray) -> FloatArray:
        """Return ``Z w``; see `Rows`."""
        out = np.empty((self.shape[0], *w.shape[1:]))
        for lo, hi, images, factors in self._blocks():
            out[lo:hi] = _scaled(images @ w, factors)
        return out

    def adjoint(self, p: FloatArray) -> FloatArray:
        """Return ``Z^T p``; see `Rows`."""
        out = np.zeros((self.shape[1], *p.shape[1:]))
        for lo, hi, images, factors in self._blocks():
            out += images.T @ _scaled(p[lo:hi], factors)
        return out

    def fused_adjoint(
        self, w: FloatArray, coefficients: Callable[[FloatArray, int, int], FloatArray]
    ) -> FloatArray:
        """Return ``Z^T p(Z w)``; see `Rows`."""
        out = np.zeros(w.shape)
        for lo, hi, images, factors in self._blocks():
            p = coefficients(_scaled(images @ w, factors), lo, hi)
            out += images.T @ _scaled(p, factors)
        return out

    def gram(self, weights: FloatArray) -> FloatArray:
        """Return ``Z^T diag(weights) Z``; see `Rows`."""
        size = self.shape[1]
        out = np.zeros((size, size))
        for lo, hi, images, factors in self._blocks():
            scaled = _scaled(images, factors * np.sqrt(weights[lo:hi]))
            out += scaled.T @ scaled
        return out

    def subset(self, index: NDArray[np.intp]) -> FormedRows:
        """Return the rows with these numbers."""
        return FormedRows(self.rows.subset(index), self.transform)

    def _blocks(self) -> Iterator[tuple[int, int, FloatArray, FloatArray]]:
        """Form the images block by block, with the factors that make them unit rows."""
        for lo, hi, images in self.rows.images(self.transform, self.block_rows):
            lengths = np.sqrt(sums_of_squares(images))
            yield lo, hi, images, inverse_lengths(lengths, images.shape[1])


def _scaled(rows: FloatArray, factors: FloatArray) -> FloatArray:
    """Multiply rows, or numbers that belong to rows, by factors."""
    return rows * (factors if rows.ndim == 1 else factors[:, None])


# What an objective asks for its rows.
Design: TypeAlias = Rows | MappedRows | FormedRows
