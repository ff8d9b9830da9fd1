"""Encoded rows with few numbers: of categories and texts a list of rows, and places in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Coded: TypeAlias = tuple[NDArray[np.float64], NDArray[np.int32]]


@dataclass(frozen=True, slots=True, eq=False)
class CodedRows:
    """Rows of numbers, and for each column of categories or texts a list and places in it."""

    numbers: NDArray[Any]
    blocks: tuple[Coded, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, and of columns that the lists become."""
        return len(self.numbers), self.numbers.shape[1] + sum(t.shape[1] for t, _ in self.blocks)

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: Any) -> CodedRows:
        blocks = tuple((table, places[rows]) for table, places in self.blocks)
        return CodedRows(self.numbers[rows], blocks)

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """All that decides the rows."""
        return (self.numbers, *(array for block in self.blocks for array in block))

    def dense(self, kind: type) -> NDArray[Any]:
        """Return all columns, written out."""
        rows: NDArray[Any] = np.empty(self.shape, kind)
        last = self.numbers.shape[1]
        rows[:, :last] = self.numbers
        for table, places in self.blocks:
            first, last = last, last + table.shape[1]
            rows[:, first:last] = table[places]
        return rows


def written_out(rows: Any) -> NDArray[Any]:
    """Return rows that may be coded as an array of the type of their numbers."""
    return rows.dense(rows.numbers.dtype.type) if isinstance(rows, CodedRows) else rows


def numbers_of(rows: Any) -> NDArray[Any]:
    """Return the numbers of rows that may be coded; of an array all columns."""
    return rows.numbers if isinstance(rows, CodedRows) else rows
