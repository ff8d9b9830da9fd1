"""The budget of PrivateAUCClassifier, and what is paid before the ranking: threshold, count."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from dp_halfspace._rounding import DOWN
from dp_halfspace.algorithms.fits.margin_selection import mu_beside
from dp_halfspace.algorithms.fits.margin_training import Problem
from dp_halfspace.algorithms.plan import Noise, noise_within
from dp_halfspace.algorithms.selection.class_counts import CountPlan
from dp_halfspace.algorithms.selection.threshold import plan_threshold
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.events import Exponential
from dp_halfspace.privacy.mechanisms import ExponentialChoice, NoNoise
from dp_halfspace.privacy.profiles import gdp_mu

Choice: TypeAlias = ExponentialChoice | NoNoise | None

# Share of mu^2, and of a pure epsilon, for the count of the positive records.
_COUNT_SHARE, _PURE_COUNT_SHARE = 0.04, 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingProblem(Problem):
    """What is public about a fit before a way is chosen.

    Rows of norm one are scaled down to `data_norm` first if it `clips`. `loss` is a key of
    `LOSSES`; `alpha` is None for the automatic regulariser, `positive_share`
    None for a private count. `threshold_share` of the budget buys a threshold; where it is zero,
    `threshold` is public.
    """

    n_classes: int = 2
    data_norm: float
    clips: bool = True
    loss: str
    alpha: float | None
    positive_share: float | None
    threshold_share: float
    threshold: float = 0.0
    epsilon: float
    delta: float

    @property
    def is_pure(self) -> bool:
        """Whether pure epsilon is asked for."""
        return self.delta == 0 and math.isfinite(self.epsilon)


@dataclass(frozen=True, slots=True)
class Budget:
    """What is left to spend; one of the two numbers is zero.

    `mu` is a Gaussian signal to noise ratio, infinite without noise; `epsilon` is pure.
    """

    mu: float
    epsilon: float

    def split(self, share: float) -> tuple[Budget, Budget]:
        """Take a share of mu^2, or of epsilon."""
        rest = (1.0 - share) * DOWN
        return (
            Budget(math.sqrt(share) * self.mu, share * self.epsilon),
            Budget(math.sqrt(rest) * self.mu, rest * self.epsilon),
        )

    def noise(self, sensitivity: float) -> Noise:
        """Spend all of it on one release."""
        return noise_within(sensitivity, mu=self.mu, epsilon=self.epsilon)


def pay_for_threshold(problem: RankingProblem) -> tuple[Choice, Budget]:
    """Set the price of the threshold aside; a public one needs no choice."""
    epsilon, share = problem.epsilon, problem.threshold_share
    if problem.is_pure:
        if not share:
            return None, Budget(0.0, epsilon)
        price, left = share * epsilon, Budget(0.0, (1.0 - share) * epsilon * DOWN)
        return plan_threshold(problem.n_samples, problem.n_features, price), left
    mu = gdp_mu(epsilon, problem.delta)
    if not share:
        return None, Budget(mu, 0.0)
    # An exponential mechanism is about as costly as a Gaussian of half its epsilon.
    price = 2.0 * math.sqrt(share) * mu
    if math.isfinite(epsilon):
        if accounting.delta((Exponential(price),), epsilon) > 0.5 * problem.delta:
            # With a large delta that is more than all there is; its share of epsilon never is.
            price = min(price, share * epsilon)
        mu = mu_beside(price, epsilon, problem.delta)
    return plan_threshold(problem.n_samples, problem.n_features, price), Budget(mu, 0.0)


def plan_count(problem: RankingProblem, budget: Budget) -> tuple[CountPlan | None, Budget]:
    """Buy the number of positive records, where their share is not public."""
    if problem.positive_share is not None:
        return None, budget
    part, left = budget.split(_PURE_COUNT_SHARE if problem.is_pure else _COUNT_SHARE)
    return CountPlan(problem.n_samples, part.noise(1.0)), left
