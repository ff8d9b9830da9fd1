"""Fourier features of all numbers beside curves of single columns, where they begin to be used.

``python -m benchmarks.joint [--strengths 1870 3700] [--fits 3]`` fits `PrivateTableClassifier`
with its default features and with ``features="additive"`` at budgets that have these values of
n mu over the root of the number of encoded columns, to tables of KEEL, which have numbers alone,
and to later tables, most of which have categories. 70 % of the rows train. With ``--constants``,
the default features are compared with those of other constants instead.
"""

from __future__ import annotations

import argparse
import math
import warnings
from contextlib import nullcontext
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from benchmarks.catalogue import LATER, TABLES, Coded, _from_keel
from benchmarks.real_tables import measures
from dp_halfspace import PrivateTableClassifier
from dp_halfspace.engine import features
from dp_halfspace.privacy import Gaussian
from dp_halfspace.privacy.accounting import epsilon

NUMBERS = (
    "banana", "letter", "optdigits", "penbased", "phoneme", "pima", "ring", "satimage", "segment",
    "spambase", "texture", "twonorm", "vehicle", "vowel",
)  # fmt: skip
# What the default is compared with: other features, or another value of a constant.
CURVES = ({"features": "additive"},)
CONSTANTS = (
    {"_FOR_A_JOINT": 6.0},
    {"_FOR_A_JOINT": 24.0},
    {"_JOINT_PER_DIRECTION": 2.0},
    {"_JOINT_PER_DIRECTION": 12.0},
)
# No budget beyond this one is of interest.
LARGEST = 60.0


def several_ways(coded: Coded, strength: float, ways: tuple[Any, ...], n_fits: int) -> Any:
    """Return the mean measures of the default and of others, None if that takes too much budget."""
    X, Z, y, t = train_test_split(coded.X, coded.y, test_size=0.3, random_state=0, stratify=coded.y)
    names = [f"x{i}" for i in range(X.shape[1])]
    schema = {
        name: [str(float(v)) for v in range(n)] if n else "number"
        for name, n in zip(names, coded.levels, strict=True)
    }
    texts = {name: str for name, rule in schema.items() if rule != "number"}
    train, test = (pd.DataFrame(rows, columns=names).astype(texts) for rows in (X, Z))
    n, width = len(y), sum(max(1, levels - (levels == 2)) for levels in coded.levels)
    delta = 1.0 / n**2
    budget = epsilon([Gaussian(strength * math.sqrt(width) / n)], delta)
    if budget > LARGEST:
        return None
    how = {"epsilon": budget, "delta": delta, "classes": np.unique(y), "schema": schema}
    found = []
    for way in ({}, *ways):
        fits = []
        constants = {name: value for name, value in way.items() if hasattr(features, name)}
        with mock.patch.multiple(features, **constants) if constants else nullcontext():
            for _ in range(n_fits):
                others = {name: value for name, value in way.items() if name not in constants}
                model = PrivateTableClassifier(**how, **others).fit(train, y)
                fits.append(measures(model.predict_proba(test), t, max(y) + 1))
        found.append([np.mean([one[m] for one in fits]) for m in ("accuracy", "area", "log_loss")])
    return np.array(found)


def main() -> None:
    """Print a line for each table, and the mean change of each group."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--strengths", type=float, nargs="*", default=[1870.0, 3700.0])
    options.add_argument("--fits", type=int, default=3)
    options.add_argument("--constants", action="store_true")
    given = options.parse_args()
    warnings.simplefilter("ignore")
    ways = CONSTANTS if given.constants else CURVES
    groups = {
        "numbers": {name: partial(_from_keel, name) for name in NUMBERS},
        "later tables": {name: TABLES[name].load for name in LATER},
    }
    print("accuracy, area and log loss: with the defaults, and how others change them")
    for strength in given.strengths:
        for group, tables in groups.items():
            changes = []
            for name, load in tables.items():
                found = several_ways(load(), strength, ways, given.fits)
                if found is not None:
                    changes.append(found[1:] - found[0])
                    print(f"{strength:g} {name:14s}", found[0].round(3), *changes[-1].round(3))
            error = np.std(changes, axis=0, ddof=1) / math.sqrt(len(changes))
            for way, *figures in zip(ways, np.mean(changes, axis=0), error, strict=True):
                print(f"{strength:g} {group}, {len(changes)}, {way}:", *figures)


if __name__ == "__main__":
    main()
