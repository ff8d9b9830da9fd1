"""The loss over all pairs of a positive and a negative record: time, beside brute force.

First the sum over all pairs of scores, value and derivatives, for up to ten million scores;
brute force is measured on some pairs and extrapolated. Then certified fits of the pairwise
logistic loss beside ``LogisticRegression`` at its defaults on the same rows, in the same
process, alternating, with one BLAS thread; medians of wall-clock times.

Run ``python benchmarks/pairwise.py``; numbers go to ``benchmarks/results/pairwise.json``.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import scipy
import sklearn
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from dp_halfspace._sklearn import single_blas_thread
from dp_halfspace.datasets import load_benchmark
from dp_halfspace.optim import LOGISTIC, PairRisk, clipped_rows, minimisers, tolerance
from dp_halfspace.optim.objectives.pair_grid import logistic_pairs

RESULTS = Path(__file__).parent / "results" / "pairwise.json"
SIZES = (10**5, 10**6, 10**7)
RIDGES = (1e-2, 1e-3)
REPEATS = 7
_BRUTE = 2000


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def brute_force(positive: np.ndarray, negative: np.ndarray) -> tuple[float, Any, Any]:
    """Visit every pair, as plain numpy does it."""
    x = positive[:, None] - negative
    e = np.exp(-np.abs(x))
    value = (np.maximum(-x, 0.0) + np.log1p(e)).sum()
    slopes = np.where(x > 0, e, 1.0) / (1.0 + e)
    return float(value), slopes.sum(axis=1), slopes.sum(axis=0)


def sums(n_scores: int, share: float = 0.1) -> dict[str, float]:
    """Time value and derivatives for scores of two Gaussian classes."""
    rng = np.random.default_rng(0)
    scores = 2.0 * rng.standard_normal(n_scores)
    cut = int(share * n_scores)
    positive, negative = scores[:cut] + 2.0, scores[cut:]
    few = positive[:_BRUTE], negative[:_BRUTE]
    # The first run builds tables and maps memory.
    fast = min(seconds(lambda: logistic_pairs(positive, negative)) for _ in range(REPEATS + 1))
    per_pair = min(seconds(lambda: brute_force(*few)) for _ in range(REPEATS)) / _BRUTE**2
    brute = per_pair * cut * (n_scores - cut)
    return {
        "scores": n_scores,
        "pairs": cut * (n_scores - cut),
        "milliseconds": round(1e3 * fast, 2),
        "nanoseconds_per_score": round(1e9 * fast / n_scores, 1),
        "sort_milliseconds": round(1e3 * seconds(lambda: np.sort(scores)), 2),
        "brute_force_seconds": round(brute, 1),
        "brute_force_over_ours": round(brute / fast),
    }


def certified(
    X: Any, positive: np.ndarray, ridge: float, data_norm: float, normaliser: float
) -> tuple[np.ndarray, float]:
    """Clip, fix the public tolerance and minimise: what an estimator does before noise."""
    rows = clipped_rows(X, data_norm)
    risk = PairRisk(LOGISTIC, *rows.shape, data_norm, rows.block_rows, normaliser)
    radius, change = risk.radius(ridge), risk.sensitivity(ridge) * risk.total(ridge)
    rule = tolerance(risk, ridge, radius, change)
    classes, weights = positive.astype(int), np.ones(2)
    w = minimisers(risk, rows, classes, weights, ridge=ridge, target=rule.target, radius=radius)
    return w[0], 2.0 * rule.certified / change


def reference(X: Any, y: np.ndarray) -> LogisticRegression:
    """Fit scikit-learn's default."""
    with single_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LogisticRegression().fit(X, y)


def fits(name: str, ridge: float) -> dict[str, Any]:
    """Alternate the two and return medians in milliseconds."""
    data = load_benchmark(name)
    X, Z = (
        rows.toarray() if sparse.issparse(rows) else np.ascontiguousarray(rows)
        for rows in (data.X_train, data.X_test)
    )
    positive = data.y_train == 1
    n_pairs = int(positive.sum()) * int((~positive).sum())
    # Here as in the literature the sum is divided by the number of pairs.
    arguments = (X, positive, ridge, data.data_norm, float(n_pairs))
    ours, theirs, ratios = [], [], []
    for _ in range(REPEATS):
        first = seconds(lambda: certified(*arguments))
        second = seconds(lambda: reference(X, data.y_train))
        ours.append(first)
        theirs.append(second)
        ratios.append(first / second)
    w, inflation = certified(*arguments)
    return {
        "problem": name,
        "ridge": ridge,
        "pairs": n_pairs,
        "certified_ms": round(1e3 * statistics.median(ours), 2),
        "logistic_regression_ms": round(1e3 * statistics.median(theirs), 2),
        "ratio": round(statistics.median(ratios), 3),
        "certificate_share_of_sensitivity": float(f"{inflation:.2g}"),
        "auc": round(float(roc_auc_score(data.y_test == 1, Z @ w)), 4),
        "auc_logistic_regression": round(
            float(roc_auc_score(data.y_test == 1, reference(X, data.y_train).decision_function(Z))),
            4,
        ),
    }


def main() -> None:
    scores = []
    for n_scores in SIZES:
        row = sums(n_scores)
        scores.append(row)
        print(
            f"{n_scores:>9} scores: {row['milliseconds']:8.1f} ms, "
            f"{row['nanoseconds_per_score']:.0f} ns each, sort {row['sort_milliseconds']:.1f} ms, "
            f"brute force {row['brute_force_seconds']:.1f} s, {row['brute_force_over_ours']} times"
        )
    rows = []
    for name in ("ijcnn1", "http"):
        for ridge in RIDGES:
            found = fits(name, ridge)
            rows.append(found)
            print(
                f"{name:7} ridge {ridge:g}: {found['certified_ms']:7.1f} ms certified, "
                f"{found['logistic_regression_ms']:7.1f} ms LogisticRegression, "
                f"ratio {found['ratio']:.2f}, AUC {found['auc']:.4f} beside "
                f"{found['auc_logistic_regression']:.4f}"
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
    content = {"machine": machine, "scores": scores, "fits": rows}
    RESULTS.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
