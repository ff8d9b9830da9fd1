"""Tables by pandas, all cells as text first: what a column holds is stated, or told by its texts.

Every cell is read by a public rule, whatever the other rows hold. Errors name a file, a column or
a line, never a cell.
"""

from __future__ import annotations

import csv
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dp_halfspace._cli.arguments import UserError
from dp_halfspace.tables.frame import read_frame
from dp_halfspace.tables.schema import BOOLEAN, Column, read_schema, resolved_columns

_SEPARATORS = ",;\t| "
_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "nat", "<na>", "?"})
_WORDS = {
    **dict.fromkeys(("true", "yes", "t", "y"), True),
    **dict.fromkeys(("false", "no", "f", "n"), False),
}
_DATES = ("ISO8601", "%d.%m.%Y", "%d.%m.%Y %H:%M", "%m/%d/%Y", "%m/%d/%Y %H:%M")
_WHOLE = re.compile(r"^([+-]?\d+)\.0+$")


@dataclass(frozen=True, slots=True)
class Cells:
    """A frame of stripped texts, its rows numbered from 1, and the sign of decimals, or either."""

    path: Path
    frame: Any
    decimal: str | None
    n_unnamed: int = 0


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
    except (OSError, EOFError, zlib.error, ValueError) as error:
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
    with readable(path):
        try:
            cells, decimal = _read(pandas, options, set(wanted))
        except ImportError as error:
            need = "pyarrow" if path.suffix.lower() == ".parquet" else str(error.name)
            raise UserError(f"reading {path} needs {need}: pip install {need}") from error
        except pandas.errors.EmptyDataError as error:
            raise UserError(f"{path} is empty") from error
        except pandas.errors.ParserError as error:
            # pandas counts lines and fields here and shows no cell.
            text = " ".join(str(error).split())
            raise UserError(f"{path} is not a table: {text}") from error
    cells = cells.apply(lambda column: column.str.strip())
    names = [str(name).strip() for name in cells.columns]
    cells.columns = names
    for name in wanted:
        if name not in names:
            raise UserError(f"there is no column {name!r} in line 1, the header, of {path}")
    kept = [j for j, name in enumerate(names) if name]
    for name in names:
        if name and names.count(name) > 1:
            raise UserError(f"two columns of {path} are named {name!r}; rename one of them")
    cells = cells.iloc[:, kept]
    if not len(cells):
        raise UserError(f"{path} has no rows below its header")
    return Cells(path, cells, decimal, len(names) - len(kept))


def _read(pandas: Any, options: Any, wanted: set[str]) -> tuple[Any, str | None]:
    """Read texts into a frame, and say what is the sign of decimals, or None for either."""
    path = options.table
    if path.suffix.lower() == ".parquet":
        cells = pandas.read_parquet(path).astype("string").fillna("").astype(object)
        return cells.set_axis(range(1, len(cells) + 1)).rename(columns=str), "."
    text: dict[str, Any] = {"header": None, "dtype": str, "encoding": options.encoding}
    # No separator and no quotes: the first line as it is.
    line = pandas.read_csv(path, sep="\x01", quoting=csv.QUOTE_NONE, nrows=1, **text).iloc[0, 0]
    separator = options.separator or _separator(str(line), wanted)
    sign = r"\s+" if separator == " " else separator
    cells = pandas.read_csv(path, sep=sign, keep_default_na=False, **text).fillna("")
    cells = cells.astype(object)
    decimal = options.decimal or ("." if separator == "," else None)
    return cells.set_axis(cells.iloc[0], axis=1)[1:], decimal


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


def stated_columns(frame: Any, rules: Mapping[str, Any]) -> tuple[Column, ...]:
    """Resolve rules of columns."""
    unknown = sorted(set(rules) - set(frame.columns))
    if unknown:
        raise UserError(f"--schema names the column {unknown[0]!r}, which the table does not have")
    try:
        return resolved_columns(read_frame(frame), rules)
    except ValueError as error:
        raise UserError(f"--schema: {error}") from error


def typed(cells: Cells, columns: Sequence[Column]) -> Any:
    """Return a frame whose columns have the dtypes of what they hold: stated, or as found."""
    import pandas  # noqa: PLC0415 (optional dependency)

    readers: dict[str, Callable[[Any], Any]] = {
        "number": partial(_numbers, pandas, cells.decimal),
        "boolean": partial(_booleans, pandas),
        "date": partial(_dates, pandas),
    }
    made = {}
    for column in columns:
        texts = cells.frame[column.name]
        known = "boolean" if column.categories == BOOLEAN else column.kind
        read = readers.get(known, _texts) if column.is_stated else _told(texts, readers.values())
        made[column.name] = read(texts)
    return pandas.DataFrame(made, index=cells.frame.index)


def _told(texts: Any, readers: Iterable[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """Return the first way to read a column that reads all of it."""
    there = texts[~texts.str.lower().isin(_MISSING)]
    return next((read for read in readers if read(there).notna().all()), _texts)


def _texts(texts: Any) -> Any:
    """Return texts, empty ones missing; a whole number is one text with and without a fraction."""
    texts = texts.where(texts != "", None)
    whole = texts.str.endswith("0", na=False)
    return texts.where(~whole, texts[whole].str.replace(_WHOLE, r"\1", regex=True))


def _numbers(pandas: Any, decimal: str | None, texts: Any) -> Any:
    """Read numbers, by one decimal sign or by either."""
    if decimal == ",":
        texts = texts.str.replace(".", "", regex=False)
    texts = texts.str.replace(",", "" if decimal == "." else ".", regex=False)
    return pandas.to_numeric(texts, errors="coerce").astype("float64")


def _booleans(pandas: Any, texts: Any) -> Any:
    """Read yes and no in their usual spellings; a 0 or 1 is taken for a number before."""
    known = {**_WORDS, "1": True, "0": False, "1.0": True, "0.0": False}
    return texts.str.lower().map(known).astype("boolean")


def _dates(pandas: Any, texts: Any) -> Any:
    """Read dates: ISO, 31.12.2026 or 12/31/2026."""
    days = pandas.Series(pandas.NaT, index=texts.index, dtype="datetime64[us, UTC]")
    for form in _DATES:
        rest = texts[days.isna()]
        if len(rest):
            found = pandas.to_datetime(rest, format=form, errors="coerce", utc=True)
            days = days.fillna(found.astype(days.dtype))
    return days.dt.tz_localize(None)


def labels_of(cells: Cells, name: str) -> Any:
    """Return a column that no row may leave empty as texts."""
    texts = cells.frame[name]
    if (texts == "").any():
        row = f"row {texts.index[(texts == '').argmax()]} below the header of {cells.path}"
        raise UserError(f"column {name!r} is empty in {row}; leave out such rows")
    return _texts(texts).to_numpy(dtype=str)
