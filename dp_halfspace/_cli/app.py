"""Entry point of the command line."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dp_halfspace._cli.arguments import Stopped, UserError, parse_options
from dp_halfspace._html import shown

_WRONG_USE = 2
_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the command says, and return the exit status.

    It is 2 if the arguments or the data cannot be used, after one sentence on standard error.
    """
    try:
        _open_streams()
        options = parse_options(sys.argv[1:] if argv is None else argv, _called(sys.argv[0]))
        _run(options)
    except UserError as error:
        return _ended(f"dp_halfspace: error: {shown(error)}\n", _WRONG_USE)
    except Stopped as what:
        return _ended(f"\ndp_halfspace: {shown(what)}\n", _INTERRUPTED)
    except KeyboardInterrupt:
        return _ended("\ndp_halfspace: interrupted; nothing was written\n", _INTERRUPTED)
    return 0


def _called(program: str) -> str:
    """Return how the command was called: by its own name, or as a module."""
    name = Path(program).stem
    return name if name == "dp-halfspace" else "python -m dp_halfspace"


def _open_streams() -> None:
    """Refuse to work where no result could be shown; messages can be done without."""
    if sys.stderr is None:
        sys.stderr = io.StringIO()
    if sys.stdout is None:
        raise UserError("standard output is closed: there is nowhere to write to")


def _ended(text: str, status: int) -> int:
    """Say how it ended, if that can be said, and return the exit status."""
    with contextlib.suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()
    return status


def _run(options: Any) -> None:
    """Load what the command needs, and no more."""
    from dp_halfspace._cli.places import check_places  # noqa: PLC0415 (loads slowly)

    check_places(options)
    if options.command in ("fit", "predict"):
        from dp_halfspace._cli import models  # noqa: PLC0415 (loads slowly)

        command = models.fit if options.command == "fit" else models.predict
        command(options, sys.stdout, sys.stderr)
    elif options.command == "schema":
        from dp_halfspace._cli.schema import schema  # noqa: PLC0415 (loads slowly)

        schema(options, sys.stdout, sys.stderr)
    elif options.command == "evaluate":
        from dp_halfspace._cli.evaluate import evaluate  # noqa: PLC0415 (loads slowly)

        evaluate(options, sys.stdout, sys.stderr)
    elif options.command == "plan":
        from dp_halfspace._cli.plan import plan  # noqa: PLC0415 (loads slowly)

        plan(options, sys.stdout)
    else:
        from dp_halfspace._cli.demo import demo  # noqa: PLC0415 (loads slowly)

        demo(options, sys.stdout, sys.stderr)
