"""The budget of PrivateAUCClassifier, and what is paid before the ranking: threshold, count."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.algorithms.selection.class_counts import CountPlan, release_count
from dp_halfspace.algorithms.selection.threshold import plan_threshold
from dp_halfspace.optim.design.rows import block_size
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.events import Event, Exponential, Gaussian
from dp_halfspace.privacy.mechanisms import (
    ExponentialChoice,
    GaussianNoise,
    L2LaplaceNoise,
    NoNoise,
    Permit,
)
from dp_halfspace.privacy.profiles import gdp_mu

__all__ = ["Budget", "Choice", "RankingProblem", "pay_for_threshold", "plan_share"]

Choice: TypeAlias = ExponentialChoice | NoNoise | None
Share: TypeAlias = Callable[[NDArray[np.bool_], Permit], tuple[float, float]]

# Share of mu^2 (of epsilon, when pure) for the count of the positive records.
_COUNT_SHARE = 0.01
# The share that remains is rounded down by this, so that all parts together fit.
_DOWN = 1.0 - 2.0**-40


@dataclass(frozen=True, slots=True)
class RankingProblem:
    """What is public about a fit before a way is chosen.

    Attributes
    ----------
    is_sparse : bool
        Storage of the features.
    data_norm : float
        Bound on the norm of a row.
    intercept : float or None
        Factor of the constant column, None for no such column.
    loss : str
        A key of `LOSSES`.
    alpha : float or None
        Coefficient of the regulariser, None for the automatic one.
    positive_share : float or None
        Public share of the positive records, None for a private count.
    threshold_share : float
        Share of the budget for the threshold, zero when it is given.
    """

    n_samples: int
    n_features: int
    is_sparse: bool
    data_norm: float
    intercept: float | None
    loss: str
    alpha: float | None
    positive_share: float | None
    threshold_share: float
    epsilon: float
    delta: float

    @property
    def is_pure(self) -> bool:
        """Whether pure epsilon is asked for."""
        return self.delta == 0 and math.isfinite(self.epsilon)

    @property
    def n_columns(self) -> int:
        """Columns of the rows with their constant column."""
        return self.n_features + (self.intercept is not None)

    @property
    def block_rows(self) -> int:
        """Rows that are summed at a time."""
        return block_size(self.n_samples, self.n_features, is_sparse=self.is_sparse)


@dataclass(frozen=True, slots=True)
class Budget:
    """What is left to spend; one of the two numbers is zero.

    Attributes
    ----------
    mu : float
        As a Gaussian signal to noise ratio; infinite without noise.
    epsilon : float
        As a pure epsilon.
    """

    mu: float
    epsilon: float

    def split(self, share: float) -> tuple[Budget, Budget]:
        """Take a share of mu^2, or of epsilon."""
        rest = (1.0 - share) * _DOWN
        return (
            Budget(math.sqrt(share) * self.mu, share * self.epsilon),
            Budget(math.sqrt(rest) * self.mu, rest * self.epsilon),
        )

    def noise(self, sensitivity: float) -> GaussianNoise | L2LaplaceNoise | NoNoise:
        """Spend all of it on one release."""
        if math.isinf(self.mu):
            return NoNoise()
        if self.mu > 0:
            return GaussianNoise(sensitivity, self.mu)
        return L2LaplaceNoise(sensitivity, self.epsilon)


def pay_for_threshold(problem: RankingProblem) -> tuple[Choice, Budget]:
    """Set the price of the threshold aside.

    Returns
    -------
    choice : ExponentialChoice, NoNoise or None
        None for a threshold that is given.
    """
    n, d, epsilon, share = (
        problem.n_samples,
        problem.n_features,
        problem.epsilon,
        problem.threshold_share,
    )
    if math.isinf(epsilon):
        choice = plan_threshold(n, d, math.inf) if share else None
        return choice, Budget(math.inf, 0.0)
    if problem.is_pure:
        if not share:
            return None, Budget(0.0, epsilon)
        return plan_threshold(n, d, share * epsilon), Budget(0.0, (1.0 - share) * epsilon * _DOWN)
    mu = gdp_mu(epsilon, problem.delta)
    if not share:
        return None, Budget(mu, 0.0)
    # An exponential mechanism is about as costly as a Gaussian of half its epsilon.
    price = 2.0 * math.sqrt(share) * mu
    if accounting.delta((Exponential(price),), epsilon) > 0.5 * problem.delta:
        # With a large delta that is more than all there is; its share of epsilon never is.
        price = min(price, share * epsilon)
    return plan_threshold(n, d, price), Budget(_left_beside(price, epsilon, problem.delta), 0.0)


@lru_cache(maxsize=256)
def _left_beside(price: float, epsilon: float, delta: float) -> float:
    """Return the Gaussian signal to noise ratio that is left beside an exponential choice."""

    def events(mu: float) -> tuple[Event, ...]:
        return Exponential(price), Gaussian(mu)

    return accounting.calibrate(events, epsilon, delta, lower=0.0, upper=gdp_mu(epsilon, delta))


def plan_share(problem: RankingProblem, budget: Budget) -> tuple[tuple[Event, ...], Share, Budget]:
    """Plan how the share of the positive records becomes known: it is public, or bought.

    Returns
    -------
    share_of : callable
        From positives and permit to the number of positive records and the standard
        deviation of its noise.
    """
    n, share = problem.n_samples, problem.positive_share
    if share is not None:
        return (), lambda positive, permit: (share * n, 0.0), budget
    part, left = budget.split(_COUNT_SHARE)
    plan = CountPlan(n, part.noise(1.0))

    def share_of(positive: NDArray[np.bool_], permit: Permit) -> tuple[float, float]:
        return release_count(positive, plan, permit), plan.deviation

    return (plan.mechanism.event,), share_of, left
