"""The privacy budget of a fit and its division into parts, rounded conservatively."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dp_halfspace._rounding import DOWN, FAR_DOWN
from dp_halfspace.privacy.mechanisms import AdditiveNoise, GaussianNoise, L2LaplaceNoise, NoNoise
from dp_halfspace.privacy.profiles import gdp_epsilon, gdp_mu


@dataclass(frozen=True, slots=True)
class Budget:
    """A privacy budget: (epsilon, delta), or the part mu of a Gaussian budget.

    Budgets are made by `of` or `gaussian`; an infinite one means no noise and no guarantee. The
    epsilons of pure parts add up, and so do the squares of mu (``docs/proofs/accounting.md``,
    section 5). Parts are rounded so that together they never exceed the whole.

    >>> part, rest = Budget.of(1.0, 0.0).split(0.25)
    >>> round(part.epsilon, 9), rest.epsilon < 0.75, rest.is_pure
    (0.25, True, True)

    Attributes
    ----------
    mu : float
        Gaussian signal to noise ratio, rounded down; zero for a pure budget.
    """

    delta: float
    is_infinite: bool
    is_pure: bool
    mu: float
    _epsilon: float | None = None

    @classmethod
    def of(cls, epsilon: float, delta: float) -> Budget:
        """Return the budget of a guarantee; an infinite `epsilon` means no noise."""
        is_infinite = math.isinf(epsilon)
        is_pure = delta == 0 and not is_infinite
        return cls(delta, is_infinite, is_pure, gdp_mu(epsilon, delta), epsilon)

    @classmethod
    def gaussian(cls, mu: float, delta: float = 0.0) -> Budget:
        """Return a part of a Gaussian budget; `delta` is used for its epsilon only."""
        return cls(delta, math.isinf(mu), is_pure=False, mu=mu)

    @property
    def epsilon(self) -> float:
        """Epsilon of the budget at `delta`.

        A release that is epsilon-DP costs no more than mu, unless this epsilon is zero.
        """
        if self._epsilon is not None:
            return self._epsilon
        return gdp_epsilon(self.mu * FAR_DOWN, self.delta)

    def split(self, share: float) -> tuple[Budget, Budget]:
        """Return a share of epsilon, or of mu^2, and the remaining part, both rounded down."""
        part, rest = self.parts((share, 1.0 - share))
        return part, rest

    def equal_parts(self, count: int) -> Budget:
        """Return one of `count` equal parts, rounded down."""
        return self if count == 1 else self.parts((1.0 / count,))[0]

    def parts(self, shares: Sequence[float]) -> tuple[Budget, ...]:
        """Return shares of epsilon, or of mu^2, that add up to at most one, each rounded down."""
        if self.is_infinite:
            return (self,) * len(shares)
        if self.is_pure:
            return tuple(Budget.of(self.epsilon * share * DOWN, 0.0) for share in shares)
        mu, delta = self.mu, self.delta
        return tuple(Budget.gaussian(mu * math.sqrt(share) * DOWN, delta) for share in shares)

    def noise(self, sensitivity: float) -> AdditiveNoise:
        """Return the noise that spends the whole budget, for a bounded Euclidean sensitivity."""
        if self.is_infinite:
            return NoNoise()
        if self.is_pure:
            return L2LaplaceNoise(sensitivity, self.epsilon)
        return GaussianNoise(sensitivity, self.mu)


def additive_noise(sensitivity: float, epsilon: float, delta: float) -> AdditiveNoise:
    """Choose the noise for one release of bounded l2 sensitivity.

    Parameters
    ----------
    sensitivity : float
        Bound on the Euclidean distance of the values of two neighbouring data sets.
    epsilon : float
        Budget, positive; infinity means no noise.
    delta : float
        0 for pure DP (L2-Laplace noise), positive for Gaussian noise.

    Returns
    -------
    GaussianNoise, L2LaplaceNoise or NoNoise
        Calibrated exactly and rounded conservatively.

    Notes
    -----
    Privacy: a function of public numbers. The release is (epsilon, delta)-differentially private if
    the noise is added once and its `event` is charged (``docs/proofs/accounting.md``, section 1,
    and ``docs/proofs/noise.md``, section 5).

    Examples
    --------
    >>> from dp_halfspace.privacy import additive_noise
    >>> additive_noise(1.0, epsilon=1.0, delta=1e-6).event
    Gaussian(mu=0.2367...)
    >>> additive_noise(1.0, epsilon=0.5, delta=0.0).event
    Pure(epsilon=0.5)
    """
    return Budget.of(epsilon, delta).noise(sensitivity)
