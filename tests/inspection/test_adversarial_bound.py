"""The bound for adversarial risks: against measured means, the worst adversary in closed form."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_halfspace.inspection import adversarial_risk_bound, tilted_risk_bound
from dp_halfspace.inspection._noise_cost import noise_moments
from dp_halfspace.inspection.robust_bounds import _attacked_noise, _dual_moments
from dp_halfspace.optim import HINGE, LOGISTIC, huber_hinge
from dp_halfspace.optim.objectives.adversary import Adversary
from tests.inspection.risk_problems import (
    data_sets,
    draw_noise,
    models_in_ball,
    problem_of,
    robust_minimiser,
    robust_risk,
)  # fmt: skip

BUDGETS = [(0.5, 0.0), (2.0, 1e-5)]
SMOOTHING = 1e-4
# No digit is changed by this smoothing.
EXACT = 1e-100


def attacked_risk(loss, Z, W, radius, norm, weights=None, tilt=0.0):
    """Mean of the worst losses on signed rows, or their tilted mean."""
    return robust_risk(
        loss, Z, W, tilt=tilt, radius=radius, dual=lambda W: dual(W, norm), weights=weights
    )


def dual(W, norm, attacked=None):
    """Dual norm of the attacked coefficients of many models."""
    return np.linalg.norm(np.atleast_2d(W)[:, :attacked], ord=2 if norm == 2 else 1, axis=1)


@pytest.mark.parametrize("loss", [LOGISTIC, huber_hinge(h=0.5)], ids=lambda loss: loss.name)
@pytest.mark.parametrize("norm", [2, "inf"])
@pytest.mark.parametrize("tilt", [0.0, 2.0])
@pytest.mark.parametrize("attack_radius", [0.01, 0.3, 1.5])
@pytest.mark.parametrize(("n", "d", "ridge"), [(5, 1, 0.5), (40, 3, 0.1)])
def test_measured_excess_stays_below(loss, norm, tilt, attack_radius, n, d, ridge):
    rng = np.random.default_rng(n)
    adversary = Adversary(attack_radius, norm, d, SMOOTHING)
    own = {
        "attack_radius": attack_radius, "attack_norm": norm, "loss": loss,
        "regularization": ridge, "smoothing": SMOOTHING, "tilt": tilt,
    }  # fmt: skip
    for epsilon, delta in BUDGETS:
        bound = adversarial_risk_bound(n, d, epsilon, delta, **own)
        ball = adversarial_risk_bound(n, d, epsilon, delta, **own, radius=2.0)
        for Z in data_sets(n, d, rng):
            w, least = robust_minimiser(loss, Z, ridge, adversary=adversary, tilt=tilt)
            W = w + draw_noise(rng, 3000, d, epsilon, delta, bound.sensitivity)
            risk = attacked_risk(loss, Z, W, attack_radius, norm, tilt=tilt)
            excess = risk + ridge / 2 * np.sum(W**2, axis=1) - least
            error = 3 * excess.std() / math.sqrt(len(excess))
            assert excess.mean() - error <= bound.value
            V = models_in_ball(rng, 200, d, 2)
            others = attacked_risk(loss, Z, V, attack_radius, norm, tilt=tilt)
            assert risk.mean() - error - others.min() <= ball.value


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("d", [1, 2, 7])
@pytest.mark.parametrize(("norm", "attacked"), [(2, None), ("inf", None), (2, 1), ("inf", 1)])
def test_moments_of_the_dual_norm(budget, d, norm, attacked):
    noise = draw_noise(np.random.default_rng(1), 200_000, d, *budget, 1.0)
    sizes = dual(noise, norm, attacked)
    first, second = _dual_moments(
        noise_moments(d, *budget, linear_model=True), Adversary(0.1, norm, attacked or d)
    )
    assert sizes.mean() == pytest.approx(first, rel=0.02)
    assert (sizes**2).mean() == pytest.approx(second, rel=0.04)


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("norm", [2, "inf"])
@pytest.mark.parametrize("loss", [HINGE, LOGISTIC], ids=lambda loss: loss.name)
def test_near_zero_the_attack_turns_all_of_the_noise_into_loss(budget, norm, loss):
    # Opposite records: the minimiser is 0, where every noise lowers the margins.
    d, radius, sensitivity = 30, 2.0, 1e-3
    Z = np.zeros((2, d))
    Z[:, 0] = 1.0, -1.0
    adversary, problem = Adversary(radius, norm, d, EXACT), problem_of(loss, 2, d, *budget)
    noise = draw_noise(np.random.default_rng(4), 20_000, d, *budget, sensitivity)
    slope = loss.slope_bound(0.0)
    cost = attacked_risk(loss, Z, noise, radius, norm) - float(loss.value(np.zeros(())))
    bound = _attacked_noise(problem, adversary, 0.0, sensitivity, slope)
    assert 0.8 * bound < cost.mean() < bound * 1.02
    # Planted bugs: what the plain loss feels; a bound with the square of the noise alone.
    plain = problem.linear.felt * sensitivity / 2
    bend = loss.smoothness / 2 * problem.linear.square * sensitivity**2 * (1 + adversary.reach) ** 2
    assert cost.mean() > plain
    # The Huber hinge is so steep that the square of the noise alone is no small number.
    assert loss is HINGE or cost.mean() > bend
    assert cost.mean() > _attacked_noise(problem, adversary, 0.0, sensitivity / 2, slope)


def test_theorem_5_3_as_printed_fails():
    # f(w, x + v) = (x + v) w + mu w^2 / 2 is linear in v, smooth and strongly convex in w. For
    # x = 0 and |v| <= 1 the worst of it is |w| + mu w^2 / 2, with a kink at its minimiser.
    n, epsilon, mu = 10_000, 1.0, 1.0
    slope = 1.0 + mu * 1.0  # on [-1, 1], where every minimiser is
    scale = 2 * slope / (mu * n * epsilon)
    excess = scale + mu / 2 * 2 * scale**2  # of Laplace noise
    printed = 26 * slope**2 / mu * (1 / (epsilon * n)) ** 2
    assert excess > 10 * printed


# --- fresh records -----------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [2, "inf"])
@pytest.mark.parametrize(("n", "ridge"), [(10, 0.3), (200, 0.05)])
def test_fresh_records(norm, n, ridge):
    rng = np.random.default_rng(8)
    loss, radius, draws = LOGISTIC, 0.1, 100
    Z = np.array([[1.0, 0.0], [0.6, 0.8], [-0.5, 0.5], [0.2, -0.9]])
    law = np.array([0.4, 0.3, 0.2, 0.1])
    adversary = Adversary(radius, norm, 2, SMOOTHING)
    W = np.array(
        [
            robust_minimiser(loss, Z, ridge, adversary=adversary, weights=weights)[0]
            for weights in rng.multinomial(n, law, size=draws) / n
        ]
    )
    _, least = robust_minimiser(loss, Z, ridge, adversary=adversary, weights=law)
    for epsilon, delta in [*BUDGETS, (math.inf, 0.0)]:
        own = {
            "attack_radius": radius, "attack_norm": norm, "regularization": ridge,
            "smoothing": SMOOTHING,
        }  # fmt: skip
        bound = adversarial_risk_bound(n, 2, epsilon, delta, **own, population=True)
        R = np.repeat(W, 20, axis=0)
        if math.isfinite(epsilon):
            R = R + draw_noise(rng, len(R), 2, epsilon, delta, bound.sensitivity)
        excess = attacked_risk(loss, Z, R, radius, norm, law) - least
        excess = (excess + ridge / 2 * np.sum(R**2, axis=1)).reshape(draws, 20).mean(axis=1)
        error = 3 * excess.std() / math.sqrt(draws)
        assert excess.mean() + error <= bound.value
        sample = adversarial_risk_bound(n, 2, epsilon, delta, **own)
        assert bound.value == pytest.approx(sample.value + bound.sampling)
        if n == 10 and math.isinf(epsilon):  # without the sample's share it would be wrong
            assert excess.mean() - error > sample.value


# --- algebra -----------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [2, "inf"])
@pytest.mark.parametrize("budget", BUDGETS)
def test_a_small_radius_is_no_attack(norm, budget):
    own = {"loss": "huber_hinge", "regularization": 0.1}
    plain = tilted_risk_bound(200, 4, *budget, tilt=0.0, **own)
    nearly = adversarial_risk_bound(200, 4, *budget, attack_radius=1e-9, attack_norm=norm, **own)
    assert nearly.value == pytest.approx(plain.value, rel=1e-6)
    tilted = tilted_risk_bound(200, 4, *budget, tilt=0.7, **own)
    nearly = adversarial_risk_bound(
        200, 4, *budget, attack_radius=1e-9, attack_norm=norm, tilt=0.7, **own
    )
    assert nearly.value == pytest.approx(tilted.value, rel=1e-6)


def test_without_noise_there_is_bias_alone():
    args = (100, 3, math.inf, 0.0)
    own = {"attack_radius": 0.1, "regularization": 0.1}
    assert adversarial_risk_bound(*args, **own).value == 0.0
    ball = adversarial_risk_bound(*args, **own, radius=2.0)
    assert ball.value == ball.bias == pytest.approx(0.2)
    fresh = adversarial_risk_bound(*args, **own, radius=2.0, population=True)
    assert fresh.value == pytest.approx(ball.value + fresh.sampling)
    assert 0 < fresh.sampling <= 1.1 * fresh.sensitivity


def test_smoothing_costs_its_slack_and_the_gap_its_own():
    args, own = (100, 3, 1.0, 0.0), {"attack_radius": 0.1, "regularization": 0.1, "loss": "hinge"}
    exact = adversarial_risk_bound(*args, **own)
    smooth = adversarial_risk_bound(*args, **own, smoothing=0.01)
    assert smooth.value == pytest.approx(exact.value + 0.1 * 0.01)
    inexact = adversarial_risk_bound(*args, **own, gap=1e-4)
    assert inexact.gap == pytest.approx(1e-4)
    distance = math.sqrt(2e-4 / 0.1)
    assert inexact.sensitivity == pytest.approx(exact.sensitivity + 2 * distance)
    fresh = adversarial_risk_bound(*args, **own, population=True)
    inexact = adversarial_risk_bound(*args, **own, population=True, gap=1e-4)
    # Slope 1.1 of the attacked hinge.
    assert inexact.sampling == pytest.approx(fresh.sampling + 2 * 1.1 * distance)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 10**6),
    st.integers(1, 300),
    st.floats(0.01, 20),
    st.sampled_from([0.0, 1e-9, 1e-4]),
    st.floats(1e-3, 2.0),
    st.sampled_from([2, "inf"]),
    st.floats(1e-3, 1e2),
    st.sampled_from(["logistic", "hinge", "huber_hinge"]),
    st.booleans(),
)
def test_monotone(n, d, epsilon, delta, radius, norm, ridge, loss, population):
    own = {
        "attack_radius": radius, "attack_norm": norm, "loss": loss, "regularization": ridge,
        "population": population,
    }  # fmt: skip
    bound = adversarial_risk_bound(n, d, epsilon, delta, **own)
    slack = 1 + 1e-7
    # Under changes as long as the rows the minimiser may be 0 for all data: no noise at all.
    assert 0 <= bound.value < math.inf
    assert bound.value == pytest.approx(bound.noise + bound.sampling)
    assert bound.published is None or bound.published >= bound.value
    better = [
        adversarial_risk_bound(2 * n, d, epsilon, delta, **own),
        adversarial_risk_bound(n, d, 2 * epsilon, delta, **own),
    ]
    assert max(b.value for b in better) <= bound.value * slack
    if loss == "hinge":  # others have smaller slopes where more is attacked
        one = adversarial_risk_bound(n, d, epsilon, delta, **own, n_attacked=1)
        assert one.value <= bound.value * slack


@pytest.mark.parametrize("population", [False, True])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_papers_number(population, delta):
    n, d, epsilon, ridge = 2000, 4, 0.5, 0.5
    bound = adversarial_risk_bound(
        n, d, epsilon, delta, attack_radius=0.2, attack_norm="inf", n_attacked=3,
        regularization=ridge, population=population,
    )  # fmt: skip
    c = 0.0 if not delta else math.sqrt(math.log(2 / (math.sqrt(16 * delta + 1) - 1)))
    rate = (math.sqrt(d) * (c + math.sqrt(c * c + epsilon)) if delta else d) / (epsilon * n)
    slope = 2 * (1 + 0.2 * math.sqrt(3))
    number = 2 * (1 / n + rate) if population else (math.sqrt(2) if delta else 2) * rate
    assert bound.published == pytest.approx(slope**2 / ridge * number, rel=1e-6)
