"""Selections of tables so tiny that holding the threads would take most of the time."""

from contextlib import nullcontext

import pytest

from dp_halfspace.selection import column_rankings, small_tables, small_trees


@pytest.fixture(autouse=True)
def _one_thread_already(monkeypatch):
    for module in (column_rankings, small_tables, small_trees):
        monkeypatch.setattr(module, "single_blas_thread", nullcontext)
