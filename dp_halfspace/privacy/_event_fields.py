"""Checks of the fields of events, and their numbers in JSON."""

from __future__ import annotations

import math
from numbers import Integral

__all__ = ["check_count", "number_to_json"]


def check_count(name: str, count: int) -> int:
    """Return `count` as an int >= 1 or raise naming `name`."""
    if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
        raise ValueError(f"{name} must be an integer >= 1, got {count!r}")
    return int(count)


def number_to_json(value: float) -> float | str:
    """Infinity as text, because JSON has no number for it."""
    return value if math.isfinite(value) else str(value)
