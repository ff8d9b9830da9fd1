"""Files that a user keeps: written beside the old one, and put in its place when they are whole."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4


def write_whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Write a file completely, or leave the one that is there as it is, for example on a full disk.

    ``write`` gets the path of a new file in the same folder. The file keeps the permissions of the
    one that it replaces; a link stays a link to it. A device or a pipe is written to as it is.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from dp_halfspace._files import write_whole
    >>> with TemporaryDirectory() as folder:
    ...     page = Path(folder) / "page.html"
    ...     write_whole(page, lambda new: new.write_text("<p>"))
    ...     page.read_text()
    '<p>'
    """
    if path.exists() and not path.is_file():
        write(path)
        return
    # A folder may be on another disk than a link to it.
    target = Path(os.path.realpath(path))
    new = target.with_name(f"{target.name}.{uuid4().hex}.new")
    # Only the owner may read a file that is not whole, whatever the permissions of the old one.
    try:
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        error.filename = str(path)
        raise
    try:
        write(new)
        # On some disks a lack of space is noticed only when the file is flushed.
        with new.open("rb+") as file:
            os.fsync(file.fileno())
        new.chmod(_permissions(target))
        new.replace(target)
    finally:
        new.unlink(missing_ok=True)


def _permissions(path: Path) -> int:
    """Return the permissions of a file, or those that a new one would have."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask
