"""The command `split`: rows for a fit, and held-out rows.

A row goes where its position sends it, or the position of its person in the order in which persons
first appear. No cell decides, so a record, or a person, who is replaced in the same place is
replaced in one of the two files. A person who first appears in another place moves others, so the
choice is a fresh one, alike for every order, unless a public seed is stated.
"""

from __future__ import annotations

from functools import partial
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._cli.arguments import UserError, refusals_as_sentences
from dp_halfspace._cli.files import note, write_out, write_whole
from dp_halfspace._cli.tables import EXCEL, PARQUET, is_row, labels_of, read_table, readable
from dp_halfspace._html import printable
from dp_halfspace.data.owners import owners_of_rows


def split(options: Any) -> None:
    """Write two files, and say what they are."""
    groups, endings = options.groups, (PARQUET, *EXCEL)
    for path in (options.table, options.train, options.test):
        if path.suffix.lower() in endings:
            raise UserError(f"{path} is no CSV: split reads and writes CSV, so save a table as CSV")
    roles = [] if groups is None else [groups]
    table = read_table(options, roles, roles)
    units = np.arange(len(table.frame))
    if groups is not None:
        # Persons are numbered as they first appear, and told apart as by a fit: 7 and 007 are one.
        with refusals_as_sentences("--groups: "):
            units = owners_of_rows(labels_of(table, groups), len(units))
    del table
    held_out = held_out_units(int(units.max()) + 1, options.share, options.seed)[units]
    # The number of rows of a person is private, also for readers of this text.
    unit = "rows" if groups is None else "persons"
    sizes = []
    for path, chosen in ((options.train, ~held_out), (options.test, held_out)):
        write_whole(path, partial(_copy, options, chosen))
        sizes.append(f"{printable(path)}, {len(np.unique(units[chosen]))} {unit}")
    how = "at random" if options.seed is None else f"seed {options.seed}"
    write_out(f"Written: {'; '.join(sizes)} ({how})\n")
    note("both files are as private as the table: charge fits and evaluations to one ledger.")


def held_out_units(count: int, share: float, seed: int | None) -> NDArray[np.bool_]:
    """Choose the held-out rows or persons, at least one of them and not all.

    Without a seed, numpy takes one from the operating system.
    """
    if count < 2:
        raise UserError("a table of one row or person cannot be divided")
    n_held_out = min(max(round(share * count), 1), count - 1)
    chosen = np.zeros(count, dtype=bool)
    chosen[np.random.default_rng(seed).permutation(count)[:n_held_out]] = True
    return chosen


def _copy(options: Any, chosen: NDArray[np.bool_], path: Path) -> None:
    """Write what is above the rows, and the chosen rows, as they are."""
    with readable(options.table), options.table.open(encoding=options.encoding, newline="") as file:
        lines = [line for line in file if is_row(line)]
    n_above = len(lines) - len(chosen)
    kept = [*lines[:n_above], *compress(lines[n_above:], chosen)]
    # Without the mark at the beginning that some programs write.
    encoding = "utf-8" if options.encoding == "utf-8-sig" else options.encoding
    with path.open("w", encoding=encoding, newline="") as file:
        file.writelines(line if line.endswith(("\n", "\r")) else f"{line}\n" for line in kept)
