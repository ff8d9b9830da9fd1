"""Tables with a rare class through PrivateTableClassifier: area, log loss, accuracy, Brier score.

``python -m benchmarks.rare_tables [TABLE ...] --fits 6`` needs the shared tables in the folder
named by the environment variable ``DP_HALFSPACE_DATA``. No schema is given. With ``--boosted`` it
is interpret's private boosted additive model instead, which is given the ranges of the columns.
"""

from __future__ import annotations

import argparse
import math
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

from benchmarks.catalogue import Coded, coded_columns
from benchmarks.real_tables import Split, library_answers
from dp_halfspace import PrivateTableClassifier

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
}


def table(name: str) -> tuple[pd.DataFrame, pd.DataFrame, Any, Any]:
    """Return rows and whether they are of the rare class, for training and test."""
    file, label, share = TABLES[name]
    folder = Path(os.environ["DP_HALFSPACE_DATA"]) / "tables"
    frame = pd.read_csv(folder / f"{file}.csv.bz2")
    labels = frame.pop("target").astype(str)
    rare = (labels == (label or labels.value_counts().index[-1])).to_numpy()
    if share is not None:
        found = np.flatnonzero(rare)
        n_kept = round(share / (1.0 - share) * (len(rare) - len(found)))
        kept = np.random.default_rng(1).permutation(found)[:n_kept]
        rows = np.sort(np.concatenate([np.flatnonzero(~rare), kept]))
        frame, rare = frame.iloc[rows].reset_index(drop=True), rare[rows]
    parts = train_test_split(frame, rare, test_size=0.3, random_state=0, stratify=rare)
    return tuple(parts)  # type: ignore[return-value]


def fitted(parts: Any, epsilon: float, fits: int) -> list[Any]:
    """Fit so often; return the probabilities of the test rows."""
    X, Z, y, _ = parts
    models = (
        PrivateTableClassifier(epsilon=epsilon, classes=[False, True]).fit(X, y)
        for _ in range(fits)
    )
    return [model.predict_proba(Z)[:, 1] for model in models]


def boosted(name: str, parts: Any, epsilon: float, fits: int) -> list[Any]:
    """Do the same with interpret's model, in an environment of its own."""
    X, Z, y, t = parts
    rows, levels = coded_columns(TABLES[name][0], pd.concat([X, Z]))
    train = Coded(rows[: len(y)], levels, np.asarray(y, dtype=np.intp))
    given = Split(train, rows[len(y) :], np.asarray(t), 2)
    return [found[:, 1] for found in library_answers("interpret", given, epsilon, fits, [{}])[0]]


def figures(t: Any, probabilities: Any) -> list[float]:
    """Return area, log loss, accuracy and Brier score of one fit."""
    return [
        roc_auc_score(t, probabilities),
        log_loss(t, np.clip(probabilities, 1e-9, 1.0 - 1e-9)),
        float(np.mean((probabilities > 0.5) == t)),
        brier_score_loss(t, probabilities),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", default=list(TABLES))
    parser.add_argument("--fits", type=int, default=6)
    parser.add_argument("--boosted", action="store_true")
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.tables:
        parts = table(name)
        for epsilon in options.epsilons:
            given = (parts, epsilon, options.fits)
            answers = boosted(name, *given) if options.boosted else fitted(*given)
            found = np.array([figures(parts[3], answer) for answer in answers])
            mean, error = found.mean(axis=0), found.std(axis=0) / math.sqrt(len(found))
            print(
                f"{name} epsilon {epsilon:g}: area {mean[0]:.3f} +- {error[0]:.3f}, "
                f"log loss {mean[1]:.3f} +- {error[1]:.3f}, accuracy {mean[2]:.4f}, "
                f"Brier {mean[3]:.4f}",
                flush=True,
            )
