"""Privacy for labels alone: a logistic model of public features.

Feature maps in this module read all features and no label. This is allowed under label adjacency
only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh
from sklearn.preprocessing import StandardScaler

from dp_halfspace._memory import NUMBER_BYTES, by_blocks
from dp_halfspace._params import AUTO, NUMBER_RANGE, stated
from dp_halfspace._rounding import EPS, TINY
from dp_halfspace._sklearn_compat import Interval, StrOptions
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine.moment import WIDEST
from dp_halfspace.engine.plan import Fitted, PublicFacts, WrappedPlan
from dp_halfspace.engine.scales import ColumnScales, in_column_scales
from dp_halfspace.estimators.base import PrivateClassifier, PrivateLinearClassifier
from dp_halfspace.estimators.kernel import COLUMN_TERMS, n_terms
from dp_halfspace.papers import KNOWN_MARGIN
from dp_halfspace.papers.labels import (
    LabelSearch,
    LabelStatistic,
    log_odds_shift,
    plan_labels,
    shift_without_ridge,
)
from dp_halfspace.papers.staged_search import MOST_CANDIDATES, MOST_DIMENSIONS
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.door import Door
from dp_halfspace.privacy.randomness import public_generator
from dp_halfspace.projection.features import AdditiveMap, draw_additive
from dp_halfspace.projection.linear import RademacherMap, draw_rademacher, to_dense
from dp_halfspace.rows.blocks import LONGEST, FloatArray, clip_scales, scale_rows
from dp_halfspace.rows.rows import Rows

# Number of records from which scales and moments are computed.
_FITTED_ROWS = 5000
# More columns have no further features, and are randomly projected to so many first.
_MOST_LINEAR = 1024
# Share of the entries of a column at each end that do not tell its range.
_FEW = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class LabelFeatures:
    """The fitted map from rows to normalised rows.

    Rows are clipped to `data_norm`. The columns are then centred and divided by the `scales`, or
    all entries by one number. The `feature_map` follows: columns, curves and Fourier features, or
    a random projection; None stands for the columns themselves. The `transform` of shape (p, k)
    contains scaled principal directions, and `constant` is the value of a constant column.
    """

    data_norm: float | None
    scales: ColumnScales | float
    feature_map: AdditiveMap | RademacherMap | None
    mean: FloatArray
    transform: FloatArray
    constant: float | None

    @property
    def n_components(self) -> int:
        """Number of columns of the normalised rows."""
        return int(self.transform.shape[1]) + (self.constant is not None)

    def rows(self, X: Any) -> Rows:
        """Return the normalised rows of `X`; without a constant column a row may be zero."""

        def reduced(part: Any) -> FloatArray:
            scaled = _in_scales(_clip_rows(part, self.data_norm), self.scales)
            return np.asarray((_features(scaled, self.feature_map) - self.mean) @ self.transform)

        # The features, and what they are computed from.
        features = by_blocks(reduced, X, 2 * NUMBER_BYTES * len(self.mean))
        return Rows(features, None, self.constant).normalised()


def fit_label_features(
    X: Any,
    rng: np.random.Generator,
    *,
    kernel: str,
    n_fourier: int,
    n_components: int | None,
    whitening: float,
    data_norm: float | None,
    constant: float | None,
) -> LabelFeatures:
    """Fit the map to features, which are PUBLIC, with public randomness.

    `constant` is the value of the constant column, relative to the root mean square of the rows.
    """
    sample, d = X, X.shape[1]
    if X.shape[0] > _FITTED_ROWS:
        # Rows are drawn at random, because evenly spaced rows of a series may all be at the same
        # phase.
        sample = X[np.sort(rng.choice(X.shape[0], _FITTED_ROWS, replace=False))]
    sample = _clip_rows(sample, data_norm)
    feature_map: AdditiveMap | RademacherMap | None = None
    terms = n_terms(d, WIDEST, COLUMN_TERMS)
    # Sparse rows of many columns are mostly of text, whose columns have a common unit.
    if kernel == "auto" and d <= _MOST_LINEAR and (terms > 1 or not sparse.issparse(X)):
        sample = to_dense(sample)
        scales: ColumnScales | float = _standard_scales(sample)
        feature_map = draw_additive(d, terms, n_fourier, rng)
    else:
        scales = _largest_entry(sample)
        feature_map = draw_rademacher(d, _MOST_LINEAR, rng) if d > _MOST_LINEAR else None
    sample = _in_scales(sample, scales)
    mean, transform, size = _principal(_features(sample, feature_map), n_components, whitening)
    value = None if constant is None else constant * size
    return LabelFeatures(data_norm, scales, feature_map, mean, transform, value)


def _clip_rows(X: Any, data_norm: float | None) -> Any:
    """Scale rows down to a norm, in float64."""
    if data_norm is None:
        return X.astype(np.float64)
    return scale_rows(X, clip_scales(X, data_norm))


def _standard_scales(X: FloatArray) -> ColumnScales:
    """Return mean and standard deviation of every column, or the size of a constant one.

    Few entries far from all others count as the ends of a range, twice as wide as that of most.
    """
    # Squares of relative entries do not overflow.
    peaks = np.abs(X).max(axis=0, initial=0.0)
    peaks[peaks == 0.0] = 1.0
    relative = X / peaks
    low, high = np.quantile(relative, [_FEW, 1.0 - _FEW], axis=0)
    reach = np.where(high > low, (high - low) / 2.0, np.inf)
    found = StandardScaler().fit(np.clip(relative, low - reach, high + reach))
    return ColumnScales(found.mean_ * peaks, found.scale_ * peaks)


def _in_scales(X: Any, scales: ColumnScales | float) -> Any:
    """Return columns in their scales, or rows divided by a number; nothing overflows."""
    if isinstance(scales, ColumnScales):
        return in_column_scales(to_dense(X), scales)
    values = X.data if sparse.issparse(X) else X
    values /= scales
    np.clip(values, -LONGEST, LONGEST, out=values)
    return X


def _largest_entry(X: Any) -> float:
    """Return the largest absolute entry, or 1 for rows of zeros."""
    values = X.data if sparse.issparse(X) else X
    largest = float(np.abs(values).max(initial=0.0))
    return max(largest, TINY) if largest > 0 else 1.0


def _features(X: Any, feature_map: AdditiveMap | RademacherMap | None) -> FloatArray:
    """Return curves and Fourier features of columns, projections, or the columns themselves."""
    if feature_map is None:
        return np.asarray(to_dense(X))
    if isinstance(feature_map, RademacherMap):
        return feature_map.apply(X)
    return feature_map.apply(X / math.sqrt(X.shape[1])).astype(np.float64)


def _principal(
    features: FloatArray, n_components: int | None, whitening: float
) -> tuple[FloatArray, FloatArray, float]:
    """Return mean, scaled principal directions, and the root mean square of the images."""
    mean = features.sum(axis=0) / len(features)
    keep = len(mean) if n_components is None else n_components
    values, vectors = _eigenvectors(features - mean, min(keep, len(mean)))
    # The sign is fixed, because it depends on the library otherwise.
    peaks = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    # Smaller variances are those of rounding errors, and their directions are dropped.
    known = values > max(max(features.shape) * EPS * float(values[0]), TINY)
    powers = np.where(known, np.where(known, values, 1.0) ** (-whitening / 2.0), 0.0)
    variances = np.where(known, values * powers**2, 0.0)
    size = math.sqrt(float(variances.sum()))
    return mean, vectors * np.where(peaks < 0, -powers, powers), size if size > 0 else 1.0


def _eigenvectors(rows: FloatArray, keep: int) -> tuple[FloatArray, FloatArray]:
    """Return the largest variances of centred rows in decreasing order, and their directions."""
    n_rows, size = rows.shape
    if n_rows >= size:
        values, vectors = eigh(rows.T @ rows / n_rows, subset_by_index=[size - keep, size - 1])
        return values[::-1], vectors[:, ::-1]
    # With fewer rows than columns, the smaller matrix has the same variances.
    keep = min(keep, n_rows)
    values, images = eigh(rows @ rows.T / n_rows, subset_by_index=[n_rows - keep, n_rows - 1])
    values, vectors = values[::-1], rows.T @ images[:, ::-1]
    lengths = np.sqrt(np.einsum("ij,ij->j", vectors, vectors))
    return values, vectors / np.where(lengths > 0, lengths, 1.0)


# Value of the constant column of a sum relative to the root mean square of the public rows; that of
# the net is as large as the rows.
_CONSTANT = 0.3
# Number of components for each unit of the square root of n epsilon.
_PER_ROOT = 0.5
# Largest number of components.
_MOST_COMPONENTS = 150


@dataclass(frozen=True, slots=True)
class _LabelFit(WrappedPlan):
    """A fit of private labels to rows that are computed from public features.

    With `frees_constant` the scores are shifted by what a chosen ridge takes from the constant.
    """

    plan: LabelStatistic | LabelSearch
    mechanism: str
    features: LabelFeatures
    rows: Rows
    frees_constant: bool

    @property
    def public(self) -> Mapping[str, Any]:
        """Public facts for the record."""
        return {"mechanism": self.mechanism, **self.plan.public}

    def run(self, door: Door) -> Fitted:
        """Run the plan on the public rows."""
        weights = np.array(self.facts.class_weights)
        released = self.plan.run(door.map(lambda data: data.class_indices), self.rows, weights)
        alpha, intercepts = self.plan.public["alpha"], log_odds_shift(weights)
        if self.frees_constant and isinstance(self.plan, LabelStatistic):
            how = self.rows, released, self.plan.ridge, self.plan.mechanism
            intercepts = intercepts + shift_without_ridge(*how)
        return Fitted(
            np.ascontiguousarray(released),
            intercepts,
            data_norm=self.facts.data_norm,
            attributes={
                "feature_map_": self.features,
                "n_components_": self.features.n_components,
                **({} if alpha is None else {"alpha_": alpha}),
            },
        )


@dataclass(kw_only=True, eq=False, repr=False)
class LabelPrivateClassifier(PrivateLinearClassifier):
    r"""Classifier that protects the LABELS only; the features are treated as public.

    Two data sets are neighbours if they have the same features and differ in the label of
    one record (adjacency "replace-one-label"). NEVER use it if features are sensitive: the
    fitted model reveals features of single records. Every other class of this package protects
    whole records; this one does not.

    Columns are standardised and turned into curves and kernel features, which are reduced to
    principal components, partly whitened and scaled to norm one, none of which costs budget. Then
    one sum, :math:`s=\frac12\sum_iy_ix_i`, is released with noise; the logistic loss depends on
    the labels only through this sum.

    Parameters
    ----------
    mechanism : {"statistic", "randomized_response", "net"}, default="statistic"
        ``"statistic"`` adds noise to the sum. ``"randomized_response"`` replaces labels at random
        and corrects the sum for it; this is pure DP for every `delta`, and only the owners of the
        labels need to see them. ``"net"`` chooses among random linear classifiers by their errors,
        with the exponential mechanism; it has no probabilities.
    kernel : {"auto", "linear"}, default="auto"
        ``"auto"`` takes standardised columns, two cosines of each of up to 170 columns (one of up
        to 256), and random Fourier features of all columns. ``"linear"`` takes the columns as they
        are, and so does ``"auto"`` for more than 1024 columns, and sparse rows of more than 256.
    n_fourier : int, default=1500
        Number of random Fourier features; an odd number is raised by one.
    n_components : int, "auto" or None, default="auto"
        Number of principal components that are kept. ``"auto"`` is ``.5 sqrt(n epsilon)``, at
        most 150, for ``"net"`` at most 12; None keeps all.
    whitening : float, default=0.75
        Degree of whitening in [0, 1]: 0 leaves the principal components as they are, 1 divides them
        by their standard deviation.
    alpha : float or "auto", default="auto"
        Strength of the ridge penalty, on the scale of the sum of losses of normalised rows.
        ``"auto"`` balances it against the noise, and shifts the scores so that the shares of the
        classes are those that were released. Ignored by ``"net"``.
    n_candidates : int, default=2000
        Number of candidates of ``"net"`` in each stage; at most 10^6.
    n_stages : int or "auto", default="auto"
        Number of exponential mechanisms of ``"net"`` that share the budget; each but the first
        looks around the classifier that was chosen before. 1 is the published algorithm. ``"auto"``
        is one for every 200 labels times epsilon, at most 8.
    margin : float or None, default=None
        For ``"net"`` with two classes: a PUBLIC margin of normalised rows, in (0, 1]. Records with
        less than half of it count as errors, as published. None counts errors.
    epsilon : float, default=1.0
        Budget of one fit, for a single label, in [1e-9, 1e6]; infinity means no noise and no
        guarantee.
    delta : float or "auto", default="auto"
        ``"auto"`` is ``min(1/n^2, 1/4)``; 0 requests pure DP.
    data_norm : float or None, default=None
        Longer rows are scaled down to this norm. None leaves the rows as they are; privacy does not
        depend on their norms.
    fit_intercept : bool, default=True
        Whether to append a constant column.
    intercept_scaling : float, default=1.0
        Size of the constant column, relative to the default.
    classes : array-like of labels or None, default=None
        PUBLIC label set. None declares the labels in `y` to be public.
    class_weight : dict or None, default=None
        PUBLIC weight of each label in [1e-50, 1e50]. Scores are shifted by its logarithm, which
        uses no budget; ``"net"`` also weights errors. ``"balanced"`` is refused.
    random_state : int or None, default=None
        None draws the noise from the operating system. An int repeats the noise on any machine, and
        raises `PrivacyWarning`: anyone who knows it can subtract the noise.
    ledger : object with a method ``charge(record)``, path or None, default=None
        Privacy ledger that is charged before any noise is drawn. A ledger of whole records refuses
        this class.
    verbose : int, default=0
        If above 0, `fit` prints its public privacy record before it releases anything, and a line
        when it has finished. Nothing that is printed depends on private data.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The public label set.
    coef_ : ndarray of shape (1, n_columns) or (n_classes, n_columns)
        Released coefficients of the normalised rows, of which the last column is constant.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Shift by the logarithms of the class weights, and with ``alpha="auto"`` by what the ridge
        penalty takes from the constant column.
    feature_map_ : LabelFeatures
        The map from rows to normalised feature rows. It is computed from the features of the
        training records and reveals them.
    n_components_ : int
        Number of columns of the normalised rows.
    alpha_ : float
        The ridge penalty that was used; not with ``"net"``.
    data_norm_ : float
        The `data_norm` of the fit, infinite for None.
    privacy_ : PrivacyRecord
        What was spent, on what, and what was assumed public; its adjacency is
        "replace-one-label".
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, when `X` had them.

    See Also
    --------
    PrivateKernelClassifier : Protects whole records, features included.

    Notes
    -----
    **Privacy.** ``fit`` is (epsilon, delta)-differentially private under replace-one-label
    adjacency ONLY. Public: all features, the number of rows, the label set and every parameter.
    Private: the label of each record. A label that the features determine is not protected.

    References
    ----------
    R. Bassily, M. Mohri and A. T. Suresh, "Differentially Private Learning with Margin
    Guarantees", 2022, section 6, of which ``"net"`` is a computable version. Proofs:
    ``docs/proofs/label_privacy.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace import LabelPrivateClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(2000, 2))
    >>> y = (X[:, 0] * X[:, 1] > 0).astype(int)
    >>> model = LabelPrivateClassifier(classes=[0, 1]).fit(X, y)
    >>> bool(model.score(X, y) > 0.9), model.privacy_.adjacency
    (True, 'replace-one-label')
    """

    mechanism: str = "statistic"
    kernel: str = "auto"
    n_fourier: int = 1500
    n_components: int | str | None = "auto"
    whitening: float = 0.75
    alpha: float | str = "auto"
    n_candidates: int = 2000
    n_stages: int | str = "auto"
    margin: float | None = None

    _adjacency: ClassVar[str] = "replace-one-label"
    _estimates_scales: ClassVar[bool] = False

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateLinearClassifier._parameter_constraints,
        "mechanism": [StrOptions({"statistic", "randomized_response", "net"})],
        "kernel": [StrOptions({"auto", "linear"})],
        "n_fourier": [Interval(Integral, 2, 10_000, closed="both")],
        "n_components": [Interval(Integral, 1, None, closed="left"), AUTO, None],
        "whitening": [Interval(Real, 0, 1, closed="both")],
        "alpha": [Interval(Real, 1e-9, NUMBER_RANGE[1], closed="both"), AUTO],
        "n_candidates": [Interval(Integral, 1, MOST_CANDIDATES, closed="both")],
        "n_stages": [Interval(Integral, 1, 64, closed="both"), AUTO],
        "margin": [KNOWN_MARGIN, None],
    }

    def _facts(self, data: TrainingData) -> PublicFacts:
        norm = math.inf if self.data_norm is None else float(self.data_norm)
        return replace(super()._facts(data), data_norm=norm, features=data.X)

    def _plan(self, facts: PublicFacts, budget: Budget) -> _LabelFit:
        """Compute the public features and fix every number of a fit."""
        facts.refuse_unsupported(())
        rng = public_generator(self.random_state, "features")
        seed = int(rng.integers(2**63))
        is_net, size = self.mechanism == "net", self.n_components
        if size == "auto":
            root = math.sqrt(facts.n_privacy_units * min(budget.epsilon, 1e6))
            most = MOST_DIMENSIONS if is_net else _MOST_COMPONENTS
            size = round(min(max(_PER_ROOT * root, 1), most))
        relative = 1.0 if is_net else _CONSTANT
        features = fit_label_features(
            facts.features,
            rng,
            kernel=self.kernel,
            n_fourier=int(self.n_fourier) + int(self.n_fourier) % 2,
            n_components=None if size is None else int(size),
            whitening=float(self.whitening),
            data_norm=None if self.data_norm is None else float(self.data_norm),
            constant=relative * float(self.intercept_scaling) if self.fit_intercept else None,
        )
        rows = features.rows(facts.features)
        plan = plan_labels(
            self.mechanism,
            rows,
            facts.n_classes,
            budget,
            ridge=stated(self.alpha, float),
            n_candidates=int(self.n_candidates),
            n_stages=stated(self.n_stages, int),
            seed=seed,
            margin=self._net_margin(facts.n_classes),
        )
        frees_constant = self.fit_intercept and self.alpha == "auto"
        return _LabelFit(facts, plan, self.mechanism, features, rows, frees_constant)

    def _n_columns(self, data: TrainingData | None) -> None:
        """Return None: no rule of an outlook was measured for this class."""

    @property
    def _is_binary(self) -> bool:
        return self.margin is not None

    def _net_margin(self, n_classes: int) -> float | None:
        """Return the margin that records must have, or refuse it if it has no meaning."""
        if self.margin is None:
            return None
        if self.mechanism != "net":
            raise ValueError("margin is for mechanism='net': leave it None")
        if n_classes > 2:
            raise ValueError(
                "Only binary classification is supported with a margin: leave margin=None"
            )
        return float(self.margin)

    def _margins(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(self.feature_map_.rows(X).scores(self.coef_.T))

    def _why_no_probabilities(self) -> str:
        is_net = self.mechanism == "net"
        return "probabilities are not available with mechanism='net'" if is_net else ""

    def _public_parameters(self, data: TrainingData) -> dict[str, Any]:
        """List the facts that the guarantee treats as public: all features."""
        features = "all of them: only labels are protected"
        return {"features": features, **PrivateClassifier._public_parameters(self, data)}
