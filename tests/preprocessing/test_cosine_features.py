"""CosineFeatures: values, bounds, missing values, scikit-learn's checks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from dp_halfspace.preprocessing import CosineFeatures

ROOT = math.sqrt(2.0)


@pytest.mark.sampled(31)
@parametrize_with_checks([CosineFeatures(), CosineFeatures(n_terms=1)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_values_and_names():
    X = np.array([[20.0, 0.3], [99.0, np.nan], [-5.0, 2.0]])
    features = CosineFeatures(n_terms=3, ranges=[[0, 80], [0, 1]]).fit(X)
    v = np.array([[0.25, 0.3], [1.0, np.nan], [0.0, 1.0]])
    blocks = [2 * v - 1, np.cos(2 * np.pi * v) / ROOT, ROOT / 3 * np.cos(3 * np.pi * v)]
    expected = np.nan_to_num(np.hstack(blocks))
    np.testing.assert_allclose(features.transform(X), expected, atol=1e-15)
    names = features.get_feature_names_out()
    assert list(names[:3]) == ["x0", "x1", "cos(2 pi x0)"]
    assert len(names) == 6


def test_rows_are_within_the_public_norm():
    X = np.random.default_rng(0).uniform(-1, 2, (2000, 3)).round(0)
    features = CosineFeatures(n_terms=6).fit(X)
    longest = np.linalg.norm(features.transform(X), axis=1).max()
    assert 0.9 * features.row_norm_ < longest <= features.row_norm_


@pytest.mark.parametrize(("width", "terms"), [(1, 4), (127, 4), (128, 3), (255, 2), (600, 1)])
def test_automatic_number_keeps_a_preconditioner(width, terms):
    features = CosineFeatures().fit(np.zeros((1, width)))
    assert features.n_terms_ == terms
    assert width > 511 or features.transform(np.zeros((1, width))).shape[1] <= 511


def test_fit_reads_no_value():
    a = CosineFeatures(n_terms=3).fit(np.zeros((4, 2)))
    b = CosineFeatures(n_terms=3).fit(1e9 * np.random.default_rng(0).standard_normal((4, 2)))
    assert a.__dict__ == b.__dict__


@pytest.mark.parametrize("ranges", [[[0, 1]], [[0, 1], [1, 1]], [[0, 1], [0, np.inf]]])
def test_wrong_ranges_are_refused(ranges):
    with pytest.raises(ValueError, match="2 pairs of finite numbers"):
        CosineFeatures(ranges=ranges).fit(np.zeros((4, 2)))
