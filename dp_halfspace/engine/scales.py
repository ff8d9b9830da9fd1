"""Centre and width of every column within a small part of a budget.

First, the width of each column is estimated from a noisy histogram with powers of two as borders of
its cells (octaves). Columns that are narrow compared with their distance from zero get a second
histogram, with equal cells around their centre. Two noisy moments of the columns in these scales,
clipped, correct both numbers. All sums are of integers, or of weights on a grid, and so exact in
any order. The bounds are proved in ``docs/proofs/column_scales.md``; ``docs/column_scales.md`` has
the evidence for the constants.

Widths are estimated from the noisy counts by their likelihood (post-processing). The model of a
column is a multiple of one of a few dozen distributions (normal at several distances from zero,
uniform, exponential, lognormal, mostly zero, binary; either sign). Columns of one table tend to
have similar widths, so the prior over octaves of width is estimated from all columns together.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, softmax

from dp_halfspace._memory import CACHED_NUMBERS, refuse_beyond_memory
from dp_halfspace._rounding import TINY, UP
from dp_halfspace.data.chunks import Chunks, sum_over_chunks
from dp_halfspace.data.people import People
from dp_halfspace.engine.release import Release, released, run
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.door import Door
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.mechanisms import AnyNoise, noise_deviation
from dp_halfspace.privacy.noise import DiscreteLaplaceNoise
from dp_halfspace.rows.blocks import FloatArray

# Number of octaves [2^k, 2^(k+1)) on both sides of zero, half of them below one; smaller absolute
# values count as zero.
N_OCTAVES = 240
# Number of equally likely points that represent a distribution.
_POINTS = 2000
# Number of octaves above and below its width that a distribution may extend to.
_OCTAVES = 16
# No column has exactly one of these distributions. So a deviation by this share of the rows is
# allowed in addition to the noise, in octaves and in equal cells.
_MISFIT = 0.1
_CELL_MISFIT = 0.01
# The first prior over the octave of a width is a Cauchy distribution around a width of one, with
# this half width in octaves.
_PRIOR_OCTAVES = 8.0
# Number of columns that have as much weight as the first prior when the prior is estimated.
_PRIOR_COLUMNS = 4.0
# Iterations that estimate the prior from all columns.
_ROUNDS = 6
# Number of bytes for each column: likelihoods of all distributions in all octaves, and counts.
_COLUMN_BYTES = 80_000
# Ratio of mean to standard deviation from which on a column is narrow and is counted again.
_NARROW = 8.0


@dataclass(frozen=True, slots=True)
class _Shapes:
    """Distributions of a width in [1, 2), by their probabilities of octaves of either sign.

    `zero` is the probability of zero, `octave` the binary logarithm of the width.
    """

    masses: NDArray[np.float32]  # (n_shapes, 2, 2 * _OCTAVES)
    zero: NDArray[np.float32]
    mean: FloatArray
    octave: FloatArray


@dataclass(frozen=True, slots=True)
class NoiseDistribution:
    """Distribution of the noise in a count: Gaussian or Laplace."""

    deviation: float
    is_laplace: bool

    def gain(self, found: Any, expected: Any) -> Any:
        """Return the log likelihood ratio of expected counts to empty cells, cell by cell."""
        if self.is_laplace:
            # This is (|found| - |found - expected|) / scale.
            nearer = np.minimum(np.maximum(found, 0.0), expected)
            return (2.0 * nearer - expected) * (math.sqrt(2.0) / self.deviation)
        return (found - expected / 2.0) * expected / self.deviation**2


def _quantiles() -> Iterator[FloatArray]:
    """Yield each distribution as equally likely points, in any unit."""
    levels = (np.arange(_POINTS) + 0.5) / _POINTS
    normal = ndtri(levels)
    yield from (normal + distance for distance in (0, 1, 2, 4, 8, 16))
    yield from (levels, -np.log(levels))
    yield from (np.exp(spread * normal) for spread in (0.5, 1, 2, 3))
    both_signs = np.where(np.arange(_POINTS) % 2, 1.0, -1.0)
    yield from (np.exp(spread * normal) * both_signs for spread in (1, 2))
    for zeros in (0.5, 0.9, 0.98):
        kept = ndtri(levels[: _POINTS - round(zeros * _POINTS)] / (1.0 - zeros))
        yield np.concatenate([np.zeros(_POINTS - len(kept)), np.exp(kept)])
        yield np.where(levels < zeros, 0.0, 1.0)
    yield np.where(levels < 0.1, 0.0, 1.0)


@functools.lru_cache(maxsize=1)
def _shapes() -> _Shapes:
    """Divide every distribution, with width 1 and with width sqrt(2), into octaves."""
    masses, zero, mean, octave = [], [], [], []
    for quantiles in _quantiles():
        points = quantiles / quantiles.std()
        symmetric = abs(float(points.mean())) < 1e-6
        for scale in (1.0, math.sqrt(2.0)):
            for sign in (1.0,) if symmetric else (1.0, -1.0):
                scaled = sign * scale * points
                nonzero = scaled[scaled != 0.0]
                place = np.floor(np.log2(np.abs(nonzero))).astype(np.intp)
                place = np.clip(place, -_OCTAVES, _OCTAVES - 1) + _OCTAVES
                mass = np.zeros((2, 2 * _OCTAVES))
                np.add.at(mass, ((nonzero < 0).astype(np.intp), place), 1.0 / _POINTS)
                masses.append(mass)
                zero.append(1.0 - len(nonzero) / _POINTS)
                mean.append(float(scaled.mean()))
                octave.append(math.log2(scale))
    return _Shapes(
        np.array(masses, dtype=np.float32),
        np.array(zero, dtype=np.float32),
        np.array(mean),
        np.array(octave),
    )


def match_octaves(
    counts: FloatArray, n_samples: int, distribution: NoiseDistribution
) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """Estimate centre and width of each column from noisy counts in octaves.

    Also return whether each column is probably narrow compared with its distance from zero: one or
    two octaves hold all of it then, so that they do not determine the width.
    """
    shapes, shares = _shapes(), counts / n_samples
    deviation = math.hypot(distribution.deviation / n_samples, _MISFIT)
    distribution = replace(distribution, deviation=deviation)
    likelihood = np.empty((len(counts), N_OCTAVES + 1, len(shapes.mean)), dtype=np.float32)
    evidence = np.empty(likelihood.shape[:2], dtype=np.float32)
    for lo in range(0, len(shares), _COLUMNS_AT_ONCE):
        part = slice(lo, lo + _COLUMNS_AT_ONCE)
        found = likelihood[part] = _log_likelihood(shares[part], distribution, shapes)
        best = found.max(axis=2)
        probabilities = np.exp(np.subtract(found, best[:, :, None], out=found), out=found)
        evidence[part] = best + np.log(probabilities.sum(axis=2))
    octaves = _pool_octaves(evidence)
    median = (np.cumsum(octaves, axis=1) < 0.5).sum(axis=1)
    # Only the median octave and its neighbours enter the mean: all others would make it depend on
    # improbable outliers.
    near = np.clip(median[:, None] + np.arange(-1, 2), 0, N_OCTAVES)
    rows = np.arange(len(counts))[:, None]
    probabilities = octaves[rows, near][:, :, None] * softmax(likelihood[rows, near], axis=2)
    probabilities /= probabilities.sum(axis=(1, 2), keepdims=True)
    octave = near - N_OCTAVES // 2
    logarithm = (probabilities.sum(axis=2) * octave).sum(axis=1)
    logarithm += probabilities.sum(axis=1) @ shapes.octave
    center = ((probabilities @ shapes.mean) * np.ldexp(1.0, octave)).sum(axis=1)
    far = np.abs(shapes.mean) >= _NARROW * 2.0**shapes.octave
    return center, 2.0**logarithm, probabilities[:, :, far].sum(axis=(1, 2)) > 0.5


def _log_likelihood(
    shares: FloatArray, distribution: NoiseDistribution, shapes: _Shapes
) -> FloatArray:
    """Return log likelihoods of every distribution with a width in every octave, by column."""
    sides = np.stack([shares[:, N_OCTAVES + 1 :], shares[:, N_OCTAVES - 1 :: -1]], axis=1)
    padded = np.pad(sides.astype(np.float32), ((0, 0), (0, 0), (_OCTAVES, _OCTAVES)))
    zeros = shares[:, N_OCTAVES].astype(np.float32)
    if distribution.is_laplace:
        zero = distribution.gain(zeros[:, None], shapes.zero[:, None, None])
        found = np.repeat(zero, N_OCTAVES + 1, axis=2)
        for shape, side, cell in np.argwhere(shapes.masses).tolist():
            window = padded[:, side, cell : cell + N_OCTAVES + 1]
            found[shape] += distribution.gain(window, shapes.masses[shape, side, cell])
        return found.transpose(1, 2, 0)
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * _OCTAVES, axis=2)
    found = np.tensordot(windows, shapes.masses, axes=((1, 3), (1, 2)))
    found += np.multiply.outer(zeros, shapes.zero)[:, None, :]
    found -= ((shapes.masses**2).sum(axis=(1, 2)) + shapes.zero**2) / 2.0
    found /= np.float32(distribution.deviation**2)
    return np.asarray(found)


def _pool_octaves(evidence: FloatArray) -> FloatArray:
    """Return posterior probabilities of the octave of each width; all columns share a prior."""
    octave = np.arange(evidence.shape[1]) - N_OCTAVES // 2
    first = 1.0 / (1.0 + (octave / _PRIOR_OCTAVES) ** 2)
    first /= first.sum()
    prior = first
    for _ in range(_ROUNDS):
        probabilities = softmax(evidence + np.log(prior), axis=1)
        found = probabilities.sum(axis=0) + _PRIOR_COLUMNS * first
        prior = np.convolve(found / found.sum(), [0.25, 0.5, 0.25], "same")
    return np.asarray(probabilities)


def match_linear(
    counts: FloatArray, n_samples: int, distribution: NoiseDistribution, center: float, width: float
) -> tuple[float, float]:
    """Estimate centre and width of a uniform distribution from noisy counts in equal cells.

    All widths and centres are in units of the range. The given `center` and `width` are returned if
    they explain the counts as well.
    """
    n_cells = len(counts)
    deviation = math.hypot(distribution.deviation, _CELL_MISFIT * n_samples)
    distribution = replace(distribution, deviation=deviation)
    logarithms = np.arange(0.0, math.log2(n_cells) - 1.0)
    rows = []
    for size in np.rint(2.0**logarithms).astype(np.intp):
        # Log likelihoods that all rows are in an interval of this size, indexed by its middle cell.
        sums = np.concatenate([[0.0], np.cumsum(distribution.gain(counts, n_samples / size))])
        found = np.full(n_cells, -np.inf)
        found[size // 2 : size // 2 + n_cells - size + 1] = sums[size:] - sums[:-size]
        rows.append(found)
    found = np.array(rows) - math.log(len(rows) * n_cells)
    known = np.diff(ndtr((np.arange(n_cells + 1) / n_cells - center) / width))
    largest = float(found.max())
    probabilities = np.exp(found - largest)
    kept = distribution.gain(counts, n_samples * known).sum()
    if largest + math.log(probabilities.sum()) <= kept:
        return center, width
    by_length = np.cumsum(probabilities.sum(axis=1))
    middle = int((by_length < 0.5 * by_length[-1]).sum())
    near = slice(max(middle - 1, 0), middle + 2)
    probabilities = probabilities[near] / probabilities[near].sum()
    places = (np.arange(n_cells) + 0.5) / n_cells
    length = 2.0 ** float(probabilities.sum(axis=1) @ logarithms[near]) / n_cells
    return float(probabilities.sum(axis=0) @ places), length / math.sqrt(12.0)


# Largest absolute value of an entry in column scales.
CLIP = 4.0
# Number of columns whose cells are counted, and matched with distributions, at a time.
_COLUMNS_AT_ONCE = 32
# Number of signs and exponents of float32, each of which has a cell before exponents outside the
# octaves are merged. The next cell is that of missing entries.
_MISSING = 512
# Shares of mu^2, or of a pure epsilon, for octaves, for cells of narrow columns, and for moments.
_PARTS = (0.65, 0.15, 0.2)
# Least and largest number of equal cells of a narrow column, powers of two, and their range in
# units of its centre.
_N_CELLS = (32, 4096)
_RANGE = (0.4, 1.6)
# Entries of the moments are rounded to multiples of 2^-10, so that their sums are exact.
_GRID = 1024.0
# Factor of the squares: 3/2 is small enough for the sensitivity 2 sqrt(d) of both moments together
# (docs/proofs/column_scales.md, Lemma 2).
_SQUARE_WEIGHT = 1.5
# Expected variance of the corrections by the moments, of a centre over its scale and of a mean
# square. A correction is shrunk according to the ratio of its noise to this variance.
_CORRECTION_VARIANCE = 0.2
# Least factor that corrects the square of a scale.
_SMALLEST_SQUARE = 0.03
# What the releases of the scales ask for, in words.
SCALES = "column scales"
# Share of mu^2 for scales.
SHARE = 0.08
# Below this n mu / sqrt(d) the noise hides the scales of most columns, and none are released.
_LEAST_STRENGTH = 8.0
# The same for pure DP: share of epsilon, and n epsilon / d below which no scales are released.
_PURE_SHARE = 0.25
LEAST_PURE_STRENGTH = 120.0


@dataclass(frozen=True, slots=True, eq=False)
class ColumnScales:
    """Released centre and width of every column, each of shape (n_features,)."""

    center: FloatArray
    scale: FloatArray


@dataclass(frozen=True, slots=True)
class KnownScales:
    """What is known of the columns: their scales so far, and which columns are narrow."""

    scales: ColumnScales | None = None
    narrow: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))


class Columns(NamedTuple):
    """The rows of a matrix, which may belong to people."""

    X: Any
    people: People | None


def in_column_scales(
    X: Any, scales: ColumnScales, clip: float = CLIP, kind: type = np.float64
) -> Any:
    """Return ``(x - center) / scale``, clipped, as an array of the dtype `kind`.

    A missing entry becomes 0. Each entry of the result is a function of the same entry of `X` and
    of what was released.
    """
    if isinstance(X, Chunks):
        return X.each(in_column_scales, scales, clip, kind)
    Z = np.empty(X.shape, dtype=kind)
    step = max(1, min(len(X), CACHED_NUMBERS // max(1, X.shape[1])))
    work = np.empty((step, X.shape[1]))
    # Repeated to full blocks, because broadcasting along short rows is slow.
    center, scale = np.tile(scales.center, (step, 1)), np.tile(scales.scale, (step, 1))
    for lo in range(0, len(X), step):
        block = work[: len(X) - lo]
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            np.copyto(block, X[lo : lo + step])
            block -= center[: len(block)]
            block /= scale[: len(block)]
            np.clip(block, -clip, clip, out=block)
            block[np.isnan(block)] = 0.0
            Z[lo : lo + step] = block
    return Z


def affordable_scales(
    n_samples: int, n_features: int, budget: Budget
) -> tuple[ColumnScalesPlan, Budget] | None:
    """Plan column scales within a part of a budget; return the remaining budget, too.

    Return None if there are so few records or so many columns that scales cost more than they gain.
    """
    if budget.is_pure:
        share, strength, least = _PURE_SHARE, budget.epsilon, LEAST_PURE_STRENGTH * n_features
    else:
        share, strength, least = SHARE, budget.mu, _LEAST_STRENGTH * math.sqrt(n_features)
    if n_samples * strength < least:
        return None
    part, rest = budget.split(share)
    return plan_column_scales(n_samples, n_features, part), rest


@dataclass(frozen=True, slots=True)
class ColumnScalesPlan:
    """The public numbers of a release of scales.

    Attributes
    ----------
    octaves, moments : AnyNoise
        Noise of the first counts of all columns, and of their moments.
    cells : Budget
        Budget of the counts of narrow columns; their noise depends on how many there are.
    events : tuple of Event
        What a run releases, whatever the number of narrow columns.
    """

    n_samples: int
    octaves: AnyNoise
    cells: Budget
    moments: AnyNoise
    events: tuple[Event, ...]

    @property
    def public(self) -> dict[str, Any]:
        """Public facts for the record."""
        return {"private_column_scales": True}

    def errors(self, n_columns: int) -> tuple[float, float]:
        """Return the standard errors of a centre and of a width, relative to the width.

        They are those after a correction by the noisy moments, given the expected variances.
        """
        of_mean, of_square = self._variances(n_columns)
        center, square = of_mean * _kept(of_mean), of_square * _kept(of_square)
        return math.sqrt(center), math.sqrt(square) / 2.0

    def _variances(self, n_columns: int) -> tuple[float, float]:
        """Return the variances of the noise in a mean and in a mean square, by the moments."""
        spread = noise_deviation(self.moments, 2 * n_columns) / self.n_samples
        return (CLIP * spread) ** 2, (CLIP**2 / _SQUARE_WEIGHT * spread) ** 2

    def releases(self) -> list[Release[Any]]:
        """Return the releases of centre and width of the columns of a dense matrix with NaN.

        They read the attributes ``X`` and ``people`` of the rows, an array, or an array in chunks.
        With Gaussian noise the rows may belong to people; the plan is then for their number.

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one, of a record or of a person with all rows.
        - Released: two noisy counts and one noisy moment of the columns; centres and widths are
          functions of them.
        - Sensitivity: of the counts of k columns ``sqrt(2 k)``, or ``2 k`` for pure DP; of the
          moments of d columns ``2 sqrt(d)``.
        - Proof: ``docs/proofs/column_scales.md``, sections 1 to 4; ``persons.md``.
        """
        octaves, cells, moments = self.events
        return [
            # 1. Estimate the width of each column from noisy counts in octaves.
            Release(SCALES, octaves, lambda known: self.octaves, _ask_octaves, self._use_octaves),
            # 2. Count columns again whose width is small relative to their distance from zero.
            Release(SCALES, cells, self._noise_of_cells, self._ask_cells, self._use_cells),
            # 3. Correct centres and widths by noisy moments of the clipped columns.
            Release(SCALES, moments, lambda known: self.moments, _ask_moments, self._use_moments),
        ]

    def run(self, door: Door) -> ColumnScales:
        """Make the releases alone, and return the scales."""
        known: KnownScales = run(self.releases(), door, KnownScales())[0]
        return released(known.scales)

    def _use_octaves(self, known: KnownScales, noisy: FloatArray) -> KnownScales:
        distribution = NoiseDistribution(noise_deviation(self.octaves), self.cells.is_pure)
        center, scale, is_narrow = match_octaves(noisy, self.n_samples, distribution)
        # A column whose centre is near zero has no range around it. An estimated centre is near
        # zero if both signs are probable.
        narrow = np.flatnonzero(is_narrow & (np.abs(center) > scale))
        return replace(known, scales=ColumnScales(center, scale), narrow=narrow)

    def _noise_of_cells(self, known: KnownScales) -> AnyNoise | None:
        return _noise_of_counts(len(known.narrow), self.cells) if len(known.narrow) else None

    def _ask_cells(self, known: KnownScales, rows: Any) -> FloatArray:
        deviation = noise_deviation(_noise_of_counts(len(known.narrow), self.cells))
        n_cells = affordable_cells(self.n_samples, deviation)
        how = known.narrow, _ends(known), n_cells, _weights(rows)
        return np.asarray(sum_over_chunks(linear_counts, rows.X, *how))

    def _use_cells(self, known: KnownScales, noisy: FloatArray) -> KnownScales:
        found = released(known.scales)
        center, scale = found.center.copy(), found.scale.copy()
        noise = _noise_of_counts(len(known.narrow), self.cells)
        distribution = NoiseDistribution(noise_deviation(noise), self.cells.is_pure)
        for j, low, high, cells in zip(known.narrow, *_ends(known), noisy, strict=True):
            length = high - low
            before = (center[j] - low) / length, scale[j] / length
            place, width = match_linear(cells, self.n_samples, distribution, *before)
            center[j], scale[j] = low + place * length, width * length
        return replace(known, scales=ColumnScales(center, scale))

    def _use_moments(self, known: KnownScales, noisy: FloatArray) -> KnownScales:
        sums, (of_mean, of_square) = noisy / self.n_samples, self._variances(noisy.shape[1])
        mean = CLIP * sums[0] * _kept(of_mean)
        variance = CLIP**2 / _SQUARE_WEIGHT * sums[1] - mean**2
        square = 1.0 + (variance - 1.0) * _kept(of_square)
        factor = np.sqrt(np.clip(square, _SMALLEST_SQUARE, CLIP**2))
        found = released(known.scales)
        scales = ColumnScales(found.center + found.scale * mean, found.scale * factor)
        return replace(known, scales=scales)


def _kept(variance: float) -> float:
    """Return the share of a correction that is kept with noise of this variance."""
    return 1.0 / (1.0 + variance / _CORRECTION_VARIANCE)


def affordable_cells(n_samples: int, deviation: float) -> int:
    """Return in how many equal cells a narrow column is counted, with noise of this `deviation`.

    A column that fills all cells evenly gains a log likelihood ratio of about one by its counts: in
    more cells the noise would hide wide columns, and fewer would not tell narrow ones apart.
    """
    least, most = _N_CELLS
    strength = min(n_samples / max(deviation, TINY), float(most))
    gained = min(max(0.5 * strength**2, least), most)
    return int(2 ** round(math.log2(gained)))


def _ends(known: KnownScales) -> FloatArray:
    """Return the ends of the ranges in which narrow columns are counted again."""
    return np.sort(np.multiply.outer(_RANGE, released(known.scales).center[known.narrow]), axis=0)


def _weights(rows: Any) -> FloatArray | None:
    return None if rows.people is None else np.asarray(rows.people.weights)


def _ask_octaves(known: KnownScales, rows: Any) -> FloatArray:
    return np.asarray(sum_over_chunks(octave_counts, rows.X, _weights(rows)))


def _ask_moments(known: KnownScales, rows: Any) -> FloatArray:
    return np.asarray(sum_over_chunks(clipped_moments, rows.X, known.scales, rows.people))


def octave_counts(X: NDArray[Any], weights: FloatArray | None = None) -> FloatArray:
    """Count the entries of each column by sign and octave; NaN is not counted.

    The result has shape (n_features, 2 * N_OCTAVES + 1), from the most negative octave over zero,
    in the middle, to the most positive one. Rows count by their `weights`, or by one each.
    """
    n_samples, n_features = X.shape
    counts = np.empty((n_features, 2 * N_OCTAVES + 1))
    # Raw cells of a column, that of missing entries included, padded to a multiple of 8.
    n_cells = _MISSING + 8
    # The raw cell at which each octave begins; exponents below the octaves are one cell, counted as
    # zero, and exponents above them belong to the last octave.
    starts = np.append(0, np.arange(N_OCTAVES) + 127 - N_OCTAVES // 2)
    for first in range(0, n_features, _COLUMNS_AT_ONCE):
        part = X[:, first : first + _COLUMNS_AT_ONCE]
        width = part.shape[1]
        step = max(1, min(n_samples, CACHED_NUMBERS // width))
        column = np.tile(np.arange(width, dtype=np.uint32) * n_cells, (step, 1))
        raw = np.zeros(width * n_cells)
        for lo in range(0, n_samples, step):
            cell = _raw_cells(part[lo : lo + step])
            cell += column[: len(cell)]
            each = None if weights is None else np.repeat(weights[lo : lo + step], width)
            raw += np.bincount(cell.ravel().astype(np.intp), each, minlength=len(raw))
        known = raw.reshape(width, n_cells)[:, :_MISSING].reshape(width, 2, -1)
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
        # Bits are truncated to those of float32, because rounding could reach the next octave.
        bits = entries.view(np.int64) & -(2**29)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            entries = bits.view(np.float64).astype(np.float32)
    cells = entries.view(np.uint32) >> np.uint32(23)
    cells[missing] = _MISSING
    return cells


def linear_counts(
    X: NDArray[Any],
    columns: Sequence[int] | NDArray[np.intp],
    ends: tuple[FloatArray, FloatArray] | FloatArray,
    n_cells: int,
    weights: FloatArray | None = None,
) -> FloatArray:
    """Count the entries of some columns in equal cells; entries outside are in the nearest cell.

    The range of a column is between its `ends`, released before; `weights` are as in
    `octave_counts`. The result has shape (n_columns, n_cells).
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
    """Return the sums of ``s`` and of ``1.5 s^2`` in every column, for s in [-1, 1] on a grid.

    A person with several rows contributes the means over its rows, rounded to the grid. The result
    has shape (2, n_features) and is exact; replacing a record, or a person, moves it by at most
    ``2 sqrt(n_features)``: ``docs/proofs/column_scales.md``, Lemma 2.
    """
    sums = np.zeros((2, X.shape[1]))
    # The factor is a power of two, so this rounds nothing; the entries that are rounded below are
    # in steps of the grid.
    fine = ColumnScales(scales.center, scales.scale * (CLIP / _GRID))
    ends = None if people is None else np.append(people.starts, len(X))
    step = max(1, CACHED_NUMBERS // X.shape[1])
    for lo in range(0, len(X) if people is None else len(people), step):
        if ends is None:
            s = np.rint(in_column_scales(X[lo : lo + step], fine, _GRID))
            squares = s * s
        else:
            s, squares = _means_of_people(X, fine, ends[lo : lo + step + 1])
        ones = np.ones(len(s))
        # The terms are integers and the sums are below 2^53, so they are exact in every order.
        sums[0] += ones @ s / _GRID
        sums[1] += _SQUARE_WEIGHT * (ones @ squares / _GRID**2)
    return sums


def _means_of_people(
    X: NDArray[Any], fine: ColumnScales, bounds: NDArray[np.intp]
) -> tuple[FloatArray, FloatArray]:
    """Return the means over the rows of some people, in whole steps of the grid, and mean squares.

    The rows of each person begin at one of `bounds` and end at the next one.
    """
    s = np.rint(in_column_scales(X[bounds[0] : bounds[-1]], fine, _GRID))
    # The sums are of integers, and exact. The mean square is rounded up, so that it is at least the
    # square of the mean; it is at most one.
    first, counts = bounds[:-1] - bounds[0], np.diff(bounds)[:, None]
    means = np.trunc(np.add.reduceat(s, first, axis=0) / counts)
    return means, np.ceil(np.add.reduceat(s * s, first, axis=0) / counts)


def plan_column_scales(n_samples: int, n_features: int, budget: Budget) -> ColumnScalesPlan:
    """Fix the public numbers of a release of column scales within a budget."""
    refuse_beyond_memory(
        _COLUMN_BYTES * n_features,
        f"an estimate of the scales of {n_features} columns",
        "state their public scales, or use fewer columns",
    )
    octaves, cells, moments = budget.parts(_PARTS)
    first, narrow = _noise_of_counts(n_features, octaves), _noise_of_counts(1, cells)
    # docs/proofs/column_scales.md, Lemma 2.
    last = moments.noise(2.0 * math.sqrt(n_features) * UP)
    events = first.event, narrow.event, last.event
    return ColumnScalesPlan(n_samples, first, cells, last, events)


def _noise_of_counts(n_columns: int, budget: Budget) -> AnyNoise:
    """Return the noise of the counts of some columns: ``docs/proofs/column_scales.md``, Lemma 1."""
    if budget.is_pure:
        return DiscreteLaplaceNoise(2 * n_columns, budget.epsilon)
    return budget.noise(math.sqrt(2.0 * n_columns) * UP)
