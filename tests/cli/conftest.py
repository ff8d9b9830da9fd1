"""A class that stands in for the real ones, so that these tests stay fast."""

import pytest
from sklearn.linear_model import RidgeClassifier

import dp_halfspace
from dp_halfspace._cli import demo


class FakeClassifier(RidgeClassifier):
    """A classifier with the parameters that the demonstration sets."""

    def __init__(self, *, epsilon=1.0, classes=None):
        super().__init__()
        self.epsilon = epsilon
        self.classes = classes


@pytest.fixture
def suite(monkeypatch):
    """Let the demonstration show the fake class alone."""
    monkeypatch.setattr(dp_halfspace, "FakeClassifier", FakeClassifier, raising=False)
    monkeypatch.setattr(demo, "SHOWN", ("FakeClassifier",))
