"""Features of rows in learnt column scales, made and read in float32, block by block.

Features of many rows are too many numbers to keep: they are made again at every pass. What one
record can change is a sum of few rows, as for other rows of float32. Proofs:
``docs/proofs/certificate.md``, section 10.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg.blas import ssyrk

from dp_halfspace.data.coded_rows import written_out
from dp_halfspace.rows.blocks import FloatArray
from dp_halfspace.rows.rows import add_blocks
from dp_halfspace.rows.single_rows import (
    GRAM_GROUP,
    SAFE_SQUARES,
    SINGLE_EPS,
    SingleArray,
    SingleBlock,
    SingleRows,
    factors_of,
    feature_block_size,
    group_size,
)

if TYPE_CHECKING:
    from dp_halfspace.projection import AdditiveMap


@dataclass(slots=True, eq=False)
class SingleFeatureRows(SingleRows):
    """The rows ``scale[i] * (features of X[i] / data_norm, bias)``; see `SingleRows`.

    Entries of the array `X` of float32 are at most four. Without a scale rows are brought to norm
    one whenever they are read. Made by `single_feature_rows`.
    """

    feature_map: AdditiveMap = field(kw_only=True)
    data_norm: float = field(kw_only=True)
    bias: float | None = field(kw_only=True)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the logical matrix, constant column included."""
        return len(self._matrix), self.feature_map.n_components + (self.bias is not None)

    @property
    def block_rows(self) -> int:
        """Number of rows in a block."""
        return feature_block_size(len(self._matrix), self.feature_map.n_components)

    def unit(self, transform: Any, *, row_bound: float, condition: float) -> SingleFeatureRows:
        """Return the rows divided by the norm of their image; see `SingleRows.unit`."""
        squares = np.empty(len(self._matrix), dtype=np.float32)
        bounded = transform.single_squares()
        for lo, rows in self._features():
            squares[lo : lo + len(rows)] = bounded(rows, self._squares(rows))
        factors = factors_of(np.sqrt(squares, out=squares))
        return replace(self, _scale=factors, row_bound=row_bound, group=group_size(condition))

    def scores(self, w: FloatArray) -> FloatArray:
        """Return products of features and the columns of a matrix; there is no bias."""
        single = np.ascontiguousarray(w * self.feature_map.single_unit, dtype=np.float32)
        out = np.empty((len(self._matrix), w.shape[1]))
        for lo, rows in self._features():
            out[lo : lo + len(rows)] = rows @ single
        return out

    def sampled(self, stride: int) -> SingleFeatureRows:
        """Return the rows of one of so many groups of rows, which their numbers alone decide."""
        return replace(self, _matrix=sample_groups(self._matrix, stride))

    def gram(self, weights: FloatArray) -> FloatArray:
        """Return the upper triangle of ``Z^T diag(weights) Z``, groups summed in float32."""

        def add(block: SingleBlock, out: FloatArray) -> None:
            lo, rows, scale, _ = block
            rows *= (scale * np.sqrt(weights[lo : lo + len(rows)])).astype(np.float32)[:, None]
            for first in range(0, len(rows), GRAM_GROUP):
                # What is lower in the order of BLAS is upper here.
                out += ssyrk(1.0, rows[first : first + GRAM_GROUP].T, lower=True).T

        size = self.shape[1]
        return add_blocks(self._blocks(), (size, size), add, self._is_plain)

    def _squares(self, rows: SingleArray) -> SingleArray:
        """Return upper bounds on the squared norms of rows; zero of a row without length."""
        squares = np.asarray(np.einsum("ij,ij->i", rows, rows), dtype=np.float32)
        squares[squares < SAFE_SQUARES[0]] = 0.0
        squares *= (1.0 + (self.shape[1] + 12) * SINGLE_EPS) ** 2
        return squares

    def _features(self) -> Iterator[tuple[int, SingleArray]]:
        """Make the features of block after block; a block is valid until the next one."""
        n, step, size = len(self._matrix), self.block_rows, self.feature_map.n_components
        work = np.empty((step, self.shape[1]), dtype=np.float32)
        last = (self.bias or 0.0) / self.feature_map.single_unit
        for lo in range(0, n, step):
            X = written_out(self._matrix[lo : lo + step])
            rows = work[: len(X)]
            self.feature_map.write_single(X, self.data_norm, rows[:, :size])
            rows[:, size:] = last
            yield lo, rows

    def _blocks(self) -> Iterator[SingleBlock]:
        for lo, rows in self._features():
            if self._scale is None:
                scale = factors_of(np.sqrt(self._squares(rows)))
            else:
                scale = self._scale[lo : lo + len(rows)]
            yield lo, rows, scale, None


def sample_groups(X: Any, stride: int) -> Any:
    """Return the rows of the first of so many groups, again and again."""
    return X[np.arange(len(X)) // GRAM_GROUP % stride == 0]


def single_feature_rows(
    X: SingleArray, data_norm: float, feature_map: AdditiveMap, bias: float | None
) -> SingleFeatureRows:
    """Return the rows ``[features of x / data_norm, bias]``, divided by their norm.

    Entries of `X` are those of learnt column scales, at most four; `bias` is public.

    Notes
    -----
    **Guarantee.**

    - Adjacency: replace-one.
    - Released: nothing; the rows are private.
    - Sensitivity: a row has norm at most one, and sums differ in the group of the replaced record
      alone.
    - Proof: ``docs/proofs/certificate.md``, section 10.
    """
    how: dict[str, Any] = {"feature_map": feature_map, "data_norm": data_norm, "bias": bias}
    return SingleFeatureRows(X, None, None, 1.0, group_size(1.0), **how)
