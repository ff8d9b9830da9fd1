"""Accuracy at one margin against the number of columns, up to 100 000.

The bounds for large-margin halfspaces do not contain the dimension (Nguyen, Ullman and Zakynthinou
2020; Wang, Zhu and Wang 2025). Here 10 000 normalised rows have a margin in [.2, .3], 2 % of the
training labels are flipped and epsilon is 1. The rows are float32, drawn block by block, so 100 000
columns take 5 GB. Writes ``results/dimension.json`` and ``docs/images/dimension.svg``.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy starts its threads
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from numpy.typing import NDArray

from benchmarks.cells import RESULTS, merge, read, run_cell, store, versions
from benchmarks.loaders import Benchmark
from benchmarks.methods import METHODS
from benchmarks.pictures import IMAGES, half_width, save
from benchmarks.problems import flip_labels
from benchmarks.tables import dimension_table

N_TRAIN, N_TEST, MARGIN, EPSILON = 10_000, 2_000, 0.2, 1.0
DIMENSIONS = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
LARGEST = {"adaptive_margin": 100_000, "adaptive_margin_pure": 10_000, "dp_sgd": 10_000}
FITS = 5
_BLOCK = 250


def lean_halfspace(
    n: int, d: int, w: NDArray[np.float32], rng: np.random.Generator
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Draw what `make_halfspace` draws, for a given separator, as float32 and without copies."""
    X = np.empty((n, d), np.float32)
    y = rng.choice(np.array([-1, 1]), n)
    distance = rng.uniform(MARGIN, MARGIN + 0.1, n).astype(np.float32)
    for lo in range(0, n, _BLOCK):
        rows = rng.standard_normal(out=X[lo : lo + _BLOCK], dtype=np.float32)
        here = slice(lo, lo + len(rows))
        # Kernels of a BLAS may read numbers that are not part of the rows, and warn about these.
        with np.errstate(invalid="ignore"):
            along = rows @ w
        rows -= np.outer(along, w)
        length = np.linalg.norm(rows, axis=1)
        rows *= (np.sqrt(1 - distance[here] ** 2) / length)[:, None]
        rows += np.outer(y[here] * distance[here], w)
    return X, y


def halfspace(d: int) -> Benchmark:
    """Make training and test rows of one separator."""
    rng = np.random.default_rng(d)
    w = rng.standard_normal(d)
    w = (w / np.linalg.norm(w)).astype(np.float32)
    X, y = lean_halfspace(N_TRAIN, d, w, rng)
    Z, t = lean_halfspace(N_TEST, d, w, rng)
    return Benchmark(f"margin{d}", X, flip_labels(y, 0.02, rng), Z, t, 1.0, (-1, 1))


def draw(path: Path, picture: Path) -> None:
    """Plot the accuracies of the file."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (only the pictures need it)

    figure = Figure(figsize=(6, 3.4), layout="constrained")
    axis = figure.add_subplot()
    for key, found in read(path)["cells"].items():
        sizes = sorted(found, key=int)
        mean = [found[d]["mean"] for d in sizes]
        half = [half_width(found[d]) for d in sizes]
        axis.errorbar([int(d) for d in sizes], mean, half, marker="o", label=METHODS[key].title)
    axis.set(xscale="log", xlabel="number of columns", ylabel="test accuracy")
    axis.set_title(f"margin {MARGIN}, n = {N_TRAIN}, epsilon = {EPSILON:g}", fontsize=10)
    axis.grid(alpha=0.3)
    axis.legend(frameon=False)
    save(figure, picture)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure what the file does not hold, print the table and draw the picture."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", nargs="+", default=list(LARGEST), choices=list(LARGEST))
    options.add_argument("--dimensions", nargs="+", type=int, default=list(DIMENSIONS))
    options.add_argument("--fits", type=int, default=FITS)
    options.add_argument("--refresh", action="store_true", help="run what the file has too")
    options.add_argument("--out", type=Path, default=RESULTS / "dimension.json")
    options.add_argument("--picture", type=Path, default=IMAGES / "dimension.svg")
    given = options.parse_args(argv)
    for d in given.dimensions:
        held = read(given.out).get("cells", {})
        wanted = [k for k in given.only if d <= LARGEST[k]]
        new = [k for k in wanted if given.refresh or str(d) not in held.get(k, {})]
        problem = halfspace(d) if new else None
        for key in new:
            reason = METHODS[key].missing(problem)
            if reason is not None:
                print(f"{key:22} skipped: {reason}", flush=True)
                continue
            cell = run_cell(problem, METHODS[key], EPSILON, given.fits)
            store(given.out, "cells", key, str(d), value=cell)
            print(f"{key:22} d={d:6} {cell['mean']:.4f} sd {cell['sd']:.4f}", flush=True)
        del problem  # the next one is as large
    merge(given.out, "versions", value=versions())
    print(dimension_table(read(given.out)))
    draw(given.out, given.picture)


if __name__ == "__main__":
    main()
