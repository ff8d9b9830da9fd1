"""Figures that stand on the pages are those of the stored results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean

import pytest

from benchmarks import real_tables, tables
from benchmarks.cells import RESULTS

DOCS = Path(__file__).resolve().parents[2] / "docs"


def stored(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text())


def figure(value: float) -> str:
    """Three digits, without the zero in front."""
    text = f"{value:.3f}".lstrip("0")
    return "1" if text == "1.000" else text


def figures(values: Iterable[float]) -> str:
    return "/".join(map(figure, values))


def means(cells: dict, method: str, budgets: Sequence[str]) -> list[float]:
    return [cells[method][label]["mean"] for label in budgets]


TWO, MORE = (".1", ".3", "1", "3"), (".3", "1", "3", "8")
TWO, MORE = ([f"{float(label):g}" for label in labels] for labels in (TWO, MORE))


def objective_rows() -> dict[str, list[str]]:
    """The table of all sets of evidence/objective_perturbation.md."""
    linear, multi = stored("linear")["cells"], stored("multiclass")["cells"]
    sets = {
        "adult (": (linear["adult"], TWO),
        "ijcnn1 (": (linear["ijcnn1"], TWO),
        "satimage, two": (linear["satimage"], TWO),
        "margin .2": (linear["syn100"], TWO),
        "reuters": (linear["reuters"], TWO),
        "satimage, 6": (multi["satimage6"], MORE),
        "digits": (multi["digits"], MORE),
        "10 Gaussian": (multi["syn10"], MORE),
    }
    names = ("objective_perturbation", "objective_perturbation_pure")
    return {
        start: [figures(means(cells, name, budgets)) for name in names]
        for start, (cells, budgets) in sets.items()
    }


def pure_rows() -> dict[str, list[str]]:
    """The table of evidence/pure_halfspace.md."""
    cells = stored("pure")["cells"]
    sets = {
        "cancer (": "cancer",
        "digits odd/even (": "parity",
        "adult (": "adult-2000",
        "ijcnn1 (": "ijcnn1-2000",
        "satimage, two groups (": "satimage",
    }
    names = ("pure_halfspace", "objective_perturbation", "output_perturbation", "adaptive_margin")
    names = [name if name == "pure_halfspace" else f"{name}_pure" for name in names]
    budgets = ["0.03", "0.1", "0.3", "1"]
    return {
        start: [
            figure(cells[name]["majority"]["any"]["mean"]),
            *(figures(means(cells[name], method, budgets)) for method in names),
        ]
        for start, name in sets.items()
    }


def scale_rows() -> dict[str, list[str]]:
    """The first table of column_scales.md."""
    return {
        f"{name} ": [
            figure(found["majority"]),
            *(figures(map(mean, found[key])) for key in ("units", "ranges", "oracle")),
            figure(found["LinearSVC"]),
            figure(found["boosting"]),
        ]
        for name, found in stored("tables_raw").items()
        if name != "versions"
    }


def ranking_rows() -> dict[str, list[str]]:
    """The first table of evidence/auc.md: without privacy, the default, pure, the best baseline."""
    rows = {}
    for name, cells in stored("auc")["cells"].items():
        budgets = ["0.05", "0.1", "0.2", "0.5"]
        ours = [means(cells, method, budgets) for method in ("auc", "auc_pure")]
        plain, unit = (means(cells, key, budgets) for key in ("diffprivlib", "diffprivlib_unit"))
        rows[name] = [
            figure(cells["logistic"]["any"]["mean"]),
            *(figures(values).replace("/", " / ") for values in [*ours, map(max, plain, unit)]),
        ]
    return rows


def label_rows() -> dict[str, list[str]]:
    """The table of evidence/label_private.md."""
    rows = {}
    for start, name in (("satimage", "satimage"), ("digits", "digits")):
        found = stored("label")["accuracy"][name]
        keys = ("statistic", "statistic_pure", "randomized_response", "net")
        budgets = ("0.3", "1", "3")
        rows[start] = [
            " / ".join(figure(found[key][label]["mean"]) for label in budgets)
            if key in found
            else "-"
            for key in keys
        ] + [figure(found["exact"]["inf"]["mean"])]
    return rows


PAGES = {
    "evidence/objective_perturbation.md": ("| data (rows x columns) | $(", objective_rows),
    "evidence/pure_halfspace.md": ("| data (rows x columns; $n", pure_rows),
    "column_scales.md": ("| table | majority |", scale_rows),
    "evidence/auc.md": ("| | no privacy | this class |", ranking_rows),
    "evidence/label_private.md": ('| | `"statistic"` |', label_rows),
}


def differences(text: str, head: str, rows: dict[str, list[str]]) -> list[str]:
    """Rows of the table below `head` that do not show the expected figures."""
    shown = text[text.index(head) :].split("\n\n", maxsplit=1)[0].splitlines()[2:]
    wrong = [line for line in shown if not any(line.startswith(f"| {start}") for start in rows)]
    for start, expected in rows.items():
        cells = [
            line.strip("| ").split(" | ")[1:] for line in shown if line.startswith(f"| {start}")
        ]
        if cells != [expected]:
            wrong.append(f"{start}: {' | '.join(expected)}")
    return wrong


@pytest.mark.parametrize("page", PAGES)
def test_figures_are_those_of_the_stored_results(page):
    head, rows = PAGES[page]
    assert differences((DOCS / page).read_text(), head, rows()) == []


def test_a_wrong_figure_is_seen():
    page = "| a | b |\n|---|---|\n| cancer | .604/.823 |\n\n.605"
    assert differences(page, "| a | b |", {"cancer": [".604/.823"]}) == []
    assert differences(page, "| a | b |", {"cancer": [".605/.823"]}) == ["cancer: .605/.823"]


def test_the_generated_tables_are_those_of_the_stored_results():
    parts = tables.sections()
    shown: list[str] = []
    for path in tables.PAGES:
        page = path.read_text()
        here = tables.parts_of(page, parts)
        assert tables.fill(page, here) == page
        shown += here
    assert sorted(shown) == sorted(parts)
    page = (DOCS / "real_tables.md").read_text()
    assert real_tables.markdown(stored("real_tables")).strip() in page
