"""A progress bar of a few lines."""

from __future__ import annotations

from typing import TextIO

__all__ = ["Progress"]

_WIDTH = 30


class Progress:
    """Count fits on a stream: a moving bar on a terminal, one line per data set elsewhere."""

    def __init__(self, total: int, stream: TextIO) -> None:
        self._total = total
        self._done = 0
        self._stream = stream
        self._moving = stream.isatty()

    def start(self, label: str) -> None:
        """Announce a data set."""
        self._label = label
        if self._moving:
            self._draw()
        else:
            self._stream.write(f"{self._done}/{self._total} fits done, now: {label}\n")
            self._stream.flush()

    def step(self) -> None:
        """Count one fit."""
        self._done += 1
        if self._moving:
            self._draw()

    def close(self) -> None:
        """Remove the bar."""
        if self._moving:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def _draw(self) -> None:
        """Redraw the bar in place."""
        filled = _WIDTH * self._done // max(self._total, 1)
        bar = "#" * filled + "-" * (_WIDTH - filled)
        self._stream.write(f"\r\x1b[K[{bar}] {self._done}/{self._total} {self._label}")
        self._stream.flush()
