"""The largest epsilon with which a planned release is accepted, found by trying.

What a fit would release is a function of public numbers and of its epsilon, so a ledger can be
asked about any epsilon before anything is charged. It need not accept every epsilon below one that
it accepts, because a plan may change its kind with epsilon: a selection from a list, which is pure
DP, can cost more of a total budget than Gaussian noise of a larger epsilon.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import lru_cache

from dp_halfspace._params import EPSILON_RANGE

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
    # The number at `high` is refused, or above the refused one; that at `low` is accepted, too
    # small, or below all.
    numbers = _numbers()
    low, high, found = -1, bisect_left(numbers, refused), 0.0
    places = [bisect_right(numbers, refused * part) - 1 for part in _TRIED_PARTS]
    end = time.monotonic() + _SECONDS
    while high - low > 1 and time.monotonic() < end:
        # First places from above, where a plan of another kind may be accepted, then the middle.
        place = places.pop(0) if places else (low + high) // 2
        if not low < place < high:
            continue
        answer = accepts(numbers[place])
        if answer is False:
            high = place
            continue
        low, places = place, []
        if answer:
            found = numbers[place]
    return found


@lru_cache(maxsize=1)
def _numbers() -> list[float]:
    """Return all numbers of four digits within the range of epsilon, in order."""
    texts = (f"{digits}e{power}" for power in range(-12, 3) for digits in range(1000, 10_000))
    return [*map(float, texts), EPSILON_RANGE[1]]
