"""Entry point of the command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dp_halfspace._cli.arguments import Stopped, UserError, parse_options

_WRONG_USE = 2
_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the command says, and return the exit status.

    It is 2 if the arguments or the data cannot be used, after one sentence on standard error.
    """
    try:
        options = parse_options(sys.argv[1:] if argv is None else argv)
        _run(options)
    except UserError as error:
        sys.stderr.write(f"dp_halfspace: error: {error}\n")
        return _WRONG_USE
    except Stopped as what:
        sys.stderr.write(f"\ndp_halfspace: {what}\n")
        return _INTERRUPTED
    except KeyboardInterrupt:
        sys.stderr.write("\ndp_halfspace: interrupted; nothing was written\n")
        return _INTERRUPTED
    return 0


def _run(options: Any) -> None:
    """Load what the command needs, and no more."""
    if options.command in ("fit", "predict"):
        from dp_halfspace._cli import models  # noqa: PLC0415 (loads slowly)

        if options.command == "fit":
            models.fit(options, sys.stdout, sys.stderr)
        else:
            models.predict(options, sys.stdout)
    elif options.command == "schema":
        from dp_halfspace._cli.schema import schema  # noqa: PLC0415 (loads slowly)

        schema(options, sys.stdout, sys.stderr)
    elif options.command == "evaluate":
        from dp_halfspace._cli.evaluate import evaluate  # noqa: PLC0415 (loads slowly)

        evaluate(options, sys.stdout)
    elif options.command == "plan":
        from dp_halfspace._cli.plan import plan  # noqa: PLC0415 (loads slowly)

        plan(options, sys.stdout)
    else:
        _compare(options)


def _compare(options: Any) -> None:
    """Compare, and write what is finished."""
    from dp_halfspace._cli.compare import compare  # noqa: PLC0415 (loads slowly)
    from dp_halfspace._cli.problems import builtin_problem, own_problem  # noqa: PLC0415
    from dp_halfspace._cli.report import save_json, save_picture, text_report  # noqa: PLC0415

    problem = own_problem(options) if options.command else builtin_problem()
    folder = _writable_folder(options.out)
    comparison = compare(problem, options, sys.stderr)
    report = text_report(problem, options, comparison)
    text, numbers, picture = (
        folder / name for name in ("report.txt", "results.json", "accuracy.png")
    )
    try:
        text.write_text(report, encoding="utf-8")
        save_json(numbers, problem, options, comparison)
        drawn = save_picture(picture, comparison)
    except OSError as error:
        raise UserError(f"cannot write into {folder}: {error.strerror}") from error
    sys.stdout.write(f"{report}\nWritten: {text}\n         {numbers}\n")
    sys.stdout.write(
        f"         {picture}\n"
        if drawn
        else 'No picture: matplotlib is missing; pip install "dp-halfspace[plot]" brings it.\n'
    )
    if comparison.stopped:
        raise Stopped(f"interrupted after {comparison.stopped}; they are in {folder}")


def _writable_folder(path: Path) -> Path:
    """Make the folder before any work is done that could not be saved."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out: {path} cannot be used as a folder: {error.strerror}") from error
    if not os.access(path, os.W_OK):
        raise UserError(f"--out: {path} cannot be written to")
    return path
