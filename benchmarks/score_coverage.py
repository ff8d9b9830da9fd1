"""How often the intervals of private scores cover the truth, on shared tables.

``python benchmarks/score_coverage.py [TABLE ...] --runs 2000``: a private model is fitted to 60 %
of a table; the other rows are a population, whose score is known. Samples of it are scored with
fresh noise, and the intervals that hold the score are counted. Last come widths at epsilon .1 and
5,000 records beside the widths without privacy. Needs the folder that the environment variable
``DP_HALFSPACE_DATA`` names.
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

from dp_halfspace import PrivateTableClassifier
from dp_halfspace.metrics import METRICS, private_score

TABLES = ("abalone", "adult_raw", "compactiv", "magic", "winewhite")


class Population:
    """Records by their numbers, and what a model says of them."""

    def __init__(self, labels: Any, probabilities: Any, classes: Any) -> None:
        self.labels, self.probabilities, self.classes_ = labels, probabilities, classes

    def __len__(self) -> int:
        return len(self.labels)

    def predict_proba(self, X: Any) -> Any:
        """Return the kept probabilities."""
        return self.probabilities[X[:, 0]]

    def predict(self, X: Any) -> Any:
        """Return the likelier labels."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def drawn(self, rng: np.random.Generator, n: int) -> tuple[Any, Any]:
        """Draw numbers of records, and their labels."""
        index = rng.integers(0, len(self), n)
        return index[:, None], self.labels[index]


def population(name: str) -> Population:
    """Fit a model to a part of a table, and keep the other rows."""
    folder = Path(os.environ["DP_HALFSPACE_DATA"]) / "tables"
    entry = json.loads((folder / "schema.json").read_text())[name]
    frame = pd.read_csv(folder / f"{name}.csv.bz2")
    labels = frame.pop("target").astype(str).to_numpy()
    X, Z, y, t = train_test_split(frame, labels, test_size=0.4, random_state=0)
    model = PrivateTableClassifier(epsilon=1, schema=entry, classes=entry["target"])
    model.fit(X, y)
    return Population(t, model.predict_proba(Z), model.classes_)


def coverage(people: Population, metric: str, n: int, runs: int, **budget: Any) -> float:
    """Return the share of intervals that hold the score of the population."""
    everybody = np.arange(len(people))[:, None]
    truth = private_score(people, everybody, people.labels, metric=metric, epsilon=np.inf).value
    if metric == "confusion_matrix":
        truth = truth * n / len(people)
    if metric == "calibration_curve":
        # A bin that nobody is in has no share of positives.
        bins = np.bincount((10 * people.probabilities[:, 1]).astype(int).clip(0, 9), minlength=10)
        truth = np.where(bins > 0, truth, np.nan)
    rng, covered = np.random.default_rng(0), []
    for _ in range(runs):
        X, y = people.drawn(rng, n)
        low, high = private_score(people, X, y, metric=metric, **budget).interval
        inside = np.asarray((low <= truth) & (truth <= high), dtype=float)
        covered.append(np.nanmean(np.where(np.isnan(truth), np.nan, inside)))
    return float(np.mean(covered))


def width(people: Population, metric: str, epsilon: float, runs: int = 20) -> float:
    """Return the mean width of an interval for 5,000 records, as a share."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(runs):
        X, y = people.drawn(rng, 5000)
        low, high = private_score(people, X, y, metric=metric, epsilon=epsilon).interval
        found.append(np.mean(high - low) / (5000 if metric == "confusion_matrix" else 1))
    return float(np.mean(found))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--runs", type=int, default=2000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    problems = {name: population(name) for name in options.tables or TABLES}
    for budget in (
        {"epsilon": 1.0, "delta": 1e-6, "n": 2000},
        {"epsilon": 1.0, "delta": 0, "n": 2000},
        {"epsilon": 0.5, "delta": 1e-6, "n": 1000},
        {"epsilon": 0.5, "delta": 0, "n": 1000},
    ):
        print(f"\n{budget}\n\n| table | " + " | ".join(METRICS) + " |")
        print("|---|" + "---|" * len(METRICS))
        for name, people in problems.items():
            cells = [f"{coverage(people, m, runs=options.runs, **budget):.3f}" for m in METRICS]
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    print("\n| width of 95 % | " + " | ".join(METRICS) + " |\n|---|" + "---|" * len(METRICS))
    for name, people in problems.items():
        for epsilon in (0.1, np.inf):
            cells = [f"{width(people, m, epsilon):.3f}" for m in METRICS]
            print(f"| {name}, epsilon {epsilon:g} | " + " | ".join(cells) + " |", flush=True)
