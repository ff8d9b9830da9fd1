"""Small tables of three to seven classes: the default beside one tree, two selections and steps.

``python -m benchmarks.small_classes [--fits 8]``: tables of `DP_HALFSPACE_DATA` in original units,
a column in parts or a category for the label where a table has two classes, and two of
scikit-learn. Prints means over tables, and the largest loss of the default beside the best of all.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import train_test_split

from dp_halfspace import AdaptiveMarginClassifier
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.privacy import PrivacyRecord, authorise, noise_source
from dp_halfspace.privacy.door import Door
from dp_halfspace.rows.directions import asinh_cells
from dp_halfspace.selection.small_trees import plan_small_tree, plan_staged_tree

# File, column of the labels ("" for that of the table), and in how many parts numbers are divided.
TABLES = {
    "nursery": ("nursery", "", 0), "page-blocks": ("page-blocks", "", 0),
    "segment": ("segment", "", 0), "winewhite": ("winewhite", "alcohol", 3),
    "magic": ("magic", "c1", 4), "abalone": ("abalone", "sex", 0), "casp": ("casp", "F4", 4),
    "compactiv": ("compactiv", "freemem", 3), "mushroom odour": ("mushroom", "c5", 0),
    "mushroom spores": ("mushroom", "c20", 0), "mushroom habitat": ("mushroom", "c22", 0),
    "adult relationship": ("adult_raw", "relationship", 0),
    "adult marital": ("adult_raw", "marital-status", 0), "stroke work": ("stroke", "work_type", 0),
}  # fmt: skip
CELLS = ((200, 0.3), (400, 0.3), (800, 0.3), (400, 1.0), (1600, 0.3), (800, 1.0), (1600, 1.0))
PLANS = {"one tree": plan_small_tree, "two selections": plan_staged_tree}


@cache
def table(name: str) -> tuple[Any, ...]:
    """Return rows of numbers and indicators to train and to test on, and class indices."""
    if name in ("iris", "wine"):
        X, y = (load_iris if name == "iris" else load_wine)(return_X_y=True)
    else:
        file, label, parts = TABLES[name]
        folder = Path(os.environ["DP_HALFSPACE_DATA"]) / "tables"
        schema = json.loads((folder / "schema.json").read_text())[file]["columns"]
        frame = pd.read_csv(folder / f"{file}.csv.bz2").rename(columns=str)
        y = frame[label or "target"]
        if parts:
            y = np.searchsorted(np.quantile(y, np.arange(1, parts) / parts), y)
        y = np.unique(np.asarray(y).astype(str), return_inverse=True)[1]
        columns = []
        for column in schema:
            if column != label and isinstance(schema[column][0], str):
                names = np.array([str(value) for value in schema[column]])
                columns.append(frame[column].astype(str).to_numpy()[:, None] == names)
            elif column != label:
                columns.append(frame[column].to_numpy(float)[:, None])
        X = np.nan_to_num(np.hstack(columns).astype(float))
    common = (np.bincount(y) >= 4)[y]
    X, y = X[common], np.unique(y[common], return_inverse=True)[1]
    return tuple(train_test_split(X, y, test_size=0.3, random_state=0, stratify=y))


def score(kind: str, data: tuple[Any, ...], epsilon: float) -> float:
    """Fit once; return the accuracy on the test rows."""
    X, Z, y, t = data
    n_classes = int(max(y.max(), t.max())) + 1
    if kind not in PLANS:
        classes = list(range(n_classes))
        model = AdaptiveMarginClassifier(epsilon=epsilon, solver=kind, classes=classes)
        return float(model.fit(X, y).score(Z, t))
    plan = PLANS[kind](len(y), X.shape[1], n_classes, epsilon, seed=None)
    record = PrivacyRecord(epsilon=epsilon, delta=0.0, events=plan.events, noise="os")
    data = TrainingData(X, y, np.arange(n_classes), None)
    door = Door(data, authorise(record, noise_source(None)))
    found = plan.run(door, len(y), np.ones(n_classes))
    cells = Z if found.exponent is None else asinh_cells(Z, found.exponent).astype(float)
    scores = cells @ found.coefficients.T + found.intercept
    return float((scores.argmax(axis=1) == t).mean())


def main() -> None:
    """Run."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--fits", type=int, default=8)
    options.add_argument("--tables", nargs="*", default=["iris", "wine", *TABLES])
    given = options.parse_args()
    warnings.simplefilter("ignore")
    kinds = ("auto", *PLANS, "noisy_gd")
    for size, epsilon in CELLS:
        rows = []
        for name in given.tables:
            X, Z, y, t = table(name)
            place = np.random.default_rng([size, 5]).permutation(len(y))[:size]
            if len(place) < size and name in TABLES:
                continue
            # Of fewer rows the same n epsilon.
            own = min(epsilon * size / len(place), 8.0)
            data = X[place], Z[:2000], y[place], t[:2000]
            majority = np.bincount(t[:2000]).max() / len(t[:2000])
            means = [np.mean([score(kind, data, own) for _ in range(given.fits)]) for kind in kinds]
            rows.append([majority, *means])
        found = np.array(rows)
        worst = (found[:, 1] - found.max(axis=1)).min()
        figures = " ".join(f"{value:.3f}" for value in found.mean(axis=0))
        print(
            f"n={size} epsilon={epsilon:g} majority, default, {kinds[1:]}: {figures}, {worst:.3f}"
        )


if __name__ == "__main__":
    main()
