"""People who own rows of a table: the unit of privacy of a fit with groups.

The weight of a row is one over the number of rows of its person, so all rows of a person together
count like one record. The number of rows is private. Therefore everything that is computed for a
single row is computed in a block of public shape, at a place that depends on its person and on its
number among the rows of this person. Proofs: ``docs/proofs/persons.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._memory import AT_ONCE

# Bits of a weight: weights are multiples of 2^-30 or of a larger power of two, so that their sums
# are exact in any order.
GRID_BITS = 30
# Largest number of bits of a sum of weights.
EXACT_BITS = int(np.finfo(np.float64).nmant)


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """People in public order, each with consecutive rows.

    Attributes
    ----------
    counts : ndarray of shape (n_people,)
        Number of rows of each person, at least one; private.
    """

    counts: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def starts(self) -> NDArray[np.intp]:
        """Index of the first row of each person."""
        return np.cumsum(self.counts) - self.counts

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weight of every row: one over the rows of its person, rounded down to a grid."""
        return self.weights_for(1)

    def weights_for(self, largest: int) -> NDArray[np.float64]:
        """Return weights whose sums are exact with factors that are integers up to `largest`."""
        bits = EXACT_BITS - len(self).bit_length() - (largest - 1).bit_length()
        one = 1 << min(GRID_BITS, bits)
        return np.repeat((one // self.counts) / one, self.counts)

    def row_by_row(
        self, function: Callable[..., NDArray[Any]], block_rows: int | None = None
    ) -> NDArray[Any]:
        """Return for every row the result of a function that is called with a list of rows.

        Each row has its place among the first rows, of all people or of `block_rows`, or in a block
        of later ones. If a person has no such row, the last row of the person fills the place.
        """
        step = block_rows or len(self)
        parts = [self.starts[lo : lo + step] for lo in range(0, len(self), step)]
        first = np.concatenate([function(part) for part in parts])
        out = np.empty((self.counts.sum(), *first.shape[1:]), dtype=first.dtype)
        out[self.starts] = first
        for index, is_there in self._tiles():
            out[index[is_there]] = function(index)[is_there]
        return out

    def _tiles(self) -> Iterator[tuple[NDArray[np.intp], NDArray[np.bool_]]]:
        """Yield blocks of later rows: their indices, and which places have a row of their own.

        A block has at most `AT_ONCE` rows, a power of two. Its shape and the place of a row depend
        on the number of the row among those of its person and on the public place of the person. A
        block contains the second rows of a fixed number of people, or the third and fourth rows of
        half as many people, and so on, up to rows of a single person. Empty blocks are left out, so
        the work is proportional to the number of rows.
        """
        starts, width = self.starts, 1

        def tile(people: slice, first: int) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
            counts, numbers = self.counts[people, None], np.arange(first, first + width)
            index = starts[people, None] + np.minimum(numbers, counts - 1)
            return index.ravel(), (numbers < counts).ravel()

        while width < AT_ONCE:
            n_people = AT_ONCE // width
            for block in np.unique(np.flatnonzero(self.counts > width) // n_people):
                yield tile(slice(block * n_people, (block + 1) * n_people), width)
            width *= 2
        for person in np.flatnonzero(self.counts > AT_ONCE):
            for first in range(AT_ONCE, int(self.counts[person]), AT_ONCE):
                yield tile(slice(person, person + 1), first)
