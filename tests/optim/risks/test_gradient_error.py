"""Rounding errors of gradients are below their public bound, which is that of the proofs."""

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest

from dp_halfspace.exceptions import CertificateError
from dp_halfspace.optim import tolerance
from dp_halfspace.optim.losses import LOGISTIC, SQUARED, SQUARED_HINGE, huber_hinge
from dp_halfspace.optim.objectives import Adversary, MarginObjective, SoftmaxObjective
from dp_halfspace.optim.risks import MarginRisk, SoftmaxRisk
from dp_halfspace.papers import pair_objective as pairs
from dp_halfspace.papers.pair_objective import (
    _PAIR_FUNCTIONS,
    PAIR_BLOCK,
    PairRisk,
    PairwiseObjective,
)
from dp_halfspace.rows.rows import Rows, clipped_rows
from tests.optim.cases import (
    LOSSES,
    adversarial_rows,
    data_sets,
    error_of,
    exact_gradient,
    exact_softmax_gradient,
    logical_rows,
    loss_id,
)
from tests.optim.risk_cases import margin_risk, pair_risk, softmax_risk
from tests.papers.pair_cases import (
    PAIR_LOSSES,
    RANGES,
    brute_sums,
    exact_pair_gradient,
    scores,
    wide_gradient,
)

ADVERSARIES = {
    "none": None,
    "L2": Adversary(0.3, 2, 6, 1e-3),
    "inf": Adversary(0.1, "inf", 6, 1e-9),
}
each_adversary = pytest.mark.parametrize("name", list(ADVERSARIES))
each_pair_loss = pytest.mark.parametrize("loss", PAIR_LOSSES, ids=loss_id)


def bound_at(J, w, **changes):
    """The bound with the norm of this very point as radius."""
    n, d = J.rows.shape
    sizes = (J.rows.row_bound, J.rows.block_rows)
    if isinstance(J, MarginObjective):
        risk = MarginRisk(J.loss, n, d, 2, *sizes, J.weights.max(), J.tilt, J.adversary)
    elif isinstance(J, SoftmaxObjective):
        risk = SoftmaxRisk(n, d, J.n_classes, *sizes, J.weights.max())
    else:
        risk = PairRisk(J.loss, n, d, *sizes, J.normaliser)
    linear = 0.0 if J.linear is None else float(np.linalg.norm(J.linear))
    ridge = J.ridge / risk.total(1.0)
    return replace(risk, **changes).gradient_error(ridge, float(np.linalg.norm(w)), linear)


def margin_objective(loss, n=300, tilt=0.0, adversary=None):
    """Hostile rows, and the same in extended precision."""
    X, rng = adversarial_rows(n), np.random.default_rng(1)
    signs = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    weights, linear = rng.random(n) + 0.5, rng.standard_normal(7)
    rows = clipped_rows(X, 1.0, 0.25)
    J = MarginObjective(rows, signs, weights, loss, 0.7, linear, tilt, adversary)
    return J, logical_rows(X, rows._scale, 0.25)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
@pytest.mark.parametrize("size", [0.0, 1.0, 30.0, 1e4])
def test_error_of_margin_gradients_is_below_the_bound(loss, size):
    J, Z = margin_objective(loss)
    w = size * np.random.default_rng(2).standard_normal(7)
    error, bound = error_of(J.gradient(w), exact_gradient(J, Z, w)), bound_at(J, w)
    # Worst-case bounds of sums are pessimistic, by no more than this times the smoothness.
    assert error <= bound <= 1e5 * max(1.0, loss.smoothness) * error + 1e-20


STEEP = [(LOGISTIC, 40, 1e4, 1.0)]
ROBUST = [
    (loss, 150, tilt, size)
    for loss in (LOGISTIC, huber_hinge(0.5), SQUARED_HINGE)
    for tilt in (0.0, 3.0)
    for size in (0.0, 1.0, 20.0)
]


@pytest.mark.sampled(12)
@each_adversary
@pytest.mark.parametrize(("loss", "n", "tilt", "size"), ROBUST + STEEP)
def test_error_of_robust_gradients_is_below_the_bound(loss, n, tilt, size, name):
    J, Z = margin_objective(loss, n, tilt, ADVERSARIES[name])
    w = size * np.random.default_rng(2).standard_normal(7)
    w[2] *= 1e-9
    assert error_of(J.gradient(w), exact_gradient(J, Z, w)) <= bound_at(J, w)


@pytest.mark.parametrize("case", list(data_sets()), ids=lambda case: case[0])
def test_bound_on_degenerate_data(case):
    _, X, signs = case
    rows = clipped_rows(X, 1.0, 0.5)
    J = MarginObjective(rows, signs, np.ones(len(signs)), LOGISTIC, 0.05)
    w = 3.0 * np.random.default_rng(0).standard_normal(J.size)
    # Extreme rows lose the digits below the smallest double, which the bound allows for.
    Z = logical_rows(X, rows._scale, 0.5)
    assert error_of(J.gradient(w), exact_gradient(J, Z, w)) <= bound_at(J, w)


@pytest.mark.parametrize("size", [0.0, 1.0, 50.0])
def test_error_of_softmax_gradients_is_below_the_bound(size):
    X, rng = adversarial_rows(150), np.random.default_rng(2)
    rows, targets = Rows(X, row_bound=1.0), rng.integers(0, 4, 150)
    J = SoftmaxObjective(rows, targets, 4, np.ones(150), 0.7)
    w = size * rng.standard_normal(J.size)
    error = error_of(J.gradient(w), exact_softmax_gradient(J, X, w))
    assert error <= bound_at(J, w) <= 1e5 * error + 1e-20


def pair_objective(loss, n=600, d=5):
    """Scores that cancel, and records that cancel each other in every pair."""
    rng = np.random.default_rng(0)
    half = rng.standard_normal((n // 2, d)) * 10.0 ** rng.integers(-3, 1, (n // 2, d))
    X = np.vstack([half, half + 1e-9 * rng.standard_normal(half.shape)])
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    linear = np.random.default_rng(1).standard_normal(d)
    return PairwiseObjective(Rows(X), np.arange(n) < n // 2, loss, 0.7, n * n / 4, linear), X


@each_pair_loss
@pytest.mark.parametrize("size", [0.0, 1.0, 30.0, 1e4])
def test_error_of_pair_gradients_is_below_the_bound(loss, size):
    J, X = pair_objective(loss)
    w = size * np.random.default_rng(2).standard_normal(5)
    exact = wide_gradient(X, J.positive, loss, 0.7, J.normaliser, w, J.linear)
    error, bound = float(np.sqrt(((J.gradient(w) - exact) ** 2).sum())), bound_at(J, w)
    assert error <= bound <= 1e7 * error + 1e-9 * (1 + size)


@pytest.mark.sampled(20)
@each_pair_loss
@pytest.mark.parametrize("reach", RANGES)
def test_error_of_a_derivative_for_each_pair(loss, reach):
    positive, negative = scores(reach, 250, 400)
    _, p, q = brute_sums(loss, positive, negative)
    sums = _PAIR_FUNCTIONS[loss.name][0](positive, negative)
    bound = pair_risk(loss, 650).pair_error(reach)
    assert np.abs(sums.positive - p).max() <= 400 * bound
    assert np.abs(sums.negative - q).max() <= 250 * bound


@each_pair_loss
def test_error_of_pair_gradients_in_forty_digits(loss):
    J, X = pair_objective(loss, 24, 3)
    J = replace(J, linear=None)
    w = 5.0 * np.random.default_rng(2).standard_normal(3)
    exact = exact_pair_gradient(X, J.positive, loss, 0.7, J.normaliser, w)
    assert error_of(J.gradient(w), exact) <= bound_at(J, w)


# --- planted errors ---


@pytest.mark.parametrize("tilt", [0.0, 20.0])
def test_an_imprecise_gradient_is_seen(tilt):
    """Planted bug: the gradient in float32; losses in float32 through the weights of a tilt."""
    X = adversarial_rows(150)
    w, signs = np.random.default_rng(0).standard_normal(6), np.ones(len(X))
    J = MarginObjective(Rows(X, row_bound=1.0), signs, signs, LOGISTIC, 0.7, tilt=tilt)
    if tilt:
        losses = LOGISTIC.value(X @ w).astype(np.float32).astype(float)
        shares = np.exp(tilt * (losses - losses.max()))
        shares *= len(X) / shares.sum()
        computed = X.T @ (shares * LOGISTIC.derivative(X @ w)) + 0.7 * w
    else:
        narrow = X.astype(np.float32)
        slopes = LOGISTIC.derivative(narrow @ w.astype(np.float32))
        computed = narrow.T @ slopes.astype(np.float32) + 0.7 * w
    exact = exact_gradient(J, logical_rows(X), w)
    assert error_of(J.gradient(w), exact) <= bound_at(J, w)
    assert error_of(computed, exact) > bound_at(J, w)


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


def test_errors_of_the_exponents_are_needed_and_covered():
    """Planted: without the errors of the exponents the bound is a thousand times too small."""
    X, w = cancelling_records()
    signs = np.ones(len(X))
    J = MarginObjective(Rows(X, row_bound=1.0), signs, signs, LOGISTIC, 1e-6, tilt=1e5)
    error = error_of(J.gradient(w), exact_gradient(J, logical_rows(X), w))
    assert error <= bound_at(J, w)
    assert error > 1000 * bound_at(J, w, tilt=1e-300)


# --- the theorems ---


def theorem_2(risk, total, W, linear, *, r, S, beta, v):
    """Theorem 2 of the certificate, in 50 digits and its own notation."""
    n, D, b = risk.n_samples, risk.n_columns, risk.block_rows
    first_order = (
        (b + -(-n // b) + 5) * n * S * r
        + (D + 3) * n * beta * r**2 * W
        + n * r * v
        + 3 * (n * S * r + total * W + linear)
    )
    return mpmath.mpf("1.01") * mpmath.mpf(2) ** -53 * first_order


def margin_theorem(risk, W):
    """What Theorem 2 takes for a margin loss; Theorem 5 for a tilt and an adversary."""
    n, D, c, T = risk.n_samples, risk.n_columns, mpmath.mpf(risk.max_weight), risk.tilt
    loss, adversary, a = risk.loss, risk.adversary, mpmath.mpf(risk.row_norm)
    if adversary is not None:
        k = 1 if adversary.norm == 2 else mpmath.sqrt(adversary.n_features)
        a += mpmath.mpf(adversary.radius) * k
    B, beta = mpmath.mpf(loss.slope_bound(float(a * W))), mpmath.mpf(loss.smoothness)
    v = c * (8 * B + 16 * beta)
    if risk.robust:
        most = mpmath.mpf(float(loss.value(-float(a * W))))
        exponent = T * c * (B * (D + 20) * a * W + 24 * most + 4 * (1 + B) + 6 * most)
        runs = 1024 + mpmath.mpf(n) / 1024
        v += 18 * c * beta * a * W + c * B * (2 * exponent + 40 + D + 2 * runs)
    return {"r": a, "S": c * B, "beta": c * beta, "v": v}


def softmax_theorem(risk, W):
    c, r, K = mpmath.mpf(risk.max_weight), mpmath.mpf(risk.row_norm), risk.n_classes
    del W
    return {"r": r, "S": c * mpmath.sqrt(2), "beta": c / 2, "v": c * (2 * K + 24)}


def pair_theorem(risk, W):
    """Theorems 4 and 5 of the proofs for pairs."""
    n, loss, u, reach = risk.n_samples, risk.loss, 2.0**-53, risk.row_norm * W
    sums = PAIR_BLOCK + -(-n // PAIR_BLOCK) + 8
    if loss.name == "logistic":
        v = 1e-15 + 1.01 * (2.97 * (5.32 * (sums + 52) * u + 968 * u + 1e-13) + 1936 * u + 1e-13)
    else:
        v = 1.01 * u * 8 * sums * (reach + 1)
    assert v * (1 - 1e-14) <= risk.pair_error(reach) <= v * (1 + 1e-14)
    share, slope = 2.0 * (n * n // 4) / (n * risk.normaliser), float(loss.slope_bound(2.0 * reach))
    bend = 2.0 * share * loss.smoothness
    return {"r": risk.row_norm, "S": share * slope, "beta": bend, "v": share * (v / u + 4 * slope)}


def described(n, D, b, r):
    """Risks of every kind, with the function that writes down what the theorem takes."""
    weighted = {"max_weight": 3.0}
    for tilt in (0.0, 0.7, 300.0):
        for adversary in ADVERSARIES.values():
            for loss in (LOGISTIC, huber_hinge(0.25)):
                robust = {**weighted, "tilt": tilt, "adversary": adversary}
                yield MarginRisk(loss, n, D, 2, r, b, **robust), margin_theorem
    yield SoftmaxRisk(n, D, 7, r, b, **weighted), softmax_theorem
    for loss in PAIR_LOSSES:
        yield PairRisk(loss, n, D, r, b, 7.0), pair_theorem


@pytest.mark.parametrize("sizes", [(1000, 10, 1000, 1.0), (70_000, 40, 300, 2.5)])
def test_the_bound_is_the_theorem(sizes):
    """Every constant of the code against the proofs, on the safe side and not above it."""
    ridge, W, linear = 0.05, 7.0, 9.0
    for risk, terms in described(*sizes):
        found = risk.gradient_error(ridge, W, linear)
        with mpmath.workdps(50):
            total = mpmath.mpf(ridge) * (1 if risk.pairwise else risk.n_samples)
            exact = theorem_2(risk, total, W, linear, **terms(risk, W))
            assert exact * (1 - mpmath.mpf("1e-13")) <= found <= exact * (1 + 1e-12), risk


def test_interpolation_bound_of_the_proof():
    """The numbers of Theorem 2 for pairs."""
    y = 0.9 * math.pi
    rho = y + math.hypot(1.0, y)
    cell = 4 / math.sin(y) * rho ** (1 - pairs.NODES) / (rho - 1)
    assert max((1 + 2.97) * cell, math.exp(1.0 - pairs._CURVED_WITHIN)) <= 1e-15


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


# --- the rule ---

RISKS = {
    "logistic": margin_risk(LOGISTIC),
    "huber": margin_risk(huber_hinge(0.5)),
    "squared": margin_risk(SQUARED),
    "tilt": margin_risk(LOGISTIC, tilt=2.0),
    "adversary": margin_risk(LOGISTIC, adversary=Adversary(0.1, "inf", 10)),
    "softmax": softmax_risk(),
    "pairs": pair_risk(LOGISTIC),
    "squared pairs": pair_risk(SQUARED),
}
each_risk = pytest.mark.parametrize("risk", RISKS.values(), ids=RISKS)


@each_risk
def test_the_rule_is_used_at_the_radius_of_computed_points(risk):
    change = 8.0 if not risk.pairwise else 8e-3
    rule = tolerance(risk, 0.1, 5.0, change, linear=3.0, linear_error=1e-6)
    assert rule.radius == 5.0 + change / (0.1 * (1 if risk.pairwise else 1000))
    assert rule.float_error == risk.gradient_error(0.1, rule.radius, 3.0)
    assert rule.target == max(1e-7 * change, 10 * rule.float_error)
    assert rule.certified == rule.target + rule.float_error + 1e-6


@each_risk
@pytest.mark.parametrize(
    "change",
    [
        *({name: 10**14} for name in ("n_samples", "n_columns")),
        *({"row_norm": value} for value in (1e-40, 1e40)),
        {"radius": 1e40},
        {"linear_error": 2.0},
        *({"change": value} for value in (1e-17, 0.0, math.inf)),
        *({name: math.nan} for name in ("ridge", "radius", "change", "linear", "linear_error")),
    ],
    ids=str,
)
def test_refusals_come_from_public_numbers(risk, change):
    sizes = {name: v for name, v in change.items() if name in ("n_samples", "n_columns")}
    if "row_norm" in change:
        sizes = {**change, "adversary": None} if isinstance(risk, MarginRisk) else change
    numbers = {"ridge": 0.1, "radius": 6.0, "change": 8e-3 if risk.pairwise else 2.0}
    numbers |= {name: v for name, v in change.items() if name not in sizes}
    with pytest.raises((CertificateError, ValueError)):
        tolerance(replace(risk, **sizes), **numbers)
    with pytest.raises(CertificateError, match="tilt"):
        margin_risk(LOGISTIC, tilt=1e14).gradient_error(0.1, 6.0, 0.0)


@pytest.mark.parametrize("risk", [margin_risk(LOGISTIC), pair_risk(LOGISTIC)])
@pytest.mark.parametrize(
    ("n", "d", "ridge", "most"),
    [(100, 5, 1e-1, 5e-6), (10**5, 51, 1e-3, 1e-4), (10**6, 501, 1e-4, 2e-3)],
)
def test_the_certificate_costs_next_to_nothing(risk, n, d, ridge, most):
    """Up to a million records the noise grows by far less than a per cent."""
    sizes = {"n_samples": n, "n_columns": d, "block_rows": min(n, max(48, 3 * 2**16 // d))}
    change = 2.0
    if risk.pairwise:
        risk = pair_risk(LOGISTIC, n, d)
        change = risk.gradient_change
    rule = tolerance(replace(risk, **sizes), ridge, math.sqrt(0.28 / ridge), change)
    assert 2 * rule.certified / change < most
    assert rule.target >= 10 * rule.float_error


def test_an_imprecise_sum_over_pairs_is_seen(monkeypatch):
    """Planted: polynomials of too low a degree in the cells."""
    J, X = pair_objective(LOGISTIC, 1000)
    w = np.full(5, 2.0)
    exact = wide_gradient(X, J.positive, LOGISTIC, 0.7, J.normaliser, w, J.linear)
    assert np.linalg.norm((J.gradient(w) - exact).astype(float)) <= bound_at(J, w)
    monkeypatch.setattr(pairs, "NODES", 7)
    assert np.linalg.norm((J.gradient(w) - exact).astype(float)) > bound_at(J, w)
