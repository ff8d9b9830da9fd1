"""Structured features approximate radial kernels as dense ones do."""

import numpy as np
import pytest

from dp_halfspace.projection.spectra import RADIAL, Spectrum
from dp_halfspace.projection.structured_fourier import draw_structured_fourier, structured_pays
from tests.projection.test_fourier import bound_of_theorem_1, unit_ball, worst_error


@pytest.mark.parametrize("kernel", sorted(RADIAL))
@pytest.mark.parametrize("n_features", [40, 100])
def test_inner_products_are_within_the_bound_of_dense_features(kernel, n_features):
    X = unit_ball(50, n_features)
    spectrum = Spectrum(kernel)
    exact = spectrum.values((X[:, None] - X[None]) / 0.6)
    psi = draw_structured_fourier(
        spectrum, n_features, np.full(1000, 0.6), np.random.default_rng(0)
    )
    assert psi.n_components == 2000
    assert worst_error(psi, X, exact) <= bound_of_theorem_1(2000, len(X), beta=0.05)


def test_frequencies_of_a_block_are_orthogonal():
    psi = draw_structured_fourier(Spectrum("rbf"), 16, np.full(16, 1e3), np.random.default_rng(0))
    # Small angles: the sines are the linear forms.
    forms = psi.apply(np.eye(16)).astype(np.float64)[:, 16:].T * 4e3
    gram = forms @ forms.T
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-3 * gram.max())


def test_structure_pays_for_many_features_of_many_columns():
    assert not structured_pays(30, 2000)
    assert structured_pays(4096, 8192)
