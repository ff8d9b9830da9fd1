"""Measured error between the lower bound for pure epsilon and what a theorem promises.

On the distributions that are hardest for purely private learners (Theorem 12 of Nguyen, Ullman and
Zakynthinou 2020, scaled): a share of the records is uniform on a sphere, but for the margin, the
rest is one record repeated. The error of `PureHalfspaceClassifier` on fresh records, as exceeded by
one fit in ten, against the number of records; beside it the error that some distribution forces on
every purely private method with that probability, and the bound for the exponential mechanism over
a net.

Writes ``results/lower_bound.json`` and ``docs/images/lower_bound.svg``.
"""

import argparse
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy starts its threads
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from numpy.typing import NDArray

from benchmarks.cells import RESULTS, merge, read, store, versions
from benchmarks.pictures import IMAGES, save
from benchmarks.tables import markdown
from dp_halfspace import PureHalfspaceClassifier
from dp_halfspace.theory import ErrorLowerBound, pure_error_lower_bound, pure_risk_bound

FloatArray = NDArray[np.float64]

EPSILON, BETA, FITS = 0.1, 0.1, 20
# Columns and margin. In few columns the margin hardly matters, in many it is all there is.
PROBLEMS = {"5 columns, margin .05": (5, 0.05), "60 columns, margin .005": (60, 0.005)}
SIZES = (30, 100, 300, 1000, 3000, 10_000)
FRESH = 20_000


def hard_sample(
    n: int, n_features: int, margin: float, case: ErrorLowerBound, rng: np.random.Generator
) -> tuple[FloatArray, NDArray[np.int64], FloatArray]:
    """Draw records of a hard distribution, and the halfspace that labels them.

    The halfspace and the sphere are random in the first `case.dimension` columns; the last column
    is the record that is repeated.
    """
    inner = margin / math.sqrt(1.0 - margin**2)
    k = case.dimension
    direction = rng.standard_normal(k)
    direction /= np.linalg.norm(direction)
    found = np.empty((0, k))
    while len(found) < n:
        X = rng.standard_normal((2 * n + 10, k))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        found = np.vstack([found, X[np.abs(X @ direction) >= inner]])
    rows = np.zeros((n, n_features))
    rows[:, :k] = found[:n]
    repeated = rng.random(n) >= case.share
    rows[repeated] = np.eye(n_features)[-1]
    weights = np.zeros(n_features)
    weights[:k], weights[-1] = math.sqrt(1.0 - margin**2) * direction, margin
    return rows, np.where(rows @ weights > 0.0, 1, -1), weights


def measured_errors(n: int, n_features: int, margin: float, fits: int) -> list[float]:
    """Fit again and again, each time to a new halfspace, and test on fresh records."""
    case = pure_error_lower_bound(n, n_features, EPSILON, margin, beta=BETA)
    rng = np.random.default_rng(n)
    errors = []
    for _ in range(fits):
        rows, labels, _weights = hard_sample(n + FRESH, n_features, margin, case, rng)
        model = PureHalfspaceClassifier(epsilon=EPSILON, classes=[-1, 1], fit_intercept=False)
        model.fit(rows[:n], labels[:n])
        errors.append(1.0 - model.score(rows[n:], labels[n:]))
    return errors


def measure(n_features: int, margin: float, sizes: Sequence[int], fits: int) -> dict:
    """Measure one problem at every size, and evaluate both bounds."""
    rows: dict[str, list[float]] = {"lower": [], "measured": [], "mean": [], "upper": []}
    for n in sizes:
        errors = measured_errors(n, n_features, margin, fits)
        case = pure_error_lower_bound(n, n_features, EPSILON, margin, beta=BETA)
        rows["lower"].append(case.error)
        rows["measured"].append(float(np.quantile(errors, 1.0 - BETA)))
        rows["mean"].append(float(np.mean(errors)))
        rows["upper"].append(pure_risk_bound(n, n_features, EPSILON, margin, beta=BETA))
        print(f"{n_features} columns, n={n}: {rows['measured'][-1]:.4f}", flush=True)
    return {"sizes": list(sizes), "epsilon": EPSILON, "beta": BETA, "fits": fits, **rows}


def table(results: dict) -> str:
    """Lower bound, measured error and upper bound for every size."""
    rows = []
    for name, found in results["cells"].items():
        columns = (found[key] for key in ("sizes", "lower", "mean", "measured", "upper"))
        for n, low, mean, high, bound in zip(*columns, strict=True):
            numbers = (f"{x:.4f}" for x in (low, mean, high, bound))
            rows.append([name, str(n), *numbers])
    header = ["problem", "n", "lower bound", "mean error", "error of one fit in ten", "upper bound"]
    return markdown(header, rows)


def draw(path: Path, picture: Path) -> None:
    """Plot the curves of the file, one panel per problem."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (only the pictures need it)

    cells = read(path)["cells"]
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    axes = np.atleast_1d(figure.subplots(1, len(cells), sharey=True))
    styles = {
        "upper": ("bound for a net", "--"),
        "measured": ("measured, one fit in ten", "-"),
        "lower": ("lower bound, any method", ":"),
    }
    for axis, (name, found) in zip(axes, cells.items(), strict=True):
        for key, (label, style) in styles.items():
            axis.plot(found["sizes"], found[key], style, marker=".", label=label)
        axis.set(title=name, xlabel="records", xscale="log", yscale="log")
        axis.grid(alpha=0.3)
        axis.legend(frameon=False)
    axes[0].set_ylabel(f"error, epsilon {EPSILON:g}")
    save(figure, picture)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print the table and draw the picture."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    options.add_argument("--fits", type=int, default=FITS)
    options.add_argument("--out", type=Path, default=RESULTS / "lower_bound.json")
    options.add_argument("--picture", type=Path, default=IMAGES / "lower_bound.svg")
    given = options.parse_args(argv)
    for name, (n_features, margin) in PROBLEMS.items():
        found = measure(n_features, margin, given.sizes, given.fits)
        store(given.out, "cells", name, value=found)
    merge(given.out, "versions", value=versions())
    print(table(read(given.out)))
    draw(given.out, given.picture)


if __name__ == "__main__":
    main()
