"""A threshold, or prediction sets, for a fitted model: learnt from held-out private records.

Both choose the first of a list of candidates that meets a target, by the exponential mechanism. The
excess of a candidate over the target changes by at most one if a record is replaced, and so does
the utility that is computed from it. Proofs: ``docs/proofs/operating_points.md``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, lambertw, ndtri
from sklearn.utils.validation import check_is_fitted

from dp_halfspace._budget import BUDGET, warn_of_calls_around, warn_of_weak_budget
from dp_halfspace._params import fit_context
from dp_halfspace._sklearn_compat import HasMethods, Interval, StrOptions
from dp_halfspace.data.chunked_data import by_chunks
from dp_halfspace.data.chunks import sum_over_chunks
from dp_halfspace.data.validation import n_rows
from dp_halfspace.exceptions import warn_caller
from dp_halfspace.metrics import _tallies as tallies
from dp_halfspace.metrics._held_out import HeldOut, held_out
from dp_halfspace.model_selection import _crossing as crossing
from dp_halfspace.model_selection._wrapping import WrappingClassifier
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.door import Door
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.mechanisms import ExponentialChoice, NoNoise, noise_deviation
from dp_halfspace.privacy.noise import DiscreteLaplaceNoise
from dp_halfspace.privacy.record import PrivacyRecord

# The constraints of the parameters of every such classifier; a pure release has no delta.
_SHARED = {
    "estimator": [HasMethods(["fit", "predict"])],
    **{name: BUDGET[name] for name in ("epsilon", "random_state", "ledger")},
}


class PrefitClassifier(WrappingClassifier, ABC):
    """A fitted model, and one release about held-out records when the wrapper is fitted."""

    # What is learnt from the held-out records, and all that the record of a fit covers.
    learnt_part: ClassVar[str]
    # The model must have at least one of these methods.
    _methods: tuple[str, ...] = ("predict_proba",)
    # Function of model, rows, class indices and classes: one outcome for each record.
    _outcome: ClassVar[Callable[..., NDArray[np.float64]]]

    def _check_model(self) -> None:
        """Refuse an object that is not a fitted classifier with the required methods."""
        name = type(self).__name__
        kind = getattr(self.estimator, "__name__", type(self.estimator).__name__)
        if not hasattr(self.estimator, "classes_"):
            raise ValueError(
                f"estimator of {name} must be fitted before: {kind} has no attribute classes_. A "
                "clone forgets what was fitted: wrap the model in sklearn.frozen.FrozenEstimator"
            )
        if not any(hasattr(self.estimator, method) for method in self._methods):
            raise ValueError(
                f"estimator of {name} needs {' or '.join(self._methods)}, which {kind} has not"
            )

    @fit_context
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
        data = self._training_data(X, y, groups)
        plan, record = self._planned(data)
        warn_of_calls_around(record)
        warn_of_weak_budget(record)
        self._warn_of_plan(plan, data)
        # Evaluate the model before anything is charged, so that its own errors cost nothing.
        values = data.outcomes(self._outcome, self.estimator)
        permit = self._permit_for(record, data, self.ledger, X)
        released = self._release(plan, Door(replace(data, values=values), permit))
        # All at once: an interrupt leaves what was released with its own record.
        self.__dict__.update(released, classes_=data.classes, privacy_=record)
        self._warn_of_release(plan, data)
        return self

    def _warn_of_plan(self, plan: Any, data: HeldOut) -> None:
        """Warn, by public numbers only and before anything is spent, if nothing can be learned."""

    def _warn_of_release(self, plan: Any, data: HeldOut) -> None:
        """Warn, by released values only, if the release is uninformative."""

    @fit_context
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
        return self._plans(X, y, groups)(self.epsilon)

    def _training_data(self, X: Any, y: ArrayLike, groups: Any = None) -> HeldOut:
        """Validate the model and the records."""
        self._check_model()
        return held_out(self.estimator, X, y, groups)

    def _planned(self, data: HeldOut) -> tuple[Any, PrivacyRecord]:
        """Fix every public number of a release."""
        plan = self._plan_release(data)
        public = {"n_samples": data.n, "classes": data.classes.tolist()}
        return plan, self._record_of(plan, 0.0, data.people, public)

    @abstractmethod
    def _plan_release(self, data: HeldOut) -> Any:
        """Fix the public numbers: ``events``, ``public`` and what the release needs."""

    @abstractmethod
    def _release(self, plan: Any, door: Door) -> dict[str, Any]:
        """Count the outcomes behind the door, and return what is released by attribute."""


# Natural logarithm of the ratio of the weights of a candidate and of the one before it.
_UTILITY_STEP = 0.1
# Up to this rate the weights of two candidates that meet the target are used; beyond, slacks are
# below one record.
_LARGEST_RATE_OF_TWO = 1.25
# Smallest number of records that a target must leave out, in units of the mean slack; with fewer,
# the last candidate is chosen.
_LEAST_MISSED = 1.25


def slack_for_failure(n_candidates: int, rate: float, beta: float) -> float:
    """Return by how much a target is raised so that the choice misses it with probability `beta`.

    The weight of a candidate is the exponential of the rate times its utility, and the last
    candidate always meets the target.
    """
    return crossing.rounded_up(math.log(max(n_candidates - 1, 1) / beta) / rate)


def mean_slacks(rate: float, beta: float) -> tuple[float, float, float]:
    """Return by how much a target is raised so that it is met in expectation over the noise.

    Each step away from the last candidate, which always meets the target, is penalised by a public
    loss of utility, so that its weight is about .9 of that of the next one. However many candidates
    miss the target, their total weight is then at most ``odds`` times that of the first candidate
    that meets it. The mean slack is the mean cost of choices that miss the target.
    ``docs/proofs/operating_points.md``, section 3.

    Parameters
    ----------
    rate : float
        The weight of a candidate is the exponential of the rate times its utility.
    beta : float
        Largest probability of each candidate but the last at the deficit.

    Returns
    -------
    mean, step, deficit : float
        The mean slack, the loss of utility of each step, and the utility of the last candidate.
    """
    step = crossing.rounded_up(_UTILITY_STEP / rate)
    if math.isinf(rate):
        return 0.0, step, 0.0
    odds = 1.0 / math.expm1(rate * step)
    deficit = crossing.rounded_up(max(math.log(odds / beta), 0.0) / (2.0 * rate))
    if rate > _LARGEST_RATE_OF_TWO:
        return crossing.rounded_up(math.log1p(odds) / rate), step, deficit
    # A record that is left out changes the weights of others by at most this factor.
    moved = math.exp(rate)
    meeting = math.exp(rate * step) + 1.0 / moved
    shared = float(lambertw(odds / (meeting * math.e * moved)).real)
    return crossing.rounded_up(moved * shared / rate), step, deficit


# Public candidates: multiples of an eighth in log-odds for probabilities; for scores of unknown
# scale zero, and sizes that grow by the sixteenth root of two.
_LOG_ODDS = expit(np.linspace(-8.0, 8.0, 129))
_PLACES = tallies.signed_sizes(-12, 24, 16)
# Share of epsilon for the number of positives; one standard deviation of its noise is added to the
# released number.
_COUNT_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class _Threshold:
    """Public numbers: of records, the candidates, preferred ones first, the noise, and slacks."""

    n: int
    target: str
    value: float
    borders: NDArray[np.float64]
    count: DiscreteLaplaceNoise | NoNoise | None
    choice: ExponentialChoice | NoNoise
    slack: float
    variance: float
    deviations: float
    positive: Any

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that is released."""
        count = () if self.count is None else (self.count.event,)
        return *count, self.choice.event

    @property
    def public(self) -> dict[str, Any]:
        """Public facts for the record."""
        target = {"target": self.target, "positive_class": self.positive, "value": self.value}
        return {**target, "thresholds": self.borders}

    @property
    def name(self) -> str:
        """What the target is called."""
        return "false positive rate" if self.target == "fpr" else self.target

    @property
    def takes(self) -> float:
        """Number that the positive records, or for a false positive rate all records, must exceed.

        The excess of a candidate over the target is at most ``1 - value`` for each positive
        record, or ``value`` for each negative one, and the slack is subtracted from it.
        """
        most, _ = crossing.most_and_variance(self.target, self.value)
        return self.slack / max(most, 1.0 / crossing.COUNT_GRID)

    def counts_above(self, data: HeldOut) -> NDArray[np.float64]:
        """Count negative and positive records above every candidate, from the highest one down."""
        # Weights of people leave room for a slack that is larger than all of them together.
        room = max(1, math.ceil(self.slack_for(math.inf) / self.n))
        cells = tallies.Cells(2, self.borders, data.people, largest=room * crossing.COUNT_GRID)
        table = sum_over_chunks(tallies.count_scores, data.values, data.codes, cells)
        return np.column_stack([np.zeros(2), np.cumsum(table[:, ::-1], axis=1)])

    def utilities(self, count: float | None, above: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the utility of every candidate, given the released number of positives."""
        negative, positive = above
        excess = crossing.excess_of(self.target, self.value, positive, negative)
        excess -= self.slack_for(count)
        # The last candidate meets every target: no record, or every record, is positive.
        excess[-1] = self.n
        return crossing.crossing_utilities(excess)

    def slack_for(self, count: float | None) -> float:
        """Return the slack by which the target is raised, from public numbers and the noisy count.

        It covers the noise of the choice for any held-out records, and the sampling error of fresh
        records together with the standard deviation of the choice.
        """
        # There are at most n negatives.
        counted = float(self.n)
        if self.count is not None:
            counted = min(max((count or 0.0) + noise_deviation(self.count), 1.0), counted)
        spread = crossing.most_and_variance(self.target, self.value)[1] * counted
        usual = math.sqrt(spread + self.variance)
        return max(self.slack, crossing.rounded_up(self.deviations * usual))


@dataclass(eq=False, repr=False)
class PrivateThresholdClassifier(PrefitClassifier):
    """A fitted binary model with a private threshold for a target on held-out records.

    One exponential mechanism over public candidates, with at most one additional noisy count,
    chooses the threshold such that new records meet the target with a stated confidence. The
    candidates are multiples of an eighth in log-odds from -8 to 8 for probabilities; for other
    scores zero and both signs of sizes from 2^-12 to 2^24, each 4 % above the previous one; and
    always "all records are positive" and "no record is positive".

    Parameters
    ----------
    estimator : fitted classifier of two classes
        A model with ``predict_proba`` or ``decision_function``, of any library, public or private,
        that was fitted to other records. The labels ``estimator.classes_`` are public, and the
        second of the sorted ones is the positive class. To keep it in a clone, wrap it in
        :class:`sklearn.frozen.FrozenEstimator`.
    target : {"recall", "precision", "false_positive_rate", "fpr"}, default="recall"
        The target: a recall of at least `value` at the highest possible threshold, a precision of
        at least `value` at the lowest possible threshold, or a false positive rate (by either name)
        of at most `value` at the lowest possible threshold. A false positive rate of at most 0.1 is
        a recall of at least 0.9 of the other class.
    value : float, default=0.9
        Value of the target metric, strictly between 0 and 1.
    confidence : float, default=0.95
        Probability, in [0.5, 0.999], with which the held-out records meet the target, over the
        noise and for all records; with the same probability, over samples and noise, fresh records
        meet it, as far as counts are normally distributed. The target is raised accordingly.
    epsilon : float, default=1.0
        Budget of the threshold, in [1e-9, 1e6] or infinite. The guarantee is pure DP, so no delta
        is spent.
    random_state : int or None, default=None
        None draws the noise from the operating system. An int repeats the noise on any machine, and
        raises `PrivacyWarning`: anyone who knows it can subtract the noise.
    ledger : object with a method ``charge(record)``, path or None, default=None
        Privacy ledger that is charged before any noise is drawn. Copies and clones charge the same
        account.

    Attributes
    ----------
    threshold_ : float
        Scores of at least this are predicted positive; infinite, with a `PrivacyWarning`, if all
        records or none are predicted positive. The warning also comes if there are too few
        records for the target, or by the noisy count too few positive ones; where the number of
        records shows it, before anything is spent.
    n_positive_ : float or None
        The noisy number of positives among the held-out records; None for ``"fpr"``, which needs no
        count.
    classes_ : ndarray of shape (2,)
        The public label set, sorted.
    privacy_ : PrivacyRecord
        The guarantee of the threshold alone; the model has a record of its own, or none.
    n_features_in_ : int
        Number of columns of the model, if it has one.

    See Also
    --------
    dp_halfspace.metrics.private_score : Private metrics at the threshold, with a separate budget.
    sklearn.model_selection.TunedThresholdClassifierCV : The same without privacy.

    Notes
    -----
    **Privacy.** ``fit`` is (epsilon, 0)-differentially private in the held-out records, under
    replace-one adjacency, of a record or, with `groups`, of a person with any number of records.
    Public: their number, or that of people, the labels, the candidates and every parameter. The
    model must predict each record independently of the others, as all models of this package do,
    and must not have been fitted to these records unless both releases are charged to one ledger.
    What it prints, warns or raises for these records is not shown; that it failed is not covered.
    Let tau be the target and count true and false positives above a threshold t. The excess of t
    over the target is TP(t) - tau P, TP(t) - tau (TP(t) + FP(t)) or tau N - FP(t), and replacing a
    record changes it by at most one. With few positives (for a recall of .9 at epsilon 1 fewer than
    about 170 with probabilities, and 210 with other scores) there is no room for the slack: then
    all records are predicted positive, which meets a target recall and is useless. Source: this
    project, ``docs/proofs/operating_points.md``; F. McSherry and K. Talwar (2007).

    Examples
    --------
    >>> from dp_halfspace import AdaptiveMarginClassifier, PrivateThresholdClassifier
    >>> from dp_halfspace.datasets import make_halfspace
    >>> X, y = make_halfspace(12000, 5, margin=0.0, random_state=0)
    >>> model = AdaptiveMarginClassifier(epsilon=1.0, classes=[-1, 1]).fit(X[:6000], y[:6000])
    >>> safe = PrivateThresholdClassifier(model, target="recall", value=0.95)
    >>> safe = safe.fit(X[6000:], y[6000:])
    >>> found = safe.predict(X)[y == 1] == 1
    >>> bool(found.mean() > 0.94), safe.privacy_.epsilon, safe.privacy_.delta
    (True, 1.0, 0.0)
    """

    estimator: Any
    _: KW_ONLY
    target: str = "recall"
    value: float = 0.9
    confidence: float = 0.95
    epsilon: float = 1.0
    random_state: int | None = None
    ledger: Any = None

    learnt_part = "threshold"
    _methods = ("predict_proba", "decision_function")
    _outcome = staticmethod(tallies.scores_of)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "target": [StrOptions({"recall", "precision", "fpr", "false_positive_rate"})],
        "value": [Interval(Real, 0.0, 1.0, closed="neither")],
        "confidence": [Interval(Real, 0.5, 0.999, closed="both")],
        **_SHARED,
    }

    def _check_model(self) -> None:
        super()._check_model()
        n_classes = len(self.estimator.classes_)
        if n_classes != 2:
            raise ValueError(f"PrivateThresholdClassifier needs two classes, got {n_classes}")

    def _plan_release(self, data: HeldOut) -> _Threshold:
        """Fix the candidates, the noise and the slacks: all of it is public."""
        borders = _LOG_ODDS if hasattr(self.estimator, "predict_proba") else _PLACES
        target = "fpr" if self.target == "false_positive_rate" else self.target
        budget = Budget.of(float(self.epsilon), 0.0)
        count: DiscreteLaplaceNoise | NoNoise | None = None
        if target != "fpr":
            first, budget = budget.split(_COUNT_SHARE)
            # A record moves the number of positives by at most one.
            count = NoNoise() if first.is_infinite else DiscreteLaplaceNoise(1, first.epsilon)
        epsilon = budget.epsilon
        # A record moves the excess of each candidate, hence its utility, by at most one:
        # `docs/proofs/operating_points.md`, Lemmas 1 and 3.
        choice = NoNoise() if math.isinf(epsilon) else ExponentialChoice(1.0, epsilon)
        miss = 1.0 - float(self.confidence)
        # In addition to the borders there are the candidates "all are positive" and "none is".
        rate = epsilon / 2.0
        slack = slack_for_failure(len(borders) + 2, rate, miss)
        # That of the excess of the chosen candidate, if there is a candidate at every rank.
        variance = 2.0 / rate**2
        value, deviations = crossing.safe_target(target, float(self.value)), -float(ndtri(miss))
        numbers = data.n, target, value, borders, count, choice, slack, variance, deviations
        return _Threshold(*numbers, np.unique(self.estimator.classes_).tolist()[1])

    def _release(self, plan: _Threshold, door: Door) -> dict[str, Any]:
        """Count positives and negatives above every candidate, and choose one.

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one, of a record or of a person with all rows.
        - Released: one candidate, and the noisy number of positive records where the target needs
          it.
        - Sensitivity: 1 of each.
        - Proof: ``docs/proofs/operating_points.md``, sections 1 and 2.
        """
        above = door.map(plan.counts_above)
        count = None
        if plan.count is not None:
            count = float(above.release(lambda each: np.floor(each[1, -1:]), plan.count)[0])
        place = above.choose(partial(plan.utilities, count), plan.choice)
        threshold = float(crossing.candidates(plan.target, plan.borders)[place])
        return {"threshold_": threshold, "n_positive_": count}

    def _warn_of_plan(self, plan: _Threshold, data: HeldOut) -> None:
        """Warn where the number of records, or the model, leaves no room for a threshold."""
        tallies.warn_of_like_probabilities(self.estimator, "there may be no threshold between them")
        if data.n <= plan.takes:
            self._warn(plan, data.unit, f"there are {data.n} {data.unit}", "would be")

    def _warn_of_release(self, plan: _Threshold, data: HeldOut) -> None:
        """Warn where every record is predicted positive, or none, or may be by the noisy count."""
        if self.threshold_ == -math.inf and plan.target != "recall":
            warn_caller(
                "the threshold is infinite: every record is predicted positive, because that "
                f"already meets a {plan.name} of {self.value:g}, as far as the noise shows it. "
                "Only a harder target leaves records out"
            )
            return
        verb, count = "is" if math.isinf(self.threshold_) else "may be", self.n_positive_
        if data.n <= plan.takes:
            return
        if count is not None and count <= crossing.AMPLE * plan.takes:
            there = f"by a noisy count there are {max(count, 0.0):.0f}"
            self._warn(plan, data.unit, there, verb)
        elif verb == "is":
            self._warn(plan, data.unit, "the threshold is infinite", verb)

    def _warn(self, plan: _Threshold, unit: str, there: str, verb: str) -> None:
        """Say what the target takes, what there is, and what follows."""
        kind = unit if plan.target == "fpr" else f"positive {unit}"
        # What the candidate that meets every target predicts.
        who = "every" if plan.target == "recall" else "no"
        ample = crossing.AMPLE * plan.takes
        warn_caller(
            f"a {plan.name} of {self.value:g} at epsilon={self.epsilon:g} takes more than "
            f"{plan.takes:.0f} {kind}, better {ample:.0f}, and {there}: {who} record "
            f"{verb} predicted positive, which says nothing. More records, a larger epsilon or an "
            "easier target leave room for a threshold"
        )

    @by_chunks
    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the positive class where the score reaches the threshold.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or in chunks

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels from ``classes_``.
        """
        check_is_fitted(self)
        codes = np.zeros(n_rows(X), dtype=np.intp)
        is_positive = tallies.scores_of(self.estimator, X, codes, self.classes_) >= self.threshold_
        return np.asarray(self.classes_[is_positive.astype(np.intp)])


# Public candidates for the threshold: multiples of a quarter in log-odds in the middle, and few
# where sets contain nearly all classes or none, because noise may choose any of these.
_LOG_ODDS_OF_SETS = expit([-7.0, -5.0, -3.5, *np.arange(-12, 7) / 4.0, 2.0, 3.0, 5.0])
_SMALLER_SETS = "More records, a larger epsilon or a lower coverage leave room for smaller sets"


@dataclass(frozen=True, slots=True)
class _SetSize:
    """Public numbers: the choice, the coverage, and the slacks of the rank of the quantile."""

    choice: ExponentialChoice | NoNoise
    coverage: float
    slack: float
    step: float
    few: float
    lacking: float

    @property
    def takes(self) -> float:
        """Number of records up to which sets hold all classes."""
        return (self.few + self.lacking) / self.coverage - 1.0

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that is released."""
        return (self.choice.event,)

    @property
    def public(self) -> dict[str, Any]:
        """Public facts for the record."""
        return {"coverage": self.coverage, "thresholds": _LOG_ODDS_OF_SETS}

    def utilities(self, data: HeldOut) -> NDArray[np.float64]:
        """Return the utility of every candidate, of which the last is "all classes"."""
        largest = 16 * crossing.COUNT_GRID
        cells = tallies.Cells(len(data.classes), _LOG_ODDS_OF_SETS, data.people, largest=largest)
        table = sum_over_chunks(tallies.count_scores, data.values, data.codes, cells).sum(axis=0)
        # From the highest probability, the smallest sets, down to all classes.
        inside = np.cumsum(table[::-1])
        wanted = self.coverage * (inside[-1] + 1.0)
        excess = np.minimum(inside - wanted - self.slack, wanted - self.few - self.lacking)
        # The excess of the last candidate is larger than the deficit of any other.
        excess[-1] = 2.0 * (data.n + 1.0 + self.few + self.lacking)
        steps = np.arange(len(excess) - 1.0, -1.0, -1.0)
        return np.asarray(crossing.crossing_utilities(excess) - self.step * steps)


@dataclass(eq=False, repr=False)
class PrivateConformalClassifier(PrefitClassifier):
    """A fitted model with prediction sets whose coverage holds for every distribution of records.

    Split conformal prediction: a prediction set contains every class whose predicted probability is
    at least a threshold. The threshold is a quantile of the predicted probabilities of the true
    classes of private calibration records. The rank of the quantile is chosen by the exponential
    mechanism among public candidates: multiples of a quarter in log-odds from -3 to 1.5, six
    beyond, and zero, for sets of all classes.

    Parameters
    ----------
    estimator : fitted classifier
        A model with ``predict_proba``, of any library, public or private, that was fitted to other
        records. The labels ``estimator.classes_`` are public. To keep it in a clone, wrap it in
        :class:`sklearn.frozen.FrozenEstimator`.
    coverage : float, default=0.9
        Smallest probability with which a set contains the true class, in [0.5, 0.999].
    epsilon : float, default=1.0
        Budget of the calibration, in [1e-9, 1e6] or infinite. The guarantee is pure DP, so no delta
        is spent.
    random_state : int or None, default=None
        None draws the noise from the operating system. An int repeats the noise on any machine, and
        raises `PrivacyWarning`: anyone who knows it can subtract the noise.
    ledger : object with a method ``charge(record)``, path or None, default=None
        Privacy ledger that is charged before any noise is drawn. Copies and clones charge the same
        account.

    Attributes
    ----------
    threshold_ : float
        A class is in the set if its probability is at least this.
    classes_ : ndarray of shape (n_classes,)
        The public label set, sorted: the columns of `predict_set`.
    privacy_ : PrivacyRecord
        The guarantee of the calibration alone; the model has a record of its own, or none.
    n_features_in_ : int
        Number of columns of the model, if it has one.

    Notes
    -----
    **Privacy.** ``fit`` is (epsilon, 0)-differentially private in the calibration records, under
    replace-one adjacency, of a record or, with `groups`, of a person with any number of records.
    Public: their number, or that of people, the labels, the candidates and every parameter. The
    model must predict each record independently of the others, as all models of this package do,
    and must not have been fitted to these records unless both releases are charged to one ledger.
    What it prints, warns or raises for these records is not shown; that it failed is not covered.
    **Coverage.** For calibration records and a fresh record that are exchangeable, of any
    distribution and any model, the set contains the true class with at least the stated
    probability, over the records and the noise, at every epsilon and n; with too few records, sets
    contain all classes. With `groups` this is proved for people with one record each. Source: this
    project, ``docs/proofs/operating_points.md``. Split conformal prediction is due to V. Vovk, A.
    Gammerman and G. Shafer (2005); private sets based on histograms are due to A. Angelopoulos, S.
    Bates, T. Zrnic and M. Jordan (2022).

    Examples
    --------
    >>> from dp_halfspace import PrivateConformalClassifier, PrivateTableClassifier
    >>> from dp_halfspace.datasets import make_halfspace
    >>> X, y = make_halfspace(12000, 5, margin=0.0, random_state=0)
    >>> model = PrivateTableClassifier(epsilon=1.0, classes=[-1, 1]).fit(X[:6000], y[:6000])
    >>> sure = PrivateConformalClassifier(model, coverage=0.95).fit(X[6000:9000], y[6000:9000])
    >>> sets = sure.predict_set(X[9000:])
    >>> sets.shape, bool(sets[range(3000), (y[9000:] > 0).astype(int)].mean() > 0.93)
    ((3000, 2), True)
    """

    estimator: Any
    _: KW_ONLY
    coverage: float = 0.9
    epsilon: float = 1.0
    random_state: int | None = None
    ledger: Any = None

    learnt_part = "size of the sets"
    _outcome = staticmethod(tallies.chances_of_truth)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "coverage": [Interval(Real, 0.5, 0.999, closed="both")],
        **_SHARED,
    }

    def _plan_release(self, data: HeldOut) -> _SetSize:
        """Fix the noise and the slacks: all of it is public."""
        epsilon, share = float(self.epsilon), crossing.rounded_up(float(self.coverage))
        # A record moves each utility by at most one: `docs/proofs/operating_points.md`, section 3.
        choice = NoNoise() if math.isinf(epsilon) else ExponentialChoice(1.0, epsilon)
        mean, step, lacking = mean_slacks(epsilon / 2.0, 1.0 - share)
        # With fewer records than this, sets contain all classes.
        few = crossing.rounded_up(share * (_LEAST_MISSED * mean) / (1.0 - share))
        return _SetSize(choice, share, mean, step, few, lacking)

    def _release(self, plan: _SetSize, door: Door) -> dict[str, Any]:
        """Count the true classes above every candidate, and choose one.

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one, of a record or of a person with all rows.
        - Released: one candidate.
        - Sensitivity: 1 of each utility.
        - Proof: ``docs/proofs/operating_points.md``, sections 1 and 3.
        """
        place = door.choose(plan.utilities, plan.choice)
        return {"threshold_": float(np.append(_LOG_ODDS_OF_SETS[::-1], 0.0)[place])}

    def _warn_of_plan(self, plan: _SetSize, data: HeldOut) -> None:
        """Warn where the number of records leaves no room for a threshold, whatever they are."""
        if data.n <= plan.takes:
            warn_caller(
                f"a coverage of {self.coverage:g} at epsilon={self.epsilon:g} takes more than "
                f"{plan.takes:.0f} {data.unit}, and there are {data.n}: every set would contain "
                f"all classes, which says nothing. {_SMALLER_SETS}"
            )

    def _warn_of_release(self, plan: _SetSize, data: HeldOut) -> None:
        """Warn where the released threshold puts every class into every set."""
        if data.n > plan.takes and self.threshold_ <= 0.0:
            warn_caller(f"every set contains all classes, which says nothing. {_SMALLER_SETS}")

    @by_chunks
    def predict_set(self, X: Any) -> NDArray[np.bool_]:
        """Return which classes are in the set of each record.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or in chunks

        Returns
        -------
        ndarray of bool of shape (n_samples, n_classes)
            Columns are in the order of ``classes_``. A set may be empty if no class has a large
            enough probability.
        """
        check_is_fitted(self)
        codes = np.zeros(n_rows(X), dtype=np.intp)
        probabilities = tallies.probabilities_of_all(self.estimator, X, codes, self.classes_)
        return np.asarray((probabilities >= self.threshold_) | (self.threshold_ <= 0.0))
