"""Upper bounds of trade-off functions, from privacy profiles.

An event of probability a on one data set has on its neighbour at most G(a) = inf_t exp(t) a +
delta(t). Any set of t gives an upper bound of G, the least of finitely many lines, and that is
what the rank factors of a selection need (``docs/proofs/selection.md``, section 8). Lines of a
slope below 1 matter for probable events only, which decide nothing there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from dp_halfspace.privacy._log_profiles import LOG_SLACK, FloatArray
from dp_halfspace.privacy._rank_ratio import normal_density, polynomials

__all__ = ["TradeOff", "trade_off"]

_LINES = 512
# Beyond the last line nothing is left of a profile that a guarantee could show.
_NOTHING = math.log(1e-22)
_FURTHEST, _REACHES = 512.0, 192
_NEGLIGIBLE = 1.2e-19
_UP = 1.0 + 2.0**-45


@dataclass(frozen=True, slots=True)
class TradeOff:
    """The least of lines ``slope * a + height``, an upper bound of a trade-off function.

    Attributes
    ----------
    slopes : ndarray of shape (n_lines,)
        Ascending, from 0.
    heights : ndarray of shape (n_lines,)
        Descending, from 1; a convex function of the slopes.
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
        """Bound ``f'(1 - G(Phi(-s)))`` on cells, see `dp_halfspace.privacy._rank_ratio.Behind`.

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

    Parameters
    ----------
    log_delta : callable
        From an array of t >= 0 to the logarithm of a bound of the profile there, for both
        orders of two neighbouring data sets; nonincreasing.

    Returns
    -------
    TradeOff or None
        None if the profile does not become negligible within reach.
    """
    far = np.geomspace(2.0**-30, _FURTHEST, _REACHES)
    nothing = log_delta(far) <= _NOTHING
    if not nothing.any():
        return None
    reach = float(far[np.argmax(nothing)])
    t = np.linspace(0.0, reach, _LINES)
    delta = np.exp(np.minimum(log_delta(t), 0.0) + LOG_SLACK)
    slopes = np.append(0.0, np.exp(t) * _UP)
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
