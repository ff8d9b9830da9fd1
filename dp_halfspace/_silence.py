"""Functions that drop the output, logs and warnings of a secret computation."""

import io
import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from numbers import Number
from threading import Lock
from typing import Any

import numpy as np


class _Nowhere(io.RawIOBase):
    """A stream that discards all bytes."""

    def writable(self) -> bool:
        """Return True: bytes are accepted."""
        return True

    def write(self, data: Any) -> int:
        """Discard bytes."""
        return len(data)


class _DroppedOutput:
    """Drops the output and logs of this process while any thread is inside.

    Streams, logging and warning filters belong to the whole process, and threads leave in any
    order.
    """

    def __init__(self) -> None:
        self._lock, self._inside, self._restored = Lock(), 0, ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._restored.enter_context(warnings.catch_warnings())
                # The stream is never closed, because a log handler that is created inside may keep
                # it.
                nowhere = io.TextIOWrapper(io.BufferedWriter(_Nowhere()))
                self._restored.enter_context(redirect_stdout(nowhere))
                self._restored.enter_context(redirect_stderr(nowhere))
                self._restored.callback(logging.disable, logging.root.manager.disable)
                logging.disable(sys.maxsize)

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._restored.close()


_DROPPED_OUTPUT = _DroppedOutput()


@contextmanager
def drop_output() -> Iterator[None]:
    """Drop all output, logs and warnings of the block.

    The output of other threads during the block is dropped, too. Output that does not use
    `sys.stdout` or `sys.stderr` is not dropped, such as that of compiled code or to a stream that
    the block kept or opened itself.
    """
    with _DROPPED_OUTPUT, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# Libraries whose values convert to numbers and strings without a warning.
_SILENT = frozenset(
    (
        "builtins",
        "numpy",
        "decimal",
        "fractions",
        "datetime",
        "pandas",
        "pyarrow",
        "uuid",
        "zoneinfo",
    )
)


def may_print_or_warn(kind: type) -> bool:
    """Return whether the conversion of a cell of this type may warn, which would reveal the cell.

    It may warn for masked entries, complex numbers, and objects of other libraries.
    """
    if issubclass(kind, np.ma.MaskedArray | complex | np.complexfloating):
        return True
    return kind.__module__.partition(".")[0] not in _SILENT and not issubclass(kind, Number)
