"""Features of columns on real tables: kernel="auto" beside goals and the linear default.

Tables in natural units, 70 % train. Columns are numbers with documented ranges: ``range`` brings
them to [-1, 1] by these, ``units`` leaves the units to the classifier. Goals are figures of
research code. ``wide`` compares 16 features of each column of optdigits with fewer. Prints one
line for each table; nothing is stored.
"""

import argparse
import json
import math
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy starts its threads
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from dp_halfspace import AdaptiveMarginClassifier, PrivateKernelClassifier

EPSILONS = (0.3, 1.0, 3.0)
# Accuracy at these budgets, with public ranges and with private units.
GOALS: dict[str, dict[str, tuple[float, float, float]]] = {
    "casp": {"range": (0.736, 0.752, 0.759), "units": (0.729, 0.739, 0.748)},
    "magic": {"range": (0.816, 0.843, 0.856), "units": (0.812, 0.842, 0.849)},
    "phoneme": {"range": (0.779, 0.802, 0.826), "units": (0.785, 0.793, 0.811)},
    "compactiv": {"range": (0.879, 0.889, 0.899), "units": (0.868, 0.891, 0.904)},
    "abalone": {"units": (0.747, 0.768, 0.772)},
    "winewhite": {"range": (0.738, 0.761, 0.772), "units": (0.728, 0.751, 0.767)},
    "page-blocks": {"units": (0.924, 0.938, 0.951)},
    "segment": {"range": (0.729, 0.877, 0.912), "units": (0.734, 0.862, 0.894)},
    "optdigits": {"range": (0.814, 0.911, 0.947), "units": (0.784, 0.895, 0.934)},
    "stroke": {"units": (0.951, 0.951, 0.951)},
}
WIDE_GOALS = {0.1: 0.42, 0.3: 0.82, 1.0: 0.91, 3.0: 0.935}
_MIDDLE = 0.5

Table = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]


def load(name: str, folder: Path) -> tuple[Table, NDArray[np.float64]]:
    """Return the numbers of a table, train and test, and the ranges of its columns."""
    schema = json.loads((folder / "schema.json").read_text())[name]["columns"]
    numbers = [column for column, values in schema.items() if not isinstance(values[0], str)]
    frame = pd.read_csv(folder / f"{name}.csv.bz2")
    y = frame["target"].astype(str).to_numpy()
    i, j = train_test_split(np.arange(len(y)), test_size=0.3, random_state=0, stratify=y)
    X = frame[numbers].to_numpy(float)
    return (X[i], y[i], X[j], y[j]), np.array([schema[column] for column in numbers], float)


def scaled(X: NDArray[np.float64], ranges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bring columns to [-1, 1] by their public ranges; a hole is in the middle."""
    values = np.clip((X - ranges[:, 0]) / np.diff(ranges)[:, 0], 0.0, 1.0)
    return 2.0 * np.nan_to_num(values, nan=_MIDDLE) - 1.0


def accuracy(model: Any, data: Table, fits: int) -> float:
    """Mean accuracy of fits with fresh features and noise."""
    X, y, Z, t = data
    return float(np.mean([model.fit(X, y).score(Z, t) for _ in range(fits)]))


def line(values: Sequence[float]) -> str:
    """Join accuracies."""
    return "/".join(f"{value:.3f}" for value in values)


def compare(name: str, folder: Path, coding: str, fits: int) -> str:
    """Measure one table in one coding."""
    (X, y, Z, t), ranges = load(name, folder)
    data_norm = None
    if coding == "range":
        X, Z, data_norm = scaled(X, ranges), scaled(Z, ranges), math.sqrt(X.shape[1])
    cells = []
    for make in (AdaptiveMarginClassifier, PrivateKernelClassifier):
        public = {"classes": sorted(set(y)), "data_norm": data_norm}
        data = (X, y, Z, t)
        cells.append([accuracy(make(epsilon=e, **public), data, fits) for e in EPSILONS])
    goal = GOALS[name].get(coding, ())
    return f"{name:12} {coding:6} linear {line(cells[0])}  auto {line(cells[1])}  goal {line(goal)}"


def wide(folder: Path, fits: int) -> str:
    """Measure 4, 8 and 16 features of each of the 62 columns of optdigits."""
    (X, y, Z, t), ranges = load("optdigits", folder)
    X, Z = scaled(X, ranges), scaled(Z, ranges)
    out = []
    for n_terms in (4, 8, 16):
        public = {"classes": sorted(set(y)), "data_norm": math.sqrt(X.shape[1])}
        models = [
            PrivateKernelClassifier("additive", n_components=62 * n_terms, epsilon=e, **public)
            for e in WIDE_GOALS
        ]
        found = line([accuracy(model, (X, y, Z, t), fits) for model in models])
        out.append(f"optdigits x {n_terms:2}  {found}  goal {line(list(WIDE_GOALS.values()))}")
    return "\n".join(out)


def main(argv: Sequence[str] | None = None) -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", default=list(GOALS), choices=list(GOALS))
    parser.add_argument("--codings", nargs="*", default=["range", "units"])
    parser.add_argument("--fits", type=int, default=5)
    parser.add_argument("--wide", action="store_true", help="the tables with many features too")
    data = os.environ.get("DP_HALFSPACE_DATA", "../shared/data")
    parser.add_argument("--folder", type=Path, default=Path(data) / "tables")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    for name in args.tables:
        for coding in args.codings:
            print(compare(name, args.folder, coding, args.fits), flush=True)
    if args.wide:
        print(wide(args.folder, args.fits), flush=True)


if __name__ == "__main__":
    main()
