"""Bounds of risks as they run."""

import pytest


@pytest.fixture
def coarse_diameters():
    """Override the coarser bound of all other tests."""
