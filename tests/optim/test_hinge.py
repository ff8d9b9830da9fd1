"""Minimisers on kinks: the duality gap certifies what no gradient can."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import LinearConstraint, minimize
from sklearn.svm import LinearSVC

from dp_halfspace.exceptions import CertificateError
from dp_halfspace.optim import hinge
from dp_halfspace.optim.hinge import (
    certified_hinge,
    dual_accelerated_gradient,
    duality_gap,
    hinge_tolerance,
)
from dp_halfspace.optim.losses import HINGE, LOGISTIC
from dp_halfspace.optim.objectives import MarginObjective
from dp_halfspace.optim.rows import Rows, clipped_rows
from dp_halfspace.optim.stability import minimiser_radius
from tests.optim.cases import clipped_float128, data_sets, mostly_zero, random_problem

CASES = list(data_sets())
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])


def problem(X, signs, ridge, *, weights=None, bias=0.5, form=np.asarray):
    """Objective, extended-precision rows, radius and tolerance, for a ridge per mean loss."""
    n = len(signs)
    weights = np.ones(n) if weights is None else weights
    J = MarginObjective(clipped_rows(form(X), 1.0, bias), signs, weights, HINGE, ridge * n)
    r, c = J.rows.row_bound, float(weights.max())
    radius = minimiser_radius(HINGE, row_norm=r, ridge=ridge, max_weight=c)
    rule = hinge_tolerance(
        change=2 * r * c,
        n_samples=n,
        n_columns=J.rows.shape[1],
        block_rows=J.rows.block_rows,
        row_norm=r,
        ridge=J.ridge,
        radius=radius,
        max_weight=c,
    )
    return J, clipped_float128(X, 1.0, bias), radius, rule


def primal(J, Z, w):
    """The objective in extended precision."""
    wide = np.asarray(w, dtype=np.longdouble)
    losses = np.maximum(1 - J.signs * (Z @ wide), 0)
    return float(J.weights @ losses + J.ridge / 2 * wide @ wide)


def exact_minimiser(J, Z):
    """An independent solver: the quadratic programme with slack variables, small sizes."""
    n, d = Z.shape
    A = np.hstack([J.signs[:, None] * Z.astype(float), np.eye(n)])
    zero, one = np.zeros(d), np.ones(n)

    def value(v):
        return J.weights @ v[d:] + J.ridge / 2 * v[:d] @ v[:d]

    def slope(v):
        return np.concatenate([J.ridge * v[:d], J.weights])

    found = minimize(
        value,
        np.concatenate([zero, one]),
        jac=slope,
        method="SLSQP",
        bounds=[(None, None)] * d + [(0, None)] * n,
        constraints=LinearConstraint(A, 1.0, np.inf),
        options={"ftol": 1e-15, "maxiter": 500},
    )
    return found.x[:d]


def distance_bound(J, Z, w, better):
    """Strong convexity turns a lower objective elsewhere into a distance from below."""
    return math.sqrt(max(0.0, 2 * (primal(J, Z, better) - primal(J, Z, w)) / J.ridge))


def test_one_record_on_its_kink():
    """No subgradient is small at any double next to this minimiser, 10/3."""
    X = np.array([[0.3]])
    J, _, radius, rule = problem(X, np.ones(1), 0.05, bias=None)
    w = certified_hinge(J, rule.gap, radius=radius)
    assert abs(w[0] - 1 / 0.3) <= rule.distance
    for near in (w[0], np.nextafter(1 / 0.3, 0), np.nextafter(1 / 0.3, 9)):
        slopes = [0.05 * near - 0.3 * (0.3 * near < 1), 0.05 * near - 0.3, 0.05 * near]
        assert min(abs(s) for s in slopes[:1]) > 0.1


@each_case
@pytest.mark.parametrize("ridge", [1.0, 1e-1, 1e-2, 1e-5])
def test_certified_on_every_data_set(case, ridge, monkeypatch):
    """With the fast path alone; a gap in extended precision confirms the distance."""
    _, X, signs = case
    J, Z, radius, rule = problem(X, signs, ridge)
    monkeypatch.setattr(hinge, "dual_accelerated_gradient", None)
    w = certified_hinge(J, rule.gap, radius=radius)
    assert np.linalg.norm(w) <= rule.radius
    tighter = certified_hinge(J, rule.gap / 100, radius=radius)
    assert np.linalg.norm(w - tighter) <= 1.1 * rule.distance
    assert distance_bound(J, Z, tighter, w) <= rule.distance


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("ridge", [0.3, 0.01])
def test_agrees_with_a_quadratic_programme(seed, ridge):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 25)), int(rng.integers(1, 5))
    X = rng.standard_normal((n, d)).round(1)
    signs = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    J, Z, radius, rule = problem(X, signs, ridge, weights=rng.choice([0.3, 1.0], n))
    w = certified_hinge(J, rule.gap, radius=radius)
    assert np.linalg.norm(w - exact_minimiser(J, Z)) <= rule.distance + 1e-4


def test_agrees_with_linear_svc():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4)) / 3
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(300) > 0, 1, -1)
    J = MarginObjective(Rows(X), y.astype(float), np.ones(300), HINGE, 3.0)
    svc = LinearSVC(C=1 / 3, loss="hinge", fit_intercept=False, tol=1e-10, random_state=0)
    svc.set_params(max_iter=10**6)
    svc.fit(X, y)
    w = certified_hinge(J, 1e-9, radius=100.0)
    np.testing.assert_allclose(w, svc.coef_[0], atol=1e-6)


@pytest.mark.parametrize("form", [np.asfortranarray, np.float32, sparse.csr_array])
def test_storage_makes_no_difference(form):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 4)).astype(np.float32).astype(np.float64)
    signs = np.where(X[:, 0] > 0.1, 1.0, -1.0)
    found = []
    for f in (np.asarray, form):
        J, _, radius, rule = problem(X, signs, 0.01, form=f)
        found.append(certified_hinge(J, rule.gap, radius=radius))
    assert np.linalg.norm(found[0] - found[1]) <= 2 * rule.distance


def test_more_coefficients_than_a_dense_hessian_allows(monkeypatch):
    monkeypatch.setattr(hinge, "dual_accelerated_gradient", None)
    rng = np.random.default_rng(0)
    X = mostly_zero(300, 700, 0.05, rng).toarray()
    signs = np.where(rng.random(300) < 0.5, -1.0, 1.0)
    J, Z, radius, rule = problem(X, signs, 0.01, form=sparse.csr_array)
    w = certified_hinge(J, rule.gap, radius=radius)
    tighter = certified_hinge(J, rule.gap / 100, radius=radius)
    assert distance_bound(J, Z, tighter, w) <= rule.distance
    assert np.linalg.norm(w - tighter) <= 1.1 * rule.distance


def test_fast_path_is_enough_on_random_problems(monkeypatch):
    monkeypatch.setattr(hinge, "dual_accelerated_gradient", None)
    for seed in range(120):
        X, signs, weights, ridge = random_problem(seed)
        J, Z, radius, rule = problem(X, signs, ridge, weights=weights)
        w = certified_hinge(J, rule.gap, radius=radius)
        tighter = certified_hinge(J, rule.gap / 10, radius=radius)
        assert np.linalg.norm(w - tighter) <= 1.4 * rule.distance
        assert distance_bound(J, Z, tighter, w) <= rule.distance


# --- the certificate itself ---


@given(st.integers(0, 10**6))
def test_gap_bounds_the_distance_for_any_dual_variables(seed):
    """The lemma, for duals that have nothing to do with the solution."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 12)), int(rng.integers(1, 4))
    X, signs = rng.standard_normal((n, d)), np.where(rng.random(n) < 0.5, -1.0, 1.0)
    J, Z, radius, rule = problem(X, signs, 0.1, weights=rng.random(n) + 0.1)
    alpha = rng.random(n) * J.weights
    best = certified_hinge(J, rule.gap, radius=radius)
    for w in (hinge._point_of(J, alpha), rng.standard_normal(J.size)):
        gap = duality_gap(J, w, alpha)
        assert gap >= primal(J, Z, w) - primal(J, Z, best) - 1e-9
        assert np.linalg.norm(w - best) <= math.sqrt(2 * gap / J.ridge) + rule.distance


@pytest.mark.parametrize("shift", [0.0, 1e-3])
def test_computed_gap_against_the_exact_one(shift):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 6)) * 10.0 ** rng.integers(-4, 3, (400, 6))
    signs = np.where(rng.random(400) < 0.5, -1.0, 1.0)
    J, Z, _, rule = problem(X, signs, 1e-3)
    alpha = rng.random(400)
    w = hinge._point_of(J, alpha) + shift
    wide, wide_alpha = w.astype(np.longdouble), alpha.astype(np.longdouble)
    point = Z.T @ (wide_alpha * signs) / J.ridge
    dual = wide_alpha.sum() - J.ridge / 2 * point @ point
    losses = J.weights @ np.maximum(1 - signs * (Z @ wide), 0)
    exact = losses + J.ridge / 2 * wide @ wide - dual
    # The computed gap counts the distance of the two points twice.
    exact += J.ridge / 2 * (wide - point) @ (wide - point)
    allowed = 0.99 * J.ridge * rule.distance**2 / 2 - rule.gap
    assert abs(float(exact) - duality_gap(J, w, alpha)) <= allowed + 1e-3 * float(exact)


def test_a_solver_that_stops_early_is_seen(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    signs = np.where(X[:, 0] + 0.5 * rng.standard_normal(300) > 0, 1.0, -1.0)
    J, _, radius, rule = problem(X, signs, 0.01)
    best = certified_hinge(J, rule.gap, radius=radius)
    rough = certified_hinge(J, 1e5 * rule.gap, radius=radius)
    assert np.linalg.norm(rough - best) > 2 * rule.distance


# --- the fallback ---


@each_case
def test_fallback_certifies_when_the_fast_path_fails(case, monkeypatch):
    _, X, signs = case
    J, _, radius, rule = problem(X, signs, 0.3)
    best = certified_hinge(J, rule.gap, radius=radius)
    reached = []

    def watched(*arguments):
        reached.append(1)
        return dual_accelerated_gradient(*arguments)

    monkeypatch.setattr(hinge, "dual_accelerated_gradient", watched)
    useless = (np.full(J.size, np.nan), np.zeros(len(X)))
    monkeypatch.setattr(hinge, "multiplier_steps", lambda objective, gap: iter([useless]))
    w = certified_hinge(J, rule.gap, radius=radius)
    assert reached
    assert np.linalg.norm(w - best) <= 2 * rule.distance


@pytest.mark.parametrize("seed", range(4))
def test_without_early_stop_the_promised_steps_are_enough(seed, monkeypatch):
    """The guarantee itself: the count of the theorem, no look at the gap."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, 3))
    signs = np.where(rng.random(20) < 0.5, -1.0, 1.0)
    J, _, radius, rule = problem(X, signs, 0.2, weights=rng.random(20) + 0.2)
    best = certified_hinge(J, rule.gap / 1e4, radius=radius)
    monkeypatch.setattr(hinge, "duality_gap", lambda *arguments: math.inf)
    for gap in (1e-1, 1e-3, 1e-5):
        for start in (None, np.zeros(20), J.weights):
            w = dual_accelerated_gradient(J, gap, start)
            assert np.linalg.norm(w - best) <= math.sqrt(2 * gap / J.ridge)


def test_all_records_on_the_kink_at_any_scale(monkeypatch):
    """One class and an intercept: every margin is 1, whatever tiny features add to it."""
    monkeypatch.setattr(hinge, "dual_accelerated_gradient", None)
    for scale in (1.0, 1e-3, 1e-6):
        X = scale * np.random.default_rng(0).standard_normal((2000, 5))
        for ridge in (0.9, 0.25, 0.01):
            J, Z, radius, rule = problem(X, np.ones(2000), ridge, bias=1.0)
            w = certified_hinge(J, rule.gap, radius=radius)
            assert distance_bound(J, Z, np.append(np.zeros(5), 1.0), w) <= rule.distance


# --- the tolerance ---

SIZES = {"n_samples": 1000, "n_columns": 10, "block_rows": 1000, "row_norm": 1.0, "ridge": 10.0}


def test_rule():
    rule = hinge_tolerance(change=2.0, **SIZES, radius=10.0)
    assert rule.distance == 5e-3 * 0.2
    assert rule.radius == 10.2
    assert 0.9 < rule.gap / (10.0 * rule.distance**2 / 2) < 0.99


@pytest.mark.parametrize("n", [1, 100, 10**5, 10**6])
@pytest.mark.parametrize("ridge", [1.0, 1e-2, 1e-4])
def test_the_certificate_costs_little(n, ridge):
    rule = hinge_tolerance(
        change=2.0,
        n_samples=n,
        n_columns=51,
        block_rows=min(n, 3855),
        row_norm=1.0,
        ridge=ridge * n,
        radius=math.sqrt(1 / ridge),
    )
    share = rule.distance * ridge * n / 2.0
    assert share < (0.006 if n <= 10**5 and ridge <= 1e-2 else 0.1)
    assert rule.gap > 0


@pytest.mark.parametrize(
    "change",
    [
        {"n_samples": 10**10},
        {"n_columns": 10**10},
        {"change": 1e-8},
        {"row_norm": 1e-40},
        {"radius": 1e40},
    ],
    ids=str,
)
def test_refusals_come_from_public_numbers(change):
    with pytest.raises(CertificateError):
        hinge_tolerance(**{**SIZES, "change": 2.0, "radius": 10.0, **change})


def test_bad_arguments():
    J, _, _, _ = problem(np.eye(2), np.ones(2), 0.1)
    for bad in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="gap"):
            certified_hinge(J, bad, radius=1.0)
        with pytest.raises(ValueError, match="radius"):
            certified_hinge(J, 1e-6, radius=bad)
    logistic = MarginObjective(J.rows, J.signs, J.weights, LOGISTIC, 1.0)
    linear = MarginObjective(J.rows, J.signs, J.weights, HINGE, 1.0, np.ones(3))
    for other in (logistic, linear):
        with pytest.raises(ValueError, match="hinge"):
            certified_hinge(other, 1e-6, radius=1.0)
