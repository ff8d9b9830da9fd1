"""The public facts about the columns of a table, as stated by a user."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._params import plain, storable
from dp_halfspace.data.cells import (
    DECIMALS,
    FALSE,
    TRUE,
    Moment,
    canonical,
    category_of,
    date_in_format,
    date_of,
)
from dp_halfspace.data.chunks import Chunks
from dp_halfspace.data.frame import Frame, kind_of
from dp_halfspace.data.validation import array_or_none, first_of, is_chunked

# Kinds of columns that a user may state instead of a range or categories.
_WORDS = ("number", "date", "boolean", "text", "words", "drop")
_SCALED_KINDS = ("number", "date")
# What a missing number or date becomes: zero, with or without an indicator beside it.
_MISSING_RULES = ("indicator", "ignore")
BOOLEAN = (FALSE, TRUE)
# Default number of columns for the words of a column of strings.
_N_WORD_COLUMNS = 64
# Largest number of encoded columns of words, or of categories, which have a column each.
WIDEST_ENCODING = 2**12
_RULES_OF_COLUMNS = (
    f"must be [low, high], a list of categories, one of {', '.join(_WORDS)}, or a mapping with "
    "some of kind, range, categories, decimal, unit, format, columns, missing"
)
# Parts of names of columns that identify rows or persons.
_KEY_WORDS = frozenset(
    (
        *("id", "ids", "uuid", "guid", "mrn", "ssn", "pid", "rowid", "identifier", "unnamed"),
        *("seqn", "rowname", "rownames", "aktenzeichen"),
    )
)
# Names that are keys as a whole, and in longer names are not.
_KEYS_ALONE = frozenset(
    ("patient", "person", "email", "name", "firstname", "lastname", "vorname", "nachname")
)
# The end of a name that consists of who is numbered and of a word for a number.
_NUMBERED = re.compile(
    r"(?:patient(?:en)?|pat|pid|u?subj(?:ect)?|person(?:al)?|pers|participant|proband(?:en)?|case|fall|"
    r"employee|emp|staff|customer|cust|kunden|client|member|user|account|policy|nhs|hospital|"
    r"record|row|encounter|admission|hadm|stay|versicherten|versicherungs|akten|household|sample)"
    r"s?(?:id|ids|number|num|nbr|no|nr|nummer|code|key)"
    # A letter with an accent is a border: numéro.
    r"|(?:n|no|nr|num|nume?ro|codice|codigo)(?:d[eiu]l?)?(?:patient|paciente|paziente|dossier)"
)
# Boundaries of words: characters other than letters and digits, and capitals after small letters.
_BORDER = re.compile(r"[^0-9A-Za-z]+|(?<=[a-z0-9])(?=[A-Z])")
# Between two formats of dates, of which a user is to choose one.
CHOICE = " or "
_SOURCE_DTYPE = "by the dtype of the column"
_BY_LIST = "as in all lists of rows"


@dataclass(frozen=True)
class Column:
    """Public facts about one column; `source` is their origin if the user did not state them.

    A column of numbers or dates that `indicates_missing` has an indicator of its missing entries.
    """

    name: str
    kind: str
    low: float = -math.inf
    high: float = math.inf
    categories: tuple[str, ...] = ()
    decimal: str | None = None
    date_format: str | None = None
    unit: str = ""
    source: str = ""
    n_columns: int = 0
    indicates_missing: bool = True

    @property
    def is_number(self) -> bool:
        """Whether the entries are numbers, which have a scale."""
        return self.kind in _SCALED_KINDS

    @property
    def has_range(self) -> bool:
        """Whether the range of the column is public."""
        return math.isfinite(self.low)

    def describe(self) -> str:
        """Return the public facts of the column for the record."""
        ignored = "" if self.indicates_missing else ", missing ignored"
        if self.has_range:
            return f"{self.kind} in [{self.low:g}, {self.high:g}]{ignored}"
        known = f"{len(self.categories)} categories" if self.categories else self.kind + ignored
        if self.categories == BOOLEAN:
            known = "boolean"
        if self.kind == "words":
            known = f"words in {self.n_columns} columns"
        return f"{known}, {self.source}" if self.source else known


def read_schema(schema: Any) -> tuple[dict[str, Any], Any]:
    """Return the rules of a schema for the columns, and its label set or None.

    A schema is a mapping of columns; or a mapping with such a mapping under ``"columns"``, a
    ``"target"`` and further keys; or the path of a JSON file with either.
    """
    if schema is None:
        return {}, None
    if isinstance(schema, str | os.PathLike):
        try:
            text = Path(schema).read_text(encoding="utf-8-sig")
            schema = json.loads(text, object_pairs_hook=_mapping)
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"schema names a file that is not JSON: {error}") from error
    target = None
    if isinstance(schema, Mapping) and isinstance(schema.get("columns"), Mapping):
        target, schema = schema.get("target"), schema["columns"]
        target = None if isinstance(target, str) else target
        if isinstance(target, bool | int | float) or (isinstance(target, list) and None in target):
            raise ValueError(f"target of schema must be a list of labels; got {target!r}")
    if not isinstance(schema, Mapping):
        raise ValueError("schema must be a mapping of columns, or the path of a JSON file with one")
    return {str(name): rule for name, rule in schema.items()}, target


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, of which no part is silently replaced by another one."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for k, (name, _) in enumerate(pairs) if name in dict(pairs[:k]))
        raise ValueError(f"schema states {twice!r} twice")
    return found


def label_set(target: Any, y: Any) -> NDArray[Any] | None:
    """Return the labels of a schema, as numbers if the labels of the records are numbers."""
    if target is None:
        return None
    labels = np.asarray(target)
    values = y.sample if isinstance(y, Chunks) else y
    dtype = values.dtype if is_chunked(values) else getattr(array_or_none(values), "dtype", None)
    if labels.dtype.kind != "U" or dtype is None or dtype.kind not in "iuf":
        return labels
    try:
        numbers = labels.astype(np.float64)
    except ValueError:
        raise ValueError("target of schema lists strings, but y contains numbers") from None
    return numbers.astype(np.int64) if (numbers == np.rint(numbers)).all() else numbers


def resolved_columns(frame: Frame, rules: Mapping[str, Any]) -> tuple[Column, ...]:
    """Decide the kind of every column by the schema, otherwise by its dtype, which is then public.

    A column in lists, which have no dtypes, is numeric.
    """
    unknown = sorted(set(rules) - set(frame.names))
    if unknown:
        names = ", ".join(map(repr, unknown))
        hint = "" if frame.is_named else ". Give a data frame; transformers have set_output"
        raise ValueError(f"schema names columns that X does not have: {names}{hint}")
    columns = []
    for name, values in zip(frame.names, frame.columns, strict=True):
        if rules.get(name) is not None:
            columns.append(_read_rule(name, rules[name]))
        elif frame.has_dtypes:
            columns.append(_column(name, kind_of(values), source=_SOURCE_DTYPE))
        else:
            columns.append(_column(name, "number", source=_BY_LIST))
    return tuple(columns)


def unstated_kinds(columns: Sequence[Column]) -> str:
    """Describe the facts that were taken from the dtypes of a table; empty if there are none."""
    unstated = [column for column in columns if column.source]
    if not unstated:
        return ""
    some = first_of([f"{column.name!r}: {word_of(column)}" for column in unstated])
    how = (
        "this is taken from the dtypes of the table and declared public. A reader that infers "
        "dtypes lets one record change them, which the guarantee does not cover"
    )
    if unstated[0].source == _BY_LIST:
        how = "a list of rows has no dtypes, so it is read as numbers"
    said = [
        f"schema does not state what {len(unstated)} of {len(columns)} columns hold ({some}): {how}"
    ]
    texts = [repr(c.name) for c in unstated if c.source == _SOURCE_DTYPE and c.kind == "text"]
    if texts:
        said.append(
            f"The cells of {first_of(texts)} are stored as objects, texts or categories, so they "
            f"are read as text, even if they are numbers: state schema={{{texts[0]}: 'number'}}, "
            "or 'date', 'boolean' or a list of categories, to read each cell as such"
        )
    said.append("State every column; `python -m dp_halfspace schema FILE` writes a template")
    keys = [repr(column.name) for column in unstated if looks_like_key(column.name)]
    if keys:
        said.append(
            f"Judging by the name, {first_of(keys)} may identify rows or persons, and will be used "
            "as features unless the schema says 'drop'; fit(groups=...) protects persons"
        )
    return ". ".join(said)


def looks_like_key(name: str) -> bool:
    """Return whether a column may identify rows or persons, by its name alone."""
    parts = [part.lower() for part in _BORDER.split(name)]
    is_key = any(part in _KEY_WORDS for part in parts) or "".join(parts) in _KEYS_ALONE
    return is_key or any(_NUMBERED.fullmatch("".join(parts[start:])) for start in range(len(parts)))


def word_of(column: Column) -> str:
    """Return the word of a schema for the kind of a column that the schema does not name."""
    return "boolean" if column.categories == BOOLEAN else column.kind


def _column(name: str, kind: str, **facts: Any) -> Column:
    """Return a column of a kind; a boolean column has two categories."""
    if kind == "boolean":
        return Column(name, "categories", categories=BOOLEAN, **facts)
    return Column(name, kind, **facts)


def _read_rule(name: str, rule: Any) -> Column:
    refusal = f"schema of the column {name!r} {_RULES_OF_COLUMNS}"
    if isinstance(rule, str):
        if rule not in _WORDS:
            raise ValueError(f"{refusal}; got {rule!r}")
        rule = {"kind": rule}
    elif not isinstance(rule, Mapping):
        values = _to_list(rule, refusal)
        rule = {"categories": values}
        if len(values) == 2 and all(map(_is_number, values)):
            rule = {"range": values}
        elif len(values) == 2 and all(isinstance(canonical(each), Moment) for each in values):
            rule = {"kind": "date", "range": values}
    return _read_facts(name, dict(rule), refusal)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real | Decimal) and not isinstance(value, bool)


def _is_of_dates(form: str) -> bool:
    """Return whether ``strptime`` can read a date in a format; it cannot read dd/mm/yyyy or %F."""
    try:
        text = datetime(2001, 2, 3, tzinfo=timezone.utc).strftime(form)
        datetime.strptime(text, form)
    except ValueError:
        return False
    return text != form


# For each further fact: the kinds of columns that have it, which values it has, and what it is.
_RULES_OF_FACTS: dict[str, tuple[tuple[str, ...], Callable[[Any], bool], str]] = {
    "range": (_SCALED_KINDS, lambda _: True, "only numbers and dates have a range"),
    "decimal": (
        (*_WORDS, "categories"),
        lambda value: value in DECIMALS,
        f"decimal is one of {', '.join(map(repr, DECIMALS))}",
    ),
    "format": (
        ("date",),
        lambda value: isinstance(value, str) and CHOICE not in value and _is_of_dates(value),
        "format is that of dates for strptime, such as '%d/%m/%Y'; of two formats, choose one",
    ),
    "unit": (
        ("number",),
        lambda value: isinstance(value, str) and (not value or isinstance(canonical(value), str)),
        "unit is a text beside numbers, such as 'mmHg'",
    ),
    "columns": (
        ("words",),
        lambda value: type(value) is int and 1 <= value <= WIDEST_ENCODING,
        f"columns is for the kind words, a whole number up to {WIDEST_ENCODING}",
    ),
    "missing": (
        _SCALED_KINDS,
        lambda value: value in _MISSING_RULES,
        f"missing is for numbers and dates, one of {', '.join(_MISSING_RULES)}",
    ),
}


def _read_facts(name: str, facts: dict[str, Any], refusal: str) -> Column:
    """Return a column by a mapping of facts, such as ``{"kind": "date", "format": "%d/%m/%Y"}``."""
    odd = sorted(set(map(str, facts)) - {"kind", "categories", "stated", *_RULES_OF_FACTS})
    if odd:
        raise ValueError(f"{refusal}; it has {odd[0]!r}")
    facts = {key: value for key, value in facts.items() if value is not None}
    implied = "categories" if "categories" in facts else "number" if "range" in facts else None
    kind = facts.get("kind", implied)
    if kind not in (*_WORDS, "categories") or (kind == "categories") != ("categories" in facts):
        raise ValueError(f"{refusal}; kind is one of {', '.join(_WORDS)}, or there are categories")
    for key, (kinds, is_good, rule) in _RULES_OF_FACTS.items():
        if key in facts and not (kind in kinds and is_good(facts[key])):
            raise ValueError(f"{refusal}; {rule}")
    if "range" in facts:
        ends = _to_list(facts["range"], refusal)
        column = _range_column(name, kind, ends, facts.get("format"), refusal)
    elif "categories" in facts:
        column = _category_column(name, _to_list(facts["categories"], refusal), refusal)
    else:
        column = _column(name, kind)
    return replace(
        column,
        decimal=facts.get("decimal"),
        date_format=facts.get("format"),
        unit=facts.get("unit", "").strip(),
        source="" if facts.get("stated", True) else "as found in the file",
        n_columns=facts.get("columns", _N_WORD_COLUMNS if kind == "words" else 0),
        indicates_missing=facts.get("missing") != "ignore",
    )


def _to_list(values: Any, refusal: str) -> list[Any]:
    with suppress(TypeError):
        # The order of a set is another one in each process.
        if not isinstance(values, str | Set):
            return [plain(value) for value in storable(values)]
    raise ValueError(refusal)


def _range_column(name: str, kind: str, ends: list[Any], form: str | None, refusal: str) -> Column:
    if len(ends) != 2:
        raise ValueError(f"{refusal}; a range has two ends")
    low, high = (_limit(end, kind, form) for end in ends)
    if not (-1e50 <= low < high <= 1e50):
        dates = ", and dates are written as 2026-01-31 or in their format"
        rule = "a range has a lower and a higher end, both finite"
        raise ValueError(f"{refusal}; {rule}{dates if kind == 'date' else ''}")
    return Column(name, kind, low, high)


def _limit(end: Any, kind: str, form: str | None) -> float:
    """Return a limit of a range, in days for dates, and NaN for what is none."""
    if kind == "number":
        return float(end) if _is_number(end) else math.nan
    days = date_in_format(end, form) if form and isinstance(end, str) else math.nan
    return date_of(canonical(end)) if math.isnan(days) else days


def _category_column(name: str, values: list[Any], refusal: str) -> Column:
    if len(values) > WIDEST_ENCODING:
        raise ValueError(
            f"schema of the column {name!r} lists {len(values)} categories, and at most "
            f"{WIDEST_ENCODING} get a column each: state 'text', which needs no list"
        )
    categories = tuple(category_of(value) for value in values)
    if not categories or None in categories or len(set(categories)) < len(categories):
        raise ValueError(
            f"{refusal}; there is at least one category, they are distinct, where 1 and '01' are "
            "the same, and none is missing"
        )
    return Column(name, "categories", categories=tuple(map(str, categories)))
