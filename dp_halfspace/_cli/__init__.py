"""The command line: a demonstration, and private models of tables of the user."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Sequence
from pathlib import Path

from dp_halfspace._cli.arguments import NO_MEMORY, UserError, parse_options
from dp_halfspace._html import printable


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command, and return the exit status.

    The status is 2 if the arguments or the data cannot be used, after one sentence on standard
    error, and 130 after an interrupt.
    """
    try:
        _check_streams()
        options = parse_options(sys.argv[1:] if argv is None else argv, _program_name(sys.argv[0]))
        # The commands load slowly, and help and errors of options appear at once.
        from dp_halfspace._cli.commands import run  # noqa: PLC0415

        run(options)
    except UserError as error:
        return _end(f"dp_halfspace: error: {printable(error)}\n", 2)
    except MemoryError:
        return _end(f"dp_halfspace: error: {NO_MEMORY}\n", 2)
    except KeyboardInterrupt as stop:
        said = printable(stop) or "interrupted; nothing was written"
        return _end(f"\ndp_halfspace: {said}\n", 130)
    return 0


def _program_name(program: str) -> str:
    """Return the name by which the user called the command: its own, or that of a module."""
    name = Path(program).stem
    return name if name == "dp-halfspace" else "python -m dp_halfspace"


def _check_streams() -> None:
    """Refuse to run if no result can be shown; without standard error, messages are lost."""
    if sys.stderr is None:
        sys.stderr = io.StringIO()
    if sys.stdout is None:
        raise UserError("standard output is closed, so no result can be written")


def _end(text: str, status: int) -> int:
    """Write how the command ended to standard error, if possible, and return the exit status."""
    with contextlib.suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()
    return status
