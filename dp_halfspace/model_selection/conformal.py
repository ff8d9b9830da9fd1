"""Sets of classes that contain the true class with a stated probability, calibrated privately."""

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
from dp_halfspace._memory import (
    NUMBER_BYTES,
    OutOfMemory,
    refuse_beyond_memory,
    shortages_dropped,
)
from dp_halfspace._sklearn_compat import HasMethods, Interval
from dp_halfspace.data.chunks import sum_over_chunks
from dp_halfspace.estimators._crossing import (
    COUNT_GRID,
    chosen_places,
    crossing_utilities,
    rounded_up,
)
from dp_halfspace.exceptions import warn_caller
from dp_halfspace.metrics._held_out import HeldOut
from dp_halfspace.metrics._tallies import (
    Cells,
    chances_of_truth,
    checked_borders,
    count_scores,
    probabilities_of_all,
)
from dp_halfspace.model_selection._prefit import (
    MeanSlack,
    PrefitClassifier,
    events_of,
    n_rows,
)
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.exponential import ParallelChoice
from dp_halfspace.privacy.mechanisms import ExponentialChoice, NoNoise, Permit

# Public candidates for the threshold: multiples of a quarter in log-odds in the middle, and few
# where sets contain nearly all classes or none, because noise may choose any of these.
_LOG_ODDS = expit([-7.0, -5.0, -3.5, *np.arange(-12, 7) / 4.0, 2.0, 3.0, 5.0])
# With `by_class`, from this coverage on, utilities fall faster after the target than before it.
_LEAST_STEEP_COVERAGE = 0.6
# How many times as fast they fall.
_STEEPNESS = 1.5
# Factor of the utility of a class of few records then, so that it changes no more than other
# utilities.
_STEEP_FEW_RATE = 0.5
# Number of arrays of the size of the counts, with their utilities and noise.
_COPIES = 10
_MORE = "More records, a larger epsilon or a lower coverage leave room for smaller sets"


@dataclass(frozen=True, slots=True)
class _Plan:
    """Public numbers: the candidates, the choice, and the slack of the rank of the quantile."""

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
    def takes(self) -> float:
        """Number of records, with `by_class` of each class, up to which sets hold all classes."""
        return (self.few + self.lacking / self.few_rate) / self.coverage - 1.0

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that is released."""
        return events_of(self.choice)

    @property
    def public(self) -> dict[str, Any]:
        """Public facts for the record."""
        return {"coverage": self.coverage, "by_class": self.by_class, "thresholds": self.borders}


@dataclass(eq=False, repr=False)
class PrivateConformalClassifier(PrefitClassifier[_Plan]):
    """A fitted model with prediction sets whose coverage holds for every distribution of records.

    Split conformal prediction: a prediction set contains every class whose predicted probability is
    at least a threshold. The threshold is a quantile of the predicted probabilities of the true
    classes of private calibration records. The rank of the quantile is chosen by the exponential
    mechanism.

    Parameters
    ----------
    estimator : fitted classifier
        A model with ``predict_proba``, of any library, public or private, that was fitted to other
        records. The labels ``estimator.classes_`` are public. To keep it in a clone, wrap it in
        :class:`sklearn.frozen.FrozenEstimator`.
    coverage : float, default=0.9
        Smallest probability with which a set contains the true class, in [0.5, 0.999].
    by_class : bool, default=False
        Whether the coverage holds for the records of every class separately, with a threshold for
        each class; otherwise it holds for all records together.
    thresholds : array-like of increasing floats or None, default=None
        PUBLIC candidates for the threshold, between 0 and 1. None takes multiples of a quarter in
        log-odds from -3 to 1.5, and six candidates beyond. Zero, for sets of all classes, is always
        a candidate as well.
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
    thresholds_ : ndarray of shape (n_classes,)
        Threshold of each class: a class is in the set if its probability is at least this. All are
        equal without `by_class`.
    classes_ : ndarray of shape (n_classes,)
        The public label set, sorted: the columns of `predict_set`.
    privacy_ : PrivacyRecord
        The guarantee of the calibration alone; the model has a record of its own, or none.

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
    by_class: bool = False
    thresholds: ArrayLike | None = None
    epsilon: float = 1.0
    random_state: int | None = None
    ledger: Any = None

    learnt_part = "size of the sets"
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
        """The model output that is used for a record: the probability of its class."""
        return chances_of_truth

    def _plan_release(self, data: HeldOut) -> _Plan:
        """Fix the candidates, the noise and the slack: all of it is public."""
        borders = _LOG_ODDS if self.thresholds is None else checked_borders(self.thresholds)
        if not (borders[0] > 0.0 and borders[-1] < 1.0):
            raise ValueError("thresholds of PrivateConformalClassifier must be between 0 and 1")
        n_counts = len(data.classes) * (len(borders) + 1)
        refuse_beyond_memory(
            _COPIES * NUMBER_BYTES * n_counts,
            f"a table of {n_counts} counts, of each class between thresholds,",
            "state fewer thresholds",
        )
        epsilon, share = float(self.epsilon), rounded_up(float(self.coverage))
        choice: ExponentialChoice | ParallelChoice | NoNoise = NoNoise()
        sensitivity, steepness, few_rate = 1.0, 1.0, 1.0
        if self.by_class:
            if share >= _LEAST_STEEP_COVERAGE:
                steepness, few_rate = _STEEPNESS, _STEEP_FEW_RATE
            # A record that moves from one class to another changes the utilities of two classes,
            # each by half of this.
            sensitivity = (1.0 + steepness) * share
        if math.isfinite(epsilon):
            kind = ParallelChoice if self.by_class else ExponentialChoice
            choice = kind(sensitivity, epsilon)
        rule = MeanSlack(epsilon / (2.0 * sensitivity))
        # A class with fewer records than this gets sets of all classes.
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
        # The last candidate, in addition to the borders, is "all classes": its excess is larger
        # than the deficit of any other.
        excess[:, -1] = 2.0 * (data.n + 1.0 + plan.few + plan.lacking)
        steps = np.arange(excess.shape[1] - 1.0, -1.0, -1.0)
        utilities = crossing_utilities(excess, steepness=plan.steepness) - plan.step * steps
        # Subtract the same number from all candidates of a class, which does not affect the choice:
        # changes in both directions are then equally large.
        utilities -= 0.5 * (plan.steepness - 1.0) * plan.coverage * inside[:, -1:]
        released = permit.release(utilities if plan.by_class else utilities[0], plan.choice)
        smallest = np.append(plan.borders[::-1], 0.0)[chosen_places(released, plan.choice)]
        self.thresholds_ = np.broadcast_to(smallest, (n_classes,)).copy()

    def _warn_of_plan(self, plan: _Plan, data: HeldOut) -> None:
        """Warn where the number of records leaves no room for a threshold, whatever they are."""
        if data.n <= plan.takes:
            kind = f"{data.unit} of each class" if plan.by_class else data.unit
            warn_caller(
                f"a coverage of {self.coverage:g} at epsilon={self.epsilon:g} takes more than "
                f"{plan.takes:.0f} {kind}, and there are {data.n} {data.unit}: every set would "
                f"contain all classes, which says nothing. {_MORE}"
            )

    def _warn_of_release(self, plan: _Plan, data: HeldOut) -> None:
        """Warn where the released thresholds put a class into every set."""
        is_in_all = self.thresholds_ <= 0.0
        if data.n <= plan.takes or not is_in_all.any():
            return
        if is_in_all.all():
            warn_caller(f"every set contains all classes, which says nothing. {_MORE}")
        else:
            labels = ", ".join(map(repr, self.classes_[is_in_all].tolist()))
            warn_caller(f"every set contains {labels}, which says nothing of it. {_MORE}")

    def predict_set(self, X: Any) -> NDArray[np.bool_]:
        """Return which classes are in the set of each record.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of bool of shape (n_samples, n_classes)
            Columns are in the order of ``classes_``. A set may be empty if no class has a large
            enough probability.
        """
        check_is_fitted(self)
        codes = np.zeros(n_rows(X), dtype=np.intp)
        with shortages_dropped():
            probabilities = probabilities_of_all(self.estimator, X, codes, self.classes_)
            sets = (probabilities >= self.thresholds_) | (self.thresholds_ <= 0.0)
            return np.asarray(sets, dtype=np.bool_)
        raise OutOfMemory("there is not enough memory for these sets: give fewer rows at a time")

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
