"""The fast paths: they converge where theory says so, and give up without harm."""

import numpy as np
import pytest

from dp_halfspace.optim import solvers as descent
from dp_halfspace.optim.losses import LOGISTIC, SQUARED, SQUARED_HINGE, huber_hinge
from dp_halfspace.optim.objectives import MarginObjective
from dp_halfspace.optim.solvers import (
    bfgs,
    lbfgs,
    newton_cg,
    newton_cg_path,
    point_at,
)
from dp_halfspace.rows.rows import clipped_rows
from tests.optim.cases import Counting, loss_id


def problem(loss, ridge=1e-3, n=6000, d=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.geomspace(1, 0.05, d)
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
    rows = clipped_rows(X, 2.0, 0.5)
    return Counting(MarginObjective(rows, y, np.ones(n), loss, ridge * n))


def zero(J):
    return point_at(J, np.zeros(J.size))


LOSSES = [LOGISTIC, huber_hinge(0.5), huber_hinge(0.01), SQUARED_HINGE, SQUARED]
METHODS = {
    "bfgs": lambda J, target: bfgs(J, zero(J), target),
    "newton_cg": lambda J, target: newton_cg(J, zero(J), target, 5000),
    "newton_cg_path": lambda J, target: newton_cg_path(J, target, 5000),
    "lbfgs": lambda J, target: lbfgs(J, zero(J), target, lambda v: v / J.gradient_lipschitz, 2000),
}


@pytest.mark.sampled(20)
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("ridge", [1e-1, 1e-3])
def test_methods_reach_the_target(loss, method, ridge):
    J = problem(loss, ridge, n=1500)
    point = METHODS[method](J, 1e-7)
    assert point.norm <= 1e-7
    np.testing.assert_array_equal(point.gradient, J.gradient(point.w))


def test_steps_of_bfgs_are_those_of_its_inverse_hessian():
    first, *steps = np.random.default_rng(0).normal(size=(4, 4))
    pairs, inverse = [(step, step**3, float(step @ step**3)) for step in steps], 0.3 * np.eye(4)
    for step, change, product in pairs:
        left = np.eye(4) - np.outer(step, change) / product
        inverse = left @ inverse @ left.T + np.outer(step, step) / product
    np.testing.assert_allclose(descent._two_loops(first, pairs, lambda v: 0.3 * v), inverse @ first)


def test_search_refuses_an_ascent_and_survives_infinity():
    J = problem(LOGISTIC, n=100)
    start = zero(J)
    assert descent._search(J, start, start.gradient) is None
    with np.errstate(all="ignore"):
        found = descent._search(J, start, -1e300 * start.gradient)
    assert found is None or np.isfinite(found.w).all()


def test_search_does_not_jump_to_the_other_side():
    """A small slope can be found far away, where the objective is a million times larger."""
    J = problem(huber_hinge(0.3), ridge=1e-8)
    start = zero(J)
    found = descent._search(J, start, -start.gradient / J.ridge)
    assert J.value_and_gradient(found.w)[0] <= 3 * J.value_and_gradient(start.w)[0]


@pytest.mark.parametrize("sign", [np.nan, -1.0], ids=["not finite", "indefinite"])
def test_a_bad_hessian_stops_bfgs(sign):
    J = problem(LOGISTIC, n=100)
    J.hessian = lambda w: sign * np.eye(J.size)
    start = zero(J)
    assert bfgs(J, start, 1e-9) is start


def test_negative_curvature_stops_conjugate_gradients():
    x, count = descent._conjugate_gradients(lambda v: -v, np.ones(3), 1e-9)
    assert count == 1
    np.testing.assert_array_equal(x, np.zeros(3))


def test_path_returns_at_once_from_a_minimum():
    J = problem(LOGISTIC, n=100)
    J.objective = MarginObjective(
        clipped_rows(np.zeros((4, 2)), 1.0), np.ones(4), np.ones(4), LOGISTIC, 1.0
    )
    point = newton_cg_path(J, 1e-9, 100)
    assert J.gradients == 1
    assert point.norm == 0.0
