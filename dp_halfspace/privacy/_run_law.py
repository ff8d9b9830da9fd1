"""The law of a secret number of runs, sampled exactly (``docs/proofs/selection.md``)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache, partial
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_halfspace.privacy._exact import LazyUniform, decimal_context
from dp_halfspace.privacy._rank_ratio import polynomials
from dp_halfspace.privacy.randomness import OS_RANDOMNESS, ByteSource

__all__ = ["MOST_RUNS", "RunLaw"]

MOST_RUNS = 100_000
"""Largest cap of a law."""

# With at most 10^5 runs this keeps P(K = 1), a divisor, above 10^-232.
_LARGEST_ETA = 64.0
_DIGITS = 40


@dataclass(frozen=True, slots=True)
class RunLaw:
    r"""Truncated negative binomial law of the number of runs :math:`K`.

    .. math:: P(K = k) \propto \binom{k + \eta - 1}{k} (1 - r)^k, \qquad 1 \le k \le k_{max},

    normalised after the truncation, with the logarithmic law as the limit at
    :math:`\eta = 0`. The case :math:`\eta = 1` is geometric.

    Parameters
    ----------
    eta : float
        Shape, in (-1, 64]. A larger one makes :math:`K` less variable and a run dearer.
    r : float
        In (0, 1]; smaller means more runs. With 1 there is always one run.
    k_max : int
        Largest number of runs, from 1 to 100000.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Privacy: the parameters are public, the value of :math:`K` never is.

    References
    ----------
    .. [1] N. Papernot, T. Steinke. Hyperparameter tuning with Rényi differential
       privacy. ICLR 2022, Definition 1.

    Examples
    --------
    >>> from dp_halfspace.privacy.random_stopping import RunLaw
    >>> law = RunLaw(eta=1.0, r=0.5, k_max=3)
    >>> law.probabilities.round(6).tolist(), round(law.mean, 6)
    ([0.571429, 0.285714, 0.142857], 1.571429)
    >>> 1 <= law.draw() <= 3
    True
    """

    eta: float
    r: float
    k_max: int

    def __post_init__(self) -> None:
        eta, r, k_max = float(self.eta), float(self.r), self.k_max
        if not -1.0 < eta <= _LARGEST_ETA:
            raise ValueError(f"eta must be in (-1, {_LARGEST_ETA:g}], got {self.eta!r}")
        if not 0.0 < r <= 1.0:
            raise ValueError(f"r must be in (0, 1], got {self.r!r}")
        if isinstance(k_max, bool) or not isinstance(k_max, Integral):
            raise ValueError(f"k_max must be an integer, got {k_max!r}")
        if not 1 <= k_max <= MOST_RUNS:
            raise ValueError(f"k_max must be from 1 to {MOST_RUNS}, got {k_max!r}")
        for name, value in (("eta", eta + 0.0), ("r", r), ("k_max", int(k_max))):
            object.__setattr__(self, name, value)

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """P(K = 1), ..., P(K = k_max), each correctly rounded. Read-only."""
        return _moments(self)[0]

    @property
    def mean(self) -> float:
        """E[K], which is f'(1), rounded up."""
        return _moments(self)[1]

    def derivative(self, q: ArrayLike) -> Any:
        """Evaluate the derivative f'(q) of the probability generating function.

        Parameters
        ----------
        q : float or array-like of any shape
            In [0, 1].

        Returns
        -------
        float or ndarray of the shape of `q`
        """
        points = np.asarray(q, dtype=np.float64)
        weights = self.probabilities * np.arange(1, self.k_max + 1)
        values = polynomials(weights[None, :], points.ravel())[0].reshape(points.shape)
        return values if values.ndim else float(values)

    def draw(self, source: ByteSource = OS_RANDOMNESS) -> int:
        """Draw the number of runs.

        Parameters
        ----------
        source : ByteSource, default=OS_RANDOMNESS
            Where the random bytes come from.

        Returns
        -------
        int
            From 1 to `k_max`. Its law is this one up to a total variation of 2**-440:
            a uniform number is compared with enclosures of the distribution function.

        Notes
        -----
        Privacy: the result must stay hidden.
        """
        uniform = LazyUniform(0, 0, source)
        uniform.refine()
        low, high = 1, self.k_max
        while low < high:
            middle = (low + high) // 2
            if uniform.below(partial(_reached, self, middle)):
                high = middle
            else:
                low = middle + 1
        return low


def _weights(law: RunLaw) -> list[Decimal]:
    """P(K = k) over P(K = 1), in the precision of the current context."""
    shape, ratio = Decimal(law.eta), 1 - Decimal(law.r)
    weights = [Decimal(1)]
    for k in range(1, law.k_max):
        weights.append(weights[-1] * (k + shape) * ratio / (k + 1))
    return weights


@lru_cache(maxsize=32)
def _moments(law: RunLaw) -> tuple[NDArray[np.float64], float]:
    """Probabilities, and the mean rounded up."""
    with localcontext(decimal_context(_DIGITS)):
        weights = _weights(law)
        total = sum(weights)
        probabilities = np.array([float(weight / total) for weight in weights])
        mean = sum(k * weight for k, weight in enumerate(weights, 1)) / total
        rounded = float(mean) if law.k_max == 1 else math.nextafter(float(mean), math.inf)
    probabilities.setflags(write=False)
    return probabilities, rounded


@lru_cache(maxsize=4)
def _distribution(law: RunLaw, bits: int) -> list[int]:
    """Integers within 1 of ``P(K <= k) * 2**bits``, k = 1, ..., k_max."""
    # As many decimal digits as bits: their rounding errors are out of sight.
    with localcontext(decimal_context(bits)):
        weights = _weights(law)
        scale = Decimal(1 << bits) / sum(weights)
        reached, values = Decimal(0), []
        for weight in weights:
            reached += weight
            values.append(int((reached * scale).to_integral_value()))
    return values


def _reached(law: RunLaw, k: int, bits: int) -> int:
    """Return an integer within 1 of ``P(K <= k) * 2**bits``."""
    return _distribution(law, bits)[k - 1]
