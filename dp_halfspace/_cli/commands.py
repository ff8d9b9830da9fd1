"""The commands: those of a model, the schema of a file, and a plan without one."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from dp_halfspace import PrivacyLedger, PrivateTableClassifier
from dp_halfspace._budget import WEAK_GUARANTEE, warn_of_weak_budget
from dp_halfspace._cli import tables
from dp_halfspace._cli.arguments import NO_MEMORY, UserError, refusals_as_sentences
from dp_halfspace._cli.demo import demo
from dp_halfspace._cli.files import check_files, note, write_out, write_text, write_whole
from dp_halfspace._cli.splits import split
from dp_halfspace._html import align_columns, csv_cell, printable
from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.data.schema import word_of
from dp_halfspace.exceptions import PrivacyWarning
from dp_halfspace.inspection import plan_accuracy
from dp_halfspace.inspection.card import model_card, table_of_scores
from dp_halfspace.metrics import PrivateScore, private_score
from dp_halfspace.metrics.score import UNINFORMATIVE
from dp_halfspace.privacy.record import PrivacyRecord, rounded_text, unit_of

_NO_MODEL = "not a model that the command `fit` has saved"
# How messages about a released model begin.
_FINDINGS = (
    "every row has the same score|by a noisy count one class is rare|by released scales|"
    "the model is one selected classifier"
)


def plan(options: Any) -> None:
    """Simulate the expected accuracy, and print it as a table."""
    sizes = options.rows, options.columns, options.classes, options.epsilons
    guesses = {name: getattr(options, name) for name in ("reference", "majority", "reference_area")}
    with refusals_as_sentences():
        expected = plan_accuracy(
            *sizes, n_repeats=options.repeats, random_state=options.seed, **guesses
        )
    share = 1.0 / options.classes if options.majority is None else options.majority
    assumed = "for classes of equal size" if options.majority is None else "as stated"
    text = (
        f"{expected!r}\n\nExpected accuracy on new rows, from simulated tables; spread: standard "
        f"deviation of one fit.\nThe majority class alone: {share:.3f}, {assumed}. A ranking by "
        "chance has an area of 0.5.\nNothing was read or spent.\n"
    )
    write_out(text)


def schema(options: Any) -> None:
    """Write the names and types of columns, and no values, as a draft of a schema."""
    roles = [options.target] if options.target else []
    table = tables.read_table(options, roles)
    table = replace(table, frame=table.frame.drop(columns=roles))
    found = tables.guesses(table, {}, looks=True)
    columns = tables.declared_columns(table, {})
    entries: dict[str, Any] = {name: word_of(column) for name, column in columns.items()}
    for name, guess in found.items():
        entries[name] = guess.rule if len(guess.rule) > 1 else guess.rule["kind"]
    # A template states no label.
    target = {"target": "state the PUBLIC labels here"} if options.target else {}
    # What does not print, or is not in the encoding of the output, has an escape of JSON there.
    is_printed = options.out is None
    text = json.dumps({**target, "columns": entries}, indent=1, ensure_ascii=is_printed) + "\n"
    if is_printed:
        write_out(text)
    else:
        write_text(options.out, text)
        write_out(f"Written: {printable(options.out)}, {len(entries)} columns\n")
    text = (
        "these types were inferred from the private cells. Correct them by the meaning of the "
        'columns, and add public facts: a number may become [0, 120], a text ["I", "II", "III"], '
        'and what is no feature "drop". A cell of another type than its column counts as missing.'
    )
    looks = [f"column {name!r}: {guess.look}" for name, guess in found.items() if guess.look]
    if looks:
        text += f" Look at the file before you use this template. In {'; in '.join(looks)}."
    note(text)
    tables.note_keys(entries)


def fit(options: Any) -> None:
    """Train and save a model, and print its guarantee; a dry run ends with the plan."""
    _check_ledger(options)
    table = tables.read_training_table(options)
    ledger = _open_ledger(options)
    budget = {"epsilon": options.epsilon, "delta": options.delta, "ledger": ledger}
    model = PrivateTableClassifier(classes=table.classes, schema=table.rules, **budget)
    with _charges_named(ledger, options.ledger, "no model was made or saved"):
        with _reading():
            text, record = _preview(model, table, options.groups)
            write_out(text)
            if options.dry_run:
                warn_of_weak_budget(record)
                if ledger is not None:
                    left = ledger.remaining_for(model, table.rows, table.y, groups=table.groups)
                    write_out(f"Ledger:    accepts this fit up to epsilon {left:.6g}\n")
                write_out("Nothing was released, charged or written.\n")
                return
            model.fit(table.rows, table.y, groups=table.groups)
        # The path of a ledger is private, and the file of a model may be published.
        model.set_params(ledger=None)
        write_whole(options.save, lambda place: joblib.dump(model, place))
    paths = f"Model:     {printable(options.save)}\n"
    with _failures_end_with(lambda: f"; the model is in {options.save}"):
        if options.card is not None:
            about = {"title": options.table.name, "groups": options.groups, "ledger": ledger}
            write_text(options.card, model_card(model, **about, purpose=options.purpose))
            paths += f"Card:      {printable(options.card)}\n"
        guarantee = _describe_guarantee(model.privacy_, options.groups)
        write_out(guarantee + paths + _describe_ledger(ledger))


def _preview(
    model: Any, table: tables.TrainingTable, groups: str | None
) -> tuple[str, PrivacyRecord]:
    """Return what a fit would read, release, cost and be expected to reach, by public numbers.

    Only the kinds of columns that are not stated come from the private cells. Nothing is drawn or
    charged.
    """
    model._validate_params()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        data = model._training_data(table.rows, table.y, table.groups)
        plan, record = model._planned(data)
        outlook = model._outlook(data)
    lines = [("column", "type", "source")]
    for column in data.encoding.columns:
        kind = column.describe().removesuffix(f", {column.source}")
        source = f"private: {column.source}" if column.source else "stated"
        lines.append((column.name, kind, source))
    unstated = sum(column.source != "" for column in data.encoding.columns)
    parts = align_columns(lines, 3)
    if unstated:
        parts.append(
            f"{unstated} of these types are private, and not to be published, because they were "
            "taken from the stored cells: state them in a --schema by the meaning of the columns."
        )
    parts += ["", "Plan:      asked of the private rows"]
    parts += [f"  - {ask}" for ask in dict.fromkeys(plan.asks)]
    epsilon, delta = map(rounded_text, (record.epsilon, record.delta))
    parts.append(f"Cost:      epsilon {epsilon} at delta {delta}; unit: {_unit_of(groups)}")
    parts.append(f"Expect:    {outlook}")
    return "\n".join(parts) + "\n", record


def card(options: Any) -> None:
    """Write the card of a saved model."""
    model = _load(options.model)
    ledger = None if options.ledger is None else _opened(options.ledger)
    scores = [] if options.scores is None else _read_scores(options.scores)
    stated = ("purpose", "population", "limits", "contact", "groups")
    texts = {name: getattr(options, name) for name in stated}
    with refusals_as_sentences():
        text = model_card(model, title=options.model.name, ledger=ledger, scores=scores, **texts)
    write_text(options.out, text)
    write_out(f"Card:      {printable(options.out)}\n")


def _read_scores(path: Path) -> list[PrivateScore]:
    with tables.readable(path):
        text = path.read_bytes()
    try:
        return [PrivateScore.from_dict(score) for score in json.loads(text)]
    except Exception as error:
        raise UserError(f"{path} is not a file that `evaluate --save` has written") from error


def predict(options: Any) -> None:
    """Write predictions of a saved model, and probabilities if it has any."""
    import pandas  # noqa: PLC0415 (optional dependency)

    model = _load(options.model)
    _, rows = _rows_for(model, options, [])
    labels = np.array([csv_cell(str(label)) for label in model.classes_], dtype=object)
    advice = "rank rows by the probability of a rare one"
    with _reading():
        if hasattr(model, "predict_proba"):
            probabilities = model.predict_proba(rows)
            names = [csv_cell(f"probability_{label}") for label in model.classes_]
            # More than the noise of any fit leaves; the probabilities of one selected classifier
            # hardly differ.
            digits = 6 if model.certainty_ is None else 12
            frame = pandas.DataFrame(np.round(probabilities, digits), columns=names)
            chosen = probabilities.argmax(axis=1)
        else:
            frame, advice = pandas.DataFrame(), "this model has no probabilities"
            chosen = np.searchsorted(model.classes_, model.predict(rows))
    frame.insert(0, "prediction", labels[chosen])
    write_whole(options.out, lambda path: frame.to_csv(path, index=False, lineterminator="\n"))
    write_out(
        f"Written: {printable(options.out)}, {len(chosen)} rows. A prediction is the likelier "
        f"label: {advice}.\n"
    )


def evaluate(options: Any) -> None:
    """Release scores with their intervals, and print what was charged."""
    _check_ledger(options)
    model = _load(options.model)
    if options.groups is None and unit_of(model.privacy_) == "person":
        note("the model protects persons, this evaluation single rows: name persons by --groups.")
    table, rows = _rows_for(model, options, tables.roles_of(options))
    y = tables.labels_of(table, options.target, model.classes_.tolist())
    groups = None if options.groups is None else tables.labels_of(table, options.groups)
    ledger = _open_ledger(options)
    with _charges_named(ledger, options.ledger, "the scores were not shown in full"):
        with _reading():
            budget = {"epsilon": options.epsilon, "delta": options.delta, "ledger": ledger}
            scores = private_score(model, rows, y, metric=options.metric, groups=groups, **budget)
        cost = _describe_guarantee(scores[0].privacy_, options.groups) + _describe_ledger(ledger)
        write_out("\n".join(align_columns(table_of_scores(scores))) + f"\n{cost}")
        if any(score.is_uninformative for score in scores):
            note(UNINFORMATIVE)
    if options.save is not None:
        with _failures_end_with(lambda: "; the scores above were released, and are not saved"):
            text = json.dumps([score.to_dict() for score in scores], indent=1, allow_nan=False)
            write_text(options.save, f"{text}\n")
            write_out(f"Scores:    {printable(options.save)}\n")


_NAMED = (plan, fit, card, predict, schema, evaluate, split)
COMMANDS = {"": demo, **{command.__name__: command for command in _NAMED}}


def run(options: Any) -> None:
    """Run a command, after checking the files that it writes."""
    check_files(options)
    COMMANDS[options.command](options)


def _load(path: Path) -> PrivateTableClassifier:
    with tables.readable(path):
        path.open("rb").close()
    note(f"loading {path} runs the code in the file: load it only if you trust its author")
    try:
        model = joblib.load(path)
    except Exception as error:
        raise UserError(f"cannot read {path}: it is damaged, or {_NO_MODEL}") from error
    if not isinstance(model, PrivateTableClassifier) or not hasattr(model, "encoding_"):
        raise UserError(f"{path} is {_NO_MODEL}")
    return model


def _rows_for(model: Any, options: Any, roles: list[str]) -> tuple[Any, Any]:
    """Return a table, and its rows as the fit read them, if this version can predict them."""
    # Kinds of columns are those of the fit for every content of this table.
    features = {c.name: c for c in model.encoding_.columns if c.kind != "drop"}
    # A format, or another decimal sign, uses more of a string than its canonical value.
    odd = [name for name, column in features.items() if column.date_format or column.decimal]
    table = tables.read_table(options, [*features, *roles], [*roles, *odd])
    rows = tables.typed_columns(table, features)
    try:
        model.predict(rows.iloc[:1])
    except Exception as error:
        raise UserError(
            f"{options.model} was saved by another version of dp_halfspace: use the one that its "
            "card states"
        ) from error
    return table, rows


@contextmanager
def _reading() -> Iterator[None]:
    """Write some warnings as notes, and refusals as sentences; the command says other warnings."""
    with refusals_as_sentences(), single_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        warnings.filterwarnings("always", f"{_FINDINGS}|{WEAK_GUARANTEE}", PrivacyWarning)
        warnings.showwarning = lambda message, *_, **__: note(f"{message}.")
        yield


@contextmanager
def _failures_end_with(text: Callable[[], str]) -> Iterator[None]:
    """Add to the message of a failure what remains nevertheless."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{error}{text()}") from error
    except MemoryError as error:
        raise UserError(f"{NO_MEMORY}{text()}") from error
    except KeyboardInterrupt as stop:
        if not text():
            raise
        raise KeyboardInterrupt(f"{str(stop) or 'interrupted'}{text()}") from None


def _unit_of(groups: str | None) -> str:
    return "one row" if groups is None else f"all rows of one {groups!r}"


def _describe_guarantee(record: PrivacyRecord, groups: str | None) -> str:
    claim = f"({rounded_text(record.epsilon)}, {rounded_text(record.delta)})-differential privacy"
    return f"Guarantee: {claim}; unit: {_unit_of(groups)}\n"


def _check_ledger(options: Any) -> None:
    """Refuse a new ledger without a total budget, before a table is read."""
    path, cap = options.ledger, options.cap
    if path is None and cap is not None:
        raise UserError("--cap is used only together with --ledger")
    if path is not None and cap is None and not path.exists():
        raise UserError(f"there is no ledger at {path}; --cap EPSILON DELTA creates one")


def _open_ledger(options: Any) -> PrivacyLedger | None:
    """Open the ledger, or create it if its total budget is given; a dry run creates no file."""
    path, cap = options.ledger, options.cap
    if path is None:
        return None
    terms: dict[str, Any] = {} if cap is None else {"epsilon": cap[0], "delta": cap[1]}
    if not path.exists():
        terms["dataset"] = options.table.name
        if options.groups is not None:
            terms["adjacency"] = "replace-one-person"
    is_only_planned = getattr(options, "dry_run", False) and not path.exists()
    return _opened(None if is_only_planned else path, options.purpose, **terms)


@refusals_as_sentences("--ledger: ")
def _opened(path: Path | None, purpose: str = "", **terms: Any) -> PrivacyLedger:
    return PrivacyLedger(path, **terms).annotated(purpose=purpose or None)


def _charges_named(
    ledger: PrivacyLedger | None, path: Path | None, lost: str
) -> AbstractContextManager[None]:
    """Add to the message of a failure what remains charged, and the `lost` result."""
    n_before = 0 if ledger is None else len(ledger.entries())

    def remains() -> str:
        entries = [] if ledger is None else ledger.entries()[n_before:]
        charged = [[each.record.epsilon, each.record.delta] for each in entries]
        sizes = " and ".join("epsilon {}, delta {}".format(*map(rounded_text, c)) for c in charged)
        return f"; {sizes} remain charged to the ledger {path}, and {lost}" if sizes else ""

    return _failures_end_with(remains)


def _describe_ledger(ledger: PrivacyLedger | None) -> str:
    """Return in one line what was asked for, and what the exact composition spends."""
    if ledger is None:
        return ""
    return f"Ledger:    {ledger.summary().splitlines()[0].split(': ', 1)[1]}\n"
