"""The plan of a private search, made before anything is spent, and its candidates.

Every estimator says by its ``plan`` what a fit would release, with the real noise scales and
without any noise. From these plans a budget is divided exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from sklearn.base import ClassifierMixin, clone
from sklearn.pipeline import Pipeline

from dp_halfspace._budget import SharedLedger
from dp_halfspace._pipelines import check_pipeline, library_of
from dp_halfspace._rounding import FAR_UP, UP, WIDE_DOWN
from dp_halfspace.data.validation import call_silently
from dp_halfspace.exceptions import BudgetError
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.events import Event, Gaussian, Pure, single_runs
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

Params: TypeAlias = dict[str, Any]
Choice: TypeAlias = ExponentialChoice | GaussianNoise | L2LaplaceNoise | NoNoise
PlannedCandidates: TypeAlias = tuple[tuple[Params, ...], list[PrivacyRecord]]
Probe: TypeAlias = Callable[[Params], PrivacyRecord]

SEARCH_SELECTIONS = ("auto", "random_stopping", "exponential", "gaussian")

FAILED = (
    "a step before the model, or the scoring, failed. Its message is not shown, because it may "
    "quote records. Fit the steps separately, where only people who may see the records can read it"
)
# Fraction of epsilon for one exponential mechanism, which costs three percent of mu.
_CHOICE_SHARE = 0.1
# Largest fraction of mu^2 for a noisy score.
_RUN_SCORE_SHARE = 0.2
# Largest fraction of a pure DP budget for a noisy score.
_PURE_SCORE_SHARE = 0.1
# The noise of a score need not be smaller than this fraction of the records.
_PRECISION = 5e-4
# Largest fraction of mu^2 for noise on all scores; one half is published.
_SCORES_SHARE = 0.5
# Shape of the distribution of the number of runs. A pure DP run costs 2 + shape times its epsilon.
_RUN_SHAPES = {"gaussian": 2.0, "pure": 1.0}
# Smallest fraction of the budget of a Gaussian run that is tried.
_LEAST_RUN_SHARE = 0.1
# Relative accuracy of the search for the largest fraction.
_SHARE_TOLERANCE = 6e-4
# Smallest epsilon that estimators accept.
_LEAST_EPSILON = 1e-9
# Up to this number of candidates one exponential mechanism is better.
_FEW_CANDIDATES = {"gaussian": 4, "pure": 3}


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """The public numbers of a search: its candidates with their budgets, and its events.

    The distribution is that of the number of runs, or None if every candidate is trained once. The
    choice is a selection of one candidate from all scores, or noise on all scores or on one.
    """

    candidates: tuple[Params, ...]
    distribution: RunCountDistribution | None
    choice: Choice
    events: tuple[Event, ...]
    adjacency: str


def check_around(estimator: Any) -> None:
    """Refuse steps of a pipeline, except its model, that learn from records or spend budget."""
    prefix, _ = model_inside(estimator)
    if not prefix:
        return
    # The model warns or raises by itself.
    for finding in check_pipeline(clone(estimator).set_params(**{prefix[:-2]: "passthrough"})):
        raise ValueError(
            "the budget of the search covers the model, and not the other steps: "
            f"{finding.step} reads {finding.reads}; instead use {finding.instead}"
        )
    names = [name for name in estimator.get_params() if name.endswith("__epsilon")]
    if names != [f"{prefix}epsilon"]:
        raise ValueError(
            "a search has one budget, and the estimator takes several: "
            f"{', '.join(sorted(names))}; use data_norm=None instead of a PrivateScaler"
        )


def model_inside(estimator: Any) -> tuple[str, Any]:
    """Return the model of this package at the end of a pipeline, and its parameter prefix."""
    prefix, model = "", estimator
    while not _is_private(type(model)):
        if not getattr(model, "steps", None):
            raise ValueError(
                "estimator must be a classifier of this package, or a pipeline that ends in one; "
                f"{type(model).__name__} is not"
            )
        name, model = model.steps[-1]
        prefix += f"{name}__"
    return prefix, model


def _is_private(kind: type) -> bool:
    """Return whether a class is a classifier of this package, and not a subclass of one."""
    is_classifier = issubclass(kind, SharedLedger) and issubclass(kind, ClassifierMixin)
    return is_classifier and library_of(kind) == "dp_halfspace"


def planned_record(estimator: Any, X: Any, y: Any) -> PrivacyRecord:
    """Return the record that an unseeded fit would have; nothing is drawn or charged.

    Raises ValueError as the fit of the model would, for its parameters or the schema of the data.
    """
    model, rows = _unseeded(estimator, X, y)
    record: PrivacyRecord = model.plan(rows, y)
    return record


def _unseeded(estimator: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Return the model inside, without a seed, and the rows that the steps before it make for it.

    The steps are fitted without output, as in a run.
    """
    model = clone(estimator)
    while getattr(model, "steps", None):
        *before, (_, model) = model.steps
        if before:
            X = call_silently(partial(Pipeline(before).fit_transform, X, y), FAILED)
    return model.set_params(random_state=None), X


def candidate_plans(make: Callable[[Params], Any], X: Any, y: Any) -> Probe:
    """Return the record of the fit of a candidate, as a function of its parameters.

    The data are validated once for each candidate, and not for each budget.
    """
    known: list[tuple[Params, Callable[[float], PrivacyRecord]]] = []

    def record_of(params: Params) -> PrivacyRecord:
        fixed = {name: value for name, value in params.items() if name != "epsilon"}
        for other, record_with in known:
            # A value may have no order or hash, and equal ones may differ in type.
            if other.keys() == fixed.keys() and all(other[k] is v for k, v in fixed.items()):
                return record_with(params["epsilon"])
        model, rows = _unseeded(make(params), X, y)
        known.append((fixed, model._plans(rows, y)))
        return known[-1][1](params["epsilon"])

    return record_of


def score_sensitivity(n_samples: int) -> float:
    """Bound the change of a sum of numbers in [0, 1], one for each record, with rounding errors.

    ``docs/proofs/selection.md``, section 7; section 9 proves it for scores that are not sums.
    """
    return UP + n_samples * 2.0**-51


def scores_sensitivity(n_samples: int, n_candidates: int) -> float:
    """Bound the Euclidean change of the scores of several models: ``selection.md``, section 7."""
    return math.sqrt(n_candidates) * score_sensitivity(n_samples) * UP


def plan_search(
    probe: Probe,
    grid: Sequence[Params],
    *,
    n_samples: int,
    epsilon: float,
    delta: float,
    selection: str,
    miss: float,
) -> SearchPlan:
    """Divide a budget between the candidates and the choice among them.

    The probe maps parameters of a candidate to the record of its fit; the grid has no budgets.
    Proofs: ``docs/proofs/selection.md``, sections 2 and 7.
    """
    if math.isinf(epsilon):
        candidates, records = _Search(probe, grid, n_samples, epsilon, 0.0).plan_candidates(epsilon)
        return SearchPlan(candidates, None, NoNoise(), (Pure(epsilon),), records[0].adjacency)
    search = _Search(probe, grid, n_samples, epsilon, delta)
    way = search.way(selection)
    if way == "exponential":
        return search.exponential()
    if way == "noisy_scores":
        return search.noisy_scores()
    distribution = run_count_distribution(len(grid), miss, eta=_RUN_SHAPES[way])
    if way == "gaussian" and not search.stays_gaussian(distribution):
        # At the budget of a run the table is a small one, which is fitted by a selection.
        if selection != "auto":
            raise ValueError(
                "selection='random_stopping' gives each run a budget at which a small table is "
                "fitted by one selection: use selection='exponential', or solver='noisy_gd'"
            )
        return search.exponential()
    return search.pure(distribution) if way == "pure" else search.gaussian(distribution)


@dataclass(frozen=True, slots=True)
class _Search:
    """A budget, and the candidates between which it is divided."""

    probe: Probe
    grid: Sequence[Params]
    n_samples: int
    epsilon: float
    delta: float

    def plan_candidates(self, epsilon: float) -> PlannedCandidates:
        """Assign the same budget to every candidate."""
        budget = {"epsilon": epsilon, "delta": self.delta}
        candidates = tuple({**params, **budget} for params in self.grid)
        return candidates, [self.probe(params) for params in candidates]

    def way(self, selection: str) -> str:
        """Kind of accounting: "exponential", "noisy_scores", or random stopping's two.

        These are "pure" and "gaussian".
        """
        if selection == "exponential":
            return selection
        if selection == "gaussian":
            if self.delta == 0:
                raise ValueError(
                    "selection='gaussian' needs delta > 0: use 'exponential' or 'random_stopping'"
                )
            return "noisy_scores"
        way = "pure" if self.delta == 0 else "gaussian"
        if selection == "auto" and len(self.grid) <= _FEW_CANDIDATES[way]:
            return "exponential"
        if way == "pure" or self._are_gaussian(self.epsilon):
            return way
        if selection == "auto":
            return "exponential"
        raise ValueError(
            "selection='random_stopping' needs an estimator whose releases are Gaussian "
            "(delta > 0) or pure (delta=0): use selection='exponential'"
        )

    def _run_mu(self, distribution: RunCountDistribution) -> tuple[float, float]:
        """Return the mu of the training of a run, and that of its score.

        The noise of a score need not be smaller than a fraction of the records.
        """
        mu = calibrate_random_stopping(distribution, self.epsilon, self.delta)
        mu_score = min(math.sqrt(_RUN_SCORE_SHARE) * mu, 1.0 / (_PRECISION * self.n_samples))
        return math.sqrt(mu * mu - mu_score * mu_score) * WIDE_DOWN, mu_score

    def _are_gaussian(self, epsilon: float) -> bool:
        """Return whether all candidates make Gaussian releases with this budget."""
        records = self.plan_candidates(epsilon)[1]
        return all(_gaussian_cost(record.events) is not None for record in records)

    def stays_gaussian(self, distribution: RunCountDistribution) -> bool:
        """Return whether releases are still Gaussian with the budget of a run."""
        return self._are_gaussian(run_epsilon(self._run_mu(distribution)[0], self.delta))

    def gaussian(self, distribution: RunCountDistribution) -> SearchPlan:
        """Plan random stopping for Gaussian runs, by the cost of the costliest run."""
        mu_train, mu_score = self._run_mu(distribution)
        candidates, records = self.plan_candidates(run_epsilon(mu_train, self.delta))
        costs = [_gaussian_cost(record.events) for record in records]
        if None in costs:
            raise RuntimeError("a candidate makes other releases than it did with a larger budget")
        worst = max(math.hypot(cost or 0.0, mu_score) for cost in costs) * UP
        choice = GaussianNoise(score_sensitivity(self.n_samples), mu_score)
        events = (random_stopping_event(distribution, worst),)
        return SearchPlan(candidates, distribution, choice, events, records[0].adjacency)

    def pure(self, distribution: RunCountDistribution) -> SearchPlan:
        """Plan random stopping for pure DP runs."""
        run = self.epsilon / (2.0 + _RUN_SHAPES["pure"]) * WIDE_DOWN
        score = min(_PURE_SCORE_SHARE * run, 1.0 / (_PRECISION * self.n_samples))
        candidates, records = self.plan_candidates(run - score)
        for record in records:
            if accounting.epsilon(record.events, 0.0) > (run - score) * FAR_UP:
                raise RuntimeError("a candidate would spend more than it was given")
        choice = L2LaplaceNoise(score_sensitivity(self.n_samples), score)
        # The cost of a run is rounded up: it is at most run / WIDE_DOWN.
        return SearchPlan(
            candidates, distribution, choice, (Pure(self.epsilon),), records[0].adjacency
        )

    def noisy_scores(self) -> SearchPlan:
        """Plan the training of all candidates, and Gaussian noise on all of their scores.

        Wang, Zhu and Wang (2025), Algorithm 2; ``docs/proofs/selection.md``, section 7.
        """
        count, whole = len(self.grid), gdp_mu(self.epsilon, self.delta)
        # One record changes each of the scores.
        sensitivity = scores_sensitivity(self.n_samples, count)
        precise = sensitivity / (_PRECISION * self.n_samples)
        choice = GaussianNoise(sensitivity, min(math.sqrt(_SCORES_SHARE) * whole, precise))
        return self._beside(choice)

    def exponential(self) -> SearchPlan:
        """Plan the training of all candidates, and one exponential mechanism."""
        sensitivity = score_sensitivity(self.n_samples)
        return self._beside(ExponentialChoice(sensitivity, _CHOICE_SHARE * self.epsilon))

    def _beside(self, choice: ExponentialChoice | GaussianNoise) -> SearchPlan:
        """Plan the training of all candidates by what a choice among them leaves of the budget."""
        everything = _all_and(choice)
        if self.delta == 0:
            each = (1.0 - _CHOICE_SHARE) * self.epsilon / len(self.grid) * WIDE_DOWN
            candidates, records = self.plan_candidates(each)
        else:
            # Gaussian candidates would get this fraction of mu, and others a little less.
            equal, whole = 1.0 / math.sqrt(len(self.grid)), gdp_mu(self.epsilon, self.delta)
            candidates, records = self._largest(everything, whole, _LEAST_RUN_SHARE * equal, equal)
        return SearchPlan(candidates, None, choice, everything(records), records[0].adjacency)

    def _largest(
        self,
        cost: Callable[[Sequence[PrivacyRecord]], Iterable[Event]],
        mu: float,
        lower: float,
        upper: float,
    ) -> PlannedCandidates:
        """Find approximately the largest fraction of mu for each candidate within the budget."""

        def plan_share(share: float) -> PlannedCandidates:
            return self.plan_candidates(run_epsilon(share * mu, self.delta))

        plan_share(lower)  # a budget close to zero is refused by a separate message
        try:
            share = accounting.calibrate(
                lambda share: cost(plan_share(share)[1]),
                self.epsilon,
                self.delta,
                lower=lower,
                upper=upper,
                rtol=_SHARE_TOLERANCE,
            )
        except BudgetError as error:
            raise BudgetError("the budget is too small for this many candidates") from error
        return plan_share(share)


def _all_and(
    choice: ExponentialChoice | GaussianNoise,
) -> Callable[[Sequence[PrivacyRecord]], tuple[Event, ...]]:
    """Return the events of all candidates and of the choice among them."""

    def everything(records: Sequence[PrivacyRecord]) -> tuple[Event, ...]:
        return (*(event for record in records for event in record.events), choice.event)

    return everything


def run_epsilon(mu: float, delta: float) -> float:
    """Return the epsilon of a run that may cost a given mu."""
    epsilon = gdp_epsilon(mu, delta)
    if epsilon < _LEAST_EPSILON:
        raise BudgetError(
            "the budget is too small for a search: a single run would get almost none "
            "of it. Use fewer candidates, a larger epsilon or a smaller delta"
        )
    return epsilon


def _gaussian_cost(events: Sequence[Event]) -> float | None:
    """Return the mu of events that are all Gaussian, None if one is not."""
    total = 0.0
    for event, count in single_runs(events).items():
        if not isinstance(event, Gaussian):
            return None
        total += count * event.mu * event.mu
    return math.sqrt(total)
