"""Public streams of integer directions, which can be read again.

Their entries are so small that every product with rows of integers is exact in float32
(`direction_counts`). See ``docs/proofs/pure_halfspace.md``, sections 2 and 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.algorithms.plan import FloatArray

# More are refused: they would take minutes and hardly improve on a million.
MOST_DIRECTIONS = 10**6
# Norms of integer rows and of integer directions: 4095 * 2047 < 2^24, up to which float32
# holds every integer.
ROW_NORM, _DIRECTION_NORM = 4095, 2047
# Rounding would leave too little of directions with more entries.
MOST_COLUMNS = 2**16
_BLOCK_ENTRIES = 2**18  # of directions: 2 MB of float64
# Standard deviation of the common part of all columns, beside a part of norm one.
_COMMON = 1.0


@dataclass(frozen=True, slots=True)
class DirectionStream:
    """A fixed sequence of integer directions that can be read again, block by block.

    `n_columns` are those of the rows, constant column included; `n_directions` are wanted, and a
    few more or less may come. The public `seed` gives the sequence. `constant` is the value of
    the constant column, which is the last, before rows are normalised. Directions are uniform on
    the sphere if `spherical`, as behind a random projection, where columns have no meaning;
    otherwise they favour few columns, and columns that agree. A released `centre` is looked
    round, up to the distance `radius` from its unit vector before normalising. `reach` is the
    largest entry of a lattice; 0 for random directions.
    """

    n_columns: int
    n_directions: int
    seed: tuple[int, ...]
    constant: float | None = None
    spherical: bool = False
    centre: FloatArray | None = None
    radius: float = 0.0
    reach: int = 0

    @property
    def paired(self) -> bool:
        """Whether the opposite of every direction of a block is a candidate too."""
        return self.centre is None

    @property
    def length(self) -> float:
        """Norm of the directions before they are rounded to integers."""
        return integer_norm(_DIRECTION_NORM, self.n_columns)

    @property
    def _n_drawn(self) -> int:
        """Number of directions that blocks are cut from."""
        if self.reach:
            return int((2 * self.reach + 1) ** self.n_columns - 1) // 2
        return -(-self.n_directions // 2) if self.paired else self.n_directions

    @property
    def _block_columns(self) -> int:
        return max(1, min(self._n_drawn, _BLOCK_ENTRIES // self.n_columns))

    @property
    def n_blocks(self) -> int:
        """Number of blocks, a function of public numbers."""
        return -(-self._n_drawn // self._block_columns)

    def block(self, number: int) -> NDArray[np.float32]:
        """Return one block of directions as columns, the same whenever it is asked for.

        They are integers of norm at most 2047. Empty if a part of a lattice holds only multiples of
        other points.
        """
        lo = number * self._block_columns
        hi = min(lo + self._block_columns, self._n_drawn)
        if self.reach:
            return _lattice(lo, hi, self.n_columns, self.reach)
        source = np.random.SeedSequence(self.seed, spawn_key=(number,))
        rng = np.random.Generator(np.random.PCG64(source))
        normal = rng.standard_normal((self.n_columns, hi - lo), dtype=np.float32)
        if self.centre is not None:
            found = unit_length(normal) * self.radius + unit_length(self.centre[:, None])
        elif self.spherical:
            found = unit_length(normal)
        else:
            found = _plausible(normal, self.constant, rng)
        found = unit_length(found)
        found *= self.length
        return np.rint(found).astype(np.float32)


def _plausible(
    normal: NDArray[np.float32], constant: float | None, rng: np.random.Generator
) -> FloatArray:
    """Turn spherical directions into ones that a table of measurements makes more likely.

    The number of columns that a direction looks at is log-uniform. To that comes a common part
    of all columns, and the hyperplane goes through a random point of the diagonal, between the
    origin and the end of a row of equal columns.
    """
    n_columns, width = normal.shape
    n_features = n_columns - (constant is not None)
    share = float(n_features) ** (rng.random(width) - 1.0)
    kept = rng.random((n_features, width), dtype=np.float32) < share
    kept[rng.integers(n_features, size=width), np.arange(width)] = True
    common = _COMMON * rng.standard_normal(width)
    height = rng.random(width)
    root = math.sqrt(n_features)
    found = np.zeros((n_columns, width))
    found[:n_features] = unit_length(normal[:n_features] * kept) + common / root
    if constant is not None:
        # Row by row, as in `unit_length`.
        for row in found[:n_features]:
            found[n_features] -= row
        found[n_features] *= height / (root * constant)
    return found


def unit_length(columns: NDArray[np.floating]) -> FloatArray:
    """Divide every column by its norm, with the same result wherever the array is in memory."""
    out = columns.astype(np.float64)
    # Row by row: the order of a library's sum may depend on where the array begins.
    squares = np.zeros(out.shape[1])
    for row in out:
        squares += row * row
    norms = np.sqrt(squares)
    out /= np.where(norms > 0.0, norms, 1.0)
    return out


def integer_norm(largest: int, n_columns: int) -> float:
    """Return a norm that rounding to integers raises to at most `largest`."""
    return max(largest - 1.0 - math.sqrt(n_columns) / 2.0, 0.0)


def lattice_reach(n_columns: int, n_directions: int) -> int:
    """Return the largest ``m`` for which ``{-m, ..., m}^n_columns`` has at most so many points."""
    # The norm of its points must stay below that of all directions.
    most = int(_DIRECTION_NORM / math.sqrt(n_columns))
    reach = 0
    # The first test spares a huge power.
    while reach < most and n_columns < 64 and (2 * reach + 3) ** n_columns <= n_directions:
        reach += 1
    return reach


def _lattice(lo: int, hi: int, n_columns: int, reach: int) -> NDArray[np.float32]:
    """Return the lattice points number `lo` to `hi` behind the origin that lead their ray."""
    base = 2 * reach + 1
    # Digits in this base, the highest first: behind the middle the first nonzero is positive.
    rest = np.arange(lo, hi, dtype=np.int64) + (base**n_columns - 1) // 2 + 1
    points = np.empty((n_columns, hi - lo), dtype=np.int64)
    for j in range(n_columns - 1, -1, -1):
        rest, points[j] = np.divmod(rest, base)
    points -= reach
    return points[:, np.gcd.reduce(points, axis=0) == 1].astype(np.float32)
