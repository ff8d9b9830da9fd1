"""A fit is a list of releases, and private rows stand behind a door that only questions open.

A release is a question of bounded sensitivity, a noise, and what follows from the noisy answer.
Only a question reads private rows. What follows is a function of what was released, and may
install a map of the rows at the door: later questions read the mapped rows. So a fit is private by
the composition of its releases, whatever follows from them: ``docs/proofs/engine.md``, sections 1
and 9.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, Generic, TypeVar

from dp_halfspace.privacy.door import Door
from dp_halfspace.privacy.events import Event, Repeated
from dp_halfspace.privacy.interception import Mechanism
from dp_halfspace.privacy.mechanisms import NoNoise

# What was released so far, and public numbers.
Known = TypeVar("Known")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Release(Generic[Known]):
    """One noisy answer.

    Attributes
    ----------
    name : str
        What is asked for, in words.
    event : Event
        What the release costs; public, and known before any row is read.
    noise : callable
        The mechanism, of public and released numbers; its event is `event`. None instead of a
        mechanism means that what was released before makes the question needless.
    ask : callable
        The question: the only function that reads the private rows behind the door. It returns an
        array whose sensitivity the noise was planned for.
    use : callable
        What follows: what is known after the answer.
    row_map : callable or None
        The map of the rows that later questions read: a function of what is known and of the rows
        behind the door, which treats each record by itself.
    """

    name: str
    event: Event
    noise: Callable[[Known], Mechanism | None]
    ask: Callable[[Known, Any], Any]
    use: Callable[[Known, Any], Known]
    row_map: Callable[[Known, Any], Any] | None = None


def released(answer: Answer | None) -> Answer:
    """Return a part of what is known that an earlier release has told."""
    assert answer is not None
    return answer


def run(releases: Iterable[Release[Known]], door: Door, known: Known) -> tuple[Known, Door]:
    """Make the releases in their order.

    Return what is known after them, and the door with the rows of the last map. Behind the given
    door is whatever the first question reads.

    Notes
    -----
    **Guarantee.**

    - Adjacency: that of the permit's record.
    - Released: the noisy answers of the questions.
    - Sensitivity: that of each question, which the plan of its release bounds.
    - Proof: ``docs/proofs/engine.md``, section 1.
    """
    for release in releases:
        mechanism = release.noise(known)
        if mechanism is not None:
            answer = door.release(partial(release.ask, known), mechanism)
            known = release.use(known, answer)
        if release.row_map is not None:
            door = door.map(partial(release.row_map, known))
    return known, door


def described(releases: Sequence[Release[Any]]) -> tuple[tuple[Event, ...], tuple[str, ...]]:
    """Return the events that the releases cost together, and in words what each asks for.

    Equal neighbours become one event.
    """
    if any(release.event == NoNoise.event for release in releases):
        # An exact release has no guarantee, and nor has the whole.
        return (NoNoise.event,), ("everything, without noise",)
    events: list[Event] = []
    asks: list[str] = []
    for event, group in groupby(releases, lambda release: release.event):
        names = Counter(release.name for release in group)
        count = names.total()
        events.append(event if count == 1 else Repeated(event, count))
        asks.append(" and ".join(f"{n} {k}s" if n > 1 else k for k, n in names.items()))
    return tuple(events), tuple(asks)
