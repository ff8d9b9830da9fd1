"""The mean difference: sensitivities by brute force, what the map does, absent classes."""

import math

import numpy as np
import pytest

from dp_halfspace.algorithms.engine.defaults import engine_defaults
from dp_halfspace.algorithms.engine.noisy_gd import plan_gradient
from dp_halfspace.algorithms.ranking import auc_training
from dp_halfspace.algorithms.ranking.auc_training import (
    MOMENT_SENSITIVITY,
    mean_difference_for,
    plan_mean_difference,
    plan_standardisation,
    release_standardisation,
)
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.rows.rows import Rows
from tests.adversarial import neighbouring_pairs
from tests.algorithms.support import permit_for
from tests.releases import record_releases


def rows_of(X):
    return Rows(X, None, 1.0, row_bound=math.sqrt(2))


def standardise(X, plan):
    return release_standardisation(rows_of(X), plan, permit_for(plan.mechanism.event))


def moments(X, plan):
    with record_releases() as releases:
        standardise(X, plan)
    return releases[0]


def test_squares_and_rows_together_change_by_the_root_of_four_and_a_half():
    rng = np.random.default_rng(0)
    worst = 0.0
    for X, _, other, _ in neighbouring_pairs(rng, 200):
        plan = plan_standardisation(*X.shape, 64, Budget.gaussian(20.0))
        a, b = moments(X, plan), moments(other, plan)
        worst = max(worst, float(np.linalg.norm(a.value - b.value)) / a.mechanism.sensitivity)
    assert 0.9 < worst <= 1.0


def test_the_bound_on_the_moments_is_attained():
    """Unit rows with overlap of the roots one half: section 2 of the proof."""
    angle = math.acos(0.5) / 2
    u = np.array([math.cos(math.pi / 4 + angle), math.sin(math.pi / 4 + angle)])
    v = -np.array([math.cos(math.pi / 4 - angle), math.sin(math.pi / 4 - angle)])
    change = np.concatenate([u - v, u**2 - v**2])
    assert np.linalg.norm(change) == pytest.approx(MOMENT_SENSITIVITY, rel=1e-9)


def worst_difference():
    """Largest change of the noisy sum, in units of the sensitivity."""
    rng = np.random.default_rng(1)
    worst = 0.0
    for X, y, other, flipped in neighbouring_pairs(rng, 300):
        transform = np.vstack([np.eye(X.shape[1]) * 1.5, np.full((1, X.shape[1]), 0.1)])
        plan = plan_mean_difference(*X.shape, 64, Budget.gaussian(30.0))
        values = []
        for features, labels in ((X, y), (other, flipped)):
            with pytest.MonkeyPatch.context() as patch, record_releases() as releases:
                patch.setattr(auc_training, "release_standardisation", lambda *a, t=transform: t)
                args = (rows_of(features), (labels == 1).astype(int), np.array([0.6, 1.0]))
                plan.run(*args, permit_for(*plan.events))
            values.append(releases[-1].value)
        worst = max(worst, float(np.linalg.norm(values[0] - values[1])))
    return worst / plan.mechanism.sensitivity


def test_sensitivity_against_brute_force():
    assert 0.95 < worst_difference() <= 1.0


@pytest.mark.parametrize(("n", "d", "block"), [(1000, 5, 1000), (10**6, 60, 500)])
def test_allowances_are_those_of_the_proof(n, d, block):
    """``docs/proofs/auc.md``, section 3, in its own notation; not above it either."""
    plan, blocks, unit = (
        plan_mean_difference(n, d, block, Budget.gaussian(1.0)),
        -(-n // block),
        2.0**-53,
    )
    moments = math.sqrt(4.5) + 2 * 1.01 * n * (block + blocks + 16) * math.sqrt(2.0) * unit
    found = plan.standardisation.mechanism.sensitivity
    assert moments * (1 - 1e-15) <= found <= moments * (1 + 2.0**-39)
    deviation = plan.standardisation.mechanism.sigma / n
    theta = 1 / (0.7 * math.sqrt(max(0.3 * deviation, 1e-8)))
    length = 1.01 * math.sqrt(2.0) * theta * math.sqrt(2 * d) * unit
    row, sums = (d + 16) * length, (block + blocks + d + 16) * length
    needed = 2 * (1 + 2.0**-30 + row + n * (row + sums))
    assert needed * (1 - 1e-14) <= plan.mechanism.sensitivity <= needed * (1 + 1e-14)


def test_brute_force_sees_half_the_sensitivity(monkeypatch):
    """Planted: the sensitivity of adding a record."""
    honest = auc_training._sensitivity
    monkeypatch.setattr(auc_training, "_sensitivity", lambda *a: honest(*a) / 2)
    assert worst_difference() > 1.0


def test_brute_force_sees_rows_that_are_not_clipped(monkeypatch):
    monkeypatch.setattr(Rows, "lengths", lambda self, transform=None: np.ones(self.shape[0]))
    assert worst_difference() > 1.0


def test_the_map_is_within_its_bound_whatever_is_released():
    """A centre that noise has driven out of the unit ball is brought back."""

    class Noisy:
        def release(self, value, mechanism):
            return 50.0 * np.concatenate([np.full(4, 5.0), np.full(4, 25.0)])

    plan, zeros = plan_standardisation(50, 4, 50, Budget.gaussian(5.0)), np.zeros((50, 4))
    maps = [standardise(X, plan) for X in (zeros, np.eye(4)[np.arange(50) % 4])]
    for transform in (*maps, release_standardisation(rows_of(zeros), plan, Noisy())):
        assert np.linalg.norm(transform) <= plan.amplification * math.sqrt(2 * 4) * (1 + 1e-12)


@pytest.mark.parametrize("budget", [Budget.gaussian(0.5), Budget.of(0.5, 0.0)])
def test_many_columns_or_little_budget_skip_the_standardisation(budget):
    assert plan_mean_difference(10**6, 513, 100, budget).standardisation is None
    plan = plan_mean_difference(30, 4, 30, budget)
    assert plan.standardisation is None
    assert len(plan.events) == 1
    rows, none = rows_of(np.zeros((30, 4))), np.zeros(30, dtype=int)
    w = plan.run(rows, none, np.ones(2), permit_for(*plan.events))[0]
    assert w[-1] == 0.0
    assert np.isfinite(w).all()


@pytest.mark.parametrize("mu", [0.2, math.inf])
def test_a_difference_made_of_the_events_of_the_descent(mu):
    """It costs what the descent costs, and its noise is that of one release at this price."""
    sizes = {"n_samples": 10**5, "n_columns": 5, "n_classes": 2, "block_rows": 10**4}
    descent = plan_gradient(engine_defaults(10**5, 5, 2, mu), **sizes, mu=mu)
    plan = mean_difference_for(descent, 10**5, 4, 10**4)
    assert plan.events == descent.events
    if math.isfinite(mu):
        rows, classes = rows_of(np.zeros((50, 4))), (np.arange(50) < 5).astype(int)
        with record_releases() as releases:
            plan.run(rows, classes, np.ones(2), permit_for(*descent.events))
        assert len(releases) == 1 + plan.copies
        single = plan.mechanism.sigma / math.sqrt(plan.copies)
        assert single == pytest.approx(2.0 / (math.sqrt(0.8) * mu), rel=1e-4)
