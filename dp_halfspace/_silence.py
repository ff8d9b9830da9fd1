"""Silence: what a secret computation prints, logs or warns of is dropped, and what may warn."""

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
    """A stream that takes bytes and forgets them."""

    def writable(self) -> bool:
        """Return that bytes are taken."""
        return True

    def write(self, data: Any) -> int:
        """Forget bytes."""
        return len(data)


class _DroppedOutput:
    """Drops what this process prints and logs, from the first thread that enters to the last.

    Streams, logging and the filters of warnings belong to the whole process, and threads leave in
    any order.
    """

    def __init__(self) -> None:
        self._lock, self._inside, self._restored = Lock(), 0, ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._restored.enter_context(warnings.catch_warnings())
                # Never closed: a log handler that is made inside may keep it.
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
    """Drop what is printed, logged and warned inside.

    What other threads print in the meantime is dropped, too. Output past the names `sys.stdout` and
    `sys.stderr`, by compiled code or to a stream that the block kept or opened itself, is not.
    """
    with _DROPPED_OUTPUT, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# Libraries whose values convert to numbers and texts without a warning.
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


def may_speak(kind: type) -> bool:
    """Tell by the type of a cell whether its conversion may warn, which shows that it is there.

    That is so for masked entries, complex numbers, and objects of other libraries.
    """
    if issubclass(kind, np.ma.MaskedArray | complex | np.complexfloating):
        return True
    return kind.__module__.partition(".")[0] not in _SILENT and not issubclass(kind, Number)
