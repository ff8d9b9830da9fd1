"""PrivateKernelClassifier: accuracy beside the linear default, time beside RBFSampler.

Accuracy: both classifiers with their defaults, means over fits with fresh features and noise.
Time and memory: a fit beside scikit-learn's ``RBFSampler`` with as many features and
``LogisticRegression``, in alternating order, one BLAS thread on both sides; CPU seconds.
Writes ``results/kernel.json`` and prints its tables.
"""

import argparse
import math
import os
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy starts its threads
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

import dp_halfspace
from benchmarks.cells import RESULTS, merge, read, store, versions
from benchmarks.loaders import Benchmark
from benchmarks.problems import load

EPSILONS = (0.3, 1.0, 3.0, math.inf)
SETS = ("satimage", "ijcnn1", "adult", "cancer", "digits", "checkers")
METHODS = {"kernel": "PrivateKernelClassifier", "linear": "AdaptiveMarginClassifier"}
TIMED = (("satimage", 600), ("adult", 600), ("ijcnn1", 600), ("ijcnn1", 1000))
# Round upper limits of the thirty measurements, in the order of the columns.
_CANCER = (
    30, 40, 200, 2600, 0.2, 0.4, 0.5, 0.25, 0.4, 0.1, 3, 5, 25, 550, 0.04, 0.15, 0.4, 0.06,
    0.08, 0.03, 40, 50, 260, 4300, 0.25, 1.1, 1.3, 0.3, 0.7, 0.25,
)  # fmt: skip


def cancer() -> Benchmark:
    """Breast cancer of scikit-learn: 70 % train; columns divided by round limits."""
    X, y = load_breast_cancer(return_X_y=True)
    X, Z, y, t = train_test_split(
        X / np.array(_CANCER), y, test_size=0.3, random_state=0, stratify=y
    )
    return Benchmark("cancer", X, y, Z, t, math.sqrt(30.0), (0, 1))


def checkers(n_train: int = 20_000, n_test: int = 5_000) -> Benchmark:
    """Points of a square with the colours of a board of four by four fields."""
    X = np.random.default_rng(0).uniform(-1, 1, size=(n_train + n_test, 2))
    y = np.floor(2 * X).sum(axis=1).astype(np.int64) % 2
    return Benchmark(
        "checkers", X[:n_train], y[:n_train], X[n_train:], y[n_train:], math.sqrt(2.0), (0, 1)
    )


def problem(name: str) -> Benchmark:
    """Load a set by its name."""
    own = {"cancer": cancer, "checkers": checkers}
    return own[name]() if name in own else load(name)


def make(method: str, data: Benchmark, epsilon: float, **params: Any) -> Any:
    """Make one of our classifiers with what is public about a set."""
    classifier = getattr(dp_halfspace, METHODS[method])
    if method == "kernel":
        params = {"kernel": "rbf", **params}
    return classifier(
        epsilon=epsilon, data_norm=data.data_norm, classes=list(data.classes), **params
    )


def accuracy(data: Benchmark, method: str, epsilon: float, fits: int) -> dict[str, float]:
    """Fit several times and score on the test set."""
    scores = [
        make(method, data, epsilon).fit(data.X_train, data.y_train).score(data.X_test, data.y_test)
        for _ in range(fits)
    ]
    return {"mean": float(np.mean(scores)), "sd": float(np.std(scores)), "fits": fits}


def cpu_seconds(action: Callable[[], object]) -> float:
    """CPU time of one call."""
    start = time.process_time()
    action()
    return time.process_time() - start


def peak_megabytes(action: Callable[[], object]) -> float:
    """Largest amount of memory that a call holds beyond what was there before it."""
    tracemalloc.start()
    action()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def timing(data: Benchmark, n_components: int, pairs: int) -> dict[str, float]:
    """Fit in pairs; then once more each for the memory."""
    ours = make("kernel", data, 1.0, n_components=n_components)
    theirs = make_pipeline(
        RBFSampler(gamma=1.0 / data.data_norm**2, n_components=n_components, random_state=0),
        LogisticRegression(),
    )
    times: list[tuple[float, float]] = []
    for _ in range(pairs):
        times.append(
            (
                cpu_seconds(lambda: ours.fit(data.X_train, data.y_train)),
                cpu_seconds(lambda: theirs.fit(data.X_train, data.y_train)),
            )
        )
    return {
        "seconds": median(a for a, _ in times),
        "sklearn_seconds": median(b for _, b in times),
        "ratio": median(a / b for a, b in times),
        "megabytes": peak_megabytes(lambda: ours.fit(data.X_train, data.y_train)),
        "sklearn_megabytes": peak_megabytes(lambda: theirs.fit(data.X_train, data.y_train)),
    }


def prediction(n: int = 1_000_000, d: int = 22) -> dict[str, float]:
    """Label a million rows."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, size=(20_000, d)), rng.integers(2, size=20_000)
    model = dp_halfspace.PrivateKernelClassifier(kernel="rbf", data_norm=4.0, classes=[0, 1]).fit(
        X, y
    )
    many = rng.uniform(-1, 1, size=(n, d))
    return {
        "rows": n,
        "n_components": model.n_components_,
        "seconds": cpu_seconds(lambda: model.predict(many)),
        "megabytes": peak_megabytes(lambda: model.predict(many)),
        "input_megabytes": many.nbytes / 2**20,
    }


def tables(found: dict[str, Any]) -> str:
    """Print what is stored as Markdown."""
    lines = ["| accuracy | " + " | ".join(f"epsilon {e:g}" for e in EPSILONS) + " |"]
    lines += ["|---" * (len(EPSILONS) + 1) + "|"]
    for name, cells in found.get("accuracy", {}).items():
        row = []
        for e in EPSILONS:
            pair = [cells.get(m, {}).get(f"{e:g}", {}).get("mean", math.nan) for m in METHODS]
            shown = [f"{v:.4f}" for v in pair]
            best = int(np.nanargmax(pair)) if not np.isnan(pair).all() else 0
            shown[best] = f"**{shown[best]}**"
            row.append(" / ".join(shown))
        lines.append(f"| {name} | " + " | ".join(row) + " |")
    keys = ("seconds", "sklearn_seconds", "ratio", "megabytes", "sklearn_megabytes")
    lines += ["", "| fit | " + " | ".join(keys) + " |", "|---" * (len(keys) + 1) + "|"]
    for name, cell in found.get("timing", {}).items():
        lines.append(f"| {name} | " + " | ".join(f"{cell[k]:.2f}" for k in keys) + " |")
    lines += ["", str(found.get("prediction"))]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, store, print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sets", nargs="*", default=list(SETS), choices=SETS)
    options.add_argument("--fits", type=int, default=10)
    options.add_argument("--pairs", type=int, default=5)
    options.add_argument("--parts", nargs="*", default=["accuracy", "timing", "rest"])
    options.add_argument("--out", type=Path, default=RESULTS / "kernel.json")
    given = options.parse_args(argv)
    for name in given.sets if "accuracy" in given.parts else ():
        data = problem(name)
        for method in METHODS:
            for epsilon in EPSILONS:
                cell = accuracy(data, method, epsilon, given.fits)
                store(given.out, "accuracy", name, method, f"{epsilon:g}", value=cell)
                print(f"{name:9} {method:7} {epsilon:4g} {cell['mean']:.4f}", flush=True)
    for name, size in TIMED if "timing" in given.parts else ():
        cell = timing(problem(name), size, given.pairs)
        store(given.out, "timing", f"{name}, {size} features", value=cell)
        print(name, size, cell, flush=True)
    if "rest" in given.parts:
        store(given.out, "prediction", value=prediction())
    merge(given.out, "versions", value=versions())
    print(tables(read(given.out)))


if __name__ == "__main__":
    main()
