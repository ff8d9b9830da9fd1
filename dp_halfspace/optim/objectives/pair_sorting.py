"""Piecewise quadratic losses over all pairs of a positive and a negative score, by sorting.

Of ``x = knot - (s_i - t_j)`` they are ``max(x, 0)^2``, or a parabola up to a width and a straight
line from there. For each score the pairs on the parabola are one or two runs of sorted scores, and
their sums differences of prefix sums, exact up to rounding (``pairwise.md``, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.optim.design.blocks import FloatArray
from dp_halfspace.optim.objectives._cells import PairProduct, PairSums, prefix_sums

Index = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class _Bands:
    """For each target: the sorted sources less than a width above it, in two runs.

    One above it in its own stretch of that width, one below its place in the next stretch.
    """

    place: FloatArray
    source_place: FloatArray
    start: Index
    middle: Index
    end: Index


def _bands(targets: FloatArray, sources: FloatArray, width: float) -> _Bands:
    """Find the runs; both arrays are sorted."""
    stretch, place = np.divmod(targets, width)
    source_stretch, source_place = np.divmod(sources, width)
    first = np.searchsorted(source_stretch, stretch)
    middle = np.searchsorted(source_stretch, stretch + 1.0)
    last = np.searchsorted(source_stretch, stretch + 1.0, side="right")
    start = np.clip(np.searchsorted(sources, targets, side="right"), first, middle)
    end = np.clip(np.searchsorted(sources, targets + width), middle, last)
    return _Bands(place, source_place, start, middle, end)


def _one_side(targets: FloatArray, sources: FloatArray, width: float) -> FloatArray:
    """Sum ``min(max(source - target, 0), width)`` over the sources, for sorted targets."""
    bands = _bands(targets, sources, width)
    sums = prefix_sums(bands.source_place)
    in_next = bands.end - bands.middle
    inside = sums[bands.end] - sums[bands.start] - bands.place * (bands.end - bands.start)
    return inside + width * (in_next + (sources.size - bands.end))


def _ramp_value(targets: FloatArray, sources: FloatArray, width: float) -> float:
    """Sum the parabola, ``x^2 / (2 width)`` up to the width, and the line beyond it."""
    bands = _bands(targets, sources, width)
    powers = np.column_stack([bands.source_place, bands.source_place**2])
    sums = prefix_sums(powers)
    total = np.zeros(targets.size)
    for lo, hi, offset in (
        (bands.start, bands.middle, -bands.place),
        (bands.middle, bands.end, width - bands.place),
    ):
        first, second = (sums[hi] - sums[lo]).T
        total += second + offset * (2.0 * first + offset * (hi - lo))
    beyond = sources.size - bands.end
    # From one of the scores, so that a common shift does not cancel.
    origin = sources[sources.size // 2] if sources.size else 0.0
    tail = np.append(np.cumsum((sources - origin)[::-1])[::-1], 0.0)[bands.end]
    line = tail - beyond * ((targets - origin) + 0.5 * width)
    return float((total / (2.0 * width) + line).sum())


def ramp_pairs(positive: FloatArray, negative: FloatArray, knot: float, width: float) -> PairSums:
    """Sum over all pairs a loss that is zero from the knot on, a parabola below it, then a line.

    Either class may be empty. Not a number where scores are not finite; never a warning.
    """
    with np.errstate(all="ignore"):
        p_order, q_order = np.argsort(positive), np.argsort(negative)
        s, t = positive[p_order], negative[q_order] + knot
        p, q = np.empty(s.size), np.empty(t.size)
        p[p_order] = _one_side(s, t, width) / -width
        # Seen from a negative score everything is reversed.
        q[q_order] = _one_side(-t[::-1], -s[::-1], width)[::-1] / width
        return PairSums(_ramp_value(s, t, width), p, q)


def ramp_curvature(
    positive: FloatArray, negative: FloatArray, knot: float, width: float
) -> PairProduct:
    """Return products with the second derivatives of the loss of :func:`ramp_pairs`."""
    return _in_bands(positive, negative, knot, width, width)


def _in_bands(
    positive: FloatArray, negative: FloatArray, knot: float, width: float, divisor: float
) -> PairProduct:
    """Return products with ``1 / divisor`` where a pair is less than `width` below the knot."""
    with np.errstate(all="ignore"):
        p_order, q_order = np.argsort(positive), np.argsort(negative)
        s, t = positive[p_order], negative[q_order] + knot
        p_run = np.searchsorted(t, s, side="right"), np.searchsorted(t, s + width)
        q_run = np.searchsorted(s, t - width, side="right"), np.searchsorted(s, t)

    def product(v: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        with np.errstate(all="ignore"):
            at_p = _runs(u[q_order], p_run, p_order) / divisor
            at_q = _runs(v[p_order], q_run, q_order) / divisor
        return at_p, at_q

    return product


def _runs(x: FloatArray, run: tuple[Index, Index], order: Index) -> FloatArray:
    """Add rows in runs and undo the order of the results."""
    sums = prefix_sums(x)
    lo, hi = run
    out = np.empty((order.size, *x.shape[1:]))
    out[order] = sums[np.maximum(lo, hi)] - sums[lo]
    return out


def parabola_pairs(positive: FloatArray, negative: FloatArray) -> PairSums:
    """Sum the squared hinge ``max(1 - (s_i - t_j), 0)^2`` over all pairs."""
    with np.errstate(all="ignore"):
        p_order, q_order = np.argsort(positive), np.argsort(negative)
        s, t = positive[p_order], negative[q_order] + 1.0
        above = np.searchsorted(t, s, side="right")
        below = np.searchsorted(s, t)
        t_sums, s_sums = prefix_sums(t), prefix_sums(s)
        p, q = np.empty(s.size), np.empty(t.size)
        n_above = t.size - above
        first = t_sums[-1] - t_sums[above] - s * n_above
        p[p_order] = -2.0 * first
        q[q_order] = 2.0 * (t * below - s_sums[below])
        # From the mean of the scores, so that squares of a common shift do not cancel.
        centre = (t_sums[-1] / max(t.size, 1)) if t.size else 0.0
        squares = prefix_sums((t - centre) ** 2)
        c = s - centre
        firsts = first + c * n_above  # sum of t - centre over those above
        value = (squares[-1] - squares[above]) - c * (2.0 * firsts - c * n_above)
        return PairSums(float(value.sum()) + 0.0, p, q)


def parabola_curvature(positive: FloatArray, negative: FloatArray) -> PairProduct:
    """Return products with the second derivatives of the squared hinge of all pairs."""
    return _in_bands(positive, negative, 1.0, np.inf, 0.5)
