"""Counts of the classes: sensitivity by brute force, exact cost, and what follows them."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dp_halfspace.estimators import _wrapped_plans as wrapped_plans
from dp_halfspace.estimators._wrapped_plans import balanced_weights, plan_class_counts
from tests.permits import assert_costs, permit_for


def worst_change(n_classes):
    """Largest move of what is released over replacements of one label."""
    rng, largest = np.random.default_rng(0), 0.0
    for _ in range(200):
        first = rng.integers(n_classes, size=6)
        second = first.copy()
        second[2] = rng.integers(n_classes)
        counts = [wrapped_plans.class_counts(codes, n_classes) for codes in (first, second)]
        change = counts[0] - counts[1]
        largest = max(largest, float(np.linalg.norm(change[1:] if n_classes == 2 else change)))
    return largest


@pytest.mark.parametrize(("n_classes", "bound"), [(2, 1.0), (3, math.sqrt(2.0))])
def test_a_record_moves_the_counts_by_the_sensitivity(n_classes, bound):
    plan, _ = plan_class_counts(1000, n_classes, 0.5)
    assert worst_change(n_classes) == bound
    assert bound <= plan.noise.sensitivity <= bound * (1 + 1e-9)


def test_brute_force_sees_a_record_that_is_counted_twice(monkeypatch):
    honest = wrapped_plans.class_counts
    monkeypatch.setattr(wrapped_plans, "class_counts", lambda *a: 2 * honest(*a))
    assert worst_change(2) == 2.0


@pytest.mark.parametrize("n_samples", [100, 1000, 10**6])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_counts_and_the_rest_make_the_whole(n_samples, n_classes):
    plan, left = plan_class_counts(n_samples, n_classes, 0.3)
    rest = replace(plan.noise, sensitivity=1.0, mu=left)
    assert_costs([plan.noise.event, rest.event], 0.3)
    share = (plan.noise.mu / 0.3) ** 2
    assert 0.02 - 1e-12 <= share <= 0.03 + 1e-12


@pytest.mark.parametrize("n_classes", [2, 4])
def test_released_counts_are_those_of_the_classes(n_classes):
    codes = np.repeat(np.arange(n_classes), 100 * np.arange(1, n_classes + 1))
    plan, left = plan_class_counts(len(codes), n_classes, math.inf)
    assert math.isinf(left)
    found, total = plan.run(codes, permit_for(plan.noise.event))
    assert total == len(codes)
    np.testing.assert_array_equal(found, np.bincount(codes))


@pytest.mark.parametrize("counts", [[900.0, 100.0], [1e9, -5.0], [0.0, 0.0], [700.0, 200.0, 100.0]])
def test_balanced_weights_are_inverse_sizes_of_at_most_one(counts):
    weights = balanced_weights(np.array(counts), 3.0, 1000)
    assert weights.max() == 1.0
    assert weights.min() > 0.0
    if counts == [900.0, 100.0]:
        np.testing.assert_allclose(weights, [103 / 897, 1.0])
    # Little is told apart where the noise is as large as the classes.
    assert balanced_weights(np.array(counts), 2000.0, 1000).min() > 0.9
