"""The commands: fit, predict, evaluate, card, schema and plan."""

from __future__ import annotations

import importlib.util
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from dp_halfspace import PrivacyLedger, PrivateTableClassifier
from dp_halfspace._budget import WEAK_GUARANTEE, warn_of_weak_budget
from dp_halfspace._cli import tables
from dp_halfspace._cli.arguments import Stopped, UserError
from dp_halfspace._cli.files import import_skops, load_model, save_model, write_out, write_whole
from dp_halfspace._cli.splits import split
from dp_halfspace._cli.tables import (
    Cells,
    TrainingTable,
    declared_columns,
    guesses,
    is_verbatim,
    labels_of,
    read_cells,
    read_training_table,
    read_typed_columns,
    readable,
    stream_cells,
)
from dp_halfspace._html import align_columns, csv_cell, printable
from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.data.chunks import LocalChunks
from dp_halfspace.data.encoding import Encoding
from dp_halfspace.data.schema import Column, facts_of, looks_like_key
from dp_halfspace.estimators._operating_point import TARGETS
from dp_halfspace.estimators._outlook import BEFOREHAND, Outlook
from dp_halfspace.estimators._rare_tables import LIMIT
from dp_halfspace.exceptions import BudgetError, CertificateError, PrivacyWarning, install_hint
from dp_halfspace.inspection import AccuracyPlan, plan_accuracy
from dp_halfspace.inspection.card import model_card, table_of_scores
from dp_halfspace.ledger.ledger import describe_left
from dp_halfspace.metrics import PrivateScore, private_score
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.events import Gaussian, single_runs, total_mu
from dp_halfspace.privacy.profiles import gdp_mu
from dp_halfspace.privacy.record import PrivacyRecord, rounded_text


def note_on_keys(names: Iterable[str], rules: Mapping[str, Any]) -> str:
    """Return a note on features that may be keys; empty if there are none."""
    keys = [name for name in names if looks_like_key(name) and not _is_dropped(rules.get(name))]
    if not keys:
        return ""
    few = len(keys) == 1
    return (
        f"the column{'' if few else 's'} {', '.join(map(repr, keys))} may identify "
        "rows or persons, judging by the name, and will be used as "
        f"{'a feature' if few else 'features'}. Leave out columns that are not "
        'features by --drop or by "drop" in the schema, and name the column of persons with '
        "several rows by --groups."
    )


def _is_dropped(rule: Any) -> bool:
    return rule == "drop" or (isinstance(rule, Mapping) and rule.get("kind") == "drop")


@dataclass(frozen=True, slots=True)
class Preview:
    """What a fit would read, release, cost and be expected to reach, by public numbers.

    Only the kinds of columns that are not stated come from the private cells.
    """

    record: PrivacyRecord
    asks: tuple[str, ...]
    encoding: Encoding
    outlook: Outlook | None

    @classmethod
    def of(cls, model: Any, rows: Any, table: TrainingTable) -> Preview:
        """Plan a fit; nothing is drawn or charged."""
        model._validate_params()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            data = model._training_data(rows, table.y, table.groups, None)
            plan = model._fit_plan(data)
            record = model._record(plan, data)
            return cls(record, plan.asks, data.encoding, model._outlook(data))

    def text(self, groups: str | None) -> str:
        """List the columns, what is released, what it costs, and what to expect."""
        return self.columns() + self.cost(groups) + _describe_outlook(self.outlook)

    def columns(self) -> str:
        """List the columns: their kind, its source, and how they are used."""
        scaled = dict(self.record.public).get("private_column_scales", ())
        estimated = frozenset(map(str, scaled))
        rows = [("column", "type", "source", "used as")]
        for column in self.encoding.columns:
            known = Column.describe(column).removesuffix(f", {column.source}")
            source = "stated" if column.is_stated else f"{_PRIVATE}{column.source}"
            rows.append((column.name, known, source, _use_of(column, self.encoding, estimated)))
        unstated = sum(not column.is_stated for column in self.encoding.columns)
        note = f"{_PRIVATE_KINDS.format(unstated)}\n" if unstated else ""
        return "\n".join(align_columns(rows, 4)) + f"\n{note}\n"

    def cost(self, groups: str | None) -> str:
        """Say what is asked of the private rows, with its share of the budget, and the cost."""
        lines = ["Plan:      asked of the private rows, with the share of the budget"]
        parts = zip(self.asks, shares_of(self.record), strict=True)
        for ask, group in groupby(parts, itemgetter(0)):
            lines.append(f"  - {100 * sum(share for _, share in group):3.0f} %  {ask}")
        lines.append(
            f"Cost:      epsilon {rounded_text(self.record.epsilon)} at delta "
            f"{rounded_text(self.record.delta)}; unit: {_unit_of(groups)}"
        )
        return "\n".join(lines) + "\n"


def shares_of(record: PrivacyRecord) -> list[float]:
    """Return the share of each event in the budget: what the others would cost less without it.

    Costs are counted in mu squared, in which Gaussian releases add up, and in epsilon for pure DP.
    """
    events, delta = record.events, record.delta
    if len(events) == 1:
        return [1.0]
    counts = [single_runs([event]) for event in events]
    if all(isinstance(event, Gaussian) for count in counts for event in count):
        costs = [total_mu(tuple(count.items())) ** 2 for count in counts]
    else:
        others = [[*events[:k], *events[k + 1 :]] for k in range(len(events))]
        whole, *left = (accounting.epsilon(each, delta) for each in (events, *others))
        if delta > 0.0:
            whole, *left = (gdp_mu(each, delta) ** 2 for each in (whole, *left))
        costs = [whole - each for each in left]
    return [cost / sum(costs) for cost in costs]


def _unit_of(groups: str | None) -> str:
    return "one row" if groups is None else f"all rows of one {groups!r}"


def _use_of(column: Column, encoding: Encoding, estimated: frozenset[str]) -> str:
    """Return how a column is used; `estimated` are the names of columns with estimated scales."""
    if column.kind == "drop":
        return "left out"
    if column.is_number:
        scaled = "on an estimated scale" if column.name in estimated else ""
        if column.has_range:
            return "clipped to its range" + (f", {scaled}" if scaled else "")
        return scaled or "unchanged"
    if column.kind == "categories":
        return _use_of_categories(len(column.categories), encoding.width(column))
    if column.kind == "words":
        return f"counts of hashed words in {column.n_columns} columns"
    return f"the hash of the whole text, in {encoding.n_hashes} columns"


def _use_of_categories(size: int, width: int) -> str:
    """Return how a list of categories is used in a number of columns."""
    if size == 2:
        return "one column with two values"
    if width < size:
        return f"the digits of its place in the list, in {width} columns"
    return f"{width} columns of 0 and 1"


_NOTHING_DONE = "Nothing was released, charged or written.\n"
# Marks of kinds that no schema states.
_PRIVATE = "private: "
_PRIVATE_KINDS = (
    "{} of these types are private, and not to be published, because they were taken from the "
    "stored cells: state them in a --schema by the meaning of the columns."
)
_PICTURES = (".png", ".svg", ".pdf")
_PROBABILITY_DIGITS = 6
_UNINFORMATIVE = (
    "the interval of {} contains every possible value, so the score is uninformative: "
    "its noise is too large. Use more rows or a larger --epsilon."
)
_ROWS_ONLY = (
    "the model protects persons, and this evaluation protects single rows: name the "
    "column of persons by --groups if persons have several rows."
)
_HARDLY_PREDICTED = (
    "by noisy counts {:.2g} of the {} are in the rarer class, which is hardly ever "
    "predicted, because a prediction is the more likely label{}."
)
# The same if errors were counted, and not classes.
_PERHAPS_HARDLY_PREDICTED = (
    "by noisy counts no more than {:.2g} of the {} are misclassified. If as few are in the rarer "
    "class, it is hardly ever predicted, because a prediction is the more likely label{}."
)
# How messages about a released model begin.
_FINDINGS = "every row has the same score|by a noisy count one class is rare"
# Less than this share of the improvement without privacy is hardly any.
_HARDLY_BETTER = 1.0 / 3.0
# Below this share of the rarer class, predicted labels are hardly ever the rarer class.
_RARE_SHARE = 0.2


# Accuracy of a linear classifier without privacy, or area if the majority class has a larger share.
_DEFAULT_REFERENCE = 0.85
_MAJORITY_BY_ACCURACY = 0.8
# Place of the labels in a template, which states none of them.
_LABELS_TO_STATE = "state the PUBLIC labels here"


def plan(options: Any, out: TextIO, err: TextIO) -> None:
    """Simulate the expected accuracy, print it as a table, and draw it if requested."""
    del err
    target = options.out
    if target is not None and target.suffix.lower() not in _PICTURES:
        raise UserError(f"--out: the name of {target} must end in one of {', '.join(_PICTURES)}")
    reference, area = options.reference, options.reference_area
    if reference is None and area is None and (options.majority or 0.0) > _MAJORITY_BY_ACCURACY:
        # The default accuracy would hardly exceed the majority class, or not at all.
        area = _DEFAULT_REFERENCE
    with _refusals_as_sentences():
        expected = plan_accuracy(
            options.rows,
            options.columns,
            options.classes,
            options.epsilons,
            reference=_DEFAULT_REFERENCE if reference is None else reference,
            majority=options.majority,
            reference_area=area,
            delta=options.delta,
            n_repeats=options.repeats,
            random_state=options.seed,
        )
    text = (
        f"{expected!r}\n\nExpected accuracy on new rows, from simulated tables; spread: standard "
        f"deviation of one fit.\n{_describe_poor_budgets(options, expected)}Nothing was read or "
        "spent.\n"
    )
    write_out(out, text)
    if target is None:
        return
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 (optional dependency)
    except ImportError:
        write_out(out, f"No picture: matplotlib is missing; {install_hint('plot')}\n")
        return
    figure = Figure(figsize=(5.0, 4.2), layout="constrained")
    expected.plot(figure=figure)
    kind = target.suffix[1:].lower()
    write_whole(target, lambda path: figure.savefig(path, dpi=150, format=kind))
    write_out(out, f"Written: {target}\n")


def schema(options: Any, out: TextIO, err: TextIO) -> None:
    """Write the names and types of columns, and no values, as a draft of a schema."""
    roles = [options.target] if options.target else []
    cells = read_cells(options, roles)
    cells = replace(cells, frame=cells.frame.drop(columns=roles))
    columns, found = declared_columns(cells, {}), guesses(cells, {})
    rules = {name: facts_of(column) for name, column in columns.items()}
    rules |= {name: dict(guess.rule) for name, guess in found.items()}
    entries = {name: rule if len(rule) > 1 else rule["kind"] for name, rule in rules.items()}
    target = {"target": _LABELS_TO_STATE} if options.target else {}
    template: dict[str, Any] = {**target, "columns": entries}
    text = json.dumps(template, indent=1, ensure_ascii=False) + "\n"
    if options.out is None:
        write_out(out, text)
    else:
        write_whole(options.out, lambda path: _write_text(path, text))
        write_out(out, f"Written: {printable(options.out)}, {len(columns)} columns\n")
    _note(
        err,
        "these types were inferred from the private cells. Check them, correct them by the "
        "meaning of the columns, and add public facts: a number may become [0, 120], "
        'a text ["I", "II", "III"], and a column that is not a feature '
        '"drop". A cell of another type than its column is treated as missing.',
    )
    looks = [f"column {name!r}: {guess.look}" for name, guess in found.items() if guess.look]
    if looks:
        _note(err, f"look at the file before you use this template. In {'; in '.join(looks)}.")
    if options.target:
        _note(err, 'state the PUBLIC labels under "target", such as ["no", "yes"].')
    keys = note_on_keys(columns, {})
    if keys:
        _note(err, keys)


def fit(options: Any, out: TextIO, err: TextIO) -> None:
    """Train and save a model, and print its guarantee; a dry run ends with the plan."""
    if not options.dry_run:
        import_skops(options.save)
    _check_ledger(options)
    threshold = _threshold_of(options)
    table = read_training_table(options)
    keys = note_on_keys(table.frame.columns, table.rules)
    for note in (*table.notes, *([keys] if keys else [])):
        _note(err, note)
    ledger = _open_ledger(options)
    if ledger is not None:
        _note(err, ledger.summary().splitlines()[0])
    booking = _Booking(ledger, options.ledger)
    model = PrivateTableClassifier(
        epsilon=options.epsilon,
        delta=options.delta,
        classes=table.classes,
        schema=table.rules,
        features=options.features,
        class_weight=options.class_weight,
        threshold=threshold,
        ledger=booking,
    )
    with booking.state_on_failure("no model was made or saved"):
        with _fitting(options, table, err):
            rows = _rows_of(options, table)
            preview = Preview.of(model, rows, table)
            write_out(out, preview.text(options.groups))
            if options.dry_run:
                _note_on_plan(err, preview)
                booking.for_estimator(
                    type(model).__name__, model._plans(rows, table.y, groups=table.groups)
                )
                write_out(out, booking.describe_plan() + _NOTHING_DONE)
                return
            model.fit(rows, table.y, groups=table.groups)
        _note_on_counts(err, model)
        # The path of a ledger is private, and the file of a model may be published.
        save_model(model.set_params(ledger=None), options.save)
    paths = f"Model:     {printable(options.save)}\n"
    with _failures_end_with(f"the model is in {options.save}"):
        if options.card is not None:
            about = model, options, options.table.name, ledger
            write_whole(options.card, lambda path: _write_text(path, _card_of(*about)))
            paths += f"Card:      {printable(options.card)}\n"
            _note_missing_pictures(err)
        guarantee = _describe_guarantee(model.privacy_, options.groups)
        text = guarantee + _describe_threshold(model)
        write_out(out, text + paths + booking.describe("fit"))


def card(options: Any, out: TextIO, err: TextIO) -> None:
    """Write the card of a saved model."""
    model = _load(options.model, err)
    ledger = None
    if options.ledger is not None:
        if not options.ledger.exists():
            raise UserError(f"there is no ledger at {options.ledger}")
        try:
            ledger = PrivacyLedger(options.ledger)
        except (ValueError, BudgetError) as error:
            raise UserError(f"--ledger: {error}") from error
    title = options.model.name if options.title is None else options.title
    scores = [score for path in options.scores for score in _read_scores(path)]
    with _refusals_as_sentences():
        text = _card_of(model, options, title, ledger, scores)
    write_whole(options.out, lambda path: _write_text(path, text))
    _note_missing_pictures(err)
    write_out(out, f"Card:      {printable(options.out)}\n")


def predict(options: Any, out: TextIO, err: TextIO) -> None:
    """Write predictions and probabilities of a saved model."""
    model = _load(options.model, err)
    features = _features(model)
    labels = np.array([csv_cell(str(label)) for label in model.classes_], dtype=object)
    names = [csv_cell(f"probability_{label}") for label in model.classes_]
    n_rows = 0

    def write(path: Path) -> None:
        nonlocal n_rows
        given = (options, [*features], lambda name: is_verbatim(features.get(name)))
        with path.open("w", encoding="utf-8", newline="") as file:
            for cells in stream_cells(*given):
                frame = _frame_for(model, options.model, cells)
                probabilities = model.predict_proba(frame)
                chosen = probabilities.argmax(axis=1)
                if model.threshold_ is not None:
                    chosen = (model.predict(frame) == model.classes_[1]).astype(np.intp)
                result = frame.iloc[:, :0].assign(prediction=labels[chosen])
                for place, column in enumerate(probabilities.T):
                    result[place] = np.round(column, _PROBABILITY_DIGITS)
                header = False if n_rows else ["prediction", *names]
                result.to_csv(file, index=False, header=header)
                n_rows += len(result)

    write_whole(options.out, write)
    with _failures_end_with("the predictions are written"):
        write_out(out, f"Written: {printable(options.out)}, {n_rows} rows\n")


def evaluate(options: Any, out: TextIO, err: TextIO) -> None:
    """Release scores with their intervals, and print what was charged."""
    _check_ledger(options)
    model = _load(options.model, err)
    if options.groups is None and model.privacy_.adjacency == "replace-one-person":
        _note(err, _ROWS_ONLY)
    known = [column.name for column in model.encoding_.columns]
    roles = [name for name in (options.target, options.groups) if name is not None]
    features = _features(model)
    stays_text = lambda name: name not in features or is_verbatim(features[name])  # noqa: E731
    given: Any = (options, [*features, *roles], stays_text)
    # The rows of a person may be anywhere in the file.
    blocks = stream_cells(*given) if options.groups is None else iter([read_cells(*given)])
    parts, labels, groups = [], [], None
    for cells in blocks:
        others = [name for name in cells.frame.columns if name not in (*known, options.groups)]
        if options.target is None and len(others) != 1:
            unused = f": the model does not use {', '.join(map(repr, others))}" if others else ""
            raise UserError(f"--target must name the label column of {options.table}{unused}")
        target = options.target or others[0]
        if target in known or target == options.groups:
            raise UserError(f"--target: {target!r} is a column of the model, or that of --groups")
        frame = _frame_for(model, options.model, cells)
        labels.append(labels_of(cells, target))
        groups = None if options.groups is None else labels_of(cells, options.groups)
        parts.append(frame if groups is not None else model.decision_function(frame))
    records = parts[0]
    if groups is None:
        model, records = _OfScores.of(model), np.concatenate(parts)
    ledger = _open_ledger(options)
    booking = _Booking(ledger, options.ledger)
    with booking.state_on_failure("the scores were not shown in full"):
        noted = _warnings_as_notes(err, WEAK_GUARANTEE)
        with _refusals_as_sentences(), single_blas_thread(), noted:
            budget = {"epsilon": options.epsilon, "delta": options.delta, "ledger": booking}
            scores = private_score(
                model,
                records,
                np.concatenate(labels),
                metric=options.metric,
                groups=groups,
                **budget,
            )
        rows = table_of_scores(scores)
        unknown = [score.metric for score in scores if score.is_uninformative]
        if unknown:
            _note(err, _UNINFORMATIVE.format(", ".join(unknown)))
        guarantee = _describe_guarantee(scores[0].privacy_, options.groups)
        cost = guarantee + booking.describe("evaluation")
        write_out(out, "\n".join(align_columns(rows)) + f"\n{cost}")
    if options.save is not None:
        with _failures_end_with("the scores above were released, and are not saved"):
            text = json.dumps([score.to_dict() for score in scores], indent=1, allow_nan=False)
            write_whole(options.save, lambda path: _write_text(path, f"{text}\n"))
            write_out(out, f"Scores:    {printable(options.save)}\n")


COMMANDS: dict[str, Callable[[Any, TextIO, TextIO], None]] = {
    "plan": plan,
    "fit": fit,
    "card": card,
    "predict": predict,
    "schema": schema,
    "evaluate": evaluate,
    "split": split,
}


def _write_text(path: Path, text: str) -> None:
    """Write a text file, in the same encoding on every system."""
    path.write_text(text, encoding="utf-8")


@contextmanager
def _warnings_as_notes(err: TextIO, pattern: str) -> Iterator[None]:
    """Write the warnings that match as notes; the command says the others in its own words."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        warnings.filterwarnings("always", pattern, PrivacyWarning)
        warnings.showwarning = lambda message, *_, **__: _note(err, f"{message}.")
        yield


def _note(err: TextIO, text: str) -> None:
    write_out(err, f"dp_halfspace: note: {text}\n")


def _describe_guarantee(record: PrivacyRecord, groups: str | None) -> str:
    claim = f"({rounded_text(record.epsilon)}, {rounded_text(record.delta)})-differential privacy"
    return f"Guarantee: {claim}; unit: {_unit_of(groups)}\n"


def _describe_poor_budgets(options: Any, expected: AccuracyPlan) -> str:
    """Return the accuracy of the majority class, and the budgets that hardly exceed it.

    These have less than a third of the improvement without privacy in the simulation. If the area
    without privacy is stated, it is that of the area above one half.
    """
    share = 1.0 / options.classes if options.majority is None else options.majority
    assumed = "for classes of equal size" if options.majority is None else "as stated"
    lines = [f"The majority class alone: {share:.3f}, {assumed}."]
    if expected.reference_area is not None:
        least = 0.5 + _HARDLY_BETTER * (expected.reference_area - 0.5)
        areas = zip(expected.epsilons, expected.area, strict=True)
        lines += [
            f"The ranking is hardly better than chance at epsilon={epsilon:g}: area {area:.3f}."
            for epsilon, area in areas
            if area < least
        ]
        return "\n".join(lines) + "\n"
    reference = share if expected.reference is None else expected.reference
    lines += [
        f"Little more than that at epsilon={epsilon:g}: accuracy {accuracy:.3f}."
        for epsilon, accuracy in zip(expected.epsilons, expected.accuracy, strict=True)
        if accuracy - share < _HARDLY_BETTER * (reference - share)
    ]
    return "\n".join(lines) + "\n"


def _describe_outlook(found: Outlook | None) -> str:
    """Return the expected quality by public numbers, unless a note states it."""
    return "" if found is None or found.is_poor else f"Expect:    {found}\n"


def _card_of(
    model: Any,
    options: Any,
    title: str,
    ledger: PrivacyLedger | None,
    scores: Sequence[PrivateScore] = (),
) -> str:
    names = ("purpose", "population", "limits", "contact")
    texts = {name: getattr(options, name) for name in names}
    about = {"title": title, "groups": options.groups, "ledger": ledger, "scores": scores}
    return model_card(model, **about, **texts)


def _read_scores(path: Path) -> list[PrivateScore]:
    with readable(path):
        text = path.read_bytes()
    try:
        scores = [PrivateScore.from_dict(score) for score in json.loads(text)]
    except Exception as error:
        raise UserError(f"{path} is not a file that `evaluate --save` has written") from error
    return scores


@contextmanager
def _fitting(options: Any, table: TrainingTable, err: TextIO) -> Iterator[None]:
    """Write warnings as notes and refusals as sentences."""
    noted = _warnings_as_notes(err, f"{BEFOREHAND}|{_FINDINGS}|{WEAK_GUARANTEE}")
    with _refusals_as_sentences(), single_blas_thread(), noted:
        try:
            yield
        except RuntimeError as error:
            # For rows that are read again, the text of an error may depend on cells.
            if table.source is None:
                raise
            raise UserError(
                f"{options.table} changed, or became unreadable, while it was being "
                "read: finish writing the file first"
            ) from error


def _note_on_plan(err: TextIO, preview: Preview) -> None:
    """Write what a fit would note before it charges."""
    warn_of_weak_budget(preview.record)
    if preview.outlook is not None and preview.outlook.is_poor:
        _note(err, f"{preview.outlook}.")


def _note_on_counts(err: TextIO, model: Any) -> None:
    """Write notes on what counts of a fit show."""
    share = model._rarer_share
    is_plain = (model.threshold, model.class_weight, len(model.classes_)) == (None, None, 2)
    if is_plain and share is not None and share < _RARE_SHARE:
        people = model.privacy_.adjacency == "replace-one-person"
        # Only what this fit would not refuse: a threshold needs steps, weights a delta.
        ways = [] if model._is_selected else ["--threshold recall 0.9"]
        ways += ["--class-weight balanced"] if model.privacy_.delta > 0.0 else []
        use = f"use {' or '.join(ways)}" if ways else ""
        # A selection looks for few errors, of which a rare class has few: it may not rank it.
        if not model._is_selected:
            use = ", or ".join(filter(None, ["rank rows by their probabilities", use]))
        advice = f". {use[0].upper()}{use[1:]}" if use else ""
        counts_errors = model._is_selected and LIMIT not in dict(model.privacy_.public)
        text = _PERHAPS_HARDLY_PREDICTED if counts_errors else _HARDLY_PREDICTED
        _note(err, text.format(share, "persons" if people else "rows", advice))
    if model.threshold_ is not None and model.threshold_.warning:
        _note(err, f"{model.threshold_.warning}.")


def _threshold_of(options: Any) -> dict[str, float] | None:
    """Return the target of a threshold; the model validates it."""
    if options.threshold is None:
        return None
    name, text = options.threshold
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if name not in TARGETS or not 0.0 < value < 1.0:
        raise UserError(
            f"--threshold takes one of {', '.join(TARGETS)} and a number between 0 and 1, such as "
            "recall 0.9"
        )
    return {name: value}


def _describe_threshold(model: Any) -> str:
    """Return in one line what the threshold is expected to reach."""
    point = model.threshold_
    if point is None:
        return ""
    low, high = (f"{end:.2f}" for end in point.interval)
    return (
        f"Threshold: {point.target.replace('_', ' ')} of {printable(model.classes_[1])!r} wanted "
        f"{point.wanted:g} with a confidence of 95 %, expected {point.estimate:.2f}, 90 % interval "
        f"{low} to {high}\n"
    )


def _note_missing_pictures(err: TextIO) -> None:
    if importlib.util.find_spec("matplotlib") is None:
        _note(err, f"the card has no pictures of the columns: {install_hint('plot')}.")


def _rows_of(options: Any, table: TrainingTable) -> Any:
    """Return the table, in chunks if it is large, so that not all rows are encoded at once.

    The choice depends on public sizes and options only.
    """
    frame = table.frame
    # The sample is a row of missing values, which has the columns and types of all rows.
    sample = frame.iloc[:0].reindex(range(2))
    if table.source is not None:
        readers = [partial(table.rows, number) for number in range(len(table.source))]
        return LocalChunks.read_by(readers, sample)
    is_small = frame.size < tables.FIRST_STREAMED
    if is_small or options.delta == 0 or table.groups is not None:
        return frame
    starts = range(0, len(frame), tables.ROWS_AT_ONCE)
    return LocalChunks.read_by([partial(_rows_from, frame, start) for start in starts], sample)


def _rows_from(frame: Any, start: int) -> Any:
    return frame.iloc[start : start + tables.ROWS_AT_ONCE]


def _load(path: Path, err: TextIO) -> Any:
    with readable(path):
        path.open("rb").close()
    if import_skops(path) is None:
        _note(
            err,
            f"loading {path} runs the code in the file: load it only if you trust its "
            "author, or save models as .skops, which runs no code",
        )
    with readable(path):
        try:
            model = load_model(path)
        except (OSError, UserError):
            raise
        except Exception as error:
            refusal = (
                f"cannot read {path}: it is damaged, or not a model that the command `fit` "
                "has saved"
            )
            raise UserError(refusal) from error
    if not isinstance(model, PrivateTableClassifier) or not hasattr(model, "encoding_"):
        raise UserError(f"{path} is not a model that the command `fit` has saved")
    return model


def _features(model: Any) -> dict[str, Column]:
    """Return the columns that a model needs, by name."""
    columns = model.encoding_.columns
    return {column.name: column for column in columns if column.kind != "drop"}


def _frame_for(model: Any, path: Path, cells: Cells) -> Any:
    """Return the rows of a table as the fit read them, if this version can predict them."""
    features = _features(model)
    # Kinds of columns are those of the fit for every content of this table.
    frame = read_typed_columns(cells, features)
    try:
        model.predict_proba(frame.iloc[:1])
    except Exception as error:
        raise UserError(
            f"{path} was saved by another version of dp_halfspace: use that version, "
            "which its card states"
        ) from error
    return frame


class _OfScores(PrivateTableClassifier):
    """A fitted model with rows replaced by the scores that it has given before."""

    @classmethod
    def of(cls, model: PrivateTableClassifier) -> _OfScores:
        other = cls()
        other.__dict__.update(model.__dict__)
        return other

    def _checked_rows(self, X: Any) -> Any:
        return X

    def _scores(self, rows: Any) -> Any:
        return rows


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
    try:
        ledger = PrivacyLedger(None if is_only_planned else path, **terms)
        return ledger.annotated(purpose=options.purpose or None)
    except (ValueError, BudgetError) as error:
        raise UserError(f"--ledger: {error}") from error


@contextmanager
def _refusals_as_sentences() -> Iterator[None]:
    """Convert an error of the library, with its public text, into one sentence."""
    try:
        yield
    except (ValueError, BudgetError, CertificateError) as error:
        raise UserError(" ".join(str(error).split())) from error


@contextmanager
def _failures_end_with(text: str) -> Iterator[None]:
    """Add to the message of a failure the files that were written nevertheless."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{error}; {text}") from error
    except KeyboardInterrupt:
        raise Stopped(f"interrupted; {text}") from None


class _Booking:
    """A ledger, if there is one, that remembers what it was asked to charge since it was opened."""

    def __init__(self, ledger: PrivacyLedger | None, path: Path | None) -> None:
        self._ledger, self._path = ledger, path
        self._plan: Callable[[float], PrivacyRecord] | None = None
        self._asked: list[PrivacyRecord] = []
        self._n_before = 0 if ledger is None else len(ledger.entries())

    def __deepcopy__(self, memo: dict[int, Any]) -> _Booking:
        return self

    def __reduce__(self) -> Any:
        raise TypeError("a booking belongs to one process")

    def for_estimator(self, name: str, plan: Callable[[float], PrivacyRecord]) -> _Booking:
        """Name what is charged, and what it would charge with another epsilon."""
        if self._ledger is not None:
            self._ledger, self._plan = self._ledger.for_estimator(name, plan), plan
        return self

    def charge(self, record: PrivacyRecord) -> None:
        """Charge the ledger."""
        if self._ledger is not None:
            self._asked.append(record)
            self._ledger.charge(record)

    def describe_plan(self) -> str:
        """Return in one line the epsilon with which the planned fit is accepted."""
        if self._ledger is None or self._plan is None:
            return ""
        left = describe_left(self._ledger, self._plan)
        return f"Ledger:    accepts this fit with {left or 'no epsilon that was tried'}\n"

    def describe(self, what: str) -> str:
        """Return in one line what is spent, and the epsilon of the same release that is left."""
        ledger, plan = self._ledger, self._plan
        if ledger is None or plan is None:
            return ""
        left = describe_left(ledger, plan) or "no epsilon that was tried"
        # The first line of a summary: what was asked for, and the exact composition.
        state = ledger.summary().splitlines()[0].split(": ", 1)[1]
        return f"Ledger:    {state} Another {what} like this one is accepted with {left}.\n"

    @contextmanager
    def state_on_failure(self, lost: str) -> Iterator[None]:
        """Add to the message of a failure what remains charged, and the `lost` result."""
        try:
            yield
        except (UserError, Stopped) as error:
            raise type(error)(f"{error}{self._describe_charged(lost)}") from error
        except MemoryError as error:
            text = self._describe_charged(lost)
            raise UserError(f"there is not enough memory{text}") from error
        except KeyboardInterrupt:
            text = self._describe_charged(lost) or f": {lost}"
            raise Stopped(f"interrupted{text}") from None

    def _describe_charged(self, lost: str) -> str:
        """Return the end of a message; it is empty if nothing was charged."""
        charged = self._charged_records()
        if not charged:
            return ""
        sizes = " and ".join(
            f"epsilon {rounded_text(one.epsilon)}, delta {rounded_text(one.delta)}"
            for one in charged
        )
        return f"; {sizes} remain charged to the ledger {self._path}, and {lost}"

    def _charged_records(self) -> list[PrivacyRecord]:
        """Return the requested records that are in the ledger; an interrupt may follow a charge."""
        if self._ledger is None or not self._asked:
            return []
        try:
            entries = [entry.record for entry in self._ledger.entries()[self._n_before :]]
        except (OSError, ValueError):
            return self._asked
        return [record for record in self._asked if record in entries]
