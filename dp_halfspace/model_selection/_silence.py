"""Candidates run without a trace: how many of them run may be a secret.

Whoever sees one line, warning, log entry or callback for each fit can count them. Steps are told to
say nothing, and what they and the functions of a user say all the same is dropped.
"""

from __future__ import annotations

import io
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from threading import Lock
from typing import Any, TypeVar

from dp_halfspace._sklearn_compat import without_callbacks
from dp_halfspace.privacy.randomness import ByteSource

Result = TypeVar("Result")

# What candidates have in the place of these parameters, at every level: processes that a step
# starts would have standard streams of their own.
_QUIET = {"verbose": False, "n_jobs": 1}
_FAILED = (
    "a step before the model, or the scoring, failed. Its message is left out, because it may "
    "quote records: fit the steps by themselves, where only those who may see the records read it"
)


class _Nowhere(io.RawIOBase):
    """Takes bytes and forgets them."""

    def writable(self) -> bool:
        """Say that it takes them."""
        return True

    def write(self, data: Any) -> int:
        """Forget them."""
        return len(data)


class _DroppedOutput:
    """Drops what this process prints and logs, from the first thread inside to the last one.

    Streams and logging belong to the whole process, and threads leave in any order.
    """

    def __init__(self) -> None:
        self._lock, self._inside, self._restored = Lock(), 0, ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
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
def unheard() -> Iterator[None]:
    """Drop what is printed, logged and warned inside."""
    with _DROPPED_OUTPUT, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def silently(call: Callable[[], Result]) -> Result:
    """Return what a call returns, and show nothing else of it.

    Errors of this package name no values of records; others may quote them, and are replaced.
    """
    try:
        with unheard():
            return call()
    except Exception as error:
        if isinstance(error, MemoryError) or _is_ours(error):
            raise
    # Outside the handler, so that the new error does not carry the old one.
    raise ValueError(_FAILED)


def _is_ours(error: Exception) -> bool:
    """Tell whether code of this package raised an error, in its own words."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_globals.get("__name__", "").startswith(
        "dp_halfspace."
    )


def quiet(candidate: Any) -> Any:
    """Turn off what parameters and callbacks make a candidate say, in place."""
    names = [name for name in candidate.get_params() if _last(name) in _QUIET]
    without_callbacks(candidate)
    return candidate.set_params(**{name: _QUIET[_last(name)] for name in names})


def seed_steps(candidate: Any, prefix: str, source: ByteSource) -> None:
    """Give seeds of their own to the steps before the model, which has the prefix, without one.

    They would draw from the generator that numpy shares, which counts what was drawn.
    """
    for name, value in candidate.get_params().items():
        if _last(name) == "random_state" and not name.startswith(prefix) and value is None:
            candidate.set_params(**{name: int.from_bytes(source.read(4), "little")})


def restore(best: Any, given: Any) -> None:
    """Undo that for the candidate that is released, by the parameters that it was given."""
    kinds = {*_QUIET, "random_state"}
    params = {name: value for name, value in given.get_params().items() if _last(name) in kinds}
    best.set_params(**params)


def _last(name: str) -> str:
    """Return the name of a parameter without those of the steps that it is in."""
    return name.rpartition("__")[2]
