"""The list of mutants fits the code, and the script tells who survives."""

from __future__ import annotations

import re
import textwrap
from dataclasses import replace
from functools import cache

import pytest

from tests.mutants import MUTANTS, _spans
from tests.mutations import ROOT, survivors


@cache
def source(file):
    return (ROOT / file).read_text(encoding="utf-8")


def changed_part(mutant, right):
    """The function that a mutant changes: to compile all of its file would take seconds."""
    changed = mutant.applied(right)
    spans = [(first, last) for name, first, last in _spans(right) if name == mutant.function]
    first, last = spans[0] if spans else (0, len(right))
    assert changed[:first] == right[:first]
    return textwrap.dedent(changed[first : last + len(changed) - len(right)])


def test_every_mutant_applies_and_names_tests_that_are_there():
    assert len(MUTANTS) >= 190
    assert len({(m.file, m.function, m.old, m.new) for m in MUTANTS}) == len(MUTANTS)
    for mutant in MUTANTS:
        right = source(f"dp_halfspace/{mutant.file}")
        compile(changed_part(mutant, right), mutant.file, "exec")
        assert mutant.tests
        for test in mutant.tests:
            file, name = test.split("::")
            assert re.search(rf"^def {name}\(", source(file), re.MULTILINE), test


@pytest.mark.slow
def test_a_survivor_is_listed_and_a_failing_test_is_no_success(capfd):
    caught = next(m for m in MUTANTS if m.file == "privacy/record.py")
    harmless = replace(caught, new=caught.old)
    assert survivors([caught, harmless]) == [harmless]
    said = capfd.readouterr().out
    assert said.count("caught") == 1
    assert said.count("SURVIVED") == 1
    with pytest.raises(RuntimeError, match="could not be run"):
        survivors([replace(caught, tests=("tests/nowhere.py::test_nothing",))])
