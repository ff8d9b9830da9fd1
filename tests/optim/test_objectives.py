"""Values, gradients and Hessians against differences and the plain formulas."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from dp_halfspace.optim._terms import spread
from dp_halfspace.optim.losses import LOGISTIC, SQUARED, huber_hinge
from dp_halfspace.optim.objectives import MarginObjective
from dp_halfspace.optim.rows import Rows, clipped_rows
from tests.optim.cases import SMOOTH, data_sets, logical_rows, loss_id, naive_gradient

RNG = np.random.default_rng(0)
N, D = 400, 5
X = RNG.standard_normal((N, D))
SIGNS = np.where(RNG.random(N) < 0.4, -1.0, 1.0)
WEIGHTS = RNG.random(N) + 0.1
SCALE = RNG.random(N)
LINEAR = RNG.standard_normal(D + 1)
W = 0.7 * RNG.standard_normal(D + 1)
each_smooth = pytest.mark.parametrize("loss", SMOOTH, ids=loss_id)


def objective(loss=LOGISTIC, linear=LINEAR, form=np.asarray):
    rows = Rows(form(X), SCALE, 0.5)
    return MarginObjective(rows, SIGNS, WEIGHTS, loss, 0.3, linear)


@each_smooth
@pytest.mark.parametrize("linear", [None, LINEAR], ids=["", "linear"])
def test_value_and_gradient_are_the_formula(loss, linear):
    J = objective(loss, linear)
    Z = logical_rows(X, SCALE, 0.5)
    margins = (SIGNS * (Z @ W)).astype(float)
    value = WEIGHTS @ loss.value(margins) + 0.15 * W @ W + (0 if linear is None else linear @ W)
    expected = naive_gradient(Z, SIGNS, WEIGHTS, loss, 0.3, W, linear).astype(float)
    found, gradient = J.value_and_gradient(W)
    assert found == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(gradient, expected, atol=1e-11)
    np.testing.assert_array_equal(J.gradient(W), gradient)


@each_smooth
def test_gradient_against_differences_of_the_value(loss):
    J = objective(loss)
    step = 1e-5
    numeric = [
        (J.value_and_gradient(W + e)[0] - J.value_and_gradient(W - e)[0]) / (2 * step)
        for e in step * np.eye(D + 1)
    ]
    np.testing.assert_allclose(J.gradient(W), numeric, rtol=1e-6, atol=1e-5)


@each_smooth
def test_hessian_against_differences_of_the_gradient(loss):
    J = objective(loss)
    step = 1e-7
    numeric = np.column_stack(
        [(J.gradient(W + e) - J.gradient(W - e)) / (2 * step) for e in step * np.eye(D + 1)]
    )
    hessian = J.hessian(W)
    np.testing.assert_allclose(hessian, numeric, rtol=1e-4, atol=1e-4)
    v = RNG.standard_normal(D + 1)
    np.testing.assert_allclose(J.hessian_product(W)(v), hessian @ v, rtol=1e-12)


@pytest.mark.parametrize("form", [np.asfortranarray, np.float32, sparse.csr_array])
def test_storage_makes_no_difference(form):
    loss = huber_hinge(0.5)
    # The same numbers: those that float32 can hold.
    exact = lambda v: np.asarray(v, dtype=np.float32).astype(np.float64)  # noqa: E731
    first, second = objective(loss, form=exact), objective(loss, form=lambda v: form(exact(v)))
    np.testing.assert_allclose(first.gradient(W), second.gradient(W), atol=1e-12)
    np.testing.assert_allclose(first.hessian(W), second.hessian(W), atol=1e-12)


@each_smooth
def test_public_constants_bound_the_curvature_and_the_gap(loss):
    J = MarginObjective(clipped_rows(X, 1.0, 0.5), SIGNS, WEIGHTS, loss, 0.3, LINEAR)
    for w in (np.zeros(D + 1), W, 3 * W):
        eigenvalues = np.linalg.eigvalsh(J.hessian(w))
        assert eigenvalues[-1] <= J.gradient_lipschitz
        assert eigenvalues[0] >= J.ridge * (1 - 1e-12)
    at_zero = J.value_and_gradient(np.zeros(D + 1))[0]
    lowest = min(
        J.value_and_gradient(w)[0] for w in 3 * RNG.standard_normal((200, D + 1)) * RNG.random()
    )
    assert at_zero - lowest <= J.initial_gap


def test_gradient_lipschitz_is_the_formula():
    J = MarginObjective(clipped_rows(X, 2.0), SIGNS, WEIGHTS, huber_hinge(0.25), 0.3)
    assert J.gradient_lipschitz == pytest.approx(N * WEIGHTS.max() * 2 * 4 + 0.3)


def test_small_integer_signs():
    J = objective()
    np.testing.assert_array_equal(
        replace(J, signs=SIGNS.astype(np.int8)).gradient(W), J.gradient(W)
    )


def test_subsample_is_unbiased_in_size_and_keeps_the_rest():
    rows = Rows(RNG.standard_normal((5000, 3)))
    J = MarginObjective(rows, np.ones(5000), np.ones(5000), SQUARED, 0.3, np.ones(3))
    part = J.subsample(512)
    assert part.rows.shape == (512, 3)
    assert part.weights.sum() == pytest.approx(5000)
    assert part.ridge == J.ridge
    assert part.linear is J.linear
    difference = part.gradient(np.ones(3)) - J.gradient(np.ones(3))
    assert np.linalg.norm(difference) < 0.2 * np.linalg.norm(J.gradient(np.ones(3)))
    assert J.subsample(4000) is None


def test_spread_takes_rows_from_everywhere():
    index = spread(10_000, 1000)
    assert len(index) == len(set(index)) == 1024
    assert index.min() == 0
    assert index.max() == 9999
    assert len(spread(3000, 1000)) == 704
    assert spread(1500, 1000) is None


@pytest.mark.parametrize("case", list(data_sets()), ids=lambda case: case[0])
@pytest.mark.parametrize("w", [0.0, 1.0, 1e8, 1e200])
def test_no_point_and_no_data_warn(case, w):
    _, features, signs = case
    J = MarginObjective(clipped_rows(features, 1.0), signs, np.ones(len(signs)), LOGISTIC, 0.1)
    w = np.full(J.size, w)
    J.value_and_gradient(w)
    J.hessian(w)
    J.hessian_product(w)(w)


def test_bad_arguments():
    rows = Rows(X)
    for ridge in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="ridge"):
            MarginObjective(rows, SIGNS, WEIGHTS, LOGISTIC, ridge)
    with pytest.raises(ValueError, match="signs"):
        MarginObjective(rows, SIGNS[1:], WEIGHTS, LOGISTIC, 1.0)
    with pytest.raises(ValueError, match="weights"):
        MarginObjective(rows, SIGNS, WEIGHTS[1:], LOGISTIC, 1.0)
    with pytest.raises(ValueError, match="linear"):
        MarginObjective(rows, SIGNS, WEIGHTS, LOGISTIC, 1.0, np.ones(2))
