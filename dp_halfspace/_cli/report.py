"""Turn the scores of a comparison into a table, a JSON file and a picture."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from scipy.sparse import issparse

import dp_halfspace
from dp_halfspace._cli.arguments import Options
from dp_halfspace._cli.compare import Comparison, Score
from dp_halfspace._cli.problems import Problem
from dp_halfspace.inspection import EpsilonAccuracyDisplay
from dp_halfspace.inspection.displays import figure_size

__all__ = ["save_json", "save_picture", "text_report"]

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
spent     epsilon and delta of ONE fit of that line."""
_ADJACENCIES = {
    "replace-one": "whole records are protected, features and label",
    "replace-one-label": "labels only are protected; all features count as public",
    "null": "nothing is protected: not private",
}
_OWN_UNITS = (
    "{}: columns were used as they are in the file, and every row longer than --data-norm {:.4g} "
    "was scaled down to it for the private classifiers."
)
_GIVE_RANGES = (
    " If columns are in natural units (years, mmHg), large numbers drown small ones: give the "
    "possible range of each column with --ranges, from what the columns mean and not from the data."
)
_PROTECTS = {"replace-one": "record", "replace-one-label": "LABEL ONLY", None: "nothing"}
_HEADER = ("classifier", "protects", "epsilon", "accuracy", "AUC", "fit, s", "spent")


def text_report(problems: Sequence[Problem], options: Options, comparison: Comparison) -> str:
    """Write the whole report as text."""
    blocks = [_WARNING]
    for problem in problems:
        scores = [score for score in comparison.scores if score.dataset == problem.name]
        blocks.append(f"{_title(problem, options)}\n{_table(scores)}")
    blocks.append(_LEGEND)
    blocks += [_units(problem) for problem in problems if problem.own_units]
    averaged = "one random split and fit"
    if options.repeats > 1:
        averaged = (
            f"means over {options.repeats} random splits and fits, +- the standard deviation of "
            "these"
        )
    blocks.append(
        _filled(
            f"Accuracy and AUC on the test rows: {averaged}. AUC is the area "
            "under the ROC curve; with more than two classes, the mean over classes of one against "
            "the others. LinearSVC sees columns divided by their standard deviation, an exact "
            "statistic of the records that no private classifier may use."
        )
    )
    if comparison.notes:
        lines = [_filled(note, "- ", "  ") for note in comparison.notes]
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


def _units(problem: Problem) -> str:
    """Say what happened to columns that no range was given for; sparse ones have no names."""
    text = _OWN_UNITS.format(problem.name, problem.data_norm)
    return _filled(text if issparse(problem.X) else text + _GIVE_RANGES)


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
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned = "  ".join(f"{{:{'<' if i <= 1 else '>'}{width}}}" for i, width in enumerate(widths))
    lines = [aligned.format(*row) for row in rows]
    return "\n".join([lines[0].rstrip(), "-" * len(lines[0]), *lines[1:]])


def _row(name: str, epsilon: float | None, group: Sequence[Score]) -> tuple[str, ...]:
    """Format one line of the table."""
    accuracy = [score.accuracy for score in group]
    auc = np.mean([score.auc for score in group])
    first = group[0]
    spread = f" +- {np.std(accuracy):.3f}" if len(group) > 1 else ""
    return (
        name,
        _PROTECTS[first.adjacency],
        "-" if epsilon is None else f"{epsilon:g}",
        f"{np.mean(accuracy):.3f}{spread}",
        "-" if math.isnan(auc) else f"{auc:.3f}",
        f"{np.mean([score.seconds for score in group]):.3f}",
        "-"
        if first.epsilon_spent is None
        else f"{first.epsilon_spent:.4g}, {first.delta_spent:.2g}",
    )
