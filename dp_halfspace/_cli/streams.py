"""Text on the terminal: nothing that a table holds moves its cursor, and no line is lost unsaid."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TextIO

from dp_halfspace._cli.arguments import UserError
from dp_halfspace._html import shown


def printable(text: str) -> str:
    """Return lines in which every character prints."""
    return "\n".join(map(shown, text.split("\n")))


def say(stream: TextIO, text: str) -> None:
    """Write text and see that it is out."""
    try:
        stream.write(printable(text))
        stream.flush()
    except OSError as error:
        _let_go(stream)
        name = "standard error" if stream is sys.stderr else "standard output"
        raise UserError(f"cannot write to {name}: {error.strerror}") from error


def _let_go(stream: TextIO) -> None:
    """Send what is left in a stream nowhere, as it would raise again at the end of the process."""
    with contextlib.suppress(OSError, ValueError), open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())
