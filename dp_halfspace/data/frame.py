"""Tables of any library, column by column, without conversions that depend on several cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dp_halfspace._arrays import FloatArray
from dp_halfspace._silence import result_or
from dp_halfspace.data.cells import canonical, days_of_array, number_of
from dp_halfspace.data.validation import (
    UNREADABLE,
    arrow,
    call_silently,
    check_length,
    check_two_dimensional,
    computed,
    is_arrow_table,
    is_polars,
    refuse_foreign_arrays,
    repeated_name,
    with_readable_texts,
)

# Larger numbers would overflow when they are divided by their column scale.
LARGEST = 1e300
_BY_DTYPE = {"b": "boolean", "i": "number", "u": "number", "f": "number", "M": "date"}


@dataclass(frozen=True, slots=True)
class Frame:
    """The columns of a table; without names, `names` are positions and `is_named` is false.

    `has_dtypes` is false for rows in lists, whose columns have no types.
    """

    names: tuple[str, ...]
    is_named: bool
    columns: tuple[Any, ...]
    n_rows: int
    has_dtypes: bool = True


@dataclass(frozen=True, slots=True)
class Stored:
    """The cells of one column as they are stored: numbers, dates, or objects of any type.

    With `codes`, which are -1 for missing cells, the array holds each distinct cell once.
    """

    array: NDArray[Any]
    missing: NDArray[np.bool_] | None = None
    codes: NDArray[np.intp] | None = None

    def distinct(self) -> tuple[list[Any], NDArray[np.intp]]:
        """Return distinct cells, and the position of the cell of every row among them."""
        if self.codes is not None:
            cells = [*self.array.tolist(), None]
            return cells, self.codes % len(cells)
        if self.array.dtype.kind not in "biufmM":
            return _distinct_objects(self.array.tolist())
        values, places = np.unique(self.array, return_inverse=True)
        cells = list(values) if values.dtype.kind in "mM" else values.tolist()
        if self.missing is not None:
            places[self.missing] = len(cells)
        return [*cells, None], places

    def read(self, reading: Callable[[Any], Any], dtype: Any = np.float64) -> NDArray[Any]:
        """Return the values of a function of each cell, which is called once for equal cells."""
        cells, places = self.distinct()
        return np.asarray(np.array([reading(cell) for cell in cells], dtype=dtype)[places])

    def numbers(self, decimal: str | None = None, unit: str = "") -> FloatArray:
        """Return the numbers of all cells, dates in days, and NaN for other and missing cells."""
        kind = self.array.dtype.kind
        # Objects that all are floats have the values that they would have one by one.
        if kind == "O" and self.codes is None and _FLOATS.issuperset(map(type, self.array)):
            kind = "f"
        if kind in "biuf":
            # Adding zero removes the sign of a zero, because a string may have either sign.
            numbers = self.array.astype(np.float64) + 0.0
        elif kind == "M":
            numbers = days_of_array(self.array)
        else:
            numbers = self.read(lambda cell: number_of(canonical(cell, decimal), decimal, unit))
        if self.missing is not None:
            numbers[self.missing] = np.nan
        return np.clip(numbers, -LARGEST, LARGEST)


_FLOATS = {float, np.float64}
# Types whose equal values have the same canonical value, which is then computed once.
_PLAIN_TYPES = (str, int, float, bool, bytes, type(None))


def _distinct_objects(cells: Sequence[Any]) -> tuple[list[Any], NDArray[np.intp]]:
    """Return the distinct objects if all are of plain types, and the position of each cell."""
    found: list[Any] = []
    known: dict[Any, int] = {}
    places = np.empty(len(cells), dtype=np.intp)
    for i, stored in enumerate(cells):
        kind, cell = type(stored), stored
        if (kind is float and cell != cell) or kind.__name__ in ("NAType", "NaTType"):  # noqa: PLR0124
            kind, cell = type(None), None
        # An object of another type is equal to itself alone.
        key = (kind, cell) if kind in _PLAIN_TYPES else (None, i)
        places[i] = known.setdefault(key, len(found))
        if places[i] == len(found):
            found.append(cell)
    return found, places


def read_frame(X: Any) -> Frame:
    """Return the columns of a table of pandas, polars or Arrow, or of rows in an array or lists.

    Errors describe names and shapes only, which are public.
    """
    if sparse.issparse(X):
        raise ValueError("X is a sparse matrix, whose columns have no scales: give a dense array")
    refuse_foreign_arrays("X", X)
    X = _as_known_table(X)
    if is_polars(X):
        frame = _from_polars(X)
    elif is_arrow_table(X):
        frame = Frame(tuple(X.column_names), True, tuple(X.columns), X.num_rows)
    elif isinstance(X, list | tuple) and len(X):
        frame = _from_lists(X)
    else:
        check_two_dimensional(X)
        is_pandas = hasattr(X, "iloc")
        table = X if is_pandas else np.asarray(X)
        if not is_pandas and table.dtype.kind == "c":
            raise ValueError("Complex data not supported: column '0' must hold real numbers")
        n_rows, width = table.shape
        names = X.columns if is_pandas else range(width)
        cells = (_real_cells(X.iloc[:, j]) for j in range(width)) if is_pandas else table.T
        frame = Frame(tuple(map(str, names)), is_pandas, tuple(cells), n_rows)
    twice = repeated_name(frame.names)
    if twice is not None:
        raise ValueError(twice)
    return frame


def _real_cells(column: Any) -> Any:
    """Return a column of pandas, as objects if its numbers are complex.

    One complex cell gives all of its column this type, which a reader inferred: the others are read
    as the real numbers that they are.
    """
    stored = getattr(getattr(column.dtype, "categories", None), "dtype", column.dtype)
    if getattr(stored, "kind", "O") != "c":
        return column
    values = np.asarray(column)
    return np.where(values.imag == 0.0, values.real.astype(object), values.astype(object))


def _as_known_table(X: Any) -> Any:
    """Return `X` as a table of pandas, polars or Arrow, or unchanged if it does not convert to one.

    The conversion may run a lazy query, which may warn of a cell or quote it in an error.
    """
    if hasattr(X, "iloc") or hasattr(X, "column_names") or is_polars(X):
        return X
    if not (hasattr(X, "__arrow_c_stream__") or hasattr(X, "to_pandas")):
        return computed("X", X)
    convert = partial(arrow().table, X) if hasattr(X, "__arrow_c_stream__") else X.to_pandas
    return call_silently(convert, UNREADABLE.format("X"))


# Types of polars that Arrow does not support; from objects it would read the addresses.
_BEYOND_ARROW = ("Int128", "UInt128", "Object")


def _from_polars(X: Any) -> Frame:
    columns = (
        as_cells(each.to_list()) if str(each.dtype) in _BEYOND_ARROW else each.to_arrow()
        for each in X.get_columns()
    )
    return Frame(tuple(X.columns), True, tuple(columns), len(X))


def _from_lists(rows: Sequence[Any]) -> Frame:
    """Return the columns of rows in lists; numpy would choose one type for all of them.

    One row in another container must not change how the others are read.
    """
    lists = call_silently(lambda: list(map(_cells_of_row, rows)), f"X {_NO_ROWS}")
    width = len(lists[0])
    if any(len(row) != width for row in lists):
        raise ValueError("X must be two-dimensional: its rows differ in length")
    columns = tuple(as_cells([row[j] for row in lists]) for j in range(width))
    return Frame(tuple(map(str, range(width))), False, columns, len(lists), has_dtypes=False)


_NO_ROWS = (
    "must be two-dimensional: one of its rows is no list of cells, or could not be read. Give an "
    "array or a data frame, such as pandas.DataFrame(X) for a list of mappings"
)


def _cells_of_row(row: Any) -> list[Any]:
    if isinstance(row, str | bytes | bytearray | Mapping | Set):
        raise ValueError(f"X {_NO_ROWS}")
    return list(row)


def kind_of(column: Any) -> str:
    """Return the kind of a column by its dtype: number, boolean, date or text."""
    arrow = _arrow_type(column)
    if arrow is not None:
        return _kind_of_arrow(arrow)
    return _BY_DTYPE.get(str(getattr(column.dtype, "kind", "O")), "text")


def _arrow_type(column: Any) -> Any:
    """Return the type of a column that Arrow stores, in its own table or in one of pandas."""
    if hasattr(column, "dtype"):
        return getattr(column.dtype, "pyarrow_dtype", None)
    return column.type


def _kind_of_arrow(kind: Any) -> str:
    types = arrow().types
    if types.is_boolean(kind):
        return "boolean"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    return "date" if types.is_timestamp(kind) or types.is_date(kind) else "text"


def read_column(column: Any) -> Stored:
    """Return the cells of a column exactly as they are stored."""
    dtype: Any = getattr(column, "dtype", None)
    if _arrow_type(column) is not None or getattr(dtype, "storage", None) == "pyarrow":
        return _read_arrow(column.array.__arrow_array__() if hasattr(column, "array") else column)
    if hasattr(dtype, "categories"):
        return Stored(as_cells(list(dtype.categories)), codes=column.cat.codes.to_numpy(np.intp))
    if getattr(dtype, "tz", None) is not None:
        return Stored(column.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy())
    base = getattr(dtype, "numpy_dtype", None)
    if base is not None and base.kind in "biuf":
        return Stored(column.to_numpy(dtype=base, na_value=base.type(0)), column.isna().to_numpy())
    return Stored(np.asarray(column))


def column_of(
    name: str, values: Any, n_rows: int, what: str, *, hides_rows: bool = False
) -> Stored:
    """Return the cells of one column of numpy, pandas or Arrow, or of any other list.

    It has to hold `what` for each of the rows, whose number no error states if it is hidden.
    """
    refuse_foreign_arrays(name, values)
    # A mapping would be read as its keys, each of which is another one.
    is_other = isinstance(values, str | bytes | Mapping | Set)
    if is_other or not hasattr(values, "__len__") or getattr(values, "ndim", 1) != 1:
        no_name = ", and not the name of a column" if isinstance(values, str) else ""
        raise ValueError(f"{name} must be one-dimensional: {what}{no_name}")
    check_length(name, values, n_rows, hides_rows=hides_rows)
    if not (hasattr(values, "iloc") or hasattr(values, "type")):
        if str(getattr(values, "dtype", None)) in _BEYOND_ARROW:
            values = values.to_list()
        values = computed(name, values)
        values = values if isinstance(values, np.ndarray) else as_cells(values)
    return read_column(values)


def _read_arrow(column: Any) -> Stored:
    """Return the cells of a column of Arrow, without conversions through other types."""
    types, column = arrow().types, with_readable_texts(column)
    kind = column.type
    if types.is_dictionary(kind):
        return _read_arrow(column.cast(kind.value_type))
    missing = np.asarray(column.is_null(), dtype=bool)
    if types.is_boolean(kind):
        return Stored(np.asarray(column.fill_null(False), dtype=bool), missing)
    if types.is_integer(kind) or (types.is_floating(kind) and kind.bit_width > 16):
        return Stored(np.asarray(column.fill_null(0), dtype=kind.to_pandas_dtype()), missing)
    if _kind_of_arrow(kind) == "date":
        unit = {"date32[day]": "D", "date64[ms]": "ms"}.get(str(kind)) or kind.unit
        steps = column.cast("int32" if unit == "D" else "int64").cast("int64").fill_null(0)
        return Stored(np.asarray(steps, dtype=np.int64).view(f"M8[{unit}]"), missing)
    if types.is_time(kind):
        # Times of Python have no nanoseconds.
        column = column.cast("string")
    # One of them may have no value in Python.
    cells = result_or(None, column.to_pylist)
    return Stored(as_cells(list(column) if cells is None else cells))


def as_cells(values: Sequence[Any]) -> NDArray[Any]:
    """Return an array of the objects; numpy itself would read lists among them as rows."""
    return np.fromiter(values, dtype=object, count=len(values))
