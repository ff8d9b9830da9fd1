"""Fit interpret's private boosted additive model; run by the interpreter that has interpret.

Usage: boosted_worker.py FOLDER NAME FITS. Reads NAME.csv.bz2 and schema.json in FOLDER and prints
the accuracies as JSON. Imports nothing of this repository.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from interpret.privacy import DPExplainableBoostingClassifier
from sklearn.model_selection import train_test_split

EPSILONS = (0.3, 1.0, 3.0)


def predicted(train, y, test, **options):
    """Predict by one model for two classes, by one for each of more, which share the budget."""
    classes = np.array(sorted(set(y)))
    if len(classes) > 2:
        options["epsilon"] /= len(classes) ** 0.5
    columns = []
    for label in classes if len(classes) > 2 else classes[1:]:
        model = DPExplainableBoostingClassifier(n_jobs=1, **options)
        columns.append(model.fit(train, (y == label).astype(int)).predict_proba(test)[:, 1])
    columns = [1.0 - columns[0], *columns] if len(classes) == 2 else columns
    return classes[np.argmax(columns, axis=0)]


def main(folder, name, n_fits):
    """Fit at every epsilon, on the columns of numbers and, where there are others, on all."""
    warnings.simplefilter("ignore")
    folder = Path(folder)
    columns = json.loads((folder / "schema.json").read_text())[name]["columns"]
    frame = pd.read_csv(folder / f"{name}.csv.bz2")
    y = frame.pop("target").astype(str).to_numpy()
    ranges = {c: v for c, v in columns.items() if not isinstance(v[0], str)}
    for column in columns:
        if column in ranges:
            frame[column] = frame[column].astype(float).fillna(float(np.mean(ranges[column])))
        else:
            frame[column] = frame[column].astype(str)
    rows, others = train_test_split(np.arange(len(y)), test_size=0.3, random_state=0, stratify=y)
    found = {}
    for way, used in {"numbers": list(ranges), "all": list(columns)}.items():
        if not used or (way == "all" and len(ranges) == len(columns)):
            continue
        bounds = {
            c: (ranges[c][0], max(ranges[c][1], ranges[c][0] + 1e-9)) for c in used if c in ranges
        }
        options = {
            "delta": len(rows) ** -2.0,
            "feature_names": used,
            "feature_types": ["continuous" if c in ranges else "nominal" for c in used],
            "privacy_bounds": bounds,
        }
        parts = frame.iloc[rows][used], y[rows], frame.iloc[others][used]
        found[way] = [
            [
                float(np.mean(predicted(*parts, epsilon=epsilon, **options) == y[others]))
                for _ in range(n_fits)
            ]
            for epsilon in EPSILONS
        ]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
