"""Two checkouts of this package, fit by fit: accuracy, area under the ROC curve, CPU seconds.

``git archive REVISION | tar x -C FOLDER``, then ``python -m benchmarks.checkouts FOLDER --fits 12``
compares PrivateKernelClassifier there (defaults, estimated column scales) with the one here. Fits
take turns in two processes, with the same splits and seeds (a quarter of the fits on each of four
splits). Printed are means, the mean difference with its standard error, and median CPU seconds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

TABLES = (
    "casp", "magic", "phoneme", "compactiv", "abalone", "winewhite", "page-blocks", "sylva",
    "optdigits", "segment", "stroke",
)  # fmt: skip
_SPLITS = 4
# Run with another checkout on the path, so it imports nothing from here.
_WORKER = """
import json, sys, time, warnings
import numpy as np
from sklearn.metrics import roc_auc_score
warnings.simplefilter("ignore")
from dp_halfspace import PrivateKernelClassifier
for line in sys.stdin:
    file, epsilon, seed = json.loads(line)
    with np.load(file) as kept:
        X, y, Z, t = (kept[name] for name in "XyZt")
    classes = sorted(set(y.tolist()))
    model = PrivateKernelClassifier(
        epsilon=epsilon, classes=classes, data_norm=None, random_state=seed
    )
    started = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - started
    area = roc_auc_score(t, model.decision_function(Z)) if len(classes) == 2 else float("nan")
    print(json.dumps([float(model.score(Z, t)), float(area), seconds]), flush=True)
"""


def store_splits(name: str, tables: Path, folder: str) -> list[str]:
    """Write the numbers of a table, split four times, and return the files."""
    schema = json.loads((tables / "schema.json").read_text())[name]["columns"]
    numbers = [column for column, values in schema.items() if not isinstance(values[0], str)]
    frame = pd.read_csv(tables / f"{name}.csv.bz2")
    X, y = frame[numbers].to_numpy(float), frame["target"].astype(str).to_numpy(str)
    files = []
    for split in range(_SPLITS):
        i, j = train_test_split(np.arange(len(y)), test_size=0.3, random_state=split, stratify=y)
        files.append(f"{folder}/{name}-{split}.npz")
        np.savez(files[-1], X=X[i], y=y[i], Z=X[j], t=y[j])
    return files


def start(checkout: Path) -> subprocess.Popen[str]:
    """Start a process that fits by the package of a checkout."""
    settings = {**os.environ, "PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", _WORKER], env=settings, cwd=checkout, **pipes)


def ask(process: subprocess.Popen[str], *asked: Any) -> list[float]:
    """Fit once; return accuracy, area and CPU seconds."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(asked) + "\n")
    process.stdin.flush()
    return list(json.loads(process.stdout.readline()))


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=TABLES)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.1, 0.3, 1.0, 3.0])
    parser.add_argument("--fits", type=int, default=12)
    given = parser.parse_args(argv)
    tables = Path(os.environ["DP_HALFSPACE_DATA"]) / "tables"
    processes = [start(path) for path in (given.checkout, Path(__file__).parents[1])]
    with tempfile.TemporaryDirectory() as folder:
        for name in given.tables:
            files = store_splits(name, tables, folder)
            for process in processes:
                ask(process, files[0], 1.0, 0)
            for epsilon in given.epsilons:
                asked = [(files[fit % _SPLITS], epsilon, fit) for fit in range(given.fits)]
                found = np.array([[ask(each, *one) for each in processes] for one in asked])
                change = np.diff(found, axis=1)[:, 0]
                error = change.std(axis=0, ddof=1) / math.sqrt(given.fits)
                mean, seconds = found.mean(axis=0), np.median(found[:, :, 2], axis=0)
                print(
                    f"{name:11} epsilon {epsilon:g}: accuracy {mean[0, 0]:.4f} {mean[1, 0]:.4f} "
                    f"({change[:, 0].mean():+.4f} +- {error[0]:.4f}), area {mean[0, 1]:.4f} "
                    f"{mean[1, 1]:.4f} ({change[:, 1].mean():+.4f} +- {error[1]:.4f}), "
                    f"CPU seconds {seconds[0]:.3f} {seconds[1]:.3f}",
                    flush=True,
                )
    for process in processes:
        process.communicate()


if __name__ == "__main__":
    main()
