"""Random Fourier features: the mean of exact kernels, and frequencies that are finite."""

import math

import numpy as np
import pytest

from dp_halfspace.projection.features import draw_fourier
from tests.projection.references import kernel_at


def unit_ball(n=60, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True) * rng.uniform(size=(n, 1))


def worst_error(psi, X, exact):
    features = psi.apply(X).astype(np.float64)
    return np.abs(features @ features.T - exact).max()


def test_several_length_scales_are_the_mean_kernel():
    X = unit_ball()
    scales = np.repeat([0.3, 1.0], 3000)
    psi = draw_fourier(5, scales, np.random.default_rng(0))
    exact = np.mean([kernel_at((X[:, None] - X[None]) / s) for s in (0.3, 1.0)], axis=0)
    assert worst_error(psi, X, exact) < 0.1


def test_frequencies_are_finite_for_the_smallest_scale():
    """An infinite one would turn the zeros of a row, and only these, into NaN."""
    drawn = draw_fourier(3, np.full(8, 1e-300), np.random.default_rng(0))
    assert np.isfinite(drawn.apply(np.zeros((1, 3)))).all()


def test_short_length_scales_have_high_frequencies():
    turns = draw_fourier(3, np.full(2000, 0.02), np.random.default_rng(0)).frequencies
    assert turns.std() == pytest.approx(1.0 / (0.04 * math.pi), rel=0.05)
