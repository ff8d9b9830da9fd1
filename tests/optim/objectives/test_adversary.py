"""The adversary: the closed form of the inner maximum, and the smoothed dual norm."""

import math

import numpy as np
import pytest

from dp_halfspace.optim.losses import LOGISTIC, huber_hinge
from dp_halfspace.optim.objectives import Adversary

RNG = np.random.default_rng(0)
NORMS = pytest.mark.parametrize("norm", [2, "inf"])
W = np.array([0.02, -0.5, 0.0, 1e-6, 3.0])


def dual(norm, w):
    return np.linalg.norm(w, 2 if norm == 2 else 1)


@NORMS
def test_inner_maximum_is_the_closed_form(norm):
    """Brute force over changes of the features: none is worse, and one is as bad."""
    adversary = Adversary(0.3, norm, n_features=3, smoothing=1e-100)
    for _ in range(20):
        x, w, y = RNG.standard_normal(4), RNG.standard_normal(4), RNG.choice([-1, 1])
        changes = RNG.standard_normal((4000, 3))
        worst = -np.sign(y) * (w[:3] if norm == 2 else np.sign(w[:3]))
        changes = np.vstack([changes, worst])
        changes *= 0.3 / np.linalg.norm(changes, 2 if norm == 2 else np.inf, axis=1)[:, None]
        moved = np.column_stack([x[:3] + changes, np.full(len(changes), x[3])])
        for loss in (LOGISTIC, huber_hinge()):
            found = loss.value(y * (moved @ w)).max()
            closed = float(loss.value(y * (x @ w) - adversary.radius * adversary.dual_norm(w)))
            assert closed == pytest.approx(found, rel=1e-12)


@NORMS
@pytest.mark.parametrize("smoothing", [1e-3, 0.1, 10.0])
def test_derivatives_of_the_smoothed_norm(norm, smoothing):
    adversary = Adversary(0.3, norm, 4, smoothing)
    step = 1e-4 * smoothing
    identity = np.eye(5)
    numeric = [
        (adversary.dual_norm(W + step * e) - adversary.dual_norm(W - step * e)) / (2 * step)
        for e in identity
    ]
    np.testing.assert_allclose(adversary.gradient(W), numeric, atol=1e-7)
    hessian = adversary.hessian_product(W, identity)
    numeric = [
        (adversary.gradient(W + step * e) - adversary.gradient(W - step * e)) / (2 * step)
        for e in identity
    ]
    np.testing.assert_allclose(hessian, numeric, rtol=1e-5, atol=1e-6 / smoothing)
    v = RNG.standard_normal(5)
    np.testing.assert_allclose(adversary.hessian_product(W, v), hessian @ v, atol=1e-12)
    assert adversary.gradient(W)[4] == 0.0


@NORMS
def test_constants_bound_what_they_say(norm):
    adversary = Adversary(0.3, norm, 4, 0.05)
    for scale in (0.0, 1e-3, 0.05, 1.0, 100.0):
        for _ in range(50):
            w = scale * RNG.standard_normal(5)
            exact = dual(norm, w[:4])
            value, u = adversary.dual_norm(w), adversary.gradient(w)
            lowest = exact - adversary.slack / adversary.radius
            assert lowest - 1e-12 <= value <= exact * (1 + 1e-12)
            assert np.linalg.norm(u) <= adversary.k
            assert w @ u >= value * (1 - 1e-12)
            hessian = adversary.radius * adversary.hessian_product(w, np.eye(5))
            eigenvalues = np.linalg.eigvalsh(hessian)
            assert eigenvalues[0] >= -1e-9
            assert eigenvalues[-1] <= adversary.curvature * (1 + 1e-12)
    assert adversary.added_row_norm == pytest.approx(0.3 * (1 if norm == 2 else 2))
    assert adversary.slack == pytest.approx(0.3 * 0.05 * (1 if norm == 2 else 4))


@NORMS
def test_tiny_smoothing_keeps_full_precision(norm):
    """Coefficients of the size of the smoothing, whatever that size is."""
    wide, narrow = Adversary(0.3, norm, 3, 1.0), Adversary(0.3, norm, 3, 1e-60)
    w = np.array([0.7, -2.0, 0.01])
    assert narrow.dual_norm(w) == pytest.approx(dual(norm, w), rel=1e-15)
    np.testing.assert_array_equal(narrow.gradient(np.zeros(3)), np.zeros(3))
    np.testing.assert_allclose(narrow.gradient(1e-60 * w), wide.gradient(w), rtol=1e-14)
    assert narrow.dual_norm(1e-60 * w) == pytest.approx(1e-60 * wide.dual_norm(w), rel=1e-14)


@NORMS
def test_mean_gain_from_noise(norm):
    adversary = Adversary(0.3, norm, 4)
    noise = math.sqrt(0.5) * RNG.standard_normal((20000, 4))
    gain = 0.3 * np.mean([dual(norm, b) for b in noise])
    assert 0.85 * adversary.of_noise(0.5) <= gain <= 1.01 * adversary.of_noise(0.5)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("radius", value) for value in (0.0, math.inf, math.nan)),
        ("norm", 1),
        ("n_features", 0),
        *(("smoothing", value) for value in (-1.0, 0.0, math.inf, math.nan, 1e-200)),
    ],
)
def test_bad_parameters(name, value):
    good = {"radius": 0.1, "norm": 2, "n_features": 3, "smoothing": 1e-3}
    with pytest.raises(ValueError, match=name):
        Adversary(**{**good, name: value})
