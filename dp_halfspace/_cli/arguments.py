"""Commands and options of the command line."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn, TypeVar

from dp_halfspace import __version__

_MAIN = """See every private classifier of dp_halfspace at work on a built-in table in natural
units, beside the majority class and a LinearSVC that is not private."""
_FIT = """Train a private classifier with probabilities on a table as it comes: numbers in any
units, texts, dates, missing values. The model and its card may be published."""
_PREDICT = """Label the rows of a table by a saved model: a CSV with the column prediction and one
column probability_LABEL for each class. Load only models that you trust: joblib runs what it
loads, and not what is in a file .skops."""
_SCHEMA = """Write a template of a schema: names and kinds of the columns of a table, never a
value. The kinds are found in the private cells, so the template is for the curator of the data,
who corrects it by what the columns mean before it is stated."""
_EVALUATE = """Score a saved model on rows that it was not trained on, within a budget: each score
comes with an interval that holds sampling and noise, and may be published."""
_PLAN = """What accuracy to expect of a private linear classifier on a table of a given size,
against epsilon, from simulated tables: no file is read and nothing is spent."""
_COMMON = "python -m dp_halfspace"
_EXAMPLES = {
    "": f"{_COMMON}\n  {_COMMON} --epsilon 1 10 --repeats 1 --out report",
    "plan": f"{_COMMON} plan --rows 6000 --columns 12 --classes 2 --reference 0.85 --out plan.png",
    "fit": f"{_COMMON} fit patients.csv --target outcome --epsilon 1 --schema schema.json "
    "--classes no,yes \\\n      --save model.joblib --card card.html\n\n"
    "schema.json, from what the columns mean and never from the data:\n"
    '  {"age": [0, 120], "stage": ["I", "II", "III"], "platelets": "number", "seen": "date",\n'
    '   "smoker": "boolean", "city": "text", "patient": "drop"}',
    "schema": f"{_COMMON} schema patients.csv --target outcome --out schema.json",
    "predict": f"{_COMMON} predict model.joblib new_patients.csv --out predictions.csv",
    "evaluate": f"{_COMMON} evaluate model.joblib held_out.csv --epsilon 0.5 --target outcome "
    "\\\n      --metric accuracy roc_auc --ledger budget.db",
}
COMMANDS = tuple(name for name in _EXAMPLES if name)
_LARGEST_SEED = 2**32 - 1


class UserError(Exception):
    """What the user gave cannot be used; the text says why, without any data value."""


class Stopped(Exception):
    """The user interrupted; the text says what is left of the work."""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, without the usage text."""

    def error(self, message: str) -> NoReturn:
        """Hand the sentence to the caller."""
        raise UserError(f"{message} (see {self.prog} --help)")


_T = TypeVar("_T")


def _reader(
    convert: Callable[[str], _T], unreadable: str, good: Callable[[_T], bool], refused: str
) -> Callable[[str], _T]:
    """Make a function that reads a value, or says what is wrong with the text."""

    def read(text: str) -> _T:
        try:
            value = convert(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text!r} {unreadable}") from error
        if not good(value):
            raise argparse.ArgumentTypeError(f"{text!r} {refused}")
        return value

    return read


_positive = _reader(
    float, "is not a number", lambda x: 0 < x < math.inf, "is not a positive finite number"
)
_fraction = _reader(float, "is not a number", lambda x: 0 < x < 1, "is not between 0 and 1")
_count = _reader(int, "is not a whole number", lambda n: n >= 1, "must be at least 1")
_seed = _reader(
    int,
    "is not a whole number",
    lambda n: 0 <= n <= _LARGEST_SEED,
    f"must be between 0 and {_LARGEST_SEED}",
)
_NO_DELTA = 'is neither "auto" nor a number in [0, 1/2)'
_delta = _reader(
    lambda text: "auto" if text == "auto" else float(text),
    _NO_DELTA,
    lambda x: x == "auto" or 0 <= float(x) < 0.5,
    _NO_DELTA,
)
_character = _reader(
    lambda text: "\t" if text in ("\\t", "tab") else text,
    "",
    lambda text: len(text) == 1,
    "is not one character",
)
_labels = _reader(
    lambda text: [label.strip() for label in text.split(",")],
    "",
    lambda labels: len(set(labels)) == len(labels) >= 2 and all(labels),
    "is not a list of two or more distinct labels, such as no,yes",
)


def parse_options(argv: Sequence[str], prog: str = _COMMON) -> argparse.Namespace:
    """Read the command line, or raise `UserError`; `command` is empty for the main job.

    Help calls the command as the user did, by `prog`.
    """
    command = argv[0] if argv and argv[0] in COMMANDS else ""
    describe, text = {
        "": (_add_demo, _MAIN),
        "plan": (_add_plan, _PLAN),
        "fit": (_add_fit, _FIT),
        "predict": (_add_predict, _PREDICT),
        "schema": (_add_schema, _SCHEMA),
        "evaluate": (_add_evaluate, _EVALUATE),
    }[command]
    more = "" if command else f"\n\ncommands: {', '.join(COMMANDS)} (each with --help)"
    parser = _Parser(
        prog=f"{prog} {command}".strip(),
        description=text,
        epilog=f"example:\n  {_EXAMPLES[command].replace(_COMMON, prog)}{more}",
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    describe(parser)
    if not command:
        parser.add_argument("--version", action="version", version=f"dp_halfspace {__version__}")
    words = argv[1:] if command else argv
    if not command and words and not words[0].startswith("-"):
        parser.error(f"{words[0]!r} is no command; there are {', '.join(COMMANDS)}")
    given = parser.parse_args(words)
    given.command = command
    return given


def _add_table(parser: argparse.ArgumentParser, text: str) -> None:
    """Describe a table and how to read it."""
    parser.add_argument("table", type=Path, metavar="TABLE", help=text)
    add = parser.add_argument_group("reading the table").add_argument
    add("--separator", type=_character, help="of a CSV (default: found in the header)")
    add(
        "--decimal",
        choices=(".", ","),
        help="decimal sign of a CSV; the other one separates thousands (default: . and, where the "
        "separator is no comma, also a comma)",
    )
    add("--encoding", default="utf-8-sig", help="of a CSV (default: UTF-8)")


def _add_training(parser: argparse.ArgumentParser) -> None:
    """Describe a table with labels."""
    _add_table(parser, "CSV or Parquet file, optionally compressed (.gz, .bz2, .xz, .zip)")
    add = parser.add_argument
    add("--target", metavar="COLUMN", required=True, help="column that holds the label")
    add(
        "--schema",
        type=Path,
        metavar="FILE",
        help="JSON with PUBLIC facts about columns, see below or `fit --help`; a file with entries "
        "of several tables is searched for the name of TABLE",
    )
    add(
        "--classes",
        type=_labels,
        metavar="A,B",
        help="the label set (default: that of the schema, else the labels found, which are "
        "declared public)",
    )


_DELTA_HELP = '"auto" (1/rows^2) or a number in [0, 1/2), 0 being pure epsilon (default: auto)'


def _add_plan(parser: argparse.ArgumentParser) -> None:
    """Describe a plan."""
    add = parser.add_argument
    add("--rows", type=_count, required=True, help="of the table")
    add("--columns", type=_count, required=True, help="that are features")
    add("--classes", type=_count, default=2, help="number of labels (default: 2)")
    add(
        "--reference",
        type=_fraction,
        default=0.85,
        metavar="ACCURACY",
        help="of a linear classifier without privacy on such tables, from the literature or a "
        "guess, never from the private rows (default: 0.85)",
    )
    add("--majority", type=_fraction, metavar="SHARE", help="public guess for the largest class")
    _add_budgets(parser, [0.3, 1.0, 3.0])
    add("--delta", type=_delta, default="auto", help=_DELTA_HELP)
    add("--repeats", type=_count, default=12, help="simulated tables to average (default: 12)")
    add("--seed", type=_seed, help="makes the simulation reproducible")
    add("--out", type=Path, metavar="FILE", help="where a picture goes (.png, .svg or .pdf)")


def _add_budgets(parser: argparse.ArgumentParser, default: list[float]) -> None:
    """Describe several budgets."""
    parser.add_argument(
        "--epsilon",
        dest="epsilons",
        type=_positive,
        nargs="+",
        default=default,
        help=f"privacy budgets (default: {' '.join(f'{e:g}' for e in default)})",
    )


def _add_budget(parser: argparse.ArgumentParser, what: str) -> None:
    """Describe a budget, whom it protects and where it is booked."""
    add = parser.add_argument
    add("--epsilon", type=_positive, required=True, help=f"privacy budget of the {what}")
    add("--delta", type=_delta, default="auto", help=_DELTA_HELP)
    add("--groups", metavar="COLUMN", help="persons: all rows of one are protected together")
    add(
        "--ledger",
        type=Path,
        metavar="FILE",
        help=f"budget of the table, charged before the {what}",
    )
    add(
        "--cap",
        type=float,
        nargs=2,
        metavar=("EPSILON", "DELTA"),
        help="of a ledger that is not there yet",
    )


def _add_fit(parser: argparse.ArgumentParser) -> None:
    """Describe the training of a model."""
    _add_training(parser)
    add = parser.add_argument
    _add_budget(parser, "fit")
    add(
        "--features",
        choices=("auto", "additive", "linear"),
        default="auto",
        help="additive: the score is a sum of curves, one for each column (default: auto)",
    )
    add(
        "--save",
        type=Path,
        required=True,
        metavar="FILE",
        help="where the model goes (by skops if it ends in .skops, else by joblib)",
    )
    add("--card", type=Path, metavar="FILE", help="where its card goes (HTML)")


def _add_schema(parser: argparse.ArgumentParser) -> None:
    """Describe a template of a schema."""
    _add_table(parser, "CSV or Parquet file")
    add = parser.add_argument
    add("--target", metavar="COLUMN", help="column that holds the label, which is left out")
    add("--out", type=Path, metavar="FILE", help="JSON to write (default: standard output)")


def _add_predict(parser: argparse.ArgumentParser) -> None:
    """Describe predictions."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="file that `fit` has saved")
    _add_table(parser, "CSV or Parquet file with the columns of the fit; others are ignored")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="CSV to write")


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    """Describe a private evaluation."""
    from dp_halfspace.metrics import METRICS  # noqa: PLC0415 (loads slowly)

    parser.add_argument("model", type=Path, metavar="MODEL", help="file that `fit` has saved")
    _add_table(parser, "CSV or Parquet file with the columns of the fit and the label")
    _add_budget(parser, "evaluation")
    add = parser.add_argument
    add("--target", metavar="COLUMN", help="the label (default: the only column new to the model)")
    add(
        "--metric",
        nargs="+",
        choices=sorted(METRICS),
        default=["accuracy"],
        metavar="METRIC",
        help=f"{', '.join(sorted(METRICS))}; several share the budget (default: accuracy)",
    )


def _add_demo(parser: argparse.ArgumentParser) -> None:
    """Describe the main job."""
    _add_budgets(parser, [0.3, 1.0, 3.0, 10.0])
    add = parser.add_argument
    add("--repeats", type=_count, default=3, help="splits and fits to average (default: 3)")
    add(
        "--out",
        type=Path,
        default=Path("dp_halfspace_report"),
        metavar="FOLDER",
        help="where report.txt, results.json and accuracy.png go (default: ./dp_halfspace_report)",
    )
