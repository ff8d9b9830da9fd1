"""Probabilities from scores: noisy counts of scores, then a line through them.

Every record is counted once, in a cell of its score and of whether its label is the higher one of
two. A slope and, for two classes, an offset turn scores into log odds: those that explain the
noisy counts best, drawn to a public guess by the noise. Proof: ``docs/proofs/calibration.md``.
Thresholds for a recall, a precision or a false positive rate are computed from the same released
counts, so they cost nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, log_softmax, logsumexp, softmax

from dp_halfspace._rounding import UP
from dp_halfspace.algorithms.engine.class_counts import Rarity
from dp_halfspace.algorithms.engine.plan import FloatArray, noise_deviation
from dp_halfspace.data.chunks import apply_to_chunks, sum_over_chunks
from dp_halfspace.data.people import People
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.mechanisms import GaussianNoise, NoNoise, Permit
from dp_halfspace.privacy.noise import DiscreteLaplaceNoise

# Share of mu^2 for the counts of scores.
_SHARE = 0.04
# Share of epsilon for them where it is pure.
_PURE_SHARE = 0.1
# Smallest n mu (n epsilon / 2) of that share with which scores are counted.
_LEAST_STRENGTH = 25.0
# Log odds for a score, before anything is known, and how far its logarithm may be wrong; how far
# the slopes of scores of both signs differ.
DEFAULT_SLOPE = 0.1
_SLOPE_DEVIATION = 0.5
_SLOPE_DIFFERENCE = 0.5
_LOG_SLOPES = np.linspace(math.log(0.003), math.log(2.0), 51)
# Prior deviation of the log odds at a score of zero, for classes of like size.
_OFFSET_DEVIATION = 0.2
# The same with a rare class.
_RARE_DEVIATION = 1.2
# Mean of that offset behind a centre of scores far from zero, relative to the log odds of the share
# of the rare class; and how far from zero half of it is assumed.
_TOWARDS_SHARE = 0.6
_FAR = 30.0
_OFFSETS = np.linspace(-3.0, 3.0, 49)
# Borders of the cells of scores, on both sides of zero: powers of two.
_ENDS = 2.0 ** np.arange(1.5, 8.0)
_MIDDLES = 2.0 ** np.concatenate([[0.7], np.arange(2.0, 7.5), [8.0]])
_PER_SIDE = len(_ENDS) + 1
_EDGES = np.concatenate([[-512.0], -_ENDS[::-1], [0.0], _ENDS, [512.0]])
# Log odds for which the likelihood of the counts of a cell is tabulated, and the numbers of its
# records: so many, up to so many deviations of their noise from what was counted.
_LOG_ODDS = np.linspace(-16.0, 16.0, 257)
_N_SIZES = 41
_FARTHEST = 4.0
# Scores at which the curve is stated.
_POSITIVE = 2.0 ** (np.arange(-4.0, 37.0) / 4.0)
_KNOTS = np.concatenate([-_POSITIVE[::-1], [0.0], _POSITIVE])
# Of an exact count, where there is no noise.
_LEAST_VARIANCE = 1e-6
_SENSITIVITY = math.sqrt(2.0) * UP
_PURE_SENSITIVITY = 2


@dataclass(frozen=True, slots=True, eq=False)
class NoisyCounts:
    """Released counts of labels, of shape (2, n_cells), by cells of scores between `edges`.

    `deviation` is that of the noise of a count, `weights` are those of the two classes.
    """

    edges: FloatArray
    counts: FloatArray
    deviation: float
    weights: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationCurve:
    """Log odds at increasing scores; lines lie between them and go on beyond.

    Post-processing of what was released. Of more than two classes the scores are those of one
    class, less one another, times the slope of a line; or, with a `common` class, the curve
    describes how likely all others are by the largest of their scores less that of the common
    class, and among them one is as much likelier as `slope` times the scores says. `counts` are
    those that a curve of two classes was made from.
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
        return np.asarray(y[place] + slope[place - 1] * (scores - x[place]))


def line(slope: float, offset: float = 0.0) -> CalibrationCurve:
    """Return a curve that is a line."""
    ends = np.array([0.0, 1.0])
    return CalibrationCurve(ends, offset + slope * ends)


def uncounted_curve(rarity: Rarity | None) -> CalibrationCurve:
    """Return log odds where only the classes were counted, if at all."""
    if rarity is None:
        return line(DEFAULT_SLOPE)
    trust = rarity.trust
    return line(trust * DEFAULT_SLOPE, (1.0 - trust) * rarity.log_odds_of_second)


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
        """Whether its noise lives on the integers, as that of pure budgets does."""
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
    ) -> CalibrationCurve:
        """Return the log odds of scores; `weights` are those of the classes.

        `rarity` is what was released of their sizes, where that was counted; `centre` the score of
        two classes at which their cells meet and slopes may change, a public or released number.

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one, of a record or of a person with all rows.
        - Released: noisy counts of the scores of a released model; the curve is a function of them.
        - Sensitivity: of the counts ``sqrt(2)``, or 2 for pure DP.
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
        curve = _likeliest(counts, spread, population, rarity, centre)
        if not is_binary:
            return replace(curve, common=common)
        return replace(curve, counts=NoisyCounts(_EDGES + centre, counts, spread, weights))


def affordable_calibration(n_samples: int, budget: Budget) -> tuple[CalibrationPlan | None, Budget]:
    """Plan the counts as a part of a budget; return the rest, too.

    No plan if the counts would be below the noise.
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

    For two classes these are the labels. Of more classes they are those of the two highest scores,
    which are compared by their difference, and records of other labels count nowhere; or the label
    `common`, a released number, and any other, by the largest score of the others less its own.
    Exact, of shape (2, 2 * _PER_SIDE), with weights of the records, too; replacing a record moves
    it by at most ``sqrt(2)``, by 2 in absolute values.
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
    # Comparisons with the ends of cells, so that no rounding depends on where a row stands.
    place = np.searchsorted(_ENDS, np.abs(scores), side="right")
    cell = np.where(scores < 0, _PER_SIDE - 1 - place, _PER_SIDE + place)
    cell += 2 * _PER_SIDE * is_higher
    weights = np.ones(len(classes)) if record_weights is None else record_weights
    weights = weights if people is None else people.weights
    counts = np.bincount(cell[counted], weights[counted], minlength=4 * _PER_SIDE)
    return counts.reshape(2, 2 * _PER_SIDE).astype(np.float64)


def _cell_likelihoods(counts: FloatArray, deviation: float) -> FloatArray:
    """Return log likelihoods of the log odds `_LOG_ODDS`, of shape (n_cells, len(_LOG_ODDS)).

    The number of records in a cell is unknown and takes every value alike, from zero on. Of ``N``
    records with the probability ``p`` the difference of the noisy counts is normal with mean
    ``N (2 p - 1)`` and variance ``4 N p (1 - p) + 2 deviation^2``, and their sum is ``N`` and noise
    that has nothing to do with that of the difference.
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
    """Return what the cells of one sign of scores say of every slope and offset.

    That is the log likelihood, and the sums over records of their probability and over cells of its
    square, each of shape (n_slopes, n_offsets).
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
    """Return the line through zero of the mean slope, for differences of scores of more classes."""
    tables = _cell_likelihoods(counts, deviation)
    fit = _side(tables, counts.sum(axis=0), 1.0, np.zeros(1))[0][:, 0]
    belief = softmax(fit - 0.5 * ((_LOG_SLOPES - math.log(DEFAULT_SLOPE)) / _SLOPE_DEVIATION) ** 2)
    return line(math.exp(belief @ _LOG_SLOPES))


def _likeliest(
    counts: FloatArray, deviation: float, population: float, rarity: Rarity, centre: float = 0.0
) -> CalibrationCurve:
    """Return the mean probabilities of all curves on a public grid, weighed by their likelihood.

    A curve is a line of log odds for scores on each side of `centre`, with a common offset, which
    lies towards the log odds of the rare class where this is far from zero. `population` is
    the logarithm of the ratio of the class weights: log odds of the counted records are so much
    lower. The count of the classes is one more observation of the sum of all probabilities.
    """
    degree, usual = rarity.degree, rarity.log_odds_of_second
    middle = _TOWARDS_SHARE * abs(centre) / (abs(centre) + _FAR) * degree * usual
    offsets = (0.5 + 0.5 * degree) * _OFFSETS + middle
    tables, totals = _cell_likelihoods(counts, deviation), counts.sum(axis=0)
    low, high = (_side(tables, totals, side, offsets - population) for side in (-1.0, 1.0))
    fit, seen, squares = (a[:, None, :] + b[None, :, :] for a, b in zip(low, high, strict=True))
    means = np.add.outer(_LOG_SLOPES, _LOG_SLOPES) / 2.0 - math.log(DEFAULT_SLOPE)
    between = np.subtract.outer(_LOG_SLOPES, _LOG_SLOPES)
    prior = (means / _SLOPE_DEVIATION) ** 2 + (between / _SLOPE_DIFFERENCE) ** 2
    width = _OFFSET_DEVIATION + (_RARE_DEVIATION - _OFFSET_DEVIATION) * degree
    fit -= 0.5 * (prior[:, :, None] + ((offsets - middle) / width) ** 2)
    if math.isfinite(rarity.deviation):
        part = rarity.second
        # Noise of the count, that of the cells as far as they are counted, and that of the labels.
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
        # Probabilities are averaged, not log odds: as many records are expected as before.
        known, unknown = math.log(rarity.trust), math.log1p(-rarity.trust)
        found, none = (
            np.logaddexp(known + log_expit(sign * found), unknown + log_expit(sign * usual))
            for sign in (1.0, -1.0)
        )
        found = found - none
    return CalibrationCurve(_KNOTS + centre, found, slope=slope)


def _mean_log_odds(scores: FloatArray, belief: FloatArray, offsets: FloatArray) -> FloatArray:
    """Return log odds of the mean probability at scores, over lines of which this is believed."""
    odds = scores[:, None, None] * np.exp(_LOG_SLOPES)[:, None] + offsets
    sure = np.log(np.maximum(belief, 1e-300))
    up, down = (logsumexp(log_expit(sign * odds) + sure, axis=(1, 2)) for sign in (1.0, -1.0))
    return np.asarray(up - down)


# What a threshold can be chosen for.
TARGETS = ("recall", "precision", "false_positive_rate")
# Places over which the scores of one cell are taken to be spread evenly.
_PLACES = 32
# Standard deviations from the estimate to both ends of an interval of 90 %.
_NORMAL_QUANTILE = 1.645
# Part of the records of a cell that may lie on the other side of a threshold within it.
_UNEVEN = 0.15


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """A threshold, and what it is expected to reach: a function of what was released.

    Parameters
    ----------
    target : str
        ``"recall"``, ``"precision"`` or ``"false_positive_rate"`` of the second class.
    wanted : float
        The value that was asked for, in (0, 1).
    log_odds : float
        Rows whose calibrated log odds are larger have the second label.
    estimate : float
        What the noisy counts say it reaches: about `wanted`, or far from it where they say little.
    interval : tuple of float
        Ends of an interval for it, at 90 %, by the noise of the counts and by their size; (0, 1)
        where nothing is known.
    """

    target: str
    wanted: float
    log_odds: float
    estimate: float
    interval: tuple[float, float]


def _on_both_sides(seen: NoisyCounts, place: int) -> FloatArray:
    """Return counts above and below a threshold, by class, with their variances.

    Of shape (2, 2, 2). The threshold lies so many places from the highest score down; of its cell
    the part above is counted, and how the records of the cell are spread is one more uncertainty.
    """
    n_cells = seen.counts.shape[1]
    part = np.clip(place / _PLACES - np.arange(n_cells)[::-1], 0.0, 1.0)
    split = np.maximum(seen.counts, 0.0) * _UNEVEN * ((part > 0.0) & (part < 1.0))
    sides = []
    for share in (part, 1.0 - part):
        counts = seen.counts @ share
        variance = seen.deviation**2 * float(share @ share) + np.maximum(counts, 0.0)
        sides.append(np.column_stack([counts, variance + (split**2).sum(axis=1)]))
    return np.array(sides)


def _ratio(first: Any, second: Any, usual: float) -> tuple[float, tuple[float, float]]:
    """Return the share of the first of two noisy counts in both, and an interval for it.

    Everything is possible, and `usual` stands for it, where both together are not told from zero.
    """
    (a, var_a), (b, var_b) = first, second
    both = float(a + b)
    if both <= 2.0 * _NORMAL_QUANTILE * math.sqrt(var_a + var_b):
        return usual, (0.0, 1.0)
    estimate = min(max(float(a) / both, 0.0), 1.0)
    spread = (
        _NORMAL_QUANTILE * math.sqrt((1.0 - estimate) ** 2 * var_a + estimate**2 * var_b) / both
    )
    return estimate, (max(estimate - spread, 0.0), min(estimate + spread, 1.0))


def operating_point(curve: CalibrationCurve, target: str, wanted: float) -> OperatingPoint:
    """Choose the threshold that comes up to a target with the most, or least, positives.

    Of thresholds with the recall, the highest; of those with the precision, or with no more false
    positives, the lowest.
    """
    seen = curve.counts
    assert seen is not None
    lower, higher = seen.weights
    # The number of records of a cell cannot be negative; and their scores are spread evenly.
    sizes = np.maximum(seen.counts.sum(axis=0), 0.0)
    part = (np.arange(_PLACES) + 0.5) / _PLACES
    places = (seen.edges[:-1, None] + np.diff(seen.edges)[:, None] * part).ravel()
    mass = np.repeat(sizes, _PLACES) / _PLACES
    odds = curve(places)
    probability = expit(odds - math.log(higher / lower))
    # From the highest score down; the first threshold is above all.
    true = np.concatenate([[0.0], np.cumsum((mass * probability * higher)[::-1])])
    false = np.concatenate([[0.0], np.cumsum((mass * (1.0 - probability) * lower)[::-1])])
    ends = np.concatenate(
        [[odds[-1] + 1.0], (odds[::-1][:-1] + odds[::-1][1:]) / 2.0, [odds[0] - 1.0]]
    )
    total, rest = max(true[-1], 1e-9), max(false[-1], 1e-9)
    if target == "recall":
        reached = true / total
        fits = np.flatnonzero(reached >= wanted)
        place = int(fits[0]) if len(fits) else len(ends) - 1
    elif target == "precision":
        reached = true / np.maximum(true + false, 1e-9)
        fits = np.flatnonzero(reached >= wanted)
        place = int(fits[-1]) if len(fits) else int(np.argmax(reached))
    else:
        reached = false / rest
        place = int(np.flatnonzero(reached <= wanted)[-1])
    # The curve chooses; what it reaches is read off the counts themselves, which no shape bends.
    over, under = _on_both_sides(seen, place)
    pairs = {
        "recall": (over[1], under[1]),
        "precision": (over[1] * [higher, higher**2], over[0] * [lower, lower**2]),
        "false_positive_rate": (over[0], under[0]),
    }
    estimate, interval = _ratio(*pairs[target], float(reached[place]))
    return OperatingPoint(target, wanted, float(ends[place]), estimate, interval)
