"""Noisy counts of the classes, and what a fit follows in them.

Replacing a record changes one count of two classes by one at most, or two counts of more classes
by one each, so that they cost little; what is computed from noisy counts is free. No scale of
noise is: weights are at most one, and one is what every sensitivity is computed with. Proof:
``docs/proofs/rare.md``.
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
# Between them the root of the share is this number over n mu.
_COUNTED = 26.0
# A class is assumed to hold at least this share of the records.
RAREST = 0.001


@dataclass(frozen=True, slots=True)
class ClassCountPlan:
    """The public numbers of noisy counts of the classes.

    Of two classes the second is counted: the number of records is public. Where records have
    weights, which are added up then, the sum of all is not, and every class is counted. If the
    second class was `counted_before`, nothing is released here, and a run uses the number
    `released` then.
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
        """Release the number of records of each class, as any real numbers, and of all of them.

        A person counts by the shares of the rows of each class, a record by its weight; both add
        exactly. The number of all is public, unless they have weights.

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one, of a record or of a person with all rows.
        - Released: noisy counts of the classes.
        - Sensitivity: 1 of two classes, ``sqrt(2)`` of more or where records have weights.
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
    """Plan the counts as a part of a Gaussian budget; return the mu that is left, too."""
    if math.isinf(mu):
        return ClassCountPlan(n_samples, n_classes, NoNoise(), are_weighed), mu
    share = min(max((_COUNTED / (n_samples * mu)) ** 2, _LEAST_SHARE), _LARGEST_SHARE)
    part, rest = Budget.gaussian(mu).split(share)
    sensitivity = UP if n_classes == 2 and not are_weighed else math.sqrt(2.0) * UP
    noise = GaussianNoise(sensitivity, part.mu)
    return ClassCountPlan(n_samples, n_classes, noise, are_weighed), rest.mu


def class_counts(
    classes: NDArray[np.intp],
    n_classes: int,
    people: People | None = None,
    weights: FloatArray | None = None,
) -> FloatArray:
    """Count the rows of each class, or add up their weights or their shares of people; exact.

    Replacing a record moves each count by at most one and the vector by at most ``sqrt(2)``.
    """
    weights = weights if people is None else people.weights
    return np.bincount(classes, weights, minlength=n_classes).astype(np.float64)


# Share of the records from which on two classes have like sizes.
_EVEN = 0.1
# The same with features behind the columns, and for more than two classes.
_EVEN_OF_FEATURES = 0.15
_EVEN_OF_MANY = 0.2
# Power of the share with which the degree falls to zero there, of two classes and of more.
_FALL = 3
_FALL_OF_MANY = 2
# Records of the rarer of two classes times mu at which the degree is halved: with more, the fit of
# classes of like size ranks as well, and separates a class better from the rest.
_MANY = 160.0
# Largest mu that counts there.
_MOST_MU = 0.6
# Records times mu for each column that count there: few columns hardly separate many records, so
# that the fit of classes of like size would rank them worse.
_PER_COLUMN = 2.0
# Power of the ratio to that number: how steeply the degree falls.
_STEEPNESS = 4
# Both for encoded tables, whose scores are calibrated: the rarer class is separated later.
_MANY_OF_TABLES = 180.0
_STEEPNESS_OF_TABLES = 8
# Records of the rarer of more than two classes times mu at which the degree is halved by noise.
_RESOLVED = 30.0
# Records of the rarer classes times mu at which scores of rows have half of the weight, the share
# of the class the other half.
_TRUSTED = 10.0


@dataclass(frozen=True, slots=True)
class Rarity:
    """Released information on the classes other than the most common one, from noisy counts.

    `common` is the index of the class with most records, `share` that of the records of all
    others, in [0.001, 1/2] and with public class weights, `records` their number times mu, and
    `degree` in [0, 1] says how rare they are: 0 asks for the fit of classes of like size.
    `second` is the share of the second of two classes, or of all but the common class, without
    weights; `deviation` that of the noise of a count, `mu` the budget of the fit. `total` is the
    number of records or, as far as it was released, the sum of their weights.
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
        """Return what is known where nothing was counted."""
        return cls(0, 0.5, math.inf, 0.0, math.inf, 0.5)

    @property
    def trust(self) -> float:
        """Part of what scores say about labels in what is known about them, in [0, 1]."""
        return float((1.0 + (_TRUSTED / self.records) ** 2) ** -self.degree)

    @property
    def log_odds_of_second(self) -> float:
        """Log odds of the second class, or of all but the common one, before a row is seen."""
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
    that of the columns or features of the model. With features behind the columns two classes are
    unlike from a larger share on. `is_table` says that calibration will correct the scores.
    """
    kept = np.clip(counts, 0.0, total)
    common, is_of_many = int(np.argmax(kept * weights)), len(counts) > 2
    counted = float(total - kept[common] if is_of_many else kept[1 - common])
    others = min(max((counted + deviation) / total, RAREST), 0.5)
    records = others * total * mu
    size = others * float(np.delete(weights, common).mean())
    share = min(max(size / (size + (1.0 - others) * float(weights[common])), RAREST), 0.5)
    even = _EVEN_OF_MANY if is_of_many else _EVEN_OF_FEATURES if has_features else _EVEN
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
    """Return weights of at most one in inverse proportion to released sizes of the classes.

    The rarest class has one. For these sizes so many records as the deviation of the noise, or
    `n_recounted` if that is more, are taken from the largest class and added to every other one.
    """
    kept = np.clip(counts, 0.0, total)
    common = int(np.argmax(kept))
    change = max(deviation, n_recounted)
    sizes = np.maximum(kept + change, RAREST * total)
    sizes[common] = max(kept[common] - change, float(np.delete(sizes, common).max()))
    sizes = np.minimum(sizes, sizes[common])
    return np.asarray(sizes.min() / sizes)
