"""Score a saved model on a table that it was not trained on, within a budget."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TextIO

import numpy as np

from dp_halfspace._cli.arguments import UserError
from dp_halfspace._cli.booking import Booking
from dp_halfspace._cli.models import frame_for, opened_ledger, what_was_paid
from dp_halfspace._cli.stored import load_model
from dp_halfspace._cli.streams import say
from dp_halfspace._cli.tables import labels_of, read_cells
from dp_halfspace._html import aligned
from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.exceptions import BudgetError
from dp_halfspace.metrics import METRICS, PrivateScore, private_score


def evaluate(options: Any, out: TextIO, err: TextIO) -> None:
    """Release scores with their intervals, and say what was paid."""
    model = load_model(options.model, err)
    known = [column.name for column in model.encoding_.columns]
    used = [column.name for column in model.encoding_.columns if column.kind != "drop"]
    roles = [name for name in (options.target, options.groups) if name is not None]
    cells = read_cells(options, [*used, *roles])
    others = [name for name in cells.frame.columns if name not in (*known, options.groups)]
    if options.target is None and len(others) != 1:
        raise UserError(
            f"--target must name the label column of {options.table}, which has {len(others)} "
            "columns that the model does not use"
        )
    target = options.target or others[0]
    if target in known or target == options.groups:
        raise UserError(f"--target: {target!r} is a column of the model, or that of --groups")
    frame, labels = frame_for(model, options.model, cells), labels_of(cells, target)
    groups = None if options.groups is None else labels_of(cells, options.groups)
    ledger = opened_ledger(options)
    booking = Booking(ledger, options.ledger)
    with booking.stated("the scores were not shown in full"):
        scores = _scores(model, (frame, labels, groups), booking, options)
        rows = [("score", "value", "95 % interval")]
        rows += [row for score in scores for row in _rows(score)]
        text = what_was_paid(scores[0].privacy_, options.groups, ledger)
        say(out, "\n".join(aligned(rows)) + f"\n{text}")


def _scores(
    model: Any, held_out: tuple[Any, Any, Any], booking: Booking, options: Any
) -> list[PrivateScore]:
    """Release the scores; what is refused is a sentence."""
    frame, labels, groups = held_out
    try:
        with single_blas_thread():
            scores: list[PrivateScore] = private_score(
                model,
                frame,
                labels,
                metric=options.metric,
                epsilon=options.epsilon,
                delta=options.delta,
                groups=groups,
                ledger=booking,
            )
            return scores
    except (ValueError, BudgetError) as error:
        raise UserError(" ".join(str(error).split())) from error


def _rows(score: PrivateScore) -> Iterator[tuple[str, str, str]]:
    """Write one line for each number."""
    metric = METRICS[score.metric]
    numbers = (np.ravel(part).tolist() for part in (score.value, *score.interval))
    for name, *ends in zip(metric.rows(score), *numbers, strict=True):
        value, low, high = (f"{end:.{metric.digits}f}" for end in ends)
        yield name, value, f"{low} to {high}"
