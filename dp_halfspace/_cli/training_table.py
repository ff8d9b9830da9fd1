"""The table that a model is trained on, and what is public about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._cli.arguments import UserError
from dp_halfspace._cli.tables import declared_columns, labels_of, read_cells, schema_of, typed
from dp_halfspace.data.schema import word_of

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
