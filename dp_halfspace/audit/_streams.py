"""What this thread writes to the standard streams; that of other threads goes where it went."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Streams", "watched_streams"]


class _Watched:
    """A stream that hands on everything, and keeps what one thread writes."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._owner = stream, threading.get_ident()
        self.kept: list[str] = []

    def write(self, text: str) -> int:
        """Write a text; see `io.TextIOBase`."""
        if threading.get_ident() == self._owner:
            self.kept.append(text)
        return len(text) if self._stream is None else int(self._stream.write(text))

    def writelines(self, lines: Any) -> None:
        """Write texts; see `io.IOBase`."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Streams:
    """Standard output and standard error that are watched."""

    def __init__(self) -> None:
        self.output, self.error = _Watched(sys.stdout), _Watched(sys.stderr)

    @property
    def texts(self) -> tuple[str, str]:
        """Return what was written to both."""
        return "".join(self.output.kept), "".join(self.error.kept)


@contextmanager
def watched_streams() -> Iterator[Streams]:
    """Keep what this thread writes to ``sys.stdout`` and ``sys.stderr``."""
    before, streams = (sys.stdout, sys.stderr), Streams()
    sys.stdout, sys.stderr = streams.output, streams.error
    try:
        yield streams
    finally:
        sys.stdout, sys.stderr = before
