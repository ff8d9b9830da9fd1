"""Sparse signs: as many distinct places as asked for, uniformly chosen."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import sparse, stats

from dp_halfspace.projection import SparseMap, draw_sparse


@pytest.mark.parametrize(("k", "count"), [(1, 8), (5, 8), (9, 8), (40, 3), (12, 12)])
def test_every_feature_enters_that_many_components(k, count):
    matrix = draw_sparse(50, k, np.random.default_rng(0), n_nonzeros=count).to_array()
    used = min(count, k)
    np.testing.assert_array_equal((matrix != 0).sum(axis=0), used)
    np.testing.assert_allclose(np.abs(matrix[matrix != 0]), 1 / math.sqrt(used))


def test_places_and_signs_are_uniform():
    d = 60_000
    projection = draw_sparse(d, 5, np.random.default_rng(1), n_nonzeros=3)
    places = projection.transposed.indices.reshape(d, 3)
    subsets = [tuple(row) for row in places.tolist()]
    expected = list(itertools.combinations(range(5), 3))
    assert set(subsets) == set(expected)
    counts = [subsets.count(subset) for subset in expected]
    assert stats.chisquare(counts).pvalue > 1e-6
    signs = (projection.transposed.data > 0).reshape(d, 3) @ np.array([4, 2, 1])
    assert stats.chisquare(np.bincount(signs, minlength=8)).pvalue > 1e-6


def test_one_hot_rows_keep_their_norm_and_independent_entries_would_not():
    d, k = 300, 64
    rng = np.random.default_rng(2)
    ours = draw_sparse(d, k, rng).apply(sparse.csr_array(np.eye(d)))
    np.testing.assert_allclose(np.linalg.norm(ours, axis=1), 1.0)
    # Li, Hastie and Church (2006) at the same density.
    entries = rng.random((d, k)) < 8 / k
    planted = SparseMap(sparse.csr_array(entries * rng.choice([-1.0, 1.0], (d, k)) / math.sqrt(8)))
    assert np.std(np.sum(planted.apply(np.eye(d)) ** 2, axis=1)) > 0.2


def test_the_map_is_stored_sparsely():
    projection = draw_sparse(100_000, 1000, np.random.default_rng(3))
    assert projection.transposed.nnz == 800_000
    assert projection.transposed.has_canonical_format
    assert (projection.n_features_in, projection.n_components) == (100_000, 1000)


@pytest.mark.parametrize("bad", [0, 1.5, None])
def test_number_of_nonzeros_is_checked(bad):
    with pytest.raises(ValueError, match="n_nonzeros"):
        draw_sparse(3, 2, np.random.default_rng(0), n_nonzeros=bad)
