"""Counts of the classes that balance a fit: sensitivity, and weights of at most one."""

import numpy as np
import pytest

from dp_halfspace.data.people import People
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine.counts import balancing_weights, count_noise, counts_asked
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.mechanisms import GaussianNoise, NoNoise

ONE = Budget.gaussian(1.0)


def data(codes, n_classes, people=None, weights=None):
    codes = np.asarray(codes)
    counts = None if people is None else People(np.asarray(people))
    rows = np.zeros((len(codes), 1))
    return TrainingData(rows, codes, np.arange(n_classes), None, counts, weights)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_class_without_records_is_counted(n_classes):
    """Otherwise the number of counts would show that it has none."""
    assert counts_asked(data([0, 0, 0], n_classes), n_classes)[-1] == 0.0
    weighed = data([0, 0, 0], n_classes, weights=np.ones(3))
    assert counts_asked(weighed, n_classes).tolist() == [3.0, *[0.0] * (n_classes - 1)]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", ["records", "people", "weights"])
def test_counts_move_by_their_sensitivity_at_most(n_classes, kind):
    rng, worst = np.random.default_rng(0), 0.0
    noise = count_noise(n_classes, ONE, has_weights=kind == "weights")
    assert noise.sensitivity == pytest.approx(1.0 if noise.sensitivity < 1.1 else np.sqrt(2.0))
    for trial in range(60):
        pair = []
        people = rng.integers(1, 4, size=6)
        others = np.concatenate([rng.integers(n_classes, size=k) for k in people[1:]])
        weights = rng.random(len(others))
        for label, size in ((0, people[0]), (1 + trial % (n_classes - 1), 1 + trial % 5)):
            if kind == "people":
                codes = np.concatenate([np.full(size, label), others])
                pair.append(data(codes, n_classes, people=[size, *people[1:]]))
            else:
                own = None if kind == "records" else np.append([1.0, 0.3, 1.0][trial % 3], weights)
                pair.append(data(np.append(label, others), n_classes, weights=own))
        a, b = (counts_asked(each, n_classes) for each in pair)
        worst = max(worst, float(np.linalg.norm(a - b)) / noise.sensitivity)
    assert 0.95 < worst <= 1.0


def test_weights_are_at_most_one_and_balance_released_counts():
    noise = GaussianNoise(1.0, 0.5)
    # The deviation of the noise is 2.
    assert balancing_weights(np.array([25.0]), 125, noise) == pytest.approx((27 / 98, 1.0))
    found = balancing_weights(np.array([10.0, 40.0, 20.0]), 70, noise)
    assert found == pytest.approx((1.0, 12 / 38, 12 / 22))
    # The squared distances from the mean of four sizes are 500, of which noise explains 8.
    found = balancing_weights(np.array([10.0, 40.0, 20.0, 30.0]), 100, noise)
    shrunk = 25 + 0.984 * np.array([-15, 15, -5, 5]) + 0.984 * np.array([2, -2, 2, 2])
    assert found == pytest.approx(shrunk.min() / shrunk)
    assert balancing_weights(np.array([23.0, 25, 27, 25]), 100, noise).tolist() == [1.0] * 4
    # A count within its noise counts as that, and one without noise as one record.
    assert balancing_weights(np.array([-5.0]), 100, noise) == pytest.approx((2 / 98, 1.0))
    # Little is told apart where the noise is as large as the classes.
    assert min(balancing_weights(np.array([70.0]), 100, GaussianNoise(1.0, 1e-3))) > 0.9
    assert balancing_weights(np.array([0.0]), 100, NoNoise()).tolist() == [0.01, 1.0]
    for released in (-1e9, 0.0, 1e9):
        assert 0.0 < min(balancing_weights(np.array([released]), 100, noise)) <= 1.0
