"""Cosine features of bounded columns, as a stateless transformer."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from dp_halfspace._params import fit_context
from dp_halfspace._sklearn_compat import Interval, StrOptions, column_names
from dp_halfspace.data.chunked_data import by_chunks
from dp_halfspace.engine.linear import WIDEST
from dp_halfspace.preprocessing.scalers import DenseTransformer, check_dense, checked_ranges
from dp_halfspace.projection.features import additive_norm, write_cosines

# Number of features of a column.
_USUAL_TERMS = 4


@dataclass(kw_only=True, eq=False, repr=False)
class CosineFeatures(DenseTransformer):
    """Map every column to [-1, 1], and add cosines of it with decaying amplitudes.

    A linear model on these features is a sum of curves, one for each column, so it can represent
    nonlinear effects of single columns. The values `v` of a column, brought to [0, 1] and clipped,
    become ``2 v - 1`` and ``2^.5 cos(k pi v) / k`` for ``k = 2, ..., n_terms``.

    Parameters
    ----------
    n_terms : int or "auto", default="auto"
        Number of features of each column; 1 means the column alone. ``"auto"`` is 4, or less if
        there would be more than 511 features: the linear default centres and whitens up to 512.
    ranges : array-like of shape (n_features, 2) or None, default=None
        PUBLIC lower and upper end of each column, from the meaning of the columns and never from
        the data. None means that every column is in [0, 1].

    Attributes
    ----------
    n_terms_ : int
        Features of each column.
    row_norm_ : float
        Public bound on the norm of a row of features.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, when `X` had them.

    See Also
    --------
    dp_halfspace.PrivateKernelClassifier : Computes these features itself, in estimated scales.

    Notes
    -----
    **Privacy.** ``fit`` reads the shape of `X` and its column names, and no value. A row of
    features depends on its own row only, so replacing one record replaces one row of features, of
    norm at most ``row_norm_``. A missing value is 0 in all features of its column.

    Examples
    --------
    >>> from dp_halfspace.preprocessing import CosineFeatures
    >>> features = CosineFeatures(n_terms=3, ranges=[[0, 100]])
    >>> features.fit_transform([[0.0], [50.0], [100.0]]).round(3)
    array([[-1.   ,  0.707,  0.471],
           [ 0.   , -0.707, -0.   ],
           [ 1.   ,  0.707, -0.471]])
    >>> features.get_feature_names_out(["age"]).tolist()
    ['age', 'cos(2 pi age)', 'cos(3 pi age)']
    """

    n_terms: int | str = "auto"
    ranges: ArrayLike | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_terms": [Interval(Integral, 1, 64, closed="both"), StrOptions({"auto"})],
        "ranges": ["array-like", None],
    }

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> CosineFeatures:
        """Read the shape of `X`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Columns; missing values are NaN.
        y : None
            Ignored.

        Returns
        -------
        CosineFeatures
            The transformer itself.

        Raises
        ------
        ValueError
            If `ranges` does not fit the columns.
        """
        X = check_dense(self, X, reset=True)
        self._ends(X.shape[1])
        automatic = max(1, min(_USUAL_TERMS, (WIDEST - 1) // X.shape[1]))
        self.n_terms_ = automatic if isinstance(self.n_terms, str) else int(self.n_terms)
        self.row_norm_ = additive_norm(X.shape[1], self.n_terms_)
        return self

    @by_chunks
    def transform(self, X: Any) -> NDArray[np.float64]:
        """Map every row independently.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Columns; missing values are NaN.

        Returns
        -------
        ndarray of shape (n_samples, n_features * n_terms)
            The columns, then a block of columns for each cosine.
        """
        check_is_fitted(self)
        X = check_dense(self, X, reset=False).astype(np.float64)
        low, high = self._ends(X.shape[1]).T
        values = np.clip((X - low) / (high - low), 0.0, 1.0)
        out = np.empty((X.shape[0], X.shape[1] * self.n_terms_))
        out[:, : X.shape[1]] = 2.0 * values - 1.0
        write_cosines(values, out[:, X.shape[1] :])
        return np.nan_to_num(out, copy=False)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the features.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns; None takes those of the fit, or x0, x1, ...

        Returns
        -------
        ndarray of shape (n_features * n_terms,), object
        """
        check_is_fitted(self)
        names = column_names(self, input_features)
        cosines = [f"cos({k} pi {name})" for k in range(2, self.n_terms_ + 1) for name in names]
        return np.array([*names, *cosines], dtype=object)

    def _ends(self, n_features: int) -> NDArray[np.float64]:
        """Return the lower and upper end of every column."""
        if self.ranges is None:
            return np.tile([0.0, 1.0], (n_features, 1))
        return checked_ranges(self.ranges, n_features)
