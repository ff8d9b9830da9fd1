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
from dp_halfspace._cli.arguments import Options
from dp_halfspace._cli.compare import Comparison, Score
from dp_halfspace._cli.problems import Problem
from dp_halfspace.inspection import EpsilonAccuracyDisplay
from dp_halfspace.inspection.displays import figure_size

__all__ = ["save_json", "save_picture", "text_report"]

_WIDTH = 100
_WARNING = """\
FOR THE CURATOR OF THE DATA ONLY. Test scores, fit times and the classifier that is not private are
exact numbers computed from the records: neither they nor this report are private. "spent" is the
budget of ONE fit of that line; the fits of this comparison together spend far more. To publish a
model, fit it once, on its own, and without a seed."""
_HEADER = ("classifier", "epsilon", "accuracy", "AUC", "fit s", "epsilon spent", "delta spent")


def text_report(problems: Sequence[Problem], options: Options, comparison: Comparison) -> str:
    """Write the whole report as text."""
    blocks = [_WARNING]
    for problem in problems:
        scores = [score for score in comparison.scores if score.dataset == problem.name]
        blocks.append(f"{_title(problem, options)}\n{_table(scores)}")
    blocks.append(
        f"Means over {options.repeats} random splits and fits, +- one standard deviation. AUC with "
        "more than\ntwo classes is the mean over classes of one against the others. LinearSVC sees "
        "columns divided by\ntheir standard deviation."
    )
    if comparison.notes:
        lines = [
            textwrap.fill(note, _WIDTH, initial_indent="- ", subsequent_indent="  ")
            for note in comparison.notes
        ]
        blocks.append("\n".join(["Notes", *lines]))
    return "\n\n".join(blocks) + "\n"


def save_json(
    path: Path, problems: Sequence[Problem], options: Options, comparison: Comparison
) -> None:
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
            for problem in problems
        ],
        "results": [_without_nan(asdict(score)) for score in comparison.scores],
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


def _without_nan(row: dict[str, Any]) -> dict[str, Any]:
    """Replace NaN, which JSON has no word for."""
    return {
        key: None if isinstance(value, float) and math.isnan(value) else value
        for key, value in row.items()
    }


def _title(problem: Problem, options: Options) -> str:
    """Say what is public about a data set."""
    n_rows, n_features = problem.X.shape
    n_test = math.ceil(options.test_size * n_rows)
    return (
        f"{problem.name}: {n_rows - n_test} training and {n_test} test rows, {n_features} columns, "
        f"{len(problem.classes)} classes,\ndata_norm {problem.data_norm:.4g} ({problem.scaling})"
    )


def _table(scores: Sequence[Score]) -> str:
    """Average repetitions and align columns."""
    groups: dict[tuple[str, float | None], list[Score]] = {}
    for score in scores:
        groups.setdefault((score.estimator, score.epsilon), []).append(score)
    rows = [_HEADER, *(_row(name, epsilon, group) for (name, epsilon), group in groups.items())]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEADER))]
    lines = [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def _row(name: str, epsilon: float | None, group: Sequence[Score]) -> tuple[str, ...]:
    """Format one line of the table."""
    accuracy = [score.accuracy for score in group]
    auc = np.mean([score.auc for score in group])
    seconds = np.mean([score.seconds for score in group])
    first = group[0]
    spread = f" +- {np.std(accuracy):.3f}" if len(group) > 1 else ""
    return (
        name,
        "-" if epsilon is None else f"{epsilon:g}",
        f"{np.mean(accuracy):.3f}{spread}",
        "-" if math.isnan(auc) else f"{auc:.3f}",
        f"{seconds:.3f}",
        "-" if first.epsilon_spent is None else f"{first.epsilon_spent:.4g}",
        "-" if first.delta_spent is None else f"{first.delta_spent:.2g}",
    )
