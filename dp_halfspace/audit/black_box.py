"""A black-box audit: how well the models of two neighbouring data sets are distinguished.

A tenth of the fits is used to choose test statistics, four tenths to choose a threshold, and the
rest to count how often models of each neighbour exceed it. The bounds follow from these counts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, expit, ndtri
from sklearn.base import clone
from sklearn.linear_model import Ridge

from dp_halfspace._params import checked_size, require
from dp_halfspace._repeated_fits import fits_not_counted
from dp_halfspace.privacy.events import Gaussian, single_runs
from dp_halfspace.privacy.record import PrivacyRecord

# Parameters that an audit replaces.
_OWN = ("ledger", "random_state", "n_jobs")
Features: TypeAlias = Callable[[Any], ArrayLike]
Matrix: TypeAlias = NDArray[np.float64]
# Weight of the identity beside the correlation matrix of the numbers of a model.
_IDENTITY = 0.1
# Number of single coordinates of a model that are tested, in addition to the best direction.
_MOST_COORDINATES = 8


@dataclass(frozen=True, slots=True)
class AuditResult:
    """Result of an audit: what was measured, and what was claimed.

    Attributes
    ----------
    epsilon_low : float
        Lower bound of epsilon at `delta`, 0 if the models could not be distinguished.
    mu_low : float
        Lower bound of mu of Gaussian differential privacy, which is usually tighter.
    epsilon, delta : float
        The claimed guarantee.
    mu : float
        The claimed mu: that of a record all of whose releases are Gaussian; ``2 Phi^-1(e^epsilon /
        (1 + e^epsilon))`` for ``delta = 0``; otherwise infinity, if the claim implies no mu.
    """

    epsilon_low: float
    mu_low: float
    epsilon: float
    delta: float
    mu: float

    @property
    def is_violated(self) -> bool:
        """Whether a lower bound exceeds the claim."""
        return self.epsilon_low > self.epsilon or self.mu_low > self.mu


def audit(
    estimator: Any,
    X: Any,
    y: Any,
    X_neighbour: Any,
    y_neighbour: Any,
    *,
    n_fits: int,
    confidence: float = 0.95,
    features: Features | None = None,
    claim: tuple[float, float] | None = None,
) -> AuditResult:
    """Measure how well the models of two neighbouring data sets can be distinguished.

    Parameters
    ----------
    estimator : classifier
        Classifier of any library. Clones of it are fitted, without its ledger and its seed.
    X, X_neighbour : array-like of shape (n_samples, n_features)
        Neighbouring data sets: the same rows except one, at the same position.
    y, y_neighbour : array-like of shape (n_samples,)
        Labels.
    n_fits : int
        Number of fits on each of the two, at least 8. A tenth of them chooses the direction that
        distinguishes models, four tenths choose the threshold, and half are counted. The outcome of
        a fit that raises is its exception.
    confidence : float, default=0.95
        Probability that both bounds hold, for any estimator: Clopper-Pearson bounds at one
        threshold for epsilon and one for mu, on fits that chose neither.
    features : callable or None, default=None
        Function from a fitted model to numbers. None takes ``decision_function`` at the rows that
        differ, and ``coef_`` and ``intercept_`` if they exist. A single number is compared as it
        is.
    claim : tuple (epsilon, delta) or None, default=None
        The claimed guarantee. None takes that of ``privacy_`` of a model.

    Returns
    -------
    AuditResult
        ``epsilon_low``, ``mu_low``, the claim, and ``is_violated``.

    Raises
    ------
    ValueError
        If an argument is refused, or nothing is claimed.
    Exception
        The exception that all fits of both data sets raise, if they do.

    Notes
    -----
    **Privacy.** The result is a function of the records without any noise. It is only for people
    who may see the records, and is best computed for synthetic rows. A bound below the claim is
    weak evidence: with many steps of which only the last is visible, half or twice the noise can
    hardly be detected. Warnings, printed output, attributes that `features` does not read, and
    running time are not examined. Source: M. Jagielski, J. Ullman, A. Oprea (2020), Auditing
    differentially private machine learning; ``docs/audit.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace import OutputPerturbationClassifier
    >>> from dp_halfspace.audit import audit
    >>> X, y = np.zeros((40, 2)), np.arange(40) % 2
    >>> X[0, 0] = 1.0
    >>> other = y.copy()
    >>> other[0] = 1 - y[0]
    >>> model = OutputPerturbationClassifier(epsilon=4.0, data_norm=1.0, classes=[0, 1])
    >>> result = audit(model, X, y, X, other, n_fits=20)
    >>> result.epsilon, result.is_violated
    (4.0, False)
    """
    checked_size("n_fits", n_fits, least=8)
    require("in (0, 1)", confidence=confidence)
    model, pair = clone_without_ledgers(estimator), ((X, y), (X_neighbour, y_neighbour))
    points = None if features else _rows_that_differ(X, X_neighbour)
    fits = [_fit_and_read(model, *data, features, points) for data in pair for _ in range(n_fits)]
    if len({repr(fit.error) for fit in fits}) == 1 and fits[0].error is not None:
        raise fits[0].error
    record = next((fit.record for fit in fits if fit.record is not None), None)
    epsilon, delta, mu = _read_claim(record, claim)
    values, marks = (found.reshape(2, n_fits, -1) for found in _split_outcomes(fits, n_fits))
    bounds = _lower_bounds(values, marks, delta, 1.0 - confidence)
    return AuditResult(*bounds, epsilon, delta, mu)


def clone_without_ledgers(estimator: Any, random_state: int | None = None) -> Any:
    """Clone an estimator without its ledgers, including those of inner estimators, and seed it.

    It is fitted in this thread, where releases can be intercepted.
    """
    model = clone(estimator)
    params = model.get_params()
    own = {name for name in params if name.rsplit("__")[-1] in _OWN}
    seed = {"random_state": random_state} if "random_state" in params else {}
    return model.set_params(**{**dict.fromkeys(own), **seed})


def _rows_that_differ(X: Any, other: Any) -> Any:
    """Return the rows of both in which they differ; the first one if only labels do."""
    X, other = (Z.toarray() if hasattr(Z, "toarray") else np.asarray(Z) for Z in (X, other))
    if X.shape != other.shape:
        raise ValueError("X and X_neighbour must have the same shape: they are neighbours")
    places = np.flatnonzero((other != X).any(axis=1))
    return np.vstack([X[places], other[places]]) if len(places) else X


class _Fit(NamedTuple):
    """The observation of a fit: numbers, and a record if there is one, or an exception."""

    numbers: Matrix
    record: PrivacyRecord | None = None
    error: Exception | None = None


def _fit_and_read(model: Any, X: Any, y: Any, features: Features | None, points: Any) -> _Fit:
    """Fit a clone and read its numbers."""
    try:
        with fits_not_counted():
            fitted = clone(model).fit(X, y)
        if features is not None:
            found = [features(fitted)]
        else:
            found = [fitted.decision_function(points)]
            found += [getattr(fitted, name, ()) for name in ("coef_", "intercept_")]
        parts = [np.ravel(np.asarray(part, dtype=np.float64)) for part in found]
    except Exception as error:  # noqa: BLE001 - to raise is an outcome, too
        return _Fit(np.zeros(0), error=error)
    return _Fit(np.concatenate(parts), getattr(fitted, "privacy_", None))


def _split_outcomes(fits: Sequence[_Fit], n_fits: int) -> tuple[Matrix, Matrix]:
    """Return numbers, a row for each fit, and marks of all other outcomes, in columns of their own.

    They are exceptions, another number of numbers, and special floats that no threshold separates
    from others: NaN, infinities and negative zeros.
    """
    # The fits that are counted do not choose how many numbers are compared.
    first = [fit for place, fit in enumerate(fits) if place % n_fits < n_fits // 2]
    sizes = [len(fit.numbers) for fit in first if fit.error is None]
    width = Counter(sizes).most_common(1)[0][0] if sizes else 1
    values, marks = np.zeros((len(fits), width)), list[set[Any]]()
    for place, fit in enumerate(fits):
        marks.append({type(fit.error), repr(fit.error), len(fit.numbers)})
        if fit.error is None and len(fit.numbers) == width:
            values[place] = fit.numbers
    special = (np.isnan(values), np.isposinf(values), np.isneginf(values))
    negative_zeros = (values == 0.0) & np.signbit(values)
    outcomes = [[mark in each for mark in set().union(*marks)] for each in marks]
    return values, np.hstack([outcomes, *special, negative_zeros]).astype(np.float64)


def _rescale(values: Matrix, tenth: int) -> Matrix:
    """Divide columns by a power of two that makes their largest number in the first fits about one.

    Far larger ones of other fits are clipped at the largest number of float32, so that squares do
    not overflow. NaN, which is a separate outcome, becomes zero.
    """
    first = values[:, :tenth]
    largest = np.abs(np.where(np.isfinite(first), first, 0.0)).max(axis=(0, 1), initial=0.0)
    with np.errstate(all="ignore"):
        scaled = np.ldexp(values, -np.frexp(largest)[1])
    most = np.finfo(np.float32).max
    return np.asarray(np.nan_to_num(np.clip(scaled, -most, most)))


def _read_claim(
    record: PrivacyRecord | None, claim: tuple[float, float] | None
) -> tuple[float, float, float]:
    """Return the claimed epsilon, delta and mu."""
    mu = math.inf
    if claim is None:
        if record is None:
            raise ValueError("claim must be given: the estimator leaves no record, privacy_")
        claim = record.epsilon, record.delta
        counts = single_runs(record.events).items()
        squares = [n * event.mu**2 for event, n in counts if isinstance(event, Gaussian)]
        mu = math.sqrt(sum(squares)) if len(squares) == len(counts) else mu
    epsilon, delta = map(float, claim)
    return epsilon, delta, min(mu, 2.0 * float(ndtri(expit(epsilon)))) if delta == 0 else mu


def _lower_bounds(values: Matrix, marks: Matrix, delta: float, alpha: float) -> tuple[float, float]:
    """Return lower bounds on epsilon and mu that hold together with probability 1 - alpha.

    The axes of numbers and marks are the data set, the fit, and the number or mark.
    """
    n_fits = values.shape[1]
    tenth, half = -(-n_fits // 10), n_fits // 2
    # Only outcomes that occurred before the count: no threshold depends on the fits that it counts.
    seen = marks[:, :, marks[:, :half].any(axis=(0, 1))]
    scores = np.concatenate([seen, _statistics(_rescale(values, tenth), tenth)], axis=2)
    pairs = [order for pair in np.moveaxis(scores, 2, 0) for order in (pair, pair[::-1])]
    found = []
    for bound in (lambda p, q: _epsilon_of(p, q, delta), _mu_of):
        # Two bounds here and two for the other threshold: each may fail with a quarter of alpha.
        chosen = [_best_threshold(pair[:, tenth:half], bound, alpha / 4.0) for pair in pairs]
        place = int(np.argmax([value for value, _ in chosen]))
        thresholds = np.array([chosen[place][1]])
        (value,) = _bounds_at(thresholds, pairs[place][:, half:], bound, alpha / 4.0)
        found.append(max(0.0, float(value)))
    return found[0], found[1]


def _statistics(values: Matrix, tenth: int) -> Matrix:
    """Return statistics of all fits that the first ones choose.

    They are single numbers, and their projection on the difference of means. The distance of each
    from its median shows a spread that depends on the data.
    """
    first, width = values[:, :tenth], values.shape[2]
    spread = (first - first.mean(axis=1, keepdims=True)).std(axis=(0, 1))
    spread[spread == 0] = 1.0
    directions = np.eye(min(width, _MOST_COORDINATES), width)
    if width > 1:
        # The regression of the data set on the numbers of a model is their linear discriminant.
        rows = np.concatenate(first) / spread
        ridge = Ridge(_IDENTITY * len(rows), solver="svd").fit(rows, np.arange(len(rows)) >= tenth)
        directions = np.vstack([ridge.coef_, directions])
    found = values @ (directions / spread).T
    return np.concatenate([found, np.abs(found - np.median(found[:, :tenth], axis=(0, 1)))], axis=2)


def _best_threshold(
    pair: Matrix, bound: Callable[[Any, Any], Any], alpha: float
) -> tuple[float, float]:
    """Return the best bound of any threshold on these fits, and that threshold."""
    thresholds = np.unique(np.quantile(pair, np.linspace(0.0, 1.0, 101)))
    values = _bounds_at(thresholds, pair, bound, alpha)
    place = int(np.argmax(values))
    return float(values[place]), float(thresholds[place])


def _bounds_at(
    thresholds: Matrix, pair: Matrix, bound: Callable[[Any, Any], Any], alpha: float
) -> Any:
    """Return what follows from the first row below each threshold and the second one above it."""
    low, high = pair
    p = _probability_low((high[:, None] > thresholds).sum(axis=0), len(high), alpha)
    q = 1.0 - _probability_low((low[:, None] <= thresholds).sum(axis=0), len(low), alpha)
    return bound(p, q)


def _probability_low(hits: Any, trials: int, alpha: float) -> Any:
    """Return the lower Clopper-Pearson bound of a probability."""
    return np.where(hits > 0, betaincinv(np.maximum(hits, 1), trials - hits + 1, alpha), 0.0)


def _epsilon_of(p: Any, q: Any, delta: float) -> Any:
    """Return epsilon of events of probability at least `p` and at most `q`, or their opposites."""
    with np.errstate(all="ignore"):
        inside = np.log(np.maximum(p - delta, 0.0) / q)
        outside = np.log(np.maximum(1.0 - q - delta, 0.0) / (1.0 - p))
    return np.fmax(np.fmax(inside, outside), -math.inf)


def _mu_of(p: Any, q: Any) -> Any:
    """Return mu of an event of probabilities at least `p` and at most `q`."""
    with np.errstate(all="ignore"):
        return np.nan_to_num(ndtri(p) - ndtri(q), nan=-math.inf, posinf=-math.inf, neginf=-math.inf)
