"""Rows in chunks, with those methods of `Rows` that the default engine uses.

Every pass reads the chunks where they are stored. The factors and constants of rows stay with their
chunk; only coefficients are sent to the chunks, and only sums are returned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from dp_halfspace.data.chunks import Chunks
from dp_halfspace.rows.blocks import FloatArray
from dp_halfspace.rows.rows import Rows, RowState


@dataclass(slots=True, eq=False)
class ChunkedRows:
    """The rows of a matrix in chunks; the public `template` has the same type and no rows.

    `state` contains the factors of the rows and their constant column. Results equal those of
    `Rows` for all rows at once, up to rounding errors within the same bound:
    ``docs/proofs/certificate.md``, section 8.
    """

    _matrix: Chunks
    _state: Chunks
    _template: Any

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the logical matrix, constant column included."""
        return self._matrix.shape[0], self._template.shape[1]

    def apply_to_classes(
        self, make: Callable[[Any, FloatArray], Any], class_indices: Chunks, weights: FloatArray
    ) -> Chunks:
        """Apply a function to the classes of rows in each chunk; see `Rows.apply_to_classes`."""
        return self._each("apply_to_classes", make, class_indices, weights).kept()

    def margins_over_constant(self, w: FloatArray) -> Chunks:
        """Return margins of the features over the constant column; see `Rows`."""
        return self._each("margins_over_constant", w)

    def fused_adjoint(self, w: FloatArray, coefficients: Chunks) -> FloatArray:
        """Return ``Z^T p(Z w)``, with a function `p` for each chunk; see `apply_to_classes`."""
        return self.total("fused_adjoint", w, coefficients)

    def gram(self) -> FloatArray:
        """Return ``Z^T Z``; see `Rows`."""
        return self.total("gram")

    def clip_images(self, *how: Any) -> ChunkedRows:
        """Return rows whose images are clipped, in the same chunks; see `Rows.clip_images`."""
        state = self._each("clip_images", *how).each(attrgetter("state")).kept()
        return ChunkedRows(self._matrix, state, self._template.clip_images(*how))

    def total(self, what: Any, *arguments: Any) -> FloatArray:
        """Return the sum of a function of the rows over all chunks."""
        return self._matrix.total(_call_rows, self._state, self._template, what, *arguments)

    def _each(self, what: Any, *arguments: Any) -> Chunks:
        """Delay a method, or a function, of the rows of every chunk."""
        return self._matrix.each(_call_rows, self._state, self._template, what, *arguments)


def rows_over(make: Callable[..., Any], X: Any, *arguments: Any, **options: Any) -> Any:
    """Return the rows ``make(X, ...)``; if `X` comes in chunks, so do the rows.

    The function of an array must treat each row by that row and public numbers only.
    """
    if not isinstance(X, Chunks):
        return make(X, *arguments, **options)
    nothing = np.empty((0, X.n_columns)) if X.sample is None else X.sample
    template = make(nothing, *arguments, **options)
    return ChunkedRows(X, X.each(_make_state, make, arguments, options).kept(), template)


def _call_rows(matrix: Any, state: RowState, template: Rows, what: Any, *arguments: Any) -> Any:
    """Call a function of the rows of a chunk, or the method of that name."""
    rows = template.over(matrix, state)
    return getattr(rows, what)(*arguments) if isinstance(what, str) else what(rows, *arguments)


def _make_state(
    matrix: Any, function: Callable[..., Rows], arguments: Any, options: Any
) -> RowState:
    return function(matrix, *arguments, **options).state
