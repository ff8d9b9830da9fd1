"""Frequencies of kernels against the kernels."""

import numpy as np
import pytest

from dp_halfspace.projection.features import KERNELS, Spectrum
from tests.projection.references import kernel_at

POINTS = np.random.default_rng(0).standard_normal((20, 4))
DIFFERENCES = POINTS[:, None, :] - POINTS[None, :, :]


def characteristic_error(drawn, kernel):
    """Largest error of the mean cosine over pairs, in standard errors of 40000 draws."""
    rng = np.random.default_rng(1)
    frequencies = drawn.frequencies(4, 40_000, rng)
    pairs = DIFFERENCES[:5, 5:10].reshape(-1, 4)
    means = np.cos(pairs @ frequencies).mean(axis=1)
    return np.abs(means - kernel_at(kernel, pairs)).max() * 200


@pytest.mark.parametrize("kernel", KERNELS)
def test_frequencies_have_the_distribution_of_the_kernel(kernel):
    assert characteristic_error(Spectrum(kernel), Spectrum(kernel)) < 4.5


def test_distribution_test_sees_another_kernel():
    """Planted: frequencies of a kernel that is nearly the same."""
    assert characteristic_error(Spectrum("matern", nu=2.5), Spectrum("matern", nu=1.5)) > 4.5
