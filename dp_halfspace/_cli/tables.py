"""Read tables by pandas. Errors name a file, a column or a line, never a value."""

from __future__ import annotations

import bz2
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._cli.arguments import UserError

__all__ = ["Table", "open_bytes", "read_table", "readable"]

_PARQUET = ".parquet"


@dataclass(frozen=True, slots=True)
class Table:
    """One column as text, the others as finite numbers, and the line of each row."""

    text: list[str]
    names: list[str]
    numbers: NDArray[np.float64]
    lines: list[int]


def open_bytes(path: Path) -> IO[bytes]:
    """Open a plain or a compressed file."""
    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
    return cast(IO[bytes], openers.get(path.suffix.lower(), open)(path, "rb"))


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn a failure to read a file into one sentence."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise UserError(f"cannot read {path}: it is not UTF-8 text") from error
    except (OSError, EOFError, zlib.error, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is damaged or not of the kind it is named"
        raise UserError(f"cannot read {path}: {reason}") from error


def read_table(path: Path, text: str) -> Table:
    """Read a CSV or Parquet file, the column `text` as it is and the others as numbers."""
    try:
        import pandas  # noqa: PLC0415 (optional dependency)
    except ImportError as error:
        raise UserError(
            "reading a table needs pandas: pip install 'dp-halfspace[table]'"
        ) from error
    with readable(path):
        cells = _read_cells(pandas, path)
    names = [name.strip() for name in cells.columns]
    _check_header(path, names, text)
    cells.columns = names
    cells = cells[(cells != "").any(axis=1)]  # blank lines
    names.remove(text)
    labels = cells[text].str.strip()
    numbers = np.column_stack([pandas.to_numeric(cells[n], errors="coerce") for n in names])
    good = np.column_stack([labels != "", np.isfinite(numbers)])
    if not good.all():
        row, column = np.argwhere(~good)[0]
        name = [text, *names][column]
        problem = "is not a finite number" if cells[name].iloc[row].strip() else "is empty"
        line = "row" if path.suffix.lower() == _PARQUET else "line"
        raise UserError(f"column {name!r} {problem} in {line} {cells.index[row]} of {path}")
    return Table(list(labels), names, numbers.astype(np.float64), list(cells.index))


def _read_cells(pandas: Any, path: Path) -> Any:
    """Read all cells as text into a frame indexed by line, or by row from 1."""
    try:
        if path.suffix.lower() == _PARQUET:
            cells = pandas.read_parquet(path).astype("string").fillna("").astype(object)
            return cells.set_axis(range(1, len(cells) + 1)).rename(columns=str)
        with open_bytes(path) as stream:
            first = stream.readline().decode("utf-8-sig")
        cells = pandas.read_csv(
            path,
            sep=max(",;\t", key=first.count),
            header=None,
            dtype=str,
            keep_default_na=False,
            skip_blank_lines=False,
            encoding="utf-8-sig",
        )
    except ImportError as error:
        raise UserError("reading a Parquet file needs pyarrow: pip install pyarrow") from error
    except pandas.errors.EmptyDataError as error:
        raise UserError(f"{path} is empty") from error
    except pandas.errors.ParserError as error:
        # pandas counts lines and fields here and shows no cell.
        raise UserError(f"{path} is not a table: {' '.join(str(error).split())}") from error
    cells.index += 1
    return cells.set_axis(cells.iloc[0], axis=1)[1:]


def _check_header(path: Path, header: list[str], text: str) -> None:
    """Refuse columns that cannot be told apart."""
    if text not in header:
        raise UserError(f"there is no column {text!r} in line 1, the header, of {path}")
    if len(header) == 1:
        raise UserError(f"{path} has no column besides {text!r}")
    for number, name in enumerate(header, start=1):
        if not name:
            raise UserError(f"column {number} of {path} has no name in line 1, the header")
        if header.count(name) > 1:
            raise UserError(f"two columns of {path} are named {name!r}")
