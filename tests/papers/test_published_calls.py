"""The algorithms that docs/papers.md lists can be called as it says."""

import math

import pytest

import dp_halfspace as dp
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
