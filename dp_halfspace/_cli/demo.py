"""The demonstration: three private classes and a model without privacy on a built-in table."""

from __future__ import annotations

import os
from pathlib import Path
from textwrap import fill
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import dp_halfspace
from dp_halfspace._cli.arguments import UserError
from dp_halfspace._cli.files import PICTURE, REPORT, write_out, write_text, write_whole
from dp_halfspace._html import align_columns
from dp_halfspace._repeated_fits import fits_not_counted
from dp_halfspace._silence import IGNORED_WARNINGS
from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.exceptions import install_hint

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
# Share of the rows of the built-in table on which accuracies are measured.
_TEST_SHARE = 0.3
# Shares of the improvement over the majority class: hardly any, and nearly all.
_HARDLY = 0.1
_NEARLY = 0.9

# The accuracies of each model, in a row for each budget and a column for each split; the levels
# without privacy have equal rows.
Scores = dict[str, NDArray[np.float64]]


def demo(options: Any, out: TextIO, err: TextIO) -> None:
    """Fit all models at several budgets, show a table of accuracies, and write it to files."""
    folder, budgets = options.out, sorted(set(options.epsilons))
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
    scores = score_all(X, y, budgets, options.repeats, err)
    table, legend = format_scores(scores, budgets), _LEGEND.format(options.repeats)
    text = f"{title}\n\n{table}\n\n{fill(advice(scores, budgets), 100)}\n\n{legend}\n"
    write_text(folder / REPORT, text)
    picture = _draw(folder / PICTURE, scores, budgets)
    write_out(out, f"{text}\nWritten into {folder}: {REPORT}{picture}\n")


def score_all(X: Any, y: Any, budgets: list[float], n_repeats: int, err: TextIO) -> Scores:
    """Fit and score all models on every split."""
    linear = make_pipeline(StandardScaler(), LinearSVC(random_state=0))
    models = {_MAJORITY: DummyClassifier(strategy="most_frequent"), _REFERENCE: linear}
    for name in SHOWN:
        models[name] = getattr(dp_halfspace, name)(classes=[0, 1])
        if "schema" in models[name].get_params():
            models[name].set_params(schema=dict.fromkeys(map(str, range(X.shape[1])), "number"))
    scores = {name: np.zeros((len(budgets), n_repeats)) for name in models}
    # The table is public, and small budgets are used on purpose.
    with single_blas_thread(), fits_not_counted(), IGNORED_WARNINGS:
        for repeat in range(n_repeats):
            write_out(err, f"dp_halfspace: split {repeat + 1} of {n_repeats}\n")
            rows, test, labels, truth = train_test_split(
                X, y, test_size=_TEST_SHARE, stratify=y, random_state=repeat
            )
            for name in (_MAJORITY, _REFERENCE):
                scores[name][:, repeat] = models[name].fit(rows, labels).score(test, truth)
            for name in SHOWN:
                for i, epsilon in enumerate(budgets):
                    model = clone(models[name]).set_params(epsilon=epsilon)
                    scores[name][i, repeat] = model.fit(rows, labels).score(test, truth)
    return scores


def _private(scores: Scores) -> list[str]:
    return [name for name in scores if name not in (_MAJORITY, _REFERENCE)]


def _gains(scores: Scores, name: str) -> NDArray[np.float64]:
    """Return the share of the improvement over the majority class by budget."""
    mean, least, most = (scores[each].mean(axis=1) for each in (name, _MAJORITY, _REFERENCE))
    return np.asarray((mean - least) / (most - least))


def _spreads(accuracies: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return standard deviations over the splits by budget, 0 of a single split."""
    return np.asarray(accuracies.std(axis=1, ddof=min(accuracies.shape[1] - 1, 1)))


def format_scores(scores: Scores, budgets: list[float]) -> str:
    """Return a table with a line for each model and a column for each budget."""
    lines = [["", *(f"epsilon {epsilon:g} " for epsilon in budgets)]]
    # The level to exceed first, the level without privacy last.
    private = _private(scores)
    for name in (_MAJORITY, *private, _REFERENCE):
        is_low = (name in private) & (_gains(scores, name) < _HARDLY)
        marks = np.where(is_low, "*", " ")
        cells = zip(scores[name].mean(axis=1), _spreads(scores[name]), marks, strict=True)
        lines.append([name, *(f"{mean:.3f} ± {spread:.3f}{mark}" for mean, spread, mark in cells)])
    return "\n".join(align_columns(lines))


def advice(scores: Scores, budgets: list[float]) -> str:
    """Return a sentence that follows from the table: the smallest budget that is nearly enough."""
    gains = {name: _gains(scores, name) for name in _private(scores)}
    best = np.max([*gains.values()], axis=0)
    enough = int(np.argmax(best >= _NEARLY)) if best.max() >= _NEARLY else len(budgets) - 1
    reached = f"{100 * best[enough]:.0f} % of the improvement of a model without privacy"
    if best[enough] < 0.5:
        return (
            f"Advice: none of these classes reaches more than {reached} over the majority class; "
            "use a larger epsilon or more rows."
        )
    name = max(gains, key=lambda name: gains[name][enough])
    return (
        f"Advice: for a table like this, begin with {name} at epsilon {budgets[enough]:g}, which "
        f"reached {reached} over the majority class."
    )


def _draw(path: Path, scores: Scores, budgets: list[float]) -> str:
    """Draw accuracy against epsilon; return the file, or that matplotlib is missing."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 (optional dependency)
    except ImportError:
        return f"; for {path.name} {install_hint('plot')}"
    figure = Figure(figsize=(8.0, 5.0), layout="constrained")
    axis = figure.add_subplot()
    # A line for each private class and one for the level without privacy; the axis begins at the
    # accuracy of the majority class.
    axis.axhline(scores[_REFERENCE].mean(), color="0.35", linestyle="--", label=_REFERENCE)
    for name in _private(scores):
        mean, spread = scores[name].mean(axis=1), _spreads(scores[name])
        axis.plot(budgets, mean, marker="o", label=name)
        axis.fill_between(budgets, mean - spread, mean + spread, alpha=0.12)
    least = scores[_MAJORITY].mean()
    axis.set_ylim(bottom=least)
    axis.set_title("breast cancer")
    axis.set_xlabel("epsilon (privacy budget of one fit)")
    axis.set_ylabel(f"test accuracy, from the majority class ({least:.2f}) on")
    axis.set_xscale("log")
    axis.set_xticks(budgets, labels=[f"{epsilon:g}" for epsilon in budgets])
    axis.set_xticks([], minor=True)
    axis.legend(frameon=False)
    write_whole(path, lambda new: figure.savefig(new, dpi=150, format="png"))
    return f", {path.name}"
