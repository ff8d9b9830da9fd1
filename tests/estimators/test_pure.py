"""The pure classifiers beyond the common tests: directions, weights, margins, layers."""

import warnings

import numpy as np
import pytest

from dp_halfspace import PureHalfspaceClassifier, PureNetworkClassifier
from dp_halfspace.estimators import pure_network
from dp_halfspace.exceptions import PrivacyWarning
from dp_halfspace.papers import halfspace_search as direction_search
from dp_halfspace.papers.network import NetworkShape, network_sensitivity
from dp_halfspace.rows import directions
from tests.conftest import separated
from tests.releases import record_releases
from tests.support import fitted, public


def test_direction_has_norm_one_in_the_units_of_the_rows():
    X, y = separated(300, 4, norm=3.0)
    model = PureHalfspaceClassifier(data_norm=3.0, n_directions=100).fit(X, y)
    length = np.hypot(*map(np.linalg.norm, (3.0 * model.coef_, 2.0 * model.intercept_)))
    assert length == pytest.approx(1.0)


@pytest.mark.parametrize(("n_features", "constant"), [(64, 0.5), (65, 1.0), (600, 2.0)])
def test_the_constant_of_projected_rows_is_larger(n_features, constant):
    X, y = separated(40, n_features)
    record = PureHalfspaceClassifier(n_stages=1, data_norm=1.0, classes=[0, 1]).plan(X, y)
    assert dict(record.public)["relative_constant_column"] == constant


def test_what_was_counted_is_predicted_where_rounded_rows_have_zeros():
    """A column that dwarfs the others: directions that do not look at it score zero, not right."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.choice([-1e6, 1e6], 60), rng.standard_normal((60, 12))])
    y = (rng.random(60) < 0.75).astype(int)
    params = {"n_stages": 1, "n_directions": 4000, "classes": [0, 1], "data_norm": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        for seed in range(6):
            model = PureHalfspaceClassifier(epsilon=10.0, random_state=seed, **params)
            with record_releases() as releases:
                model.fit(X, y)
            (release,) = releases
            counted = release.value[int(release.released[0])]
            assert counted == np.sum(model.predict(X) != y)


def test_no_part_of_the_budget_counts_errors_and_no_margin_is_stated():
    """A small table: there are no probabilities to calibrate."""
    X, y = separated(400, 3)
    model = PureHalfspaceClassifier(epsilon=3.0, classes=[0, 1])
    assert not model._fit_plan(model._validate(X, y, None)).counts
    assert not hasattr(model.fit(X, y), "margin_")


def test_class_weights_move_the_choice():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3)) / 4
    y = (X[:, 0] + 0.3 * rng.standard_normal(200) > 0).astype(int)
    model = PureHalfspaceClassifier(epsilon=50.0, data_norm=1.0, n_stages=1, n_directions=500)
    low, high = (
        np.mean(model.set_params(class_weight={0: 1.0, 1: weight}).fit(X, y).predict(X))
        for weight in (0.05, 20.0)
    )
    assert low < 0.4 < 0.6 < high


def test_a_few_errors_are_taken_for_wider_margins():
    """Without noise: every direction without an error leaves most records a margin below .1."""
    X = np.array([[0.05, 1.0]] * 100 + [[0.05, -1.0]] * 3 + [[1.0, 0.0]] * 40)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.ones(len(X), dtype=int)
    errors, narrow = [], []
    for margin in (None, 1.0):
        params = {"epsilon": np.inf, "n_stages": 1, "classes": [0, 1], "fit_intercept": False}
        model = PureHalfspaceClassifier(margin=margin, data_norm=1.0, **params).fit(X, y)
        scores = X @ model.coef_[0]
        errors.append(int((scores < 0).sum()))
        narrow.append(int((scores < 0.1).sum()))
        assert public(model)["margin"] == margin
    assert errors == [0, 3]
    assert narrow == [103, 3]


def test_no_direction_depends_on_the_data(monkeypatch):
    """White box: the stream of the first stage is a function of public numbers and the seed."""
    seen = []
    honest = directions.DirectionStream.block

    def watched(self, number):
        block = honest(self, number)
        seen.append(block if self.centre is None else None)
        return block

    monkeypatch.setattr(direction_search.DirectionStream, "block", watched)
    for X, y in (separated(50, 3, seed=1), separated(50, 3, seed=2)):
        fitted(PureHalfspaceClassifier(), X, y, n_stages=1, n_directions=64, random_state=3)
    first, second = seen[: len(seen) // 2], seen[len(seen) // 2 :]
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


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


@pytest.mark.slow
def test_learns_xor():
    """The mean is .89, the standard deviation .025, at epsilon 1 with a thousand records."""
    assert np.mean(scores(2)) >= 0.75


def test_one_unit_does_not_learn_it():
    """The twin of the test above: a halfspace in disguise stays near one half."""
    assert np.mean(scores(2, n_hidden=1, n_candidates=1000)) < 0.75


def test_several_layers_are_released():
    X, y = xor(300, 0)
    model = PureNetworkClassifier(n_hidden=(4, 3, 2), data_norm=ROOT, n_candidates=50).fit(X, y)
    assert [coef.shape for coef in model.hidden_coef_] == [(4, 2), (3, 4), (2, 3)]
    assert [intercept.shape for intercept in model.hidden_intercept_] == [(4,), (3,), (2,)]
    assert model.n_hidden_ == 2
    hidden = X / ROOT
    for coef, intercept in zip(model.hidden_coef_, model.hidden_intercept_, strict=True):
        hidden = np.tanh(hidden @ coef.T + intercept)
    expected = hidden @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X), expected)


@pytest.mark.parametrize("n_hidden", [np.array(6), [], [[3]], [2.0]])
def test_numbers_of_hidden_units_are_named(n_hidden):
    with pytest.raises(ValueError, match="n_hidden must be a positive integer, or a list of them"):
        PureNetworkClassifier(n_hidden=n_hidden, classes=[0, 1]).plan(*separated(300, 4))


@pytest.mark.parametrize(("epsilon", "n_stages"), [(1.0, 2), (4.0, 6)])
def test_a_network_has_a_stage_for_every_two_hundred_records_at_epsilon_one(epsilon, n_stages):
    model = PureNetworkClassifier(epsilon=epsilon, classes=[0, 1], data_norm=1.0)
    assert len(model.plan(*separated(300, 4)).events) == n_stages


@pytest.mark.filterwarnings("ignore::dp_halfspace.exceptions.PrivacyWarning")
def test_a_record_moves_no_error_count_of_a_network_by_more_than_its_sensitivity():
    """Of a heavy class; the rows are as long as they can be behind a projection."""
    X, y = separated(300, 40)
    model = PureNetworkClassifier(
        epsilon=1.0, n_candidates=200, n_stages=1, n_components=4, data_norm=1.0, classes=[0, 1],
        class_weight={0: 1.0, 1: 5.0}, random_state=0,
    )  # fmt: skip
    values = []
    for first in range(2):
        with record_releases() as releases:
            model.fit(X, np.r_[first, y[1:]])
        values.append(releases[0].value)
    shape = NetworkShape(4, (6,), 1.0)
    assert releases[0].mechanism.sensitivity == network_sensitivity(300, shape) > 1.0
    assert 0.9 < np.abs(values[0] - values[1]).max() <= releases[0].mechanism.sensitivity
    points = pure_network._points(X, 1.0, model.projection_)
    lengths = np.linalg.norm(points, axis=1)
    assert np.linalg.norm(model.projection_.apply(X), axis=1).max() > 1.1
    assert lengths.max() == pytest.approx(1.0)
    assert lengths.min() < 0.9
