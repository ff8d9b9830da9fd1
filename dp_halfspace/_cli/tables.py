"""Files of tables: CSV as texts, each cell by itself, and Parquet by the file's own schema.

Every cell is read by a public rule, whatever the other rows hold. Errors name a file, a column or
a line, never a cell.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dp_halfspace._cli.arguments import UserError
from dp_halfspace.data.cells import Moment, canonical, text_of, truth_of
from dp_halfspace.data.frame import read_frame, stored
from dp_halfspace.data.schema import Column, read_schema, resolved_columns

_SEPARATORS = ",;\t| "
_WHOLE = re.compile(r"([+-]?[0-9]+)\.0+")
_OPEN: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


@dataclass(frozen=True, slots=True)
class Cells:
    """A frame whose rows are numbered from 1; of a CSV it holds texts, by a sign of decimals."""

    path: Path
    frame: Any
    decimal: str | None
    n_unnamed: int = 0
    is_text: bool = True


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn a failure to read a file into one sentence."""
    try:
        yield
    except UnicodeError as error:
        raise UserError(
            f"cannot read {path}: it is not text of that encoding; say --encoding cp1252, or "
            "what else it is"
        ) from error
    except LookupError as error:
        raise UserError("--encoding: there is no such encoding; try cp1252") from error
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, lzma.LZMAError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is damaged or not of the kind it is named"
        raise UserError(f"cannot read {path}: {reason}") from error


def read_cells(options: Any, wanted: Sequence[str]) -> Cells:
    """Read a file; the columns `wanted` must be there and help to find the separator."""
    try:
        import pandas  # noqa: PLC0415 (optional dependency)
    except ImportError as error:
        raise UserError(
            "reading a table needs pandas: pip install 'dp-halfspace[table]'"
        ) from error
    path = options.table
    is_text = path.suffix.lower() != ".parquet"
    with readable(path):
        try:
            if is_text:
                cells, decimal = _read_csv(pandas, options, set(wanted))
            else:
                cells, decimal = pandas.read_parquet(path, dtype_backend="pyarrow"), None
        except ImportError as error:
            raise UserError(f"reading {path} needs pyarrow: pip install pyarrow") from error
    cells = cells.set_axis(range(1, len(cells) + 1))
    names = [str(name).strip() for name in cells.columns]
    cells.columns = names
    for name in wanted:
        if name not in names:
            raise UserError(f"there is no column {name!r} in line 1, the header, of {path}")
    kept = [j for j, name in enumerate(names) if name and not name.startswith("__index_level_")]
    for name in names:
        if name and names.count(name) > 1:
            raise UserError(f"two columns of {path} are named {name!r}; rename one of them")
    cells = cells.iloc[:, kept]
    if not len(cells):
        raise UserError(f"{path} has no rows below its header")
    return Cells(path, cells, decimal, len(names) - len(kept), is_text)


def _read_csv(pandas: Any, options: Any, wanted: set[str]) -> tuple[Any, str]:
    """Read a frame of texts, and say what is the sign of decimals, which may be either.

    A row is a line: a quote that is not closed would join two of them, and the number of rows,
    which is public, would follow from what a record holds.
    """
    path = options.table
    with _opened(path, options.encoding) as file:
        header = next((line for line in file if line.strip()), None)
        if header is None:
            raise UserError(f"{path} is empty")
        separator = options.separator or _separator(header, wanted)
        names = _fields(header, separator, path, 1)
        rows = []
        for number, line in enumerate(file, 2):
            if line.strip():
                row = _fields(line, separator, path, number)
                if len(row) != len(names):
                    raise UserError(
                        f"{path} is not a table: line {number} has {len(row)} fields, and the "
                        f"header {len(names)}"
                    )
                rows.append(row)
    decimal = options.decimal or ("." if separator == "," else "either")
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    frame = {j: pandas.Series(column, dtype=object) for j, column in enumerate(columns)}
    return pandas.DataFrame(frame).set_axis(names, axis=1), decimal


@contextmanager
def _opened(path: Path, encoding: str) -> Iterator[Any]:
    """Open a text file that may be compressed."""
    text: dict[str, Any] = {"encoding": encoding, "newline": ""}
    kind = path.suffix.lower()
    if kind == ".zip":
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if len(names) != 1:
                raise UserError(f"{path} must hold one file, and holds {len(names)}")
            with archive.open(names[0]) as member, io.TextIOWrapper(member, **text) as file:
                yield file
    elif kind in _OPEN:
        with _OPEN[kind](path, "rt", **text) as file:
            yield file
    else:
        with path.open(**text) as file:
            yield file


def _fields(line: str, separator: str, path: Path, number: int) -> list[str]:
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


def _separator(line: str, wanted: set[str]) -> str:
    """Choose the separator that finds most of the columns that must be there, then most."""

    def found(separator: str) -> tuple[int, int]:
        names = [name.strip() for name in next(csv.reader([line], delimiter=separator))]
        return len(wanted.intersection(names)), len(names)

    return max(_SEPARATORS, key=found)


def schema_of(path: Path | None, table: Path) -> tuple[dict[str, Any], Any]:
    """Read rules of columns and a label set or None; of several tables, those of this one."""
    if path is None:
        return {}, None
    try:
        schema = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UserError(f"--schema: cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"--schema: {path} is not JSON: check its quotes and commas") from error
    entries = list(schema.values()) if isinstance(schema, dict) else []
    if entries and all(isinstance(e, dict) and "columns" in e for e in entries):
        name = table.name.split(".")[0]
        if name not in schema:
            raise UserError(
                f"--schema: {path} holds entries of several tables and none is named {name!r}, as "
                "TABLE is; put the entry into a file of its own"
            )
        schema = schema[name]
    try:
        return read_schema(schema)
    except ValueError as error:
        raise UserError(f"--schema: {path}: {error}") from error


def declared_columns(cells: Cells, rules: Mapping[str, Any]) -> dict[str, Column]:
    """Return what every column holds: as stated, else as a Parquet file or all cells say."""
    unknown = sorted(set(rules) - set(cells.frame.columns))
    if unknown:
        raise UserError(f"--schema names the column {unknown[0]!r}, which the table does not have")
    rules = dict(rules)
    for name in cells.frame.columns if cells.is_text else ():
        if rules.get(name) is None:
            kind = _kind_of_texts(cells.frame[name], cells.decimal)
            rules[name] = {"kind": kind, "stated": False}
    try:
        return {column.name: column for column in resolved_columns(read_frame(cells.frame), rules)}
    except ValueError as error:
        raise UserError(f"--schema: {error}") from error


def _kind_of_texts(texts: Any, decimal: str | None) -> str:
    """Return what all cells of a column hold that are not missing; numbers come first."""
    values = (canonical(text, decimal) for text in stored(texts).distinct()[0])
    there = [value for value in values if value is not None]
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in there):
        return "number"
    if all(truth_of(value) is not None for value in there):
        return "boolean"
    return "date" if all(isinstance(value, Moment) for value in there) else "text"


def typed(cells: Cells, columns: Mapping[str, Column]) -> Any:
    """Return the columns, numbers among texts read by the sign of decimals of this file."""
    frame = cells.frame[list(columns)]
    if not cells.is_text:
        return frame
    numbers = {
        name: stored(frame[name]).numbers(column.decimal or cells.decimal)
        for name, column in columns.items()
        if column.kind == "number"
    }
    return frame.assign(**numbers)


def labels_of(cells: Cells, name: str) -> Any:
    """Return a column that no row may leave empty as an array of texts."""
    column = cells.frame[name]
    values, places = stored(column).distinct()
    texts = [_label(value) for value in values]
    empty = [k for k, text in enumerate(texts) if text is None]
    rows = [i for i, place in enumerate(places, 1) if place in empty] if empty else []
    if rows:
        row = f"row {rows[0]} below the header of {cells.path}"
        raise UserError(f"column {name!r} is empty in {row}; leave out such rows")
    return np.array(["" if text is None else text for text in texts])[places]


def _label(value: Any) -> str | None:
    """Return the text of a label or of a person; a whole number has no fraction."""
    if isinstance(value, str):
        found = _WHOLE.fullmatch(value)
        return found[1] if found else value or None
    return str(value) if isinstance(value, bool) else text_of(canonical(value))
