"""The threshold: losses against a loop, sensitivity by brute force, the choice."""

import numpy as np
import pytest

from dp_halfspace.data.people import People
from dp_halfspace.estimators import _ranking as module
from dp_halfspace.estimators._ranking import (
    plan_threshold,
    threshold_grid,
    threshold_losses,
)


@pytest.mark.parametrize("largest", [0.0, 1e-3, 40.0])
@pytest.mark.parametrize("centre", [0.0, 0.3, 1.0 + 2.0**-18, 9.0])
@pytest.mark.parametrize("counts", [None, 4])
def test_losses_are_those_of_every_record_by_itself(monkeypatch, largest, centre, counts):
    """With scores at the grid, beside it and beyond it, in more than one block."""
    monkeypatch.setattr(module, "LONG_BLOCK", 700)
    rng, step = np.random.default_rng(0), max(largest * 2.0**-16, 1e-300)
    grid = threshold_grid(largest, centre * largest)
    near = grid[rng.integers(63, size=1500)] + step * 10.0 ** rng.uniform(-2, 2, 1500)
    scores = np.append(near, largest * rng.standard_normal(500))
    positive, weights = rng.random(2000) < 0.3, np.array([0.5, 1.0])
    people = None if counts is None else People(np.full(500, counts))
    found = threshold_losses(scores, positive, weights, grid, largest=largest, people=people)
    clipped = np.clip(scores, -largest, largest)
    above = np.clip((clipped - grid[:, None]) / step + 0.5, 0.0, 1.0)
    errors = np.where(positive, 1.0 - above, 0.5 * above) / (counts or 1)
    np.testing.assert_allclose(found, errors.sum(axis=1), rtol=1e-12)


def worst_change(rng, weights):
    """Largest change of a loss when one record is replaced."""
    grid, worst = threshold_grid(1.0, 0.0), 0.0
    for _ in range(300):
        n = int(rng.integers(1, 6))
        scores, positive = rng.uniform(-1, 1, n), rng.random(n) < 0.5
        other, flipped = scores.copy(), positive.copy()
        other[0] = rng.choice([-1.0, 1.0, grid[rng.integers(63)]])
        flipped[0] ^= rng.random() < 0.5
        a, b = (
            threshold_losses(s, p, weights, grid, largest=1.0)
            for s, p in ((scores, positive), (other, flipped))
        )
        worst = max(worst, float(np.abs(a - b).max()))
    return worst


def test_sensitivity_against_brute_force():
    mechanism = plan_threshold(6, 3, 1.0)
    worst = worst_change(np.random.default_rng(1), np.array([0.3, 1.0]))
    assert 0.99 < worst <= mechanism.sensitivity < 1.001


def test_rounding_of_every_score_stays_within_the_sensitivity():
    """All scores exactly at a threshold: the worst case for a rounding error."""
    n, d = 10**5, 50
    grid = threshold_grid(1.0, 0.0)
    scores, positive = np.full(n, grid[20]), np.zeros(n, dtype=bool)
    error = (d + 3) * 2.0**-53
    a, b = (
        threshold_losses(scores + shift, positive, np.ones(2), grid, largest=1.0)
        for shift in (-error, error)
    )
    allowed = plan_threshold(n, d, 1.0).sensitivity - 1.0
    assert np.abs(a - b).max() <= allowed


@pytest.mark.parametrize(("n", "d"), [(100, 3), (10**6, 50)])
def test_allowance_is_that_of_the_proof(n, d):
    """Every score within its rounding, through the ramp, and the two sums; a few times at most."""
    ramp = 2 * n * (d + 8) * 2.0**-53 * 2.0**16
    allowed = plan_threshold(n, d, 1.0).sensitivity - 1.0 - 2.0**-30
    assert ramp + 2 * n * n * 2.0**-53 <= allowed <= 2 * ramp + 2.0**-49 * n * n + 1e-14
