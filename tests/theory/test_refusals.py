"""Every bound refuses quantities for which it means nothing, and names them."""

import math
from functools import partial

import pytest

from dp_halfspace import theory
from dp_halfspace.exceptions import BudgetError
from dp_halfspace.optim.losses import SQUARED, SQUARED_HINGE

SHAPE = {"n_samples": 100, "n_features": 3}
BUDGET = {"epsilon": 1.0, "delta": 0.0}
GOOD = {
    "strongly_convex_excess_risk": {**SHAPE, **BUDGET, "lipschitz": 1.0, "strong_convexity": 1.0},
    "convex_excess_risk": {**SHAPE, **BUDGET, "lipschitz": 1.0, "radius": 1.0},
    "optimal_regularization": {**SHAPE, **BUDGET, "lipschitz": 1.0, "radius": 1.0},
    "population_risk_bound": {**SHAPE, **BUDGET, "lipschitz": 1.0, "strong_convexity": 1.0},
    "tilted_risk_bound": {**SHAPE, **BUDGET, "tilt": 1.0, "regularization": 0.1},
    "adversarial_risk_bound": {**SHAPE, **BUDGET, "attack_radius": 0.1, "regularization": 0.1},
    "margin_risk_bound": {**SHAPE, "epsilon": 1.0, "delta": 1e-6, "margin": 0.5},
    "pure_risk_bound": {**SHAPE, "epsilon": 1.0, "margin": 0.1},
    "margin_sample_complexity": {"n_features": 5, **BUDGET, "margin": 0.1},
    "pure_lower_bound": {"n_features": 5, "epsilon": 1.0, "margin": 0.1},
    "pure_error_lower_bound": {**SHAPE, "epsilon": 1.0, "margin": 0.1},
    "hinge_risk_bound": {**SHAPE, "epsilon": 1.0, "delta": 1e-6, "margin": 0.5},
    "katyusha_iterations": {
        **{**SHAPE, **BUDGET, "lipschitz": 1.0, "radius": 1.0},
        **{"strong_convexity": 1.0, "smoothness": 1.0},
    },
    "label_risk_bound": {**SHAPE, "epsilon": 1.0, "margin": 0.5},
    "last_iterate_risk_bound": {**SHAPE, "epsilon": 1.0, "delta": 1e-6, "margin": 0.5},
    "margin_score_sensitivity": {"n_samples": 100, "margin": 0.5},
    "margin_selection_cost": {"n_candidates": 7, "sensitivity": 0.01, "epsilon": 1.0},
    "objective_risk_bound": {**SHAPE, **BUDGET, "radius": 1.0, "smoothness": 1.0},
    "ranking_risk_bound": {
        **{"n_positive": 50, "n_negative": 50, "n_features": 3, **BUDGET},
        **{"radius": 1.0, "lipschitz": 1.0},
    },
    "selected_margin_risk_bound": {**SHAPE, "epsilon": 1.0, "delta": 1e-6, "margin": 0.5},
    "fourier_distortion": {"n_frequencies": 10, "n_samples": 100},
    "fourier_frequencies": {"distortion": 0.5, "n_samples": 100},
}
# What is refused by all that take it, and what else by single ones: value, or changes and a word.
COMMON = {
    "n_samples": (0,),
    "n_features": (0,),
    "epsilon": (-1.0, math.nan),
    "margin": (0.0, 1.1, math.nan),
    "lipschitz": (0.0, math.inf),
    "strong_convexity": (0.0, math.nan),
    "radius": (0.0, math.nan),
    "attack_radius": (0.0, math.inf),
    "tilt": (-1.0, math.inf, math.nan),
}
OWN = {
    "strongly_convex_excess_risk": [
        ({"delta": -1e-9}, "delta"),
        ({"delta": math.nan}, "delta"),
        ({"gap": -1.0}, "gap"),
        ({"smoothness": 0.0}, "smoothness"),
        ({"regularization": 2.0}, "cannot exceed"),
        ({"sensitivity": -1.0}, "sensitivity"),
    ],
    "convex_excess_risk": [
        ({"epsilon": 0.0}, "epsilon"),
        ({"delta": 0.5}, "delta"),
        ({"regularization": 0.0}, "regularization"),
    ],
    "population_risk_bound": [
        ({"delta": 0.5}, "delta"),
        ({"gap": -1.0}, "gap"),
        ({"strong_convexity": None}, "either"),
        ({"radius": 1.0}, "either"),
        ({"regularization": 2.0}, "cannot exceed"),
        ({"regularization": -1.0}, "regularization"),
        ({"radius": 1.0, "strong_convexity": None, "regularization": 0.0}, "regularization"),
        ({"sensitivity": -1.0}, "sensitivity"),
        ({"sensitivity": 0.1, "radius": 1.0, "strong_convexity": None}, "sensitivity"),
    ],
    "tilted_risk_bound": [
        ({"delta": 0.5}, "delta"),
        ({"data_norm": 0.0}, "data_norm"),
        ({"regularization": 0.0}, "regularization"),
        ({"regularization": None}, "regularization"),
        ({"radius": -1.0}, "radius"),
        ({"gap": -1.0}, "gap"),
        ({"loss": "absolute"}, "unknown loss"),
        ({"loss": SQUARED}, "no bounded slope"),
    ],
    "adversarial_risk_bound": [
        ({"attack_norm": 1}, "norm"),
        ({"n_attacked": 0}, "n_attacked"),
        ({"n_attacked": 4}, "n_attacked"),
        ({"smoothing": -1.0}, "smoothing"),
        ({"tilt": 1.0, "population": True}, "tilt"),
        ({"tilt": 1.0, "loss": SQUARED_HINGE}, "tilt"),
        ({"regularization": math.nan}, "regularization"),
        ({"loss": "squared"}, "'squared' increases"),
    ],
    "margin_risk_bound": [
        ({"n_features": 1.5}, "n_features"),
        ({"delta": 1.0}, "delta"),
        ({"n_outliers": -1}, "n_outliers"),
        ({"n_outliers": 101}, "n_outliers"),
        ({"data_norm": math.inf}, "data_norm"),
        ({"n_steps": 0}, "n_steps"),
        ({"n_components": 0}, "n_components"),
        ({"beta": 1.0}, "beta"),
        ({"n_candidates": 0}, "n_candidates"),
        ({"n_candidates": 2}, "selection_epsilon"),
        ({"selection_epsilon": math.nan}, "selection_epsilon"),
    ],
    "pure_risk_bound": [({"n_features": 5.0}, "n_features"), ({"beta": 1.0}, "beta")],
    "margin_sample_complexity": [({"error": 0.0}, "error"), ({"epsilon": 0.0}, r"2\*\*62")],
    "pure_lower_bound": [({"epsilon": 0.0}, "epsilon"), ({"error": 0.6}, "error")],
    "pure_error_lower_bound": [
        *(({name: value}, name) for name, value in (("epsilon", 0.0), ("margin", 1.0))),
        ({"beta": 0.5}, "beta below 1/2"),
    ],
    "hinge_risk_bound": [({"half_width": 1.1}, "half_width"), ({"hinge_loss": -1.0}, "hinge_loss")],
    "katyusha_iterations": [
        ({"epsilon": math.inf}, "epsilon"),
        ({"smoothness": 0.0}, "smoothness"),
    ],
    "label_risk_bound": [
        ({"epsilon": 0.0}, "epsilon"),
        ({"beta": 1.0}, "beta"),
        ({"fat_dimension": 0.0}, "fat_dimension"),
    ],
    "last_iterate_risk_bound": [
        ({"step_size": 0.0}, "step_size"),
        ({"half_width": 1.1}, "half_width"),
        ({"score_share": 1.0}, "score_share"),
    ],
    "margin_score_sensitivity": [({"capacity": -1.0}, "capacity"), ({"loss": "squared"}, "loss")],
    "margin_selection_cost": [
        ({"n_candidates": 0}, "n_candidates"),
        ({"sensitivity": -1.0}, "sensitivity"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"beta": 1.0}, "beta"),
    ],
    "objective_risk_bound": [
        ({"noise_square": -1.0}, "noise_square"),
        ({"smoothness": 0.0}, "smoothness"),
        ({"lipschitz": 0.0}, "lipschitz"),
        ({"data_norm": 0.0}, "data_norm"),
    ],
    "ranking_risk_bound": [
        ({"noise_square": -1.0}, "noise_square"),
        ({"lipschitz": 0.0, "smoothness": 1.0}, "lipschitz"),
        ({"mechanism": "objective", "lipschitz": math.inf, "smoothness": 1.0}, "lipschitz"),
        ({"mechanism": "input"}, "mechanism"),
    ],
    "selected_margin_risk_bound": [({"beta": 1.0}, "beta")],
    "fourier_distortion": [({"beta": 1.0}, "beta"), ({"n_samples": 1}, "n_samples")],
    "fourier_frequencies": [
        ({"distortion": 0.0}, "distortion"),
        ({"beta": 1.0}, "beta"),
        ({"n_samples": 1}, "n_samples"),
    ],
}
KINDS = (float, int, theory.RiskBound, theory.ErrorLowerBound, theory.ErrorBound)
CASES = [
    (name, {parameter: value}, parameter)
    for name, good in GOOD.items()
    for parameter in good.keys() & COMMON.keys()
    for value in COMMON[parameter]
] + [(name, *case) for name, cases in OWN.items() for case in cases]


@pytest.mark.parametrize(("name", "change", "word"), sorted(CASES, key=str))
def test_refusals(name, change, word):
    assert isinstance(getattr(theory, name)(**GOOD[name]), KINDS)
    with pytest.raises(ValueError, match=word):
        getattr(theory, name)(**{**GOOD[name], **change})


def test_a_bound_for_networks_may_not_fail_for_certain():
    with pytest.raises(ValueError, match="beta"):
        theory.network_risk_bound(100, 3, 1.0, 0.5, beta=1.0)


@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_a_selection_beyond_the_budget_is_refused(delta):
    bound = partial(theory.margin_risk_bound, 100, 3, 0.5, delta, 0.5)
    with pytest.raises(BudgetError):
        bound(selection_epsilon=1.0)
