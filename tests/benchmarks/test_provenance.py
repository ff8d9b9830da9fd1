"""Rows of stored results say which commit and which machine measured them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks import cells
from benchmarks.cells import RESULTS

# Where the rows of a file are: a part, and how many names lead from there to a row.
CELLS = {"cells": 3}
ROWS: dict[str, dict[str, int]] = {
    "auc": CELLS,
    "budgets": CELLS,
    "dimension": {"cells": 2},
    "features": CELLS,
    "hospital": CELLS,
    "kernel": {"accuracy": 3, "timing": 1, "prediction": 0},
    "label": {"accuracy": 3},
    "linear": CELLS,
    "lower_bound": {"cells": 1},
    "multiclass": CELLS,
    "other_tables": CELLS,
    "paper_auc": {"cells": 3, "printed": 3, "chosen": 2, "less_noise": 2},
    "paper_margins": {"errors": 3, "samples": 3},
    "paper_tables": {"lines": 1},
    "projection": {"dense": 1, "csr": 1},
    "pure": {"cells": 3, "directions": 1},
    "real_tables": CELLS,
    "removed_points": {"cells": 1},
    "repetition": {"cells": 1},
    "risk_bounds": {"cells": 1},
    "robust": {"cells": 2},
    "speed": {"speed": 1, "import": 0},
    "tables_raw": {"": 1},
    "tilt": CELLS,
    "tuning": {"cells": 1},
}


def rows_of(found: Any, depth: int) -> Iterator[dict[str, Any]]:
    """Yield the rows below a part of a file."""
    if depth == 0:
        yield found
        return
    for inner in found.values() if isinstance(found, dict) else found:
        yield from rows_of(inner, depth - 1)


def stored_rows(name: str) -> list[dict[str, Any]]:
    results = json.loads((RESULTS / f"{name}.json").read_text())
    if "" in ROWS[name]:
        results = {"": {key: row for key, row in results.items() if key != "versions"}}
    return [row for part, depth in ROWS[name].items() for row in rows_of(results[part], depth)]


def is_known(row: dict[str, Any]) -> bool:
    return {"commit", "hardware"} <= row.keys()


def test_every_file_of_results_is_listed():
    """Frozen figures are of one commit, and have no rows of their own."""
    assert {path.stem for path in RESULTS.glob("*.json")} == {*ROWS, "frozen"}
    assert is_known(json.loads((RESULTS / "frozen.json").read_text()))


@pytest.mark.parametrize("name", ROWS)
def test_rows_say_commit_and_hardware(name):
    rows = stored_rows(name)
    assert rows
    assert all(map(is_known, rows))


def history() -> set[str]:
    """Commits that lead to this checkout; none where it is no repository, or a part of one."""
    root = Path(__file__).resolve().parents[2]
    git = ["git", "-C", str(root)]
    ask = partial(subprocess.run, capture_output=True, text=True, check=True)
    try:
        about = ask([*git, "rev-parse", "--show-toplevel", "--is-shallow-repository"]).stdout
        commits = ask([*git, "rev-list", "HEAD"]).stdout.split()
    except (OSError, subprocess.CalledProcessError):
        return set()
    return set(commits) if about.split("\n")[:2] == [str(root), "false"] else set()


def test_commits_of_rows_are_in_the_history():
    known = history()
    if not known:
        pytest.skip("no repository with its whole history")
    missing = {
        (name, row["commit"])
        for name in ROWS
        for row in stored_rows(name)
        if row["commit"] not in known
    }
    assert missing == set()


def test_a_row_is_stored_with_commit_and_hardware_and_leaves_the_rest(tmp_path):
    path = tmp_path / "some.json"
    cells.merge(path, "cells", "a", value={"mean": 0.5})
    cells.store(path, "cells", "b", value={"mean": 0.7})
    found = cells.read(path)["cells"]
    assert found["a"] == {"mean": 0.5}
    assert is_known(found["b"])
    assert found["b"]["mean"] == 0.7
