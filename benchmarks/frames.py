"""Tables as their files are: PrivateTableClassifier with and without a schema, and no privacy.

``python -m benchmarks.frames [TABLE ...] --fits 4`` needs the shared tables in the folder named
by the environment variable ``DP_HALFSPACE_DATA`` (``tables/*.csv.bz2``, ``schema.json``).
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

from dp_halfspace import PrivateTableClassifier

EPSILONS = (0.3, 1.0, 3.0)


def scores(model: Any, X: Any, y: Any) -> tuple[float, float]:
    """Return accuracy and Brier score, half the squared distance of the probabilities."""
    truth = y[:, None] == model.classes_
    return model.score(X, y), 0.5 * ((model.predict_proba(X) - truth) ** 2).sum(axis=1).mean()


def measured(folder: Path, name: str, entry: dict[str, Any], n_fits: int, delta: Any) -> str:
    """Fit every way on one table; return a row of Markdown."""
    frame = pd.read_csv(folder / f"{name}.csv.bz2")
    labels = frame.pop("target").astype(str).to_numpy()
    X, Z, y, t = train_test_split(frame, labels, test_size=0.3, random_state=0, stratify=labels)
    texts = [c for c, rule in entry["columns"].items() if isinstance(rule[0], str)]
    cells = []
    for schema in (entry, None):
        fits = [
            [
                scores(
                    PrivateTableClassifier(
                        epsilon=epsilon, delta=delta, schema=schema, classes=entry["target"]
                    ).fit(X, y),
                    Z,
                    t,
                )
                for _ in range(n_fits)
            ]
            for epsilon in EPSILONS
        ]
        means = np.mean(fits, axis=1)
        cells += ["/".join(f"{v:.3f}" for v in means[:, k]) for k in (0, 1)]
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), texts), remainder=StandardScaler()
    )
    free = make_pipeline(encoder, CalibratedClassifierCV(LinearSVC())).fit(X, y)
    cells += [f"{v:.3f}" for v in scores(free, Z, t)]
    return f"| {name} | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--fits", type=int, default=4)
    parser.add_argument("--pure", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    folder = Path(os.environ["DP_HALFSPACE_DATA"]) / "tables"
    schemas = json.loads((folder / "schema.json").read_text())
    print("| table | schema | Brier | no schema | Brier | LinearSVC | Brier |")
    print("|---|---|---|---|---|---|---|")
    for name in options.tables or sorted(schemas):
        delta = 0.0 if options.pure else "auto"
        print(measured(folder, name, schemas[name], options.fits, delta), flush=True)
