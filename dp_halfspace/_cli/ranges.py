"""Public ranges of columns: from natural units to [-1, 1] without a look at the rows."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._cli.arguments import UserError

__all__ = ["apply_ranges", "read_ranges"]

_HEADER = ["column", "low", "high"]


def read_ranges(path: Path, columns: Sequence[str]) -> NDArray[np.float64]:
    """Read the lowest and highest possible value of every column, shape (n_columns, 2)."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream, strict=True)
            lines = [(reader.line_num, [c.strip() for c in cells]) for cells in reader if cells]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or "it is not a CSV file in UTF-8"
        raise UserError(f"--ranges: cannot read {path}: {reason}") from error
    if not lines or lines[0][1] != _HEADER:
        raise UserError(f"--ranges: line 1 of {path} must be {','.join(_HEADER)}")
    found = dict(_entry(path, *line) for line in lines[1:])
    if len(found) < len(lines) - 1:
        raise UserError(f"--ranges: a column appears twice in {path}")
    for name in columns:
        if name not in found:
            raise UserError(f"--ranges: {path} has no line for column {name!r}")
    for name in found:
        if name not in columns:
            raise UserError(f"--ranges: {path} names {name!r}, which is no column of the data")
    return np.array([found[name] for name in columns])


def _entry(path: Path, number: int, cells: list[str]) -> tuple[str, tuple[float, float]]:
    """Read one line."""
    try:
        name, low, high = cells[0], float(cells[1]), float(cells[2])
        usable = len(cells) == len(_HEADER) and math.isfinite(high - low) and low < high
    except (ValueError, IndexError):
        usable = False
    if not usable:
        raise UserError(
            f"--ranges: line {number} of {path} must be a column and two finite numbers, the "
            "lower one first"
        )
    return name, (low, high)


def apply_ranges(X: NDArray[np.float64], ranges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Map every column from its range to [-1, 1]; values outside are moved to its ends."""
    low, high = ranges.T
    with np.errstate(over="ignore"):  # far outside is outside
        shares = (X - low) / (high - low)
        return np.asarray(np.clip(2.0 * shares - 1.0, -1.0, 1.0))
