"""Column scalers, with scales that are estimated privately, already released, or public."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from dp_halfspace._budget import BUDGET, SharedLedger, warn_of_weak_budget
from dp_halfspace._params import fit_context, require, resolved_delta, storable
from dp_halfspace._sklearn_compat import Interval
from dp_halfspace.data.chunked_data import by_chunks, checked_chunks
from dp_halfspace.data.owners import sort_by_person
from dp_halfspace.data.validation import check_features, floats_or_nan, is_chunked, stand_in
from dp_halfspace.engine.moment import RowClip
from dp_halfspace.engine.scales import (
    CLIP,
    Columns,
    ColumnScales,
    ColumnScalesPlan,
    in_column_scales,
    plan_column_scales,
)
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.door import Door
from dp_halfspace.privacy.record import PrivacyRecord
from dp_halfspace.rows.directions import asinh_cells

if TYPE_CHECKING:
    from typing_extensions import Self


def check_dense(estimator: BaseEstimator, X: Any, *, reset: bool, hides_rows: bool = False) -> Any:
    """Return `X` as a dense array, or chunks, of real numbers with missing entries allowed."""
    if is_chunked(X):
        return checked_chunks(estimator, X, reset=reset, allow_missing=True)
    _refuse_sparse(X)
    checked = check_features(estimator, X, reset=reset, allow_missing=True, hides_rows=hides_rows)
    # A data frame whose columns are all stored sparsely becomes a sparse matrix.
    _refuse_sparse(checked)
    return np.asarray(checked)


def _refuse_sparse(X: Any) -> None:
    """Refuse sparse rows, which would not stay sparse."""
    if sparse.issparse(X):
        raise ValueError(
            "X is a sparse matrix, or a data frame of sparse columns, and column scales would make "
            "it dense. Pass unscaled sparse rows to an estimator with a public data_norm"
        )


class DenseTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """A transformer of dense columns with missing entries allowed."""

    @abstractmethod
    def in_column_scales(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Transform columns that are already checked."""

    @by_chunks
    def transform(self, X: Any) -> NDArray[np.float64]:
        """Centre, scale and clip the columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Real numbers; NaN stands for a missing one.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Clipped; 0 where an entry is missing.
        """
        check_is_fitted(self, "n_features_in_")
        return self.in_column_scales(check_dense(self, X, reset=False))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class ColumnScaler(DenseTransformer):
    """A transformer that has a centre, a width and a largest value for every column."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check that there is a scale for every column; no value is read.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Real numbers; NaN stands for a missing one.
        y : None
            Ignored.

        Returns
        -------
        transformer
            The transformer itself.
        """
        # The scaler itself is unchanged if the columns are refused.
        other = clone(self)
        n_columns = check_dense(other, X, reset=True).shape[1]
        if n_columns != len(other._scales()[0].center):
            raise ValueError(f"X has {n_columns} columns, but center has another number of entries")
        self._take_columns(other)
        return self

    def _take_columns(self, other: Any) -> None:
        """Take over what another estimator knows of the columns."""
        self.__dict__.pop("feature_names_in_", None)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(other, name):
                setattr(self, name, getattr(other, name))

    def __getstate__(self) -> dict[str, Any]:
        return {name: storable(value) for name, value in super().__getstate__().items()}

    @abstractmethod
    def _scales(self) -> tuple[ColumnScales, float]:
        """Return centre and width of each column, and the largest absolute value of a result."""

    def _typical(self) -> ColumnScales:
        """Return the centre of each column, and about its standard deviation."""
        return self._scales()[0]

    def in_column_scales(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Centre, scale and clip columns that are already checked; see `transform`."""
        _refuse_sparse(X)
        return np.asarray(in_column_scales(X, *self._scales()))


@dataclass(eq=False, repr=False)
class ReleasedScaler(ColumnScaler):
    """Scale columns by given numbers: ``clip((x - center) / scale, -clip, clip)``.

    Long rows are shortened after it if there is a `row_clip`. The attribute ``scaler_`` of a
    classifier that estimates column scales is of this class.

    Parameters
    ----------
    center : array-like of shape (n_features,)
        PUBLIC or released centre of each column.
    scale : array-like of shape (n_features,)
        PUBLIC or released width of each column, positive.
    clip : float, default=4.0
        Largest absolute value of a column in its scale.
    row_clip : RowClip or None, default=None
        Released limit of the length of rows, in the scaler of a classifier that centred and
        whitened its rows: a longer row is shortened towards the mean, nearly as in the fit.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, when `X` had them.

    See Also
    --------
    PrivateScaler : Estimates these numbers within a privacy budget.
    PublicScaler : Computes them from the documented range of every column.

    Notes
    -----
    **Privacy.** Stateless: each row of the result is a function of the same row and of the
    parameters, which are assumed to be public or released. Source: this project,
    ``docs/proofs/column_scales.md``, section 4.

    Examples
    --------
    >>> from dp_halfspace.preprocessing import ReleasedScaler
    >>> ReleasedScaler([50.0, 0.0], [10.0, 2.0]).fit_transform([[60.0, 1e9], [45.0, float("nan")]])
    array([[ 1. ,  4. ],
           [-0.5,  0. ]])
    """

    center: ArrayLike
    scale: ArrayLike
    clip: float = CLIP
    row_clip: RowClip | None = None

    def in_column_scales(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Centre, scale and clip columns that are already checked, then shorten long rows."""
        rows = super().in_column_scales(X)
        if self.row_clip is not None:
            self.row_clip.shorten(rows)
        return rows

    def _typical(self) -> ColumnScales:
        """Return what the second moment of a fit shows of clipped columns, if there was one.

        The scale of a rare flag may be several of its standard deviations.
        """
        scales = super()._typical()
        if self.row_clip is None:
            return scales
        center = scales.center + scales.scale * self.row_clip.mean
        return ColumnScales(center, scales.scale * self.row_clip.deviations)

    def _scales(self) -> tuple[ColumnScales, float]:
        require("positive", clip=self.clip)
        center, scale = map(floats_or_nan, (self.center, self.scale))
        for name, numbers in (("center", center), ("scale", scale)):
            if numbers.ndim != 1 or not np.isfinite(numbers).all():
                raise ValueError(f"{name} must be a list of finite numbers, one for each column")
        if center.shape != scale.shape or not (scale > 0).all():
            raise ValueError(
                "center and scale must have one number for each column; scale is positive"
            )
        return ColumnScales(center, scale), float(self.clip)


@dataclass(eq=False, repr=False)
class PublicScaler(ColumnScaler):
    """Map columns from their PUBLIC ranges to [-1, 1], and clip values outside.

    Parameters
    ----------
    ranges : array-like of shape (n_features, 2) or dict
        PUBLIC lowest and highest value of each column, from the meaning of the column and never
        from the data. A dict maps column names, or positions, to ``(low, high)``.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, when `X` had them.

    See Also
    --------
    PrivateScaler : Estimates the scales of columns whose ranges are not known.

    Notes
    -----
    **Privacy.** Stateless: each row of the result is a function of the same row and of the public
    ranges, so it can precede any private estimator and uses no budget. A wrong range affects the
    accuracy and not the privacy.

    Examples
    --------
    >>> from dp_halfspace.preprocessing import PublicScaler
    >>> PublicScaler([(0, 120), (36, 42)]).fit_transform([[30, 39.0], [90, 50.0]])
    array([[-0.5,  0. ],
           [ 0.5,  1. ]])
    """

    ranges: Any

    def _scales(self) -> tuple[ColumnScales, float]:
        ranges = self.ranges
        if isinstance(ranges, Mapping):
            names = getattr(self, "feature_names_in_", range(self.n_features_in_))
            missing = [str(name) for name in names if name not in ranges]
            if missing:
                raise ValueError(f"ranges has no (low, high) for column {missing[0]!r}")
            ranges = [ranges[name] for name in names]
        ends, n_features = floats_or_nan(ranges), self.n_features_in_
        is_finite = ends.shape == (n_features, 2) and bool(np.isfinite(ends).all())
        if not is_finite or not (ends[:, 0] < ends[:, 1]).all():
            raise ValueError(
                f"ranges must be a finite pair low < high for each of the {n_features} columns"
            )
        low, high = ends.T
        # Halve first, so that the sum of two large ends does not overflow.
        return ColumnScales(low / 2.0 + high / 2.0, high / 2.0 - low / 2.0), 1.0


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateScaler(SharedLedger, ColumnScaler):
    """Estimate the centre and the width of every column privately, and scale the columns by them.

    Columns may have any units: ages, counts of cells, codes, years, 0 and 1. A noisy histogram of
    the binary exponents of each column estimates its width. Columns whose width is small compared
    with their distance from zero get a second histogram, and two noisy moments correct the result.
    A classifier with ``data_norm=None`` does the same within its own budget, which needs less
    budget than two fits.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of one call of ``fit``, in [1e-9, 1e6], or infinite for no noise and no guarantee.
    delta : float or "auto", default="auto"
        ``"auto"`` is ``min(1/n^2, 1/4)``; 0 requests pure DP.
    clip : float, default=4.0
        Values further than this many widths from the centre are clipped.
    random_state : int or None, default=None
        None draws the noise from the operating system. An int repeats the noise on any machine, and
        raises `PrivacyWarning`: anyone who knows it can subtract the noise.
    ledger : object with a method ``charge(record)``, path or None, default=None
        Privacy ledger that is charged before any noise is drawn.

    Attributes
    ----------
    center_ : ndarray of shape (n_features,)
        Released centres.
    scale_ : ndarray of shape (n_features,)
        Released widths, positive: about a standard deviation.
    privacy_ : PrivacyRecord
        What was spent, on which releases, and what was assumed to be public.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, when `X` had them.

    See Also
    --------
    PublicScaler : For columns whose ranges are known.

    Notes
    -----
    **Privacy.** ``fit`` is (epsilon, delta)-differentially private under replace-one adjacency,
    of a record or, with `groups`, of a person with all rows. It is mu-Gaussian DP or, with
    ``delta=0``, pure DP. Public: the number of rows (of people instead, with `groups`), the columns
    and every parameter. Private: everything else, including which values are missing. Source: this
    project, ``docs/proofs/column_scales.md``, Theorems 3 and 4, ``persons.md``; no paper.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.preprocessing import PrivateScaler
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.normal(55, 12, 5000), rng.normal(260_000, 90_000, 5000)])
    >>> scaler = PrivateScaler(epsilon=1.0).fit(X)
    >>> bool(abs(scaler.transform(X)).mean() < 2)
    True
    """

    epsilon: float = 1.0
    delta: float | str = "auto"
    clip: float = CLIP
    random_state: int | None = None
    ledger: Any = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BUDGET,
        "clip": [Interval(Real, 0.1, 1e6, closed="both")],
    }

    @fit_context
    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> PrivateScaler:
        """Estimate the column scales within the budget.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Real numbers; NaN stands for a missing one.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,) or None, default=None
            The person to whom each row belongs: texts, numbers or dates. The unit of privacy is
            then a person with all rows. The number of people is public, the number of rows of each
            person is not.

        Returns
        -------
        PrivateScaler
            The fitted transformer itself.

        Raises
        ------
        ValueError, BudgetError
            If parameters, data or budget are refused. Nothing was spent or changed.
        """
        probe = stand_in(self)
        data = self._training_data(X, y, groups, probe)
        plan, record = self._planned(data)
        warn_of_weak_budget(record)
        permit = self._permit_for(record, data, self.ledger, X)

        scales = plan.run(Door(data, permit))

        self._take_columns(probe)
        self.center_, self.scale_, self.privacy_ = scales.center, scales.scale, record
        return self

    @fit_context
    def plan(self, X: Any, y: Any = None, *, groups: Any = None) -> PrivacyRecord:
        """Return what ``fit`` would spend; no noise is drawn and nothing is charged.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Only its shape matters, and that it is valid.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,) or None, default=None
            As for ``fit``; only the number of people matters.

        Returns
        -------
        PrivacyRecord
            The record that the fit would have.

        Notes
        -----
        **Privacy.** A function of public quantities, so calling it uses no budget.
        """
        return self._plans(X, y, groups)(self.epsilon)

    def _training_data(
        self, X: Any, y: Any = None, groups: Any = None, probe: Any = None
    ) -> Columns:
        """Validate the rows, and sort them by person; `probe` gets what is known of the columns."""
        X = check_dense(probe or stand_in(self), X, reset=True, hides_rows=groups is not None)
        X, people, _ = sort_by_person(groups, X)
        return Columns(X, people)

    def _planned(self, data: Columns) -> tuple[ColumnScalesPlan, PrivacyRecord]:
        """Fix every public number of a fit."""
        X, people = data
        n_samples, n_features = X.shape
        n_samples = n_samples if people is None else len(people)
        delta = resolved_delta(self.delta, n_samples)
        budget = Budget.of(float(self.epsilon), delta)
        if budget.is_pure and people is not None:
            raise ValueError("groups needs delta > 0: the noise of pure DP is for whole records")
        plan = plan_column_scales(n_samples, n_features, budget)
        public = {"n_samples": n_samples, "n_features": n_features}
        return plan, self._record_of(plan, delta, people, public)

    def _scales(self) -> tuple[ColumnScales, float]:
        return ColumnScales(self.center_, self.scale_), float(self.clip)


@dataclass(eq=False, repr=False)
class CellScaler(DenseTransformer):
    """Map columns to ``rint(256 clip(asinh(x / data_norm / 2^exponent), -64, 64))``.

    The attribute ``scaler_`` of a classifier that was chosen for a table of few rows is of this
    class.

    Parameters
    ----------
    exponent : int
        Released binary exponent of the size at which the map turns from linear to logarithmic.
    data_norm : float, default=1.0
        PUBLIC bound that rows are divided by.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, when `X` had them.

    Notes
    -----
    **Privacy.** Each number of the result is a function of the same number and of the parameters.
    Proof: ``docs/proofs/small_tables.md``, section 3.
    """

    exponent: int
    data_norm: float = 1.0

    def fit(self, X: Any, y: Any = None) -> CellScaler:
        """Validate `X`; no value is used."""
        check_dense(self, X, reset=True)
        return self

    def in_column_scales(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return integer cells of columns that are already checked; 0 for a missing entry."""
        _refuse_sparse(X)
        numbers = np.asarray(X, dtype=np.float64) / self.data_norm
        return asinh_cells(numbers, self.exponent).astype(np.float64)
