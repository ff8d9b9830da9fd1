"""CSV files read in blocks of lines: columns of floats where no cell loses anything, else texts.

A column becomes floats only where the canonical value of every float is that of its text, so the
way to store a cell changes nothing: what a row becomes is a function of its own cells.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._cli.arguments import UserError

# Lines that are split at a time.
_LINES = 2**14
# From here floats are not all whole numbers, and two texts may spell the same float.
_FIRST_ROUNDED = 2.0**53
# Any other character means that a text is read by itself.
_NOT_PLAIN = re.compile(r"[^0-9.eE+\-\n]")


def read_columns(
    file: Iterator[str],
    names: Sequence[str],
    separator: str,
    path: Path,
    is_verbatim: Callable[[str], bool],
) -> list[Any]:
    """Return the columns below the header: floats, or categories of pandas in any order.

    Columns that are verbatim stay texts, whatever they hold. A row is a line: a quote that is not
    closed would join two of them, and the number of rows, which is public, would follow from what
    a record holds.
    """
    columns = [_Column(is_verbatim(name)) for name in names]
    lines = ((number, line) for number, line in enumerate(file, 2) if line.strip())
    while block := list(islice(lines, _LINES)):
        rows = _split_plain([line for _, line in block], separator, len(names))
        if rows is None:
            rows = [_checked_fields(line, separator, path, n, len(names)) for n, line in block]
        for column, cells in zip(columns, zip(*rows, strict=True), strict=True):
            column.add(cells)
    # The blocks of a column are given up before the next one is put together.
    return [columns.pop(0).values() for _ in names]


class _Column:
    """A column while it is read, block by block."""

    def __init__(self, is_verbatim: bool) -> None:
        self._is_verbatim = is_verbatim
        self._places = _Places()
        self._blocks: list[NDArray[Any]] = []

    def add(self, cells: Sequence[str]) -> None:
        """Keep the cells of a block as floats or as places in the list of all texts."""
        numbers = None if self._is_verbatim else plain_numbers(cells)
        if numbers is None:
            place = self._places.__getitem__
            numbers = np.fromiter(map(place, map(str.strip, cells)), np.int32, len(cells))
        self._blocks.append(numbers)

    def values(self) -> Any:
        """Return floats if all blocks are floats, else categories."""
        import pandas  # noqa: PLC0415 (optional dependency)

        if self._blocks and all(block.dtype.kind == "f" for block in self._blocks):
            return np.concatenate(self._blocks)
        parts = [self._codes(block) for block in self._blocks]
        codes = np.concatenate(parts) if parts else np.empty(0, np.int32)
        known = pandas.Index(list(self._places), dtype=object)
        return pandas.Categorical.from_codes(codes, categories=known)

    def _codes(self, block: NDArray[Any]) -> NDArray[np.int32]:
        """Return the places of a block; those of floats come to the list of all cells."""
        if block.dtype.kind != "f":
            return block
        numbers, inverse = np.unique(block, return_inverse=True)
        # What is missing has no category.
        places = [-1 if number != number else self._places[number] for number in numbers.tolist()]  # noqa: PLR0124
        return np.array(places, dtype=np.int32)[inverse]


class _Places(dict[Any, int]):
    """The place of each cell in the list of all that were seen."""

    def __missing__(self, cell: Any) -> int:
        self[cell] = place = len(self)
        return place


def plain_numbers(cells: Sequence[str]) -> NDArray[np.float64] | None:
    """Return numbers, NaN where a cell is empty, if each has the canonical value of its text.

    That is so for plain numbers below 2^53, whatever the decimal sign but for a decimal comma.
    """
    text = "\n".join(cells)
    if _NOT_PLAIN.search(text):
        return None
    try:
        found = np.array([float(cell or "nan") for cell in cells])
    except ValueError:
        return None
    return None if (np.abs(found) >= _FIRST_ROUNDED).any() else found


def _split_plain(lines: Sequence[str], separator: str, width: int) -> list[list[str]] | None:
    """Split lines without quotes; None if a quote is there, or another number of fields."""
    if separator == " " or any('"' in line for line in lines):
        return None
    rows = [line.rstrip("\r\n").split(separator) for line in lines]
    return rows if all(len(row) == width for row in rows) else None


def _checked_fields(line: str, separator: str, path: Path, number: int, width: int) -> list[str]:
    """Split one line, which must have as many fields as the header."""
    row = fields(line, separator, path, number)
    if len(row) != width:
        raise UserError(
            f"{path} is not a table: line {number} has {len(row)} fields, and the header {width}"
        )
    return row


def fields(line: str, separator: str, path: Path, number: int) -> list[str]:
    """Split one line, which must close its quotes."""
    is_blank = separator == " "
    text = line.strip() if is_blank else line.rstrip("\r\n")
    try:
        reader = csv.reader([text], delimiter=separator, skipinitialspace=is_blank, strict=True)
        return [cell.strip() for cell in next(reader)]
    except csv.Error:
        pass
    raise UserError(
        f"{path} is not a table: line {number} has a quote that is not closed, or closed in the "
        "middle of a field. A cell may hold no line break: write such a table as Parquet"
    )
