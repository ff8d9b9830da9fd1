"""The plan of a private search, made before anything is spent, and its candidates.

Every estimator says by its ``plan`` what a fit would release, with the real noise scales and
without any noise. From these plans a budget is divided exactly.

The number of candidates that run may be secret, and it can be counted if each fit prints a line,
warns, logs or calls a callback. Therefore steps are silenced, and the remaining output of steps and
of functions of the user is dropped. One record changes a score by at most one. Proof:
``docs/proofs/selection.md``, sections 7 and 10.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from dp_halfspace._budget import SharedLedger
from dp_halfspace._pipelines import check_pipeline, library_of
from dp_halfspace._repeated_fits import fits_not_counted
from dp_halfspace._rounding import FAR_UP, UP, WIDE_DOWN
from dp_halfspace._sklearn_compat import without_callbacks
from dp_halfspace.data.validation import call_silently, class_indices
from dp_halfspace.exceptions import BudgetError
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.events import Event, Gaussian, Pure, single_runs
from dp_halfspace.privacy.interception import Mechanism, draw_release
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
    is_mixable,
    mixed_random_stopping_event,
    random_stopping_event,
    run_count_distribution,
)
from dp_halfspace.privacy.randomness import OS_RANDOMNESS, ByteSource, SeededBytes
from dp_halfspace.privacy.record import PrivacyRecord

Params: TypeAlias = dict[str, Any]
Choice: TypeAlias = ExponentialChoice | GaussianNoise | L2LaplaceNoise | NoNoise
PlannedCandidates: TypeAlias = tuple[tuple[Params, ...], list[PrivacyRecord]]
Probe: TypeAlias = Callable[[Params], PrivacyRecord]

SELECTIONS = ("auto", "random_stopping", "exponential", "gaussian")

# Fraction of epsilon for one exponential mechanism, which costs three percent of mu.
_CHOICE_SHARE = 0.1
# Largest fraction of mu^2 for a noisy score.
_SCORE_SHARE = 0.2
# Largest fraction of a pure DP budget for a noisy score.
_PURE_SCORE_SHARE = 0.1
# The noise of a score need not be smaller than this fraction of the records.
_PRECISION = 5e-4
# Largest fraction of mu^2 for noise on all scores; one half is published.
_SCORES_SHARE = 0.5
# Shape of the distribution of the number of runs. A pure DP run costs 2 + shape times its epsilon,
# and so does the ratio of Jacobians of a perturbed objective.
_SHAPES = {"gaussian": 2.0, "mixed": 1.0, "pure": 1.0}
# Smallest fraction of the budget of a Gaussian run that is tried.
_LEAST_SHARE = 0.1
# Relative accuracy of the search for the largest fraction.
_SHARE_TOLERANCE = 6e-4
# Smallest epsilon that estimators accept.
_LEAST_EPSILON = 1e-9
# Up to this number of candidates one exponential mechanism is better.
_FEW = {"gaussian": 4, "mixed": 2, "pure": 3}


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


class _Reached(Exception):
    """Carries the data to which the model of a pipeline is fitted."""

    def __init__(self, X: Any, y: Any) -> None:
        super().__init__()
        self.data = X, y


class _Model(ClassifierMixin, BaseEstimator):
    """Replaces the model, and stops the fit of the steps before it."""

    def fit(self, X: Any, y: Any) -> NoReturn:
        """Stop with the data."""
        raise _Reached(X, y)

    # Wrappers check whether a classifier has scores; this one is never called.
    decision_function = fit


def planned_record(estimator: Any, X: Any, y: Any) -> PrivacyRecord:
    """Return the record that an unseeded fit would have; nothing is drawn or charged.

    Raises ValueError as the fit of the model would, for its parameters or the schema of the data.
    """
    model, data = _unseeded(estimator, X, y)
    record: PrivacyRecord = model.plan(*data)
    return record


def _unseeded(estimator: Any, X: Any, y: Any) -> tuple[Any, tuple[Any, Any]]:
    """Return the model inside, without a seed, and the data that would reach it."""
    prefix, model = model_inside(estimator)
    if prefix:
        X, y = _before_model(clone(estimator).set_params(**{prefix[:-2]: _Model()}), X, y)
    return clone(model).set_params(random_state=None), (X, y)


@dataclass(slots=True)
class CandidatePlans:
    """The records of candidates; the data are validated once for each, and not for each budget."""

    make: Callable[[Params], Any]
    X: Any
    y: Any
    known: list[tuple[Params, Callable[[float], PrivacyRecord]]] = field(default_factory=list)

    def __call__(self, params: Params) -> PrivacyRecord:
        """Return the record of the fit of a candidate."""
        fixed = {name: value for name, value in params.items() if name != "epsilon"}
        for other, record_with in self.known:
            # A value may have no order or hash, and equal ones may differ in type.
            if other.keys() == fixed.keys() and all(other[k] is v for k, v in fixed.items()):
                return record_with(params["epsilon"])
        model, data = _unseeded(self.make(params), self.X, self.y)
        self.known.append((fixed, model._plans(*data)))
        return self.known[-1][1](params["epsilon"])


def _before_model(steps: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Return the data that the steps pass to the model, without output, as in a run."""
    try:
        call_silently(lambda: steps.fit(X, y), _FAILED)
    except _Reached as stop:
        return stop.data
    raise RuntimeError("a fit did not reach its model")


def score_sensitivity(n_samples: int) -> float:
    """Bound the change of a sum of numbers in [0, 1], one for each record, with rounding errors.

    ``docs/proofs/selection.md``, section 7; section 10 proves it for scores that are not sums.
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
    Proofs: ``docs/proofs/selection.md``, sections 2, 7 and 8.
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
    distribution = run_count_distribution(len(grid), miss, eta=_SHAPES[way])
    if way == "gaussian" and not search.stays_gaussian(distribution):
        # At the budget of a run the table is a small one, which is fitted by a selection.
        if selection != "auto":
            raise ValueError(
                "selection='random_stopping' gives each run a budget at which a small table is "
                "fitted by one selection: use selection='exponential', or solver='noisy_gd'"
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

    def plan_candidates(self, epsilon: float) -> PlannedCandidates:
        """Assign the same budget to every candidate."""
        budget = {"epsilon": epsilon, "delta": self.delta}
        candidates = tuple({**params, **budget} for params in self.grid)
        return candidates, [self.probe(params) for params in candidates]

    def way(self, selection: str) -> str:
        """Kind of accounting: "exponential", "noisy_scores", or one of three of random stopping.

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
        way, refusal = self._name_stopping()
        if selection == "auto":
            return "exponential" if refusal or len(self.grid) <= _FEW[way] else way
        if refusal:
            raise ValueError(f"selection='random_stopping' needs {refusal}")
        return way

    def _name_stopping(self) -> tuple[str, str]:
        """Name the accounting of random stopping, or raise an error with its requirements."""
        if self.delta == 0:
            return "pure", ""
        events = [record.events for record in self.plan_candidates(self.epsilon)[1]]
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
        """Return whether releases are still Gaussian with the budget of a run."""
        records = self.plan_candidates(run_epsilon(self._run_mu(distribution)[0], self.delta))[1]
        return all(_gaussian_cost(record.events) is not None for record in records)

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

    def mixed(self, distribution: RunCountDistribution) -> SearchPlan:
        """Plan random stopping for runs with equal releases, including perturbed objectives."""
        mu, mu_score = self._mu(distribution)
        mu_train = math.sqrt(mu * mu - mu_score * mu_score)

        def stopping(records: Sequence[PrivacyRecord]) -> tuple[Event, ...]:
            if len({record.events for record in records}) > 1:
                raise ValueError(f"selection='random_stopping' needs {_ALIKE}")
            return (
                mixed_random_stopping_event(distribution, [*records[0].events, Gaussian(mu_score)]),
            )

        candidates, records = self._largest(stopping, mu_train, _LEAST_SHARE, 1.0)
        choice = GaussianNoise(score_sensitivity(self.n_samples), mu_score)
        return SearchPlan(candidates, distribution, choice, stopping(records), records[0].adjacency)

    def _mu(self, distribution: RunCountDistribution) -> tuple[float, float]:
        """Return the mu of a Gaussian run, and of its noisy score.

        The noise of a score need not be smaller than a fraction of the records.
        """
        mu = calibrate_random_stopping(distribution, self.epsilon, self.delta)
        return mu, min(math.sqrt(_SCORE_SHARE) * mu, 1.0 / (_PRECISION * self.n_samples))

    def pure(self, distribution: RunCountDistribution) -> SearchPlan:
        """Plan random stopping for pure DP runs."""
        run = self.epsilon / (2.0 + _SHAPES["pure"]) * WIDE_DOWN
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
            candidates, records = self.plan_candidates(each)
        else:
            # Gaussian candidates would get this fraction of mu, and others a little less.
            equal, whole = 1.0 / math.sqrt(len(self.grid)), gdp_mu(self.epsilon, self.delta)
            candidates, records = self._largest(everything, whole, _LEAST_SHARE * equal, equal)
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


_ALIKE = (
    "candidates with the same releases: remove from the grid the parameters that "
    "change the noise of a perturbed objective (alpha='auto' chooses its "
    "regulariser), or use selection='exponential', which divides the budget"
)


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


Scoring: TypeAlias = str | Callable[..., ArrayLike]
Run: TypeAlias = tuple[Any, float]
Array: TypeAlias = NDArray[Any]

# Values of these parameters in candidates, at every level, because processes that a step starts
# would have their own standard streams.
_QUIET = {"verbose": False, "n_jobs": 1}
_FAILED = (
    "a step before the model, or the scoring, failed. Its message is not shown, because it may "
    "quote records. Fit the steps separately, where only people who may see the records can read it"
)
_NO_WORKER = (
    "n_jobs={}: joblib could not pass a run to a worker. Use n_jobs=None, which needs none, or "
    "another number of jobs, and an estimator and a scoring that can be pickled"
)


def model_inside(estimator: Any) -> tuple[str, Any]:
    """Return the model of this package at the end of a pipeline, and its parameter prefix."""
    prefix = ""
    while not _is_private(type(estimator)):
        if getattr(estimator, "steps", None):
            name, inner = estimator.steps[-1]
        else:
            name, inner = "estimator", getattr(estimator, "estimator", None)
            inner = getattr(estimator, "estimator_", inner)
        if inner is None:
            raise ValueError(
                "estimator must be a classifier of this package, or a pipeline that ends in one; "
                f"{type(estimator).__name__} is not"
            )
        prefix, estimator = f"{prefix}{name}__", inner
    return prefix, estimator


def _is_private(kind: type) -> bool:
    """Return whether a class is a classifier of this package, and not a subclass of one."""
    is_classifier = issubclass(kind, SharedLedger) and issubclass(kind, ClassifierMixin)
    return is_classifier and library_of(kind) == "dp_halfspace"


def silence(candidate: Any) -> Any:
    """Turn off the output of a candidate, by its parameters and callbacks, in place."""
    without_callbacks(candidate)
    settings = {name: _QUIET.get(_own_name(name)) for name in candidate.get_params()}
    return candidate.set_params(**{k: value for k, value in settings.items() if value is not None})


def seed_steps(candidate: Any, prefix: str, source: ByteSource) -> None:
    """Set the seed of each step without one, before the model, whose parameters have the prefix.

    They would otherwise draw from the global generator of numpy, whose state reveals the number of
    draws.
    """
    for name, value in candidate.get_params().items():
        if _own_name(name) == "random_state" and not name.startswith(prefix) and value is None:
            candidate.set_params(**{name: int.from_bytes(source.read(4), "little")})


def restore_settings(best: Any, given: Any) -> None:
    """Undo `silence` and `seed_steps` for the released candidate, by the settings of `given`."""
    kinds = {*_QUIET, "random_state"}
    params = {name: value for name, value in given.get_params().items() if _own_name(name) in kinds}
    best.set_params(**params)


def _own_name(name: str) -> str:
    """Return the name of a parameter without the names of steps."""
    return name.rpartition("__")[2]


def score_of(scoring: Scoring, model: Any, X: Any, y: ArrayLike) -> float:
    """Score a fitted model; larger is better.

    A callable returns a number in [0, 1] for each record, computed from the record and the model
    only.
    """
    if isinstance(scoring, str):
        indices, classes = class_indices(y, model.classes_)
        return SCORINGS[scoring](model, X, indices, classes)
    each = np.nan_to_num(np.asarray(scoring(model, X, y), dtype=np.float64))
    if each.shape != np.asarray(y).ravel().shape:
        raise ValueError("scoring must return one number for each record")
    return math.fsum(np.clip(each, 0.0, 1.0))


def _are_right(model: Any, X: Any, indices: Array, classes: Array) -> Array:
    """Return which records are correctly predicted."""
    return np.asarray(class_indices(model.predict(X), classes)[0] == indices)


def _count_right(model: Any, X: Any, indices: NDArray[np.intp], classes: NDArray[Any]) -> float:
    """Count the correctly predicted records."""
    return float(_are_right(model, X, indices, classes).sum())


def _sum_recalls(model: Any, X: Any, indices: NDArray[np.intp], classes: NDArray[Any]) -> float:
    """Add the recalls, times the size of the smallest class, over the number of classes plus one.

    All candidates are scored on the same classes, so this ranks them by balanced accuracy.
    """
    sizes = np.bincount(indices, minlength=len(classes))
    hits = indices[_are_right(model, X, indices, classes)]
    recalls = (np.bincount(hits, minlength=len(classes)) / np.maximum(sizes, 1)).sum()
    return float(sizes.min() * recalls / (len(classes) + 1))


def _count_ordered_pairs(model: Any, X: Any, indices: Array, classes: Array) -> float:
    """Count ordered pairs of a positive and a negative record, ties as one half, over all records.

    The result is the area under the ROC curve times a number that is the same for all candidates.
    """
    del classes
    has_scores = hasattr(model, "decision_function")
    scores = model.decision_function(X) if has_scores else model.predict_proba(X)[:, 1]
    scores = np.nan_to_num(np.array(scores, dtype=np.float64))
    negative = np.sort(scores[indices == 0])
    ranks = [np.searchsorted(negative, scores[indices == 1], side) for side in ("left", "right")]
    return int(np.sum(ranks)) / (2.0 * len(indices))


SCORINGS = {
    "accuracy": _count_right,
    "balanced_accuracy": _sum_recalls,
    "roc_auc": _count_ordered_pairs,
}


@dataclass(frozen=True)
class RobustAccuracy:
    """Scoring for :class:`PrivateSearchCV`: right whatever an adversary does to the row.

    Parameters
    ----------
    radius : float
        PUBLIC largest change of a row, in the units of the columns.
    norm : {2, "inf"}, default=2
        Of that change: Euclidean, or the largest change of one column.

    Notes
    -----
    **Privacy.** One number in [0, 1] for each record, so a search covers it as for accuracy. For
    linear models with a stated scale of rows (`data_norm`). Source: ``docs/proofs/robust.md``,
    section 1.

    Examples
    --------
    >>> from dp_halfspace import AdaptiveMarginClassifier, PrivateSearchCV
    >>> from dp_halfspace.model_selection import RobustAccuracy
    >>> model = AdaptiveMarginClassifier(data_norm=1, classes=[-1, 1])
    >>> grid = {"adversary_radius": [0.0, 0.1]}
    >>> search = PrivateSearchCV(model, grid, scoring=RobustAccuracy(0.1))
    """

    radius: float
    norm: int | str = 2

    def __post_init__(self) -> None:
        if not 0.0 <= self.radius < math.inf or self.norm not in (2, "inf"):
            raise ValueError("radius must be a number from 0 on, and norm 2 or 'inf'")

    def __call__(self, model: Any, X: Any, y: ArrayLike) -> NDArray[np.float64]:
        """Return 1 for each record whose prediction remains correct, otherwise 0."""
        indices, classes = class_indices(y, model.classes_)
        scores, weights = np.asarray(model.decision_function(X)), model.coef_
        if len(classes) == 2:
            scores = np.outer(scores, [-0.5, 0.5])
            weights = np.vstack([-0.5 * weights, 0.5 * weights])
        # A change of norm `radius` changes a difference of scores by `radius` times the dual norm
        # of the weights.
        dual = 1 if self.norm == "inf" else 2
        changes = self.radius * np.array(
            [np.linalg.norm(weights - own, dual, axis=1) for own in weights]
        )
        own = np.take_along_axis(scores, indices[:, None], axis=1)
        gaps = own - scores - changes[indices]
        gaps[np.arange(len(indices)), indices] = np.inf
        return np.asarray(gaps.min(axis=1) > 0.0, dtype=np.float64)


def _pool(n_jobs: int | None, verbose: int = 0) -> Any:
    """Return the workers of joblib, which hand out each result when it is asked for."""
    return Parallel(n_jobs=n_jobs, verbose=verbose, return_as="generator")


def check_workers(model: Any, X: Any, y: ArrayLike, scoring: Scoring, n_jobs: int | None) -> None:
    """Pass the arguments of a run to a worker that does nothing with them.

    Whatever joblib refuses, such as a number of jobs or an object that cannot be pickled, is
    refused here, before anything is charged.
    """
    trial = delayed(_receive)(model, X, y, scoring)
    call_silently(lambda: list(_pool(n_jobs)([trial])), _NO_WORKER.format(n_jobs))


def _receive(*arguments: Any) -> None:
    """Do nothing, in a worker."""
    del arguments


def run_candidates(
    models: Iterable[Any],
    *,
    X: Any,
    y: ArrayLike,
    scoring: Scoring,
    seed: int | None,
    n_jobs: int | None,
    noise: Mechanism | None = None,
    verbose: int = 0,
) -> Iterator[Run]:
    """Train and score models, in the same order for every number of jobs.

    The models are fitted in place, and scores are computed on the training rows. Without a seed,
    all randomness is drawn from the operating system where it is used. `noise` is added to each
    score, or None if scores are not released one by one. With `verbose`, joblib shows the number of
    fits.
    """
    tasks = (
        delayed(_train_and_score)(
            model, X, y, scoring=scoring, noise=noise, seed=None if seed is None else (seed, number)
        )
        for number, model in enumerate(models)
    )
    runs: Iterator[Run] = _pool(n_jobs, verbose)(tasks)
    return runs


def _train_and_score(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    scoring: Scoring,
    noise: Mechanism | None,
    seed: tuple[int, int] | None,
) -> Run:
    """Train and score one candidate, with noise if each score is released.

    The function runs in a worker, which draws its own randomness from the operating system.
    Warnings about the schema of the data and about parameters were given when the search was
    planned.
    """
    prefix, _ = model_inside(model)
    own = OS_RANDOMNESS if seed is None else SeededBytes(seed[0], f"run {seed[1]}")
    if seed is not None:
        model.set_params(**{f"{prefix}random_state": int.from_bytes(own.read(4), "little")})
    seed_steps(model, prefix, own)
    # The record of the search covers all runs, and their number may be secret.
    with fits_not_counted():
        score = call_silently(lambda: score_of(scoring, model.fit(X, y), X, y), _FAILED)
    if noise is not None:
        source = OS_RANDOMNESS if seed is None else SeededBytes(seed[0], f"score {seed[1]}")
        score = float(draw_release(np.array([score]), noise, source)[0])
    return model, score
