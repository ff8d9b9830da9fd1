"""Standard errors of the noise: the recursion, and what they cover over fits."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from dp_halfspace import AdaptiveMarginClassifier, PrivateKernelClassifier
from dp_halfspace.engine import linear, noise_of_steps
from dp_halfspace.engine.moment import DIRECTIONS, Centring
from dp_halfspace.engine.noise_of_steps import mean_curvatures, step_errors
from dp_halfspace.engine.steps import N_STEPS, Known, first_walk
from dp_halfspace.inspection import natural_coefficients
from tests.engine.pairs import plan_of
from tests.support import fitted


def linear_average(walk, curvatures, noise):
    """The average of a walk on a quadratic loss whose gradients have this noise."""
    for step in range(N_STEPS):
        walk = walk.after(noise[step] - (curvatures * walk.ahead.T).T)
    return walk.average


def map_of(resolved, **changed):
    """A map of rows that turns none of the columns."""
    n_columns = len(resolved)
    plain = Centring(
        mean=np.zeros(n_columns),
        mean_error=0.0,
        directions=np.eye(n_columns),
        factors=np.ones(n_columns),
        resolved=resolved,
        noisy=resolved,
        whitening=np.eye(n_columns),
        radius=2.0,
        constant=0.0,
    )
    return replace(plain, **changed)


@pytest.mark.parametrize(("n_averaged", "n_classes"), [(1, 2), (20, 3), (40, 2)])
def test_the_noise_of_the_average_is_that_of_linear_steps(n_averaged, n_classes):
    """One step and one class at a time: the responses are those of the walk itself."""
    curvatures = np.array([0.0, 3.0, 40.0, 160.0])
    walk = replace(first_walk(4, n_classes, 1000.0, 0.4, 2.0), n_averaged=n_averaged)
    squares = np.zeros(4)
    for step in range(N_STEPS):
        noise = np.zeros((N_STEPS, *walk.point.shape))
        noise[step].reshape(4, -1)[:, 0] = 1e-6
        found = linear_average(walk, curvatures, noise).reshape(4, -1) / 1e-6
        # What the noise of one class does to all is what that of all does to one.
        squares += np.square(found).sum(axis=1)
    # At scores of zero all curvatures are known.
    weights, each = np.ones(n_classes), 0.125 if n_classes == 2 else 2.0 / 9.0
    centring = map_of(curvatures * 2.0**2 / 1000.0 / each)
    known = Known(class_weights=weights, centring=centring, walk=walk, total=1000.0)
    by_noise, by_sample = step_errors(known)
    for found in by_noise:
        np.testing.assert_allclose(found[:-1], walk.deviation * np.sqrt(squares))
    # The slope of a sample is in every step, with about the curvature for its variance.
    one = replace(walk, **dict.fromkeys(("point", "velocity", "total", "last"), np.zeros(4)))
    drift = linear_average(one, curvatures, np.full((N_STEPS, 4), 1e-6)) / 1e-6
    np.testing.assert_allclose(by_sample[0, :-1], np.sqrt(curvatures) * np.abs(drift))


def test_the_error_of_an_intercept_is_that_of_all_it_follows_from(monkeypatch):
    """Steps, the mean of the rows, the centres of the columns: each is moved by its deviation."""
    monkeypatch.setattr(linear, "recalibrated", lambda known: known)
    rng = np.random.default_rng(5)
    plan = plan_of(np.zeros((4000, 3)))
    turned = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    factors = np.array([1.0, 2.0, 5.0])
    centring = map_of(
        np.full(3, 0.5),
        mean=np.array([0.3, -0.2, 0.5]),
        mean_error=0.1,
        directions=turned,
        factors=factors,
        whitening=(turned * factors) @ turned.T,
        constant=1.0,
    )
    walk = replace(plan.shape.walk(plan.known, 1.0), total=rng.normal(size=4))
    known = replace(plan.known, centring=centring, walk=walk)

    def intercept(known, centres=0.0):
        model = linear.model_of(plan.shape, known)
        return float(model.intercepts[0] - model.coefficients[0] @ (centres * np.ones(3)))

    axes = np.block([[turned, np.zeros((3, 1))], [np.zeros(3), 1.0]])
    by_noise = step_errors(known)[0][0]
    moved = [
        intercept(replace(known, walk=replace(walk, total=walk.total + walk.n_averaged * change)))
        for change in (axes * by_noise).T
    ]
    for unit in np.eye(3):
        mean = centring.mean + centring.mean_error * unit
        moved.append(intercept(replace(known, centring=replace(centring, mean=mean))))
        moved.append(intercept(known, plan.shape.scales.errors(3)[0] * unit))
    expected = np.linalg.norm(np.array(moved) - intercept(known))
    found = linear.errors_of(plan.shape, known)[1]
    np.testing.assert_allclose(found, expected)


def test_mean_curvatures_are_those_of_the_clipped_loss():
    ones = np.ones(2)
    # The likelier class of scores of zero is right half of the time.
    assert mean_curvatures(np.zeros(1), np.zeros(1), ones) == pytest.approx([0.125])
    weighed = mean_curvatures(np.full(1, 2.0), np.zeros(1), np.array([0.2, 1.0]))
    assert weighed[0] < mean_curvatures(np.full(1, 2.0), np.zeros(1), ones)[0]
    three = mean_curvatures(np.zeros(3), np.zeros(3), np.ones(3))
    np.testing.assert_allclose(three, 2.0 / 9.0)
    # Where weighted classes are equal, half of the records are of the class that counts half.
    lighter = mean_curvatures(np.zeros(3), np.zeros(3), np.array([0.5, 1.0, 1.0]))
    np.testing.assert_allclose(lighter, 0.75 * 2.0 / 9.0)


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
    wide = np.hstack([X] * 110)
    for given, params in (
        (X, {}),
        (X, {"projection": "hadamard", "n_components": 4, "data_norm": 200.0}),
        (wide, {"data_norm": 900.0}),
        (wide, {"projection": "rademacher", "n_components": 600, "data_norm": 900.0}),
        (X, {"fit_intercept": False}),
    ):
        model = AdaptiveMarginClassifier(epsilon=3.0, classes=[0, 1, 2], **params).fit(given, y)
        assert model.coef_std_error_.shape == model.coef_.shape
        assert model.intercept_std_error_.shape == model.intercept_.shape
        assert (model.coef_std_error_ > 0.0).all()


def test_errors_of_wide_rows_are_those_of_steps_without_curvature():
    """One coefficient, and that of the constant, are moved by their deviation."""
    plan = plan_of(np.broadcast_to(0.0, (10**5, 513)))
    shape = replace(plan.shape, constant=3.0)
    known = replace(plan.known, length=0.7, walk=shape.walk(plan.known, 1.0))
    deviation = known.walk.errors_along(np.zeros(1))[0][0]
    moved, intercepts = linear.in_columns(shape, known, deviation * np.eye(514)[[0, 513]])
    errors, of_intercept = linear.errors_of(shape, known)
    np.testing.assert_allclose(errors, np.full((1, 513), moved[0, 0]))
    np.testing.assert_allclose(of_intercept, intercepts[1])


def joint_factors(labels_of, monkeypatch):
    """Factors by which the coefficients of joint features are shrunk, over fits."""
    X, found = np.random.default_rng(3).uniform(-1.0, 1.0, size=(9000, 2)), []
    honest = linear.with_shrunk_joint

    def watched(shape, known, n_joint):
        shrunk = honest(shape, known, n_joint)
        # More directions are told apart than without joint features.
        assert known.centring.radius**2 > DIRECTIONS
        before, after = known.walk.total[6:-1], shrunk.walk.total[6:-1]
        assert len(before) == n_joint > 100
        np.testing.assert_array_equal(shrunk.walk.total[:6], known.walk.total[:6])
        found.append(np.linalg.norm(after) / np.linalg.norm(before))
        return shrunk

    monkeypatch.setattr(linear, "with_shrunk_joint", watched)
    model, y = PrivateKernelClassifier(epsilon=4.0), (labels_of(X) > 0).astype(int)
    for seed in range(2):
        fitted(model, X, y, classes=[0, 1], random_state=seed)
    return np.array(found)


def test_joint_features_are_shrunk_where_columns_do_not_act_jointly(monkeypatch):
    """Of labels that no feature explains, their coefficients are noise of steps and sample."""
    coins = np.random.default_rng(4).normal(size=9000)
    product = joint_factors(lambda X: X[:, 0] * X[:, 1], monkeypatch)
    nothing = joint_factors(lambda X: coins, monkeypatch)
    assert product.min() > 0.85
    assert nothing.max() < 0.75


def test_the_last_gradients_correct_an_intercept_and_so_need_one(monkeypatch):
    monkeypatch.setattr(linear, "recalibrated", None)
    X, y = rows()
    for params, labels in (({"fit_intercept": False}, y), ({}, y + (X[:, 2] > 5.0))):
        model = AdaptiveMarginClassifier(epsilon=3.0, classes=[0, 1, 2][: labels.max() + 1])
        assert model.set_params(**params).fit(X, labels).coef_.any()
    with pytest.raises(TypeError):
        AdaptiveMarginClassifier(epsilon=3.0, classes=[0, 1]).fit(X, y)


def test_joint_features_of_more_classes_keep_their_coefficients(monkeypatch):
    monkeypatch.setattr(linear, "with_shrunk_joint", None)
    X = np.random.default_rng(3).uniform(-1.0, 1.0, size=(9000, 2))
    y = np.digitize(X[:, 0] * X[:, 1], [-0.1, 0.1])
    model = fitted(PrivateKernelClassifier(epsilon=4.0), X, y, classes=[0, 1, 2], random_state=1)
    assert model.n_components_ > 100


@pytest.mark.parametrize(("error", "kept"), [(0.5, 0.5), (1.0, 0.0)])
def test_joint_features_that_are_no_more_than_noise_are_dropped(error, kept, monkeypatch):
    monkeypatch.setattr(linear, "step_errors", lambda *_: np.full((2, 1, 5), error))
    walk = replace(first_walk(5, 2, 100.0, 1.0, 1.0), total=np.full(5, 15.0))
    centring = SimpleNamespace(directions=np.eye(4), with_shared_trace=lambda: None)
    known = Known(walk=walk, centring=centring, total=100.0)
    found = linear.with_shrunk_joint(SimpleNamespace(n_columns=4), known, 2).walk
    assert found.average.tolist() == [1.0, 1.0, kept, kept, 1.0]


def test_the_constant_is_a_column_of_the_mean_square_of_its_entries(monkeypatch):
    """A direction of the same mean square has the same error."""
    walk = replace(first_walk(2, 2, 1000.0, 0.4, 2.0), n_averaged=20)
    centring = map_of(np.array([0.25]), constant=0.5)
    known = Known(centring=centring, walk=walk, total=1000.0)
    by_noise, by_sample = step_errors(known)
    assert by_noise[0, 0] == pytest.approx(by_noise[0, 1])
    assert by_sample[0, 0] == pytest.approx(by_sample[0, 1])
    # And the mean of the scores is that of its entries.
    seen = []
    keep = lambda means, *_: seen.append(means) or np.ones(1)  # noqa: E731
    monkeypatch.setattr(noise_of_steps, "mean_curvatures", keep)
    step_errors(replace(known, walk=replace(walk, total=np.array([0.0, 60.0]))))
    np.testing.assert_allclose(seen, [[3.0 * 0.5 / centring.length]])
