"""Features and a projection behind them."""

from __future__ import annotations

import numpy as np

from dp_halfspace.projection import PROJECTIONS, Spectrum, draw_fourier
from dp_halfspace.projection.composed import ProjectedFeatures
from tests.projection.test_fourier import unit_ball


def test_projected_features_keep_the_kernel_and_are_clipped():
    X = unit_ball(80)
    psi = draw_fourier(Spectrum("rbf"), 5, np.full(500, 0.5), np.random.default_rng(0))
    exact = psi.apply(X) @ psi.apply(X).T
    for draw in PROJECTIONS.values():
        both = ProjectedFeatures(psi, draw(1000, 400, np.random.default_rng(1)))
        assert (both.n_features_in, both.n_components) == (5, 400)
        image = both.apply(X)
        assert image.dtype == np.float32
        assert np.linalg.norm(image.astype(np.float64), axis=1).max() <= 1 + 1e-6
        assert np.abs(image @ image.T - exact).max() < 0.35
