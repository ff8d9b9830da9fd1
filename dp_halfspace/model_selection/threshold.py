"""A threshold for a target recall, precision or false positive rate, chosen privately."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, ndtri
from sklearn.utils.validation import check_is_fitted

from dp_halfspace._budget import BUDGET
from dp_halfspace._sklearn_compat import HasMethods, Interval, StrOptions
from dp_halfspace.data.chunks import sum_over_chunks
from dp_halfspace.estimators._crossing import (
    COUNT_GRID,
    candidates,
    chosen_places,
    crossing_utilities,
    excess_of,
    most_and_variance,
    rounded_up,
    safe_target,
)
from dp_halfspace.exceptions import warn_caller
from dp_halfspace.metrics._held_out import HeldOut
from dp_halfspace.metrics._tallies import Cells, checked_borders, count_scores, scores_of
from dp_halfspace.model_selection._prefit import (
    PrefitClassifier,
    Slack,
    events_of,
    n_rows,
)
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.mechanisms import ExponentialChoice, NoNoise, Permit
from dp_halfspace.privacy.noise import DiscreteLaplaceNoise

# Public candidates: multiples of an eighth in log-odds for probabilities; for scores of unknown
# scale zero, and sizes that grow by the sixteenth root of two.
_LOG_ODDS = expit(np.linspace(-8.0, 8.0, 129))
_SIZES = 2.0 ** (np.arange(-12 * 16, 24 * 16 + 1) / 16.0)
_PLACES = np.concatenate([-_SIZES[::-1], [0.0], _SIZES])
# Share of epsilon for the number of positives; one standard deviation of its noise is added to the
# released number.
_COUNT_SHARE = 0.05
# Up to this multiple of the records that a target takes, all or none are often predicted positive.
_AMPLE = 1.5
_TARGETS = ("recall", "precision", "fpr", "false_positive_rate")


@dataclass(frozen=True, slots=True)
class _Plan:
    """Public numbers: the candidates, preferred ones first, the noise, and slacks."""

    target: str
    value: float
    borders: NDArray[np.float64]
    count: DiscreteLaplaceNoise | NoNoise | None
    choice: ExponentialChoice | NoNoise
    slack: float
    variance: float
    deviations: float

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that is released."""
        return events_of(*(() if self.count is None else (self.count,)), self.choice)

    @property
    def public(self) -> dict[str, Any]:
        """Public facts for the record."""
        return {"target": self.target, "value": self.value, "thresholds": self.borders}

    @property
    def thresholds(self) -> NDArray[np.float64]:
        """The candidates, preferred ones first."""
        return candidates(self.target, self.borders)

    @property
    def takes(self) -> float:
        """Number that the positive records, or for a false positive rate all records, must exceed.

        The excess of a candidate over the target is at most ``1 - value`` for each positive
        record, or ``value`` for each negative one, and the slack is subtracted from it.
        """
        most, _ = most_and_variance(self.target, self.value)
        return self.slack / max(most, 1.0 / COUNT_GRID)

    def slack_for(self, count: float | None, n: int) -> float:
        """Return the slack by which the target is raised, from public numbers and the noisy count.

        It covers the noise of the choice for any held-out records, and the sampling error of fresh
        records together with the standard deviation of the choice.
        """
        # There are at most n negatives.
        counted = float(n)
        if self.count is not None:
            noise = self.count.deviation if isinstance(self.count, DiscreteLaplaceNoise) else 0.0
            counted = min(max((count or 0.0) + noise, 1.0), counted)
        spread = most_and_variance(self.target, self.value)[1] * counted
        usual = math.sqrt(spread + self.variance)
        return max(self.slack, rounded_up(self.deviations * usual))


@dataclass(eq=False, repr=False)
class PrivateThresholdClassifier(PrefitClassifier[_Plan]):
    """A fitted binary model with a private threshold for a target on held-out records.

    One exponential mechanism over public candidates, with at most one additional noisy count,
    chooses the threshold such that new records meet the target with a stated confidence.

    Parameters
    ----------
    estimator : fitted classifier of two classes
        A model with ``predict_proba`` or ``decision_function``, of any library, public or private,
        that was fitted to other records. The labels ``estimator.classes_`` are public. To keep it
        in a clone, wrap it in :class:`sklearn.frozen.FrozenEstimator`.
    target : {"recall", "precision", "false_positive_rate", "fpr"}, default="recall"
        The target: a recall of at least `value` at the highest possible threshold, a precision of
        at least `value` at the lowest possible threshold, or a false positive rate (by either name)
        of at most `value` at the lowest possible threshold.
    value : float, default=0.9
        Value of the target metric, strictly between 0 and 1.
    pos_label : label, default=None
        The positive class; None is the second of the sorted labels.
    confidence : float, default=0.95
        Probability, in [0.5, 0.999], with which the held-out records meet the target, over the
        noise and for all records; with the same probability, over samples and noise, fresh records
        meet it, as far as counts are normally distributed. The target is raised accordingly.
    thresholds : array-like of increasing floats or None, default=None
        PUBLIC candidates for the threshold. None takes multiples of an eighth in log-odds from -8
        to 8 for probabilities; for other scores it takes zero and both signs of sizes from 2^-12 to
        2^24, each 4 % above the previous one. "All records are positive" and "no record is
        positive" are always candidates as well.
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
    record changes it by at most one. With few positives (fewer than about 300 at epsilon 1) there
    is no room for the slack: then all records are predicted positive, which meets a target recall
    and is useless. Source: this project, ``docs/proofs/operating_points.md``; F. McSherry and K.
    Talwar (2007).

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
    pos_label: Any = None
    confidence: float = 0.95
    thresholds: ArrayLike | None = None
    epsilon: float = 1.0
    random_state: int | None = None
    ledger: Any = None

    learnt_part = "threshold"
    _methods = ("predict_proba", "decision_function")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "target": [StrOptions(set(_TARGETS))],
        "value": [Interval(Real, 0.0, 1.0, closed="neither")],
        "confidence": [Interval(Real, 0.5, 0.999, closed="both")],
        "thresholds": ["array-like", None],
        "epsilon": BUDGET["epsilon"],
        "random_state": BUDGET["random_state"],
        "ledger": BUDGET["ledger"],
    }

    def _check_classes(self, classes: NDArray[Any]) -> None:
        if len(classes) != 2:
            raise ValueError(
                f"PrivateThresholdClassifier needs a model of two classes, got {len(classes)}"
            )
        if self.pos_label is not None and self.pos_label not in classes.tolist():
            raise ValueError(f"pos_label={self.pos_label!r} is not among {classes.tolist()}")

    @property
    def _outcome(self) -> Callable[..., NDArray[np.float64]]:
        """The model output that is used for a record: the score of the positive class."""
        return partial(_scores, positive=self._positive)

    @property
    def _positive(self) -> int:
        """Position of the positive class among the sorted ones."""
        classes = np.unique(np.asarray(self.estimator.classes_)).tolist()
        return 1 if self.pos_label is None else classes.index(self.pos_label)

    def _plan_release(self, data: HeldOut) -> _Plan:
        """Fix the candidates, the noise and the slacks: all of it is public."""
        if self.thresholds is not None:
            borders = checked_borders(self.thresholds)
        else:
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
        rule = Slack(len(borders) + 2, epsilon / 2.0)
        slack, variance = rule.for_failure(miss), rule.usual_variance
        value = safe_target(target, float(self.value))
        return _Plan(target, value, borders, count, choice, slack, variance, -float(ndtri(miss)))

    def _release(self, plan: _Plan, data: HeldOut, values: Any, permit: Permit) -> None:
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
        cells = Cells(2, plan.borders, data.people, largest=COUNT_GRID)
        table = sum_over_chunks(count_scores, values, data.codes, cells)
        # From the highest score down; first no record, last all records.
        above = np.column_stack([np.zeros(2), np.cumsum(table[:, ::-1], axis=1)])
        positive, negative = above[self._positive], above[1 - self._positive]
        count = None
        if plan.count is not None:
            count = float(permit.release(np.floor(positive[-1:]), plan.count)[0])
        excess = excess_of(plan.target, plan.value, positive, negative)
        excess -= plan.slack_for(count, data.n)
        # The last candidate meets every target: no record, or every record, is positive.
        excess[-1] = data.n
        released = permit.release(crossing_utilities(excess), plan.choice)
        place = int(chosen_places(released, plan.choice)[0])
        self.threshold_ = float(plan.thresholds[place])
        self.n_positive_ = count

    def _warn_of_plan(self, plan: _Plan, data: HeldOut) -> None:
        """Warn where the number of records leaves no room for a threshold, whatever they are."""
        there = f"there are {data.n} {data.unit}"
        if data.n <= plan.takes:
            self._warn(plan, data.unit, there, "would be")
        # If the scale of scores is unknown, most candidates may be beyond all scores.
        elif plan.count is None and plan.borders is _PLACES and data.n <= _AMPLE * plan.takes:
            self._warn(plan, data.unit, there, "may be")

    def _warn_of_release(self, plan: _Plan, data: HeldOut) -> None:
        """Warn where every record is predicted positive, or none, or may be by the noisy count."""
        if data.n <= plan.takes:
            return
        is_infinite = math.isinf(self.threshold_)
        count = self.n_positive_
        if count is not None and count <= _AMPLE * plan.takes:
            there = f"by a noisy count there are {max(count, 0.0):.0f}"
            self._warn(plan, data.unit, there, "is" if is_infinite else "may be")
        elif is_infinite:
            warn_caller(
                f"the threshold is infinite: {_who(plan)} record is predicted positive. {_MORE}"
            )

    def _warn(self, plan: _Plan, unit: str, there: str, verb: str) -> None:
        """Say what the target takes, what there is, and what follows."""
        kind = unit if plan.target == "fpr" else f"positive {unit}"
        name = "false positive rate" if plan.target == "fpr" else plan.target
        warn_caller(
            f"a {name} of {self.value:g} at epsilon={self.epsilon:g} takes more than "
            f"{plan.takes:.0f} {kind}, better {_AMPLE * plan.takes:.0f}, and {there}: {_who(plan)} "
            f"record {verb} predicted positive, which says nothing. {_MORE}"
        )

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the positive class where the score reaches the threshold.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels from ``classes_``.
        """
        check_is_fitted(self)
        codes = np.zeros(n_rows(X), dtype=np.intp)
        is_positive = self._outcome(self.estimator, X, codes, self.classes_) >= self.threshold_
        return self.classes_[np.where(is_positive, self._positive, 1 - self._positive)]


_MORE = "More records, a larger epsilon or an easier target leave room for a threshold"


def _who(plan: _Plan) -> str:
    """Return who is predicted positive by the candidate that meets every target."""
    return "every" if plan.target == "recall" else "no"


def _scores(
    model: Any, X: Any, codes: NDArray[np.intp], classes: NDArray[Any], *, positive: int
) -> NDArray[np.float64]:
    """Return the score of each record for the positive class: a probability, if the model has."""
    scores = scores_of(model, X, codes, classes)
    if positive:
        return scores
    return 1.0 - scores if hasattr(model, "predict_proba") else -scores
