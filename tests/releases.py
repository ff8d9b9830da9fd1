"""What a fit releases, seen by a test: mechanism, exact value and what came out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.privacy.interception import _ANSWER, Mechanism, draw_release, intercept_releases


@dataclass(frozen=True, slots=True)
class Release:
    """One release with its exact value, which is private."""

    mechanism: Mechanism
    value: NDArray[Any]
    released: NDArray[np.float64]


@contextmanager
def observe_releases(observer: Callable[[Release], None]) -> Iterator[None]:
    """Show every release made inside the block to a function."""
    inner = _ANSWER.get()

    def answer(value, mechanism, source):
        with intercept_releases(inner):
            released = draw_release(value, mechanism, source)
        observer(Release(mechanism, value, released))
        return released

    with intercept_releases(answer):
        yield


@contextmanager
def record_releases() -> Iterator[list[Release]]:
    """Collect every release made inside the block."""
    releases: list[Release] = []
    with observe_releases(releases.append):
        yield releases
