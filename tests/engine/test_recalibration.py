"""Intercept and length of the coefficients by the last gradients, on rows whose truth is known."""

from dataclasses import replace

import numpy as np
import pytest

from dp_halfspace.engine.moment import Centring
from dp_halfspace.engine.noise_of_steps import recalibrated
from dp_halfspace.engine.probabilities import NODES, corrected_line, link_of, probabilities_of
from dp_halfspace.engine.steps import N_STEPS, Known, clipped_slopes, first_walk

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
