"""Is a larger epsilon better? Falls between budgets, and probabilities worse than no model.

``python -m benchmarks.budgets`` fits `PrivateTableClassifier` and `AdaptiveMarginClassifier` to the
tables of two classes among the later ones, eight times at each of ten budgets, about 20 minutes;
``--page`` rewrites the table of docs/benchmarks/budgets.md.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.catalogue import LATER, TABLES
from benchmarks.cells import RESULTS, merge, provenance, read, versions
from benchmarks.real_tables import HERE, TITLES, Split, measures, split
from benchmarks.tables import fill, markdown

OUT = RESULTS / "budgets.json"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "budgets.md"
EPSILONS = ("0.1", "0.2", "0.3", "0.5", "0.7", "1", "1.5", "2", "3", "10")
CLASSES, FITS = ("table", "margin"), 8
# What is better if it is larger, and what is not.
SIGNS = {"accuracy": 1.0, "area": 1.0, "log_loss": -1.0}
# A difference counts if it is larger than this, and than so many standard errors.
LEAST, ERRORS = 0.01, 3.5
# Probabilities are compared from this number of rows times epsilon on, where logistic regression
# ranks better than this area.
STRENGTH, LEAST_AREA, LEAST_LOSS = 300.0, 0.55, 0.002


def scores(parts: Split, method: str, epsilon: float) -> dict[str, float]:
    """Fit once, and score the other rows."""
    answer = HERE[method](parts, epsilon)
    found = measures(answer, parts.y, parts.n_classes)
    return {**found, "brier": float(np.mean((answer[:, 1] - parts.y) ** 2))}


def summary(rows: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    """Return means, and their standard errors, of several fits."""
    names, n = list(rows[0]), len(rows)
    values = np.array([[row[name] for name in names] for row in rows])
    errors = values.std(axis=0, ddof=1) / math.sqrt(n) if n > 1 else np.zeros(len(names))
    return {
        "mean": dict(zip(names, values.mean(axis=0).tolist(), strict=True)),
        "error": dict(zip(names, errors.tolist(), strict=True)),
    }


def run(names: list[str], out: Path) -> None:
    """Fit what the file does not hold."""
    for name in names:
        parts, found = split(TABLES[name].load()), read(out).get("cells", {}).get(name, {})
        if parts.n_classes != 2:
            continue
        jobs = [(method, "any", 1) for method in ("majority", "logistic")]
        jobs += [(method, epsilon, FITS) for method in CLASSES for epsilon in EPSILONS]
        for method, epsilon, fits in jobs:
            if epsilon in found.get(method, {}):
                continue
            at = 1.0 if epsilon == "any" else float(epsilon)
            value = summary([scores(parts, method, at) for _ in range(fits)])
            value |= {"fits": fits, "n_train": len(parts.train.y), **provenance()}
            merge(out, "cells", name, method, epsilon, value=value)
    merge(out, "versions", value=versions())


def falls(cells: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str, str, float]]:
    """Yield the largest clear fall of each measure of a class on a table, between two budgets."""
    for name, methods in cells.items():
        for method in CLASSES:
            for measure, sign in SIGNS.items():
                found = []
                for low, high in combinations(EPSILONS, 2):
                    at = [methods[method][epsilon] for epsilon in (low, high)]
                    fall = sign * (at[0]["mean"][measure] - at[1]["mean"][measure])
                    error = math.hypot(*(one["error"][measure] for one in at))
                    if fall > max(LEAST, ERRORS * error):
                        found.append((fall, low, high))
                if found:
                    fall, low, high = max(found)
                    yield name, method, measure, low, high, fall


def worse_than_shares(cells: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str, float]]:
    """Yield the cells whose probabilities are clearly worse than the shares of the classes."""
    for name, methods in cells.items():
        shares = methods["majority"]["any"]["mean"]
        if methods["logistic"]["any"]["mean"]["area"] <= LEAST_AREA:
            continue
        for method in CLASSES:
            for epsilon in EPSILONS:
                one = methods[method][epsilon]
                for measure in ("brier", "log_loss"):
                    more = one["mean"][measure] - shares[measure]
                    enough = one["n_train"] * float(epsilon) >= STRENGTH
                    if enough and more > max(LEAST_LOSS, ERRORS * one["error"][measure]):
                        yield name, method, measure, epsilon, more


def tables(cells: Mapping[str, Any]) -> dict[str, str]:
    """Return the parts of the page: a row for each table and measure, a column for each class."""
    words = {"log_loss": "log loss", "brier": "Brier score"}
    fallen: dict[tuple[str, str], dict[str, str]] = {}
    for name, method, measure, low, high, fall in falls(cells):
        found = fallen.setdefault((name, words.get(measure, measure)), {})
        found[method] = f"{low} to {high}: {_short(fall)}"
    worse: dict[tuple[str, str], dict[str, str]] = {}
    for name, method, measure, epsilon, more in worse_than_shares(cells):
        found = worse.setdefault((name, words[measure]), {})
        found[method] = ", ".join(
            [*found.get(method, "").split(", "), f"{epsilon}: {_short(more)}"]
        )
    n_curves = sum(map(len, fallen.values()))
    n_all = len(cells) * len(CLASSES) * len(SIGNS)
    return {
        "budgets": f"{n_curves} of {n_all} curves have a fall:\n\n{_laid_out(fallen)}",
        "budgets_shares": _laid_out(worse) if worse else "No cell is worse.",
    }


def _short(number: float) -> str:
    return f"{number:.3f}".removeprefix("0")


def _laid_out(found: Mapping[tuple[str, str], Mapping[str, str]]) -> str:
    rows = [
        (f"`{name}`", measure, *(one.get(method, "").removeprefix(", ") for method in CLASSES))
        for (name, measure), one in found.items()
    ]
    return markdown(("table", "measure", *(TITLES[method] for method in CLASSES)), rows)


def main() -> None:
    """Run, or rewrite the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", default=list(LATER))
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--page", action="store_true", help="rewrite the page alone")
    options = parser.parse_args()
    if options.page:
        PAGE.write_text(fill(PAGE.read_text(), tables(read(options.out)["cells"])))
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(options.tables, options.out)


if __name__ == "__main__":
    main()
