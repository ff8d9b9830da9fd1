"""Rows of numbers made from a table, each by itself, by public rules.

Numbers keep their units. Categories become a column each, texts fall into columns by a public
hash. Whatever is missing, unseen or of another type than its column becomes NaN or zeros.
"""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dp_halfspace.tables.frame import FloatArray, Frame, as_numbers, as_texts
from dp_halfspace.tables.schema import BOOLEAN, Column

# Columns that one text falls into: two texts that share one of them still differ. Columns to
# choose each from, and columns of all texts together.
_PLACES, _CHOICES, _ALL_PLACES = 3, 10, 330
# Of two categories: as far from each other as two columns would be.
_PAIR = math.sqrt(0.5)
_TRUTH = {"0": BOOLEAN[0], "1": BOOLEAN[1], "0.0": BOOLEAN[0], "1.0": BOOLEAN[1]}


@dataclass(frozen=True)
class Encoding:
    """Columns of a table in the order of the fit, and whether they had names."""

    columns: tuple[Column, ...]
    is_named: bool

    @property
    def numbers(self) -> tuple[Column, ...]:
        """Columns of numbers."""
        return tuple(column for column in self.columns if column.is_number)

    @property
    def n_hashes(self) -> int:
        """Columns that a column of texts becomes: a function of their number."""
        n_texts = sum(column.kind == "text" for column in self.columns)
        return _PLACES * max(1, min(_CHOICES, _ALL_PLACES // (_PLACES * max(n_texts, 1))))

    @property
    def length(self) -> float:
        """Root of the number of columns that are used: about the length of an encoded row."""
        return math.sqrt(max(1, sum(column.kind != "drop" for column in self.columns)))

    def encoded(self, frame: Frame) -> tuple[FloatArray, FloatArray]:
        """Return numbers, NaN for holes, within their ranges; and columns of categories.

        Columns are found by name, or by position where this table or that of the fit has none.
        """
        positions = self._positions(frame)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            # What an odd entry makes Python say would show that it is there.
            warnings.simplefilter("ignore")
            return self._encoded(frame, positions)

    def _encoded(self, frame: Frame, positions: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Encode column by column."""
        numbers = np.empty((frame.n_rows, len(self.numbers)))
        blocks, n_numbers = [np.empty((frame.n_rows, 0))], 0
        for column, j in zip(self.columns, positions, strict=True):
            if column.is_number:
                values = as_numbers(frame.columns[j])
                numbers[:, n_numbers] = np.clip(values, column.low, column.high)
                n_numbers += 1
            elif column.kind == "categories":
                blocks.append(_one_hot(as_texts(frame.columns[j]), column.categories))
            elif column.kind == "text":
                blocks.append(_hashed(as_texts(frame.columns[j]), self.n_hashes))
        return numbers, np.hstack(blocks)

    def _positions(self, frame: Frame) -> Sequence[int]:
        """Find the columns of the fit in another table."""
        if not (self.is_named and frame.is_named):
            n_features = len(frame.columns)
            if n_features != len(self.columns):
                wanted = f"it is expecting {len(self.columns)} features as input"
                raise ValueError(f"X has {n_features} features, but {wanted}")
            return range(n_features)
        place = {name: j for j, name in enumerate(frame.names)}
        missing = [column.name for column in self.columns if column.name not in place]
        if missing:
            raise ValueError(f"X has no column {missing[0]!r}, which was there at the fit")
        return [place[column.name] for column in self.columns]


def _one_hot(texts: list[str | None], categories: tuple[str, ...]) -> FloatArray:
    """Return a column for each category, or one of both signs for two of them."""
    if categories == BOOLEAN:
        texts = [_TRUTH.get(text, text) if text else text for text in texts]
    place = {category: k for k, category in enumerate(categories)}
    codes = [place.get(text, -1) if text is not None else -1 for text in texts]
    table = np.vstack([np.eye(len(categories)), np.zeros(len(categories))])
    if len(categories) == 2:
        table = np.array([[-_PAIR], [_PAIR], [0.0]])
    return np.asarray(table[codes])


def _hashed(texts: list[str | None], size: int) -> FloatArray:
    """Return unit rows with entries in columns that the text alone decides."""
    table = [np.zeros(size)]
    known: dict[str | None, int] = {None: 0}
    for text in texts:
        if text not in known:
            known[text] = len(table)
            digest = hashlib.blake2b(str(text).encode("utf-8", "surrogatepass"), digest_size=24)
            words = np.frombuffer(digest.digest(), dtype="<u8") % (size // _PLACES)
            row = np.zeros((_PLACES, size // _PLACES))
            row[np.arange(_PLACES), words.astype(np.intp)] = 1.0 / math.sqrt(_PLACES)
            table.append(row.ravel())
    return np.array(table)[[known[text] for text in texts]]
