"""Features of columns on real tables: kernel="auto" beside the linear default.

``python -m benchmarks.features``. Tables in natural units, 70 % train. ``linear`` is
AdaptiveMarginClassifier and ``whitened`` PrivateKernelClassifier, both with estimated column
scales; ``ranges`` has columns on [-1, 1] by their documented ranges. Accuracy, CPU seconds of a
fit, and the peak of what a fit allocates (tracemalloc, one more fit) go to
``results/features.json``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
import tracemalloc
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy starts its threads

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from benchmarks.cells import RESULTS, merge, store, versions
from dp_halfspace import AdaptiveMarginClassifier, PrivateKernelClassifier

EPSILONS = (0.3, 1.0, 3.0)
TABLES = (
    "casp", "magic", "phoneme", "compactiv", "abalone", "winewhite", "page-blocks", "segment",
    "optdigits", "stroke",
)  # fmt: skip
WAYS = ("linear", "whitened", "ranges")
_MIDDLE = 0.5

Rows = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]


def load(name: str, folder: Path) -> tuple[Rows, NDArray[np.float64]]:
    """Return the numbers of a table, train and test, and the ranges of its columns."""
    schema = json.loads((folder / "schema.json").read_text())[name]["columns"]
    numbers = [column for column, values in schema.items() if not isinstance(values[0], str)]
    frame = pd.read_csv(folder / f"{name}.csv.bz2")
    y = frame["target"].astype(str).to_numpy()
    i, j = train_test_split(np.arange(len(y)), test_size=0.3, random_state=0, stratify=y)
    X = frame[numbers].to_numpy(float)
    return (X[i], y[i], X[j], y[j]), np.array([schema[column] for column in numbers], float)


def scaled(X: NDArray[np.float64], ranges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bring columns to [-1, 1] by their public ranges; a missing value is in the middle."""
    values = np.clip((X - ranges[:, 0]) / np.diff(ranges)[:, 0], 0.0, 1.0)
    return 2.0 * np.nan_to_num(values, nan=_MIDDLE) - 1.0


def measured(way: str, data: Rows, ranges: Any, epsilon: float, fits: int) -> dict[str, Any]:
    """Fit with fresh features and noise."""
    X, y, Z, t = data
    public: dict[str, Any] = {"epsilon": epsilon, "classes": sorted(set(y)), "data_norm": None}
    if way == "ranges":
        X, Z, public["data_norm"] = scaled(X, ranges), scaled(Z, ranges), math.sqrt(X.shape[1])
    make = AdaptiveMarginClassifier if way == "linear" else PrivateKernelClassifier
    accuracies, seconds = [], []
    for _ in range(fits):
        started = time.process_time()
        model = make(**public).fit(X, y)
        seconds.append(time.process_time() - started)
        accuracies.append(float(model.score(Z, t)))
    tracemalloc.start()
    make(**public).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "mean": float(np.mean(accuracies)),
        "accuracies": accuracies,
        "cpu_seconds": round(float(np.median(seconds)), 3),
        "peak_megabytes": round(peak / 2**20, 1),
        "n_train": len(y),
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, store, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=TABLES)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--fits", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULTS / "features.json")
    given = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    folder = Path(os.environ["DP_HALFSPACE_DATA"]) / "tables"
    merge(given.out, "versions", value=versions())
    for name in given.tables:
        data, ranges = load(name, folder)
        for epsilon in given.epsilons:
            for way in given.ways:
                cell = measured(way, data, ranges, epsilon, given.fits)
                store(given.out, "cells", name, way, f"{epsilon:g}", value=cell)
                print(
                    f"{name:12} {way:9} epsilon {epsilon:g}: {cell['mean']:.3f}, "
                    f"{cell['cpu_seconds']} s, {cell['peak_megabytes']} MB",
                    flush=True,
                )


if __name__ == "__main__":
    main()
