"""PureHalfspaceClassifier beyond the common tests: directions, weights, margins."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dp_halfspace import PureHalfspaceClassifier
from dp_halfspace.algorithms.selection import directions
from dp_halfspace.algorithms.selection import halfspace_search as direction_search
from dp_halfspace.privacy import Exponential
from tests.conftest import separated
from tests.support import fitted, public


def test_record_shows_every_stage():
    X, y = separated(2000, 4)
    model = PureHalfspaceClassifier(epsilon=0.5, n_directions=500, data_norm=1.0).fit(X, y)
    assert len(model.privacy_.events) == 3
    assert all(isinstance(event, Exponential) for event in model.privacy_.events)
    assert public(model)["directions"] == "random"
    assert model.privacy_.delta == 0.0


def test_wide_rows_are_projected_and_mapped_back():
    X, y = separated(500, 100)
    model = PureHalfspaceClassifier(epsilon=8.0, classes=[0, 1], data_norm=1.0).fit(
        sparse.csr_array(X), y
    )
    assert model.projection_.n_components == 64
    assert model.coef_.shape == (1, 100)
    assert (
        PureHalfspaceClassifier(projection=None, n_directions=50, data_norm=1.0)
        .fit(X, y)
        .projection_
        is None
    )


def test_direction_has_norm_one_in_the_units_of_the_rows():
    X, y = separated(300, 4, norm=3.0)
    model = PureHalfspaceClassifier(data_norm=3.0, n_directions=100).fit(X, y)
    assert np.hypot(*map(np.linalg.norm, (3.0 * model.coef_, 2.0 * model.intercept_))) == (
        pytest.approx(1.0)
    )


def test_counted_errors_are_those_of_the_model():
    X, y = separated(400, 5, seed=2)
    model = PureHalfspaceClassifier(
        epsilon=np.inf, n_stages=1, n_directions=2000, data_norm=1.0
    ).fit(X, y)
    assert model.score(X, y) > 0.98


def test_class_weights_move_the_choice():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 3)) / 4
    y = (X[:, 0] + 0.3 * rng.standard_normal(600) > 0).astype(int)

    def share(weight):
        model = PureHalfspaceClassifier(
            epsilon=50.0, class_weight={0: 1.0, 1: weight}, data_norm=1.0
        )
        return np.mean(model.fit(X, y).predict(X))

    assert share(20.0) > 0.6 > 0.4 > share(0.05)


def test_lattice_finds_a_diagonal():
    X, y = separated(500, 2, seed=4)
    model = PureHalfspaceClassifier(
        directions="lattice", epsilon=5.0, classes=[0, 1], data_norm=1.0
    )
    assert model.fit(X, y).score(X, y) > 0.9


def test_a_few_errors_are_taken_for_wider_margins():
    """Without noise: every direction without an error leaves most records a margin below .1."""
    X = np.array([[0.05, 1.0]] * 100 + [[0.05, -1.0]] * 3 + [[1.0, 0.0]] * 40)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.ones(len(X), dtype=int)
    errors, narrow = [], []
    for margin in (None, 1.0):
        model = PureHalfspaceClassifier(
            epsilon=np.inf,
            n_stages=1,
            margin=margin,
            classes=[0, 1],
            fit_intercept=False,
            data_norm=1.0,
        ).fit(X, y)
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
        fitted(
            PureHalfspaceClassifier(n_stages=1, n_directions=64, data_norm=1.0),
            X,
            y,
            random_state=3,
        )
    first, second = seen[: len(seen) // 2], seen[len(seen) // 2 :]
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)
