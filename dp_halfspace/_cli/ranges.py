"""Public ranges of columns: from natural units to [-1, 1] without a look at the rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._cli.arguments import UserError
from dp_halfspace._cli.tables import read_table

__all__ = ["apply_ranges", "read_ranges"]


def read_ranges(path: Path, columns: Sequence[str]) -> NDArray[np.float64]:
    """Read the lowest and highest possible value of every column, shape (n_columns, 2)."""
    try:
        found = _read(path)
    except UserError as error:
        raise UserError(f"--ranges: {error}") from error
    for name in columns:
        if name not in found:
            raise UserError(f"--ranges: {path} has no line for column {name!r}")
    for name in found:
        if name not in columns:
            raise UserError(f"--ranges: {path} names {name!r}, which is no column of the data")
    return np.array([found[name] for name in columns])


def _read(path: Path) -> dict[str, NDArray[np.float64]]:
    """Read the range of each column that a file names."""
    table = read_table(path, "column")
    if table.names != ["low", "high"]:
        raise UserError(f"line 1 of {path} must be column,low,high")
    for line, (low, high) in zip(table.lines, table.numbers.tolist(), strict=True):
        if not 0.0 < high - low < math.inf:
            raise UserError(
                f"line {line} of {path} must be a column and two finite numbers, the lower one "
                "first"
            )
    found = dict(zip(table.text, table.numbers, strict=True))
    if len(found) < len(table.text):
        raise UserError(f"a column appears twice in {path}")
    return found


def apply_ranges(X: NDArray[np.float64], ranges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Map every column from its range to [-1, 1]; values outside are moved to its ends."""
    low, high = ranges.T
    with np.errstate(over="ignore"):  # far outside is outside
        shares = (X - low) / (high - low)
        return np.asarray(np.clip(2.0 * shares - 1.0, -1.0, 1.0))
