"""Separate minimisations behind one release: which record belongs to which side."""

from __future__ import annotations

import numpy as np
import pytest

from dp_halfspace.optim import HINGE, LOGISTIC, RidgeProblem, clipped_rows, huber_hinge
from dp_halfspace.optim.attack import Attack
from dp_halfspace.optim.minimisers import certified_minimisers
from dp_halfspace.optim.robust_objective import RobustObjective
from tests.conftest import separated

N, D, RIDGE = 300, 3, 0.1


def solved(loss, n_classes, codes, X, linear=None):
    problem = RidgeProblem(loss, N, D, n_classes, 1.0, N)
    rows, weights = clipped_rows(X, 1.0), np.linspace(1.0, 2.0, n_classes)
    return (
        problem,
        weights,
        certified_minimisers(
            problem, rows, codes, weights, ridge=RIDGE, tolerance=1e-6, radius=1e3, linear=linear
        ),
    )


def gradient_of(loss, w, X, signs, weights):
    Z = X / np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    return Z.T @ (signs * weights * loss.derivative(signs * (Z @ w))) + RIDGE * N * w


@pytest.mark.parametrize("n_classes", [2, 3])
def test_each_halfspace_is_its_own_minimiser(n_classes):
    """The Huber hinge has one problem for each class against the rest; of two, the second."""
    X, codes = separated(N, D, n_classes)
    loss = huber_hinge(0.5)
    problem, weights, W = solved(loss, n_classes, codes, X)
    assert W.shape == (1 if n_classes == 2 else n_classes, D)
    assert not problem.multinomial
    for row, k in zip(W, [1] if n_classes == 2 else range(n_classes), strict=True):
        signs = np.where(codes == k, 1.0, -1.0)
        assert np.linalg.norm(gradient_of(loss, row, X, signs, weights[codes])) <= 1.1e-6


def test_linear_terms_belong_to_their_problems():
    X, codes = separated(N, D, 3)
    loss = huber_hinge(0.5)
    linear = [np.full((1, D), float(k)) for k in range(3)]
    _, weights, W = solved(loss, 3, codes, X, linear)
    for k, row in enumerate(W):
        signs = np.where(codes == k, 1.0, -1.0)
        gradient = gradient_of(loss, row, X, signs, weights[codes]) + linear[k].ravel()
        assert np.linalg.norm(gradient) <= 1.1e-6


def test_softmax_is_one_problem_and_the_hinge_has_its_own_solver():
    X, codes = separated(N, D, 3)
    problem, _, W = solved(LOGISTIC, 3, codes, X)
    assert problem.multinomial
    np.testing.assert_allclose(W.sum(axis=0), 0.0, atol=1e-6)
    _, _, W = solved(HINGE, 2, (codes > 0).astype(int), X)
    assert W.shape == (1, D)


@pytest.mark.parametrize("smoothing", [1e-3, 1e-9])
def test_linear_terms_and_an_attack(smoothing):
    """What objective perturbation needs: certified with a linear term, on a surrogate's path."""
    X, codes = separated(N, D, 2)
    attack = Attack(0.2, "inf", D, smoothing)
    problem = RidgeProblem(LOGISTIC, N, D, 2, 1.0, N, attack=attack)
    linear = [np.full((1, D), 3.0)]
    rows = clipped_rows(X, 1.0)
    w = certified_minimisers(
        problem,
        rows,
        codes,
        np.ones(2),
        ridge=0.1,
        tolerance=1e-6,
        radius=100.0,
        linear=linear,
        surrogate=clipped_rows(np.asfortranarray(X), 1.0),
    )
    signs = np.where(codes == 1, 1.0, -1.0)
    J = RobustObjective(rows, signs, np.ones(N), LOGISTIC, 0.1 * N, 0.0, attack, linear[0].ravel())
    assert np.linalg.norm(J.gradient(w.ravel())) <= 1.1e-6
