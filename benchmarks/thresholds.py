"""Thresholds for a recall, a precision or a false positive rate: how far the measure is off.

``python -m benchmarks.thresholds [--fits 20]`` prints the table of thresholds of
docs/evidence/table.md: the median over fits of the absolute error of the measure on 100,000 other
rows. 5 % of the rows are positive; five columns are normal, with a mean that is larger by .7 for
positive rows. Every fit draws a table of its own. Needs no data.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.tables import markdown
from dp_halfspace import PrivateTableClassifier

TARGETS = {"recall": 0.9, "precision": 0.5, "false_positive_rate": 0.1}
SIZES, EPSILONS = (2000, 10_000, 30_000), (1.0, 3.0)
_SHARE, _COLUMNS, _SHIFT, _TESTED = 0.05, 5, 0.7, 100_000


def rows_of(n: int, seed: int) -> tuple[pd.DataFrame, Any]:
    """Draw a table and its labels."""
    rng = np.random.default_rng([seed, n])
    y = (rng.random(n) < _SHARE).astype(int)
    X = rng.normal(size=(n, _COLUMNS)) + _SHIFT * y[:, None]
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(_COLUMNS)]), y


def reached(target: str, predicted: Any, truth: Any) -> float:
    """Return what labels reach; a precision of nothing is zero."""
    hits = float(np.sum(predicted & truth))
    among = {"recall": truth, "precision": predicted, "false_positive_rate": ~truth}[target]
    counted = float(np.sum(predicted)) - hits if target == "false_positive_rate" else hits
    return counted / max(1.0, float(np.sum(among)))


def error(n: int, epsilon: float, target: str, seed: int) -> float:
    """Fit once; return by how much the measure misses the target on other rows."""
    wanted = TARGETS[target]
    model = PrivateTableClassifier(epsilon=epsilon, classes=[0, 1], threshold={target: wanted})
    model.fit(*rows_of(n, seed))
    table, truth = rows_of(_TESTED, 10_000 + seed)
    return abs(reached(target, model.predict(table) == 1, truth == 1) - wanted)


def main(argv: Sequence[str] | None = None) -> None:
    """Fit and print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--fits", type=int, default=20)
    options.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    given = options.parse_args(argv)
    warnings.simplefilter("ignore")
    rows = []
    for n in given.sizes:
        for epsilon in EPSILONS:
            errors = (
                np.median([error(n, epsilon, target, seed) for seed in range(given.fits)])
                for target in TARGETS
            )
            rows.append([f"{n}, {epsilon:g}", *(f"{value:.3f}".lstrip("0") for value in errors)])
    print(markdown(["records, $\\epsilon$", "recall .9", "precision .5", "rate .1"], rows))


if __name__ == "__main__":
    main()
