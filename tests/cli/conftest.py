"""A small suite that stands in for the real one, so that these tests stay fast."""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import RidgeClassifier

import dp_halfspace
from dp_halfspace._cli import demo
from dp_halfspace.exceptions import PrivacyWarning


@dataclass(frozen=True)
class Record:
    epsilon: float
    delta: float
    adjacency: str = "replace-one"


class FakeClassifier(ClassifierMixin, BaseEstimator):
    """Ridge classifier with noise that shrinks with epsilon."""

    def __init__(
        self, *, epsilon=1.0, delta="auto", data_norm=1.0, classes=None, random_state=None
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.classes = classes
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X, y):
        if self.random_state is not None:
            warnings.warn("the noise is seeded", PrivacyWarning, stacklevel=2)
        model = RidgeClassifier().fit(X, y)
        rng = np.random.default_rng(self.random_state)
        scale = np.abs(model.coef_).max() / (10 * self.epsilon)
        coef = np.atleast_2d(model.coef_)
        self.coef_ = coef + scale * rng.standard_normal(coef.shape)
        self.intercept_ = model.intercept_
        self.classes_ = np.asarray(self.classes)
        delta = 1.0 / len(y) ** 2 if self.delta == "auto" else self.delta
        self.privacy_ = Record(self.epsilon, delta)
        return self

    def decision_function(self, X):
        scores = X @ self.coef_.T + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X):
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(1)]


class BinaryClassifier(FakeClassifier):
    """The same for two classes and dense rows only."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = False
        return tags


class PureClassifier(FakeClassifier):
    """Knows no delta but 0."""

    def __init__(self, *, epsilon=1.0, delta=0.0, classes=None, random_state=None):
        super().__init__(epsilon=epsilon, delta=delta, classes=classes, random_state=random_state)

    def fit(self, X, y):
        if self.delta != 0:
            raise ValueError("The 'delta' parameter must be a float among {0}.")
        return super().fit(X, y)


class RefusingClassifier(FakeClassifier):
    """Refuses small budgets, for a public reason."""

    def fit(self, X, y):
        if self.epsilon < 1:
            raise ValueError("epsilon is too small for this sketch.")
        return super().fit(X, y)


class MetaEstimator(FakeClassifier):
    """Needs an argument, so it is no candidate."""

    def __init__(self, estimator, *, epsilon=1.0):
        super().__init__(epsilon=epsilon)
        self.estimator = estimator


@pytest.fixture
def suite(monkeypatch):
    """Replace the exported names; returns a function that chooses the estimators."""

    def choose(*kinds):
        for kind in kinds:
            monkeypatch.setattr(dp_halfspace, kind.__name__, kind, raising=False)
        names = [kind.__name__ for kind in kinds] + ["PrivacyWarning"]
        monkeypatch.setattr(dp_halfspace, "__all__", names)
        monkeypatch.setattr(demo, "SHOWN", tuple(names[:-1]))

    choose(FakeClassifier)
    choose.fake, choose.binary = FakeClassifier, BinaryClassifier
    choose.refusing, choose.meta = RefusingClassifier, MetaEstimator
    choose.pure = PureClassifier
    return choose


@pytest.fixture
def table(tmp_path):
    """Write a CSV of two separable classes; returns its path and its cells."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 30)
    X = rng.uniform(0, 0.2, (60, 2)) + 0.4 * y[:, None]
    lines = ["size,weight,kind"]
    lines += [
        f"{a:.6f},{b:.6f},{'apple' if label else 'pear'}"
        for (a, b), label in zip(X, y, strict=True)
    ]
    path = tmp_path / "fruit.csv"
    path.write_text("\n".join(lines) + "\n")
    return path
