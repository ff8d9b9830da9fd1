"""Objective perturbation behind a private preconditioner: budget, noise, certificate."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from dp_halfspace import privacy
from dp_halfspace.algorithms.perturbation import objective as linear_module
from dp_halfspace.algorithms.perturbation import preconditioned_objective as module
from dp_halfspace.algorithms.perturbation.objective import GaussianLinearTerm, LaplaceLinearTerm
from dp_halfspace.algorithms.perturbation.preconditioned_objective import (
    plan_preconditioned_objective,
)
from dp_halfspace.optim import LOGISTIC, block_size, empirical_risk, huber_hinge, shifted_logistic
from dp_halfspace.optim.design import mapped_rows
from dp_halfspace.optim.design.mapped_rows import FormedRows
from dp_halfspace.optim.design.rows import unit_rows
from dp_halfspace.optim.risks import risk as risk_module
from dp_halfspace.privacy import Gaussian, Pure
from dp_halfspace.privacy.mechanisms import GaussianNoise, recording
from tests.adversarial import neighbouring_pairs
from tests.algorithms.gradient.test_preconditioner import packed, symmetric
from tests.algorithms.perturbation.test_objective import gradients
from tests.algorithms.support import permit_for, share_right, stretched, tail
from tests.conftest import separated

SHIFTED = shifted_logistic(2.0)


def risk_of(n, d, k=2, loss=SHIFTED, weight=1.0):
    block = block_size(n, d, is_sparse=False)
    return empirical_risk(loss, n, d, k, 1.0, block, max_weight=weight)


def run(X, y, plan, *, k=2, weights=None):
    weights = np.ones(k) if weights is None else weights
    return plan.run(unit_rows(X, 1.0, None), y, weights, permit_for(*plan.events))


# -- budget --------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.0, 1e-7])
@pytest.mark.parametrize("epsilon", [0.1, 8.0])
@pytest.mark.parametrize("k", [2, 7])
@pytest.mark.parametrize("loss", [SHIFTED, huber_hinge(0.5)], ids=lambda loss: loss.name)
@pytest.mark.parametrize("ridge", [None, 1.0])
def test_whole_budget_and_no_more(delta, epsilon, k, loss, ridge):
    plan = plan_preconditioned_objective(risk_of(20000, 30, k, loss), epsilon, delta, ridge=ridge)
    assert plan.metric is not None
    spent = privacy.epsilon(plan.events, delta)
    assert epsilon * (1 - 1e-6) <= spent <= epsilon * (1 + 1e-12)


def test_metric_takes_a_fifth():
    gaussian = plan_preconditioned_objective(risk_of(20000, 30), 1.0, 1e-7)
    assert gaussian.metric.mechanism.mu**2 == pytest.approx(0.2 * privacy.gdp_mu(1.0, 1e-7) ** 2)
    pure = plan_preconditioned_objective(risk_of(20000, 30), 1.0, 0.0)
    assert pure.metric.mechanism.epsilon == pytest.approx(0.2)
    assert all(isinstance(event, Pure) for event in pure.events)


@pytest.mark.parametrize("delta", [0.0, 1e-7])
def test_wide_drowned_or_unwanted(delta):
    assert plan_preconditioned_objective(risk_of(10000, 513), 1.0, delta).metric is None
    assert plan_preconditioned_objective(risk_of(100, 60), 0.1, delta).metric is None
    plan = plan_preconditioned_objective(risk_of(10000, 30), 1.0, delta, metric=False)
    assert plan.metric is None
    assert privacy.epsilon(plan.events, delta) > 1.0 - 1e-6


@pytest.mark.parametrize("k", [2, 12])
@pytest.mark.parametrize("delta", [0.0, 0.25])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 50.0])
@pytest.mark.parametrize("n", [1, 40])
def test_tiny_data_and_budgets_have_a_plan(n, k, delta, epsilon):
    """Where vertices and metric would exceed delta at every regulariser there is no metric."""
    plan = plan_preconditioned_objective(risk_of(n, 3, k), epsilon, delta)
    assert privacy.epsilon(plan.events, delta) <= epsilon * (1 + 1e-12)


def test_noise_of_the_pure_metric_has_the_edge_that_is_claimed():
    plan = plan_preconditioned_objective(risk_of(20000, 40), 1.0, 0.0).metric
    values = np.linalg.eigvalsh(symmetric(packed(np.zeros((20000, 40)), plan), 40))
    assert np.abs(values).max() == pytest.approx(plan.edge, rel=0.4)


# -- noise ---------------------------------------------------------------------------


def scaled_noise(release):
    """Chi-square statistics of the noise in units of the claim, with their degrees of freedom."""
    noise, mechanism = release.released - release.value, release.mechanism
    if isinstance(mechanism, GaussianLinearTerm | GaussianNoise):
        yield float((noise**2).sum()) / mechanism.sigma**2, noise.size
        return
    for block in noise if isinstance(mechanism, LaplaceLinearTerm) else [noise]:
        yield 2.0 * float(np.linalg.norm(block)) / mechanism.scale, 2 * block.size


def assert_noise_has_its_scale(delta, k):
    X, y = separated(400, 4, k)
    plan = plan_preconditioned_objective(risk_of(400, 4, k), 4.0, delta)
    assert plan.metric is not None
    totals = np.zeros((3, 2))
    for _ in range(100):
        with recording() as releases:
            run(X, y, plan, k=k)
        assert len(releases) == 3
        for stage, release in enumerate(releases):
            totals[stage] += np.sum(list(scaled_noise(release)), axis=0)
    assert all(tail(square, degrees) > 1e-9 for square, degrees in totals)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("k", [2, 3])
def test_recorded_noise_has_the_claimed_scale(delta, k):
    assert_noise_has_its_scale(delta, k)


@pytest.mark.parametrize(("name", "delta"), [("rounded_gaussian", 1e-5), ("l2_laplace", 0.0)])
def test_noise_test_sees_half_the_linear_term(monkeypatch, name, delta):
    """Planted: the linear term has half its standard deviation."""
    honest = getattr(linear_module, name)
    monkeypatch.setattr(linear_module, name, lambda v, s, **rest: honest(v, s / 2, **rest))
    with pytest.raises(AssertionError):
        assert_noise_has_its_scale(delta, 2)


# -- certificate ---------------------------------------------------------------------


def hard_tables():
    """Ill-conditioned, degenerate and extreme features with labels of three classes."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((600, 5)) * [1.0, 1e-2, 1e-4, 1e-6, 1e-8]
    y = rng.integers(3, size=600)
    yield "ill-conditioned", X, y
    yield "collinear", np.repeat(X[:, :1], 5, axis=1) + 1e-9 * X, y
    yield "identical", np.tile(X[:1], (600, 1)), y
    yield "one class", X, np.zeros(600, dtype=int)
    yield "zeros", 0.0 * X, y
    yield "one huge row", np.where(np.arange(600)[:, None] == 7, 1e200 * X, X), y


def assert_certified(monkeypatch, X, y, k, delta, weights):
    """An independent gradient in the metric that was released, at the private query."""
    seen = []
    honest = module.release_metric

    def remember(*args):
        seen.append(honest(*args))
        return seen[-1]

    monkeypatch.setattr(module, "release_metric", remember)
    # With two classes the others count as class 0.
    codes = y if k > 2 else (y == 1).astype(int)
    plan = plan_preconditioned_objective(
        risk_of(len(X), X.shape[1], k, weight=float(weights.max())), 4.0, delta
    )
    with recording() as releases:
        run(X, codes, plan, k=k, weights=weights)
    (released,) = seen
    transform = np.linalg.qr(released @ np.eye(X.shape[1]), mode="r")
    Z = np.asarray(unit_rows(X, 1.0, None).margins(transform.T))
    lengths = np.linalg.norm(Z, axis=1, keepdims=True)
    Z = np.divide(Z, lengths, out=np.zeros_like(Z), where=lengths > 2.0**-100)
    linear = np.vstack([r.released for r in releases[1:-1]])
    gradient = gradients(plan.objective, Z, codes, weights, linear, releases[-1].value)
    assert np.linalg.norm(gradient) <= plan.objective.tolerance.certified + 1e-9


@pytest.mark.parametrize("table", list(hard_tables()), ids=lambda table: table[0])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_private_query_is_certified(monkeypatch, table, k, delta):
    _, X, y = table
    assert_certified(monkeypatch, X, y, k, delta, np.linspace(0.5, 2.0, k))


def test_certificate_test_sees_a_solver_that_stops_early(monkeypatch):
    """Planted: two steps of gradient descent."""

    def early(objective, gamma, *, radius, **rest):
        w = -objective.gradient(np.zeros(objective.size)) / objective.gradient_lipschitz
        return w - objective.gradient(w) / objective.gradient_lipschitz

    monkeypatch.setattr(risk_module, "certified_minimum", early)
    _, X, y = next(hard_tables())
    with pytest.raises(AssertionError):
        assert_certified(monkeypatch, X, y, 2, 1e-6, np.ones(2))


# -- neighbours ----------------------------------------------------------------------


def worst_change(k, loss=SHIFTED):
    """Largest change of the gradient of neighbours at one point, over the bound, in a metric."""
    rng = np.random.default_rng(6)
    worst = 0.0
    for X, y, other_X, other_y in neighbouring_pairs(rng, 120, n_classes=k):
        d = X.shape[1]
        root = rng.standard_normal((d, d))
        transform = np.linalg.inv(root @ root.T + 0.01 * np.eye(d))
        case = risk_of(len(X), d, k, loss)
        plan = plan_preconditioned_objective(case, 1.0, 0.0, metric=False)
        W = 30.0 * rng.standard_normal((1 if k == 2 else k, d))
        found = []
        for features, labels in ((X, y), (other_X, other_y)):
            rows = FormedRows(unit_rows(features, 1.0, None), transform)
            Z = rows.adjoint(np.eye(len(features))).T
            assert np.linalg.norm(Z, axis=1).max() <= 1.0
            found.append(gradients(plan.objective, Z, labels, np.ones(k), 0.0 * W, W))
        change = float(np.linalg.norm(found[0] - found[1]))
        worst = max(worst, change / case.gradient_change)
    return worst


@pytest.mark.parametrize("k", [2, 4])
def test_change_in_a_metric_is_that_of_unit_rows(k):
    assert 0.7 < worst_change(k) <= 1.0


def test_change_test_sees_rows_that_are_not_brought_back_to_norm_one(monkeypatch):
    """Planted: images three times as long."""
    honest = mapped_rows.inverse_lengths
    monkeypatch.setattr(mapped_rows, "inverse_lengths", lambda *a: 3.0 * honest(*a))
    with pytest.raises(AssertionError):
        worst_change(2)


def test_earlier_releases_reach_the_plan():
    """The metric is charged with the rest, and what is certified is hidden by the output noise."""
    plan = plan_preconditioned_objective(risk_of(3000, 100), 1.0, 1e-7)
    alone = plan_preconditioned_objective(risk_of(3000, 100), 1.0, 1e-7, metric=False)
    assert isinstance(plan.events[0], Gaussian)
    assert plan.objective.linear.mu < alone.objective.linear.mu
    objective = plan.objective
    total = objective.ridge * 3000
    certified = objective.output.sensitivity * total / 2.0
    assert certified >= objective.tolerance.certified


@pytest.mark.parametrize("delta", [0.0, 1e-7])
def test_plan_is_for_images_of_norm_one(delta):
    """However short the rows were before they were mapped."""
    for row_norm in (0.5, 1.0):
        plan = plan_preconditioned_objective(
            replace(risk_of(20000, 30), row_norm=row_norm), 1.0, delta
        )
        assert plan.metric is not None
        case, linear = plan.objective.risk, plan.objective.linear
        assert case.row_norm == FormedRows(unit_rows(np.eye(30), 1.0, None), np.eye(30)).row_bound
        if delta == 0.0:
            # Two opposite images of norm one, slopes of one, and what the Jacobian leaves.
            assert linear.scale >= 2.0 / 0.8
        else:
            assert linear.change >= 2.0


@pytest.mark.parametrize("block_rows", [3000, 8192])
def test_plan_counts_the_rows_that_are_summed_at_a_time(block_rows):
    """Whatever the layout of the data, images are formed in the blocks of the bound."""
    case = replace(risk_of(3000, 100), block_rows=block_rows)
    plan = plan_preconditioned_objective(case, 1.0, 1e-7)
    rows = unit_rows(np.zeros((3000, 100)), 1.0, None)
    for source in (rows, unit_rows(sparse.csr_array((3000, 100)), 1.0, None)):
        formed = FormedRows(source, np.eye(100))
        sizes = [hi - lo for lo, hi, _, _ in formed._blocks()]
        assert max(sizes) == plan.objective.risk.block_rows == formed.block_rows
        assert sum(sizes) == 3000
        assert len(sizes) == -(-3000 // formed.block_rows)


# -- the whole -----------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.0, 1e-7])
@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_separated_classes_are_told_apart(k, kind, delta):
    X, y = separated(6000, 8, k, seed=4)
    plan = plan_preconditioned_objective(risk_of(6000, 8, k), 4.0, delta)
    assert share_right(X, run(kind(X), y, plan, k=k), y) > 0.9


def test_metric_pays_on_stretched_data():
    X, y = stretched(20000)
    scores = []
    for metric in (True, False):
        plan = plan_preconditioned_objective(risk_of(20000, 3), 0.1, 1e-7, metric=metric)
        scores.append(share_right(X, run(X, y, plan), y))
    assert scores[0] > 0.95
    assert scores[0] >= scores[1] - 0.01


def test_infinite_budget_is_exact_and_reproducible():
    X, y = separated(500, 4, seed=3)
    plan = plan_preconditioned_objective(risk_of(500, 4, loss=LOGISTIC), math.inf, 0.0, ridge=1e-3)
    assert math.isinf(privacy.epsilon(plan.events, 1e-3))
    a, b = (run(X, y, plan) for _ in range(2))
    np.testing.assert_array_equal(a, b)
    unmapped = run(X, y, replace(plan, metric=None))
    assert not np.allclose(unmapped, a)
