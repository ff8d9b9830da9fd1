"""Rows in chunks that stay on a disk or on the workers of a cluster.

A fit needs sums over rows of a function of public or released coefficients. The function and the
coefficients are sent to the chunks, each chunk returns one sum, and the sums are added in the order
of the chunks. The number of rows of each chunk is public. Proof: ``docs/proofs/certificate.md``,
section 8.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from dis import opname
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._memory import OutOfMemory
from dp_halfspace._silence import IGNORED_WARNINGS

if TYPE_CHECKING:
    from typing_extensions import Self


def _identity(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True, eq=False)
class Chunks(ABC):
    """Chunks of consecutive rows, or of labels or factors of these rows.

    Attributes
    ----------
    parts : tuple
        How to read each chunk.
    sample : array, data frame or None
        A few public rows with the columns and types of the chunks, if these came from a user.
    counts : tuple of int
        Rows of each chunk; public.
    n_columns : int
        Columns of each chunk.
    """

    parts: tuple[Any, ...]
    sample: Any = None
    counts: tuple[int, ...] = ()
    n_columns: int = 0

    @property
    def shape(self) -> tuple[int, int]:
        """Number of all rows, and of columns."""
        return sum(self.counts), self.n_columns

    @classmethod
    def of(cls, values: Iterable[Any]) -> Self:
        """Return chunks with these values."""
        return cls(tuple(cls._call(_identity, value) for value in values))

    def each(self, function: Callable[..., Any], *arguments: Any) -> Self:
        """Return ``function(chunk, *arguments)`` for every chunk, computed when needed.

        For an argument in chunks, a call gets the chunk at the same position.
        """
        columns = [a.parts if isinstance(a, Chunks) else (a,) * len(self.parts) for a in arguments]
        calls = zip(self.parts, *columns, strict=True)
        return replace(self, parts=tuple(self._call(function, *call) for call in calls))

    def total(self, function: Callable[..., Any], *arguments: Any) -> NDArray[np.float64]:
        """Return the sum of ``function(chunk, *arguments)`` over all chunks, in this process."""
        return add_compensated(self.each(function, *arguments).values())

    @staticmethod
    @abstractmethod
    def _call(function: Callable[..., Any], *arguments: Any) -> Any:
        """Delay a call; arguments that are parts are replaced by their values."""

    @abstractmethod
    def kept(self) -> Self:
        """Compute every chunk now, and keep it where it was computed."""

    @abstractmethod
    def values(self) -> Iterator[Any]:
        """Return the values of the chunks to this process, in their order."""


class _DelayedCall:
    """A delayed call in this process."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.function, self.arguments = function, arguments

    def __call__(self) -> Any:
        return self.function(*(a() if isinstance(a, _DelayedCall) else a for a in self.arguments))


class LocalChunks(Chunks):
    """Chunks that this process reads one after the other, again at every pass."""

    @classmethod
    def read_by(cls, readers: Iterable[Callable[[], Any]], sample: Any) -> LocalChunks:
        """Return chunks that are read by functions without arguments."""
        return cls(tuple(map(_DelayedCall, readers)), sample)

    @staticmethod
    def _call(function: Callable[..., Any], *arguments: Any) -> Any:
        return _DelayedCall(function, *arguments)

    def kept(self) -> Self:
        """Compute every chunk now, and keep it; see `Chunks`."""
        return replace(self, parts=self.of(self.values()).parts)

    def values(self) -> Iterator[Any]:
        """Yield the values of the chunks, one at a time; see `Chunks`."""
        return (unwrap_result(_call_guarded(part), i) for i, part in enumerate(self.parts))


def dask() -> Any:
    """Return the optional package whose chunks these are."""
    import dask.array  # noqa: PLC0415 (optional dependency)

    return dask


class DaskChunks(Chunks):
    """Chunks of dask, computed by the active scheduler.

    A task that is lost with its worker is computed again, which is possible because each is a pure
    function. No task raises, because a worker would log the arguments of the function.
    """

    @staticmethod
    def _call(function: Callable[..., Any], *arguments: Any) -> Any:
        return dask().delayed(_call_guarded, pure=False, traverse=False)(function, *arguments)

    def kept(self) -> Self:
        """Compute every chunk now, and keep it on its worker; see `Chunks`."""
        return replace(self, parts=_compute_parts(dask().persist, self.parts))

    def values(self) -> Iterator[Any]:
        """Compute all chunks at once and return them to this process; see `Chunks`."""
        values = _compute_parts(dask().compute, self.parts)
        return (unwrap_result(value, i) for i, value in enumerate(values))


def _compute_parts(compute: Callable[..., Any], parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """Compute parts by dask; the message of an error in a foreign task states its type only.

    Warnings of such a task, for example of a reader that found other types, are dropped.
    """
    try:
        with IGNORED_WARNINGS:
            return tuple(compute(*parts))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever it is, its text may quote the data
        failure = _failure_of(error)
    # The exception is raised outside the handler, so that the error is not its context.
    raise failure.kind(f"a chunk could not be computed: {failure.text}")


@dataclass(frozen=True, slots=True)
class _Failure:
    """A failure in a chunk: an error of this library, which shows no data, or a type of error."""

    kind: type[BaseException]
    text: str


def _failure_of(error: BaseException) -> _Failure:
    """Return what may be said of an error: a text of this library, or the type of another one."""
    if isinstance(error, MemoryError):
        text = "there is not enough memory for a chunk: make chunks of fewer rows"
        return _Failure(OutOfMemory, text)
    if is_own(error):
        return _Failure(type(error), str(error))
    text = f"{type(error).__name__}, whose message is not shown because it may quote data"
    return _Failure(RuntimeError, text)


def _call_guarded(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a function, or its failure."""
    failures = [argument for argument in arguments if isinstance(argument, _Failure)]
    if failures:
        return failures[0]
    try:
        # Settings of numpy belong to a thread, and schedulers have their own.
        with np.errstate(all="ignore"), IGNORED_WARNINGS:
            return function(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever it is, its text may quote the data
        return _failure_of(error)


def is_own(error: BaseException) -> bool:
    """Return whether this library raised an error by itself, which then shows no data."""
    return is_raised_by(error, __name__.partition(".")[0])


def is_raised_by(error: BaseException, library: str) -> bool:
    """Return whether a ``raise`` statement of a library made an error.

    Errors of C code have no frame of their own, so their innermost frame may be one of this library
    that calls the code; numpy, for example, quotes an entry that it cannot convert. The last
    instruction of such a frame is a call.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False
    origin, place = str(trace.tb_frame.f_globals.get("__name__")), trace.tb_lasti
    # Frames of compiled code have no instructions.
    last = [opname[code] for code in trace.tb_frame.f_code.co_code[place : place + 1]]
    return origin.partition(".")[0] == library and last == ["RAISE_VARARGS"]


def unwrap_result(value: Any, number: int) -> Any:
    """Return the result of a chunk, or raise its failure without showing its rows."""
    if isinstance(value, _Failure):
        raise value.kind(f"chunk {number}: {value.text}")
    return value


def apply_to_chunks(function: Callable[..., Any], X: Any, *arguments: Any) -> Any:
    """Return ``function(X, *arguments)``, chunk by chunk if `X` is in chunks."""
    return X.each(function, *arguments) if isinstance(X, Chunks) else function(X, *arguments)


def sum_over_chunks(function: Callable[..., Any], X: Any, *arguments: Any) -> Any:
    """Return ``function(X, *arguments)``, a sum over rows, summed over chunks if `X` has any."""
    return X.total(function, *arguments) if isinstance(X, Chunks) else function(X, *arguments)


def kept(values: Any) -> Any:
    """Compute values in chunks now, and keep them there; return other values unchanged."""
    return values.kept() if isinstance(values, Chunks) else values


def add_compensated(parts: Iterable[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Add arrays in their order by Kahan summation, whose error does not grow with their number.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.data.chunks import add_compensated
    >>> float(add_compensated([np.array(2.0**53), *[np.array(1.0)] * 10]) - 2.0**53)
    10.0
    """
    iterator = iter(parts)
    total = np.array(next(iterator), dtype=np.float64)
    missing = np.zeros_like(total)
    for part in iterator:
        missing += part
        larger = total + missing
        missing -= larger - total
        total = larger
    return total
