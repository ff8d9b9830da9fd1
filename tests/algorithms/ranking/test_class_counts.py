"""The noisy count and the weights made from it."""

import math

import numpy as np
import pytest

from dp_halfspace.algorithms.ranking.auc_training import class_weights, release_count
from dp_halfspace.privacy.mechanisms import GaussianNoise, L2LaplaceNoise, noise_deviation
from tests.algorithms.support import permit_for


def released(mechanism, n_positive=30, fits=1000):
    positive = np.arange(100) < n_positive
    permits = (permit_for(mechanism.event) for _ in range(fits))
    return np.array([release_count(positive, mechanism, permit) for permit in permits])


@pytest.mark.parametrize("mechanism", [GaussianNoise(1.0, 0.5), L2LaplaceNoise(1.0, 0.5)])
def test_noise_has_the_stated_deviation(mechanism):
    counts, deviation = released(mechanism), noise_deviation(mechanism)
    assert abs(counts.mean() - 30) < 6 * deviation / math.sqrt(len(counts))
    assert 0.75 < counts.std() / deviation < 1.3


def test_the_rarer_class_weighs_one():
    for count in (-1e300, -5.0, 0.0, 3.0, 499.9, 500.0, 501.0, 998.0, 1e300):
        for deviation in (0.0, 10.0, 1e9):
            weights = class_weights(count, 1000, deviation=deviation, power=0.5)
            assert weights.max() == 1.0
            assert weights.min() > 0.03
            assert count == 500.0 or weights.argmax() == (count < 500) or deviation > 0
