"""Figures 1 to 3 and Table 2 of Wang, Yang, Lei, Ying and Zhang (2021), with our ranking beside.

The algorithms of "Differentially private empirical risk minimization for AUC maximization" as
published (``published_auc.py`` says where a choice had to be made), at the nine budgets of the
paper, on three of its four data sets (Webspam has 350 000 rows of 254 columns and is left out).

``--protocol printed``, the default, is that of section 6: one regulariser for a data set and an
algorithm, by ten-fold cross-validation on the training rows at epsilon .1, and 60 runs. The paper
does not say how often a fold is fitted: six times here, 60 in all. ``--protocol hindsight`` takes
in every cell the regulariser that is best on the test set. Classes of this package have none.

The default is satimage alone; ``--sets`` names others, and the pictures and tables show all that
the file holds, with Student's intervals for the mean over the noise (95 %).

Writes ``results/paper_auc.json``, ``docs/images/auc_pure.svg`` (Figure 1), ``auc_delta.svg``
(Figure 2) and ``auc_squares.svg`` (Figure 3).
"""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy starts its threads
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from sklearn.model_selection import StratifiedKFold

from benchmarks.cells import (
    ANY_BUDGET,
    RESULTS,
    cell_digest,
    default_fits,
    describe,
    merge,
    parser,
    read,
    run,
    run_cell,
    store,
)
from benchmarks.loaders import Benchmark
from benchmarks.methods import Method
from benchmarks.pictures import IMAGES, half_width, save
from benchmarks.problems import load
from benchmarks.published_auc import OBJECTIVE, OBJECTIVE_PURE, PUBLISHED
from benchmarks.tables import less_noise_table, of_printed_protocol, published_table

SETS = ("satimage", "ijcnn1", "http")  # the first by default
LARGE = "http"  # half a million rows
EPSILONS = (0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
FIGURES = {
    "auc_pure": ("exact", "output_pure", "objective_pure", "auc_pure"),
    "auc_delta": ("exact", "output", "objective", "pointwise", "auc"),
    "auc_squares": ("exact_squares", "output_squares_pure", "output_squares"),
}
# Rows, columns and the ratio of class sizes of Table 2.
TABLE_2 = {"ijcnn1": "49990, 22, .1059", "satimage": "4435, 36, 1.26", "http": "567498, 3, .0039"}
FOLDS, RUNS, CHOICE_EPSILON = 10, 60, 0.1
LESS_NOISE = (1.0, 2.0, 4.0, 16.0)
LESS_NOISE_EPSILON = 0.2


def shape(name: str) -> dict:
    """Size of a data set and ratio of its classes, in the training rows and in all rows."""
    problem = load(name)
    train = problem.y_train == max(problem.classes)
    whole = np.concatenate([train, problem.y_test == max(problem.classes)])
    return {
        "rows": f"{len(train)} of {len(whole)}",
        "columns": int(problem.X_train.shape[1]),
        "ratio": ", ".join(f"{y.sum() / (~y).sum():.4f}" for y in (train, whole)),
        "published": TABLE_2.get(name, "-"),
    }


def validated(problem: Benchmark, method: Method, draws: int) -> dict[str, float]:
    """Mean score of each setting on the folds that it was not fitted to, at the one budget."""
    n = len(problem.y_train)
    splits = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    scores: dict[str, list[float]] = {}
    for fitted, left in splits.split(np.zeros(n), problem.y_train):
        part = replace(
            problem,
            X_train=problem.X_train[fitted], y_train=problem.y_train[fitted],
            X_test=problem.X_train[left], y_test=problem.y_train[left],
        )  # fmt: skip
        found = method.models(
            part.X_train, part.y_train, epsilon=CHOICE_EPSILON, delta=1.0 / n**2,
            data_norm=part.data_norm, classes=list(part.classes), draws=draws,
        )  # fmt: skip
        for name, models in found.items():
            scores.setdefault(name, []).extend(method.score(model, part) for model in models)
    return {name: float(np.mean(values)) for name, values in scores.items()}


def printed(path: Path, given: argparse.Namespace) -> None:
    """Run the printed protocol, cell by cell; what the file holds is not run again."""
    runs = given.fits
    for name in given.sets:
        problem = load(name)
        merge(path, "problems", name, value=describe(problem))
        for key, method in PUBLISHED.items():
            if method.group == "ours" or (given.only and not {name, key} & {*given.only}):
                continue
            digest = cell_digest(name, method, None)
            chosen = read(path).get("chosen", {}).get(name, {}).get(key, {})
            if chosen.get("digest") != digest:
                draws = max(runs // FOLDS, 1) if method.private else 1
                means = validated(problem, method, draws)
                best = max(means, key=lambda setting: means[setting])
                chosen = {"setting": best, "validation": means, "digest": digest}
                store(path, "chosen", name, key, value=chosen)
            ridge = float(chosen["setting"].removeprefix("ridge="))
            fixed = replace(method, models=partial(method.models, ridges=(ridge,)))
            for epsilon in given.epsilons if method.private else [None]:
                label = ANY_BUDGET if epsilon is None else f"{epsilon:g}"
                known = read(path).get("printed", {}).get(name, {}).get(key, {}).get(label, {})
                fits = runs if method.private else 1
                if known.get("digest") == digest and known["draws"] >= fits:
                    continue
                cell = {**run_cell(problem, fixed, epsilon, fits), "digest": digest}
                store(path, "printed", name, key, label, value=cell)
                print(f"{name:10} {key:22} eps={label:5} {cell['mean']:.4f} {cell['setting']}")


def less_noise(path: Path, name: str, *, factors: Sequence[float], fits: int | None) -> None:
    """Measure Algorithm 2 with its noise divided, which takes its privacy away."""
    problem = load(name)
    for title, make in (("pure", OBJECTIVE_PURE), ("delta = 1/n^2", OBJECTIVE)):
        for factor in factors:
            method = make(divisor=factor)
            draws = fits or default_fits(problem, method)
            cell = run_cell(problem, method, LESS_NOISE_EPSILON, draws)
            row = f"{name}, epsilon {LESS_NOISE_EPSILON:g}, {title}"
            store(path, "less_noise", row, f"{factor:g}", value=cell)
            print(f"{row}: noise / {factor:g} {cell['mean']:.4f}", flush=True)


def draw(found: dict, folder: Path) -> None:
    """Plot one figure per figure of the paper, one panel per data set."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (only the pictures need it)

    results = of_printed_protocol(found)["cells"]
    for title, keys in FIGURES.items():
        figure = Figure(figsize=(9, 3.4), layout="constrained")
        axes = figure.subplots(1, len(results), squeeze=False)[0]
        for axis, name in zip(axes, results, strict=True):
            for key in keys:
                _line(axis, results[name].get(key, {}), PUBLISHED[key].title)
            axis.set(title=name, xlabel="epsilon")
            axis.set_ylim(top=min(1.02, axis.get_ylim()[1]))
            axis.grid(alpha=0.3)
        axes[0].set_ylabel("test AUC")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(keys), frameon=False)
        save(figure, folder / f"{title}.svg")


def _line(axis: object, found: dict, label: str) -> None:
    """Draw the mean against epsilon, or a dashed level where there is no budget."""
    if ANY_BUDGET in found:
        axis.axhline(found[ANY_BUDGET]["mean"], color="0.4", linestyle="--", label=label)
    elif found:
        budgets = sorted(found, key=float)
        mean, half = [found[e]["mean"] for e in budgets], [half_width(found[e]) for e in budgets]
        axis.errorbar([float(e) for e in budgets], mean, half, marker=".", capsize=2, label=label)


def options() -> argparse.ArgumentParser:
    """Options of the other scripts, and where the pictures go."""
    found = parser(__doc__, SETS, EPSILONS, RESULTS / "paper_auc.json", PUBLISHED)
    found.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS[:1]))
    found.add_argument("--pictures", type=Path, default=IMAGES)
    found.add_argument("--protocol", choices=["printed", "hindsight"], default="printed")
    found.add_argument(
        "--factors", nargs="*", type=float, default=list(LESS_NOISE),
        help="divisors of the noise in the last table; none to leave it as it is",
    )  # fmt: skip
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Run what the file does not hold, print the tables and draw the pictures."""
    given = options().parse_args(argv)
    fits = given.fits
    if given.protocol == "printed":
        given.fits = fits or RUNS
        printed(given.out, given)
        ours = [key for key, method in PUBLISHED.items() if method.group == "ours"]
        given.only = [*given.only, *ours] if given.only else ours
    run(given.out, given)
    for name in given.sets:
        if name in read(given.out)["cells"]:
            merge(given.out, "shapes", name, value=shape(name))
    for name in given.sets:
        if name != LARGE:
            less_noise(given.out, name, factors=given.factors, fits=fits)
    found = read(given.out)
    if given.protocol == "hindsight":
        found = {name: part for name, part in found.items() if name not in {"printed", "chosen"}}
    print("\n" + published_table(found))
    if "less_noise" in found:
        print("\n" + less_noise_table(found))
    draw(found, given.pictures)


if __name__ == "__main__":
    main()
