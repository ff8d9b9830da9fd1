"""Fixtures of thresholds and conformal sets."""

from __future__ import annotations

import pytest

from dp_halfspace.data.people import People


@pytest.fixture
def factors_of_people(monkeypatch):
    """Factors for which weights of people leave room, in the order in which they are asked for."""
    factors, honest = [], People.weights_for

    def recorded(people, largest):
        factors.append(largest)
        return honest(people, largest)

    monkeypatch.setattr(People, "weights_for", recorded)
    return factors
