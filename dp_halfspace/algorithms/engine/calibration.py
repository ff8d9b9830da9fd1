"""Probabilities from scores: noisy counts of scores by label, and a curve that is fitted to them.

Every record is counted once, in a cell that is given by its score and by whether its label is the
higher one of two. Slopes and, for two classes, an offset turn scores into log odds. They are
estimated from the noisy counts; the more noise there is, the closer they are to a public prior.
Proof: ``docs/proofs/calibration.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, log_expit, log_softmax, logit, logsumexp, softmax

from dp_halfspace._rounding import UP
from dp_halfspace.algorithms.engine.class_counts import RAREST, Rarity
from dp_halfspace.algorithms.engine.plan import FloatArray, noise_deviation
from dp_halfspace.data.chunks import apply_to_chunks, sum_over_chunks
from dp_halfspace.data.people import People
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.mechanisms import GaussianNoise, NoNoise, Permit
from dp_halfspace.privacy.noise import DiscreteLaplaceNoise

# Share of mu^2 for the counts of scores.
_SHARE = 0.04
# Share of epsilon for the counts of scores with pure DP.
_PURE_SHARE = 0.1
# Scores are counted if n mu (or n epsilon / 2) of that share is at least this number.
_LEAST_STRENGTH = 25.0
# Prior of the slope, that is log odds per unit of score: its median, the standard deviation of its
# logarithm, and that of the difference between the logarithms for positive and negative scores,
# for classes of similar size and with a rare class.
DEFAULT_SLOPE = 0.1
_SLOPE_DEVIATION = 0.5
_SLOPE_DIFFERENCE = 0.5
_RARE_SLOPE_DIFFERENCE = 0.2
# The larger the scores of a model are, the less a unit of score says. So the median is divided by
# the square root of the standard deviation of the scores of generated rows, relative to the first
# number, at which it is `DEFAULT_SLOPE`. A smaller deviation than the second number counts as that.
_USUAL_SPREAD = 14.0
_LEAST_SPREAD = 0.5
_LOG_SLOPES = np.linspace(math.log(0.003), math.log(2.0), 51)
# Prior standard deviation of the offset, the log odds at a score of zero, for classes of similar
# size.
_OFFSET_DEVIATION = 0.2
# Prior standard deviation of the offset with a rare class.
_RARE_DEVIATION = 1.2
# Prior mean of the offset if the centre of the scores is far from zero, relative to the log odds of
# the share of the rare class; and the centre at which the mean is half of this.
_TOWARDS_SHARE = 0.6
_FAR = 30.0
_OFFSETS = np.linspace(-3.0, 3.0, 49)
# Borders of the cells of scores on both sides of zero: half powers of two.
_ENDS = 2.0 ** np.arange(1.5, 8.0)
_MIDDLES = 2.0 ** np.concatenate([[0.7], np.arange(2.0, 7.5), [8.0]])
_PER_SIDE = len(_ENDS) + 1
_EDGES = np.concatenate([[-512.0], -_ENDS[::-1], [0.0], _ENDS, [512.0]])
# The likelihood of the counts of a cell is tabulated for these log odds. It is summed over this
# many possible numbers of records, within this many standard deviations of the counted number.
_LOG_ODDS = np.linspace(-16.0, 16.0, 257)
_N_SIZES = 41
_FARTHEST = 4.0
# The curve of log odds is stated at these scores, relative to the centre.
_POSITIVE = 2.0 ** (np.arange(-4.0, 37.0) / 4.0)
_KNOTS = np.concatenate([-_POSITIVE[::-1], [0.0], _POSITIVE])
# Log odds per unit of score that are added to a curve whose probabilities are averaged with the
# share of a class. Far from the centre, rounding would make such a curve flat, and different scores
# would get the same probability.
_LEAST_RISE = 1e-12
# Variance that is added so that exact counts, without noise, do not lead to a division by zero.
_LEAST_VARIANCE = 1e-6
# Evidence of a ranking from which on it is significant: a model without one reaches it in 5 % of
# all fits.
SIGNIFICANT = 1.645
# Area above one half, on the rows of a fit, up to which a ranking is not significant, however small
# the noise is.
_OVERFITTED = 0.06
# Sensitivity of the counts in Euclidean norm and in the sum of absolute values:
# docs/proofs/calibration.md, Lemma 1.
_SENSITIVITY = math.sqrt(2.0) * UP
_PURE_SENSITIVITY = 2


@dataclass(frozen=True, slots=True, eq=False)
class NoisyCounts:
    """Released counts of labels, of shape (2, n_cells), in cells of scores between `edges`.

    `deviation` is that of the noise of a count, `weights` are those of the two classes.
    """

    edges: FloatArray
    counts: FloatArray
    deviation: float
    weights: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationCurve:
    """Log odds at increasing scores, with linear interpolation and extrapolation.

    The curve is a function of what was released. For more than two classes it is a line through
    zero, and probabilities are the softmax of its values at the scores of the classes. With a
    `common` class it is the curve of the log odds that a record belongs to any other class, at the
    largest score of these less the score of the common class; among the other classes,
    probabilities are the softmax of `slope` times their scores. `counts` are those from which a
    curve of two classes was estimated.
    """

    scores: FloatArray
    log_odds: FloatArray
    common: int | None = None
    slope: float = DEFAULT_SLOPE
    counts: NoisyCounts | None = None

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return log odds of two classes, or scores whose softmax are the probabilities of more."""
        if scores.ndim == 1 or self.common is None:
            return self._at(scores)
        others = np.delete(scores, self.common, axis=1)
        odds = self._at(others.max(axis=1, initial=-np.inf) - scores[:, self.common])
        found = odds[:, None] + log_softmax(self.slope * others, axis=1)
        return np.insert(found, self.common, 0.0, axis=1)

    @property
    def even_score(self) -> float:
        """Score at which two classes are equally likely, of those that the curve is stated for."""
        return float(np.interp(0.0, self.log_odds, self.scores))

    def _at(self, scores: FloatArray) -> FloatArray:
        x, y = self.scores, self.log_odds
        place = np.clip(np.searchsorted(x, scores), 1, len(x) - 1)
        slope = np.diff(y) / np.diff(x)
        found = y[place] + slope[place - 1] * (scores - x[place])
        # Rounding errors where two lines meet do not change the order of two scores.
        low = y[place - 1]
        return np.where(scores < x[0], np.minimum(found, low), np.maximum(found, low))


def line(slope: float, offset: float = 0.0) -> CalibrationCurve:
    """Return the curve ``offset + slope * score``."""
    ends = np.array([0.0, 1.0])
    return CalibrationCurve(ends, offset + slope * ends)


def prior_slope(spread: float) -> float:
    """Return the prior median of the slopes, given the standard deviation of generated scores."""
    return DEFAULT_SLOPE * math.sqrt(_USUAL_SPREAD / max(spread, _LEAST_SPREAD))


def uncounted_curve(rarity: Rarity | None, typical: float = 0.0) -> CalibrationCurve:
    """Return the curve for scores that were not counted; the classes may have been counted.

    `typical` is the mean score of generated rows. With two classes of different size, and so few
    records that scores are not counted, it stands for the log odds of the share of the second
    class: noise moves all scores by the same amount.
    """
    if rarity is None:
        return line(DEFAULT_SLOPE)
    odds = rarity.log_odds_of_second
    is_weak = rarity.total * rarity.mu * math.sqrt(_SHARE) < _LEAST_STRENGTH
    if is_weak and not rarity.is_of_many:
        unlike = (1.0 - 2.0 * rarity.share) ** 2
        return line(DEFAULT_SLOPE, unlike * (odds - DEFAULT_SLOPE * typical))
    return line(rarity.trust * DEFAULT_SLOPE, (1.0 - rarity.trust) * odds)


@dataclass(frozen=True, slots=True)
class CalibrationPlan:
    """The public numbers of noisy counts of scores.

    Run on scores of shape (n,), positive for the second of two classes, or (n, n_classes).
    """

    noise: GaussianNoise | DiscreteLaplaceNoise | NoNoise

    @property
    def events(self) -> tuple[Event, ...]:
        """Events that a run charges."""
        return (self.noise.event,)

    @property
    def is_of_integers(self) -> bool:
        """Whether the noise is an integer, as it is for pure DP."""
        return isinstance(self.noise, DiscreteLaplaceNoise)

    def run(
        self,
        scores: Any,
        classes: Any,
        weights: FloatArray,
        permit: Permit,
        people: People | None = None,
        *,
        rarity: Rarity | None = None,
        record_weights: FloatArray | None = None,
        centre: float = 0.0,
        slope: float = DEFAULT_SLOPE,
    ) -> CalibrationCurve:
        """Count the scores and return their log odds; `weights` are those of the classes.

        `rarity` describes the sizes of the classes, if they were counted. `centre`, a public or
        released number, is the score of two classes from which cells start on both sides, and at
        which the slope may change; `slope`, another one, is the prior median of both slopes.

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one, of a record or of a person with all rows.
        - Released: noisy counts of the scores of a released model; the curve is a function of them.
        - Sensitivity: ``sqrt(2)`` for the counts, or 2 for pure DP.
        - Proof: ``docs/proofs/calibration.md``, section 2; ``persons.md`` and ``weights.md``.
        """
        is_binary = len(weights) == 2
        has_common = not is_binary and rarity is not None and rarity.degree > 0.0
        common = rarity.common if rarity is not None and has_common else None
        if centre:
            scores = apply_to_chunks(np.subtract, scores, centre)
        exact = sum_over_chunks(score_counts, scores, classes, people, common, record_weights)
        counts, spread = permit.release(exact, self.noise), noise_deviation(self.noise)
        if not is_binary and common is None:
            return _likeliest_line(counts, spread)
        if rarity is None:
            rarity = Rarity.unknown()
        population = math.log(weights[1] / weights[0]) if is_binary else 0.0
        curve = _likeliest(counts, spread, population, rarity, centre=centre, usual_slope=slope)
        if not is_binary:
            return replace(curve, common=common)
        return replace(curve, counts=NoisyCounts(_EDGES + centre, counts, spread, weights))


def affordable_calibration(n_samples: int, budget: Budget) -> tuple[CalibrationPlan | None, Budget]:
    """Plan the counts within a part of a budget; return the remaining budget, too.

    The plan is None if the noise would exceed the counts.
    """
    if budget.is_infinite:
        return CalibrationPlan(NoNoise()), budget
    part, rest = budget.split(_PURE_SHARE if budget.is_pure else _SHARE)
    strength = n_samples * (0.5 * part.epsilon if budget.is_pure else part.mu)
    if strength < _LEAST_STRENGTH:
        return None, budget
    if budget.is_pure:
        return CalibrationPlan(DiscreteLaplaceNoise(_PURE_SENSITIVITY, part.epsilon)), rest
    return CalibrationPlan(GaussianNoise(_SENSITIVITY, part.mu)), rest


def score_counts(
    scores: FloatArray,
    classes: NDArray[np.intp],
    people: People | None = None,
    common: int | None = None,
    record_weights: FloatArray | None = None,
) -> FloatArray:
    """Count records by score and by whether the label is the lower or the higher one of two.

    For two classes these are the two labels. For more classes they are the labels of the two
    largest scores, the score is the difference of these, and records of other labels are not
    counted. With `common`, a released class index, the lower label is that class, the higher one
    is any other class, and the score is the largest score of the others less that of `common`.
    The counts are exact, also with weights of the records, and of shape (2, 2 * _PER_SIDE).
    Replacing a record moves them by at most ``sqrt(2)`` in Euclidean norm and by 2 in the sum of
    absolute values: ``docs/proofs/calibration.md``, Lemma 1.
    """
    is_higher = classes == 1
    counted = np.ones(len(classes), dtype=bool)
    if common is not None:
        is_higher = classes != common
        scores = np.delete(scores, common, axis=1).max(axis=1) - scores[:, common]
    elif scores.ndim == 2:
        order = np.argsort(scores, axis=1, kind="stable")
        rows = np.arange(len(scores))
        first, second = order[:, -1], order[:, -2]
        scores = scores[rows, first] - scores[rows, second]
        is_higher = classes == first
        counted = is_higher | (classes == second)
    # Cells are found by comparisons with their borders, which are exact.
    place = np.searchsorted(_ENDS, np.abs(scores), side="right")
    cell = np.where(scores < 0, _PER_SIDE - 1 - place, _PER_SIDE + place)
    cell += 2 * _PER_SIDE * is_higher
    weights = np.ones(len(classes)) if record_weights is None else record_weights
    weights = weights if people is None else people.weights
    counts = np.bincount(cell[counted], weights[counted], minlength=4 * _PER_SIDE)
    return counts.reshape(2, 2 * _PER_SIDE).astype(np.float64)


def _cell_likelihoods(counts: FloatArray, deviation: float) -> FloatArray:
    """Return log likelihoods of the log odds `_LOG_ODDS`, of shape (n_cells, len(_LOG_ODDS)).

    The number ``N`` of records in a cell is unknown, with a flat prior on numbers from zero on.
    Given ``N`` and the probability ``p`` of the higher label, the difference of the noisy counts is
    normal with mean ``N (2 p - 1)`` and variance ``4 N p (1 - p) + 2 deviation^2``. Their sum is
    ``N`` plus noise that is independent of the noise of the difference.
    """
    spread = math.sqrt(2.0) * deviation + 1e-9
    total, difference = counts.sum(axis=0), counts[1] - counts[0]
    low = np.maximum(total - _FARTHEST * spread, 0.0)
    high = np.maximum(total, 0.0) + _FARTHEST * spread
    sizes = np.linspace(low, high, _N_SIZES, axis=1)
    prior = -0.5 * ((sizes - total[:, None]) / spread) ** 2
    probability = expit(_LOG_ODDS)
    expected = sizes[:, :, None] * (2.0 * probability - 1.0)
    variance = (
        4.0 * sizes[:, :, None] * (probability * (1.0 - probability)) + spread**2 + _LEAST_VARIANCE
    )
    fit = (difference[:, None, None] - expected) ** 2 / variance + np.log(variance)
    return np.asarray(logsumexp(prior[:, :, None] - 0.5 * fit, axis=1))


def _side(tables: FloatArray, totals: FloatArray, side: float, offsets: FloatArray) -> Any:
    """Return statistics of the cells on one side of zero, for every slope and offset.

    These are the log likelihood, the sum over records of the probability of the higher label, and
    the sum over cells of its square, each of shape (n_slopes, n_offsets).
    """
    slopes = np.exp(_LOG_SLOPES)
    fit, seen, squares = np.zeros((3, len(slopes), len(offsets)))
    for k, middle in enumerate(_MIDDLES):
        cell = _PER_SIDE - 1 - k if side < 0 else _PER_SIDE + k
        odds = side * middle * slopes[:, None] + offsets
        fit += np.interp(odds, _LOG_ODDS, tables[cell])
        probability = expit(odds)
        seen += totals[cell] * probability
        squares += probability**2
    return fit, seen, squares


def _likeliest_line(counts: FloatArray, deviation: float) -> CalibrationCurve:
    """Return the line through zero with the posterior mean slope, for more than two classes."""
    tables = _cell_likelihoods(counts, deviation)
    fit = _side(tables, counts.sum(axis=0), 1.0, np.zeros(1))[0][:, 0]
    belief = softmax(fit - 0.5 * ((_LOG_SLOPES - math.log(DEFAULT_SLOPE)) / _SLOPE_DEVIATION) ** 2)
    return line(math.exp(belief @ _LOG_SLOPES))


def _likeliest(
    counts: FloatArray,
    deviation: float,
    population: float,
    rarity: Rarity,
    *,
    centre: float = 0.0,
    usual_slope: float = DEFAULT_SLOPE,
) -> CalibrationCurve:
    """Return the posterior mean of the probabilities over a public grid of curves.

    A curve is a line of log odds on each side of `centre`, with a common offset. If the centre is
    far from zero, the prior of the offset has its mean towards the log odds of the rare class.
    `usual_slope` is the prior median of both slopes, which differ less with a rare class.
    `population` is the logarithm of the ratio of the class weights: the log odds of the counted
    records are lower by this number. The count of the classes is one more observation, of the sum
    of all probabilities.
    """
    degree, usual = rarity.degree, rarity.log_odds_of_second
    middle = _TOWARDS_SHARE * abs(centre) / (abs(centre) + _FAR) * degree * usual
    offsets = (0.5 + 0.5 * degree) * _OFFSETS + middle
    tables, totals = _cell_likelihoods(counts, deviation), counts.sum(axis=0)
    low, high = (_side(tables, totals, side, offsets - population) for side in (-1.0, 1.0))
    fit, seen, squares = (a[:, None, :] + b[None, :, :] for a, b in zip(low, high, strict=True))
    means = np.add.outer(_LOG_SLOPES, _LOG_SLOPES) / 2.0 - math.log(usual_slope)
    between = np.subtract.outer(_LOG_SLOPES, _LOG_SLOPES)
    unlike = _SLOPE_DIFFERENCE + (_RARE_SLOPE_DIFFERENCE - _SLOPE_DIFFERENCE) * degree
    prior = (means / _SLOPE_DEVIATION) ** 2 + (between / unlike) ** 2
    width = _OFFSET_DEVIATION + (_RARE_DEVIATION - _OFFSET_DEVIATION) * degree
    fit -= 0.5 * (prior[:, :, None] + ((offsets - middle) / width) ** 2)
    if math.isfinite(rarity.deviation):
        part = rarity.second
        # Variances of the noise of the class count, of the noise of the cells, and of the labels.
        variance = rarity.deviation**2 + 2.0 * deviation**2 * squares
        variance += rarity.total * part * (1.0 - part) + 1.0
        fit -= 0.5 * (rarity.total * part - seen) ** 2 / variance
    belief = softmax(fit)
    lower, higher = belief.sum(axis=1), belief.sum(axis=0)
    probabilities = [_mean_log_odds(_KNOTS[_KNOTS < 0], lower, offsets)]
    probabilities.append(_mean_log_odds(_KNOTS[_KNOTS >= 0], higher, offsets))
    found = np.concatenate(probabilities)
    slope = math.exp(higher.sum(axis=1) @ _LOG_SLOPES)
    if rarity.trust < 1.0:
        # Probabilities are averaged instead of log odds, so that the expected number of records of
        # the class does not change.
        known, unknown = math.log(rarity.trust), math.log1p(-rarity.trust)
        found, none = (
            np.logaddexp(known + log_expit(sign * found), unknown + log_expit(sign * usual))
            for sign in (1.0, -1.0)
        )
        found = found - none + _LEAST_RISE * _KNOTS
    # The mean of rising curves rises, up to rounding errors.
    return CalibrationCurve(_KNOTS + centre, np.maximum.accumulate(found), slope=slope)


def _mean_log_odds(scores: FloatArray, belief: FloatArray, offsets: FloatArray) -> FloatArray:
    """Return the log odds of the mean probability at scores, over lines weighted by `belief`."""
    odds = scores[:, None, None] * np.exp(_LOG_SLOPES)[:, None] + offsets
    sure = np.log(np.maximum(belief, 1e-300))
    up, down = (logsumexp(log_expit(sign * odds) + sure, axis=(1, 2)) for sign in (1.0, -1.0))
    return np.asarray(up - down)


def evidence_of_ranking(
    seen: NoisyCounts, scores: FloatArray, n_samples: int, rarity: Rarity | None
) -> float:
    """Return by how many standard deviations noisy counts exceed those of a ranking by chance.

    `scores` are those of generated rows, which show in which cells records are expected; `rarity`
    describes the sizes of the classes, None if they were not counted. In a cell the number of
    records of the higher label, less the share of this label times the number of all records, is
    near zero if scores and labels are independent. Cells are weighted so that the difference that
    the default slope would make is as significant as possible.
    """
    lower, higher = seen.counts
    if rarity is not None and math.isfinite(rarity.deviation):
        share, error = rarity.second, rarity.deviation / max(rarity.total, 1.0)
    else:
        total = max(float(seen.counts.sum()), 1.0)
        share, error = float(higher.sum()) / total, seen.deviation * math.sqrt(len(lower)) / total
    share = min(max(share, RAREST), 1.0 - RAREST)
    cell = np.clip(np.searchsorted(seen.edges, scores, side="right") - 1, 0, len(lower) - 1)
    sizes = n_samples * np.bincount(cell, minlength=len(lower)) / len(scores)
    middles = np.concatenate([-_MIDDLES[::-1], _MIDDLES]) + seen.edges[_PER_SIDE]
    # The curve with the default slope and the known share of the higher label.
    far = 2.0 * float(logit(1.0 - RAREST)) / DEFAULT_SLOPE
    start = brentq(
        lambda at: sizes @ (expit(DEFAULT_SLOPE * (middles - at)) - share),
        middles[0] - far,
        middles[-1] + far,
    )
    expected = sizes * (expit(DEFAULT_SLOPE * (middles - start)) - share)
    # Some variance on the rows of a fit is due to the fit itself: with labels that are unrelated to
    # the rows, it still ranks these rows. A ranking with the area a on N rows is
    # sqrt(12 N p (1 - p)) (a - 1/2) standard deviations of the sampling above chance.
    sampling = sizes * share * (1.0 - share)
    sampling = sampling * (1.0 + _OVERFITTED**2 * 12.0 * sampling.sum() / SIGNIFICANT**2)
    variance = seen.deviation**2 * (share**2 + (1.0 - share) ** 2) + sampling + _LEAST_VARIANCE
    # `expected` times the inverse covariance of the cells, which have the error of the share in
    # common.
    weights, common = expected / variance, error**2 * sizes / variance
    weights -= common * (weights @ sizes) / (1.0 + common @ sizes)
    spread = weights**2 @ variance + (weights @ sizes * error) ** 2
    found = weights @ (higher * (1.0 - share) - lower * share)
    return float(found / math.sqrt(spread)) if spread > 0.0 else 0.0
