"""Tables of any library, column by column; no entry can make reading a column fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dp_halfspace._validation import check_two_dimensional, is_missing, refuse_chunks, refuse_mask

FloatArray = NDArray[np.float64]
# Larger numbers would overflow where they are brought to their units.
_LARGEST = 1e300
_EPOCH = datetime(1970, 1, 1)
_DAYS = {
    "Y": 365.2425,
    "M": 30.436875,
    "W": 7.0,
    "D": 1.0,
    "h": 1 / 24,
    "m": 1 / 1440,
    "s": 1 / 86_400,
}
_DAYS |= {unit: _DAYS["s"] / 1000**power for power, unit in enumerate(("ms", "us", "ns"), 1)}


@dataclass(frozen=True, slots=True)
class Frame:
    """Columns of a table; `names` are positions, and `is_named` false, where it has none."""

    names: tuple[str, ...]
    is_named: bool
    columns: tuple[Any, ...]
    n_rows: int


def read_frame(X: Any) -> Frame:
    """Take a table apart: pandas, what converts to it (polars, Arrow), or rows of an array.

    Errors say what is wrong with names and shape, which are public.
    """
    if sparse.issparse(X):
        raise ValueError("X is a sparse matrix, and sparse columns have no units: give it dense")
    refuse_mask("X", X)
    refuse_chunks("X", X)
    if not hasattr(X, "iloc"):
        if hasattr(X, "to_pandas"):
            X = X.to_pandas()
        elif hasattr(X, "__dataframe__"):
            from pandas.api import interchange  # noqa: PLC0415 (optional dependency)

            X = interchange.from_dataframe(X)
    check_two_dimensional(X)
    if hasattr(X, "iloc"):
        names = tuple(str(name) for name in X.columns)
        columns: Iterable[Any] = (X.iloc[:, j] for j in range(len(names)))
        n_rows = len(X)
    else:
        array = np.asarray(X)
        n_rows = len(array)
        names = tuple(str(j) for j in range(array.shape[1]))
        columns = array.T
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise ValueError(f"X has several columns {twice[0]!r}: names tell columns apart")
    frame = Frame(names, hasattr(X, "iloc"), tuple(columns), n_rows)
    for name, column in zip(frame.names, frame.columns, strict=True):
        if kind_of(column) == "c":
            raise ValueError(f"Complex data not supported: column {name!r} must hold real numbers")
    return frame


def kind_of(column: Any) -> str:
    """Return the kind of the dtype of a column, as numpy names kinds."""
    return str(getattr(column.dtype, "kind", "O"))


def _array(column: Any) -> NDArray[Any]:
    """Return a column as an array of floats, dates or objects."""
    kind = kind_of(column)
    if isinstance(column, np.ndarray):
        return column
    if kind in "biuf":
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    # Dates keep their resolution: in a finer one some would have no number.
    return np.asarray(column.to_numpy() if kind in "mM" else column.to_numpy(dtype=object))


def as_numbers(column: Any) -> FloatArray:
    """Return floats, dates as days since 1970, NaN for whatever is neither."""
    array = _array(column)
    if array.dtype.kind in "biuf":
        numbers = array.astype(np.float64)
    elif array.dtype.kind in "mM":
        numbers = _days(array)
    else:
        numbers = np.array([_number(value) for value in array.tolist()], dtype=np.float64)
    return np.clip(numbers, -_LARGEST, _LARGEST)


def _days(array: NDArray[Any]) -> FloatArray:
    """Return days since 1970, or the length of a duration in days."""
    unit, count = np.datetime_data(array.dtype)
    days = array.astype(np.int64) * (count * _DAYS.get(unit, 0.0))
    days[np.isnat(array)] = np.nan
    return np.asarray(days)


def _number(value: Any) -> float:
    """Read one entry of a mixed column; what an object says of itself may fail in any way."""
    try:
        return float(value)
    except Exception:  # noqa: BLE001 - whether it fails is private
        pass
    try:
        if isinstance(value, timedelta):
            return float(value / timedelta(days=1))
        day = datetime.fromisoformat(value) if isinstance(value, str) else value
        if isinstance(day, datetime):
            return float((day.replace(tzinfo=None) - _EPOCH) / timedelta(days=1))
        return float(day.toordinal() - _EPOCH.toordinal())
    except Exception:  # noqa: BLE001
        return np.nan


def as_texts(column: Any) -> list[str | None]:
    """Return the text of every entry, None where it is missing; whole numbers have no fraction."""
    return [text_of(value) for value in _array(column).tolist()]


def text_of(value: Any) -> str | None:
    """Return one text for all ways to write a value."""
    try:
        if isinstance(value, str):
            return str(value)
        if is_missing(value):
            return None
        if isinstance(value, Real) and not isinstance(value, Integral):
            number = float(value)
            return str(int(number)) if number.is_integer() else repr(number)
        return str(value)
    except Exception:  # noqa: BLE001 - whether it fails is private
        return None
