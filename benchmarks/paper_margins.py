"""Error against margin, dimension and what is protected, and records that are needed.

The bounds of Bassily, Mohri and Suresh (2022) and of Nguyen, Ullman and Zakynthinou (2020) depend
on the margin and not on the number of columns. ``errors`` measures the error of Algorithm 5 of the
first paper (one pass of proximal steps; Algorithm 2 is the same after a projection) and of
full-batch steps against both; ``labels`` that of classifiers that protect labels, by default and by
Algorithm 4 of that paper, beside one that protects records; ``samples`` the number of records from
which on Algorithms 1 and 2 of the second paper have a mean error of at most a tenth, with what the
theorems say.

Rows are on the unit sphere, between the margin and the margin plus .1 from the hyperplane, and
every fit has a sample of its own. Intervals are Student's for the mean over samples, 95 %. Writes
``results/paper_margins.json``, ``docs/images/margin_errors.svg`` and ``margin_samples.svg``.
"""

import argparse
import math
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy starts its threads
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from scipy.stats import t as student

from benchmarks.cells import RESULTS, merge, read, store, versions
from benchmarks.pictures import IMAGES, save
from benchmarks.tables import margins_table
from dp_halfspace import (
    AdaptiveMarginClassifier,
    LabelPrivateClassifier,
    PrivacyWarning,
    PureHalfspaceClassifier,
)
from dp_halfspace.datasets import make_halfspace
from dp_halfspace.theory import margin_sample_complexity, pure_lower_bound

EPSILON, FRESH, COMPONENTS = 1.0, 2000, 100
FITS = {"errors": 20, "labels": 20, "samples": 10}
RECORDS, COLUMNS, MARGIN = 300, 20, 0.2
MARGINS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.6)
DIMENSIONS = (10, 30, 100, 300, 1000, 3000)
EPSILONS = (0.1, 0.3, 1.0, 3.0)
SAMPLE_MARGINS, SAMPLE_MARGIN, SAMPLE_COLUMNS = (0.1, 0.2, 0.3, 0.4, 0.6), 0.3, 50
SIZES = tuple(round(10 * 2 ** (k / 2)) for k in range(17))
ERROR, FLIPS = 0.1, 0.05

Make = Callable[[float, int], Any]


def known(margin: float, epsilon: float = EPSILON, **how: Any) -> AdaptiveMarginClassifier:
    """Return noisy steps for a known margin."""
    public = {"classes": [-1, 1], "data_norm": 1.0, "fit_intercept": False}
    return AdaptiveMarginClassifier(margin=margin, epsilon=epsilon, **{**public, **how})


def after_projection(n_features: int, how: str) -> dict[str, Any]:
    """Project to a fixed number of components where there are more columns."""
    return {"projection": how, "n_components": COMPONENTS} if n_features > COMPONENTS else {}


STEPS: dict[str, Make] = {
    "Algorithm 5": lambda margin, d: known(margin, solver="phased_prox"),
    "Algorithm 2": lambda margin, d: known(
        margin, solver="phased_prox", **after_projection(d, "hadamard")
    ),
    "full-batch steps": lambda margin, d: known(margin),
}
LEARNERS: dict[str, Make] = {
    "Algorithm 1": lambda margin, d: known(margin, **after_projection(d, "rademacher")),
    "Algorithm 2, pure": lambda margin, d: PureHalfspaceClassifier(
        margin=margin, epsilon=EPSILON, classes=[-1, 1], data_norm=1.0, fit_intercept=False,
        n_directions=5000, n_stages=1, **after_projection(d, "rademacher"),
    ),
}  # fmt: skip
PROTECTED: dict[str, Callable[[float], Any]] = {
    "records": lambda epsilon: AdaptiveMarginClassifier(
        epsilon=epsilon, classes=[-1, 1], data_norm=1.0
    ),
    "labels": lambda epsilon: LabelPrivateClassifier(
        kernel="linear", epsilon=epsilon, classes=[-1, 1], data_norm=1.0
    ),
    "labels, Algorithm 4": lambda epsilon: LabelPrivateClassifier(
        mechanism="net",
        kernel="linear",
        margin=MARGIN,
        delta=0,
        n_stages=1,
        epsilon=epsilon,
        classes=[-1, 1],
        data_norm=1.0,
    ),
}


def errors_of(
    model: Any, n: int, d: int, margin: float, *, fits: int, flips: float = 0.0
) -> dict[str, float]:
    """Error on fresh records without flipped labels: mean and half the width of its interval."""
    found = []
    for seed in range(fits):
        X, y, w = make_halfspace(
            n + FRESH, d, margin=margin, label_noise=flips, random_state=seed,
            return_separator=True,
        )  # fmt: skip
        model.fit(X[:n], y[:n])
        found.append(float(np.mean(model.predict(X[n:]) != np.where(X[n:] @ w > 0, 1, -1))))
    half = float(student.ppf(0.975, fits - 1) * np.std(found, ddof=1) / math.sqrt(fits))
    return {"mean": float(np.mean(found)), "half": half, "fits": fits}


def enough(make: Make, d: int, margin: float, fits: int) -> dict[str, float | None]:
    """Find the number of records from which on the mean error is at most a tenth.

    Sizes grow by the root of two. The interval is from the first size whose interval begins below a
    tenth to the first that ends below it; None for a number above all sizes.
    """
    found: dict[str, float | None] = {"low": None, "middle": None, "high": None, "fits": fits}
    for n in SIZES:
        cell = errors_of(make(margin, d), n, d, margin, fits=fits)
        ends = {"low": cell["mean"] - cell["half"], "middle": cell["mean"]}
        ends["high"] = cell["mean"] + cell["half"]
        for name, value in ends.items():
            if found[name] is None and value <= ERROR:
                found[name] = n
        if found["high"] is not None:
            break
    return found


def measure(part: str, path: Path, fits: int) -> None:
    """Measure one part, point by point."""
    if part == "errors":
        for name, make in STEPS.items():
            for margin in MARGINS if name != "Algorithm 2" else ():
                value = errors_of(make(margin, COLUMNS), RECORDS, COLUMNS, margin, fits=fits)
                store(path, "errors", "margin", name, f"{margin:g}", value=value)
            for d in DIMENSIONS:
                if name == "Algorithm 2" and d <= COMPONENTS:
                    continue  # nothing to project: Algorithm 5
                value = errors_of(make(MARGIN, d), RECORDS, d, MARGIN, fits=fits)
                store(path, "errors", "columns", name, f"{d}", value=value)
    elif part == "labels":
        for name, protect in PROTECTED.items():
            for epsilon in EPSILONS:
                value = errors_of(
                    protect(epsilon), RECORDS, COLUMNS, MARGIN, fits=fits, flips=FLIPS
                )
                store(path, "errors", "epsilon", name, f"{epsilon:g}", value=value)
    else:
        for name, make in LEARNERS.items():
            delta = 0.0 if "pure" in name else 1e-6
            cases = [("margin", SAMPLE_COLUMNS, margin) for margin in SAMPLE_MARGINS]
            cases += [("columns", d, SAMPLE_MARGIN) for d in DIMENSIONS[:-1]]
            for axis, d, margin in cases:
                bound = margin_sample_complexity(d, EPSILON, delta, margin, error=ERROR)
                value = {**enough(make, d, margin, fits), "sufficient": bound}
                if delta == 0.0:
                    value["necessary"] = pure_lower_bound(d, EPSILON, margin, error=ERROR)
                at = f"{margin if axis == 'margin' else d:g}"
                store(path, "samples", axis, name, at, value=value)


def draw(results: dict, folder: Path) -> None:
    """Plot errors in three panels, and numbers of records in two."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (only the pictures need it)

    if "errors" in results:
        panels = results["errors"]
        figure = Figure(figsize=(9, 3.2), layout="constrained")
        axes = np.atleast_1d(figure.subplots(1, len(panels)))
        for axis, (name, found) in zip(axes, panels.items(), strict=True):
            for label, cells in found.items():
                at = sorted(cells, key=float)
                mean, half = ([cells[x][k] for x in at] for k in ("mean", "half"))
                axis.errorbar(
                    [float(x) for x in at], mean, half, marker=".", capsize=2, label=label
                )
            axis.set(xscale="log", xlabel=name)
            if name == "margin":
                axis.set_xticks([float(x) for x in at], at)
                axis.minorticks_off()
            axis.grid(alpha=0.3)
            axis.legend(frameon=False, fontsize="small")
        axes[0].set_ylabel("error on fresh records")
        save(figure, folder / "margin_errors.svg")
    if "samples" in results:
        panels = results["samples"]
        figure = Figure(figsize=(8, 3.4), layout="constrained")
        axes = np.atleast_1d(figure.subplots(1, len(panels), sharey=True))
        for axis, (name, found) in zip(axes, panels.items(), strict=True):
            for place, (label, cells) in enumerate(found.items()):
                at = [x for x in sorted(cells, key=float) if cells[x]["high"] is not None]
                bounded = sorted(cells, key=float)
                middle = np.array([cells[x]["middle"] for x in at], dtype=float)
                ends = np.array([[cells[x][k] for x in at] for k in ("low", "high")], dtype=float)
                xs, color = [float(x) for x in at], f"C{place}"
                axis.errorbar(
                    xs, middle, [middle - ends[0], ends[1] - middle],
                    marker=".", capsize=2, label=label, color=color,
                )  # fmt: skip
                bounds = [cells[x]["sufficient"] for x in bounded]
                axis.plot(
                    [float(x) for x in bounded],
                    bounds,
                    "--",
                    color=color,
                    label=f"{label}, sufficient",
                )
            axis.set(xscale="log", yscale="log", xlabel=name)
            if name == "margin":
                axis.set_xticks([float(x) for x in bounded], bounded)
                axis.minorticks_off()
            axis.grid(alpha=0.3)
        axes[0].set_ylabel(f"records for an error of {ERROR:g}")
        axes[0].legend(frameon=False, fontsize="small")
        save(figure, folder / "margin_samples.svg")


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print and draw."""
    parts = ("errors", "labels", "samples")
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--parts", nargs="*", choices=parts, default=list(parts))
    options.add_argument("--fits", type=int, help="default: 20, and 10 for numbers of records")
    options.add_argument("--out", type=Path, default=RESULTS / "paper_margins.json")
    options.add_argument("--pictures", type=Path, default=IMAGES)
    given = options.parse_args(argv)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # of projections that keep little
        for part in given.parts:
            measure(part, given.out, given.fits or FITS[part])
    merge(given.out, "versions", value=versions())
    print(margins_table(read(given.out)))
    draw(read(given.out), given.pictures)


if __name__ == "__main__":
    main()
