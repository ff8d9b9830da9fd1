"""Entry point of the command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from dp_halfspace._cli.arguments import UserError, parse_options
from dp_halfspace._cli.compare import compare
from dp_halfspace._cli.data import read_problem
from dp_halfspace._cli.problems import builtin_problems
from dp_halfspace._cli.report import save_json, save_picture, text_report

__all__ = ["main"]

_WRONG_USE = 2
_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Compare, report, and return the exit status.

    It is 2 if the arguments or the data cannot be used, after one sentence on standard error.
    """
    try:
        return _run(argv)
    except UserError as error:
        sys.stderr.write(f"dp_halfspace: error: {error}\n")
        return _WRONG_USE
    except KeyboardInterrupt:
        sys.stderr.write("\ndp_halfspace: interrupted\n")
        return _INTERRUPTED


def _run(argv: Sequence[str] | None) -> int:
    """Do what the arguments say."""
    options = parse_options(argv)
    own = options.data is not None
    problems = [read_problem(options)] if own else builtin_problems(options.seed)
    folder = _writable_folder(options.out)
    comparison = compare(problems, options, sys.stderr)
    report = text_report(problems, options, comparison)
    text, numbers, picture = (
        folder / name for name in ("report.txt", "results.json", "accuracy.png")
    )
    try:
        text.write_text(report, encoding="utf-8")
        save_json(numbers, problems, options, comparison)
        drawn = save_picture(picture, comparison)
    except OSError as error:
        raise UserError(f"cannot write into {folder}: {error.strerror}") from error
    sys.stdout.write(f"{report}\nWritten: {text}\n         {numbers}\n")
    sys.stdout.write(
        f"         {picture}\n"
        if drawn
        else 'No picture: matplotlib is missing; pip install "dp-halfspace[plot]" brings it.\n'
    )
    return 0


def _writable_folder(path: Path) -> Path:
    """Make the folder before any work is done that could not be saved."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out: {path} cannot be used as a folder: {error.strerror}") from error
    if not os.access(path, os.W_OK):
        raise UserError(f"--out: {path} cannot be written to")
    return path
