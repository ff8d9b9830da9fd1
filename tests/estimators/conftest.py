"""Estimators are tested with short lists of candidates; their quality is measured elsewhere."""

import pytest


@pytest.fixture(autouse=True)
def _short_lists(short_lists):
    """Use the fixture in every test of this folder."""
