"""Rare positives: area under the ROC curve of private rankings, beside boosted random trees.

``python -m benchmarks.rare [TABLE ...] --fits 10`` needs the shared tables in the folder named by
the environment variable ``DP_HALFSPACE_DATA``. Every method gets the public ranges of the columns.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from benchmarks.descent import FIXED, fit_dp_sgd
from dp_halfspace import ObjectivePerturbationClassifier, PrivateAUCClassifier
from dp_halfspace.preprocessing import PublicScaler
from dp_halfspace.privacy import gdp_mu

TABLES = "casp_rare", "stroke", "sylva"
EPSILONS = (0.1, 0.3, 1.0, 3.0)
# Of each round, a tree whose splits look at no record: their number, depth, rate, largest step.
TREES, DEPTH, RATE, LARGEST = 100, 4, 0.3, 3.0


def leaves(X: Any, columns: Any, cuts: Any, depth: int) -> Any:
    """Drop rows of [0, 1] through a complete tree; each node has a column and a cut."""
    node = np.zeros(len(X), dtype=np.intp)
    for _ in range(depth):
        node = 2 * node + 1 + (X[np.arange(len(X)), columns[node]] > cuts[node])
    return node - (2**depth - 1)


def noise_of(trees: int, mu: float) -> float:
    """Return the deviation of the noise on the sums of every leaf, for all rounds together.

    A record adds (p - y, p (1 - p)) to one leaf. Replacing it moves the sums by at most 2, which
    two records of one leaf attain: one predicted 1 and labelled 0, the other the opposite.
    """
    return 2.0 * math.sqrt(trees) / mu


def boosted(X: Any, y: Any, Z: Any, mu: float, *, trees: int = TREES, depth: int = DEPTH) -> Any:
    """Score Z by Newton steps in the leaves of random trees (after Maddock et al., 2022).

    Each round releases the sums of gradients and of curvatures of every leaf.
    """
    rng, noise = np.random.default_rng(), noise_of(trees, mu)
    fitted, scores, n_leaves = np.zeros(len(X)), np.zeros(len(Z)), 2**depth
    for _ in range(trees):
        tree = rng.integers(X.shape[1], size=n_leaves), rng.random(n_leaves), depth
        place, p = leaves(X, *tree), expit(fitted)
        slope, bend = (
            np.bincount(place, part, minlength=n_leaves) + noise * rng.standard_normal(n_leaves)
            for part in (p - y, p * (1.0 - p))
        )
        step = -RATE * np.clip(slope / (np.maximum(bend, 0.0) + noise), -LARGEST, LARGEST)
        fitted += step[place]
        scores += step[leaves(Z, *tree)]
    return scores


def table(name: str) -> tuple[Any, ...]:
    """Read a table, categories as columns of 0 and 1; rows, which are rare, and ranges."""
    folder = Path(os.environ["DP_HALFSPACE_DATA"]) / "tables"
    frame = pd.read_csv(folder / f"{name}.csv.bz2")
    labels = frame.pop("target").astype(str)
    columns, ranges = [], []
    for column, rule in json.loads((folder / "schema.json").read_text())[name]["columns"].items():
        is_text = isinstance(rule[0], str)
        parts = [frame[column] == value for value in rule] if is_text else [frame[column]]
        columns += [part.to_numpy(float) for part in parts]
        ranges += [(0.0, 1.0) if is_text else (rule[0], max(rule[1], rule[0] + 1e-9))] * len(parts)
    return np.column_stack(columns), (labels == labels.value_counts().index[-1]), np.array(ranges)


def areas(parts: list[Any], ranges: Any, epsilon: float) -> dict[str, float]:
    """Fit each method once."""
    X, Z, y, t = parts
    scaler = PublicScaler(ranges).fit(X)
    train, test = scaler.transform(X), scaler.transform(Z)
    delta, norm = len(y) ** -2.0, math.sqrt(X.shape[1])
    budget: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "classes": [False, True]}
    plain = ObjectivePerturbationClassifier(**budget, data_norm=norm, preconditioner=False)
    scores = {
        "public ranges": PrivateAUCClassifier(**budget, data_norm=norm).fit(train, y),
        "private column scales": PrivateAUCClassifier(**budget).fit(X, y),
        "gradient descent": fit_dp_sgd(train, y, **budget, data_norm=norm, **FIXED),
        "objective": plain.fit(train, y),
    }
    found = {
        name: model.decision_function(Z if name == "private column scales" else test)
        for name, model in scores.items()
    }
    unit = [np.nan_to_num((part + 1.0) / 2.0, nan=0.5) for part in (train, test)]
    found["random trees"] = boosted(unit[0], y, unit[1], gdp_mu(epsilon, delta))
    return {name: roc_auc_score(t, np.ravel(score)) for name, score in found.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", default=TABLES)
    parser.add_argument("--fits", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.tables:
        X, y, ranges = table(name)
        parts = train_test_split(X, y.to_numpy(), test_size=0.3, random_state=0, stratify=y)
        for epsilon in EPSILONS:
            found = [areas(parts, ranges, epsilon) for _ in range(options.fits)]
            cells = [
                f"{method} {np.mean(values):.3f} +- {np.std(values) / math.sqrt(len(values)):.3f}"
                for method in found[0]
                for values in [[one[method] for one in found]]
            ]
            print(f"{name} epsilon {epsilon:g}: " + ", ".join(cells), flush=True)
