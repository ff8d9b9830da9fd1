"""Memory that public sizes ask for: refused in one sentence, before anything is charged.

The number of bytes follows from public numbers alone, such as the numbers of columns and classes,
and so does a refusal. A `MemoryError` of numpy or Python may show the shape of an array, in which a
number of rows or of distinct cells may be private, so its message is replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Largest number of bytes that one fit, prediction or score may ask for besides the rows themselves.
_MOST_BYTES = 2**36
# Number of bytes of a number in float64.
NUMBER_BYTES = np.dtype(np.float64).itemsize
# Numbers in float64 of a temporary array that is small enough for the cache.
CACHED_NUMBERS = 2**15
# Bytes of rows that are kept between passes, if they all fit, and of a block of rows that is
# computed at a time, where results are larger.
KEPT_BYTES = 2**26
# Rows of which norms, features or copies are computed at a time, columns of a tile, and numbers
# that are added before the sums of such runs are.
AT_ONCE = 1024
# Rows of a sparse block, lines of a file that are split at a time, and draws of noise that are made
# at a time.
LONG_BLOCK = 8192


class OutOfMemory(MemoryError):
    """There is not enough memory; the text shows no private number."""


def refuse_beyond_memory(n_bytes: float, what: str, instead: str) -> None:
    """Refuse arrays that the system does not grant; nothing is written to their memory.

    Examples
    --------
    >>> from dp_halfspace._memory import refuse_beyond_memory
    >>> refuse_beyond_memory(1e6, "a table of 1000 columns", "use fewer columns")
    >>> refuse_beyond_memory(1e15, "a table of 10^12 columns", "use fewer columns")
    Traceback (most recent call last):
    ...
    ValueError: a table of 10^12 columns needs more memory than there is: use fewer columns
    """
    with suppress(MemoryError):
        if n_bytes <= _MOST_BYTES:
            np.empty(int(n_bytes), dtype=np.uint8)
            return
    # Raised outside the block, so that no other message is its context.
    raise ValueError(f"{what} needs more memory than there is: {instead}")


@contextmanager
def shortages_dropped() -> Iterator[None]:
    """End the block at a `MemoryError` whose message is not of this package.

    The caller raises `OutOfMemory` after the block: raised inside, it would have the dropped error
    as its context.
    """
    try:
        yield
    except OutOfMemory:
        raise
    except MemoryError:
        pass


def rows_of_block(row_bytes: float) -> int:
    """Return how many rows are computed at a time if each needs this many bytes."""
    return max(1, int(KEPT_BYTES / max(row_bytes, 1)))


def by_blocks(function: Callable[[Any], NDArray[Any]], rows: Any, row_bytes: float) -> NDArray[Any]:
    """Return ``function(rows)`` for a function of single rows, with bounded memory for its steps.

    `row_bytes` is the memory of the steps for one row. Few rows are read in one block, as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace._memory import by_blocks
    >>> by_blocks(lambda rows: rows.sum(axis=1), np.eye(5), row_bytes=2**27)
    array([1., 1., 1., 1., 1.])
    """
    n_rows, step = rows.shape[0], rows_of_block(row_bytes)
    if n_rows <= step:
        return function(rows)
    first = function(rows[:step])
    out = np.empty((n_rows, *first.shape[1:]), dtype=first.dtype)
    out[:step] = first
    for lo in range(step, n_rows, step):
        out[lo : lo + step] = function(rows[lo : lo + step])
    return out
