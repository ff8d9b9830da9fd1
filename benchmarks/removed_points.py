"""Removed points against normalised margin: Figures 2 and 3 of Wang, Zhu and Wang (2025).

On satimage a linear SVM is fitted again and again; each time the points of the smallest normalised
margin ``y <w, x> / (|w| |x|)`` are removed, wrong ones first. The smallest margin of what is left
against the share that is gone is the margin-outlier curve on which the bounds of that paper
rest. The paper compares pixels with features of pretrained networks; here pixels are compared with
random Fourier features. Nothing in the curve is private: it is for whoever holds the data. What
the private classifier reaches on the same features stands beside it.

Bands are Student's intervals (95 %) of the curve over training sets of this size, by a jackknife:
each tenth of the rows is left out once.

Writes ``results/removed_points.json`` and ``docs/images/removed_points.svg``.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy starts its threads
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student
from sklearn.kernel_approximation import RBFSampler
from sklearn.svm import LinearSVC

from benchmarks.cells import RESULTS, merge, read, run_cell, store, versions
from benchmarks.loaders import Benchmark
from benchmarks.methods import METHODS
from benchmarks.pictures import IMAGES, save
from benchmarks.predictors import with_constant
from benchmarks.problems import load
from benchmarks.tables import removed_table

FloatArray = NDArray[np.float64]

EPSILON, FITS = 1.0, 5
SHARE, STEPS = 0.0025, 48  # of all points in each step: 12 % in the end
GROUPS = 10  # of the jackknife
PAIRS = {"1, 2, 3 against the rest": None, "3 against 4": (3, 4)}
FEATURES = ("pixels", "Fourier")


class RemovalCurve(NamedTuple):
    """Normalised margins against the share of records that were removed.

    A margin is the smallest one of the remaining records, 0 if one is misclassified.
    """

    shares: FloatArray
    margins: FloatArray


def removal_curve(
    X: Any, y: Any, *, share: float = SHARE, n_removals: int = STEPS, penalty: float = 100.0
) -> RemovalCurve:
    """Remove the records of the smallest margin repeatedly, and record the margin.

    A linear support vector machine through the origin is fitted with ``C=penalty``; the `share` of
    all records with the smallest normalised margin, at least one, is removed; then this is
    repeated, until a class would have no records left.
    """
    rows, labels = np.asarray(X, dtype=np.float64), np.asarray(y)
    classes = np.unique(labels)
    if len(classes) != 2:
        raise ValueError("y must have two classes.")
    signs = np.where(labels == classes[1], 1.0, -1.0)
    n, batch, kept = len(signs), max(1, round(share * len(signs))), np.arange(len(signs))
    shares: list[float] = []
    margins: list[float] = []
    for _ in range(n_removals + 1):
        if len(np.unique(signs[kept])) < 2:
            break
        found = _normalised_margins(rows[kept], signs[kept], penalty)
        shares.append(1.0 - len(kept) / n)
        margins.append(max(float(found.min()), 0.0))
        kept = kept[np.argsort(found, kind="stable")[batch:]]
    return RemovalCurve(np.array(shares), np.array(margins))


def _normalised_margins(rows: FloatArray, signs: FloatArray, penalty: float) -> FloatArray:
    """Fit a linear support vector machine and return the margin of every row over its norm."""
    machine = LinearSVC(C=penalty, dual=False, fit_intercept=False).fit(rows, signs)
    w = machine.coef_[0]
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(w)
    margins = np.zeros(len(rows))
    np.divide(signs * (rows @ w), lengths, out=margins, where=lengths > 0.0)
    return margins


def problem(pair: tuple[int, int] | None, features: str) -> Benchmark:
    """Take two classes of satimage, or classes 1, 2, 3 against the rest, as labels -1 and 1."""
    data = load("satimage" if pair is None else "satimage6")
    parts = []
    for X, y in ((data.X_train, data.y_train), (data.X_test, data.y_test)):
        chosen = np.full(len(y), True) if pair is None else np.isin(y, pair)
        labels = y[chosen] if pair is None else np.where(y[chosen] == pair[0], 1, -1)
        parts += [_mapped(X[chosen], features), labels]
    norm = data.data_norm if features == "pixels" else 1.0
    return Benchmark(features, *parts, norm, (-1, 1))


def _mapped(X: FloatArray, features: str) -> FloatArray:
    """Return the pixels, or public random features of about unit norm."""
    if features == "pixels":
        return X
    # The length scale is a fifth of the public norm of the rows, which is 6.
    sampler = RBFSampler(gamma=0.5 / 1.2**2, n_components=400, random_state=0)
    return np.asarray(sampler.fit_transform(X))


def jackknife(parts: FloatArray) -> FloatArray:
    """Return half of Student's interval (95 %) of statistics, a row without each group of rows."""
    groups = len(parts)
    error = np.sqrt((groups - 1) / groups * np.sum((parts - parts.mean(axis=0)) ** 2, axis=0))
    return np.asarray(student.ppf(0.975, groups - 1) * error)


def measure(data: Benchmark, *, share: float = SHARE, steps: int = STEPS, fits: int = FITS) -> dict:
    """Trace the curve of the training set, and score the private classifier on the test set."""
    rows = with_constant(data.X_train / data.data_norm)
    signs = data.y_train.astype(np.float64)
    group = np.random.default_rng(0).permutation(len(signs)) % GROUPS
    whole, *parts = (
        removal_curve(rows[group != left], signs[group != left], share=share, n_removals=steps)
        for left in (-1, *range(GROUPS))
    )
    at = [np.interp(whole.shares, part.shares, part.margins) for part in parts]
    found = {"curve": (whole.shares.tolist(), whole.margins.tolist())}
    found |= {"half": jackknife(np.array(at)).tolist(), "last_margin": float(whole.margins[-1])}
    return found | {"private": run_cell(data, METHODS["adaptive_margin"], EPSILON, fits)}


def draw(path: Path, picture: Path) -> None:
    """Plot the curves of the file, one panel per pair of classes."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (only the pictures need it)

    cells = read(path)["cells"]
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    axes = figure.subplots(1, len(PAIRS))
    for axis, pair in zip(axes, PAIRS, strict=True):
        for features in FEATURES:
            found = cells[f"{pair}, {features}"]
            shares, margins = found["curve"]
            label = f"{features} (private accuracy {found['private']['mean']:.3f})"
            (line,) = axis.plot(100 * np.array(shares), margins, marker=".", label=label)
            ends = np.add(margins, np.outer([-1, 1], found["half"]))
            axis.fill_between(100 * np.array(shares), *ends, color=line.get_color(), alpha=0.2)
        axis.set(title=pair, xlabel="removed points, % of n")
        axis.grid(alpha=0.3)
        axis.legend(frameon=False)
    axes[0].set_ylabel("normalised margin")
    save(figure, picture)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print the table and draw the picture."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", type=Path, default=RESULTS / "removed_points.json")
    options.add_argument("--picture", type=Path, default=IMAGES / "removed_points.svg")
    given = options.parse_args(argv)
    for name, pair in PAIRS.items():
        for features in FEATURES:
            found = measure(problem(pair, features))
            store(given.out, "cells", f"{name}, {features}", value=found)
            print(f"{name}, {features}: margin {found['last_margin']:.4f} in the end", flush=True)
    merge(given.out, "versions", value=versions())
    print(removed_table(read(given.out)))
    draw(given.out, given.picture)


if __name__ == "__main__":
    main()
