"""Rounding errors of tilted and robust gradients are below their public bound, and certified."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy import sparse

from dp_halfspace.exceptions import CertificateError
from dp_halfspace.optim import HINGE, LOGISTIC, SQUARED_HINGE, huber_hinge, shifted_logistic
from dp_halfspace.optim.attack import Attack
from dp_halfspace.optim.blocks import block_size
from dp_halfspace.optim.erm import RidgeProblem, minimise, plan_erm
from dp_halfspace.optim.objectives import SoftmaxObjective
from dp_halfspace.optim.robust_objective import RobustObjective
from dp_halfspace.optim.robust_tolerance import robust_error, robust_tolerance
from dp_halfspace.optim.rows import Rows, clipped_rows
from dp_halfspace.optim.tilted_softmax import TiltedSoftmaxObjective
from tests.optim.cases import data_sets, exact_slope, logical_rows, norm_mp

SIZES = {"n_samples": 1000, "n_columns": 10, "block_rows": 1000, "row_norm": 1.0}
SMOOTH = [LOGISTIC, huber_hinge(0.5), SQUARED_HINGE]
ATTACKS = {
    "none": None,
    "L2": Attack(0.3, 2, 6, 1e-3),
    "inf": Attack(0.1, "inf", 6, 1e-9),
}
each_loss = pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: loss.name)
each_attack = pytest.mark.parametrize("attack", list(ATTACKS))


def exact_value(loss, t):
    """Value of a smooth loss at an mpmath number."""
    if loss.name == "logistic":
        return mpmath.log1p(mpmath.exp(-t))
    if loss.name == "squared_hinge":
        return max(1 - t, mpmath.mpf(0)) ** 2
    knot, width = (mpmath.mpf(loss.value.keywords[k]) for k in ("knot", "width"))
    x = knot - t
    inner = min(max(x, mpmath.mpf(0)), width)
    return inner**2 / (2 * width) + max(x - width, mpmath.mpf(0))


def exact_gradient(Z, signs, weights, loss, ridge, w, tilt, attack):
    """Gradient of the objective in 60 digits, written anew."""
    with mpmath.workdps(60):
        w = [mpmath.mpf(float(v)) for v in w]
        u = [mpmath.mpf(0)] * len(w)
        norm = mpmath.mpf(0)
        if attack is not None:
            rho, k, d = mpmath.mpf(attack.radius), mpmath.mpf(attack.smoothing), attack.n_attacked
            if attack.norm == 2:
                root = mpmath.sqrt(mpmath.fsum(v * v for v in w[:d]) + k * k)
                norm, roots = root - k, [root] * d
            else:
                roots = [mpmath.sqrt(v * v + k * k) for v in w[:d]]
                norm = mpmath.fsum(roots) - d * k
            norm *= rho
            u[:d] = [rho * v / r for v, r in zip(w[:d], roots, strict=True)]
        slopes, values, rows = [], [], []
        for row, sign, weight in zip(Z, signs, weights, strict=True):
            highs = [float(v) for v in row]
            z = [
                float(sign) * (mpmath.mpf(h) + mpmath.mpf(float(v - np.longdouble(h))))
                for v, h in zip(row, highs, strict=True)
            ]
            t = mpmath.fdot(z, w) - norm
            slopes.append(mpmath.mpf(float(weight)) * exact_slope(loss, t))
            values.append(mpmath.mpf(float(weight)) * exact_value(loss, t))
            rows.append([a - b for a, b in zip(z, u, strict=True)])
        top = max(values)
        shares = [mpmath.exp(mpmath.mpf(tilt) * (v - top)) for v in values]
        scale = len(values) / mpmath.fsum(shares)
        total = [mpmath.mpf(float(ridge)) * v for v in w]
        for slope, share, row in zip(slopes, shares, rows, strict=True):
            total = [a + scale * share * slope * b for a, b in zip(total, row, strict=True)]
        return total


def error_of(found, exact):
    with mpmath.workdps(60):
        return norm_mp([mpmath.mpf(float(f)) - e for f, e in zip(found, exact, strict=True)])


def adversarial_rows(n=150, d=6, seed=0):
    """Margins that cancel, and records that cancel each other."""
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((n // 2, d)) * 10.0 ** rng.integers(-3, 1, (n // 2, d))
    X = np.vstack([half, -half + 1e-9 * rng.standard_normal(half.shape)])
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X[rng.permutation(n)]


def bound_at(J, w, tilt):
    """The bound with the norm of this very point as radius."""
    problem = RidgeProblem(
        J.loss, *J.rows.shape, 2, J.rows.row_bound, 64, J.weights.max(), tilt, J.attack
    )
    return robust_error(
        problem,
        n_samples=J.rows.shape[0],
        n_columns=J.rows.shape[1],
        block_rows=J.rows.block_rows,
        row_norm=J.rows.row_bound,
        ridge=J.ridge,
        radius=float(np.linalg.norm(w)),
        max_weight=J.weights.max(),
    )


@each_loss
@each_attack
@pytest.mark.parametrize("tilt", [0.0, 3.0])
@pytest.mark.parametrize("size", [0.0, 1.0, 20.0])
def test_measured_error_is_below_the_bound(loss, attack, tilt, size):
    attack = ATTACKS[attack]
    X = adversarial_rows()
    rng = np.random.default_rng(1)
    signs = np.where(rng.random(len(X)) < 0.5, -1.0, 1.0)
    weights = rng.random(len(X)) + 0.5
    rows = clipped_rows(X, 1.0, 0.25)
    J = RobustObjective(rows, signs, weights, loss, 0.7, tilt, attack)
    w = size * rng.standard_normal(7)
    w[2] *= 1e-9
    exact = exact_gradient(
        logical_rows(X, rows._scale, 0.25), signs, weights, loss, 0.7, w, tilt, attack
    )
    error, bound = error_of(J.gradient(w), exact), bound_at(J, w, tilt)
    assert error <= bound


@each_attack
def test_a_tilt_of_ten_thousand_is_within_the_bound(attack):
    X, tilt = adversarial_rows(40), 1e4
    signs = np.ones(len(X))
    J = RobustObjective(Rows(X, row_bound=1.0), signs, signs, LOGISTIC, 0.7, tilt, ATTACKS[attack])
    w = np.random.default_rng(0).standard_normal(6)
    exact = exact_gradient(logical_rows(X), signs, signs, LOGISTIC, 0.7, w, tilt, ATTACKS[attack])
    error = error_of(J.gradient(w), exact)
    assert error <= bound_at(J, w, tilt)


def test_an_imprecise_gradient_is_seen():
    """Planted bug: losses in float32 break the bound through the weights."""
    X, tilt = adversarial_rows(), 20.0
    signs = np.ones(len(X))
    J = RobustObjective(Rows(X, row_bound=1.0), signs, signs, LOGISTIC, 0.7, tilt)
    w = np.random.default_rng(0).standard_normal(6)
    exact = exact_gradient(logical_rows(X), signs, signs, LOGISTIC, 0.7, w, tilt, None)
    losses = LOGISTIC.value(X @ w).astype(np.float32).astype(float)
    shares = np.exp(tilt * (losses - losses.max()))
    shares *= len(X) / shares.sum()
    computed = X.T @ (shares * LOGISTIC.derivative(X @ w)) + 0.7 * w
    bound = bound_at(J, w, tilt)
    assert error_of(J.gradient(w), exact) <= bound
    assert error_of(computed, exact) > bound


@pytest.mark.parametrize("tilt", [0.5, 30.0])
def test_tilted_softmax_error_is_below_the_bound(tilt):
    X = adversarial_rows(60)
    n, k, shift, ridge = len(X), 4, 2.0, 0.7
    rng = np.random.default_rng(2)
    targets = rng.integers(0, k, n)
    plain = SoftmaxObjective(Rows(X, row_bound=1.0), targets, k, np.ones(n), ridge, shift=shift)
    J = TiltedSoftmaxObjective(plain, tilt)
    w = 3.0 * rng.standard_normal(J.size)
    with mpmath.workdps(60):
        W = [[mpmath.mpf(float(v)) for v in row] for row in w.reshape(k, -1)]
        values, errors = [], []
        for row, own in zip(X, targets, strict=True):
            z = [mpmath.mpf(float(v)) for v in row]
            logits = [mpmath.fdot(z, v) - (shift if j == own else 0) for j, v in enumerate(W)]
            e = [mpmath.exp(v) for v in logits]
            values.append(mpmath.log(mpmath.fsum(e)) - logits[own])
            errors.append([v / mpmath.fsum(e) - (j == own) for j, v in enumerate(e)])
        top = max(values)
        shares = [mpmath.exp(tilt * (v - top)) for v in values]
        scale = n / mpmath.fsum(shares)
        exact = [mpmath.mpf(ridge) * v for row in W for v in row]
        for share, error, row in zip(shares, errors, X, strict=True):
            step = [scale * share * e * mpmath.mpf(float(v)) for e in error for v in row]
            exact = [a + b for a, b in zip(exact, step, strict=True)]
    problem = RidgeProblem(shifted_logistic(shift), n, 6, k, 1.0, n, tilt=tilt)
    bound = robust_error(
        problem,
        n_samples=n,
        n_columns=6,
        block_rows=n,
        row_norm=1.0,
        ridge=ridge,
        radius=float(np.linalg.norm(w)),
        max_weight=1.0,
    )
    assert error_of(J.gradient(w), exact) <= bound


@each_loss
@each_attack
@pytest.mark.parametrize("tilt", [0.0, 2.0])
def test_solutions_are_certified_in_exact_arithmetic(loss, attack, tilt):
    """On all degenerate data the exact gradient is what the noise was calibrated to."""
    weights = np.array([1.0, 0.5])
    for name, X, signs in data_sets():
        X, signs = X[:12], signs[:12]
        n, d = X.shape
        adversary = None
        if attack != "none":
            given = ATTACKS[attack]
            adversary = Attack(given.radius / 2, given.norm, d, given.smoothing)
        sizes = (n, d + 1, 2, math.hypot(1.0, 0.5) * (1 + 2.0**-50), n)
        problem = RidgeProblem(loss, *sizes, 1.0, tilt, adversary, 0.5)
        plan = plan_erm(problem, 0.05)
        codes = (signs > 0).astype(int)
        rows = clipped_rows(X, 1.0, 0.5)
        w = minimise(plan, rows, codes, weights).ravel()
        Z = logical_rows(X, rows._scale, 0.5)
        if np.abs(X).max(initial=0.0) > 1e100:  # the scaling by blocks is not that of longdouble
            continue
        exact = exact_gradient(
            Z, signs, weights[codes], plan.problem.loss, 0.05 * n, w, tilt, adversary
        )
        allowed = (plan.sensitivity - plan.problem.sensitivity(0.05)) / 2 * 0.05 * n
        assert norm_mp(exact) <= allowed, name
        assert np.linalg.norm(w) <= plan.radius * (1 + 1e-6) + allowed


def test_ignoring_the_tolerance_is_seen():
    """Planted: a solver that stops early is farther from the minimiser than the plan allows."""
    X = adversarial_rows(100)
    y = (X[:, 0] > 0).astype(int)
    problem = RidgeProblem(LOGISTIC, 100, 6, 2, 1.0, 100, 1.0, 2.0, None, 1.0)
    plan = plan_erm(problem, 0.01)
    allowed = (plan.sensitivity - problem.sensitivity(0.01)) / 2
    w = minimise(plan, clipped_rows(X, 1.0), y, np.ones(2)).ravel()
    signs = np.where(y == 1, 1.0, -1.0)
    J = RobustObjective(clipped_rows(X, 1.0), signs, np.ones(100), LOGISTIC, 1.0, 2.0)
    early = np.zeros(6)
    for _ in range(30):
        early -= J.gradient(early) / J.gradient_lipschitz
    assert np.linalg.norm(J.gradient(w)) <= allowed
    assert np.linalg.norm(early - w) > 2 * allowed


@each_attack
@pytest.mark.parametrize("tilt", [0.0, 50.0, 1e4])
def test_dense_and_sparse_agree_up_to_the_tolerance(attack, tilt):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6)) * (rng.random((300, 6)) < 0.3)
    y = (X[:, 0] + 0.3 * rng.standard_normal(300) > 0).astype(int)
    found = []
    for form in (np.asarray, sparse.csr_array):
        block = block_size(300, 6, is_sparse=form is sparse.csr_array)
        problem = RidgeProblem(LOGISTIC, 300, 6, 2, 1.0, block, 1.0, tilt, ATTACKS[attack], 1.0)
        plan = plan_erm(problem, 0.1)
        found.append(minimise(plan, clipped_rows(form(X), 1.0), y, np.ones(2)))
    apart = plan.sensitivity - problem.sensitivity(0.1)
    assert np.linalg.norm(found[0] - found[1]) <= apart


def test_what_cannot_be_certified_is_refused():
    problem = RidgeProblem(LOGISTIC, 1000, 10, 2, 1.0, 1000, tilt=1e14)
    with pytest.raises(CertificateError, match="tilt"):
        plan_erm(problem, 0.1)
    public = {"change": 5.0, "ridge": 100.0, "radius": 2.0, "max_weight": 1.0, **SIZES}
    for bad in (
        RidgeProblem(HINGE, 1000, 10, 2, 1.0, 1000),
        RidgeProblem(LOGISTIC, 1000, 10, 2, 1.0, 1000, attack=Attack(0.1, 2, 10, 0.0)),
    ):
        with pytest.raises(ValueError, match="smooth"):
            robust_tolerance(bad, **public)


def test_functions_of_the_library_are_as_precise_as_assumed():
    """Relative errors of log, log1p and hypot, in units of 2^-53."""
    rng = np.random.default_rng(0)
    x = 10.0 ** rng.uniform(-20, 0, 2000)
    big = 1.0 + 10.0 ** rng.uniform(-10, 6, 2000)
    y = x * 10.0 ** rng.uniform(-20, 20, 2000)
    with mpmath.workdps(40):
        for found, exact in (
            (np.log1p(x), [mpmath.log1p(v) for v in x]),
            (np.log(big), [mpmath.log(v) for v in big]),
            (np.hypot(x, y), [mpmath.hypot(a, b) for a, b in zip(x, y, strict=True)]),
        ):
            errors = [abs(mpmath.mpf(float(f)) / e - 1) for f, e in zip(found, exact, strict=True)]
            assert max(errors) <= 4 * 2.0**-53


def cancelling_records(n=4, d=6, size=1e3):
    """Pairs of records that pull in opposite directions, with large losses that nearly agree.

    What is left of the gradient is what rounding does to their weights.
    """
    rng = np.random.default_rng(2)
    along = rng.standard_normal(d)
    along /= np.linalg.norm(along)
    across = rng.standard_normal((n // 2, d))
    across -= np.outer(across @ along, along)
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    X = -0.9 * along + math.sqrt(1.0 - 0.81) * np.vstack([across, -across])
    return X / (np.linalg.norm(X, axis=1, keepdims=True) * (1.0 + 1e-12)), size * along


def error_and_bounds(tilt):
    """Error of a gradient, its bound, and the bound that takes the weights for exact."""
    X, w = cancelling_records()
    signs = np.ones(len(X))
    J = RobustObjective(Rows(X, row_bound=1.0), signs, signs, LOGISTIC, 1e-6, tilt)
    exact = exact_gradient(logical_rows(X), signs, signs, LOGISTIC, 1e-6, w, tilt, None)
    return error_of(J.gradient(w), exact), bound_at(J, w, tilt), bound_at(J, w, 1e-300)


def test_errors_of_the_exponents_are_needed_and_covered():
    """Planted: without the errors of the exponents the bound is a thousand times too small."""
    error, bound, without_exponents = error_and_bounds(1e5)
    assert error <= bound
    assert error > 1000 * without_exponents


def theorem(problem, sizes, *, ridge, radius, max_weight, linear):
    """Theorem 5 of the proofs, in 50 digits and its own notation."""
    with mpmath.workdps(50):
        u, c, W = mpmath.mpf(2) ** -53, mpmath.mpf(max_weight), mpmath.mpf(radius)
        n, D, b = sizes["n_samples"], sizes["n_columns"], sizes["block_rows"]
        r, attack, loss, T = (
            mpmath.mpf(sizes["row_norm"]),
            problem.attack,
            problem.loss,
            problem.tilt,
        )
        a = r
        if attack is not None:
            k = 1 if attack.norm == 2 else mpmath.sqrt(attack.n_attacked)
            a = r + mpmath.mpf(attack.radius) * k
        blocks, runs = -(-n // b), 1024 + mpmath.mpf(n) / 1024
        if problem.multinomial:
            K, margin = problem.n_classes, r * W + loss.shift
            B, beta = mpmath.sqrt(2), mpmath.mpf(1) / 2
            most, e_value = 1.5 * margin + mpmath.log(K), 2 * K + 24 + 6 * margin
            v = c * (2 * K + 24 + margin / 2)
        else:
            B, beta = mpmath.mpf(loss.slope_bound(float(a * W))), mpmath.mpf(loss.smoothness)
            most = mpmath.mpf(float(loss.value(-float(a * W))))
            e_value, v = 24 * most + 4 * (1 + B), c * (8 * B + 16 * beta)
        exponent = T * c * (B * (D + 20) * a * W + e_value + 6 * most)
        S = c * B
        weights = S * (2 * exponent + 40 + D + 2 * runs)
        return (
            mpmath.mpf("1.01")
            * u
            * (
                (b + blocks + 5) * n * S * a
                + (D + 3) * n * c * beta * a**2 * W
                + n * a * (v + 18 * c * beta * a * W + weights)
                + 3 * (n * S * a + ridge * W + linear)
            )
        )


@pytest.mark.parametrize("tilt", [0.0, 0.7, 300.0])
@pytest.mark.parametrize("case", ["logistic", "huber", "L2", "inf", "classes"])
def test_the_bound_is_the_theorem(case, tilt):
    """Every constant of the code against the proof, on the safe side and not above it."""
    loss = {"huber": huber_hinge(0.5), "classes": shifted_logistic(2.0)}.get(case, LOGISTIC)
    attack, k = ATTACKS.get(case), 5 if case == "classes" else 2
    for sizes in (
        SIZES,
        {"n_samples": 70_000, "n_columns": 40, "block_rows": 300, "row_norm": 2.5},
    ):
        problem = RidgeProblem(loss, 1000, 10, k, 1.0, 1000, tilt=tilt, attack=attack)
        public = {"ridge": 50.0, "radius": 7.0, "max_weight": 3.0, "linear": 9.0}
        found = robust_error(problem, **sizes, **public)
        exact = theorem(problem, sizes, **public)
        assert exact * (1 - mpmath.mpf(2) ** -48) <= found <= exact * (1 + 1e-12)


def test_the_rule_is_used_at_the_radius_of_computed_points():
    problem = RidgeProblem(LOGISTIC, 1000, 10, 2, 1.0, 1000, tilt=2.0)
    public = {"ridge": 4.0, "max_weight": 1.0, "linear": 3.0, **SIZES}
    rule = robust_tolerance(problem, change=8.0, radius=5.0, linear_error=0.25, **public)
    assert rule.radius == 7.0
    assert rule.float_error == robust_error(problem, radius=7.0, **public)
    assert rule.certified == pytest.approx(rule.target + rule.float_error + 0.25, rel=1e-15)
