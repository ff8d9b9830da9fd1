"""What a fixed seed releases has not moved: a change of the code that moves it says so."""

from __future__ import annotations

import json

import pytest

from tests.instances import instances
from tests.machines import APART
from tests.seeded import RECORD, changes, results

KNOWN = json.loads(RECORD.read_text())


@pytest.mark.parametrize("in_turn", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_every_variant_is_recorded_and_has_not_moved(in_turn):
    """Beyond the rounding of another machine: ``python -m tests.seeded`` compares bit for bit.

    ``python -m tests.seeded --write`` after a variant came or went.
    """
    found = results(in_turn=in_turn)
    assert found.keys() == KNOWN.keys()
    made = {name: numbers for name, numbers in found.items() if numbers}
    assert len(made) == (len(list(instances())) if in_turn else len(KNOWN))
    moved = {name: change for name, change in changes(KNOWN, made).items() if change > APART}
    assert not moved
