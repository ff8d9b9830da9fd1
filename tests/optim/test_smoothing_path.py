"""The path to a minimiser under an attack that is almost not smoothed."""

from __future__ import annotations

import numpy as np
import pytest

from dp_halfspace.optim.attack import Attack
from dp_halfspace.optim.losses import LOGISTIC, huber_hinge
from dp_halfspace.optim.minimum import certified_minimum
from dp_halfspace.optim.robust_objective import RobustObjective
from dp_halfspace.optim.rows import clipped_rows
from dp_halfspace.optim.smoothing_path import smoothing_path
from tests.optim.cases import Counting


def objective(attack, loss=LOGISTIC, n=400, d=20, ridge=4.0, tilt=0.0):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    signs = np.where(X[:, :3].sum(axis=1) + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
    rows = clipped_rows(X, 1.0)
    return RobustObjective(rows, signs, np.ones(n), loss, ridge, tilt, attack, radius=10.0)


@pytest.mark.parametrize("norm", [2, "inf"])
@pytest.mark.parametrize("loss", [LOGISTIC, huber_hinge(1e-3)], ids=lambda loss: loss.name)
@pytest.mark.parametrize("smoothing", [1.0, 1e-6, 1e-12, 1e-40])
def test_it_ends_near_the_minimiser(norm, loss, smoothing):
    J = objective(Attack(0.05, norm, 20, smoothing), loss)
    start = np.linalg.norm(J.gradient(np.zeros(20)))
    assert np.linalg.norm(J.gradient(smoothing_path(J))) <= 1e-2 * start


@pytest.mark.parametrize("d", [20, 600])
def test_few_passes_are_left_after_it(d):
    J = objective(Attack(0.03, "inf", d, 1e-11), huber_hinge(1e-3), d=d)
    counted = Counting(J)
    certified_minimum(
        counted, 1e-4, radius=10.0, optimizer=lambda function, start: smoothing_path(J)
    )
    assert counted.gradients + counted.hessians <= 60


def test_without_an_attack_there_is_no_path():
    np.testing.assert_array_equal(smoothing_path(objective(None)), np.zeros(20))
