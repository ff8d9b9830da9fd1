"""Columns, cosines and Fourier features: values, bounds, one row at a time."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from dp_halfspace.projection import AdditiveMap, FeatureMap, draw_additive


@pytest.mark.parametrize("reach", [1.0, 1.5])
def test_features_are_columns_cosines_and_fourier_features(reach):
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (30, 3))
    drawn = draw_additive(3, 4, 10, np.random.default_rng(1), reach=reach)
    assert isinstance(drawn, FeatureMap)
    features = drawn.apply(X)
    values = np.clip(0.5 + X * math.sqrt(3) / (2 * reach), 0, 1)
    cosines = [math.sqrt(2 / 3) * np.cos(k * np.pi * values) / k for k in (2, 3, 4)]
    joint = drawn.fourier.apply(X) / math.sqrt(3)
    expected = np.hstack([X, *cosines, joint])
    assert features.shape == (30, drawn.n_components) == expected.shape
    np.testing.assert_allclose(features, expected, atol=1e-6)
    np.testing.assert_array_equal(drawn.apply(sparse.csr_array(X)), features)


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e30])
def test_rows_are_bounded_and_finite_and_depend_on_themselves(scale):
    rng = np.random.default_rng(2)
    X = scale * rng.standard_normal((50, 7))
    drawn = draw_additive(7, 8, 64, rng)
    features = drawn.apply(X)
    assert np.isfinite(features).all()
    behind = np.linalg.norm(features[:, 7:].astype(float), axis=1)
    assert behind.max() <= 1.3
    other = rng.standard_normal(X.shape)
    other[3] = X[3]
    np.testing.assert_array_equal(drawn.apply(other)[3], features[3])


def test_relative_length_is_about_that_of_uniform_values():
    drawn = draw_additive(5, 4, 40, np.random.default_rng(3))
    X = np.random.default_rng(4).uniform(-1.5, 1.5, (5000, 5))
    features = drawn.apply(X / math.sqrt(5))
    squares = (features.astype(float) ** 2).sum(axis=0)
    behind, lead = squares[5:].sum(), squares[:5].sum()
    assert math.sqrt(behind / lead) == pytest.approx(drawn.relative_length, rel=0.2)


def test_columns_alone():
    X = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(AdditiveMap(3, 1).apply(X), X)


def test_columns_of_zeros_and_ones_stand_beside_the_features_of_the_others():
    """As if the other columns were all there is, in the units of the longer row."""
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (30, 5))
    alone = draw_additive(2, 3, 10, np.random.default_rng(1))
    beside = replace(alone, n_features_in=5, n_plain=3, length=4.0)
    share = math.sqrt(2) / 4.0
    expected = np.hstack([X, share * alone.apply(X[:, :2] / share)[:, 2:]])
    np.testing.assert_allclose(beside.apply(X), expected, atol=1e-6)
    assert beside.n_components == expected.shape[1]
    assert beside.relative_length == share * alone.relative_length
    assert not beside.is_linear
    assert AdditiveMap(5, 4, n_plain=5, length=2.0).is_linear
    np.testing.assert_array_equal(AdditiveMap(5, 4, n_plain=5, length=2.0).apply(X), np.float32(X))
