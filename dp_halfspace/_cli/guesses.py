"""Proposals for the schema of the columns of a file, which follow from all cells of a column.

They are as private as the cells. A proposal names a row to look at and no cell.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from dp_halfspace.data.cells import (
    Moment,
    canonical,
    date_in_format,
    is_limit,
    notated_number,
    truth_of,
)
from dp_halfspace.data.frame import read_column
from dp_halfspace.data.schema import CHOICE

# A column consists of numbers, or of dates, from this share of its cells on. A few other cells are
# considered remarks, and missing.
NEARLY_ALL = 0.95
# From this share on, a user is told what most cells of a column of texts are.
MOST = 0.6
# Formats of dates that are proposed; a date with its year first needs none. Where two of them read
# as many cells, a user is to choose.
_DAYS = (
    *("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%d.%m.%y", "%d/%m/%y"),
    *("%m/%d/%y", "%d-%b-%Y", "%d-%b-%y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y"),
    *("%d%b%Y", "%Y.%m.%d"),
)
_FORMATS = tuple(day + clock for day in _DAYS for clock in ("", " %H:%M", " %H:%M:%S"))
# Number of distinct cells by which most formats are excluded.
_FIRST_CELLS = 100
# What a user is told of flags, whose scale would have to be released.
_FLAGS = 'all numbers are 0 or 1: if others cannot occur, state "boolean"'
# A number whose comma cannot separate thousands.
_DECIMAL_COMMA = re.compile(r"\s*[-+]?[0-9]+,(?:[0-9]{1,2}|[0-9]{4,})\s*")
# A number with a unit behind it.
_WITH_UNIT = re.compile(r"[^0-9]{0,3}[0-9][0-9.,]*\s*(?P<unit>[^\s0-9.,:;()'\-].{0,19})")


@dataclass(frozen=True, slots=True)
class Guess:
    """The entry of a schema for a column, and what a user should look at."""

    rule: dict[str, str]
    look: str = ""

    @property
    def kind_alone(self) -> str:
        """The kind that a fit without an entry takes from the file.

        A format or a unit has to be stated, since a single cell may decide between two of them, and
        they say how all other cells are read.
        """
        return self.rule["kind"] if len(self.rule) == 1 else "text"


class _Cells:
    """The canonical values of a column, each with the number of its cells."""

    def __init__(self, texts: Any, decimal: str | None) -> None:
        found, self._places = read_column(texts).distinct()
        self.commas = [j for j, text in enumerate(found) if _DECIMAL_COMMA.fullmatch(str(text))]
        counts = np.bincount(self._places, minlength=len(found)).tolist()
        values = [canonical(text, decimal) for text in found]
        pairs = enumerate(zip(values, counts, strict=True))
        self.there = [(j, value, k) for j, (value, k) in pairs if value is not None and k]
        self.decimal = decimal
        self.enough = NEARLY_ALL * self.count(lambda _: True)

    def count(self, holds: Callable[[Any], bool]) -> int:
        """Return the number of cells of which something holds."""
        return sum(k for _, value, k in self.there if holds(value))

    def row(self, holds: Callable[[Any], bool]) -> str:
        """Return the place of the first cell of which something holds."""
        return self.row_of([j for j, value, _ in self.there if holds(value)])

    def row_of(self, found: list[int]) -> str:
        """Return the place of the first of the cells of which the numbers are given."""
        return f"row {np.isin(self._places, found).argmax() + 1} below the header"

    def is_notated(self, value: Any, unit: str = "") -> bool:
        """Return whether a string is a number in another notation, with a unit, or a limit."""
        return isinstance(value, str) and not math.isnan(notated_number(value, self.decimal, unit))

    def row_without(self, rule: dict[str, str]) -> str:
        """Return the place of the first cell that a column by this rule takes for missing."""
        return self.row(lambda value: not self._fits(value, rule))

    def _fits(self, value: Any, rule: dict[str, str]) -> bool:
        if rule["kind"] == "number":
            return type(value) in (int, float) or self.is_notated(value, rule.get("unit", ""))
        form = rule.get("format", "").split(CHOICE)[0]
        return isinstance(value, Moment) or _is_date(value, form)


def guess_column(texts: Any, decimal: str | None, *, looks: bool) -> Guess:
    """Return a proposal for a column of floats or strings; numbers come first.

    What most cells of a column of texts are, and that numbers are flags, is found out only if
    `looks`.
    """
    if getattr(texts.dtype, "kind", "O") == "f":
        numbers = np.unique(texts[~np.isnan(texts)]).tolist() if looks else []
        return Guess({"kind": "number"}, _FLAGS if numbers == [0.0, 1.0] else "")
    cells = _Cells(texts, decimal)
    found = next(_guesses(cells), None)
    if found == Guess({"kind": "number"}) and cells.commas and decimal not in (".", ","):
        row = cells.row_of(cells.commas)
        return Guess(found.rule, f"{row} has a decimal comma: only with --decimal , 1.234 is 1234")
    if found == Guess({"kind": "number"}) and looks and {v for _, v, _ in cells.there} == {0, 1}:
        return Guess(found.rule, _FLAGS)
    return found or Guess({"kind": "text"}, _look_at_text(texts, cells) if looks else "")


def _look_at_text(texts: Any, cells: _Cells) -> str:
    """Say what most cells of a column without a proposal are, if they are alike."""
    with_comma = cells if cells.decimal == "," else _Cells(texts, ",")
    if next(_guesses(with_comma), None) is not None:
        return "nearly all cells are numbers with --decimal ,"
    for option, each in (("", cells), (" with --decimal ,", with_comma)):
        each.enough = MOST * each.count(lambda _: True)
        found = next(_guesses(each), None)
        if found is not None:
            rule, row = found.rule, each.row_without(found.rule)
            stated = repr(rule["kind"]) if len(rule) == 1 else json.dumps(rule, ensure_ascii=False)
            return (
                f"most cells are {rule['kind']}s{option} and {row} is none, which {stated} takes "
                "for missing"
            )
    return ""


def _guesses(cells: _Cells) -> Iterator[Guess]:
    """Yield all proposals other than text that enough cells fit, the best first.

    Limits such as ``<0.3`` are numbers only if there are at least as many plain numbers; otherwise
    they are categories.
    """
    limits = cells.count(lambda value: cells.is_notated(value) and is_limit(value))
    plain = cells.count(lambda value: type(value) in (int, float))
    notated = cells.count(cells.is_notated) - limits
    if plain + limits >= cells.enough and plain >= limits:
        yield Guess({"kind": "number"})
    if all(truth_of(value) is not None for _, value, _ in cells.there):
        yield Guess({"kind": "boolean"})
    if cells.count(lambda value: isinstance(value, Moment)) >= cells.enough:
        yield Guess({"kind": "date"})
    if plain + notated + limits >= cells.enough and plain + notated >= limits:
        row = cells.row(lambda value: cells.is_notated(value) and not is_limit(value))
        yield Guess({"kind": "number"}, f"{row} has a number in another notation than 1234.5")
    yield from _with_format(cells)
    yield from _with_unit(cells, plain)


def _with_unit(cells: _Cells, plain: int) -> Iterator[Guess]:
    """Yield numbers with the unit that most strings have."""
    units = Counter[str]()
    for _, value, k in cells.there:
        found = _WITH_UNIT.fullmatch(value) if isinstance(value, str) else None
        units[found["unit"] if found else ""] += k
    unit = max(units, key=units.__getitem__, default="")
    if unit and plain + cells.count(lambda value: cells.is_notated(value, unit)) >= cells.enough:
        row = cells.row(lambda value: not cells.is_notated(value) and cells.is_notated(value, unit))
        yield Guess({"kind": "number", "unit": unit}, f"{row} has a number with a unit")


def _is_date(value: Any, form: str) -> bool:
    return isinstance(value, str) and not math.isnan(date_in_format(value, form))


def _with_format(cells: _Cells) -> Iterator[Guess]:
    """Yield dates in a format that reads nearly all cells, or in two such formats."""
    first = [value for _, value, _ in islice(cells.there, _FIRST_CELLS)]
    possible = [form for form in _FORMATS if any(_is_date(value, form) for value in first)]
    found = {form: cells.count(partial(_is_date, form=form)) for form in possible}
    dates = cells.count(lambda value: isinstance(value, Moment))
    best = [form for form in possible if found[form] == max(found.values())]
    if not best or found[best[0]] + dates < cells.enough:
        return
    # Such a date decides between the day and the month.
    others = [form for form in possible if form not in best]
    row = cells.row(
        lambda value: _is_date(value, best[0]) and not any(_is_date(value, form) for form in others)
    )
    which = "both formats: choose one of them" if len(best) > 1 else "the proposed format"
    yield Guess({"kind": "date", "format": CHOICE.join(best)}, f"{row} has a date of {which}")
