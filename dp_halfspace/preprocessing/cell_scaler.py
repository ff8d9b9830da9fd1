"""Columns on a public scale of their own logarithm, in whole cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags

from dp_halfspace.algorithms.search.asinh_cells import asinh_cells
from dp_halfspace.preprocessing.released_scaler import check_dense


@dataclass(frozen=True, slots=True)
class RowLengths:
    """What scores of a row are divided by: the further out, the less is known of a row.

    One plus the sum of ``asinh(x / data_norm / 2^exponent)^2``, times the length of
    ``(x / data_norm, constant)`` if there is a constant. Positive, so it changes no sign.
    """

    exponent: int
    data_norm: float
    constant: float | None

    def of(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return one positive number for each row of `X`."""
        with np.errstate(all="ignore"):
            numbers = np.nan_to_num(np.asarray(X, dtype=np.float64) / self.data_norm)
            cells = np.arcsinh(np.nan_to_num(np.ldexp(numbers, -self.exponent)))
            lengths = 1.0 + np.square(cells).sum(axis=1)
            if self.constant is not None:
                # Of the largest entry first: squares of numbers have a shorter range.
                top = np.maximum(np.abs(numbers).max(axis=1), self.constant)
                parts = np.square(numbers / top[:, None]).sum(axis=1)
                parts += np.square(self.constant / top)
                lengths *= top * np.sqrt(parts)
            return np.asarray(np.minimum(lengths, np.finfo(np.float64).max))


@dataclass(eq=False, repr=False)
class CellScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Bring columns to ``rint(256 clip(asinh(x / data_norm / 2^exponent), -64, 64))``.

    The attribute ``scaler_`` of a classifier that was chosen for a table of few rows is one.

    Parameters
    ----------
    exponent : int
        Binary exponent of the size at which columns turn from linear to logarithmic; released.
    data_norm : float, default=1.0
        PUBLIC scale of a row.

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
        """Check `X`; nothing else is read."""
        del y
        check_dense(self, X, reset=True)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return whole cells, 0 where an entry is missing."""
        return self.in_units(check_dense(self, X, reset=False))

    def in_units(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return cells of columns that were checked already; see `transform`."""
        numbers = np.asarray(X, dtype=np.float64) / self.data_norm
        return asinh_cells(numbers, self.exponent).astype(np.float64)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
