"""Noisy gradient steps: sensitivity for any number of classes, exact cost, no surprises."""

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from scipy.special import expit, softmax

from dp_halfspace.papers.known_margin import Steps, margin_slopes, plan_descent
from dp_halfspace.rows.rows import Rows
from tests.adversarial import neighbouring_pairs
from tests.conftest import separated
from tests.permits import assert_costs, rows_door

STEPS = Steps(
    margin_offset=2.0, n_steps=10, path_length=3.0, tail_fraction=0.5, max_stride=8.0
)  # fmt: skip


def plan_for(n=1000, k=5, outputs=1, mu=1.0, steps=None):
    sizes = {"n_samples": n, "n_columns": k, "n_outputs": outputs, "block_rows": 1000}
    return plan_descent(replace(STEPS, **(steps or {})), **sizes, mu=mu)


@pytest.mark.parametrize("mu", [0.01, 0.3, 4.0])
@pytest.mark.parametrize("steps", [1, 7, 40])
def test_run_costs_exactly_what_it_says(mu, steps):
    plan = plan_for(mu=mu, steps={"n_steps": steps})
    assert_costs(plan.events, mu)
    # sigma by hand: 2 sqrt(T) / mu, and rounding on top.
    by_hand = 2 * math.sqrt(steps) / mu
    assert by_hand <= plan.mechanism.sigma <= by_hand * (1 + 1e-6)


def unclipped(plan, codes, weights):
    """Slopes of the softmax as they are."""

    def slopes(margins, lo, hi):
        own = np.eye(margins.shape[1])[codes[lo:hi]]
        return (own - softmax(margins - plan.steps.margin_offset * own, axis=1)) * weights[
            lo:hi, None
        ]

    return slopes


def ratio(points, *, weights=(1.0, 1.0, 1.0), made=margin_slopes):
    """Largest change of the gradient sum over the bound, at many points, for three classes."""
    rng, worst = np.random.default_rng(0), 0.0
    for X, y, other_X, other_y in neighbouring_pairs(rng, 120, n_classes=3):
        plan = plan_for(*X.shape, 3)
        for scale in points:
            point = scale * rng.standard_normal((X.shape[1], 3))
            sums = []
            for rows, codes in ((X, y), (other_X, other_y)):
                slopes = made(plan, codes, np.asarray(weights)[codes])
                sums.append(Rows(rows).fused_adjoint(point, slopes))
            change = float(np.linalg.norm(sums[0] - sums[1]))
            worst = max(worst, change / plan.mechanism.sensitivity)
    return worst


def test_sensitivity_against_brute_force():
    assert 0.99 < ratio((0.0, 1.0, 30.0)) <= 1
    # Public weights of at most one change nothing.
    assert ratio((0.0, 5.0), weights=(1.0, 0.2, 0.5)) <= 1


def test_brute_force_sees_a_missing_clip_and_a_weight_above_one():
    """Planted: slopes are not clipped; a class weighs more than one."""
    assert ratio((0.0, 1.0, 30.0), made=unclipped) > 1.2
    assert ratio((0.0, 1.0), weights=(1.0, 1.5, 1.0)) > 1.2


def test_slopes_are_the_clipped_derivatives():
    margins = np.linspace(-30, 30, 101)
    logits = np.column_stack([-margins / 2, margins / 2])
    own, ones = np.ones(101, int), np.ones(101)
    free = unclipped(plan_for(outputs=2), own, ones)
    pull = free(logits.copy(), 0, 101)
    np.testing.assert_allclose(pull[:, 1], expit(2 - margins), atol=1e-12)
    np.testing.assert_allclose(pull.sum(axis=1), 0, atol=1e-12)
    clipped = margin_slopes(plan_for(outputs=2), own, ones)(logits.copy(), 0, 101)
    norms = np.linalg.norm(pull, axis=1)
    expected = pull * np.minimum(1.0, 1.0 / np.maximum(norms, 1e-300))[:, None]
    np.testing.assert_allclose(clipped, expected, atol=1e-12)
    mixed = margin_slopes(plan_for(outputs=2), np.arange(101) % 2, np.linspace(0, 1, 101))
    parts = [mixed(logits[lo:hi].copy(), lo, hi) for lo, hi in ((0, 40), (40, 101))]
    np.testing.assert_array_equal(np.concatenate(parts), mixed(logits.copy(), 0, 101))


def test_queries_stay_in_the_public_ball():
    """Noise leads far beyond it here."""
    plan = plan_for(50, 3, mu=1e-4, steps={"n_steps": 30, "path_length": 1.0})
    plan = replace(plan, step_size=1e5 * plan.step_size)
    seen = []

    class Watched(Rows):
        def fused_adjoint(self, query, slopes):
            seen.append(np.linalg.norm(query))
            return super().fused_adjoint(query, slopes)

    rows = Watched(np.zeros((50, 3)))
    plan.run(rows_door(rows, np.zeros(50, int), np.ones(2), *plan.events))
    assert max(seen) == pytest.approx(plan.radius, rel=1e-12)


def test_class_weights_reach_the_steps():
    """Rows that all point the same way: the class with the larger weight decides."""
    X, y = np.tile([[1.0, 0.0]], (400, 1)), np.arange(400) % 2
    plan = plan_for(400, 2, mu=math.inf)
    for weights, sign in (((0.1, 1.0), 1.0), ((1.0, 0.1), -1.0)):
        found = plan.run(rows_door(Rows(X), y, np.array(weights), *plan.events))
        assert np.sign(found[0, 0]) == sign


def test_the_mean_over_the_classes_is_noise_and_is_taken_off():
    rng = np.random.default_rng(4)
    X, y = separated(300, 4, seed=2)[0], rng.integers(3, size=300)
    plan = plan_for(300, 4, 3)
    found = plan.run(rows_door(Rows(X), y, np.ones(3), *plan.events))
    np.testing.assert_allclose(found.sum(axis=0), 0.0, atol=1e-9 * np.abs(found).max())


def sensitivity_of_the_proof(n, k, K, block, *, c):
    """``docs/proofs/noisy_gradient.md``, floating point, in 50 digits and its own notation."""
    with mpmath.workdps(50):
        u = mpmath.mpf("1.01") * mpmath.mpf(2) ** -53
        R = 8 * c * (1 + mpmath.sqrt(k * K))
        margins = n * u * (k + 3) * R
        sums = u * n * (block + -(-n // block) + 5 + 3 + 2 * K + 32)
        return 2 * (1 + mpmath.mpf(2) ** -30 + margins + sums)


@pytest.mark.parametrize(("n", "k"), [(1000, 5), (250_000, 800)])
@pytest.mark.parametrize("outputs", [1, 4])
def test_sensitivity_is_that_of_the_proof(n, k, outputs):
    """Every constant of the code against the proof, on the safe side and not above it."""
    plan = plan_for(n, k, outputs)
    sizes = n, k, outputs, 1000
    exact = sensitivity_of_the_proof(*sizes, c=3.0)
    found = plan.mechanism.sensitivity
    assert exact * (1 - mpmath.mpf(2) ** -50) <= found <= exact * (1 + mpmath.mpf(2) ** -48)
    assert plan.mechanism.mu <= 1.0 / math.sqrt(plan.steps.n_steps)
