"""A class of 5 % of the records: area under the ROC curve, and which fits warn.

``python -m benchmarks.rare_outlook [--tables 12]``: made-up tables with few strong directions and
heavy tails, and an area of .8 without privacy. In original units half of the columns are skewed and
12 % of the entries missing. Prints areas of `PrivateAUCClassifier`, and a star where it warns.
Needs no data.
"""

from __future__ import annotations

import argparse
import math
import warnings
from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.metrics import roc_auc_score

from dp_halfspace import PrivateAUCClassifier

_SHARE, _AREA, _MISSING, _TESTED = 0.05, 0.8, 0.12, 10_000


def tables(n: int, d: int, is_raw: bool, seed: int) -> tuple[Any, ...]:
    """Make rows and labels to train and to test on."""
    rng = np.random.default_rng([seed, n, d])
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    total = n + _TESTED
    y = (rng.random(total) < _SHARE).astype(int)
    mean = rng.normal(size=d)
    mean *= math.sqrt(2.0) * ndtri(_AREA) / np.linalg.norm(mean)
    tails = np.sqrt(3.0 / rng.chisquare(5, total))[:, None]
    rows = (rng.normal(size=(total, d)) * tails + y[:, None] * mean) / np.sqrt(np.arange(1, d + 1))
    rows @= turn
    if is_raw:
        rows /= rows.std(axis=0)
        is_skewed = rng.random(d) < 0.5
        rows[:, is_skewed] = np.exp(0.7 * rows[:, is_skewed])
        rows = (rows + rng.normal(size=d)) * 10.0 ** rng.uniform(-2, 3, d)
        rows[rng.random(rows.shape) < _MISSING] = np.nan
    return rows[:n], y[:n], rows[n:], y[n:]


def area(n: int, d: int, epsilon: float, is_raw: bool, seed: int) -> tuple[float, bool]:
    """Fit once; return the area, and whether the fit warned of what to expect."""
    X, y, Z, t = tables(n, d, is_raw, seed)
    norm = None if is_raw else math.sqrt(float(np.sum(1.0 / np.arange(1, d + 1))))
    model = PrivateAUCClassifier(epsilon=epsilon, classes=[0, 1], data_norm=norm)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    warned = any("expect about" in str(found.message) for found in caught)
    return float(roc_auc_score(t, model.decision_function(Z))), warned


def main() -> None:
    """Run."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--tables", type=int, default=12)
    given = options.parse_args()
    for is_raw in (True, False):
        for d in (4, 10, 30):
            for n in (300, 800, 2000, 5000):
                cells = []
                for epsilon in (0.3, 1.0, 3.0):
                    found = [area(n, d, epsilon, is_raw, seed) for seed in range(given.tables)]
                    mean = float(np.mean([value for value, _ in found]))
                    cells.append(f"{mean:.2f}{'*' if found[0][1] else ''}")
                print("raw" if is_raw else "stated", d, n, " / ".join(cells), flush=True)


if __name__ == "__main__":
    main()
