"""Train a model on a table, save it with its card, and label the rows of another table by it."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import joblib
import numpy as np

from dp_halfspace import PrivacyLedger, PrivateTableClassifier
from dp_halfspace._cli.arguments import Stopped, UserError
from dp_halfspace._cli.card import Card, write_card
from dp_halfspace._cli.problems import TrainingTable, read_training_table
from dp_halfspace._cli.progress import Progress
from dp_halfspace._cli.tables import Cells, read_cells, readable, typed
from dp_halfspace._sklearn import single_blas_thread
from dp_halfspace.exceptions import BudgetError, CertificateError, PrivacyWarning
from dp_halfspace.privacy.record import PrivacyRecord, rounded_text


def fit(options: Any, out: TextIO, err: TextIO) -> None:
    """Train, save, and say what was promised."""
    for option in ("save", "card"):
        check_target(getattr(options, option), f"--{option}")
    table = read_training_table(options)
    for note in table.notes:
        err.write(f"dp_halfspace: note: {note}\n")
    ledger = opened_ledger(options)
    if ledger is not None:
        err.write(f"dp_halfspace: note: {ledger.summary().splitlines()[0]}\n")
    model = _trained(options, table, ledger, err)
    write_whole(options.save, lambda path: joblib.dump(model, path))
    out.write(_guarantee(model.privacy_, options.groups))
    out.write(f"Model:     {options.save}\n")
    try:
        if options.card is not None:
            card = Card(model, options.table.name, options.groups, ledger)
            write_whole(options.card, lambda path: write_card(path, card))
            out.write(f"Card:      {options.card}\n")
    except KeyboardInterrupt:
        raise Stopped(f"interrupted before the card; the model is in {options.save}") from None
    if ledger is not None:
        out.write(_left(ledger))


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


def say_what_was_paid(
    record: PrivacyRecord, groups: str | None, ledger: PrivacyLedger | None, out: TextIO
) -> None:
    """Write what was promised, and what is left."""
    out.write(_guarantee(record, groups))
    if ledger is not None:
        out.write(_left(ledger))


def _trained(options: Any, table: TrainingTable, ledger: Any, err: TextIO) -> Any:
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
        with progress.fit(ledger) as watch, single_blas_thread(), warnings.catch_warnings():
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
        booked = ", but what the ledger has booked stays booked" if ledger is not None else ""
        raise Stopped(f"interrupted: no model was made or saved{booked}") from None
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


def predict(options: Any, out: TextIO) -> None:
    """Write predictions and probabilities of a saved model."""
    check_target(options.out, "--out")
    model = loaded(options.model)
    columns = [column for column in model.encoding_.columns if column.kind != "drop"]
    cells = read_cells(options, [column.name for column in columns])
    frame = frame_for(model, options.model, cells)
    shares = model.predict_proba(frame)
    result = frame.iloc[:, :0].assign(prediction=model.classes_[shares.argmax(axis=1)])
    for label, share in zip(model.classes_, shares.T, strict=True):
        result[f"probability_{label}"] = np.round(share, 6)
    write_whole(options.out, lambda path: result.to_csv(path, index=False))
    out.write(f"Written: {options.out}, {len(result)} rows\n")


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


def loaded(path: Path) -> Any:
    """Load a model that `fit` has saved."""
    with readable(path):
        try:
            model = joblib.load(path)
        except OSError:
            raise
        except Exception as error:
            raise ValueError("not a model") from error
    if not isinstance(model, PrivateTableClassifier) or not hasattr(model, "encoding_"):
        raise UserError(f"{path} holds no model of `python -m dp_halfspace fit`")
    return model


def check_target(path: Path | None, option: str) -> None:
    """Refuse a file that cannot be written before anything is paid for."""
    if path is None:
        return
    folder = path.absolute().parent
    if not folder.is_dir():
        raise UserError(f"{option}: there is no folder {folder}; make it first")
    if path.is_dir() or not os.access(folder, os.W_OK):
        raise UserError(f"{option}: {path} cannot be written to")


def write_whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Write a file under its name complete, or not at all."""
    new = None
    try:
        handle, name = tempfile.mkstemp(prefix=path.name, suffix=".new", dir=path.absolute().parent)
        os.close(handle)
        new = Path(name)
        write(new)
        mask = os.umask(0)
        os.umask(mask)
        new.chmod(0o666 & ~mask)
        new.replace(path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error
    finally:
        if new is not None:
            new.unlink(missing_ok=True)
