"""What a fit releases, seen by a test: mechanism, exact value and what came out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
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


def plain(value):
    """Numbers of a result, its parts in the order of their names; a text is its bytes."""
    if value is None:
        return []
    if isinstance(value, str):
        return [np.frombuffer(value.encode(), dtype=np.uint8)]
    if is_dataclass(value):
        return [x for field in fields(value) for x in plain(getattr(value, field.name))]
    if isinstance(value, dict):
        return [x for name in sorted(value) for x in plain(value[name])]
    if isinstance(value, tuple | list):
        return [x for part in value for x in plain(part)]
    return [np.asarray(value, dtype=float)]


def assert_follows(run, first, second):
    """Run on two data sets, answer the second run by the releases of the first one."""
    answers, values = [], ([], [])

    def honest(value, mechanism, source):
        values[0].append(np.array(value, dtype=float))
        answers.append(mechanism.perturb(value, source))
        return answers[-1]

    def again(value, mechanism, source):
        values[1].append(np.array(value, dtype=float))
        return answers[len(values[1]) - 1]

    with intercept_releases(honest):
        found = plain(run(*first))
    with intercept_releases(again):
        other = plain(run(*second))
    assert len(values[0]) == len(values[1]) > 0
    # The data are so different that every release tells.
    assert not any(map(np.array_equal, *values))
    assert len(found) == len(other) > 0
    for one, two in zip(found, other, strict=True):
        np.testing.assert_array_equal(one, two)
    return len(answers)


def largest_move(run, first, second):
    """Largest move of a release over its sensitivity, the answers being the same."""
    values = ([], [])
    for data, seen in zip((first, second), values, strict=True):
        answers = np.random.default_rng(0)

        def answer(value, mechanism, source, seen=seen, answers=answers):
            seen.append((np.array(value, dtype=float), mechanism.sensitivity))
            return 10.0 * answers.standard_normal(np.shape(value))

        with intercept_releases(answer):
            run(*data)
    assert len(values[0]) == len(values[1]) > 0
    return max(
        float(np.linalg.norm(one - two)) / bound
        for (one, bound), (two, _) in zip(*values, strict=True)
    )


def choosing_the_last():
    """Let a selection whose errors are counted choose the last candidate, which is constant."""
    return intercept_releases(
        lambda value, mechanism, source: np.array([len(value) - 1, value[-1]], dtype=np.float64)
    )
