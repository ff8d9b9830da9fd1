"""Algorithm 3 of Wang, Zhu and Wang (2025) as published.

"Adapting to Linear Separable Subsets with Large-Margin in Differentially Private Learning".

Kept from the paper: the grid of margins 1/n, 2/n, 4/n, ..., 1; the budget
``mu = epsilon / (2 sqrt(2 ln(1/delta)))``; the split of Algorithm 2, ``mu / sqrt(2 |grid|)`` for
each run and for each score; hinge parameter ``margin / 3``, projected rows clipped to norm 2,
hence sensitivity ``12 / margin``; the step size of Algorithm 5 for a reference of norm 1.

Changed, because it cannot run or would break the proof otherwise:

- T is capped. Algorithm 5 wants ``T = n^2 mu^2``, some 10^4 to 10^5 full passes for each of
  some 15 margins. The noise is computed for the T that is used, not for the T of the formula.
- The projection dimension ``k = log(|grid| (n+1)(n+2) / beta) / margin^2`` (the constant that the
  paper leaves open is taken as 1, beta = .05) reaches 10^9; where it is at least d the
  projection is left out, which loses no margin.
- Scores are error counts, with sensitivity 1, as in its Equation 3; its Step 3 takes averages.

Rows get a constant column inside their norm, because the paper has no intercept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.predictors import Linear, row_norms, unit_ball, with_constant

FloatArray = NDArray[np.float64]

STEP_CAP = 200
_BETA = 0.05
_CLIP = 2.0


@dataclass(frozen=True, slots=True)
class MarginChoice:
    """Public numbers of a run: `mu_each` is spent on every model and on every score."""

    margins: tuple[float, ...]
    mu_each: float
    steps: int

    def sensitivity(self, margin: float) -> float:
        """Change of a sum of hinge gradients when one record is replaced."""
        return 2.0 * _CLIP / (margin / 3.0)

    def noise(self, margin: float) -> float:
        """Return the standard deviation on each sum of gradients."""
        return self.sensitivity(margin) * math.sqrt(self.steps) / self.mu_each

    @property
    def score_noise(self) -> float:
        """Standard deviation on each error count."""
        return 1.0 / self.mu_each

    @property
    def mu(self) -> float:
        """Gaussian privacy of everything, from the noise that is added."""
        squares = [self.steps * (self.sensitivity(m) / self.noise(m)) ** 2 for m in self.margins]
        return math.sqrt(sum(squares) + len(self.margins) / self.score_noise**2)


def plan_margin(n: int, epsilon: float, delta: float, *, cap: int = STEP_CAP) -> MarginChoice:
    """Set the grid and split the budget as the paper does."""
    grid = {2**j / n for j in range(math.floor(math.log2(n)) + 1)} | {1.0}
    mu = epsilon / (2.0 * math.sqrt(2.0 * math.log(1.0 / delta)))
    each = mu / math.sqrt(2.0 * len(grid))
    return MarginChoice(tuple(sorted(grid)), each, min(math.ceil((n * each) ** 2), cap))


def projection_dimension(n: int, n_margins: int, margin: float) -> int:
    """Return the number of rows of the projection for one margin."""
    return math.ceil(math.log(n_margins * (n + 2) * (n + 1) / _BETA) / margin**2)


def hinge_sums(Z: Any, signs: FloatArray, W: FloatArray, hinge: FloatArray) -> FloatArray:
    """Gradients of the summed hinge losses; column j of W has the parameter ``hinge[j]``."""
    active = signs[:, None] * (Z @ W) < hinge
    return -np.asarray(Z.T @ (active * signs[:, None])) / hinge


def descend(Z: Any, signs: FloatArray, margins: Sequence[float], plan: MarginChoice) -> FloatArray:
    """Algorithm 5 for several margins at once; returns the average iterates as columns."""
    n, k = Z.shape
    rng = np.random.default_rng()
    hinge = np.array(margins) / 3.0
    noise = np.array([plan.noise(m) for m in margins])
    change = np.array([plan.sensitivity(m) for m in margins])
    rate = 1.0 / np.sqrt(plan.steps * ((n * change) ** 2 + k * noise**2))
    W = np.zeros((k, len(hinge)))
    total = np.zeros_like(W)
    for _ in range(plan.steps):
        total += W
        W = W - rate * (hinge_sums(Z, signs, W, hinge) + noise * rng.standard_normal(W.shape))
    return total / plan.steps


def fit_published_margin(
    X: Any,
    y: NDArray[Any],
    *,
    epsilon: float,
    delta: float,
    data_norm: float,
    classes: Sequence[Any],
    cap: int = STEP_CAP,
) -> Linear:
    """Train one model per margin and release the one with the fewest errors, plus noise."""
    labels = np.asarray(classes)
    signs = np.where(y == labels[1], 1.0, -1.0)
    Z = with_constant(unit_ball(X, data_norm)) / math.sqrt(2.0)
    n, d = Z.shape
    plan = plan_margin(n, epsilon, delta, cap=cap)
    rng = np.random.default_rng()
    sizes = {m: projection_dimension(n, len(plan.margins), m) for m in plan.margins}
    unprojected = [m for m in plan.margins if sizes[m] >= d]
    columns = [descend(Z, signs, unprojected, plan)]
    for margin in plan.margins:
        if sizes[margin] < d:
            projection = rng.choice([-1.0, 1.0], (sizes[margin], d)) / math.sqrt(sizes[margin])
            shadow = np.asarray(Z @ projection.T)
            shadow *= np.minimum(1.0, _CLIP / np.maximum(row_norms(shadow), 1e-300))[:, None]
            columns.append(projection.T @ descend(shadow, signs, [margin], plan))
    candidates = np.hstack(columns)
    errors = np.sum(signs[:, None] * (Z @ candidates) <= 0.0, axis=0)
    best = candidates[:, np.argmin(errors + rng.normal(0.0, plan.score_noise, len(errors)))]
    return Linear(best[None, :-1] / data_norm, best[-1:], labels)
