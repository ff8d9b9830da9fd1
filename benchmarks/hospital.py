"""Tables as hospitals have them, made up: areas under the ROC curve of the defaults, and warnings.

``python -m benchmarks.hospital [--fits 5] [--sizes 300 2000 20000] [--epsilons .3 1 3]``. Fifteen
columns beside a key: ages, laboratory values with missing entries and skew, platelets per
microlitre, 200 diagnosis codes, a ward, dates in two formats; several rows for each patient, 8 %
positive. Every fit draws a table of its own; areas are those of 20,000 other rows. The prior is a
logistic regression of 2,000 rows of another such table. Needs no data.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from benchmarks.cells import RESULTS, merge, provenance, versions
from benchmarks.tables import markdown
from dp_halfspace import AdaptiveMarginClassifier, PrivateAUCClassifier, PrivateTableClassifier

NUMBERS = (
    "age", "lactate", "creatinine", "crp", "sodium", "haemoglobin", "platelets", "pulse",
    "pressure",
)  # fmt: skip
CATEGORIES = ("sex", "smoker", "ward", "code")
SCHEMA = {
    "patient_id": "drop",
    "age": [18, 110],
    **dict.fromkeys(NUMBERS[1:], "number"),
    "sex": ["f", "m"],
    "smoker": "boolean",
    "ward": ["A", "B", "C", "D", "E"],
    "code": "text",
    "admitted": {"kind": "date", "format": "%d.%m.%Y"},
    "discharged": "date",
}
# What a laboratory would state.
RANGES = {
    "lactate": [0, 20], "creatinine": [20, 1000], "crp": [0, 400], "sodium": [110, 170],
    "haemoglobin": [4, 20], "platelets": [0, 1_000_000], "pulse": [20, 220], "pressure": [50, 260],
}  # fmt: skip
_TESTED, _PUBLIC, _SHARE, _MISSING = 20_000, 2000, 0.08, 0.12


def hospital(n: int, seed: int) -> tuple[pd.DataFrame, Any]:
    """Make a table of admissions, and whether the outcome was bad."""
    rng = np.random.default_rng([seed, n])
    patient = np.sort(rng.integers(0, max(1, round(0.6 * n)), n))
    ill = rng.standard_normal(n)
    day = rng.integers(0, 700, n)
    stay = rng.geometric(0.15, n)
    start = np.datetime64("2023-01-01")
    codes = rng.zipf(1.5, n) % 200
    table = pd.DataFrame(
        {
            "patient_id": 100_000 + patient,
            "age": np.clip(rng.normal(63, 16, n), 18, 100).round(),
            "lactate": rng.lognormal(0.4 + 0.35 * ill, 0.4).round(1),
            "creatinine": rng.lognormal(4.5, 0.45, n).round(),
            "crp": rng.lognormal(3.0 + 0.4 * ill, 1.0).round(1),
            "sodium": rng.normal(139, 4, n).round(),
            "haemoglobin": rng.normal(12.8 - 0.6 * ill, 1.8).round(1),
            "platelets": (1000.0 * rng.lognormal(5.5, 0.4, n)).round(),
            "pulse": rng.normal(84 + 6 * ill, 14).round(),
            "pressure": rng.normal(132 - 7 * ill, 19).round(),
            "sex": rng.choice(["f", "m"], n),
            "smoker": rng.choice(["yes", "no"], n),
            "ward": rng.choice(["A", "B", "C", "D", "E"], n),
            "code": [f"I{code:03d}" for code in codes],
            "admitted": pd.Series(start + day).dt.strftime("%d.%m.%Y"),
            "discharged": pd.Series(start + day + stay).dt.strftime("%Y-%m-%d"),
        }
    )
    score = (
        0.05 * (table["age"] - 63)
        + 1.2 * ill
        + 0.9 * np.log(table["creatinine"] / 90)
        + 0.5 * (table["sodium"] < 133)
        + 0.5 * table["ward"].isin(["D", "E"])
        + 0.8 * (codes % 7 == 0)
    )
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if expit(score + middle).mean() < _SHARE else (low, middle)
    outcome = (rng.random(n) < expit(score + low)).astype(int).to_numpy()
    for name in NUMBERS[1:]:
        table.loc[rng.random(n) < _MISSING, name] = np.nan
    return table, outcome


def _regression() -> Any:
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    codes = OneHotEncoder(handle_unknown="ignore", min_frequency=20)
    columns = make_column_transformer((numbers, list(NUMBERS)), (codes, list(CATEGORIES)))
    return make_pipeline(columns, LogisticRegression(C=0.1, max_iter=2000))


def _boosting() -> Any:
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    columns = make_column_transformer(("passthrough", list(NUMBERS)), (codes, list(CATEGORIES)))
    return make_pipeline(columns, HistGradientBoostingClassifier(early_stopping=True))


def _table(epsilon: float) -> Any:
    return PrivateTableClassifier(epsilon=epsilon, schema=SCHEMA, classes=[0, 1])


def _ranges(epsilon: float) -> Any:
    return PrivateTableClassifier(epsilon=epsilon, schema={**SCHEMA, **RANGES}, classes=[0, 1])


def _ranking(epsilon: float) -> Any:
    columns = make_column_transformer(("passthrough", list(NUMBERS)), sparse_threshold=0)
    return make_pipeline(columns, PrivateAUCClassifier(epsilon=epsilon, classes=[0, 1]))


@cache
def _published() -> tuple[Any, Any]:
    """Fill in and fit a logistic regression to 2,000 rows of another, public table."""
    table, outcome = hospital(_PUBLIC, 99)
    filled = SimpleImputer(strategy="median").fit(table[list(NUMBERS)].to_numpy())
    rows = filled.transform(table[list(NUMBERS)].to_numpy())
    model = LogisticRegression(C=0.1, class_weight="balanced")
    return FrozenEstimator(filled), make_pipeline(StandardScaler(), model).fit(rows, outcome)


def _with_prior(epsilon: float) -> Any:
    columns = make_column_transformer(("passthrough", list(NUMBERS)), sparse_threshold=0)
    filled, prior = _published()
    # Errors hardly tell a ranking from the majority class: PUBLIC weights, by a rate that is known.
    weights = {0: _SHARE, 1: 1.0 - _SHARE}
    given = {"classes": [0, 1], "class_weight": weights, "prior": prior}
    return make_pipeline(columns, filled, AdaptiveMarginClassifier(epsilon=epsilon, **given))


PLAIN = {"logistic regression": _regression, "gradient boosting": _boosting}
PRIVATE = {
    "PrivateTableClassifier": _table,
    "PrivateTableClassifier, ranges stated": _ranges,
    "PrivateAUCClassifier, 9 numbers": _ranking,
    "AdaptiveMarginClassifier, 9 numbers and a public prior": _with_prior,
}


def area(model: Any, n: int, seed: int) -> tuple[float, bool]:
    """Fit once; return the area, and whether the fit warned of what to expect."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(*hospital(n, seed))
    warned = any("expect about" in str(found.message) for found in caught)
    table, outcome = hospital(_TESTED, 10_000 + seed)
    return float(roc_auc_score(outcome, model.decision_function(table))), warned


def _cell(make: Any, n: int, fits: int) -> dict[str, Any]:
    areas, warned = zip(*(area(make(), n, seed) for seed in range(fits)), strict=True)
    return {
        "mean": float(np.mean(areas)),
        "sd": float(np.std(areas, ddof=1)) if fits > 1 else 0.0,
        "draws": fits,
        "warned": any(warned),
        **provenance(),
    }


def shown(cells: dict[str, Any]) -> str:
    """Return the table of the page: a star where the fit warned before anything was spent."""
    rows = []
    for n, found in cells.items():
        row = [f"{int(n):,}", " / ".join(f"{found[name]['any']['mean']:.2f}" for name in PLAIN)]
        for name in PRIVATE:
            row.append(
                " / ".join(
                    f"{cell['mean']:.2f}{'*' if cell['warned'] else ''}"
                    for cell in found[name].values()
                )
            )
        rows.append(row)
    return markdown(["rows", " / ".join(PLAIN), *PRIVATE], rows)


def main(argv: Sequence[str] | None = None) -> None:
    """Run what is asked for, store it and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=[300, 2000, 20_000])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.3, 1.0, 3.0])
    parser.add_argument("--out", type=Path, default=RESULTS / "hospital.json")
    options = parser.parse_args(argv)
    cells: dict[str, Any] = {}
    for n in options.sizes:
        found = cells[str(n)] = {}
        for name, plain in PLAIN.items():
            found[name] = {"any": _cell(plain, n, options.fits)}
        for name, private in PRIVATE.items():
            found[name] = {
                f"{epsilon:g}": _cell(lambda e=epsilon, make=private: make(e), n, options.fits)
                for epsilon in options.epsilons
            }
        merge(options.out, "cells", str(n), value=found)
    merge(options.out, "versions", value=versions())
    print(shown(cells))


if __name__ == "__main__":
    main()
