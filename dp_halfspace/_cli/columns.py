"""What became of each column of a fit, and names that look like keys: all of it is public."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from dp_halfspace._html import align_columns
from dp_halfspace.data.encoding import Encoding
from dp_halfspace.data.schema import Column

# Parts of a name that say that a column tells rows or persons apart.
_KEYS = frozenset(("id", "ids", "uuid", "guid", "mrn", "ssn", "identifier"))
# Ends of words: signs that are no letters or digits, and capitals after small letters.
_BORDER = re.compile(r"[^0-9A-Za-z]+|(?<=[a-z0-9])(?=[A-Z])")


def looks_like_key(name: str) -> bool:
    """Tell by the name of a column alone whether it may tell rows or persons apart."""
    return any(part.lower() in _KEYS for part in _BORDER.split(name))


def note_on_keys(names: Iterable[str], rules: Mapping[str, Any]) -> str:
    """Name the features that may be keys; empty if there are none."""
    keys = [name for name in names if looks_like_key(name) and not _is_dropped(rules.get(name))]
    if not keys:
        return ""
    few = len(keys) == 1
    return (
        f"by {'its name' if few else 'their names'} the column{'' if few else 's'} "
        f"{', '.join(map(repr, keys))} may tell rows or persons apart, and will be used as "
        f"{'a feature' if few else 'features'}. Leave out what is no feature by --drop, and name a "
        "person who has several rows by --groups."
    )


def _is_dropped(rule: Any) -> bool:
    return rule == "drop" or (isinstance(rule, Mapping) and rule.get("kind") == "drop")


def describe_columns(model: Any) -> str:
    """List the columns of a fitted model: what each holds, who says so, and what became of it."""
    encoding: Encoding = model.encoding_
    learnt = set(map(str, dict(model.privacy_.public)["private_units"]))
    rows = [("column", "holds", "by", "used as")]
    for column in encoding.columns:
        holds = Column.describe(column).removesuffix(f", {column.source}")
        origin = "stated" if column.is_stated else column.source
        rows.append((column.name, holds, origin, _use_of(column, encoding, learnt)))
    return "\n".join(align_columns(rows, 4)) + "\n\n"


def _use_of(column: Column, encoding: Encoding, learnt: set[str]) -> str:
    """Say what became of a column."""
    if column.kind == "drop":
        return "left out"
    if column.is_number:
        if column.has_range:
            return "clipped to its range" + (", in learnt units" if column.name in learnt else "")
        return "in learnt units" if column.name in learnt else "as it stands"
    if column.kind == "categories":
        size = len(column.categories)
        return "one column of both signs" if size == 2 else f"{size} columns of 0 and 1"
    if column.kind == "words":
        return f"counts of hashed words in {column.n_columns} columns"
    return f"the hash of the whole text, in {encoding.n_hashes} columns"
