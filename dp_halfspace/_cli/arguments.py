"""Commands and options of the command line."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from dp_halfspace import __version__
from dp_halfspace._suggestion import did_you_mean

_MODULE = "python -m dp_halfspace"


# The message of a library may show a private size.
NO_MEMORY = "there is not enough memory: use a table of fewer rows or columns"


class UserError(Exception):
    """An input that cannot be used; the text explains why, without any data value."""


@contextmanager
def refusals_as_sentences(option: str = "") -> Iterator[None]:
    """Convert an error of the library, with its public text, into a sentence about an option."""
    try:
        yield
    except ValueError as error:
        raise UserError(option + " ".join(str(error).split())) from error


class _Parser(argparse.ArgumentParser):
    """A parser with one-sentence errors and without the usage text."""

    def error(self, message: str) -> NoReturn:
        """Raise the message as a `UserError`."""
        raise UserError(f"{message} (see {self.prog} --help)")

    def add(self, name: str, text: str, **how: Any) -> None:
        """Add an option with its help."""
        self.add_argument(name, help=text, **how)


def _reader(
    convert: Callable[[str], Any], is_good: Callable[[Any], bool], refusal: str
) -> Callable[[str], Any]:
    """Return a function that reads a value of an option; its error states what is expected."""

    def read(text: str) -> Any:
        with suppress(ValueError):
            if is_good(value := convert(text)):
                return value
        raise argparse.ArgumentTypeError(f"{text!r} is not {refusal}")

    return read


# An infinite epsilon, which protects nobody, is for experiments in Python.
_budget = _reader(float, lambda x: 0 < x < math.inf, "a positive finite number")


# Tables that are part of the package are named with this prefix.
_EXAMPLE = "example:"
_EXAMPLES = Path(__file__).with_name("examples")


def _path(text: str) -> Path:
    """Return the path of a file of the user, or of an example of the package."""
    if not text.startswith(_EXAMPLE):
        return Path(text)
    known = sorted(f"{_EXAMPLE}{path.name}" for path in _EXAMPLES.iterdir())
    if text not in known:
        raise argparse.ArgumentTypeError(f"{text!r} is no example; there are {', '.join(known)}")
    return _EXAMPLES / text.removeprefix(_EXAMPLE)


class _List(argparse.Action):
    """A list, whose items are separated by commas, by blanks or by both."""

    def __init__(self, *, read: Callable[[str], Any] = str, **more: Any) -> None:
        super().__init__(nargs="+", type=partial(_items, read), **more)

    def __call__(
        self, parser: Any, options: Any, values: Any, option_string: str | None = None
    ) -> None:
        setattr(options, self.dest, [item for word in values for item in word])


def _items(read: Callable[[str], Any], word: str) -> list[Any]:
    """Return the items of a word, which may contain blanks and end with a comma."""
    return [read(item.strip()) for item in word.strip(",").split(",")]


def parse_options(argv: Sequence[str], prog: str = _MODULE) -> argparse.Namespace:
    """Read the command line, or raise `UserError`; `command` is empty for the demonstration.

    In the help, the command is called `prog`, as the user called it.
    """
    name = argv[0] if argv and argv[0] in COMMAND_NAMES else ""
    add_options, description = _COMMANDS[name]
    firsts = [f"  {each:10}{_COMMANDS[each][1].splitlines()[0]}" for each in COMMAND_NAMES]
    parser = _Parser(
        prog=f"{prog} {name}".strip(),
        description=description.replace(_MODULE, prog),
        epilog=None if name else "\n".join(["commands, each with --help:", *firsts]),
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_options(parser.add)
    words = argv[1:] if name else argv
    if not name and words and not words[0].startswith("-"):
        known, meant = ", ".join(COMMAND_NAMES), did_you_mean(words[0], COMMAND_NAMES)
        parser.error(f"{words[0]!r} is not a command; choose from {known}{meant}")
    _refuse_unknown_options(parser, words)
    options = parser.parse_args(words)
    options.command = name
    if name == "fit" and not (options.save or options.dry_run):
        parser.error("the following arguments are required: --save")
    return options


def _refuse_unknown_options(parser: _Parser, words: Sequence[str]) -> None:
    """Refuse an option that does not exist before those that are missing are named."""
    known = parser._option_string_actions
    for word in words:
        if word == "--":
            return
        name = word.split("=", 1)[0]
        if name.startswith("--") and name not in known:
            parser.error(f"unrecognized arguments: {word}{did_you_mean(name, known)}")


# What several options have in common.
_FILE: dict[str, Any] = {"type": _path, "metavar": "FILE"}
_TEXT: dict[str, Any] = {"metavar": "TEXT", "default": ""}
_LABELS = "column that holds the label"
_PERSONS = "column that names the person of each row: all rows of a person"
_PURPOSE = "PUBLIC purpose, stored in the ledger"

# Adds an option with its help to a parser.
_Add = Callable[..., None]


def _add_demo(add: _Add) -> None:
    _add_budgets(add, [0.3, 1.0, 3.0, 10.0])
    count = _reader(int, lambda n: n >= 1, "a whole number of at least 1")
    add("--repeats", "number of splits and fits (default: 5)", type=count, default=5)
    add("--version", "print the version", action="version", version=f"dp_halfspace {__version__}")


def _add_plan(add: _Add) -> None:
    add("--rows", "number of rows of the table", type=int, required=True)
    add("--columns", "number of feature columns", type=int, required=True)
    add("--classes", "number of labels (default: 2)", type=int, default=2)
    text = "accuracy without privacy on such tables, never from the private rows (default: 0.85)"
    add("--reference", text, type=float, default=0.85, metavar="ACCURACY")
    text = "public guess of the share of the largest class"
    add("--majority", text, type=float, metavar="SHARE")
    text = "instead of --reference, if one of two labels is rare: area under the ROC curve"
    add("--reference-area", text, type=float, metavar="AREA")
    _add_budgets(add, [0.3, 1.0, 3.0])
    add("--repeats", "number of simulated tables (default: 12)", type=int, default=12)
    add("--seed", "seed of the simulation", type=int)


def _add_fit(add: _Add) -> None:
    _add_table(add, "CSV, Parquet or Excel file")
    add("--target", _LABELS, metavar="COLUMN", required=True)
    add("--schema", "JSON with PUBLIC facts about columns, see above", **_FILE)
    text = "label set, such as no,yes (default: that of the schema, or the labels in the table)"
    add("--classes", text, action=_List, metavar="LABEL")
    text = "columns that are not features, such as identifiers"
    add("--drop", text, action=_List, default=[], metavar="COLUMN")
    _add_budget(add, "fit")
    text = "print what a fit would read, release, cost and be expected to reach, and do nothing"
    add("--dry-run", text, action="store_true")
    add("--save", "file for the model, unless --dry-run", **_FILE)
    add("--card", "file for the model card (HTML)", **_FILE)
    add("--purpose", _PURPOSE, **_TEXT)


def _add_card(add: _Add) -> None:
    add("model", "file that `fit` has saved", type=_path, metavar="MODEL")
    add("--out", "HTML file to write", required=True, **_FILE)
    add("--groups", "column of persons of the fit, to be named", metavar="COLUMN")
    add("--ledger", "ledger that was charged, to show its remaining budget", **_FILE)
    add("--scores", "scores of this model by `evaluate --save`", **_FILE)
    add("--purpose", "PUBLIC text on the card: what the model is for", **_TEXT)
    add("--population", "PUBLIC text on the card: population of the training rows", **_TEXT)
    add("--limits", "PUBLIC text on the card: what the model must not be used for", **_TEXT)
    add("--contact", "PUBLIC text on the card: contact for questions", **_TEXT)


def _add_schema(add: _Add) -> None:
    _add_table(add, "CSV, Parquet or Excel file")
    add("--target", f"{_LABELS}, which is left out", metavar="COLUMN")
    add("--out", "JSON file to write (default: standard output)", **_FILE)


def _add_split(add: _Add) -> None:
    _add_table(add, "CSV file")
    add("--train", "file for the rows of the fit", required=True, **_FILE)
    add("--test", "file for the held-out rows", required=True, **_FILE)
    share = _reader(float, lambda x: 0 < x < 1, "a number between 0 and 1")
    add("--share", "share of held-out rows (default: 0.3)", type=share, default=0.3)
    seed = _reader(int, lambda n: n >= 0, "a whole number of at least 0")
    add("--seed", "PUBLIC seed, which repeats the split (default: a random split)", type=seed)
    add("--groups", f"{_PERSONS} stay together", metavar="COLUMN")


def _add_predict(add: _Add) -> None:
    add("model", "file that `fit` has saved", type=_path, metavar="MODEL")
    _add_table(add, "CSV, Parquet or Excel file with the columns of the fit; others are ignored")
    add("--out", "CSV file to write", required=True, **_FILE)


def _add_evaluate(add: _Add) -> None:
    add("model", "file that `fit` has saved", type=_path, metavar="MODEL")
    _add_table(add, "CSV, Parquet or Excel file with the columns of the fit and the label")
    add("--target", _LABELS, metavar="COLUMN", required=True)
    _add_budget(add, "evaluation")
    add("--save", "file for the scores (JSON), which `card --scores` shows", **_FILE)
    add("--purpose", _PURPOSE, **_TEXT)
    text = "scores, such as f1 or roc_auc, which share the budget (default: accuracy)"
    add("--metric", text, action=_List, default=["accuracy"], metavar="METRIC")


def _add_table(add: _Add, text: str) -> None:
    """Add a table and how to read it."""
    add("table", text, type=_path, metavar="TABLE")
    text = "decimal sign of a CSV; the other one then separates thousands"
    add("--decimal", text, choices=(".", ","), metavar="SIGN")
    add("--encoding", "encoding of a CSV (default: UTF-8)", default="utf-8-sig")


def _add_budget(add: _Add, what: str) -> None:
    """Add a budget, the unit of privacy, and the ledger that is charged."""
    add("--epsilon", f"privacy budget of the {what}", type=_budget, required=True)
    auto = '"auto" (1/rows^2, with --groups 1/persons^2)'
    allowed = f"{auto} or a number in [0, 1/2), with 0 for pure DP"
    delta = _reader(
        lambda text: text if text == "auto" else float(text),
        lambda delta: delta == "auto" or 0 <= delta < 0.5,
        allowed,
    )
    add("--delta", f"{allowed} (default: auto)", type=delta, default="auto")
    add("--groups", f"{_PERSONS} are protected together", metavar="COLUMN")
    add("--ledger", f"privacy ledger of the table, charged before the {what}", **_FILE)
    text = "total epsilon and delta of the table; creates the ledger, which must not exist"
    add("--cap", text, nargs=2, type=float, metavar=("EPSILON", "DELTA"))


def _add_budgets(add: _Add, default: list[float]) -> None:
    text = f"privacy budgets (default: {' '.join(f'{epsilon:g}' for epsilon in default)})"
    how: dict[str, Any] = {"action": _List, "read": _budget, "default": default}
    add("--epsilon", text, metavar="EPSILON", dest="epsilons", **how)


# What adds the options of each command, and what it does, in a line and more of it.
_COMMANDS: dict[str, tuple[Callable[[_Add], None], str]] = {
    "": (
        _add_demo,
        "Compare three private classifiers with the majority class and a LinearSVC without\n"
        "privacy, on a built-in table in original units.",
    ),
    "plan": (
        _add_plan,
        "Expected accuracy for a table of a given size, from simulated tables.\n"
        "No file is read, and nothing is spent.",
    ),
    "fit": (
        _add_fit,
        "Train a private model with probabilities on a file, and write its card.\n"
        "A table needs no preprocessing: numbers in any units, texts, dates, missing values.\n"
        "The schema states what the columns mean, and never follows from the data:\n"
        '  {"age": [0, 120], "stage": ["I", "II", "III"], "platelets": "number", "seen": "date",\n'
        '   "smoker": "boolean", "city": "text", "report": "words", "patient": "drop"}\n'
        f"example:\n  {_MODULE} fit patients.csv --target outcome --epsilon 1 \\\n"
        "      --schema schema.json --classes no,yes --save model.joblib --card card.html",
    ),
    "split": (
        _add_split,
        "Divide a file into rows for a fit and held-out rows, at random.\n"
        "Both files are as private as the table.",
    ),
    "card": (
        _add_card,
        "Write the card of a saved model, for people who decide about its use.\n"
        "It shows the guarantee, expected quality, public facts, budget and effects of columns.",
    ),
    "schema": (
        _add_schema,
        "Write a template of a schema: names and types of the columns of a file.\n"
        "The types are inferred from the private cells, so the template is for the curator of\n"
        "the data, who corrects it by the meaning of the columns before it is used.",
    ),
    "predict": (
        _add_predict,
        "Label the rows of a file by a saved model.\n"
        "Loading a model runs the code in its file: load only models that you trust.",
    ),
    "evaluate": (
        _add_evaluate,
        "Score a saved model on held-out rows, within a budget.\n"
        "Scores have intervals that cover sampling error and noise, and may be published.",
    ),
}
COMMAND_NAMES = tuple(name for name in _COMMANDS if name)
