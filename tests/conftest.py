"""Shared settings: reproducible hypothesis, data built from a known separator."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

from dp_halfspace._repeated_fits import fits_not_counted
from tests import repeatable

settings.register_profile(
    "suite",
    deadline=None,
    derandomize=True,
    max_examples=15,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("slow", settings.get_profile("suite"), max_examples=200)


def pytest_addoption(parser):
    """Add the options for real randomness and for whole cross products."""
    parser.addoption("--fresh", action="store_true", help="randomness of the operating system")
    parser.addoption("--all-cases", action="store_true", help="all cases of sampled tests")


def pytest_configure(config):
    """Few examples by default, many where the slow tests run too; streams for doctests, too.

    The processes of pytest-xdist share the processors, so each of them and what it starts computes
    with one thread: their pools of threads would wait for each other, a third of the whole time.
    A process without tests takes over those that another one has not begun.
    """
    if getattr(config.option, "dist", "no") == "load":
        config.option.dist = "worksteal"
    if "PYTEST_XDIST_WORKER" in os.environ:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        threadpool_limits(limits=1)
    config.pluginmanager.register(repeatable, "repeatable")
    settings.load_profile("suite" if config.getoption("markexpr") == "not slow" else "slow")


def pytest_collection_modifyitems(items):
    """Let tests leave the label set to the data: what `fit` says then has tests of its own.

    The examples in docstrings are not below this folder, and state their classes.
    """
    folder = f"{Path(__file__).parent}{os.sep}"
    for item in items:
        if str(item.path).startswith(folder):
            item.add_marker(pytest.mark.filterwarnings("ignore:classes=None takes the label set"))


@pytest.fixture(autouse=True, scope="session")
def fits_are_not_counted():
    """Fit simulated tables as often as a test likes; what is said of that has tests of its own."""
    with fits_not_counted():
        yield


@pytest.fixture
def short_lists(monkeypatch):
    """Let selections for small tables choose from a tenth of the usual candidates."""
    monkeypatch.setattr("dp_halfspace.selection.small_tables._WANTED", 20_000)
    monkeypatch.setattr("dp_halfspace.selection.small_trees._PAIRS", 1_000)


def separated(n: int, d: int, n_classes: int = 2, *, seed: int = 0, norm: float = 1.0):
    """Rows of a given norm, labelled by the nearest of `n_classes` known directions."""
    rng = np.random.default_rng(seed)
    directions = rng.standard_normal((n_classes, d))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    y = rng.integers(n_classes, size=n)
    X = directions[y] + 0.3 * rng.standard_normal((n, d)) / np.sqrt(d)
    return norm * X / np.linalg.norm(X, axis=1, keepdims=True), y


def overlapping(stretch=(1.0, 1.0, 1.0, 1.0)):
    """Overlapping classes, some rows shorter than the bound."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 4)) / 4 * stretch
    y = (X @ [2.0, -1.0, 0.5, 0.0] + 0.1 + 0.3 * rng.standard_normal(300) > 0).astype(int)
    return X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True)), y


@pytest.fixture(scope="session")
def margin_data():
    """A table, binary labels in {0, 1}."""
    return separated(400, 5)


@pytest.fixture(scope="session")
def table():
    """Overlapping classes, labels in {0, 1}, some rows shorter than the bound."""
    return overlapping()
