"""Which scale of which shape explains noisy counts: post-processing of what was released.

A column is taken for a multiple of one of a few dozen distributions (normal at several
distances from zero, uniform, exponential, lognormal, mostly zero, binary; either sign). The
likelihood of noisy counts tells how well each fits. Columns of one table tend to have similar
widths, so the prior over octaves of width is estimated from all columns together.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, softmax

from dp_halfspace.algorithms.engine.plan import FloatArray

# Octaves [2^k, 2^(k+1)) on both sides of zero; what is nearer to zero counts as zero.
LOWEST, _HIGHEST = -120, 119
N_OCTAVES = _HIGHEST - LOWEST + 1
_POINTS = 2000
_REACH = 16  # octaves on both sides of its width that a shape may extend to
# Shapes are not exact: a deviation of this share of the rows is forgiven beside the noise.
_MISFIT, _CELL_MISFIT = 0.1, 0.01
# Prior over the octave of a width: heavy-tailed round one, worth a few columns.
_PRIOR_OCTAVES, _PRIOR_COLUMNS, _ROUNDS = 8.0, 4.0, 6
_COLUMNS_AT_ONCE = 16
_NARROW = 8.0  # mean over standard deviation from which a column is looked at again


@dataclass(frozen=True, slots=True)
class _Shapes:
    """Shapes of a width in [1, 2): masses by sign and octave, of zero; mean, log2 of the width."""

    masses: NDArray[np.float32]  # (n_shapes, 2, 2 * _REACH)
    zero: NDArray[np.float32]
    mean: FloatArray
    octave: FloatArray


@dataclass(frozen=True, slots=True)
class Law:
    """Law of the noise in a count: Gaussian, or that of Laplace."""

    deviation: float
    is_laplace: bool

    def forgiving(self, scale: float, misfit: float) -> Law:
        """Return the law in units of `scale`, with a deviation of the shape beside the noise."""
        return Law(math.hypot(self.deviation / scale, misfit), self.is_laplace)

    def gain(self, found: Any, expected: Any) -> Any:
        """Return the log likelihood of expected counts over that of none, cell by cell."""
        if self.is_laplace:
            # |found| - |found - expected| in units of the scale.
            nearer = np.minimum(np.maximum(found, 0.0), expected)
            return (2.0 * nearer - expected) * (math.sqrt(2.0) / self.deviation)
        return (found - expected / 2.0) * expected / self.deviation**2


def _quantiles() -> Iterator[FloatArray]:
    """Yield each shape as equally likely points, in any unit."""
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
    """Cut every shape, of width 1 and of width sqrt(2), into octaves."""
    masses, zero, mean, octave = [], [], [], []
    for quantiles in _quantiles():
        points = quantiles / quantiles.std()
        symmetric = abs(float(points.mean())) < 1e-6
        for scale in (1.0, math.sqrt(2.0)):
            for sign in (1.0,) if symmetric else (1.0, -1.0):
                scaled = sign * scale * points
                nonzero = scaled[scaled != 0.0]
                place = np.floor(np.log2(np.abs(nonzero))).astype(np.intp)
                place = np.clip(place, -_REACH, _REACH - 1) + _REACH
                mass = np.zeros((2, 2 * _REACH))
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
    counts: FloatArray, n_samples: int, law: Law
) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """Estimate centre and width of each column from noisy counts in octaves.

    Returns whether each column is probably narrow beside its distance from zero, too: octaves
    then do not tell the width.
    """
    shapes, shares = _shapes(), counts / n_samples
    law = law.forgiving(n_samples, _MISFIT)
    likelihood = np.empty((len(counts), N_OCTAVES + 1, len(shapes.mean)), dtype=np.float32)
    evidence = np.empty(likelihood.shape[:2], dtype=np.float32)
    for lo in range(0, len(shares), _COLUMNS_AT_ONCE):
        part = slice(lo, lo + _COLUMNS_AT_ONCE)
        found = likelihood[part] = _log_likelihood(shares[part], law, shapes)
        best = found.max(axis=2)
        chances = np.exp(np.subtract(found, best[:, :, None], out=found), out=found)
        evidence[part] = best + np.log(chances.sum(axis=2))
    octaves = _pooled(evidence)
    median = (np.cumsum(octaves, axis=1) < 0.5).sum(axis=1)
    # Octaves next to the median: the mean over all would follow the remotest one.
    near = np.clip(median[:, None] + np.arange(-1, 2), 0, N_OCTAVES)
    rows = np.arange(len(counts))[:, None]
    chances = octaves[rows, near][:, :, None] * softmax(likelihood[rows, near], axis=2)
    chances /= chances.sum(axis=(1, 2), keepdims=True)
    octave = LOWEST + near
    logarithm = (chances.sum(axis=2) * octave).sum(axis=1) + chances.sum(axis=1) @ shapes.octave
    center = ((chances @ shapes.mean) * np.ldexp(1.0, octave)).sum(axis=1)
    far = np.abs(shapes.mean) >= _NARROW * 2.0**shapes.octave
    return center, 2.0**logarithm, chances[:, :, far].sum(axis=(1, 2)) > 0.5


def _log_likelihood(shares: FloatArray, law: Law, shapes: _Shapes) -> FloatArray:
    """Compare noisy shares of the rows with every shape of every octave of width."""
    sides = np.stack([shares[:, N_OCTAVES + 1 :], shares[:, N_OCTAVES - 1 :: -1]], axis=1)
    padded = np.pad(sides.astype(np.float32), ((0, 0), (0, 0), (_REACH, _REACH)))
    zeros = shares[:, N_OCTAVES].astype(np.float32)
    if law.is_laplace:
        zero = law.gain(zeros[:, None], shapes.zero[:, None, None])
        found = np.repeat(zero, N_OCTAVES + 1, axis=2)
        for shape, side, cell in np.argwhere(shapes.masses).tolist():
            window = padded[:, side, cell : cell + N_OCTAVES + 1]
            found[shape] += law.gain(window, shapes.masses[shape, side, cell])
        return found.transpose(1, 2, 0)
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * _REACH, axis=2)
    found = np.tensordot(windows, shapes.masses, axes=((1, 3), (1, 2)))
    found += np.multiply.outer(zeros, shapes.zero)[:, None, :]
    found -= ((shapes.masses**2).sum(axis=(1, 2)) + shapes.zero**2) / 2.0
    found /= np.float32(law.deviation**2)
    return np.asarray(found)


def _pooled(evidence: FloatArray) -> FloatArray:
    """Return the chances of the octaves of each width; columns share their prior."""
    octave = LOWEST + np.arange(evidence.shape[1])
    first = 1.0 / (1.0 + (octave / _PRIOR_OCTAVES) ** 2)
    first /= first.sum()
    prior = first
    for _ in range(_ROUNDS):
        chances = softmax(evidence + np.log(prior), axis=1)
        found = chances.sum(axis=0) + _PRIOR_COLUMNS * first
        prior = np.convolve(found / found.sum(), [0.25, 0.5, 0.25], "same")
    return np.asarray(chances)


def match_linear(
    counts: FloatArray, n_samples: int, law: Law, center: float, width: float
) -> tuple[float, float]:
    """Estimate centre and width of a uniform distribution from noisy counts in equal cells.

    All widths and centres are in units of the range; those known before are kept where the counts
    do not say more.
    """
    n_cells = len(counts)
    law = law.forgiving(1.0, _CELL_MISFIT * n_samples)
    logarithms = np.arange(0.0, math.log2(n_cells) - 1.0)
    rows = []
    for size in np.rint(2.0**logarithms).astype(np.intp):
        # What speaks for all rows being in an interval, by its middle.
        sums = np.concatenate([[0.0], np.cumsum(law.gain(counts, n_samples / size))])
        found = np.full(n_cells, -np.inf)
        found[size // 2 : size // 2 + n_cells - size + 1] = sums[size:] - sums[:-size]
        rows.append(found)
    found = np.array(rows) - math.log(len(rows) * n_cells)
    known = np.diff(ndtr((np.arange(n_cells + 1) / n_cells - center) / width))
    largest = float(found.max())
    chances = np.exp(found - largest)
    kept = law.gain(counts, n_samples * known).sum()
    if largest + math.log(chances.sum()) <= kept:
        return center, width
    by_length = np.cumsum(chances.sum(axis=1))
    middle = int((by_length < 0.5 * by_length[-1]).sum())
    near = slice(max(middle - 1, 0), middle + 2)
    chances = chances[near] / chances[near].sum()
    places = (np.arange(n_cells) + 0.5) / n_cells
    length = 2.0 ** float(chances.sum(axis=1) @ logarithms[near]) / n_cells
    return float(chances.sum(axis=0) @ places), length / math.sqrt(12.0)
