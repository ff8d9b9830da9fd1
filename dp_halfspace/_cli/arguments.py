"""Options of the command line."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypeVar

__all__ = ["Options", "UserError", "parse_options"]

_DESCRIPTION = """\
Compare the private classifiers of dp_halfspace with the majority class and with a
LinearSVC that is not private, on built-in data or on your own. Everything it prints and
writes is for the curator of the data, who may see the records: scores are exact numbers,
and an error message names the file, the column and the line that it stumbled over.
"""
_LARGEST_SEED = 2**32 - 1


class UserError(Exception):
    """What the user gave cannot be used; the text says why, without any data value."""


@dataclass(frozen=True, slots=True)
class Options:
    """Checked options of one run."""

    data: Path | None
    target: str | None
    epsilons: tuple[float, ...]
    delta: float | str
    data_norm: float | None
    ranges: Path | None
    test_size: float
    repeats: int
    seed: int | None
    out: Path


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, without the usage text."""

    def error(self, message: str) -> NoReturn:
        """Hand the sentence to the caller."""
        raise UserError(f"{message} (see python -m dp_halfspace --help)")


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


def parse_options(argv: Sequence[str] | None) -> Options:
    """Read the command line, or raise `UserError`."""
    parser = _Parser(prog="python -m dp_halfspace", description=_DESCRIPTION, allow_abbrev=False)
    _add_data_options(parser)
    _add_run_options(parser)
    given = parser.parse_args(argv)
    if given.data is None:
        for name in ("target", "data_norm", "ranges"):
            if getattr(given, name) is not None:
                raise UserError(f"--{name.replace('_', '-')} is used only together with --data")
    given.epsilons = tuple(sorted(set(given.epsilons)))
    return Options(**vars(given))


def _add_data_options(parser: argparse.ArgumentParser) -> None:
    """Describe the options for the user's own data."""
    own = parser.add_argument_group("your own data")
    own.add_argument(
        "--data",
        type=Path,
        metavar="FILE",
        help="CSV with a header line (.csv) or svmlight (.svm, .svmlight, .libsvm, .txt), "
        "optionally compressed (.gz, .bz2), or Parquet (.parquet); all columns but the target must "
        "be numbers",
    )
    own.add_argument("--target", metavar="COLUMN", help="column of a table that holds the label")
    own.add_argument(
        "--data-norm",
        type=_positive,
        metavar="NORM",
        help="public bound on the Euclidean norm of a row, after --ranges; longer rows are scaled "
        "down to it (default: 1; with --ranges half the root of the number of columns)",
    )
    own.add_argument(
        "--ranges",
        type=Path,
        metavar="FILE",
        help="CSV with the header column,low,high: the lowest and highest value that each column "
        "can have, known without the data (an age: 0, 120). Columns are mapped to [-1, 1]; do "
        "this for columns in natural units",
    )


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    """Describe the options of the comparison itself."""
    run = parser.add_argument_group("the comparison")
    run.add_argument(
        "--epsilon",
        dest="epsilons",
        type=_positive,
        nargs="+",
        default=[0.1, 0.3, 1.0, 3.0, 10.0],
        help="privacy budgets to compare at (default: 0.1 0.3 1 3 10)",
    )
    run.add_argument(
        "--delta",
        type=_delta,
        default="auto",
        help='"auto" or a number in [0, 1/2), where 0 is pure epsilon (default: auto)',
    )
    run.add_argument(
        "--test-size",
        type=_fraction,
        default=0.3,
        metavar="FRACTION",
        help="fraction of the rows that is held out to measure accuracy (default: 0.3)",
    )
    run.add_argument(
        "--repeats", type=_count, default=3, help="splits and fits to average over (default: 3)"
    )
    run.add_argument(
        "--seed",
        type=_seed,
        help="makes splits and noise reproducible; whoever knows it can subtract the noise",
    )
    run.add_argument(
        "--out",
        type=Path,
        default=Path("dp_halfspace_report"),
        metavar="FOLDER",
        help="where report.txt, results.json and accuracy.png go (default: ./dp_halfspace_report)",
    )
