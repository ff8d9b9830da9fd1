"""What is public about the columns of a table, as a user states it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._chunks import Chunks, is_dask
from dp_halfspace._sklearn import plain
from dp_halfspace.tables.frame import Frame, kind_of, text_of

__all__ = ["BOOLEAN", "Column", "label_set", "read_schema", "resolved_columns"]

# What a user may say of a column instead of a range or categories.
_WORDS = ("number", "date", "boolean", "text", "drop")
_BY_DTYPE = {"b": "boolean", "i": "number", "u": "number", "f": "number", "m": "date", "M": "date"}
BOOLEAN = ("False", "True")
_RULE = f"must be [low, high], a list of categories, or one of {', '.join(_WORDS)}"


@dataclass(frozen=True)
class Column:
    """What is public about one column; `is_stated` where a user said so, not the dtype."""

    name: str
    kind: str
    low: float = -math.inf
    high: float = math.inf
    categories: tuple[str, ...] = ()
    is_stated: bool = True

    @property
    def is_number(self) -> bool:
        """Whether its entries are numbers, which have a unit."""
        return self.kind in ("number", "date")

    @property
    def has_range(self) -> bool:
        """Whether its ends are public."""
        return math.isfinite(self.low)

    def describe(self) -> str:
        """Say in a record what was taken as public."""
        if self.has_range:
            return f"{self.kind} in [{self.low:g}, {self.high:g}]"
        known = f"{len(self.categories)} categories" if self.categories else self.kind
        return known if self.is_stated else f"{known}, by the dtype of the column"


def read_schema(schema: Any) -> tuple[dict[str, Any], Any]:
    """Return what a schema says of the columns, and its label set or None.

    A schema is a mapping of columns, such a mapping under ``"columns"`` beside a ``"target"`` and
    whatever else, or the path of a JSON file with either.
    """
    if schema is None:
        return {}, None
    if isinstance(schema, str | os.PathLike):
        schema = json.loads(Path(schema).read_text(encoding="utf-8"))
    target = None
    if isinstance(schema, Mapping) and isinstance(schema.get("columns"), Mapping):
        target, schema = schema.get("target"), schema["columns"]
        target = None if isinstance(target, str) else target
    if not isinstance(schema, Mapping):
        raise ValueError("schema must be a mapping of columns, or the path of a JSON file with one")
    return {str(name): rule for name, rule in schema.items()}, target


def label_set(target: Any, y: Any) -> NDArray[Any] | None:
    """Return the labels of a schema, as numbers where the labels of the records are numbers."""
    if target is None:
        return None
    labels = np.asarray(target)
    dtype = y.dtype if is_dask(y) else np.asarray(y.sample if isinstance(y, Chunks) else y).dtype
    if labels.dtype.kind == "U" and dtype.kind in "iuf":
        try:
            return labels.astype(np.float64).astype(dtype)
        except ValueError:
            raise ValueError("target of schema lists texts, but y holds numbers") from None
    return labels


def resolved_columns(frame: Frame, rules: Mapping[str, Any]) -> tuple[Column, ...]:
    """Decide what every column is: by the schema, else by its dtype, which is public then."""
    unknown = sorted(set(rules) - set(frame.names))
    if unknown:
        raise ValueError(f"schema names the column {unknown[0]!r}, which X does not have")
    return tuple(
        _column(name, _BY_DTYPE.get(kind_of(values), "text"), is_stated=False)
        if rules.get(name) is None
        else _stated(name, rules[name])
        for name, values in zip(frame.names, frame.columns, strict=True)
    )


def _column(name: str, kind: str, **facts: Any) -> Column:
    """Return a column; a boolean is two categories."""
    if kind == "boolean":
        return Column(name, "categories", categories=BOOLEAN, **facts)
    return Column(name, kind, **facts)


def _stated(name: str, rule: Any) -> Column:
    """Read what a schema says of one column."""
    refusal = f"schema of the column {name!r} {_RULE}"
    if isinstance(rule, str):
        if rule not in _WORDS:
            raise ValueError(refusal)
        return _column(name, rule)
    try:
        values = [plain(value) for value in rule]
    except TypeError:
        raise ValueError(refusal) from None
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(values) == len(numbers) == 2:
        low, high = map(float, numbers)
        if not (-1e50 <= low < high <= 1e50):
            raise ValueError(f"{refusal}; a range has a lower and a higher end, both finite")
        return Column(name, "number", low, high)
    categories = tuple(text_of(value) for value in values)
    if not categories or None in categories or len(set(categories)) < len(categories):
        raise ValueError(f"{refusal}; categories are distinct, and none is missing")
    return Column(name, "categories", categories=tuple(map(str, categories)))
