"""Radius and sensitivity of margin risks against brute force over adversarial neighbours."""

import math

import mpmath
import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit

from dp_halfspace.exceptions import CertificateError
from dp_halfspace.optim import MarginRisk, minimiser_radius
from dp_halfspace.optim.losses import HINGE, LOGISTIC, SQUARED, SQUARED_HINGE, huber_hinge
from dp_halfspace.optim.objectives import Adversary, MarginObjective
from dp_halfspace.optim.risks import logistic_diameter
from dp_halfspace.rows.blocks import block_size
from dp_halfspace.rows.rows import clipped_rows
from tests.adversarial import neighbouring_pairs, unit
from tests.optim.cases import adversarial_rows, data_sets, exact_gradient, logical_rows, norm_mp
from tests.optim.risk_cases import fitted, margin_risk, moved, neighbours, planned

HUBER = huber_hinge(0.5)
LOSSES = [LOGISTIC, HUBER, HINGE, SQUARED_HINGE, SQUARED]
# Ratios that the bound must nearly attain: a bound that is far too large is a defect too.
TIGHT = {"hinge": 0.99, "huber_hinge": 0.99, "logistic": 0.9}
KINDS = {"L2": (2, 1e-3), "inf": ("inf", 1e-3), "L2 fine": (2, 1e-9), "inf fine": ("inf", 1e-9)}
ADVERSARIES = {"none": None, "L2": (0.15, 2, 1e-3), "inf": (0.05, "inf", 1e-7)}


def risk_for(X, loss=HUBER, k=2, tilt=0.0, adversary=None, weights=(1.0, 1.0), norm=1.0, bias=0.0):
    n, d = X.shape
    norm = math.hypot(norm, bias) * (1 + 2.0**-50) if bias else norm
    sizes = (n, d + (bias > 0), k, norm, 64, max(weights))
    return MarginRisk(loss, *sizes, tilt, adversary, min_weight=min(weights))


def worst(loss, kind=None, k=2, *, tilt=0.0, bias=None, norm=1.0, trials=12):
    """Largest measured / bound for the distance of minimisers and for their norm."""
    rng = np.random.default_rng(0)
    distance = size = 0.0
    for X, y, other_X, other_y in neighbours(rng, trials, k, norm):
        ridge = 10 ** rng.uniform(-2.5, 0.7) * norm**2
        strength = 10 ** rng.uniform(-1, 1.7) if tilt is None else tilt
        adversary = adversary_of(kind, rng.uniform(0.05, 0.95), X.shape[1])
        risk = risk_for(X, loss, k, strength, adversary, norm=norm, bias=bias or 0.0)
        try:
            plan = planned(risk, ridge)
        except CertificateError:  # a tilt of tens and a quadratic loss
            continue
        a, b = (fitted(plan, *data, None, bias, norm) for data in ((X, y), (other_X, other_y)))
        distance = max(distance, float(np.linalg.norm(a - b)) / plan.sensitivity)
        size = max(size, float(np.linalg.norm(a, axis=1).max()) / plan.radius)
    return distance, size


def adversary_of(kind, radius, d):
    return None if kind is None else Adversary(radius, KINDS[kind][0], d, KINDS[kind][1])


# --- constants ---


ANCHORS = [(1.0, 0.401058), (0.1, 1.668726), (0.01, 5.276974), (0.001, 16.687258)]


@pytest.mark.parametrize(("ridge", "radius"), ANCHORS)
def test_radius_logistic_anchors(ridge, radius):
    found = minimiser_radius(LOGISTIC, row_norm=1.0, ridge=ridge)
    assert found == pytest.approx(radius, abs=2e-6)
    assert margin_risk(LOGISTIC).radius(ridge) == found


@pytest.mark.parametrize(
    ("a", "value"),
    [(0.5, 0.514555), (1, 0.549548), (2, 0.634921), (5, 0.808639), (10, 0.910422), (20, 0.963679)],
)
def test_logistic_diameter_anchors(a, value):
    assert logistic_diameter(a) == pytest.approx(value, abs=1e-6)


@pytest.mark.slow
def test_logistic_diameter_is_the_radius_of_the_disc():
    """All gradients, rows of every length and direction, lie in the stated ball."""
    theta = np.linspace(0, np.pi, 801)
    lengths = np.linspace(0, 1, 201)[:, None]
    for a in np.geomspace(1e-3, 1e3, 7):
        kappa = logistic_diameter(a)
        top = np.linspace(0, np.pi / 2, 2_000_001)
        best = top[np.argmax(np.sin(top) * expit(a * np.cos(top)))]
        centre = np.cos(best) * expit(a * np.cos(best))
        slope = lengths * expit(a * lengths * np.cos(theta))
        distance = np.hypot(slope * np.cos(theta) - centre, slope * np.sin(theta))
        assert distance.max() <= kappa * (1 + 1e-6)
        assert distance.max() >= kappa * (1 - 1e-4)


# --- the plain mean ---


def brute_cases():
    """Loss, what is special, and what the ratios of distances and of norms must reach."""
    for loss in LOSSES:
        yield loss, {"trials": 80}, TIGHT.get(loss.name, 0.5), 0.0
        yield loss, {"k": 3, "trials": 24}, 0.3, 0.0
    for loss in (LOGISTIC, HUBER, SQUARED):
        for tilt in (0.5, None):
            yield loss, {"k": 3, "tilt": tilt}, 0.2, 0.0
    yield LOGISTIC, {"kind": "L2", "k": 3, "tilt": 1.0}, 0.1, 0.0
    for loss in (LOGISTIC, HUBER):  # a wrong power of the norm fails at one of the two ends
        for norm in (0.01, 30.0):
            yield loss, {"norm": norm, "trials": 30}, 0.85, 0.0
    for kind in (None, *KINDS):
        for loss in (LOGISTIC, HUBER, SQUARED_HINGE):
            for tilt in (0.0, 1.0, None):
                yield loss, {"kind": kind, "tilt": tilt}, 0.25 if kind is None else 0.1, 0.9
        for loss in (LOGISTIC, HUBER):
            for tilt in (0.0, 2.0):
                yield loss, {"kind": kind, "tilt": tilt, "bias": 1.0, "trials": 8}, 0.1, 0.0


def brute_params():
    for loss, special, near, full in brute_cases():
        slow = "fine" in (special.get("kind") or "")
        name = "-".join(f"{k}={v}" for k, v in special.items())
        marks = pytest.mark.slow if slow else []
        yield pytest.param(loss, special, near, full, marks=marks, id=f"{loss.name}-{name}")


@pytest.mark.sampled(13)
@pytest.mark.parametrize(("loss", "special", "near", "full"), brute_params())
def test_sensitivity_and_radius_against_brute_force(loss, special, near, full, record_property):
    distance, size = worst(loss, **special)
    record_property("measured / bound", distance)
    assert near <= distance <= 1
    assert full <= size <= 1


def test_stacked_bound_is_attained():
    """One row changes all K problems at once: the factor sqrt(K) is not waste."""
    plan, one = planned(risk_for(np.eye(1), k=4), 100.0), np.eye(1)
    distance = moved(plan, one, np.array([0]), -one, np.array([0]))
    assert 0.99 <= distance / plan.sensitivity <= 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("loss", [LOGISTIC, HUBER, HINGE, SQUARED_HINGE], ids=lambda x: x.name)
def test_weights_are_charged(loss):
    """A heavy record moves the minimiser by its weight."""
    rng, largest = np.random.default_rng(3), 0.0
    weights = np.array([0.2, 5.0])
    for X, y, other_X, other_y in neighbouring_pairs(rng, 30):
        plan = planned(risk_for(X, loss, weights=weights), 0.5)
        assert np.linalg.norm(fitted(plan, X, y, weights)) <= plan.radius
        distance = moved(plan, X, y, other_X, other_y, weights)
        largest = max(largest, distance / plan.sensitivity)
    assert TIGHT.get(loss.name, 0.05) - 0.5 <= largest <= 1


# --- tilted and adversarial ---


@pytest.mark.parametrize("kind", KINDS)
def test_no_price_for_robustness_and_no_less_either(kind):
    """Records all alike, one of them turned round: the bound without adversary is attained."""
    n, d = 8, 2
    X, y = np.full((n, d), 1 / math.sqrt(d)), np.ones(n, dtype=int)
    turned = X.copy()
    turned[0] *= -1
    plan = planned(risk_for(X, adversary=adversary_of(kind, 0.4, d)), 20.0)
    distance, plain = moved(plan, X, y, turned, y), risk_for(X).sensitivity(20.0)
    assert 0.98 * plan.sensitivity <= distance <= plan.sensitivity
    # The slope bound is at a lower margin: up to that, an adversary costs nothing.
    assert plan.sensitivity <= 1.05 * plain
    assert distance > 0.98 * plain


def test_a_strong_adversary_in_the_maximum_norm_has_a_price():
    """The vertex that has the adversary in it: one saturated record, one without a slope."""
    for radius, width in ((0.9, 1 + 0.9 * 3), (0.3, 2.0)):
        risk = margin_risk(HUBER, n=10, d=9, adversary=Adversary(radius, "inf", 9))
        assert risk.sensitivity(0.1) == pytest.approx(width / (0.1 * 10), rel=1e-6)


@pytest.mark.parametrize("kind", [None, "L2", "inf"])
@pytest.mark.parametrize("tilt", [5.0, 50.0])
def test_one_record_can_undo_all_others(kind, tilt):
    """Records all alike but for one, which is turned round. Planted: the bound of the mean."""
    n, ridge, adversary = 100, 0.1, adversary_of(kind, 0.02, 1)
    X, y = np.ones((n, 1)), np.ones(n, dtype=int)
    turned = X.copy()
    turned[0] = -1
    for loss in (LOGISTIC, HUBER):
        plan = planned(risk_for(X, loss, 2, tilt, adversary), ridge)
        distance = moved(plan, X, y, turned, y)
        assert distance <= plan.sensitivity
        of_mean = risk_for(X, loss, 2, 0.0, adversary).sensitivity(ridge)
        assert distance > (1.5 if tilt == 5.0 else 5.0) * of_mean


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
    risk = risk_for(X, LOGISTIC, 2, tilt, weights=weights)
    plan = planned(risk, ridge)
    distance = moved(plan, X, y, -X, y, weights)
    assert 0.2 <= distance / plan.sensitivity <= 1
    naive = math.exp(tilt * weights.max() * plan.radius)
    of_mean = risk_for(X, LOGISTIC, weights=weights).sensitivity(ridge)
    assert distance > excess * of_mean * n * naive / (naive + n - 1)
    # A smallest weight that is not told is taken as zero.
    untold = MarginRisk(LOGISTIC, n, 1, 2, 1.0, 64, max_weight=weights.max(), tilt=tilt)
    assert risk.spread(ridge) <= untold.spread(ridge) * (1 + 1e-9)


def test_radius_with_an_intercept_keeps_the_intercept():
    """Planted: the norm of the row minus that of the change bounds no margin of an intercept."""
    X, y = np.full((5, 1), 1.0), np.ones(5, dtype=int)
    for ridge, too_small in ((3.0, 1.6), (1.0, 1.5)):
        plan = planned(risk_for(X, LOGISTIC, adversary=Adversary(0.9, 2, 1, 1e-9), bias=1.0), ridge)
        size = float(np.linalg.norm(fitted(plan, X, y, constant=1.0)))
        assert size <= plan.radius
        # As if the constant column could be moved, too.
        wrong = margin_risk(LOGISTIC, 5, 2, norm=math.sqrt(2), adversary=Adversary(0.9, 2, 2, 1e-9))
        assert size > too_small * wrong.radius(ridge)


def test_influence_is_a_share():
    """``n C / (C + n - 1)``: 1 without a tilt, never more than all records together."""
    assert margin_risk(LOGISTIC).influence(0.1) == 1.0
    assert margin_risk(LOGISTIC, 1, tilt=2.0).influence(0.1) == 1.0
    assert margin_risk(LOGISTIC, 7, tilt=1e300).influence(0.1) == 7.0
    risk = margin_risk(LOGISTIC, 7, tilt=2.0, min_weight=1.0)
    C = math.exp(2.0 * risk.spread(0.5))
    assert 7 * C / (C + 6) <= risk.influence(0.5) <= 7 * C / (C + 6) * (1 + 1e-7)
    plain = margin_risk(LOGISTIC, 7).sensitivity(0.5)
    assert risk.sensitivity(0.5) == pytest.approx(plain * risk.influence(0.5), rel=1e-12)


@pytest.mark.parametrize("loss", [LOGISTIC, HUBER, SQUARED], ids=lambda loss: loss.name)
@pytest.mark.parametrize("name", ADVERSARIES)
def test_spread_of_losses_by_sampling(loss, name):
    if not loss.monotone and name != "none":
        return
    rng, ridge, d = np.random.default_rng(0), 0.2, 3
    adversary = None if name == "none" else Adversary(0.3, ADVERSARIES[name][1], d, 0.1)
    weights = {"max_weight": 3.0, "min_weight": 0.5, "adversary": adversary}
    risk, values = margin_risk(loss, 7, d, tilt=1.0, **weights), []
    radius = risk.radius(ridge)
    for trial in range(600):
        w = radius * (np.ones(d) / math.sqrt(d) if trial % 2 else unit(rng, d))
        z = rng.choice([-1.0, 1.0]) * w / radius if trial % 3 else unit(rng, d)
        lowered = 0.0 if adversary is None else adversary.radius * adversary.dual_norm(w)
        value = float(loss.value(w @ z - lowered))
        values += [0.5 * value, 3.0 * value]
    assert 0.8 * risk.spread(ridge) <= max(values) - min(values) <= risk.spread(ridge)


def test_spread_of_losses_is_rounded_up():
    """Differences of nearly equal losses, against forty digits."""
    risk = margin_risk(LOGISTIC, tilt=1.0, min_weight=1.0)
    for ridge in (1e18, 1e12, 0.3):
        with mpmath.workdps(40):
            r = mpmath.mpf(risk.radius(ridge))
            exact = mpmath.log1p(mpmath.exp(r)) - mpmath.log1p(mpmath.exp(-r))
            assert exact <= risk.spread(ridge) <= exact + 1e-8


def test_risks_that_are_refused():
    for change, word in (
        ({"adversary": Adversary(0.1, 2, 3), "loss": SQUARED}, "monotone"),
        ({"adversary": Adversary(0.1, 2, 4)}, "columns"),
        *(({"tilt": tilt}, "tilt") for tilt in (-1.0, math.inf, math.nan)),
        ({"min_weight": 2.0}, "min_weight"),
    ):
        with pytest.raises(ValueError, match=word):
            margin_risk(**{"loss": LOGISTIC, "n": 3, "d": 3, **change})


# --- what the solver certifies is what the noise was calibrated to ---


@pytest.mark.sampled(5)
@pytest.mark.parametrize("tilt", [0.0, 2.0])
@pytest.mark.parametrize("name", ADVERSARIES)
@pytest.mark.parametrize(
    "loss", [LOGISTIC, HUBER, HINGE, SQUARED_HINGE], ids=lambda loss: loss.name
)
def test_solutions_are_certified_in_exact_arithmetic(loss, name, tilt):
    weights = np.array([1.0, 0.5])
    for case, X, signs in data_sets():
        X, signs = X[:6], signs[:6]
        if np.abs(X).max(initial=0.0) > 1e100:  # the scaling by blocks is not that of longdouble
            continue
        adversary = None
        if ADVERSARIES[name] is not None:
            radius, norm, smoothing = ADVERSARIES[name]
            adversary = Adversary(radius, norm, X.shape[1], smoothing)
        plan = planned(risk_for(X, loss, 2, tilt, adversary, weights, bias=0.5), 0.05)
        classes, rows = (signs > 0).astype(int), clipped_rows(X, 1.0, 0.5)
        w = fitted(plan, X, classes, weights, 0.5).ravel()
        ridge = 0.05 * len(X)
        J = MarginObjective(
            rows, signs, weights[classes], loss, ridge, None, tilt, adversary, plan.radius
        )
        exact = exact_gradient(J, logical_rows(X, rows._scale, 0.5), w)
        allowed = (plan.sensitivity - plan.risk.sensitivity(0.05)) / 2 * ridge
        assert norm_mp(exact) <= allowed, case
        assert np.linalg.norm(w) <= plan.radius * (1 + 1e-6) + allowed


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ADVERSARIES)
@pytest.mark.parametrize("tilt", [0.0, 50.0, 1e4])
def test_dense_and_sparse_agree_up_to_the_tolerance(name, tilt):
    rng, found = np.random.default_rng(0), []
    X = rng.standard_normal((300, 6)) * (rng.random((300, 6)) < 0.3)
    y = (X[:, 0] + 0.3 * rng.standard_normal(300) > 0).astype(int)
    adversary = ADVERSARIES[name] and Adversary(*ADVERSARIES[name][:2], 6, ADVERSARIES[name][2])
    for form in (np.asarray, sparse.csr_array):
        block = block_size(300, 6, is_sparse=form is sparse.csr_array)
        weights = {"tilt": tilt, "adversary": adversary, "min_weight": 1.0}
        plan = planned(MarginRisk(LOGISTIC, 300, 6, 2, 1.0, block, **weights), 0.1)
        found.append(fitted(plan, form(X), y))
    apart = plan.sensitivity - plan.risk.sensitivity(0.1)
    assert np.linalg.norm(found[0] - found[1]) <= apart


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("loss", "tilt", "trials"),
    [(LOGISTIC, 0.0, 60), (HINGE, 0.0, 60), (LOGISTIC, 1.0, 12), (HUBER, 1.0, 12)],
)
def test_brute_force_sees_a_dropped_factor(loss, tilt, trials):
    """Planted: half the bound is exceeded by the same search."""
    assert 2 * worst(loss, tilt=tilt, trials=trials)[0] > 1


def test_ignoring_the_tolerance_is_seen():
    """Planted: a solver that stops early is farther from the minimiser than the plan allows."""
    X = adversarial_rows(100)
    y = (X[:, 0] > 0).astype(int)
    plan = planned(risk_for(X, LOGISTIC, tilt=2.0), 0.01)
    allowed = (plan.sensitivity - plan.risk.sensitivity(0.01)) / 2
    w = fitted(plan, X, y).ravel()
    signs, ones = np.where(y == 1, 1.0, -1.0), np.ones(100)
    J = MarginObjective(clipped_rows(X, 1.0), signs, ones, LOGISTIC, 1.0, tilt=2.0)
    early = np.zeros(6)
    for _ in range(30):
        early -= J.gradient(early) / J.gradient_lipschitz
    assert np.linalg.norm(J.gradient(w)) <= allowed
    assert np.linalg.norm(early - w) > 2 * allowed
