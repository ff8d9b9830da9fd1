"""Output of commands: text, and files, which are written completely or not at all.

No file replaces one that the command reads.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from itertools import combinations, product
from pathlib import Path
from typing import Any, TextIO

from dp_halfspace import _files
from dp_halfspace._cli.arguments import UserError
from dp_halfspace._html import printable
from dp_halfspace.ledger.store import COMPANIONS, belongs_to_ledger

# What stands for each file that a command reads, and that it writes.
_READ = {
    **{"model": "MODEL", "table": "TABLE"},
    **{name: f"--{name}" for name in ("schema", "ledger", "scores")},
}
_WRITTEN = {name: f"--{name}" for name in ("save", "card", "out", "train", "test")}


def check_files(options: Any) -> None:
    """Refuse to overwrite a file that is in use, before anything is read or charged."""
    read, written = _files_of(options, _READ), _files_of(options, _WRITTEN)
    ledgers = [path for option, path in read if option == "--ledger"]
    # SQLite keeps further files next to a ledger, which need not exist yet.
    read += [("--ledger", Path(f"{path}{end}")) for path in ledgers for end in COMPANIONS]
    for (option, path), (other, place) in [*combinations(written, 2), *product(written, read)]:
        if _is_same(path, place):
            raise UserError(f"{option} and {other} are the same file, {path}; use two files")
    for option, path in written:
        if belongs_to_ledger(path):
            raise UserError(f"{option}: {path} is a file of a ledger, which is never overwritten")
        folder = path.absolute().parent
        if not folder.is_dir():
            raise UserError(f"{option}: the folder {folder} does not exist; create it first")
        # A device or a pipe would be replaced instead of written to.
        is_other = path.exists() and not path.is_file()
        if is_other or not os.access(folder, os.W_OK):
            raise UserError(f"{option}: {path} cannot be written to")


def _files_of(options: Any, names: dict[str, str]) -> list[tuple[str, Path]]:
    """Return the files of some options, each with what stands for it."""
    given = ((text, getattr(options, name, None)) for name, text in names.items())
    return [(text, path) for text, path in given if path is not None]


def _is_same(one: Path, other: Path) -> bool:
    """Return whether two paths refer to the same file, which need not exist.

    Case is ignored, as on some file systems.
    """
    with contextlib.suppress(OSError):
        if os.path.samefile(one, other):
            return True
    return os.path.realpath(one).casefold() == os.path.realpath(other).casefold()


def write_whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Write a file completely or not at all."""
    try:
        _files.write_whole(path, write)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error


def write_text(path: Path, text: str) -> None:
    """Write a text file completely or not at all, in the same encoding on every system."""
    write_whole(path, lambda new: new.write_text(text, encoding="utf-8"))


def write_out(text: str, stream: TextIO | None = None) -> None:
    """Write and flush lines to standard output, with characters replaced that cannot be printed."""
    stream = sys.stdout if stream is None else stream
    text = "\n".join(map(printable, text.split("\n")))
    # The encoding of a stream may not have all letters of a name.
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except OSError as error:
        # The rest of the stream is discarded, because it would raise again at the end of the
        # process.
        with contextlib.suppress(OSError, ValueError), open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())
        name = "standard error" if stream is sys.stderr else "standard output"
        raise UserError(f"cannot write to {name}: {error.strerror}") from error


def note(text: str) -> None:
    """Write a note to standard error."""
    write_out(f"dp_halfspace: note: {text}\n", sys.stderr)
