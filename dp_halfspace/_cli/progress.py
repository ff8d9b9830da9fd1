"""A progress bar of a few lines."""

from __future__ import annotations

from typing import TextIO

__all__ = ["Progress"]

_WIDTH = 30


class Progress:
    """Count fits on a stream: a moving bar on a terminal, one line per data set elsewhere."""

    def __init__(self, total: int, stream: TextIO) -> None:
        self._done, self._total, self._stream = 0, total, stream

    def start(self, label: str) -> None:
        """Announce a data set."""
        self._label = label
        self._draw(f"{self._done}/{self._total} fits done, now: {label}\n")

    def step(self) -> None:
        """Count one fit."""
        self._done += 1
        self._draw()

    def _draw(self, otherwise: str = "") -> None:
        """Redraw the bar in place, until all is done, or write a line where nothing moves."""
        if self._stream.isatty():
            filled = _WIDTH * self._done // max(self._total, 1)
            bar = f"[{'#' * filled:-<{_WIDTH}}] {self._done}/{self._total} {self._label}"
            otherwise = "\r\x1b[K" + (bar if self._done < self._total else "")
        self._stream.write(otherwise)
        self._stream.flush()
