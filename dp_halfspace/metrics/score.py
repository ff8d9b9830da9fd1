"""Scores on held-out records: count, charge, add noise, and say how sure the result is.

All counts of a metric are released at once, and everything shown is a function of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_halfspace._budget import BUDGET, opened_ledger
from dp_halfspace._params import check_values, resolved_delta
from dp_halfspace._sklearn_compat import StrOptions, rows_of
from dp_halfspace.data.chunked_checks import labelled_chunks
from dp_halfspace.data.chunked_methods import travelling
from dp_halfspace.data.chunks import Chunks, applied, kept, summed
from dp_halfspace.data.groups import sorted_by_person
from dp_halfspace.data.people import People
from dp_halfspace.data.validation import check_lengths, is_chunked, label_codes, refuse_mask
from dp_halfspace.metrics._intervals import Released
from dp_halfspace.metrics._table import METRICS, Metric
from dp_halfspace.metrics._tallies import PLACES, Cells, between_places, cells_between, places
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.discrete import DiscreteLaplaceNoise
from dp_halfspace.privacy.events import Event, Gaussian
from dp_halfspace.privacy.mechanisms import (
    ExponentialChoice,
    GaussianNoise,
    NoNoise,
    Permit,
    authorise,
)
from dp_halfspace.privacy.profiles import gdp_mu
from dp_halfspace.privacy.randomness import noise_kind, noise_source
from dp_halfspace.privacy.record import PrivacyRecord

if TYPE_CHECKING:
    from sklearn.calibration import CalibrationDisplay
    from sklearn.metrics import ConfusionMatrixDisplay, RocCurveDisplay

__all__ = ["PrivateScore", "private_score"]

# Part of epsilon that a quartile of scores of unknown scale takes: so much over n epsilon, between
# two ends. Where it would be more, quartiles are taken for -1 and 1.
_PLACE, _LEAST_SHARE, _LARGEST_SHARE = 150.0, 0.04, 0.25


@dataclass(frozen=True, eq=False)
class PrivateScore:
    """A private score, charged to a budget; made by :func:`private_score`.

    Attributes
    ----------
    metric : str
        Its name.
    value : float or ndarray of shape (n_classes, n_classes) or (n_bins,)
        The estimate; of a confusion matrix noisy counts, true labels by rows, between 0 and n; of
        a calibration curve the share of positives in every bin.
    interval : tuple (low, high)
        Covers the score on fresh records in 95 % of all samples and draws of the noise; of a
        confusion matrix or a calibration curve two arrays, the interval of every entry by itself,
        for n fresh records.
    privacy_ : PrivacyRecord
        What was spent, on all metrics of one call together.
    classes : ndarray of shape (n_classes,)
        The public label set, sorted.
    curve : tuple of two arrays, or None
        For ``metric="roc_auc"`` (fpr, tpr), rates at the public thresholds, from (0, 0) to (1, 1).
        For ``"calibration_curve"`` (prob_true, prob_pred) of every bin.
    """

    metric: str
    value: Any
    interval: tuple[Any, Any]
    privacy_: PrivacyRecord
    classes: NDArray[Any] = field(repr=False)
    curve: tuple[NDArray[np.float64], NDArray[np.float64]] | None = field(repr=False)

    def display(self) -> RocCurveDisplay | ConfusionMatrixDisplay | CalibrationDisplay:
        """Return the display of scikit-learn for this score, whose ``plot`` draws with matplotlib.

        Returns
        -------
        RocCurveDisplay, ConfusionMatrixDisplay or CalibrationDisplay
            Of a calibration curve the bins of which something is known.

        Raises
        ------
        ValueError
            For other metrics, which are one number.
        """
        draw = METRICS[self.metric].display
        if draw is None:
            raise ValueError(f"metric={self.metric!r} is one number: there is nothing to draw")
        display: RocCurveDisplay | ConfusionMatrixDisplay | CalibrationDisplay = draw(self)
        return display


@np.errstate(all="ignore")
def private_score(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    metric: str | Sequence[str] = "accuracy",
    epsilon: float = 1.0,
    delta: float | str = "auto",
    groups: Any = None,
    thresholds: ArrayLike | None = None,
    random_state: int | None = None,
    ledger: Any = None,
) -> Any:
    """Release how good a model is on held-out records, within a budget.

    Parameters
    ----------
    model : fitted classifier
        With ``classes_`` and ``predict``; for ``"roc_auc"`` with ``predict_proba`` or
        ``decision_function``, for ``"brier"`` and ``"calibration_curve"`` with ``predict_proba``.
        A pipeline will do. ``classes_`` may be in any order. A predicted label that is not among
        them counts as a wrong one.
    X : array-like of shape (n_samples, n_features), or in chunks
        Records that the model was not fitted to; whatever the model takes. Chunks
        (``docs/scaling.md``) of dask or of :mod:`dp_halfspace.datasets` are read once per metric.
    y : array-like of shape (n_samples,), or in chunks
        Labels, from the public set ``model.classes_``; of rows in chunks in the same chunks, or
        an array.
    metric : str or list of str, default="accuracy"
        ``"accuracy"``, ``"balanced_accuracy"`` (mean of the recalls), ``"confusion_matrix"``,
        ``"roc_auc"`` (two classes; the curve comes with it), ``"calibration_curve"`` (two classes;
        share of positives in bins of the probability) or ``"brier"`` (half the squared
        distance between probabilities and truth, in [0, 1]; with two classes that of scikit-learn).
        A list shares the budget in equal parts, of mu^2 or, if `delta` is 0, of `epsilon`.
    epsilon : float, default=1.0
        Budget of this call, in [1e-9, 1e6], or infinite for no noise and no guarantee.
    delta : float or "auto", default="auto"
        ``"auto"`` is ``min(1/n^2, 1/4)``; 0 asks for pure epsilon.
    groups : array-like of shape (n_samples,) or None, default=None
        Who each record belongs to; needs ``delta > 0``. The unit of privacy is then a person with
        all records, each of which weighs one over their number; n is the number of people.
    thresholds : array-like of increasing floats or None, default=None
        PUBLIC. For ``"roc_auc"``, scores are told apart only where one of these is between them;
        None takes half units of log-odds from -8 to 8 for probabilities; for other scores a third
        of their width and more, which is learnt with their centre for about 4 % of the budget.
        For ``"calibration_curve"`` the inner borders of the bins, by default tenths.
    random_state : int or None, default=None
        None draws the noise from the operating system. An int makes it reproducible and raises
        `PrivacyWarning`: whoever knows it can subtract the noise.
    ledger : object with a method ``charge(record)``, path or None
        Charged before any noise is drawn.

    Returns
    -------
    PrivateScore, or list of it
        ``value``, ``interval`` (95 %, sampling and noise) and ``privacy_``; for a list of metrics
        a list, with one record for all.

    Raises
    ------
    ValueError, BudgetError
        By what is refused of arguments, data, budget and the shape of what the model returns:
        nothing was spent.

    Notes
    -----
    **Privacy.** (epsilon, delta)-differentially private in the held-out records, under replace-one
    adjacency, of a record or, with `groups`, of a person with any number of records. Public: their
    number, or that of people, ``model.classes_``, `thresholds` and every other argument.
    Private: everything else, class counts included. The model must be public or private, and
    treat every record by itself, as all models here do; its own errors are its own. Held-out
    records that belong to the same data set as those of the fit are charged to the same ledger.
    Source: this project, ``docs/proofs/metrics.md``; no paper.

    Examples
    --------
    >>> from dp_halfspace import AdaptiveMarginClassifier, PrivacyLedger
    >>> from dp_halfspace.datasets import make_halfspace
    >>> from dp_halfspace.metrics import private_score
    >>> X, y = make_halfspace(4000, 5, margin=0.2, random_state=0)
    >>> ledger = PrivacyLedger(epsilon=2.0, delta=1e-6)
    >>> model = AdaptiveMarginClassifier(epsilon=1.0, delta=1e-7, classes=[-1, 1], ledger=ledger)
    >>> model = model.fit(X[:2000], y[:2000])
    >>> score = private_score(model, X[2000:], y[2000:], delta=1e-7, ledger=ledger)
    >>> low, high = score.interval
    >>> 0.8 < low <= score.value <= high <= 1.0
    True
    """
    budget = {"epsilon": epsilon, "delta": delta, "random_state": random_state, "ledger": ledger}
    metrics = [metric] if isinstance(metric, str) else list(metric)
    for name in metrics or [""]:
        check_values(_CONSTRAINTS, {"metric": name, **budget}, "private_score")
    data = _checked(model, X, y, metrics, groups)
    epsilon, delta = float(epsilon), resolved_delta(delta, data.n)
    if groups is not None and delta == 0 and math.isfinite(epsilon):
        raise ValueError("groups needs delta > 0: pure noise is for counts of whole records")
    jobs = _jobs(metrics, model, thresholds, n=data.n, epsilon=epsilon, delta=delta)
    record = PrivacyRecord(
        epsilon=epsilon,
        delta=delta,
        adjacency="replace-one" if data.people is None else "replace-one-person",
        events=tuple(event for job in jobs for event in job.events),
        noise="none" if math.isinf(epsilon) else noise_kind(random_state),
        public={"n_samples": data.n, "n_classes": len(data.classes), "metric": metric},
    )
    values = [data.outcomes(METRICS[job.name].outcome, model) for job in jobs]
    permit = authorise(record, noise_source(random_state), opened_ledger(ledger))
    scores = [job.run(data, each, permit, record) for job, each in zip(jobs, values, strict=True)]
    return scores[0] if isinstance(metric, str) else scores


_CONSTRAINTS = {"metric": [StrOptions(set(METRICS))], **BUDGET}


@dataclass(frozen=True, slots=True)
class _HeldOut:
    """Checked records; those of one person stand together in `order`, as the labels do.

    `classes` are sorted, as the codes of labels are, whatever their order in the model.
    """

    X: Any
    codes: Any
    classes: NDArray[Any]
    people: People | None = None
    order: Any = None

    @property
    def n(self) -> int:
        """Public number of records, or of people."""
        return int(self.codes.shape[0]) if self.people is None else len(self.people)

    def outcomes(self, outcome: Callable[..., Any], model: Any) -> Any:
        """Return what the model makes of each record, by itself, which stays beside it."""
        if isinstance(self.X, Chunks):
            model = travelling(model)
            # What is wrong with the columns is said before anything travels.
            codes = np.zeros(len(self.X.sample), dtype=np.intp)
            outcome(model, self.X.sample, codes, self.classes)
        if self.people is None:
            return kept(applied(_by_rows, self.X, outcome, model, self.codes, self.classes))

        def of(index: NDArray[np.intp]) -> NDArray[Any]:
            rows = rows_of(self.X, self.order[index])
            return np.asarray(outcome(model, rows, self.codes[index], self.classes))

        return self.people.row_by_row(of)


def _by_rows(X: Any, outcome: Callable[..., Any], model: Any, *labels: Any) -> Any:
    """Call a function of a model with the rows first, as chunks are mapped."""
    return outcome(model, X, *labels)


@dataclass(frozen=True, slots=True)
class _Job:
    """One metric: what it releases, fixed by public numbers."""

    name: str
    borders: NDArray[np.float64] | None
    place: ExponentialChoice | NoNoise | None
    noise: GaussianNoise | DiscreteLaplaceNoise | NoNoise

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that is released."""
        return (*(() if self.place is None else 2 * (self.place.event,)), self.noise.event)

    def run(
        self, data: _HeldOut, values: Any, permit: Permit, record: PrivacyRecord
    ) -> PrivateScore:
        """Count, add the noise and estimate."""
        metric, borders = METRICS[self.name], self.borders
        if metric.borders is not None and borders is None:
            borders = cells_between(self._quartiles(values, data, permit))
        cells = Cells(len(data.classes), borders, data.people)
        exact = summed(_counted, values, data.codes, metric.tally, cells)
        counts = permit.release(exact, self.noise)

        is_laplace = isinstance(self.noise, DiscreteLaplaceNoise)
        released = Released(counts, data.n, _variance(self.noise), is_laplace)
        value, low, high = metric.estimate(released)
        curve = None if metric.curve is None else metric.curve(counts, borders, value)
        return PrivateScore(self.name, value, (low, high), record, data.classes, curve)

    def _quartiles(self, values: Any, data: _HeldOut, permit: Permit) -> NDArray[np.float64]:
        """Release the quartiles of the scores."""
        if self.place is None:
            return np.array([-1.0, 1.0])
        distances = places(summed(between_places, values, data.people), data.n)
        chosen = [permit.release(each, self.place) for each in distances]
        if isinstance(self.place, NoNoise):
            chosen = [np.array([each.argmax()]) for each in chosen]
        found: NDArray[np.float64] = PLACES[np.concatenate(chosen).astype(np.intp)]
        return found


def _counted(values: Any, codes: Any, tally: Callable[..., Any], cells: Cells) -> Any:
    return tally(values, codes, cells)


def _jobs(
    metrics: Sequence[str],
    model: Any,
    thresholds: ArrayLike | None,
    *,
    n: int,
    epsilon: float,
    delta: float,
) -> list[_Job]:
    """Divide a budget: equal parts of mu^2, beside what quartiles cost, or of a pure epsilon."""
    ways = [METRICS[name].borders for name in metrics]
    borders = [None if way is None else way(model, thresholds) for way in ways]
    learns = [way is not None and b is None for way, b in zip(ways, borders, strict=True)]
    part = epsilon / len(metrics) * (1.0 - 2.0**-40 * (len(metrics) > 1))
    place: ExponentialChoice | NoNoise | None = None
    share = max(_PLACE / (n * part), _LEAST_SHARE)
    if any(learns) and math.isinf(epsilon):
        place = NoNoise()
    elif any(learns) and share <= _LARGEST_SHARE:
        place = ExponentialChoice(1.0, share * part)
    mu = 0.0
    if delta > 0 and math.isfinite(epsilon):
        mu = gdp_mu(epsilon, delta)
        if place is not None:
            others = [place.event] * 2 * sum(learns)
            mu = accounting.calibrate(
                lambda mu: [*others, Gaussian(mu)], epsilon, delta, lower=0.0, upper=mu, rtol=1e-4
            )
        mu *= math.sqrt(1.0 / len(metrics)) * (1.0 - 2.0**-40 * (len(metrics) > 1))
    jobs = []
    for name, border, learn in zip(metrics, borders, learns, strict=True):
        left = part * (1.0 - 2.0 * share) * (1.0 - 2.0**-40) if learn and place else part
        noise = _noise(METRICS[name], left, mu)
        jobs.append(_Job(name, border, place if learn else None, noise))
    return jobs


def _checked(model: Any, X: Any, y: ArrayLike, metrics: Sequence[str], groups: Any) -> _HeldOut:
    """Check the schema of the records against the model."""
    if not hasattr(model, "classes_"):
        raise ValueError("model must be a fitted classifier: it has no attribute classes_")
    classes = np.asarray(model.classes_)
    for name in metrics:
        metric = METRICS[name]
        if not any(hasattr(model, method) for method in metric.methods):
            raise ValueError(f"metric={name!r} needs a model with {' or '.join(metric.methods)}")
        if metric.is_binary and len(classes) != 2:
            raise ValueError(f"metric={name!r} needs a model of two classes")
    if is_chunked(X):
        rows, labels = labelled_chunks(X, y, classes)
        sorted_by_person(groups, rows)  # refuses groups
        return _HeldOut(rows, labels, np.unique(classes))
    refuse_mask("X", X)
    codes, classes = label_codes(y, classes)
    check_lengths(X, codes, hides_rows=groups is not None)
    order, people, codes = sorted_by_person(groups, np.arange(len(codes)), codes)
    return _HeldOut(X, codes, classes, people, order)


def _noise(
    metric: Metric, epsilon: float, mu: float
) -> GaussianNoise | DiscreteLaplaceNoise | NoNoise:
    """Choose the noise by public numbers alone: pure where there is no mu."""
    absolute, euclidean = metric.sensitivity
    if math.isinf(epsilon):
        return NoNoise()
    return GaussianNoise(euclidean, mu) if mu else DiscreteLaplaceNoise(absolute, epsilon)


def _variance(noise: GaussianNoise | DiscreteLaplaceNoise | NoNoise) -> float:
    """Return the variance of the noise of one count."""
    if isinstance(noise, NoNoise):
        return 0.0
    return (noise.sigma if isinstance(noise, GaussianNoise) else noise.deviation) ** 2
