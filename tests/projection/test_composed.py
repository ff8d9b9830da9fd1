"""Features and a projection behind them."""

from __future__ import annotations

import numpy as np

from dp_halfspace.projection import (
    PROJECTIONS,
    FeatureMap,
    Spectrum,
    draw_fourier,
    draw_structured_fourier,
    draw_tensor_sketch,
)
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


def test_every_map_to_features_satisfies_the_protocol():
    rng, scales = np.random.default_rng(0), np.full(4, 0.5)
    psi = draw_fourier(Spectrum("rbf"), 3, scales, rng)
    maps = [
        psi,
        draw_structured_fourier(Spectrum("rbf"), 3, scales, rng),
        draw_tensor_sketch(3, 8, rng),
        ProjectedFeatures(psi, PROJECTIONS["rademacher"](8, 4, rng)),
    ]
    for drawn in maps:
        assert isinstance(drawn, FeatureMap)
        assert drawn.apply(unit_ball(5, 3)).shape == (5, drawn.n_components)
    assert not isinstance(PROJECTIONS, FeatureMap)
