"""Noisy gradient steps: sensitivity for any number of classes, exact cost, no surprises."""

from __future__ import annotations

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from scipy.special import expit

from dp_halfspace import privacy
from dp_halfspace.algorithms.defaults import Steps
from dp_halfspace.algorithms.gradient.noisy_gd import clipped_slopes, descend, plan_descent
from dp_halfspace.optim.design.rows import Rows
from dp_halfspace.optim.objectives.adversary import Adversary
from dp_halfspace.privacy import PrivacyRecord, authorise, noise_source
from dp_halfspace.privacy.mechanisms import recording
from tests.adversarial import neighbouring_pairs
from tests.conftest import separated

STEPS = Steps(shift=2.0, clip=0.5, n_steps=10, scale=3.0, window=0.5)


def plan_for(n=1000, k=5, outputs=1, mu=1.0, steps=None, **changes):
    given = {"clip": 0.5 if outputs == 1 else 1.0, **(steps or {})}
    sizes = {"n_samples": n, "n_columns": k, "n_outputs": outputs, "block_rows": 1000}
    return plan_descent(replace(STEPS, **given), **sizes, mu=mu, **changes)


def permit_for(plan, epsilon=80.0):
    noise = "none" if math.isinf(epsilon) else "os"
    record = PrivacyRecord(epsilon=epsilon, delta=1e-3, events=(plan.event,), noise=noise)
    return authorise(record, noise_source(None))


@pytest.mark.parametrize("mu", [0.01, 0.3, 4.0])
@pytest.mark.parametrize("steps", [1, 7, 40])
def test_run_costs_exactly_what_it_says(mu, steps):
    plan = plan_for(mu=mu, steps={"n_steps": steps})
    spent = privacy.epsilon([plan.event], 1e-6)
    assert spent <= privacy.gdp_epsilon(mu, 1e-6) * (1 + 1e-9)
    assert spent >= privacy.gdp_epsilon(mu * (1 - 1e-6), 1e-6) * (1 - 1e-6)
    # sigma from the clip, by hand: 2 C sqrt(T) / mu, and rounding on top.
    assert plan.mechanism.sigma == pytest.approx(2 * 0.5 * math.sqrt(steps) / mu, rel=1e-6)
    assert plan.mechanism.sigma >= 2 * 0.5 * math.sqrt(steps) / mu


def ratio(outputs, points, *, weights=(1.0, 1.0, 1.0), clip=None):
    """Largest change of the gradient sum over the bound, at many points."""
    rng = np.random.default_rng(0)
    n_classes = 2 if outputs == 1 else outputs
    worst = 0.0
    for X, y, other_X, other_y in neighbouring_pairs(rng, 120, n_classes=n_classes):
        plan = plan_for(*X.shape, outputs, steps=None if clip is None else {"clip": clip})
        bound = plan.mechanism.sensitivity
        shape = (X.shape[1],) if outputs == 1 else (X.shape[1], outputs)
        for scale in points:
            point = scale * rng.standard_normal(shape)
            sums = []
            for rows, codes in ((X, y), (other_X, other_y)):
                slopes = clipped_slopes(plan, codes, np.asarray(weights)[codes])
                sums.append(Rows(rows).fused_adjoint(point, slopes))
            worst = max(worst, float(np.linalg.norm(sums[0] - sums[1])) / bound)
    return worst


@pytest.mark.parametrize("outputs", [1, 3])
def test_sensitivity_against_brute_force(outputs, record_property):
    worst = ratio(outputs, (0.0, 1.0, 30.0))
    record_property("measured / bound", float(worst))
    assert 0.99 < worst <= 1


@pytest.mark.parametrize("outputs", [1, 3])
def test_public_weights_at_most_one_change_nothing(outputs):
    assert ratio(outputs, (0.0, 5.0), weights=(1.0, 0.2, 0.5)) <= 1


@pytest.mark.parametrize("outputs", [1, 3])
def test_brute_force_sees_a_missing_clip(monkeypatch, outputs):
    """Planted: slopes are not clipped."""
    module = __import__("dp_halfspace.algorithms.gradient.noisy_gd", fromlist=["m"])
    honest = module.clipped_slopes

    def unclipped(plan, codes, weights):
        loose = plan_for(plan.n_columns, plan.n_columns, plan.n_outputs, steps={"clip": 10.0})
        return honest(loose, codes, weights)

    monkeypatch.setitem(globals(), "clipped_slopes", unclipped)
    assert ratio(outputs, (0.0, 1.0, 30.0)) > 1.2


def test_slopes_are_the_clipped_derivatives():
    plan = plan_for()
    margins = np.linspace(-30, 30, 101)
    slopes = clipped_slopes(plan, np.ones(101, int), np.ones(101))
    np.testing.assert_allclose(slopes(margins, 0, 101), np.minimum(expit(2 - margins), 0.5))
    both = plan_for(outputs=2, steps={"clip": 10.0})
    logits = np.column_stack([-margins / 2, margins / 2])
    pull = clipped_slopes(both, np.ones(101, int), np.ones(101))(logits.copy(), 0, 101)
    np.testing.assert_allclose(pull[:, 1], expit(2 - margins), atol=1e-12)
    np.testing.assert_allclose(pull.sum(axis=1), 0, atol=1e-12)


@pytest.mark.parametrize("outputs", [1, 3])
def test_class_weights_multiply_slopes(outputs):
    plan, codes = plan_for(outputs=outputs), np.array([0, 1, 1])
    margins = np.linspace(-2.0, 2.0, 3 * outputs).reshape((3,) if outputs == 1 else (3, outputs))
    weights = np.array([1.0, 0.25, 0.0])
    plain = clipped_slopes(plan, codes, np.ones(3))(margins.copy(), 0, 3)
    weighted = clipped_slopes(plan, codes, weights)(margins.copy(), 0, 3)
    np.testing.assert_allclose(weighted.T, weights * plain.T, rtol=1e-14)


def test_extreme_margins_stay_finite():
    plan = plan_for(outputs=3)
    logits = np.array([[1e300, -1e300, 0.0], [0.0, 0.0, 0.0], [-1e300] * 3])
    pull = clipped_slopes(plan, np.array([1, 1, 1]), np.ones(3))(logits, 0, 3)
    assert np.isfinite(pull).all()
    assert (np.linalg.norm(pull, axis=1) <= 1 + 1e-12).all()


@pytest.mark.parametrize("n_classes", [2, 4])
def test_exact_steps_separate(n_classes):
    X, y = separated(2000, 6, n_classes, seed=1)
    outputs = 1 if n_classes == 2 else n_classes
    plan = plan_for(2000, 6, outputs, mu=math.inf, steps={"n_steps": 40})
    slopes = clipped_slopes(plan, y, np.ones(2000))
    W = descend(Rows(X), slopes, plan, permit_for(plan, math.inf))
    assert W.shape == (outputs, 6)
    scores = X @ W.T
    codes = (scores[:, 0] > 0).astype(int) if n_classes == 2 else scores.argmax(axis=1)
    assert np.mean(codes == y) > 0.99


def test_transform_is_a_change_of_coordinates():
    """Rows z and map A: the same as running on the images and mapping back."""
    rng = np.random.default_rng(3)
    X, y = separated(300, 4, seed=2)
    A = rng.standard_normal((4, 4))
    A = A @ A.T / 4 + np.eye(4)
    plan = plan_for(300, 4, mu=math.inf, amplification=np.linalg.norm(A, 2))
    slopes = clipped_slopes(plan, y, np.ones(300))
    through = descend(Rows(X), slopes, plan, permit_for(plan, math.inf), A)
    direct = descend(Rows(X @ A), slopes, plan, permit_for(plan, math.inf)) @ A
    np.testing.assert_allclose(through, direct, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("stretch", [None, 3.0, 1000.0])
def test_queries_stay_in_the_public_balls(stretch):
    """Noise leads far beyond them here."""
    plan = plan_for(50, 3, mu=1e-4, steps={"n_steps": 30, "scale": 1.0, "momentum": 0.99})
    plan = replace(plan, step_size=1e5 * plan.step_size)
    seen = []
    rows = Rows(np.zeros((50, 3)))
    honest = rows.fused_adjoint

    class Watched:
        shape = rows.shape

        def fused_adjoint(self, query, slopes):
            seen.append(np.linalg.norm(query))
            return honest(query, slopes)

    slopes = clipped_slopes(plan, np.zeros(50, int), np.ones(50))
    transform = None if stretch is None else stretch * np.eye(3)
    descend(Watched(), slopes, plan, permit_for(plan), transform)
    assert max(seen) == pytest.approx(plan.radius if stretch is None else plan.reach, rel=1e-12)


def test_every_step_is_charged_and_recorded():
    plan = plan_for(20, 2)
    with recording() as releases:
        slopes = clipped_slopes(plan, np.zeros(20, int), np.ones(20))
        permit = permit_for(plan)
        descend(Rows(np.zeros((20, 2))), slopes, plan, permit)
        assert len(releases) == plan.steps.n_steps
        with pytest.raises(RuntimeError, match="not charged"):
            descend(Rows(np.zeros((20, 2))), slopes, plan, permit)


def sensitivity_of_the_proof(n, k, K, block, *, C, c, A, beta, attack=None):
    """``docs/proofs/noisy_gradient.md``, floating point, in 50 digits and its own notation."""
    with mpmath.workdps(50):
        u, A = mpmath.mpf("1.01") * mpmath.mpf(2) ** -53, mpmath.mpf(A)
        inverse = 4 if A > 1 else 1
        R = 8 * c * (1 + mpmath.sqrt(k * K))
        margins = n * beta * u * (k + 3) * inverse * min(A, 64) * R
        sums = A * u * n * inverse * ((block + -(-n // block) + 5 + 3) * C + 2 * K + 32)
        product = u * (k + 2) * mpmath.sqrt(k) * A * inverse * n * C if A > 1 else 0
        longer = mpmath.mpf(2) ** -30
        if A > 1:
            longer = (k + 8) * mpmath.sqrt(k) * A * inverse * mpmath.mpf(2) ** -52
            longer = max(longer, mpmath.mpf(2) ** -27)
        rounding, longest = margins + sums + product, C * (1 + longer)
        if attack is None:
            return 2 * (longest + rounding)
        further = 1 + mpmath.mpf(attack.reach)
        return max(2, further) * longest + 4 * further**2 * rounding


@pytest.mark.parametrize("amplification", [1.0, 3.0, 900.0])
@pytest.mark.parametrize(("n", "k"), [(1000, 5), (250_000, 800)])
@pytest.mark.parametrize("outputs", [1, 4])
def test_sensitivity_is_that_of_the_proof(amplification, n, k, outputs):
    """Every constant of the code against the proof, on the safe side and not above it."""
    attacks = [None, Adversary(0.3, 2, 5, 1e-3), Adversary(0.9, "inf", 5, 1e-3)]
    for attack in attacks if outputs == 1 and amplification == 1.0 else [None]:
        plan = plan_for(
            n,
            k,
            outputs,
            amplification=amplification,
            compression=1.0 if amplification == 1.0 else 4.0,
            steps={"smoothness": 0.75},
            attack=attack,
        )
        exact = sensitivity_of_the_proof(
            n, k, outputs, 1000, C=plan.steps.clip, c=3.0, A=amplification, beta=0.75, attack=attack
        )
        found = plan.mechanism.sensitivity
        assert exact * (1 - mpmath.mpf(2) ** -50) <= found <= exact * (1 + mpmath.mpf(2) ** -48)
        assert plan.mechanism.mu <= 1.0 / math.sqrt(plan.steps.n_steps)
