"""The card of a model: one HTML file for people, without scripts and without the data.

Everything on it is public: parameters, the record of the fit, and curves of released numbers.
"""

from __future__ import annotations

import io
import platform
import re
from dataclasses import dataclass
from datetime import datetime, timezone
from html import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import dp_halfspace
from dp_halfspace._html import page, shown, table
from dp_halfspace.inspection import TableEffectsDisplay
from dp_halfspace.privacy.record import rounded_text

_MOST_CURVES = 24
_PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas")


@dataclass(frozen=True, slots=True)
class Card:
    """What a card is about; `ledger` is None where there is none."""

    model: Any
    table: str
    groups: str | None
    ledger: Any


def write_card(path: Path, card: Card) -> None:
    """Write the card."""
    title = f"Private model of {card.table}"
    sections = {
        "What is promised": _promise(card),
        "What was taken as public": _public(card),
        "What was spent": _spent(card),
        "How good it is": _accuracy(),
        "What the columns do": _effects(card.model),
        "For auditors": f"<pre>{escape(card.model.privacy_.summary())}</pre>",
        "Made by": _made_by(),
    }
    path.write_text(page(title, sections), encoding="utf-8")


def _promise(card: Card) -> str:
    """Say the guarantee and the unit of privacy in plain words."""
    record = card.model.privacy_
    unit = "one row of the table, its features and its label"
    if card.groups is not None:
        unit = f"one person: all rows with the same value of the column {card.groups!r}"
    epsilon, delta = rounded_text(record.epsilon), rounded_text(record.delta)
    with np.errstate(over="ignore"):
        factor = rounded_text(float(np.exp(record.epsilon)))
    slack = f", but for a probability of {delta}" if record.delta > 0 else ""
    sure = rounded_text(100.0 * (1.0 + record.delta_at(0.0)) / 2.0)
    return (
        f'<p class="claim">(ε, δ)-differential privacy with ε = {epsilon} and '
        f"δ = {delta}. The unit of privacy is {escape(unit)}.</p>\n"
        "<p>Whatever the model shows could have come out as well if any one such unit had been "
        f"replaced by another: no outcome becomes more than {factor} times as likely{slack}. "
        "Somebody who knows everything else, has two candidates for the unit and holds both for "
        f"equally likely, guesses the right one from this model in at most {sure} % of the "
        "cases; without the model in 50 %. Other releases about the same table add to this, and "
        "what the table shows about people in general is not hidden.</p>"
    )


def _public(card: Card) -> str:
    """List what the promise does not cover."""
    facts = dict(card.model.privacy_.public)
    source = "stated"
    if "seen" in str(facts.get("classes_source", "")):
        source = "found in the table and declared public"
    learnt = set(facts.get("private_units", ()))
    columns = [
        (name, kind, "units learnt within the budget" if name in learnt else "")
        for name, kind in facts.get("columns", ())
    ]
    return (
        table(
            ("Number of rows" if card.groups is None else "Number of persons", facts["n_samples"]),
            (f"Labels, {source}", ", ".join(map(str, card.model.classes_))),
        )
        + "\n<p>Names and kinds of the columns:</p>\n"
        + table(*columns)
    )


def _spent(card: Card) -> str:
    """Say what the fit cost, and what is left of the ledger."""
    record, ledger = card.model.privacy_, card.ledger
    rows: list[tuple[Any, ...]] = [
        ("This fit", f"ε = {rounded_text(record.epsilon)}, δ = {rounded_text(record.delta)}")
    ]
    if record.delta > 0 and record.delta_at(record.epsilon) == 0.0:
        rows.append(("Of that δ", "nothing is spent: the guarantee of this fit is pure ε"))
    if ledger is None:
        return table(*rows) + "\n<p>No ledger was charged: nobody counts what else is released.</p>"
    return table(
        *rows,
        ("Cap of the ledger", f"ε = {ledger.epsilon:g}, δ = {ledger.delta:g}"),
        ("Spent by all releases so far", f"ε = {rounded_text(ledger.spent())}"),
        ("Left for one more fit", f"ε = {rounded_text(ledger.remaining(), up=False)}"),
    )


def _accuracy() -> str:
    """Say that no budget was spent on a measurement."""
    return (
        "<p>Not measured. Exact scores on private rows would not be private; a private "
        "measurement needs a budget of its own, and this model has none.</p>"
    )


def _effects(model: Any) -> str:
    """Draw the effect of every column, if matplotlib is there."""
    try:
        from matplotlib import rc_context  # noqa: PLC0415 (optional dependency)
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError:
        return "<p>Not drawn: matplotlib was not there.</p>"
    display = TableEffectsDisplay.from_estimator(model)
    n_columns = len(display.columns)
    if not n_columns:
        return "<p>No column has a known range or known categories to draw.</p>"
    largest = sorted(display.columns, key=lambda c: -float(np.abs(c.effects).max()))
    display.columns = tuple(largest[:_MOST_CURVES])
    n_drawn = len(display.columns)
    file = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "card", "font.size": 8}):
        figure = Figure(figsize=(9, 2.4 * -(-n_drawn // 3)), layout="constrained")
        display.plot(figure=figure)
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    drawing = file.getvalue()
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing[drawing.index("<svg") :], flags=re.S)
    left = f"The {n_drawn} columns of {n_columns} with the largest effects. " * (
        n_drawn < n_columns
    )
    of = f" of {escape(shown(model.classes_[1]))}" if len(model.classes_) == 2 else ""
    return (
        f"<p>{left}What the value of one column adds to the log odds{of}, beside a row in which "
        "everything else is missing. Drawn from released numbers, over stated ranges "
        "or round the learnt units, so it shows no row. Texts without a list of categories are "
        f"left out.</p>\n<figure>{drawing}</figure>"
    )


def _made_by() -> str:
    """List versions of the software."""
    rows = [("dp_halfspace", dp_halfspace.__version__), ("Python", platform.python_version())]
    for name in _PACKAGES:
        try:
            rows.append((name, version(name)))
        except PackageNotFoundError:
            rows.append((name, "unknown"))
    return table(*rows, ("Date", datetime.now(timezone.utc).strftime("%Y-%m-%d")))
