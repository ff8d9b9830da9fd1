"""What planners and solvers may rely on, whatever the risk: one contract for all of them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dp_halfspace.exceptions import CertificateError
from dp_halfspace.optim import SoftmaxRisk, empirical_risk, minimisers
from dp_halfspace.optim.losses import HINGE, LOGISTIC, SQUARED_HINGE, huber_hinge
from dp_halfspace.optim.objectives import Adversary
from dp_halfspace.optim.risks import RIDGE_FLOOR, MarginRisk, Risk, Task, logistic_diameter
from dp_halfspace.rows.rows import clipped_rows
from tests.conftest import separated
from tests.optim.risk_cases import margin_risk, pair_risk, planned, softmax_risk

SMOOTH = [LOGISTIC, huber_hinge(0.5), SQUARED_HINGE]
ROBUST = {
    "plain": {},
    "tilt": {"tilt": 2.0, "min_weight": 1.0},
    "L2": {"adversary": Adversary(0.2, 2, 6)},
    "inf": {"adversary": Adversary(0.1, "inf", 5)},
    "both": {"tilt": 2.0, "min_weight": 1.0, "adversary": Adversary(0.2, 2, 6, 1e-9)},
}


def risks(n=1000, d=6):
    """Name, risk: every kind, for two classes and for more."""
    for name, rest in ROBUST.items():
        for loss in (*SMOOTH, HINGE):
            for k in (2, 5):
                yield f"{name}-{loss.name}-{k}", margin_risk(loss, n, d, k, **rest)
    yield "softmax", softmax_risk(n, d, 4)
    for loss in SMOOTH:
        yield f"pairs-{loss.name}", pair_risk(loss, n, d)


RISKS = dict(risks())
each_risk = pytest.mark.parametrize("name", list(RISKS))


@each_risk
@pytest.mark.parametrize("n", [1, 100, 100_000])
def test_planned_sensitivity_covers_the_tolerance(name, n):
    """Exact sensitivity plus twice the distance that the solver certifies, and little more."""
    risk = dict(risks(n))[name]
    plan = planned(risk, 0.3)
    root = math.sqrt(risk.n_stacked)
    exact = root * risk.sensitivity(0.3)
    distance = root * plan.tolerance.certified / (0.3 if risk.pairwise else 0.3 * n)
    assert exact + 2 * distance <= plan.sensitivity <= exact * 1.001
    assert plan.tolerance.target <= plan.tolerance.certified
    assert plan.tolerance.radius >= plan.radius == risk.radius(0.3)


@each_risk
def test_every_bound_has_the_unit_of_the_rows(name):
    """Rows that are eight times as long, and coefficients of an eighth."""
    one = RISKS[name]
    attack = getattr(one, "adversary", None)
    far = replace(one, row_norm=8.0)
    if attack:
        scaled = replace(attack, radius=8.0 * attack.radius, smoothing=attack.smoothing / 8.0)
        far = replace(far, adversary=scaled)
    pairs = [
        (far.radius(64.0 * 0.3) * 8.0, one.radius(0.3)),
        (far.sensitivity(64.0 * 0.3) * 8.0, one.sensitivity(0.3)),
        (far.noise_cost(0.5 / 64.0), one.noise_cost(0.5)),
        (far.gradient_error(64.0 * 0.3, 4.0 / 8.0, 8.0), 8.0 * one.gradient_error(0.3, 4.0, 1.0)),
        (far.gradient_change, 8.0 * one.gradient_change),
        (far.block_change, 8.0 * one.block_change),
    ]
    if one.perturbable:
        pairs.append((far.log_ratio(64.0 * 0.3), one.log_ratio(0.3)))
        pairs.append((far.ridge_floor(1.0), 64.0 * one.ridge_floor(1.0)))
    for found, expected in pairs:
        assert found == pytest.approx(expected)


@pytest.mark.parametrize("loss", [LOGISTIC, huber_hinge(0.5)], ids=lambda loss: loss.name)
def test_ridge_has_a_floor(loss):
    robust = [margin_risk(loss, 1, 6, norm=3.0, **rest) for rest in ROBUST.values()]
    for risk in (*robust, softmax_risk(1, norm=3.0), pair_risk(loss, 1, norm=3.0)):
        assert planned(risk, 1e-20).ridge == RIDGE_FLOOR * 9
    assert planned(margin_risk(loss, max_weight=5.0), 1e-20).ridge == RIDGE_FLOOR * 5


@each_risk
def test_plan_refuses_what_cannot_be_certified(name):
    for n in (10**12, 10**14):
        # A tilt lets a record weigh so much that rounding does not matter before the sizes do.
        if n == 10**14 or "tilt" not in ROBUST.get(name.split("-")[0], {}):
            with pytest.raises(CertificateError):
                planned(dict(risks(n))[name], 1e-4)


def test_kinds():
    """Which loss means which model: a tilt or an adversary sets each class apart."""
    sizes = (10, 2, 3, 1.0, 10)
    assert isinstance(empirical_risk(LOGISTIC, *sizes), SoftmaxRisk)
    assert empirical_risk(LOGISTIC, *sizes, max_weight=3.0) == SoftmaxRisk(*sizes, 3.0)
    moving = {"adversary": Adversary(0.1, 2, 2)}
    for loss, rest in ((LOGISTIC, {"tilt": 1.0}), (LOGISTIC, moving), (HINGE, {})):
        risk = empirical_risk(loss, *sizes, **rest)
        assert (risk.n_stacked, risk.n_blocks) == (3, 1)
    assert empirical_risk(LOGISTIC, 10, 2, 2, 1.0, 10).n_stacked == 1
    for strong in (Adversary(1.1, 2, 2), Adversary(1.0, "inf", 2)):
        with pytest.raises(ValueError, match="radius of the adversary"):
            empirical_risk(LOGISTIC, *sizes, adversary=strong)


@each_risk
def test_objective_perturbation_needs_a_bounded_monotone_slope(name):
    risk = RISKS[name]
    robust = getattr(risk, "robust", False)
    assert risk.perturbable == ("squared" not in name and not robust)
    assert math.isfinite(risk.gradient_change) == ("squared" not in name)


# --- what noise costs ---


def mean_loss(risk: Risk, X, classes, W):
    """Mean loss of a stack of models, by the objectives themselves."""
    rows, weights = clipped_rows(X, 1.0), np.ones(getattr(risk, "n_classes", 2))
    total = 0.0
    positives = [1] if risk.n_stacked == 1 else range(risk.n_stacked)
    for k, w in zip(positives, W.reshape(risk.n_stacked, -1), strict=True):
        J = risk.objective(rows, classes, Task(weights, k, 1e-300, radius=1e3))
        total += J.value_and_gradient(w)[0]
    return total / risk.total(1.0)


@pytest.mark.sampled(3)
@each_risk
def test_cost_of_noise_bounds_the_measured_one(name):
    """Brute force: the mean loss that spherical noise adds, rows of full length."""
    risk, rng = dict(risks(200))[name], np.random.default_rng(0)
    X = rng.standard_normal((200, 6))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    classes = rng.integers(getattr(risk, "n_classes", 2), size=200)
    shape, worst = (risk.n_stacked, risk.n_blocks * risk.n_columns), 0.0
    # For a slope without a bound the cost is that of small noise (``robust.md``, section 5).
    steep = "squared" in name and getattr(risk, "robust", False)
    for variance, scale in ((3e-4, 0.0),) if steep else ((0.03, 0.0), (1.0, 0.0), (1.0, 0.5)):
        W = scale * rng.standard_normal(shape)
        noise = math.sqrt(variance) * rng.standard_normal((40, *shape))
        pairs = [mean_loss(risk, X, classes, W + s * b) for b in noise for s in (1, -1)]
        added = np.mean(pairs) - mean_loss(risk, X, classes, W)
        worst = max(worst, added / risk.noise_cost(variance))
    # These draws leave a few per cent of Monte Carlo error.
    well_known = name.startswith(("plain", "softmax")) and "-hinge" not in name
    assert (0.2 if well_known else 0.1) < worst < 1.1


# --- separate minimisations behind one release: which record belongs to which side ---

N, D, RIDGE = 300, 3, 0.1


def gradient_of(loss, w, X, signs, weights, adversary=None):
    """The gradient of one class against the rest, written anew."""
    Z = X / np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    margins, pull = signs * (Z @ w), np.zeros_like(w)
    if adversary is not None:
        margins -= adversary.radius * adversary.dual_norm(w)
        pull = adversary.radius * adversary.gradient(w)
    slopes = weights * loss.derivative(margins)
    return Z.T @ (signs * slopes) - slopes.sum() * pull + RIDGE * N * w


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("smoothing", [None, 1e-3, 1e-7])
@pytest.mark.parametrize("pulled", [False, True])
def test_each_halfspace_is_its_own_minimiser(k, smoothing, pulled):
    """Of two classes the second is set apart; linear terms belong to their problems."""
    X, classes = separated(N, D, k)
    loss, weights = huber_hinge(0.5), np.linspace(1.0, 2.0, k)
    adversary = None if smoothing is None else Adversary(0.2, "inf", D, smoothing)
    risk = margin_risk(loss, N, D, k, adversary=adversary, max_weight=2.0)
    linear = [np.full((1, D), 3.0 * (i + 1)) for i in range(risk.n_stacked)] if pulled else None
    W = minimisers(
        risk,
        clipped_rows(X, 1.0),
        classes,
        weights,
        ridge=RIDGE,
        target=1e-6,
        radius=100.0,
        linear=linear,
        surrogate=clipped_rows(np.asfortranarray(X), 1.0) if pulled else None,
    )
    assert W.shape == (risk.n_stacked, D) == (1 if k == 2 else k, D)
    for i, (row, positive) in enumerate(zip(W, [1] if k == 2 else range(k), strict=True)):
        signs = np.where(classes == positive, 1.0, -1.0)
        gradient = gradient_of(loss, row, X, signs, weights[classes], adversary)
        gradient += linear[i].ravel() if pulled else 0.0
        assert np.linalg.norm(gradient) <= 1.1e-6


@pytest.mark.parametrize("loss", [LOGISTIC, huber_hinge(0.5)], ids=lambda loss: loss.name)
@pytest.mark.parametrize("adversary", [None, Adversary(0.2, "inf", 3), Adversary(0.2, 2, 3)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_of_all_classes_are_one_over_a_regulariser(loss, adversary, n_classes):
    """Five times the loss has the minimiser of a fifth of the regulariser."""
    heavy, light = (
        empirical_risk(loss, 100, 4, n_classes, 1.0, 100, max_weight=weight, adversary=adversary)
        for weight in (5.0, 1.0)
    )
    assert heavy.sensitivity(0.5) == pytest.approx(light.sensitivity(0.1), rel=1e-6)
    assert heavy.radius(0.5) == pytest.approx(light.radius(0.1), rel=1e-6)
    assert heavy.gradient_change == pytest.approx(5.0 * light.gradient_change)


def test_plan_test_sees_a_forgotten_distance():
    """Planted: the certified distance is added once, or not for every stacked problem."""
    risk = margin_risk(LOGISTIC, 100_000, 50, 5)
    plan = planned(risk, 1e-5)
    exact = math.sqrt(5) * risk.sensitivity(1e-5)
    distance = plan.tolerance.certified / (1e-5 * 100_000)
    for planted in (math.sqrt(5) * distance, 2 * distance):
        assert exact + planted < plan.sensitivity * (1 - 1e-9)


@pytest.mark.parametrize("ridge", [0.3, 0.01])
def test_an_adversary_makes_the_gradients_of_the_logistic_loss_longer(ridge):
    """By the norm that it adds to a row: the smaller of two bounds, each with this length."""
    risk = MarginRisk(LOGISTIC, 100, 4, 2, 1.0, 100, adversary=Adversary(0.3, 2, 4))
    reach = risk.row_length * risk.radius(ridge)
    by_slope = max(2.0, risk.row_length) * LOGISTIC.slope_bound(reach)
    by_diameter = 2.0 * risk.row_length * logistic_diameter(reach)
    assert risk.sensitivity(ridge) * ridge * 100 >= min(by_slope, by_diameter)
