"""Linear models, what they score, and rows as baselines want them: of norm at most one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics import roc_auc_score

from benchmarks.loaders import Benchmark


@dataclass(frozen=True, slots=True)
class Linear:
    """Coefficients of shape (1, d) or (K, d), intercepts, and the labels they stand for."""

    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    classes: NDArray[Any]

    def predict(self, X: Any) -> NDArray[Any]:
        """Label rows by the sign of the score, or by the largest one."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes[codes]

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score rows: one number each for two classes, else one per class."""
        scores = np.asarray(X @ self.coef.T + self.intercept)
        return scores[:, 0] if scores.shape[1] == 1 else scores


@dataclass(frozen=True, slots=True)
class OnUnitRows:
    """A model of rows that were brought to norm one, applied to rows that are."""

    model: Linear

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score rows."""
        return self.model.decision_function(unit_rows(X))


def accuracy(model: Any, problem: Benchmark) -> float:
    """Share of the test rows that get their label."""
    return float(np.mean(model.predict(problem.X_test) == problem.y_test))


def area_under_curve(model: Any, problem: Benchmark) -> float:
    """Area under the ROC curve on the test rows; the larger label is positive."""
    positive = problem.y_test == max(problem.classes)
    return float(roc_auc_score(positive, model.decision_function(problem.X_test)))


def row_norms(X: Any) -> NDArray[np.float64]:
    """Euclidean norms of the rows."""
    if sparse.issparse(X):
        return np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return np.linalg.norm(X, axis=1)


def unit_ball(X: Any, data_norm: float) -> Any:
    """Divide rows by a public norm, and scale those that are still longer than 1 down to 1."""
    scale = 1.0 / np.maximum(row_norms(X), data_norm)
    return (sparse.diags(scale) @ X).tocsr() if sparse.issparse(X) else X * scale[:, None]


def unit_rows(X: Any) -> Any:
    """Bring rows to norm one, but for zero rows."""
    return unit_ball(X, 1e-12)


def with_constant(X: Any, constant: float = 1.0) -> Any:
    """Append a constant column."""
    stack = partial(sparse.hstack, format="csr") if sparse.issparse(X) else np.hstack
    return stack([X, np.full((X.shape[0], 1), constant)])
