"""Files that a command writes: whole or not at all, and never over what it reads or a ledger."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

from dp_halfspace._cli.arguments import UserError
from dp_halfspace.ledger.store import COMPANIONS, belongs_to_ledger

REPORT, NUMBERS, PICTURE = "report.txt", "results.json", "accuracy.png"
_READ = {"model": "MODEL", "table": "TABLE", "schema": "--schema", "ledger": "--ledger"}
_WRITTEN = {"save": "--save", "card": "--card", "out": "--out"}


def check_places(options: Any) -> None:
    """Refuse, before anything is read or charged, to write over a file that is in use."""
    written = list(_written(options))
    read = [
        (option, getattr(options, name))
        for name, option in _READ.items()
        if getattr(options, name, None) is not None
    ]
    pairs = [*combinations(written, 2), *((one, other) for one in written for other in read)]
    for (option, path), (other, place) in pairs:
        if _is_same(path, place):
            raise UserError(f"{option} and {other} are the same file, {path}; name two")
        if other == "--ledger" and any(_is_same(path, beside) for beside in _companions(place)):
            raise UserError(
                f"{option}: {path} is a file that the ledger of --ledger keeps beside it; name "
                "another one"
            )
    for option, path in written:
        if belongs_to_ledger(path):
            raise UserError(
                f"{option}: {path} is a file of a privacy ledger, which is never overwritten; "
                "name another one"
            )
        if not _is_report(options):
            _check_target(path, option)


def _is_report(options: Any) -> bool:
    """Tell whether `--out` is a folder, which is made where it is missing."""
    return not options.command


def _written(options: Any) -> Iterator[tuple[str, Path]]:
    """List what a command is going to write, each with its option."""
    for name, option in _WRITTEN.items():
        path = getattr(options, name, None)
        if path is None:
            continue
        if _is_report(options):
            yield from (
                (f"{option} (its {file})", path / file) for file in (REPORT, NUMBERS, PICTURE)
            )
        else:
            yield option, path


def _is_same(one: Path, other: Path) -> bool:
    """Tell whether two paths lead to one file, or would if it were there.

    Case plays no part, as there are file systems where it plays none.
    """
    try:
        if os.path.samefile(one, other):
            return True
    except OSError:
        pass
    return os.path.realpath(one).casefold() == os.path.realpath(other).casefold()


def _companions(ledger: Path) -> Iterator[Path]:
    """List what SQLite may keep beside a ledger, under its own name and that of a link to it."""
    for place in {os.path.abspath(ledger), os.path.realpath(ledger)}:
        yield from (Path(f"{place}{end}") for end in COMPANIONS)


def _check_target(path: Path, option: str) -> None:
    """Refuse a file that cannot be written."""
    folder = path.absolute().parent
    if not folder.is_dir():
        raise UserError(f"{option}: there is no folder {folder}; make it first")
    # A device or a pipe would be replaced, not written to.
    is_other = path.exists() and not path.is_file()
    if is_other or not os.access(folder, os.W_OK):
        raise UserError(f"{option}: {path} cannot be written to")


def write_whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Write a file under its name complete, or not at all."""
    new = None
    try:
        handle, name = tempfile.mkstemp(prefix=path.name, suffix=".new", dir=path.absolute().parent)
        os.close(handle)
        new = Path(name)
        write(new)
        mask = os.umask(0)
        os.umask(mask)
        new.chmod(0o666 & ~mask)
        new.replace(path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error
    finally:
        if new is not None:
            new.unlink(missing_ok=True)
