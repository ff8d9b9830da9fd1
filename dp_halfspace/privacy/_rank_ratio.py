"""Certified suprema behind the privacy of the best of a random number of runs.

Write F(s) = f'(Phi(s)) with f the generating function of the number of runs. The guarantee rests
on sup_s F(s) / B(s) and sup_s F(s) - c B(s), where B bounds F on the neighbouring data set: F(s -
mu) for Gaussian runs. Both increase, so values at the ends of a cell of the line enclose them;
bisection bounds the suprema from above (``docs/proofs/selection.md``, section 4).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from dp_halfspace._rounding import UP
from dp_halfspace.privacy.profiles import LOG_SLACK, FloatArray

_Indices = NDArray[np.intp]
_Cells = Callable[[FloatArray, FloatArray, _Indices], tuple[FloatArray, FloatArray]]

# Lower bounds B of F on the neighbouring data set, as functions of s.
Behind: TypeAlias = "Shifted | TradeOff"

_KNOTS = 16
# Differences over a smaller mu would cancel. Beyond the largest the two distributions hardly
# overlap, and the whole range of F is the bound.
SMALLEST_MU = 2.0**-12
LARGEST_MU = 64.0
_CELLS = 64
_TOLERANCE = 2.0**-16
# Relative error of F, its slope over a cell included, for each possible run.
_UNIT = 2.0**-40
_SHARE_SLACK = 2.0**-40


def polynomials(coefficients: FloatArray, points: FloatArray) -> FloatArray:
    """Values of polynomials with nonnegative coefficients at points in [0, 1].

    A row of coefficients for each polynomial, constant terms first.
    """
    count, size = coefficients.shape
    # Blocks of about the square root of the degree turn the sum into a matrix product.
    width = math.isqrt(size - 1) + 1
    blocks = -(-size // width)
    padded = np.zeros((count, blocks * width))
    padded[:, :size] = coefficients
    inner = np.vander(points, width, increasing=True)
    outer = np.vander(inner[:, -1] * points, blocks, increasing=True)
    sums = (inner @ padded.reshape(-1, width).T).reshape(-1, count, blocks)
    return np.asarray((sums * outer[:, None, :]).sum(axis=2).T)


def normal_density(s: FloatArray) -> FloatArray:
    """Density of the standard normal distribution."""
    return np.asarray(np.exp(-0.5 * s * s) / math.sqrt(2.0 * math.pi))


def _enclosed_slopes(
    coefficients: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """F at both ends of the cells and bounds of F' on them, lower and upper."""
    values = polynomials(coefficients, ndtr(np.concatenate([low, high])))
    (at_low, at_high), (curve_low, curve_high) = values.reshape(2, 2, -1)
    ends = normal_density(low), normal_density(high)
    # The normal density is largest at 0 or at the end that is next to it.
    largest = normal_density(np.clip(0.0, low, high))
    return at_low, at_high, np.minimum(*ends) * curve_low, largest * curve_high


@dataclass(frozen=True, slots=True)
class Shifted:
    """B(s) = F(s - mu): runs that are mu-GDP."""

    mu: float

    @property
    def top(self) -> float:
        """Beyond it ``log F(inf) - log B`` is below ``k_max * 1.2e-19``."""
        return 9.0 + self.mu

    def enclosed(
        self, coefficients: FloatArray, low: FloatArray, high: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Bound B from below on cells by b: b(low), b(high) and a lower bound of b'."""
        return _enclosed_slopes(coefficients, low - self.mu, high - self.mu)[:3]


def _rise(low: FloatArray, high: FloatArray, slope: FloatArray) -> FloatArray:
    """Largest rise over the cells of a function of at most this slope."""
    return np.asarray((high - low) * np.maximum(slope, 0.0))


def _supremum(cells: _Cells, top: float, tolerance: FloatArray) -> FloatArray:
    """Upper bounds of the suprema of a family of functions of s in [-38, top].

    ``cells(low, high, index)`` returns the value of function ``index`` at ``low`` and an
    upper bound on the cell. The results exceed the suprema by at most `tolerance`.
    """
    edges = np.append(-38.0, np.linspace(-9.0, top, _CELLS))
    index = np.repeat(np.arange(len(tolerance)), _CELLS)
    low, high = (np.tile(ends, len(tolerance)) for ends in (edges[:-1], edges[1:]))
    best = np.full(len(tolerance), -np.inf)
    while low.size:
        value, bound = cells(low, high, index)
        np.maximum.at(best, index, value)
        undecided = bound > (best + tolerance)[index]
        low, high, index = low[undecided], high[undecided], np.tile(index[undecided], 2)
        middle = 0.5 * (low + high)
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    return best + tolerance


def _coefficients(probabilities: FloatArray) -> FloatArray:
    """Coefficients of f' and f'', padded to the same length."""
    k = np.arange(1, len(probabilities) + 1)
    first = k * probabilities
    second = np.append((first * (k - 1))[1:], 0.0)
    return np.stack([first, second])


def log_rank_ratio(probabilities: FloatArray, mu: float) -> float:
    """Upper bound of ``sup_s log F(s) - log F(s - mu)``, at most about ``2**-16 * mu`` above it.

    The probabilities are P(K = 1), ..., P(K = k_max).
    """
    if len(probabilities) == 1 or mu == 0.0:
        return 0.0
    coefficients = _coefficients(probabilities)
    if mu >= LARGEST_MU:
        return _whole_range(coefficients)
    if mu >= SMALLEST_MU:
        return log_ratio_of(probabilities, Shifted(mu), _TOLERANCE * mu)

    def slope(low: FloatArray, high: FloatArray, index: _Indices) -> tuple[FloatArray, FloatArray]:
        at_low, _, flattest, steepest = _enclosed_slopes(coefficients, low, high)
        return flattest / at_low, steepest / at_low

    # The logarithms would cancel; the mean value theorem loses a relative mu^2 / 24.
    (steepest,) = _supremum(slope, 9.0, np.array([_TOLERANCE]))
    slack = _slack(probabilities)
    return mu * (float(steepest) * (1.0 + slack) + slack)


def _slack(probabilities: FloatArray) -> float:
    """Relative error of F and of its slope over a cell."""
    return _UNIT * (len(probabilities) + 64)


def _whole_range(coefficients: FloatArray) -> float:
    """Logarithm of the largest over the smallest value of F, rounded up."""
    ends = math.log(coefficients[0].sum() / coefficients[0, 0])
    return ends + _slack(coefficients[0])


def log_ratio_of(probabilities: FloatArray, behind: Behind, tolerance: float) -> float:
    """Upper bound of ``sup_s log F(s) - log B(s)``, above it by `tolerance` and rounding."""
    coefficients = _coefficients(probabilities)

    def cells(low: FloatArray, high: FloatArray, index: _Indices) -> tuple[FloatArray, FloatArray]:
        at_low, _, _, steepest = _enclosed_slopes(coefficients, low, high)
        below, ahead, flattest = behind.enclosed(coefficients, low, high)
        value = np.log(at_low / below)
        return value, value + _rise(low, high, steepest / at_low - flattest / ahead)

    (bound,) = _supremum(cells, behind.top, np.array([tolerance]))
    return min(_whole_range(coefficients), float(bound) + _slack(probabilities))


def chord_shares(
    probabilities: FloatArray, mean: float, behind: Behind, log_ratio: float
) -> tuple[float, ...]:
    """Weights over `mean` of the chords of ``sup_s F(s) - c B(s)``, a function of c.

    They are ``w`` with ``sup_s F(s) - c B(s) <= mean * sum_j w_j (1 - c / c_j)_+`` for all c >= 0,
    where ``log c_j = log_ratio * (j + 1) / len(w)``. The mean is at least E[K], the supremum at
    c = 0; at the exponential of `log_ratio`, which is positive, the supremum is at most 0.
    """
    coefficients = _coefficients(probabilities)
    step = log_ratio / _KNOTS
    c = np.exp(step * np.arange(1, _KNOTS + 1))

    def cells(low: FloatArray, high: FloatArray, index: _Indices) -> tuple[FloatArray, FloatArray]:
        at_low, _, _, steepest = _enclosed_slopes(coefficients, low, high)
        below, _, flattest = behind.enclosed(coefficients, low, high)
        value = at_low - c[index] * below
        return value, value + _rise(low, high, steepest - c[index] * flattest)

    tolerance = np.full(_KNOTS - 1, _TOLERANCE * mean * min(step, 1.0))
    slack = _slack(probabilities) * mean
    # A convex function: also below the chord from c = 0 to the last c.
    chord = mean * -np.expm1(step * np.arange(1 - _KNOTS, 0))
    bounds = np.clip(_supremum(cells, behind.top, tolerance) + slack, 0.0, chord)
    heights = np.concatenate([[mean], bounds, [0.0]])
    # c_j - c_{j-1} without cancellation; the first chord starts at c = 0.
    widths = np.append(c[0], c[:-1] * math.expm1(step))
    slopes = np.append(np.diff(heights) / widths, 0.0)
    weights = np.maximum(c * np.diff(slopes), 0.0) / mean
    return tuple((weights + _SHARE_SLACK).tolist())


_LINES = 512
# Beyond the last line nothing is left of a profile that a guarantee could show.
_NOTHING = math.log(1e-22)
_FURTHEST, _REACHES = 512.0, 192
_NEGLIGIBLE = 1.2e-19


@dataclass(frozen=True, slots=True)
class TradeOff:
    """The least of lines ``slope * a + height``, an upper bound of a trade-off function.

    Slopes ascend from 0; heights descend from 1 and are a convex function of the slopes.
    """

    slopes: FloatArray
    heights: FloatArray

    def line(self, a: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Slope and height of a line that is the least one at `a`, up to rounding."""
        ends = -np.diff(self.heights) / np.diff(self.slopes)
        index = len(ends) - np.searchsorted(ends[::-1], a, side="right")
        return self.slopes[index], self.heights[index]

    @property
    def top(self) -> float:
        """Where the events beyond have no probability worth mentioning on either data set."""
        s = np.arange(9.0, 38.0, 0.5)
        slope, height = self.line(ndtr(-s))
        enough = slope * ndtr(-s) + height <= _NEGLIGIBLE
        return float(s[np.argmax(enough)]) if enough.any() else math.inf

    def enclosed(
        self, coefficients: FloatArray, low: FloatArray, high: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Bound ``f'(1 - G(Phi(-s)))`` on cells, see `Shifted.enclosed`.

        The line that is the least one at the lower end is above G on the whole cell, so no
        harm is done if rounding takes its neighbour.
        """
        at, beyond = ndtr(-low), ndtr(-high)
        slope, height = self.line(at)
        reached = slope * at + height
        # Where a line is above 1 the function is 1, and flat.
        slope = np.where(reached > 1.0, 0.0, slope)
        ends = np.concatenate([1.0 - reached, 1.0 - slope * beyond - height])
        values = polynomials(coefficients, np.clip(ends, 0.0, 1.0))
        (at_low, at_high), (curve, _) = values.reshape(2, 2, -1)
        flattest = np.minimum(normal_density(low), normal_density(high)) * curve * slope
        return at_low, at_high, flattest


def trade_off(log_delta: Callable[[FloatArray], FloatArray]) -> TradeOff | None:
    """Bound the trade-off function of a mechanism from its profile.

    `log_delta` maps an array of t >= 0 to the logarithm of a nonincreasing bound of the profile,
    for both orders of two neighbouring data sets. None if it does not become negligible.
    """
    far = np.geomspace(2.0**-30, _FURTHEST, _REACHES)
    nothing = log_delta(far) <= _NOTHING
    if not nothing.any():
        return None
    reach = float(far[np.argmax(nothing)])
    t = np.linspace(0.0, reach, _LINES)
    delta = np.exp(np.minimum(log_delta(t), 0.0) + LOG_SLACK)
    slopes = np.append(0.0, np.exp(t) * UP)
    heights = np.append(1.0, delta)
    return TradeOff(*_lower_hull(slopes, heights))


def _lower_hull(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Corners of the largest convex function below points; x ascends strictly."""
    kept: list[int] = []
    for i in range(len(x)):
        while len(kept) > 1:
            k, j = kept[-2], kept[-1]
            if (y[j] - y[k]) * (x[i] - x[j]) < (y[i] - y[j]) * (x[j] - x[k]):
                break
            kept.pop()
        kept.append(i)
    return x[kept], y[kept]
