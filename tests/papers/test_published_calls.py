"""The algorithms and theorems that docs/papers.md lists can be called as it says."""

from __future__ import annotations

import math

import dp_halfspace as dp
from dp_halfspace import theory
from dp_halfspace.datasets import make_halfspace


def check(models, bounds):
    assert all(model.privacy_.epsilon > 0 for model in models)
    assert all(math.isfinite(getattr(bound, "value", bound)) for bound in bounds)


def test_wang_zhu_wang_2025():
    X, y = make_halfspace(3000, 60, margin=0.4, random_state=0)
    public = {"data_norm": 1.0, "classes": [-1, 1], "projection": "rademacher", "n_components": 40}
    algorithm_1 = dp.AdaptiveMarginClassifier(margin=0.4, **public).fit(X, y)
    algorithm_2 = dp.AdaptiveMarginClassifier(
        margin=[0.4, 0.8], selection="gaussian", **public
    ).fit(X, y)
    algorithm_2_any = dp.PrivateSearchCV(
        dp.OutputPerturbationClassifier(classes=[-1, 1], data_norm=1.0, preconditioner=False),
        {"alpha": [0.01, 0.1]},
        selection="gaussian",
    ).fit(X, y)
    algorithm_3 = dp.AdaptiveMarginClassifier(
        margin=[2.0**-j for j in range(2)], selection="gaussian", **public
    ).fit(X, y)
    equation_3 = dp.AdaptiveMarginClassifier(
        margin=[0.4, 0.8], selection="gaussian", selection_score="population", **public
    ).fit(X, y)
    algorithm_5 = dp.AdaptiveMarginClassifier(
        margin=0.4, iterate="mean", classes=[-1, 1], data_norm=1.0
    ).fit(X, y)
    # Algorithm 4 is its selection.
    algorithm_6 = dp.AdaptiveMarginClassifier(
        margin=[0.4, 0.8], selection="random_stopping", **public
    ).fit(X, y)

    (steps,) = algorithm_5.privacy_.events
    sizes = (30_000, 61, 1.0, 1e-6, 0.4)
    lemma_d_1 = theory.margin_risk_bound(*sizes, n_steps=steps.count, half_width=0.5)
    lemma_d_3 = theory.last_iterate_risk_bound(*sizes, n_steps=steps.count)
    theorem_6_5 = theory.last_iterate_risk_bound(*sizes, n_steps=steps.count, n_candidates=4)
    theorem_6_7 = theory.last_iterate_risk_bound(
        *sizes, n_candidates=4, population=True, n_steps=steps.count
    )
    theorem_7_1 = theory.random_stopping_risk_bound(*sizes, n_candidates=4, n_steps=steps.count)
    check(
        [
            algorithm_1,
            algorithm_2,
            algorithm_2_any,
            algorithm_3,
            equation_3,
            algorithm_5,
            algorithm_6,
        ],
        [lemma_d_1, lemma_d_3, theorem_6_5, theorem_6_7, theorem_7_1],
    )


def test_bassily_mohri_suresh_2022():
    X, y = make_halfspace(1500, 40, margin=0.4, random_state=0)
    public = {"classes": [-1, 1], "data_norm": 1.0}
    algorithm_1 = dp.PureHalfspaceClassifier(
        projection="rademacher", n_components=20, n_stages=1, n_directions=1000, **public
    ).fit(X, y)
    algorithm_2 = dp.AdaptiveMarginClassifier(
        margin=0.4, solver="phased_prox", projection="hadamard", n_components=30, **public
    ).fit(X, y)
    algorithm_3 = dp.PrivateKernelClassifier(
        kernel="rbf",
        margin=0.9,
        solver="phased_prox",
        n_components=200,
        projection="hadamard",
        **public,
    ).fit(X, y)
    section_4 = dp.PrivateKernelClassifier(
        kernel="polynomial", margin=0.4, solver="phased_prox", n_components=100, **public
    ).fit(X, y)
    section_5 = dp.PureNetworkClassifier(n_hidden=(4, 3), n_candidates=500, **public).fit(X, y)
    algorithm_4 = dp.LabelPrivateClassifier(
        mechanism="net", margin=0.1, delta=0, n_stages=1, n_fourier=100, **public
    ).fit(X, y)
    algorithm_5 = dp.AdaptiveMarginClassifier(margin=0.4, solver="phased_prox", **public).fit(X, y)
    algorithm_6 = dp.PrivateKernelClassifier(
        kernel="rbf", margin="select", solver="phased_prox", n_components=64, **public
    ).fit(X, y)
    corollary_f_2 = dp.PrivateKernelClassifier(
        kernel="polynomial",
        degree=1,
        margin="select",
        solver="phased_prox",
        n_components=64,
        **public,
    ).fit(X, y)
    around_algorithm_1 = dp.PrivateSearchCV(
        dp.PureHalfspaceClassifier(n_stages=1, n_directions=2000, **public), {"margin": [0.1, 0.4]}
    ).fit(X, y)
    around_algorithm_4 = dp.PrivateSearchCV(
        dp.LabelPrivateClassifier(mechanism="net", delta=0, n_fourier=100, **public),
        {"margin": [0.1, 0.4]},
    ).fit(X, y)
    around_section_5 = dp.PrivateSearchCV(
        dp.PureNetworkClassifier(n_candidates=200, **public), {"n_hidden": [(4,), (3,)]}
    ).fit(X, y)

    theorem_3_1 = theory.pure_risk_bound(10_000, 40, epsilon=1.0, margin=0.4, n_outliers=100)
    theorem_3_2 = theory.phased_risk_bound(100_000, 40, 1.0, 1e-6, margin=0.4, hinge_loss=0.1)
    full_batch = theory.hinge_risk_bound(
        100_000, 40, 1.0, 1e-6, margin=0.4, hinge_loss=0.1, n_steps=2000
    )
    theorem_4_1 = theory.fourier_distortion(400, n_samples=3000)
    theorem_4_2 = theory.kernel_risk_bound(100_000, 50_000, 1.0, 1e-6, margin=0.4, n_steps=2000)
    theorem_5_1 = theory.network_risk_bound(100_000, 40, epsilon=1.0, margin=0.4, n_hidden=(4, 3))
    theorem_6_1 = theory.label_risk_bound(10_000, 40, epsilon=1.0, margin=0.4)
    lemma_f_1 = theory.margin_selection_cost(
        6, theory.margin_score_sensitivity(3000, 0.25), epsilon=0.1
    )
    bound_f_2 = theory.selected_margin_risk_bound(
        1_000_000, 40, 1.0, 1e-6, margin=0.4, n_steps=2000
    )
    check(
        [
            algorithm_1,
            algorithm_2,
            algorithm_3,
            section_4,
            section_5,
            algorithm_4,
            algorithm_5,
            algorithm_6,
            corollary_f_2,
            around_algorithm_1,
            around_algorithm_4,
            around_section_5,
        ],
        [
            theorem_3_1,
            theorem_3_2,
            full_batch,
            theorem_4_1,
            theorem_4_2,
            theorem_5_1,
            theorem_6_1,
            lemma_f_1,
            bound_f_2,
        ],
    )


def test_lowy_razaviyayn_2021():
    X, y = make_halfspace(1500, 10, margin=0.2, random_state=0)
    public = {"data_norm": 1, "classes": [-1, 1], "preconditioner": False}
    algorithm_1 = dp.OutputPerturbationClassifier(
        delta=0, optimizer="auto", project=True, **public
    ).fit(X, y)
    algorithm_2 = dp.OutputPerturbationClassifier(optimizer="sgd", **public).fit(X, y)
    algorithm_3 = dp.OutputPerturbationClassifier(optimizer="katyusha", **public).fit(X, y)
    algorithm_4 = dp.OutputPerturbationClassifier(optimizer="accelerated_gradient", **public).fit(
        X, y
    )
    section_5_1 = dp.OutputPerturbationClassifier(tilt=0.1, alpha=0.1, **public).fit(X, y)
    algorithm_6 = dp.OutputPerturbationClassifier(adversary_radius=0.1, **public).fit(X, y)
    algorithm_7 = dp.OutputPerturbationClassifier(loss="hinge", alpha=0.05, **public).fit(X, y)

    sizes = (3000, 11, 1.0, 1e-6)
    strong = {"lipschitz": 1.0, "strong_convexity": 0.1, "smoothness": 0.25}
    corollary_2_2 = theory.strongly_convex_excess_risk(*sizes, linear_model=True, **strong)
    corollary_3_1 = theory.sgd_iterations(*sizes)
    corollary_3_2 = theory.katyusha_iterations(*sizes, radius=3.0, **strong)
    proposition_4_2 = theory.population_risk_bound(*sizes, linear_model=True, **strong)
    theorem_5_1 = theory.tilted_risk_bound(*sizes, tilt=0.1, radius=3.0)
    theorem_5_3 = theory.adversarial_risk_bound(*sizes, attack_radius=0.1, radius=3.0)
    check(
        [algorithm_1, algorithm_2, algorithm_3, algorithm_4, section_5_1, algorithm_6, algorithm_7],
        [corollary_2_2, corollary_3_1, corollary_3_2, proposition_4_2, theorem_5_1, theorem_5_3],
    )


def test_wang_yang_lei_ying_zhang_2021():
    X, y = make_halfspace(1500, 10, margin=0.2, random_state=0)
    public = {"classes": [-1, 1], "data_norm": 1.0}
    algorithm_1 = dp.PrivateAUCClassifier(mechanism="output", **public).fit(X, y)
    algorithm_2 = dp.PrivateAUCClassifier(mechanism="objective", delta=0, **public).fit(X, y)
    appendix_b = dp.PrivateAUCClassifier(mechanism="output", loss="squared", **public).fit(X, y)
    algorithm_3 = dp.ObjectivePerturbationClassifier(
        loss="logistic", rows="clipped", preconditioner=False, **public
    ).fit(X, y)

    sizes = (20_000, 80_000, 10, 1.0, 1e-6)
    theorem_3 = theory.ranking_risk_bound(*sizes, radius=2.0, smoothness=0.25)
    theorem_4 = theory.ranking_risk_bound(*sizes, radius=2.0, smoothness=2.0, lipschitz=math.inf)
    theorem_5 = theory.ranking_risk_bound(
        *sizes, radius=2.0, smoothness=0.25, mechanism="objective"
    )
    theorem_7 = theory.objective_risk_bound(100_000, 10, 1.0, 1e-6, radius=2.0, smoothness=0.25)
    check(
        [algorithm_1, algorithm_2, appendix_b, algorithm_3],
        [theorem_3, theorem_4, theorem_5, theorem_7],
    )


def test_nguyen_ullman_zakynthinou_2020():
    X, y = make_halfspace(1500, 40, margin=0.4, random_state=0)
    public = {
        "data_norm": 1.0,
        "classes": [-1, 1],
        "projection": "rademacher",
        "n_components": 30,
        "margin": 0.4,
    }
    algorithm_1 = dp.AdaptiveMarginClassifier(**public).fit(X, y)
    algorithm_2 = dp.PureHalfspaceClassifier(n_stages=1, n_directions=1000, **public).fit(X, y)
    algorithm_3 = dp.AdaptiveMarginClassifier(
        margin=0.4, solver="noisy_sgd", iterate="last", epsilon=8, classes=[-1, 1], data_norm=1.0
    ).fit(X[:30], y[:30])
    theorem_6 = theory.margin_sample_complexity(40, 1.0, 1e-6, 0.4, error=0.1)
    theorem_11 = theory.pure_risk_bound(10_000, 40, epsilon=1.0, margin=0.4)
    theorem_12 = theory.pure_lower_bound(40, epsilon=1.0, margin=0.4)
    check(
        [algorithm_1, algorithm_2, algorithm_3],
        [theorem_6, theorem_11, theorem_12],
    )
