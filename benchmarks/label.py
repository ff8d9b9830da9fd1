"""LabelPrivateClassifier: accuracy of its mechanisms, beside the same model without noise.

Features are public, labels are protected: the numbers must not be compared with those of the
classes that protect whole records without saying so. Means over fits with fresh features and
noise. Writes ``results/label.json`` and prints the table of ``docs/evidence/label_private.md``.
"""

import argparse
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy starts its threads
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks.cells import RESULTS, merge, read, store, versions
from benchmarks.problems import load
from dp_halfspace import LabelPrivateClassifier

EPSILONS = (0.3, 1.0, 3.0)
SETS = ("satimage", "satimage6", "digits", "ijcnn1", "adult", "reuters")
MECHANISMS: dict[str, dict[str, Any]] = {
    "statistic": {},
    "statistic_pure": {"delta": 0.0},
    "randomized_response": {"mechanism": "randomized_response"},
    "net": {"mechanism": "net"},
}


def accuracy(name: str, epsilon: float, fits: int, **params: Any) -> dict[str, float]:
    """Fit several times and score on the test set."""
    data = load(name)
    scores = [
        LabelPrivateClassifier(epsilon=epsilon, classes=list(data.classes), **params)
        .fit(data.X_train, data.y_train)
        .score(data.X_test, data.y_test)
        for _ in range(fits)
    ]
    return {"mean": float(np.mean(scores)), "sd": float(np.std(scores)), "fits": fits}


def table(found: dict[str, Any]) -> str:
    """Print what is stored as Markdown."""
    lines = ["| | " + " | ".join(MECHANISMS) + " | no noise |"]
    lines.append("|---" * (len(MECHANISMS) + 2) + "|")
    for name, cells in found.get("accuracy", {}).items():
        row = [
            " / ".join(f"{cells[m][f'{e:g}']['mean']:.4f}" for e in EPSILONS) if m in cells else "-"
            for m in MECHANISMS
        ]
        lines.append(f"| {name} | " + " | ".join(row) + f" | {cells['exact']['inf']['mean']:.4f} |")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, store, print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sets", nargs="*", default=list(SETS), choices=SETS)
    options.add_argument("--mechanisms", nargs="*", default=list(MECHANISMS), choices=MECHANISMS)
    options.add_argument("--fits", type=int, default=20)
    options.add_argument("--out", type=Path, default=RESULTS / "label.json")
    given = options.parse_args(argv)
    for name in given.sets:
        cells = [("exact", math.inf, {})]
        cells += [(m, e, MECHANISMS[m]) for m in given.mechanisms for e in EPSILONS]
        for mechanism, epsilon, params in cells:
            cell = accuracy(name, epsilon, given.fits, **params)
            store(given.out, "accuracy", name, mechanism, f"{epsilon:g}", value=cell)
            print(f"{name:9} {mechanism:19} {epsilon:4g} {cell['mean']:.4f}", flush=True)
    merge(given.out, "versions", value=versions())
    print(table(read(given.out)))


if __name__ == "__main__":
    main()
