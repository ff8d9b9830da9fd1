"""Functions that drop the output, logs and warnings of a secret computation."""

import io
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from threading import Lock, local
from typing import Any, TypeVar

import numpy as np

Result = TypeVar("Result")
Other = TypeVar("Other")


class _Nowhere(io.RawIOBase):
    """A stream that discards all bytes."""

    def writable(self) -> bool:
        """Return True: bytes are accepted."""
        return True

    def write(self, data: Any) -> int:
        """Discard bytes."""
        return len(data)


class _Shared:
    """Changes something of the whole process while any thread is inside.

    Streams, logging and warning filters belong to the whole process, and threads leave in any
    order: the first to enter makes the change, and the last to leave undoes it.
    """

    def __init__(self, change: Callable[[ExitStack], None]) -> None:
        self._change = change
        self._lock, self._inside, self._restored = Lock(), 0, ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                try:
                    self._change(self._restored)
                except BaseException:
                    # Nobody is inside, such as after Ctrl-C: the next to enter makes the change.
                    self._restored.close()
                    raise
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._restored.close()


class _OfThread(local):
    """Changes something of the running thread alone while it is inside."""

    def __init__(self, change: Callable[[ExitStack], None]) -> None:
        self._change, self._entered = change, list[ExitStack]()

    def __enter__(self) -> None:
        self._entered.append(ExitStack())
        self._change(self._entered[-1])

    def __exit__(self, *error: object) -> None:
        self._entered.pop().close()


def _drop_streams_and_logs(restored: ExitStack) -> None:
    # The stream is never closed, because a log handler that is created inside may keep it.
    nowhere = io.TextIOWrapper(io.BufferedWriter(_Nowhere()))
    restored.enter_context(redirect_stdout(nowhere))
    restored.enter_context(redirect_stderr(nowhere))
    restored.callback(logging.disable, logging.root.manager.disable)
    logging.disable(sys.maxsize)


def _ignore_warnings(restored: ExitStack) -> None:
    restored.enter_context(warnings.catch_warnings())
    warnings.simplefilter("ignore")


_DROPPED_OUTPUT = _Shared(_drop_streams_and_logs)
# Without the lock of Python, from 3.14 on, every thread has warning filters of its own.
_FILTERS_OF_THREADS = bool(getattr(sys.flags, "context_aware_warnings", False))
# Ignores all warnings of the block, and those of other threads during the block if filters are
# shared.
IGNORED_WARNINGS = (_OfThread if _FILTERS_OF_THREADS else _Shared)(_ignore_warnings)


@contextmanager
def drop_output() -> Iterator[None]:
    """Drop all output, logs and warnings of the block.

    The output of other threads during the block is dropped, too. Output that does not use
    `sys.stdout` or `sys.stderr` is not dropped, such as that of compiled code or to a stream that
    the block kept or opened itself.
    """
    with _DROPPED_OUTPUT, IGNORED_WARNINGS:
        yield


def result_or(otherwise: Other, call: Callable[[], Result]) -> Result | Other:
    """Return the result of a call for private values, or another value if it raises an error.

    How a value fails to be compared or converted is private, and an error could quote it. A panic
    of a library in Rust is a `BaseException` alone.
    """
    try:
        return call()
    except (MemoryError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001 - see above
        return otherwise


# Libraries whose values convert to numbers and strings without a warning.
_SILENT = (
    *("builtins", "datetime", "decimal", "fractions", "uuid", "zoneinfo"),
    *("numpy", "pandas", "pyarrow"),
)


def may_print_or_warn(kind: type) -> bool:
    """Return whether the conversion of a cell of this type may warn, which would reveal the cell.

    It may warn for masked entries, complex numbers, and objects of other libraries.
    """
    if issubclass(kind, np.ma.MaskedArray | complex | np.complexfloating):
        return True
    return kind.__module__.partition(".")[0] not in _SILENT
