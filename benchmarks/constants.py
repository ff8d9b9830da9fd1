"""Constants of the default fit, halved and doubled: accuracy, area and log loss on real tables.

``python -m benchmarks.constants [NAME ...] [--fits 4]`` copies the package, changes one constant in
the copy, and fits with seeds 0, 1, ... at epsilon 1 and 3 to the tables of two classes with 3000
rows and more that `catalogue` lists as found later. Printed are the mean differences to the
default with the same seeds, and their standard errors over tables: what a value costs. Constants
of features are those of PrivateKernelClassifier, the others those of AdaptiveMarginClassifier.
"""

from __future__ import annotations

import argparse
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.catalogue import LATER, TABLES
from benchmarks.library_worker import one_hot
from benchmarks.real_tables import Split, measures, split

ROOT = Path(__file__).resolve().parents[1]
EPSILONS = (1.0, 3.0)
LEAST_ROWS = 3000
# File below the package, name, and the alternatives.
LINEAR = (
    ("engine/scales.py", "SHARE", "0.04", "0.16"),
    ("engine/linear.py", "NUMBER_SHARE", "0.01", "0.04"),
    ("engine/moment.py", "LONGER", "0.9", "2.4"),
    ("engine/moment.py", "_WIDER_COLUMNS", "1.2", "1e9"),
    ("engine/linear.py", "MOMENT_SHARE", "0.09", "0.36"),
    ("engine/linear.py", "COLUMN_CLIP", "1.0", "3.0"),
    ("engine/moment.py", "CONSTANT", "0.25", "1.0"),
    ("engine/moment.py", "DIRECTIONS", "5.0", "20.0"),
    ("engine/steps.py", "N_STEPS", "20", "40"),
    ("engine/steps.py", "N_AVERAGED", "5", "25"),
    ("engine/steps.py", "_MOMENTUM", "0.6", "0.9"),
    ("engine/steps.py", "CLIP", "math.sqrt(0.125)", "math.sqrt(2.0)"),
    ("engine/steps.py", "PATH", "0.6", "2.4"),
)
FEATURES = (
    ("estimators/kernel.py", "COLUMN_TERMS", "2", "5"),
    ("engine/features.py", "_JOINT_PAY", "925.0", "1e9"),
)


def tables() -> dict[str, Split]:
    """Divide the tables."""
    found = {name: TABLES[name].load() for name in LATER}
    return {
        name: split(coded)
        for name, coded in found.items()
        if len(coded.y) >= LEAST_ROWS and max(coded.y) == 1
    }


def fits_of(kind: str, parts: Split, epsilon: float, n_fits: int) -> list[list[float]]:
    """Fit with each seed; return accuracy, area and log loss."""
    import dp_halfspace  # noqa: PLC0415 (of the copy in which this runs)

    X, Z = (one_hot(rows, parts.train.levels) for rows in (parts.train.X, parts.X))
    found = []
    for seed in range(n_fits):
        model = getattr(dp_halfspace, kind)(epsilon=epsilon, classes=[0, 1], random_state=seed)
        answer = model.fit(X, parts.train.y).predict_proba(Z)
        scored = measures(answer, parts.y, 2)
        found.append([scored[m] for m in ("accuracy", "area", "log_loss")])
    return found


def measured(data: dict[str, Split], kind: str, n_fits: int) -> Any:
    """Return the means over fits: tables x budgets x measures."""
    warnings.simplefilter("ignore")
    return np.array(
        [
            [np.mean(fits_of(kind, parts, epsilon, n_fits), axis=0) for epsilon in EPSILONS]
            for parts in data.values()
        ]
    )


def in_a_copy(stored: Path, kind: str, n_fits: int, change: Sequence[str] = ()) -> Any:
    """Measure in a copy of the package in which one constant is changed."""
    with tempfile.TemporaryDirectory() as folder:
        for part in ("dp_halfspace", "benchmarks"):
            ignored = shutil.ignore_patterns("__pycache__", "results")
            shutil.copytree(ROOT / part, Path(folder, part), ignore=ignored)
        if change:
            path, name, value = change
            file = Path(folder, "dp_halfspace", path)
            text, n_changed = re.subn(rf"(?m)^{name} = .*$", f"{name} = {value}", file.read_text())
            if n_changed != 1:
                raise ValueError(f"{path} has no single line {name} = ...")
            file.write_text(text)
        command = [sys.executable, "-m", "benchmarks.constants", "--inside", kind]
        run = subprocess.run(
            [*command, "--fits", str(n_fits), "--stored", str(stored)],
            cwd=folder, capture_output=True, check=True,
        )  # fmt: skip
        return pickle.loads(run.stdout)


def line(difference: Any) -> str:
    """Say the mean difference of each measure, with its standard error over tables."""
    means = difference.mean(axis=1)
    errors = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    names = ("accuracy", "area", "log loss")
    return ", ".join(
        f"{name} {mean:+.4f} ± {error:.4f}"
        for name, mean, error in zip(names, means.mean(axis=0), errors, strict=True)
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Print a line for each alternative."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("names", nargs="*")
    options.add_argument("--fits", type=int, default=4)
    options.add_argument("--inside", help=argparse.SUPPRESS)
    options.add_argument("--stored", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args(argv)
    if given.inside:
        data = pickle.loads(given.stored.read_bytes())
        sys.stdout.buffer.write(pickle.dumps(measured(data, given.inside, given.fits)))
        return
    with tempfile.TemporaryDirectory() as folder:
        stored = Path(folder, "tables")
        stored.write_bytes(pickle.dumps(tables()))
        for kind, constants in (
            ("AdaptiveMarginClassifier", LINEAR),
            ("PrivateKernelClassifier", FEATURES),
        ):
            chosen = [c for c in constants if not given.names or c[1] in given.names]
            default = in_a_copy(stored, kind, given.fits) if chosen else None
            if chosen:
                print(kind, *np.round(default.mean(axis=(0, 1)), 4), flush=True)
            for path, name, *values in chosen:
                for value in values:
                    found = in_a_copy(stored, kind, given.fits, (path, name, value))
                    print(f"{path} {name} = {value}: {line(found - default)}", flush=True)


if __name__ == "__main__":
    main()
