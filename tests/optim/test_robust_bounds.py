"""Sensitivity of tilted and robust minimisers against brute force over adversarial neighbours."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from dp_halfspace.exceptions import CertificateError
from dp_halfspace.optim import HINGE, LOGISTIC, SQUARED, SQUARED_HINGE, huber_hinge
from dp_halfspace.optim.attack import Attack
from dp_halfspace.optim.erm import RidgeProblem, minimise, plan_erm
from dp_halfspace.optim.robust_bounds import (
    attacked_radius,
    attacked_sensitivity,
    exact_smoothing,
    loss_spread,
    softmax_spread,
    tilted_influence,
)
from dp_halfspace.optim.rows import clipped_rows
from dp_halfspace.optim.stability import (
    minimiser_radius,
    minimiser_sensitivity,
    softmax_sensitivity,
)
from tests.adversarial import neighbouring_pairs, unit

HUBER = huber_hinge(0.5)
# Norm and smoothing of an attack; its radius is drawn.
KINDS = {"L2": (2, 1e-3), "L2 exact": (2, 0.0), "inf": ("inf", 1e-3), "inf exact": ("inf", 0.0)}
SLOW = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("L2 exact", "inf exact")]
each_kind = pytest.mark.parametrize("kind", [None, "L2", "inf", *SLOW])


def problem_for(X, loss=HUBER, k=2, tilt=0.0, attack=None, weights=None, constant=None):
    n, d = X.shape
    weights = np.ones(k) if weights is None else weights
    return RidgeProblem(
        loss,
        n,
        d + (constant is not None),
        k,
        math.hypot(1.0, constant or 0.0) * (1 + 2.0**-50),
        64,
        max_weight=weights.max(),
        min_weight=weights.min(),
        tilt=tilt,
        attack=attack,
    )


def fitted(plan, X, y, weights=None, constant=None):
    weights = np.ones(plan.problem.n_classes) if weights is None else weights
    return minimise(plan, clipped_rows(X, 1.0, constant), y, weights)


def pairs(rng, trials, k=2):
    """The usual neighbours, and alone in the data: records without features, records all alike."""
    yield from neighbouring_pairs(rng, trials, n_classes=k)
    for trial in range(trials // 2):
        n, d = int(rng.integers(2, 10)), int(rng.integers(1, 4))
        X = np.tile(unit(rng, d), (n, 1))
        if trial % 3 == 0:
            X[1:] = 0.0
        if trial % 3 == 1:
            X[:] = 1.0 / math.sqrt(d)
        y = np.ones(n, dtype=int)
        y[: n // 2] = trial % 2
        other_X, other_y = X.copy(), y.copy()
        other_X[0] *= rng.choice([-1.0, 0.0])
        if trial % 4 == 3:
            other_y[0] = 1 - y[0]
        yield X, y, other_X, other_y


def worst(loss, kind=None, k=2, *, tilt=None, weights=None, constant=None, trials=12, seed=0):
    """Largest measured / bound for the distance of minimisers and for their norm."""
    rng = np.random.default_rng(seed)
    distance = norm = 0.0
    for X, y, other_X, other_y in pairs(rng, trials, k):
        ridge = 10 ** rng.uniform(-2.5, 0.7)
        strength = 10 ** rng.uniform(-1, 1.7) if tilt is None else tilt
        radius = rng.uniform(0.05, 0.95)
        attack = (
            None if kind is None else Attack(radius, KINDS[kind][0], X.shape[1], KINDS[kind][1])
        )
        problem = problem_for(X, loss, k, strength, attack, weights, constant)
        try:
            plan = plan_erm(problem, ridge)
        except CertificateError:  # a tilt of tens and a quadratic loss
            continue
        a = fitted(plan, X, y, weights, constant)
        b = fitted(plan, other_X, other_y, weights, constant)
        distance = max(distance, float(np.linalg.norm(a - b)) / plan.sensitivity)
        separate = np.linalg.norm(a, axis=None if problem.multinomial else 1)
        norm = max(norm, float(np.max(separate)) / plan.radius)
    return distance, norm


@each_kind
@pytest.mark.parametrize("loss", [LOGISTIC, HUBER, SQUARED_HINGE], ids=lambda loss: loss.name)
@pytest.mark.parametrize("tilt", [0.0, 1.0, None])
def test_sensitivity_and_radius_against_brute_force(loss, kind, tilt, record_property):
    if tilt == 0.0 and kind is None:
        return
    distance, norm = worst(loss, kind, tilt=tilt)
    record_property("measured / bound", float(distance))
    assert distance <= 1
    assert 0.9 <= norm <= 1
    assert distance >= (0.25 if kind is None else 0.1)


@each_kind
def test_with_an_intercept(kind):
    for loss in (LOGISTIC, HUBER):
        for tilt in (0.0, 2.0):
            distance, norm = worst(loss, kind, tilt=tilt, constant=1.0, trials=8)
            assert 0.1 <= distance <= 1
            assert norm <= 1


@pytest.mark.parametrize("loss", [LOGISTIC, HUBER, SQUARED], ids=lambda loss: loss.name)
def test_several_classes(loss):
    for tilt in (0.5, None):
        distance, norm = worst(loss, k=3, tilt=tilt)
        assert 0.2 <= distance <= 1
        assert norm <= 1


def test_several_classes_under_attack_are_stacked():
    assert not problem_for(np.eye(2), LOGISTIC, 3, 1.0, Attack(0.1, 2, 2)).multinomial
    assert problem_for(np.eye(2), LOGISTIC, 3, 1.0).multinomial
    distance, norm = worst(LOGISTIC, "L2", k=3, tilt=1.0)
    assert 0.1 <= distance <= 1
    assert norm <= 1


def moved(problem, ridge, X, y, other_X, other_y, weights=None):
    plan = plan_erm(problem, ridge)
    a, b = (fitted(plan, *data, weights) for data in ((X, y), (other_X, other_y)))
    return float(np.linalg.norm(a - b)), plan


@pytest.mark.parametrize("kind", list(KINDS))
def test_no_price_for_robustness_and_no_less_either(kind):
    """Records all alike, one of them turned round: the bound without an attack is attained."""
    norm, smoothing = KINDS[kind]
    n, d = 8, 2
    X, y = np.full((n, d), 1 / math.sqrt(d)), np.ones(n, dtype=int)
    turned = X.copy()
    turned[0] *= -1
    attack = Attack(0.4, norm, d, smoothing)
    distance, plan = moved(problem_for(X, attack=attack), 20.0, X, y, turned, y)
    plain = minimiser_sensitivity(HUBER, row_norm=1.0, ridge=20.0, n_samples=n)
    assert 0.98 * plan.sensitivity <= distance <= plan.sensitivity
    # The slope bound is at a lower margin: up to that, an attack costs nothing.
    assert plan.sensitivity <= 1.05 * plain
    assert distance > 0.98 * plain


def test_a_strong_attack_in_the_maximum_norm_has_a_price():
    """The corner that has the adversary in it: one saturated record, one without a slope."""
    attack = Attack(0.9, "inf", 9)
    sizes = {"row_norm": 1.0, "ridge": 0.1, "n_samples": 10, "n_columns": 9}
    bound = attacked_sensitivity(HUBER, attack, **sizes)
    assert bound == pytest.approx((1 + 0.9 * 3) / (0.1 * 10), rel=1e-6)
    bound = attacked_sensitivity(HUBER, Attack(0.3, "inf", 9), **sizes)
    assert bound == pytest.approx(2 / (0.1 * 10), rel=1e-6)


@each_kind
@pytest.mark.parametrize("tilt", [5.0, 50.0])
def test_one_record_can_undo_all_others(kind, tilt):
    """Records all alike but for one, which is turned round. Planted: the bound of the mean."""
    n, ridge = 100, 0.1
    X, y = np.ones((n, 1)), np.ones(n, dtype=int)
    turned = X.copy()
    turned[0] = -1
    attack = None if kind is None else Attack(0.02, KINDS[kind][0], 1, KINDS[kind][1])
    for loss in (LOGISTIC, HUBER):
        problem = problem_for(X, loss, 2, tilt, attack)
        distance, plan = moved(problem, ridge, X, y, turned, y)
        assert distance <= plan.sensitivity
        of_mean = problem_for(X, loss, 2, 0.0, attack).sensitivity(ridge)
        assert distance > (1.5 if tilt == 5.0 else 5.0) * of_mean


def test_half_the_bound_is_exceeded():
    """Planted: the factor 2 dropped."""
    assert 2 * worst(HUBER, tilt=1.0)[0] > 1
    assert 2 * worst(LOGISTIC, tilt=1.0)[0] > 1


@pytest.mark.parametrize(
    ("tilt", "ridge", "weights", "n", "excess"),
    [
        (2.0, 100.0, (1.0, 5.0), 1000, 100),
        (2.0, 1000.0, (1.0, 5.0), 10000, 150),
        (1.0, 10.0, (0.1, 10.0), 1000, 3),
    ],
)
def test_weights_enter_the_tilt_at_both_ends(tilt, ridge, weights, n, excess):
    """One heavy record among light ones without features: covered by the spread of the losses.

    Planted: the largest weight times the range of the loss is too small by orders of magnitude.
    """
    weights = np.array(weights)
    X = np.vstack([[[1.0]], np.zeros((n - 1, 1))])
    y = np.zeros(n, dtype=int)
    y[0] = 1
    problem = problem_for(X, LOGISTIC, 2, tilt, weights=weights)
    distance, plan = moved(problem, ridge, X, y, -X, y, weights)
    assert 0.2 <= distance / plan.sensitivity <= 1
    radius = plan.radius
    naive = weights.max() * LOGISTIC.range(radius)
    of_mean = minimiser_sensitivity(
        LOGISTIC, row_norm=1.0, ridge=ridge, n_samples=n, max_weight=weights.max()
    )
    assert distance > excess * of_mean * tilted_influence(tilt, naive, n)
    # A smallest weight that is not told is taken as zero.
    assert problem.spread(ridge) <= RidgeProblem(
        LOGISTIC, n, 1, 2, 1.0, 64, max_weight=weights.max(), tilt=tilt
    ).spread(ridge) * (1 + 1e-9)


def test_radius_with_an_intercept_keeps_the_intercept():
    """Planted: the norm of the row minus that of the attack bounds no margin of an intercept."""
    attack = Attack(0.9, 2, 1, 0.0)
    X, y = np.full((5, 1), 1.0), np.ones(5, dtype=int)
    for ridge, too_small in ((3.0, 1.6), (1.0, 1.5)):
        problem = problem_for(X, LOGISTIC, 2, 0.0, attack, constant=1.0)
        plan = plan_erm(problem, ridge)
        norm = float(np.linalg.norm(fitted(plan, X, y, constant=1.0)))
        assert norm <= plan.radius
        wrong = attacked_radius(
            LOGISTIC, Attack(0.9, 2, 2, 0.0), row_norm=math.sqrt(2), ridge=ridge, n_columns=2
        )
        assert norm > too_small * wrong


def test_radius_is_attained_and_never_larger_than_without_attack():
    for ridge in (0.01, 0.3, 3.0, 30.0):
        plain = minimiser_radius(LOGISTIC, row_norm=1.0, ridge=ridge)
        for radius in (0.1, 0.9):
            bound = attacked_radius(
                LOGISTIC, Attack(radius, 2, 1, 0.0), row_norm=1.0, ridge=ridge, n_columns=1
            )
            assert bound <= plain
            X, y = np.ones((1, 1)), np.ones(1, dtype=int)
            problem = problem_for(X, LOGISTIC, 2, 0.0, Attack(radius, 2, 1, 0.0))
            w = float(fitted(plan_erm(problem, ridge), X, y)[0, 0])
            if (1 - radius) * bound < LOGISTIC.self_argmax:
                assert w == pytest.approx(bound, rel=0.01)


def test_influence_is_a_share():
    assert tilted_influence(0.0, 5.0, 7) == pytest.approx(1.0, rel=1e-8)
    assert tilted_influence(2.0, 5.0, 1) == 1.0
    assert tilted_influence(1e4, 1e300, 7) == 7.0
    C = math.exp(2.0 * 0.5)
    assert tilted_influence(2.0, 0.5, 7) == pytest.approx(7 * C / (C + 6), rel=1e-8)


def test_spread_of_losses_by_sampling():
    rng = np.random.default_rng(0)
    d, radius, weights = 3, 2.0, {"max_weight": 3.0, "min_weight": 0.5}
    cases = [(loss, None) for loss in (LOGISTIC, HUBER, SQUARED)]
    cases += [(LOGISTIC, Attack(0.4, 2, d, 0.1)), (HUBER, Attack(0.2, "inf", d, 0.1))]
    cases += [(LOGISTIC, Attack(0.4, 2, d - 1, 0.1))]
    for loss, attack in cases:
        bound = loss_spread(
            loss, row_norm=1.0, radius=radius, n_columns=d, attack=attack, **weights
        )
        values = []
        for trial in range(600):
            w = radius * (np.ones(d) / math.sqrt(d) if trial % 2 else unit(rng, d))
            z = rng.choice([-1.0, 1.0]) * w / radius if trial % 3 else unit(rng, d)
            margin = w @ z - (0.0 if attack is None else attack.radius * attack.dual_norm(w))
            value = float(loss.value(margin))
            values += [0.5 * value, 3.0 * value]
        assert 0.8 * bound <= max(values) - min(values) <= bound


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("shift", [0.0, 2.0])
def test_spread_of_cross_entropies_by_sampling(k, shift):
    rng = np.random.default_rng(0)
    radius = 1.5
    bound = softmax_spread(k, row_norm=1.0, radius=radius, min_weight=1.0, shift=shift)
    values = []
    for trial in range(400):
        logits = rng.standard_normal(k)
        if trial == 0:
            logits = np.append(np.zeros(k - 1), 1.0) - 1 / k
        if trial == 1:
            logits = np.append(np.zeros(k - 2), [1.0, -1.0])
        logits *= radius / np.linalg.norm(logits)
        for own in (k - 1, 0):
            shifted = logits - shift * (np.arange(k) == own)
            values.append(np.logaddexp.reduce(shifted) - shifted[own])
    assert 0.5 * bound <= max(values) - min(values) <= bound


def test_tilted_softmax_has_no_factor_of_the_classes():
    plain = softmax_sensitivity(3, row_norm=1.0, ridge=1.0, n_samples=50)
    case = RidgeProblem(LOGISTIC, 50, 2, 3, 1.0, 64, tilt=0.5, min_weight=1.0)
    spread = softmax_spread(3, row_norm=1.0, radius=case.radius(1.0), min_weight=1.0)
    assert case.sensitivity(1.0) == pytest.approx(plain * tilted_influence(0.5, spread, 50))


def kink_distance(attack, w, X, signs, loss, ridge):
    """Distance of zero to the subdifferential with the exact norm, of the mean."""
    t = signs * (X @ w) - attack.radius * np.linalg.norm(w, 2 if attack.norm == 2 else 1)
    slopes = loss.derivative(t)
    smooth = X.T @ (slopes * signs) / len(X) + ridge * w
    pull = -attack.radius * slopes.mean()
    if attack.norm == 2:
        if not w.any():
            return max(np.linalg.norm(smooth) - pull, 0.0)
        return np.linalg.norm(smooth + pull * w / np.linalg.norm(w))
    at_zero = np.maximum(np.abs(smooth) - pull, 0.0)
    return np.linalg.norm(np.where(w == 0.0, at_zero, smooth + pull * np.sign(w)))


def exact_distance(attack, w, at_kink, X, signs, plan):
    """Bound on the distance to the minimiser with the exact norm, some coefficients being 0."""
    snapped = np.where(at_kink, 0.0, w)
    gradient = kink_distance(attack, snapped, X, signs, plan.problem.loss, plan.ridge)
    return np.linalg.norm(w - snapped) + gradient / plan.ridge, int(at_kink.sum())


@pytest.mark.parametrize("norm", [2, "inf"])
@pytest.mark.parametrize("loss", [LOGISTIC, HUBER, HINGE], ids=lambda loss: loss.name)
def test_no_smoothing_means_the_minimiser_of_the_norm_itself(norm, loss):
    """Certified anew: with the exact norm, and coefficients at a kink put exactly there."""
    rng = np.random.default_rng(0)
    kinks = smooth = 0
    for trial in range(30):
        n, d = int(rng.integers(2, 40)), int(rng.integers(1, 6))
        X = rng.standard_normal((n, d)) * rng.choice([0.1, 1.0], size=d)
        X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)
        y = rng.integers(2, size=n)
        attack = Attack(rng.choice([0.05, 0.3, 0.8]), norm, d, 0.0)
        ridge = 10 ** rng.uniform(-2, 0.5)
        plan = plan_erm(problem_for(X, loss, attack=attack), ridge)
        w = fitted(plan, X, y).ravel()
        signs = np.where(y == 1, 1.0, -1.0)
        parts = np.abs(w) if norm == "inf" else np.full(d, np.linalg.norm(w))
        apart, snapped = min(
            exact_distance(attack, w, parts <= small, X, signs, plan)
            for small in (0, *sorted(parts))
        )
        assert apart <= 0.015 * plan.sensitivity, trial
        kinks += snapped
        smooth += d - snapped
    assert kinks > 5
    assert smooth > 5


def test_smoothing_that_stands_in_is_public_and_small():
    attack = Attack(0.3, "inf", 3, 0.0)
    sizes = {"row_norm": 1.0, "ridge": 0.1}
    fine = exact_smoothing(LOGISTIC, attack, sensitivity=0.01, **sizes)
    assert 0 < fine <= 1e-6 * minimiser_radius(LOGISTIC, **sizes)
    bound = math.sqrt(2 * attack.smoothed(fine).slack / 0.1)
    assert bound <= 0.011 * 0.01
    assert exact_smoothing(LOGISTIC, attack, sensitivity=1e6, **sizes) <= 1e-5


def test_problems_that_are_refused():
    X = np.eye(3)
    with pytest.raises(ValueError, match="radius of the attack"):
        problem_for(X, attack=Attack(1.1, 2, 3))
    with pytest.raises(ValueError, match="radius of the attack"):
        problem_for(X, attack=Attack(1.0 + 2.0**-50, "inf", 3))
    with pytest.raises(ValueError, match="monotone"):
        problem_for(X, SQUARED, attack=Attack(0.1, 2, 3))
    with pytest.raises(ValueError, match="columns"):
        problem_for(X, attack=Attack(0.1, 2, 4))
    for tilt in (-1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="tilt"):
            problem_for(X, tilt=tilt)
    with pytest.raises(ValueError, match="min_weight"):
        RidgeProblem(LOGISTIC, 3, 3, 2, 1.0, 64, max_weight=1.0, min_weight=2.0)


def test_a_useless_attack_gives_zero():
    """What the refusal says: with a radius of nearly the row norm next to nothing is learned."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    for norm in (2, "inf"):
        plan = plan_erm(problem_for(X, attack=Attack(0.999, norm, 3, 0.0)), 0.1)
        assert np.linalg.norm(fitted(plan, X, (X[:, 0] > 0).astype(int))) <= 1e-5


@pytest.mark.parametrize("radius", [1e-18, 1e-12, 1.0])
def test_spread_of_losses_is_rounded_up(radius):
    """Differences of nearly equal losses, against forty digits."""
    found = loss_spread(LOGISTIC, row_norm=1.0, radius=radius, n_columns=3, min_weight=1.0)
    with mpmath.workdps(40):
        r = mpmath.mpf(radius)
        exact = mpmath.log1p(mpmath.exp(r)) - mpmath.log1p(mpmath.exp(-r))
        assert exact <= found <= exact + 1e-8
    wide = softmax_spread(3, row_norm=1.0, radius=radius, min_weight=1.0)
    with mpmath.workdps(40):
        high = mpmath.log1p(2 * mpmath.exp(mpmath.sqrt(2) * r))
        low = mpmath.log1p(2 * mpmath.exp(-mpmath.sqrt(mpmath.mpf(3) / 2) * r))
        assert high - low <= wide <= high - low + 1e-8
