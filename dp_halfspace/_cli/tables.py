"""Tables in files: CSV as strings, each cell independently, and Parquet by its own schema.

Every cell is read by a public rule, independently of the other rows. Errors name a file, a column
or a line, never a cell.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import json
import lzma
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
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
from dp_halfspace.data.chunks import LocalChunks
from dp_halfspace.data.frame import read_column, read_frame
from dp_halfspace.data.schema import Column, looks_like_key, read_schema, resolved_columns
from dp_halfspace.data.validation import FIRST_ROUNDED, with_readable_texts
from dp_halfspace.exceptions import install_hint

# Number of lines that are split at a time, and of rows of a chunk.
_LINES = 2**14
ROWS_AT_ONCE = 2**16
# Number of cells of a table from which its rows are encoded in chunks.
FIRST_STREAMED = 2**22
# Largest number of characters of a cell: what the reader of lines accepts on every system.
_MOST_CHARACTERS = 2**31 - 1
# Largest number of labels in a table without a stated label set, and of characters of a label.
_MOST_CLASSES = 100
_LONGEST_LABEL = 1000
_FIELD_SEPARATORS = ",;\t| "
_STATED_SEPARATOR = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
# A string with any other character is read by itself.
_NOT_PLAIN = re.compile(r"[^0-9.eE+\-\n]")
_WHOLE_LABEL = re.compile(r"([+-]?[0-9]+)\.0+")
EXCEL = (".xlsx", ".xlsm", ".xls", ".ods")
PARQUET = ".parquet"
OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Convert a failure to read a file into one sentence."""
    try:
        yield
    except UnicodeError as error:
        raise UserError(
            f"cannot read {path}: it is not text in this encoding; use --encoding "
            f"{_likely_encoding(path)} or the actual encoding, and save a table of another program "
            "as CSV, Parquet or Excel first"
        ) from error
    except LookupError as error:
        raise UserError("--encoding: there is no such encoding; try cp1252") from error
    except (OSError, EOFError, zlib.error, lzma.LZMAError, ValueError) as error:
        reason = (
            getattr(error, "strerror", None) or "it is damaged, or its name has the wrong ending"
        )
        raise UserError(f"cannot read {path}: {reason}") from error


def _likely_encoding(path: Path) -> str:
    """Return the encoding by the byte order mark of a file, which Excel writes in Unicode text."""
    with path.open("rb") as file:
        return "utf-16" if file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "cp1252"


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


# A column of a CSV is stored as floats only if every float has the canonical value of its string.
# The storage of a cell then changes nothing, and a row is a function of its own cells.


def plain_numbers(cells: Sequence[str]) -> NDArray[np.float64] | None:
    """Return numbers, with NaN for empty cells, if each has the canonical value of its string.

    This holds for plain numbers below 2^53 and for every decimal sign except a comma.
    """
    if _NOT_PLAIN.search("\n".join(cells)):
        return None
    try:
        found = np.array([float(cell or "nan") for cell in cells])
    except ValueError:
        return None
    return None if (np.abs(found) >= FIRST_ROUNDED).any() else found


def _read_csv(
    options: Any, wanted: Sequence[str], is_verbatim: Callable[[str], bool]
) -> tuple[Any, str | None]:
    """Return a frame of floats and categories of strings, and the decimal sign for `canonical`.

    A row is a line: an unclosed quote would join two lines, and the public number of rows would
    then depend on the cells of a record.
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
        parts: list[list[NDArray[Any]]] = [[] for _ in names]
        # Each distinct string of a column is kept once.
        known: list[dict[str, str]] = [{} for _ in names]
        while block := list(islice(rows, _LINES)):
            for j, cells in enumerate(zip(*block, strict=True)):
                found: Any = None if stay[j] else plain_numbers(cells)
                if found is None:
                    texts = [known[j].setdefault(text, text) for text in map(str.strip, cells)]
                    found = np.array(texts, dtype=object)
                parts[j].append(found)
    # The parts of a column are released before the next column is put together.
    columns = {j: _joined(parts.pop(0)) for j in range(len(names))}
    return _pandas().DataFrame(columns, copy=False).set_axis(names, axis=1), decimal


def _joined(parts: list[NDArray[Any]]) -> Any:
    """Return floats if all parts of a column are floats, otherwise categories of pandas."""
    if not parts:
        return np.empty(0)
    column = np.concatenate(parts)
    if column.dtype.kind == "f":
        return column
    codes, found = _pandas().factorize(column)
    categories = _pandas().Index(found, dtype=object)
    return _pandas().Categorical.from_codes(codes, categories=categories)


def _rows(
    file: Iterator[str], separator: str, path: Path, first: int, width: int | None = None
) -> Iterator[list[str]]:
    """Yield the fields of each line that is a row; the number of the first line is `first`.

    A row has as many fields as the header, and a line of tabs is one.
    """
    is_blank, blanks = separator == " ", _blanks_of(separator)
    how: dict[str, Any] = {"delimiter": separator, "skipinitialspace": is_blank, "strict": True}
    dialect = csv.reader((), **how).dialect
    for number, line in enumerate(file, first):
        if not line.strip(blanks):
            continue
        where = f"{path} is not a table: line {number}"
        # What Python's reader does with a NUL depends on the version of Python.
        if "\0" in line:
            raise UserError(
                f"{where} contains a NUL character; state the actual --encoding, or remove it"
            )
        row: list[str] = []
        # The text of that error may quote a cell.
        with suppress(csv.Error):
            (row,) = csv.reader([line.strip() if is_blank else line], dialect)
        if not row:
            raise UserError(
                f"{where} has an unclosed quote, or one that closes in the middle of a field. A "
                "cell must not contain a line break: save such a table as Parquet"
            )
        if len(row) != (width or len(row)):
            raise UserError(
                f"{where} has {len(row)} fields, and the header {width}. Remove lines that are no "
                "rows, such as a title, comments or units; the header must be the first line"
            )
        yield row


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
    """Open a file that may be compressed, with its line ends as they are."""
    opener = OPENERS.get(path.suffix.lower(), open)
    with opener(path, "rt", encoding=encoding, newline="") as file:
        yield file


def _separator(line: str, wanted: set[str]) -> str:
    """Return the separator that finds most of the required columns, then most columns.

    Names of columns may contain blanks: they separate only where nothing else does.
    """
    readable_line = line.replace("\0", "")

    def found(separator: str) -> tuple[int, bool, int]:
        names = [name.strip() for name in next(csv.reader([readable_line], delimiter=separator))]
        is_other = separator != " " and len(names) > 1
        return len(wanted.intersection(names)), is_other, len(names)

    return max(_FIELD_SEPARATORS, key=found)


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


def _open_parquet(path: Path) -> Any:
    """Open a Parquet file, whose column names must be distinct."""
    parquet = pyarrow_for(path).parquet
    file = parquet.ParquetFile(path)
    _refuse_twice(path, file.schema_arrow.names)
    texts = [each.name for each in file.schema_arrow if _is_text(each.type)]
    # Distinct strings are listed in the file already, and are not expanded.
    return parquet.ParquetFile(path, read_dictionary=texts) if texts else file


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


def _arrow_dtype(kind: Any) -> Any:
    """Return the type of pandas for a type of Arrow; dictionaries become categories."""
    return None if hasattr(kind, "index_type") else _pandas().ArrowDtype(kind)


def _is_text(kind: Any) -> bool:
    return str(kind) in ("string", "large_string")


def _parts_of_parquet(file: Any) -> list[Callable[[], Any]]:
    """Return how to read some rows at a time, of which one row group at a time is in memory.

    The number of rows of a part depends on the row groups of the file and is public.
    """
    read = lru_cache(maxsize=1)(partial(file.read_row_group, use_threads=False))
    sizes = [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]
    return [
        partial(_read_part, read, group, start)
        for group, size in enumerate(sizes)
        for start in range(0, size, ROWS_AT_ONCE)
    ]


def _read_part(read: Callable[[int], Any], group: int, start: int) -> Any:
    return _frame_of_arrow(read(group)[start : start + ROWS_AT_ONCE].combine_chunks())


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a file; `decimal` is the sign of numbers in strings.

    The frame of a large Parquet file has no rows, and `parts` read them.
    """

    path: Path
    frame: Any
    decimal: str | None = None
    n_unnamed: int = 0
    parts: list[Callable[[], Any]] | None = None

    @property
    def is_text(self) -> bool:
        """Whether the file does not state the types of its columns."""
        return self.path.suffix.lower() != PARQUET


def read_table(
    options: Any,
    wanted: Sequence[str],
    is_verbatim: Callable[[str], bool] = lambda _: False,
    *,
    may_stream: bool = False,
) -> Table:
    """Read a file; the columns `wanted` must exist, and the separator is found by them.

    In a CSV, columns that are verbatim remain strings: labels, persons, and cells whose meaning
    depends on a format or another decimal sign. The rows of a large Parquet file may be left there.
    """
    _pandas()
    path, kind = options.table, options.table.suffix.lower()
    decimal, parts = None, None
    with readable(path):
        if kind in EXCEL:
            frame = _read_excel(path)
        elif kind != PARQUET:
            frame, decimal = _read_csv(options, wanted, is_verbatim)
        else:
            file = _open_parquet(path)
            is_large = file.metadata.num_rows * file.metadata.num_columns >= FIRST_STREAMED
            if may_stream and is_large:
                frame = _frame_of_arrow(file.schema_arrow.empty_table())
                parts = _parts_of_parquet(file)
            else:
                frame = _read_parquet(path)
    table = replace(_named(path, frame, wanted), decimal=decimal, parts=parts)
    if not len(frame) and parts is None:
        raise UserError(f"{path} has no rows below its header")
    return table


def _named(path: Path, frame: Any, wanted: Sequence[str]) -> Table:
    """Return a frame with column names, without the columns that have none."""
    names = [str(name).strip() for name in frame.columns]
    _refuse_absent(path, names, wanted)
    kept = [j for j, name in enumerate(names) if name and not name.startswith("__index_level_")]
    _refuse_twice(path, [names[j] for j in kept])
    return Table(
        path, frame.set_axis(names, axis=1).iloc[:, kept], n_unnamed=len(names) - len(kept)
    )


def _refuse_twice(path: Path, names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"two columns of {path} are named {name!r}; rename one of them")


def _refuse_absent(path: Path, names: Sequence[str], wanted: Sequence[str]) -> None:
    absent = [name for name in wanted if name not in names]
    if absent:
        raise UserError(
            f"{no_column(absent, names, f'line 1, the header, of {path}')}; if the header is in "
            "another line, remove the title or comments above it"
        )


def no_column(names: Sequence[str], known: Iterable[str], where: str) -> str:
    """Return the error that columns with these names do not exist, with the most similar name."""
    start = "there is no column" if len(names) == 1 else "there are no columns"
    meant = did_you_mean(names[0], known) if len(names) == 1 else ""
    return f"{start} {', '.join(map(repr, names))} in {where}{meant}"


def rows_of(table: Table, columns: Mapping[str, Column], *, in_chunks: bool) -> Any:
    """Return columns by their rules; in chunks, a large table is not encoded at once.

    Which it is depends on public sizes and options only.
    """
    names = list(columns)
    if table.parts is not None:
        readers = [partial(_columns_of, part, names) for part in table.parts]
        return LocalChunks.read_by(readers, _two_missing(table.frame[names]))
    frame = read_typed_columns(table, columns)
    if frame.size < FIRST_STREAMED or not in_chunks:
        return frame
    starts = range(0, len(frame), ROWS_AT_ONCE)
    readers = [partial(_slice, frame, start) for start in starts]
    return LocalChunks.read_by(readers, _two_missing(frame))


def _columns_of(part: Callable[[], Any], names: list[str]) -> Any:
    frame = part()
    return frame.set_axis([str(name).strip() for name in frame.columns], axis=1)[names]


def _slice(frame: Any, start: int) -> Any:
    return frame.iloc[start : start + ROWS_AT_ONCE]


def _two_missing(frame: Any) -> Any:
    """Return rows of missing values, which have the columns and types of all rows."""
    return frame.iloc[:0].reindex(range(2))


def read_typed_columns(table: Table, columns: Mapping[str, Column]) -> Any:
    """Return the columns, with numbers in strings read by the decimal sign of this file."""
    frame = table.frame[list(columns)]
    if not table.is_text:
        return frame
    numbers = {
        name: read_column(frame[name]).numbers(column.decimal or table.decimal, column.unit)
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


def labels_of(table: Table, name: str) -> NDArray[Any]:
    """Return a column without missing values as an array of strings."""
    column = table.frame[name] if table.parts is None else _parquet_column(table.path, name)
    values, places = read_column(column).distinct()
    # Places of missing cells may be -1, that of the last value.
    places = places % len(values)
    texts = [_label(value) for value in values]
    empty = np.isin(places, [k for k, text in enumerate(texts) if text is None])
    if empty.any():
        row = f"row {empty.argmax() + 1} below the header of {table.path}"
        raise UserError(f"column {name!r} is empty in {row}; remove such rows")
    # Objects, because an array of texts would give each row the room of the longest text.
    return np.array(texts, dtype=object)[places]


def _parquet_column(path: Path, name: str) -> Any:
    with readable(path):
        names = _open_parquet(path).schema_arrow.names
        return _read_parquet(path, [each for each in names if each.strip() == name]).iloc[:, 0]


def _label(value: Any) -> str | None:
    """Return the string of a label or of a person; a whole number has no fraction."""
    if isinstance(value, str):
        found = _WHOLE_LABEL.fullmatch(value)
        return found[1] if found else value or None
    return str(value) if isinstance(value, bool) else text_of(canonical(value))


def guesses(table: Table, rules: Mapping[str, Any]) -> dict[str, Guess]:
    """Return a proposal for each column of strings that the rules do not state."""
    names = [name for name in table.frame.columns if table.is_text and rules.get(name) is None]
    return {name: guess_column(table.frame[name], table.decimal) for name in names}


def declared_columns(table: Table, rules: Mapping[str, Any]) -> dict[str, Column]:
    """Return the kind of every column that is stated, or stored in a Parquet file."""
    try:
        return {column.name: column for column in resolved_columns(read_frame(table.frame), rules)}
    except ValueError as error:
        raise UserError(f"--schema: {error}") from error


def note_on_keys(names: Iterable[str]) -> list[str]:
    """Return a note on features that may be keys, if there are any."""
    keys = list(filter(looks_like_key, names))
    if not keys:
        return []
    few = len(keys) == 1
    return [
        f"the column{'' if few else 's'} {', '.join(map(repr, keys))} may identify rows or "
        f"persons, judging by the name, and will be used as {'a feature' if few else 'features'}. "
        'Leave out columns that are not features by --drop or by "drop" in the schema, and name '
        "the column of persons with several rows by --groups."
    ]


@dataclass(frozen=True, slots=True)
class TrainingTable:
    """Rows in typed columns, labels as strings, and the stated facts."""

    rows: Any
    y: NDArray[Any]
    rules: dict[str, Any]
    classes: list[str] | None
    groups: Any
    notes: tuple[str, ...]


def read_training_table(options: Any) -> TrainingTable:
    """Return a table with its labels, the types of its columns and its label set."""
    target, groups = options.target, options.groups
    roles = [target] if groups is None else [target, groups]
    if len(set(roles)) < len(roles):
        raise UserError("--groups and --target name the same column")
    if set(options.drop) & set(roles):
        raise UserError("--drop names the column of --target or --groups")
    rules, labels = _schema_of(options.schema)
    rules |= dict.fromkeys(options.drop, "drop")
    in_chunks = options.delta != 0 and groups is None
    whole = read_table(
        options,
        roles,
        lambda name: name in roles or is_verbatim(rules.get(name)),
        may_stream=in_chunks,
    )
    y = labels_of(whole, target)
    table = replace(whole, frame=whole.frame.drop(columns=roles))
    if not table.frame.shape[1]:
        raise UserError(f"{table.path} has no columns besides {', '.join(map(repr, roles))}")
    rules = {name: rule for name, rule in rules.items() if name not in roles}
    absent = [name for name in options.drop if name not in table.frame.columns]
    if absent:
        raise UserError(f"--drop: {no_column(absent, table.frame.columns, str(table.path))}")
    for name, guess in guesses(table, rules).items():
        rules[name] = {"kind": guess.kind_alone, "stated": False}
    columns = declared_columns(table, rules)
    classes = options.classes
    if classes is None and labels is not None:
        classes = [str(label) for label in labels]
    notes = []
    if table.n_unnamed:
        notes.append(f"{table.n_unnamed} column(s) without a name are left out, as an index is.")
    n_found = sum(not column.is_stated for column in columns.values())
    if n_found:
        notes.append(
            f"{n_found} of {len(columns)} columns are not in a --schema: their types (number, "
            "date, boolean or text) are inferred from the file and declared public."
        )
    if classes is None:
        notes.append(
            f"No --classes: the {len(np.unique(y))} labels found in column {target!r} are "
            "declared public."
        )
    notes += note_on_keys(name for name, column in columns.items() if column.kind != "drop")
    _check_labels(table.path, target, y, classes)
    rows = rows_of(table, columns, in_chunks=in_chunks)
    ids = None if groups is None else labels_of(whole, groups)
    return TrainingTable(rows, y.astype(str), rules, classes, ids, tuple(notes))


def _schema_of(path: Path | None) -> tuple[dict[str, Any], Any]:
    """Return the rules of columns and a label set or None."""
    try:
        schema = None if path is None else json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UserError(f"--schema: cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"--schema: {path} is not JSON: check its quotes and commas") from error
    try:
        return read_schema(schema)
    except ValueError as error:
        raise UserError(f"--schema: {path}: {error}") from error


def _check_labels(path: Path, target: str, y: NDArray[Any], classes: Sequence[str] | None) -> None:
    """Refuse labels that are not classes, or not the stated ones."""
    seen = np.unique(y)
    if classes is not None:
        if not set(seen.tolist()) <= set(classes):
            raise UserError(
                f"column {target!r} of {path} contains a label that is not in the label set of "
                "--classes or --schema; add all labels there"
            )
    elif len(seen) < 2:
        raise UserError(
            f"all rows of {path} have the same label; state the label set by --classes, which may "
            "contain labels that do not occur"
        )
    elif len(seen) > _MOST_CLASSES or max(map(len, seen)) > _LONGEST_LABEL:
        raise UserError(
            f"column {target!r} of {path} has more than {_MOST_CLASSES} different labels, or one "
            f"of more than {_LONGEST_LABEL} characters; choose a column of classes, or state the "
            "label set by --classes"
        )
