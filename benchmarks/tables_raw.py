"""Tables in natural units: private column scales beside public ranges, an oracle and no privacy.

``python -m benchmarks.tables_raw [TABLE ...] --fits 5`` needs the shared tables in the folder
named by the environment variable ``DP_HALFSPACE_DATA`` (``tables/*.csv.bz2``, ``schema.json``).
Accuracies of each fit go to ``benchmarks/results/tables_raw.json``, those of another method to
``tables_raw_METHOD.json``; a run of some tables leaves the others.
``--boosted`` prints a private boosted additive model (interpret 0.7.8, in an environment of its
own) beside `PrivateTableClassifier`, both given the public ranges. ``--way`` prints how far
`PrivateTableClassifier` in original units gets at epsilon 3 from logistic regression to gradient
boosting, both without privacy, on all columns and as many splits as fits.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

from benchmarks.cells import merge, store, versions
from benchmarks.environments import interpreter, missing
from dp_halfspace import (
    AdaptiveMarginClassifier,
    ObjectivePerturbationClassifier,
    OutputPerturbationClassifier,
    PrivateTableClassifier,
    PureHalfspaceClassifier,
)
from dp_halfspace.preprocessing import PublicScaler, ReleasedScaler

RESULTS = Path(__file__).parent / "results" / "tables_raw.json"
WORKER = Path(__file__).with_name("boosted_worker.py")
EPSILONS = (0.3, 1.0, 3.0)
WAY_TABLES = ("casp", "magic", "sylva", "adult_raw")
METHODS: dict[str, Any] = {
    "default": AdaptiveMarginClassifier,
    "objective": partial(ObjectivePerturbationClassifier, delta=0),
    "output": partial(OutputPerturbationClassifier, delta=0),
    "directions": partial(PureHalfspaceClassifier, n_directions=5000),
}


def tables(names: list[str]) -> dict[str, tuple[Any, ...]]:
    """Read the numeric columns of each table, split 70/30, and their documented ranges."""
    folder = Path(os.environ["DP_HALFSPACE_DATA"]) / "tables"
    schema = json.loads((folder / "schema.json").read_text())
    found = {}
    for name in names or sorted(schema):
        columns = schema[name]["columns"]
        ranges = {c: v for c, v in columns.items() if not isinstance(v[0], str)}
        if not ranges:
            continue
        frame = pd.read_csv(folder / f"{name}.csv.bz2")
        y = frame.pop("target").astype(str).to_numpy()
        X = frame[list(ranges)].to_numpy(float)
        parts = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
        found[name] = (*parts, np.array(list(ranges.values()), dtype=float))
    return found


def measured(parts: tuple[Any, ...], n_fits: int, method: str) -> dict[str, Any]:
    """Fit every way on one table."""
    X, Z, y, t, ranges = parts
    classes = sorted(set(y))
    root = math.sqrt(X.shape[1])
    width = np.nanstd(X, axis=0)
    oracle = ReleasedScaler(np.nanmean(X, axis=0), np.where(width > 0, width, 1.0)).fit(X)
    wide = np.column_stack([ranges[:, 0], np.maximum(ranges[:, 1], ranges[:, 0] + 1e-9)])
    scaled = {"units": None, "ranges": PublicScaler(wide).fit(X), "oracle": oracle}
    scores: dict[str, Any] = {"majority": float(max((t == c).mean() for c in classes))}
    for name, scaler in scaled.items():
        train, test = (X, Z) if scaler is None else (scaler.transform(X), scaler.transform(Z))
        norm = None if scaler is None else root
        scores[name] = [
            [
                METHODS[method](epsilon=epsilon, data_norm=norm, classes=classes)
                .fit(train, y)
                .score(test, t)
                for _ in range(n_fits)
            ]
            for epsilon in EPSILONS
        ]
    filled = np.nan_to_num(X), np.nan_to_num(Z)
    svc = make_pipeline(StandardScaler(), LinearSVC())
    scores["LinearSVC"] = svc.fit(filled[0], y).score(filled[1], t)
    scores["boosting"] = HistGradientBoostingClassifier(random_state=0).fit(X, y).score(Z, t)
    return scores


def boosted(name: str, n_fits: int) -> str:
    """Compare with the private boosted additive model on one table, all its columns."""
    folder = Path(os.environ["DP_HALFSPACE_DATA"]) / "tables"
    reason = missing("interpret-0.7.8", ("interpret-core==0.7.8", "pandas"), "interpret.privacy")
    if reason:
        return reason
    command = [interpreter("interpret-0.7.8"), WORKER, folder, name, n_fits]
    run = subprocess.run([str(part) for part in command], capture_output=True, check=True)
    other = json.loads(run.stdout)
    schema = json.loads((folder / "schema.json").read_text())[name]
    frame = pd.read_csv(folder / f"{name}.csv.bz2")
    y = frame.pop("target").astype(str)
    X, Z, y, t = train_test_split(frame, y, test_size=0.3, random_state=0, stratify=y)
    ours = [
        [
            PrivateTableClassifier(epsilon=epsilon, schema=schema).fit(X, y).score(Z, t)
            for _ in range(n_fits)
        ]
        for epsilon in EPSILONS
    ]
    cells = ["/".join(f"{np.mean(v):.3f}" for v in way) for way in (*other.values(), ours)]
    return f"{name}: " + ", ".join(map(" ".join, zip((*other, "ours"), cells, strict=True)))


def way(name: str, n_fits: int) -> Any:
    """Fit logistic regression, gradient boosting and ours on each split; return the accuracies."""
    folder = Path(os.environ["DP_HALFSPACE_DATA"]) / "tables"
    schema = json.loads((folder / "schema.json").read_text())[name]["columns"]
    kinds = {c: str if isinstance(values[0], str) else float for c, values in schema.items()}
    frame = pd.read_csv(folder / f"{name}.csv.bz2")
    y = frame.pop("target").astype(str).to_numpy()
    frame = frame.astype(kinds)
    texts = [c for c, kind in kinds.items() if kind is str]
    coded = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), [c for c in kinds if c not in texts]),
        (OneHotEncoder(handle_unknown="ignore"), texts),
    )
    logistic = make_pipeline(coded, LogisticRegression(max_iter=1000))
    boosting = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    categories = frame.astype(dict.fromkeys(texts, "category"))
    found = []
    for fit in range(n_fits):
        i, j = train_test_split(np.arange(len(y)), test_size=0.3, random_state=fit, stratify=y)
        ours = PrivateTableClassifier(epsilon=3.0, classes=sorted(set(y)), random_state=fit)
        each = ((logistic, frame), (boosting, categories), (ours, frame))
        found.append([m.fit(X.iloc[i], y[i]).score(X.iloc[j], y[j]) for m, X in each])
    return np.array(found)


def print_way(names: list[str], n_fits: int) -> None:
    """Print mean accuracies, and which part of the way from the first to the second ours gets."""
    gains, ratios = np.zeros(2), []
    for name in names:
        found = way(name, n_fits)
        whole, part = (found[:, 1:] - found[:, :1]).T
        ratio = part.mean() / whole.mean()
        error = (part - ratio * whole).std(ddof=1) / n_fits**0.5 / abs(whole.mean())
        cells = " | ".join(f"{accuracy:.4f}" for accuracy in found.mean(axis=0))
        print(f"| {name} | {cells} | {ratio:.0%} ± {error:.0%} |", flush=True)
        gains += whole.mean(), part.mean()
        ratios.append(ratio)
    print(f"mean of the ratios {np.mean(ratios):.0%}, ratio of the means {gains[1] / gains[0]:.0%}")


def line(name: str, scores: dict[str, Any]) -> str:
    """Write one table as a row of Markdown."""
    cells = [
        "/".join(f"{np.mean(v):.3f}" for v in scores[way]) for way in ("units", "ranges", "oracle")
    ]
    free = [f"{scores[way]:.3f}" for way in ("majority", "LinearSVC", "boosting")]
    return f"| {name} | {free[0]} | " + " | ".join([*cells, *free[1:]]) + " |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--fits", type=int, default=5)
    parser.add_argument("--method", choices=METHODS, default="default")
    parser.add_argument("--boosted", action="store_true")
    parser.add_argument("--way", action="store_true")
    parser.add_argument("--out", type=Path, help="JSON file of the results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.boosted:
        folder = Path(os.environ["DP_HALFSPACE_DATA"]) / "tables"
        for name in options.tables or sorted(json.loads((folder / "schema.json").read_text())):
            print(boosted(name, options.fits), flush=True)
        raise SystemExit
    if options.way:
        print_way(options.tables or list(WAY_TABLES), options.fits)
        raise SystemExit
    suffix = "" if options.method == "default" else f"_{options.method}"
    out = options.out or RESULTS.with_name(f"tables_raw{suffix}.json")
    merge(out, "versions", value=versions())
    print("| table | majority | private scales | public ranges | oracle | LinearSVC | boosting |")
    print("|---|---|---|---|---|---|---|")
    for name, parts in tables(options.tables).items():
        scores = measured(parts, options.fits, options.method)
        store(out, name, value=scores)
        print(line(name, scores), flush=True)
