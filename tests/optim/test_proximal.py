"""The smoothed hinges against their definition, and the steps against the exact minimiser."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dp_halfspace.optim.losses import HINGE, huber_hinge
from dp_halfspace.optim.objectives import MarginObjective
from dp_halfspace.optim.proximal import ProximalHinge, multiplier_steps
from dp_halfspace.optim.rows import Rows, clipped_rows

RNG = np.random.default_rng(0)
N, D = 120, 4
X = RNG.standard_normal((N, D))
SIGNS = np.where(RNG.random(N) < 0.4, -1.0, 1.0)
WEIGHTS = RNG.random(N) + 0.1
CENTRE = RNG.random(N) * WEIGHTS
W = RNG.standard_normal(D)


def hinges(weights=WEIGHTS, ridge=0.7, form=np.asarray):
    return MarginObjective(Rows(form(X)), SIGNS, weights, HINGE, ridge)


def value(function, w):
    """The definition, with the inner maximum over a fine grid."""
    c, h, a0 = function.hinges.weights, function.width, function.centre
    margins = SIGNS * (X @ w)
    a = np.linspace(0, 1, 4001)[:, None] * c
    inner = (a * (1 - margins) - h / c * (a - a0) ** 2).max(axis=0)
    return inner.sum() + function.ridge / 2 * w @ w


@pytest.mark.parametrize("width", [0.5, 0.05])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_gradient_and_hessian_are_those_of_the_definition(width, form):
    function = ProximalHinge(hinges(form=form), CENTRE, width)
    step = 1e-3
    numeric = [
        (value(function, W + e) - value(function, W - e)) / (2 * step) for e in step * np.eye(D)
    ]
    np.testing.assert_allclose(function.gradient(W), numeric, rtol=2e-3, atol=2e-3)
    step = 1e-7
    numeric = np.column_stack(
        [
            (function.gradient(W + e) - function.gradient(W - e)) / (2 * step)
            for e in step * np.eye(D)
        ]
    )
    hessian = function.hessian(W)
    np.testing.assert_allclose(hessian, numeric, rtol=1e-4, atol=1e-3)
    v = RNG.standard_normal(D)
    np.testing.assert_allclose(function.hessian_product(W)(v), hessian @ v, rtol=1e-11)


def test_duals_maximise():
    function = ProximalHinge(hinges(), CENTRE, 0.3)
    margins = SIGNS * (X @ W)
    duals = function.duals(margins, 0, N)
    for other in RNG.random((200, N)) * WEIGHTS:

        def inner(a):
            return a * (1 - margins) - 0.3 / WEIGHTS * (a - CENTRE) ** 2

        assert (inner(duals) >= inner(other) - 1e-12).all()


def test_centred_in_the_middle_it_is_the_huber_hinge():
    objective = hinges()
    function = ProximalHinge(objective, WEIGHTS / 2, 0.3)
    huber = MarginObjective(objective.rows, SIGNS, WEIGHTS, huber_hinge(0.3), 0.7)
    np.testing.assert_allclose(function.gradient(W), huber.gradient(W), atol=1e-12)
    np.testing.assert_allclose(function.hessian(W), huber.hessian(W), atol=1e-12)


def test_gap_at_zero_is_bounded():
    function = ProximalHinge(hinges(), CENTRE, 0.3)
    lowest = min(value(function, w) for w in RNG.standard_normal((30, D)))
    assert value(function, np.zeros(D)) - lowest <= function.initial_gap


@pytest.mark.parametrize("weightless", [False, True])
def test_steps_converge_to_the_minimiser(weightless):
    weights = np.where(np.arange(N) % 3 == 0, 0.0, WEIGHTS) if weightless else WEIGHTS
    objective = MarginObjective(clipped_rows(X, 1.0, 0.5), SIGNS, weights, HINGE, 1.2)
    *_, (best, _) = multiplier_steps(objective, 1e-12)
    distances = []
    for w, alpha in multiplier_steps(objective, 1e-9):
        assert ((alpha >= 0) & (alpha <= weights)).all()
        distances.append(np.linalg.norm(w - best))
    assert distances[0] > 1e-3
    assert distances[12] < 1e-6


def test_no_point_warns():
    function = ProximalHinge(hinges(), CENTRE, 1e-10)
    for scale in (1e8, 1e200):
        function.gradient(scale * W)
        function.hessian(scale * W)
        function.hessian_product(scale * W)(scale * W)
