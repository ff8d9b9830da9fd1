"""Repeatable randomness for the whole suite, doctests included.

Every test reads the bytes of a stream named after it instead of the operating system's, so
that a run tells about the code and not about luck. `pytest --fresh` gives the real bytes.
"""

from __future__ import annotations

import os
import random
from contextlib import contextmanager

import pytest

from dp_halfspace.privacy import randomness


def pytest_addoption(parser):
    """Add the option that gives every draw back to the operating system."""
    parser.addoption("--fresh", action="store_true", help="randomness of the operating system")


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
