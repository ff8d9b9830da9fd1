"""The second release: a noisy second moment, from which the rows are centred and whitened.

The rows have a constant, so that the last column of their second moment holds their mean, and the
rest their covariance. Rows with mean zero have no common direction along which the majority class
could pull the coefficients, whatever the sizes of the classes. Whitening gives the leading
directions the same variance. Proof: ``docs/proofs/engine.md``, sections 2 and 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh

from dp_halfspace._memory import AT_ONCE
from dp_halfspace._rounding import UP
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.mechanisms import AdditiveNoise, noise_deviation
from dp_halfspace.rows.blocks import PLAIN_BLOCKS, FloatArray, clip_scales
from dp_halfspace.rows.float32_rows import GRAM_GROUP, SINGLE_EPS

# The constant that is appended to rows of norm at most one, before the second moment, and the norm
# by which rows are divided then.
CONSTANT = 0.5
LENGTHENED = math.hypot(1.0, CONSTANT)
# Rows with more columns have no second moment: it would cost more than it gains. Features and
# selections from a list have the same limit.
WIDEST = 512
# Number of directions that whitening distinguishes: more would be those of the noise.
DIRECTIONS = 10.0
# Least amount that is added to eigenvalues, as a share of their mean.
_TRACE_FLOOR = 1e-3
# No direction is stretched by more than this factor, so that rounding errors are bounded.
_MOST_STRETCH = 1024.0
# A row counts as long if its norm is this many times the typical one: a fit clips it, and rows of
# features are shortened to so many times the length to which a fit clips them before they are
# scored.
LONGER = 1.2
# The same for rows of columns to be scored. A column's own coefficient is its effect, which must
# not turn round in a row that others make long: with 1.2 it does in up to 4 % of rows.
_WIDER_COLUMNS = 1.5


@dataclass(frozen=True, slots=True, eq=False)
class Centring:
    """A released map of rows: less their mean, whitened, and clipped to a typical length.

    `mean` has shape (n_columns,), with noise of the deviation `mean_error` in each entry. The
    columns of `directions`, of shape (n_columns, n_columns), are multiplied by the `factors`;
    `whitening` is that map. `resolved` are the mean squares of the images along the directions, as
    far as the noise shows them, and `noisy` the same as released. The images of the rows have norm
    about `radius`. `constant` is what is appended to them; with 0 they are not centred.
    """

    mean: FloatArray
    mean_error: float
    directions: FloatArray
    factors: FloatArray
    resolved: FloatArray
    noisy: FloatArray
    whitening: FloatArray
    radius: float
    constant: float

    @property
    def length(self) -> float:
        """Number by which clipped images with their constant are divided."""
        return max(math.hypot(self.radius, self.constant), 1.0)

    @property
    def to_final(self) -> FloatArray:
        """The map of first rows, with their constant if there is one, to final rows, not clipped.

        With their own constant, clipped final rows have norm at most one.
        """
        if not self.constant:
            return self.whitening / self.length
        column = -self.whitening @ self.mean / CONSTANT
        return np.column_stack([self.whitening, column]) * (LENGTHENED / self.length)

    @property
    def longest(self) -> float:
        """Norm to which final rows are clipped, before the constant."""
        return self.radius / self.length

    def with_shared_trace(self) -> Centring:
        """Return the map with the variance of all directions, also of those that the noise hides.

        These share, in proportion to their stretch, what the others leave of the trace.
        """
        left, stretched = self.radius**2 - self.resolved.sum(), np.square(self.factors)
        shared = self.resolved + max(left, 0.0) * stretched / stretched.sum()
        return replace(self, resolved=shared)

    def feature_clip(self) -> RowClip:
        """Return the limit for rows of features to be scored, which a fit clips to norm one."""
        return RowClip(self.mean, self.whitening, LONGER * self.radius, 1.0)

    def row_clip(self, unit: float) -> RowClip:
        """Return the limit for rows of columns to be scored, which a fit divides by `unit`."""
        mean, whitening = self.mean * unit, self.whitening / unit
        return RowClip(mean, whitening, _WIDER_COLUMNS * self.radius)

    @property
    def constants(self) -> tuple[float, ...]:
        """The constant of all final rows, if there is one."""
        return (self.constant / self.length,) if self.constant else ()


@dataclass(frozen=True, slots=True, eq=False)
class RowClip:
    """A released limit of the length of centred and whitened rows, for predictions.

    Coefficients were fitted to rows that were clipped so. A longer row gets a score as if it were
    shortened towards the mean: otherwise a few columns far from their centre would outweigh all
    others. The limit is wider than that of the fit, so that hardly any effect of a column turns
    round in the rows that it shortens. Rows are scaled down to a finite `norm` before all of it, as
    in the fit.
    """

    mean: FloatArray
    whitening: FloatArray
    longest: float
    norm: float = math.inf

    @property
    def deviations(self) -> FloatArray:
        """Standard deviations of the columns as the fit clipped them, by the second moment.

        What the noise hides counts as variance.
        """
        return np.asarray(np.linalg.norm(np.linalg.inv(self.whitening), axis=1))

    def shorten(self, rows: FloatArray) -> None:
        """Shorten long rows towards the mean, in place."""
        for lo in range(0, len(rows), AT_ONCE):
            part = rows[lo : lo + AT_ONCE]
            # Squares of small numbers may underflow.
            with np.errstate(under="ignore"):
                if math.isfinite(self.norm):
                    part *= clip_scales(part, self.norm)[:, None]
                part -= self.mean
                lengths = np.sqrt(np.square(part @ self.whitening).sum(axis=1))
                part *= (self.longest / np.maximum(lengths, self.longest))[:, None]
                part += self.mean


def moment_noise(
    n_samples: int, block_rows: int, budget: Budget, *, is_single: bool
) -> AdditiveNoise:
    """Return the noise of the packed second moment of rows of norm at most one.

    The Frobenius sensitivity is sqrt(2): ``||xx' - zz'||^2 = |x|^4 + |z|^4 - 2 <x, z>^2``. An
    allowance for the rounding errors of the sums of two neighbours is added.
    """
    n_blocks = min(-(-n_samples // block_rows), PLAIN_BLOCKS)
    # docs/proofs/certificate.md, section 8.
    rounding = 1.01 * n_samples * 2 * (block_rows + n_blocks + 8) * 2.0**-53
    if is_single:
        # Only the group of the replaced record is rounded differently.
        rounding += 2.04 * SINGLE_EPS * (GRAM_GROUP + 8) * GRAM_GROUP
    return budget.noise(math.sqrt(2.0) * UP + rounding)


# Bound on the norm of the map to final rows: the mean has norm at most one.
LARGEST_STRETCH = _MOST_STRETCH * LENGTHENED * math.hypot(1.0, 1.0 / CONSTANT)


def packed(moment: FloatArray) -> FloatArray:
    """Return the upper triangle as a vector whose Euclidean norm is the Frobenius norm."""
    return np.asarray(moment[np.triu_indices(len(moment))] * _weights(len(moment)))


def _weights(size: int) -> FloatArray:
    """Return sqrt(2) for entries off the diagonal, which stand for two, and one for the others."""
    rows, columns = np.triu_indices(size)
    return np.where(rows == columns, 1.0, math.sqrt(2.0))


def unpacked(vector: FloatArray, size: int) -> FloatArray:
    """Return the symmetric matrix of which `packed` made a vector."""
    moment = np.zeros((size, size))
    moment[np.triu_indices(size)] = vector / _weights(size)
    return moment + np.triu(moment, 1).T


def centring_of(
    released: FloatArray,
    total: float,
    noise: AdditiveNoise,
    *,
    constant: float,
    n_directions: float = DIRECTIONS,
) -> tuple[Centring, float]:
    """Estimate mean and covariance from a noisy second moment; return the map, and the total.

    The second number is the number of rows, or, if `total` is NaN, the sum of their weights as
    released. `constant` is that of final rows, 0 for none.
    """
    has_constant = constant > 0.0
    c, square = (CONSTANT, LENGTHENED**2) if has_constant else (0.0, 1.0)
    size = round((math.sqrt(8 * released.size + 1) - 1) / 2)
    n_columns, deviation = size - has_constant, square * noise_deviation(noise, released.size)
    moment = unpacked(released, size) * square
    if math.isnan(total):
        # With weights of records, whose sum is private: the corner of the moment.
        total = max(moment[-1, -1] / c**2, deviation / c**2, 1.0)
    mean, error = np.zeros(n_columns), 0.0
    if has_constant:
        # An entry off the diagonal has the noise of its packed number over sqrt(2).
        error = deviation / math.sqrt(2.0) / c / total
        mean = moment[:-1, -1] / c / total
        spread = max(float(mean @ mean) / n_columns - error**2, 0.0)
        mean *= spread / max(spread + error**2, 1e-300)
        mean /= max(float(np.linalg.norm(mean)), 1.0)
    covariance = moment[:n_columns, :n_columns] - total * np.outer(mean, mean)
    # Eigenvalues below the edge of the spectrum of the noise are those of the noise.
    edge = deviation * math.sqrt(2.0 * n_columns)
    noisy, directions = eigh(covariance, check_finite=False, overwrite_a=True)
    # Noise may hide it, and rows may be zero: it counts as that of one row at least.
    trace = max(float(noisy.sum()), 1.0)
    values = np.sqrt(np.maximum(np.maximum(noisy, 0.0) ** 2 - edge**2, 0.0))
    resolved = values
    # What noise may hide of the trace counts as its deviation at least. Otherwise it can leave next
    # to nothing for directions that it hides, which would then be stretched beyond all bounds.
    hidden = deviation * math.sqrt(n_columns)
    values = values + max(trace - values.sum(), hidden) / n_columns
    floor = _TRACE_FLOOR * trace / n_columns
    while (values / (values + floor)).sum() > n_directions:
        floor *= 1.1
    factors = np.minimum(np.sqrt(total / (values + floor)), _MOST_STRETCH)
    radius = math.sqrt(float((values / (values + floor)).sum()))
    whitening = (directions * factors) @ directions.T
    resolved, noisy = resolved / (values + floor), noisy / (values + floor)
    how = resolved, noisy, whitening, radius, constant
    return Centring(mean, error, directions, factors, *how), total
