"""The ways in which PrivateKernelClassifier can fit, as plans of public numbers."""

from __future__ import annotations

import math
from dataclasses import replace

from dp_halfspace.algorithms.engine.defaults import additive_defaults, kernel_engine_defaults
from dp_halfspace.algorithms.engine.training import Problem, Training, gradient_training
from dp_halfspace.algorithms.margin_training import check_phased_prox, plan_training
from dp_halfspace.privacy.profiles import gdp_mu
from dp_halfspace.projection import AdditiveMap, FeatureMap

# The constant beside columns with features, relative to that beside columns alone.
_CONSTANT = 2.5


def plan_kernel_training(
    problem: Problem,
    solver: str,
    margin: float | None,
    epsilon: float,
    delta: float,
    *,
    feature_map: FeatureMap,
) -> Training:
    """Plan one fit on features of `problem`, dense and without a projection, within a budget.

    Pure epsilon is that of a perturbed objective.
    """
    is_pure = delta == 0 and math.isfinite(epsilon)
    columns = feature_map if isinstance(feature_map, AdditiveMap) else None
    if columns is not None and not columns.is_linear and problem.intercept is not None:
        problem = replace(problem, intercept=_CONSTANT * problem.intercept)
    check_phased_prox(solver, problem.n_classes, is_pure=is_pure)
    if solver == "noisy_gd" and margin is None and not is_pure:
        mu = gdp_mu(epsilon, delta)
        defaults = kernel_engine_defaults(problem.n_classes)
        if columns is not None:
            sizes = (problem.n_samples, problem.n_columns(), problem.n_classes)
            lead, behind = columns.n_features_in, columns.relative_length
            defaults = additive_defaults(*sizes, mu, lead=lead, behind=behind)
        return gradient_training(problem, defaults, mu)
    # Directions that favour few columns are made for columns that mean something.
    if is_pure:
        solver = "objective_perturbation"
    return plan_training(problem, solver, margin, epsilon, delta)
