"""A scaled design matrix that is read in blocks and never copied whole.

Row ``i`` of the logical matrix ``Z`` is ``(scale[i] * X[i], constant[i])``, in real numbers.
The factors are applied to margins and to coefficients, not to ``X``, so clipping costs
``n`` numbers of memory, a sparse matrix stays sparse and the constant column is never
stacked. All arithmetic is in float64. The sizes of the blocks are public, because they
enter the bound on rounding errors (``docs/proofs/certificate.md``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dp_halfspace._memory import AT_ONCE
from dp_halfspace._rounding import UP
from dp_halfspace.data.people import People
from dp_halfspace.data.record_weights import Weights
from dp_halfspace.projection.linear import LinearMap
from dp_halfspace.rows.blocks import (
    LONGEST,
    PLAIN_BLOCKS,
    Block,
    Coefficients,
    FloatArray,
    adjoint_part,
    block_size,
    canonical_csr,
    clip_scales,
    gram_part,
    is_blas_layout,
    is_in_place,
    multiply_rows,
    n_constants,
    row_squares,
    scale_rows,
    scales_and_lengths,
    sparse_view,
    sum_of_parts,
    sums_of_squares,
    take_rows,
    write_rows,
)

AnyRows = TypeVar("AnyRows", bound="Rows")
Made = TypeVar("Made")
RowState: TypeAlias = tuple[FloatArray | None, FloatArray | float | None]

# Factors outside [1/2^400, 2^400] are applied to the entries of a row before a product, which might
# overflow if they were applied to the margin.
_EXTREME = 2.0**400


class Rows:
    """The matrix with rows ``(scale[i] * X[i], constant[i])``, in blocks.

    An instance keeps one block of work space and must not be used by two threads at once.

    Parameters
    ----------
    X : ndarray, csr_array or csr_matrix of shape (n, d)
        Finite real numbers, in any order, of any integer type or of float16 to float64.
        Not modified and not copied.
    scale : ndarray of shape (n,) or None, default=None
        Finite factors, at least 0; None stands for 1.
    constant : float, ndarray of shape (n,) or (n, k) or None, default=None
        Last column, or columns, of the logical matrix; None for no such column.
    row_bound : float or None, default=None
        Public bound on the Euclidean norm of a logical row. Without it the largest norm
        is used where one is needed: in the number of iterations of a fallback.
    people : People or None, default=None
        The owners of the rows. The blocks then follow the public number of people, and whatever is
        computed for a single row is computed at the place of its person. How the rows are
        distributed among people affects results only by bounded rounding errors.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.rows.rows import Rows
    >>> rows = Rows(np.eye(2), scale=np.array([1.0, 0.5]), constant=1.0)
    >>> rows.margins(np.array([1.0, 2.0, 3.0]))
    array([4., 4.])
    >>> rows.adjoint(np.array([1.0, 1.0]))
    array([1. , 0.5, 2. ])
    """

    __slots__ = (
        "_bound", "_buffer", "_constant", "_extreme", "_matrix", "_scale", "_views", "people"
    )  # fmt: skip

    def __init__(
        self,
        X: Any,
        scale: FloatArray | None = None,
        constant: FloatArray | float | None = None,
        *,
        row_bound: float | None = None,
        people: People | None = None,
    ) -> None:
        self.people = people
        self._matrix = self._as_read(X)
        self._scale = scale
        self._constant = constant
        self._bound = row_bound
        self._extreme = scale is not None and bool(_is_extreme(scale).any())
        self._buffer: FloatArray | None = None
        # Blocks that are views need no work space, so they are made once.
        self._views: list[Block] | None = None

    def _as_read(self, X: Any) -> Any:
        """Return an array or a CSR array."""
        return canonical_csr(X) if sparse.issparse(X) else np.asarray(X)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the logical matrix, constant column included."""
        n, d = self._matrix.shape
        return n, d + n_constants(self._constant)

    @property
    def block_rows(self) -> int:
        """Number of rows in a block; the last one may be smaller."""
        n, d = self._matrix.shape
        n_privacy_units = n if self.people is None else len(self.people)
        return block_size(n_privacy_units, d, is_sparse=sparse.issparse(self._matrix))

    @property
    def shares(self) -> FloatArray:
        """The weight of each row: one, or its share of its person."""
        return np.broadcast_to(1.0, self.shape[0]) if self.people is None else self.people.weights

    @property
    def state(self) -> RowState:
        """Data of the rows in addition to the matrix: factors and constant column."""
        return self._scale, self._constant

    def over(self: AnyRows, X: Any, state: RowState) -> AnyRows:
        """Return rows like these of another matrix, each with its own part of a state."""
        return type(self)(X, *state, row_bound=self._bound)

    def apply_to_classes(
        self, make: Callable[[Any, FloatArray], Made], class_indices: NDArray[Any], weights: Weights
    ) -> Made:
        """Return ``make(class_indices, weights)`` for the classes of the rows.

        `weights` are those of the classes, or of each record; a row of a person is weighted by its
        share.
        """
        counted = weights[class_indices]
        return make(class_indices, counted if self.people is None else counted * self.shares)

    @property
    def row_bound(self) -> float:
        """Bound on the norm of a row: the public one if given, otherwise the largest norm."""
        if self._bound is None:
            squares = (float(row_squares(block).max()) for block in self._blocks())
            self._bound = math.sqrt(max(squares, default=0.0)) * (1.0 + 1e-9)
        return self._bound

    def margins(self, w: FloatArray) -> FloatArray:
        """Return ``Z w`` for one vector, or for every column of a matrix."""
        w = np.ascontiguousarray(w, dtype=np.float64)
        out = np.empty((self.shape[0], *w.shape[1:]))
        for block in self._blocks():
            out[block.lo : block.hi] = multiply_rows(block, w)
        return out

    def scores(self, w: FloatArray) -> FloatArray:
        """Return margins of which no bit depends on other rows: ``certificate.md``, section 7.

        In `margins` a block with an extreme factor is copied, and a product with a copy may be
        rounded differently. Here only the shape, strides and type of the array decide whether it is
        copied.
        """
        X = self._matrix
        if not isinstance(X, np.ndarray) or not is_in_place(X) or X.flags.c_contiguous:
            return self.margins(w)
        out = np.empty((self.shape[0], *w.shape[1:]))
        for lo in range(0, len(out), self.block_rows):
            part = slice(lo, lo + self.block_rows)
            scale = None if self._scale is None else self._scale[part]
            rows = Rows(np.ascontiguousarray(X[part]), scale, self._constant_of(part))
            out[part] = rows.margins(w)
        return out

    def margins_over_constant(self, w: FloatArray) -> FloatArray:
        """Return scores divided by the constant column, which do not depend on the factors."""

        def over(rows: Rows) -> FloatArray:
            found, constant = rows.scores(np.append(w, 0.0)), np.asarray(rows._constant)
            return np.asarray(np.divide(found, constant, out=found, where=constant > 0.0))

        return self._by_person(over)

    def adjoint(self, p: FloatArray) -> FloatArray:
        """Return ``Z^T p`` for one vector, or for every column of a matrix."""
        shape = (self.shape[1], *p.shape[1:])
        return self._sum_blocks(shape, lambda block: adjoint_part(block, p[block.lo : block.hi]))

    def fused_adjoint(self, w: FloatArray, coefficients: Coefficients) -> FloatArray:
        """Return ``Z^T p(Z w)``, reading ``X`` once, as a sum over the blocks in their order.

        ``coefficients(margins, lo, hi)`` gets the margins of the rows ``lo`` to ``hi - 1``, in the
        order of the rows, and may overwrite them; it returns ``p`` for these rows.
        """
        w = np.ascontiguousarray(w, dtype=np.float64)

        def part(block: Block) -> FloatArray:
            return adjoint_part(block, coefficients(multiply_rows(block, w), block.lo, block.hi))

        return self._sum_blocks(w.shape, part)

    def gram(self, weights: FloatArray | None = None) -> FloatArray:
        """Return ``Z^T diag(weights) Z`` for weights that are at least 0.

        Without weights, the weight of a row is one, or its share of its person.
        """
        weights = self.shares if weights is None else weights
        shape = (self.shape[1], self.shape[1])
        return self._sum_blocks(shape, lambda block: gram_part(block, weights[block.lo : block.hi]))

    def _sum_blocks(
        self, shape: tuple[int, ...], part: Callable[[Block], FloatArray]
    ) -> FloatArray:
        """Add the contributions of all blocks, by Kahan summation if there are many."""
        n, step = self.shape[0], self.block_rows
        n_privacy_units = n if self.people is None else len(self.people)
        is_plain = -(-n // step) <= min(-(-n_privacy_units // step), PLAIN_BLOCKS)
        return sum_of_parts(map(part, self._blocks()), shape, is_plain=is_plain)

    def lengths(self, transform: FloatArray | None = None) -> FloatArray:
        """Return the Euclidean norm of every row of ``Z``, or of its image under a map."""
        return self._by_person(lambda rows: rows._lengths(transform))

    def _by_person(self, function: Callable[[Rows], FloatArray]) -> FloatArray:
        """Apply a function to every row, at the place of its person if there are people."""
        if self.people is None:
            return function(self)
        return self.people.row_by_row(lambda at: function(self.subset(at)), self.block_rows)

    def _lengths(self, transform: FloatArray | None) -> FloatArray:
        """Compute the norms with every row at its own place."""
        if transform is None:
            squares = [row_squares(block) for block in self._blocks()]
        else:
            squares = [sums_of_squares(images) for *_, images in self.images(transform, AT_ONCE)]
        return np.asarray(np.sqrt(np.concatenate([np.empty(0), *squares])))

    def images(
        self, transform: FloatArray, block_rows: int
    ) -> Iterator[tuple[int, int, FloatArray]]:
        """Yield ``lo, hi, Z[lo:hi] transform^T``, at most `block_rows` rows at a time."""
        for block in self._blocks(block_rows):
            yield block.lo, block.hi, multiply_rows(block, transform.T)

    def normalised(self: AnyRows, lengths: FloatArray | None = None) -> AnyRows:
        """Return the rows divided by their norms, which may be given, sharing the matrix."""
        lengths = self.lengths() if lengths is None else lengths
        state = rescale_state(self.state, inverse_lengths(lengths, self.shape[1]))
        return type(self)(self._matrix, *state, row_bound=1.0, people=self.people)

    def clip_images(
        self: AnyRows, to_final: FloatArray, longest: float, last: tuple[float, ...]
    ) -> AnyRows:
        """Return rows whose images under a map have norm at most `longest`, then constants.

        The images are never formed, because a solver multiplies its coefficients by the transposed
        map instead. The rows have norm at most one. The numbers `last`, the same for all rows,
        become further columns, which the map does not read.

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one, or replace-one-person with people.
        - Released: nothing; the rows are private.
        - Sensitivity: an image has norm at most `longest`, and depends on its own record, on what
          was released and on public numbers.
        - Proof: ``docs/proofs/engine.md``, section 2.
        """
        n, size = self.shape
        # Rounding errors of the computed images, for rows of norm at most one.
        error = 1.5 * (size + 10) * 2.0**-52 * float(np.linalg.norm(to_final))
        bounds = self.lengths(to_final) * (1.0 + (len(to_final) + 12) * 2.0**-52) + error
        factor = longest * (1.0 - 2.0**-50) / np.maximum(bounds, longest)
        scale, constant = rescale_state(self.state, factor)
        if last:
            kept = [] if constant is None else [constant]
            constant = np.column_stack([*kept, *(np.full(n, number) for number in last)])
        return type(self)(self._matrix, scale, constant, row_bound=2.0, people=self.people)

    def subset(self, index: NDArray[np.intp]) -> Rows:
        """Return a copy of the rows with these indices."""
        scale = None if self._scale is None else self._scale[index]
        return Rows(self._matrix[index], scale, self._constant_of(index), row_bound=self._bound)

    def dense(self, index: NDArray[np.intp]) -> FloatArray:
        """Return the rows of ``Z`` with these indices as an array."""
        chosen = self.subset(index)
        out = np.empty(chosen.shape)
        for block in chosen._blocks():
            write_rows(block, out[block.lo : block.hi])
        return out

    def _blocks(self, block_rows: int | None = None) -> Iterator[Block]:
        """Yield the matrix block by block; a dense block is valid until the next one is read."""
        if block_rows is None and self._views is not None:
            return iter(self._views)
        n, step = self._matrix.shape[0], min(block_rows or self.block_rows, self.block_rows)
        made = self._csr_block if sparse.issparse(self._matrix) else self._dense_block
        blocks = (made(lo, min(lo + step, n)) for lo in range(0, n, step))
        if block_rows is None and not self._extreme and is_in_place(self._matrix):
            self._views = list(blocks)
        return blocks if block_rows or self._views is None else iter(self._views)

    def _constant_of(self, rows: slice | NDArray[np.intp]) -> FloatArray | float | None:
        """Return the constant column of some rows."""
        return self._constant[rows] if isinstance(self._constant, np.ndarray) else self._constant

    def _scales(self, lo: int, hi: int) -> tuple[FloatArray | None, FloatArray | None]:
        """Return factors of some rows: those applied before a product, or None, and after it."""
        scale = None if self._scale is None else self._scale[lo:hi]
        if scale is None or not (self._extreme and (extreme := _is_extreme(scale)).any()):
            return None, scale
        return np.where(extreme, scale, 1.0), np.where(extreme, 1.0, scale)

    def _dense_block(self, lo: int, hi: int) -> Block:
        """Return rows of a matrix, as a view if possible, otherwise cast into the work space."""
        X = self._matrix
        before, scale = self._scales(lo, hi)
        constant = self._constant_of(slice(lo, hi))
        if before is None and is_in_place(X):
            return Block(lo, hi, X[lo:hi], X[lo:hi].T, scale, constant)
        if self._buffer is None:
            # The buffer has the memory order of X. With another order, products with a copied row
            # would be rounded differently from products with rows that are read in place.
            is_fortran = is_blas_layout(X) and X.strides[0] < X.strides[1]
            self._buffer = np.empty((self.block_rows, X.shape[1]), order="F" if is_fortran else "C")
        matrix = self._buffer[: hi - lo]
        np.copyto(matrix, X[lo:hi])
        if before is not None:
            matrix *= before[:, None]
        return Block(lo, hi, matrix, matrix.T, scale, constant)

    def _csr_block(self, lo: int, hi: int) -> Block:
        """Return a CSR matrix of some rows that shares the stored numbers."""
        matrix = take_rows(self._matrix, lo, hi)
        before, scale = self._scales(lo, hi)
        if before is not None:
            matrix = scale_rows(matrix, before)
        arrays = (matrix.data, matrix.indices, matrix.indptr)
        transpose = sparse_view(sparse.csc_array, arrays, matrix.shape[::-1])
        return Block(lo, hi, matrix, transpose, scale, self._constant_of(slice(lo, hi)))


def rescale_state(state: RowState, factor: FloatArray) -> RowState:
    """Multiply the rows with this state by further factors."""
    scale, constant = state
    # A subnormal product may be too large by half a spacing; from others this takes nothing.
    return (
        factor if scale is None else np.maximum(factor * scale - math.ulp(0.0), 0.0),
        None if constant is None else np.transpose(factor * np.transpose(constant)),
    )


def _is_extreme(scale: FloatArray) -> NDArray[np.bool_]:
    """Return whether factors have to be applied to the rows themselves."""
    return (scale < 1.0 / _EXTREME) | (scale > _EXTREME)


def clipped_rows(
    X: Any,
    bound: float,
    constant: FloatArray | float | None = None,
    people: People | None = None,
) -> Rows:
    """Return the rows of `X`, scaled down to a norm of at most `bound`.

    Parameters
    ----------
    X : ndarray, csr_array or csr_matrix of shape (n, d)
        Finite features.
    bound : float
        Public bound on the norm of a row before the constant column is appended.
    constant : float, ndarray of shape (n,) or None, default=None
        Constant column; not scaled.
    people : People or None, default=None
        The owners of the rows.

    Returns
    -------
    Rows
        The rows, with the resulting public `row_bound`.

    Notes
    -----
    **Guarantee.**

    - Adjacency: replace-one.
    - Released: nothing; the rows are private.
    - Sensitivity: row ``i`` depends on row ``i`` of `X` and on public numbers only, so replacing
      one record replaces one row, of a norm of at most `row_bound`.
    - Proof: ``docs/proofs/certificate.md``, section 1.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.rows.rows import clipped_rows
    >>> rows = clipped_rows(np.array([[3.0, 4.0], [0.3, 0.4]]), bound=1.0)
    >>> rows.margins(np.array([0.0, 1.0])).round(12)
    array([0.8, 0.4])
    """
    largest = 0.0 if constant is None else float(np.max(np.abs(constant), initial=0.0))
    row_bound = math.hypot(bound, largest) * UP
    return Rows(X, clip_scales(X, bound), constant, row_bound=row_bound, people=people)


def normalised_rows(
    X: Any,
    data_norm: float,
    constant: float | None,
    linear_map: LinearMap | None = None,
    *,
    clips: bool = False,
    people: People | None = None,
) -> Rows:
    """Return the rows ``[x / data_norm, constant]``, divided by their norm.

    The public `data_norm` is a scale; with `clips`, longer rows are first scaled down to it, which
    keeps the share of the constant in them. A public `linear_map` is applied to the features, and
    not to the public `constant`. As real numbers, the norms are at most one. Without a constant, a
    row shorter than ``2^-100 data_norm`` becomes zero. Without a map, the rows may belong to
    `people`.

    Notes
    -----
    **Guarantee.**

    - Adjacency: replace-one, or replace-one-person with `people`.
    - Released: nothing; the rows are private.
    - Sensitivity: a row has norm at most one, and depends on its own record and on public numbers.
    - Proof: ``docs/proofs/certificate.md``, sections 1 and 7; ``persons.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.rows.rows import normalised_rows
    >>> normalised_rows(np.array([[3.0, 0.0], [0.0, 0.0]]), 3.0, 0.75).margins(np.ones(3)).round(12)
    array([1.4, 1. ])
    """
    # Even without `clips`, rows longer than `LONGEST` are scaled down, because their squares could
    # overflow. The constant is negligible in such rows.
    scale, lengths = scales_and_lengths(X, data_norm if clips else data_norm * LONGEST)
    scale /= data_norm
    features = X if linear_map is None else linear_map.apply(X)
    rows = Rows(features, scale, constant, row_bound=1.0 + (constant or 0.0), people=people)
    squares = np.square(lengths / data_norm) + (constant or 0.0) ** 2
    return rows.normalised(np.sqrt(squares) if linear_map is None else None)


def inverse_lengths(lengths: FloatArray, size: int) -> FloatArray:
    """Return 1 / length for rows of `size` columns, rounded so that the product is at most one.

    The result is 0 for a row shorter than 2^-100: the squares of its entries may underflow, so its
    computed length is not reliable.
    """
    known = lengths > 2.0**-100
    safe = np.where(known, lengths, 1.0)
    return np.where(known, (1.0 - (size + 8) * 2.0**-52) / safe, 0.0)
