"""Turn the scores of a comparison into a table, a JSON file and a picture."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import dp_halfspace
from dp_halfspace._cli.compare import Comparison, Score
from dp_halfspace._cli.problems import Problem
from dp_halfspace._html import aligned, shown
from dp_halfspace.inspection import EpsilonAccuracyDisplay
from dp_halfspace.inspection.displays import figure_size

_WIDTH = 100
_WARNING = """\
FOR THE CURATOR OF THE DATA ONLY: whoever may see the records. Test scores, fit times and the
classifier that is not private are exact numbers computed from the records: neither they nor this
report are private. The fits of this comparison together spend far more than one of them. To publish
a model, fit it once, on its own, and without a seed."""
_LEGEND = """\
protects  "record": whole records, features and label. "LABEL ONLY": the labels; all features count
          as public and the model shows them, so never use it when features are sensitive.
          "nothing": not private.
AUC and seconds of a fit are those at the largest epsilon; "delta" is that of one fit."""
_ADJACENCIES = {
    "replace-one": "whole records are protected, features and label",
    "replace-one-label": "labels only are protected; all features count as public",
    "null": "nothing is protected: not private",
}
_PROTECTS = {"replace-one": "record", "replace-one-label": "LABEL ONLY", None: "nothing"}


def text_report(problem: Problem, options: Any, comparison: Comparison) -> str:
    """Write the whole report as text."""
    count = f"means over {options.repeats} random splits and fits"
    means = count if options.repeats > 1 else "one random split and fit"
    blocks = [
        _WARNING,
        f"{_title(problem, options)}\n{_table(comparison.scores)}",
        _LEGEND,
        _filled(
            f"Accuracy and AUC on the test rows, {means}. AUC is the area "
            "under the ROC curve; with more than two classes, the mean over classes of one against "
            "the others. LinearSVC sees columns divided by their standard deviation, an exact "
            "statistic of the records that no private classifier may use."
        ),
    ]
    if comparison.notes:
        lines = [_filled(note, "- ", "  ") for note in comparison.notes]
        blocks.append("\n".join(["Notes", *lines]))
    return "\n\n".join(blocks) + "\n"


def save_json(path: Path, problem: Problem, options: Any, comparison: Comparison) -> None:
    """Save all numbers. The seed stays out: with it the noise could be subtracted."""
    content = {
        "version": dp_halfspace.__version__,
        "warning": " ".join(_WARNING.split()),
        "settings": {
            "epsilons": options.epsilons,
            "delta": options.delta,
            "test_size": options.test_size,
            "repeats": options.repeats,
            "seeded": options.seed is not None,
        },
        "datasets": [
            {
                "name": problem.name,
                "n_rows": problem.X.shape[0],
                "n_features": problem.X.shape[1],
                "n_classes": len(problem.classes),
                "data_norm": problem.data_norm,
                "scaling": problem.scaling,
            }
        ],
        "adjacencies": _ADJACENCIES,
        "results": [
            # JSON has no word for NaN.
            {key: None if value != value else value for key, value in asdict(score).items()}  # noqa: PLR0124
            for score in comparison.scores
        ],
        "notes": comparison.notes,
    }
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def save_picture(path: Path, comparison: Comparison) -> bool:
    """Draw accuracy against epsilon; False if matplotlib is missing."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 (optional dependency)
    except ImportError:
        return False
    display = EpsilonAccuracyDisplay.from_results(asdict(score) for score in comparison.scores)
    figure = Figure(figsize=figure_size(len(display.panels)), layout="constrained")
    display.plot(figure=figure)
    figure.savefig(path, dpi=150)
    return True


def _filled(text: str, first: str = "", later: str = "") -> str:
    """Break lines between words only."""
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent=first,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _title(problem: Problem, options: Any) -> str:
    """Say what is public about a data set."""
    n_rows, n_features = problem.X.shape
    n_test = math.ceil(options.test_size * n_rows)
    return (
        f"{shown(problem.name)}: {n_rows - n_test} training and {n_test} test rows, "
        f"{n_features} columns, {len(problem.classes)} classes;\n{problem.scaling}"
    )


def _table(scores: Sequence[Score]) -> str:
    """Average repetitions: a line for each classifier, a column for each budget."""
    groups: dict[str, dict[float | None, list[Score]]] = {}
    for score in scores:
        groups.setdefault(score.estimator, {}).setdefault(score.epsilon, []).append(score)
    budgets = sorted({s.epsilon for s in scores if s.epsilon is not None})
    header = ["accuracy at epsilon", "protects", *(f"{e:g}" for e in budgets)]
    rows = [[*header, "AUC", "fit, s", "delta"]]
    rows += [_row(name, group, budgets) for name, group in groups.items()]
    first, *lines = aligned(rows, 2)
    return "\n".join([first, "-" * len(first), *lines])


def _row(name: str, group: dict[float | None, list[Score]], budgets: Sequence[float]) -> list[str]:
    """Format one line of the table; what needs no budget has one number for all."""
    most = group[max(group, key=lambda epsilon: epsilon or 0.0)]
    delta = most[0].delta_spent
    return [
        name,
        _PROTECTS[most[0].adjacency],
        *(_mean([s.accuracy for s in group.get(e, group.get(None, []))]) for e in budgets),
        _mean([s.auc for s in most]),
        _mean([s.seconds for s in most], 2),
        "-" if delta is None else f"{delta:.2g}",
    ]


def _mean(values: Sequence[float], digits: int = 3) -> str:
    """Format a mean; a dash for what there is not."""
    if not values or math.isnan(sum(values)):
        return "-"
    return f"{np.mean(values):.{digits}f}"
