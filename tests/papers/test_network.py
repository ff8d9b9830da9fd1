"""Networks: losses against a loop, what one record can change, sizes."""

import numpy as np
import pytest

from dp_halfspace._rounding import RAMP_WIDTH
from dp_halfspace.papers import network as module
from dp_halfspace.papers.network import (
    NetworkShape,
    network_losses,
    network_sensitivity,
)


def ball(rng, n, d):
    X = rng.standard_normal((n, d))
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)


def scores_of(net, number, X):
    """Scores of one network, record after record."""
    (hidden, outputs, bias), out = net, []
    for row in X:
        for weights, biases in hidden:
            row = np.tanh(weights[number].T @ row + biases[number])
        out.append(row @ outputs[number] + bias[number])
    return np.array(out)


@pytest.mark.parametrize("bias", [1.0, None])
@pytest.mark.parametrize("n_rows", [1024, 8])
@pytest.mark.parametrize(
    ("widths", "weights"), [((4,), (0.3, 1.0)), ((4, 2), (1.0, 0.3)), ((3, 5, 2), (0.3, 1.0))]
)
def test_losses_are_weighted_errors(monkeypatch, bias, n_rows, widths, weights):
    monkeypatch.setattr(module, "AT_ONCE", n_rows)
    rng = np.random.default_rng(0)
    shape, X, positive = NetworkShape(3, widths, bias), ball(rng, 70, 3), rng.random(70) < 0.4
    weights = np.array(weights)
    candidates = rng.standard_normal((9, shape.size))
    expected = []
    for candidate in candidates:
        wrong = (scores_of(shape.layers(candidate[None, :]), 0, X) > 0) != positive
        expected.append((wrong * weights[positive.astype(int)]).sum())
    got = network_losses(shape, X, positive, weights)(candidates)
    np.testing.assert_allclose(got, expected, atol=0.5)


def shapes(rng):
    """Sizes of every depth up to three."""
    depth = int(rng.integers(1, 4))
    widths = tuple(rng.integers(1, 6, size=depth).tolist())
    return NetworkShape(int(rng.integers(1, 6)), widths, 1.0)


def worst_change():
    """Largest change of a loss beside the bound, over replaced records of every kind."""
    rng, worst = np.random.default_rng(1), 0.0
    for n in [1, 3, 33, 200] * 8:
        shape = shapes(rng)
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
        bound = network_sensitivity(n, shape)
        worst = max(worst, float(np.abs(first - second).max()) / bound)
    return worst


def test_a_record_changes_a_loss_by_one_at_most():
    assert 0.99 < worst_change() <= 1.0


def hostile_networks(rng):
    """Shapes, candidates and rows: any, and units that cancel before weights enlarge the rest."""
    for _ in range(40):
        shape = shapes(rng)
        candidates = rng.standard_normal((5, shape.size)) * 10.0 ** rng.uniform(0, 3)
        yield shape, candidates, ball(rng, 40, shape.n_inputs)
    for depth in (1, 2, 3):
        shape = NetworkShape(2, (1,) * depth, None)
        weights = np.r_[23.1, 23.1, np.full(depth - 1, 1000.0), 1.0]
        first = rng.uniform(0.3, 0.7, size=200)
        rest = -first + 1e-9 * rng.standard_normal(200)
        yield shape, weights[None, :], np.column_stack([first, rest])


def rounding_of_scores():
    """Error of a score in extended precision, over what the sensitivity allows for a record."""
    rng, worst = np.random.default_rng(2), 0.0
    for shape, candidates, X in hostile_networks(rng):
        hidden, outputs, bias = shape.layers(candidates)
        size = np.abs(outputs).sum(axis=1) + np.abs(bias)
        allowed = (network_sensitivity(1, shape) - 1.0 - 2.0**-30 - 2.0**-50) / 2 * RAMP_WIDTH
        for number in range(len(candidates)):
            plain, exact = X, X.astype(np.longdouble)
            for weights, biases in hidden:
                plain = np.tanh(plain @ weights[number] + biases[number])
                exact = np.tanh(exact @ weights[number].astype(np.longdouble) + biases[number])
            out = outputs[number]
            error = plain @ out - exact @ out.astype(np.longdouble)
            worst = max(worst, float(np.abs(error).max() / size[number] / allowed))
    return worst


def test_scores_are_rounded_by_no_more_than_is_allowed():
    assert 0.01 < rounding_of_scores() <= 1.0


def test_the_allowance_for_the_sum_of_losses_grows_with_the_square_of_their_number():
    """The bound of the proof; everything else is in proportion to the number of records."""
    none, some, twice = (network_sensitivity(n, NetworkShape(2, (3,), 1.0)) for n in (0, 1e6, 2e6))
    assert twice - 2 * some + none >= 2 * 2.0**-50 * 1e12 * (1 - 1e-6)


def test_the_allowance_for_scores_is_that_of_the_proof():
    """Two data sets, each with the errors of all scores over the width of the ramp."""
    n, (k, width) = 1000, (2, 3)
    none, some = (network_sensitivity(size, NetworkShape(k, (width,), 1.0)) for size in (0, n))
    of_scores = 2 * n * ((k + 4) * 2.0**8 + width + 32) * 2.0**-53 / RAMP_WIDTH
    assert some - none >= of_scores * (1 - 1e-4)


def test_the_ramp_is_as_wide_as_the_scores_are_large():
    losses = network_losses(
        NetworkShape(2, (1,), 1.0), np.zeros((1, 2)), np.array([False]), np.ones(2)
    )
    candidate = np.array([0.0, 0.0, 1.0, 0.0, RAMP_WIDTH / 4.0])
    large = np.array([0.0, 0.0, 1.0, 50.0, RAMP_WIDTH / 2.0 - 1.0])
    found = losses(np.array([candidate, 1024.0 * candidate, large]))
    np.testing.assert_allclose(found, 0.75, rtol=1e-3)


def test_that_test_sees_weights_of_later_layers_that_are_not_bounded(monkeypatch):
    """Planted: a later layer may enlarge the errors of the one before as it likes."""
    monkeypatch.setattr(module, "_later_weights", lambda drawn: drawn * module._LATER_GAIN)
    assert rounding_of_scores() > 1.0


def test_long_weights_are_shortened():
    shape = NetworkShape(2, (1,), 1.0)
    ((weights, biases),), *_ = shape.layers(np.array([[1e9, 0.0, 1.0, 1e9, 1.0]]))
    assert np.linalg.norm(weights) == pytest.approx(module._LONGEST)
    assert abs(biases[0, 0]) == module._LONGEST
    (_, (weights, biases)), *_ = NetworkShape(1, (2, 3), 1.0).layers(np.full((1, 17), -1e9))
    np.testing.assert_allclose(np.abs(weights).sum(axis=1), module._LARGEST_SUM)
    assert (biases == -module._LONGEST).all()
    short = module._later_weights(np.full((1, 9, 2), 0.1))
    np.testing.assert_allclose(short, 0.1 * module._LATER_GAIN / 3.0)
