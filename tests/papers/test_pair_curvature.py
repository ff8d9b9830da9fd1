"""Products with the second derivatives of all pairs against the matrix written out."""

from __future__ import annotations

import numpy as np
import pytest

from dp_halfspace.optim.losses import softplus_curvature
from dp_halfspace.papers import pair_objective as pairs
from dp_halfspace.papers.pair_objective import logistic_curvature
from tests.papers.pair_cases import RANGES, scores


def products(positive, negative, seed=0):
    rng = np.random.default_rng(seed)
    v, u = rng.normal(size=(len(positive), 3)), rng.normal(size=(len(negative), 3))
    matrix = softplus_curvature(positive[:, None] - negative)
    size = np.sqrt((matrix**2).sum())
    found = logistic_curvature(positive, negative)(v, u)
    gaps = found[0] - matrix @ u, found[1] - matrix.T @ v
    return max(float(np.abs(gap).max()) for gap in gaps) / size


@pytest.mark.parametrize("reach", [*RANGES, 1e6])
def test_equals_the_matrix(reach):
    assert products(*scores(reach, 500, 900)) <= 1e-7


def test_crowded_pieces():
    rng = np.random.default_rng(0)
    positive = np.concatenate([rng.normal(size=900), 5000 + rng.normal(size=900)])
    negative = np.concatenate([rng.normal(size=900), 5000 + rng.normal(size=900)])
    assert products(positive, negative) <= 1e-7


def test_empty_and_not_finite():
    v, u = np.ones((0, 2)), np.ones((3, 2))
    at_p, at_q = logistic_curvature(np.empty(0), np.zeros(3))(v, u)
    assert at_p.shape == (0, 2)
    assert not at_q.any()
    at_p, _ = logistic_curvature(np.array([np.nan]), np.zeros(3))(np.ones((1, 2)), u)
    assert np.isnan(at_p).all()


def test_too_few_nodes_are_seen(monkeypatch):
    monkeypatch.setattr(pairs, "CURVATURE_NODES", 5)
    assert products(*scores(20.0, 500, 900)) > 1e-6
