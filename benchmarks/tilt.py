"""Loss of the worst group against the tilt, private and not.

`OutputPerturbationClassifier(tilt=...)` minimises a mean that weighs large losses more (Lowy and
Razaviyayn 2021, section 5.1). Groups that a plain mean serves badly gain, and the noise grows
with the tilt. The groups here are public: women and men of either income in adult, and the two
classes of ijcnn1, of which one is 10 % of the records. Losses are logistic, without regulariser,
on the test rows. A model of zeros has loss log 2 in every group.

Writes ``results/tilt.json`` and ``docs/images/tilt.svg``.
"""

import argparse
import math
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy starts its threads
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.cells import RESULTS, merge, read, store, versions
from benchmarks.loaders import Benchmark
from benchmarks.pictures import IMAGES, save
from benchmarks.problems import load
from benchmarks.tables import tilt_table
from dp_halfspace import OutputPerturbationClassifier, PrivacyWarning

TILTS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
EPSILONS = (math.inf, 3.0, 1.0)
FITS = 10
SETS = {"adult": "sex and income", "ijcnn1": "class"}
# Adult has one 0/1 column for each value of each attribute; these two are the sexes.
_WOMEN, _MEN = 71, 72


def groups(name: str, problem: Benchmark) -> list[NDArray[np.bool_]]:
    """Return which test rows belong to each public group."""
    by_class = [problem.y_test == label for label in problem.classes]
    if name != "adult":
        return by_class
    X = sparse.csc_matrix(problem.X_test)
    by_sex = [X[:, [column]].toarray().ravel() == 1 for column in (_WOMEN, _MEN)]
    return [sex & label for sex in by_sex for label in by_class]


def losses(model: Any, problem: Benchmark) -> tuple[NDArray[np.float64], float]:
    """Return the logistic loss of every test row, and the accuracy."""
    signs = np.where(problem.y_test == max(problem.classes), 1.0, -1.0)
    margins = signs * model.decision_function(problem.X_test)
    return np.logaddexp(0.0, -margins), float(np.mean(margins > 0))


def measure(
    problem: Benchmark,
    parts: Sequence[NDArray[np.bool_]],
    *,
    tilt: float,
    epsilon: float,
    fits: int,
) -> dict:
    """Fit several times; loss of the worst group, mean loss and accuracy, averaged."""
    worst, mean, accuracy = [], [], []
    for _ in range(fits if math.isfinite(epsilon) else 1):
        model = OutputPerturbationClassifier(
            tilt=tilt,
            preconditioner=False,  # as with a tilt: a tilt of zero is the same method
            epsilon=epsilon,
            data_norm=problem.data_norm,
            classes=list(problem.classes),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)  # a tilt too large is shown, too
            model.fit(problem.X_train, problem.y_train)
        loss, score = losses(model, problem)
        worst.append(max(float(loss[part].mean()) for part in parts if part.any()))
        mean.append(float(loss.mean()))
        accuracy.append(score)
    return {
        "worst": float(np.mean(worst)),
        "worst_sd": float(np.std(worst, ddof=1)) if len(worst) > 1 else 0.0,
        "mean": float(np.mean(mean)),
        "accuracy": float(np.mean(accuracy)),
        "alpha": float(model.alpha_),
        "draws": len(worst),
    }


def draw(path: Path, picture: Path) -> None:
    """Plot the loss of the worst group, one panel for each data set."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (only the pictures need it)

    cells = read(path)["cells"]
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    panels = figure.subplots(1, len(cells), squeeze=False)[0]
    for axis, (name, found) in zip(panels, cells.items(), strict=True):
        for epsilon, by_tilt in found.items():
            tilts = sorted(by_tilt, key=float)
            label = "not private" if epsilon == "inf" else f"epsilon = {epsilon}"
            axis.errorbar(
                range(len(tilts)),
                [by_tilt[tilt]["worst"] for tilt in tilts],
                [by_tilt[tilt]["worst_sd"] for tilt in tilts],
                marker=".",
                color="black" if epsilon == "inf" else None,
                label=label,
            )
        axis.axhline(math.log(2), color="grey", linestyle=":", label="model of zeros")
        axis.set_xticks(range(len(tilts)), tilts)
        axis.set(title=f"{name}: groups by {SETS[name]}", xlabel="tilt")
        axis.grid(alpha=0.3)
    panels[0].set_ylabel("test loss of the worst group")
    panels[0].legend(frameon=False)
    save(figure, picture)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print the tables and draw the picture."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--fits", type=int, default=FITS)
    options.add_argument("--out", type=Path, default=RESULTS / "tilt.json")
    options.add_argument("--picture", type=Path, default=IMAGES / "tilt.svg")
    given = options.parse_args(argv)
    for name in SETS:
        problem = load(name)
        parts = groups(name, problem)
        for epsilon in EPSILONS:
            for tilt in TILTS:
                cell = measure(problem, parts, tilt=tilt, epsilon=epsilon, fits=given.fits)
                store(given.out, "cells", name, f"{epsilon:g}", f"{tilt:g}", value=cell)
                print(f"{name} epsilon={epsilon:g} tilt={tilt:g}: {cell}", flush=True)
    merge(given.out, "versions", value=versions())
    print(tilt_table(read(given.out)))
    draw(given.out, given.picture)


if __name__ == "__main__":
    main()
