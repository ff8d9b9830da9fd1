"""Certified minimisation beside ``LogisticRegression`` on the same data, same process.

Both hold BLAS at one thread and alternate; medians of wall-clock times. The certified
solver reaches the gradient that the privacy proof asks for, scikit-learn its default
tolerance, so a ratio of 1 means that the certificate is free.

Run ``python benchmarks/minimiser.py``; numbers go to ``benchmarks/results/minimiser.json``.
"""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import scipy
import sklearn
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from dp_halfspace._sklearn import single_blas_thread
from dp_halfspace.optim import LOGISTIC, clipped_rows, empirical_risk, minimisers, tolerance

RESULTS = Path(__file__).parent / "results" / "minimiser.json"
REPEATS = 7
RIDGES = (1e-2, 1e-3)


def problems() -> Iterator[tuple[str, Any, np.ndarray]]:
    rng = np.random.default_rng(0)
    for n, d in ((4_000, 36), (50_000, 22), (100_000, 50), (10_000, 1_000)):
        X = rng.standard_normal((n, d)) * np.geomspace(1.0, 0.1, d)
        X /= np.sqrt((X**2).sum(axis=1).mean())
        noise = 0.1 * rng.standard_normal(n)
        yield f"dense {n} x {d}", X, np.where(X[:, 0] + noise > 0, 1.0, -1.0)
    X = sparse.random(10_000, 10_000, density=5e-3, format="csr", random_state=0)
    w = rng.standard_normal(10_000)
    yield "sparse 10000 x 10000", X, np.where(X @ w > 0, 1.0, -1.0)


def certified(X: Any, y: np.ndarray, ridge: float) -> np.ndarray:
    """Clip, fix the public tolerance and minimise: what an estimator does before noise."""
    rows = clipped_rows(X, 1.0, 1.0)
    risk = empirical_risk(LOGISTIC, *rows.shape, 2, math.sqrt(2.0), rows.block_rows)
    radius = risk.radius(ridge)
    rule = tolerance(risk, ridge, radius, risk.sensitivity(ridge) * risk.total(ridge))
    classes, weights = (y > 0).astype(int), np.ones(2)
    return minimisers(risk, rows, classes, weights, ridge=ridge, target=rule.target, radius=radius)


def reference(X: Any, y: np.ndarray, ridge: float) -> LogisticRegression:
    """Fit scikit-learn's default solver with the same regulariser."""
    with single_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LogisticRegression(C=1.0 / (ridge * len(y))).fit(X, y)


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def compare(X: Any, y: np.ndarray, ridge: float) -> dict[str, float]:
    """Alternate the two and return medians in milliseconds."""
    ours, theirs = [], []
    for _ in range(REPEATS):
        ours.append(seconds(lambda: certified(X, y, ridge)))
        theirs.append(seconds(lambda: reference(X, y, ridge)))
    first, second = statistics.median(ours), statistics.median(theirs)
    return {
        "certified_ms": round(1e3 * first, 2),
        "logistic_regression_ms": round(1e3 * second, 2),
        "ratio": round(first / second, 3),
    }


def main() -> None:
    rows = []
    for name, X, y in problems():
        for ridge in RIDGES:
            row = {"problem": name, "ridge": ridge, **compare(X, y, ridge)}
            rows.append(row)
            print(
                f"{name:22} ridge {ridge:g}: {row['certified_ms']:8.1f} ms certified, "
                f"{row['logistic_regression_ms']:8.1f} ms LogisticRegression, "
                f"ratio {row['ratio']:.2f}"
            )
    machine = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "processor": platform.machine(),
        "repeats": REPEATS,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"machine": machine, "results": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
