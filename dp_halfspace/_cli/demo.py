"""The demonstration: three private classes and a model without privacy on a built-in table."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill
from typing import Any, TextIO

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import dp_halfspace
from dp_halfspace._cli.arguments import UserError
from dp_halfspace._cli.files import (
    PICTURE,
    REPORT,
    new_figure,
    write_out,
    write_text,
    write_whole,
)
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
Accuracy on test rows by epsilon: mean ± standard deviation of one fit, over {} random splits.
Exact scores like these are for public data only; for your own data, publish scores of
dp_halfspace.metrics.private_score. All classifiers are in dp_halfspace.__all__.
* Less than a tenth of the improvement of a model without privacy over the majority class: epsilon
is too small for this class and so few rows."""
_TEST_SHARE = 0.3
# Shares of the improvement over the majority class: hardly any, and nearly all.
_HARDLY = 0.1
_NEARLY = 0.9

# The accuracies of each class at each epsilon, over the splits; the two levels, without privacy,
# have no epsilon.
Scores = dict[tuple[str, float | None], list[float]]


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
    scores = score_all(X, y, options, err)
    table, legend = format_scores(scores), _LEGEND.format(options.repeats)
    text = f"{title}\n\n{table}\n\n{fill(advice(scores), 100)}\n\n{legend}\n"
    write_text(folder / REPORT, text)
    picture = _draw(folder / PICTURE, scores)
    write_out(out, f"{text}\nWritten into {folder}: {REPORT}{picture}\n")


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


def score_all(X: Any, y: Any, options: Any, err: TextIO) -> Scores:
    """Fit and score all models on every split."""
    scores: Scores = {}
    # The table is public, and small budgets are used on purpose.
    with single_blas_thread(), fits_not_counted(), IGNORED_WARNINGS:
        for repeat in range(options.repeats):
            write_out(err, f"dp_halfspace: split {repeat + 1} of {options.repeats}\n")
            rows, test, labels, truth = train_test_split(
                X, y, test_size=_TEST_SHARE, stratify=y, random_state=repeat
            )
            for name, epsilon, model in _models(options.epsilons, X.shape[1]):
                found = float(model.fit(rows, labels).score(test, truth))
                scores.setdefault((name, epsilon), []).append(found)
    return scores


def _budgets_of(scores: Scores) -> list[float]:
    return sorted({epsilon for _, epsilon in scores if epsilon is not None})


def _spread(accuracies: list[float]) -> float:
    return float(np.std(accuracies, ddof=1)) if len(accuracies) > 1 else 0.0


def _gain(scores: Scores, accuracies: list[float]) -> float:
    """Return the share of the improvement over the majority class that a model has."""
    least, most = (np.mean(scores[name, None]) for name in (_MAJORITY, _REFERENCE))
    return float((np.mean(accuracies) - least) / (most - least))


def format_scores(scores: Scores) -> str:
    """Return a table with a line for each model and a column for each budget."""
    budgets = _budgets_of(scores)
    lines = [["", *(f"epsilon {epsilon:g} " for epsilon in budgets)]]
    # The level to exceed first, the level without privacy last.
    names = dict.fromkeys(name for name, epsilon in scores if epsilon is not None)
    for name in (_MAJORITY, *names, _REFERENCE):
        cells = [name]
        for epsilon in budgets:
            found = scores.get((name, epsilon)) or scores[name, None]
            spread = f" ± {_spread(found):.3f}" if len(found) > 1 else ""
            is_low = name in names and _gain(scores, found) < _HARDLY
            cells.append(f"{np.mean(found):.3f}{spread}{'*' if is_low else ' '}")
        lines.append(cells)
    return "\n".join(align_columns(lines))


def advice(scores: Scores) -> str:
    """Return a sentence that follows from the table: the smallest budget that is nearly enough."""
    budgets = _budgets_of(scores)
    best: dict[float, tuple[str, float]] = {}
    for epsilon in budgets:
        at = {name: found for (name, budget), found in scores.items() if budget == epsilon}
        name = max(at, key=lambda name: np.mean(at[name]))
        best[epsilon] = name, _gain(scores, at[name])
    enough = next((epsilon for epsilon in budgets if best[epsilon][1] >= _NEARLY), budgets[-1])
    name, share = best[enough]
    reached = f"{100 * share:.0f} % of the improvement of a model without privacy"
    if share < 0.5:
        return (
            f"Advice: none of these classes reaches more than {reached} over the majority class; "
            "use a larger epsilon or more rows."
        )
    return (
        f"Advice: for a table like this, begin with {name} at epsilon {enough:g}, which reached "
        f"{reached} over the majority class."
    )


def _draw(path: Path, scores: Scores) -> str:
    """Draw accuracy against epsilon; return the file, or that matplotlib is missing."""
    figure = new_figure(8.0, 5.0)
    if figure is None:
        return f"; for {path.name} {install_hint('plot')}"
    # A line for each private class and one for the level without privacy; the axis begins at the
    # accuracy of the majority class.
    points: dict[str, list[tuple[float, float, float]]] = {}
    for (name, epsilon), found in scores.items():
        if epsilon is not None:
            points.setdefault(name, []).append((epsilon, float(np.mean(found)), _spread(found)))
    axis = figure.add_subplot()
    curves = {name: np.array(found) for name, found in points.items()}
    references = {_REFERENCE: float(np.mean(scores[_REFERENCE, None]))}
    draw_accuracies(axis, "breast cancer", curves, references)
    least = float(np.mean(scores[_MAJORITY, None]))
    axis.set_ylim(bottom=least)
    axis.set_ylabel(f"test accuracy, from the majority class ({least:.2f}) on")
    write_whole(path, lambda new: figure.savefig(new, dpi=150, format="png"))
    return f", {path.name}"
