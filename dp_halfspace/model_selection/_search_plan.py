"""The plan of a private search, made before anything is spent.

Every estimator says by its ``plan`` what a fit would release, with the real noise scales and
without any noise. From these plans a budget is divided exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dp_halfspace._params import EPSILON_RANGE
from dp_halfspace._rounding import UP, WIDE_DOWN
from dp_halfspace.exceptions import BudgetError
from dp_halfspace.papers.margin_selection import SCORE_SHARES, STOPPING_SHAPE
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.events import Event, Gaussian, Pure, single_runs, total_mu
from dp_halfspace.privacy.mechanisms import (
    ExponentialChoice,
    GaussianNoise,
    L2LaplaceNoise,
    NoNoise,
)
from dp_halfspace.privacy.profiles import gdp_epsilon, gdp_mu
from dp_halfspace.privacy.random_stopping import (
    RunCountDistribution,
    calibrate_random_stopping,
    random_stopping_event,
    run_count_distribution,
)
from dp_halfspace.privacy.record import PrivacyRecord
from dp_halfspace.theory.margin_guarantees import CHOICE_SHARE

Choice: TypeAlias = ExponentialChoice | GaussianNoise | L2LaplaceNoise | NoNoise
# The record of the fit of a candidate, as a function of its epsilon.
Candidate: TypeAlias = Callable[[float], PrivacyRecord]

SEARCH_SELECTIONS = ("auto", "random_stopping", "exponential", "gaussian")

# The noise of a score need not be smaller than this fraction of the records.
_PRECISION = 5e-4
# Relative accuracy of the search for the largest budget of a candidate.
_SHARE_TOLERANCE = 6e-4


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """The public numbers of a search: the budget of each run, the choice, and all events.

    The distribution is that of the number of runs, or None if every candidate is trained once. The
    choice is a selection of one candidate from all scores, or noise on all scores or on one.
    """

    epsilon: float
    distribution: RunCountDistribution | None
    choice: Choice
    events: tuple[Event, ...]

    @property
    def selection(self) -> str:
        """Name of the way that is taken."""
        if self.distribution is not None:
            return "random_stopping"
        return "gaussian" if isinstance(self.choice, GaussianNoise) else "exponential"


def score_sensitivity(n_samples: int) -> float:
    """Bound the change of a sum of numbers in [0, 1], one for each record, with rounding errors.

    ``docs/proofs/selection.md``, section 7; section 9 proves it for scores that are not sums.
    """
    return UP + n_samples * 2.0**-51


def scores_sensitivity(n_samples: int, n_candidates: int) -> float:
    """Bound the Euclidean change of the scores of several models: ``selection.md``, section 7."""
    return math.sqrt(n_candidates) * score_sensitivity(n_samples) * UP


def plan_search(search: Search, selection: str, miss: float) -> SearchPlan:
    """Divide a budget between the candidates and the choice among them.

    Proofs: ``docs/proofs/selection.md``, sections 2 and 7.
    """
    count, is_pure = len(search.candidates), search.delta == 0
    if math.isinf(search.epsilon):
        return SearchPlan(search.epsilon, None, NoNoise(), (Pure(search.epsilon),))
    if selection == "gaussian":
        return search.noisy_scores()
    # A pure DP run costs 2 + shape times its epsilon, least where their number is geometric. For so
    # few candidates, all of them are trained at about the same cost.
    shape = 1.0 if is_pure else STOPPING_SHAPE
    if selection == "exponential" or (selection == "auto" and count <= 2.0 + shape):
        return search.exponential()
    distribution = run_count_distribution(count, miss, eta=shape)
    if is_pure:
        return search.pure(distribution)
    plan = search.gaussian(distribution)
    if plan is None and selection == "auto":
        return search.exponential()
    if plan is None:
        raise ValueError(
            "selection='random_stopping' needs releases that are Gaussian (delta > 0) or pure, not "
            "one selection for a small table: use selection='exponential', or solver='noisy_gd'"
        )
    return plan


@dataclass(frozen=True, slots=True)
class Search:
    """A budget, and the candidates between which it is divided."""

    candidates: Sequence[Candidate]
    n_samples: int
    epsilon: float
    delta: float

    def records(self, epsilon: float) -> list[PrivacyRecord]:
        """Return the records of all candidates, each with the same budget."""
        return [candidate(epsilon) for candidate in self.candidates]

    def run_mu(self, distribution: RunCountDistribution) -> tuple[float, float]:
        """Return the mu of the training of a run, and that of its score.

        The noise of a score need not be smaller than a fraction of the records.
        """
        mu = calibrate_random_stopping(distribution, self.epsilon, self.delta)
        share = SCORE_SHARES["random_stopping"]
        mu_score = min(math.sqrt(share) * mu, 1.0 / (_PRECISION * self.n_samples))
        return math.sqrt(mu * mu - mu_score * mu_score) * WIDE_DOWN, mu_score

    def gaussian(self, distribution: RunCountDistribution) -> SearchPlan | None:
        """Plan random stopping for Gaussian runs, by the cost of the costliest run.

        None if a run makes other releases.
        """
        mu_train, mu_score = self.run_mu(distribution)
        each, worst = run_epsilon(mu_train, self.delta), 0.0
        for record in self.records(each):
            counts = single_runs(record.events)
            if not all(isinstance(event, Gaussian) for event in counts):
                return None
            cost = total_mu(tuple(counts.items()))
            worst = max(worst, math.hypot(cost, mu_score) * UP)
        choice = GaussianNoise(score_sensitivity(self.n_samples), mu_score)
        return SearchPlan(each, distribution, choice, (random_stopping_event(distribution, worst),))

    def pure(self, distribution: RunCountDistribution) -> SearchPlan:
        """Plan random stopping for pure DP runs."""
        run = self.epsilon / (2.0 + distribution.eta) * WIDE_DOWN
        score = min(CHOICE_SHARE * run, 1.0 / (_PRECISION * self.n_samples))
        each = run - score
        choice = L2LaplaceNoise(score_sensitivity(self.n_samples), score)
        # The cost of a run is rounded up: it is at most run / WIDE_DOWN.
        return SearchPlan(each, distribution, choice, (Pure(self.epsilon),))

    def noisy_scores(self) -> SearchPlan:
        """Plan the training of all candidates, and Gaussian noise on all of their scores.

        Wang, Zhu and Wang (2025), Algorithm 2; ``docs/proofs/selection.md``, section 7.
        """
        if self.delta == 0:
            raise ValueError("selection='gaussian' needs delta > 0: use 'auto' or 'exponential'")
        # One record changes each of the scores.
        sensitivity = scores_sensitivity(self.n_samples, len(self.candidates))
        precise = sensitivity / (_PRECISION * self.n_samples)
        mu = math.sqrt(SCORE_SHARES["gaussian"]) * gdp_mu(self.epsilon, self.delta)
        return self._beside(GaussianNoise(sensitivity, min(mu, precise)))

    def exponential(self) -> SearchPlan:
        """Plan the training of all candidates, and one exponential mechanism."""
        sensitivity = score_sensitivity(self.n_samples)
        return self._beside(ExponentialChoice(sensitivity, CHOICE_SHARE * self.epsilon))

    def _beside(self, choice: ExponentialChoice | GaussianNoise) -> SearchPlan:
        """Plan the training of all candidates by what a choice among them leaves of the budget."""
        count = len(self.candidates)
        if self.delta == 0:
            each = (1.0 - CHOICE_SHARE) * self.epsilon / count * WIDE_DOWN
        else:
            each = self._largest_epsilon(choice)
        return SearchPlan(each, None, choice, _all_events(self.records(each), choice))

    def _largest_epsilon(self, choice: ExponentialChoice | GaussianNoise) -> float:
        """Find approximately the largest epsilon of each candidate that the budget allows."""
        # Gaussian candidates would get this fraction of mu, and others less; half of a K-th of mu
        # fits however their costs add up.
        equal, whole = 1.0 / math.sqrt(len(self.candidates)), gdp_mu(self.epsilon, self.delta)

        def each(share: float) -> float:
            return run_epsilon(share * whole, self.delta)

        def events(share: float) -> tuple[Event, ...]:
            return _all_events(self.records(each(share)), choice)

        least = 0.5 / len(self.candidates)
        each(least)  # a budget close to zero is refused by a separate message
        ends = {"lower": least, "upper": equal, "rtol": _SHARE_TOLERANCE}
        try:
            share = accounting.calibrate(events, self.epsilon, self.delta, **ends)
        except BudgetError as error:
            raise BudgetError("the budget is too small for this many candidates") from error
        return each(share)


def _all_events(
    records: Sequence[PrivacyRecord], choice: ExponentialChoice | GaussianNoise
) -> tuple[Event, ...]:
    """Return the events of all candidates and of the choice among them."""
    return (*(event for record in records for event in record.events), choice.event)


def run_epsilon(mu: float, delta: float) -> float:
    """Return the epsilon of a run that may cost a given mu."""
    epsilon = gdp_epsilon(mu, delta)
    if epsilon < EPSILON_RANGE[0]:
        raise BudgetError(
            "the budget is too small for a search: use fewer candidates, or a larger epsilon"
        )
    return epsilon
