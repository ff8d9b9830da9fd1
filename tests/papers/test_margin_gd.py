"""Descent for a known margin: sensitivity, the noise of the steps that are run, units."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from dp_halfspace import AdaptiveMarginClassifier
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.papers import known_margin as module
from dp_halfspace.papers.known_margin import margin_slopes, margin_steps
from dp_halfspace.privacy import GaussianNoise
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.rows.rows import Rows
from dp_halfspace.theory.margin_bound import excess_of_unit
from tests.adversarial import neighbouring_pairs
from tests.conftest import separated
from tests.permits import assert_costs, problem_of, rows_door
from tests.releases import record_releases


def plan_for(n=1000, k=5, outputs=1, mu=1.0, margin=0.1, **more):
    sizes = {"n_samples": n, "n_columns": k, "n_outputs": outputs, "block_rows": min(n, 1000)}
    steps = margin_steps(n, k, outputs, mu=mu, margin=margin, **more)
    return module.plan_descent(steps, **sizes, mu=mu)


@pytest.mark.parametrize(("n", "d"), [(100, 30), (30, 100)])
def test_the_mean_iterate_has_the_steps_of_its_theorem(n, d):
    steps = module.mean_steps(n, d, mu=2.0, margin=0.2)
    sizes = {"n_samples": n, "n_columns": d, "n_outputs": 1, "block_rows": n}
    step, count = n * module.plan_descent(steps, **sizes, mu=2.0).step_size, steps.n_steps
    assert count == math.ceil(max((2.0 * n) ** 2 / (4.0 * 30), 100))
    length, variance = 1.5 / 0.2, count / n**2
    bound = length**2 / (2.0 * step * count) + step / 2.0 * (1.0 + 30 * variance)
    assert bound == pytest.approx(length * excess_of_unit(n, 30, count, 2.0))


def gradient_sums(plan, point, *data_sets, weights=(1.0, 1.0, 1.0)):
    weights = np.asarray(weights)
    return [Rows(X).fused_adjoint(point, margin_slopes(plan, y, weights[y])) for X, y in data_sets]


def worst_change(outputs, *, weights=(1.0, 1.0, 1.0)):
    """Largest change of the sum of slopes times rows, over neighbours and points."""
    rng = np.random.default_rng(0)
    worst = 0.0
    n_classes = 2 if outputs == 1 else outputs
    for X, y, other_X, other_y in neighbouring_pairs(rng, 120, n_classes=n_classes):
        plan = plan_for(*X.shape, outputs)
        shape = (X.shape[1],) if outputs == 1 else (X.shape[1], outputs)
        for scale in (0.0, 1.0, 30.0):
            point = scale * rng.standard_normal(shape)
            a, b = gradient_sums(plan, point, (X, y), (other_X, other_y), weights=weights)
            worst = max(worst, float(np.linalg.norm(a - b)))
    return worst


@pytest.mark.parametrize("outputs", [1, 3])
def test_sum_of_gradients_moves_by_two_at_most_and_does(outputs):
    worst = worst_change(outputs)
    assert 2 - 1e-9 <= worst <= plan_for(outputs=outputs).mechanism.sensitivity
    assert worst_change(outputs, weights=(1.0, 0.2, 0.5)) <= 2 + 1e-9


def test_sensitivity_test_sees_an_undeclared_weight():
    """Planted: a class weight above one."""
    assert worst_change(1, weights=(1.0, 1.5, 1.0)) > 2.4


def test_more_budget_takes_more_steps_within_limits():
    assert [plan_for(mu=mu).steps.n_steps for mu in (0.01, 4.0)] == [100, 400]


def rounded_hinge(margins):
    """The hinge max(0, 1 - m), its corner replaced by a parabola of half width 1/2."""
    missing = 1.0 - margins
    inside = (missing + 0.5) ** 2 / 2
    return np.where(missing >= 0.5, missing, np.where(missing <= -0.5, 0.0, inside))


def test_slopes_are_those_of_the_rounded_hinge():
    plan = plan_for()
    margins = np.linspace(-3, 3, 601) + 1e-3
    h = 1e-6
    slopes = (rounded_hinge(margins + h) - rounded_hinge(margins - h)) / (2 * h)
    for code, sign in ((1, 1.0), (0, -1.0)):
        pull = margin_slopes(plan, np.full(601, code), np.full(601, 0.7))
        np.testing.assert_allclose(pull(sign * margins, 0, 601), -sign * 0.7 * slopes, atol=1e-8)


@pytest.mark.parametrize("margin", [0.03, 0.4])
def test_the_margin_is_only_a_step_size(margin):
    """Exact steps on the mean of loss(m / c), written out, are the run in other units."""
    X, y = separated(300, 4, seed=2)
    plan = plan_for(300, 4, mu=math.inf, margin=margin)
    signed = X * np.where(y == 1, 1.0, -1.0)[:, None]
    step = plan.step_size * 300 * margin**2
    w, tail = np.zeros(4), []
    for _ in range(plan.steps.n_steps):
        missing = np.clip(1.5 - signed @ w / margin, 0, 1)
        w = w + step * (missing[:, None] * signed).mean(axis=0) / margin
        tail.append(w)
    averaged = np.mean(tail[-round(plan.steps.n_steps / 2) :], axis=0)
    np.testing.assert_allclose(
        plan.run(rows_door(Rows(X), y, np.ones(2), *plan.events))[0], averaged / margin, rtol=1e-9
    )


def test_sensitivity_test_sees_slopes_without_bound(monkeypatch):
    """Planted: the slope of a squared hinge, which grows without limit."""

    def squared(plan, codes, weights):
        signs = np.where(codes == 1, 1.0, -1.0)
        return lambda m, lo, hi: signs[lo:hi] * np.maximum(1.5 - signs[lo:hi] * m, 0.0)

    monkeypatch.setitem(globals(), "margin_slopes", squared)
    assert worst_change(1) > 10


def assert_noise_is_that_of_the_steps(plan, mu):
    """2 sqrt(T) / mu for the T that is run, and a run that costs mu."""
    expected = 2 * math.sqrt(plan.steps.n_steps) / mu
    assert expected <= plan.mechanism.sigma <= expected * (1 + 1e-6)
    assert_costs(plan.events, mu)


STEPS = [1, 2, 7, 150]


@pytest.mark.parametrize("steps", [*STEPS, None])
@pytest.mark.parametrize("mu", [0.01, 0.3, 4.0])
def test_noise_is_that_of_the_steps_that_are_run(steps, mu):
    for outputs in (1, 3):
        plan = plan_for(mu=mu, outputs=outputs, n_steps=steps)
        assert plan.steps.n_steps == steps or (steps is None and 100 <= plan.steps.n_steps <= 400)
        assert_noise_is_that_of_the_steps(plan, mu)


@pytest.mark.parametrize("steps", STEPS)
def test_noise_test_sees_the_published_noise(monkeypatch, steps):
    """Planted: sigma = n sensitivity, right only for exactly (n mu)^2 steps."""
    n, mu = 100, 0.001
    honest = module.plan_descent

    def published(steps, **sizes):
        plan = honest(steps, **sizes)
        noise = GaussianNoise(plan.mechanism.sensitivity, 1.0 / n)
        return replace(plan, mechanism=noise)

    monkeypatch.setattr(module, "plan_descent", published)
    with pytest.raises(AssertionError):
        assert_noise_is_that_of_the_steps(plan_for(n=n, mu=mu, n_steps=steps), mu)


@pytest.mark.parametrize("projection", [None, "rademacher"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_the_allowance_is_for_the_blocks_that_are_summed(form, projection):
    n, d, kept = (20_000, 20, 20) if projection is None else (20_000, 80, 60)
    how = {"projection": projection, "n_components": projection and kept}
    problem = problem_of(n, d, is_sparse=form is sparse.csr_array, **how)
    training = module.plan_known_margin(problem, "noisy_gd", 0.1, Budget.gaussian(1.0))
    data = TrainingData(form(np.zeros((n, d))), np.zeros(n, int), np.arange(2), None)
    rows = training.rows(data).rows
    planned = module.plan_descent(
        training.algorithm.steps,
        n_samples=n,
        n_columns=kept + 1,
        n_outputs=1,
        block_rows=rows.block_rows,
        mu=1.0,
    )
    assert 1 < rows.block_rows < n
    assert training.algorithm.mechanism == planned.mechanism


def test_rows_without_a_stated_norm_are_not_clipped_before_they_are_divided_by_theirs():
    X, y = separated(30, 3, norm=5.0)
    model = AdaptiveMarginClassifier(margin=0.3, classes=[0, 1])
    with record_releases() as releases:
        model.fit(X, y)
    constant = dict(model.privacy_.public)["relative_constant_column"]
    rows = np.column_stack([X, np.full(30, constant)])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    # At zero every slope is one.
    np.testing.assert_allclose(releases[0].value, (2 * y - 1) @ rows, rtol=1e-9)
