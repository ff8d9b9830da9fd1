"""The label statistic: its sensitivity by brute force, and the model that it stands for."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from dp_halfspace.papers.labels import (
    LabelStatistic,
    label_statistic,
    noise_variance,
    plan_labels,
    shift_without_ridge,
    statistic_minimiser,
    statistic_ridge,
    statistic_sensitivity,
)
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.mechanisms import GaussianNoise, NoNoise
from dp_halfspace.privacy.noise import RandomizedResponse
from dp_halfspace.rows.rows import Rows
from tests.permits import door_of


def unit(rng, n, d):
    X = rng.standard_normal((n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True) * rng.choice([1.0, 1.0, 0.5], size=(n, 1))


def worst_change(n_classes):
    """Largest change relative to the bound, over labels of small and of long tables."""
    rng, worst = np.random.default_rng(0), 0.0
    for n in [1, 2, 5, 40] * 30:
        rows = Rows(unit(rng, n, int(rng.integers(1, 5))))
        codes = rng.integers(n_classes, size=n)
        other, i = codes.copy(), int(rng.integers(n))
        other[i] = (other[i] + int(rng.integers(1, n_classes))) % n_classes
        change = label_statistic(rows, codes, n_classes) - label_statistic(rows, other, n_classes)
        bound = statistic_sensitivity(n, n_classes, rows.block_rows)
        worst = max(worst, float(np.linalg.norm(change)) / bound)
    return worst


@pytest.mark.parametrize("n_classes", [2, 4])
def test_shifted_scores_have_the_shares_of_the_labels(n_classes):
    """Whatever the ridge took: the constants are of rows that are scaled down, each by itself."""
    rng = np.random.default_rng(0)
    rows = Rows(np.column_stack([unit(rng, 500, 3), rng.uniform(0.2, 0.4, 500)]))
    codes = np.minimum(rng.geometric(0.7, 500) - 1, n_classes - 1)
    ridge, constants = 40.0, rows.dense(np.arange(500))[:, -1]
    found = statistic_minimiser(rows, label_statistic(rows, codes, n_classes), ridge)

    def shares(shift):
        scores = rows.scores(found.T) + shift
        scores = np.column_stack([0.0 * scores, scores]) if n_classes == 2 else scores
        return constants @ softmax(scores, axis=1) / constants.sum()

    wanted = [constants[codes == k].sum() / constants.sum() for k in range(n_classes)]
    assert np.abs(shares(0.0) - wanted).max() > 0.05
    shift = shift_without_ridge(rows, found, ridge, NoNoise())
    np.testing.assert_allclose(shares(shift), wanted, atol=1e-6)
    # Twice the squares of the noise are half of those that the ridge took, or more than all.
    deviation = np.linalg.norm(ridge * found[:, -1]) / math.sqrt(len(found))
    half, more = (
        shift_without_ridge(rows, found, ridge, GaussianNoise(deviation, mu)) for mu in (2.0, 1.3)
    )
    np.testing.assert_allclose(shares(half), 0.5 * (shares(0.0) + wanted), atol=1e-4)
    np.testing.assert_allclose(more, 0.0, atol=1e-6)
    # Each response has noise on its own: their variances add up.
    response = RandomizedResponse(n_classes, 1.0)
    expected = response.variance * float(constants @ constants)
    assert noise_variance(response, 9, float(constants @ constants)) == expected
    # A noisy sum may ask for more than all records.
    impossible = shift_without_ridge(rows, found * 50.0, ridge, NoNoise())
    assert np.isfinite(impossible).all()
    assert impossible.shape == (1 if n_classes == 2 else n_classes,)


@pytest.mark.parametrize("n_classes", [2, 3, 9])
def test_sensitivity_is_attained_and_never_exceeded(n_classes):
    assert 1 - 1e-9 < worst_change(n_classes) <= 1


@pytest.mark.parametrize("n_classes", [2, 4])
def test_minimiser_is_that_of_the_logistic_loss(n_classes):
    rng = np.random.default_rng(1)
    X, codes = unit(rng, 60, 3), rng.integers(n_classes, size=60)
    rows, outputs = Rows(X), n_classes if n_classes > 2 else 1

    def loss(w):
        W = w.reshape(outputs, 3)
        scores = X @ W.T
        scores = np.hstack([-scores / 2, scores / 2]) if outputs == 1 else scores
        return (logsumexp(scores, axis=1) - scores[np.arange(60), codes]).sum() + 0.35 * w @ w

    statistic = label_statistic(rows, codes, n_classes)
    expected = minimize(loss, np.zeros(3 * outputs), tol=1e-12).x.reshape(outputs, 3)
    np.testing.assert_allclose(statistic_minimiser(rows, statistic, 0.7), expected, atol=2e-4)


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e6, 1e12])
def test_every_statistic_has_a_minimiser(scale):
    rng = np.random.default_rng(2)
    rows = Rows(unit(rng, 30, 4))
    for outputs in (1, 3):
        statistic = scale * rng.standard_normal((outputs, 4))
        found = statistic_minimiser(rows, statistic, 2.0)
        assert np.isfinite(found).all()
        assert np.linalg.norm(found) <= (np.linalg.norm(statistic) + 30) / 2.0 + 1


@pytest.mark.parametrize("n_classes", [2, 4])
def test_responses_are_made_up_for_by_the_chance_of_a_lie(n_classes):
    """The mean over many responses to one label is the statistic of the true label."""
    rows, codes = Rows(np.ones((4000, 1))), np.full(4000, n_classes - 1)
    response = RandomizedResponse(n_classes, 1.0)
    ridge = 500.0
    plan = LabelStatistic(n_classes, response, None, ridge)
    found = plan.run(door_of(codes, *plan.events), rows, np.ones(n_classes))
    exact = statistic_minimiser(rows, label_statistic(rows, codes, n_classes), ridge)
    np.testing.assert_allclose(found[-1], exact[-1], rtol=0.2)


def test_a_ridge_remains_without_noise():
    assert statistic_ridge(10**6, 10, 2, 0.0) > 0.01


def test_the_noise_is_for_the_blocks_that_are_summed():
    rows, budget = Rows(np.zeros((20_000, 20))), Budget.gaussian(1.0)
    how = {"ridge": None, "n_candidates": 0, "seed": 0}
    plan = plan_labels("objective", rows, 2, budget, **how)
    assert 1 < rows.block_rows < 20_000
    assert plan.sensitivity == statistic_sensitivity(20_000, 2, rows.block_rows)
