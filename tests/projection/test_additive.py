"""Columns, cosines and Fourier features: values, bounds, one row at a time."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from dp_halfspace.projection import AdditiveMap, FeatureMap, draw_additive


@pytest.mark.parametrize("half_range", [1.0, 1.5])
def test_features_are_columns_cosines_and_fourier_features(half_range):
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (30, 3))
    drawn = draw_additive(3, 4, 10, np.random.default_rng(1), half_range=half_range)
    assert isinstance(drawn, FeatureMap)
    features = drawn.apply(X)
    values = np.clip(0.5 + X * math.sqrt(3) / (2 * half_range), 0, 1)
    cosines = [math.sqrt(2 / 3) * np.cos(k * np.pi * values) / k for k in (2, 3, 4)]
    joint = drawn.fourier.apply(X) / math.sqrt(3)
    expected = np.hstack([X, *cosines, joint])
    assert features.shape == (30, drawn.n_components) == expected.shape
    np.testing.assert_allclose(features, expected, atol=1e-6)
    np.testing.assert_array_equal(drawn.apply(sparse.csr_array(X)), features)


def test_polynomials_take_the_place_of_every_second_cosine():
    """They are as long as these at most, and differ where columns crowd near an end."""
    X = np.random.default_rng(0).uniform(-1.2, 1.2, (200, 2)) / math.sqrt(2)
    drawn = draw_additive(2, 7, 10, np.random.default_rng(1), half_range=1.0)
    cosines, features = drawn.apply(X), replace(drawn, has_powers=True).apply(X)
    values = np.clip(X * math.sqrt(2), -1, 1)
    is_even = np.isin(np.arange(len(cosines.T)), [2, 3, 6, 7, 10, 11])
    powers = [np.cos(k * np.arccos(values)) / k for k in (2, 4, 6)]
    np.testing.assert_allclose(features[:, is_even], np.hstack(powers), atol=1e-5)
    np.testing.assert_array_equal(features[:, ~is_even], cosines[:, ~is_even])
    for k, block in zip((2, 4, 6), np.hsplit(features[:, is_even], 3), strict=True):
        assert np.abs(block).max() <= (1 + 1e-6) / k
    crowd = np.array([[-1.0, -1.0], [-0.98, -0.98]]) / math.sqrt(2)
    flat, steep = (
        np.ptp(m.apply(crowd)[:, 2:14], axis=0).sum()
        for m in (drawn, replace(drawn, has_powers=True))
    )
    assert steep > 5 * flat


@pytest.mark.parametrize("has_powers", [False, True])
@pytest.mark.parametrize("n_fourier", [0, 10])
@pytest.mark.parametrize("beside", [{}, {"n_features_in": 5, "n_plain": 3, "length": 4.0}])
def test_features_in_float32_are_those_that_predictions_use(has_powers, n_fourier, beside):
    drawn = draw_additive(2, 7, n_fourier, np.random.default_rng(1), half_range=1.0)
    drawn = replace(drawn, has_powers=has_powers, **beside)
    data_norm = drawn.entry_scale
    X = np.random.default_rng(0).uniform(-1.2, 1.2, (50, drawn.n_features_in)).astype(np.float32)
    written = np.empty((50, drawn.n_components), dtype=np.float32)
    drawn.write_single(X, data_norm, written)
    expected = drawn.apply(X.astype(np.float64) / data_norm)
    np.testing.assert_allclose(written * drawn.single_scale, expected, atol=2e-6)


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


def test_whether_angles_are_reduced_does_not_depend_on_the_rows():
    """Reduced angles have other bits, so another record would move those of a row."""
    drawn = draw_additive(2, 3, 40, np.random.default_rng(1))
    turns = np.abs(drawn.fourier.frequencies).sum(axis=0).max() / (math.sqrt(2.0) * 3000.0)
    fast = replace(
        drawn, fourier=replace(drawn.fourier, frequencies=drawn.fourier.frequencies / turns)
    )
    written = []
    for other in (0.0, 4.0):
        rows = np.array([[1.0, 0.9], [other, other]], dtype=np.float32)
        out = np.empty((2, fast.n_components), dtype=np.float32)
        fast.write_single(rows, fast.entry_scale, out)
        written.append(out[0].tobytes())
    assert written[0] == written[1]
