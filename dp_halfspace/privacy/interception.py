"""Protocols of mechanisms, the function that draws a release, and its interception by audits.

Every release of the library passes through `draw_release`. An audit may answer instead of the
mechanism, or read exact values, which are private; people who run it may see the data. Both affect
only the context that runs the block, and not the noise of other threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.privacy.events import Event, Exponential, Pure
from dp_halfspace.privacy.randomness import ByteSource


class Mechanism(Protocol):
    """A mechanism, which turns a value into a private release."""

    @property
    def event(self) -> Event:
        """The event of the release."""

    def perturb(self, value: NDArray[np.float64], source: ByteSource) -> NDArray[np.float64]:
        """Return the released value."""


class PureMechanism:
    """A mechanism that costs its `epsilon` as pure loss."""

    __slots__ = ()
    epsilon: float

    @property
    def event(self) -> Pure:
        """Event of the release: ``Pure(epsilon)``."""
        return Pure(self.epsilon)


class ExponentialMechanism:
    """A choice, or several at once, of bounded range `epsilon`."""

    __slots__ = ()
    epsilon: float

    @property
    def event(self) -> Exponential:
        """Event of the whole choice: ``Exponential(epsilon)``."""
        return Exponential(self.epsilon)


Answer: TypeAlias = Callable[[NDArray[Any], Mechanism, ByteSource], NDArray[np.float64]]


# The function that answers instead of the mechanisms, None if these draw their noise.
_ANSWER: ContextVar[Answer | None] = ContextVar("answer", default=None)


def draw_release(
    value: NDArray[Any], mechanism: Mechanism, source: ByteSource
) -> NDArray[np.float64]:
    """Return the release of a mechanism, or the answer of an audit instead.

    Only the holder of a permit calls this, after it has used up the event.
    """
    answer = _ANSWER.get()
    return mechanism.perturb(value, source) if answer is None else answer(value, mechanism, source)


@contextmanager
def intercept_releases(answer: Answer | None) -> Iterator[None]:
    """Let a function answer instead of the mechanisms, inside the block."""
    token = _ANSWER.set(answer)
    try:
        yield
    finally:
        _ANSWER.reset(token)
