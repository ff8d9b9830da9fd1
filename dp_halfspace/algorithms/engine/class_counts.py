"""Noisy counts of the classes, and the weights that balance them.

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

from dp_halfspace._rounding import UP
from dp_halfspace.algorithms.engine.plan import FloatArray
from dp_halfspace.data.chunks import sum_over_chunks
from dp_halfspace.data.people import People
from dp_halfspace.engine.counts import class_counts
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.mechanisms import GaussianNoise, NoNoise, Permit

# Least and largest share of mu^2 for the counts.
_LEAST_SHARE = 0.02
_LARGEST_SHARE = 0.03
# Between these limits the square root of the share is this number over n mu.
_COUNTED = 26.0
# Every class is assumed to hold at least this share of the records.
_RAREST = 0.001


@dataclass(frozen=True, slots=True)
class ClassCountPlan:
    """The public numbers of noisy counts of the classes.

    Of two classes only the second is counted, because the number of records is public. If records
    have weights, their sums are released instead; the sum of all weights is private, so every class
    is counted.
    """

    n_samples: int
    n_classes: int
    noise: GaussianNoise | NoNoise
    are_weighed: bool = False

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


def balanced_weights(counts: FloatArray, deviation: float, total: float) -> FloatArray:
    """Return class weights of at most one, inversely proportional to released class sizes.

    The rarest class has weight one. For these sizes the standard deviation of the noise is
    subtracted from the largest class and added to every other one, in case it made a class look
    rarer than it is.
    """
    kept = np.clip(counts, 0.0, total)
    common = int(np.argmax(kept))
    sizes = np.maximum(kept + deviation, _RAREST * total)
    sizes[common] = max(kept[common] - deviation, float(np.delete(sizes, common).max()))
    sizes = np.minimum(sizes, sizes[common])
    return np.asarray(sizes.min() / sizes)
