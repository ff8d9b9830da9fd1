"""The bound on rounding errors holds on data made to break it, and is of some use."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_halfspace.exceptions import CertificateError
from dp_halfspace.optim.losses import (
    HINGE,
    LOGISTIC,
    SQUARED,
    huber_hinge,
    shifted_logistic,
)
from dp_halfspace.optim.objectives import MarginObjective, SoftmaxObjective
from dp_halfspace.optim.rows import Rows, clipped_rows
from dp_halfspace.optim.tolerance import (
    UNIT,
    check_scales,
    gradient_error,
    gradient_tolerance,
    softmax_tolerance,
    solver_tolerance,
)
from tests.optim.cases import SMOOTH, data_sets, exact_gradient, logical_rows, loss_id, norm_mp

SIZES = {"n_samples": 1000, "n_columns": 10, "block_rows": 1000, "row_norm": 1.0, "ridge": 10.0}


def bound_for(J, w, linear=0.0):
    """The bound with the norm of this very point as radius."""
    radius = float(np.linalg.norm(w))
    slope = J.weights.max() * J.loss.slope_bound(J.rows.row_bound * radius)
    return gradient_error(
        n_samples=J.rows.shape[0],
        n_columns=J.rows.shape[1],
        block_rows=J.rows.block_rows,
        row_norm=J.rows.row_bound,
        ridge=J.ridge,
        radius=radius,
        slope=slope,
        smoothness=J.weights.max() * J.loss.smoothness,
        evaluation=J.weights.max() * (8 * J.loss.slope_bound(J.rows.row_bound * radius))
        + J.weights.max() * 16 * J.loss.smoothness,
        linear=linear,
    )


def error_of(J, w, Z, signs, computed=None):
    """Exact norm of the error of a computed gradient."""
    exact = exact_gradient(Z, signs, J.weights, J.loss, J.ridge, w, J.linear)
    found = J.gradient(w) if computed is None else computed
    with mpmath.workdps(40):
        return norm_mp([mpmath.mpf(float(f)) - e for f, e in zip(found, exact, strict=True)])


def adversarial_rows(n=300, d=6, seed=0):
    """Margins that cancel, and records that cancel each other: sums of +-1 near 0."""
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((n // 2, d)) * 10.0 ** rng.integers(-3, 1, (n // 2, d))
    X = np.vstack([half, -half + 1e-9 * rng.standard_normal(half.shape)])
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X[rng.permutation(n)]


@pytest.mark.parametrize("loss", SMOOTH, ids=loss_id)
@pytest.mark.parametrize("size", [0.0, 1.0, 30.0, 1e4])
def test_measured_error_is_below_the_bound(loss, size):
    X = adversarial_rows()
    rng = np.random.default_rng(1)
    signs = np.where(rng.random(len(X)) < 0.5, -1.0, 1.0)
    weights = rng.random(len(X)) + 0.5
    linear = rng.standard_normal(7)
    rows = clipped_rows(X, 1.0, 0.25)
    J = MarginObjective(rows, signs, weights, loss, 0.7, linear)
    w = size * rng.standard_normal(7)
    error = error_of(J, w, logical_rows(X, rows._scale, 0.25), signs)
    bound = bound_for(J, w, float(np.linalg.norm(linear)))
    assert error <= bound
    # Worst-case bounds of sums are pessimistic, by no more than this.
    assert bound <= 1e5 * error + 1e-20


def test_an_imprecise_gradient_is_seen():
    """Planted bug: the same gradient in float32 breaks the bound."""
    X = adversarial_rows()
    signs = np.ones(len(X))
    J = MarginObjective(Rows(X), signs, np.ones(len(X)), LOGISTIC, 0.7)
    w = np.random.default_rng(0).standard_normal(6)
    narrow = X.astype(np.float32)
    slopes = LOGISTIC.derivative(narrow @ w.astype(np.float32))
    computed = narrow.T @ slopes.astype(np.float32) + 0.7 * w
    assert error_of(J, w, logical_rows(X), signs) <= bound_for(J, w)
    assert error_of(J, w, logical_rows(X), signs, computed) > bound_for(J, w)


@pytest.mark.parametrize("case", list(data_sets()), ids=lambda case: case[0])
def test_bound_on_degenerate_data(case):
    _, X, signs = case
    rows = clipped_rows(X, 1.0, 0.5)
    J = MarginObjective(rows, signs, np.ones(len(signs)), LOGISTIC, 0.05)
    w = 3.0 * np.random.default_rng(0).standard_normal(J.size)
    # Extreme rows lose the digits below the smallest double, which the bound allows for.
    Z = logical_rows(X, rows._scale, 0.5)
    assert error_of(J, w, Z, signs) <= bound_for(J, w)


@pytest.mark.parametrize("size", [0.0, 1.0, 50.0])
@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_softmax_error_is_below_the_bound(size, shift):
    X = adversarial_rows(150)
    n, k = len(X), 4
    rng = np.random.default_rng(2)
    targets = rng.integers(0, k, n)
    J = SoftmaxObjective(Rows(X, row_bound=1.0), targets, k, np.ones(n), 0.7, shift=shift)
    w = size * rng.standard_normal(J.size)
    with mpmath.workdps(40):
        W = [[mpmath.mpf(float(v)) for v in row] for row in w.reshape(k, -1)]
        exact = [[mpmath.mpf("0.7") * 0 + mpmath.mpf(0.7) * v for v in row] for row in W]
        for row, target in zip(X, targets, strict=True):
            z = [mpmath.mpf(float(v)) for v in row]
            logits = [mpmath.exp(mpmath.fdot(z, v)) for v in W]
            logits[target] *= mpmath.exp(-shift)
            total = mpmath.fsum(logits)
            for j in range(k):
                p = logits[j] / total - (j == target)
                exact[j] = [a + p * b for a, b in zip(exact[j], z, strict=True)]
        flat = [v for row in exact for v in row]
        computed = J.gradient(w)
        error = norm_mp([mpmath.mpf(float(c)) - e for c, e in zip(computed, flat, strict=True)])
    bound = gradient_error(
        n_samples=n,
        n_columns=6,
        block_rows=J.rows.block_rows,
        row_norm=1.0,
        ridge=0.7,
        radius=float(np.linalg.norm(w)),
        slope=math.sqrt(2),
        smoothness=0.5,
        evaluation=2 * k + 24 + (0.5 * (np.linalg.norm(w) + shift) if shift else 0.0),
    )
    assert error <= bound <= 1e5 * error + 1e-20


@pytest.mark.parametrize(("n", "d"), [(100, 5), (32561, 124), (10**5, 51), (10**6, 501)])
@pytest.mark.parametrize("ridge", [1e-1, 1e-3, 1e-5])
def test_the_certificate_costs_next_to_nothing(n, d, ridge):
    """Up to a million records the noise grows by far less than a per cent."""
    block = max(48, 3 * 2**16 // d)
    rule = gradient_tolerance(
        LOGISTIC,
        change=2.0,
        n_samples=n,
        n_columns=d,
        block_rows=min(n, block),
        row_norm=1.0,
        ridge=ridge * n,
        radius=math.sqrt(0.28 / ridge),
    )
    assert 2 * rule.certified / 2.0 < 1e-3
    assert rule.target >= 10 * rule.float_error
    assert rule.certified == rule.target + rule.float_error
    if n <= 10**5 and ridge >= 1e-3:
        assert rule.certified < 5e-6


def test_blocks_make_the_bound_smaller():
    sizes = {**SIZES, "n_samples": 10**6, "radius": 5.0, "slope": 1.0}
    rest = {"smoothness": 0.25, "evaluation": 12.0}
    one, many = (gradient_error(**{**sizes, "block_rows": rows}, **rest) for rows in (10**6, 4000))
    assert many < one / 100


def test_rule():
    rule = gradient_tolerance(LOGISTIC, change=2.0, **SIZES, radius=6.0, linear_error=1e-6)
    assert rule.target == 2e-7
    assert rule.radius == 6.2
    assert rule.certified == pytest.approx(1.2e-6, rel=1e-3)
    assert rule.certified >= rule.target + rule.float_error + 1e-6


@given(
    st.sampled_from(
        ["n_samples", "n_columns", "block_rows", "row_norm", "radius", "max_weight", "linear"]
    ),
    st.floats(1.0, 50.0),
)
def test_error_grows_with_every_size(name, factor):
    base = {**SIZES, "n_samples": 10**5, "radius": 6.0, "max_weight": 1.0, "linear": 1.0}
    grown = {**base, name: type(base[name])(base[name] * factor)}
    first = gradient_tolerance(huber_hinge(0.5), change=2.0, **base)
    second = gradient_tolerance(huber_hinge(0.5), change=2.0, **grown)
    assert second.float_error >= first.float_error


def test_heavier_losses_have_larger_errors():
    base = {**SIZES, "change": 100.0, "radius": 6.0}
    errors = [
        gradient_tolerance(loss, **base).float_error
        for loss in (LOGISTIC, shifted_logistic(2.0), SQUARED)
    ]
    assert errors == sorted(errors)
    assert softmax_tolerance(3, **base).float_error < softmax_tolerance(50, **base).float_error
    plain, shifted = (softmax_tolerance(3, **base, shift=a).float_error for a in (0.0, 3.0))
    units = 0.5 * (softmax_tolerance(3, **base).radius + 3.0)
    assert shifted - plain == pytest.approx(1.01 * UNIT * 1000 * units, rel=1e-6)


@pytest.mark.parametrize(
    "change",
    [
        {"n_samples": 10**14},
        {"n_columns": 10**14},
        {"change": 1e-13},
        {"linear_error": 2.0},
        {"row_norm": 1e-40},
        {"row_norm": 1e40},
        {"radius": 1e40},
    ],
    ids=str,
)
@pytest.mark.parametrize("rule", [gradient_tolerance, softmax_tolerance])
def test_refusals_come_from_public_numbers(rule, change):
    first = LOGISTIC if rule is gradient_tolerance else 3
    with pytest.raises(CertificateError):
        rule(first, **{**SIZES, "change": 2.0, "radius": 6.0, **change})


@pytest.mark.parametrize("name", ["change", "row_norm", "ridge", "max_weight"])
@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_bad_numbers(name, bad):
    with pytest.raises(ValueError, match=name):
        gradient_tolerance(LOGISTIC, **{**SIZES, "change": 2.0, "radius": 6.0, name: bad})
    with pytest.raises(ValueError, match=name):
        softmax_tolerance(3, **{**SIZES, "change": 2.0, "radius": 6.0, name: bad})


def test_hinge_is_refused():
    with pytest.raises(ValueError, match="smooth"):
        gradient_tolerance(HINGE, change=2.0, **SIZES, radius=6.0)


def test_unit_and_scales():
    assert np.finfo(np.float64).eps / 2 == UNIT
    check_scales(1.0, 1e20)
    with pytest.raises(CertificateError):
        check_scales(math.nan, 1.0)


def theorem(n, D, b, *, r, ridge, W, S, beta, v, linear):
    """Theorem 2 of the proofs, in 50 digits and its own notation."""
    with mpmath.workdps(50):
        blocks = -(-n // b)
        first_order = (
            (b + blocks + 5) * n * mpmath.mpf(S) * r
            + (D + 3) * n * mpmath.mpf(beta) * mpmath.mpf(r) ** 2 * W
            + mpmath.mpf(v) * n * r
            + 3 * (n * mpmath.mpf(S) * r + mpmath.mpf(ridge) * W + linear)
        )
        return mpmath.mpf("1.01") * mpmath.mpf(2) ** -53 * first_order


@pytest.mark.parametrize("rule", ["margin", "softmax"])
@pytest.mark.parametrize("n", [1000, 70_000])
def test_the_rule_is_that_of_the_proof(rule, n):
    """Every constant of the code against the proof, on the safe side and not above it."""
    D, b, r, ridge, radius, change = 12, 700, 1.5, 40.0, 3.0, 4.0
    c, W, linear, linear_error = 2.5, radius + change / ridge, 6.0, 1e-8
    public = {"change": change, "ridge": ridge, "radius": radius, "max_weight": c}
    sizes = {"n_samples": n, "n_columns": D, "block_rows": b, "row_norm": r}
    extra = {"linear": linear, "linear_error": linear_error}
    if rule == "margin":
        loss = huber_hinge(0.25)
        found = gradient_tolerance(loss, **public, **sizes, **extra)
        S, beta, v = c, c * loss.smoothness, c * (8.0 + 16.0 * loss.smoothness)
    else:
        found = softmax_tolerance(7, **public, **sizes, **extra, shift=2.0)
        S, beta, v = c * math.sqrt(2.0), c / 2, c * (2 * 7 + 24 + (r * W + 2.0) / 2)
    E = float(theorem(n, D, b, r=r, ridge=ridge, W=W, S=S, beta=beta, v=v, linear=linear))
    assert E * (1 - 1e-14) <= found.float_error <= E * (1 + 1e-12)
    assert found.target == pytest.approx(max(1e-7 * change, 10 * E), rel=1e-12)
    assert found.certified == pytest.approx(found.target + E + linear_error, rel=1e-12)
    assert found.radius == pytest.approx(W, rel=1e-14)


def test_what_is_certified_may_double_the_noise_and_no_more():
    assert solver_tolerance(1.0, 0.0, 0.499, 3.0).certified < 0.5
    with pytest.raises(CertificateError, match="influence"):
        solver_tolerance(1.0, 0.0, 0.501, 3.0)
    with pytest.raises(CertificateError, match="influence"):
        solver_tolerance(1.0, 0.05, 0.0, 3.0)


@pytest.mark.parametrize("sizes", [{"n_samples": 10**13}, {"n_columns": 10**13}])
def test_sizes_are_refused_where_the_analysis_ends(sizes):
    """At 1e-3 of the inverse unit roundoff, whatever the numbers are multiplied by."""
    zeros = {"slope": 0.0, "smoothness": 0.0, "evaluation": 0.0, "radius": 1.0}
    with pytest.raises(CertificateError, match="too large"):
        gradient_error(**{**SIZES, **sizes}, **zeros)
    gradient_error(**{**SIZES, **{name: size // 10 for name, size in sizes.items()}}, **zeros)


def test_underflow_has_its_own_term():
    """Gradients of subnormal numbers have an error although every bound of the theorem is zero."""
    nothing = {"slope": 0.0, "smoothness": 0.0, "evaluation": 0.0, "radius": 0.0}
    found = gradient_error(**{**SIZES, "ridge": 0.0}, **nothing)
    assert 1000 * 10 * 2.0**-675 <= found <= 2.0**-480


@pytest.mark.parametrize(
    ("row_norm", "radius"), [(2.0**-101, 1.0), (2.0**101, 1.0), (1.0, 2.0**101)]
)
def test_scales_are_refused_beyond_their_limits(row_norm, radius):
    check_scales(2.0**100, 2.0**100)
    check_scales(2.0**-100, 0.0)
    with pytest.raises(CertificateError, match="norms"):
        check_scales(row_norm, radius)
