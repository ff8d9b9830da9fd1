"""What a number that a user states may be: one range, and no booleans.

Parameters are public, so an error may name and show them.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

__all__ = ["NUMBER_RANGE", "is_boolean", "is_public_number", "plain", "refuse_booleans"]

# Public numbers are squared, multiplied and divided before they meet private ones. Between these
# ends no such step over- or underflows on one data set and not on its neighbour.
NUMBER_RANGE = (1e-50, 1e50)


def plain(value: Any) -> Any:
    """Return the plain Python value of a number or text of numpy, anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def is_boolean(value: Any) -> bool:
    """Tell whether a value is true or false, which Python counts among the numbers."""
    return isinstance(value, bool | np.bool_)


def is_public_number(value: Any) -> bool:
    """Tell whether a value is a positive number within `NUMBER_RANGE`."""
    if is_boolean(value) or not isinstance(value, Real):
        return False
    low, high = NUMBER_RANGE
    return bool(low <= plain(value) <= high)


def refuse_booleans(owner: str, params: Mapping[str, Any], *, allowed: set[str]) -> None:
    """Raise for a boolean among the parameters that take numbers or texts."""
    for name, value in params.items():
        if is_boolean(value) and name not in allowed:
            raise ValueError(
                f"The {name!r} parameter of {owner} must not be a boolean. Got {value!r} instead."
            )
