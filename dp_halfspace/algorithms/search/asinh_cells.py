"""Linear classifiers of columns on a scale of their own logarithm, counted in integers.

A number is brought to a cell of the area hyperbolic sine: linear near zero, logarithmic beyond, so
an unknown width of a column is an offset there. Cells are found by comparisons with public ends
and coefficients are small integers: every score is exact, whatever the order of a sum. Proof:
``docs/proofs/small_tables.md``, sections 2 and 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.algorithms.engine.plan import FloatArray
from dp_halfspace.algorithms.search.directions import unit_length

# Cells of a unit of asinh, the largest cell on either side of zero, and the largest sum of
# absolute coefficients: 1000 * 16384 < 2^24, up to which float32 holds every integer.
_PER_UNIT, LARGEST_CELL, LARGEST_SUM = 256, 64 * 256, 1000
# A threshold beyond is that of a constant classifier.
_LARGEST_THRESHOLD = 2**24 - 1
# Binary exponents of the scales at which a column turns from linear to logarithmic.
EXPONENTS = (-24, -16, -8, -4, 0, 4, 8)
# Typical numbers at which hyperplanes pass: 2^(u + tau N), of a negative sign with this
# probability; u is as often 8 times a Cauchy variable as 8 times a normal one, common to columns.
_SPREAD, _FARTHEST, _NEGATIVE = 8.0, 60.0, 0.15
_TAUS = (0.0, 2.0, 5.0)
_BLOCK_ENTRIES = 2**18


@cache
def _ends() -> FloatArray:
    """Return where cells begin, from the first one beyond zero."""
    return np.sinh((np.arange(1, LARGEST_CELL + 1) - 0.5) / _PER_UNIT)


def asinh_cells(X: NDArray[Any], exponent: int) -> NDArray[np.float32]:
    """Return ``rint(256 clip(asinh(x 2^-exponent), -64, 64))``, zero for a missing entry.

    Integers, each a function of its entry alone, bit for bit: found by comparisons.
    """
    with np.errstate(all="ignore"):
        scaled = np.ldexp(np.nan_to_num(np.asarray(X, dtype=np.float64)), -exponent)
    cells = np.searchsorted(_ends(), np.abs(scaled), side="left").astype(np.float32)
    return np.where(scaled < 0.0, -cells, cells)


@dataclass(frozen=True, slots=True)
class CellStream:
    """A fixed sequence of linear classifiers of cells, and their opposites, read block by block.

    A block has one scale of `exponents`, ``n_candidates`` are shared between all of them; the
    public `seed` gives the sequence.
    """

    n_columns: int
    n_candidates: int
    seed: tuple[int, ...]
    exponents: tuple[int, ...] = EXPONENTS

    @property
    def _n_of_a_scale(self) -> int:
        return max(1, round(self.n_candidates / (2 * max(1, len(self.exponents)))))

    @property
    def _width(self) -> int:
        return max(1, min(self._n_of_a_scale, _BLOCK_ENTRIES // self.n_columns))

    @property
    def blocks(self) -> tuple[tuple[int, int, int], ...]:
        """Scale, number and width of every block, blocks of a scale beside each other."""
        n, width = self._n_of_a_scale, self._width
        return tuple(
            (exponent, lo // width, min(width, n - lo))
            for exponent in self.exponents
            for lo in range(0, n, width)
        )

    def block(
        self, exponent: int, number: int, width: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return integer coefficients as columns, and integer thresholds.

        The absolute coefficients of a classifier add up to at most 1000. Scores of cells above the
        threshold are positive.
        """
        key = EXPONENTS.index(exponent), number
        source = np.random.SeedSequence(self.seed, spawn_key=key)
        rng = np.random.Generator(np.random.PCG64(source))
        d = self.n_columns
        share = float(d) ** (rng.random(width) - 1.0)
        kept = rng.random((d, width)) < share
        kept[rng.integers(d, size=width), np.arange(width)] = True
        size = np.count_nonzero(kept, axis=0)
        found = unit_length(rng.standard_normal((d, width)) * kept)
        found += kept * (rng.standard_normal(width) / np.sqrt(size))
        # Row by row: a library may choose the order of its own sums.
        total = np.zeros(width)
        for row in found:
            total += np.abs(row)
        # Rounding adds at most one half to each.
        found *= (LARGEST_SUM - size / 2.0) / np.where(total > 0.0, total, 1.0)
        np.rint(found, out=found)
        centre = rng.standard_cauchy(width)
        normal = rng.random(width) < 0.5
        centre[normal] = rng.standard_normal(int(normal.sum()))
        centre = np.clip(_SPREAD * centre, -_FARTHEST, _FARTHEST)
        spread = np.array(_TAUS)[rng.integers(len(_TAUS), size=width)]
        octave = centre + spread * rng.standard_normal((d, width))
        typical = np.arcsinh(np.exp2(octave - exponent))
        typical *= np.where(rng.random((d, width)) < _NEGATIVE, -1.0, 1.0)
        threshold = np.zeros(width)
        for coefficient, value in zip(found, typical, strict=True):
            threshold += coefficient * value
        threshold = np.rint(_PER_UNIT * threshold)
        np.clip(threshold, -_LARGEST_THRESHOLD, _LARGEST_THRESHOLD, out=threshold)
        return found.astype(np.float32), threshold.astype(np.float32)
