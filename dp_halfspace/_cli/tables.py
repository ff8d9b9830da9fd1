"""Tables in files: CSV as strings, each cell independently, and Parquet by its own schema.

Every cell is read by a public rule, independently of the other rows. Errors name a file, a column
or a line, never a cell.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import json
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._cli.arguments import UserError
from dp_halfspace._cli.guesses import Guess, guess_column
from dp_halfspace._silence import IGNORED_WARNINGS
from dp_halfspace._suggestion import did_you_mean
from dp_halfspace.data.cells import canonical, text_of
from dp_halfspace.data.frame import read_column, read_frame
from dp_halfspace.data.schema import Column, facts_of, read_schema, resolved_columns
from dp_halfspace.data.validation import with_readable_texts
from dp_halfspace.exceptions import install_hint

# A column of a CSV is stored as floats only if every float has the canonical value of its string.
# The storage of a cell then changes nothing, and a row is a function of its own cells.

# Number of lines that are split at a time, of rows of a Parquet file that are read at a time, and
# of rows of a chunk.
_LINES = 2**14
BLOCK_ROWS = 2**14
ROWS_AT_ONCE = 2**16
# From this number on, floats do not represent all whole numbers, and two strings may have the same
# float.
_FIRST_ROUNDED = 2.0**53
# Largest number of characters of a cell: what the reader of lines accepts on every system.
_MOST_CHARACTERS = 2**31 - 1
# A string with any other character is read by itself.
_NOT_PLAIN = re.compile(r"[^0-9.eE+\-\n]")


def _rows(
    file: Iterator[str], separator: str, path: Path, first: int, width: int | None = None
) -> Iterator[list[str]]:
    """Yield the fields of each line that is a row; the number of the first line is `first`.

    A row has as many fields as the header, and a line of tabs is one.
    """
    is_blank, blanks = separator == " ", _blanks_of(separator)
    last, is_open = first, False

    def lines() -> Iterator[str]:
        nonlocal last, is_open
        for number, line in enumerate(file, first):
            if not line.strip(blanks):
                continue
            # The reader needs another line for a row that has not ended.
            if is_open:
                raise csv.Error
            last, is_open = number, True
            # What Python's reader does with a NUL depends on the version of Python.
            if "\0" in line:
                raise UserError(
                    f"{path} is not a table: line {number} contains a NUL character; state the "
                    "actual --encoding, or remove it"
                )
            yield line.strip() if is_blank else line

    how: dict[str, Any] = {"delimiter": separator, "skipinitialspace": is_blank, "strict": True}
    reader = csv.reader(lines(), **how)
    while True:
        try:
            row = next(reader, None)
        except csv.Error:
            row = []
        if row is None:
            return
        is_open = False
        if not row:
            # The text of that error may quote a cell.
            raise UserError(
                f"{path} is not a table: line {last} has an unclosed quote, or one that closes in "
                "the middle of a field. A cell must not contain a line break: save such a table as "
                "Parquet"
            )
        if len(row) != (width or len(row)):
            raise UserError(
                f"{path} is not a table: line {last} has {len(row)} fields, and the header "
                f"{width}. Remove lines that are no rows, such as a title, comments or units; "
                "the header must be the first line"
            )
        yield row


class _Column:
    """A column while it is read, block by block."""

    def __init__(self, is_verbatim: bool) -> None:
        self._is_verbatim = is_verbatim
        self._places = _Places()
        self._blocks: list[NDArray[Any]] = []

    def add(self, cells: Sequence[str]) -> None:
        """Store the cells of a block as floats or as positions in the list of all strings."""
        numbers = None if self._is_verbatim else plain_numbers(cells)
        if numbers is None:
            place = self._places.__getitem__
            numbers = np.fromiter(map(place, map(str.strip, cells)), np.int32, len(cells))
        self._blocks.append(numbers)

    def values(self) -> Any:
        """Return floats if all blocks are floats, otherwise categories."""
        if self._blocks and all(block.dtype.kind == "f" for block in self._blocks):
            return np.concatenate(self._blocks)
        parts = [self._codes(block) for block in self._blocks]
        codes = np.concatenate(parts) if parts else np.empty(0, np.int32)
        known = _pandas().Index(list(self._places), dtype=object)
        return _pandas().Categorical.from_codes(codes, categories=known)

    def _codes(self, block: NDArray[Any]) -> NDArray[np.int32]:
        """Return the positions of the cells of a block, and add floats to the list of all cells."""
        if block.dtype.kind != "f":
            return block
        numbers, inverse = np.unique(block, return_inverse=True)
        # A missing value has no category.
        places = [-1 if number != number else self._places[number] for number in numbers.tolist()]  # noqa: PLR0124
        return np.array(places, dtype=np.int32)[inverse]


class _Places(dict[Any, int]):
    """The position of each cell in the list of all distinct cells."""

    def __missing__(self, cell: Any) -> int:
        self[cell] = place = len(self)
        return place


def plain_numbers(cells: Sequence[str]) -> NDArray[np.float64] | None:
    """Return numbers, with NaN for empty cells, if each has the canonical value of its string.

    This holds for plain numbers below 2^53 and for every decimal sign except a comma.
    """
    text = "\n".join(cells)
    if _NOT_PLAIN.search(text):
        return None
    try:
        found = np.array([float(cell or "nan") for cell in cells])
    except ValueError:
        return None
    return None if (np.abs(found) >= _FIRST_ROUNDED).any() else found


# Number of cells of a table from which its rows are encoded in chunks.
FIRST_STREAMED = 2**22
_SEPARATORS = ",;\t| "
_STATED_SEPARATOR = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
_EXCEL = (".xlsx", ".xlsm", ".xls", ".ods")
# Largest number of labels in a table without a stated label set.
_MOST_CLASSES = 100
# Largest number of characters of a label.
_LONGEST_LABEL = 1000
_WHOLE = re.compile(r"([+-]?[0-9]+)\.0+")
# Number of bytes of a column of a Parquet file that are read at a time.
_READ_BYTES = 2**20
_OPEN: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


@dataclass(frozen=True, slots=True)
class Cells:
    """A frame of rows after `n_before` others; that of a CSV has strings with a decimal sign."""

    path: Path
    frame: Any
    decimal: str | None
    n_unnamed: int = 0
    is_text: bool = True
    n_before: int = 0


def _likely_encoding(path: Path) -> str:
    """Return the encoding by the byte order mark of a file, which Excel writes in Unicode text."""
    with path.open("rb") as file:
        return "utf-16" if file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "cp1252"


# Ends of the names of tables of other programs.
_OF_OTHER_PROGRAMS = frozenset(
    (".dta", ".sav", ".sas7bdat", ".xpt", ".rds", ".rdata", ".feather", ".arrow", ".orc", ".mdb")
)


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Convert a failure to read a file into one sentence."""
    try:
        yield
    except UnicodeError as error:
        if path.suffix.lower() in _OF_OTHER_PROGRAMS:
            raise UserError(
                f"cannot read {path}: save it as CSV, Parquet or Excel with the program that wrote "
                "it, or by pandas"
            ) from error
        raise UserError(
            f"cannot read {path}: it is not text in this encoding; use --encoding "
            f"{_likely_encoding(path)}, or the actual encoding"
        ) from error
    except LookupError as error:
        raise UserError("--encoding: there is no such encoding; try cp1252") from error
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, lzma.LZMAError, ValueError) as error:
        reason = (
            getattr(error, "strerror", None) or "it is damaged, or its name has the wrong ending"
        )
        raise UserError(f"cannot read {path}: {reason}") from error


def read_cells(
    options: Any, wanted: Sequence[str], is_verbatim: Callable[[str], bool] = lambda _: False
) -> Cells:
    """Read a file; the columns `wanted` must exist, and the separator is found by them.

    In a CSV, columns that are verbatim remain strings: labels, persons, and cells whose meaning
    depends on a format or another decimal sign.
    """
    cells = next(stream_cells(options, wanted, is_verbatim, whole=True))
    _refuse_no_rows(cells.path, len(cells.frame))
    return cells


def stream_cells(
    options: Any, wanted: Sequence[str], is_verbatim: Callable[[str], bool], *, whole: bool = False
) -> Iterator[Cells]:
    """Read a file some rows at a time; see `read_cells`. A row is the same in every block."""
    _pandas()
    path, kind = options.table, options.table.suffix.lower()
    n_rows = 0
    with readable(path):
        blocks: Iterator[tuple[Any, str | None]]
        if kind in _EXCEL:
            blocks = iter([(_read_excel(path), None)])
        elif kind == ".parquet":
            frames = [_read_parquet(path)] if whole else ParquetRows(path, BLOCK_ROWS)
            blocks = ((frame, None) for frame in frames)
        else:
            blocks = _read_csv(options, wanted, is_verbatim, whole=whole)
        for frame, decimal in blocks:
            yield replace(_checked_cells(path, frame, decimal, wanted), n_before=n_rows)
            n_rows += len(frame)
    _refuse_no_rows(path, n_rows)


def _pandas() -> Any:
    try:
        import pandas  # noqa: PLC0415 (optional dependency)
    except ImportError as error:
        raise UserError(f"reading a table needs pandas: {install_hint('table')}") from error
    return pandas


def pyarrow_for(path: Path) -> Any:
    """Return Arrow, which is needed to read or to write a file."""
    try:
        import pyarrow.parquet  # noqa: PLC0415 (optional dependency)
    except ImportError as error:
        raise UserError(f"reading {path} needs pyarrow: {install_hint('parquet')}") from error
    return pyarrow


def _refuse_no_rows(path: Path, n_rows: int) -> None:
    if not n_rows:
        raise UserError(f"{path} has no rows below its header")


def _no_column(names: Sequence[str], known: Iterable[str], where: str) -> str:
    """Return the error that columns with these names do not exist, with the most similar name."""
    start = "there is no column" if len(names) == 1 else "there are no columns"
    meant = did_you_mean(names[0], known) if len(names) == 1 else ""
    return f"{start} {', '.join(map(repr, names))} in {where}{meant}"


def _refuse_absent(path: Path, names: Sequence[str], wanted: Sequence[str]) -> None:
    absent = [name for name in wanted if name not in names]
    if absent:
        raise UserError(
            f"{_no_column(absent, names, f'line 1, the header, of {path}')}; if the header is in "
            "another line, remove the title or comments above it"
        )


def _checked_cells(path: Path, cells: Any, decimal: str | None, wanted: Sequence[str]) -> Cells:
    """Return a frame with column names, without the columns that have none."""
    names = [str(name).strip() for name in cells.columns]
    cells.columns = names
    _refuse_absent(path, names, wanted)
    kept = [j for j, name in enumerate(names) if name and not name.startswith("__index_level_")]
    for name in names:
        if name and names.count(name) > 1:
            raise UserError(f"two columns of {path} are named {name!r}; rename one of them")
    is_text = path.suffix.lower() != ".parquet"
    return Cells(path, cells.iloc[:, kept], decimal, len(names) - len(kept), is_text)


def _open_parquet(path: Path) -> Any:
    """Open a Parquet file, whose column names must be distinct."""
    parquet = pyarrow_for(path).parquet
    # Parts of a row group are read when needed, because a group may contain all rows.
    streamed = {"pre_buffer": False, "buffer_size": _READ_BYTES}
    file = parquet.ParquetFile(path, **streamed)
    texts = [each.name for each in file.schema_arrow if _is_text(each.type)]
    if texts:
        # Distinct strings are listed in the file already, and are not expanded.
        file = parquet.ParquetFile(path, **streamed, read_dictionary=texts)
    for name in file.schema_arrow.names:
        if file.schema_arrow.names.count(name) > 1:
            raise UserError(f"two columns of {path} are named {name!r}; rename one of them")
    return file


def _read_parquet(path: Path, names: Sequence[str] | None = None) -> Any:
    """Read a frame by the types of the file, column by column, which needs less memory."""
    file = _open_parquet(path)
    names = file.schema_arrow.names if names is None else names
    columns = [file.read(columns=[name], use_threads=False).column(0) for name in names]
    return _frame_of_arrow(pyarrow_for(path).table(columns, names=list(names)))


def _frame_of_arrow(read: Any) -> Any:
    """Return a frame with types of Arrow, which stores each distinct string of a column once."""
    for j, column in enumerate(map(with_readable_texts, read.columns)):
        # The list of strings would be read again at every pass over a large table.
        held = column.dictionary_encode() if _is_text(column.type) else column
        read = read.set_column(j, read.column_names[j], held)
    return read.to_pandas(types_mapper=_arrow_dtype, ignore_metadata=True)


class ParquetRows:
    """A Parquet file that is read some rows at a time, in order, at every pass.

    The number of rows that are read at a time depends on the row groups of the file and is public.
    """

    def __init__(self, path: Path, n_rows: int) -> None:
        self._file, self._n_rows = _open_parquet(path), n_rows
        self._from_batches = pyarrow_for(path).Table.from_batches
        groups = range(self._file.metadata.num_row_groups)
        self.sizes = [self._file.metadata.row_group(g).num_rows for g in groups]
        self._rest: Iterator[Any] = iter(())
        self._next = -1

    def __len__(self) -> int:
        return sum(-(-size // self._n_rows) for size in self.sizes)

    @property
    def nothing(self) -> Any:
        """A frame with the columns of the file and without rows."""
        return _frame_of_arrow(self._file.schema_arrow.empty_table())

    def __iter__(self) -> Iterator[Any]:
        """Yield all blocks of rows in their order."""
        for group, size in enumerate(self.sizes):
            held: list[Any] = []
            left = size
            for batch in self._file.iter_batches(
                self._n_rows, row_groups=[group], use_threads=False
            ):
                # Long strings may come in smaller batches.
                held.append(batch)
                rows = self._from_batches(held)
                wanted = min(self._n_rows, left)
                if len(rows) >= wanted:
                    yield _frame_of_arrow(rows[:wanted].combine_chunks())
                    left -= wanted
                    held = rows[wanted:].to_batches()

    def read(self, number: int) -> Any:
        """Return one block of rows, quickly if it follows the block that was read before."""
        if number != self._next:
            self._rest = islice(iter(self), number, None)
        self._next = number + 1
        return next(self._rest)


def _arrow_dtype(kind: Any) -> Any:
    """Return the type of pandas for a type of Arrow; dictionaries become categories."""
    return None if hasattr(kind, "index_type") else _pandas().ArrowDtype(kind)


def _is_text(kind: Any) -> bool:
    return str(kind) in ("string", "large_string")


def _read_excel(path: Path) -> Any:
    """Read the first sheet as objects, each cell by its own type; empty cells are missing."""
    try:
        # openpyxl warns of a cell with a date that does not exist, and quotes it.
        with IGNORED_WARNINGS:
            cells = _pandas().read_excel(path, header=None, dtype=object, keep_default_na=False)
    except ImportError as error:
        raise UserError(
            f"reading {path} needs a package for Excel files (openpyxl for .xlsx: pip "
            "install openpyxl), or save the sheet as CSV"
        ) from error
    except OSError:
        raise
    except Exception as error:
        # Readers of sheets raise errors of any type, with texts that depend on the cells.
        raise ValueError("the sheet cannot be read") from error
    if not len(cells):
        raise UserError(f"{path} is empty")
    header = ["" if name is None else str(name).strip() for name in cells.iloc[0]]
    # A cell beyond the header is in no column; the number of columns is public.
    while header and not header[-1]:
        header.pop()
    return cells.iloc[1:, : len(header)].set_axis(header, axis=1)


def _read_csv(
    options: Any, wanted: Sequence[str], is_verbatim: Callable[[str], bool], *, whole: bool
) -> Iterator[tuple[Any, str | None]]:
    """Yield frames of strings and floats, each with the decimal sign for `canonical`.

    Columns are floats, or categories of pandas in any order; columns that are verbatim are always
    strings. A row is a line: an unclosed quote would join two lines, and the public number of rows
    would then depend on the cells of a record.
    """
    path = options.table
    with _open_text(path, options.encoding) as file:
        (*_, header), number, separator = _begin(file, options, set(wanted))
        # In a file with commas as separators, a quoted 1,5 is 1.5 and 1,234 is 1234.
        decimal = options.decimal or (None if separator == "," else "either")
        (fields,) = _rows(iter([header]), separator, path, number)
        names = [name.strip() for name in fields]
        # Rows that another separator would split are not refused for the lack of a column.
        _refuse_absent(path, names, wanted)
        stay = [decimal == "," or is_verbatim(name) for name in names]
        rows = _rows(file, separator, path, number + 1, len(names))
        blocks = iter(lambda: list(islice(rows, _LINES)), [])
        for part in [blocks] if whole else ([block] for block in blocks):
            columns = [_Column(stays) for stays in stay]
            for block in part:
                for column, cells in zip(columns, zip(*block, strict=True), strict=True):
                    column.add(cells)
            # The blocks of a column are released before the next column is put together.
            read = {place: columns.pop(0).values() for place in range(len(names))}
            yield _pandas().DataFrame(read, copy=False).set_axis(names, axis=1), decimal


def lines_of_csv(options: Any, wanted: set[str]) -> Iterator[str]:
    """Yield what is above the rows of a CSV as it is, and the lines of the rows."""
    with _open_text(options.table, options.encoding) as file:
        above, _, separator = _begin(file, options, wanted)
        yield "".join(above)
        blanks = _blanks_of(separator)
        yield from (line for line in file if line.strip(blanks))


def _blanks_of(separator: str) -> str | None:
    """Return the characters of a line that is not a row; a line of tabs may be one."""
    return "\r\n" if separator == "\t" else None


def _begin(file: Iterator[str], options: Any, wanted: set[str]) -> tuple[list[str], int, str]:
    """Return the lines up to the header, the number of the header, and the separator.

    A line ``sep=;`` in front of the header, which Excel reads, states the separator.
    """
    # A quote must not change how long a cell may be. The limit belongs to the process and is
    # public.
    csv.field_size_limit(_MOST_CHARACTERS)
    lines = ((number, line) for number, line in enumerate(file, 1) if line.strip())
    number, header = next(lines, (0, ""))
    stated = _STATED_SEPARATOR.fullmatch(header.strip("\r\n"))
    above = [header] if stated else []
    if stated:
        number, header = next(lines, (0, ""))
    if not number:
        raise UserError(f"{options.table} is empty")
    separator = options.separator or (stated and stated[1]) or _separator(header, wanted)
    return [*above, header], number, separator


@contextmanager
def _open_text(path: Path, encoding: str) -> Iterator[Any]:
    text: dict[str, Any] = {"encoding": encoding, "newline": ""}
    kind = path.suffix.lower()
    if kind == ".zip":
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if len(names) != 1:
                raise UserError(f"{path} must contain exactly one file, and contains {len(names)}")
            with archive.open(names[0]) as member, io.TextIOWrapper(member, **text) as file:
                yield file
    elif kind in _OPEN:
        with _OPEN[kind](path, "rt", **text) as file:
            yield file
    else:
        with path.open(**text) as file:
            yield file


def _separator(line: str, wanted: set[str]) -> str:
    """Return the separator that finds most of the required columns, then most columns."""
    readable_line = line.replace("\0", "")

    def found(separator: str) -> tuple[int, int]:
        names = [name.strip() for name in next(csv.reader([readable_line], delimiter=separator))]
        return len(wanted.intersection(names)), len(names)

    return max(_SEPARATORS, key=found)


def schema_of(path: Path | None, table: Path) -> tuple[dict[str, Any], Any]:
    """Return the rules of columns and a label set or None, from a file for one or more tables."""
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
                f"--schema: {path} contains entries of several tables, and none of them is "
                f"named {name!r} like TABLE; put the entry into a separate file"
            )
        schema = schema[name]
    try:
        return read_schema(schema)
    except ValueError as error:
        raise UserError(f"--schema: {path}: {error}") from error


def declared_columns(cells: Cells, rules: Mapping[str, Any]) -> dict[str, Column]:
    """Return the kind of every column: as stated, otherwise by a Parquet file or by all cells."""
    unknown = sorted(set(rules) - set(cells.frame.columns))
    if unknown:
        words = "the column" if len(unknown) == 1 else "the columns"
        names = ", ".join(map(repr, unknown))
        meant = did_you_mean(unknown[0], cells.frame.columns) if len(unknown) == 1 else ""
        raise UserError(f"--schema names {words} {names}, which the table does not have{meant}")
    rules = dict(rules)
    for name, guess in guesses(cells, rules).items():
        rules[name] = {"kind": guess.kind_alone, "stated": False}
    try:
        return {column.name: column for column in resolved_columns(read_frame(cells.frame), rules)}
    except ValueError as error:
        raise UserError(f"--schema: {error}") from error


def guesses(cells: Cells, rules: Mapping[str, Any]) -> dict[str, Guess]:
    """Return a proposal for each column of strings that the rules do not state."""
    names = [name for name in cells.frame.columns if cells.is_text and rules.get(name) is None]
    return {name: guess_column(cells.frame[name], cells.decimal) for name in names}


def read_typed_columns(cells: Cells, columns: Mapping[str, Column]) -> Any:
    """Return the columns, with numbers in strings read by the decimal sign of this file."""
    frame = cells.frame[list(columns)]
    if not cells.is_text:
        return frame
    numbers = {
        name: read_column(frame[name]).numbers(column.decimal or cells.decimal, column.unit)
        for name, column in columns.items()
        if column.kind == "number" and frame[name].dtype.kind != "f"
    }
    return frame.assign(**numbers)


def is_verbatim(rule: Any) -> bool:
    """Return whether a rule, or a column, uses more of a string than its canonical value."""
    if isinstance(rule, Column):
        return rule.date_format is not None or rule.decimal == ","
    facts = rule if isinstance(rule, Mapping) else {}
    return facts.get("format") is not None or facts.get("decimal") == ","


def labels_of(cells: Cells, name: str) -> Any:
    """Return a column without missing values as an array of strings."""
    column = cells.frame[name]
    values, places = read_column(column).distinct()
    # Places of missing cells may be -1, that of the last value.
    places = places % len(values)
    texts = [_label(value) for value in values]
    empty = [k for k, text in enumerate(texts) if text is None]
    rows = [i for i, place in enumerate(places, 1) if place in empty] if empty else []
    if rows:
        row = f"row {cells.n_before + rows[0]} below the header of {cells.path}"
        raise UserError(f"column {name!r} is empty in {row}; remove such rows")
    # Objects, because an array of texts would give each row the room of the longest text.
    return np.array(["" if text is None else text for text in texts], dtype=object)[places]


def _label(value: Any) -> str | None:
    """Return the string of a label or of a person; a whole number has no fraction."""
    if isinstance(value, str):
        found = _WHOLE.fullmatch(value)
        return found[1] if found else value or None
    return str(value) if isinstance(value, bool) else text_of(canonical(value))


@dataclass(frozen=True, slots=True)
class TrainingTable:
    """A typed frame, labels as strings, and the stated facts; without classes, labels are as seen.

    For a large Parquet file the frame has no rows, and `source` reads them.
    """

    frame: Any
    y: NDArray[Any]
    rules: dict[str, Any]
    classes: list[str] | None
    groups: Any
    notes: tuple[str, ...]
    source: ParquetRows | None = None

    def rows(self, number: int) -> Any:
        """Return a block of rows of the source, with the columns and types of the frame."""
        assert self.source is not None
        frame = self.source.read(number)
        return frame.set_axis([str(name).strip() for name in frame.columns], axis=1)[
            list(self.frame.columns)
        ]


def read_training_table(options: Any) -> TrainingTable:
    """Return a table with its labels, the types of its columns and its label set."""
    target, groups = options.target, getattr(options, "groups", None)
    if target is None:
        raise UserError(f"--target must name the label column of {options.table}")
    roles = [target] if groups is None else [target, groups]
    if len(set(roles)) < len(roles):
        raise UserError("--groups and --target name the same column")
    rules, labels = schema_of(options.schema, options.table)
    dropped = list(names_in(getattr(options, "drop", []), _names_of(options)))
    if set(dropped) & set(roles):
        raise UserError("--drop names the column of --target or --groups")
    rules |= dict.fromkeys(dropped, "drop")
    source = _source(options) if groups is None else None
    if source is None:
        cells = read_cells(
            options, roles, lambda name: name in roles or is_verbatim(rules.get(name))
        )
        y = labels_of(cells, target)
    else:
        cells = _checked_cells(options.table, source.nothing, None, roles)
        y = labels_of(_read_role(options.table, target), target)
    rules = {name: rule for name, rule in rules.items() if name not in roles}
    features = replace(cells, frame=cells.frame.drop(columns=roles))
    if not features.frame.shape[1]:
        raise UserError(f"{options.table} has no columns besides {', '.join(map(repr, roles))}")
    absent = [name for name in dropped if name not in cells.frame.columns]
    if absent:
        missing = _no_column(absent, cells.frame.columns, str(options.table))
        raise UserError(f"--drop: {missing}")
    columns = declared_columns(features, rules)
    frame = read_typed_columns(features, columns)
    found = [column for column in columns.values() if not column.is_stated]
    if features.is_text:
        rules |= {column.name: {**facts_of(column), "stated": False} for column in found}
    classes = options.classes
    if classes is None and labels is not None:
        classes = [str(label) for label in labels]
    notes = []
    if cells.n_unnamed:
        notes.append(f"{cells.n_unnamed} column(s) without a name are left out, as an index is.")
    if found:
        notes.append(
            f"{len(found)} of {len(columns)} columns are not in a --schema: their "
            "types (number, date, boolean or text) are inferred from the file and "
            "declared public."
        )
    if classes is None:
        notes.append(
            f"No --classes: the {len(np.unique(y))} labels found in column {target!r} are "
            "declared public."
        )
    _check_labels(options.table, target, y, classes)
    y = y.astype(str)
    ids = None if groups is None else labels_of(cells, groups)
    return TrainingTable(frame, y, rules, classes, ids, tuple(notes), source)


def names_in(given: Sequence[str], known: Collection[str]) -> Iterator[str]:
    """Yield names that are separated by blanks or commas; a known name may contain commas."""
    for text in given:
        if text.strip() in known:
            yield text.strip()
        else:
            yield from (name.strip() for name in text.split(",") if name.strip())


def _names_of(options: Any) -> Collection[str]:
    """Return the names of the columns, if a name that was given may contain a comma."""
    if not any("," in text for text in getattr(options, "drop", [])):
        return ()
    empty = stream_cells(options, [], lambda _: False)
    return list(next(empty).frame.columns)


def _source(options: Any) -> ParquetRows | None:
    """Return a reader of a Parquet file that is large by public sizes, and None for others."""
    if options.table.suffix.lower() != ".parquet" or options.delta == 0:
        return None
    _pandas()
    with readable(options.table):
        source = ParquetRows(options.table, ROWS_AT_ONCE)
        n_cells = sum(source.sizes) * source.nothing.shape[1]
    return source if n_cells >= FIRST_STREAMED else None


def _read_role(path: Path, name: str) -> Cells:
    with readable(path):
        names = [each for each in _open_parquet(path).schema_arrow.names if each.strip() == name]
        return _checked_cells(path, _read_parquet(path, names), None, [name])


def _check_labels(path: Path, target: str, y: NDArray[Any], classes: Sequence[str] | None) -> None:
    """Refuse labels that are not classes, or not the stated ones."""
    seen = np.unique(y)
    if max(map(len, [*seen, *(classes or ())])) > _LONGEST_LABEL:
        raise UserError(
            f"column {target!r} of {path} has a label of more than {_LONGEST_LABEL} characters; "
            "choose a column of classes"
        )
    if classes is not None:
        if not set(seen.tolist()) <= set(classes):
            raise UserError(
                f"column {target!r} of {path} contains a label that is not in the "
                "label set of --classes or --schema; add all labels there"
            )
    elif len(seen) < 2:
        raise UserError(
            f"all rows of {path} have the same label; state the label set by "
            "--classes, which may contain labels that do not occur"
        )
    elif len(seen) > _MOST_CLASSES:
        raise UserError(
            f"column {target!r} of {path} has more than {_MOST_CLASSES} different "
            "labels; choose a column of classes, or state the label set by --classes"
        )
