"""The demonstration: three private classes and a model without privacy on a built-in table."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import Any, TextIO

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.dummy import DummyClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import dp_halfspace
from dp_halfspace._cli.arguments import UserError
from dp_halfspace._cli.files import NUMBERS, PICTURE, REPORT, write_out, write_whole
from dp_halfspace._html import align_columns
from dp_halfspace._repeated_fits import fits_not_counted
from dp_halfspace._silence import IGNORED_WARNINGS
from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.exceptions import install_hint
from dp_halfspace.inspection._drawing import draw_accuracies

# The classes to begin with; the others are for special tasks.
SHOWN = ("AdaptiveMarginClassifier", "PrivateTableClassifier", "PrivateKernelClassifier")
_MAJORITY = "majority class"
_REFERENCE = "LinearSVC, without privacy"
_TITLE = """\
dp_halfspace {}: which private classifier, and at which epsilon?
Table: breast cancer, {} training and {} test rows, {} columns in original units, 2 classes.
Privacy: (epsilon, delta)-differential privacy of every training row with delta = {:.2g}; a smaller
epsilon protects more."""
_LEGEND = """\
Accuracy on test rows by epsilon: mean ± standard deviation of one fit, over {} random splits.{}
Exact scores like these are for public data only; for your own data, publish scores of
dp_halfspace.metrics.private_score. All classifiers are in dp_halfspace.__all__."""
_LOW = """
* Less than a tenth of the improvement of a model without privacy over the majority class: epsilon
is too small for this class and so few rows."""
_TEST_SHARE = 0.3
# Shares of the improvement over the majority class: hardly any, and nearly all.
_HARDLY = 0.1
_NEARLY = 0.9


def demo(options: Any, out: TextIO, err: TextIO) -> None:
    """Fit all models at several budgets, show a table of accuracies, and write it to files."""
    folder = options.out
    try:
        # The folder is created first, so that no work is lost that cannot be saved.
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out: {folder} cannot be used as a folder: {error.strerror}") from error
    if not os.access(folder, os.W_OK):
        raise UserError(f"--out: {folder} cannot be written to")
    X, y = load_breast_cancer(return_X_y=True)
    n_test = len(train_test_split(y, test_size=_TEST_SHARE)[1])
    n_train = len(y) - n_test
    version = dp_halfspace.__version__
    title = _TITLE.format(version, n_train, n_test, X.shape[1], n_train**-2.0)
    rows = score_all(X, y, options, err)
    low = _LOW if any(map(partial(_is_low, rows), rows)) else ""
    legend = _LEGEND.format(options.repeats, low)
    text = f"{title}\n\n{format_scores(rows)}\n\n{fill(advice(rows), 100)}\n\n{legend}\n"
    content = {"version": dp_halfspace.__version__, "dataset": title, "results": rows}
    for name, part in ((REPORT, text), (NUMBERS, json.dumps(content, indent=1) + "\n")):
        write_whole(folder / name, partial(Path.write_text, data=part, encoding="utf-8"))
    picture = _draw(folder / PICTURE, rows)
    write_out(out, f"{text}\nWritten into {folder}: {REPORT}, {NUMBERS}{picture}\n")


def _models(epsilons: list[float], n_columns: int) -> Iterator[tuple[str, float | None, Any]]:
    """Return all models: name, budget or None, and estimator."""
    yield _MAJORITY, None, DummyClassifier(strategy="most_frequent")
    yield _REFERENCE, None, make_pipeline(StandardScaler(), LinearSVC(random_state=0))
    schema = dict.fromkeys(map(str, range(n_columns)), "number")
    for name in SHOWN:
        kind = getattr(dp_halfspace, name)
        more = {"schema": schema} if "schema" in kind().get_params() else {}
        for epsilon in sorted(set(epsilons)):
            yield name, epsilon, kind(epsilon=epsilon, classes=[0, 1], **more)


def score_all(X: Any, y: Any, options: Any, err: TextIO) -> list[dict[str, Any]]:
    """Fit and score on every split; return a mean accuracy for each model and budget."""
    results: dict[tuple[str, float | None], dict[str, Any]] = {}
    # The table is public, and small budgets are used on purpose.
    with single_blas_thread(), fits_not_counted(), IGNORED_WARNINGS:
        for repeat in range(options.repeats):
            write_out(err, f"dp_halfspace: split {repeat + 1} of {options.repeats}\n")
            rows, test, labels, truth = train_test_split(
                X, y, test_size=_TEST_SHARE, stratify=y, random_state=repeat
            )
            for name, epsilon, model in _models(options.epsilons, X.shape[1]):
                model.fit(rows, labels)
                record = getattr(model, "privacy_", None)
                result = results.setdefault(
                    (name, epsilon),
                    {
                        "dataset": "breast cancer",
                        "estimator": name,
                        "epsilon": epsilon,
                        "accuracies": [],
                        "auc": 0.0,
                        "delta": record and record.delta,
                        "adjacency": record and str(record.adjacency),
                    },
                )
                result["accuracies"].append(float(model.score(test, truth)))
                if hasattr(model, "decision_function"):
                    auc = roc_auc_score(truth, model.decision_function(test))
                    result["auc"] += auc / options.repeats
    for result in results.values():
        result["accuracy"] = float(np.mean(result["accuracies"]))
    return list(results.values())


def format_scores(rows: list[dict[str, Any]]) -> str:
    """Return a table with a line for each model and a column for each budget."""
    budgets = sorted({row["epsilon"] for row in rows} - {None})
    lines = [["", *(f"epsilon {epsilon:g}" for epsilon in budgets)]]
    # The level to exceed first, the level without privacy last.
    names = dict.fromkeys(row["estimator"] for row in rows)
    for name in sorted(names, key=lambda name: (name == _REFERENCE, name != _MAJORITY)):
        by_budget = {row["epsilon"]: row for row in rows if row["estimator"] == name}
        cells = (by_budget.get(epsilon) or by_budget[None] for epsilon in budgets)
        lines.append([name, *(_cell(rows, row) for row in cells)])
    return "\n".join(line.rstrip() for line in align_columns(lines, 1))


def _cell(rows: list[dict[str, Any]], row: dict[str, Any]) -> str:
    """Return a mean accuracy with its spread, and a mark if it is hardly above the majority."""
    spread = f" ± {_spread(row):.3f}" if len(row["accuracies"]) > 1 else ""
    return f"{row['accuracy']:.3f}{spread}{'*' if _is_low(rows, row) else ' '}"


def _spread(row: dict[str, Any]) -> float:
    found = row["accuracies"]
    return float(np.std(found, ddof=1)) if len(found) > 1 else 0.0


def _level(rows: list[dict[str, Any]], name: str) -> float:
    return next((float(row["accuracy"]) for row in rows if row["estimator"] == name), 0.0)


def _gain(rows: list[dict[str, Any]], accuracy: float) -> float:
    """Return the share of the improvement over the majority class that a model has."""
    least, most = _level(rows, _MAJORITY), _level(rows, _REFERENCE)
    return (accuracy - least) / (most - least) if most > least else 0.0


def _is_low(rows: list[dict[str, Any]], row: dict[str, Any]) -> bool:
    """Whether a private model is hardly better than the majority class."""
    return row["epsilon"] is not None and _gain(rows, row["accuracy"]) < _HARDLY


def advice(rows: list[dict[str, Any]]) -> str:
    """Return a sentence that follows from the table: the smallest budget that is nearly enough."""
    budgets = sorted({row["epsilon"] for row in rows} - {None})
    for epsilon in budgets:
        at = [row for row in rows if row["epsilon"] == epsilon]
        best = max(at, key=lambda row: row["accuracy"])
        share = _gain(rows, best["accuracy"])
        if share < _NEARLY and epsilon < budgets[-1]:
            continue
        reached = f"{100 * share:.0f} % of the improvement of a model without privacy"
        if share < 0.5:
            return (
                f"Advice: none of these classes reaches more than {reached} over the majority "
                "class; use a larger epsilon or more rows."
            )
        others = [
            row["estimator"]
            for row in at
            if row is not best and best["accuracy"] - row["accuracy"] <= _spread(best)
        ]
        alike = f"; within the spread, {' and '.join(others)} did as well" if others else ""
        return (
            f"Advice: for a table like this, begin with {best['estimator']} at epsilon "
            f"{epsilon:g}, which reached {reached} over the majority class{alike}."
        )
    return ""


def _draw(path: Path, rows: list[dict[str, Any]]) -> str:
    """Draw accuracy against epsilon; return the file, or that matplotlib is missing."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 (optional dependency)
    except ImportError:
        return f"; for {path.name} {install_hint('plot')}"
    # A line for each private class and one for the level without privacy; the axis begins at the
    # accuracy of the majority class.
    curves = {
        name: np.array(
            [(r["epsilon"], r["accuracy"], _spread(r)) for r in rows if r["estimator"] == name]
        )
        for name in dict.fromkeys(r["estimator"] for r in rows if r["epsilon"] is not None)
    }
    figure = Figure(figsize=(8.0, 5.0), layout="constrained")
    axis = figure.add_subplot()
    references = {_REFERENCE: _level(rows, _REFERENCE)}
    draw_accuracies(axis, "breast cancer", curves, references)
    least = _level(rows, _MAJORITY)
    axis.set_ylim(bottom=least)
    axis.set_ylabel(f"test accuracy, from the majority class ({least:.2f}) on")
    write_whole(path, lambda new: figure.savefig(new, dpi=150, format="png"))
    return f", {path.name}"
