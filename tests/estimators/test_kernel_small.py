"""Small tables of three to seven classes: the kernel classifier makes the linear selection."""

import numpy as np
import pytest

from dp_halfspace import AdaptiveMarginClassifier, PrivateKernelClassifier
from dp_halfspace.inspection import EffectsDisplay, model_card, natural_coefficients, to_onnx
from tests.support import fitted, largest_ratio


def table(n=600, n_classes=3):
    rng = np.random.default_rng(0)
    codes = np.arange(n) % n_classes
    return rng.standard_normal((n, 4)) + 1.5 * np.eye(n_classes, 4)[codes], codes


def model(**params):
    given = {"epsilon": 0.39, "classes": [0, 1, 2], "data_norm": None, "random_state": 0}
    return PrivateKernelClassifier(**{**given, **params})


@pytest.mark.sampled(1)
@pytest.mark.parametrize("n_classes", [3, 4])
def test_it_is_the_selection_of_the_linear_default(n_classes):
    X, y = table(n_classes=n_classes)
    given = {"epsilon": 0.39, "classes": list(range(n_classes)), "random_state": 0}
    found = fitted(PrivateKernelClassifier(**given), X, y)
    linear = fitted(AdaptiveMarginClassifier(**given), X, y)
    assert found.privacy_.events == linear.privacy_.events
    np.testing.assert_array_equal(found.decision_function(X), linear.decision_function(X))
    np.testing.assert_array_equal(found.predict(X), linear.predict(X))
    assert found.n_components_ == 4
    assert found.coef_.shape == (n_classes, 4)
    rows = found.feature_map_.apply(X / found.data_norm_)
    np.testing.assert_allclose(rows, X, rtol=1e-6)


@pytest.mark.parametrize(
    "params",
    [
        {"epsilon": 2.0},
        {"data_norm": 5.0},
        {"delta": 0.0},
        {"kernel": "rbf"},
        {"kernel": "additive"},
        {"n_components": 12},
        {"margin": 0.2},
        {"fit_intercept": False},
        {"intercept_scaling": 2.0},
        {"class_weight": "balanced"},
        {"classes": [0, 1, 2, 3, 4, 5, 6, 7]},
    ],
    ids=str,
)
def test_other_fits_take_steps(params):
    plan = model(**params).plan(*table())
    assert not any("Exponential" in str(event) for event in plan.events)


def test_two_classes_people_and_weights_take_steps():
    X, y = table()
    plans = [model(classes=[0, 1]).plan(X, y % 2)]
    for given in ({"groups": np.arange(len(X))}, {"sample_weight": np.ones(len(X))}):
        plans.append(model().plan(X, y, **given))
    for plan in plans:
        assert not any("Exponential" in str(event) for event in plan.events)


def test_it_has_no_linear_score_and_no_axes_like_the_linear_default():
    found = fitted(model(), *table())
    for asked in (natural_coefficients, to_onnx):
        with pytest.raises(ValueError, match="needs a linear score"):
            asked(found)
    with pytest.raises(ValueError, match="need released column scales"):
        EffectsDisplay.from_estimator(found)
    assert "Not shown" in str(model_card(found))


def test_replay():
    X, y = table(60)
    other, labels = X.copy(), y.copy()
    other[0], labels[0] = -5.0 * X[0], 2
    fresh = PrivateKernelClassifier(epsilon=2.0, classes=[0, 1, 2])
    assert largest_ratio(fresh, X, y, other, labels, random_state=0) <= 1.0
