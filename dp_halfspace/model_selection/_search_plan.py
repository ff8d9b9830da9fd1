"""What a private search is going to spend, found out before anything is spent.

Every estimator says by its ``plan`` what a fit would release, with the real noise scales and
without any noise. From these plans a budget is divided exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from sklearn.base import BaseEstimator, ClassifierMixin, clone

from dp_halfspace._rounding import FAR_UP, UP, WIDE_DOWN
from dp_halfspace.exceptions import BudgetError
from dp_halfspace.inspection.pipeline import check_pipeline
from dp_halfspace.model_selection._candidates import call_silently, model_inside
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
    calibrate_selection,
    is_mixable,
    mixed_selection_event,
    run_count_distribution,
    selection_event,
)
from dp_halfspace.privacy.record import PrivacyRecord

Params: TypeAlias = dict[str, Any]
Choice: TypeAlias = ExponentialChoice | GaussianNoise | L2LaplaceNoise | NoNoise
Planned: TypeAlias = tuple[tuple[Params, ...], list[PrivacyRecord]]
Probe: TypeAlias = Callable[[Params], PrivacyRecord]

SELECTIONS = ("auto", "random_stopping", "exponential", "gaussian")

# Part of epsilon that one exponential mechanism takes: it costs three percent of mu.
_CHOICE_SHARE = 0.1
# Largest share that a noisy score takes, of mu^2 or of a pure epsilon, and the share of the
# records that its noise need not be smaller than.
_SCORE_SHARE, _PURE_SCORE_SHARE, _PRECISION = 0.2, 0.1, 5e-4
# Share of mu^2 for noise on all scores: half, as published, or as much as they can use.
_SCORES_SHARE = 0.5
# Shape of the distribution of the number of runs; a pure run costs 2 + shape times itself, and so
# does the ratio of Jacobians of a perturbed objective.
_SHAPES = {"gaussian": 2.0, "mixed": 1.0, "pure": 1.0}
# The least share of a Gaussian run that is tried, and how near a share is to the largest one.
_LEAST_SHARE, _SHARE_TOLERANCE = 0.1, 6e-4
# Estimators refuse less.
_LEAST_EPSILON = 1e-9
# Up to so many candidates one exponential mechanism is the better choice.
_FEW = {"gaussian": 4, "mixed": 2, "pure": 3}


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """The public numbers of a search: its candidates with their budgets, and what it costs.

    The distribution is of the number of runs, None where every candidate is trained once. The
    choice is of one candidate from all scores, or the noise on all scores or on one.
    """

    candidates: tuple[Params, ...]
    distribution: RunCountDistribution | None
    choice: Choice
    events: tuple[Event, ...]
    adjacency: str


def check_around(estimator: Any) -> None:
    """Refuse what a pipeline learns from the records, or spends on them, besides its model."""
    prefix, _ = model_inside(estimator)
    if not prefix:
        return
    # Of the model itself, its own fit says what there is to say.
    for finding in check_pipeline(clone(estimator).set_params(**{prefix[:-2]: "passthrough"})):
        raise ValueError(
            f"the search covers the model and not what stands around it: {finding.step} reads "
            f"{finding.reads}; use instead {finding.instead}"
        )
    names = [name for name in estimator.get_params() if name.endswith("__epsilon")]
    if names != [f"{prefix}epsilon"]:
        raise ValueError(
            "a search has one budget, and the estimator takes several: "
            f"{', '.join(sorted(names))}; use data_norm=None in the place of a PrivateScaler"
        )


class _Reached(Exception):
    """Carries what the model of a pipeline is fitted to."""

    def __init__(self, X: Any, y: Any) -> None:
        super().__init__()
        self.data = X, y


class _Model(ClassifierMixin, BaseEstimator):
    """Stands in the place of the model, and stops the fit of the steps before it."""

    def fit(self, X: Any, y: Any) -> NoReturn:
        """Stop."""
        raise _Reached(X, y)

    # Who holds a classifier asks whether it has scores; nobody gets as far as to use them.
    decision_function = fit


def planned_record(estimator: Any, X: Any, y: Any) -> PrivacyRecord:
    """Return what an unseeded fit would leave as its record; nothing is drawn or charged.

    Raises ValueError as the fit of the model would, for its parameters or the schema of the data.
    """
    prefix, model = model_inside(estimator)
    if prefix:
        X, y = _before_model(clone(estimator).set_params(**{prefix[:-2]: _Model()}), X, y)
    record: PrivacyRecord = clone(model).set_params(random_state=None).plan(X, y)
    return record


def _before_model(steps: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Return what the steps hand to the model; they say nothing, as in a run."""
    try:
        call_silently(lambda: steps.fit(X, y))
    except _Reached as stop:
        return stop.data
    raise RuntimeError("a fit did not reach its model")


def score_sensitivity(n_samples: int) -> float:
    """Bound the change of a sum of one number in [0, 1] for each record, rounding included."""
    return UP + n_samples * 2.0**-51


def scores_sensitivity(n_samples: int, n_candidates: int) -> float:
    """Bound the Euclidean change of the scores of several models together."""
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

    The probe maps parameters of a candidate to the record that its fit would leave; the grid has
    no budgets. Proofs: ``docs/proofs/selection.md``, sections 2, 7 and 8.
    """
    if math.isinf(epsilon):
        candidates, records = _Search(probe, grid, n_samples, epsilon, 0.0).planned(epsilon)
        return SearchPlan(candidates, None, NoNoise(), (Pure(epsilon),), records[0].adjacency)
    search = _Search(probe, grid, n_samples, epsilon, delta)
    way = search.way(selection)
    if way == "exponential":
        return search.exponential()
    if way == "noisy_scores":
        return search.noisy_scores()
    distribution = run_count_distribution(len(grid), miss, eta=_SHAPES[way])
    if way == "gaussian" and not search.stays_gaussian(distribution):
        # With the budget of a run the table is one of few rows, for which there is a choice.
        if selection != "auto":
            raise ValueError(
                "selection='random_stopping' leaves a run a budget at which a table of few rows is "
                "fitted by one choice: use selection='exponential', or solver='noisy_gd'"
            )
        return search.exponential()
    return {"pure": search.pure, "gaussian": search.gaussian, "mixed": search.mixed}[way](
        distribution
    )


@dataclass(frozen=True, slots=True)
class _Search:
    """A budget, and the candidates between which it is divided."""

    probe: Probe
    grid: Sequence[Params]
    n_samples: int
    epsilon: float
    delta: float

    def planned(self, epsilon: float) -> Planned:
        """Give every candidate the same budget."""
        budget = {"epsilon": epsilon, "delta": self.delta}
        candidates = tuple({**params, **budget} for params in self.grid)
        return candidates, [self.probe(params) for params in candidates]

    def way(self, selection: str) -> str:
        """Name the account: "exponential", "noisy_scores", or of random stopping one of three.

        These are "pure", "gaussian" and "mixed".
        """
        if selection == "exponential":
            return selection
        if selection == "gaussian":
            if self.delta == 0:
                raise ValueError(
                    "selection='gaussian' needs delta > 0: use 'exponential' or 'random_stopping'"
                )
            return "noisy_scores"
        way, refusal = self._stopping()
        if selection == "auto":
            return "exponential" if refusal or len(self.grid) <= _FEW[way] else way
        if refusal:
            raise ValueError(f"selection='random_stopping' needs {refusal}")
        return way

    def _stopping(self) -> tuple[str, str]:
        """Name the account of random stopping, or say what it needs."""
        if self.delta == 0:
            return "pure", ""
        events = [record.events for record in self.planned(self.epsilon)[1]]
        if all(_gaussian_cost(each) is not None for each in events):
            return "gaussian", ""
        if not all(map(is_mixable, events)):
            return "", (
                "an estimator whose releases are Gaussian or perturbed sums over records "
                "(delta > 0), or pure (delta=0): use selection='exponential'"
            )
        return "mixed", "" if len(set(events)) == 1 else _ALIKE

    def _run_mu(self, distribution: RunCountDistribution) -> tuple[float, float]:
        """Return the mu of the training of a run, and that of its score."""
        mu, mu_score = self._mu(distribution)
        mu_train = math.sqrt(mu * mu - mu_score * mu_score) * WIDE_DOWN
        return mu_train, mu_score

    def stays_gaussian(self, distribution: RunCountDistribution) -> bool:
        """Tell whether releases are still Gaussian with the budget of a run."""
        records = self.planned(run_epsilon(self._run_mu(distribution)[0], self.delta))[1]
        return all(_gaussian_cost(record.events) is not None for record in records)

    def gaussian(self, distribution: RunCountDistribution) -> SearchPlan:
        """Plan random stopping where every run is Gaussian private; the dearest sets the price."""
        mu_train, mu_score = self._run_mu(distribution)
        candidates, records = self.planned(run_epsilon(mu_train, self.delta))
        costs = [_gaussian_cost(record.events) for record in records]
        if None in costs:
            raise RuntimeError("a candidate releases something else than it did with more budget")
        worst = max(math.hypot(cost or 0.0, mu_score) for cost in costs) * UP
        choice = GaussianNoise(score_sensitivity(self.n_samples), mu_score)
        events = (selection_event(distribution, worst),)
        return SearchPlan(candidates, distribution, choice, events, records[0].adjacency)

    def mixed(self, distribution: RunCountDistribution) -> SearchPlan:
        """Plan random stopping where every run releases the same, perturbed objectives too."""
        mu, mu_score = self._mu(distribution)
        mu_train = math.sqrt(mu * mu - mu_score * mu_score)

        def stopping(records: Sequence[PrivacyRecord]) -> tuple[Event, ...]:
            if len({record.events for record in records}) > 1:
                raise ValueError(f"selection='random_stopping' needs {_ALIKE}")
            return (mixed_selection_event(distribution, [*records[0].events, Gaussian(mu_score)]),)

        candidates, records = self._largest(stopping, mu_train, _LEAST_SHARE, 1.0)
        choice = GaussianNoise(score_sensitivity(self.n_samples), mu_score)
        return SearchPlan(candidates, distribution, choice, stopping(records), records[0].adjacency)

    def _mu(self, distribution: RunCountDistribution) -> tuple[float, float]:
        """Return the mu of a Gaussian run, and of its noisy score.

        A score need not be known better than a share of the records.
        """
        mu = calibrate_selection(distribution, self.epsilon, self.delta)
        return mu, min(math.sqrt(_SCORE_SHARE) * mu, 1.0 / (_PRECISION * self.n_samples))

    def pure(self, distribution: RunCountDistribution) -> SearchPlan:
        """Plan random stopping where every run is pure DP."""
        run = self.epsilon / (2.0 + _SHAPES["pure"]) * WIDE_DOWN
        score = min(_PURE_SCORE_SHARE * run, 1.0 / (_PRECISION * self.n_samples))
        candidates, records = self.planned(run - score)
        for record in records:
            if accounting.epsilon(record.events, 0.0) > (run - score) * FAR_UP:
                raise RuntimeError("a candidate would spend more than it was given")
        choice = L2LaplaceNoise(score_sensitivity(self.n_samples), score)
        # Rounded up: the cost of a run is at most run / WIDE_DOWN.
        return SearchPlan(
            candidates, distribution, choice, (Pure(self.epsilon),), records[0].adjacency
        )

    def noisy_scores(self) -> SearchPlan:
        """Plan the training of all candidates, and Gaussian noise on all of their scores.

        Wang, Zhu and Wang (2025), Algorithm 2; ``docs/proofs/selection.md``, section 7.
        """
        count, whole = len(self.grid), gdp_mu(self.epsilon, self.delta)
        # One record moves each of the scores.
        sensitivity = scores_sensitivity(self.n_samples, count)
        precise = sensitivity / (_PRECISION * self.n_samples)
        choice = GaussianNoise(sensitivity, min(math.sqrt(_SCORES_SHARE) * whole, precise))
        everything = _all_and(choice)
        equal = 1.0 / math.sqrt(count)
        candidates, records = self._largest(everything, whole, _LEAST_SHARE * equal, equal)
        return SearchPlan(candidates, None, choice, everything(records), records[0].adjacency)

    def exponential(self) -> SearchPlan:
        """Plan the training of all candidates, and one exponential mechanism."""
        choice = ExponentialChoice(score_sensitivity(self.n_samples), _CHOICE_SHARE * self.epsilon)
        everything = _all_and(choice)
        if self.delta == 0:
            each = (1.0 - _CHOICE_SHARE) * self.epsilon / len(self.grid) * WIDE_DOWN
            candidates, records = self.planned(each)
        else:
            # Gaussian candidates would have this share of mu; others a little less.
            equal, whole = 1.0 / math.sqrt(len(self.grid)), gdp_mu(self.epsilon, self.delta)
            candidates, records = self._largest(everything, whole, _LEAST_SHARE * equal, equal)
        return SearchPlan(candidates, None, choice, everything(records), records[0].adjacency)

    def _largest(
        self,
        cost: Callable[[Sequence[PrivacyRecord]], Iterable[Event]],
        mu: float,
        lower: float,
        upper: float,
    ) -> Planned:
        """Find the largest share of mu that every candidate can have within the budget, about."""

        def planned(share: float) -> Planned:
            return self.planned(run_epsilon(share * mu, self.delta))

        planned(lower)  # a budget of next to nothing is refused in its own words
        try:
            share = accounting.calibrate(
                lambda share: cost(planned(share)[1]),
                self.epsilon,
                self.delta,
                lower=lower,
                upper=upper,
                rtol=_SHARE_TOLERANCE,
            )
        except BudgetError as error:
            raise BudgetError("the budget is too small for this many candidates") from error
        return planned(share)


def _all_and(
    choice: ExponentialChoice | GaussianNoise,
) -> Callable[[Sequence[PrivacyRecord]], tuple[Event, ...]]:
    """Add up what all candidates and the choice among them release."""

    def everything(records: Sequence[PrivacyRecord]) -> tuple[Event, ...]:
        return (*(event for record in records for event in record.events), choice.event)

    return everything


_ALIKE = (
    "candidates that all release the same: leave out of the grid what changes the noise of a "
    "perturbed objective (alpha='auto' chooses its regulariser), or use selection='exponential', "
    "which divides the budget"
)


def run_epsilon(mu: float, delta: float) -> float:
    """Return the epsilon of a run that may cost a Gaussian signal to noise ratio."""
    epsilon = gdp_epsilon(mu, delta)
    if epsilon < _LEAST_EPSILON:
        raise BudgetError(
            "the budget is too small for a search: one run would have next to nothing of it. Use "
            "fewer candidates, a larger epsilon or a smaller delta"
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
