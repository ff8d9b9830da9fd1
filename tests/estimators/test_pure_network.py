"""PureNetworkClassifier: learns XOR, releases its layers, moves losses by the sensitivity."""

from __future__ import annotations

import numpy as np
import pytest

from dp_halfspace import PureNetworkClassifier
from dp_halfspace.privacy import epsilon as composed
from tests.support import fitted, releases_of

ROOT = 2**0.5


def xor(n, seed, d=2):
    X = np.random.default_rng(seed).uniform(-1, 1, size=(n, d))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def scores(fits, n=1000, **params):
    Z, t = xor(4000, seed=99)
    return [
        PureNetworkClassifier(data_norm=ROOT, classes=[0, 1], **params)
        .fit(*xor(n, seed))
        .score(Z, t)
        for seed in range(fits)
    ]


def test_learns_xor():
    """The mean is .89, the standard deviation .025, at epsilon 1 with a thousand records."""
    assert np.mean(scores(2)) >= 0.75


@pytest.mark.slow
@pytest.mark.parametrize("n_hidden", [6, (6, 3)])
def test_learns_xor_on_average(n_hidden):
    """Means of .88 to .9 at epsilon 1 with a thousand records, of several layers too."""
    assert np.mean(scores(12, n_hidden=n_hidden)) >= 0.85


def test_one_unit_does_not_learn_it():
    """The twin of the test above: a halfspace in disguise stays near one half."""
    assert np.mean(scores(2, n_hidden=1, n_candidates=1000)) < 0.75


def test_wide_rows_go_through_a_projection():
    X, y = xor(500, 0, d=40)
    model = PureNetworkClassifier(data_norm=40**0.5, n_candidates=200, n_stages=2).fit(X, y)
    assert model.projection_.n_components == 12
    assert model.hidden_coef_.shape == (6, 12)
    assert model.predict(X).shape == (500,)
    plain = PureNetworkClassifier(projection=None, n_candidates=50, n_hidden=2, data_norm=1.0).fit(
        X, y
    )
    assert plain.projection_ is None
    assert plain.hidden_coef_.shape == (2, 40)


def test_scores_are_those_of_the_released_layers():
    X, y = xor(300, 0)
    model = PureNetworkClassifier(data_norm=ROOT, n_candidates=100).fit(X, y)
    hidden = np.tanh(X / ROOT @ model.hidden_coef_.T + model.hidden_intercept_)
    expected = hidden @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X), expected)


def test_several_layers_are_released():
    X, y = xor(300, 0)
    model = PureNetworkClassifier((4, 3, 2), data_norm=ROOT, n_candidates=50).fit(X, y)
    assert [coef.shape for coef in model.hidden_coef_] == [(4, 2), (3, 4), (2, 3)]
    assert [intercept.shape for intercept in model.hidden_intercept_] == [(4,), (3,), (2,)]
    assert model.n_hidden_ == 2
    hidden = X / ROOT
    for coef, intercept in zip(model.hidden_coef_, model.hidden_intercept_, strict=True):
        hidden = np.tanh(hidden @ coef.T + intercept)
    expected = hidden @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X), expected)


def test_a_list_of_one_layer_is_that_layer():
    X, y = xor(300, 0)
    one, same = (
        fitted(
            PureNetworkClassifier(n_hidden, n_candidates=50, data_norm=1.0), X, y, random_state=3
        )
        for n_hidden in (5, [5])
    )
    np.testing.assert_array_equal(one.hidden_coef_, same.hidden_coef_[0])
    np.testing.assert_array_equal(one.coef_, same.coef_)
    np.testing.assert_array_equal(one.predict(X), same.predict(X))


def test_one_hidden_layer_is_what_it_was():
    """Pinned: the candidates of a seed, before there were several layers."""
    X = np.random.default_rng(0).uniform(-1, 1, size=(400, 3))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = PureNetworkClassifier(n_candidates=700, n_stages=3, data_norm=3**0.5, classes=[0, 1])
    model = fitted(model, X, y, random_state=5)
    assert model.hidden_coef_[0, 0] == float.fromhex("-0x1.e33325ff36e81p+3")


@pytest.mark.parametrize("n_hidden", [6, (4, 3)])
def test_losses_of_neighbours_differ_by_the_sensitivity_at_most(n_hidden):
    X, y = xor(60, 0)
    other_X, other_y = X.copy(), y.copy()
    other_X[0], other_y[0] = -X[1], 1 - y[0]
    model = PureNetworkClassifier(
        n_hidden, data_norm=ROOT, n_stages=1, n_candidates=2000, random_state=0
    )
    (a,), (b,) = (releases_of(model, *data) for data in ((X, y), (other_X, other_y)))
    assert 0.99 < np.abs(a.value - b.value).max() <= a.mechanism.sensitivity


def test_stages_add_up_to_epsilon():
    X, y = xor(400, 0)
    model = PureNetworkClassifier(n_stages=5, n_candidates=20, data_norm=1.0).fit(X, y)
    assert len(model.privacy_.events) == 5
    assert 1 - 1e-9 < composed(model.privacy_.events, 0.0) <= 1.0
