"""Output perturbation of every risk: the minimiser, what the plan allows for, neighbours."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from dp_halfspace.algorithms.perturbation.output import plan_output
from dp_halfspace.exceptions import CertificateError
from dp_halfspace.optim import (
    HINGE,
    LOGISTIC,
    SQUARED,
    SQUARED_HINGE,
    PairRisk,
    huber_hinge,
    shifted_logistic,
)
from dp_halfspace.optim.design.rows import clipped_rows
from dp_halfspace.optim.risks.margin import MarginRisk
from dp_halfspace.optim.risks.pairs import balanced_normaliser
from dp_halfspace.optim.risks.risk import RIDGE_FLOOR
from dp_halfspace.optim.risks.softmax import SoftmaxRisk
from dp_halfspace.privacy.mechanisms import GaussianNoise, NoNoise, recording
from tests.adversarial import neighbouring_pairs
from tests.algorithms.perturbation.test_regulariser import ROBUST, records
from tests.algorithms.support import permit_for
from tests.optim.pair_cases import differences

HUBER = huber_hinge(0.5)
LOSSES = [LOGISTIC, HUBER, SQUARED_HINGE, SQUARED]
by_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
NORM = 1.0 + 2.0**-50


def pairs(loss=LOGISTIC, n=1000, d=10, norm=1.0):
    return PairRisk(loss, n, d, norm, n, balanced_normaliser(n))


def gaussian(sensitivity):
    return GaussianNoise(sensitivity, 1.0)


def exact(_):
    return NoNoise()


def run(plan, X, codes, weights=None):
    weights = np.ones(codes.max(initial=1) + 1) if weights is None else weights
    with recording() as releases:
        w = plan.run(clipped_rows(X, 1.0), codes, weights, permit_for(*plan.events))
    return w, releases


# -- the plan ------------------------------------------------------------------------


PLANNED = [
    *((records, loss, {"k": k, **rest})
      for loss in (*LOSSES, HINGE) for rest in ({}, *ROBUST.values()) for k in (2, 5)
      if loss.monotone or "adversary" not in rest),
    *((pairs, loss, {}) for loss in LOSSES),
]  # fmt: skip


@pytest.mark.parametrize("n", [1, 100, 100000])
@pytest.mark.parametrize(("make", "loss", "rest"), PLANNED)
def test_planned_sensitivity_covers_the_tolerance(make, loss, rest, n):
    """Exact sensitivity plus twice the distance that the solver certifies, and little more."""
    risk, ridge = make(loss, n=n, **rest), 0.3
    plan = plan_output(risk, ridge, gaussian)
    several = math.sqrt(risk.n_stacked)
    true = several * risk.sensitivity(ridge)
    certified = 2 * several * plan.tolerance.certified / risk.total(ridge)
    assert plan.tolerance.certified >= plan.tolerance.target
    assert true + certified <= plan.sensitivity <= true * 1.001
    assert plan.noise == gaussian(plan.sensitivity)
    assert plan.radius == risk.radius(ridge)


def test_ridge_has_a_floor():
    assert plan_output(records(norm=3.0), 1e-20, exact).ridge == RIDGE_FLOOR * 9
    assert plan_output(records(max_weight=5.0), 1e-20, exact).ridge == RIDGE_FLOOR * 5
    assert plan_output(pairs(norm=3.0), 1e-20, exact).ridge == RIDGE_FLOOR * 9


@pytest.mark.parametrize(
    ("risk", "ridge"), [(records(n=10**12), 1e-4), (pairs(n=10**8, d=5), 1e-8)]
)
def test_plan_refuses_what_cannot_be_certified(risk, ridge):
    with pytest.raises(CertificateError):
        plan_output(risk, ridge, gaussian)


# -- the minimiser -------------------------------------------------------------------


@by_loss
def test_without_noise_it_is_the_minimiser_over_all_pairs(loss):
    rng = np.random.default_rng(0)
    X, positive = rng.uniform(-0.4, 0.4, (60, 3)), rng.random(60) < 0.3
    X[positive] += 0.15
    z, ridge = differences(X, positive), 0.05

    def objective(w):
        return loss.value(z @ w).sum() / balanced_normaliser(60) + ridge / 2 * w @ w

    found = minimize(objective, np.zeros(3), method="BFGS", options={"gtol": 1e-9})
    plan = plan_output(pairs(loss, 60, 3, NORM), ridge, exact)
    np.testing.assert_allclose(run(plan, X, positive.astype(int))[0][0], found.x, atol=1e-5)


def test_squared_loss_of_pairs_is_the_closed_form():
    rng = np.random.default_rng(1)
    X, positive = rng.uniform(-0.4, 0.4, (50, 3)), rng.random(50) < 0.4
    u, z, ridge = differences(X, positive), balanced_normaliser(50), 0.1
    closed = np.linalg.solve(2 * u.T @ u / z + ridge * np.eye(3), 2 * u.sum(axis=0) / z)
    plan = plan_output(pairs(SQUARED, 50, 3, NORM), ridge, exact)
    np.testing.assert_allclose(run(plan, X, positive.astype(int))[0][0], closed, rtol=1e-9)


@pytest.mark.parametrize("label", [0, 1])
def test_an_empty_class_of_pairs_gives_noise_round_zero(label):
    X = np.full((20, 2), 0.3)
    w, releases = run(plan_output(pairs(n=20, d=2), 0.5, gaussian), X, np.full(20, label))
    np.testing.assert_array_equal(releases[-1].value, np.zeros((1, 2)))
    assert np.isfinite(w).all()


@pytest.mark.parametrize("risk", [records(n=20, d=2), records(HUBER, n=20, d=2, k=3)])
def test_a_projected_release_is_in_the_ball_of_the_minimisers(risk):
    X, codes = np.full((20, 2), 0.3), np.arange(20) % risk.n_classes

    def loud(_):
        return GaussianNoise(1e3, 1e-3)

    free, kept = (plan_output(risk, 0.5, loud, projected=p) for p in (False, True))
    assert np.linalg.norm(run(free, X, codes)[0]) > 2 * free.radius * math.sqrt(risk.n_stacked)
    w, releases = run(kept, X, codes)
    largest = kept.radius * math.sqrt(risk.n_stacked)
    assert np.linalg.norm(w) == pytest.approx(largest)
    np.testing.assert_allclose(
        w / largest, releases[0].released / np.linalg.norm(releases[0].released)
    )


# -- neighbours ----------------------------------------------------------------------

CASES = {
    **{f"records {loss.name}": (records, loss, 2, 0.2) for loss in LOSSES},
    "classes": (records, LOGISTIC, 3, 0.2),
    "stacked": (records, HUBER, 3, 0.2),
    **{f"pairs {loss.name}": (pairs, loss, 2, 0.1) for loss in LOSSES},
}


def worst_ratio(make, loss, k):
    """Largest distance of the queries of neighbours, over the planned sensitivity."""
    rng, worst = np.random.default_rng(2), 0.0
    for X, y, other, flipped in neighbouring_pairs(rng, 80, n_classes=k):
        sizes = {"n": X.shape[0], "d": X.shape[1], "norm": NORM}
        risk = make(loss, **sizes, **({} if make is pairs else {"k": k}))
        plan = plan_output(risk, 3.0, gaussian)
        a, b = (run(plan, *data, np.ones(k))[1][-1].value for data in ((X, y), (other, flipped)))
        worst = max(worst, float(np.linalg.norm(a - b)) / plan.noise.sensitivity)
    return worst


@pytest.mark.parametrize(("make", "loss", "k", "least"), CASES.values(), ids=CASES)
def test_sensitivity_against_brute_force(make, loss, k, least):
    assert least < worst_ratio(make, loss, k) <= 1.0


@pytest.mark.parametrize(
    ("cls", "make", "loss", "k"),
    [
        (MarginRisk, records, HUBER, 2),
        (SoftmaxRisk, records, LOGISTIC, 3),
        (PairRisk, pairs, HUBER, 2),
    ],
)
def test_brute_force_sees_a_small_sensitivity(monkeypatch, cls, make, loss, k):
    """Planted: half the sensitivity."""
    honest = cls.sensitivity
    monkeypatch.setattr(cls, "sensitivity", lambda self, ridge: honest(self, ridge) / 2)
    assert worst_ratio(make, loss, k) > 1.0


def moved_minimiser(shift, ridge):
    """Largest distance of the minimisers of two data sets of one record, three classes."""
    plan = plan_output(records(shifted_logistic(shift), 1, 1, 3, NORM), ridge, exact)

    def fitted(x, label):
        return run(plan, np.array([[x]]), np.array([label]), np.ones(3))[0]

    start = fitted(1.0, 0)
    return max(np.linalg.norm(start - fitted(x, k)) for x in (-1.0, 1.0) for k in (0, 1)), plan


@pytest.mark.parametrize(("shift", "ridge"), [(2.0, 10.0), (4.0, 10.0), (12.0, 100.0)])
def test_shifted_softmax_is_covered_and_the_plain_bound_would_not_do(shift, ridge):
    moved, plan = moved_minimiser(shift, ridge)
    assert 0.8 * plan.sensitivity < moved <= plan.sensitivity
    assert moved > 1.05 * records(n=1, d=1, k=3).sensitivity(ridge)
