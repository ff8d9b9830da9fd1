"""Noisy counts of the classes, and the settings of a fit that follow from them.

Replacing a record changes the one count of two classes by at most one, or two counts of more
classes by one each, so that counts cost little; what is computed from noisy counts is
post-processing. No scale of noise depends on them: class weights are at most one, and every
sensitivity is computed for weight one. Proof: ``docs/proofs/rare.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from dp_halfspace._rounding import UP
from dp_halfspace.algorithms.engine.plan import FloatArray
from dp_halfspace.data.chunks import sum_over_chunks
from dp_halfspace.data.people import People
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.mechanisms import GaussianNoise, NoNoise, Permit
from dp_halfspace.privacy.noise import DiscreteLaplaceNoise

# Least and largest share of mu^2 for the counts.
_LEAST_SHARE = 0.02
_LARGEST_SHARE = 0.03
# Between these limits the square root of the share is this number over n mu.
_COUNTED = 26.0
# Every class is assumed to hold at least this share of the records.
RAREST = 0.001


@dataclass(frozen=True, slots=True)
class ClassCountPlan:
    """The public numbers of noisy counts of the classes.

    Of two classes only the second is counted, because the number of records is public. If records
    have weights, their sums are released instead; the sum of all weights is private, so every class
    is counted. If the second class was `counted_before`, this plan releases nothing, and a run uses
    the number that was `released` then.
    """

    n_samples: int
    n_classes: int
    noise: GaussianNoise | DiscreteLaplaceNoise | NoNoise
    are_weighed: bool = False
    counted_before: bool = False
    released: float | None = None

    def run(
        self,
        classes: Any,
        permit: Permit,
        people: People | None = None,
        weights: FloatArray | None = None,
    ) -> tuple[FloatArray, float]:
        """Release noisy numbers of records of each class, and return the number of all records.

        A person is counted by the shares of its rows in each class, a record by its weight; both
        sums are exact. The number of all records is public. If they have weights, the sum of the
        released numbers is returned instead, limited to [1, n].

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one, of a record or of a person with all rows.
        - Released: noisy counts of the classes.
        - Sensitivity: 1 for two classes, ``sqrt(2)`` for more classes or with weights of records.
        - Proof: ``docs/proofs/rare.md``, section 1; ``persons.md`` and ``weights.md``.
        """
        if self.released is not None:
            return np.array([self.n_samples - self.released, self.released]), self.n_samples
        exact = sum_over_chunks(class_counts, classes, self.n_classes, people, weights)
        if self.n_classes == 2 and not self.are_weighed:
            second = float(permit.release(exact[1:], self.noise)[0])
            return np.array([self.n_samples - second, second]), self.n_samples
        counts = permit.release(exact, self.noise)
        if not self.are_weighed:
            return counts, self.n_samples
        return counts, float(np.clip(counts.sum(), 1.0, max(self.n_samples, 1.0)))


def plan_class_counts(
    n_samples: int, n_classes: int, mu: float, *, are_weighed: bool = False
) -> tuple[ClassCountPlan, float]:
    """Plan the counts within a part of a Gaussian budget; return the remaining mu, too."""
    if math.isinf(mu):
        return ClassCountPlan(n_samples, n_classes, NoNoise(), are_weighed), mu
    share = min(max((_COUNTED / (n_samples * mu)) ** 2, _LEAST_SHARE), _LARGEST_SHARE)
    part, rest = Budget.gaussian(mu).split(share)
    # docs/proofs/rare.md, Lemma 1; with weights of records, docs/proofs/weights.md, Lemma 1.
    sensitivity = UP if n_classes == 2 and not are_weighed else math.sqrt(2.0) * UP
    noise = GaussianNoise(sensitivity, part.mu)
    return ClassCountPlan(n_samples, n_classes, noise, are_weighed), rest.mu


def class_counts(
    classes: NDArray[np.intp],
    n_classes: int,
    people: People | None = None,
    weights: FloatArray | None = None,
) -> FloatArray:
    """Return the exact number of rows of each class, or the sum of their weights.

    With `people`, the weight of a row is one over the number of rows of its person.

    Replacing a record moves each count by at most one and the vector by at most ``sqrt(2)``.
    """
    weights = weights if people is None else people.weights
    return np.bincount(classes, weights, minlength=n_classes).astype(np.float64)


# The degree in [0, 1] says how far a fit is adapted to a rare class (`Rarity`). It is zero if the
# share of the rarer of two classes is at least this limit. The released share is raised by one
# standard deviation of its noise, and so is this limit, but not above the next one.
_EVEN = 0.1
# The same limit with features in addition to the columns, and for more than two classes.
_EVEN_OF_FEATURES = 0.15
_EVEN_OF_MANY = 0.2
# Power of the share with which the degree falls to zero there, for two classes and for more.
_FALL = 3
_FALL_OF_MANY = 2
# Number of records of the rarer of two classes, times mu, at which the degree is halved: with more
# of them the fit for classes of similar size ranks as well, and separates the rarer class better.
_MANY = 160.0
# A larger mu counts as this one in that product.
_MOST_MU = 0.6
# Records times mu beyond this number for each column do not count in that product: few columns
# hardly separate many records, so that the fit for classes of similar size would rank them worse.
_PER_COLUMN = 2.0
# Power of the ratio to `_MANY` with which the degree falls.
_STEEPNESS = 4
# Values of `_MANY` and `_STEEPNESS` for encoded tables, whose scores are calibrated: there it takes
# more records until the fit for classes of similar size is better.
_MANY_OF_TABLES = 180.0
_STEEPNESS_OF_TABLES = 8
# With more than two classes, the number of records of the rarer classes, times mu, at which the
# degree is halved because of noise.
_RESOLVED = 30.0
# Number of records of the rarer classes, times mu, at which a probability is half that of the
# scores and half the share of the class.
_TRUSTED = 10.0


@dataclass(frozen=True, slots=True)
class Rarity:
    """Released information on the classes other than the most common one, from noisy counts.

    `common` is the index of the class with most records. `share` is that of the records of all
    other classes, in [0.001, 1/2], with public class weights; `records` is their number times mu.
    `degree` in [0, 1] says how rare they are: 0 means the fit for classes of similar size.
    `second` is the share of the second of two classes, or of all but the common class, without
    weights. `deviation` is that of the noise of a count, `mu` the budget of the fit, and `total`
    the number of records or, if they have weights, what was released of the sum of these.
    """

    common: int
    share: float
    records: float
    degree: float
    deviation: float
    second: float
    is_of_many: bool = False
    mu: float = 0.0
    total: float = 0.0

    @classmethod
    def unknown(cls) -> Rarity:
        """Return what holds if nothing was counted: classes of equal size, with any error."""
        return cls(0, 0.5, math.inf, 0.0, math.inf, 0.5)

    @property
    def trust(self) -> float:
        """Weight, in [0, 1], of the scores in a probability; class sizes have the rest."""
        return float((1.0 + (_TRUSTED / self.records) ** 2) ** -self.degree)

    @property
    def log_odds_of_second(self) -> float:
        """Log odds of the second class, or of all but the common one, by the class sizes alone."""
        odds = float(logit(self.share))
        return odds if self.common == 0 or self.is_of_many else -odds


def rarity_of(
    counts: FloatArray,
    weights: FloatArray,
    deviation: float,
    total: float,
    mu: float,
    *,
    has_features: bool = False,
    n_columns: float = math.inf,
    is_table: bool = False,
) -> Rarity:
    """Describe the rarer class of a population with public class weights, by released counts.

    `total` is the number of records, or what was released of the sum of their weights; `n_columns`
    is the number of columns or features of the model. With `has_features`, features in addition to
    columns, a class is rare up to a larger share. With `is_table` calibration will correct the
    scores.
    """
    kept = np.clip(counts, 0.0, total)
    common, is_of_many = int(np.argmax(kept * weights)), len(counts) > 2
    counted = float(total - kept[common] if is_of_many else kept[1 - common])
    others = min(max((counted + deviation) / total, RAREST), 0.5)
    records = others * total * mu
    size = others * float(np.delete(weights, common).mean())
    share = min(max(size / (size + (1.0 - others) * float(weights[common])), RAREST), 0.5)
    even = _EVEN_OF_FEATURES
    if is_of_many:
        even = _EVEN_OF_MANY
    elif not has_features:
        even = min(_EVEN + deviation / total, _EVEN_OF_FEATURES)
    fall = _FALL_OF_MANY if is_of_many else _FALL
    degree = max(0.0, 1.0 - (share / even) ** fall)
    if is_of_many:
        degree /= 1.0 + (_RESOLVED / records) ** 2
    else:
        many = min(others * total * min(mu, _MOST_MU), _PER_COLUMN * n_columns)
        halved, steepness = (
            (_MANY_OF_TABLES, _STEEPNESS_OF_TABLES) if is_table else (_MANY, _STEEPNESS)
        )
        degree /= 1.0 + (many / halved) ** steepness
    second = (counted if is_of_many else float(kept[1])) / total
    return Rarity(common, share, records, degree, deviation, second, is_of_many, mu, total)


def balanced_weights(
    counts: FloatArray, deviation: float, total: float, n_recounted: float = 0.0
) -> FloatArray:
    """Return class weights of at most one, inversely proportional to released class sizes.

    The rarest class has weight one. For these sizes a number of records is subtracted from the
    largest class and added to every other one: the standard deviation of the noise, in case it made
    a class look rarer than it is, or `n_recounted` if that is larger.
    """
    kept = np.clip(counts, 0.0, total)
    common = int(np.argmax(kept))
    change = max(deviation, n_recounted)
    sizes = np.maximum(kept + change, RAREST * total)
    sizes[common] = max(kept[common] - change, float(np.delete(sizes, common).max()))
    sizes = np.minimum(sizes, sizes[common])
    return np.asarray(sizes.min() / sizes)
