"""Stored cells and new fits are paired by name, and differences are in standard errors."""

import json
import math

import pytest

from benchmarks import compare
from benchmarks.compare import Figure


def test_every_kind_of_row_is_read():
    cells = {
        "a": {"0.3": {"mean": 0.5, "sd": 0.1, "draws": 20, "seconds_per_fit": 0.1}},
        "b": {"accuracies": [0.25, 0.75], "cpu_seconds": 3.0},
        "c": {
            "fits": 3,
            "settings": [
                {"test": {"area": 0.7}, "validation": {"area": 0.9}, "sd": {"area": 0.1}},
                {"test": {"area": 0.6}},
            ],
        },
    }
    assert dict(compare.figures({"cells": cells, "versions": {"python": "3"}})) == {
        ("cells", "a", "0.3"): Figure(0.5, 20, 0.1),
        ("cells", "b", "accuracies"): Figure(0.5, 2, pytest.approx(math.sqrt(0.125))),
        ("cells", "c", "settings", "0", "test", "area"): Figure(0.7, 3, 0.1),
        ("cells", "c", "settings", "1", "test", "area"): Figure(0.6, 3),
    }


def test_z_is_by_the_pooled_spread():
    old = Figure(0.5, 20, 0.1)
    assert compare.z_of(Figure(0.6, 5, 0.1), old) == pytest.approx(0.1 / (0.1 * math.sqrt(0.25)))
    # One fit has no spread of its own, and a file may know none.
    assert compare.z_of(Figure(0.6, 1, 0.0), old) == pytest.approx(1.0 / math.sqrt(1.05))
    assert compare.z_of(Figure(0.6, 5), Figure(0.5, 5)) is None
    same = Figure(0.5, 5, 0.0)
    assert compare.z_of(same, same) == 0.0
    assert compare.z_of(Figure(0.4, 5, 0.0), same) == -math.inf


def test_only_cells_that_moved_are_printed(tmp_path, capsys):
    def stored(name, mean):
        row = {"mean": mean, "sd": 0.01, "draws": 8}
        path = tmp_path / name
        path.write_text(json.dumps({"cells": {"moved": row, "kept": {**row, "mean": 0.7}}}))
        return str(path)

    compare.main([stored("new.json", 0.55), "--stored", stored("old.json", 0.5)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "cells moved: 0.5000 of 8 fits, now 0.5500 of 8, z +10.0"
    assert lines[1].startswith("mean: 2 cells, mean difference +0.0250 ± 0.0250, root mean")
