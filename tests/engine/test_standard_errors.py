"""Standard errors of the noise: the recursion, and what they cover over fits."""

from dataclasses import replace

import numpy as np
import pytest

from dp_halfspace import AdaptiveMarginClassifier, PrivateKernelClassifier
from dp_halfspace.engine import linear
from dp_halfspace.engine.standard_errors import mean_curvatures
from dp_halfspace.engine.steps import N_STEPS, first_walk
from dp_halfspace.inspection import natural_coefficients
from tests.support import fitted


def linear_average(walk, curvatures, noise):
    """The average of a walk on a quadratic loss whose gradients have this noise."""
    for step in range(N_STEPS):
        walk = walk.after(noise[step] - curvatures * walk.ahead)
    return walk.average


@pytest.mark.parametrize("n_averaged", [1, 20, 40])
def test_the_noise_of_the_average_is_that_of_linear_steps(n_averaged):
    """One step at a time: the responses are those of the walk itself."""
    curvatures = np.array([0.0, 3.0, 40.0, 160.0])
    walk = replace(first_walk(4, 2, 1000.0, 0.4, 2.0), n_averaged=n_averaged)
    squares = np.zeros(4)
    for step in range(N_STEPS):
        noise = np.zeros((N_STEPS, 4))
        noise[step] = 1e-6
        squares += np.square(linear_average(walk, curvatures, noise) / 1e-6)
    by_noise, by_sample = walk.errors_along(curvatures)
    np.testing.assert_allclose(by_noise, walk.deviation * np.sqrt(squares))
    # The slope of a sample is in every step, with about the curvature for its variance.
    drift = linear_average(walk, curvatures, np.full((N_STEPS, 4), 1e-6)) / 1e-6
    np.testing.assert_allclose(by_sample, np.sqrt(curvatures) * np.abs(drift))


def test_mean_curvatures_are_those_of_the_clipped_loss():
    ones = np.ones(2)
    # The likelier class of scores of zero is right half of the time.
    assert mean_curvatures(np.zeros(1), np.zeros(1), ones) == pytest.approx([0.125])
    weighed = mean_curvatures(np.full(1, 2.0), np.zeros(1), np.array([0.2, 1.0]))
    assert weighed[0] < mean_curvatures(np.full(1, 2.0), np.zeros(1), ones)[0]
    three = mean_curvatures(np.zeros(3), np.zeros(3), np.ones(3))
    np.testing.assert_allclose(three, 2.0 / 9.0)


NUMBERS = "coefficients", "errors"


def rows(n=3000, d=6):
    rng = np.random.default_rng(7)
    X = rng.standard_normal((n, d)) * np.geomspace(0.1, 100.0, d)
    X[:, 1] = rng.random(n) < 0.3
    score = X[:, 0] / 0.1 - 1.0 + 0.8 * X[:, 1]
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(-score))).astype(int)


def covered(estimator, n_fits):
    """Share of coefficients within two standard errors of their mean over fits."""
    X, y = rows()
    models = [fitted(estimator, X, y, classes=[0, 1], random_state=s) for s in range(n_fits)]
    natural = [natural_coefficients(model) for model in models]
    found, errors = (np.array([getattr(n, name)[0] for n in natural]) for name in NUMBERS)
    return float(np.mean(np.abs(found - found.mean(axis=0)) <= 2.0 * errors)), found, errors


@pytest.mark.sampled(1)
@pytest.mark.parametrize("params", [{}, {"data_norm": 100.0}, {"class_weight": "balanced"}])
def test_two_standard_errors_cover_nine_of_ten_coefficients(params):
    share, found, errors = covered(AdaptiveMarginClassifier(epsilon=2.0, **params), 12)
    assert share >= 0.9
    # Not by being large: the noise is of the size that is stated.
    assert 0.2 < np.median(found.std(axis=0, ddof=1) / errors.mean(axis=0)) < 1.5


def test_no_noise_has_no_error():
    X, y = rows(500)
    model = AdaptiveMarginClassifier(epsilon=np.inf, classes=[0, 1]).fit(X, y)
    assert not model.coef_std_error_.any()
    assert not model.intercept_std_error_.any()


def test_errors_have_the_shapes_of_what_they_are_of():
    X, y = rows()
    y = y + (X[:, 2] > 5.0)
    wide = np.hstack([X] * 90)
    for given, params in (
        (X, {}),
        (X, {"projection": "hadamard", "n_components": 4, "data_norm": 200.0}),
        (wide, {"data_norm": 900.0}),
        (X, {"fit_intercept": False}),
    ):
        model = AdaptiveMarginClassifier(epsilon=3.0, classes=[0, 1, 2], **params).fit(given, y)
        assert model.coef_std_error_.shape == model.coef_.shape
        assert model.intercept_std_error_.shape == model.intercept_.shape
        assert (model.coef_std_error_ > 0.0).all()


def joint_factors(labels_of, monkeypatch):
    """Factors by which the coefficients of joint features are shrunk, over fits."""
    X, found = np.random.default_rng(3).uniform(-1.0, 1.0, size=(9000, 2)), []
    honest = linear.with_shrunk_joint

    def watched(shape, known, n_joint):
        walk = honest(shape, known, n_joint)
        before, after = known.released_walk.total[6:-1], walk.total[6:-1]
        assert len(before) == n_joint == 192
        np.testing.assert_array_equal(walk.total[:6], known.released_walk.total[:6])
        found.append(np.linalg.norm(after) / np.linalg.norm(before))
        return walk

    monkeypatch.setattr(linear, "with_shrunk_joint", watched)
    model, y = PrivateKernelClassifier(epsilon=4.0), (labels_of(X) > 0).astype(int)
    for seed in range(3):
        fitted(model, X, y, classes=[0, 1], random_state=seed)
    return np.array(found)


def test_joint_features_are_shrunk_where_columns_do_not_act_jointly(monkeypatch):
    """Of labels that no feature explains, their coefficients are noise of steps and sample."""
    coins = np.random.default_rng(4).normal(size=9000)
    product = joint_factors(lambda X: X[:, 0] * X[:, 1], monkeypatch)
    nothing = joint_factors(lambda X: coins, monkeypatch)
    assert product.min() > 0.85
    assert nothing.max() < 0.75
