"""The main job: every class of the suite on a built-in table, beside what is not private."""

from __future__ import annotations

import inspect
import json
import os
import warnings
from collections.abc import Iterator
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
from dp_halfspace._cli.places import NUMBERS, PICTURE, REPORT
from dp_halfspace._cli.progress import Progress
from dp_halfspace._cli.streams import say
from dp_halfspace._html import aligned
from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.inspection import EpsilonAccuracyDisplay

_TITLE = "breast cancer: {} training and {} test rows, {} columns in natural units, 2 classes"
_LEGEND = """\
Accuracy on test rows by epsilon, means over {} random splits and fits; AUC is the area under the
ROC curve at the largest epsilon. "PURE" classes spend no delta. "LABELS" protects the labels only:
all features count as public. Exact scores like these are for public data; of your own data publish
those of dp_halfspace.metrics.private_score."""
_BASELINES = {
    "majority class": DummyClassifier(strategy="most_frequent"),
    "LinearSVC, not private": make_pipeline(StandardScaler(), LinearSVC(random_state=0)),
}


def demo(options: Any, out: TextIO, err: TextIO) -> None:
    """Fit everything at several budgets, show a table, and write it with its numbers."""
    folder = _writable_folder(options.out)
    X, y = load_breast_cancer(return_X_y=True)
    rows = _scores(X, y, options, Progress(options.repeats, err))
    n_test = len(train_test_split(y, test_size=0.3)[1])
    title = _TITLE.format(len(y) - n_test, n_test, X.shape[1])
    text = f"{title}\n\n{_table(rows, options.epsilons)}\n\n{_LEGEND.format(options.repeats)}\n"
    content = {"version": dp_halfspace.__version__, "dataset": title, "results": rows}
    try:
        (folder / REPORT).write_text(text, encoding="utf-8")
        (folder / NUMBERS).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        drawn = _draw(folder / PICTURE, rows)
    except OSError as error:
        raise UserError(f"cannot write into {folder}: {error.strerror}") from error
    more = f", {PICTURE}" if drawn else f'; pip install "dp-halfspace[plot]" adds {PICTURE}'
    say(out, f"{text}\nWritten into {folder}: {REPORT}, {NUMBERS}{more}\n")


def private_classifiers() -> dict[str, Any]:
    """Return the classifiers that the package exports and that need no argument."""
    kinds = {name: getattr(dp_halfspace, name) for name in sorted(dp_halfspace.__all__)}
    return {
        name: kind
        for name, kind in kinds.items()
        if inspect.isclass(kind)
        and issubclass(kind, ClassifierMixin)
        and all(p.default is not p.empty for p in inspect.signature(kind).parameters.values())
    }


def _models(epsilons: list[float], n_columns: int) -> Iterator[tuple[str, float | None, Any]]:
    """List what is fitted: name, budget if it has one, and estimator."""
    for name, model in _BASELINES.items():
        yield name, None, model
    schema = dict.fromkeys(map(str, range(n_columns)), "number")
    for name, kind in private_classifiers().items():
        more = {"schema": schema} if "schema" in kind().get_params() else {}
        for epsilon in sorted(set(epsilons)):
            yield name, epsilon, kind(epsilon=epsilon, classes=[0, 1], **more)


def _scores(X: Any, y: Any, options: Any, progress: Progress) -> list[dict[str, Any]]:
    """Fit and score on every split; a mean for each model and budget."""
    found: dict[tuple[str, float | None], dict[str, Any]] = {}
    with single_blas_thread(), warnings.catch_warnings():
        # The table is public, and small budgets are tried on purpose.
        warnings.simplefilter("ignore")
        for repeat in range(options.repeats):
            rows, test, labels, truth = train_test_split(
                X, y, test_size=0.3, stratify=y, random_state=repeat
            )
            for name, epsilon, model in _models(options.epsilons, X.shape[1]):
                progress.start(name)
                model.fit(rows, labels)
                score = found.setdefault((name, epsilon), _facts(name, epsilon, model))
                share = 1.0 / options.repeats
                score["accuracy"] += share * model.score(test, truth)
                if hasattr(model, "decision_function"):
                    score["auc"] += share * roc_auc_score(truth, model.decision_function(test))
            progress.step()
    return list(found.values())


def _facts(name: str, epsilon: float | None, model: Any) -> dict[str, Any]:
    """Start a row of results."""
    record = getattr(model, "privacy_", None)
    facts = {"estimator": name, "epsilon": epsilon, "accuracy": 0.0, "auc": 0.0}
    spent = {"delta": record and record.delta, "adjacency": record and str(record.adjacency)}
    return {"dataset": "breast cancer", **facts, **spent}


def _table(rows: list[dict[str, Any]], epsilons: list[float]) -> str:
    """Write a line for each model and a column for each budget."""
    budgets = sorted(set(epsilons))
    lines = [["", "protects", *(f"{epsilon:g}" for epsilon in budgets), "AUC"]]
    for name in dict.fromkeys(row["estimator"] for row in rows):
        by_budget = {row["epsilon"]: row for row in rows if row["estimator"] == name}
        last = list(by_budget.values())[-1]
        cells = [f"{by_budget.get(e, last)['accuracy']:.3f}" for e in budgets]
        area = f"{last['auc']:.3f}" if last["auc"] else "-"
        lines.append([name, _protection(last), *cells, area])
    return "\n".join(aligned(lines, 2))


def _protection(row: dict[str, Any]) -> str:
    """Say in a word what a row of results protects."""
    if row["adjacency"] is None:
        return "nothing"
    if row["adjacency"] == "replace-one-label":
        return "LABELS"
    return "records, PURE" if row["delta"] == 0 else "records"


def _draw(path: Path, rows: list[dict[str, Any]]) -> bool:
    """Draw accuracy against epsilon; False if matplotlib is missing."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 (optional dependency)
    except ImportError:
        return False
    figure = Figure(figsize=(8.0, 5.0), layout="constrained")
    EpsilonAccuracyDisplay.from_results(rows).plot(figure=figure)
    figure.savefig(path, dpi=150)
    return True


def _writable_folder(path: Path) -> Path:
    """Make the folder before any work is done that could not be saved."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out: {path} cannot be used as a folder: {error.strerror}") from error
    if not os.access(path, os.W_OK):
        raise UserError(f"--out: {path} cannot be written to")
    return path
