"""The persons to whom rows belong, by the identifiers that a user gives."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dp_halfspace.data.cells import category_of
from dp_halfspace.data.chunks import Chunks
from dp_halfspace.data.frame import column_of
from dp_halfspace.data.people import People
from dp_halfspace.data.validation import FIRST_ROUNDED


def sort_by_person(groups: Any, X: Any, codes: Any = None) -> tuple[Any, People | None, Any]:
    """Sort rows and class indices by person, in the order of first rows, if there are groups."""
    if groups is None:
        return X, None, codes
    if isinstance(X, Chunks):
        raise ValueError("groups is not supported for rows in chunks: give them as arrays")
    owner = owners_of_rows(groups, X.shape[0])
    order = np.argsort(owner, kind="stable")
    if sparse.issparse(X):
        rows = X[order]
    else:
        rows = np.empty_like(X)  # in the memory order of X, in which norms are summed
        np.take(X, order, axis=0, out=rows)
    return rows, People(np.bincount(owner)), None if codes is None else codes[order]


def owners_of_rows(groups: Any, n_rows: int) -> NDArray[np.intp]:
    """Return the person of each row, numbered by first rows; errors name and count nobody."""
    what = "one text, number or date for each row, the person that it belongs to"
    column = column_of("groups", groups, n_rows, what, hides_rows=True)
    names = column.read(_name_of, dtype=object).tolist()
    if None in names:
        raise ValueError(
            "groups contains a value that names no person: a missing one, a list or tuple, or a "
            "float from 2^53 on. Join parts to one text, and read long whole numbers as text"
        )
    number: dict[str, int] = {}
    return np.array([number.setdefault(name, len(number)) for name in names], dtype=np.intp)


def _name_of(cell: Any) -> str | None:
    """Return the same name for all ways to write a person: 7, 7.0, "7", "007" and b"7".

    One name with a letter turns a column of numbers into strings, with their leading zeros, and one
    that is bytes turns a column of strings into bytes. What names no person is None.
    """
    if type(cell) is int and abs(cell) < FIRST_ROUNDED:
        return str(cell)  # most identifiers, without the rules for other cells
    has_parts = isinstance(cell, Mapping | list | tuple | Set | np.ndarray | np.void)
    if has_parts or (isinstance(cell, float) and abs(cell) >= FIRST_ROUNDED):
        return None
    name = category_of(cell)
    # All numbers with too many digits to be written out are infinite.
    return None if name in ("inf", "-inf") else name
