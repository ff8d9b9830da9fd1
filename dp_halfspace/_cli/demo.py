"""The demonstration: all classes of the package and non-private models on a built-in table."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from sklearn.base import ClassifierMixin
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
from dp_halfspace.inspection import EpsilonAccuracyDisplay

_TITLE = "breast cancer: {} training and {} test rows, {} columns in original units, 2 classes"
_LEGEND = """\
Accuracy on test rows by epsilon, means over {} random splits and fits; AUC is the area under the
ROC curve at the largest epsilon. "PURE" classes spend no delta. "LABELS" protects the labels only:
all features are assumed to be public. Exact scores like these are for public data only; for your
own data, publish scores of dp_halfspace.metrics.private_score."""
_TEST_SHARE = 0.3


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
    title = _TITLE.format(len(y) - n_test, n_test, X.shape[1])
    rows = score_all(X, y, options, err)
    text = f"{title}\n\n{format_scores(rows)}\n\n{_LEGEND.format(options.repeats)}\n"
    content = {"version": dp_halfspace.__version__, "dataset": title, "results": rows}
    for name, part in ((REPORT, text), (NUMBERS, json.dumps(content, indent=1) + "\n")):
        write_whole(folder / name, partial(Path.write_text, data=part, encoding="utf-8"))
    picture = _draw(folder / PICTURE, rows)
    write_out(out, f"{text}\nWritten into {folder}: {REPORT}, {NUMBERS}{picture}\n")


def private_classifiers() -> dict[str, Any]:
    """Return the classifiers of the package that need no argument."""
    kinds = {name: getattr(dp_halfspace, name) for name in sorted(dp_halfspace.__all__)}
    return {
        name: kind
        for name, kind in kinds.items()
        if inspect.isclass(kind)
        and issubclass(kind, ClassifierMixin)
        and all(p.default is not p.empty for p in inspect.signature(kind).parameters.values())
    }


def _models(epsilons: list[float], n_columns: int) -> Iterator[tuple[str, float | None, Any]]:
    """Return all models: name, budget or None, and estimator."""
    yield "majority class", None, DummyClassifier(strategy="most_frequent")
    linear = make_pipeline(StandardScaler(), LinearSVC(random_state=0))
    yield "LinearSVC, not private", None, linear
    schema = dict.fromkeys(map(str, range(n_columns)), "number")
    for name, kind in private_classifiers().items():
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
                        "accuracy": 0.0,
                        "auc": 0.0,
                        "delta": record and record.delta,
                        "adjacency": record and str(record.adjacency),
                    },
                )
                result["accuracy"] += model.score(test, truth) / options.repeats
                if hasattr(model, "decision_function"):
                    auc = roc_auc_score(truth, model.decision_function(test))
                    result["auc"] += auc / options.repeats
    return list(results.values())


def format_scores(rows: list[dict[str, Any]]) -> str:
    """Return a table with a line for each model and a column for each budget."""
    budgets = sorted({row["epsilon"] for row in rows} - {None})
    lines = [["", "protects", *(f"{epsilon:g}" for epsilon in budgets), "AUC"]]
    for name in dict.fromkeys(row["estimator"] for row in rows):
        by_budget = {row["epsilon"]: row for row in rows if row["estimator"] == name}
        last = list(by_budget.values())[-1]
        protects = "records, PURE" if last["delta"] == 0 else "records"
        if last["adjacency"] != "replace-one":
            protects = "nothing" if last["adjacency"] is None else "LABELS"
        accuracies = [f"{by_budget.get(e, last)['accuracy']:.3f}" for e in budgets]
        lines.append([name, protects, *accuracies, f"{last['auc']:.3f}" if last["auc"] else "-"])
    return "\n".join(align_columns(lines, 2))


def _draw(path: Path, rows: list[dict[str, Any]]) -> str:
    """Draw accuracy against epsilon; return the file, or that matplotlib is missing."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 (optional dependency)
    except ImportError:
        return f"; for {path.name} {install_hint('plot')}"
    figure = Figure(figsize=(8.0, 5.0), layout="constrained")
    EpsilonAccuracyDisplay.from_results(rows).plot(figure=figure)
    write_whole(path, lambda new: figure.savefig(new, dpi=150, format="png"))
    return f", {path.name}"
