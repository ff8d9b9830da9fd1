"""Public streams of integer classifiers, and how many records lie on the wrong side of each.

There are two kinds. *Cells*: a number is brought to a cell of the area hyperbolic sine, linear near
zero and logarithmic beyond, so an unknown width of a column is an offset there; cells are found by
comparisons with public ends (``docs/proofs/small_tables.md``, sections 2 and 3). *Directions* for
rows of norm one: each direction and each row is rounded to integers so small that every sum of
every product is exact in float32 (``docs/proofs/pure_halfspace.md``, sections 2 to 4).

In both the sign of a score is that of exact arithmetic, whatever the order in which a library adds.
A score of zero is an error for either label: prediction reads rows that are not rounded, so nothing
is known of such a record. With a known margin a record counts if it has less than a tenth of it,
the utility of Nguyen, Ullman and Zakynthinou (2020), Algorithm 2; the limit of a direction is an
integer too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._rounding import WIDE_UP
from dp_halfspace.algorithms.engine.plan import FloatArray
from dp_halfspace.rows.rows import Rows

# Cells of a unit of asinh.
_PER_UNIT = 256
# The largest cell on either side of zero.
LARGEST_CELL = 64 * 256
# Largest sum of absolute coefficients: 1000 * 16384 < 2^24, up to which float32 holds every
# integer.
LARGEST_SUM = 1000
# A threshold beyond is that of a constant classifier.
_LARGEST_THRESHOLD = 2**24 - 1
# Binary exponents of the scales at which a column turns from linear to logarithmic.
EXPONENTS = (-24, -16, -8, -4, 0, 4, 8)
# Typical numbers at which hyperplanes pass: 2^(u + tau N). u is common to columns, and as often
# this number times a Cauchy variable as times a normal one.
_SPREAD = 8.0
# Largest size of u.
_FARTHEST = 60.0
# Probability of a negative sign.
_NEGATIVE = 0.15
_TAUS = (0.0, 2.0, 5.0)
_BLOCK_CELLS = 2**18


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
        return max(1, min(self._n_of_a_scale, _BLOCK_CELLS // self.n_columns))

    @property
    def blocks(self) -> tuple[tuple[int, int, int], ...]:
        """Scale, number and width of every block; blocks of the same scale are adjacent."""
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


# More are refused: they would take minutes and hardly improve on a million.
MOST_DIRECTIONS = 10**6
# Norms of integer rows and of integer directions: 4095 * 2047 < 2^24, up to which float32
# holds every integer.
ROW_NORM = 4095
_DIRECTION_NORM = 2047
# Rounding would leave too little of directions with more entries.
MOST_COLUMNS = 2**16
_BLOCK_ENTRIES = 2**18  # of directions: 2 MB of float64
# Standard deviation of the common part of all columns, relative to a part of norm one.
_COMMON = 1.0


@dataclass(frozen=True, slots=True)
class DirectionStream:
    """A fixed sequence of integer directions that can be read again, block by block.

    `n_columns` are those of the rows, constant column included; `n_directions` are wanted, and a
    few more or less may come. The public `seed` gives the sequence. `constant` is the value of
    the constant column, which is the last, before rows are normalised. Directions are uniform on
    the sphere if `spherical`, as behind a random projection, where columns have no meaning;
    otherwise they favour few columns, and columns that agree. A released `centre` is looked
    round, up to the distance `radius` from its unit vector before normalising. `largest_entry` is
    that of a lattice; 0 for random directions.
    """

    n_columns: int
    n_directions: int
    seed: tuple[int, ...]
    constant: float | None = None
    spherical: bool = False
    centre: FloatArray | None = None
    radius: float = 0.0
    largest_entry: int = 0

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
        if self.largest_entry:
            return int((2 * self.largest_entry + 1) ** self.n_columns - 1) // 2
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
        if self.largest_entry:
            return _lattice(lo, hi, self.n_columns, self.largest_entry)
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


def lattice_entry(n_columns: int, n_directions: int) -> int:
    """Return the largest ``m`` for which ``{-m, ..., m}^n_columns`` has at most so many points."""
    # The norm of its points must stay below that of all directions.
    most = int(_DIRECTION_NORM / math.sqrt(n_columns))
    largest_entry = 0
    # The first test spares a huge power.
    while (
        largest_entry < most
        and n_columns < 64
        and (2 * largest_entry + 3) ** n_columns <= n_directions
    ):
        largest_entry += 1
    return largest_entry


def _lattice(lo: int, hi: int, n_columns: int, largest_entry: int) -> NDArray[np.float32]:
    """Return the lattice points number `lo` to `hi` behind the origin that lead their ray."""
    base = 2 * largest_entry + 1
    # Digits in this base, the highest first: behind the middle the first nonzero is positive.
    rest = np.arange(lo, hi, dtype=np.int64) + (base**n_columns - 1) // 2 + 1
    points = np.empty((n_columns, hi - lo), dtype=np.int64)
    for j in range(n_columns - 1, -1, -1):
        rest, points[j] = np.divmod(rest, base)
    points -= largest_entry
    return points[:, np.gcd.reduce(points, axis=0) == 1].astype(np.float32)


IntArray: TypeAlias = NDArray[np.int64]

_TILE_ROWS = 255  # so many ones fit into a byte
_TILE_COLUMNS = 1024
_READ_ROWS = 1024
_KEPT_BYTES = 2**26  # of integer rows
# Public weights of the two classes are rounded to multiples of 2^-16.
WEIGHT_BITS = 16
# What is left of a margin behind a projection and a net, in the published algorithm.
_SHARE = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class IntegerRows:
    """Normalised rows, each rounded to integers; all are `kept`, or computed when needed."""

    rows: Rows
    kept: NDArray[np.float32] | None

    def __getitem__(self, index: NDArray[np.intp]) -> NDArray[np.float32]:
        """Return the rows with these numbers."""
        return _integers(self.rows, index) if self.kept is None else self.kept[index]


def integer_rows(rows: Rows) -> IntegerRows:
    """Round normalised rows to integers of norm at most 4095, and keep them if they fit."""
    n, size = rows.shape
    if 4 * n * size > _KEPT_BYTES:
        return IntegerRows(rows, None)
    kept = np.empty((n, size), dtype=np.float32)
    for lo in range(0, n, _READ_ROWS):
        index = np.arange(lo, min(lo + _READ_ROWS, n))
        kept[index] = _integers(rows, index)
    return IntegerRows(rows, kept)


def _integers(rows: Rows, index: NDArray[np.intp]) -> NDArray[np.float32]:
    """Round some rows to integers, each independently."""
    values = rows.dense(index)
    values *= integer_norm(ROW_NORM, values.shape[1])
    np.rint(values, out=values)
    # Exact where it is within the bound, and it certifies that it is.
    squares = np.einsum("ij,ij->i", values, values)
    values[~(squares <= ROW_NORM**2)] = 0.0
    return values.astype(np.float32)


def open_records(
    stream: DirectionStream, rows: IntegerRows, index: NDArray[np.intp]
) -> tuple[NDArray[np.intp], int]:
    """Set records aside on which all directions of a stream agree.

    Returns the numbers of the others among `index`, and how many of those set aside have a
    negative score, for every direction: ``docs/proofs/pure_halfspace.md``, section 3.
    """
    if stream.centre is None:
        return index, 0
    # How far a direction may be from the ray of the centre, roundings included.
    rounding = (1.0 + stream.radius) * (math.sqrt(stream.n_columns) / 2.0 + 1.0) / stream.length
    farthest = (stream.radius + rounding) * float(np.linalg.norm(stream.centre)) * WIDE_UP
    undecided, n_negative = [index[:0]], 0
    for lo in range(0, len(index), _READ_ROWS):
        part = index[lo : lo + _READ_ROWS]
        integers = rows[part].astype(np.float64)
        score = integers @ stream.centre
        settled = np.abs(score) > farthest * np.sqrt(np.einsum("ij,ij->i", integers, integers))
        n_negative += int(np.count_nonzero(score[settled] < 0.0))
        undecided.append(part[~settled])
    return np.concatenate(undecided), n_negative


def counts_below(
    directions: NDArray[np.float32],
    rows: IntegerRows | NDArray[np.float32],
    index: NDArray[np.intp],
    limits: NDArray[np.float32],
) -> IntArray:
    """Count the records whose score is below each limit, exactly, for every direction.

    `rows` and `directions` are integers with exact products, such as those of `integer_rows` and
    `DirectionStream.block`; `limits` of shape (L, m) are integers, and so
    many counts of the records with the numbers `index` are returned.
    """
    width = directions.shape[1]
    counts = np.zeros(limits.shape, dtype=np.int64)
    tile = (min(_TILE_ROWS, len(index)), min(_TILE_COLUMNS, width))
    products = np.empty(tile, dtype=np.float32)
    below = np.empty(tile, dtype=np.bool_)
    for start in range(0, len(index), _TILE_ROWS):
        integers = rows[index[start : start + _TILE_ROWS]]
        for lo in range(0, width, _TILE_COLUMNS):
            part = np.s_[lo : lo + _TILE_COLUMNS]
            shape = np.s_[: len(integers), : min(_TILE_COLUMNS, width - lo)]
            np.matmul(integers, directions[:, part], out=products[shape])
            for count, limit in zip(counts, limits, strict=True):
                np.less(products[shape], limit[part], out=below[shape])
                count[part] += below[shape].view(np.uint8).sum(axis=0, dtype=np.uint8)
    return counts


def class_factors(weights: FloatArray) -> IntArray:
    """Round public weights of classes, at most one, to multiples of ``2^-16``; return integers."""
    return np.rint(np.clip(weights, 0.0, 1.0) * 2.0**WEIGHT_BITS).astype(np.int64)


def scores(
    counts: tuple[IntArray, ...], sizes: tuple[int, ...], weights: FloatArray, *, paired: bool
) -> IntArray:
    """Return the weighted number of errors of every candidate of a block, rounded down.

    `counts` are the errors on the records of each class, of which there are `sizes`; if `paired`,
    the opposite directions follow. From 0 to the number of records; replacing a record changes an
    entry by one at most, because the public class weights are at most one.
    """
    factors = class_factors(weights)
    total = factors @ np.stack(counts)
    if paired:
        total = np.concatenate([total, factors @ np.array(sizes) - total])
    return np.asarray(total >> WEIGHT_BITS)


def margin_limits(directions: NDArray[np.float32], margin: float) -> NDArray[np.float32]:
    """Return the integer score from which on a record does not count, for every direction.

    It is at least 1, so a score of zero counts for either label: a tenth of the public `margin` of
    normalised rows times the norms of direction and integer row. With ``margin=0`` errors count.
    """
    # Sums of squared integers up to 2047^2 are exact in any order.
    norms = np.sqrt(np.square(directions, dtype=np.float64).sum(axis=0))
    limits = np.rint(_SHARE * margin * integer_norm(ROW_NORM, len(directions)) * norms)
    return np.asarray(np.maximum(limits, 1.0), dtype=np.float32)


def margin_costs(
    directions: NDArray[np.float32],
    rows: IntegerRows,
    members: tuple[NDArray[np.intp], ...],
    weights: FloatArray,
    margin: float,
    *,
    paired: bool,
    settled: tuple[tuple[int, int], ...] = ((0, 0), (0, 0)),
) -> IntArray:
    """Return the weighted number of records whose margin is below a tenth of `margin`.

    `members` are the numbers of the records of either class; a positive score predicts the
    second. `settled` says of how many further records of each class all scores are negative, and
    of how many they are positive: see `open_records`. The rest is as in `scores`.
    """
    limits = margin_limits(directions, margin)
    # Scores are integers: above minus the limit is what is not below the next one.
    edges = np.stack([limits, 1.0 - limits])
    first, second = (
        counts_below(directions, rows, index, edges) + negative
        for index, (negative, _) in zip(members, settled, strict=True)
    )
    sizes = len(members[0]) + sum(settled[0]), len(members[1]) + sum(settled[1])
    costs = [scores((sizes[0] - first[1], second[0]), sizes, weights, paired=False)]
    if paired:
        costs.append(scores((first[0], sizes[1] - second[1]), sizes, weights, paired=False))
    return np.concatenate(costs)
