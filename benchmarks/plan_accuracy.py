"""Plans of accuracy beside what was measured: ``python -m benchmarks.plan_accuracy``.

Reads ``benchmarks/results/tables_raw.json`` (what was measured) and the shared tables in the folder
named by ``DP_HALFSPACE_DATA``, for sizes and for the accuracy without privacy, by two classifiers.
The plan of a table knows its size and that accuracy only.
"""

from __future__ import annotations

import json

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.tables_raw import EPSILONS, RESULTS, tables
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


if __name__ == "__main__":
    main()
