"""Real tables: means, wins and losses beside libraries, by accuracy, area and log loss.

``python -m benchmarks.real_tables [TABLE ...]`` runs, ``--page`` rewrites the tables of
docs/real_tables.md. Tables are those of `catalogue`, capped at 6000 rows. 70 % train, 15 %
validate, 15 % test, every method gets the same coded rows and ranges, and trains on the training
rows alone. The setting of a library is the best of its grid on the
validation rows, by the measure that is shown, at no cost in privacy; the best on the test rows is
kept beside it. Classifiers of this package run with their defaults. A cell that is in the file is
not run again, unless ``--refresh`` says so.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

from benchmarks.catalogue import LATER, TABLES, Coded
from benchmarks.cells import RESULTS, merge, provenance, read, versions
from benchmarks.environments import interpreter, missing
from benchmarks.library_worker import one_against_rest, one_hot, unit_rows
from benchmarks.rare import boosted
from benchmarks.tables import fill
from dp_halfspace import AdaptiveMarginClassifier, PrivateTableClassifier
from dp_halfspace.privacy import gdp_epsilon, gdp_mu

OUT = RESULTS / "real_tables.json"
DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = DOCS / "real_tables.md"
WORKER = Path(__file__).with_name("library_worker.py")
EPSILONS = (1.0, 0.3, 3.0)
MOST_ROWS, FITS = 6000, 3
# A probability of zero costs as much as this one.
LEAST_PROBABILITY = 1e-6
MEASURES = {"accuracy": 1, "area": 1, "log_loss": -1}
_SHOWN = ("0.3", "1", "3")


@dataclass(frozen=True)
class Library:
    """A library in an environment of its own: what it needs, and the grid of its settings."""

    name: str
    requirements: tuple[str, ...]
    module: str
    settings: tuple[Mapping[str, Any], ...]
    fits: int = FITS
    most_columns: int = 10_000


_TREES = ({"trees": 5, "depth": 3}, {"trees": 20, "depth": 3}, {"trees": 20, "depth": 5})
_RATES = (
    {"hidden": 0, "rate": 0.5, "clip": 1.0},
    {"hidden": 0, "rate": 4.0, "clip": 0.3},
    {"hidden": 32, "rate": 0.5, "clip": 1.0},
)
LIBRARIES: dict[str, Library] = {
    "diffprivlib": Library(
        "diffprivlib-0.6.6", ("scikit-learn==1.7.2", "diffprivlib==0.6.6"), "diffprivlib.models",
        ({"C": 0.001}, {"C": 0.01}, {"C": 0.1}, {"C": 1.0}, {"C": 10.0}),
    ),
    "dp_xgboost": Library(
        "dp-xgboost-0.2.10", ("dp-xgboost==0.2.10", "numpy<2", "scipy<1.14", "pandas<3"),
        "dp_xgboost", _TREES,
    ),
    "interpret": Library(
        "interpret-0.7.8", ("interpret-core==0.7.8", "pandas"), "interpret.privacy",
        ({}, {"max_rounds": 50}), fits=2,
    ),
    "opacus": Library("opacus-1.6.0", ("torch", "opacus==1.6.0"), "opacus", _RATES, fits=2),
    "smartnoise": Library(
        "smartnoise-synth-1.0.8", ("smartnoise-synth==1.0.8", "mbi==1.1.0", "scikit-learn"),
        "snsynth", ({"method": "mst"},), fits=1, most_columns=22,
    ),
}  # fmt: skip
TITLES = {
    "majority": "majority class",
    "logistic": "LogisticRegression, not private",
    "boosting": "gradient boosting, not private",
    "table": "`PrivateTableClassifier`",
    "table_alike": "`PrivateTableClassifier`, guarantee of Opacus",
    "margin": "`AdaptiveMarginClassifier`",
    "margin_pure": "`AdaptiveMarginClassifier`, `delta=0`",
    "diffprivlib": "diffprivlib, logistic regression (pure)",
    "dp_xgboost": "dp-xgboost, boosted trees (pure)",
    "random_trees": "boosted random trees, our code",
    "interpret": "interpret, DP-EBM",
    "opacus": "Opacus, DP-SGD",
    "smartnoise": "SmartNoise MST, boosting on its rows",
}
BASELINES = ("majority", "logistic", "boosting")
OURS = ("table", "table_alike", "margin", "margin_pure")


@dataclass(frozen=True)
class Split:
    """Coded rows to train on; rows to score, the first half of which validate."""

    train: Coded
    X: Any
    y: Any
    n_classes: int


def split(coded: Coded) -> Split:
    """Divide at most `MOST_ROWS` rows by public randomness."""
    X, y = coded.X, coded.y
    if len(y) > MOST_ROWS:
        X, _, y, _ = train_test_split(X, y, train_size=MOST_ROWS, random_state=0, stratify=y)
    X, Z, y, t = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    V, Z, v, t = train_test_split(Z, t, test_size=0.5, random_state=0, stratify=t)
    train = Coded(X, coded.levels, y)
    return Split(train, np.vstack([V, Z]), np.r_[v, t], int(max(coded.y)) + 1)


def measures(answer: Any, truth: Any, n_classes: int) -> dict[str, float]:
    """Score probabilities, or a single column of scores, which has no log loss."""
    if answer.shape[1] == 1:
        area = roc_auc_score(truth, answer[:, 0])
        return {"accuracy": float(np.mean((answer[:, 0] > 0) == truth)), "area": float(area)}
    found = {"accuracy": float(np.mean(answer.argmax(axis=1) == truth))}
    if np.allclose(answer.sum(axis=1), 1.0):  # scores that are no probabilities have no log loss
        sums = np.maximum(answer, LEAST_PROBABILITY)
        sums /= sums.sum(axis=1, keepdims=True)
        found["log_loss"] = float(log_loss(truth, sums, labels=range(n_classes)))
    areas = [roc_auc_score(truth == k, answer[:, k]) for k in range(n_classes)]
    found["area"] = float(areas[1] if n_classes == 2 else np.mean(areas))
    return found


def _frame(X: Any, levels: Sequence[int]) -> pd.DataFrame:
    """Write categories as strings."""
    columns = {}
    for i, (values, n) in enumerate(zip(X.T, levels, strict=True)):
        columns[f"x{i}"] = values.astype(int).astype(str) if n else values
    return pd.DataFrame(columns)


def fit_table(parts: Split, epsilon: float) -> Any:
    """Fit PrivateTableClassifier with a schema of all columns."""
    levels = parts.train.levels
    rules = {
        f"x{i}": [str(v) for v in range(n)] if n else [-1.0, 1.0] for i, n in enumerate(levels)
    }
    # A list of one category says nothing.
    schema = {name: rule if len(rule) > 1 else "drop" for name, rule in rules.items()}
    classes = list(range(parts.n_classes))
    model = PrivateTableClassifier(epsilon=epsilon, schema=schema, classes=classes)
    return model.fit(_frame(parts.train.X, levels), parts.train.y).predict_proba(
        _frame(parts.X, levels)
    )


def fit_alike(parts: Split, epsilon: float) -> Any:
    """Fit PrivateTableClassifier with the guarantee of Opacus, stated for replacing a record.

    What is mu-GDP for adding or removing a record is 2 mu-GDP for replacing one.
    """
    delta = len(parts.train.y) ** -2.0
    return fit_table(parts, gdp_epsilon(2.0 * gdp_mu(epsilon, delta), delta))


def fit_margin(parts: Split, epsilon: float, **options: Any) -> Any:
    """Fit AdaptiveMarginClassifier to the normalised rows that the linear libraries get."""
    train, rows = (unit_rows(one_hot(X, parts.train.levels)) for X in (parts.train.X, parts.X))
    classes = list(range(parts.n_classes))
    model = AdaptiveMarginClassifier(epsilon=epsilon, data_norm=1.0, classes=classes, **options)
    model.fit(train, parts.train.y)
    if hasattr(model, "predict_proba"):
        return model.predict_proba(rows)
    scores = model.decision_function(rows)
    if scores.ndim == 1:
        return scores[:, None]
    return scores


def fit_random_trees(parts: Split, epsilon: float, **setting: int) -> Any:
    """Boost trees whose splits look at no record, on columns of [0, 1]; K models for K classes."""
    numbers = np.asarray(parts.train.levels) == 0
    train, rows = (
        one_hot(np.where(numbers, (X + 1.0) / 2.0, X), parts.train.levels)
        for X in (parts.train.X, parts.X)
    )
    mu = gdp_mu(epsilon, len(parts.train.y) ** -2.0)

    def fit(positive: Any, mu: float) -> Any:
        return expit(boosted(train, positive, rows, mu, **setting))

    return one_against_rest(fit, parts.train.y, parts.n_classes, mu)


def fit_exactly(parts: Split, epsilon: float, make: Callable[[], Any] | None) -> Any:
    """Fit without privacy; without a model answer with the shares of the classes."""
    del epsilon
    if make is None:
        shares = np.bincount(parts.train.y, minlength=parts.n_classes) / len(parts.train.y)
        return np.tile(shares, (len(parts.X), 1))
    train, rows = (one_hot(X, parts.train.levels) for X in (parts.train.X, parts.X))
    return make().fit(train, parts.train.y).predict_proba(rows)


HERE: dict[str, Callable[..., Any]] = {
    "majority": partial(fit_exactly, make=None),
    "logistic": partial(fit_exactly, make=partial(LogisticRegression, max_iter=1000)),
    "boosting": partial(fit_exactly, make=partial(HistGradientBoostingClassifier, random_state=0)),
    "table": fit_table,
    "table_alike": fit_alike,
    "margin": fit_margin,
    "margin_pure": partial(fit_margin, delta=0.0),
    "random_trees": fit_random_trees,
}
GRIDS: dict[str, tuple[Mapping[str, Any], ...]] = {
    "random_trees": (
        {"trees": 20, "depth": 3}, {"trees": 100, "depth": 4}, {"trees": 100, "depth": 6},
    ),
}  # fmt: skip


def library_answers(
    library: str,
    parts: Split,
    epsilon: float,
    fits: int,
    settings: Sequence[Mapping[str, Any]] | None = None,
) -> Any:
    """Ask the worker: settings x draws x rows x classes."""
    about = LIBRARIES[library]
    reason = missing(about.name, about.requirements, about.module)
    if reason:
        raise OSError(reason)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "in.npz"), Path(folder, "out.npz")
        np.savez(
            source, X=parts.train.X, levels=parts.train.levels, y=parts.train.y, Z=parts.X,
            n_classes=parts.n_classes, epsilon=epsilon, delta=len(parts.train.y) ** -2.0,
            draws=fits, settings=json.dumps(about.settings if settings is None else settings),
        )  # fmt: skip
        command = [str(interpreter(about.name)), str(WORKER), library, str(source), str(target)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise OSError((done.stderr.strip().splitlines() or ["no message"])[-1][:200])
        with np.load(target) as answer:
            return answer["probabilities"]


def cell(method: str, parts: Split, epsilon: float, fits: int) -> dict[str, Any]:
    """Fit and score; measures of the validation and of the test rows, for each setting."""
    started = time.perf_counter()
    if method in HERE:
        n_draws = 1 if method in BASELINES else fits
        answers = [
            [HERE[method](parts, epsilon, **setting) for _ in range(n_draws)]
            for setting in GRIDS.get(method, ({},))
        ]
    else:
        n_draws = min(fits, LIBRARIES[method].fits)
        answers = library_answers(method, parts, epsilon, n_draws)
    seconds = time.perf_counter() - started
    half = math.floor(len(parts.y) / 2)
    found = []
    for draws in answers:
        scored = {
            name: [measures(np.asarray(a)[rows], parts.y[rows], parts.n_classes) for a in draws]
            for name, rows in (("validation", slice(0, half)), ("test", slice(half, None)))
        }
        means = {
            name: {m: float(np.mean([one[m] for one in each])) for m in each[0]}
            for name, each in scored.items()
        }
        if n_draws > 1:
            test = scored["test"]
            means["sd"] = {m: float(np.std([one[m] for one in test], ddof=1)) for m in test[0]}
        found.append(means)
    n_fits = n_draws * len(found)
    seconds_per_fit = round(seconds / n_fits, 3)
    return {
        "settings": found, "fits": n_draws, "seconds_per_fit": seconds_per_fit, **provenance(),
    }  # fmt: skip


def figure(found: Mapping[str, Any], measure: str, chosen_by: str = "validation") -> float | None:
    """Return the test figure of the setting that is best by `measure` on some rows."""
    settings = [s for s in found.get("settings", ()) if measure in s["test"]]
    if not settings:
        return None
    best = max(settings, key=lambda s: MEASURES[measure] * s[chosen_by][measure])
    return float(best["test"][measure])


def figures(results: Mapping[str, Any], measure: str, epsilon: str, by: str) -> dict[str, Any]:
    """Test figures of all methods: table to method to number."""
    return {
        name: {
            method: value
            for method, cells in found.items()
            for value in [figure(cells.get(epsilon, {}), measure, by)]
            if value is not None
        }
        for name, found in results.get("cells", {}).items()
    }


def _wins(mine: float, other: float, sign: int) -> float:
    """One for a better figure, one half for one that is equal to four digits."""
    gap = round(sign * (mine - other), 4)
    return 0.5 if gap == 0 else float(gap > 0)


def _groups(results: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the tables that were measured: first ones, those that chose nothing, later ones."""
    first = [n for n in results.get("cells", {}) if n not in LATER]
    return {
        "first tables": first,
        "of these, no constant chosen": [n for n in first if not TABLES[n].chosen_on],
        "tables found later": [n for n in results.get("cells", {}) if n in LATER],
    }


def wins(pairs: Sequence[Sequence[Mapping[str, float]]], sign: int, n_tables: int) -> str:
    """Say for each pair on how many tables the first is better; equal to four digits is a half.

    The number of tables that both have is added where it is not `n_tables`.
    """
    counts, texts = set(), []
    for mine, other in pairs:
        both = [name for name in mine if name in other]
        won = sum(_wins(mine[name], other[name], sign) for name in both)
        texts.append(f"{won:g}" if both else "-")
        counts |= {len(both)} - {0}
    if not counts:
        return "-"
    return "/".join(texts) + ("" if counts == {n_tables} else f" of {max(counts)}")


# Measures by which the tables are counted on which a method is ahead.
_COUNTED = ("accuracy", "area")


def means_and_wins(results: Mapping[str, Any], names: Sequence[str]) -> list[list[str]]:
    """Rows of a table: a method, its means at all budgets, and how often `table` is better.

    A mean is shown if the method has a figure on every table.
    """
    found = {
        (measure, epsilon): figures(results, measure, epsilon, "validation")
        for measure in MEASURES
        for epsilon in _SHOWN
    }

    def of(method: str, measure: str, epsilon: str) -> dict[str, float]:
        label = "any" if method in BASELINES else epsilon
        every = figures(results, measure, label, "validation") if label == "any" else None
        cells = every or found[measure, epsilon]
        return {name: cells[name][method] for name in names if method in cells.get(name, {})}

    rows = []
    for method, method_title in TITLES.items():
        row = [method_title]
        for measure in MEASURES:
            each = [of(method, measure, epsilon) for epsilon in _SHOWN]
            texts = [
                f"{np.mean(list(one.values())):.3f}".removeprefix("0") if len(one) == len(names)
                else "-"
                for one in each
            ]  # fmt: skip
            unique = texts[:1] if method in BASELINES or set(texts) == {"-"} else texts
            row.append("/".join(unique))
        for measure in _COUNTED:
            pairs = [(of("table", measure, e), of(method, measure, e)) for e in _SHOWN]
            won = wins(pairs, MEASURES[measure], len(names))
            row.append("" if method in ("table", "table_alike") else won)
        if set(row[1:]) - {"-", ""}:
            rows.append(row)
    return rows


def summary(results: Mapping[str, Any]) -> str:
    """Lay out means, wins and losses of each method at all budgets, for each group of tables."""
    parts = []
    for title, names in _groups(results).items():
        if names:
            head = [f"{title} ({len(names)})", "accuracy", "area", "log loss"]
            head += [f"ahead of it, {m}" for m in _COUNTED]
            rows = (head, ["---"] * len(head), *means_and_wins(results, names))
            parts.append("\n".join(_line(row) for row in rows))
    return "\n\n".join(parts)


# A library is listed as ahead on a table from this difference on.
LEAST_LOSS = 0.02


def losses(results: Mapping[str, Any]) -> str:
    """Lay out the tables on which the best library is clearly ahead of PrivateTableClassifier."""
    head = [
        "epsilon",
        "measure",
        "library that is ahead: its figure/`PrivateTableClassifier`",
    ]
    rows = [head, ["---"] * 3]
    for epsilon in _SHOWN:
        for measure in _COUNTED:
            texts = []
            for name, cells in figures(results, measure, epsilon, "validation").items():
                ours = cells.get("table")
                others = {m: v for m, v in cells.items() if m not in OURS}
                if ours is None or not others:
                    continue
                best = max(others, key=lambda m, others=others: others[m])
                if others[best] - ours > LEAST_LOSS:
                    pair = f"{others[best]:.3f}/{ours:.3f}".replace("0.", ".")
                    texts.append(f"{_starred(name)} {best} {pair}")
            rows.append([epsilon, measure, "; ".join(texts) or "none"])
    return "\n".join(_line(row) for row in rows)


def _starred(name: str) -> str:
    return f"`{name}`" + ("" if TABLES[name].chosen_on else "\\*")


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def main(argv: Sequence[str] | None = None) -> None:
    """Run what the file does not hold, or write the page."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("tables", nargs="*", default=list(TABLES))
    options.add_argument("--methods", nargs="+", default=list(TITLES), choices=list(TITLES))
    options.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    options.add_argument("--fits", type=int, default=FITS)
    options.add_argument("--refresh", action="store_true", help="run cells of the file again")
    options.add_argument("--out", type=Path, default=OUT)
    options.add_argument(
        "--page", type=Path, nargs="?", const=PAGE, help="rewrite its tables, run nothing"
    )
    given = options.parse_args(argv)
    warnings.simplefilter("ignore")
    if given.page:
        found = read(given.out)
        parts = {"real_tables": summary(found), "real_tables_losses": losses(found)}
        given.page.write_text(fill(given.page.read_text(), parts))
        return
    merge(given.out, "versions", value=versions())
    for epsilon in given.epsilons:
        for method in given.methods:
            for name in given.tables:
                _run(given, name, method, "any" if method in BASELINES else f"{epsilon:g}", epsilon)


_SPLITS: dict[str, Split] = {}


def _run(given: argparse.Namespace, name: str, method: str, label: str, epsilon: float) -> None:
    """Run one cell unless it is there; a library that fails has its reason in the file."""
    found = read(given.out).get("cells", {}).get(name, {}).get(method, {})
    if label in found and not given.refresh:
        return
    if name not in _SPLITS:
        _SPLITS[name] = split(TABLES[name].load())
    parts = _SPLITS[name]
    if method in LIBRARIES and len(parts.train.levels) > LIBRARIES[method].most_columns:
        return
    try:
        value = cell(method, parts, epsilon, given.fits)
    except (OSError, ValueError) as error:
        merge(given.out, "failed", name, method, label, value=str(error))
        print(f"{name:14} {method:12} {label:4} failed: {error}", flush=True)
        return
    merge(given.out, "cells", name, method, label, value=value)
    accuracy = figure(value, "accuracy")
    print(
        f"{name:14} {method:12} {label:4} {accuracy:.3f} {value['seconds_per_fit']} s", flush=True
    )


if __name__ == "__main__":
    main()
