"""The command `split`: rows for a fit, and held-out rows.

A row goes where its position sends it, or the position of its person in the order in which persons
first appear. Both are drawn by a public seed, so that no cell decides, and a replaced record is
replaced in one of the two files.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._cli.arguments import UserError
from dp_halfspace._cli.files import note, write_out, write_whole
from dp_halfspace._cli.tables import (
    EXCEL,
    OPENERS,
    PARQUET,
    labels_of,
    lines_of_csv,
    pyarrow_for,
    read_table,
    readable,
)
from dp_halfspace._html import printable


def split(options: Any, out: TextIO, err: TextIO) -> None:
    """Write two files, and say what they are."""
    is_parquet = _is_parquet(options.table)
    for name, path in (("--train", options.train), ("--test", options.test)):
        if _is_parquet(path) != is_parquet or path.suffix.lower() in OPENERS:
            what = "a .parquet file" if is_parquet else "a CSV"
            raise UserError(f"{name}: {path} must be {what}, as TABLE is")
    groups = options.groups
    table = read_table(options, [] if groups is None else [groups], lambda name: name == groups)
    units = np.arange(len(table.frame)) if groups is None else places_of(labels_of(table, groups))
    del table
    held_out = held_out_units(int(units.max()) + 1, options.share, options.seed)[units]
    # The number of rows of a person is private, also for readers of this text.
    unit = "rows" if groups is None else "persons"
    sizes = []
    for path, chosen in ((options.train, ~held_out), (options.test, held_out)):
        write_whole(path, partial(_copy, options, chosen))
        sizes.append(f"{printable(path)}, {len(np.unique(units[chosen]))} {unit}")
    write_out(out, f"Written: {'; '.join(sizes)} (seed {options.seed})\n")
    note(
        err,
        "both files are as private as the table. They are parts of one data set, so charge fits "
        "and evaluations to one ledger.",
    )


def _is_parquet(path: Path) -> bool:
    if path.suffix.lower() in EXCEL:
        raise UserError(f"{path} is a sheet: save it as CSV to divide its rows")
    return path.suffix.lower() == PARQUET


def places_of(persons: NDArray[Any]) -> NDArray[np.intp]:
    """Return the place of the person of each row, in the order in which persons first appear."""
    places = {person: place for place, person in enumerate(dict.fromkeys(persons))}
    return np.array([places[person] for person in persons], dtype=np.intp)


def held_out_units(count: int, share: float, seed: int) -> NDArray[np.bool_]:
    """Choose the held-out rows or persons by a public seed, at least one of them and not all."""
    if count < 2:
        raise UserError("a table of one row or person cannot be divided")
    n_held_out = min(max(round(share * count), 1), count - 1)
    chosen = np.zeros(count, dtype=bool)
    chosen[np.random.default_rng(seed).permutation(count)[:n_held_out]] = True
    return chosen


def _copy(options: Any, chosen: NDArray[np.bool_], path: Path) -> None:
    """Write the chosen rows as they are, below the header of the table."""
    with readable(options.table):
        if _is_parquet(options.table):
            _copy_parquet(options.table, chosen, path)
            return
        lines = lines_of_csv(options, set() if options.groups is None else {options.groups})
        header = next(lines)
        # Without the mark at the beginning that some programs write.
        encoding = "utf-8" if options.encoding == "utf-8-sig" else options.encoding
        with path.open("w", encoding=encoding, newline="") as file:
            file.write(header)
            file.writelines(_chosen(lines, chosen))


def _chosen(lines: Iterator[str], chosen: NDArray[np.bool_]) -> Iterator[str]:
    """Yield the chosen lines, each with an end."""
    for line, is_chosen in zip(lines, chosen, strict=True):
        if is_chosen:
            yield line if line.endswith(("\n", "\r")) else f"{line}\n"


def _copy_parquet(table: Path, chosen: NDArray[np.bool_], path: Path) -> None:
    parquet = pyarrow_for(table).parquet
    file, start = parquet.ParquetFile(table), 0
    with parquet.ParquetWriter(path, file.schema_arrow) as writer:
        for batch in file.iter_batches():
            writer.write_batch(batch.filter(chosen[start : start + len(batch)]))
            start += len(batch)
