"""The largest epsilon with which a planned release is accepted, found by trying.

What a fit would release is a function of public numbers and of its epsilon, so a ledger can be
asked about any epsilon before anything is charged. It need not accept every epsilon below one that
it accepts, because a plan may change its kind with epsilon: a selection from a list, which is pure
DP, can cost more of a total budget than Gaussian noise of a larger epsilon.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from dp_halfspace._params import EPSILON_RANGE
from dp_halfspace.privacy.record import rounded_text

# Significant digits of the epsilon that is named, and the count of such numbers in a decade.
_SHOWN_DIGITS = 4
_PER_DECADE: int = 9 * 10 ** (_SHOWN_DIGITS - 1)
# Parts of a refused epsilon that are tried before all smaller ones are searched.
_TRIED_PARTS = tuple(0.7**k for k in range(1, 9))
# A search ends after this time. Most plans take milliseconds, some that compose many steps seconds.
_SECONDS = 10.0


def largest_epsilon(accepts: Callable[[float], bool | None], start: float) -> float:
    """Return an accepted epsilon of four digits, 0 if none is found, 1e6 if that is accepted.

    `accepts` returns None for an epsilon that is too small for any such release. It has returned
    True for the result, and not for the next number of four digits. About twenty numbers are tried
    if `start` is refused; otherwise it is doubled first. A search that takes long ends with the
    best result so far.
    """
    least, most = EPSILON_RANGE
    refused = min(max(start, least), most)
    while (answer := accepts(refused)) is not False:
        if refused == most:
            return most if answer else 0.0
        refused = min(2.0 * refused, most)
    # Every number of four digits has a place in their order. That at `high` is refused, or not
    # below the refused one; that at `low` is accepted, too small, or below all.
    low, high, found = _place(least) - 1, _place(refused), 0.0
    high += _number(high) < refused
    places = [_place(refused * part) for part in _TRIED_PARTS]
    end = time.monotonic() + _SECONDS
    while high - low > 1 and time.monotonic() < end:
        # First places from above, where a plan of another kind may be accepted, then the middle.
        place = places.pop(0) if places else (low + high) // 2
        if not low < place < high:
            continue
        answer = accepts(_number(place))
        if answer is False:
            high = place
            continue
        low, places = place, []
        if answer:
            found = _number(place)
    return found


def _place(value: float) -> int:
    """Return the place of the largest number of four digits that is not above a value."""
    digits, exponent = (
        f"{float(rounded_text(value, _SHOWN_DIGITS, up=False)):.{_SHOWN_DIGITS - 1}e}".split("e")
    )
    return int(exponent) * _PER_DECADE + int(digits.replace(".", "")) - _PER_DECADE // 9


def _number(place: int) -> float:
    """Return the number at a place."""
    decade, rest = divmod(place, _PER_DECADE)
    return float(f"{rest + _PER_DECADE // 9}e{decade - _SHOWN_DIGITS + 1}")
