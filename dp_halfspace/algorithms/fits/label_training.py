"""The ways in which LabelPrivateClassifier can fit, as plans of numbers that no label enters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.algorithms.perturbation.label_statistic import (
    label_statistic,
    statistic_minimiser,
    statistic_ridge,
    statistic_sensitivity,
)
from dp_halfspace.algorithms.selection.hypothesis_cover import linear_losses
from dp_halfspace.algorithms.selection.staged_search import SearchPlan, plan_search, run_search
from dp_halfspace.optim.design.rows import Rows
from dp_halfspace.privacy.accounting import calibrate
from dp_halfspace.privacy.discrete import RandomizedResponse
from dp_halfspace.privacy.events import Event, Pure
from dp_halfspace.privacy.mechanisms import (
    GaussianNoise,
    L2LaplaceNoise,
    NoNoise,
    Permit,
    additive_noise,
)

__all__ = ["LabelPlan", "plan_labels", "train_labels"]

FloatArray: TypeAlias = NDArray[np.float64]
LabelMechanism: TypeAlias = (
    GaussianNoise | L2LaplaceNoise | NoNoise | RandomizedResponse | SearchPlan
)

# One stage of the search per so many labels times epsilon.
_PER_STAGE, _MOST_STAGES = 200.0, 10


@dataclass(frozen=True, slots=True)
class LabelPlan:
    """What a fit is going to do.

    Attributes
    ----------
    mechanism : LabelMechanism
        What covers the labels: noise on the statistic, responses, or a search.
    sensitivity : float or None
        Of the statistic, or of the losses of the search.
    ridge : float or None
        None for a search.
    seed : int
        Public, of the candidates.
    """

    n_classes: int
    mechanism: LabelMechanism
    sensitivity: float | None
    ridge: float | None
    seed: int

    @property
    def events(self) -> tuple[Event, ...]:
        """What the fit costs."""
        if isinstance(self.mechanism, SearchPlan):
            return self.mechanism.events
        return (self.mechanism.event,)


def plan_labels(
    kind: str,
    *,
    n_samples: int,
    n_columns: int,
    n_classes: int,
    block_rows: int,
    epsilon: float,
    delta: float,
    ridge: float | None,
    n_candidates: int,
    seed: int,
) -> LabelPlan:
    """Plan one fit within a budget; no argument depends on a label."""
    if kind == "net":
        sensitivity = 1.0 + 2.0**-30 + 2.0**-50 * n_samples**2
        wanted = _MOST_STAGES if math.isinf(epsilon) else n_samples * epsilon / _PER_STAGE
        search = plan_search(
            epsilon=epsilon,
            delta=delta,
            n_candidates=n_candidates,
            n_stages=round(min(max(wanted, 1), _MOST_STAGES)),
            sensitivity=sensitivity,
        )
        return LabelPlan(n_classes, search, sensitivity, None, seed)
    size = n_columns * (n_classes if n_classes > 2 else 1)
    mechanism: LabelMechanism
    if kind == "randomized_response" and math.isfinite(epsilon):
        mechanism = _responses(n_classes, epsilon, delta)
        bound, variance = None, mechanism.variance * n_samples / n_columns
    else:
        bound = statistic_sensitivity(n_samples, n_classes, block_rows)
        mechanism = additive_noise(bound, epsilon, delta)
        variance = _noise_variance(mechanism, size)
    if ridge is None:
        ridge = statistic_ridge(n_samples, n_columns, n_classes, variance)
    return LabelPlan(n_classes, mechanism, bound, ridge, seed)


def _responses(n_classes: int, epsilon: float, delta: float) -> RandomizedResponse:
    """Spend a budget on randomized response; a positive `delta` buys a little epsilon."""
    if delta > 0:
        epsilon = calibrate(
            lambda pure: (Pure(pure),), epsilon, delta, lower=epsilon, upper=epsilon + 2.0
        )
    return RandomizedResponse(n_classes, epsilon)


def _noise_variance(mechanism: GaussianNoise | L2LaplaceNoise | NoNoise, size: int) -> float:
    """Return the variance of each coordinate of the noise."""
    if isinstance(mechanism, GaussianNoise):
        return mechanism.sigma**2
    if isinstance(mechanism, L2LaplaceNoise):
        return mechanism.scale**2 * (size + 1)
    return 0.0


def train_labels(
    plan: LabelPlan,
    rows: Rows,
    codes: NDArray[np.intp],
    weights: FloatArray,
    permit: Permit,
) -> FloatArray:
    """Run a plan.

    Parameters
    ----------
    rows : Rows of shape (n, D)
        Public unit rows.
    codes : ndarray of shape (n,), int
        Private labels.
    weights : ndarray of shape (K,)
        Public class weights; only a search uses them.
    """
    n_classes, mechanism = plan.n_classes, plan.mechanism
    if isinstance(mechanism, SearchPlan):
        n_outputs = n_classes if n_classes > 2 else 1
        points = rows.dense(np.arange(rows.shape[0]))
        losses = linear_losses(points, codes, weights / weights.max())
        size = n_outputs * rows.shape[1]
        found = run_search(mechanism, size, losses, permit, seed=plan.seed)
        return found.reshape(n_outputs, -1)
    assert plan.ridge is not None
    if isinstance(mechanism, RandomizedResponse):
        responses = permit.release(codes.astype(np.float64), mechanism).astype(np.intp)
        statistic = label_statistic(rows, responses, n_classes) / mechanism.contrast
    else:
        statistic = permit.release(label_statistic(rows, codes, n_classes), mechanism)
    return statistic_minimiser(rows, statistic, plan.ridge)
