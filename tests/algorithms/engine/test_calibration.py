"""Noisy counts of scores: sensitivity by brute force, and lines that are nearly the best."""

import math

import numpy as np
import pytest
from scipy.special import expit

from dp_halfspace.algorithms.engine import calibration
from dp_halfspace.algorithms.engine.calibration import affordable_calibration
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.events import Gaussian
from dp_halfspace.privacy.mechanisms import authorise
from dp_halfspace.privacy.profiles import gdp_mu
from dp_halfspace.privacy.randomness import OS_RANDOMNESS
from dp_halfspace.privacy.record import PrivacyRecord

HOSTILE = [0.0, -0.0, 1e-310, 1.0, -1.0, 2**0.5, 45.3, -1e308, 1e308]


def calibrated(scores, classes, epsilon, weights=(1.0, 1.0), delta=1e-9):
    plan, left = affordable_calibration(len(classes), epsilon, delta)
    noise = "none" if math.isinf(epsilon) else "os"
    record = PrivacyRecord(epsilon=epsilon, delta=delta, events=plan.events, noise=noise)
    assert left <= epsilon
    return plan.run(scores, classes, np.array(weights), authorise(record, OS_RANDOMNESS))


def worst_change(n_classes):
    """Largest move of the counts over replacements of one record by another."""
    rng, largest = np.random.default_rng(0), 0.0
    for _ in range(300):
        shape = (5,) if n_classes == 2 else (5, n_classes)
        scores, classes = rng.choice(HOSTILE, size=shape), rng.integers(n_classes, size=5)
        other, labels = scores.copy(), classes.copy()
        other[2], labels[2] = rng.choice(HOSTILE, size=shape[1:]), rng.integers(n_classes)
        change = calibration.score_counts(scores, classes) - calibration.score_counts(other, labels)
        largest = max(largest, float(np.linalg.norm(change)))
        assert np.abs(change).sum() <= 2
    return largest


@pytest.mark.parametrize("n_classes", [2, 5])
def test_a_record_moves_the_counts_by_the_root_of_two(n_classes):
    plan, _ = affordable_calibration(10_000, 1.0, 1e-8)
    assert worst_change(n_classes) == math.sqrt(2.0) <= plan.noise.sensitivity < 1.4143
    assert affordable_calibration(10_000, 1.0, 0.0)[0].noise.sensitivity == 2


def test_brute_force_sees_a_record_that_is_counted_twice(monkeypatch):
    honest = calibration.score_counts
    monkeypatch.setattr(calibration, "score_counts", lambda *a: 2 * honest(*a))
    with pytest.raises(AssertionError):
        worst_change(2)


@pytest.mark.parametrize(("epsilon", "near"), [(math.inf, 0.06), (2.0, 0.3)])
@pytest.mark.parametrize(("slope", "moved"), [(0.05, 0.0), (0.2, 0.5)])
def test_the_line_of_two_classes_is_found(epsilon, near, slope, moved):
    """In the population that the weights stand for."""
    rng = np.random.default_rng(2)
    scores = rng.normal(0, 15, size=100_000)
    classes = (rng.random(100_000) < expit(slope * scores + 0.2 - moved)).astype(np.intp)
    found, offset = calibrated(scores, classes, epsilon, (math.exp(-moved), 1.0))
    assert abs(math.log(found / slope)) < near
    assert abs(offset - 0.2) < near / 2


def test_one_slope_serves_many_classes():
    rng = np.random.default_rng(4)
    scores = 20 * rng.standard_normal((50_000, 4))
    chances = np.exp(0.1 * scores)
    chances /= chances.sum(axis=1, keepdims=True)
    classes = (chances.cumsum(axis=1) < rng.random((50_000, 1))).sum(axis=1)
    found, offset = calibrated(scores, classes, math.inf, weights=np.ones(4))
    assert abs(math.log(found / 0.1)) < 0.06
    assert offset == 0.0


@pytest.mark.parametrize("delta", [1e-8, 0.0])
def test_the_parts_of_a_budget_make_the_whole(delta):
    plan, left = affordable_calibration(10_000, 1.0, delta)
    rest = Gaussian(gdp_mu(left, delta)) if delta else None
    if delta:
        assert accounting.delta((*plan.events, rest), 1.0) <= delta
        assert accounting.epsilon((*plan.events, rest), delta) > 0.999
    else:
        assert 0.999 < plan.events[0].epsilon + left <= 1.0
    assert affordable_calibration(50, 1.0, delta) == (None, 1.0)
