"""Figures that stand on the pages are those of the stored results."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean

import pytest

from benchmarks import hospital, real_tables, repetition, tables, tuning
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
    """The table of column scales of evidence/adaptive_margin.md."""
    return {
        f"{name} ": [
            figure(found["majority"]),
            *(figures(map(mean, found[key])) for key in ("units", "ranges", "oracle")),
        ]
        for name, found in stored("tables_raw").items()
        if name != "versions"
    }


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


def feature_rows() -> dict[str, list[str]]:
    """The table of evidence/kernel.md of columns with features beside the linear default."""
    return {
        f"{name} ": [
            figures(means(found, way, ["0.3", "1", "3"])) for way in ("linear", "whitened")
        ]
        for name, found in stored("features")["cells"].items()
    }


def hospital_rows() -> dict[str, list[str]]:
    """The table of guide/limits.md."""
    text = hospital.shown(stored("hospital")["cells"])
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in text.splitlines()]
    return {f"{row[0]} ": [cell.replace("0.", ".") for cell in row[1:]] for row in rows[2:]}


# Page, the head of a table in it, and what the table shows.
TABLES = [
    ("evidence/pure_halfspace.md", "| data (rows x columns; $n", pure_rows),
    ("evidence/adaptive_margin.md", "| table | majority |", scale_rows),
    ("evidence/label_private.md", '| | `"statistic"` |', label_rows),
    ("evidence/kernel.md", '| table | linear default | `"auto"`', feature_rows),
    ("guide/limits.md", "| rows | logistic regression", hospital_rows),
]


def differences(text: str, head: str, rows: Mapping[str, Sequence[str | None]]) -> list[str]:
    """Rows of the table below `head` that do not show the expected figures; None is any."""
    shown = text[text.index(head) :].split("\n\n", maxsplit=1)[0].splitlines()[2:]
    wrong = [line for line in shown if not any(line.startswith(f"| {start}") for start in rows)]
    for start, expected in rows.items():
        cells = [
            line.strip("| ").split(" | ")[1:] for line in shown if line.startswith(f"| {start}")
        ]
        if (
            len(cells) != 1
            or len(cells[0]) != len(expected)
            or any(
                want is not None and found != want
                for found, want in zip(cells[0], expected, strict=True)
            )
        ):
            wrong.append(f"{start}: {' | '.join(map(str, expected))}")
    return wrong


@pytest.mark.parametrize(("page", "head", "rows"), TABLES)
def test_figures_are_those_of_the_stored_results(page, head, rows):
    assert differences((DOCS / page).read_text(), head, rows()) == []


WAYS = ("against", "without")


def said_of_output_perturbation() -> Iterator[list[str]]:
    """Figures of tilt and adversary that its page of evidence compares in its text."""
    found, exact = (stored("tilt")["cells"]["adult"][label] for label in ("1", "inf"))
    yield [
        *(f"{found[t]['worst']:.2f}".removeprefix("0") for t in ("0", "0.5", "1")),
        *(figure(found[t]["accuracy"]) for t in ("0", "0.5", "1")),
        *(f"{exact[t]['worst']:.2f}".removeprefix("0") for t in ("0", "0.5", "1")),
    ]
    moved = stored("robust")["cells"]["syn100, Euclidean"]["1"]
    places = [moved["shares"].index(share) for share in (0.1, 0.14)]
    yield [f"{moved[way]['mean'][i]:.3f}".removeprefix("0") for way in WAYS for i in places]
    both = [stored("robust")["cells"]["adult, Euclidean"][label] for label in ("1", "inf")]
    place = both[0]["shares"].index(0.08)
    yield [figure(cell[way]["mean"][place]) for way in reversed(WAYS) for cell in both]


def stand_in_order(page: str, expected: Iterable[str]) -> bool:
    """Whether one paragraph of a page, or one point of a list, has these figures in this order."""
    pattern = re.compile(r"(?<![\d.])" + r"(?!\d).*?(?<![\d.])".join(map(re.escape, expected)))
    paragraphs = re.split(r"\n\n|\n(?=- )", page)
    return any(pattern.search(p.replace("\n", " ")) for p in paragraphs if not p.startswith("|"))


def test_figures_in_the_text_are_those_of_the_stored_results():
    text = (DOCS / "evidence" / "output_perturbation.md").read_text()
    assert [f for f in said_of_output_perturbation() if not stand_in_order(text, f)] == []


def test_the_generated_tables_are_those_of_the_stored_results():
    parts = tables.sections()
    shown: list[str] = []
    for path in tables.PAGES:
        page = path.read_text()
        here = tables.parts_of(page, parts)
        assert tables.fill(page, here) == page
        shown += here
    assert sorted(shown) == sorted(parts)
    page = (DOCS / "tuning.md").read_text()
    for script in (tuning, repetition):
        assert script.table(stored(script.__name__.rpartition(".")[2])["cells"]).strip() in page
    for layout in (real_tables.summary, real_tables.losses):
        assert layout(stored("real_tables")).strip() in real_tables.PAGE.read_text()
