"""A plugin: repeatable randomness for the whole suite, doctests included, and parts of it.

Every test reads the bytes of a stream named after it instead of the operating system's, so
that a run tells about the code and not about luck. `pytest --fresh` gives the real bytes.
A test marked ``sampled(n)`` runs n of its cases; `pytest -m slow` runs the others, too.
"""

from __future__ import annotations

import gc
import os
import random
from collections import Counter
from contextlib import contextmanager

import pytest

from dp_halfspace.privacy import randomness

# What the default path of the default classifier runs through, and what a seed gives on every
# machine, for `pytest -m core`.
CORE = (
    "tests/engine/",
    "tests/data/test_encoding.py",
    "tests/estimators/test_adaptive_margin.py",
    "tests/estimators/test_base.py",
    "tests/privacy/test_consumption.py",
    "tests/privacy/test_exact.py",
    "tests/privacy/test_gaussian.py",
    "tests/privacy/test_mechanisms.py",
    "tests/rows/",
    "tests/test_machines.py",
    "tests/test_seeded.py",
)


def _values_of(item):
    """Return the parameters of a case with their values, the same objects in all of its cases."""
    return frozenset((name, id(value)) for name, value in item.callspec.params.items())


def _sample(cases, size):
    """Return the places of an even sample, with each value of each parameter if there is room.

    A case is a set of values. Evenly spaced cases of a product can have the same value of a
    parameter all along, so cases whose values others have, too, make room for absent values.
    """
    step = max(1.0, len(cases) / size)
    kept = {int(step * k) for k in range(min(size, len(cases)))}
    while True:
        count = Counter(value for place in kept for value in cases[place])
        best = max(range(len(cases)), key=lambda place: len(cases[place] - count.keys()))
        if cases[best] <= count.keys():
            return kept
        for place in sorted(kept):
            if all(count[value] > 1 or value in cases[best] for value in cases[place]):
                kept = kept - {place} | {best}
                break
        else:
            return kept


def pytest_ignore_collect(collection_path, config):
    """Leave all other files unread if only the core is asked for: that takes longer than it."""
    if config.getoption("markexpr") != "core" or collection_path.is_dir():
        return None
    name = collection_path.relative_to(config.rootpath).as_posix()
    return None if name.startswith(CORE) else True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Leave all but a sample of the cases of a large cross product to the slow run."""
    cases = {}
    for item in items:
        marker = item.get_closest_marker("sampled")
        if marker is not None and not config.getoption("--all-cases"):
            cases.setdefault(item.nodeid.partition("[")[0], (marker.args[0], []))[1].append(item)
    for size, found in cases.values():
        kept = _sample([_values_of(item) for item in found], size)
        for place, item in enumerate(found):
            if place not in kept:
                item.add_marker(pytest.mark.slow)
    for item in items:
        if item.nodeid.startswith(CORE) and item.get_closest_marker("slow") is None:
            item.add_marker(pytest.mark.core)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keep thousands of collected tests out of every search for garbage, which takes long."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@contextmanager
def _stream(name):
    """Let noise and public objects without a seed read the stream of `name`."""
    source, home = random.Random(name), os.getpid()

    def read(_, n):
        # A child would repeat its parent's bytes, which is what tests of forks look for.
        return source.randbytes(n) if os.getpid() == home else os.urandom(n)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(randomness.OperatingSystemBytes, "read", read)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    """Name the stream after the test."""
    if item.config.getoption("--fresh"):
        return (yield)
    with _stream(item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    """Name the stream of what several tests share after the fixture, not the first test."""
    if fixturedef.scope == "function" or request.config.getoption("--fresh"):
        return (yield)
    with _stream(f"{fixturedef.baseid}::{fixturedef.argname}"):
        return (yield)
