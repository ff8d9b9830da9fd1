"""Defects demonstrated in other libraries, each a permanent test that we do not share it."""

import numpy as np
import pytest

from dp_halfspace import OutputPerturbationClassifier, privacy
from tests.conftest import separated
from tests.releases import record_releases


def exact(X, y, **params):
    """The value that is perturbed, and the mechanism that perturbs it."""
    with record_releases() as releases:
        OutputPerturbationClassifier(**{"classes": [0, 1], "data_norm": 1.0, **params}).fit(
            np.asarray(X, float), y
        )
    (release,) = releases
    return release.value, release.mechanism


@pytest.mark.parametrize("norm", [1.0, 12.0, 30.0, 100.0, 1000.0])
@pytest.mark.parametrize("alpha", [0.01, 1.0, 100.0])
def test_power_of_the_norm(norm, alpha):
    """A curvature of norm c R^2 taken for c R breaks the guarantee at large norms."""
    params = {"alpha": alpha, "data_norm": norm, "fit_intercept": False}
    a, mechanism = exact([[norm], [0.0]], [1, 0], **params)
    b, _ = exact([[0.0], [0.0]], [1, 0], **params)
    assert np.linalg.norm(a - b) <= mechanism.sensitivity
    c, _ = exact([[norm], [0.0]], [0, 0], **params)
    assert np.linalg.norm(a - c) <= mechanism.sensitivity


def test_intercept_is_inside_the_regulariser():
    """Without it neither the norm nor the distance of minimisers is bounded."""
    first, mechanism = exact([[1.0], [0.0], [0.0]], [1, 1, 0], alpha=0.3)
    second, _ = exact([[0.0], [0.0], [0.0]], [1, 1, 0], alpha=0.3)
    assert np.linalg.norm(first - second) <= mechanism.sensitivity
    one_class, _ = exact(np.zeros((50, 1)), np.ones(50, int), alpha=0.3)
    assert abs(one_class[0, 1]) < 3


def test_every_class_gets_its_own_noise():
    for loss in ("logistic", "huber_hinge"):
        model = OutputPerturbationClassifier(loss=loss, classes=[0, 1, 2], alpha=0.1).fit(
            np.zeros((150, 60)), np.repeat([0, 1, 2], 50)
        )
        # Of 60 independent pairs: beyond 0.8 with probability 1e-13.
        correlation = np.corrcoef(model.coef_)
        assert np.abs(correlation - np.eye(3)).max() < 0.8


def test_data_norm_is_never_measured():
    X, y = separated(50, 2)
    model = OutputPerturbationClassifier(data_norm=1.0, preconditioner=False).fit(20 * X, y)
    assert model.get_params()["data_norm"] == 1.0
    assert model.privacy_.to_dict()["public"]["data_norm"] == 1.0


def test_multiclass_budget_is_joint():
    """K classes cost one budget, not K, and not a budget divided by the labels seen."""
    X, y = separated(60, 3, 4)
    stated = {"loss": "huber_hinge", "preconditioner": False, "data_norm": 1}
    record = OutputPerturbationClassifier(**stated).fit(X, y).privacy_
    assert len(record.events) == 1
    assert privacy.epsilon(record.events, record.delta) <= 1.0
