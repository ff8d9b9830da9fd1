"""Conversion of the rows of a table to numbers, each row independently, by public rules.

Numbers keep their units. Each category becomes a column, and strings are assigned to columns by a
public hash. A value that is missing, unseen or of another type than its column becomes NaN or
zeros. `CodedRows` stores such rows compactly: as a list of encoded categories, and positions in it.
"""

from __future__ import annotations

import functools
import hashlib
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dp_halfspace._arrays import FloatArray
from dp_halfspace.data.cells import (
    canonical,
    category_of,
    date_in_format,
    date_of,
    hashed_text_of,
    spellings,
    text_of,
    truth_of,
)
from dp_halfspace.data.frame import LARGEST, Frame, Stored, read_column
from dp_halfspace.data.schema import BOOLEAN, Column

# Number of columns of one string: two strings that share one of them still differ.
_ONES = 3
# Least and largest number of columns from which each of these is chosen.
_CHOICES = (2, 10)
# Number of columns of all strings together that limits the choices of each.
_ALL_PLACES = 330
# A word: consecutive letters, digits and underscores of any alphabet.
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Encoding:
    """The columns of a table in the order of the fit, and whether they had names."""

    columns: tuple[Column, ...]
    is_named: bool

    @property
    def numbers(self) -> tuple[Column, ...]:
        """The columns of numbers."""
        return tuple(column for column in self.columns if column.is_number)

    @property
    def indicated(self) -> NDArray[np.intp]:
        """Positions of the numbers that have an indicator of what is missing."""
        return np.flatnonzero([column.indicates_missing for column in self.numbers])

    @property
    def n_hashes(self) -> int:
        """Number of encoded columns of a column of strings, by the number of such columns."""
        n_texts = sum(column.kind == "text" for column in self.columns)
        least, most = _CHOICES
        return _ONES * max(least, min(most, _ALL_PLACES // (_ONES * max(n_texts, 1))))

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of encoded columns of each column, in the order of encoded rows: numbers first."""
        others = [c for c in self.columns if not (c.is_number or c.kind == "drop")]
        return (*(1 for _ in self.numbers), *map(self.width, others))

    def width(self, column: Column) -> int:
        """Return the number of encoded columns of a column that is not numeric."""
        if column.kind == "text":
            return self.n_hashes
        if column.kind == "words":
            return column.n_columns
        size = len(column.categories)
        return 1 if size == 2 else size

    @property
    def length(self) -> float:
        """Square root of the number of used columns: the approximate norm of an encoded row."""
        return math.sqrt(max(1, sum(column.kind != "drop" for column in self.columns)))

    @np.errstate(all="ignore")
    def to_coded_rows(self, frame: Frame) -> CodedRows:
        """Return numbers within their ranges, NaN for missing ones, and lists of categories.

        Columns are found by name, or by position if this table or that of the fit has no names.
        With names, dropped columns may be absent.
        """
        positions = self.positions(frame)
        numbers = np.empty((frame.n_rows, len(self.numbers)))
        blocks: list[Coded] = []
        n_numbers = 0
        for column, j in zip(self.columns, positions, strict=True):
            if column.kind == "drop":
                continue
            cells = read_column(frame.columns[j])
            if column.is_number:
                values = read_numbers(cells, column)
                numbers[:, n_numbers] = np.clip(values, column.low, column.high)
                n_numbers += 1
            elif column.kind == "categories":
                blocks.append(_encode_categories(cells, column))
            elif column.kind == "words":
                blocks.append(_count_words(cells, column))
            else:
                blocks.append(_hash_column(cells, column, self.n_hashes))
        return CodedRows(numbers, tuple(blocks))

    def positions(self, frame: Frame) -> Sequence[int]:
        """Find the columns of the fit in another table, which need not have the dropped ones.

        The position of a dropped column that is absent is -1.
        """
        if not (self.is_named and frame.is_named):
            n_features = len(frame.columns)
            if n_features != len(self.columns):
                wanted = f"it is expecting {len(self.columns)} features as input"
                raise ValueError(f"X has {n_features} features, but {wanted}")
            return range(n_features)
        place = {name: j for j, name in enumerate(frame.names)}
        missing = [c.name for c in self.columns if c.kind != "drop" and c.name not in place]
        if missing:
            names = ", ".join(map(repr, missing))
            raise ValueError(f"X lacks columns of the table of the fit: {names}")
        return [place.get(column.name, -1) for column in self.columns]


def read_numbers(cells: Stored, column: Column) -> FloatArray:
    """Return numbers, or days since 1970, by the rule of a column."""
    if column.kind == "number":
        return cells.numbers(column.decimal, column.unit)
    if column.date_format is None:
        if cells.array.dtype.kind == "M":
            return cells.numbers()
        days = cells.read(lambda cell: date_of(canonical(cell, column.decimal)))
    else:
        days = cells.read(lambda cell: date_in_format(cell, str(column.date_format)))
    return np.asarray(np.clip(days, -LARGEST, LARGEST))


def _encode_categories(cells: Stored, column: Column) -> Coded:
    """Return a column for each category, or one column with both signs for two categories."""
    categories, decimal = column.categories, column.decimal
    if set(categories) == set(BOOLEAN):
        truth: dict[Any, int] = {text == BOOLEAN[1]: k for k, text in enumerate(categories)}
        codes = cells.read(lambda cell: truth.get(truth_of(canonical(cell, decimal)), -1), np.intp)
    else:
        place = spellings(categories)
        codes = cells.read(lambda cell: _find_category(category_of(cell, decimal), place), np.intp)
    size = len(categories)
    if size == 2:
        # The distance of two categories in one column is that with two columns.
        entry = math.sqrt(0.5)
        return _code(sparse.csr_array([[-entry], [entry], [0.0]]), codes)
    return _code(_table(np.arange(size)[:, None], size), codes)


def _table(columns: NDArray[Any], width: int) -> Any:
    """Return rows of norm one with equal entries in the given columns, and a row of zeros."""
    n_rows, n_entries = columns.shape
    ends = np.append(np.arange(n_rows + 1), n_rows) * n_entries
    values = np.full(columns.size, 1.0 / math.sqrt(n_entries))
    return sparse.csr_array((values, columns.ravel(), ends), shape=(n_rows + 1, width))


def _find_category(text: str | None, place: dict[str, int]) -> int:
    """Return the position of a category or -1; strings of booleans match in any case."""
    if text is None or text in place:
        return -1 if text is None else place[text]
    word = text.lower()
    return place.get(word, -1) if word in ("yes", "no") else -1


def _hash_column(cells: Stored, column: Column, size: int) -> Coded:
    """Return rows of norm one with entries in columns that depend on the string only."""
    raw, places = cells.distinct()
    choices = size // _ONES
    codes = [_hash_text(hashed_text_of(cell, column.decimal), choices) for cell in raw]
    return _code(_hashed_rows(choices), np.array(codes)[places])


def _hash_text(text: str | None, choices: int) -> int:
    """Return the index of the row of one string in `_hashed_rows`."""
    if text is None:
        return int(choices**_ONES)
    digits = [number % choices for number in _hashes(text, _ONES)]
    return int(np.ravel_multi_index(digits, (choices,) * _ONES))


def _hashes(text: str, count: int) -> list[int]:
    """Return public hashes of a text, of 64 bits each."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8 * count)
    return np.frombuffer(digest.digest(), dtype="<u8").tolist()  # type: ignore[no-any-return]


@functools.lru_cache(maxsize=_CHOICES[1])
def _hashed_rows(choices: int) -> Any:
    """Return the rows of all hashes, and a row of zeros for a missing string."""
    digits = np.column_stack(np.unravel_index(np.arange(choices**_ONES), (choices,) * _ONES))
    return _table(digits + choices * np.arange(_ONES), _ONES * choices)


def _count_words(cells: Stored, column: Column) -> Coded:
    """Return counts of the words of each string, in columns that depend on the word only."""
    raw, places = cells.distinct()
    # The words are private, and a cache of the module would keep them after the fit.
    known: dict[str, int] = {}
    columns: list[int] = []
    values: list[float] = []
    ends = [0]
    for cell in raw:
        text, counts = text_of(canonical(cell, column.decimal)) or "", Counter[int]()
        for word in _WORD.findall(text.lower()):
            if word not in known:
                known[word] = _hashes(word, 1)[0] % column.n_columns
            counts[known[word]] += 1
        # For a string of any length, the norm is at most that of a category.
        norm = math.sqrt(sum(count * count for count in counts.values()))
        columns += counts
        values += [count / max(1.0, norm) for count in counts.values()]
        ends.append(len(columns))
    arrays = (np.array(values, dtype=np.float64), np.array(columns, dtype=np.intp), np.array(ends))
    return _code(sparse.csr_array(arrays, shape=(len(raw), column.n_columns)), places)


def _code(table: Any, places: NDArray[Any]) -> Coded:
    """Return a list of rows and positions in it; negative ones count from its end."""
    return table, (places % table.shape[0]).astype(np.int32)


# A CSR matrix, and positions of its rows.
Coded: TypeAlias = tuple[Any, NDArray[np.int32]]


@dataclass(frozen=True, slots=True, eq=False)
class CodedRows:
    """Rows of numbers, and for each column of categories or strings a list and positions in it."""

    numbers: NDArray[Any]
    blocks: tuple[Coded, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, and of columns including those of the lists."""
        return len(self.numbers), self.numbers.shape[1] + sum(t.shape[1] for t, _ in self.blocks)

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: Any) -> CodedRows:
        blocks = tuple((table, places[rows]) for table, places in self.blocks)
        return CodedRows(self.numbers[rows], blocks)

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """All arrays that determine the rows."""
        tables = [table for table, _ in self.blocks]
        parts = [(table.data, table.indices, table.indptr) for table in tables]
        return (self.numbers, *chain(*parts), *(places for _, places in self.blocks))

    def dense(self, kind: type) -> NDArray[Any]:
        """Return the rows with all columns as an array."""
        rows: NDArray[Any] = np.empty(self.shape, kind)
        last = self.numbers.shape[1]
        rows[:, :last] = self.numbers
        for table, places in self.blocks:
            first, last = last, last + table.shape[1]
            rows[:, first:last] = table[places].toarray()
        return rows


def written_out(rows: Any) -> NDArray[Any]:
    """Return rows, which may be coded, as an array of the type of their numbers."""
    return rows.dense(rows.numbers.dtype.type) if isinstance(rows, CodedRows) else rows


def numbers_of(rows: Any) -> NDArray[Any]:
    """Return the columns of numbers of coded rows, and all columns of an array."""
    return rows.numbers if isinstance(rows, CodedRows) else rows
