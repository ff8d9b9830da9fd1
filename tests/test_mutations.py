"""The list of mutants fits the code, and the script tells who survives."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import pytest

from tests.mutants import MUTANTS
from tests.mutations import ROOT, survivors


@cache
def source(file):
    return (ROOT / file).read_text(encoding="utf-8")


def test_every_mutant_applies_and_names_tests_that_are_there():
    assert len(MUTANTS) >= 190
    assert len({(m.file, m.old, m.new) for m in MUTANTS}) == len(MUTANTS)
    for mutant in MUTANTS:
        changed = mutant.applied(source(f"dp_halfspace/{mutant.file}"))
        compile(changed, mutant.file, "exec")
        assert mutant.tests
        for test in mutant.tests:
            file, name = test.split("::")
            assert re.search(rf"^def {name}\(", source(file), re.MULTILINE), test


def test_a_line_that_moved_is_noticed():
    mutant = MUTANTS[0]
    for text in ("", 2 * mutant.old):
        with pytest.raises(ValueError, match="times in"):
            mutant.applied(text)


@pytest.mark.slow
def test_a_survivor_is_listed_and_a_failing_test_is_no_success(capfd):
    caught = next(m for m in MUTANTS if m.file == "privacy/record.py")
    harmless = replace(caught, new=caught.old + "  # as it was")
    assert survivors([caught, harmless]) == [harmless]
    said = capfd.readouterr().out
    assert said.count("caught") == 1
    assert said.count("SURVIVED") == 1
    with pytest.raises(RuntimeError, match="could not be run"):
        survivors([replace(caught, tests=("tests/nowhere.py::test_nothing",))])
