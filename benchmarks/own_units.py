"""Pure DP on tables in their own units: the default beside a perturbed objective.

``python -m benchmarks.own_units [--n-epsilon 1600] [--fits 2] [--columns 14]`` reads the tables of
data packages and of KEEL that ``other_tables`` lists, up to 6,000 rows of each, and needs no stated
scale or range. Where the scales of the columns are too dear, the default selects from a list.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from benchmarks.cells import read
from benchmarks.other_tables import CATEGORIES, OUT, POOLS
from dp_halfspace import AdaptiveMarginClassifier

ROWS = 6000


def tables() -> Iterator[tuple[str, pd.DataFrame, Any]]:
    """Yield names, columns of numbers and of indicators of categories, and labels."""
    chosen = read(OUT)["tables"]
    for pool, files in POOLS.items():
        for name, frame in files():
            if name in chosen and chosen[name]["pool"] == pool:
                target = next(c for c in frame.columns if str(c) == chosen[name]["target"])
                labels = frame.pop(target).astype(str).to_numpy()
                numbers = frame.select_dtypes("number").astype(float)
                others = frame.drop(columns=numbers.columns)
                few = others.loc[:, others.nunique().between(2, CATEGORIES)].astype(object)
                shown = [pd.get_dummies(few[column], dtype=float) for column in few]
                rows = pd.concat([numbers, *shown], axis=1)
                yield name, rows.fillna(rows.median()).iloc[:ROWS], labels[:ROWS]


def measured(rows: Any, labels: Any, n_epsilon: float, solver: str, seed: int) -> list[float]:
    """Return accuracy and area on the test rows of one fit."""
    X, Z, y, t = train_test_split(rows.to_numpy(), labels, test_size=0.3, random_state=seed)
    model = AdaptiveMarginClassifier(
        epsilon=n_epsilon / len(y), delta=0.0, solver=solver, classes=sorted(set(labels))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = model.fit(X, y).decision_function(Z)
    return [model.score(Z, t), roc_auc_score(t == model.classes_[1], scores)]


def main() -> None:
    """Run."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--n-epsilon", type=float, default=1600.0)
    options.add_argument("--fits", type=int, default=2)
    options.add_argument("--columns", type=int, default=14)
    given = options.parse_args()
    changes = []
    for name, rows, labels in tables():
        if rows.shape[1] < given.columns:
            continue
        both = [
            np.mean([measured(rows, labels, given.n_epsilon, s, k) for k in range(given.fits)], 0)
            for s in ("auto", "objective_perturbation")
        ]
        changes.append(both[0] - both[1])
        print(f"{name:40s} {rows.shape}", *(np.round(each, 3) for each in both), flush=True)
    error = np.std(changes, axis=0) / np.sqrt(len(changes))
    print(f"{len(changes)} tables: default less objective", np.mean(changes, axis=0), "+-", error)


if __name__ == "__main__":
    main()
