"""Train a model on a table, save it with its card, and label the rows of another table by it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from dp_halfspace import PrivacyLedger, PrivateTableClassifier
from dp_halfspace._cli.arguments import UserError
from dp_halfspace._cli.booking import Booking, kept
from dp_halfspace._cli.card import Card, write_card
from dp_halfspace._cli.places import write_whole
from dp_halfspace._cli.progress import Progress
from dp_halfspace._cli.stored import check_kind, load_model, save_model
from dp_halfspace._cli.streams import say
from dp_halfspace._cli.tables import Cells, read_cells, typed
from dp_halfspace._cli.training_table import TrainingTable, read_training_table
from dp_halfspace._html import csv_cell, shown
from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.exceptions import BudgetError, CertificateError, PrivacyWarning
from dp_halfspace.privacy.record import PrivacyRecord, rounded_text


def fit(options: Any, out: TextIO, err: TextIO) -> None:
    """Train, save, and say what was promised."""
    check_kind(options.save)
    table = read_training_table(options)
    for note in table.notes:
        say(err, f"dp_halfspace: note: {note}\n")
    ledger = opened_ledger(options)
    if ledger is not None:
        say(err, f"dp_halfspace: note: {ledger.summary().splitlines()[0]}\n")
    booking = Booking(ledger, options.ledger)
    with booking.stated("no model was made or saved"):
        model = _trained(options, table, booking, err)
        save_model(model, options.save)
    text = _guarantee(model.privacy_, options.groups) + f"Model:     {shown(options.save)}\n"
    with kept(f"the model is in {options.save}"):
        if options.card is not None:
            card = Card(model, options.table.name, options.groups, ledger)
            write_whole(options.card, lambda path: write_card(path, card))
            text += f"Card:      {shown(options.card)}\n"
        say(out, text if ledger is None else text + _left(ledger))


def _guarantee(record: PrivacyRecord, groups: str | None) -> str:
    """Say in one line what was promised."""
    claim = f"({rounded_text(record.epsilon)}, {rounded_text(record.delta)})-differential privacy"
    unit = "one row" if groups is None else f"all rows of one {groups!r}"
    return f"Guarantee: {claim}; unit: {unit}\n"


def _left(ledger: PrivacyLedger) -> str:
    """Say in one line what a ledger has left."""
    return (
        f"Ledger:    epsilon {rounded_text(ledger.spent())} of {ledger.epsilon:g} spent at "
        f"delta {ledger.delta:g}; {rounded_text(ledger.remaining(), up=False)} left for one "
        "more fit\n"
    )


def what_was_paid(record: PrivacyRecord, groups: str | None, ledger: PrivacyLedger | None) -> str:
    """Say what was promised, and what is left."""
    return _guarantee(record, groups) + ("" if ledger is None else _left(ledger))


def _trained(options: Any, table: TrainingTable, booking: Booking, err: TextIO) -> Any:
    """Fit within the budget; what an estimator refuses is a sentence."""
    progress = Progress(1, err)
    model = PrivateTableClassifier(
        epsilon=options.epsilon,
        delta=options.delta,
        classes=table.classes,
        schema=table.rules,
        features=options.features,
    )
    try:
        with progress.fit(booking) as watch, single_blas_thread(), warnings.catch_warnings():
            # That the labels are declared public has been said.
            warnings.simplefilter("ignore", PrivacyWarning)
            progress.start("training")
            model.set_params(ledger=watch).fit(table.frame, table.y, groups=table.groups)
        progress.step()
    except (ValueError, BudgetError, CertificateError) as error:
        progress.clear()
        raise UserError(" ".join(str(error).split())) from error
    except KeyboardInterrupt:
        progress.clear()
        raise
    # The model goes out of the house, the ledger and its path stay.
    return model.set_params(ledger=None)


def opened_ledger(options: Any) -> PrivacyLedger | None:
    """Open the ledger, or make it where its cap is given."""
    path, cap = options.ledger, options.cap
    if path is None:
        if cap is not None:
            raise UserError("--cap is used only together with --ledger")
        return None
    if cap is None and not path.exists():
        raise UserError(f"there is no ledger at {path}; --cap EPSILON DELTA makes one")
    terms: dict[str, Any] = {} if cap is None else {"epsilon": cap[0], "delta": cap[1]}
    if not path.exists():
        terms["dataset"] = options.table.name
        if options.groups is not None:
            terms["adjacency"] = "replace-one-person"
    try:
        return PrivacyLedger(path, **terms)
    except (ValueError, BudgetError) as error:
        raise UserError(f"--ledger: {error}") from error


def predict(options: Any, out: TextIO, err: TextIO) -> None:
    """Write predictions and probabilities of a saved model."""
    model = load_model(options.model, err)
    columns = [column for column in model.encoding_.columns if column.kind != "drop"]
    cells = read_cells(options, [column.name for column in columns])
    frame = frame_for(model, options.model, cells)
    shares = model.predict_proba(frame)
    said = np.array([csv_cell(str(label)) for label in model.classes_], dtype=object)
    result = frame.iloc[:, :0].assign(prediction=said[shares.argmax(axis=1)])
    names = [csv_cell(f"probability_{label}") for label in model.classes_]
    for place, share in enumerate(shares.T):
        result[place] = np.round(share, 6)
    write_whole(
        options.out,
        lambda path: result.to_csv(path, index=False, header=["prediction", *names]),
    )
    with kept("the predictions are written"):
        say(out, f"Written: {shown(options.out)}, {len(result)} rows\n")


def frame_for(model: Any, path: Path, cells: Cells) -> Any:
    """Return the rows of a table as the fit read them, if this version can predict them."""
    used = {column.name: column for column in model.encoding_.columns if column.kind != "drop"}
    # Kinds are those of the fit, whatever this table holds.
    frame = typed(cells, used)
    for column in model.encoding_.columns:
        if column.kind == "drop":
            frame[column.name] = ""
    try:
        model.predict_proba(frame.iloc[:1])
    except Exception as error:
        raise UserError(
            f"{path} was made by another version of dp_halfspace, which its card names; "
            "use that version"
        ) from error
    return frame
