"""Intercept and length of the coefficients by the last gradients, on rows whose truth is known."""

from dataclasses import replace

import numpy as np
import pytest

from dp_halfspace.engine.moment import Centring
from dp_halfspace.engine.noise_of_steps import recalibrated, rescaled
from dp_halfspace.engine.probabilities import (
    NODES,
    ScoresOfMany,
    corrected_line,
    link_of,
    of_log_odds,
    probabilities_of,
)
from dp_halfspace.engine.steps import (
    N_STEPS,
    Known,
    clip_of,
    clipped_slopes,
    clipped_slopes_of_many,
    first_walk,
)

SIZE = 4


def white(size):
    """The map of rows that are centred and white already."""
    ones, same = np.ones(size), np.eye(size)
    return Centring(np.zeros(size), 0.0, same, ones, ones, ones, same, size**0.5, 1.0)


CENTRING = white(SIZE)


def short_walk(weights, mu=1e6, seed=0, n=40_000):
    """Steps of a tenth of their length on normal rows, 10 % of which are of the second class."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, SIZE))
    truth = rows @ [1.5, -1.0, 0.5, 0.0] - 3.2
    labels = (rng.random(n) < 1.0 / (1.0 + np.exp(-truth))).astype(np.intp)
    final = np.column_stack([rows, np.ones(n)]) / CENTRING.length
    slopes = clipped_slopes(labels, np.asarray(weights)[labels])
    walk = first_walk(SIZE + 1, 2, float(n), mu, CENTRING.length)
    walk = replace(walk, size=walk.size / 10.0)
    for _ in range(N_STEPS):
        noise = walk.deviation * rng.standard_normal(SIZE + 1)
        # Margins are those of the label, as in the steps.
        margins = (final @ walk.ahead) * 1.0
        walk = walk.after(final.T @ slopes(margins, 0, n) + noise)
    return walk, final, labels


@pytest.mark.parametrize("weights", [(1.0, 1.0), (0.2, 1.0), (1.0, 0.2)])
def test_short_steps_become_calibrated(weights):
    walk, final, labels = short_walk(weights)
    how = {"class_weights": np.array(weights), "total": float(len(labels))}
    corrected = recalibrated(Known(centring=CENTRING, walk=walk, **how)).walk
    mass = np.asarray(weights)[labels]
    share = mass[labels == 1].sum() / mass.sum()
    found = [
        np.average(probabilities_of(final @ point)[:, 1], weights=mass)
        for point in (walk.average, corrected.average)
    ]
    assert abs(found[0] - share) > 0.01
    assert found[1] == pytest.approx(share, abs=0.004)
    # Where half of a class is likelier than not, the longer coefficients say so.
    sure = probabilities_of(final @ corrected.average)[:, 1]
    top = sure > np.quantile(sure, 0.95)
    observed = mass[top & (labels == 1)].sum() / mass[top].sum()
    assert np.average(sure[top], weights=mass[top]) == pytest.approx(observed, abs=0.05)
    before, after = walk.average[:SIZE], corrected.average[:SIZE]
    factor = np.linalg.norm(after) / np.linalg.norm(before)
    assert factor > 1.5
    np.testing.assert_allclose(after, factor * before)
    assert corrected.deviation == pytest.approx(factor * walk.deviation)


def test_steps_without_noise_stay():
    walk = replace(short_walk((1.0, 1.0))[0], deviation=0.0)
    known = Known(centring=CENTRING, walk=walk, total=40_000.0)
    assert recalibrated(known) is known


def test_coefficients_of_noise_alone_do_not_grow():
    """The product of coefficients and gradients has their common noise, which is subtracted."""
    size, logarithms = 100, []
    centring = white(size)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        walk = first_walk(size + 1, 2, 1000.0, 0.1, centring.length)
        curvature = 0.125 / centring.length**2 * 1000.0
        for _ in range(N_STEPS):
            noise = walk.deviation * rng.standard_normal(size + 1)
            walk = walk.after(noise - curvature * walk.ahead)
        corrected = recalibrated(Known(centring=centring, walk=walk, total=1000.0)).walk
        logarithms.append(np.log(corrected.deviation / walk.deviation))
    assert np.mean(logarithms) < 0.02


def test_sums_that_noise_explains_correct_nothing():
    """Up to the root of two of its deviations."""
    deviations, plain = np.array([0.01, 0.02]), (0.3, 0.8 * NODES)
    how = {"class_weights": np.ones(2), "total": 1e3, "clip": 0.5, "odds_of": link_of}
    none, hidden, seen = (
        corrected_line(*plain, size * deviations, deviations, **how) for size in (0.0, 1.41, 3.0)
    )
    assert none == hidden
    assert abs(seen[0] - none[0]) > 0.01


def test_the_common_variance_is_that_of_linear_steps():
    curvatures = np.array([0.0, 3.0, 40.0])
    walk = first_walk(3, 2, 1000.0, 0.4, 2.0)
    total = np.zeros(3)
    for step in range(N_STEPS - walk.n_averaged, N_STEPS):
        moved = walk
        for each in range(N_STEPS):
            moved = moved.after(float(each == step) - curvatures * moved.ahead)
        total += moved.average / walk.n_averaged
    np.testing.assert_allclose(walk.common_variance(curvatures), walk.deviation**2 * total)


# --- several classes ---

THREE = np.array([[1.5, -1.0, -0.5], [-1.0, 1.0, 0.0], [0.0, 1.0, -1.0], [0.0, 0.0, 0.0]])


def walk_of_many(truth, weights, mu, n, shorter=1.0, seed=0):
    """Steps on normal rows whose labels follow the softmax of `truth`, more of the first class."""
    rng, (size, n_classes) = np.random.default_rng(seed), truth.shape
    rows = rng.standard_normal((n, size))
    scores = rows @ truth + np.append(1.0, np.zeros(n_classes - 1))
    labels = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    centring = white(size)
    final = np.column_stack([rows, np.ones(n)]) / centring.length
    slopes = clipped_slopes_of_many(labels, np.asarray(weights)[labels])
    walk = first_walk(size + 1, n_classes, float(n), mu, centring.length)
    walk = replace(walk, size=walk.size / shorter)
    for _ in range(N_STEPS):
        noise = walk.deviation * rng.standard_normal(walk.point.shape)
        walk = walk.after(final.T @ slopes(final @ walk.ahead, 0, n) + noise)
    how = {"class_weights": np.asarray(weights), "total": float(n)}
    return Known(centring=centring, walk=walk, **how), final, labels


def length_of(known):
    return np.linalg.norm(known.walk.average[:-1])


@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0), (0.2, 1.0, 1.0)])
def test_short_steps_of_several_classes_become_calibrated(weights):
    known, final, labels = walk_of_many(THREE, weights, 1e6, 40_000, shorter=30.0)
    corrected, mass = rescaled(known), np.asarray(weights)[labels]
    factor, far = length_of(corrected) / length_of(known), []
    for model in (known, corrected):
        sure = probabilities_of(final @ model.walk.average)
        top = sure.max(axis=1) > np.quantile(sure.max(axis=1), 0.8)
        right = np.average(sure.argmax(axis=1)[top] == labels[top], weights=mass[top])
        far.append(right - np.average(sure.max(axis=1)[top], weights=mass[top]))
    assert far[0] > 0.05 > 0.02 > abs(far[1])
    # Slopes that are not clipped would explain the sums by a factor of 1.85.
    assert factor > 1.95
    average = known.walk.average * np.append(np.full(4, factor), 1.0)[:, None]
    np.testing.assert_allclose(corrected.walk.average, average)
    assert corrected.walk.deviation == pytest.approx(factor * known.walk.deviation)
    exact = replace(known, walk=replace(known.walk, deviation=0.0))
    assert rescaled(exact) is exact


@pytest.mark.parametrize("mu", [0.1, 1e6])
def test_coefficients_of_noise_or_of_the_sample_alone_shrink(mu):
    """The product of coefficients and gradients has the part that both follow, subtracted.

    As that of the sample is as doubtful as it is large, they do not shrink by far.
    """
    logarithms = []
    for seed in range(5):
        known = walk_of_many(np.zeros((60, 4)), np.ones(4), mu, 1000, seed=seed)[0]
        logarithms.append(np.log(length_of(rescaled(known)) / length_of(known)))
    assert -0.3 < np.mean(logarithms) < (0.02 if mu < 1.0 else -0.1)


def test_drift_is_that_of_linear_steps():
    curvatures = np.array([0.0, 3.0, 40.0])
    walk = moved = first_walk(3, 2, 1000.0, 0.4, 2.0)
    for _ in range(N_STEPS):
        moved = moved.after(1.0 - curvatures * moved.ahead)
    np.testing.assert_allclose(walk.drift(curvatures), moved.average)


@pytest.mark.parametrize("clip", [clip_of(3), 2.0])
def test_scores_of_several_classes_tell_slopes_and_curvature(clip):
    """Those of records that are drawn from the distribution; the mean slope is zero."""
    rng, weights = np.random.default_rng(0), np.array([0.3, 1.0, 0.8])
    covariance = THREE.T @ THREE
    scores = ScoresOfMany.of(np.array([0.5, 0.0, -0.5]), covariance, weights, clip)
    spread = scores.points.T @ scores.points / len(scores.points)
    np.testing.assert_allclose(spread, covariance, atol=0.15 * covariance.max())
    np.testing.assert_allclose(scores.points.mean(axis=0), 0.0, atol=1e-12)
    every = np.repeat(scores.intercepts + scores.points, 4000, axis=0)
    likely = probabilities_of(every) if clip < 2.0 else np.exp(of_log_odds(every))
    shares = likely / weights
    shares /= shares.sum(axis=1, keepdims=True)
    labels = (rng.random((len(every), 1)) > shares.cumsum(axis=1)).sum(axis=1)
    slopes = clipped_slopes_of_many(labels, weights[labels], clip)(every.copy(), 0, len(every))
    np.testing.assert_allclose(slopes.mean(axis=0), 0.0, atol=2e-3)
    np.testing.assert_allclose(slopes.var(axis=0), scores.slope_variances, rtol=0.01)
    softmax = np.exp(of_log_odds(every))
    mean = (softmax * (1.0 - softmax)).mean(axis=0) / np.mean(1.0 / weights)
    np.testing.assert_allclose(scores.curvatures, mean)


def test_a_mean_that_noise_explains_gives_the_factor_one():
    scores = ScoresOfMany.of(np.zeros(3), THREE.T @ THREE, np.ones(3), clip_of(3))
    assert scores.factor(0.0141, 0.01, 0.0) == pytest.approx(1.0, abs=1e-9)
    sure = scores.factor(0.1, 1e-3, 0.0)
    assert 1.0 < scores.factor(0.1, 1e-3, 0.5) < 0.9 * sure
    assert scores.factor(-0.1, 1e-3, 0.0) < 0.9
