"""Columns, cosines and Fourier features: values, bounds, one row at a time."""

import math
from dataclasses import replace

import numpy as np
from scipy import sparse

from dp_halfspace.projection import draw_additive
from dp_halfspace.projection.features import AdditiveMap, FeatureMap


def test_features_are_columns_cosines_and_fourier_features():
    X = np.random.default_rng(0).uniform(-2.5, 2.5, (30, 3))
    drawn = draw_additive(3, 4, 10, np.random.default_rng(1))
    assert isinstance(drawn, FeatureMap)
    features = drawn.apply(X)
    scaled = X * math.sqrt(3)
    columns = np.clip(scaled, -1.5, 1.5)
    places = np.clip((scaled + 3.0) / 6.0, 0.0, 1.0)
    cosines = [math.sqrt(2) * np.cos(k * np.pi * places) / k for k in (2, 3, 4)]
    joint = drawn.fourier.apply(scaled) * math.sqrt(3)
    expected = np.hstack([columns, *cosines, joint]) / math.sqrt(3)
    assert features.shape == (30, drawn.n_components) == expected.shape
    np.testing.assert_allclose(features, expected, atol=1e-6)
    np.testing.assert_array_equal(drawn.apply(sparse.csr_array(X)), features)


def test_columns_of_zeros_and_ones_stand_beside_the_features_of_the_others():
    """As if the other columns were all there is, in the units of the longer row."""
    X = np.random.default_rng(0).uniform(-0.3, 0.3, (30, 5))
    alone = draw_additive(2, 3, 10, np.random.default_rng(1))
    beside = replace(alone, n_features_in=5, n_plain=3, length=4.0)
    share = math.sqrt(2) / 4.0
    of_numbers = share * alone.apply(X[:, :2] / share)
    expected = np.hstack([of_numbers[:, :2], X[:, 2:], of_numbers[:, 2:]])
    np.testing.assert_allclose(beside.apply(X), expected, atol=1e-6)
    assert beside.n_components == expected.shape[1]
    assert not beside.is_linear
    assert AdditiveMap(5, 4, n_plain=5, length=2.0).is_linear
    np.testing.assert_array_equal(AdditiveMap(5, 4, n_plain=5, length=2.0).apply(X), np.float32(X))
