"""Base of classifiers that wrap a fitted model and learn one thing from held-out private records.

They learn the first of a list of candidates that meets a target, chosen by the exponential
mechanism. The excess of a candidate over the target changes by at most one if a record is replaced,
and so does the utility that is computed from it here. Proofs: ``docs/proofs/operating_points.md``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import lambertw
from sklearn.base import ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dp_halfspace._budget import (
    SharedLedger,
    opened_ledger,
    warn_of_calls_around,
    warn_of_weak_budget,
)
from dp_halfspace._params import fit_context
from dp_halfspace._repeated_fits import warn_of_repeated_fits
from dp_halfspace.data.validation import share_of_right
from dp_halfspace.engine.plan import PublicPlan
from dp_halfspace.estimators._crossing import rounded_up
from dp_halfspace.metrics._held_out import HeldOut, held_out
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.mechanisms import Permit, authorise
from dp_halfspace.privacy.randomness import noise_kind, noise_source
from dp_halfspace.privacy.record import PrivacyRecord

AnyPlan = TypeVar("AnyPlan", bound=PublicPlan)


def _inner_has(name: str) -> Callable[[Any], bool]:
    """Return a check whether the wrapped model has a method."""

    def check(outer: Any) -> bool:
        getattr(outer._inner, name)
        return True

    return check


class WrappingClassifier(MetaEstimatorMixin, ClassifierMixin, SharedLedger):
    """A classifier that wraps another one and passes on its probabilities, scores and tags."""

    estimator: Any

    @property
    def _inner(self) -> Any:
        """The wrapped model, or the best run of a fitted search."""
        return getattr(self, "best_estimator_", self.estimator)

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of the records whose label is predicted; not private.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,) or None, default=None

        Returns
        -------
        float
        """
        return share_of_right(y, self.predict(X), self.classes_, sample_weight)

    @available_if(_inner_has("predict_proba"))
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities of the model inside as they are.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        return np.asarray(self._inner.predict_proba(X))

    @available_if(_inner_has("decision_function"))
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of the model inside as they are.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        return np.asarray(self._inner.decision_function(X))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if not hasattr(self.estimator, "__sklearn_tags__"):
            # A model of another library may not declare its features.
            return tags
        inner = get_tags(self.estimator)
        tags.input_tags, tags.classifier_tags = inner.input_tags, inner.classifier_tags
        return tags


class PrefitClassifier(WrappingClassifier, ABC, Generic[AnyPlan]):
    """A fitted model, and one release about held-out records when the wrapper is fitted."""

    estimator: Any
    epsilon: float
    random_state: int | None

    # What is learnt from the held-out records, and all that the record of a fit covers.
    learnt_part: ClassVar[str]
    # The model must have at least one of these methods.
    _methods: tuple[str, ...] = ("predict_proba",)

    def _check_model(self) -> NDArray[Any]:
        """Refuse an object that is not a fitted classifier with the required methods."""
        name = type(self).__name__
        kind = type(self.estimator).__name__
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "predict"):
            raise ValueError(f"estimator of {name} must be a fitted classifier, got {kind}")
        if not hasattr(self.estimator, "classes_"):
            raise ValueError(
                f"estimator of {name} must be fitted before: {kind} has no attribute classes_. Fit "
                "it on other records. A clone forgets what was fitted: wrap the model in "
                "sklearn.frozen.FrozenEstimator to keep it"
            )
        if not any(hasattr(self.estimator, method) for method in self._methods):
            raise ValueError(
                f"estimator of {name} needs {' or '.join(self._methods)}, which {kind} does not "
                "have; PrivateTableClassifier has probabilities"
            )
        return np.asarray(self.estimator.classes_)

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: ArrayLike, *, groups: Any = None) -> Any:
        """Learn from held-out private records within the budget; the model stays as it is.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or in chunks
            Records to which the model was not fitted, in any form that the model accepts.
        y : array-like of shape (n_samples,), or in chunks
            Labels, from the public set ``estimator.classes_``.
        groups : array-like of shape (n_samples,) or None, default=None
            The person to whom each record belongs. The unit of privacy is then a person with all
            records, each of which weighs one over their number.

        Returns
        -------
        estimator object
            The fitted wrapper itself.

        Raises
        ------
        ValueError, BudgetError
            If parameters, model, data or budget are refused. Nothing was spent.

        Notes
        -----
        **Privacy.** The record of `plan` is charged to the ledger before any noise is drawn.
        """
        data, plan, record = self._plan_fit(X, y, groups)
        warn_of_calls_around(record)
        warn_of_weak_budget(record)
        self._warn_of_plan(plan, data)
        # Evaluate the model before anything is charged, so that its own errors cost nothing.
        values = data.outcomes(self._outcome, self.estimator)
        source = noise_source(self.random_state)
        ledger = opened_ledger(self.ledger, type(self).__name__, partial(self._record_with, data))
        warn_of_repeated_fits(type(self), record, ledger, X)
        permit = authorise(record, source, ledger)
        self._release(plan, data, values, permit)
        self.classes_, self.privacy_ = data.classes, record
        self._warn_of_release(plan, data)
        return self

    def _warn_of_plan(self, plan: AnyPlan, data: HeldOut) -> None:
        """Warn, by public numbers only and before anything is spent, if nothing can be learned."""

    def _warn_of_release(self, plan: AnyPlan, data: HeldOut) -> None:
        """Warn, by released values only, if the release is uninformative."""

    @fit_context(prefer_skip_nested_validation=False)
    def plan(self, X: Any, y: ArrayLike, *, groups: Any = None) -> PrivacyRecord:
        """Say what ``fit`` would spend; nothing is drawn or charged.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or in chunks
            What would be fitted. Only the number of records matters, and that they are valid.
        y : array-like of shape (n_samples,), or in chunks
            Labels.
        groups : array-like of shape (n_samples,) or None, default=None
            The person to whom each record belongs; only the number of people matters.

        Returns
        -------
        PrivacyRecord
            The record that a fit would carry.

        Raises
        ------
        ValueError
            As ``fit`` would before it charges.

        Notes
        -----
        **Privacy.** A function of public quantities, so calling it uses no budget.
        """
        return self._plan_fit(X, y, groups)[2]

    def _plan_fit(
        self, X: Any, y: ArrayLike, groups: Any
    ) -> tuple[HeldOut, AnyPlan, PrivacyRecord]:
        """Validate the records and fix every public number of a fit."""
        classes = self._check_model()
        self._check_classes(classes)
        data = held_out(self.estimator, X, y, groups)
        plan = self._plan_release(data)
        return data, plan, self._record(plan, data)

    @fit_context(prefer_skip_nested_validation=False)
    def _plans(
        self, X: Any, y: ArrayLike, *, groups: Any = None
    ) -> Callable[[float], PrivacyRecord]:
        """Return the record of `plan` as a function of epsilon; the data are validated once."""
        return partial(self._record_with, self._plan_fit(X, y, groups)[0])

    def _record_with(self, data: HeldOut, epsilon: float) -> PrivacyRecord:
        """Return the record of a fit with another epsilon."""
        other = self._with_epsilon(epsilon)
        return other._record(other._plan_release(data), data)

    def _record(self, plan: AnyPlan, data: HeldOut) -> PrivacyRecord:
        """Return the record of a planned release."""
        return PrivacyRecord(
            epsilon=float(self.epsilon),
            delta=0.0,
            adjacency="replace-one" if data.people is None else "replace-one-person",
            events=plan.events,
            noise="none" if math.isinf(self.epsilon) else noise_kind(self.random_state),
            public={"n_samples": data.n, "classes": data.classes.tolist(), **plan.public},
        )

    def _check_classes(self, classes: NDArray[Any]) -> None:
        """Refuse a label set that does not fit."""

    @property
    @abstractmethod
    def _outcome(self) -> Callable[..., NDArray[np.float64]]:
        """Function of model, rows, class indices and classes: one outcome for each record."""

    @abstractmethod
    def _plan_release(self, data: HeldOut) -> AnyPlan:
        """Fix the public numbers: ``events``, ``public`` and what the release needs."""

    @abstractmethod
    def _release(self, plan: AnyPlan, data: HeldOut, values: Any, permit: Permit) -> None:
        """Count, release and set the fitted attributes."""

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the model."""
        return int(self.estimator.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the columns of the model, if it stores them."""
        return np.asarray(self.estimator.feature_names_in_)

    def __sklearn_is_fitted__(self) -> bool:
        return "privacy_" in self.__dict__


def n_rows(X: Any) -> int:
    """Return the number of rows of any input of a model."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def events_of(*mechanisms: Any) -> tuple[Event, ...]:
    """Return the events of mechanisms."""
    return tuple(mechanism.event for mechanism in mechanisms)


# Natural logarithm of the ratio of the weights of a candidate and of the one before it.
_STEP = 0.1
# Up to this rate the weights of two candidates that meet the target are used; beyond, slacks are
# below one record.
_LARGEST_RATE_OF_TWO = 1.25
# Smallest number of records that a target must leave out, in units of the mean slack.
_LEAST_MISSED = 1.25


@dataclass(frozen=True, slots=True)
class Slack:
    """Amount by which a target is raised so that it is met with high probability over the noise.

    Attributes
    ----------
    n_candidates : int
        Number of candidates; the last one always meets the target.
    rate : float
        The weight of a candidate is the exponential of the rate times its utility.
    """

    n_candidates: int
    rate: float

    def for_failure(self, beta: float) -> float:
        """Return the slack for which the choice fails with probability `beta` at most."""
        if math.isinf(self.rate):
            return 0.0
        return rounded_up(math.log(max(self.n_candidates - 1, 1) / beta) / self.rate)

    @property
    def usual_variance(self) -> float:
        """Variance of the excess of the chosen candidate, if there is a candidate at every rank."""
        return 2.0 / self.rate**2


@dataclass(frozen=True, slots=True)
class MeanSlack:
    """Amount by which a target is raised so that it is met in expectation over the noise.

    Each step away from the last candidate, which always meets the target, is penalised by a public
    ``step`` of utility. However many candidates miss the target, their total weight is then at most
    ``odds`` times that of the first candidate that meets it. ``docs/proofs/operating_points.md``,
    section 3.

    Attributes
    ----------
    rate : float
        The weight of a candidate is the exponential of the rate times its utility.
    """

    rate: float

    @property
    def step(self) -> float:
        """Loss of utility of a candidate relative to the next one: a weight of about .9."""
        return 0.0 if math.isinf(self.rate) else rounded_up(_STEP / self.rate)

    @property
    def odds(self) -> float:
        """Bound on the weight of all candidates before one, relative to the weight of that one."""
        return 1.0 / math.expm1(self.rate * self.step)

    @property
    def mean(self) -> float:
        """Records by which the target is raised: the mean cost of choices that miss it."""
        if math.isinf(self.rate):
            return 0.0
        if self.rate > _LARGEST_RATE_OF_TWO:
            return rounded_up(math.log1p(self.odds) / self.rate)
        # A record that is left out changes the weights of others by at most this factor.
        moved = math.exp(self.rate)
        meeting = math.exp(self.rate * self.step) + 1.0 / moved
        odds = self.odds / (meeting * math.e * moved)
        return rounded_up(moved * float(lambertw(odds).real) / self.rate)

    @property
    def least_missed(self) -> float:
        """Records that the target must leave out; with fewer, the last candidate is chosen."""
        return _LEAST_MISSED * self.mean

    def for_failure(self, beta: float, steepness: float) -> float:
        """Return the deficit at which each candidate but the last has probability at most `beta`.

        The utility of the last candidate is this deficit times the steepness.
        """
        if math.isinf(self.rate):
            return 0.0
        return rounded_up(max(math.log(self.odds / beta), 0.0) / ((1.0 + steepness) * self.rate))
