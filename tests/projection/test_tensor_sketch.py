"""The sketch of the polynomial kernel: unbiased, clipped, one row at a time."""

import numpy as np
import pytest

from dp_halfspace.projection.features import draw_tensor_sketch
from tests.projection.test_fourier import unit_ball


def mean_gram(degree, coef0, length_scale, draws=60):
    X = unit_ball(8, 4) * 0.6  # short rows: nothing is clipped
    grams = []
    for seed in range(draws):
        psi = draw_tensor_sketch(
            4, 128, np.random.default_rng(seed),
            degree=degree, coef0=coef0, length_scale=length_scale,
        )  # fmt: skip
        features = psi.apply(X).astype(np.float64)
        grams.append(features @ features.T)
    inner = X @ X.T / length_scale**2 + coef0
    exact = inner**degree / (1 / length_scale**2 + coef0) ** degree
    return np.mean(grams, axis=0), exact, np.std(grams, axis=0) / np.sqrt(draws)


@pytest.mark.parametrize(
    ("degree", "coef0", "scale"), [(1, 0.0, 1.0), (2, 1.0, 1.0), (3, 0.5, 0.7)]
)
def test_inner_products_are_unbiased(degree, coef0, scale):
    mean, exact, error = mean_gram(degree, coef0, scale)
    assert (np.abs(mean - exact) <= 5 * error + 1e-6).all()
