"""Linear models, and rows as the peers want them: of norm at most one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


@dataclass(frozen=True, slots=True)
class Linear:
    """Coefficients of shape (1, d) or (K, d), intercepts, and the labels they stand for."""

    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    classes: NDArray[Any]

    def predict(self, X: Any) -> NDArray[Any]:
        """Label rows by the sign of the score, or by the largest one."""
        scores = X @ self.coef.T + self.intercept
        codes = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)
        return self.classes[codes]


def row_norms(X: Any) -> NDArray[np.float64]:
    """Euclidean norms of the rows."""
    if sparse.issparse(X):
        return np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return np.linalg.norm(X, axis=1)


def unit_ball(X: Any, data_norm: float) -> Any:
    """Divide rows by a public norm, and scale those that are still longer than 1 down to 1."""
    scale = 1.0 / np.maximum(row_norms(X), data_norm)
    return (sparse.diags(scale) @ X).tocsr() if sparse.issparse(X) else X * scale[:, None]


def with_constant(X: Any) -> Any:
    """Append a column of ones."""
    stack = partial(sparse.hstack, format="csr") if sparse.issparse(X) else np.hstack
    return stack([X, np.ones((X.shape[0], 1))])
