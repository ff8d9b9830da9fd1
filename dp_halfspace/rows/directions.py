"""Public streams of integer classifiers, and the number of records that each misclassifies.

There are two kinds. *Cells*: a number is mapped to a cell of the inverse hyperbolic sine, which is
linear near zero and logarithmic beyond, so an unknown column scale becomes an offset. Cells are
found by comparisons with public boundaries (``docs/proofs/small_tables.md``, sections 2 and 3).
*Directions* are for rows of norm one: each direction and each row is rounded to integers that are
small enough for all sums of products to be exact in float32 (``docs/proofs/pure_halfspace.md``,
sections 2 to 4).

For both kinds, the sign of a score is that of exact arithmetic, in whatever order a library adds. A
score of zero counts as an error for either label, because prediction uses rows that are not
rounded, for which the sign of the score is then unknown. With a known margin, a record counts as an
error if its margin is less than a tenth of the known one: this is the utility of Nguyen, Ullman and
Zakynthinou (2020), Algorithm 2. The limit of the score of a direction is an integer, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._arrays import SingleArray
from dp_halfspace._memory import AT_ONCE, KEPT_BYTES, NUMBER_BYTES, by_blocks
from dp_halfspace._rounding import FAR_UP
from dp_halfspace.rows.blocks import FloatArray
from dp_halfspace.rows.rows import Rows

# Number of cells for each unit of asinh.
PER_UNIT = 256
# The largest cell on either side of zero.
LARGEST_CELL = 64 * 256
# Largest sum of absolute coefficients: 1000 * 16384 < 2^24, up to which float32 holds every
# integer.
LARGEST_SUM = 1000
# A classifier with a threshold beyond this one is constant.
_LARGEST_THRESHOLD = 2**24 - 1
# Binary exponents of the scales at which cells change from linear to logarithmic.
EXPONENTS = (-24, -16, -8, -4, 0, 4, 8)
# A hyperplane crosses the axis of a column at about 2^(u + tau N). The number u is shared by all
# columns: with equal probability it is this constant times a Cauchy or times a normal variable.
_SPREAD = 8.0
# Largest size of u.
_FARTHEST = 60.0
# Probability of a negative sign.
_NEGATIVE = 0.15
_TAUS = (0.0, 2.0, 5.0)
# Product of the numbers of candidates and rows of a selection, so that it takes seconds.
WORK = 1e9
# Smallest number of candidates, for many rows or classes.
FEWEST = 1_000
# Coefficients of a block, of which each is drawn anew: 2 MB of float64.
_BLOCK_ENTRIES = 2**18


@cache
def _ends() -> FloatArray:
    """Return the lower boundaries of the cells, from the first one above zero."""
    return np.sinh((np.arange(1, LARGEST_CELL + 1) - 0.5) / PER_UNIT)


def asinh_cells(X: NDArray[Any], exponent: int) -> SingleArray:
    """Return ``rint(256 clip(asinh(x 2^-exponent), -64, 64))``, zero for a missing entry.

    The results are integers. They are found by comparisons, so each is a function of its own entry,
    bit for bit.
    """
    with np.errstate(all="ignore"):
        scaled = np.ldexp(np.nan_to_num(np.asarray(X, dtype=np.float64)), -exponent)
    cells = np.searchsorted(_ends(), np.abs(scaled), side="left").astype(np.float32)
    return np.where(scaled < 0.0, -cells, cells)


@dataclass(frozen=True, slots=True)
class CellStream:
    """A fixed sequence of linear classifiers of cells and of their negatives, in blocks.

    Each block has one scale of `exponents`, and ``n_candidates`` are divided among the scales. The
    public `seed` determines the sequence.
    """

    n_columns: int
    n_candidates: int
    seed: tuple[int, ...]
    exponents: tuple[int, ...] = EXPONENTS

    @property
    def blocks(self) -> tuple[tuple[int, int, int], ...]:
        """Scale, number and width of every block; blocks of the same scale are adjacent."""
        n = max(1, round(self.n_candidates / (2 * max(1, len(self.exponents)))))
        width = max(1, min(n, _BLOCK_ENTRIES // self.n_columns))
        return tuple(
            (exponent, lo // width, min(width, n - lo))
            for exponent in self.exponents
            for lo in range(0, n, width)
        )

    def block(self, exponent: int, number: int, width: int) -> tuple[SingleArray, SingleArray]:
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
        # Sums are taken row by row, because a library may choose the order of its own sums.
        total = sum(map(np.abs, found), np.zeros(width))
        # Rounding adds at most one half to each coefficient.
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
        threshold = np.rint(PER_UNIT * sum(found * typical, np.zeros(width)))
        np.clip(threshold, -_LARGEST_THRESHOLD, _LARGEST_THRESHOLD, out=threshold)
        return found.astype(np.float32), threshold.astype(np.float32)

    def read(self, X: NDArray[Any]) -> Iterator[tuple[SingleArray, ...]]:
        """Yield the cells of rows, coefficients and thresholds of every block, in their order."""
        for exponent, places in groupby(self.blocks, lambda place: place[0]):
            table = asinh_cells(X, exponent)
            for place in places:
                yield table, *self.block(*place)


# Norms of integer rows and of integer directions: 4095 * 2047 < 2^24, and float32 represents every
# integer up to 2^24.
ROW_NORM = 4095
_DIRECTION_NORM = 2047
# Largest number of columns; with more, rounding would make too many entries zero.
MOST_COLUMNS = 2**16


@dataclass(frozen=True, slots=True)
class DirectionStream:
    """A fixed sequence of integer directions that can be read again, block by block.

    `n_columns` counts the columns of the rows with the constant column. About `n_directions`
    directions are produced. The public `seed` determines the sequence. `constant` is the value of
    the constant column, which is the last one, before rows are normalised. If `spherical`,
    directions are uniform on the sphere; this suits rows after a random projection, whose columns
    have no meaning. Otherwise directions with few nonzero columns, and with equal signs, are more
    frequent. With a released `centre`, directions are at most `radius` from its unit vector before
    they are normalised.
    """

    n_columns: int
    n_directions: int
    seed: tuple[int, ...]
    constant: float | None = None
    spherical: bool = False
    centre: FloatArray | None = None
    radius: float = 0.0

    @property
    def paired(self) -> bool:
        """Whether the negative of every direction of a block is a candidate, too."""
        return self.centre is None

    @property
    def length(self) -> float:
        """Norm of the directions before they are rounded to integers."""
        return integer_norm(_DIRECTION_NORM, self.n_columns)

    @property
    def _widths(self) -> list[int]:
        """Number of directions of every block that are drawn, a function of public numbers."""
        n_drawn = -(-self.n_directions // 2) if self.paired else self.n_directions
        width = max(1, min(n_drawn, _BLOCK_ENTRIES // self.n_columns))
        return [min(width, n_drawn - lo) for lo in range(0, n_drawn, width)]

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self._widths)

    @property
    def lengths(self) -> list[int]:
        """Number of candidates of every block."""
        return [(2 if self.paired else 1) * width for width in self._widths]

    def block(self, number: int) -> SingleArray:
        """Return one block of directions as columns; repeated calls return the same block.

        The entries are integers, and norms are at most 2047.
        """
        source = np.random.SeedSequence(self.seed, spawn_key=(number,))
        rng = np.random.Generator(np.random.PCG64(source))
        shape = self.n_columns, self._widths[number]
        normal = rng.standard_normal(shape, dtype=np.float32)
        if self.centre is not None:
            found = unit_length(normal) * self.radius + unit_length(self.centre[:, None])
        elif self.spherical:
            found = unit_length(normal)
        else:
            found = _plausible(normal, self.constant, rng)
        found = unit_length(found)
        found *= self.length
        return np.rint(found).astype(np.float32)


def located(number: int, lengths: Sequence[int]) -> tuple[int, int]:
    """Return the block of a candidate of a list, and its place in the block."""
    ends = np.cumsum(lengths)
    block = int(np.searchsorted(ends, number, side="right"))
    return block, number - int(ends[block]) + lengths[block]


def _plausible(normal: SingleArray, constant: float | None, rng: np.random.Generator) -> FloatArray:
    """Transform spherical directions into ones that are more plausible for measurements.

    The number of columns with a coefficient of their own is log-uniform. A part that all columns
    share is added, and the hyperplane passes through a random point of the diagonal, between the
    origin and a row with equal columns.
    """
    n_columns, width = normal.shape
    n_features = n_columns - (constant is not None)
    share = float(n_features) ** (rng.random(width) - 1.0)
    kept = rng.random((n_features, width), dtype=np.float32) < share
    kept[rng.integers(n_features, size=width), np.arange(width)] = True
    # The part that all columns share is about as large as the other one, of norm one.
    common = rng.standard_normal(width)
    height = rng.random(width)
    root = math.sqrt(n_features)
    found = np.zeros((n_columns, width))
    found[:n_features] = unit_length(normal[:n_features] * kept) + common / root
    if constant is not None:
        # Sums are taken row by row, as in `unit_length`.
        found[n_features] = -sum(found[:n_features], np.zeros(width))
        found[n_features] *= height / (root * constant)
    return found


def unit_length(columns: NDArray[np.floating]) -> FloatArray:
    """Divide every column by its norm; the result does not depend on the memory address."""
    out = columns.astype(np.float64)
    # Sums are taken row by row, because a library's order of summation may depend on the address of
    # the array.
    norms = np.sqrt(sum(np.square(out), np.zeros(out.shape[1])))
    out /= np.where(norms > 0.0, norms, 1.0)
    return out


def integer_norm(largest: int, n_columns: int) -> float:
    """Return a norm that rounding to integers raises to at most `largest`."""
    return max(largest - 1.0 - math.sqrt(n_columns) / 2.0, 0.0)


IntArray: TypeAlias = NDArray[np.int64]

# Rows of a tile: so many ones fit into a byte.
TILE_ROWS = np.iinfo(np.uint8).max
# Public weights of the two classes are rounded to multiples of 2^-16.
WEIGHT_BITS = 16
# Fraction of the margin that remains after a projection and a net in the published algorithm.
_SHARE = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class IntegerRows:
    """Normalised rows, rounded to integers one by one: all are `kept`, or computed when needed."""

    rows: Rows
    kept: SingleArray | None

    def __getitem__(self, index: NDArray[np.intp]) -> SingleArray:
        """Return the rows with these numbers."""
        return _integers(self.rows, index) if self.kept is None else self.kept[index]


def integer_rows(rows: Rows) -> IntegerRows:
    """Round normalised rows to integers of norm at most 4095, and keep them if they fit."""
    n, size = rows.shape
    if 4 * n * size > KEPT_BYTES:
        return IntegerRows(rows, None)
    kept = by_blocks(partial(_integers, rows), np.arange(n), NUMBER_BYTES * size)
    return IntegerRows(rows, kept)


def _integers(rows: Rows, index: NDArray[np.intp]) -> SingleArray:
    """Round some rows to integers, each independently."""
    values = rows.dense(index)
    values *= integer_norm(ROW_NORM, values.shape[1])
    np.rint(values, out=values)
    # The computed sum of squares is exact if it is within the bound, which the comparison proves.
    squares = np.einsum("ij,ij->i", values, values)
    values[~(squares <= ROW_NORM**2)] = 0.0
    return values.astype(np.float32)


def open_records(
    stream: DirectionStream, rows: IntegerRows, index: NDArray[np.intp]
) -> tuple[NDArray[np.intp], tuple[int, int]]:
    """Separate the records on which all directions of a stream agree.

    The result holds the indices of the other records among `index`, and for every direction the
    numbers of separated records with a negative and with a positive score:
    ``docs/proofs/pure_halfspace.md``, section 3.
    """
    if stream.centre is None:
        return index, (0, 0)
    # Largest distance of a direction from the ray of the centre, with rounding errors.
    rounding = (1.0 + stream.radius) * (math.sqrt(stream.n_columns) / 2.0 + 1.0) / stream.length
    farthest = (stream.radius + rounding) * float(np.linalg.norm(stream.centre)) * FAR_UP
    undecided, n_negative = [index[:0]], 0
    for lo in range(0, len(index), AT_ONCE):
        part = index[lo : lo + AT_ONCE]
        integers = rows[part].astype(np.float64)
        score = integers @ stream.centre
        settled = np.abs(score) > farthest * np.sqrt(np.einsum("ij,ij->i", integers, integers))
        n_negative += int(np.count_nonzero(score[settled] < 0.0))
        undecided.append(part[~settled])
    kept = np.concatenate(undecided)
    return kept, (n_negative, len(index) - len(kept) - n_negative)


def counts_below(
    directions: SingleArray,
    rows: IntegerRows | SingleArray,
    index: NDArray[np.intp],
    limits: SingleArray,
) -> IntArray:
    """Count for every direction, exactly, the records whose score is below each limit.

    `rows` and `directions` are integers with exact products, such as those of `integer_rows` and
    `DirectionStream.block`; `limits` of shape (L, m) are integers. Counts of the same shape are
    returned for the records `index`.
    """
    width = directions.shape[1]
    counts = np.zeros(limits.shape, dtype=np.int64)
    tile = (min(TILE_ROWS, len(index)), min(AT_ONCE, width))
    products = np.empty(tile, dtype=np.float32)
    below = np.empty(tile, dtype=np.bool_)
    for start in range(0, len(index), TILE_ROWS):
        integers = rows[index[start : start + TILE_ROWS]]
        for lo in range(0, width, AT_ONCE):
            part = np.s_[lo : lo + AT_ONCE]
            shape = np.s_[: len(integers), : min(AT_ONCE, width - lo)]
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
    """Return the weighted number of errors of each candidate of a block, rounded down.

    `counts` are the errors on the records of each class, and `sizes` the numbers of these records.
    If `paired`, the negated directions follow. Results are between 0 and the number of records.
    Replacing a record changes an entry by at most one, because the public class weights are at most
    one.
    """
    factors = class_factors(weights)
    total = factors @ np.stack(counts)
    if paired:
        total = np.concatenate([total, factors @ np.array(sizes) - total])
    return np.asarray(total >> WEIGHT_BITS)


def margin_limits(directions: SingleArray, margin: float) -> SingleArray:
    """Return for every direction the integer score from which on a record is no error.

    The limit is a tenth of the public `margin` of normalised rows, times the norms of the direction
    and of an integer row. It is at least 1, so a score of zero counts as an error for either label.
    With ``margin=0`` only misclassified records count.
    """
    # Sums of squared integers are exact in any order up to 2047^2.
    norms = np.sqrt(np.square(directions, dtype=np.float64).sum(axis=0))
    limits = np.rint(_SHARE * margin * integer_norm(ROW_NORM, len(directions)) * norms)
    return np.asarray(np.maximum(limits, 1.0), dtype=np.float32)


def margin_costs(
    directions: SingleArray,
    rows: IntegerRows,
    members: Sequence[NDArray[np.intp]],
    weights: FloatArray,
    margin: float,
    *,
    paired: bool,
    settled: Sequence[tuple[int, int]] = ((0, 0), (0, 0)),
) -> IntArray:
    """Return the weighted number of records with a margin below a tenth of `margin`.

    `members` are the indices of the records of either class; a positive score predicts the second
    one. `settled` counts further records of each class, those with negative and those with positive
    scores only: see `open_records`. Everything else is as in `scores`.
    """
    limits = margin_limits(directions, margin)
    # Scores are integers, so a score above minus the limit is not below the next integer.
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
