"""Fit time and memory of the linear classifiers beside LogisticRegression, in one run.

Every fit of ours is paired with one of scikit-learn's LogisticRegression at its defaults on the
same rows, in alternating order, with one BLAS thread on both sides. The ratio of a pair is what
to read: a busy machine slows both halves of it. Memory is what a fit allocates at most beyond
its input, by tracemalloc, which sees every numpy array and nothing that C code keeps to itself.
"""

import argparse
import os
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy starts its threads
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression

import dp_halfspace
from benchmarks.cells import RESULTS, merge, read, versions
from benchmarks.problems import SPEED, load
from benchmarks.tables import speed_table
from dp_halfspace.datasets import Benchmark

CLASSIFIERS = {
    "adaptive_margin": "AdaptiveMarginClassifier",
    "objective_perturbation": "ObjectivePerturbationClassifier",
    "output_perturbation": "OutputPerturbationClassifier",
}
PAIRS = 15


def input_bytes(X: Any) -> int:
    """Memory of the rows themselves."""
    parts = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    return sum(part.nbytes for part in parts)


def seconds(action: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def peak_memory(action: Callable[[], object]) -> int:
    """Largest number of bytes that a call holds beyond what was there before it."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    action()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak - before


def paired(ours: Callable[[], object], theirs: Callable[[], object], pairs: int) -> dict:
    """Time alternating pairs; the order within a pair alternates too."""
    times: dict[Callable[[], object], list[float]] = {ours: [], theirs: []}
    for action in times:
        action()  # not timed: imports and caches
    for i in range(pairs):
        for action in (ours, theirs) if i % 2 else (theirs, ours):
            times[action].append(seconds(action))
    ratios = np.divide(times[ours], times[theirs])
    return {
        "seconds": median(times[ours]),
        "logistic_seconds": median(times[theirs]),
        "ratio_quartiles": [float(q) for q in np.quantile(ratios, (0.25, 0.5, 0.75))],
    }


def measure(problem: Benchmark, pairs: int = PAIRS) -> dict:
    """Measure every classifier that exists on one data set."""
    X, y = problem.X_train, problem.y_train
    size = input_bytes(X)
    n, d = X.shape

    def logistic() -> object:
        return LogisticRegression().fit(X, y)

    found: dict[str, Any] = {
        "shape": f"{n} x {d}{' CSR' if sparse.issparse(X) else ''}",
        "pairs": pairs,
        "methods": {},
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LogisticRegression may reach its iteration limit
        for key, name in CLASSIFIERS.items():
            kind = getattr(dp_halfspace, name, None)
            if kind is None:
                continue
            model = kind(data_norm=problem.data_norm, classes=list(problem.classes))
            timing = paired(lambda model=model: model.fit(X, y), logistic, pairs)
            timing["memory_ratio"] = peak_memory(lambda model=model: model.fit(X, y)) / size
            found["methods"][key] = timing
        found["logistic_memory_ratio"] = peak_memory(logistic) / size
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Measure one data set after another and print the table of all so far."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", nargs="+", default=list(SPEED), choices=SPEED, metavar="SET")
    options.add_argument("--pairs", type=int, default=PAIRS)
    options.add_argument("--out", type=Path, default=RESULTS / "speed.json")
    given = options.parse_args(argv)
    for name in given.only:
        merge(given.out, "speed", name, value=measure(load(name), given.pairs))
        print(f"measured {name}", flush=True)
    merge(given.out, "versions", value=versions())
    print(speed_table(read(given.out)))


if __name__ == "__main__":
    main()
