"""Expected accuracy for a budget, before any of it is spent.

Tables of the stated size are simulated so that a linear classifier without privacy gets the stated
accuracy, and the estimator is run on them with its real noise. Nothing private is read.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import roc_auc_score

from dp_halfspace._arrays import FloatArray
from dp_halfspace._budget import BUDGET
from dp_halfspace._html import align_columns
from dp_halfspace._memory import NUMBER_BYTES, by_blocks, refuse_beyond_memory
from dp_halfspace._params import EPSILON_RANGE, check_values, checked_size, require, resolved_delta
from dp_halfspace._repeated_fits import fits_not_counted
from dp_halfspace._silence import IGNORED_WARNINGS
from dp_halfspace.estimators._outlook import Outlook
from dp_halfspace.estimators.adaptive_margin import AdaptiveMarginClassifier
from dp_halfspace.inspection.effect_displays import SIMULATED_ROWS
from dp_halfspace.privacy.profiles import gdp_epsilon, gdp_mu
from dp_halfspace.privacy.randomness import public_generator

# Degrees of freedom of records, which are multivariate t around the mean of their class: most are
# far from the boundary and a few are not. The j-th direction of a table has variance 1/j, and class
# means differ more in directions of larger variance.
_FREEDOM = 5.0
# Error of plans on public tables (docs/evidence/planning.md). It is part of every spread.
_PLAN_ERROR = 0.01
# `SIMULATED_ROWS` is the number of rows on which an accuracy is measured. It is also the largest
# number of simulated rows for a fit, or this number times that of columns if that is more; instead
# of simulating further rows, the noise is reduced.
_ROWS_PER_COLUMN = 40
# Distances between the class means, in steps of one percent.
_DISTANCES = np.exp(np.arange(-6.0, 8.0, 0.01))


@dataclass(frozen=True, slots=True, repr=False)
class AccuracyPlan:
    """Expected accuracy on fresh records for several values of epsilon; prints as a table.

    Attributes
    ----------
    epsilons, accuracy, spread : tuple of float
        Budgets, mean accuracies, and standard deviations of the accuracy of one fit on one table,
        including the error of the simulation.
    delta : float
        Delta of every fit.
    reference : float or None
        Accuracy without privacy that was assumed; None beside `reference_area`.
    n_samples, n_features, n_classes : int
        Size of the table.
    area, area_spread : tuple of float
        The same of the area under the ROC curve, with more than two classes the mean of the areas
        of one class against the rest.
    reference_area : float or None
        Area without privacy that was assumed.
    """

    epsilons: tuple[float, ...]
    accuracy: tuple[float, ...]
    spread: tuple[float, ...]
    delta: float
    reference: float | None
    n_samples: int
    n_features: int
    n_classes: int
    area: tuple[float, ...]
    area_spread: tuple[float, ...]
    reference_area: float | None = None

    def __repr__(self) -> str:
        rows: list[tuple[str, ...]] = [("epsilon", "accuracy", "spread", "area", "spread")]
        figures = (self.accuracy, self.spread, self.area, self.area_spread)
        for epsilon, *found in zip(self.epsilons, *figures, strict=True):
            rows.append((f"{epsilon:g}", *(f"{number:.3f}" for number in found)))
        if self.reference is not None:
            rows.append(("no privacy", f"{self.reference:.3f}", "assumed", "", ""))
        if self.reference_area is not None:
            rows.append(("no privacy", "", "", f"{self.reference_area:.3f}", "assumed"))
        size = f"{self.n_samples} rows, {self.n_features} columns, {self.n_classes} classes"
        return "\n".join([f"{size}, delta {self.delta:.3g}", *align_columns(rows)])


def outlook(n_samples: int, n_features: int, epsilon: float = 1.0) -> Outlook:
    """Estimate in microseconds how well a fit will rank the records, if no class is rare.

    Every fit that the rule is for makes this estimate and warns if little is to be expected.
    `plan_accuracy` runs simulations, takes seconds, and estimates accuracies for a kind of table,
    also with a rare class: believe it where the two disagree.

    Parameters
    ----------
    n_samples : int
        Number of records, or of persons.
    n_features : int
        Number of columns after encoding: a category counts as one for each of its values.
    epsilon : float, default=1.0
        Budget of the fit, positive.

    Returns
    -------
    Outlook
        Prints as a sentence. ``improvement`` is the expected share of the area under the ROC curve
        above one half that a model without privacy has, ``spread`` its standard deviation;
        ``n_samples_wanted`` and ``epsilon_wanted`` are enough for four fifths.

    Raises
    ------
    ValueError
        If a number is out of range.

    Notes
    -----
    **Privacy.** Reads sizes only, which are public.

    The rule ``n epsilon / (n epsilon + 70 sqrt(d))`` was fitted to real tables of two to ten
    classes; ``docs/evidence/planning.md`` has its errors.

    Examples
    --------
    >>> from dp_halfspace.inspection import outlook
    >>> here = outlook(300, 40, epsilon=0.1)
    >>> here.is_poor, here.n_samples_wanted > 1000
    (True, True)
    """
    require("positive and finite", epsilon=epsilon)
    sizes = checked_size("n_samples", n_samples), checked_size("n_features", n_features)
    return Outlook(*sizes, float(epsilon))


def plan_accuracy(
    n_samples: int,
    n_features: int,
    n_classes: int,
    epsilons: float | Sequence[float] = (0.3, 1.0, 3.0),
    *,
    reference: float = 0.85,
    majority: float | None = None,
    reference_area: float | None = None,
    delta: float | str = "auto",
    estimator: BaseEstimator | None = None,
    n_repeats: int = 12,
    random_state: int | None = None,
) -> AccuracyPlan:
    """Estimate accuracy and area to expect against epsilon, before anything is spent.

    Parameters
    ----------
    n_samples : int
        Number of records of the fit that is planned.
    n_features, n_classes : int
        Number of columns and of labels.
    epsilons : float or sequence of float, default=(0.3, 1.0, 3.0)
        Budgets, positive and finite.
    reference : float, default=0.85
        Accuracy of a linear classifier without privacy, such as ``LinearSVC``, on this kind of
        table: from the literature or a guess, never from the private records. Above
        ``1/n_classes``.
    majority : float or None, default=None
        Public guess of the share of the largest class, at most `reference`. None takes classes of
        equal size, separated so that the accuracy is `reference`.
    reference_area : float or None, default=None
        Area under the ROC curve of a linear classifier without privacy, in (1/2, 1), of two
        classes, in the place of `reference`: the accuracy of a rare class says little.
    delta : float or "auto", default="auto"
        Of every fit; "auto" is 0 if `estimator` has ``delta=0``, otherwise ``1/n_samples**2``.
    estimator : estimator object or None, default=None
        Classifier of this package; None is ``AdaptiveMarginClassifier()``, scales estimated. Its
        budget, label set, seed and ledger are replaced. Simulated columns are centred and of
        variance about one.
    n_repeats : int, default=12
        Tables to average over; at least 2.
    random_state : int or None, default=None
        Seed that makes the plan reproducible; no private data are involved.

    Returns
    -------
    AccuracyPlan
        It prints as a table.

    Raises
    ------
    ValueError
        If a number is out of range, or `estimator` is no classifier of this package.

    Notes
    -----
    **Privacy.** Reads nothing private and spends nothing, provided that sizes and guesses are
    public. Plans are within .02 of the measured accuracy on most of 13 real tables
    (``docs/evidence/planning.md``); ``docs/planning.md`` describes what is simulated.

    If there are many rows, fewer are drawn and the noise is reduced in proportion: accuracy depends
    on the product of the number of rows and mu.

    Examples
    --------
    >>> from dp_halfspace.inspection import plan_accuracy
    >>> plan_accuracy(20_000, 12, 2, [0.1, 1.0], reference=0.85, n_repeats=2, random_state=0)
    20000 rows, 12 columns, 2 classes, delta 2.5e-09
    epsilon     accuracy   spread   area  spread
    0.1            0.8...
    1              0.8...
    no privacy     0.850  assumed
    """
    several = list(epsilons) if np.iterable(epsilons) else [epsilons]
    if not several or not all(isinstance(e, Real) and 0.0 < e <= EPSILON_RANGE[1] for e in several):
        raise ValueError(f"epsilons must be positive and finite numbers, got {epsilons!r}")
    budgets = [float(epsilon) for epsilon in several]
    checked_size("n_repeats", n_repeats, least=2)  # to estimate a spread
    n_samples = checked_size("n_samples", n_samples)
    is_pure = isinstance(delta, str) and getattr(estimator, "delta", None) == 0.0
    check_values({"delta": BUDGET["delta"]}, {"delta": delta}, "plan_accuracy")
    at = 0.0 if is_pure else resolved_delta(delta, n_samples)
    rng = public_generator(random_state, "plan")
    prior = _checked_prior(n_features, n_classes, reference, majority, reference_area)
    goal = reference if reference_area is None else reference_area
    is_area = reference_area is not None
    model = AdaptiveMarginClassifier() if estimator is None else estimator
    names = model.get_params() if isinstance(model, BaseEstimator) else ()
    if not {"epsilon", "classes"} <= {*names}:
        raise ValueError(
            f"estimator must be a classifier of this package, got {type(model).__name__}: of a "
            "search or a pipeline, give the classifier inside"
        )
    seeds = None if random_state is None else rng
    scores = np.zeros((n_repeats, len(budgets), 2))
    for k in range(n_repeats):
        table = _simulate(n_samples, n_features, prior, goal, rng, is_area=is_area)
        scores[k] = [_score(model, table, n_samples, e, at, seeds) for e in budgets]
    accuracy, area = map(tuple, scores.mean(axis=0).T.tolist())
    spread, area_spread = map(tuple, np.hypot(scores.std(axis=0, ddof=1), _PLAN_ERROR).T.tolist())
    stated, sizes = None if is_area else float(reference), (n_samples, int(n_features), len(prior))
    about_area = area, area_spread, reference_area
    return AccuracyPlan(tuple(budgets), accuracy, spread, at, stated, *sizes, *about_area)


# Rows and labels for training, and for scoring.
_Table = tuple[FloatArray, NDArray[np.intp], FloatArray, NDArray[np.intp]]


def _checked_prior(
    n_features: int, n_classes: int, reference: float, majority: float | None, area: float | None
) -> FloatArray:
    """Return the shares of the classes; sizes and accuracies that are impossible are refused."""
    d, k = checked_size("n_features", n_features), checked_size("n_classes", n_classes)
    if k < 2:
        raise ValueError(f"a simulated table has 2 classes or more, got {k}")
    n_rows = max(SIMULATED_ROWS, _ROWS_PER_COLUMN * d) + SIMULATED_ROWS
    # Scores, their steps in blocks, and the inner products of the means of all pairs; rows, their
    # steps, and those of a fit.
    n_bytes = 2.0 * NUMBER_BYTES * ((n_rows + k) * k + 2.0 * n_rows * d)
    table = f"a simulated table of {d} columns and {k} classes"
    refuse_beyond_memory(n_bytes, table, "plan for fewer of them")
    given = {"reference": reference, "majority": majority, "reference_area": area}
    require("at least 0", **{name: value for name, value in given.items() if value is not None})
    share = 1.0 / k if majority is None else float(majority)
    # Within two errors of a plan, an accuracy determines no ranking: with a difference of 0, the
    # area on simulated tables varies by .15.
    least = 2.0 * _PLAN_ERROR
    if not 1.0 / k <= share < 1.0:
        raise ValueError(f"majority must be in [1/n_classes, 1), got {majority!r}")
    if area is not None:
        if k != 2 or not 0.5 < area < 1.0:
            raise ValueError(f"reference_area must be in (1/2, 1), of two classes, got {area!r}")
    elif not share <= reference <= 1.0 or reference <= 1.0 / k:
        raise ValueError(
            "reference must be above 1/n_classes, at least majority, at most 1, got "
            f"{reference!r}: for two classes of which one is rare state reference_area instead"
        )
    elif majority is not None and reference - share < least:
        raise ValueError(
            f"reference={reference!r} is less than {least:g} above majority={majority!r}, "
            "so it does not say how well the classes can be ranked: state reference_area instead"
        )
    return np.array([share, *np.full(k - 1, (1.0 - share) / (k - 1))])


def _simulate(
    n_samples: int,
    d: int,
    prior: FloatArray,
    goal: float,
    rng: np.random.Generator,
    *,
    is_area: bool,
) -> _Table:
    """Draw a table on which the best linear scores have the accuracy, or area, that is the goal."""
    k = len(prior)
    n = min(n_samples, max(SIMULATED_ROWS, _ROWS_PER_COLUMN * d))
    deviation = np.sqrt(1.0 / np.arange(1, d + 1))
    deviation *= math.sqrt(d) / np.linalg.norm(deviation)
    means = rng.normal(size=(d, k)) * deviation[:, None]
    if k == 2:
        means[:, 1] = -means[:, 0]
    means *= math.sqrt(k) / np.linalg.norm(means)
    y = rng.choice(k, size=n + SIMULATED_ROWS, p=prior)
    rows = rng.normal(size=(len(y), d))
    rows *= np.sqrt(_FREEDOM / rng.chisquare(_FREEDOM, size=(len(y), 1)))
    noise, inner = rows @ means, means.T @ means

    def quality(distance: float) -> float:
        """Return the accuracy, or the area, for means at a multiple of their distance."""

        def seen(index: NDArray[np.intp]) -> NDArray[Any]:
            apart = inner[y[index]] - 0.5 * np.diag(inner)
            scores = distance * noise[index] + distance**2 * apart + np.log(prior)
            return np.asarray(scores[:, 1] - scores[:, 0] if is_area else scores.argmax(axis=1))

        found = by_blocks(seen, np.arange(len(y)), 5 * NUMBER_BYTES * k)
        return _area(found, y, 2) if is_area else float((found == y).mean())

    enough = bisect_left(_DISTANCES, goal, hi=len(_DISTANCES) - 1, key=quality)
    rows += _DISTANCES[enough] * means.T[y]
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    rows = (rows * deviation) @ turn
    return rows[:n], y[:n], rows[n:], y[n:]


def _score(  # noqa: PLR0917 - a fit, and what its noise is scaled by
    model: Any, table: _Table, n_samples: int, epsilon: float, delta: float, seeds: Any
) -> tuple[float, float]:
    """Fit once, with the relative noise of a fit to `n_samples` rows.

    Returns accuracy and area.
    """
    X, y, X_test, y_test = table
    times = n_samples / len(y)
    if times > 1.0:
        # The noise of sums depends on n mu. With so many rows, a choice from a list, whose noise
        # depends on n epsilon, has a small epsilon, to which mu is nearly in proportion.
        scaled = times * epsilon
        if delta > 0.0:
            scaled = gdp_epsilon(times * gdp_mu(epsilon, delta), delta)
        epsilon = min(scaled, EPSILON_RANGE[1])
    classes = np.union1d(y, y_test)
    budget = {"epsilon": epsilon, "delta": delta, "classes": classes}
    seed = None if seeds is None else int(seeds.integers(2**31))
    fit = clone(model).set_params(**budget, ledger=None, verbose=0, random_state=seed)
    # Seeds are allowed here: nothing private is released.
    with fits_not_counted(), IGNORED_WARNINGS:
        fit.fit(X, y)
        area = _area(fit.decision_function(X_test), np.searchsorted(classes, y_test), len(classes))
        return float(fit.score(X_test, y_test)), area


def _area(scores: NDArray[np.float64], codes: NDArray[np.intp], n_classes: int) -> float:
    """Return the area under the ROC curve; with several classes, the mean of one against the rest.

    Classes of no row or of every row are left out; if no others remain, the result is NaN.
    """
    columns = scores.reshape(len(codes), -1)
    sizes = np.bincount(codes, minlength=n_classes)
    classes = [1] if n_classes == 2 else range(n_classes)
    there, last = [k for k in classes if 0 < sizes[k] < len(codes)], columns.shape[1] - 1
    areas = [roc_auc_score(codes == k, columns[:, min(k, last)]) for k in there]
    return float(np.mean(areas)) if areas else math.nan
