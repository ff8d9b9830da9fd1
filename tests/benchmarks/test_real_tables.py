"""The protocol on real tables: settings are chosen on validation rows, ranks and wins are right."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pandas as pd
import pytest

from benchmarks import __main__ as everything
from benchmarks import (
    catalogue,
    cells,
    checkouts,
    features,
    library_worker,
    rare,
    real_tables,
    tables_raw,
)
from dp_halfspace.exceptions import PrivacyWarning
from dp_halfspace.privacy import gdp_mu


def setting(validation, test):
    return {"validation": {"accuracy": validation}, "test": {"accuracy": test}}


FOUND = {"settings": [setting(0.9, 0.5), setting(0.1, 0.8)]}


def test_settings_are_chosen_on_validation_rows_and_the_best_on_the_test_rows_is_apart():
    assert real_tables.figure(FOUND, "accuracy") == 0.5
    assert real_tables.figure(FOUND, "accuracy", "test") == 0.8
    assert real_tables.figure(FOUND, "log_loss") is None


def test_means_and_wins_of_tables_that_both_have():
    def cells(**values):
        return {m: {"1": {"settings": [setting(0.0, v)]}} for m, v in values.items()}

    results = {
        "cells": {
            "pima": cells(table=0.7, margin=0.6, opacus=0.75),
            "wine": cells(table=0.7, margin=0.7),
        }
    }
    rows = {row[0]: row[1:] for row in real_tables.means_and_wins(results, ["pima", "wine"])}
    titles = real_tables.TITLES
    assert rows[titles["table"]][0] == "-/.700/-"
    assert rows[titles["margin"]][:1] + rows[titles["margin"]][3:4] == ["-/.650/-", "-/1.5/-"]
    assert rows[titles["opacus"]][0] == "-"  # a mean over other tables says nothing
    assert rows[titles["opacus"]][3] == "-/0/- of 1"
    assert "later" not in real_tables.summary(results)
    assert "`pima`\\* opacus .750/.700" in real_tables.losses(results)  # chose no constant


def test_with_the_guarantee_of_opacus_every_mean_is_ahead_of_it():
    found = cells.read(real_tables.OUT)
    for names in real_tables._groups(found).values():
        for measure, epsilon in product(real_tables.MEASURES, ("0.3", "1", "3")):
            figures = real_tables.figures(found, measure, epsilon, "validation")
            ours, theirs = (
                np.mean([figures[name][method] for name in names])
                for method in ("table_alike", "opacus")
            )
            assert real_tables.MEASURES[measure] * (ours - theirs) > 0.0, (measure, epsilon)


def test_scores_that_are_no_probabilities_have_no_log_loss():
    truth = np.array([0, 1, 2, 2])
    assert "log_loss" not in real_tables.measures(np.eye(3)[truth] * 5.0, truth, 3)
    found = real_tables.measures(np.eye(3)[truth], truth, 3)
    assert found["accuracy"] == found["area"] == 1.0
    assert found["log_loss"] < 1e-4
    assert "log_loss" not in real_tables.measures(np.array([[1.0], [-1.0]]), np.array([1, 0]), 2)


def test_every_method_gets_the_same_coded_rows():
    X = np.array([[0.5, 1.0, 2.0], [-0.5, 0.0, 0.0]])
    coded = library_worker.one_hot(X, (0, 2, 3))
    np.testing.assert_array_equal(coded, [[0.5, 1, 0, 0, 1], [-0.5, 0, 1, 0, 0]])
    np.testing.assert_allclose(np.linalg.norm(library_worker.unit_rows(coded), axis=1), 1.0)


@pytest.mark.slow
def test_random_trees_learn_within_the_budget_of_all_classes(monkeypatch):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-1, 1, (3000, 2)), rng.integers(0, 3, 3000)])
    y = np.where(X[:, 0] * X[:, 1] > 0, 0, 1 + (X[:, 2] == 1))
    parts = real_tables.Split(catalogue.Coded(X, (0, 0, 3), y), X, y, 3)
    budgets = []

    def recorded(rows, positive, others, mu, **setting):
        assert rows.min() >= 0.0
        assert rows.max() <= 1.0
        budgets.append(mu)
        return rare.boosted(rows, positive, others, mu, **setting)

    monkeypatch.setattr(real_tables, "boosted", recorded)
    found = real_tables.cell("random_trees", parts, 10.0, 1)
    assert len(found["settings"]) == len(real_tables.GRIDS["random_trees"])
    assert max(setting["test"]["accuracy"] for setting in found["settings"]) > 0.8
    assert sum(mu**2 for mu in budgets[:3]) == pytest.approx(gdp_mu(10.0, 3000.0**-2) ** 2)


def test_noise_of_random_trees_covers_a_replaced_record():
    values = np.linspace(0.0, 1.0, 21)
    records = [(p - y, p * (1.0 - p)) for p in values for y in (0, 1)]
    moved = [
        np.linalg.norm(np.subtract(a, b) if alike else np.concatenate([a, b]))
        for a in records
        for b in records
        for alike in (True, False)  # whether both are in one leaf
    ]
    trees, mu = 10, 0.5
    assert max(moved) == pytest.approx(rare.noise_of(trees, mu) * mu / trees**0.5)


def test_a_run_of_one_table_leaves_the_others(tmp_path, capsys):
    out = tmp_path / "real.json"
    for name in ("wine", "cancer"):
        more = ["--methods", "majority", "table", "margin", "--epsilons", "3", "--fits", "1"]
        real_tables.main([name, *more, "--out", str(out)])
    found = json.loads(out.read_text())
    assert set(found["cells"]) == {"wine", "cancer"}
    assert found["cells"]["cancer"]["table"]["3"]["settings"][0]["test"]["accuracy"] > 0.75
    assert set(found["versions"]) >= {"commit", "hardware", "seeds", "dp_halfspace"}
    assert found["versions"]["hardware"]["cores"] >= 1
    capsys.readouterr()


def test_one_command_writes_the_tables_of_the_page_and_runs_nothing(tmp_path):
    page = tmp_path / "page.md"
    marked = [
        f"<!-- {name}: begin -->\nold\n<!-- {name}: end -->\n"
        for name in ("real_tables", "real_tables_losses")
    ]
    page.write_text("a\n" + "".join(marked) + "b\n")
    real_tables.main(["--page", str(page)])
    written = page.read_text()
    assert "old" not in written
    assert written.startswith("a\n")
    assert written.endswith("b\n")
    # The page shows the results that are stored.
    for part in written.split("begin -->")[1:]:
        assert part.split("<!--")[0] in real_tables.PAGE.read_text()


def test_each_table_states_source_and_licence():
    assert len(catalogue.TABLES) >= 20
    assert all(table.source and table.licence for table in catalogue.TABLES.values())


def test_one_command_knows_every_script_that_measures(tmp_path):
    names = set(everything.commands(tmp_path, quick=False))
    helpers = {
        "__init__", "__main__", "boosted_worker", "catalogue", "cells", "checkouts", "compare",
        "cross_validation",
        "descent", "diffprivlib_peer", "diffprivlib_worker", "environments", "front_page",
        "library_worker", "loaders", "methods", "options", "pictures", "predictors", "problems",
        "published_auc", "published_margin", "tables", "walk",
    }  # fmt: skip
    scripts = {path.stem for path in cells.RESULTS.parent.glob("*.py")}
    assert names == scripts - helpers
    assert set(everything.commands(tmp_path, quick=True)) < names
    for command in everything.commands(tmp_path, quick=True).values():
        assert "--out" not in command or str(tmp_path) in command[command.index("--out") + 1]


def test_features_are_measured_beside_the_columns_alone():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 3))
    y = (np.abs(X[:, 0]) > 0.67).astype(int)
    data, ranges = (X, y, X, y), np.array([[-4.0, 4.0]] * 3)
    found = {way: features.measured(way, data, ranges, 9.0, 1) for way in features.WAYS}
    assert found["linear"]["mean"] < 0.6 < found["whitened"]["mean"]
    assert all(cell["cpu_seconds"] > 0 < cell["peak_megabytes"] for cell in found.values())


def test_a_scaler_of_ranges_puts_a_missing_value_in_the_middle():
    assert features.scaled(np.array([[np.nan], [4.0]]), np.array([[0.0, 2.0]])).tolist() == [
        [0],
        [1],
    ]
    assert tables_raw.RESULTS.name == "tables_raw.json"


def test_the_way_to_boosting_is_measured_on_all_columns_of_a_table(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    x, kind = rng.uniform(-1, 1, 600), rng.choice(["a", "b"], 600)
    frame = pd.DataFrame({"x": x, "kind": kind, "target": (np.abs(x) > 0.5) ^ (kind == "a")})
    (tmp_path / "tables").mkdir()
    frame.to_csv(tmp_path / "tables" / "made.csv.bz2", index=False)
    columns = {"columns": {"x": [-1, 1], "kind": ["a", "b"]}}
    (tmp_path / "tables" / "schema.json").write_text(json.dumps({"made": columns}))
    monkeypatch.setenv("DP_HALFSPACE_DATA", str(tmp_path))
    with pytest.warns(PrivacyWarning):
        tables_raw.print_way(["made"], 2)
    shown = capsys.readouterr().out
    assert shown.startswith("| made | 0.")
    assert "ratio of the means" in shown


@pytest.mark.slow
def test_a_fit_of_a_checkout_is_the_same_again(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3))
    y = np.where(X[:, 0] > 0, "a", "b")
    np.savez(tmp_path / "split.npz", X=X, y=y, Z=X, t=y)
    process = checkouts.start(cells.RESULTS.parents[1])
    found = [checkouts.ask(process, str(tmp_path / "split.npz"), 3.0, 1)[:2] for _ in range(2)]
    process.communicate()
    assert found[0] == found[1]
    assert found[0][0] > 0.7
