"""Read the user's own data. Errors name a file, a column or a line, never a value."""

from __future__ import annotations

import math
from collections import Counter
from io import BytesIO
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.datasets import load_svmlight_file

from dp_halfspace._cli.arguments import Options, UserError
from dp_halfspace._cli.problems import Problem, half_diagonal
from dp_halfspace._cli.ranges import apply_ranges, read_ranges
from dp_halfspace._cli.tables import open_bytes, read_table, readable

__all__ = ["read_problem"]

_SVMLIGHT = frozenset({".svm", ".svmlight", ".libsvm", ".txt"})
_COMPRESSED = frozenset({".gz", ".bz2"})
_FEWEST_ROWS = 20
_MOST_CLASSES = 100

_Labels = NDArray[np.generic]


def read_problem(options: Options) -> Problem:
    """Read the file that the options name into a problem, or raise `UserError`."""
    path, target = cast(Path, options.data), options.target
    suffix = path.suffix.lower()
    inner = Path(path.stem).suffix.lower() if suffix in _COMPRESSED else suffix
    names: list[str] = []
    if inner == ".csv" or suffix == ".parquet":
        if target is None:
            raise UserError(f"--target must name the label column of {path}")
        table = read_table(path, target)
        names, X, y = table.names, table.numbers, _numbers_if_possible(np.array(table.text))
    elif inner in _SVMLIGHT:
        for name in ("target", "ranges"):
            if getattr(options, name) is not None:
                raise UserError(f"--{name} is not used with svmlight files such as {path}")
        with readable(path):
            X, y = _read_svmlight(path)
    else:
        raise UserError(
            f"--data: {path} must end in .csv, .svm, .svmlight, .libsvm or .txt, "
            "optionally followed by .gz or .bz2, or in .parquet"
        )
    _check(path, X, y, options.test_size)
    return _scaled(path, X, y, names, options)


def _scaled(path: Path, X: Any, y: _Labels, names: list[str], options: Options) -> Problem:
    """Scale columns by public ranges if there are any, and choose the public norm."""
    norm, scaling = 1.0, "columns as in the file"
    if options.ranges is not None:
        X = apply_ranges(X, read_ranges(options.ranges, names))
        norm = half_diagonal(X.shape[1])
        scaling = f"columns mapped by the ranges in {options.ranges.name}"
    norm = norm if options.data_norm is None else options.data_norm
    scaling += "; labels in the file taken as public"
    return Problem(path.name, X, y, norm, scaling, own_units=options.ranges is None)


def _numbers_if_possible(labels: _Labels) -> _Labels:
    """Keep labels as text unless all of them are finite numbers."""
    try:
        numbers = labels.astype(np.float64)
    except ValueError:
        return labels
    return _integers_if_possible(numbers) if np.isfinite(numbers).all() else labels


def _integers_if_possible(numbers: NDArray[np.float64]) -> _Labels:
    """Drop the fraction of whole numbers, so that 1.0 and 1 are one label and print as 1."""
    whole = np.all(numbers == np.rint(numbers)) and np.all(np.abs(numbers) < 2**53)
    return numbers.astype(np.int64) if whole else numbers


def _read_svmlight(path: Path) -> tuple[csr_matrix, _Labels]:
    """Read a svmlight file and, if that fails, find the line at fault."""
    with open_bytes(path) as stream:
        found = _finite_svmlight(stream)
    if found is None:
        with open_bytes(path) as stream:
            for number, line in enumerate(stream, start=1):
                if _finite_svmlight(BytesIO(line)) is None:
                    raise UserError(
                        f"line {number} of {path} is not svmlight: it must be a label and then "
                        "column:number pairs, finite and with growing column numbers"
                    )
        raise UserError(f"{path} is not a svmlight file")
    X, labels = found
    if X.nnz == 0:
        raise UserError(f"{path} has no features")
    return X, _integers_if_possible(labels)


def _finite_svmlight(stream: IO[bytes]) -> tuple[csr_matrix, NDArray[np.float64]] | None:
    """Read svmlight; None if it cannot be read, or not into finite numbers."""
    try:
        X, labels = load_svmlight_file(stream, dtype=np.float64)
    except (ValueError, OverflowError):
        return None
    return (X, labels) if np.isfinite(X.data).all() and np.isfinite(labels).all() else None


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
