"""Silence: what a secret computation prints, logs or warns of is dropped."""

import io
import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from threading import Lock, local
from typing import Any


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


class _Depth(local):
    """How many blocks of `quiet_warnings` this thread is in."""

    value = 0


class _WhileQuiet:
    """Stands for a pattern in a filter of warnings, and matches in a thread that is quiet."""

    def match(self, text: str) -> bool:
        """Tell whether the thread that warns is quiet, whatever it says."""
        del text
        return _DEPTH.value > 0


_DEPTH = _Depth()
_FILTER: Any = ("ignore", _WhileQuiet(), Warning, None, 0)


@contextmanager
def quiet_warnings() -> Iterator[None]:
    """Drop the warnings of this thread inside: one of a cell would show that the cell is there.

    Filters belong to the whole process, and `warnings.catch_warnings` of several threads that leave
    in any order may put back a filter that drops everything, for ever. This one matches in no other
    thread and at no other time, wherever it is kept.
    """
    warnings.filters.insert(0, _FILTER)  # type: ignore[attr-defined]
    _DEPTH.value += 1
    try:
        yield
    finally:
        _DEPTH.value -= 1
        with suppress(ValueError):  # another thread has put its own list back
            warnings.filters.remove(_FILTER)  # type: ignore[attr-defined]
