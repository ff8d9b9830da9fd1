"""Networks: losses against a loop, what one record can change, sizes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dp_halfspace.optim import network as module
from dp_halfspace.optim.network import (
    NetworkShape,
    network_losses,
    network_sensitivity,
    smallest_budget,
)


def ball(rng, n, d):
    X = rng.standard_normal((n, d))
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)


@pytest.mark.parametrize("bias", [1.0, None])
@pytest.mark.parametrize("entries", [2**19, 64])
def test_losses_are_weighted_errors(monkeypatch, bias, entries):
    monkeypatch.setattr(module, "_ENTRIES", entries)
    rng = np.random.default_rng(0)
    shape, X, positive = NetworkShape(3, 4, bias), ball(rng, 70, 3), rng.random(70) < 0.4
    weights = np.array([0.3, 1.0])
    candidates = rng.standard_normal((9, shape.size))
    expected = []
    for candidate in candidates:
        net = shape.layers(candidate[None, :])
        scores = np.tanh(X @ net.weights[0] + net.biases[0]) @ net.outputs[0] + net.bias[0]
        wrong = (scores > 0) != positive
        expected.append((wrong * np.where(positive, 1.0, 0.3)).sum())
    got = network_losses(shape, X, positive, weights)(candidates)
    np.testing.assert_allclose(got, expected, atol=0.5)


def worst_change(step, slack):
    """Largest change of a loss beside the bound, over replaced records of every kind."""
    rng, worst = np.random.default_rng(1), 0.0
    for n in [1, 3, 33, 200] * 8:
        shape = NetworkShape(int(rng.integers(1, 6)), int(rng.integers(1, 6)), 1.0)
        X, positive = ball(rng, n, shape.n_inputs), rng.random(n) < 0.5
        other, flipped, i = X.copy(), positive.copy(), int(rng.integers(n))
        other[i] = -X[i]
        flipped[i] = rng.random() < 0.5
        candidates = rng.standard_normal((200, shape.size))
        # Scores that are exactly on the step are the hard case.
        candidates[:50, :] = 0.0
        candidates[50:60] *= 1e-160
        first, second = (
            network_losses(shape, rows, labels, np.ones(2))(candidates)
            for rows, labels in ((X, positive), (other, flipped))
        )
        bound = step * network_sensitivity(n, shape)
        worst = max(worst, float(np.abs(first - second).max()) / bound)
    return worst - slack


def test_a_record_changes_a_loss_by_one_at_most():
    assert 0.99 < worst_change(1.0, 0.0) <= 1.0


def test_brute_force_sees_half_the_sensitivity():
    """Planted: the sensitivity of a mean of errors of plus and minus a half."""
    assert worst_change(0.5, 0.0) > 1.0


def test_sensitivity_counts_rounding():
    shape = NetworkShape(12, 6, 1.0)
    values = [network_sensitivity(n, shape) for n in (1, 1000, 10**5)]
    assert values == sorted(values)
    assert values[0] > 1.0
    assert values[2] < 1.05


def test_long_weights_are_shortened():
    shape = NetworkShape(2, 1, 1.0)
    net = shape.layers(np.array([[1e9, 0.0, 1.0, 1e9, 1.0]]))
    assert np.linalg.norm(net.weights) == pytest.approx(module._LONGEST)
    assert abs(net.biases[0, 0]) == module._LONGEST


def test_sizes_add_up():
    for bias in (None, 1.0):
        shape = NetworkShape(5, 7, bias)
        net = shape.layers(np.arange(2 * shape.size, dtype=float).reshape(2, -1))
        assert net.weights.shape == (2, 5, 7)
        assert net.outputs.shape == net.biases.shape == (2, 7)
    assert smallest_budget() == pytest.approx(4 * math.log(100))
