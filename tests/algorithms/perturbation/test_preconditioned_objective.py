"""Objective perturbation behind a private preconditioner: budget, noise, certificate."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from dp_halfspace import privacy
from dp_halfspace.algorithms.engine.preconditioner import release_preconditioner
from dp_halfspace.algorithms.perturbation import preconditioned as module
from dp_halfspace.algorithms.perturbation.preconditioned import (
    plan_preconditioned_objective,
)
from dp_halfspace.optim import block_size, empirical_risk, huber_hinge, shifted_logistic
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.mechanisms import L2LaplaceNoise
from dp_halfspace.rows import mapped_rows
from dp_halfspace.rows.mapped_rows import FormedRows
from dp_halfspace.rows.rows import normalised_rows
from tests.adversarial import neighbouring_pairs
from tests.algorithms.perturbation.test_objective import gradients
from tests.algorithms.support import permit_for
from tests.releases import record_releases

SHIFTED = shifted_logistic(2.0)


def risk_of(n, d, k=2, loss=SHIFTED, weight=1.0):
    block = block_size(n, d, is_sparse=False)
    return empirical_risk(loss, n, d, k, 1.0, block, max_weight=weight)


def run(X, y, plan, *, k=2, weights=None):
    weights = np.ones(k) if weights is None else weights
    return plan.run(normalised_rows(X, 1.0, None), y, weights, permit_for(*plan.events))


@pytest.mark.sampled(7)
@pytest.mark.parametrize("delta", [0.0, 1e-7])
@pytest.mark.parametrize("epsilon", [0.1, 8.0])
@pytest.mark.parametrize("k", [2, 7])
@pytest.mark.parametrize("loss", [SHIFTED, huber_hinge(0.5)], ids=lambda loss: loss.name)
@pytest.mark.parametrize("ridge", [None, 1.0])
def test_whole_budget_and_no_more(delta, epsilon, k, loss, ridge):
    plan = plan_preconditioned_objective(
        risk_of(20000, 30, k, loss), Budget.of(epsilon, delta), ridge=ridge
    )
    assert plan.preconditioner is not None
    spent = privacy.epsilon(plan.events, delta)
    assert epsilon * (1 - 1e-6) <= spent <= epsilon * (1 + 1e-12)


@pytest.mark.parametrize("k", [2, 12])
@pytest.mark.parametrize("delta", [0.0, 0.25])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 50.0])
@pytest.mark.parametrize("n", [1, 40])
def test_tiny_data_and_budgets_have_a_plan(n, k, delta, epsilon):
    """No preconditioner if it would exceed delta beside the vertices at every regulariser."""
    plan = plan_preconditioned_objective(risk_of(n, 3, k), Budget.of(epsilon, delta))
    assert privacy.epsilon(plan.events, delta) <= epsilon * (1 + 1e-12)


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
    """An independent gradient in the preconditioner that was released, at the private query."""
    seen = []
    honest = module.release_preconditioner

    def remember(*args):
        seen.append(honest(*args))
        return seen[-1]

    monkeypatch.setattr(module, "release_preconditioner", remember)
    # With two classes the others count as class 0.
    codes = y if k > 2 else (y == 1).astype(int)
    plan = plan_preconditioned_objective(
        risk_of(len(X), X.shape[1], k, weight=float(weights.max())), Budget.of(4.0, delta)
    )
    with record_releases() as releases:
        run(X, codes, plan, k=k, weights=weights)
    (released,) = seen
    transform = np.linalg.qr(released @ np.eye(X.shape[1]), mode="r")
    Z = np.asarray(normalised_rows(X, 1.0, None).margins(transform.T))
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


def worst_change(k, loss=SHIFTED):
    """Largest preconditioned change of the gradient of neighbours at one point, over the bound."""
    rng = np.random.default_rng(6)
    worst = 0.0
    for X, y, other_X, other_y in neighbouring_pairs(rng, 120, n_classes=k):
        d = X.shape[1]
        root = rng.standard_normal((d, d))
        transform = np.linalg.inv(root @ root.T + 0.01 * np.eye(d))
        case = risk_of(len(X), d, k, loss)
        plan = plan_preconditioned_objective(case, Budget.of(1.0, 0.0), preconditioner=False)
        W = 30.0 * rng.standard_normal((1 if k == 2 else k, d))
        found = []
        for features, labels in ((X, y), (other_X, other_y)):
            rows = FormedRows(normalised_rows(features, 1.0, None), transform)
            Z = rows.adjoint(np.eye(len(features))).T
            assert np.linalg.norm(Z, axis=1).max() <= 1.0
            found.append(gradients(plan.objective, Z, labels, np.ones(k), 0.0 * W, W))
        change = float(np.linalg.norm(found[0] - found[1]))
        worst = max(worst, change / case.gradient_change)
    return worst


@pytest.mark.parametrize("k", [2, 4])
def test_change_in_a_preconditioner_is_that_of_unit_rows(k):
    assert 0.7 < worst_change(k) <= 1.0


def test_change_test_sees_rows_that_are_not_brought_back_to_norm_one(monkeypatch):
    """Planted: images three times as long."""
    honest = mapped_rows.inverse_lengths
    monkeypatch.setattr(mapped_rows, "inverse_lengths", lambda *a: 3.0 * honest(*a))
    with pytest.raises(AssertionError):
        worst_change(2)


@pytest.mark.parametrize("delta", [0.0, 1e-7])
def test_plan_is_for_images_of_norm_one(delta):
    """However short the rows were before they were mapped."""
    for row_norm in (0.5, 1.0):
        plan = plan_preconditioned_objective(
            replace(risk_of(20000, 30), row_norm=row_norm), Budget.of(1.0, delta)
        )
        assert plan.preconditioner is not None
        case, linear = plan.objective.risk, plan.objective.linear
        assert (
            case.row_norm
            == FormedRows(normalised_rows(np.eye(30), 1.0, None), np.eye(30)).row_bound
        )
        if delta == 0.0:
            # Two opposite images of norm one, slopes of one, and what the Jacobian leaves.
            assert linear.scale >= 2.0 / 0.8
        else:
            assert linear.change >= 2.0


def test_a_record_moves_the_moment_by_the_sensitivity_of_pure_noise_at_most_and_does():
    plan = plan_preconditioned_objective(risk_of(2000, 5), Budget.of(8.0, 0.0)).preconditioner
    rows, values = np.eye(5)[np.zeros(2000, dtype=int)], []
    for first in range(2):
        rows[0] = np.eye(5)[first]
        with record_releases() as releases:
            permit = permit_for(plan.mechanism.event)
            release_preconditioner(normalised_rows(rows, 1.0, None), plan, permit)
        values.append(releases[0].value)
    assert isinstance(plan.mechanism, L2LaplaceNoise)
    moved = np.linalg.norm(values[0] - values[1])
    assert 0.999 * plan.mechanism.sensitivity < moved <= plan.mechanism.sensitivity


@pytest.mark.parametrize("block_rows", [3000, 8192])
def test_plan_counts_the_rows_that_are_summed_at_a_time(block_rows):
    """Whatever the layout of the data, images are formed in the blocks of the bound."""
    case = replace(risk_of(3000, 100), block_rows=block_rows)
    plan = plan_preconditioned_objective(case, Budget.of(1.0, 1e-7))
    rows = normalised_rows(np.zeros((3000, 100)), 1.0, None)
    for source in (rows, normalised_rows(sparse.csr_array((3000, 100)), 1.0, None)):
        formed = FormedRows(source, np.eye(100))
        sizes = [hi - lo for lo, hi, _, _ in formed._blocks()]
        assert max(sizes) == plan.objective.risk.block_rows == formed.block_rows
        assert sum(sizes) == 3000
        assert len(sizes) == -(-3000 // formed.block_rows)
