"""The bound for tilted risks: against measured means over the noise, and against its limits."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_halfspace.inspection import convex_excess_risk, tilted_risk_bound
from dp_halfspace.inspection.robust_bounds import tilted_noise
from dp_halfspace.optim import HINGE, LOGISTIC, MarginRisk, huber_hinge
from tests.inspection.risk_problems import (
    data_sets,
    draw_noise,
    models_in_ball,
    problem_of,
    robust_minimiser,
    robust_risk,
)  # fmt: skip

BUDGETS = [(0.5, 0.0), (2.0, 1e-5)]


@pytest.mark.parametrize("loss", [LOGISTIC, huber_hinge(h=0.5)], ids=lambda loss: loss.name)
@pytest.mark.parametrize("tilt", [0.0, 0.3, 3.0])
@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
@pytest.mark.parametrize(("n", "d", "ridge"), [(5, 1, 0.5), (40, 3, 0.1)])
def test_measured_excess_stays_below(loss, tilt, epsilon, delta, n, d, ridge):
    rng = np.random.default_rng(n)
    bound = tilted_risk_bound(n, d, epsilon, delta, tilt=tilt, loss=loss, regularization=ridge)
    ball = tilted_risk_bound(
        n, d, epsilon, delta, tilt=tilt, loss=loss, regularization=ridge, radius=2.0
    )
    assert ball.sensitivity == bound.sensitivity
    for Z in data_sets(n, d, rng):
        w, least = robust_minimiser(loss, Z, ridge, tilt=tilt)
        W = w + draw_noise(rng, 4000, d, epsilon, delta, bound.sensitivity)
        risk = robust_risk(loss, Z, W, tilt=tilt)
        excess = risk + ridge / 2 * np.sum(W**2, axis=1) - least
        error = 3 * excess.std() / math.sqrt(len(excess))
        assert excess.mean() - error <= bound.value
        # Some models of norm 2 that the release is compared with.
        V = models_in_ball(rng, 500, d, 2)
        assert risk.mean() - error - robust_risk(loss, Z, V, tilt=tilt).min() <= ball.value


def measured_cost(loss, Z, w, tilt, budget, sensitivity, draws=50_000):
    """What the noise adds at a model, with opposite draws in pairs."""
    rng = np.random.default_rng(3)
    noise = draw_noise(rng, draws, Z.shape[1], *budget, sensitivity)
    both = robust_risk(loss, Z, w + noise, tilt=tilt) + robust_risk(loss, Z, w - noise, tilt=tilt)
    cost = both / 2 - robust_risk(loss, Z, w, tilt=tilt)
    return cost.mean(), 3 * cost.std() / math.sqrt(draws)


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("tilt", [0.0, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("sensitivity", [0.01, 2.0])
@pytest.mark.parametrize("loss", [LOGISTIC, HINGE, huber_hinge(h=0.5)], ids=lambda x: x.name)
def test_noise_costs_at_most_what_the_lemma_says(loss, budget, tilt, sensitivity):
    rng = np.random.default_rng(2)
    for d in (1, 4):
        bound = tilted_noise(problem_of(loss, 5, d, *budget), tilt, sensitivity)
        for Z in data_sets(5, d, rng):
            for w in (np.zeros(d), rng.standard_normal(d)):
                mean, error = measured_cost(loss, Z, w, tilt, budget, sensitivity, 2000)
                assert mean - error <= bound


@pytest.mark.parametrize("budget", BUDGETS)
def test_curvature_of_the_tilt_is_needed_and_nearly_all_that_is_needed(budget):
    # Two opposite records: the loss is straight at 0, and all of the curvature is the tilt's.
    loss, tilt, sensitivity = huber_hinge(h=0.5), 20.0, 1e-4
    Z = np.array([[1.0, 0.0], [-1.0, 0.0]])
    mean, error = measured_cost(loss, Z, np.zeros(2), tilt, budget, sensitivity)
    problem = problem_of(loss, 2, 2, *budget)
    bound = tilted_noise(problem, tilt, sensitivity)
    assert 0.9 * bound < mean + error
    assert mean - error <= bound
    # Planted bugs: no curvature of the tilt; noise of half the size.
    plain = loss.smoothness / 2 * problem.linear.felt_square * sensitivity**2
    assert mean - error > plain
    assert mean - error > tilted_noise(problem, tilt, sensitivity / 2)


@pytest.mark.parametrize("budget", BUDGETS)
def test_one_side_of_the_noise_is_all_that_a_monotone_loss_feels(budget):
    # All records where the hinge begins to fall: every fall of a margin costs, no rise pays.
    Z = np.ones((3, 1))
    mean, error = measured_cost(HINGE, Z, np.ones(1), 1e-4, budget, 0.1)
    bound = tilted_noise(problem_of(HINGE, 3, 1, *budget), 1e-4, 0.1)
    assert mean == pytest.approx(bound, rel=0.02)
    assert mean - error > 0.6 * bound


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("loss", [LOGISTIC, HINGE], ids=lambda loss: loss.name)
def test_a_small_tilt_is_no_tilt(loss, budget):
    own = {"loss": loss, "regularization": 0.1}
    plain = tilted_risk_bound(200, 4, *budget, tilt=0.0, **own)
    nearly = tilted_risk_bound(200, 4, *budget, tilt=1e-7, **own)
    assert nearly.value == pytest.approx(plain.value, rel=1e-5)
    assert plain.sensitivity == pytest.approx(
        MarginRisk(loss, 200, 4, 2, row_norm=1.0, block_rows=200).sensitivity(0.1)
    )


def test_noise_is_made_for_the_weight_that_a_tilt_can_give_to_a_record():
    # Two losses of the range r R, where R is the radius of the minimisers.
    args, own = (50, 3, 1.0, 0.0), {"loss": "hinge", "regularization": 0.5}
    plain = tilted_risk_bound(*args, tilt=0.0, **own)
    found = tilted_risk_bound(*args, tilt=0.7, **own)
    reach = math.sqrt(HINGE.self_bound / 0.5)
    c = math.exp(0.7 * (1 + reach - max(0.0, 1 - reach)))
    assert found.sensitivity == pytest.approx(plain.sensitivity * 50 * c / (c + 49), rel=1e-6)


def test_gap_moves_the_solution_and_stays():
    args, own = (100, 3, 1.0, 1e-6), {"tilt": 1.0, "regularization": 0.5}
    exact = tilted_risk_bound(*args, **own)
    found = tilted_risk_bound(*args, **own, gap=1e-4)
    assert found.gap == 1e-4
    assert found.sensitivity == pytest.approx(exact.sensitivity + 2 * math.sqrt(2e-4 / 0.5))
    assert found.value > exact.value + 1e-4
    assert found.published is None


def test_chosen_regularization_is_better_than_others():
    args, own = (5000, 5, 1.0, 1e-6), {"tilt": 0.5, "radius": 2.0}
    best = tilted_risk_bound(*args, **own)
    others = [
        tilted_risk_bound(*args, **own, regularization=math.exp(x)).value
        for x in np.linspace(-12, 2, 200)
    ]
    assert best.value <= min(others) * (1 + 1e-6)
    # Not much is lost by a tilt that hardly matters.
    plain = tilted_risk_bound(*args, tilt=1e-9, radius=2.0)
    reference = convex_excess_risk(
        *args, lipschitz=1.0, smoothness=0.25, radius=2.0, linear_model=True
    )
    assert plain.value <= reference * (1 + 1e-6)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 10**6),
    st.integers(1, 300),
    st.floats(0.01, 20),
    st.sampled_from([0.0, 1e-9, 1e-4]),
    st.floats(0.0, 20.0),
    st.floats(1e-3, 1e2),
    st.sampled_from(["logistic", "hinge", "huber_hinge"]),
    st.floats(0.1, 10.0),
)
def test_monotone(n, d, epsilon, delta, tilt, ridge, loss, norm):
    own = {"loss": loss, "regularization": ridge, "data_norm": norm}
    bound = tilted_risk_bound(n, d, epsilon, delta, tilt=tilt, **own)
    slack = 1 + 1e-7
    assert 0 < bound.value < math.inf
    assert bound.value == bound.noise
    assert bound.published is None or bound.published >= bound.value
    assert tilted_risk_bound(2 * n, d, epsilon, delta, tilt=tilt, **own).value <= (
        bound.value * slack
    )
    assert tilted_risk_bound(n, d, 2 * epsilon, delta, tilt=tilt, **own).value <= (
        bound.value * slack
    )
    more = tilted_risk_bound(n, d, epsilon, delta, tilt=tilt + 0.5, **own)
    assert more.sensitivity * slack >= bound.sensitivity


def test_theorem_5_2_as_printed_fails_and_is_not_given():
    # The paper's own noise costs at least strong convexity / 2 times its square.
    n, d, epsilon, ridge, tilt = 10**6, 5, 1.0, 1e-3, 1.0
    slope, bend = 2.0, 0.25 + ridge + 4 * tilt
    reach = 16.687258  # of the logistic minimiser
    c = math.exp(tilt * reach)
    sensitivity = 2 * slope / ridge * min(1.0, c / n)
    cost = ridge / 2 * d * (d + 1) * (sensitivity / epsilon) ** 2
    printed = 4 * bend / ridge * slope**2 * min(c, n) / ridge * (d / (epsilon * n)) ** 2
    assert cost > 10 * printed
    assert tilted_risk_bound(n, d, epsilon, 0.0, tilt=tilt, regularization=ridge).published is None


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_papers_number_for_a_small_tilt(delta):
    n, d, epsilon, ridge = 2000, 4, 0.5, 0.5
    bound = tilted_risk_bound(n, d, epsilon, delta, tilt=0.0, regularization=ridge)
    c = 0.0 if not delta else math.sqrt(math.log(2 / (math.sqrt(16 * delta + 1) - 1)))
    rate = (math.sqrt(d) * (c + math.sqrt(c * c + epsilon)) if delta else d) / (epsilon * n)
    rough = (math.sqrt(2) if delta else 2.0) * rate
    fine = 4 * (0.25 + ridge) / ridge * rate**2
    assert bound.published == pytest.approx(4.0 / ridge * min(rough, fine), rel=1e-6)
