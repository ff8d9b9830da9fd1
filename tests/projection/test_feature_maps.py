"""What all maps to features share, and features with a projection behind them."""

import numpy as np
import pytest
from scipy import sparse

from dp_halfspace.projection import draw_additive, draw_fourier, draw_rademacher, draw_tensor_sketch
from dp_halfspace.projection.features import FeatureMap, ProjectedFeatures
from dp_halfspace.projection.linear import PROJECTIONS
from tests.projection.test_fourier import unit_ball

RNG, SCALES = np.random.default_rng(0), np.full(70, 0.5)
FOURIER = draw_fourier(20, SCALES, RNG)
MAPS = {
    "fourier": FOURIER,
    "tiny scales": draw_fourier(20, np.full(70, 1e-12), RNG),
    "sketch": draw_tensor_sketch(20, 64, RNG, degree=3),
    "projected": ProjectedFeatures(FOURIER, draw_rademacher(140, 40, RNG)),
    "additive": draw_additive(20, 4, 60, RNG),
}


@pytest.mark.parametrize("name", MAPS)
def test_rows_are_mapped_one_by_one_and_bounded(name):
    psi, X = MAPS[name], unit_ball(300, 20)
    features = psi.apply(X)
    assert isinstance(psi, FeatureMap)
    assert (features.shape, features.dtype) == ((300, psi.n_components), np.float32)
    forms = (sparse.csr_array, sparse.csr_matrix, np.asfortranarray)
    for form in forms if name != "tiny scales" else ():  # whose angles are all rounding
        np.testing.assert_allclose(psi.apply(form(X)), features, atol=1e-5)
    # Bit by bit, at the same place of a block of the same shape.
    other = -7.0 * X
    other[17] = X[17]
    np.testing.assert_array_equal(psi.apply(other)[17], features[17])
    most = 1e30 if name == "additive" else 1e308
    hard = np.vstack([np.full(20, most), np.tile([most, -most], 10), np.eye(20)[0] * 5e-324])
    found = np.vstack([features, psi.apply(hard)]).astype(np.float64)
    assert np.isfinite(found).all()
    own = found[:, 20:] if name == "additive" else found  # behind the columns themselves
    lengths = np.linalg.norm(own, axis=1)
    assert lengths.max() <= (1.4 if name == "additive" else 1 + 1e-6)
    if name in ("fourier", "tiny scales"):
        np.testing.assert_allclose(lengths, 1.0, atol=1e-6)


def test_projected_features_keep_the_kernel():
    X = unit_ball(80)
    psi = draw_fourier(5, np.full(500, 0.5), np.random.default_rng(0))
    exact = psi.apply(X) @ psi.apply(X).T
    for draw in PROJECTIONS.values():
        image = ProjectedFeatures(psi, draw(1000, 400, np.random.default_rng(1))).apply(X)
        assert np.abs(image @ image.T - exact).max() < 0.35


REFUSED = [
    *(
        ("length_scales", lambda scales=scales: draw_fourier(3, scales, RNG))
        for scales in (np.array([]), np.zeros(1), np.array([np.nan]), np.ones((2, 2)))
    ),
    ("n_features", lambda: draw_fourier(0, np.ones(3), RNG)),
    ("degree", lambda: draw_tensor_sketch(3, 8, RNG, degree=0)),
    ("coef0", lambda: draw_tensor_sketch(3, 8, RNG, coef0=-1.0)),
    ("length_scale", lambda: draw_tensor_sketch(3, 8, RNG, length_scale=0.0)),
    ("shape", lambda: MAPS["sketch"].apply(np.ones((2, 4)))),
    ("shape", lambda: FOURIER.apply(np.ones((3, 3)))),
]


@pytest.mark.parametrize(("word", "make"), REFUSED)
def test_refusals(word, make):
    with pytest.raises(ValueError, match=word):
        make()
