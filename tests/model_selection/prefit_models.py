"""Fitted models with known scores, and distributions of records, for what wraps a fitted model."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax
from scipy.stats import norm

from tests.metrics.problem import Known


class Given(Known):
    """Says what is written in the record: a probability."""

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return np.column_stack([1.0 - X[:, 0], X[:, 0]])


class Rare:
    """One positive in ten, normal scores a deviation up and down."""

    classes_ = np.array([0, 1])
    share, shift = 0.1, 1.0

    def fit(self, X, y):
        return self

    def decision_function(self, X):
        return X[:, 0]

    def predict(self, X):
        return (X[:, 0] > 0.0).astype(int)

    def records(self, rng, n):
        y = (rng.random(n) < self.share).astype(int)
        return (self.shift * (2 * y - 1) + rng.standard_normal(n))[:, None], y

    def rates(self, threshold):
        """Recall, precision and false positive rate on the distribution."""
        found, false = norm.sf(threshold - self.shift), norm.sf(threshold + self.shift)
        said = self.share * found + (1.0 - self.share) * false
        precision = self.share * found / said if said else 1.0
        return {"recall": found, "precision": precision, "fpr": false}


class RareChances(Rare):
    """The same with probabilities."""

    def predict_proba(self, X):
        odds = np.exp(2.0 * self.shift * X[:, 0]) * self.share / (1.0 - self.share)
        return np.column_stack([1.0 / (1.0 + odds), odds / (1.0 + odds)])

    def rates(self, threshold):
        with np.errstate(divide="ignore"):
            odds = np.log(np.clip(threshold, 0.0, 1.0)) - np.log1p(-np.clip(threshold, 0.0, 1.0))
        place = (odds - np.log(self.share / (1.0 - self.share))) / (2.0 * self.shift)
        return super().rates(place)


class Several:
    """Normal scores of several classes, and probabilities that are right."""

    def __init__(self, n_classes=3, shift=1.5):
        self.classes_, self.shift = np.arange(n_classes), shift

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return softmax(self.shift * X, axis=1)

    def predict(self, X):
        return X.argmax(axis=1)

    def records(self, rng, n):
        y = rng.integers(len(self.classes_), size=n)
        X = rng.standard_normal((n, len(self.classes_)))
        X[np.arange(n), y] += self.shift
        return X, y
