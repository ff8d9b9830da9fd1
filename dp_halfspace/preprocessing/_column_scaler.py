"""What the scalers share: centre and width of each column, and rows brought to them."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from dp_halfspace._chunked import by_chunks, checked_chunks, is_chunked
from dp_halfspace._validation import check_features
from dp_halfspace.algorithms.units.plan import Units, in_units

__all__ = ["ColumnScaler", "check_dense"]


def check_dense(estimator: BaseEstimator, X: Any, *, reset: bool) -> Any:
    """Return `X` as a dense array, or chunks, of real numbers that may have holes."""
    if is_chunked(X):
        return checked_chunks(estimator, X, reset=reset, allow_missing=True)
    _refuse_sparse(X)
    return np.asarray(check_features(estimator, X, reset=reset, allow_missing=True))


def _refuse_sparse(X: Any) -> None:
    """Refuse rows that would not stay sparse."""
    if sparse.issparse(X):
        raise ValueError(
            "X is a sparse matrix, whose zeros a centre would fill: scalers take dense columns. "
            "Give sparse rows to an estimator as they are, with a public data_norm"
        )


class ColumnScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """A transformer by a centre, a width and a largest value for every column."""

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
        return in_units(X, *self._units())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
