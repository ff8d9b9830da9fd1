"""The canonical value of a cell of a table, which is a function of that cell alone.

A reader chooses how to store a column by all of its cells: one string turns whole numbers into
strings, and one missing value turns booleans into objects. The result of a rule for a cell must not
depend on this choice, because one record would then change how all others are read. Values are
therefore computed cell by cell here, and are the same for all ways to store them: ``1``, ``1.0``,
``"01"`` and ``Decimal("1.00")`` are one number, and ``True`` and ``"true"`` are one boolean.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping, Set
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache, partial
from numbers import Integral, Rational
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._silence import drop_output, may_print_or_warn, result_or

# Strings that mean a missing value: those of the readers of pandas, and other signs for "unknown".
MISSING_TEXTS = frozenset(
    (
        *("", "?", "na", "nan", "nat", "none", "null", "n/a", "-nan", "<na>", "#n/a", "#na"),
        *("#n/a n/a", "1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"),
    )
)
TRUE = "true"
FALSE = "false"
# Strings for the two booleans; 1 and 0 have been read as numbers before.
_TRUTH_WORDS = {
    **dict.fromkeys((TRUE, "yes", "t", "y"), True),
    **dict.fromkeys((FALSE, "no", "f", "n"), False),
}
# Pairs of categories that a reader may turn into booleans.
_TRUTH_PAIRS = ((FALSE, TRUE), ("no", "yes"), ("n", "y"), ("f", "t"), ("0", "1"))

DECIMALS = (".", ",", "either")
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_PLAIN = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)
# Formats 1,234,567.8 and 1.234.567,8; 1,234 is read in the first one.
_GROUPED = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]*)?")
_GROUPED_BY_DOTS = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:(?:\.[0-9]{3})+,[0-9]*|(?:\.[0-9]{3}){2,})")

# A value beyond the limit of a measurement: <0.3, > 200.
_BEYOND_LIMIT = re.compile(r"(?:[<>]=?|[\u2264\u2265])\s*(?P<limit>\S.*)")
# Notations that only a column of numbers reads, and what is left of each. They are undone in this
# order, each once, and each covers the whole text. A percentage is the number before its sign.
_CURRENCY = "[$\u00a2-\u00a5\u0e3f\u20a0-\u20cf]"
_NOTATIONS = (
    (re.compile(r"\(([^-+()]*)\)"), r"-\1"),  # (12.3)
    (re.compile(r"([^-+()]*)-"), r"-\1"),  # 12.3-
    (re.compile(rf"([-+]?)\s*{_CURRENCY}\s*(.*)"), r"\1\2"),  # $5, -$5 and $-5
    (re.compile(rf"(.*?)\s*(?:{_CURRENCY}|%)"), r"\1"),  # 5 EUR with its sign, 45 %
)
# All characters of these notations without a unit; most texts have others.
_NOTATED = re.compile(rf"(?:[-+<>=\u2264\u2265\u2212()0-9.,eE%'\u2019\s]|{_CURRENCY})*")
# Groups of three digits with a blank or an apostrophe between them, which is always the same one.
_GROUP_SIGN = re.compile("[ \u00a0\u2007\u2009\u202f'\u2019]")
_GROUPED_BY_BLANKS = re.compile(
    rf"[+-]?[1-9][0-9]{{0,2}}({_GROUP_SIGN.pattern})[0-9]{{3}}(?:\1[0-9]{{3}})*(?:[.,][0-9]*)?"
)

# The thousands separator for each decimal sign, and a pattern of numbers with one group.
_GROUPING = {".": ",", ",": "."}
_ONE_GROUP = {
    ",": re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}(?:\.[0-9]*)?"),
    ".": re.compile(r"[+-]?[1-9][0-9]{0,2}\.[0-9]{3}(?:,[0-9]*)?"),
}

_DATE = re.compile(
    r"(?P<year>[0-9]{4})(?P<sign>[-/])(?P<month>[0-9]{1,2})(?P=sign)(?P<day>[0-9]{1,2})"
    r"(?:[T ]\s*(?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2})(?:[.,](?P<part>[0-9]{1,9})[0-9]*)?)?)?)?"
    r"\s*(?P<zone>Z|UTC|[+-][0-9]{2}(?::?[0-9]{2})?)?"
)
_PARTS_OF_TIME = ("year", "month", "day", "hour", "minute", "second")
# A time of day; readers with a type for it write seconds that were left out, and no fraction or six
# digits of it. A ratio such as 1:20 is none.
_CLOCK = re.compile(r"[0-9]{2}:[0-9]{2}|([0-9]{1,2}):([0-9]{2}:[0-9]{2})(\.[0-9]*[1-9])?(?:\.?0*)")
# The place of an object in memory, in its string.
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")
_EPOCH = date(1970, 1, 1).toordinal()

# Decimals of more digits, and whole numbers beyond the range of floats, are read as infinite.
_MOST_DIGITS = 400
# Number of nanoseconds in a second and in a day.
_PER_SECOND = 10**9
_PER_DAY = 86_400 * _PER_SECOND


@dataclass(frozen=True, slots=True)
class Moment:
    """A date and time: whole days since 1970-01-01 in UTC, and nanoseconds of the day."""

    days: int
    nanoseconds: int = 0


Cell = None | bool | int | float | Decimal | Moment | str


def canonical(value: Any, decimal: str | None = None) -> Cell:
    """Return the canonical value of a cell; a value that cannot be read is missing.

    Parameters
    ----------
    value : object
        A cell, as a reader has stored it.
    decimal : {".", ",", "either"} or None, default=None
        PUBLIC decimal sign of numbers in strings; the other sign then groups digits. With
        ``"either"`` both are decimal signs. With None, 1,234 and 1.234.567 are also read as grouped
        digits.

    Returns
    -------
    None, bool, int, float, Decimal, Moment or str
        A whole number is an int, whatever its type was. A Decimal is returned only for a number
        that no float equals. An object of another type is the text that it prints.

    Notes
    -----
    **Privacy.** A function of the cell and of `decimal`, so that no other row can change it.

    Examples
    --------
    >>> from decimal import Decimal
    >>> from dp_halfspace.data.cells import canonical
    >>> [canonical(value) for value in (1, 1.0, "01", "+1", "1e0", Decimal("1.00"))]
    [1, 1, 1, 1, 1, 1]
    >>> [canonical(value) for value in (True, "TRUE", None, "", float("nan"))]
    [True, True, None, None, None]
    >>> canonical("2026/12/31 12:00") == canonical("2026-12-31T12:00:00Z")
    True
    """
    try:
        return _read_cell(value, decimal)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001 - whether and how an object fails is private
        return None


def _read_cell(value: Any, decimal: str | None) -> Cell:
    """Read a cell by its type; strings come first, because most objects are strings."""
    if isinstance(value, str | bytes | bytearray):
        return _read_text(_spelt(value), decimal)
    if value is None or isinstance(value, bool | np.bool_):
        return None if value is None else bool(value)
    is_number = isinstance(value, Integral | Decimal | float | np.floating | Rational)
    # The class of numpy durations is a subclass of integers.
    if is_number and not isinstance(value, np.timedelta64):
        with drop_output() if may_print_or_warn(type(value)) else nullcontext():
            if isinstance(value, Integral):
                return _read_whole(int(value))
            return _read_decimal(value) if isinstance(value, Decimal) else _read_float(float(value))
    if hasattr(value, "as_py"):
        return _read_cell(value.as_py(), decimal)
    is_moment = isinstance(value, date | np.datetime64) or hasattr(value, "to_datetime64")
    return _read_moment(value) if is_moment else _read_object(value, decimal)


def _spelt(value: str | bytes | bytearray) -> str:
    """Return a text without blanks; bytes as `with_readable_texts` reads those of Arrow."""
    if isinstance(value, str):
        # A subclass may have another string than the one that typed columns store.
        return str.__str__(value).strip()
    return bytes(value).decode("utf-8", "backslashreplace").strip()


def _read_object(value: Any, decimal: str | None) -> Cell:
    """Read an object of another type by the text that it prints, unless it is a kind of NaN.

    A text that states a place in memory depends on the objects that were created before.
    """
    if isinstance(value, np.ma.MaskedArray) or type(value).__name__ == "NAType":
        return None
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return _read_cell(value[()], decimal)
    # What is in a list or an array may be of another library.
    has_parts = isinstance(value, np.ndarray | Mapping | list | tuple | Set)
    with drop_output() if has_parts or may_print_or_warn(type(value)) else nullcontext():
        if not has_parts and bool(value != value):  # noqa: PLR0124 - any NaN
            return None
        text = str(value).strip()
    return None if _ADDRESS.search(text) else _read_text(text, decimal)


def _read_whole(number: int) -> int | float:
    """Return a whole number, or infinity beyond the range of floats."""
    if number.bit_length() <= sys.float_info.max_exp:
        return number
    return math.inf if number > 0 else -math.inf


def _read_float(number: float) -> int | float | None:
    """Return a float, or an int if it is whole, so that zero has no sign."""
    if math.isnan(number):
        return None
    return _read_whole(int(number)) if math.isfinite(number) and number.is_integer() else number


def _read_decimal(number: Decimal) -> int | float | Decimal | None:
    """Return an exact number as an int, as a float that is written identically, or unchanged."""
    if number.is_nan():
        return None
    if number.is_infinite() or number.adjusted() > _MOST_DIGITS:
        return math.inf if number > 0 else -math.inf
    if number.adjusted() < -_MOST_DIGITS:
        return 0
    if number == number.to_integral_value():
        return _read_whole(int(number))
    close = float(number)
    return close if Decimal(repr(close)) == number else number


def _read_text(text: str, decimal: str | None) -> Cell:
    """Read a string without the blanks around it."""
    word = text.lower()
    if word in MISSING_TEXTS:
        return None
    if word in (TRUE, FALSE):
        return word == TRUE
    number = _parse_number(text, decimal)
    if number is not None:
        return number
    return _parse_moment(text) or _plain_text(text)


def _parse_number(text: str, decimal: str | None) -> int | float | None:
    """Return the number that a string represents, or None."""
    if not (text[0] in "+-.," or text[0].isdigit() or _INFINITE.fullmatch(text)):
        return None
    other = _GROUPING.get(decimal or "", "")
    if decimal is None:
        if _GROUPED.fullmatch(text):
            text = text.replace(",", "")
        elif _GROUPED_BY_DOTS.fullmatch(text):
            text = text.replace(".", "")
    # A single sign that does not separate three digits is a decimal sign: 1.5 is 1.5 for any
    # `decimal`.
    elif other and (text.count(other) > 1 or _ONE_GROUP[other].fullmatch(text)):
        text = text.replace(other, "")
    text = text.replace(",", ".")
    if _WHOLE_NUMBER.fullmatch(text) and len(text) <= _MOST_DIGITS:
        return _read_whole(int(text))
    if _PLAIN.fullmatch(text) or _INFINITE.fullmatch(text):
        return _read_float(float(text))
    return None


def _parse_moment(text: str) -> Moment | None:
    found = _DATE.fullmatch(text)
    if found is None:
        return None
    parts: list[Any] = [int(found[name] or 0) for name in _PARTS_OF_TIME]
    since = result_or(None, lambda: datetime(*parts) - datetime(1970, 1, 1))
    if since is None:
        return None
    seconds = since.seconds - _parse_zone(found["zone"])
    part = int((found["part"] or "0").ljust(9, "0"))
    # A time zone may move the time to another day.
    more_days, nanoseconds = divmod(seconds * _PER_SECOND + part, _PER_DAY)
    return Moment(since.days + more_days, nanoseconds)


def _plain_text(text: str) -> str:
    """Return a string; a time of day with seconds and without redundant zeros, as if typed."""
    found = _CLOCK.fullmatch(text)
    if found is None:
        return text
    return f"{found[1]:0>2}:{found[2]}{found[3] or ''}" if found[1] else f"{text}:00"


def _parse_zone(zone: str | None) -> int:
    if zone in (None, "Z", "UTC"):
        return 0
    digits = str(zone)[1:].replace(":", "").ljust(4, "0")
    return int(f"{str(zone)[0]}1") * (int(digits[:2]) * 3600 + int(digits[2:]) * 60)


def _read_moment(value: Any) -> Moment | None:
    """Read a date, or a date and time, of Python, numpy or pandas."""
    if hasattr(value, "to_datetime64"):
        value = value.to_datetime64()
    if isinstance(value, datetime):
        # In UTC the year may be 0 or 10000, which numpy and Arrow have and Python has not.
        ahead = value.utcoffset() or timedelta(0)
        value = np.datetime64(value.replace(tzinfo=None)) - np.timedelta64(ahead)
    value = np.datetime64(value) if isinstance(value, date) else value
    if np.isnat(value):
        return None
    days, nanoseconds = _split_days(np.array([value]))
    return Moment(int(days[0]), int(nanoseconds[0]))


def _split_days(array: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the exact whole days and nanoseconds of the day of dates in any unit."""
    unit, count = np.datetime_data(array.dtype)
    if unit in ("Y", "M", "W", "D"):
        days = array.astype("M8[D]").astype(np.int64)
        return days, np.zeros_like(days)
    if unit in ("ps", "fs", "as"):
        array, unit, count = array.astype("M8[ns]"), "ns", 1
    steps = array.astype(np.int64) * count
    steps_of_a_day = int(np.timedelta64(1, "D").astype(f"m8[{unit}]").astype(np.int64))
    days = steps // steps_of_a_day
    return days, (steps - days * steps_of_a_day) * (_PER_DAY // steps_of_a_day)


def days_of_array(array: NDArray[Any]) -> NDArray[np.float64]:
    """Return days since 1970, with NaN for missing dates; see `number_of`.

    The result has the same bits for every unit: whole days are exact, and the rest is divided once.
    """
    days, nanoseconds = _split_days(array)
    result = days + nanoseconds / _PER_DAY
    result[np.isnat(array)] = math.nan
    return np.asarray(result)


def is_limit(text: str) -> bool:
    """Return whether a string states a limit, such as ``<0.3`` or ``> 200``."""
    return _BEYOND_LIMIT.fullmatch(text) is not None


def notated_number(text: str, decimal: str | None = None, unit: str = "") -> float:
    """Return the number of a string in a notation of a column of numbers, or NaN."""
    if len(text) > _MOST_DIGITS or not (unit or _NOTATED.fullmatch(text)):
        return math.nan
    limit = _BEYOND_LIMIT.fullmatch(text)
    text = (limit["limit"] if limit else text).replace("\u2212", "-")
    text = text.removeprefix(unit).removesuffix(unit).strip()
    for notation, left in _NOTATIONS:
        found = notation.fullmatch(text)
        text = text if found is None else found.expand(left).strip()
    if _GROUPED_BY_BLANKS.fullmatch(text):
        text = _GROUP_SIGN.sub("", text)
    return number_of(_parse_number(text, decimal) if text else None)


def number_of(cell: Cell, decimal: str | None = None, unit: str = "") -> float:
    """Return the number of a cell, in days for dates, and NaN for strings and missing values.

    A string may have one of the notations of numbers, and the PUBLIC `unit` before or after the
    number. For a string that states a limit, the number is the limit.

    >>> [number_of(text) for text in ("45%", "$1,200", "12 345", "(12.3)", "12.3-", "<0.3")]
    [45.0, 1200.0, 12345.0, -12.3, -12.3, 0.3]
    """
    if cell is None:
        return math.nan
    if isinstance(cell, str):
        # Single letters have other meanings in a column of numbers.
        truth = truth_of(cell) if len(cell) > 1 else None
        return notated_number(cell, decimal, unit) if truth is None else float(truth)
    if isinstance(cell, Moment):
        return cell.days + cell.nanoseconds / _PER_DAY
    try:
        return float(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf


def date_of(cell: Cell) -> float:
    """Return days since 1970 of a date or a whole number YYYYMMDD; other numbers are days."""
    if isinstance(cell, bool):
        return math.nan
    if isinstance(cell, int) and 1000_01_01 <= cell <= 9999_12_31:
        rest, day = divmod(cell, 100)
        found = result_or(None, lambda: date(rest // 100, rest % 100, day))
        return math.nan if found is None else float(found.toordinal() - _EPOCH)
    return math.nan if isinstance(cell, str) else number_of(cell)


def date_in_format(value: Any, form: str) -> float:
    """Return days since 1970 of a text in a format of ``strptime``, or of a stored date.

    A text in another format is read if its year comes first: readers store such texts as dates,
    unless one cell of the column is none.
    """
    cell: Cell = None
    try:
        value = _spelt(value) if isinstance(value, str | bytes | bytearray) else value
        cell = canonical(value)
        if isinstance(cell, Moment) and not isinstance(value, str):
            return number_of(cell)
        texts = [_in_digits(cell, form) or (value if isinstance(value, str) else text_of(cell))]
        if isinstance(cell, str) and _CLOCK.fullmatch(cell):
            # A reader with a type for times of day adds the seconds that were left out.
            texts += [cell, cell.removesuffix(":00")]
        found = (result_or(None, partial(datetime.strptime, str(text), form)) for text in texts)
        return number_of(_read_moment(next(filter(None, found))))
    except Exception:  # noqa: BLE001 - whether a text has the format is private
        return number_of(cell) if isinstance(cell, Moment) else math.nan


def _in_digits(cell: Cell, form: str) -> str | None:
    """Write a number with all digits of a numeric format, such as %d%m%Y or %m.%Y.

    A reader that takes such a column for numbers drops leading and trailing zeros of its cells.
    """
    digits = _digits_of_format(form)
    if digits is None or isinstance(cell, bool) or not isinstance(cell, int | float | Decimal):
        return None
    n_whole, sign, n_part = digits
    whole, _, part = str(text_of(cell)).partition(".")
    return whole.zfill(n_whole) + (sign + part.ljust(n_part, "0") if sign or part else "")


@cache
def _digits_of_format(form: str) -> tuple[int, str, int] | None:
    """Return the numbers of digits before and after the decimal sign of a numeric format."""
    found = re.fullmatch(r"([0-9]+)(?:([.,])([0-9]+))?", datetime(2001, 1, 1).strftime(form))
    return None if found is None else (len(found[1]), found[2] or "", len(found[3] or ""))


def truth_of(cell: Cell) -> bool | None:
    """Return the boolean of a cell: of true, yes, t, y and 1 and their opposites."""
    if isinstance(cell, bool):
        return cell
    if isinstance(cell, str):
        return _TRUTH_WORDS.get(cell.lower())
    return cell == 1 if isinstance(cell, int) and cell in (0, 1) else None


def text_of(cell: Cell) -> str | None:
    """Return the same string for all ways to write a cell, or None if it is missing."""
    if cell is None or isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return TRUE if cell else FALSE
    if isinstance(cell, Moment):
        # In ISO format, with its time unless that is midnight.
        clock = str(np.datetime64(cell.nanoseconds, "ns"))[10:].rstrip("0").rstrip(".")
        return str(np.datetime64(cell.days, "D")) + (clock if cell.nanoseconds else "")
    if isinstance(cell, Decimal):
        return f"{cell:f}".rstrip("0")
    return str(cell) if isinstance(cell, int) else repr(cell)


def hashed_text_of(value: Any, decimal: str | None) -> str | None:
    """Return the string to hash; yes, no, 1 and 0 are booleans, as for many readers."""
    text = text_of(canonical(value, decimal))
    truths = {"yes": TRUE, "no": FALSE, "1": TRUE, "0": FALSE}
    return truths.get(text.lower(), text) if text else text


def category_of(value: Any, decimal: str | None = None) -> str | None:
    """Return the string that identifies a category.

    A string that means a missing value elsewhere, such as NA, may be a category.
    """
    text = text_of(canonical(value, decimal))
    if text is None and isinstance(value, str | bytes | bytearray):
        return _spelt(value) or None
    return text


def spellings(categories: tuple[str, ...]) -> dict[str, int]:
    """Return the positions of the categories by each string that represents them.

    A reader may store yes and no, or one of two categories such as y and n, as booleans, and
    booleans beside numbers as 1 and 0, or the other way round. Each string then represents the
    category of the other one, unless that is a category of its own.
    """
    place = {category: k for k, category in enumerate(categories)}
    lower = {category.lower(): k for k, category in enumerate(categories)}
    pairs = _TRUTH_PAIRS if len(categories) == 2 else ()
    both = next((pair for pair in pairs if set(lower) == set(pair)), ("no", "yes"))
    for words in (both, ("0", "1")):
        for truth, word in zip((FALSE, TRUE), words, strict=True):
            for name, other in ((truth, word), (word, truth)):
                known = lower.get(other, place.get(other))
                if known is not None:
                    place.setdefault(name, known)
    return place
