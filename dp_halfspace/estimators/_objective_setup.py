"""The public numbers of a fit of ObjectivePerturbationClassifier, and its public map."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dp_halfspace.estimators._robust_options import planned_attack
from dp_halfspace.optim.attack import Attack
from dp_halfspace.optim.erm import RidgeProblem
from dp_halfspace.optim.losses import Loss, get_loss
from dp_halfspace.optim.objective_attack import attacked_ridge
from dp_halfspace.optim.objective_defaults import COMPONENTS, objective_defaults
from dp_halfspace.optim.objective_engine import ObjectiveEnginePlan, plan_objective_engine
from dp_halfspace.optim.objective_ridge import automatic_objective_ridge
from dp_halfspace.optim.rows import block_size
from dp_halfspace.privacy.randomness import public_generator
from dp_halfspace.projection import PROJECTIONS, LinearMap, draw_projection

if TYPE_CHECKING:
    from dp_halfspace.estimators.objective_perturbation import ObjectivePerturbationClassifier

__all__ = ["Setup", "attack_facts", "plan_setup"]

# With clipped rows: a good separator is guessed to need coefficients of this norm in units of
# 1 / data_norm, and an intercept of this size.
_SCORE_GUESS = 1.5
# Where privacy sets no smoothing of the dual norm: in units of 1 / data_norm.
_SMOOTHING = 1e-3
# In the same units: a smoothing of the order of the coefficients makes the adversary harmless.
_LARGEST_SMOOTHING = 4.0


@dataclass(frozen=True, slots=True)
class Setup:
    """What is fixed before the data are read.

    Attributes
    ----------
    plan : ObjectiveEnginePlan
    linear_map : LinearMap or None
        Public projection.
    bias : float or None
        Constant column; for unit rows relative to rows divided by their public scale.
    """

    plan: ObjectiveEnginePlan
    linear_map: LinearMap | None
    bias: float | None


def plan_setup(
    model: ObjectivePerturbationClassifier,
    X: Any,
    weights: NDArray[np.float64],
    delta: float,
    constant: float | None,
) -> Setup:
    """Fix the public numbers of a fit.

    Parameters
    ----------
    model : ObjectivePerturbationClassifier
        Its parameters.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Only shape and layout matter.
    weights : ndarray of shape (n_classes,)
        Public class weights.
    delta : float
    constant : float or None
        Constant column.

    Returns
    -------
    Setup

    Raises
    ------
    CertificateError, ValueError
        As ``fit`` of the estimator.
    """
    n_samples, n_features = X.shape
    # By the columns of the data: how much a projection drowns is what the rules weigh.
    columns = n_features + (constant is not None)
    defaults = objective_defaults(n_samples, columns, len(weights), float(model.epsilon), delta)
    linear_map = _draw_map(model, n_features, defaults.n_components)
    n_kept = n_features if linear_map is None else linear_map.n_components
    is_sparse = sparse.issparse(X) and linear_map is None
    row_norm = math.hypot(model.data_norm, constant or 0.0) * (1 + 2.0**-50)
    bias = constant
    if model.rows == "unit":
        bias = None if bias is None else defaults.bias * bias
        row_norm = 1.0
    shift = defaults.shift if model.shift == "auto" else float(model.shift)
    loss = get_loss(model.loss, **({"shift": shift} if model.loss == "shifted_logistic" else {}))
    problem = RidgeProblem(
        loss,
        n_samples,
        n_kept + (constant is not None),
        len(weights),
        row_norm=row_norm,
        block_rows=block_size(n_samples, n_kept, is_sparse=is_sparse),
        max_weight=float(weights.max()),
        attack=_attack(model, loss, n_features),
    )
    plan = plan_objective_engine(
        problem,
        float(model.epsilon),
        delta,
        ridge=_ridge(model, problem, delta, constant),
        metric=model.metric is not False and model.rows == "unit",
    )
    if model.metric is True and plan.metric is None:
        raise ValueError(
            'metric=True needs rows="unit", at most 512 columns and enough budget and rows'
        )
    return Setup(plan, linear_map, bias)


def _attack(model: ObjectivePerturbationClassifier, loss: Loss, n_features: int) -> Attack | None:
    """Return the adversary, or None without one."""
    attack = planned_attack(
        model.adversary_radius,
        model.adversary_norm,
        _SMOOTHING,
        loss=loss,
        data_norm=float(model.data_norm),
        n_features=n_features,
    )
    if attack is not None and model.rows == "unit":
        raise ValueError(
            'adversary_radius needs rows="clipped": a change of given size moves rows brought '
            "to norm one, or by a private metric, by amounts that depend on the row"
        )
    return attack


def _ridge(
    model: ObjectivePerturbationClassifier,
    problem: RidgeProblem,
    delta: float,
    constant: float | None,
) -> float | None:
    """Return the wanted regulariser; None leaves it to the rule for unit rows."""
    if model.alpha != "auto" or model.rows == "unit":
        return None if model.alpha == "auto" else float(model.alpha)
    guess = _SCORE_GUESS * math.hypot(1.0 / model.data_norm, 1.0 / constant if constant else 0.0)
    budget = (float(model.epsilon), delta)
    ridge = automatic_objective_ridge(problem, *budget, norm_guess=guess)
    if problem.attack is None:
        return ridge
    largest = _LARGEST_SMOOTHING / (model.data_norm * problem.attack.k)
    return attacked_ridge(problem, ridge, *budget, smoothing=largest)


def _draw_map(
    model: ObjectivePerturbationClassifier, n_features: int, wanted: int | None
) -> LinearMap | None:
    """Draw the public projection, if there is one."""
    kind, components = model.projection, model.n_components
    if kind in PROJECTIONS and model.rows == "clipped":
        raise ValueError('a projection needs rows="unit"')
    if kind == "auto":
        is_wanted = wanted is not None and math.isfinite(model.epsilon) and model.rows == "unit"
        kind = "rademacher" if is_wanted else None
    if kind is None:
        return None
    size = COMPONENTS if isinstance(components, str) else int(components)
    rng = public_generator(model.random_state, "projection")
    return draw_projection(kind, n_features, size, rng)


def attack_facts(attack: Attack | None, norm: object) -> dict[str, object]:
    """List what a record says of an adversary.

    Parameters
    ----------
    attack : Attack or None
        In the units of the data.
    norm : {2, "inf"}
        Parameter of the estimator.

    Returns
    -------
    dict
    """
    return {
        "adversary_radius": 0.0 if attack is None else attack.radius,
        "adversary_norm": "inf" if norm == "inf" else 2,
        "adversary_smoothing": 0.0 if attack is None else attack.smoothing,
    }
