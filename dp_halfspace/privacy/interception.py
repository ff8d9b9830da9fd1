"""What a mechanism is, where a release is drawn, and how an audit takes the place of its noise.

Every release of the library passes `draw_release`. An audit may answer in place of the mechanism,
or read exact values, which are private: whoever runs it holds the data. Both change the context
that runs the block alone; other threads draw their noise as ever.
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
    """Something that makes a value safe to release."""

    @property
    def event(self) -> Event:
        """What the release costs."""
        ...

    def perturb(self, value: NDArray[np.float64], source: ByteSource) -> NDArray[np.float64]:
        """Return the released value."""
        ...


class PureMechanism:
    """A mechanism that costs its `epsilon` as pure loss."""

    __slots__ = ()
    epsilon: float

    @property
    def event(self) -> Pure:
        """What the release costs: ``Pure(epsilon)``."""
        return Pure(self.epsilon)


class ExponentialMechanism:
    """A choice, or several at once, of bounded range `epsilon`."""

    __slots__ = ()
    epsilon: float

    @property
    def event(self) -> Exponential:
        """What all of the choice costs: ``Exponential(epsilon)``."""
        return Exponential(self.epsilon)


Answer: TypeAlias = Callable[[NDArray[Any], Mechanism, ByteSource], NDArray[np.float64]]


# None where mechanisms draw their own noise.
_ANSWER: ContextVar[Answer | None] = ContextVar("answer", default=None)


def draw_release(
    value: NDArray[Any], mechanism: Mechanism, source: ByteSource
) -> NDArray[np.float64]:
    """Return what a mechanism makes of a value, or what an audit answers in its place.

    Only what holds a permit calls it, after it has used up the event.
    """
    answer = _ANSWER.get()
    return mechanism.perturb(value, source) if answer is None else answer(value, mechanism, source)


@contextmanager
def intercept_releases(answer: Answer | None) -> Iterator[None]:
    """Let a function release in place of the mechanisms, inside the block."""
    token = _ANSWER.set(answer)
    try:
        yield
    finally:
        _ANSWER.reset(token)
