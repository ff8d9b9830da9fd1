"""What a private search is going to spend, found out before anything is spent.

Every estimator says by its ``plan`` what a fit would release, with the real noise scales and
without any noise. From these plans a budget is divided exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from sklearn.base import clone

from dp_halfspace.exceptions import BudgetError
from dp_halfspace.model_selection._search_mixture import plan_mixture, run_epsilon
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.events import Event, Exponential, Gaussian, Pure, Repeated
from dp_halfspace.privacy.mechanisms import (
    ExponentialChoice,
    GaussianNoise,
    L2LaplaceNoise,
    NoNoise,
)
from dp_halfspace.privacy.profiles import gdp_mu
from dp_halfspace.privacy.record import PrivacyRecord
from dp_halfspace.privacy.tuning import (
    RunLaw,
    calibrate_selection,
    is_mixable,
    run_law,
    selection_event,
)

__all__ = ["SELECTIONS", "SearchPlan", "plan_search", "planned_record", "score_sensitivity"]

Params: TypeAlias = dict[str, Any]
Choice: TypeAlias = ExponentialChoice | GaussianNoise | L2LaplaceNoise | NoNoise
Probe: TypeAlias = Callable[[Params], PrivacyRecord]

SELECTIONS = ("auto", "random_stopping", "exponential")

# Part of epsilon that one exponential mechanism takes: it costs three percent of mu.
_CHOICE_SHARE = 0.1
# Largest share that a noisy score takes, of mu^2 or of a pure epsilon, and the share of the
# records that its noise need not be smaller than.
_SCORE_SHARE, _PURE_SCORE_SHARE, _PRECISION = 0.2, 0.1, 5e-4
# Shape of the law of the number of runs; a pure run costs 2 + shape times itself, and so does
# the ratio of Jacobians of a perturbed objective.
_SHAPES = {"gaussian": 2.0, "mixed": 1.0, "pure": 1.0}
# Between what a candidate is allowed and what it asks for.
_DOWN = 1.0 - 2.0**-20
_HALVINGS = 12
# Up to so many candidates one exponential mechanism is the better choice.
_FEW = {"gaussian": 4, "mixed": 2, "pure": 3}


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """The public numbers of a search.

    Attributes
    ----------
    candidates : tuple of dict
        Parameters of each, with its budget.
    law : RunLaw or None
        Of the number of runs; None where every candidate is trained once.
    choice : ExponentialChoice, GaussianNoise, L2LaplaceNoise or NoNoise
        Of one candidate from all scores, or the noise on one score.
    events : tuple of Event
        What the search costs.
    """

    candidates: tuple[Params, ...]
    law: RunLaw | None
    choice: Choice
    events: tuple[Event, ...]
    adjacency: str


def planned_record(estimator: Any, X: Any, y: Any) -> PrivacyRecord:
    """Return what an unseeded fit would leave as its record; nothing is drawn or charged.

    Parameters
    ----------
    X, y
        Checked, and otherwise not used.

    Raises
    ------
    ValueError
        As the fit itself would, for its parameters or the schema of the data.
    """
    record: PrivacyRecord = clone(estimator).set_params(random_state=None).plan(X, y)
    return record


def score_sensitivity(n_samples: int) -> float:
    """Bound the change of a sum of one number in [0, 1] for each record, rounding included."""
    return 1.0 + 2.0**-40 + n_samples * 2.0**-51


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

    Parameters
    ----------
    probe : callable
        From parameters of a candidate to the record that its fit would leave.
    grid : sequence of dict
        Parameters of the candidates, without a budget.
    epsilon, delta : float
        Total budget.
    selection : str
        One of `SELECTIONS`.
    miss : float
        Accepted probability that random stopping never tries a given candidate.

    Raises
    ------
    ValueError
        If random stopping has no exact account for this estimator.

    References
    ----------
    ``docs/proofs/selection.md``, sections 2, 7 and 8.
    """
    if math.isinf(epsilon):
        candidates = _with_budget(grid, math.inf, 0.0)
        adjacency = probe(candidates[0]).adjacency
        return SearchPlan(candidates, None, NoNoise(), (Pure(math.inf),), adjacency)
    way = _way(probe, grid, epsilon, delta, selection)
    if way == "exponential":
        return _exponential(probe, grid, n_samples=n_samples, epsilon=epsilon, delta=delta)
    law = run_law(len(grid), miss, eta=_SHAPES[way])
    if way == "pure":
        return _pure_stopping(probe, grid, law, n_samples=n_samples, epsilon=epsilon)
    stopping = _gaussian_stopping if way == "gaussian" else _mixed_stopping
    return stopping(probe, grid, law, n_samples=n_samples, epsilon=epsilon, delta=delta)


def _way(probe: Probe, grid: Sequence[Params], epsilon: float, delta: float, selection: str) -> str:
    """Name the account: "exponential", or "pure", "gaussian" or "mixed" for random stopping."""
    automatic = selection == "auto"
    if selection == "exponential":
        return selection
    if delta == 0:
        return "exponential" if automatic and len(grid) <= _FEW["pure"] else "pure"
    events = [probe(params).events for params in _with_budget(grid, epsilon, delta)]
    if not all(map(is_mixable, events)):
        if automatic:
            return "exponential"
        raise ValueError(
            "selection='random_stopping' needs an estimator whose releases are Gaussian or "
            "perturbed sums over records (delta > 0), or pure (delta=0): use "
            "selection='exponential'"
        )
    gaussian = all(_gaussian_cost(charged) is not None for charged in events)
    way = "gaussian" if gaussian else "mixed"
    return "exponential" if automatic and len(grid) <= _FEW[way] else way


def _with_budget(grid: Sequence[Params], epsilon: float, delta: float) -> tuple[Params, ...]:
    """Give every candidate the same budget."""
    return tuple({**params, "epsilon": epsilon, "delta": delta} for params in grid)


def _gaussian_stopping(
    probe: Probe,
    grid: Sequence[Params],
    law: RunLaw,
    *,
    n_samples: int,
    epsilon: float,
    delta: float,
) -> SearchPlan:
    """Plan random stopping where every run is Gaussian private."""
    mu = calibrate_selection(law, epsilon, delta)
    mu_score = _score_mu(mu, n_samples)
    mu_train = math.sqrt(mu * mu - mu_score * mu_score) * _DOWN
    candidates = _with_budget(grid, run_epsilon(mu_train, delta), delta)
    records = [probe(params) for params in candidates]
    costs = [_gaussian_cost(record.events) for record in records]
    if None in costs:
        raise RuntimeError("a candidate releases something else than it did with more budget")
    worst = max(math.hypot(cost or 0.0, mu_score) for cost in costs) * (1.0 + 2.0**-40)
    choice = GaussianNoise(score_sensitivity(n_samples), mu_score)
    event = selection_event(law, worst)
    return SearchPlan(candidates, law, choice, (event,), records[0].adjacency)


def _score_mu(mu: float, n_samples: int) -> float:
    """Divide the mu of a run; a score need not be known better than a share of the records."""
    return min(math.sqrt(_SCORE_SHARE) * mu, 1.0 / (_PRECISION * n_samples))


def _mixed_stopping(
    probe: Probe,
    grid: Sequence[Params],
    law: RunLaw,
    *,
    n_samples: int,
    epsilon: float,
    delta: float,
) -> SearchPlan:
    """Plan random stopping where every candidate has an account of its own."""
    mu = calibrate_selection(law, epsilon, delta)
    mu_score = _score_mu(mu, n_samples)
    candidates, records, event = plan_mixture(
        probe, grid, law, mu=mu, mu_score=mu_score, epsilon=epsilon, delta=delta
    )
    choice = GaussianNoise(score_sensitivity(n_samples), mu_score)
    return SearchPlan(candidates, law, choice, (event,), records[0].adjacency)


def _gaussian_cost(events: Sequence[Event]) -> float | None:
    """Return the mu of events that are all Gaussian, None if one is not."""
    total = 0.0
    for charged in events:
        count, event = 1, charged
        while isinstance(event, Repeated):
            count, event = count * event.count, event.event
        if not isinstance(event, Gaussian):
            return None
        total += count * event.mu * event.mu
    return math.sqrt(total)


def _pure_stopping(
    probe: Probe, grid: Sequence[Params], law: RunLaw, *, n_samples: int, epsilon: float
) -> SearchPlan:
    """Plan random stopping where every run is purely private."""
    run = epsilon / (2.0 + _SHAPES["pure"]) * _DOWN
    score = min(_PURE_SCORE_SHARE * run, 1.0 / (_PRECISION * n_samples))
    candidates = _with_budget(grid, run - score, 0.0)
    records = [probe(params) for params in candidates]
    for record in records:
        if accounting.epsilon(record.events, 0.0) > (run - score) * (1.0 + 2.0**-30):
            raise RuntimeError("a candidate would spend more than it was given")
    choice = L2LaplaceNoise(score_sensitivity(n_samples), score)
    # Rounded up: the cost of a run is at most run / _DOWN.
    return SearchPlan(candidates, law, choice, (Pure(epsilon),), records[0].adjacency)


def _exponential(
    probe: Probe, grid: Sequence[Params], *, n_samples: int, epsilon: float, delta: float
) -> SearchPlan:
    """Plan the training of all candidates, and one exponential mechanism."""
    choice = ExponentialChoice(score_sensitivity(n_samples), _CHOICE_SHARE * epsilon)
    if delta == 0:
        each = (1.0 - _CHOICE_SHARE) * epsilon / len(grid) * _DOWN
        candidates = _with_budget(grid, each, 0.0)
        records = [probe(params) for params in candidates]
    else:
        candidates, records = _largest_equal_share(probe, grid, choice, epsilon, delta)
    events = tuple(event for record in records for event in record.events)
    return SearchPlan(candidates, None, choice, (*events, choice.event), records[0].adjacency)


def _largest_equal_share(
    probe: Probe, grid: Sequence[Params], choice: ExponentialChoice, epsilon: float, delta: float
) -> tuple[tuple[Params, ...], list[PrivacyRecord]]:
    """Find the largest budget that every candidate can have, all composed exactly."""
    whole = gdp_mu(epsilon, delta)

    def planned(share: float) -> tuple[tuple[Params, ...], list[PrivacyRecord]] | None:
        candidates = _with_budget(grid, run_epsilon(share * whole, delta), delta)
        records = [probe(params) for params in candidates]
        events = [event for record in records for event in record.events]
        fits = accounting.delta([*events, Exponential(choice.epsilon)], epsilon) <= delta
        return (candidates, records) if fits else None

    # Gaussian candidates would have this share of mu; others a little less.
    low, high = 0.1 / math.sqrt(len(grid)), 1.0 / math.sqrt(len(grid))
    found = planned(low)
    if found is None:
        raise BudgetError("the budget is too small for this many candidates")
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        better = planned(middle)
        if better is None:
            high = middle
        else:
            low, found = middle, better
    return found
