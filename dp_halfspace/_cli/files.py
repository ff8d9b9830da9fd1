"""What a command writes: files, whole or not at all and never over what it reads, and text.

Models are saved by skops, which runs nothing that it reads, or by joblib, which does.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, TextIO

import joblib

from dp_halfspace._cli.arguments import UserError
from dp_halfspace._html import printable
from dp_halfspace.exceptions import install_hint
from dp_halfspace.ledger.store import COMPANIONS, belongs_to_ledger

REPORT = "report.txt"
NUMBERS = "results.json"
PICTURE = "accuracy.png"
_READ = {"model": "MODEL", "table": "TABLE", "schema": "--schema", "ledger": "--ledger"}
_WRITTEN = {"save": "--save", "card": "--card", "out": "--out"}

# All types that a fitted model of the command consists of, besides those of numpy and scikit-learn
# that skops itself trusts. A name more would be a class that a file may build as it likes.
TRUSTED = tuple(
    f"dp_halfspace.{name}"
    for name in (
        "algorithms.engine.calibration.CalibrationCurve",
        "algorithms.engine.calibration.NoisyCounts",
        "algorithms.engine.calibration.OperatingPoint",
        "algorithms.engine.column_scales.ColumnScales",
        "estimators.adaptive_margin.AdaptiveMarginClassifier",
        "estimators.table.PrivateTableClassifier",
        "estimators.table._Engine",
        "preprocessing.scalers.CellScaler",
        "preprocessing.scalers.RowLengths",
        "privacy.events.Exponential",
        "privacy.events.Gaussian",
        "privacy.events.Pure",
        "privacy.events.Repeated",
        "privacy.record.PrivacyRecord",
        "projection.features.AdditiveMap",
        "projection.features.FourierMap",
        "data.encoding.Encoding",
        "data.schema.Column",
    )
)


def check_files(options: Any) -> None:
    """Refuse, before anything is read or charged, to write over a file that is in use."""
    written = list(_written_files(options))
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
        # The folder of the demonstration is made where it is missing.
        if options.command:
            _check_target(path, option)


def _written_files(options: Any) -> Iterator[tuple[str, Path]]:
    """List what a command is going to write, each with its option."""
    for name, option in _WRITTEN.items():
        path = getattr(options, name, None)
        if path is not None and options.command:
            yield option, path
        elif path is not None:
            for file in (REPORT, NUMBERS, PICTURE):
                yield f"{option} (its {file})", path / file


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
    """List the files that SQLite may keep next to a ledger, by its name and that of a link."""
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
        # Permissions as of any other new file: mkstemp grants them to the owner alone.
        mask = os.umask(0)
        os.umask(mask)
        new.chmod(0o666 & ~mask)
        new.replace(path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error
    finally:
        if new is not None:
            new.unlink(missing_ok=True)


def import_skops(path: Path) -> Any:
    """Return skops, which is optional, if the name of a file asks for it; else None."""
    if path.suffix.lower() != ".skops":
        return None
    try:
        import skops.io  # noqa: PLC0415 (optional dependency)
    except ImportError as error:
        raise UserError(f"files .skops need skops: {install_hint('skops')}") from error
    return skops.io


def save_model(model: Any, path: Path) -> None:
    """Save a model by skops if its file ends in .skops, else by joblib."""
    dump = (import_skops(path) or joblib).dump
    write_whole(path, lambda place: dump(model, place))


def load_model(path: Path) -> Any:
    """Load the object in a file; of skops only if all types in it are known."""
    skops = import_skops(path)
    if skops is None:
        return joblib.load(path)
    others = sorted(set(skops.get_untrusted_types(file=path)) - set(TRUSTED))
    if others:
        raise UserError(
            f"{path} holds types that no model of the command has, and is not loaded: "
            f"{', '.join(map(repr, others))}"
        )
    return skops.load(path, trusted=list(TRUSTED))


def write_out(stream: TextIO, text: str) -> None:
    """Write lines in which every character prints, and see that they are out."""
    try:
        stream.write("\n".join(map(printable, text.split("\n"))))
        stream.flush()
    except OSError as error:
        # What is left in the stream goes nowhere: it would raise again at the end of the process.
        with contextlib.suppress(OSError, ValueError), open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())
        name = "standard error" if stream is sys.stderr else "standard output"
        raise UserError(f"cannot write to {name}: {error.strerror}") from error
