"""Exact integers: uniform ones, responses at random, and the Laplace law on the integers.

No floating point between the random bits and the output: ``docs/proofs/noise.md``, section 6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.privacy._exact import exp_minus, positive_rational, random_events
from dp_halfspace.privacy.events import Pure
from dp_halfspace.privacy.randomness import OS_RANDOMNESS, ByteSource


def uniform_below(n: int, source: ByteSource = OS_RANDOMNESS) -> int:
    """Return an exactly uniform integer from 0 to ``n - 1``, for n of any size."""
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    bits = (n - 1).bit_length()
    size = (bits + 7) // 8
    while True:
        draw = int.from_bytes(source.read(size), "little") >> (8 * size - bits)
        if draw < n:
            return draw


_GUARD_BITS = 64
# Of the Laplace law: the noise then stays below 2^62.
_SMALLEST_RATE, _NEGLIGIBLE = Fraction(1, 2**53), 512


@dataclass(frozen=True, slots=True)
class RandomizedResponse:
    """Each label is kept with probability ``e^epsilon / (e^epsilon + K - 1)``.

    Otherwise it becomes one of the ``K - 1`` others, all equally likely. Replacing the label of one
    record changes the probability of any list of responses by a factor of at most ``e^epsilon``;
    features are not covered at all. Proof: ``docs/proofs/label_privacy.md``, section 3; after S. L.
    Warner (1965), Randomized response, JASA 60.
    """

    n_classes: int
    epsilon: float

    def __post_init__(self) -> None:
        positive_rational(self.epsilon, "epsilon")
        if self.n_classes < 2:
            raise ValueError(f"n_classes must be at least 2, got {self.n_classes!r}")

    @property
    def event(self) -> Pure:
        """What the responses cost: ``Pure(epsilon)``."""
        return Pure(self.epsilon)

    @property
    def keep_probability(self) -> float:
        """Probability that a label is kept."""
        return 1.0 / (1.0 + (self.n_classes - 1) * math.exp(-self.epsilon))

    @property
    def contrast(self) -> float:
        """Probability of the true label minus that of any other one."""
        return -math.expm1(-self.epsilon) * self.keep_probability

    @property
    def variance(self) -> float:
        """Mean variance of an unbiased estimate of one indicator of a class."""
        keep = self.keep_probability
        other = (1.0 - keep) / (self.n_classes - 1)
        spread = keep * (1.0 - keep) + (self.n_classes - 1) * other * (1.0 - other)
        return spread / self.n_classes / self.contrast**2

    def perturb(self, value: NDArray[np.float64], source: ByteSource) -> NDArray[np.float64]:
        """Return the responses to labels from 0 to ``n_classes - 1``."""
        responses = np.array(value, dtype=np.float64)
        change = np.full(responses.size, 1.0 - self.keep_probability)
        changed = random_events(change, lambda _: self._change_enclosure, source)
        for i in np.flatnonzero(changed).tolist():
            other = uniform_below(self.n_classes - 1, source)
            responses[i] = other + (other >= responses[i])
        return responses

    def _change_enclosure(self, bits: int) -> int:
        """Return an integer within 1 of ``2**bits`` times the probability of a change."""
        return _share(Fraction(self.epsilon), self.n_classes - 1, bits)


def _share(gamma: Fraction, weight: int, bits: int) -> int:
    """Return an integer within 1 of ``2**bits w / (w + exp(gamma))``."""
    precision = bits + _GUARD_BITS
    odds = weight * exp_minus(gamma, precision)
    return (odds << bits) // ((1 << precision) + odds)


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceNoise:
    """Integers k of probability proportional to ``exp(-|k| epsilon / sensitivity)``, exactly.

    For integers of which one record changes the sum of the absolute values by at most
    `sensitivity`. It is the difference of two geometric variables, whose binary digits are
    independent. Proof: ``docs/proofs/noise.md``, section 6; after A. Ghosh, T. Roughgarden and M.
    Sundararajan (2009), "Universally utility-maximizing privacy mechanisms".
    """

    sensitivity: int
    epsilon: float

    def __post_init__(self) -> None:
        if self._rate < _SMALLEST_RATE:
            raise ValueError(f"epsilon must be at least {self.sensitivity} x 2^-53")

    @property
    def _rate(self) -> Fraction:
        return positive_rational(self.epsilon, "epsilon") / self.sensitivity

    @property
    def event(self) -> Pure:
        """What the release costs: ``Pure(epsilon)``."""
        return Pure(self.epsilon)

    @property
    def deviation(self) -> float:
        """Standard deviation of every entry."""
        return math.sqrt(0.5) / math.sinh(min(float(self._rate) / 2.0, 700.0))

    def perturb(self, value: NDArray[np.float64], source: ByteSource) -> NDArray[np.float64]:
        """Add the noise to integers below 2^53."""
        pair = np.zeros((2, *value.shape), dtype=np.int64)
        digit, gamma = 1, self._rate
        # What is left out has a probability below exp(-512).
        while gamma < _NEGLIGIBLE:
            pair += digit * _digits(gamma, pair.size, source).reshape(pair.shape)
            digit, gamma = 2 * digit, 2 * gamma
        noisy: NDArray[np.float64] = (value.astype(np.int64) + pair[0] - pair[1]).astype(np.float64)
        return noisy


def _digits(gamma: Fraction, size: int, source: ByteSource) -> NDArray[np.bool_]:
    """Return independent events of probability ``1 / (1 + exp(gamma))``."""
    odds = float(np.exp(-float(gamma)))
    chances = np.full(size, odds / (1.0 + odds))
    return random_events(chances, lambda _: partial(_share, gamma, 1), source)
