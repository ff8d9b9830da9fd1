"""People who own rows of a table: the unit of privacy of a fit with groups.

A row weighs one over the number of rows of its person, so a person with all rows counts like a
record. How many rows there are is private: what is computed for a row by itself is computed at the
place of its person, in blocks of the public number of people. Proofs: ``docs/proofs/persons.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

# Weights are multiples of 2^-30 at most: sums of them are exact in any order.
_GRID_BITS, _EXACT_BITS = 30, 52
_PEOPLE_AT_A_TIME = 1024


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """People, in public order, who own consecutive rows.

    Attributes
    ----------
    counts : ndarray of shape (n_people,)
        Number of rows of each, at least one; private.
    """

    counts: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def starts(self) -> NDArray[np.intp]:
        """Number of the first row of each."""
        return np.cumsum(self.counts) - self.counts

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weight of every row: one over the rows of its person, rounded down to a grid."""
        return self.weights_for(1)

    def weights_for(self, largest: int) -> NDArray[np.float64]:
        """Return weights whose sums are exact with factors that are integers up to `largest`."""
        bits = _EXACT_BITS - len(self).bit_length() - (largest - 1).bit_length()
        one = 1 << min(_GRID_BITS, bits)
        return np.repeat((one // self.counts) / one, self.counts)

    def places(self, block_rows: int) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp], int]]:
        """Yield numbers of rows, their places in a block of people, and the size of the block.

        First the first rows of the people of a block, then their second ones, and so on.
        """
        starts = self.starts
        for lo in range(0, len(self), block_rows):
            counts = self.counts[lo : lo + block_rows]
            for number in range(int(counts.max())):
                place = np.flatnonzero(counts > number)
                yield starts[lo + place] + number, place, len(counts)

    def row_by_row(self, function: Callable[..., NDArray[Any]]) -> NDArray[Any]:
        """Return for every row what a function of a list of rows makes of it.

        Each row stands at the place of its person, among all first rows or in a block of later
        ones; where a person has no such row, the last one fills the place.
        """
        starts, n = self.starts, len(self)
        first = function(starts)
        out = np.empty((self.counts.sum(), *first.shape[1:]), dtype=first.dtype)
        out[starts] = first
        for lo in range(0, n, _PEOPLE_AT_A_TIME):
            block = slice(lo, min(lo + _PEOPLE_AT_A_TIME, n))
            for number in range(1, int(self.counts[block].max())):
                index = starts[block] + np.minimum(number, self.counts[block] - 1)
                there = self.counts[block] > number
                out[index[there]] = function(index)[there]
        return out

    def gathered(self, block_rows: int, function: Callable[..., NDArray[Any]]) -> NDArray[Any]:
        """Return for every row what a function of `places` computes at the place of its person."""
        places = list(self.places(block_rows))
        found = np.concatenate([function(*where)[where[1]] for where in places])
        out = np.empty_like(found)
        out[np.concatenate([index for index, _, _ in places])] = found
        return out


def placed(X: Any, index: NDArray[np.intp], place: NDArray[np.intp], size: int) -> Any:
    """Return `size` rows like those of an array or CSR matrix: some at their places, else zero."""
    if sparse.issparse(X):
        rows, indptr = X[index], np.zeros(size + 1, dtype=X.indptr.dtype)
        indptr[place + 1] = np.diff(rows.indptr)
        arrays = (rows.data, rows.indices, np.cumsum(indptr, dtype=indptr.dtype))
        return sparse.csr_array(arrays, shape=(size, X.shape[1]))
    # In the order of X: lengths of rows are summed in that order.
    is_fortran = X.ndim == 2 and X.strides[0] < X.strides[1]
    out = np.zeros((size, *X.shape[1:]), dtype=X.dtype, order="F" if is_fortran else "C")
    out[place] = X[index]
    return out
