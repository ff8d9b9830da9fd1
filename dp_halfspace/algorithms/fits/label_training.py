"""The ways in which LabelPrivateClassifier can fit, as plans of numbers that no label enters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.algorithms.perturbation.label_statistic import (
    label_statistic,
    statistic_minimiser,
    statistic_ridge,
    statistic_sensitivity,
)
from dp_halfspace.algorithms.plan import FloatArray
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

# One stage of the search per so many labels times epsilon.
_PER_STAGE, _MOST_STAGES = 200.0, 10


@dataclass(frozen=True, slots=True)
class StatisticPlan:
    """A noisy sum of labelled rows, or one of randomized responses, and a minimiser made of it.

    `sensitivity` is that of the sum; responses have none.
    """

    n_classes: int
    mechanism: GaussianNoise | L2LaplaceNoise | NoNoise | RandomizedResponse
    sensitivity: float | None
    ridge: float

    @property
    def events(self) -> tuple[Event, ...]:
        """What a run releases."""
        return (self.mechanism.event,)

    @property
    def public(self) -> dict[str, Any]:
        """What a record says about it."""
        return {"sensitivity": self.sensitivity, "alpha": self.ridge}

    def run(
        self, rows: Rows, classes: NDArray[np.intp], weights: FloatArray, permit: Permit
    ) -> FloatArray:
        """Release the sum and minimise on public unit rows; class weights have no part in it."""
        del weights
        if isinstance(self.mechanism, RandomizedResponse):
            responses = permit.release(classes.astype(np.float64), self.mechanism).astype(np.intp)
            statistic = label_statistic(rows, responses, self.n_classes) / self.mechanism.contrast
        else:
            exact = label_statistic(rows, classes, self.n_classes)
            statistic = permit.release(exact, self.mechanism)
        return statistic_minimiser(rows, statistic, self.ridge)


@dataclass(frozen=True, slots=True)
class CoverPlan:
    """A search among random linear classifiers, drawn from a public seed."""

    n_classes: int
    search: SearchPlan
    sensitivity: float
    seed: int

    @property
    def events(self) -> tuple[Event, ...]:
        """What a run releases."""
        return self.search.events

    @property
    def public(self) -> dict[str, Any]:
        """What a record says about it."""
        return {"sensitivity": self.sensitivity, "alpha": None}

    def run(
        self, rows: Rows, classes: NDArray[np.intp], weights: FloatArray, permit: Permit
    ) -> FloatArray:
        """Choose a classifier of public unit rows by its weighted errors; see `Plan`."""
        n_outputs = self.n_classes if self.n_classes > 2 else 1
        points = rows.dense(np.arange(rows.shape[0]))
        losses = linear_losses(points, classes, weights / weights.max())
        size = n_outputs * rows.shape[1]
        found = run_search(self.search, size, losses, permit, seed=self.seed)
        return found.reshape(n_outputs, -1)


def plan_labels(
    kind: str,
    rows: Rows,
    n_classes: int,
    *,
    epsilon: float,
    delta: float,
    ridge: float | None,
    n_candidates: int,
    seed: int,
) -> StatisticPlan | CoverPlan:
    """Plan one fit on public rows within a budget; no argument depends on a label."""
    n_samples, n_columns = rows.shape
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
        return CoverPlan(n_classes, search, sensitivity, seed)
    mechanism: GaussianNoise | L2LaplaceNoise | NoNoise | RandomizedResponse
    if kind == "randomized_response" and math.isfinite(epsilon):
        mechanism = _responses(n_classes, epsilon, delta)
        bound, variance = None, mechanism.variance * n_samples / n_columns
    else:
        bound = statistic_sensitivity(n_samples, n_classes, rows.block_rows)
        mechanism = additive_noise(bound, epsilon, delta)
        size = n_columns * (n_classes if n_classes > 2 else 1)
        variance = _noise_variance(mechanism, size)
    if ridge is None:
        ridge = statistic_ridge(n_samples, n_columns, n_classes, variance)
    return StatisticPlan(n_classes, mechanism, bound, ridge)


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
