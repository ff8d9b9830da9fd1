"""A scaler whose numbers are public already, and what all scalers share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from dp_halfspace.algorithms.engine.column_scales import CLIP, Units, in_units
from dp_halfspace.data.chunked_methods import by_chunks
from dp_halfspace.data.validation import check_features, is_chunked

if TYPE_CHECKING:
    from typing_extensions import Self


def check_dense(estimator: BaseEstimator, X: Any, *, reset: bool, hides_rows: bool = False) -> Any:
    """Return `X` as a dense array, or chunks, of real numbers of which some may be missing."""
    if is_chunked(X):
        from dp_halfspace.data.chunked_checks import checked_chunks  # noqa: PLC0415

        return checked_chunks(estimator, X, reset=reset, allow_missing=True)
    _refuse_sparse(X)
    how = {"reset": reset, "hides_rows": hides_rows}
    return np.asarray(check_features(estimator, X, allow_missing=True, **how))


def _refuse_sparse(X: Any) -> None:
    """Refuse rows that would not stay sparse."""
    if sparse.issparse(X):
        raise ValueError(
            "X is a sparse matrix, whose zeros a centre would fill: scalers take dense columns. "
            "Give sparse rows to an estimator as they are, with a public data_norm"
        )


class ColumnScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """A transformer by a centre, a width and a largest value for every column."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check that every column has its numbers; nothing else is read.

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
        del y
        n_columns = check_dense(self, X, reset=True).shape[1]
        if n_columns != len(self._units()[0].center):
            raise ValueError(f"X has {n_columns} columns, but center has another number of them")
        return self

    @abstractmethod
    def _units(self) -> tuple[Units, float]:
        """Centre and width of each column, and where to clip."""

    @by_chunks
    def transform(self, X: Any) -> NDArray[np.float64]:
        """Bring columns to their units.

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
        return self.in_units(check_dense(self, X, reset=False))

    def in_units(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Bring columns that were checked already to their units; see `transform`."""
        _refuse_sparse(X)
        return np.asarray(in_units(X, *self._units()))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


@dataclass(eq=False, repr=False)
class ReleasedScaler(ColumnScaler):
    """Bring columns to given units: ``clip((x - center) / scale, -clip, clip)``.

    The attribute ``scaler_`` of a classifier that has learnt the units of its columns is one.

    Parameters
    ----------
    center : array-like of shape (n_features,)
        PUBLIC or released centre of each column.
    scale : array-like of shape (n_features,)
        PUBLIC or released width of each column, positive.
    clip : float, default=4.0
        Largest absolute value of the result.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, when `X` had them.

    See Also
    --------
    PrivateScaler : Learns these numbers within a budget.
    PublicScaler : Takes them from the documented range of every column.

    Notes
    -----
    **Privacy.** Nothing is learnt: each row of the result is a function of the same row and of the
    parameters, which are assumed public or released. Source: ``docs/proofs/units.md``, section 4.

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

    def _units(self) -> tuple[Units, float]:
        center, scale = _numbers("center", self.center), _numbers("scale", self.scale)
        if center.shape != scale.shape or not (scale > 0).all() or not self.clip > 0:
            raise ValueError(
                "center and scale must have one number for each column; scale and clip are positive"
            )
        return Units(center, scale), float(self.clip)


def _numbers(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return one finite number for each column."""
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise ValueError(f"{name} must be a list of finite numbers, one for each column")
    return numbers
