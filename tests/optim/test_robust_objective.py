"""Tilted and robust objectives: formulas, derivatives, storage, extreme numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp

from dp_halfspace.optim._tilt import tilted_mean, tilted_weights, total
from dp_halfspace.optim.attack import Attack
from dp_halfspace.optim.losses import (
    HINGE,
    LOGISTIC,
    SQUARED,
    SQUARED_HINGE,
    huber_hinge,
    shifted_logistic,
)
from dp_halfspace.optim.objectives import MarginObjective
from dp_halfspace.optim.robust_objective import RobustObjective
from dp_halfspace.optim.rows import Rows, clipped_rows
from tests.optim.cases import data_sets, logical_rows

RNG = np.random.default_rng(0)
N, D = 60, 4
X = RNG.standard_normal((N, D))
SIGNS = np.where(RNG.random(N) < 0.4, -1.0, 1.0)
WEIGHTS = RNG.random(N) + 0.1
SCALE = RNG.random(N)
LINEAR = RNG.standard_normal(D + 1)
W = 0.7 * RNG.standard_normal(D + 1)
LOSSES = [LOGISTIC, shifted_logistic(2.0), huber_hinge(0.5), SQUARED_HINGE]
ATTACKS = [None, Attack(0.3, 2, D, 0.01), Attack(0.1, "inf", D, 0.01), Attack(0.3, 2, D, 0.0)]
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
each_tilt = pytest.mark.parametrize("tilt", [0.0, 0.5, 50.0])
each_attack = pytest.mark.parametrize(
    "attack", ATTACKS, ids=lambda a: "none" if a is None else f"{a.norm}-{a.smoothing}"
)


def objective(loss=LOGISTIC, tilt=0.0, attack=None, linear=LINEAR, form=np.asarray):
    rows = Rows(form(X), SCALE, 0.5)
    return RobustObjective(rows, SIGNS, WEIGHTS, loss, 0.3, tilt, attack, linear)


@each_loss
@each_tilt
@each_attack
def test_value_is_the_formula(loss, tilt, attack):
    Z = logical_rows(X, SCALE, 0.5)
    norm = 0.0
    if attack is not None:
        power, k = (2 if attack.norm == 2 else 1), attack.smoothing
        part = np.array([np.linalg.norm(W[:D])]) if power == 2 else W[:D]
        norm = np.sum(np.sqrt(part**2 + k**2) - k) * attack.radius
    losses = WEIGHTS * loss.value((SIGNS * (Z @ W)).astype(float) - norm)
    mean = (logsumexp(tilt * losses) - np.log(N)) / tilt if tilt else losses.mean()
    value, gradient = objective(loss, tilt, attack).value_and_gradient(W)
    assert value == pytest.approx(N * mean + 0.15 * W @ W + LINEAR @ W, rel=1e-12)
    np.testing.assert_array_equal(objective(loss, tilt, attack).gradient(W), gradient)


@each_loss
@each_tilt
@each_attack
def test_derivatives_against_differences(loss, tilt, attack):
    J = objective(loss, tilt, attack)
    step, identity = 1e-5, np.eye(D + 1)
    numeric = [
        (J.value_and_gradient(W + step * e)[0] - J.value_and_gradient(W - step * e)[0]) / 2e-5
        for e in identity
    ]
    np.testing.assert_allclose(J.gradient(W), numeric, rtol=1e-6, atol=1e-6)
    numeric = [(J.gradient(W + step * e) - J.gradient(W - step * e)) / 2e-5 for e in identity]
    hessian = J.hessian(W)
    np.testing.assert_allclose(hessian, numeric, atol=1e-5 * np.abs(hessian).max())
    v = RNG.standard_normal(D + 1)
    np.testing.assert_allclose(J.hessian_product(W)(v), hessian @ v, rtol=1e-9, atol=1e-10)


def test_without_tilt_and_attack_it_is_the_margin_objective():
    J = objective()
    plain = MarginObjective(J.rows, SIGNS, WEIGHTS, LOGISTIC, 0.3, LINEAR)
    for mine, other in zip(J.value_and_gradient(W), plain.value_and_gradient(W), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-13)
    np.testing.assert_allclose(J.hessian(W), plain.hessian(W), rtol=1e-12)


def test_small_tilts_tend_to_the_sum():
    plain = objective().value_and_gradient(W)
    for tilt in (1e-8, 1e-12, 1e-300):
        value, gradient = objective(tilt=tilt).value_and_gradient(W)
        assert value == pytest.approx(plain[0], rel=1e-6)
        np.testing.assert_allclose(gradient, plain[1], rtol=1e-6)


@each_tilt
@each_attack
@pytest.mark.parametrize("form", [np.asfortranarray, np.float32, sparse.csr_array])
def test_storage_makes_no_difference(tilt, attack, form):
    exact = lambda v: np.asarray(v, dtype=np.float32).astype(np.float64)  # noqa: E731
    first = objective(tilt=tilt, attack=attack, form=exact)
    second = objective(tilt=tilt, attack=attack, form=lambda v: form(exact(v)))
    np.testing.assert_allclose(first.gradient(W), second.gradient(W), atol=1e-10)
    np.testing.assert_allclose(first.hessian(W), second.hessian(W), atol=1e-9)


@each_loss
@each_tilt
@pytest.mark.parametrize("attack", ATTACKS[:3])
def test_public_constants_bound_the_curvature_and_the_gap(loss, tilt, attack):
    rows = clipped_rows(X, 1.0, 0.5)
    J = RobustObjective(rows, SIGNS, WEIGHTS, loss, 0.3, tilt, attack, LINEAR, radius=1.0)
    for w in (np.zeros(D + 1), W, 3 * W / np.linalg.norm(W)):
        eigenvalues = np.linalg.eigvalsh(J.hessian(w))
        assert eigenvalues[-1] <= J.gradient_lipschitz
        assert eigenvalues[0] >= J.ridge * (1 - 1e-9)
    at_zero = J.value_and_gradient(np.zeros(D + 1))[0]
    points = 3 * RNG.standard_normal((50, D + 1)) * RNG.random()
    assert at_zero - min(J.value_and_gradient(w)[0] for w in points) <= J.initial_gap


def test_a_steep_loss_needs_a_radius():
    J = RobustObjective(Rows(X), SIGNS, WEIGHTS, SQUARED, 0.3, tilt=1.0)
    assert math.isinf(J.gradient_lipschitz)
    assert math.isfinite(replace(J, radius=2.0).gradient_lipschitz)


@pytest.mark.parametrize("case", list(data_sets()), ids=lambda case: case[0])
@pytest.mark.parametrize("tilt", [0.0, 50.0, 1e4, 1e300])
def test_no_point_and_no_data_warn(case, tilt):
    _, features, signs = case
    d = features.shape[1]
    for attack in (None, Attack(0.3, 2, d), Attack(0.1, "inf", d, 1e-60)):
        for loss in (LOGISTIC, SQUARED_HINGE):
            rows = clipped_rows(features, 1.0)
            J = RobustObjective(rows, signs, np.ones(len(signs)), loss, 0.1, tilt, attack)
            for w in (0.0, 1.0, 1e8, 1e200):
                w = np.full(J.size, w)
                value, gradient = J.value_and_gradient(w)
                J.hessian(w)
                J.hessian_product(w)(w)
                if w[0] <= 1e8:
                    assert np.isfinite(gradient).all()
                    assert np.isfinite(value)


def test_weights_of_records_do_not_overflow():
    values = np.array([0.0, 1e300, 1e300, -1e300])
    np.testing.assert_array_equal(tilted_weights(values, 1e4), [0.0, 0.5, 0.5, 0.0])
    assert tilted_mean(values, 1e4) == 1e300
    assert tilted_mean(np.array([1.0, 3.0]), 0.0) == 2.0
    assert tilted_mean(np.array([1.0, 3.0]), 1e-9) == pytest.approx(2.0, rel=1e-8)


@pytest.mark.parametrize("n", [1, 1023, 1024, 1025, 5000])
def test_sums_in_runs(n):
    values = RNG.standard_normal(n)
    assert total(values) == pytest.approx(values.sum(), rel=1e-12)


def test_subsample_is_unbiased_in_size_and_keeps_the_rest():
    rows = Rows(RNG.standard_normal((5000, 3)))
    J = RobustObjective(rows, np.ones(5000), np.ones(5000), LOGISTIC, 0.3, tilt=0.7)
    part = J.subsample(512)
    assert part.rows.shape == (512, 3)
    assert part.subsample(100) is None or part.subsample(100).mass == 5000
    w = np.array([0.5, -0.2, 0.1])
    for mine, other in zip(part.value_and_gradient(w), J.value_and_gradient(w), strict=True):
        assert np.linalg.norm(mine - other) < 0.4 * np.linalg.norm(other)
    assert J.subsample(4000) is None


def test_bad_arguments():
    rows = Rows(X)
    good = (rows, SIGNS, WEIGHTS, LOGISTIC, 1.0)
    with pytest.raises(ValueError, match="signs"):
        RobustObjective(rows, SIGNS[1:], WEIGHTS, LOGISTIC, 1.0)
    for tilt in (-1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="tilt"):
            RobustObjective(*good, tilt)
    with pytest.raises(ValueError, match="monotone"):
        RobustObjective(rows, SIGNS, WEIGHTS, SQUARED, 1.0, attack=ATTACKS[1])
    with pytest.raises(ValueError, match="linear"):
        RobustObjective(*good, linear=np.ones(2))
    with pytest.raises(ValueError, match="ridge"):
        RobustObjective(rows, SIGNS, WEIGHTS, HINGE, 0.0)
