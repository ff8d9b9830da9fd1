"""Accuracy against an adversary, by what he can change, private and not.

`OutputPerturbationClassifier(adversary_radius=...)` is trained on the worst change of every row
(Lowy and Razaviyayn 2021, section 5.2). For a linear model the worst change of norm ``radius``
lowers every margin by ``radius`` times the dual norm of the coefficients, so the accuracy under
attack on the test rows is exact and not that of one attack among many. Each radius has a model
that was trained against it, beside one that was trained without an adversary.

Writes ``results/robust.json`` and ``docs/images/robust.svg``.
"""

import argparse
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy starts its threads
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks.cells import RESULTS, merge, read, store, versions
from benchmarks.loaders import Benchmark
from benchmarks.pictures import IMAGES, save
from benchmarks.problems import load
from benchmarks.tables import robust_table
from dp_halfspace import OutputPerturbationClassifier

EPSILONS = (math.inf, 1.0)
FITS = 10
# Radii are shares of the public norm of a row: of that norm itself for Euclidean changes, of what
# one column has of it when all columns have the same for changes of each column.
CASES: dict[str, tuple[str, Any, tuple[float, ...]]] = {
    "adult, Euclidean": ("adult", 2, (0.0, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08)),
    "adult, each column": ("adult", "inf", (0.0, 0.01, 0.02, 0.04, 0.06, 0.08, 0.12)),
    "syn100, Euclidean": ("syn100", 2, (0.0, 0.03, 0.06, 0.1, 0.14, 0.17, 0.2)),
}
TRAINED = ("without", "against")


def share_of_norm(problem: Benchmark, norm: Any) -> float:
    """Return the change of a row that counts as one."""
    columns = 1 if norm == 2 else problem.X_train.shape[1]
    return float(problem.data_norm / math.sqrt(columns))


def robust_accuracy(model: Any, problem: Benchmark, radius: float, norm: Any) -> float:
    """Share of the test rows whose label survives every change of norm `radius`."""
    w = model.coef_[0]
    dual = float(np.linalg.norm(w) if norm == 2 else np.abs(w).sum())
    signs = np.where(problem.y_test == max(problem.classes), 1.0, -1.0)
    return float(np.mean(signs * model.decision_function(problem.X_test) > radius * dual))


def measure(
    problem: Benchmark,
    norm: Any,
    shares: Sequence[float],
    *,
    epsilon: float,
    fits: int,
) -> dict:
    """Accuracy at each radius of the adversary, trained without one and against this one."""
    unit = share_of_norm(problem, norm)

    def models(radius: float) -> list[Any]:
        public = {"data_norm": problem.data_norm, "classes": list(problem.classes)}
        robust = OutputPerturbationClassifier(
            adversary_radius=radius,
            adversary_norm=norm,
            preconditioner=False,  # as with an adversary: a radius of zero is the same method
            epsilon=epsilon,
            **public,
        )
        draws = fits if math.isfinite(epsilon) else 1
        return [
            OutputPerturbationClassifier(**robust.get_params()).fit(
                problem.X_train, problem.y_train
            )
            for _ in range(draws)
        ]

    plain = models(0.0)
    found: dict[str, dict[str, list[float]]] = {
        trained: {"mean": [], "sd": []} for trained in TRAINED
    }
    for share in shares:
        radius = share * unit
        for trained, fitted in zip(TRAINED, (plain, models(radius)), strict=True):
            scores = [robust_accuracy(model, problem, radius, norm) for model in fitted]
            found[trained]["mean"].append(float(np.mean(scores)))
            found[trained]["sd"].append(float(np.std(scores, ddof=1)) if len(scores) > 1 else 0.0)
    return {"shares": list(shares), "draws": len(plain), **found}


def draw(path: Path, picture: Path) -> None:
    """Plot the accuracies of the file, one panel for each case."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (only the pictures need it)

    cells = read(path)["cells"]
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    panels = figure.subplots(1, len(cells), squeeze=False)[0]
    for axis, (name, found) in zip(panels, cells.items(), strict=True):
        for epsilon, cell in found.items():
            colour = "black" if epsilon == "inf" else "tab:blue"
            who = "not private" if epsilon == "inf" else f"epsilon = {epsilon}"
            for trained in TRAINED:
                axis.errorbar(
                    cell["shares"],
                    cell[trained]["mean"],
                    cell[trained]["sd"],
                    marker=".",
                    color=colour,
                    linestyle="--" if trained == "without" else "-",
                    label=f"{who}, trained {trained}",
                )
        axis.set(title=name, xlabel="radius, share of the norm of a row")
        axis.grid(alpha=0.3)
    panels[0].set_ylabel("test accuracy, adversary")
    panels[-1].legend(frameon=False, fontsize=8)
    save(figure, picture)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print the table and draw the picture."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--fits", type=int, default=FITS)
    options.add_argument("--out", type=Path, default=RESULTS / "robust.json")
    options.add_argument("--picture", type=Path, default=IMAGES / "robust.svg")
    given = options.parse_args(argv)
    for name, (source, norm, shares) in CASES.items():
        problem = load(source)
        for epsilon in EPSILONS:
            cell = measure(problem, norm, shares, epsilon=epsilon, fits=given.fits)
            store(given.out, "cells", name, f"{epsilon:g}", value=cell)
            print(f"{name} epsilon={epsilon:g}: {cell}", flush=True)
    merge(given.out, "versions", value=versions())
    print(robust_table(read(given.out)))
    draw(given.out, given.picture)


if __name__ == "__main__":
    main()
