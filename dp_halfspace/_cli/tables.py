"""Tables in files: CSV as strings, each cell independently, and Parquet by its own schema.

Every cell is read by a public rule, independently of the other rows. Errors name a file, a column
or a line, never a cell.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._cli.arguments import UserError, refusals_as_sentences
from dp_halfspace._cli.files import note
from dp_halfspace._cli.guesses import Guess, guess_column
from dp_halfspace._memory import LONG_BLOCK
from dp_halfspace._silence import IGNORED_WARNINGS, result_or
from dp_halfspace._suggestion import did_you_mean
from dp_halfspace.data.cells import canonical, category_of, text_of
from dp_halfspace.data.frame import read_column, read_frame
from dp_halfspace.data.schema import Column, looks_like_key, read_schema, resolved_columns
from dp_halfspace.data.validation import FIRST_ROUNDED, readable_table
from dp_halfspace.exceptions import optional
from dp_halfspace.inspection.effect_displays import MOST_SHOWN_CLASSES

# Largest number of characters of a label in a table without a stated label set.
_LONGEST_LABEL = 1000
_FIELD_SEPARATORS = ",;\t|"
# A string with any other character is read by itself.
_NOT_PLAIN = re.compile(r"[^0-9.eE+\-\n]")
_WHOLE_LABEL = re.compile(r"([+-]?[0-9]+)\.0+")
EXCEL = (".xlsx", ".xlsm", ".xls", ".ods")
PARQUET = ".parquet"


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Convert a failure to read a file into one sentence."""
    try:
        yield
    except UnicodeError as error:
        raise UserError(
            f"cannot read {path}: it is not text in this encoding; use --encoding cp1252, utf-16 "
            "or another one, unpack a compressed file, and save a table of another program as CSV, "
            "Parquet or Excel"
        ) from error
    except ImportError as error:
        raise UserError(str(error)) from error
    except LookupError as error:
        raise UserError("--encoding: there is no such encoding; try cp1252") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is damaged, or its ending is wrong"
        raise UserError(f"cannot read {path}: {reason}") from error


_pandas = partial(optional, "pandas", "table", "reading a table")


# A column of a CSV is stored as floats only if every float has the canonical value of its string.
# The storage of a cell then changes nothing, and a row is a function of its own cells.


def plain_numbers(cells: Sequence[str]) -> NDArray[np.float64] | None:
    """Return numbers, with NaN for empty cells, if each has the canonical value of its string.

    This holds for plain numbers below 2^53 and for every decimal sign except a comma.
    """
    if _NOT_PLAIN.search("\n".join(cells)):
        return None
    found = result_or(None, lambda: np.array([float(cell or "nan") for cell in cells]))
    return None if found is None or (np.abs(found) >= FIRST_ROUNDED).any() else found


def _read_csv(
    options: Any, wanted: Sequence[str], verbatim: Collection[str]
) -> tuple[Any, str | None]:
    """Return a frame of floats and categories of strings, and the decimal sign for `canonical`.

    A row is a line: an unclosed quote would join two lines, and the public number of rows would
    then depend on the cells of a record.
    """
    # A quote must not change how long a cell may be. The limit belongs to the process and is
    # public, and this is the largest one on every system.
    csv.field_size_limit(np.iinfo(np.int32).max)
    with options.table.open(encoding=options.encoding, newline="") as file:
        lines = ((number, line) for number, line in enumerate(file, 1) if is_row(line))
        number, header = next(lines, (0, ""))
        if not number:
            raise UserError(f"{options.table} is empty")
        separator = _separator(header, wanted)
        # In a file with commas as separators, a quoted 1,5 is 1.5 and 1,234 is 1234.
        decimal = options.decimal or (None if separator == "," else "either")
        split = partial(_fields, options.table, separator)
        names = [name.strip() for name in split(number, header)]
        # Rows that another separator would split are not refused for the lack of a column.
        _refuse_absent(options.table, names, wanted)
        stay = [decimal == "," or name in verbatim for name in names]
        parts: list[list[NDArray[Any]]] = [[] for _ in names]
        while block := [split(*line, len(names)) for line in islice(lines, LONG_BLOCK)]:
            for j, cells in enumerate(zip(*block, strict=True)):
                found: Any = None if stay[j] else plain_numbers(cells)
                if found is None:
                    # Each distinct string is kept once.
                    found = np.array([sys.intern(cell.strip()) for cell in cells], dtype=object)
                parts[j].append(found)
    # The parts of a column are released before the next column is put together.
    columns = {j: _joined(parts.pop(0)) for j in range(len(names))}
    return _pandas().DataFrame(columns, copy=False).set_axis(names, axis=1), decimal


def _joined(parts: list[NDArray[Any]]) -> Any:
    """Return floats if all parts of a column are floats, otherwise categories of pandas."""
    column = np.concatenate(parts) if parts else np.empty(0)
    if column.dtype.kind == "f":
        return column
    codes, found = _pandas().factorize(column)
    categories = _pandas().Index(found, dtype=object)
    return _pandas().Categorical.from_codes(codes, categories=categories)


def is_row(line: str) -> bool:
    """Return whether a line of a CSV is not blank; one of separators alone is a row."""
    return bool(line.strip(" \r\n"))


def _fields(
    path: Path, separator: str, number: int, line: str, width: int | None = None
) -> list[str]:
    """Split a line with a number into its fields, which may be counted."""
    row: list[str] = []
    # The text of that error may quote a cell.
    with suppress(csv.Error):
        (row,) = csv.reader([line], delimiter=separator, strict=True)
    if not row:
        raise UserError(
            f"{path} is not a table: line {number} has an unclosed quote, or one that closes in "
            "the middle of a field. Save a table with line breaks in cells as Parquet"
        )
    if len(row) != (width or len(row)):
        raise UserError(
            f"{path} is not a table: line {number} has {len(row)} fields, and the header {width}. "
            "Remove what is no row, such as a title, comments or units; line 1 must be the header"
        )
    return row


def _separator(header: str, wanted: Sequence[str]) -> str:
    """Return the separator that finds most of the required columns, then most columns."""

    def found(separator: str) -> tuple[int, int]:
        names = [name.strip() for name in next(csv.reader([header], delimiter=separator))]
        return len({*wanted}.intersection(names)), len(names)

    return max(_FIELD_SEPARATORS, key=found)


def _read_excel(path: Path) -> Any:
    """Read the first sheet as objects, each cell by its own type; empty cells are missing."""
    try:
        # openpyxl warns of a cell with a date that does not exist, and quotes it.
        with IGNORED_WARNINGS:
            cells = _pandas().read_excel(path, header=None, dtype=object, keep_default_na=False)
    except ImportError as error:
        raise UserError(
            f"{path} needs a package for Excel (pip install openpyxl), or save the sheet as CSV"
        ) from error
    except OSError:
        raise
    except Exception as error:
        # Readers of sheets raise errors of any type, with texts that depend on the cells.
        raise ValueError("the sheet cannot be read") from error
    if not len(cells):
        raise UserError(f"{path} is empty")
    header = ["" if name is None else str(name).strip() for name in cells.iloc[0]]
    # A cell beyond the header is in a column without a name, which is left out.
    return cells.iloc[1:].set_axis(header, axis=1)


def _read_parquet(path: Path) -> Any:
    """Read a frame with types of Arrow, which stores each distinct string of a column once."""
    parquet = optional("pyarrow.parquet", "parquet", "a Parquet file")
    rows = readable_table(parquet.ParquetFile(path).read(use_threads=False))
    how = {"strings_to_categorical": True, "ignore_metadata": True}
    return rows.to_pandas(types_mapper=_arrow_dtype, **how)


def _arrow_dtype(kind: Any) -> Any:
    """Return the type of pandas for a type of Arrow, None for what becomes categories."""
    is_listed = hasattr(kind, "index_type") or str(kind).endswith("string")
    return None if is_listed else _pandas().ArrowDtype(kind)


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a file; `decimal` is the sign of numbers in strings."""

    path: Path
    frame: Any
    decimal: str | None

    @property
    def is_text(self) -> bool:
        """Whether the file does not state the types of its columns."""
        return self.path.suffix.lower() != PARQUET


def read_table(options: Any, wanted: Sequence[str], verbatim: Collection[str] = ()) -> Table:
    """Read a file; the columns `wanted` must exist, and the separator is found by them.

    In a CSV, columns that are verbatim remain strings: labels, persons, and cells whose meaning
    depends on a format or another decimal sign. Columns without a name are left out.
    """
    path, kind, decimal = options.table, options.table.suffix.lower(), None
    with readable(path):
        _pandas()
        if kind in EXCEL:
            frame = _read_excel(path)
        elif kind == PARQUET:
            frame = _read_parquet(path)
        else:
            frame, decimal = _read_csv(options, wanted, verbatim)
    names = [str(name).strip() for name in frame.columns]
    _refuse_absent(path, names, wanted)
    kept = [j for j, name in enumerate(names) if name and not name.startswith("__index_level_")]
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None:
        raise UserError(f"two columns of {path} are named {twice!r}; rename one of them")
    if not len(frame):
        raise UserError(f"{path} has no rows below its header")
    return Table(path, frame.set_axis(names, axis=1).iloc[:, kept], decimal)


def _refuse_absent(path: Path, names: Sequence[str], wanted: Sequence[str]) -> None:
    absent = [name for name in wanted if name not in names]
    if absent:
        place = "line 1, the header, of "
        hint = "; if the header is in another line, remove the title or comments above it"
        if path.suffix.lower() in EXCEL:
            place += "the first sheet of "
        elif path.suffix.lower() == PARQUET:
            place = hint = ""
        near = did_you_mean(absent[0], names)
        names = ", ".join(map(repr, absent))
        raise UserError(f"there is no column {names} in {place}{path}{near or hint}")


def typed_columns(table: Table, columns: Mapping[str, Column]) -> Any:
    """Return columns, with numbers in strings read by the decimal sign of this file."""
    frame = table.frame[list(columns)]
    if not table.is_text:
        return frame
    numbers = {
        name: read_column(frame[name]).numbers(column.decimal or table.decimal, column.unit)
        for name, column in columns.items()
        if column.kind == "number" and frame[name].dtype.kind != "f"
    }
    return frame.assign(**numbers)


def labels_of(table: Table, name: str, classes: Sequence[Any] = ()) -> NDArray[Any]:
    """Return a column without missing values as an array of strings.

    A label that is a class in another spelling, such as FALSE and False, is that class.
    """
    values, places = read_column(table.frame[name]).distinct()
    texts = [_label(value) for value in values]
    empty = np.isin(places, [k for k, text in enumerate(texts) if text is None])
    if empty.any():
        row = f"row {empty.argmax() + 1} below the header of {table.path}"
        raise UserError(f"column {name!r} is empty in {row}; remove such rows")
    spelt: dict[Any, Any] = {category_of(label): label for label in classes}
    spelt |= {str(label): label for label in classes}
    if spelt:
        texts = [spelt.get(text, spelt.get(category_of(text), text)) for text in texts]
        # Too few classes are refused as such.
        if len({*classes}) > 1 and not {*texts, None}.issubset([*classes, None]):
            stated = ", ".join(map(str, classes))
            raise UserError(f"column {name!r} of {table.path} has labels other than {stated}")
    # Objects, because an array of texts would give each row the room of the longest text.
    return np.array(texts, dtype=object)[places]


def _label(value: Any) -> str | None:
    """Return the string of a label or of a person; a whole number has no fraction."""
    if isinstance(value, str):
        found = _WHOLE_LABEL.fullmatch(value)
        return found[1] if found else value or None
    return str(value) if isinstance(value, bool) else text_of(canonical(value))


def guesses(table: Table, rules: Mapping[str, Any], *, looks: bool) -> dict[str, Guess]:
    """Return a proposal for each column of strings that the rules do not state."""
    names = [name for name in table.frame.columns if table.is_text and rules.get(name) is None]
    return {name: guess_column(table.frame[name], table.decimal, looks=looks) for name in names}


@refusals_as_sentences("--schema: ")
def declared_columns(table: Table, rules: Mapping[str, Any]) -> dict[str, Column]:
    """Return the kind of every column that is stated, or stored in a Parquet file."""
    return {column.name: column for column in resolved_columns(read_frame(table.frame), rules)}


def note_keys(names: Iterable[str]) -> None:
    """Write a note on features that may be keys, if there are any."""
    keys = ", ".join(repr(name) for name in names if looks_like_key(name))
    if keys:
        note(
            f"by their names, these features may identify rows or persons: {keys}. Leave them out "
            'by --drop, or by "drop" in the schema, and name the column of persons by --groups.'
        )


@dataclass(frozen=True, slots=True)
class TrainingTable:
    """Rows in typed columns, labels as strings, and the stated facts."""

    rows: Any
    y: NDArray[Any]
    rules: dict[str, Any]
    classes: list[str] | None
    groups: Any


def roles_of(options: Any) -> list[str]:
    """Return the columns of labels and of persons, which must differ."""
    roles = [options.target, options.groups]
    if roles[0] == roles[1]:
        raise UserError("--groups and --target name the same column")
    return [name for name in roles if name is not None]


def read_training_table(options: Any) -> TrainingTable:
    """Return a table with its labels, the types of its columns and its label set."""
    target, groups, roles = options.target, options.groups, roles_of(options)
    if set(options.drop) & set(roles):
        raise UserError("--drop names the column of --target or --groups")
    with readable(options.schema), refusals_as_sentences("--schema: "):
        rules, labels = read_schema(options.schema)
    rules = {name: rule for name, rule in rules.items() if name not in roles}
    # A format, or another decimal sign, uses more of a string than its canonical value.
    verbatim = [*roles, *(name for name, rule in rules.items() if isinstance(rule, Mapping))]
    whole = read_table(options, [*roles, *options.drop], verbatim)
    stated = labels if options.classes is None else options.classes
    # Labels are stated as they are read: 1.0 is 1 in both places.
    classes = None if stated is None else [_label(str(label)) or "" for label in stated]
    y = labels_of(whole, target, classes or ())
    table = replace(whole, frame=whole.frame.drop(columns=roles))
    if not table.frame.shape[1]:
        raise UserError(f"{table.path} has no columns besides {', '.join(map(repr, roles))}")
    rules |= dict.fromkeys(options.drop, "drop")
    for name, guess in guesses(table, rules, looks=False).items():
        rules[name] = {"kind": guess.kind_alone, "stated": False}
    columns = declared_columns(table, rules)
    ids = None if groups is None else labels_of(whole, groups)
    rows = typed_columns(table, columns)
    if classes is None:
        _note_labels(table.path, target, y)
    note_keys(name for name, column in columns.items() if column.kind != "drop")
    return TrainingTable(rows, y.astype(str), rules, classes, ids)


def _note_labels(path: Path, target: str, y: NDArray[Any]) -> None:
    """Note that the labels that were found count as public, or refuse those of no classes."""
    seen = np.unique(y)
    if not 2 <= len(seen) <= MOST_SHOWN_CLASSES or max(map(len, seen)) > _LONGEST_LABEL:
        raise UserError(
            f"column {target!r} of {path} has fewer than 2 or more than {MOST_SHOWN_CLASSES} "
            f"labels, or one of more than {_LONGEST_LABEL} characters: state them by --classes"
        )
    note(f"No --classes: the {len(seen)} labels found in column {target!r} are declared public.")
