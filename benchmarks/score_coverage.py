"""How often the intervals of private scores cover the truth, on shared tables.

``python -m benchmarks.score_coverage [TABLE ...] --runs 2000``: a private model is fitted to 60 %
of a table; the other rows are a population, whose scores are known. Samples of it are drawn as
counts and released with fresh noise, and the intervals that hold the score are counted, as in
``benchmarks/score_grid.py``. Last come widths at epsilon .1 and 1 and 5,000 records beside the
widths without privacy. Needs the folder that the environment variable ``DP_HALFSPACE_DATA`` names.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy starts its threads
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from benchmarks.score_grid import CASES, Found, found, released, sums
from dp_halfspace import PrivateTableClassifier
from dp_halfspace.metrics import METRICS, _tallies

# The last three have a class of 2 to 6 %.
TABLES = ("abalone", "adult_raw", "compactiv", "magic", "winewhite", "casp_rare", "stroke", "sylva")


class Population:
    """Labels of records, and the probabilities that a model states for them."""

    def __init__(self, labels: Any, probabilities: Any, classes: Any) -> None:
        self.probabilities, self.classes_ = probabilities, classes
        self.codes = np.searchsorted(classes, labels)

    def predict_proba(self, X: Any) -> Any:
        """Return the kept probabilities."""
        return self.probabilities.copy()

    def predict(self, X: Any) -> Any:
        """Return the likelier labels."""
        return self.classes_[self.probabilities.argmax(axis=1)]

    def outcomes(self, metric: str) -> Any:
        """Return what the metric takes of every record."""
        return METRICS[metric].outcome(self, None, self.codes, self.classes_)

    def counts(self, metric: str) -> Any:
        """Return the counts of all records from which those of a sample follow."""
        if not METRICS[metric].has_cells:
            cells = _tallies.Cells(len(self.classes_))
            return _tallies.count_confusions(self.outcomes(metric), self.codes, cells)
        cells = _tallies.Cells(len(self.classes_), _tallies.HALF_LOG_ODDS)
        return _tallies.count_scores(self.outcomes(metric), self.codes, cells)


def population(name: str) -> Population:
    """Fit a model to a part of a table, and keep the other rows."""
    folder = Path(os.environ["DP_HALFSPACE_DATA"]) / "tables"
    entry = json.loads((folder / "schema.json").read_text())[name]
    frame = pd.read_csv(folder / f"{name}.csv.bz2")
    labels = frame.pop("target").astype(str).to_numpy()
    X, Z, y, t = train_test_split(frame, labels, test_size=0.4, random_state=0)
    model = PrivateTableClassifier(epsilon=1, schema=entry, classes=entry["target"], random_state=0)
    model.fit(X, y)
    order = np.argsort(model.classes_)
    return Population(t, model.predict_proba(Z)[:, order], model.classes_[order])


def figures(
    people: Population, metric: str, n: int, runs: int, *, epsilon: float, delta: float
) -> Found:
    """Return coverage and width over samples of a population."""
    rng, case = np.random.default_rng(0), CASES[metric]
    if case.losses is None:
        shares = people.counts(metric)
        tables = rng.multinomial(n, shares.ravel() / shares.sum(), size=runs)
        counts = case.counts(tables.reshape(runs, *shares.shape).astype(float))
        truth = case.truth(shares / shares.sum())
    else:
        loss, shares = np.unique(people.outcomes(metric), return_counts=True)
        counts = sums(rng.multinomial(n, shares / shares.sum(), size=runs), loss / _tallies.SCALE)
        truth = METRICS[metric].largest * (shares @ loss) / shares.sum() / _tallies.SCALE
    return found(metric, released(rng, metric, counts, n, epsilon=epsilon, delta=delta), truth)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--runs", type=int, default=2000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    problems = {name: population(name) for name in options.tables or TABLES}
    head = " | ".join(METRICS) + " |\n|---|" + "---|" * len(METRICS)
    for n, budget in (
        (2000, {"epsilon": 1.0, "delta": 1e-6}),
        (2000, {"epsilon": 1.0, "delta": 0.0}),
        (500, {"epsilon": 1.0, "delta": 1e-6}),
        (1000, {"epsilon": 0.5, "delta": 1e-6}),
        (1000, {"epsilon": 0.5, "delta": 0.0}),
    ):
        print(f"\nn={n}, {budget}\n\n| table | {head}")
        for name, people in problems.items():
            rows = [figures(people, m, n, options.runs, **budget).coverage for m in METRICS]
            print(f"| {name} | " + " | ".join(f"{share:.3f}" for share in rows) + " |", flush=True)
    print(f"\n| width of 95 % | {head}")
    for name, people in problems.items():
        for epsilon in (0.1, 1.0, np.inf):
            rows = []
            for m in METRICS:
                width = figures(people, m, 5000, 200, epsilon=epsilon, delta=1e-6).width
                rows.append(f"{width / (5000 if m == 'confusion_matrix' else 1):.3f}")
            print(f"| {name}, epsilon {epsilon:g} | " + " | ".join(rows) + " |", flush=True)
