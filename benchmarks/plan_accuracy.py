"""Plans of accuracy beside what was measured: ``python -m benchmarks.plan_accuracy``.

Reads ``benchmarks/results/tables_raw.json`` (measured, and LinearSVC as the reference) and, for the
sizes, the shared tables in the folder named by ``DP_HALFSPACE_DATA``. The plan of a table knows
its size and the reference only.
"""

from __future__ import annotations

import json
import time

import numpy as np

from benchmarks.tables_raw import EPSILONS, RESULTS, tables
from dp_halfspace.inspection import plan_accuracy


def main() -> None:
    """Print a table, and the errors over all tables."""
    measured, errors, inside = json.loads(RESULTS.read_text()), [], []
    print("| table | rows, columns, classes | reference | planned | measured | seconds |")
    print("|---|---|---|---|---|---|")
    for name, (X, _, y, *_) in tables([]).items():
        start, sizes = time.process_time(), (*X.shape, len(set(y)))
        reference = measured[name]["LinearSVC"]
        plan = plan_accuracy(*sizes, EPSILONS, reference=reference, random_state=0)
        seconds = time.process_time() - start
        truth = np.mean(measured[name]["units"], axis=1)
        errors.append(np.abs(np.array(plan.accuracy) - truth))
        inside.append(errors[-1] <= 2 * np.array(plan.spread))
        shown = ["/".join(f"{v:.3f}" for v in values) for values in (plan.accuracy, truth)]
        size = ", ".join(map(str, sizes))
        print(f"| {name} | {size} | {reference:.3f} | {' | '.join(shown)} | {seconds:.1f} |")
    error = np.array(errors)
    print(
        f"\nmean error {error.mean():.4f}, largest {error.max():.3f}; rms "
        f"{np.sqrt((error**2).mean()):.4f}; {(error.max(axis=1) <= 0.02).sum()} of {len(error)} "
        f"tables within .02 at every epsilon; {np.mean(inside):.2f} within two spreads"
    )


if __name__ == "__main__":
    main()
