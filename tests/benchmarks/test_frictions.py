"""The eighteen points of a first user: fast ones are tried, and errors are answers."""

from __future__ import annotations

import pytest

from benchmarks import frictions


@pytest.mark.slow
def test_points_that_need_few_fits(capsys):
    frictions.main(["--only", "10", "11", "15", "--fits", "1"])
    parts, steps, small = capsys.readouterr().out.strip().splitlines()
    assert "an entry says AdaptiveMarginClassifier, triage" in parts
    assert steps.count("a warning") == steps.count("silence") == 1
    assert "categories of a dtype: said" in small
    assert "columns 'age', 'ward'" in small


def test_what_a_version_lacks_is_its_answer(capsys, monkeypatch):
    def missing(fits, folder):
        """Point 1: what is not there."""
        raise AttributeError("module has no attribute 'x'")

    monkeypatch.setattr(frictions, "POINTS", (missing,))
    frictions.main([])
    assert capsys.readouterr().out == (
        "| 1 | what is not there. | AttributeError: module has no attribute 'x' |\n"
    )
