"""Plans of accuracy beside what was measured: ``python -m benchmarks.plan_accuracy``.

Reads ``benchmarks/results/tables_raw.json`` (what was measured) and the shared tables in the folder
named by ``DP_HALFSPACE_DATA``, for sizes and for the accuracy without privacy, by two classifiers.
The plan of a table knows its size and that accuracy only. ``--area`` measures areas under the ROC
curve instead, on tables of two classes and on those of `benchmarks.rare_tables`, with ``--fits`` of
the default linear class; the plan then knows the area of logistic regression and the shares.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import rare_tables
from benchmarks.tables_raw import EPSILONS, RESULTS, tables
from dp_halfspace import AdaptiveMarginClassifier
from dp_halfspace.inspection import plan_accuracy

NAMES = ("LinearSVC", "LogisticRegression")


def shown(values: object) -> str:
    """Write accuracies as a cell."""
    return "/".join(f"{v:.3f}" for v in np.ravel(values))


def main() -> None:
    """Print a table, and the errors over all tables, for either reference."""
    measured = json.loads(RESULTS.read_text())
    errors, inside = [], []
    columns = ("rows, columns, classes", "measured", "no privacy", *(f"plan, {n}" for n in NAMES))
    print(f"| table | {' | '.join(columns)} |")
    print("|---|---|---|---|---|---|")
    for name, (X, Z, y, t, _) in tables([]).items():
        sizes, truth = (*X.shape, len(set(y))), np.mean(measured[name]["units"], axis=1)
        free = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
        scores = free.fit(np.nan_to_num(X), y).score(np.nan_to_num(Z), t)
        references = (measured[name]["LinearSVC"], scores)
        plans = [plan_accuracy(*sizes, EPSILONS, reference=r, random_state=0) for r in references]
        errors.append([np.abs(np.array(plan.accuracy) - truth) for plan in plans])
        spreads = np.array([plan.spread for plan in plans])
        inside.append(errors[-1] <= 2 * spreads)
        cells = [", ".join(map(str, sizes)), shown(truth), shown(references)]
        planned = " | ".join(shown(plan.accuracy) for plan in plans)
        print(f"| {name} | {' | '.join(cells)} | {planned} |", flush=True)
    for i, name in enumerate(NAMES):
        error = np.array(errors)[:, i]
        print(
            f"{name}: mean error {error.mean():.4f}, rms {np.sqrt((error**2).mean()):.4f}, largest "
            f"{error.max():.3f}; {(error.max(axis=1) <= 0.02).sum()} of {len(error)} tables within "
            f".02 at every epsilon; {np.array(inside)[:, i].mean():.2f} within two spreads"
        )


def tables_of_two() -> Iterator[tuple[str, Any]]:
    """Return training and test rows and labels of tables of two classes."""
    for name, (X, Z, y, t, _) in tables([]).items():
        if len(set(y)) == 2 and name not in rare_tables.TABLES:
            yield name, (X, Z, y == np.max(y), t == np.max(y))
    for name in rare_tables.TABLES:
        frame, rare = rare_tables.rows_of(name)
        yield name, rare_tables.split(pd.get_dummies(frame, dtype=float).to_numpy(), rare)


def areas(fits: int) -> None:
    """Print measured and planned areas, and the errors over all tables."""
    found = []
    print(
        "| table | rows, columns, share | measured | no privacy | planned |\n|---|---|---|---|---|"
    )
    for name, (X, Z, y, t) in tables_of_two():
        measured, share = [], min(np.mean(y), 1.0 - np.mean(y))
        for epsilon in EPSILONS:
            models = [
                AdaptiveMarginClassifier(epsilon=epsilon, classes=[False, True], random_state=seed)
                for seed in range(fits)
            ]
            scores = [model.fit(X, y).decision_function(Z) for model in models]
            measured.append(np.mean([roc_auc_score(t, score) for score in scores]))
        free = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
        free.fit(np.nan_to_num(X), y)
        reference = roc_auc_score(t, free.decision_function(np.nan_to_num(Z)))
        given = {"majority": 1.0 - share, "reference_area": reference, "random_state": 0}
        plan = plan_accuracy(*X.shape, 2, EPSILONS, **given)
        found.append([measured, plan.area, plan.area_spread])
        cells = (shown(measured), shown(reference), shown(plan.area))
        print(f"| {name} | {len(X)}, {X.shape[1]}, {share:.2g} | {' | '.join(cells)} |", flush=True)
    truth, planned, spread = np.moveaxis(np.array(found), 1, 0)
    error = planned - truth
    for place, epsilon in enumerate(EPSILONS):
        part = error[:, place]
        print(
            f"epsilon {epsilon:g}: mean error {part.mean():+.4f}, "
            f"absolute {np.abs(part).mean():.4f}, rms {np.sqrt((part**2).mean()):.4f}, "
            f"largest {np.abs(part).max():.3f}; "
            f"{np.mean(np.abs(part) <= 2.0 * spread[:, place]):.2f} within two spreads"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--area", action="store_true")
    parser.add_argument("--fits", type=int, default=4)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.area:
        areas(options.fits)
    else:
        main()
