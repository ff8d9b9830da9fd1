"""Kernels against independent formulas, and their frequencies against the kernels."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from dp_halfspace.projection.features import KERNELS, Spectrum

POINTS = np.random.default_rng(0).standard_normal((20, 4))
DIFFERENCES = POINTS[:, None, :] - POINTS[None, :, :]


@pytest.mark.parametrize(
    ("spectrum", "expected"),
    [
        (Spectrum("rbf"), rbf_kernel(POINTS, gamma=0.5)),
        (Spectrum("laplacian"), laplacian_kernel(POINTS, gamma=1.0)),
        (Spectrum("matern", nu=0.5), Matern(nu=0.5)(POINTS)),
        (Spectrum("matern", nu=1.5), Matern(nu=1.5)(POINTS)),
        (Spectrum("matern", nu=2.7), Matern(nu=2.7)(POINTS)),
    ],
    ids=lambda value: str(value) if isinstance(value, Spectrum) else "",
)
def test_values_are_those_of_other_libraries(spectrum, expected):
    np.testing.assert_allclose(spectrum.values(DIFFERENCES), expected, rtol=1e-9, atol=1e-12)


def characteristic_error(drawn, kernel):
    """Largest error of the mean cosine over pairs, in standard errors of 40000 draws."""
    rng = np.random.default_rng(1)
    frequencies = drawn.frequencies(4, 40_000, rng)
    pairs = DIFFERENCES[:5, 5:10].reshape(-1, 4)
    means = np.cos(pairs @ frequencies).mean(axis=1)
    return np.abs(means - kernel.values(pairs)).max() * 200


@pytest.mark.parametrize("kernel", KERNELS)
def test_frequencies_have_the_distribution_of_the_kernel(kernel):
    assert characteristic_error(Spectrum(kernel), Spectrum(kernel)) < 4.5


def test_distribution_test_sees_another_kernel():
    """Planted: frequencies of a kernel that is nearly the same."""
    assert characteristic_error(Spectrum("matern", nu=2.5), Spectrum("matern", nu=1.5)) > 4.5
