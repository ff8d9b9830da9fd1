"""Many tables: which are selected, how they are coded and summarised, and that the page is true."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from benchmarks import library_worker, other_tables
from benchmarks.cells import RESULTS


def made_up(n=400, noise=1.0, share=0.3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    score = X[:, 0] + noise * rng.standard_normal(n)
    bought = np.where(score > np.quantile(score, 1 - share), "yes", "no")
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "bought": bought})


def test_the_first_column_of_two_values_that_is_neither_rare_easy_nor_noise_is_predicted():
    found = other_tables.suitable(made_up(), "R")
    assert found["target"] == "bought"
    assert (found["rows"], found["columns"], found["share"]) == (400, 3, 0.3)
    coin = np.random.default_rng(1).integers(0, 2, 400)
    assert other_tables.suitable(made_up().assign(bought=coin), "R") is None
    both = made_up()
    both.insert(0, "coin", coin)
    assert other_tables.suitable(both, "R")["target"] == "bought"


@pytest.mark.parametrize(
    "options", [{"n": 249}, {"n": 20_001}, {"share": 0.01}, {"n": 300, "share": 0.03}, {"noise": 0}]
)
def test_tables_out_of_the_stated_ranges_are_left_out(options):
    assert other_tables.suitable(made_up(**options), "R") is None


def test_a_table_of_keel_predicts_its_last_column_and_may_be_easy():
    frame = made_up(noise=0)
    assert other_tables.suitable(frame, "KEEL")["area"] > 0.985
    assert other_tables.suitable(frame[["bought", "a", "b", "c"]], "KEEL") is None


def test_numbers_lie_between_their_extreme_values_and_the_rarer_class_is_one():
    frame = pd.DataFrame(
        {
            "number": [0.0, 1.0, 4.0, np.nan],
            "text": ["u", None, "v", "u"],
            "constant": [1.0, 1.0, 1.0, 1.0],
            "y": ["b", "b", "a", "b"],
        }
    )
    table = other_tables.coded(frame, "y")
    assert table.levels == (0, 3)
    assert table.X[:, 0].tolist() == [-1.0, -0.5, 1.0, 0.0]
    assert table.X[:, 1].tolist() == [1.0, 0.0, 2.0, 1.0]
    assert table.y.tolist() == [0, 0, 1, 0]


def test_copies_are_left_out(monkeypatch):
    frames = [("one", made_up()), ("copy", made_up()), ("other", made_up(n=500))]
    monkeypatch.setattr(other_tables, "POOLS", {"R": lambda: iter(frames)})
    chosen = other_tables.select()
    assert set(chosen) == {"one", "other"}
    parts = other_tables.load(chosen)
    assert [len(parts[name].y) for name in chosen] == [120, 150]


def test_tables_of_the_page_and_keys_of_rows_are_left_out(tmp_path):
    path = tmp_path / "any.csv"
    made_up().assign(person_id=1).to_csv(path)
    for name in ("MASS/Pima.te", "keel/vehicle0", "keel/page-blocks-1-3_vs_4", "keel/ring"):
        assert not list(other_tables._csv(name, path))
    ((name, frame),) = other_tables._csv("keel/winequality-red-4", path)
    assert list(frame.columns) == ["a", "b", "c", "bought"]


def test_means_are_over_the_tables_that_every_method_has():
    whole = {"accuracy": 0.5, "area": 0.5, "brier": 0.3, "log_loss": 0.7}
    better = {"accuracy": 0.7, "area": 0.4, "brier": 0.2, "log_loss": 0.6}
    cells = {
        method: {"any" if method in other_tables.BASELINES else "1": whole}
        for method in other_tables.METHODS
    }
    cells["table"] = {"1": better}
    partly = {m: c for m, c in cells.items() if m != "interpret"}
    facts = {"pool": "R", "rows": 1000, "share": 0.2}
    results = {"tables": {"a": facts, "b": facts}, "cells": {"a": cells, "b": partly}}
    rows = {row[0]: row[1:] for row in other_tables.means(results, "R")}
    assert rows["interpret, DP-EBM"][0] == "-/.500/-"
    assert rows["interpret, DP-EBM"][4:] == ["-/1/- of 1", "-/0/- of 1"]
    gains = other_tables.differences(results, "interpret")
    assert ["300 to 1000", "-", "+0.200/-0.100 (1)", "-"] in gains
    assert sum(cell != "-" for _, *cells_ in gains for cell in cells_) == 1


def test_the_page_shows_the_results_that_are_stored(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- other_tables: begin -->\nold\n<!-- other_tables: end -->\nb\n")
    other_tables.main(["--page", str(page)])
    written = page.read_text()
    assert "old" not in written
    assert written.split("begin -->")[1].split("<!--")[0] in other_tables.PAGE.read_text()


def test_losses_that_the_page_states_are_those_of_the_stored_results():
    results = json.loads((RESULTS / "other_tables.json").read_text())
    behind, below_half = {}, 0
    for epsilon in ("0.3", "1", "3"):
        rows = [
            r
            for p in other_tables.POOLS
            for r in other_tables.figures(results, p, epsilon).values()
        ]
        gains = [row["table"]["accuracy"] - row["majority"]["accuracy"] for row in rows]
        behind[epsilon] = sum(gain < -0.01 for gain in gains)
        if epsilon == "0.3":
            below_half = sum(row["table"]["area"] < 0.5 for row in rows)
    page = other_tables.PAGE.read_text()
    numbers = ["none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    few, one, many = (numbers[behind[epsilon]] for epsilon in ("0.3", "1", "3"))
    said = f"more than .01 on {few} of the 144 tables at .3, on {one} at 1 and on {many} at 3"
    assert said in page
    assert f"on {below_half} of the 144 tables at .3 its area is below one half" in page


def test_a_setting_of_a_library_may_name_its_budget(tmp_path, monkeypatch):
    def echo(given, **setting):
        assert not setting
        return np.full((1, 2), given["epsilon"])

    monkeypatch.setitem(library_worker.LIBRARIES, "echo", echo)
    source, target = tmp_path / "in.npz", tmp_path / "out.npz"
    settings = json.dumps([{"epsilon": 3.0}, {}])
    np.savez(source, levels=[0], n_classes=2, epsilon=1.0, delta=0.1, draws=1, settings=settings)
    library_worker.main("echo", source, target)
    with np.load(target) as answer:
        assert answer["probabilities"][:, 0, 0, 0].tolist() == [3.0, 1.0]


def test_the_list_is_stored_with_source_and_shape():
    stored = json.loads((RESULTS / "other_tables.json").read_text())
    assert set(stored["cells"]) == set(stored["tables"])
    for facts in stored["tables"].values():
        assert set(facts) == {"pool", "target", "rows", "columns", "share", "area"}
        assert other_tables.ROWS[0] <= facts["rows"] <= other_tables.ROWS[1]
        assert other_tables.LEAST_SHARE <= facts["share"] <= 0.5
