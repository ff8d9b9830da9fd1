"""A projection that is asked for by name and is none, or too small, is said to be so."""

import warnings

import numpy as np
import pytest

from dp_halfspace import (
    AdaptiveMarginClassifier,
    PrivacyWarning,
    PrivateKernelClassifier,
    PureHalfspaceClassifier,
)
from dp_halfspace.datasets import make_halfspace

X, Y = make_halfspace(300, 30, margin=0.4, random_state=0)
BASE = {"classes": [-1, 1], "data_norm": 1.0}
NAMED = {"projection": "rademacher", **BASE}


def said(model, method="fit", rows=X, labels=Y):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        getattr(model, method)(rows, labels)
    found = [w for w in caught if "expect about" not in str(w.message)]
    return [(str(w.message), w.category, w.filename) for w in found]


@pytest.mark.parametrize("method", ["fit", "plan"])
@pytest.mark.parametrize(
    "model",
    [
        AdaptiveMarginClassifier(margin=0.4, **NAMED),
        AdaptiveMarginClassifier(margin=0.4, solver="phased_prox", **NAMED),
        AdaptiveMarginClassifier(margin=[0.2, 0.4], selection="gaussian", **NAMED),
        AdaptiveMarginClassifier(n_components=40, **NAMED),
        PureHalfspaceClassifier(n_stages=1, n_directions=100, **NAMED),
        PrivateKernelClassifier(kernel="rbf", margin=0.4, n_components=100, **NAMED),
    ],
)
def test_a_map_that_is_none(model, method):
    ((message, category, place),) = said(model, method)
    assert category is PrivacyWarning
    assert "draws no map" in message
    assert place == __file__


@pytest.mark.parametrize(
    "model",
    [
        AdaptiveMarginClassifier(margin=0.4, n_components=24, **NAMED),
        AdaptiveMarginClassifier(
            margin=[0.2, 1.0], selection="exponential", n_components=29, **NAMED
        ),
        PureHalfspaceClassifier(margin=0.4, n_components=24, n_stages=1, n_directions=99, **NAMED),
    ],
)
def test_too_few_components_for_the_margin(model):
    ((message, category, place),) = said(model)
    assert category is PrivacyWarning
    assert "far below" in message
    assert place == __file__


@pytest.mark.parametrize(
    "model",
    [
        AdaptiveMarginClassifier(margin=0.4, **BASE),
        AdaptiveMarginClassifier(margin=0.4, n_components=25, **NAMED),
        AdaptiveMarginClassifier(n_components=5, **NAMED),
        AdaptiveMarginClassifier(margin=0.4, n_components=5, projection=None, **BASE),
        PureHalfspaceClassifier(n_components=5, n_stages=1, n_directions=100, **NAMED),
    ],
)
def test_nothing_to_say(model):
    assert said(model) == []


def test_what_is_said_is_the_same_for_every_data_set():
    model = AdaptiveMarginClassifier(margin=0.4, n_components=5, **NAMED)
    first = said(model)
    other = said(model, rows=np.zeros_like(X), labels=np.where(np.arange(300) < 3, 1, -1))
    assert [message for message, *_ in other] == [message for message, *_ in first]
