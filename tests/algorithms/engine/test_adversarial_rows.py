"""Noisy steps against an adversary: what is summed, and how far one record moves it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from dp_halfspace.algorithms.engine import noisy_gd
from dp_halfspace.algorithms.engine.defaults import Steps
from dp_halfspace.algorithms.engine.noisy_gd import (
    AdversarialRows,
    clipped_slopes,
    plan_descent,
    scaled_rows,
)
from dp_halfspace.optim.objectives import Adversary
from dp_halfspace.rows.rows import Rows
from tests.adversarial import neighbouring_pairs
from tests.conftest import separated


def plan_for(n=1000, d=5, attack=None, mu=1.0, **changes):
    steps = replace(
        Steps(margin_offset=2.0, clip=0.7, n_steps=10, path_length=3.0, tail_fraction=0.5),
        **changes,
    )
    sizes = {"n_samples": n, "n_columns": d, "n_outputs": 1, "block_rows": 1000}
    return plan_descent(steps, **sizes, mu=mu, attack=attack)


def ratio(radius, kind=2, *, attacked=None, planned=None, weights=(1.0, 1.0)):
    """Largest change of the sum over the sensitivity of a plan, over neighbours and points."""
    rng, worst = np.random.default_rng(0), 0.0
    for X, y, other_X, other_y in neighbouring_pairs(rng, 150):
        n, d = X.shape
        attack = Adversary(radius, kind, d if attacked is None else min(d, attacked))
        plan = plan_for(n, d, attack if planned is None else planned(attack))
        for scale in (0.0, 0.3, 3.0, 30.0):
            point = scale * rng.standard_normal(d)
            if rng.random() < 0.3:
                point = -scale * X[0]
            sums = []
            for rows, codes in ((X, y), (other_X, other_y)):
                slopes = clipped_slopes(plan, codes, np.asarray(weights)[codes])
                signs = np.where(codes == 1, 1.0, -1.0)
                sums.append(AdversarialRows(Rows(rows), signs, attack).fused_adjoint(point, slopes))
            change = float(np.linalg.norm(sums[0] - sums[1]))
            worst = max(worst, change / plan.mechanism.sensitivity)
    return worst


@pytest.mark.parametrize(("radius", "kind"), [(0.05, 2), (0.5, 2), (1.0, 2), (0.3, "inf")])
def test_sensitivity_against_brute_force(radius, kind):
    worst = ratio(radius, kind)
    assert 0.99 < worst <= 1.0
    # Columns that are not attacked change nothing.
    assert ratio(radius, kind, attacked=1) <= 1.0


def test_a_far_reaching_adversary_against_brute_force():
    """A class of weight 0 lets one record pull where the other one does not."""
    assert 0.99 < ratio(2.0, weights=(0.0, 1.0)) <= 1.0


def test_brute_force_sees_a_missing_reach():
    """Planted: a far-reaching adversary is charged like none."""
    assert ratio(2.0, weights=(0.0, 1.0), planned=lambda attack: None) > 1.2


def test_brute_force_sees_a_missing_half(monkeypatch):
    """Planted: the sensitivity of adding a record, not of replacing one."""
    honest = noisy_gd.GaussianNoise
    monkeypatch.setattr(noisy_gd, "GaussianNoise", lambda s, mu: honest(s / 2, mu))
    assert ratio(0.3) > 1.9


def test_brute_force_sees_a_pull_of_each_row(monkeypatch):
    """Planted: the direction of the adversary is a function of the row, as in a preconditioner."""

    def own_direction(self, w, slopes):
        total = np.zeros(len(w))
        for row, sign in zip(self.rows.dense(np.arange(len(self.signs))), self.signs, strict=True):
            length = max(float(np.linalg.norm(row)), 1e-3)
            margin = np.array([(row @ w - sign * self.attack.radius * self.attack.dual_norm(w))])
            pull = slopes(margin / length, 0, 1)[0]
            total += pull * (row - sign * self.attack.radius * self.attack.gradient(w)) / length
        return total

    monkeypatch.setattr(AdversarialRows, "fused_adjoint", own_direction)
    assert ratio(0.9) > 1.2


def test_sum_is_that_of_the_worst_margins():
    """The ascent is minus the gradient of the summed loss, by differences."""
    rng = np.random.default_rng(1)
    X, codes = separated(50, 4, seed=3)
    signs = np.where(codes == 1, 1.0, -1.0)
    for kind in (2, "inf"):
        attack = Adversary(0.2, kind, 3)
        rows = AdversarialRows(Rows(X), signs, attack)
        slopes = clipped_slopes(plan_for(50, 4, clip=1.0), codes, np.ones(50))
        w = rng.standard_normal(4)

        def loss(w, attack=attack):
            return np.logaddexp(0, 2.0 - signs * (X @ w) + 0.2 * attack.dual_norm(w)).sum()

        step = 1e-6 * np.eye(4)
        expected = [(loss(w - e) - loss(w + e)) / 2e-6 for e in step]
        np.testing.assert_allclose(rows.fused_adjoint(w, slopes), expected, atol=1e-5)


def test_rows_have_one_factor():
    X = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0], [1e200, 0.0]])
    rows = scaled_rows(X, 1.0, 0.5).dense(np.arange(4))
    length = math.hypot(1.0, 0.5)
    expected = np.array([[0.6, 0.8, 0.5], [0.3, 0.4, 0.5], [0, 0, 0.5], [1, 0, 0.5]]) / length
    np.testing.assert_allclose(rows, expected, rtol=1e-14)
    np.testing.assert_array_equal(
        rows, scaled_rows(sparse.csr_array(X), 1.0, 0.5).dense(np.arange(4))
    )
    for norm, bias in ((1e-50, 1e-3), (1e50, None), (0.3, 1e3)):
        some = scaled_rows(norm * np.random.default_rng(0).standard_normal((200, 7)), norm, bias)
        assert np.linalg.norm(some.dense(np.arange(200)), axis=1).max() <= 1 + 2.0**-40
