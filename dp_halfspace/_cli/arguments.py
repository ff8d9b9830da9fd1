"""Commands and options of the command line."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from dp_halfspace import __version__
from dp_halfspace._suggestion import did_you_mean

_MODULE = "python -m dp_halfspace"
# The largest seed that numpy takes.
_LARGEST_SEED = 2**32 - 1
_DELTA_RANGE = '"auto" (1/rows^2) or a number in [0, 1/2), with 0 for pure DP'


# The message of a library may show a private size.
NO_MEMORY = "there is not enough memory: use a table of fewer rows or columns"


class UserError(Exception):
    """An input that cannot be used; the text explains why, without any data value."""


class Stopped(Exception):
    """An interrupt by the user; the text names the results that remain."""


class _Parser(argparse.ArgumentParser):
    """A parser with one-sentence errors and without the usage text."""

    def error(self, message: str) -> NoReturn:
        """Raise the message as a `UserError`."""
        raise UserError(f"{message} (see {self.prog} --help)")


def _reader(
    convert: Callable[[str], Any], is_good: Callable[[Any], bool], refusal: str
) -> Callable[[str], Any]:
    """Return a function that reads a value of an option; its error states what is expected."""

    def read(text: str) -> Any:
        try:
            value = convert(text)
            if is_good(value):
                return value
        except ValueError:
            pass
        raise argparse.ArgumentTypeError(f"{text!r} is not {refusal}")

    return read


_number = _reader(float, lambda _: True, "a number")
_positive = _reader(float, lambda x: 0 < x < math.inf, "a positive finite number")
_fraction = _reader(float, lambda x: 0 < x < 1, "a number between 0 and 1")
_count = _reader(int, lambda n: n >= 1, "a whole number of at least 1")
_seed = _reader(
    int, lambda n: 0 <= n <= _LARGEST_SEED, f"a whole number between 0 and {_LARGEST_SEED}"
)
_delta = _reader(
    lambda text: "auto" if text == "auto" else float(text),
    lambda delta: delta == "auto" or 0 <= delta < 0.5,
    _DELTA_RANGE,
)
# Tables that are part of the package are named with this prefix.
_EXAMPLE = "example:"
_EXAMPLES = Path(__file__).with_name("examples")


def _path(text: str) -> Path:
    """Return the path of a file of the user, or of an example of the package."""
    if not text.startswith(_EXAMPLE):
        return Path(text)
    known = sorted(f"{_EXAMPLE}{path.name}" for path in _EXAMPLES.iterdir())
    if text not in known:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not an example of the package; there are {', '.join(known)}"
        )
    return _EXAMPLES / text.removeprefix(_EXAMPLE)


def _metric(text: str) -> str:
    """Return the name of a metric, which may be given by another one that is in use."""
    from dp_halfspace.metrics._table import ALIASES, METRICS  # noqa: PLC0415 (loads slowly)

    name = ALIASES.get(text, text)
    if name not in METRICS:
        meant = did_you_mean(text, [*METRICS, *ALIASES])
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a metric{meant or '; choose from ' + ', '.join(METRICS)}"
        )
    return name


class _List(argparse.Action):
    """A list, whose items are separated by commas, by blanks or by both."""

    def __init__(
        self, *, read: Callable[[str], Any], make: Callable[[list[Any]], Any], **more: Any
    ) -> None:
        super().__init__(nargs="+", **more)
        self._read, self._make = read, make

    def __call__(
        self, parser: Any, options: Any, values: Any, option_string: str | None = None
    ) -> None:
        del parser, option_string
        # A word may contain blanks, and end with the comma that separates it from the next one.
        words = [*(word.removesuffix(",") for word in values[:-1]), values[-1]]
        items = [item.strip() for word in words for item in word.split(",")]
        try:
            made = self._make([self._read(item) for item in items])
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentError(self, str(error)) from error
        setattr(options, self.dest, made)


def _list(read: Callable[[str], Any] = str, make: Callable[[list[Any]], Any] = list) -> Any:
    return partial(_List, read=read, make=make)


def _labels(items: list[str]) -> list[str]:
    """Refuse fewer than two labels, and equal ones."""
    if not len(set(items)) == len(items) >= 2 or not all(items):
        raise argparse.ArgumentTypeError(
            f"{','.join(items)!r} is not a list of two or more distinct labels, such as no,yes"
        )
    return items


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
    add_options(parser)
    words = argv[1:] if name else argv
    if not name and words and not words[0].startswith("-"):
        parser.error(
            f"{words[0]!r} is not a command; choose from {', '.join(COMMAND_NAMES)}"
            f"{did_you_mean(words[0], COMMAND_NAMES)}"
        )
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
_LABELS = "column that holds the label"
_PERSONS = "column that names the person of each row: all rows of a person"
_PURPOSE = "PUBLIC purpose, stored in the ledger"

# Adds an option with its help to a parser.
_Add = Callable[..., Any]


def _adder(group: Any) -> _Add:
    return lambda name, text, **how: group.add_argument(name, help=text, **how)


def _add_demo(parser: argparse.ArgumentParser) -> None:
    add = _adder(parser)
    _add_budgets(add, [0.3, 1.0, 3.0, 10.0])
    add("--repeats", "number of splits and fits (default: 5)", type=_count, default=5)
    add("--version", "print the version", action="version", version=f"dp_halfspace {__version__}")


def _add_plan(parser: argparse.ArgumentParser) -> None:
    add = _adder(parser)
    add("--rows", "number of rows of the table", type=_count, required=True)
    add("--columns", "number of feature columns", type=_count, required=True)
    add("--classes", "number of labels (default: 2)", type=_count, default=2)
    text = "accuracy without privacy on such tables, never from the private rows (default: 0.85)"
    add("--reference", text, type=_fraction, default=0.85, metavar="ACCURACY")
    text = "public guess of the share of the largest class"
    add("--majority", text, type=_fraction, metavar="SHARE")
    text = "instead of --reference, if one of two labels is rare: area under the ROC curve"
    add("--reference-area", text, type=_fraction, metavar="AREA")
    _add_budgets(add, [0.3, 1.0, 3.0])
    add("--repeats", "number of simulated tables (default: 12)", type=_count, default=12)
    add("--seed", "seed of the simulation", type=_seed)


def _add_fit(parser: argparse.ArgumentParser) -> None:
    add = _adder(parser)
    _add_table(parser, "CSV, Parquet or Excel file")
    add("--target", _LABELS, metavar="COLUMN", required=True)
    add("--schema", "JSON with PUBLIC facts about columns, see below", **_FILE)
    text = "label set, such as no,yes (default: that of the schema, or the labels in the table)"
    add("--classes", text, action=_list(make=_labels), metavar="LABEL")
    text = "columns that are not features, such as identifiers"
    add("--drop", text, action=_list(), default=[], metavar="COLUMN")
    _add_budget(add, "fit")
    text = "print what a fit would read, release, cost and be expected to reach, and do nothing"
    add("--dry-run", text, action="store_true")
    add("--save", "file for the model, unless --dry-run", **_FILE)
    add("--card", "file for the model card (HTML)", **_FILE)
    add("--purpose", _PURPOSE, metavar="TEXT", default="")


def _add_card(parser: argparse.ArgumentParser) -> None:
    add = _adder(parser)
    add("model", "file that `fit` has saved", type=_path, metavar="MODEL")
    add("--out", "HTML file to write", required=True, **_FILE)
    add("--groups", "column of persons of the fit, to be named", metavar="COLUMN")
    add("--ledger", "ledger that was charged, to show its remaining budget", **_FILE)
    add("--scores", "scores of this model by `evaluate --save`", **_FILE)
    for name, what in (
        ("purpose", "what the model is for"),
        ("population", "population of the training rows"),
        ("limits", "what the model must not be used for"),
        ("contact", "contact for questions"),
    ):
        add(f"--{name}", f"PUBLIC text on the card: {what}", metavar="TEXT", default="")


def _add_schema(parser: argparse.ArgumentParser) -> None:
    add = _adder(parser)
    _add_table(parser, "CSV, Parquet or Excel file")
    add("--target", f"{_LABELS}, which is left out", metavar="COLUMN")
    add("--out", "JSON file to write (default: standard output)", **_FILE)


def _add_split(parser: argparse.ArgumentParser) -> None:
    add = _adder(parser)
    _add_table(parser, "CSV file")
    add("--train", "file for the rows of the fit", required=True, **_FILE)
    add("--test", "file for the held-out rows", required=True, **_FILE)
    add("--share", "share of held-out rows (default: 0.3)", type=_fraction, default=0.3)
    add("--seed", "PUBLIC seed of the split (default: 0)", type=_seed, default=0)
    add("--groups", f"{_PERSONS} stay together", metavar="COLUMN")


def _add_predict(parser: argparse.ArgumentParser) -> None:
    add = _adder(parser)
    add("model", "file that `fit` has saved", type=_path, metavar="MODEL")
    _add_table(parser, "CSV, Parquet or Excel file with the columns of the fit; others are ignored")
    add("--out", "CSV file to write", required=True, **_FILE)


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    add = _adder(parser)
    add("model", "file that `fit` has saved", type=_path, metavar="MODEL")
    _add_table(parser, "CSV, Parquet or Excel file with the columns of the fit and the label")
    add("--target", _LABELS, metavar="COLUMN", required=True)
    _add_budget(add, "evaluation")
    add("--save", "file for the scores (JSON), which `card --scores` shows", **_FILE)
    add("--purpose", _PURPOSE, metavar="TEXT", default="")
    text = "scores, such as f1 or roc_auc, which share the budget (default: accuracy)"
    add("--metric", text, action=_list(_metric), default=["accuracy"], metavar="METRIC")


def _add_table(parser: argparse.ArgumentParser, text: str) -> None:
    """Add a table and how to read it."""
    parser.add_argument("table", type=_path, metavar="TABLE", help=text)
    add = _adder(parser.add_argument_group("reading the table"))
    text = "decimal sign of a CSV; the other one then separates thousands"
    add("--decimal", text, choices=(".", ","), metavar="SIGN")
    add("--encoding", "encoding of a CSV (default: UTF-8)", default="utf-8-sig")


def _add_budget(add: _Add, what: str) -> None:
    """Add a budget, the unit of privacy, and the ledger that is charged."""
    add("--epsilon", f"privacy budget of the {what}", type=_positive, required=True)
    add("--delta", f"{_DELTA_RANGE} (default: auto)", type=_delta, default="auto")
    add("--groups", f"{_PERSONS} are protected together", metavar="COLUMN")
    add("--ledger", f"privacy ledger of the table, charged before the {what}", **_FILE)
    text = "total epsilon and delta of the table; creates the ledger, which must not exist"
    add("--cap", text, nargs=2, type=_number, metavar=("EPSILON", "DELTA"))


def _add_budgets(add: _Add, default: list[float]) -> None:
    text = f"privacy budgets (default: {' '.join(f'{epsilon:g}' for epsilon in default)})"
    how: dict[str, Any] = {"dest": "epsilons", "action": _list(_positive), "default": default}
    add("--epsilon", text, metavar="EPSILON", **how)


# What adds the options of each command, and what it does, in a line and more of it.
_COMMANDS: dict[str, tuple[Callable[[argparse.ArgumentParser], None], str]] = {
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
        "Divide a file into rows for a fit and held-out rows, by a PUBLIC seed.\n"
        "Both files are as private as the table.",
    ),
    "card": (
        _add_card,
        "Write the card of a saved model: guarantee, expected quality, public facts, budget and\n"
        "effects of the columns. No row is read.",
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
