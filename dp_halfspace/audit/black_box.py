"""A black-box audit: how well the models of two neighbouring data sets are distinguished.

A tenth of the fits is used to choose test statistics, four tenths to choose a threshold, and the
rest to count how often models of each neighbour exceed it. The bounds follow from these counts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, expit, ndtri
from sklearn.base import clone
from sklearn.linear_model import Ridge

from dp_halfspace._params import check_values
from dp_halfspace._repeated_fits import fits_not_counted
from dp_halfspace._sklearn_compat import Interval
from dp_halfspace.privacy.events import Gaussian, single_runs
from dp_halfspace.privacy.record import PrivacyRecord

Features: TypeAlias = Callable[[Any], ArrayLike]
Matrix: TypeAlias = NDArray[np.float64]
# Weight of the identity beside the correlation matrix of the numbers of a model.
_IDENTITY = 0.1
# Numbers are clipped at this many times the largest number in the fits that choose statistics.
_LARGEST_MULTIPLE = 2.0**300
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
    confidence : float
        Probability that both bounds hold.
    epsilon, delta : float
        The claimed guarantee.
    mu : float
        The claimed mu: that of a record all of whose releases are Gaussian; ``2 Phi^-1(e^epsilon /
        (1 + e^epsilon))`` for ``delta = 0``; otherwise infinity, if the claim implies no mu.
    n_fits : int
        Fits on each of the two data sets.
    """

    epsilon_low: float
    mu_low: float
    confidence: float
    epsilon: float
    delta: float
    mu: float
    n_fits: int

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
    n_jobs: int | None = None,
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
        The claimed guarantee. None takes ``privacy_`` of a model, otherwise the parameters
        `epsilon` and `delta`.
    n_jobs : int or None, default=None
        As in joblib.

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
    >>> result = audit(model, X, y, X, other, n_fits=60)
    >>> result.epsilon, result.is_violated
    (4.0, False)
    """
    check_values(
        {
            "n_fits": [Interval(Integral, 8, None, closed="left")],
            "confidence": [Interval(Real, 0, 1, closed="neither")],
        },
        {"n_fits": n_fits, "confidence": confidence},
        "audit",
    )
    model, neighbours = clone_without_ledgers(estimator), ((X, y), (X_neighbour, y_neighbour))
    points = None if features else _rows_that_differ(X, X_neighbour)
    jobs = (
        delayed(_fit_and_read)(model, *data, features, points)
        for data in neighbours
        for _ in range(n_fits)
    )
    fits = Parallel(n_jobs=n_jobs)(jobs)
    if len({repr(fit.error) for fit in fits}) == 1 and fits[0].error is not None:
        raise fits[0].error
    record = next((fit.record for fit in fits if fit.record is not None), None)
    epsilon, delta, mu = _read_claim(model, record, claim)
    values, indicators = _split_outcomes(fits)
    pairs = [(each[:n_fits], each[n_fits:]) for each in indicators]
    bounds = _lower_bounds(values[:n_fits], values[n_fits:], delta, 1.0 - confidence, pairs)
    return AuditResult(*bounds, confidence, epsilon, delta, mu, n_fits)


def clone_without_ledgers(estimator: Any, random_state: int | None = None) -> Any:
    """Clone an estimator without its ledgers, including those of inner estimators, and seed it."""
    model = clone(estimator)
    params = model.get_params()
    own = {name for name in params if name.rsplit("__")[-1] in ("ledger", "random_state")}
    seed = {"random_state": random_state} if "random_state" in params else {}
    return model.set_params(**{**dict.fromkeys(own), **seed})


def _rows_that_differ(X: Any, other: Any) -> Any:
    """Return the rows of both in which they differ; the first one if only labels do."""
    X, other = (Z.toarray() if hasattr(Z, "toarray") else np.asarray(Z) for Z in (X, other))
    if X.shape != other.shape:
        raise ValueError("X and X_neighbour must have the same shape: they are neighbours")
    places = np.flatnonzero((other != X).any(axis=1))
    return np.vstack([X[places], other[places]]) if len(places) else X


@dataclass(frozen=True, slots=True)
class _Fit:
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


def _split_outcomes(fits: Sequence[_Fit]) -> tuple[Matrix, list[Matrix]]:
    """Return numbers, a row for each fit, and for all other outcomes an indicator over the fits.

    They are exceptions, another number of numbers, and special floats that no threshold separates
    from others: NaN, infinities and negative zeros.
    """
    sizes = [len(fit.numbers) for fit in fits if fit.error is None]
    width = Counter(sizes).most_common(1)[0][0] if sizes else 0
    values, marks = np.zeros((len(fits), width)), list[set[Any]]()
    for place, fit in enumerate(fits):
        marks.append({type(fit.error), repr(fit.error), len(fit.numbers)})
        if fit.error is None and len(fit.numbers) == width:
            values[place] = fit.numbers
    indicators = [np.array([mark in each for each in marks]) for mark in set().union(*marks)]
    negative_zeros = (values == 0.0) & np.signbit(values)
    specials = (np.isnan(values), np.isposinf(values), np.isneginf(values), negative_zeros)
    indicators += [column for special in specials for column in special.T if column.any()]
    return values, [each.astype(np.float64) for each in indicators]


def _rescale(values: Matrix, of: Matrix) -> Matrix:
    """Divide columns by a power of two that makes the largest finite number of `of` about one.

    This avoids overflow. NaN, which is a separate outcome, becomes zero.
    """
    largest = np.abs(np.where(np.isfinite(of), of, 0.0)).max(axis=0, initial=0.0)
    exponents = np.frexp(largest)[1]
    with np.errstate(all="ignore"):
        clipped = np.clip(np.ldexp(values, -exponents), -_LARGEST_MULTIPLE, _LARGEST_MULTIPLE)
    rescaled: Matrix = np.nan_to_num(clipped)
    return rescaled


def _read_claim(
    model: Any, record: PrivacyRecord | None, claim: tuple[float, float] | None
) -> tuple[float, float, float]:
    """Return the claimed epsilon, delta and mu."""
    params = model.get_params()
    if claim is not None:
        epsilon, delta = claim
    elif record is not None:
        epsilon, delta = record.epsilon, record.delta
    elif "epsilon" in params:
        epsilon, delta = params["epsilon"], params.get("delta", 0.0)
    else:
        raise ValueError("claim must be given: the estimator has no epsilon and no record")
    mu = 2.0 * float(ndtri(expit(epsilon))) if delta == 0 else math.inf
    if claim is None and record is not None:
        counts = single_runs(record.events).items()
        squares = [n * event.mu**2 for event, n in counts if isinstance(event, Gaussian)]
        mu = math.sqrt(sum(squares)) if len(squares) == len(counts) else mu
    return float(epsilon), float(delta), mu


def _lower_bounds(
    first: Matrix,
    second: Matrix,
    delta: float,
    alpha: float,
    indicators: Sequence[tuple[Matrix, Matrix]] = (),
) -> tuple[float, float]:
    """Return lower bounds on epsilon and mu that hold together with probability 1 - alpha.

    `indicators` mark the fits of both data sets that have an outcome other than a number.
    """
    tenth, half = -(-len(first) // 10), len(first) // 2
    learn, choose, count = slice(0, tenth), slice(tenth, half), slice(half, None)
    of = np.vstack([first[learn], second[learn]])
    first, second = _rescale(first, of), _rescale(second, of)
    # Only outcomes that occurred before the count: no threshold depends on the fits that it counts.
    scores = [pair for pair in indicators if np.concatenate([each[:half] for each in pair]).any()]
    scores += [
        (statistic(first), statistic(second))
        for statistic in list(_statistics(first[learn], second[learn]))
    ]
    found = []
    for bound in (lambda p, q: _epsilon_of(p, q, delta), _mu_of):
        best = (-math.inf, np.zeros(1), np.zeros(1), 0.0)
        for a, b in scores:
            for low, high in ((a, b), (b, a)):
                value, threshold = _best_threshold(low[choose], high[choose], bound, alpha / 4.0)
                best = max(best, (value, low, high, threshold), key=lambda entry: entry[0])
        _, low, high, threshold = best
        # Two bounds here and two for the other threshold: each may fail with a quarter of alpha.
        (value,) = _bounds_at([threshold], low[count], high[count], bound, alpha / 4.0)
        found.append(max(0.0, float(value)))
    return found[0], found[1]


def _statistics(first: Matrix, second: Matrix) -> Iterator[Callable[[Matrix], Matrix]]:
    """Yield statistics of a model: single numbers, and their projection on the difference of means.

    The distance of each from its median shows a spread that depends on the data.
    """
    both = np.vstack([first - first.mean(axis=0), second - second.mean(axis=0)])
    spread = both.std(axis=0)
    spread[spread == 0] = 1.0
    directions = list(np.eye(min(len(spread), _MOST_COORDINATES), len(spread)))
    if len(spread) > 1:
        # The regression of the data set on the numbers of a model is their linear discriminant.
        rows = np.vstack([first, second]) / spread
        ridge, labels = Ridge(_IDENTITY * len(rows), solver="svd"), np.arange(len(rows))
        ridge.fit(rows, labels >= len(first))
        directions.insert(0, np.asarray(ridge.coef_))
    for direction in directions:
        weights = direction / spread
        middle = float(np.median(np.concatenate([first, second]) @ weights))
        yield lambda values, w=weights: values @ w  # type: ignore[misc]
        yield lambda values, w=weights, m=middle: np.abs(values @ w - m)  # type: ignore[misc]


def _best_threshold(
    low: Matrix, high: Matrix, bound: Callable[[Any, Any], Any], alpha: float
) -> tuple[float, float]:
    """Return the best bound of any threshold on these fits, and that threshold."""
    thresholds = np.unique(np.quantile(np.concatenate([low, high]), np.linspace(0.0, 1.0, 101)))
    values = _bounds_at(thresholds, low, high, bound, alpha)
    place = int(np.argmax(values))
    return float(values[place]), float(thresholds[place])


def _bounds_at(
    thresholds: Any, low: Matrix, high: Matrix, bound: Callable[[Any, Any], Any], alpha: float
) -> Any:
    """Return the bound that `high` above and `low` below each threshold proves."""
    p = _probability_low((high[:, None] > thresholds).sum(axis=0), len(high), alpha)
    q = 1.0 - _probability_low((low[:, None] <= thresholds).sum(axis=0), len(low), alpha)
    return bound(p, q)


def _probability_low(hits: Any, trials: int, alpha: float) -> Any:
    """Return the lower Clopper-Pearson bound of a probability."""
    found = betaincinv(np.maximum(hits, 1), trials - np.asarray(hits) + 1, alpha)
    return np.where(np.asarray(hits) > 0, found, 0.0)


def _epsilon_of(p: Any, q: Any, delta: float) -> Any:
    """Return epsilon of events of probability at least `p` and at most `q`, or their opposites."""
    with np.errstate(all="ignore"):
        inside = np.log(np.maximum(np.subtract(p, delta), 0.0) / q)
        outside = np.log(
            np.maximum(np.subtract(1.0 - np.asarray(q), delta), 0.0) / np.subtract(1.0, p)
        )
    return np.fmax(np.fmax(inside, outside), -math.inf)


def _mu_of(p: Any, q: Any) -> Any:
    """Return mu of an event of probabilities at least `p` and at most `q`."""
    with np.errstate(all="ignore"):
        return np.nan_to_num(ndtri(p) - ndtri(q), nan=-math.inf, posinf=-math.inf, neginf=-math.inf)
