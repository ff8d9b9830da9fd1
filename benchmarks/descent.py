"""What the DP-SGD libraries do to a linear model: clip each record's gradient, add noise, step.

The steps are full-batch, which needs no sampling theorem. Replacing one record moves a sum of
clipped gradients by at most ``2 clip``, so ``steps`` noisy sums are mu-GDP with
``mu = 2 clip sqrt(steps) / noise``, exactly (Dong, Roth and Su, Corollary 3.3). A full batch also
serves the baseline: for the same number of steps, amplification by subsampling at best makes up for
the larger relative noise of a small batch. It saves time, and these models take little.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from benchmarks.predictors import Linear, row_norms, unit_ball, with_constant
from dp_halfspace.privacy import gdp_mu

FIXED = {"steps": 100, "clip": 1.0, "rate": 2.0, "momentum": 0.9}


@dataclass(frozen=True, slots=True)
class Descent:
    """Public numbers of a run; `noise` is the standard deviation on each sum."""

    steps: int
    clip: float
    noise: float

    @property
    def mu(self) -> float:
        """Gaussian privacy of all steps under replace-one."""
        return 2.0 * self.clip * math.sqrt(self.steps) / self.noise


def plan_descent(epsilon: float, delta: float, *, steps: int, clip: float) -> Descent:
    """Choose the noise that spends (epsilon, delta) exactly."""
    return Descent(steps, clip, 2.0 * clip * math.sqrt(steps) / gdp_mu(epsilon, delta))


def clipped_sum(
    Z: Any,
    norms: NDArray[np.float64],
    codes: NDArray[np.intp],
    W: NDArray[np.float64],
    clip: float,
) -> NDArray[np.float64]:
    """Sum the softmax gradients of all rows, each clipped to a norm of at most `clip`."""
    slopes = softmax(Z @ W, axis=1)
    slopes[np.arange(len(codes)), codes] -= 1.0
    lengths = np.linalg.norm(slopes, axis=1) * norms
    slopes *= np.minimum(1.0, clip / np.maximum(lengths, 1e-300))[:, None]
    return np.asarray(Z.T @ slopes)


def fit_dp_sgd(
    X: Any,
    y: NDArray[Any],
    *,
    epsilon: float,
    delta: float,
    data_norm: float,
    classes: Sequence[Any],
    steps: int,
    clip: float,
    rate: float,
    momentum: float,
    constant: float = 1.0,
) -> Linear:
    """Fit a softmax model; `rate` multiplies the noisy mean gradient of a heavy-ball step.

    `constant` is the value of the intercept's column beside rows of norm at most one.
    """
    plan = plan_descent(epsilon, delta, steps=steps, clip=clip)
    labels = np.asarray(classes)
    codes = np.searchsorted(labels, y)
    Z = with_constant(unit_ball(X, data_norm), constant)
    rng = np.random.default_rng()
    norms = row_norms(Z)
    W = np.zeros((Z.shape[1], len(labels)))
    V = np.zeros_like(W)
    for _ in range(steps):
        noisy = clipped_sum(Z, norms, codes, W, clip) + rng.normal(0.0, plan.noise, W.shape)
        V = momentum * V - rate / len(codes) * noisy
        W += V
    coef = W.T / np.r_[np.full(Z.shape[1] - 1, data_norm), 1.0 / constant]
    if len(labels) == 2:
        coef = coef[1:] - coef[:1]
    return Linear(coef[:, :-1], coef[:, -1], labels)
