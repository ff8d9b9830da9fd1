"""Centre and width of every column within a small part of a budget.

First noisy counts of every column in octaves say which width it has. Columns that are narrow
beside their distance from zero are counted again, in equal cells round their centre. Two noisy
moments of the columns, brought to these scales and clipped, correct both numbers. Each sum is of
integers, or of weights on a grid: exact in any order. The bounds are in ``docs/proofs/units.md``,
the evidence for the constants in ``docs/units.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._rounding import UP
from dp_halfspace.algorithms.engine.column_shapes import (
    LOWEST,
    N_OCTAVES,
    Law,
    match_linear,
    match_octaves,
)
from dp_halfspace.algorithms.engine.plan import AnyNoise, FloatArray, noise_deviation
from dp_halfspace.data.chunks import sum_over_chunks
from dp_halfspace.data.people import People
from dp_halfspace.data.validation import are_chunks
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.mechanisms import Permit

CLIP = 4.0
_BLOCK_ENTRIES = 2**16  # of what is read at a time, and stays in cache
_COLUMNS_AT_ONCE = 64
# Cells of a column before octaves are merged: signs and exponents of float32, and what is missing.
_RAW_CELLS, _MISSING = 520, 512
# Parts of mu^2, or of epsilon, for octaves, cells of narrow columns, and moments.
_PARTS, _PURE_PARTS = (0.6, 0.15, 0.25), (0.75, 0.15, 0.1)
_N_CELLS = 4096
_RANGE = (0.4, 1.6)  # of a narrow column, in units of its centre
# Entries of the moments are multiples of 2^-10: their sums are exact.
_GRID = 1024.0
_SQUARE_WEIGHT = 1.5
# Variances to expect of what the moments correct, which shrink noisy corrections.
_CENTER_VARIANCE, _SQUARE_VARIANCE = 0.1, 0.4
_SMALLEST_SQUARE, _LARGEST_SQUARE = 0.03, 16.0
_SHARE, _LEAST_SHARE, _LARGEST_SHARE = 120.0, 0.04, 0.15
# Below this n mu / sqrt(d) the scales of most columns are lost in the noise.
_LEAST_STRENGTH = 8.0
# The same for pure epsilon and n epsilon / d.
_PURE_SHARE, _LEAST_PURE_SHARE, _LARGEST_PURE_SHARE = 80.0, 0.05, 0.3
_LEAST_PURE_STRENGTH = 120.0


@dataclass(frozen=True, slots=True)
class ColumnScales:
    """Released centre and width of every column, each of shape (n_features,)."""

    center: FloatArray
    scale: FloatArray


def in_column_scales(
    X: Any, scales: ColumnScales, clip: float = CLIP, kind: type = np.float64
) -> Any:
    """Return ``(x - center) / scale``, clipped, rounded to a `kind`; a missing entry becomes 0.

    Each entry of the result is a function of the same entry of `X` and of what was released.
    """
    if are_chunks(X):
        return X.each(in_column_scales, scales, clip, kind)
    Z = np.empty(X.shape, dtype=kind)
    with np.errstate(under="ignore"):
        for lo, block in _blocks_in_scales(X, scales, clip):
            Z[lo : lo + len(block)] = block
    return Z


def _blocks_in_scales(
    X: Any, scales: ColumnScales, clip: float
) -> Iterator[tuple[int, FloatArray]]:
    """Yield the first row of each block and `in_column_scales` of it, which is overwritten."""
    step = max(1, min(len(X), _BLOCK_ENTRIES // max(1, X.shape[1])))
    work = np.empty((step, X.shape[1]))
    # Written out: rows are short, and repeated operands are slow.
    center, scale = np.tile(scales.center, (step, 1)), np.tile(scales.scale, (step, 1))
    for lo in range(0, len(X), step):
        Z = work[: len(X) - lo]
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            np.copyto(Z, X[lo : lo + step])
            Z -= center[: len(Z)]
            Z /= scale[: len(Z)]
        np.clip(Z, -clip, clip, out=Z)
        missing = np.isnan(Z)
        if missing.any():
            Z[missing] = 0.0
        yield lo, Z


def affordable_scales(
    n_samples: int, n_features: int, budget: Budget
) -> tuple[ColumnScalesPlan, Budget] | None:
    """Plan column scales as a part of a budget; return the rest, too.

    None where few records or many columns make them cost more than they bring.
    """
    if budget.is_pure:
        strength, least = n_samples * budget.epsilon / n_features, _LEAST_PURE_STRENGTH
        ends, wanted = (_LEAST_PURE_SHARE, _LARGEST_PURE_SHARE), _PURE_SHARE / strength
    else:
        strength, least = n_samples * budget.mu, _LEAST_STRENGTH * math.sqrt(n_features)
        # Enough to find the scales of so many columns, and a small part of a large budget.
        ends, wanted = (_LEAST_SHARE, _LARGEST_SHARE), _SHARE * n_features / strength**2
    if strength < least:
        return None
    part, rest = budget.split(min(max(wanted, ends[0]), ends[1]))
    return plan_column_scales(n_samples, n_features, part), rest


@dataclass(frozen=True, slots=True)
class ColumnScalesPlan:
    """The public numbers of a release of scales.

    Attributes
    ----------
    octaves, moments : AnyNoise
        Of the first counts of all columns, and of their moments.
    cells : Budget
        For the counts of narrow columns, however many there are.
    """

    n_samples: int
    octaves: AnyNoise
    cells: Budget
    moments: AnyNoise

    @property
    def events(self) -> tuple[Event, ...]:
        """What a run releases; how many narrow columns there are does not matter."""
        narrow = _noise_of_counts(1, self.cells)
        return self.octaves.event, narrow.event, self.moments.event

    @property
    def public(self) -> dict[str, Any]:
        """What a record says about it."""
        return {"private_units": True}

    def run(self, X: Any, permit: Permit, people: People | None = None) -> ColumnScales:
        """Release centre and width of the columns of a dense matrix, which may hold NaN.

        An array, or an array in chunks.

        `people` may own its rows, if noise is not pure: then the plan is for so many samples.
        """
        weights = None if people is None else people.weights
        noisy = permit.release(sum_over_chunks(octave_counts, X, weights), self.octaves)
        law = Law(noise_deviation(self.octaves), self.cells.is_pure)
        center, scale, is_narrow = match_octaves(noisy, self.n_samples, law)
        # A centre at zero has no range round it; chances of both signs could cancel.
        narrow = np.flatnonzero(is_narrow & (np.abs(center) > scale))
        scales = ColumnScales(center, scale)
        if len(narrow):
            self._look_again(X, narrow, scales, permit, weights)
        return self._corrected(X, people, scales, permit)

    def _look_again(
        self,
        X: Any,
        narrow: NDArray[np.intp],
        scales: ColumnScales,
        permit: Permit,
        weights: FloatArray | None,
    ) -> None:
        """Replace the scales of narrow columns by better ones."""
        center, scale = scales.center, scales.scale
        ends = np.sort(np.multiply.outer(_RANGE, center[narrow]), axis=0)
        noise = _noise_of_counts(len(narrow), self.cells)
        counts = sum_over_chunks(linear_counts, X, narrow, ends, _N_CELLS, weights)
        noisy = permit.release(counts, noise)
        law = Law(noise_deviation(noise), self.cells.is_pure)
        for j, low, high, cells in zip(narrow, *ends, noisy, strict=True):
            length = high - low
            place, width = match_linear(
                cells,
                self.n_samples,
                law,
                (center[j] - low) / length,
                scale[j] / length,
            )
            center[j], scale[j] = low + place * length, width * length

    def _corrected(
        self, X: Any, people: People | None, scales: ColumnScales, permit: Permit
    ) -> ColumnScales:
        """Move centres and widths to the moments of the clipped columns."""
        moments = sum_over_chunks(clipped_moments, X, scales, people)
        sums = permit.release(moments, self.moments) / self.n_samples
        spread = noise_deviation(self.moments, sums.size) / self.n_samples
        mean, square = CLIP * sums[0], CLIP**2 / _SQUARE_WEIGHT * sums[1]
        variance = (CLIP * spread) ** 2
        mean = mean / (1.0 + variance / _CENTER_VARIANCE)
        variance = (CLIP**2 / _SQUARE_WEIGHT * spread) ** 2
        square = 1.0 + (square - 1.0) / (1.0 + variance / _SQUARE_VARIANCE)
        factor = np.sqrt(np.clip(square - mean**2, _SMALLEST_SQUARE, _LARGEST_SQUARE))
        return ColumnScales(scales.center + scales.scale * mean, scales.scale * factor)


def octave_counts(X: NDArray[Any], weights: FloatArray | None = None) -> FloatArray:
    """Count the entries of each column by sign and octave; NaN counts nowhere.

    Of shape (n_features, 2 * N_OCTAVES + 1), from the most negative octave over zero, in the
    middle, to the most positive one; `weights` are what each row counts, None for one.
    """
    n_samples, n_features = X.shape
    counts = np.empty((n_features, 2 * N_OCTAVES + 1))
    # Where octaves begin among exponents; first comes what counts as zero, last what is larger.
    starts = np.append(0, np.arange(N_OCTAVES) + 127 + LOWEST)
    for first in range(0, n_features, _COLUMNS_AT_ONCE):
        part = X[:, first : first + _COLUMNS_AT_ONCE]
        width = part.shape[1]
        step = max(1, min(n_samples, _BLOCK_ENTRIES // width))
        column = np.tile(np.arange(width, dtype=np.uint32) * _RAW_CELLS, (step, 1))
        raw = np.zeros(width * _RAW_CELLS)
        for lo in range(0, n_samples, step):
            cell = _raw_cells(part[lo : lo + step])
            cell += column[: len(cell)]
            each = None if weights is None else np.repeat(weights[lo : lo + step], width)
            raw += np.bincount(cell.ravel().astype(np.intp), each, minlength=len(raw))
        known = raw.reshape(width, _RAW_CELLS)[:, :_MISSING].reshape(width, 2, -1)
        positive, negative = np.add.reduceat(known, starts, axis=2).transpose(1, 0, 2)
        zero = positive[:, :1] + negative[:, :1]
        counts[first : first + width] = np.hstack([negative[:, :0:-1], zero, positive[:, 1:]])
    return counts


def _raw_cells(X: NDArray[Any]) -> NDArray[np.uint32]:
    """Return sign and exponent of each entry as float32, `_MISSING` for NaN."""
    kind = np.float32 if X.dtype == np.float32 else np.float64
    entries = np.ascontiguousarray(X, dtype=kind)
    missing = np.isnan(entries)
    if entries.dtype == np.float64:
        # Cut off, not rounded, which could reach the next octave.
        bits = entries.view(np.int64) & -(2**29)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            entries = bits.view(np.float64).astype(np.float32)
    cells = entries.view(np.uint32) >> np.uint32(23)
    if missing.any():
        cells[missing] = _MISSING
    return cells


def linear_counts(
    X: NDArray[Any],
    columns: Sequence[int] | NDArray[np.intp],
    ends: tuple[FloatArray, FloatArray] | FloatArray,
    n_cells: int,
    weights: FloatArray | None = None,
) -> FloatArray:
    """Count the entries of some columns in equal cells; what is outside is in the nearest one.

    The range of a column is between its `ends`, released before; `weights` are as in
    `octave_counts`. Of shape (n_columns, n_cells).
    """
    counts = np.zeros((len(columns), n_cells))
    for j, (place, start, end) in enumerate(zip(columns, *ends, strict=True)):
        column = np.asarray(X[:, place], dtype=np.float64)
        known = ~np.isnan(column)
        column = np.clip(column[known], start, end)
        cell = np.minimum((column - start) / (end - start) * n_cells, n_cells - 1)
        each = None if weights is None else weights[known]
        counts[j] = np.bincount(cell.astype(np.intp), each, minlength=n_cells)
    return counts


def clipped_moments(
    X: NDArray[Any], scales: ColumnScales, people: People | None = None
) -> FloatArray:
    """Return the sums of ``s`` and of ``1.5 s^2`` in every column, s in [-1, 1] on a grid.

    Of each person the means over all rows are added, rounded to the grid. Of shape
    (2, n_features) and exact; replacing a record, or a person, moves it by at most
    ``2 sqrt(n_features)``.
    """
    sums = np.zeros((2, X.shape[1]))
    # Times a power of two, which rounds nothing: what is rounded below is on the grid.
    fine = ColumnScales(scales.center, scales.scale * (CLIP / _GRID))
    for s, squares in _steps(X, fine) if people is None else _steps_of_people(X, fine, people):
        ones = np.ones(len(s))
        # Integers below 2^53, in every order.
        sums[0] += ones @ s / _GRID
        sums[1] += _SQUARE_WEIGHT * (ones @ squares / _GRID**2)
    return sums


def _steps(X: NDArray[Any], fine: ColumnScales) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield the entries of a block as whole numbers of steps of the grid, and their squares."""
    for _, s in _blocks_in_scales(X, fine, _GRID):
        np.rint(s, out=s)
        yield s, s * s


def _steps_of_people(
    X: NDArray[Any], fine: ColumnScales, people: People
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield the means of `_steps` over the rows of each person."""
    n_privacy_units, step = len(people), max(1, 4 * _BLOCK_ENTRIES // X.shape[1])
    ends = np.append(people.starts, len(X))
    for lo in range(0, n_privacy_units, step):
        bounds = ends[lo : lo + step + 1]
        s = np.rint(in_column_scales(X[bounds[0] : bounds[-1]], fine, _GRID))
        # Integers, so these sums are exact. The mean square is rounded up: it is at least the
        # square of the mean, and at most one.
        first, counts = bounds[:-1] - bounds[0], np.diff(bounds)[:, None]
        means = np.trunc(np.add.reduceat(s, first, axis=0) / counts)
        yield means, np.ceil(np.add.reduceat(s * s, first, axis=0) / counts)


def plan_column_scales(n_samples: int, n_features: int, budget: Budget) -> ColumnScalesPlan:
    """Fix the public numbers of a release of column scales within a budget."""
    octaves, cells, moments = budget.parts(_PURE_PARTS if budget.is_pure else _PARTS)
    first, last = _noise_of_counts(n_features, octaves), 2.0 * math.sqrt(n_features) * UP
    return ColumnScalesPlan(n_samples, first, cells, moments.noise(last))


def _noise_of_counts(n_columns: int, budget: Budget) -> AnyNoise:
    """Return the noise of the counts of so many columns."""
    if budget.is_pure:
        from dp_halfspace.privacy.noise import DiscreteLaplaceNoise  # noqa: PLC0415

        return DiscreteLaplaceNoise(2 * n_columns, budget.epsilon)
    return budget.noise(math.sqrt(2.0 * n_columns) * UP)
