"""A linear model that is public: what a fit falls back to unless the records speak for another.

Its answer for a record is a function of that record and of public or released numbers, so counting
its errors costs what counting those of any other classifier costs: ``docs/proofs/prior.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dp_halfspace.algorithms.engine.plan import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class LinearPrior:
    """Public scores ``X @ coefficients.T + intercepts`` of columns as they were handed in.

    Of two classes one row and one number; of more, one for each class. `fill` of shape
    (n_features,) is what stands for a missing entry of each column, a public number, too.
    """

    coefficients: FloatArray
    intercepts: FloatArray
    fill: FloatArray

    def over(self, data_norm: float) -> LinearPrior:
        """Return the model of rows that were divided by a public number."""
        return LinearPrior(self.coefficients * data_norm, self.intercepts, self.fill / data_norm)

    @property
    def text(self) -> str:
        """What a record says about it."""
        numbers = np.concatenate([self.coefficients.ravel(), self.intercepts, self.fill])
        return f"public linear model, SHA-256 {sha256(numbers.tobytes()).hexdigest()[:16]}"


def linear_classes(
    X: Any, coefficients: FloatArray, intercepts: FloatArray, fill: FloatArray
) -> NDArray[np.intp]:
    """Return the class of every row; no bit depends on other rows, or on the place of a row.

    Products of an array are added column by column, each by one operation on the cells of a row.
    """
    if sparse.issparse(X):
        scores = np.asarray(X @ coefficients.T) + intercepts
    else:
        scores = np.tile(intercepts, (X.shape[0], 1))
        for column, weights in enumerate(coefficients.T):
            cells = X[:, column, None].astype(np.float64)
            scores += np.where(np.isnan(cells), fill[column], cells) * weights
    found = scores[:, 0] > 0.0 if scores.shape[1] == 1 else scores.argmax(axis=1)
    return np.asarray(found, dtype=np.intp)
