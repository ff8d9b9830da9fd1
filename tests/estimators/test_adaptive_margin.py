"""AdaptiveMarginClassifier: accuracy by rule, its ways, and projections."""

import math

import numpy as np
import pytest

from dp_halfspace import AdaptiveMarginClassifier
from dp_halfspace.datasets import make_halfspace
from dp_halfspace.engine.linear import N_AVERAGED, N_STEPS
from tests.instances import WAYS
from tests.projection.references import matrix_of
from tests.support import fitted


def way_id(way):
    return "-".join(str(v) for v in way.values()).replace(" ", "")


every_way = pytest.mark.parametrize("way", WAYS, ids=way_id)


@pytest.mark.parametrize("margin", [0.05, 0.1, 0.3])
def test_one_default_for_every_margin(margin):
    X, y = make_halfspace(10000, 20, margin=margin, random_state=0)
    model = AdaptiveMarginClassifier(epsilon=1.0, classes=[-1, 1], data_norm=1.0).fit(X, y)
    # One over the norm of the coefficients, which are longer where labels are clear.
    assert 0.0 < model.margin_ < 1.0
    # Clipped columns cost some of the records near a boundary that is exactly linear.
    assert model.score(X, y) > 0.9


def test_no_margin_is_asked_for_beyond_that_of_a_row():
    X, y = np.tile(np.eye(2), (200, 1)), np.arange(400) // 2 % 2
    model = AdaptiveMarginClassifier(epsilon=math.inf, classes=[0, 1], data_norm=1.0).fit(X, y)
    assert model.margin_ == 1.0


@pytest.mark.parametrize(("size", "drawn"), [(3, 3), ("auto", None)])
def test_rows_are_projected_where_a_number_of_components_is_stated(size, drawn):
    X, y = make_halfspace(3000, 6, random_state=0)
    model = AdaptiveMarginClassifier(classes=[-1, 1], data_norm=1.0, n_components=size)
    assert dict(model.plan(X, y).public)["n_components"] == (drawn,)


@pytest.mark.parametrize(
    ("iterate", "n_averaged"), [("averaged", N_AVERAGED), ("mean", N_STEPS), ("last", 1)]
)
def test_as_many_steps_are_averaged_as_the_parameter_says(iterate, n_averaged):
    X, y = make_halfspace(3000, 6, random_state=0)
    model = AdaptiveMarginClassifier(classes=[-1, 1], data_norm=1.0, iterate=iterate)
    assert model._fit_plan(model._validate(X, y, None)).shape.n_averaged == n_averaged


def test_only_ratios_of_class_weights_matter():
    X, y = make_halfspace(2000, 4, random_state=2)
    a, b = (
        fitted(
            AdaptiveMarginClassifier(data_norm=1.0),
            X,
            y,
            class_weight={-1: w, 1: 4 * w},
            random_state=1,
        )
        for w in (1.0, 0.25)
    )
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-9)


@pytest.mark.sampled(4)
@every_way
@pytest.mark.parametrize("epsilon", [8.0, math.inf])
def test_every_way_learns(way, epsilon):
    X, y = make_halfspace(5000, 8, margin=0.3, random_state=0)
    params = dict(way)
    if params.get("projection"):
        params["n_components"] = 8
    model = AdaptiveMarginClassifier(
        epsilon=epsilon, delta=1e-5, classes=[-1, 1], **params, data_norm=1.0
    )
    model = fitted(model, X, y, random_state=3)
    if isinstance(way.get("margin"), float):
        assert model.margin_ == way["margin"]
    # A projection of eight columns to eight keeps no margin of its own.
    assert model.score(X, y) > (0.6 if way.get("projection") else 0.97)


def test_the_score_of_a_selection_is_asked_for():
    """A penalty for the margin is rounded together with the errors."""
    X, y = make_halfspace(300, 4, margin=0.3, random_state=0)
    model = AdaptiveMarginClassifier(selection="exponential", data_norm=1.0)
    plain, penalised = (
        model.set_params(selection_score=score)._fit_plan(model._validate(X, y, None))
        for score in ("training", "population")
    )
    assert penalised.choice.sensitivity > plain.choice.sensitivity
    assert plain.public["selection"] == "exponential"


@pytest.mark.parametrize("kind", ["rademacher", "hadamard"])
@pytest.mark.parametrize(
    "way",
    [
        {},
        {"margin": 0.3},
        {"solver": "phased_prox", "margin": 0.3},
        {"solver": "objective_perturbation"},
        {"margin": [0.1, 0.3], "selection": "exponential"},
    ],
    ids=way_id,
)
def test_scores_are_those_of_the_projected_rows(kind, way):
    """By hand: clip or not, project, multiply by what was released for the projected rows."""
    X, y = make_halfspace(300, 40, margin=0.3, random_state=0)
    X = 3 * X
    params = {**way, "projection": kind, "n_components": 7, "data_norm": 2.0}
    model = AdaptiveMarginClassifier(**params).fit(X, y)
    assert model.coef_.shape == (1, 40)
    phi = matrix_of(model.projection_)
    assert phi.shape == (7, 40)
    # coef_ lies in the row space of the map: the coefficients there are unique.
    w, residual = np.linalg.lstsq(phi.T, model.coef_[0], rcond=None)[:2]
    assert residual.sum() <= 1e-18 * (model.coef_**2).sum()
    rows = X * np.minimum(1, model.data_norm_ / np.linalg.norm(X, axis=1))[:, None]
    by_hand = (rows @ phi.T) @ w + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X), by_hand, rtol=1e-8, atol=1e-9)
