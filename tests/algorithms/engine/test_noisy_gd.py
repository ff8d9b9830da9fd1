"""Noisy gradient steps: sensitivity for any number of classes, exact cost, no surprises."""

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from scipy.special import expit

from dp_halfspace.algorithms.engine.defaults import Steps
from dp_halfspace.algorithms.engine.noisy_gd import (
    LARGEST_SCORE_OFFSET,
    clipped_slopes,
    descend,
    plan_descent,
)
from dp_halfspace.rows.rows import Rows
from tests.adversarial import neighbouring_pairs
from tests.algorithms.support import assert_costs, permit_for
from tests.conftest import separated

STEPS = Steps(margin_offset=2.0, clip=0.5, n_steps=10, path_length=3.0, tail_fraction=0.5)


def plan_for(n=1000, k=5, outputs=1, mu=1.0, steps=None, **changes):
    given = {"clip": 0.5 if outputs == 1 else 1.0, **(steps or {})}
    sizes = {"n_samples": n, "n_columns": k, "n_outputs": outputs, "block_rows": 1000}
    return plan_descent(replace(STEPS, **given), **sizes, mu=mu, **changes)


@pytest.mark.parametrize("mu", [0.01, 0.3, 4.0])
@pytest.mark.parametrize("steps", [1, 7, 40])
def test_run_costs_exactly_what_it_says(mu, steps):
    plan = plan_for(mu=mu, steps={"n_steps": steps})
    assert_costs([plan.event], mu)
    # sigma from the clip, by hand: 2 C sqrt(T) / mu, and rounding on top.
    by_hand = 2 * 0.5 * math.sqrt(steps) / mu
    assert by_hand <= plan.mechanism.sigma <= by_hand * (1 + 1e-6)


def ratio(outputs, points, *, weights=(1.0, 1.0, 1.0), clip=None):
    """Largest change of the gradient sum over the bound, at many points."""
    rng, worst = np.random.default_rng(0), 0.0
    n_classes = 2 if outputs == 1 else outputs
    for X, y, other_X, other_y in neighbouring_pairs(rng, 120, n_classes=n_classes):
        honest = plan_for(*X.shape, outputs)
        plan = honest if clip is None else plan_for(*X.shape, outputs, steps={"clip": clip})
        shape = (X.shape[1],) if outputs == 1 else (X.shape[1], outputs)
        for scale in points:
            point = scale * rng.standard_normal(shape)
            sums = []
            for rows, codes in ((X, y), (other_X, other_y)):
                slopes = clipped_slopes(plan, codes, np.asarray(weights)[codes])
                sums.append(Rows(rows).fused_adjoint(point, slopes))
            change = float(np.linalg.norm(sums[0] - sums[1]))
            worst = max(worst, change / honest.mechanism.sensitivity)
    return worst


@pytest.mark.parametrize("outputs", [1, 3])
def test_sensitivity_against_brute_force(outputs):
    worst = ratio(outputs, (0.0, 1.0, 30.0))
    assert 0.99 < worst <= 1
    # Public weights of at most one change nothing.
    assert ratio(outputs, (0.0, 5.0), weights=(1.0, 0.2, 0.5)) <= 1


@pytest.mark.parametrize("outputs", [1, 3])
def test_brute_force_sees_a_missing_clip(outputs):
    """Planted: slopes are not clipped."""
    assert ratio(outputs, (0.0, 1.0, 30.0), clip=10.0) > 1.2


def test_slopes_are_the_clipped_derivatives():
    plan = plan_for()
    margins = np.linspace(-30, 30, 101)
    slopes = clipped_slopes(plan, np.ones(101, int), np.ones(101))
    np.testing.assert_allclose(slopes(margins.copy(), 0, 101), np.minimum(expit(2 - margins), 0.5))
    both = plan_for(outputs=2, steps={"clip": 10.0})
    logits = np.column_stack([-margins / 2, margins / 2])
    pull = clipped_slopes(both, np.ones(101, int), np.ones(101))(logits.copy(), 0, 101)
    np.testing.assert_allclose(pull[:, 1], expit(2 - margins), atol=1e-12)
    np.testing.assert_allclose(pull.sum(axis=1), 0, atol=1e-12)


def test_transform_is_a_change_of_coordinates():
    """Rows z and map A: the same as running on the images and mapping back."""
    rng = np.random.default_rng(3)
    X, y = separated(300, 4, seed=2)
    A = rng.standard_normal((4, 4))
    A = A @ A.T / 4 + np.eye(4)
    plan = plan_for(300, 4, mu=math.inf, amplification=np.linalg.norm(A, 2))
    slopes = clipped_slopes(plan, y, np.ones(300))
    through = descend(Rows(X), slopes, plan, permit_for(plan.event), A)
    direct = descend(Rows(X @ A), slopes, plan, permit_for(plan.event)) @ A
    np.testing.assert_allclose(through, direct, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_step_after_the_average_follows_the_released_gradients(outputs):
    """A function of the releases alone: from the average by a part of the whole path."""
    rng = np.random.default_rng(4)
    X, y = separated(300, 4, seed=2)
    y = y if outputs == 1 else rng.integers(3, size=300)

    def run(last_step):
        plan = plan_for(300, 4, outputs, steps={"last_step": last_step})
        noise, released = np.random.default_rng(7), []

        class Noisy:
            def release(self, value, mechanism):
                released.append(value + mechanism.sigma * noise.standard_normal(value.shape))
                return released[-1]

        found = descend(Rows(X), clipped_slopes(plan, y, np.ones(300)), plan, Noisy())
        return plan, found, released

    plan, average, gradients = run(0.0)
    _, further, same = run(0.25)
    np.testing.assert_array_equal(gradients, same)
    # By hand: half of the ten steps are averaged, and the path is that of ten steps.
    mean = np.mean(gradients[5:], axis=0)
    if outputs > 1:
        mean = mean - mean.mean(axis=1, keepdims=True)
    path = 10 * plan.step_size / (1 - 0.8)
    np.testing.assert_allclose(further - average, np.atleast_2d(0.25 * path * mean.T), rtol=1e-9)


@pytest.mark.parametrize("stretch", [None, 3.0, 1000.0])
def test_queries_stay_in_the_public_balls(stretch):
    """Noise leads far beyond them here."""
    plan = plan_for(50, 3, mu=1e-4, steps={"n_steps": 30, "path_length": 1.0, "momentum": 0.99})
    plan = replace(plan, step_size=1e5 * plan.step_size)
    seen = []

    class Watched(Rows):
        def fused_adjoint(self, query, slopes):
            seen.append(np.linalg.norm(query))
            return super().fused_adjoint(query, slopes)

    slopes = clipped_slopes(plan, np.zeros(50, int), np.ones(50))
    transform = None if stretch is None else stretch * np.eye(3)
    descend(Watched(np.zeros((50, 3))), slopes, plan, permit_for(plan.event), transform)
    assert max(seen) == pytest.approx(
        plan.radius if stretch is None else plan.mapped_radius, rel=1e-12
    )


def sensitivity_of_the_proof(n, k, K, block, *, C, c, A, beta, score_offset=0.0):
    """``docs/proofs/noisy_gradient.md``, floating point, in 50 digits and its own notation."""
    with mpmath.workdps(50):
        u, A = mpmath.mpf("1.01") * mpmath.mpf(2) ** -53, mpmath.mpf(A)
        inverse = 4 if A > 1 else 1
        R = 8 * c * (1 + mpmath.sqrt(k * K))
        margins = n * beta * u * ((k + 3) * inverse * min(A, 64) * R + 6 * score_offset)
        sums = A * u * n * inverse * ((block + -(-n // block) + 5 + 3) * C + 2 * K + 32)
        product = u * (k + 2) * mpmath.sqrt(k) * A * inverse * n * C if A > 1 else 0
        longer = mpmath.mpf(2) ** -30
        if A > 1:
            longer = (k + 8) * mpmath.sqrt(k) * A * inverse * mpmath.mpf(2) ** -52
            longer = max(longer, mpmath.mpf(2) ** -27)
        rounding, longest = margins + sums + product, C * (1 + longer)
        return 2 * (longest + rounding)


@pytest.mark.parametrize("A", [1.0, 3.0, 900.0])
@pytest.mark.parametrize(("n", "k"), [(1000, 5), (250_000, 800)])
@pytest.mark.parametrize("outputs", [1, 4])
def test_sensitivity_is_that_of_the_proof(A, n, k, outputs):
    """Every constant of the code against the proof, on the safe side and not above it."""
    stretch = {"amplification": A, "compression": 1.0 if A == 1.0 else 4.0}
    for score_offset in (0.0, LARGEST_SCORE_OFFSET):
        more = {"largest_score_offset": score_offset, **stretch}
        plan = plan_for(n, k, outputs, steps={"smoothness": 0.75}, **more)
        exact = sensitivity_of_the_proof(
            n,
            k,
            outputs,
            1000,
            C=plan.steps.clip,
            c=3.0,
            A=A,
            beta=0.75,
            score_offset=score_offset,
        )
        found = plan.mechanism.sensitivity
        assert exact * (1 - mpmath.mpf(2) ** -50) <= found <= exact * (1 + mpmath.mpf(2) ** -48)
        assert plan.mechanism.mu <= 1.0 / math.sqrt(plan.steps.n_steps)
