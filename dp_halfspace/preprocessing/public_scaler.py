"""Columns from their documented ranges to [-1, 1]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.algorithms.engine.column_scales import Units
from dp_halfspace.preprocessing.released_scaler import ColumnScaler


@dataclass(eq=False, repr=False)
class PublicScaler(ColumnScaler):
    """Bring columns from their PUBLIC ranges to [-1, 1], and clip what is outside.

    Parameters
    ----------
    ranges : array-like of shape (n_features, 2) or dict
        PUBLIC lowest and highest value of each column, from what the column means and never from
        the data. A dict maps column names, or numbers, to ``(low, high)``.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, when `X` had them.

    See Also
    --------
    PrivateScaler : Learns the units of columns whose ranges nobody knows.

    Notes
    -----
    **Privacy.** Stateless: each row of the result is a function of the same row and of the public
    ranges, so it can stand before any private estimator and costs nothing. A wrong range costs
    accuracy only.

    Examples
    --------
    >>> from dp_halfspace.preprocessing import PublicScaler
    >>> PublicScaler([(0, 120), (36, 42)]).fit_transform([[30, 39.0], [90, 50.0]])
    array([[-0.5,  0. ],
           [ 0.5,  1. ]])
    """

    ranges: Any

    def _units(self) -> tuple[Units, float]:
        ends = self._ends()
        low, high = ends[:, 0], ends[:, 1]
        return Units(low / 2.0 + high / 2.0, high / 2.0 - low / 2.0), 1.0

    def _ends(self) -> NDArray[np.float64]:
        """Return the ranges in the order of the columns."""
        ranges = self.ranges
        if isinstance(ranges, Mapping):
            names = getattr(self, "feature_names_in_", range(self.n_features_in_))
            missing = [str(name) for name in names if name not in ranges]
            if missing:
                raise ValueError(f"ranges has no (low, high) for column {missing[0]!r}")
            ranges = [ranges[name] for name in names]
        ends = np.asarray(ranges, dtype=np.float64)
        shape = (self.n_features_in_, 2)
        if (
            ends.shape != shape
            or not np.isfinite(ends).all()
            or not (ends[:, 0] < ends[:, 1]).all()
        ):
            raise ValueError(
                f"ranges must hold (low, high) with low < high for each of {shape[0]} columns"
            )
        return ends
