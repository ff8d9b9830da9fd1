"""What a private search over the regulariser costs, beside defaults and hindsight.

Eight values of alpha over four decades, one total budget of epsilon 1. Hindsight is the best of
them with the whole budget, by mean test accuracy: nobody can know it, and choosing it by the
data is not private. Writes ``results/tuning.json`` and ``docs/images/tuning.svg`` and fills the
table of ``docs/tuning.md``.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy starts its threads
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks.cells import RESULTS, merge, read, store, versions
from benchmarks.loaders import Benchmark
from benchmarks.pictures import IMAGES, save
from benchmarks.problems import load
from dp_halfspace import (
    ObjectivePerturbationClassifier,
    OutputPerturbationClassifier,
    PrivateSearchCV,
)

SETS = ("adult", "ijcnn1", "satimage")
EPSILON, FITS = 1.0, 10
ALPHAS = [float(alpha) for alpha in np.logspace(-4.5, -0.5, 8)]
# On clipped rows, as published: a grid of alpha, and fits that are unreliable.
PUBLISHED = partial(OutputPerturbationClassifier, preconditioner=False)
KINDS = {"objective": ObjectivePerturbationClassifier, "output": PUBLISHED}
PAGE = Path(__file__).resolve().parents[1] / "docs" / "tuning.md"
WAYS = ("hindsight", "exponential", "random_stopping", "defaults", "worst")


def scores(make: Any, problem: Benchmark, fits: int) -> list[float]:
    """Test accuracy of fresh fits."""
    found = []
    for _ in range(fits):
        model = make().fit(problem.X_train, problem.y_train)
        found.append(float(model.score(problem.X_test, problem.y_test)))
    return found


def measure(problem: Benchmark, kind: str, fits: int = FITS) -> dict[str, Any]:
    """Score every regulariser, the automatic one and both searches."""
    public = {
        "data_norm": problem.data_norm,
        "classes": list(problem.classes),
        "epsilon": EPSILON,
    }
    model = KINDS[kind]
    each = {
        alpha: scores(lambda alpha=alpha: model(alpha=alpha, **public), problem, fits)
        for alpha in ALPHAS
    }
    means = {alpha: float(np.mean(values)) for alpha, values in each.items()}
    best, worst = max(means, key=means.get), min(means, key=means.get)
    found: dict[str, Any] = {
        "means": [means[alpha] for alpha in ALPHAS],
        "hindsight": each[best],
        "worst": each[worst],
        "defaults": scores(lambda: model(**public), problem, fits),
    }
    # Perturbed objectives of different regularisers have no common account for random stopping.
    for selection in ("exponential", "random_stopping")[: 1 if kind == "objective" else 2]:
        found[selection] = scores(
            lambda selection=selection: PrivateSearchCV(
                model(**public), {"alpha": ALPHAS}, epsilon=EPSILON, selection=selection
            ),
            problem,
            fits,
        )
    return found


def table(cells: dict[str, Any]) -> str:
    """Write mean accuracies, and what the searches lose against hindsight."""
    lines = [
        '| data | estimator | hindsight | exponential | random stopping | `alpha="auto"` '
        "| worst of the eight |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, cell in cells.items():
        data, kind = name.split(", ")
        row = [data, kind]
        for way in WAYS:
            values = cell.get(way)
            if values is None:
                row.append("-")
                continue
            text = f"{np.mean(values):.4f}"
            if way in ("exponential", "random_stopping"):
                text += f" ({np.mean(values) - np.mean(cell['hindsight']):+.4f})"
            row.append(text)
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def draw(cells: dict[str, Any], picture: Path) -> None:
    """Plot accuracy against alpha with the whole budget, and what searches reach."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (only the pictures need it)

    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.subplots(len(KINDS), len(SETS), sharex=True)
    for row, kind in zip(axes, KINDS, strict=True):
        for axis, name in zip(row, SETS, strict=True):
            cell = cells[f"{name}, {kind}"]
            axis.semilogx(ALPHAS, cell["means"], marker="o", label="whole budget, this alpha")
            for way, style in (("exponential", "--"), ("random_stopping", ":"), ("defaults", "-.")):
                if way in cell:
                    axis.axhline(
                        float(np.mean(cell[way])), ls=style, label=way.replace("_", " "), c="k"
                    )
            axis.set_title(f"{name}, {kind}")
            axis.grid(alpha=0.3)
    for axis in axes[-1]:
        axis.set_xlabel("alpha")
    for axis in axes[:, 0]:
        axis.set_ylabel("test accuracy")
    axes[-1, 0].legend(frameon=False, fontsize="small")
    save(figure, picture)


def fill(page: Path, text: str, mark: str = "tuning") -> None:
    """Put the table between the marks of the page."""
    begin, end = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    before, rest = page.read_text().split(begin)
    after = rest.split(end)[1]
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}")


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print the table and draw the picture."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", nargs="+", default=list(SETS), choices=SETS, metavar="SET")
    options.add_argument("--fits", type=int, default=FITS)
    options.add_argument("--out", type=Path, default=RESULTS / "tuning.json")
    options.add_argument("--picture", type=Path, default=IMAGES / "tuning.svg")
    options.add_argument("--page", type=Path, default=PAGE)
    given = options.parse_args(argv)
    for name in given.only:
        for kind in KINDS:
            found = measure(load(name), kind, given.fits)
            store(given.out, "cells", f"{name}, {kind}", value=found)
            print(f"measured {name}, {kind}", flush=True)
    merge(given.out, "versions", value=versions())
    cells = read(given.out)["cells"]
    print(table(cells))
    if len(cells) == len(SETS) * len(KINDS):
        fill(given.page, table(cells))
        draw(cells, given.picture)


if __name__ == "__main__":
    main()
