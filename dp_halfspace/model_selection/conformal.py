"""Sets of classes that hold the true one with a stated probability, calibrated privately."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from dp_halfspace._budget import BUDGET
from dp_halfspace._sklearn_compat import HasMethods, Interval
from dp_halfspace.data.chunks import sum_over_chunks
from dp_halfspace.metrics._held_out import HeldOut
from dp_halfspace.metrics._tallies import (
    Cells,
    chances_of_truth,
    checked_borders,
    count_scores,
    probabilities_of_all,
)
from dp_halfspace.model_selection._prefit import (
    COUNT_GRID,
    MeanSlack,
    PrefitClassifier,
    chosen_places,
    crossing_utilities,
    events_of,
    n_rows,
    rounded_up,
)
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.exponential import ParallelChoice
from dp_halfspace.privacy.mechanisms import ExponentialChoice, NoNoise, Permit

# Public candidates for the smallest probability of a class in a set: quarters of log-odds in the
# middle, few where sets hold nearly all classes or none: noise chooses each of these as often.
_LOG_ODDS = expit([-7.0, -5.0, -3.5, *np.arange(-12, 7) / 4.0, 2.0, 3.0, 5.0])
# By class, from this coverage on, utilities fall faster behind the target than before it.
_LEAST_STEEP_COVERAGE = 0.6
# How many times as fast.
_STEEPNESS = 1.5
# Factor of the utility of a class of few records then: it changes no more than the others do.
_STEEP_FEW_RATE = 0.5


@dataclass(frozen=True, slots=True)
class _Plan:
    """Public numbers: candidates, the choice, and what the rank of the quantile is raised by."""

    borders: NDArray[np.float64]
    choice: ExponentialChoice | ParallelChoice | NoNoise
    coverage: float
    slack: float
    step: float
    few: float
    few_rate: float
    lacking: float
    steepness: float
    by_class: bool

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that is released."""
        return events_of(self.choice)

    @property
    def public(self) -> dict[str, Any]:
        """What the record says of a plan."""
        return {"coverage": self.coverage, "by_class": self.by_class, "thresholds": self.borders}


@dataclass(eq=False, repr=False)
class PrivateConformalClassifier(PrefitClassifier[_Plan]):
    """A fitted model with sets of classes whose coverage holds for every distribution of records.

    Split conformal prediction: a set holds every class whose probability is at least a threshold,
    which is the quantile of the probabilities of the true classes of private calibration records.
    The rank of the quantile is chosen by the exponential mechanism.

    Parameters
    ----------
    estimator : fitted classifier
        With ``predict_proba``; of any library, public or private, and fitted on other records. The
        labels ``estimator.classes_`` are public. To keep it in a clone, wrap it in
        :class:`sklearn.frozen.FrozenEstimator`.
    coverage : float, default=0.9
        Smallest probability that a set holds the true class, in [0.5, 0.999].
    by_class : bool, default=False
        Whether the coverage is to hold for the records of every class by themselves, with a
        threshold for each; else it is that of all records together.
    thresholds : array-like of increasing floats or None, default=None
        PUBLIC candidates for the smallest probability of a class in a set, between 0 and 1. None
        takes quarters of log-odds from -3 to 1.5, and six beyond. Zero, all classes, is a
        candidate, too.
    epsilon : float, default=1.0
        Budget of the calibration, in [1e-9, 1e6] or infinite; pure: no delta is spent.
    random_state : int or None, default=None
        None draws the noise from the operating system. An int makes it reproducible and raises
        `PrivacyWarning`: whoever knows it can subtract the noise.
    ledger : object with a method ``charge(record)``, path or None, default=None
        Charged before any noise is drawn. Copies and clones charge the same account.

    Attributes
    ----------
    thresholds_ : ndarray of shape (n_classes,)
        A class is in the set if its probability is at least this; all are equal without
        `by_class`.
    classes_ : ndarray of shape (n_classes,)
        The public label set, sorted: the columns of `predict_set`.
    privacy_ : PrivacyRecord
        What was spent, on the calibration alone: the model has a record of its own, or none.

    Notes
    -----
    **Privacy.** ``fit`` is (epsilon, 0)-differentially private in the calibration records, under
    replace-one adjacency, of a record or, with `groups`, of a person with any number of records.
    Public: their number, or that of people, the labels, the candidates and every parameter.
    The model must treat every record by itself, as all models here do, and must not have been
    fitted on these records unless both are charged to one ledger.
    **Coverage.** For calibration records and a fresh record that are exchangeable, of any
    distribution and any model, the set holds the true class with at least the stated probability,
    over the records and the noise, at every epsilon and n: where too few records are there, sets
    hold all classes. With `groups` this is proved for people with one record each. Source: this
    project, ``docs/proofs/operating_points.md``; split conformal prediction is of V. Vovk, A.
    Gammerman and G. Shafer (2005); private sets by histograms are of A. Angelopoulos, S. Bates, T.
    Zrnic and M. Jordan (2022).

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
    by_class: bool = False
    thresholds: ArrayLike | None = None
    epsilon: float = 1.0
    random_state: int | None = None
    ledger: Any = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "coverage": [Interval(Real, 0.5, 0.999, closed="both")],
        "by_class": ["boolean"],
        "thresholds": ["array-like", None],
        "epsilon": BUDGET["epsilon"],
        "random_state": BUDGET["random_state"],
        "ledger": BUDGET["ledger"],
    }

    @property
    def _outcome(self) -> Callable[..., NDArray[np.float64]]:
        """What the model makes of a record: the probability of its class."""
        return chances_of_truth

    def _plan_release(self, data: HeldOut) -> _Plan:
        """Fix the candidates, the noise and the slack: all of it is public."""
        borders = _LOG_ODDS if self.thresholds is None else checked_borders(self.thresholds)
        if not (borders[0] > 0.0 and borders[-1] < 1.0):
            raise ValueError("thresholds of PrivateConformalClassifier must be between 0 and 1")
        epsilon, share = float(self.epsilon), rounded_up(float(self.coverage))
        choice: ExponentialChoice | ParallelChoice | NoNoise = NoNoise()
        sensitivity, steepness, few_rate = 1.0, 1.0, 1.0
        if self.by_class:
            if share >= _LEAST_STEEP_COVERAGE:
                steepness, few_rate = _STEEPNESS, _STEEP_FEW_RATE
            # A record that moves from one class to another changes two, each by half of this.
            sensitivity = (1.0 + steepness) * share
        if math.isfinite(epsilon):
            kind = ParallelChoice if self.by_class else ExponentialChoice
            choice = kind(sensitivity, epsilon)
        rule = MeanSlack(epsilon / (2.0 * sensitivity))
        # A class of so few records that failures cost more is given sets of everything.
        few = rounded_up(share * rule.least_missed / (1.0 - share))
        lacking = rule.for_failure(1.0 - share, steepness)
        numbers = (rule.mean, rule.step, few, few_rate, lacking, steepness)
        return _Plan(borders, choice, share, *numbers, self.by_class)

    def _release(self, plan: _Plan, data: HeldOut, values: Any, permit: Permit) -> None:
        """Count the true classes above every candidate, and choose one.

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one, of a record or of a person with all rows.
        - Released: one candidate for all records, or one for each class.
        - Sensitivity: 1 of each utility, or by class ``(1 + steepness) * coverage`` of all
          utilities together.
        - Proof: ``docs/proofs/operating_points.md``, sections 1 and 3.
        """
        n_classes = len(data.classes)
        cells = Cells(n_classes, plan.borders, data.people, largest=16 * COUNT_GRID)
        table = sum_over_chunks(count_scores, values, data.codes, cells)
        if not plan.by_class:
            table = table.sum(axis=0, keepdims=True)
        # From the highest probability, the smallest sets, down to all classes.
        inside = np.cumsum(table[:, ::-1], axis=1)
        wanted = plan.coverage * (inside[:, -1:] + 1.0)
        enough = plan.few_rate * (wanted - plan.few) - plan.lacking
        excess = np.minimum(inside - wanted - plan.slack, enough)
        # The last candidate, beside the borders, is "all classes": it has more than others lack.
        excess[:, -1] = 2.0 * (data.n + 1.0 + plan.few + plan.lacking)
        steps = np.arange(excess.shape[1] - 1.0, -1.0, -1.0)
        utilities = crossing_utilities(excess, steepness=plan.steepness) - plan.step * steps
        # The same for all candidates of a class, so nothing to the choice: changes to both sides
        # are as large then.
        utilities -= 0.5 * (plan.steepness - 1.0) * plan.coverage * inside[:, -1:]
        released = permit.release(utilities if plan.by_class else utilities[0], plan.choice)
        smallest = np.append(plan.borders[::-1], 0.0)[chosen_places(released, plan.choice)]
        self.thresholds_ = np.broadcast_to(smallest, (n_classes,)).copy()

    def predict_set(self, X: Any) -> NDArray[np.bool_]:
        """Return which classes are in the set of each record.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of bool of shape (n_samples, n_classes)
            By the order of ``classes_``. A set may be empty where no class is likely enough.
        """
        check_is_fitted(self)
        codes = np.zeros(n_rows(X), dtype=np.intp)
        probabilities = probabilities_of_all(self.estimator, X, codes, self.classes_)
        sets: NDArray[np.bool_] = (probabilities >= self.thresholds_) | (self.thresholds_ <= 0.0)
        return sets

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels, as the model does.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return np.asarray(self.estimator.predict(X))
