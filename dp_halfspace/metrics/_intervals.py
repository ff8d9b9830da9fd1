"""Estimates from noisy counts, and intervals that cover sampling and noise.

An interval contains the values ``p`` for which ``numerator - p denominator``, whose mean is zero at
the true value, is within about two of its standard deviations. The deviation is that at the counts
next to the released ones that have the value ``p``. Leading axes of counts are releases of their
own. Everything here is a function of what was released. Derivation: ``docs/proofs/metrics.md``,
section 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from scipy.special import ndtr, ndtri

from dp_halfspace.metrics._tallies import LARGEST_LOG_LOSS, RIGHT, SCALE
from dp_halfspace.rows.blocks import FloatArray

# Value, lower end and upper end, along the first axis. Noise may take each out of the range of the
# metric, and deviations of several estimates are combined before `within_range` cuts them.
Estimate: TypeAlias = FloatArray

# Deviations that a normal variable exceeds with 2 % on either side: an interval of 95 %, and one
# more for what is approximate. A noisy count stands out of its noise by as many.
DEVIATIONS = float(ndtri(0.98))
# Steps of a bisection that finds an end to 1e-7.
_HALVINGS = 24
_SMALLEST_VARIANCE = np.finfo(np.float64).tiny


@dataclass(frozen=True, slots=True)
class Released:
    """Noisy counts of `n` records, each with noise of this `variance`, normal or of Laplace."""

    counts: FloatArray
    n: int
    variance: float
    is_laplace: bool = False
    # Counts that were moved until their total is n: their errors add up to zero.
    adds_up: bool = False
    # Deviations on each side of an interval; an array has those of the lower and of the upper end.
    limit: Any = DEVIATIONS

    def divided_by(self, unit: float) -> Released:
        """Return counts divided by the unit that they are multiples of."""
        return replace(self, counts=self.counts / unit, variance=self.variance / unit**2)

    def at_once(self, k: int) -> Released:
        """Return the same for `k` intervals that hold at once, by Bonferroni's inequality."""
        return replace(self, limit=-ndtri(ndtr(-self.limit) / k))

    @property
    def flat(self) -> Released:
        """The same with one axis for the cells of a table."""
        return replace(self, counts=self.counts.reshape(*self.counts.shape[:-2], -1))


def within_range(estimate: Estimate, largest: float = 1.0) -> Estimate:
    """Cut an estimate at the range of the metric; a value that is moved keeps its deviations."""
    value = np.clip(estimate[0], 0.0, largest)
    return np.asarray(np.clip(value + (estimate - estimate[0]), 0.0, largest))


def _invert(
    numerator: Any,
    denominator: Any,
    deviation: Callable[[Any, Any], Any],
    *,
    center: Any = None,
    beyond: float = 0.5,
) -> Estimate:
    """Return a value and the ends of all `p` that a test of ``numerator - p denominator`` accepts.

    `deviation` returns the limit of the test from `p` and the statistic. Two numerators are for the
    lower end and for the upper one, and then `center` is between the two ratios. Ends are sought in
    the range [0, 1] and so far `beyond`.
    """
    is_known = np.asarray(denominator) > 0.0
    if center is None:
        center = numerator / np.where(is_known, denominator, 1.0)
    center = np.clip(np.where(is_known, center, 0.5), -beyond, 1.0 + beyond)
    # The first axis is that of the two ends.
    sign = np.reshape([1.0, -1.0], (2,) + (1,) * center.ndim)
    outer = 0.5 - sign * (0.5 + beyond) + 0.0 * center
    inner = np.stack([center, center])
    for _ in range(_HALVINGS):
        middle = 0.5 * (inner + outer)
        statistic = numerator - middle * denominator
        accepted = ~is_known | (sign * statistic <= deviation(middle, statistic))
        inner, outer = np.where(accepted, middle, inner), np.where(accepted, outer, middle)
    return np.stack([center, *outer])


def _limit(sampling: Any, noise: Any, released: Released) -> Any:
    """Return the limit of a statistic from the variances of its sampling and of its noise terms."""
    limit = released.limit
    variance = np.maximum(sampling, 0.0) + noise.sum(axis=-1) + _SMALLEST_VARIANCE
    if released.is_laplace:
        # The quantile of one Laplace variable, if there is nothing else.
        tail = -np.log(2.0 * ndtr(-limit)) / math.sqrt(2.0) - limit
        limit = limit + tail * np.square(noise / variance[..., None]).sum(axis=-1)
    return limit * np.sqrt(variance)


def _limit_at_fit(
    released: Released, slopes_at: Callable[[Any, Any], Any]
) -> Callable[[Any, Any], Any]:
    """Return the limit of a statistic at the counts closest to the noisy ones at which it is zero.

    `slopes_at` returns the derivatives of the statistic by every count, from counts and `p`. Fitted
    counts below zero stay there: sums of them would be too large without.
    """
    counts, v = released.counts, released.variance

    def limit(p: Any, statistic: Any) -> Any:
        p = p[..., None]
        fitted, slopes = counts, slopes_at(counts, p)
        # The second step has the variances of the counts from the first one.
        for _ in range(2):
            pull = (np.maximum(fitted, 0.0) + v) * slopes
            scale = statistic / ((pull * slopes).sum(axis=-1) + _SMALLEST_VARIANCE)
            fitted = counts - scale[..., None] * pull
            slopes = slopes_at(fitted, p)
        sampling = (np.maximum(fitted, 0.0) * slopes**2).sum(axis=-1)
        if released.adds_up:
            slopes = slopes - slopes.mean(axis=-1, keepdims=True)
        return _limit(sampling, v * slopes**2, released)

    return limit


def _ratio(released: Released, numerator: FloatArray, denominator: FloatArray) -> Estimate:
    """Estimate the ratio of two weighted sums of counts, the last axis."""
    above, below = ((released.counts * each).sum(axis=-1) for each in (numerator, denominator))
    limit = _limit_at_fit(released, lambda _, p: numerator - p * denominator)
    return _invert(above, below, limit)


def _share_of_n(count: FloatArray, released: Released) -> Estimate:
    """Estimate the share of all records that a count is."""
    n, noise = released.n, np.array([released.variance])

    def deviation(p: Any, _: Any) -> Any:
        return _limit(n * p * (1.0 - p), noise, released)

    return _invert(count, float(n), deviation)


def share_of_right(released: Released) -> Estimate:
    """Estimate the share of correctly predicted records, each of which counts `RIGHT`."""
    right = released.divided_by(RIGHT)
    return _share_of_n(right.counts[..., 0], right)


def majority_share(by_class: Released) -> Estimate:
    """Estimate the share of the records that the class with the largest noisy count has.

    The counts have one row for each class.

    The largest of K classes has a share of at least 1/K, whatever the noisy counts are. The lower
    end holds for the shares of all K at once, because the largest noisy count may be of any.
    """
    *_, k, columns = by_class.counts.shape
    ends = by_class.at_once(k).limit, by_class.limit
    limits = np.reshape(ends, (2,) + (1,) * (by_class.counts.ndim - 1))
    whole = replace(by_class, variance=by_class.variance * columns, limit=limits)
    shares = within_range(_share_of_n(by_class.counts.sum(axis=-1), whole))
    return np.asarray(np.maximum(shares.max(axis=-1), 1.0 / k))


def majority_beside(released: Released) -> Estimate:
    """Estimate it from counts of classes that follow the count of correct predictions."""
    return majority_share(replace(released, counts=released.counts[..., 1:, None]))


def counts_of_records(released: Released) -> Estimate:
    """Estimate every count, as a number of records."""
    return released.n * _share_of_n(released.counts, released)


def mean_log_loss(released: Released) -> Estimate:
    """Estimate the mean of log losses from their sum and from a sum for their variance.

    Both are those of the losses over the largest one, in [0, 1].
    """
    losses, n = released.divided_by(SCALE), released.n
    total, inner = losses.counts[..., 0], losses.counts[..., 1]
    noise, mean = np.array([losses.variance]), np.clip(total / n, 0.0, 1.0)
    # The variance of losses a is that of shares, less the sum of a (1 - a). A mean below the
    # estimate has less of it in proportion.
    inner = np.clip(inner, 0.0, n * mean * (1.0 - mean))

    def deviation(p: Any, _: Any) -> Any:
        part = np.minimum(p / np.maximum(mean, _SMALLEST_VARIANCE), 1.0)
        return _limit(n * p * (1.0 - p) - part * inner, noise, losses)

    return LARGEST_LOG_LOSS * _invert(total, float(n), deviation)


def ratio_in_table(released: Released, numerator: list[int], denominator: list[int]) -> Estimate:
    """Estimate a ratio by weights of true and false negatives and positives, row by row."""
    return _ratio(released.flat, np.array(numerator, float), np.array(denominator, float))


def accuracy_in_table(released: Released) -> Estimate:
    """Estimate the accuracy from a confusion matrix of unknown size."""
    own = np.eye(released.counts.shape[-1]).ravel()
    return _ratio(released.flat, own, np.ones_like(own))


def mean_recall_in_table(released: Released) -> Estimate:
    """Estimate the mean recall over classes from a confusion matrix."""
    return _mean_of_rows(released, np.eye(released.counts.shape[-1]))


def mean_recall(released: Released) -> Estimate:
    """Estimate the mean recall over classes."""
    return _mean_of_rows(released, np.array([0.0, 1.0]))


def _mean_of_rows(released: Released, own: FloatArray) -> Estimate:
    """Estimate the mean over the rows of the share that the own counts are of all of a row."""
    k, whole = released.counts.shape[-2], np.ones_like(own)
    center, *ends = _ratio(released, own, whole)
    # An unknown row balances no error of the others, so that each of them has to be covered.
    _, *careful = _ratio(released.at_once(k), own, whole)
    # An interval as wide as the range, before it is cut, says nothing.
    is_known = ends[1] - ends[0] < 1.0
    low, high = np.where(is_known.all(axis=-1, keepdims=True), ends, careful)
    # Standard deviations of independent estimates add up in squares, separately on each side. An
    # estimate that noise takes out of the range is not cut: its error is part of the sum.
    unknown = (~is_known).sum(axis=-1)
    gaps = np.where(is_known, [center - low, high - center], 0.0)
    down, up = np.sqrt(np.square(gaps).sum(axis=-1))
    known = np.clip(np.where(is_known, center, 0.0).sum(axis=-1), 0.0, k - unknown)
    value = known + np.where(is_known, 0.0, np.clip(center, 0.0, 1.0)).sum(axis=-1)
    return np.asarray(np.stack([value, known - down, known + up + unknown]) / k)


def _with_total(released: Released) -> Released:
    """Return the counts closest to the noisy ones that add up to the number of records."""
    counts = released.counts
    missing = released.n - counts.sum(axis=(-2, -1), keepdims=True)
    cells = counts.shape[-2] * counts.shape[-1]
    return replace(released, counts=counts + missing / cells, adds_up=True)


def average_precision(released: Released) -> Estimate:
    """Estimate the mean precision over the ranks of the second class, by cells of scores.

    The precision above the highest thresholds is a ratio of two noises, and may be anything: it is
    0 for the lower end, 1 for the upper end, and for the value that above the first threshold at
    which the records stand out of the noise.
    """
    released = _with_total(released)
    # From the highest cell down.
    released = replace(released, counts=released.counts[..., ::-1])
    v, m = released.variance, released.counts.shape[-1]
    part = np.arange(1, m + 1) / m
    noise = np.sqrt(2.0 * m * v * part * (1.0 - part))
    least = np.maximum(DEVIATIONS * noise, 0.5)
    is_unseen = released.counts.sum(axis=-2).cumsum(axis=-1) < least
    is_hidden = np.logical_and.accumulate(is_unseen, axis=-1)
    first = is_hidden.sum(axis=-1, keepdims=True)
    ends = np.reshape([0.0, 1.0], (2,) + (1,) * is_hidden.ndim)

    def precisions(negative: Any, positive: Any) -> tuple[Any, Any]:
        """Return the precision and the number of records above every threshold."""
        false, true = (np.maximum(each.cumsum(axis=-1), 0.0) for each in (negative, positive))
        above = np.maximum(false + true, least)
        return true / above, above

    def slopes_at(counts: Any, p: Any) -> Any:
        negative, positive = counts[..., :m], counts[..., m:]
        precise, above = precisions(negative, positive)
        weight = np.where(is_hidden, 0.0, positive) / above
        # A record changes the precision above its own threshold and above all lower ones.
        change = weight * np.stack([-precise, 1.0 - precise])
        by_negative, by_positive = change[..., ::-1].cumsum(axis=-1)[..., ::-1]
        by_positive = by_positive + np.where(is_hidden, ends, precise) - p
        return np.concatenate(np.broadcast_arrays(by_negative, by_positive), axis=-1)

    negative, positive = released.counts[..., 0, :], released.counts[..., 1, :]
    total, (precise, above) = positive.sum(axis=-1), precisions(negative, positive)
    hidden = np.stack(np.broadcast_arrays(*ends, np.take_along_axis(precise, first, axis=-1)))
    low, high, value = (positive * np.where(is_hidden, hidden, precise)).sum(axis=-1)
    # The error of a count raises the precision above it, hence the mean of their product.
    errors = (np.maximum(positive, 0.0) + v) * (1.0 - precise) / above
    low = low - np.where(is_hidden, 0.0, errors).sum(axis=-1)
    low, high, value = np.clip([low, high, value], 0.0, np.maximum(total, 0.0))
    limit = _limit_at_fit(released.flat, slopes_at)
    center = value / np.maximum(total, _SMALLEST_VARIANCE)
    return _invert(np.stack([low, high]), total, limit, center=center, beyond=0.0)


def area_under_curve(released: Released) -> Estimate:
    """Estimate the area under the ROC curve of scores that are rounded to cells."""
    released = _with_total(released)
    m = released.counts.shape[-1]
    above = np.tri(m, m, -1) + 0.5 * np.eye(m)  # positive cell, negative cell

    def slopes_at(counts: Any, p: Any) -> Any:
        negative, positive = counts[..., :m], counts[..., m:]
        by_negative = positive @ above - p * positive.sum(axis=-1, keepdims=True)
        by_positive = negative @ above.T - p * negative.sum(axis=-1, keepdims=True)
        return np.concatenate([by_negative, by_positive], axis=-1)

    negative, positive = released.counts[..., 0, :], released.counts[..., 1, :]
    sizes = released.counts.sum(axis=-1)
    pairs = np.where((sizes > 0.0).all(axis=-1), sizes.prod(axis=-1), 0.0)
    ordered = np.clip(((positive @ above) * negative).sum(axis=-1), 0.0, pairs)
    return _invert(ordered, pairs, _limit_at_fit(released.flat, slopes_at), beyond=0.0)
