"""Time and memory beside scikit-learn, in one run, with the limit of each figure.

Every call of ours is paired with one of scikit-learn on the same rows, in alternating order. The
ratio of a pair is what to read: a busy machine slows both halves of it. With one thread seconds are
those of the processor, with more those of the wall. Memory is what a fit allocates at most beyond
its input, by tracemalloc, which sees every numpy array and nothing that C code keeps to itself.
"""

import argparse
import os
import subprocess
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

# Before numpy starts its threads.
os.environ["OMP_NUM_THREADS"] = "2" if "--threads 2" in " ".join(sys.argv) else "1"
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from scipy import sparse
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import dp_halfspace
from benchmarks.cells import RESULTS, merge, read, store, versions
from benchmarks.loaders import Benchmark
from benchmarks.problems import SPEED, load
from benchmarks.tables import speed_table
from dp_halfspace.privacy import interception

CLASSIFIERS = {
    "adaptive_margin": "AdaptiveMarginClassifier",
    "auc": "PrivateAUCClassifier",
    "kernel": "PrivateKernelClassifier",
    "objective_perturbation": "ObjectivePerturbationClassifier",
    "output_perturbation": "OutputPerturbationClassifier",
    # The default as it is constructed: on dense rows it estimates column scales, too.
    "units": "AdaptiveMarginClassifier",
}
# Largest ratio aimed at; for the import milliseconds.
LIMITS = {"adaptive_margin": 1.0, "auc": 1.0, "kernel": 1.3, "predict": 1.1, "import": 60.0}
# Sets that are small enough for hundreds of features.
KERNEL_SETS = ("adult", "ijcnn1", "satimage", "tiny")
PAIRS = 15
THREADS = os.environ["OMP_NUM_THREADS"]


def input_bytes(X: Any) -> int:
    """Memory of the rows themselves."""
    parts = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    return sum(part.nbytes for part in parts)


def now() -> float:
    """Seconds of the processor with one thread, of the wall with more."""
    return time.process_time() if THREADS == "1" else time.perf_counter()


def seconds(action: Callable[[], object]) -> float:
    """Time of one call."""
    start = now()
    action()
    return now() - start


def noise_share(fit: Callable[[], object]) -> float:
    """Share of a fit that noise takes, the median of five."""
    drawn, shares = [0.0], []

    def timed(value: Any, mechanism: Any, source: Any) -> Any:
        start = now()
        value = mechanism.perturb(value, source)
        drawn[0] += now() - start
        return value

    with interception.intercept_releases(timed):
        for _ in range(5):
            drawn[0] = 0.0
            total = seconds(fit)
            shares.append(drawn[0] / total)
    return median(shares)


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
        "baseline_seconds": median(times[theirs]),
        "ratio_quartiles": [float(q) for q in np.quantile(ratios, (0.25, 0.5, 0.75))],
    }


def baseline_of(key: str, model: Any, problem: Benchmark) -> Any:
    """Make the classifier of scikit-learn beside which one of ours is timed."""
    if key != "kernel":
        return LogisticRegression()
    size = model.fit(problem.X_train, problem.y_train).feature_map_.n_components
    return make_pipeline(RBFSampler(n_components=size), LogisticRegression())


def measure(problem: Benchmark, pairs: int = PAIRS) -> dict:
    """Measure every classifier on one data set, and the predictions of the default one."""
    X, y = problem.X_train, problem.y_train
    n, d = X.shape
    found: dict[str, Any] = {
        "shape": f"{n} x {d}{' CSR' if sparse.issparse(X) else ''} {X.dtype}",
        "pairs": pairs,
        "x_megabytes": input_bytes(X) / 1e6,
        "methods": {},
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LogisticRegression may reach its iteration limit
        for key, name in CLASSIFIERS.items():
            if key == "kernel" and problem.name not in KERNEL_SETS:
                continue
            if key == "units" and sparse.issparse(X):
                continue
            norm = None if key == "units" else problem.data_norm
            model = getattr(dp_halfspace, name)(data_norm=norm, classes=list(problem.classes))
            baseline = baseline_of(key, model, problem)
            ours, theirs = (lambda m=m: m.fit(X, y) for m in (model, baseline))
            timing = paired(ours, theirs, pairs)
            timing["megabytes"] = peak_memory(ours) / 1e6
            if key == "units":
                timing["limit_megabytes"] = 4e-6 * n * d + 5.0  # a copy in float32
            timing["noise_share"] = noise_share(ours)
            found["methods"][key] = timing
            if key == "adaptive_margin":
                svm = LinearSVC(max_iter=20).fit(X, y)
                calls = (lambda m=m: m.predict(X) for m in (model, svm))
                found["methods"]["predict"] = paired(*calls, pairs)
    return found


def import_milliseconds(repeats: int) -> dict:
    """Processor time of the import of one classifier after that of `sklearn.linear_model`."""
    code = (
        "import sklearn.linear_model, time; start = time.process_time(); "
        "from dp_halfspace import AdaptiveMarginClassifier; "
        "print(1e3 * (time.process_time() - start))"
    )
    run = [sys.executable, "-c", code]
    taken = [
        float(subprocess.run(run, capture_output=True, check=True, text=True).stdout)
        for _ in range(repeats)
    ]
    return {"quartiles": [float(q) for q in np.quantile(taken, (0.25, 0.5, 0.75))]}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure one data set after another and print the table of all so far."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", nargs="+", default=list(SPEED), choices=SPEED, metavar="SET")
    options.add_argument("--pairs", type=int, default=PAIRS)
    options.add_argument("--threads", choices=["1", "2"], default="1")
    options.add_argument("--out", type=Path, default=RESULTS / "speed.json")
    given = options.parse_args(argv)
    for name in given.only:
        label = name if THREADS == "1" else f"{name}, {THREADS} threads"
        store(given.out, "speed", label, value=measure(load(name), given.pairs))
        print(f"measured {name}", flush=True)
    if THREADS == "1":
        store(given.out, "import", value=import_milliseconds(given.pairs))
    merge(given.out, "limits", value=LIMITS)
    merge(given.out, "versions", value=versions())
    print(speed_table(read(given.out)))


if __name__ == "__main__":
    main()
