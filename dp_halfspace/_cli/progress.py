"""A progress bar of a few lines, which counts fits and the releases inside a fit.

Both numbers of releases are public: what a fit is going to release is in its record.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from typing import Any, TextIO

from dp_halfspace.ledger.ledger import open_ledger
from dp_halfspace.privacy.events import single_runs
from dp_halfspace.privacy.mechanisms import observing
from dp_halfspace.privacy.record import PrivacyRecord

_WIDTH = 30
_SECONDS = 10.0


class Progress:
    """Show progress on a stream: a moving bar on a terminal, now and then a line elsewhere."""

    def __init__(self, total: int, stream: TextIO) -> None:
        self.done, self._total, self._stream = 0, total, stream
        self._label, self._releases, self._released, self._shown = "", 0, 0, -math.inf

    def start(self, label: str) -> None:
        """Announce what comes now."""
        self._label = label
        self._draw()

    def step(self) -> None:
        """Count one fit."""
        self.done += 1
        self._releases = self._released = 0
        self._draw()

    @contextlib.contextmanager
    def fit(self, ledger: Any = None) -> Iterator[Any]:
        """Follow one fit: yields a ledger to fit with, which passes charges on."""
        with observing(lambda _: self._release()):
            yield _Watch(self, open_ledger(ledger))

    def clear(self) -> None:
        """Remove the bar."""
        if self._stream.isatty():
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        """Write to the stream; that it takes nothing more is no reason to lose a fit."""
        with contextlib.suppress(OSError):
            self._stream.write(text)
            self._stream.flush()

    def expect(self, record: PrivacyRecord) -> None:
        """Learn how many releases a fit is going to make."""
        self._releases, self._released = sum(single_runs(record.events).values()), 0
        self._draw()

    def _release(self) -> None:
        """Count one release."""
        self._released += 1
        self._draw()

    def _draw(self) -> None:
        """Redraw the bar in place, until all is done, or write a line where nothing moves."""
        now = time.monotonic()
        step = ""
        if self._releases > 1 and self._released <= self._releases:
            step = f", step {self._released}/{self._releases}"
        text = f"{self.done}/{self._total} fits done, now: {self._label}{step}"
        if self.done >= self._total:
            self.clear()
        elif self._stream.isatty():
            inside = self._released / self._releases if step else 0.0
            filled = int(_WIDTH * (self.done + inside) / self._total)
            self._write(f"\r\x1b[K[{'#' * filled:-<{_WIDTH}}] {text}")
        elif now - self._shown >= _SECONDS:
            self._write(f"{text}\n")
            self._shown = now


class _Watch:
    """A ledger that tells a progress what a fit is going to release."""

    def __init__(self, progress: Progress, ledger: Any) -> None:
        self._progress, self._ledger = progress, ledger

    def charge(self, record: PrivacyRecord) -> None:
        """Charge the ledger, if there is one."""
        if self._ledger is not None:
            self._ledger.charge(record)
        self._progress.expect(record)
