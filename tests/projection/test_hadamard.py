"""The fast transform and the map against the explicit matrix, and the draws."""

import itertools

import numpy as np
import pytest
from scipy import linalg, stats

from dp_halfspace.projection import draw_hadamard, linear
from tests.projection.references import matrix_of


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024])
def test_transform_is_the_hadamard_matrix(size):
    rng = np.random.default_rng(size)
    X = rng.integers(-50, 50, (5, size)).astype(np.float64)
    np.testing.assert_array_equal(
        linear._transform(X.copy(), np.empty(X.shape)), X @ linalg.hadamard(size)
    )


@pytest.mark.parametrize(("d", "k"), [(1, 1), (2, 1), (5, 3), (16, 4), (17, 20), (100, 64)])
def test_map_is_signs_then_hadamard_then_choice(d, k):
    projection = draw_hadamard(d, k, np.random.default_rng(d))
    size = 1 << (d - 1).bit_length()
    matrix = linalg.hadamard(size)[projection.outputs][:, :d] * projection.signs / np.sqrt(k)
    np.testing.assert_allclose(matrix_of(projection), matrix, atol=1e-14)
    assert (projection.n_features_in, projection.n_components) == (d, k)
    assert (np.diff(projection.outputs) > 0).all()
    with pytest.raises(ValueError, match=f"of {d} features has {size} outputs"):
        draw_hadamard(d, size + 1, np.random.default_rng(d))


def test_choices_and_signs_are_uniform():
    rng = np.random.default_rng(3)
    maps = [draw_hadamard(3, 2, rng) for _ in range(2000)]
    chosen = [tuple(m.outputs.tolist()) for m in maps]
    counts = [chosen.count(pair) for pair in itertools.combinations(range(4), 2)]
    assert stats.chisquare(counts).pvalue > 1e-6
    signs = np.array([m.signs for m in maps]) > 0
    assert stats.chisquare(np.bincount(signs @ [4, 2, 1], minlength=8)).pvalue > 1e-6
