"""Scores on held-out records: count, charge, add noise, and say how sure the result is.

All counts of a metric are released at once, and everything shown is a function of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length

from dp_halfspace._budget import BUDGET
from dp_halfspace._chunked import is_chunked, labelled_chunks, travelling
from dp_halfspace._chunks import Chunks, applied, summed
from dp_halfspace._sklearn import StrOptions, check_values, resolved_delta
from dp_halfspace._validation import label_codes, refuse_mask
from dp_halfspace.algorithms.units.plan import Units, affordable_units
from dp_halfspace.metrics._intervals import estimate, roc_curve
from dp_halfspace.metrics._tallies import (
    SENSITIVITIES,
    cells_around,
    outcomes,
    public_thresholds,
    tally,
)
from dp_halfspace.privacy.discrete import DiscreteLaplaceNoise
from dp_halfspace.privacy.mechanisms import GaussianNoise, NoNoise, authorise
from dp_halfspace.privacy.profiles import gdp_mu
from dp_halfspace.privacy.randomness import noise_kind, noise_source
from dp_halfspace.privacy.record import PrivacyRecord

if TYPE_CHECKING:
    from sklearn.metrics import ConfusionMatrixDisplay, RocCurveDisplay

__all__ = ["PrivateScore", "private_score"]

# Of scores where nothing can be learnt about them within the budget.
_NO_UNITS = Units(np.zeros(1), np.ones(1))
# 97.5 % quantiles in standard deviations. That of the Laplace law serves sums with sampling too:
# they are closer to a normal one, whose quantile is smaller.
_NORMAL, _LAPLACE = 1.959964, math.log(20.0) / math.sqrt(2.0)


@dataclass(frozen=True, eq=False)
class PrivateScore:
    """A score that was paid for; made by :func:`private_score`.

    Attributes
    ----------
    metric : str
        Its name.
    value : float or ndarray of shape (n_classes, n_classes)
        The estimate; of a confusion matrix noisy counts, true labels by rows, between 0 and n.
    interval : tuple (low, high)
        Covers the score on fresh records in 95 % of all samples and draws of the noise; of a
        confusion matrix two arrays, the interval of every entry by itself, for n fresh records.
    privacy_ : PrivacyRecord
        What was spent.
    classes : ndarray of shape (n_classes,)
        The public label set.
    curve : tuple (fpr, tpr) or None
        For ``metric="roc_auc"``: rates at the public thresholds, from (0, 0) to (1, 1).
    """

    metric: str
    value: Any
    interval: tuple[Any, Any]
    privacy_: PrivacyRecord
    classes: NDArray[Any] = field(repr=False)
    curve: tuple[NDArray[np.float64], NDArray[np.float64]] | None = field(repr=False)

    def plot(self, ax: Any = None) -> RocCurveDisplay | ConfusionMatrixDisplay:
        """Draw a ROC curve or a confusion matrix with matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        RocCurveDisplay or ConfusionMatrixDisplay
            Of scikit-learn.

        Raises
        ------
        ValueError
            For other metrics, which are one number.
        """
        from sklearn.metrics import ConfusionMatrixDisplay, RocCurveDisplay  # noqa: PLC0415

        if self.curve is not None:
            fpr, tpr = self.curve
            return RocCurveDisplay(fpr=fpr, tpr=tpr, roc_auc=self.value).plot(ax=ax)
        if self.metric == "confusion_matrix":
            counts = np.rint(self.value).astype(int)
            return ConfusionMatrixDisplay(counts, display_labels=self.classes).plot(ax=ax)
        raise ValueError(f"metric={self.metric!r} is one number: there is nothing to draw")


def private_score(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    metric: str = "accuracy",
    epsilon: float = 1.0,
    delta: float | str = "auto",
    thresholds: ArrayLike | None = None,
    random_state: int | None = None,
    ledger: Any = None,
) -> PrivateScore:
    """Release how good a model is on held-out records, within a budget.

    Parameters
    ----------
    model : fitted classifier
        With ``classes_`` and ``predict``; for ``"roc_auc"`` with ``predict_proba`` or
        ``decision_function``, for ``"brier"`` with ``predict_proba``. A pipeline will do.
    X : array-like of shape (n_samples, n_features)
        Records that the model was not fitted to; whatever the model takes.
    y : array-like of shape (n_samples,)
        Labels, from the public set ``model.classes_``.
    metric : str, default="accuracy"
        ``"accuracy"``, ``"balanced_accuracy"`` (mean of the recalls), ``"confusion_matrix"``,
        ``"roc_auc"`` (two classes; the curve comes with it) or ``"brier"`` (half the squared
        distance between probabilities and truth, in [0, 1]; with two classes that of scikit-learn).
    epsilon : float, default=1.0
        Budget of this call, in [1e-9, 1e6], or infinite for no noise and no guarantee.
    delta : float or "auto", default="auto"
        ``"auto"`` is ``min(1/n^2, 1/4)``; 0 asks for pure epsilon.
    thresholds : array-like of increasing floats or None, default=None
        For ``"roc_auc"``, PUBLIC: scores are told apart only where one of these is between them.
        None takes half units of log-odds from -8 to 8 for probabilities; for other scores quarters
        of their width, which is learnt with their centre for about 4 % of the budget. State them
        for scores that are ten widths or more from zero.
    random_state : int or None, default=None
        None draws the noise from the operating system. An int makes it reproducible and raises
        `PrivacyWarning`: whoever knows it can subtract the noise.
    ledger : object with a method ``charge(record)``, path or None
        Charged before any noise is drawn.

    Returns
    -------
    PrivateScore
        ``value``, ``interval`` (95 %, sampling and noise) and ``privacy_``.

    Raises
    ------
    ValueError, BudgetError
        By what is refused of arguments, data and budget: nothing was spent.

    Notes
    -----
    **Privacy.** (epsilon, delta)-differentially private in the held-out records, under replace-one
    adjacency. Public: their number, ``model.classes_``, `thresholds` and every other argument.
    Private: everything else, class counts included. The model must be public or paid for, and
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
    constraints = {"metric": [StrOptions(set(SENSITIVITIES))], **BUDGET}
    budget = {"epsilon": epsilon, "delta": delta, "random_state": random_state, "ledger": ledger}
    check_values(constraints, {"metric": metric, **budget}, "private_score")
    X, codes, classes = _checked(model, X, y, metric)
    n = X.shape[0] if isinstance(X, Chunks) else len(codes)
    epsilon, delta = float(epsilon), resolved_delta(delta, n)
    borders = public_thresholds(model, thresholds) if metric == "roc_auc" else None
    learns = metric == "roc_auc" and borders is None
    plan, left = (affordable_units(n, 1, epsilon, delta) if learns else None) or (None, epsilon)
    noise = _noise(metric, left, delta)
    record = PrivacyRecord(
        epsilon=epsilon,
        delta=delta,
        events=(*(plan.events if plan else ()), noise.event),
        noise="none" if math.isinf(epsilon) else noise_kind(random_state),
        public={"n_samples": n, "n_classes": len(classes), "metric": metric},
    )
    with np.errstate(all="ignore"):
        values = _outcomes(metric, model, X, codes, classes)
    permit = authorise(record, noise_source(random_state), ledger)

    if learns:
        units = plan.run(applied(_column, values), permit) if plan else _NO_UNITS
        borders = cells_around(units)
    counts = summed(tally, values, metric, codes, len(classes), borders)
    counts = permit.release(counts, noise)

    z = _LAPLACE if isinstance(noise, DiscreteLaplaceNoise) else _NORMAL
    value, low, high = estimate(metric, counts, n, _variance(noise), z)
    curve = roc_curve(counts) if metric == "roc_auc" else None
    return PrivateScore(metric, value, (low, high), record, classes, curve)


def _column(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers as a column."""
    return values[:, None]


def _outcomes(metric: str, model: Any, X: Any, codes: Any, classes: NDArray[Any]) -> Any:
    """Return the outcomes of all records, which stay where the records are."""
    if not isinstance(X, Chunks):
        return outcomes(X, metric, model, codes, classes)
    model = travelling(model)
    # What is wrong with the columns is said before anything travels.
    outcomes(X.sample, metric, model, np.zeros(len(X.sample), dtype=np.intp), classes)
    values = X.each(outcomes, metric, model, codes, classes).kept()
    return replace(values, n_columns=1)


def _checked(model: Any, X: Any, y: ArrayLike, metric: str) -> tuple[Any, Any, NDArray[Any]]:
    """Check the schema of the records against the model; return them, codes and labels."""
    if not hasattr(model, "classes_"):
        raise ValueError("model must be a fitted classifier: it has no attribute classes_")
    needed = {"brier": ("predict_proba",), "roc_auc": ("predict_proba", "decision_function")}
    methods = needed.get(metric, ("predict",))
    if not any(hasattr(model, name) for name in methods):
        raise ValueError(f"metric={metric!r} needs a model with {' or '.join(methods)}")
    classes = np.asarray(model.classes_)
    if metric == "roc_auc" and len(classes) != 2:
        raise ValueError("metric='roc_auc' needs a model of two classes")
    if is_chunked(X):
        return *labelled_chunks(X, y, classes), classes
    refuse_mask("X", X)
    codes, _ = label_codes(y, classes)
    check_consistent_length(X, codes)
    return X, codes, classes


def _noise(
    metric: str, epsilon: float, delta: float
) -> GaussianNoise | DiscreteLaplaceNoise | NoNoise:
    """Choose the noise by public numbers alone."""
    absolute, euclidean = SENSITIVITIES[metric]
    if math.isinf(epsilon):
        return NoNoise()
    if delta == 0:
        return DiscreteLaplaceNoise(absolute, epsilon)
    return GaussianNoise(euclidean, gdp_mu(epsilon, delta))


def _variance(noise: GaussianNoise | DiscreteLaplaceNoise | NoNoise) -> float:
    """Return the variance of the noise of one count."""
    if isinstance(noise, NoNoise):
        return 0.0
    return (noise.sigma if isinstance(noise, GaussianNoise) else noise.deviation) ** 2
