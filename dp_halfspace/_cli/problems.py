"""Data that a model is trained on or that a comparison runs on, and what is public about them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.datasets import load_breast_cancer, load_svmlight_file

from dp_halfspace._cli.arguments import UserError
from dp_halfspace._cli.tables import (
    declared_columns,
    labels_of,
    read_cells,
    readable,
    schema_of,
    typed,
)
from dp_halfspace.data.encoding import Encoding
from dp_halfspace.data.frame import read_frame
from dp_halfspace.data.schema import resolved_columns, word_of

_SVMLIGHT = frozenset({".svm", ".svmlight", ".libsvm", ".txt"})
_FEWEST_ROWS = 20
_MOST_CLASSES = 100
_Labels = NDArray[Any]


@dataclass(frozen=True, slots=True)
class TrainingTable:
    """A typed frame, labels as texts, and the facts that were stated; None: labels as seen."""

    frame: Any
    y: _Labels
    rules: dict[str, Any]
    classes: list[str] | None
    groups: Any
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """Rows of numbers and, where there is one, the table that they were made from."""

    name: str
    X: NDArray[np.float64] | csr_matrix
    y: _Labels
    classes: list[Any]
    scaling: str
    data_norm: float | None = None
    table: Any = None
    rules: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()


def builtin_problem() -> Problem:
    """Return a table in natural units (lengths, areas, shares) that needs no download."""
    X, y = load_breast_cancer(return_X_y=True)
    return Problem("breast cancer", X, y, [0, 1], "columns in natural units, which are learnt")


def read_training_table(options: Any) -> TrainingTable:
    """Read a table with labels, the kinds of its columns and its label set."""
    target, groups = options.target, getattr(options, "groups", None)
    if target is None:
        raise UserError(f"--target must name the label column of {options.table}")
    roles = [target] if groups is None else [target, groups]
    if len(set(roles)) < len(roles):
        raise UserError("--groups and --target name the same column")
    cells = read_cells(options, roles)
    rules, labels = schema_of(options.schema, options.table)
    rules = {name: rule for name, rule in rules.items() if name not in roles}
    y = labels_of(cells, target)
    features = replace(cells, frame=cells.frame.drop(columns=roles))
    if not features.frame.shape[1]:
        raise UserError(f"{options.table} has no columns besides {', '.join(map(repr, roles))}")
    columns = declared_columns(features, rules)
    frame = typed(features, columns)
    found = [column for column in columns.values() if not column.is_stated]
    if features.is_text:
        rules |= {column.name: {"kind": word_of(column), "stated": False} for column in found}
    classes = options.classes
    if classes is None and labels is not None:
        classes = [str(label) for label in labels]
    notes = []
    if cells.n_unnamed:
        notes.append(f"{cells.n_unnamed} column(s) without a name are left out, as an index is.")
    if found:
        notes.append(
            f"{len(found)} of {len(columns)} columns are not in a --schema: whether they hold "
            "numbers, dates, truth values or texts is read from the file and declared public."
        )
    if classes is None:
        notes.append(
            f"No --classes: the {len(np.unique(y))} labels found in column {target!r} are "
            "declared public."
        )
    _check_labels(options.table, target, y, classes)
    ids = None if groups is None else labels_of(cells, groups)
    return TrainingTable(frame, y, rules, classes, ids, tuple(notes))


def _check_labels(path: Path, target: str, y: _Labels, classes: Sequence[str] | None) -> None:
    """Refuse labels that are no classes, or not those that were stated."""
    seen = np.unique(y)
    if classes is not None:
        if not set(seen.tolist()) <= set(classes):
            raise UserError(
                f"column {target!r} of {path} holds a label that is not in the label set of "
                "--classes or --schema; name all labels there"
            )
    elif len(seen) < 2:
        raise UserError(
            f"all rows of {path} have the same label; state the label set by --classes, in which "
            "a label may be absent from the data"
        )
    elif len(seen) > _MOST_CLASSES:
        raise UserError(
            f"column {target!r} of {path} has more than {_MOST_CLASSES} different labels; the "
            "label must be a class, or state the label set by --classes"
        )


def own_problem(options: Any) -> Problem:
    """Read the data of the user for a comparison."""
    path = options.table
    if _kind(path) in _SVMLIGHT:
        for name in ("target", "schema", "classes"):
            if getattr(options, name) is not None:
                raise UserError(f"--{name} is not used with svmlight files such as {path}")
        with readable(path):
            X, y = load_svmlight_file(str(path), dtype=np.float64)
        if not (np.isfinite(X.data).all() and np.isfinite(y).all()):
            raise UserError(f"{path} holds a number that is not finite; leave out such rows")
        y = y.astype(np.int64) if (y == np.rint(y)).all() else y
        norm = options.data_norm or 1.0
        problem = Problem(path.name, X, y, np.unique(y).tolist(), "columns as in the file", norm)
    else:
        problem = _from_table(options)
    _check_splits(path, problem.y, options.test_size)
    return problem


def _kind(path: Path) -> str:
    """Return the ending of a file that says its kind."""
    compressed = path.suffix.lower() in (".gz", ".bz2")
    return Path(path.stem if compressed else path).suffix.lower()


def _from_table(options: Any) -> Problem:
    """Make rows of numbers by public rules: ranges become [-1, 1], other units stay."""
    table = read_training_table(options)
    classes = np.unique(table.y).tolist() if table.classes is None else table.classes
    frame = read_frame(table.frame)
    encoding = Encoding(resolved_columns(frame, table.rules), is_named=True)
    numbers, others = encoding.encoded(frame)
    columns = encoding.numbers
    with np.errstate(over="ignore"):
        for j, column in enumerate(columns):
            if column.has_range:
                share = (numbers[:, j] - column.low) / (column.high - column.low)
                numbers[:, j] = np.nan_to_num(2.0 * share - 1.0)
    X, norm = np.hstack([numbers, others]), options.data_norm
    stated = all(column.has_range for column in columns)
    if norm is None and stated:
        norm = math.sqrt(X.shape[1]) / 2.0
    if norm is not None:
        X = np.nan_to_num(X)
    scaling = f"{len(columns)} columns of numbers, " + (
        "by their ranges" if stated else "by ranges where stated, in natural units elsewhere"
    )
    return Problem(
        options.table.name,
        X,
        table.y,
        classes,
        scaling,
        norm,
        table.frame,
        table.rules,
        table.notes,
    )


def _check_splits(path: Path, y: _Labels, test_size: float) -> None:
    """Refuse what cannot be split into training and test rows of every class."""
    if len(y) < _FEWEST_ROWS:
        raise UserError(f"{path} has {len(y)} rows; a comparison needs at least {_FEWEST_ROWS}")
    counts = Counter(y.tolist())
    if len(counts) == 1:
        raise UserError(f"all rows of {path} have the same label; a comparison needs two classes")
    if min(counts.values()) < 2:
        raise UserError(f"a class of {path} has only one row; a comparison needs at least 2")
    n_test = math.ceil(test_size * len(y))
    if min(n_test, len(y) - n_test) < len(counts):
        raise UserError(
            f"--test-size {test_size:g} leaves fewer training or test rows of {path} than there "
            "are classes"
        )
