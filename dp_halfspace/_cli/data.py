"""Read the user's own data. Errors name a file, a column or a line, never a value."""

from __future__ import annotations

import bz2
import csv
import gzip
import math
import zlib
from array import array
from collections import Counter
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.datasets import load_svmlight_file

from dp_halfspace._cli.arguments import Options, UserError
from dp_halfspace._cli.problems import Problem, half_diagonal
from dp_halfspace._cli.ranges import apply_ranges, read_ranges

__all__ = ["read_problem"]

_CSV = frozenset({".csv"})
_SVMLIGHT = frozenset({".svm", ".svmlight", ".libsvm", ".txt"})
_COMPRESSED = frozenset({".gz", ".bz2"})
_FEWEST_ROWS = 20
_MOST_CLASSES = 100

_Labels = NDArray[np.generic]


def read_problem(options: Options) -> Problem:
    """Read the file that the options name into a problem, or raise `UserError`."""
    path, target = cast(Path, options.data), options.target
    suffix = Path(path.stem).suffix if path.suffix.lower() in _COMPRESSED else path.suffix
    X: NDArray[np.float64] | csr_matrix
    try:
        if suffix.lower() in _CSV:
            if target is None:
                raise UserError(f"--target must name the label column of {path}")
            names, X, y = _read_csv(path, target)
        elif suffix.lower() in _SVMLIGHT:
            _refuse_columns(path, options)
            names, (X, y) = [], _read_svmlight(path)
        else:
            raise UserError(
                f"--data: {path} must end in .csv, .svm, .svmlight, .libsvm or .txt, "
                "optionally followed by .gz or .bz2"
            )
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or "it is damaged or not of the kind it is named"
        raise UserError(f"cannot read {path}: {reason}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"cannot read {path}: it is not UTF-8 text") from error
    _check(path, X, y, options.test_size)
    return _scaled(path, X, y, names, options)


def _refuse_columns(path: Path, options: Options) -> None:
    """Refuse options about named columns for a file that names none."""
    for name in ("target", "ranges"):
        if getattr(options, name) is not None:
            raise UserError(f"--{name} is not used with svmlight files such as {path}")


def _scaled(path: Path, X: Any, y: _Labels, names: list[str], options: Options) -> Problem:
    """Scale columns by public ranges if there are any, and choose the public norm."""
    labels = "labels in the file taken as public"
    if options.ranges is None:
        norm = 1.0 if options.data_norm is None else options.data_norm
        return Problem(path.name, X, y, norm, f"columns as in the file; {labels}", own_units=True)
    X = apply_ranges(X, read_ranges(options.ranges, names))
    norm = half_diagonal(X.shape[1]) if options.data_norm is None else options.data_norm
    scaling = f"columns mapped by the ranges in {options.ranges.name}; {labels}"
    return Problem(path.name, X, y, norm, scaling)


def _open(path: Path) -> IO[bytes]:
    """Open a plain or a compressed file."""
    if path.suffix.lower() == ".gz":
        return cast(IO[bytes], gzip.open(path, "rb"))
    if path.suffix.lower() == ".bz2":
        return cast(IO[bytes], bz2.open(path, "rb"))
    return path.open("rb")


def _read_csv(path: Path, target: str) -> tuple[list[str], NDArray[np.float64], _Labels]:
    """Read a CSV whose first line names the columns: names, numbers, labels."""
    with TextIOWrapper(_open(path), encoding="utf-8-sig", newline="") as stream:
        first = stream.readline()
        delimiter = max(",;\t", key=first.count)
        reader = csv.reader(chain([first], stream), delimiter=delimiter, strict=True)
        try:
            header = [name.strip() for name in next(reader, [])]
            _check_header(path, header, target)
            names = [name for name in header if name != target]
            return names, *_read_rows(path, reader, header, target)
        except csv.Error as error:
            raise UserError(
                f"line {reader.line_num} of {path} is not valid CSV: check its quotes"
            ) from error


def _check_header(path: Path, header: list[str], target: str) -> None:
    """Refuse columns that cannot be told apart."""
    if not header:
        raise UserError(f"{path} is empty")
    if target not in header:
        raise UserError(f"there is no column {target!r} in line 1, the header, of {path}")
    for number, name in enumerate(header, start=1):
        if not name:
            raise UserError(f"column {number} of {path} has no name in line 1, the header")
        if header.count(name) > 1:
            raise UserError(f"two columns of {path} are named {name!r}")
    if len(header) == 1:
        raise UserError(f"{path} has no column besides {target!r}")


def _read_rows(
    path: Path, reader: Any, header: list[str], target: str
) -> tuple[NDArray[np.float64], _Labels]:
    """Read the rows below the header."""
    position = header.index(target)
    names = header[:position] + header[position + 1 :]
    values, labels = array("d"), []
    for cells in reader:
        if not cells:
            continue
        where = f"line {reader.line_num} of {path}"
        if len(cells) != len(header):
            raise UserError(f"{where} has {len(cells)} fields instead of {len(header)}")
        label = cells.pop(position).strip()
        if not label:
            raise UserError(f"column {target!r} is empty in {where}")
        labels.append(label)
        for name, cell in zip(names, cells, strict=True):
            values.append(_finite(cell, f"column {name!r}", where))
    X = np.frombuffer(values, dtype=np.float64) if values else np.empty(0)
    return X.reshape(-1, len(names)), _numbers_if_possible(labels)


def _finite(cell: str, column: str, where: str) -> float:
    """Convert a cell to a finite number."""
    try:
        value = float(cell)
    except ValueError as error:
        problem = "is not a number" if cell.strip() else "is empty"
        raise UserError(f"{column} {problem} in {where}") from error
    if not math.isfinite(value):
        raise UserError(f"{column} is not a finite number in {where}")
    return value


def _numbers_if_possible(labels: list[str]) -> _Labels:
    """Keep labels as text unless all of them are finite numbers."""
    try:
        numbers = np.array([float(label) for label in labels])
    except ValueError:
        return np.array(labels)
    return _integers_if_possible(numbers) if np.isfinite(numbers).all() else np.array(labels)


def _integers_if_possible(numbers: NDArray[np.float64]) -> _Labels:
    """Drop the fraction of whole numbers, so that 1.0 and 1 are one label and print as 1."""
    whole = np.all(numbers == np.rint(numbers)) and np.all(np.abs(numbers) < 2**53)
    return numbers.astype(np.int64) if whole else numbers


def _read_svmlight(path: Path) -> tuple[csr_matrix, _Labels]:
    """Read a svmlight file and, if that fails, find the line at fault."""
    try:
        with _open(path) as stream:
            X, labels = load_svmlight_file(stream, dtype=np.float64)
    except (ValueError, OverflowError) as error:
        raise UserError(_svmlight_fault(path)) from error
    if not (np.isfinite(X.data).all() and np.isfinite(labels).all()):
        raise UserError(_svmlight_fault(path))
    if X.nnz == 0:
        raise UserError(f"{path} has no features")
    return X, _integers_if_possible(labels)


def _svmlight_fault(path: Path) -> str:
    """Name the first line that is not ``label column:number ...`` with growing columns."""
    with _open(path) as stream:
        for number, line in enumerate(stream, start=1):
            fields = line.split(b"#", 1)[0].split()
            if fields and not _is_svmlight(fields):
                return (
                    f"line {number} of {path} is not svmlight: it must be a label and then "
                    "column:number pairs, finite and with growing column numbers"
                )
    return f"{path} is not a svmlight file"


def _is_svmlight(fields: list[bytes]) -> bool:
    """Check one line."""
    last = -1
    try:
        finite = math.isfinite(float(fields[0]))
        for field in fields[1:]:
            column, number = field.split(b":")
            if column == b"qid":
                continue
            finite = finite and math.isfinite(float(number)) and int(column) > last
            last = int(column)
    except ValueError:
        return False
    return finite


def _check(path: Path, X: NDArray[np.float64] | csr_matrix, y: _Labels, test_size: float) -> None:
    """Refuse what cannot be split into training and test rows of every class."""
    n_rows = X.shape[0]
    if n_rows < _FEWEST_ROWS:
        raise UserError(f"{path} has {n_rows} rows; at least {_FEWEST_ROWS} are needed")
    counts = Counter(y.tolist())
    if len(counts) == 1:
        raise UserError(f"all rows of {path} have the same label; two classes are needed")
    if len(counts) > _MOST_CLASSES:
        raise UserError(
            f"{path} has more than {_MOST_CLASSES} different labels; the label must be a class"
        )
    if min(counts.values()) < 2:
        raise UserError(f"a class of {path} has only one row; every class needs at least 2")
    n_test = math.ceil(test_size * n_rows)
    if min(n_test, n_rows - n_test) < len(counts):
        raise UserError(
            f"--test-size {test_size:g} leaves fewer training or test rows of {path} than there "
            "are classes"
        )
