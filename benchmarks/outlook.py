"""What fits rank beside what public numbers let expect, and which of them warn.

``python -m benchmarks.outlook [--fits 2] [--models table margin] [--rare .05]`` needs the folder
named by the environment variable ``DP_HALFSPACE_DATA``; every table of two or more classes in its
folders ``tables*`` (``*.csv.bz2`` and ``schema.json``) is read, cut to 400 and 1,500 rows and with
up to 8,000. A share is that of the area under the ROC curve above one half of logistic regression
without privacy on up to 8,000 rows; with several classes it is the mean of one against the rest.
With ``--rare`` some rows of tables of two classes are left out of fits, so that the rarer class has
this share.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dp_halfspace import (
    AdaptiveMarginClassifier,
    ObjectivePerturbationClassifier,
    OutputPerturbationClassifier,
    PrivateAUCClassifier,
    PrivateKernelClassifier,
    PrivateTableClassifier,
)
from dp_halfspace.inspection import outlook

MODELS: dict[str, Any] = {
    "table": PrivateTableClassifier,
    "margin": AdaptiveMarginClassifier,
    "kernel": PrivateKernelClassifier,
    "auc": PrivateAUCClassifier,
    "objective": ObjectivePerturbationClassifier,
    "output": OutputPerturbationClassifier,
}
_SIZES, _EPSILONS, _MOST = (400, 1500, 8000), (0.1, 0.3, 1.0, 3.0), 8000
# Logistic regression has a smaller area on a table that no linear model ranks.
_LEAST_AREA = 0.6
_LIMITS = (0.1, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5)
_BANDS = {"below .55": (0, 0.55), ".55 to .75": (0.55, 0.75), "above .75": (0.75, 1.01)}


def tables() -> Iterator[tuple[str, pd.DataFrame, Any, pd.DataFrame, Any, dict[str, Any]]]:
    """Yield names, rows to train and to test on, and the public columns."""
    for folder in sorted(Path(os.environ["DP_HALFSPACE_DATA"]).glob("tables*")):
        schemas = json.loads((folder / "schema.json").read_text())
        for name, schema in schemas.items():
            if not (folder / f"{name}.csv.bz2").exists():
                continue
            columns = schema["columns"]
            texts = {c: str for c, facts in columns.items() if isinstance(facts[0], str)}
            frame = pd.read_csv(folder / f"{name}.csv.bz2", dtype={**texts, "target": str})
            y = frame.pop("target").to_numpy(dtype=str)
            how = {"test_size": 0.3, "random_state": 0, "stratify": y}
            train, test = train_test_split(np.arange(len(y)), **how)
            train = train[:_MOST]
            yield name, frame.iloc[train], y[train], frame.iloc[test], y[test], columns


def thinned(rows: pd.DataFrame, y: Any, share: float) -> tuple[pd.DataFrame, Any]:
    """Return the first rows of each of two classes of which the rarer one has this share."""
    labels, counts = np.unique(y, return_counts=True)
    is_rare = y == labels[counts.argmin()]
    n_rows = min(counts.min() / share, counts.max() / (1.0 - share))
    of_rare, of_other = np.cumsum(is_rare), np.cumsum(~is_rare)
    kept = np.where(is_rare, of_rare <= share * n_rows, of_other <= (1.0 - share) * n_rows)
    return rows[kept], y[kept]


def coded(frame: pd.DataFrame, columns: dict[str, Any]) -> Any:
    """Return numbers clipped to their public range, and categories as columns of 0 and 1."""
    parts = []
    for name, facts in columns.items():
        if isinstance(facts[0], str):
            kept = facts[1:] if len(facts) == 2 else facts
            parts += [(frame[name].to_numpy(object) == each).astype(float) for each in kept]
        else:
            cells = frame[name].to_numpy(float)
            parts.append(np.where(np.isnan(cells), np.mean(facts), np.clip(cells, *facts)))
    return np.column_stack(parts)


def area(y: Any, classes: list[str], scores: Any) -> float:
    """Return the area under the ROC curve, or the mean of one class against the rest."""
    if scores.ndim == 1:
        return float(roc_auc_score(y == classes[1], scores))
    return float(np.mean([roc_auc_score(y == c, scores[:, k]) for k, c in enumerate(classes)]))


def fits(kind: str, table: Any, n_fits: int) -> Iterator[tuple[float, float, float, bool]]:
    """Yield n epsilon, the expected share, the area and whether all scores are equal, by fit."""
    _, rows, y, test_rows, test_y, columns = table
    classes = sorted(set(y))
    if kind == "table":
        kinds = {c: f if isinstance(f[0], str) else "number" for c, f in columns.items()}
        given, Z = {"schema": kinds}, test_rows
    else:
        given, Z = {}, coded(test_rows, columns)
    for size in (each for each in _SIZES if each <= len(rows) or each == _SIZES[-1]):
        for seed in range(n_fits):
            chosen = np.random.default_rng(seed).permutation(len(rows))[:size]
            X = rows.iloc[chosen] if kind == "table" else coded(rows.iloc[chosen], columns)
            for epsilon in _EPSILONS:
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    model = MODELS[kind](epsilon=epsilon, classes=classes, **given)
                    model.fit(X, y[chosen])
                is_constant = any("the same score" in str(each.message) for each in caught)
                n, d = len(chosen), coded(test_rows[:2], columns).shape[1]
                found = area(test_y, classes, model.decision_function(Z))
                yield n * epsilon, outlook(n, d, epsilon).improvement, found, is_constant


def main() -> None:
    """Print the mean share by n epsilon, and how many fits would warn by their area."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--fits", type=int, default=2)
    options.add_argument("--models", nargs="+", choices=MODELS, default=["table", "margin"])
    options.add_argument("--rare", type=float)
    given = options.parse_args()
    shares: dict[Any, list[tuple[float, float]]] = defaultdict(list)
    expectations: dict[Any, list[float]] = defaultdict(list)
    for table in tables():
        name, rows, y, test_rows, test_y, columns = table
        classes = sorted(set(y))
        if given.rare is not None and len(classes) > 2:
            continue
        plain = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
        plain.fit(coded(rows, columns), y)
        known = area(test_y, classes, plain.decision_function(coded(test_rows, columns)))
        if given.rare is not None:
            rows, y = thinned(rows, y, given.rare)
        kept = name, rows, y, test_rows, test_y, columns
        for kind in given.models:
            if kind == "auc" and len(classes) > 2:
                continue
            for strength, expected, found, is_constant in fits(kind, kept, given.fits):
                if known > _LEAST_AREA:
                    share = min((found - 0.5) / (known - 0.5), 1.2)
                    shares[len(classes) > 2, round(strength)].append((share, expected))
                if len(classes) == 2:
                    (band,) = (b for b, (low, high) in _BANDS.items() if low <= found < high)
                    # A fit whose model is constant warns whatever was expected.
                    expectations[kind, band].append(0.0 if is_constant else expected)
        print(name, f"area without privacy {known:.3f}", flush=True)
    print("| classes | n epsilon | fits | mean share | expected | standard deviation |")
    for (is_several, strength), found in sorted(shares.items()):
        share, expected = np.transpose(found)
        numbers = f"{share.mean():.2f} | {expected.mean():.2f} | {share.std():.2f}"
        classes = "several" if is_several else "two"
        print(f"| {classes} | {strength} | {len(found)} | {numbers} |")
    print("| class | area | fits | warned, if less is expected than", *_LIMITS, "|")
    for (kind, band), found in expectations.items():
        rates = " | ".join(f"{np.mean(np.less(found, limit)):.3f}" for limit in _LIMITS)
        print(f"| {kind} | {band} | {len(found)} | {rates} |")


if __name__ == "__main__":
    main()
