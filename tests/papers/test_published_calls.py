"""The algorithms and theorems that docs/papers.md lists can be called as it says."""

import math

import pytest

import dp_halfspace as dp
from dp_halfspace import theory
from dp_halfspace.datasets import make_halfspace
from dp_halfspace.papers import stochastic

X, Y = make_halfspace(200, 40, margin=0.4, random_state=0)
STATED = {"classes": [-1, 1], "data_norm": 1.0}
SIGNS = {"projection": "rademacher", "n_components": 30, **STATED}


def margin(**params):
    return dp.AdaptiveMarginClassifier(**{**STATED, "margin": 0.4, **params})


def output(**params):
    return dp.OutputPerturbationClassifier(preconditioner=False, **STATED, **params)


def kernel(**params):
    return dp.PrivateKernelClassifier(solver="phased_prox", n_components=64, **STATED, **params)


def halfspace(**params):
    return dp.PureHalfspaceClassifier(**{"n_stages": 1, "n_directions": 1000, **STATED, **params})


def network(**params):
    return dp.PureNetworkClassifier(**{"n_candidates": 300, **STATED, **params})


def net(**params):
    return dp.LabelPrivateClassifier(mechanism="net", delta=0, n_fourier=100, **STATED, **params)


def ranking(**params):
    return dp.PrivateAUCClassifier(**STATED, **params)


ALGORITHMS = {
    "wang_zhu_wang_2025": [
        margin(**SIGNS),
        margin(margin=[0.4, 0.8], selection="gaussian", **SIGNS),
        dp.PrivateSearchCV(output(), {"alpha": [0.01, 0.1]}, selection="gaussian"),
        margin(margin=[0.4, 0.8], selection="gaussian", selection_score="population", **SIGNS),
        margin(iterate="mean"),
        margin(margin=[0.4, 0.8], selection="random_stopping", **SIGNS),
    ],
    "bassily_mohri_suresh_2022": [
        halfspace(**SIGNS),
        margin(solver="phased_prox", **{**SIGNS, "projection": "hadamard"}),
        kernel(kernel="rbf", margin=0.9, projection="hadamard"),
        kernel(kernel="polynomial", margin=0.4),
        network(n_hidden=(4, 3)),
        net(margin=0.1, n_stages=1),
        margin(solver="phased_prox"),
        kernel(kernel="rbf", margin="select"),
        kernel(kernel="polynomial", degree=1, margin="select"),
        dp.PrivateSearchCV(halfspace(), {"margin": [0.1, 0.4]}),
        dp.PrivateSearchCV(net(), {"margin": [0.1, 0.4]}),
        dp.PrivateSearchCV(network(), {"n_hidden": [(4,), (3,)]}),
    ],
    "lowy_razaviyayn_2021": [
        output(delta=0, optimizer="auto", project=True),
        *(output(optimizer=name) for name in ("sgd", "katyusha", "accelerated_gradient")),
        output(tilt=0.1, alpha=0.1),
        output(adversary_radius=0.1),
        output(loss="hinge", alpha=0.05),
    ],
    "wang_yang_lei_ying_zhang_2021": [
        ranking(mechanism="output"),
        ranking(mechanism="objective", delta=0),
        ranking(mechanism="output", loss="squared"),
        dp.ObjectivePerturbationClassifier(
            loss="logistic", rows="clipped", preconditioner=False, **STATED
        ),
    ],
    # Their Algorithm 3 is called in test_single_records.py.
    "nguyen_ullman_zakynthinou_2020": [halfspace(margin=0.4, **SIGNS)],
}
MODELS = [pytest.param(model, id=name) for name, models in ALGORITHMS.items() for model in models]


@pytest.mark.parametrize("model", MODELS)
def test_an_algorithm_can_be_called(model, monkeypatch):
    # The other optimisers go on from there.
    monkeypatch.setattr(stochastic, "_MOST_STOCHASTIC_STEPS", 200)
    assert 0.0 < model.fit(X, Y).privacy_.epsilon < math.inf


BUDGET = {"epsilon": 1.0, "delta": 1e-6}
SIZES = {"n_samples": 30_000, "n_features": 41, **BUDGET}
MARGIN = {**SIZES, "margin": 0.4, "n_steps": 900}
STRONG = {**SIZES, "lipschitz": 1.0, "strong_convexity": 0.1, "smoothness": 0.25}
PURE = {"n_samples": 10_000, "n_features": 40, "epsilon": 1.0, "margin": 0.4}
PAIRS = {"n_positive": 20_000, "n_negative": 80_000, "n_features": 10, **BUDGET, "radius": 2.0}
THEOREMS = [
    ("margin_risk_bound", {**MARGIN, "half_width": 0.5}),
    ("last_iterate_risk_bound", MARGIN),
    ("last_iterate_risk_bound", {**MARGIN, "n_candidates": 4, "population": True}),
    ("random_stopping_risk_bound", {**MARGIN, "n_candidates": 4}),
    ("pure_risk_bound", {**PURE, "n_outliers": 100}),
    ("phased_risk_bound", {**SIZES, "margin": 0.4, "hinge_loss": 0.1}),
    ("hinge_risk_bound", {**MARGIN, "hinge_loss": 0.1}),
    ("fourier_distortion", {"n_frequencies": 400, "n_samples": 3000}),
    ("kernel_risk_bound", {**BUDGET, "n_samples": 10**5, "n_frequencies": 50_000, "margin": 0.4}),
    ("network_risk_bound", {**PURE, "n_hidden": (4, 3)}),
    ("label_risk_bound", PURE),
    ("margin_selection_cost", {"n_candidates": 6, "sensitivity": 1e-3, "epsilon": 0.1}),
    ("selected_margin_risk_bound", MARGIN),
    ("strongly_convex_excess_risk", {**STRONG, "linear_model": True}),
    ("sgd_iterations", SIZES),
    ("katyusha_iterations", {**STRONG, "radius": 3.0}),
    ("population_risk_bound", {**STRONG, "linear_model": True}),
    ("tilted_risk_bound", {**SIZES, "tilt": 0.1, "radius": 3.0}),
    ("adversarial_risk_bound", {**SIZES, "attack_radius": 0.1, "radius": 3.0}),
    ("ranking_risk_bound", {**PAIRS, "smoothness": 0.25}),
    ("ranking_risk_bound", {**PAIRS, "smoothness": 2.0, "lipschitz": math.inf}),
    ("ranking_risk_bound", {**PAIRS, "smoothness": 0.25, "mechanism": "objective"}),
    ("objective_risk_bound", {**SIZES, "radius": 2.0, "smoothness": 0.25}),
    ("margin_sample_complexity", {"n_features": 40, **BUDGET, "margin": 0.4, "error": 0.1}),
    ("pure_lower_bound", {"n_features": 40, "epsilon": 1.0, "margin": 0.4}),
]


@pytest.mark.parametrize(("name", "arguments"), THEOREMS)
def test_a_theorem_can_be_called(name, arguments):
    bound = getattr(theory, name)(**arguments)
    assert math.isfinite(getattr(bound, "value", bound))
