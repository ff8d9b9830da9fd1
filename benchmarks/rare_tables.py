"""Tables with a rare class: area, log loss, accuracy, Brier score from budget to budget.

``python -m benchmarks.rare_tables [TABLE ...] --fits 6`` needs the shared tables in the folder
named by the environment variable ``DP_HALFSPACE_DATA``. No schema is given. `--model` names another
class, which gets categories as columns of 0 and 1; only the area is printed if it has no
probabilities. ``"boosted"`` is interpret's private boosted additive model, which is given the
ranges of the columns. The difference to the next smaller budget stands in brackets. `--splits`
draws training and test rows anew for each fit, adds epsilon 10000, and with ``"auc"`` the area of
balanced logistic regression.
"""

from __future__ import annotations

import argparse
import math
import os
import warnings
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

from benchmarks.catalogue import Coded, coded_columns
from benchmarks.real_tables import Split, library_answers
from dp_halfspace import (
    AdaptiveMarginClassifier,
    ObjectivePerturbationClassifier,
    OutputPerturbationClassifier,
    PrivateAUCClassifier,
    PrivateKernelClassifier,
    PrivateTableClassifier,
)

MODELS: dict[str, Any] = {
    "table": PrivateTableClassifier,
    "margin": AdaptiveMarginClassifier,
    "kernel": PrivateKernelClassifier,
    "auc": PrivateAUCClassifier,
    "objective": partial(ObjectivePerturbationClassifier, loss="logistic", rows="clipped"),
    "output": OutputPerturbationClassifier,
}

OF_FRAMES = ("table", "boosted")
WITH_PROBABILITIES = (*OF_FRAMES, "objective", "output")
KINDS = ("area", "log loss", "accuracy", "Brier score")
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
# A table, the label that is set apart from the rest, and the share that is kept of it, if not all.
TABLES: dict[str, tuple[str, str | None, float | None]] = {
    "stroke": ("stroke", None, None),
    "casp_rare": ("casp_rare", None, None),
    "sylva": ("sylva", None, None),
    "page-blocks 5": ("page-blocks", "5", None),
    "page-blocks 2": ("page-blocks", "2", None),
    "phoneme, 4 %": ("phoneme", "1", 0.04),
    "magic, 3 %": ("magic", "h", 0.03),
    "compactiv high, 3 %": ("compactiv", "high", 0.03),
    "compactiv low, 3 %": ("compactiv", "low", 0.03),
}


@cache
def shared_rows(file: str, label: str | None = None) -> tuple[pd.DataFrame, Any]:
    """Return the rows of a shared table, and whether they are of a class, or the rarest one."""
    folder = Path(os.environ["DP_HALFSPACE_DATA"]) / "tables"
    frame = pd.read_csv(folder / f"{file}.csv.bz2")
    labels = frame.pop("target").astype(str)
    return frame, (labels == (label or labels.value_counts().index[-1])).to_numpy()


def rows_of(name: str) -> tuple[pd.DataFrame, Any]:
    """Return all rows, and whether they are of the rare class."""
    file, label, share = TABLES[name]
    frame, rare = shared_rows(file, label)
    if share is not None:
        found = np.flatnonzero(rare)
        n_kept = round(share / (1.0 - share) * (len(rare) - len(found)))
        kept = np.random.default_rng(1).permutation(found)[:n_kept]
        rows = np.sort(np.concatenate([np.flatnonzero(~rare), kept]))
        frame, rare = frame.iloc[rows].reset_index(drop=True), rare[rows]
    return frame, rare


def split(frame: Any, rare: Any, seed: int = 0) -> Any:
    """Return rows and labels for training and test."""
    return train_test_split(frame, rare, test_size=0.3, random_state=seed, stratify=rare)


def table(name: str) -> Any:
    """Return rows and whether they are of the rare class, for training and test."""
    return split(*rows_of(name))


def fitted(parts: Any, epsilon: float, model: str) -> Any:
    """Fit once; return the probabilities or the scores of the test rows."""
    X, Z, y, _ = parts
    found = MODELS[model](epsilon=epsilon, classes=[False, True]).fit(X, y)
    return (
        found.predict_proba(Z)[:, 1] if model in WITH_PROBABILITIES else found.decision_function(Z)
    )


def boosted(name: str, parts: Any, epsilon: float) -> Any:
    """Return the probabilities of interpret's model, from an environment of its own."""
    X, Z, y, t = parts
    rows, levels = coded_columns(TABLES[name][0], pd.concat([X, Z]))
    train = Coded(rows[: len(y)], levels, np.asarray(y, dtype=np.intp))
    given = Split(train, rows[len(y) :], np.asarray(t), 2)
    return library_answers("interpret", given, epsilon, 1, [{}])[0][0][:, 1]


def figures(t: Any, answers: Any, model: str) -> list[float]:
    """Return the area and, where there are probabilities, the other three figures."""
    area = float(roc_auc_score(t, answers))
    if model not in WITH_PROBABILITIES:
        return [area]
    return [
        area,
        log_loss(t, np.clip(answers, 1e-9, 1.0 - 1e-9)),
        float(np.mean((answers > 0.5) == t)),
        brier_score_loss(t, answers),
    ]


def logistic_area(parts: Any) -> float:
    """Return the area of balanced logistic regression on rows of norm one in exact scales."""
    X, Z, y, t = parts
    scaler = PrivateAUCClassifier(epsilon=math.inf, classes=[False, True]).fit(X, y).scaler_
    train, test = (np.nan_to_num(scaler.transform(part)) for part in (X, Z))
    train, test = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in (train, test))
    model = LogisticRegression(class_weight="balanced", max_iter=5000).fit(train, y)
    return float(roc_auc_score(t, model.decision_function(test)))


def mean_and_error(values: Any) -> str:
    """Say the mean of some figures and its standard error."""
    return f"{np.mean(values):.4f} +- {np.std(values) / math.sqrt(len(values)):.4f}"


def line(found: Any, before: Any = None) -> str:
    """Say the figures of a cell, and by how much the first two differ from the cell before."""
    parts = []
    for place in range(found.shape[1]):
        text = f"{KINDS[place]} {mean_and_error(found[:, place])}"
        if before is not None and place < 2:
            text += f" ({mean_and_error(found[:, place] - before[:, place])})"
        parts.append(text)
    return ", ".join(parts)


def main(options: argparse.Namespace) -> None:
    """Print a line for each table and budget."""
    model = options.model
    for name in options.tables:
        frame, rare = rows_of(name)
        if model not in OF_FRAMES:
            frame = pd.get_dummies(frame, dtype=float).to_numpy()
        seeds = range(options.fits) if options.splits else [0] * options.fits
        parts = [split(frame, rare, seed) for seed in seeds]
        before = None
        for epsilon in (*options.epsilons, *([1e4] if options.splits else [])):
            found = np.array(
                [
                    figures(
                        part[3],
                        boosted(name, part, epsilon)
                        if model == "boosted"
                        else fitted(part, epsilon, model),
                        model,
                    )
                    for part in parts
                ]
            )
            print(f"{name} epsilon {epsilon:g}: {line(found, before)}", flush=True)
            before = found
        if options.splits and model == "auc":
            areas = np.array([[logistic_area(part)] for part in parts])
            print(f"{name} balanced logistic regression: {line(areas)}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", default=list(TABLES))
    parser.add_argument("--fits", type=int, default=6)
    parser.add_argument("--model", choices=(*MODELS, "boosted"), default="table")
    parser.add_argument("--splits", action="store_true")
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    warnings.simplefilter("ignore")
    main(parser.parse_args())
