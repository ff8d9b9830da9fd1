"""The demonstration: three private classes and a model without privacy on a built-in table."""

from __future__ import annotations

import sys
from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import StratifiedShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import dp_halfspace
from dp_halfspace._cli.files import write_out
from dp_halfspace._html import align_columns
from dp_halfspace._repeated_fits import fits_not_counted
from dp_halfspace._silence import IGNORED_WARNINGS
from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.estimators._outlook import ENOUGH

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
A class that is no better than the majority class needs a larger epsilon or more rows."""

# The accuracies of each model, in a row for each budget and a column for each split; the levels
# without privacy have equal rows.
Scores = dict[str, NDArray[np.float64]]


def demo(options: Any) -> None:
    """Fit all models at several budgets, and print a table of accuracies."""
    budgets = sorted(set(options.epsilons))
    X, y = load_breast_cancer(return_X_y=True)
    splits = StratifiedShuffleSplit(options.repeats, test_size=0.25, random_state=0)
    n_train, n_test = map(len, next(splits.split(X, y)))
    title = _TITLE.format(dp_halfspace.__version__, n_train, n_test, X.shape[1], n_train**-2.0)
    scores = score_all(X, y, budgets, splits)
    table, legend = format_scores(scores, budgets), _LEGEND.format(options.repeats)
    write_out(f"{title}\n\n{table}\n\n{fill(advice(scores, budgets), 100)}\n\n{legend}\n")


def score_all(X: Any, y: Any, budgets: list[float], splits: Any) -> Scores:
    """Fit and score all models on the same splits."""
    # The level to exceed first, the level without privacy last.
    models = {
        _MAJORITY: DummyClassifier(strategy="most_frequent"),
        **{name: getattr(dp_halfspace, name)(classes=[0, 1]) for name in SHOWN},
        _REFERENCE: make_pipeline(StandardScaler(), LinearSVC(random_state=0)),
    }
    scores = {}
    # The table is public, and small budgets are used on purpose.
    with single_blas_thread(), fits_not_counted(), IGNORED_WARNINGS:
        for name, model in models.items():
            write_out(f"dp_halfspace: {name}\n", sys.stderr)
            levels = [model]
            if name in SHOWN:
                levels = [clone(model).set_params(epsilon=epsilon) for epsilon in budgets]
            found = [cross_val_score(each, X, y, cv=splits, error_score="raise") for each in levels]
            scores[name] = np.broadcast_to(found, (len(budgets), splits.n_splits))
    return scores


def format_scores(scores: Scores, budgets: list[float]) -> str:
    """Return a table with a line for each model and a column for each budget."""
    lines = [["", *(f"epsilon {epsilon:g}" for epsilon in budgets)]]
    for name, found in scores.items():
        # A single split has no spread.
        spreads = found.std(axis=1, ddof=min(found.shape[1] - 1, 1))
        cells = zip(found.mean(axis=1), spreads, strict=True)
        lines.append([name, *(f"{mean:.3f} ± {spread:.3f}" for mean, spread in cells)])
    return "\n".join(align_columns(lines))


def advice(scores: Scores, budgets: list[float]) -> str:
    """Return a sentence that follows from the table: the smallest budget that is enough."""
    means = {name: found.mean(axis=1) for name, found in scores.items()}
    least, most = means.pop(_MAJORITY), means.pop(_REFERENCE)
    # The share of the improvement over the majority class by budget.
    gains = {name: (mean - least) / (most - least) for name, mean in means.items()}
    best = np.max([*gains.values()], axis=0)
    enough = int(np.argmax(best >= ENOUGH)) if best.max() >= ENOUGH else len(budgets) - 1
    reached = f"{100 * best[enough]:.0f} % of the improvement of a model without privacy"
    if best[enough] < 0.5:
        none = f"none of these classes reaches more than {reached} over the majority class"
        return f"Advice: {none}; use a larger epsilon or more rows."
    name = max(gains, key=lambda name: gains[name][enough])
    start = f"begin with {name} at epsilon {budgets[enough]:g}, which reached {reached}"
    return f"Advice: for a table like this, {start} over the majority class."
