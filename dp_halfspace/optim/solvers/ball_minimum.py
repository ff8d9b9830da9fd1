"""The smallest sum of losses that coefficients in a ball can have, to within a public gap."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dp_halfspace.optim.objectives.margin import MarginObjective
from dp_halfspace.optim.solvers.minimum import certified_minimum

# Part of the gap for the gradient that a certified minimiser leaves.
_OF_GRADIENT = 1.0 / 16.0
# Large multipliers are quick to solve for: they are tried first.
_SHRINKAGE = 8.0


def ball_minimum(objective: MarginObjective, radius: float, gap: float) -> float:
    """Return the sum of losses at a point of a ball that minimises it up to a public gap.

    The loss of the objective is smooth and convex; its ridge plays no part, and there is no
    linear term. A multiplier of the constraint is searched by bisection; each step is a certified
    minimisation. The search ends when ``<g, w> + radius |g|``, which bounds the excess over any
    point of the ball by convexity, is at most the gap. It always ends: the excess is continuous
    in the multiplier, and vanishes where the norm of the minimiser is the radius. The time taken
    depends on the data. Proof: ``docs/proofs/kernel.md``, section 4.
    """
    gamma = _OF_GRADIENT * gap / radius
    # Twice the length of the longest gradient, over the radius: the minimiser is inside.
    steepest = float(objective.weights.sum()) * objective.loss.lipschitz * objective.rows.row_bound
    low, high = 0.0, max(2.0 * steepest / radius, gap / radius**2)
    ridge = high
    while True:
        penalised = replace(objective, ridge=ridge)
        bound = math.sqrt(2.0 * penalised.initial_gap / ridge)
        w = certified_minimum(penalised, gamma, radius=bound)
        norm = float(np.linalg.norm(w))
        is_inside = norm <= radius
        if not is_inside:
            w = w * (radius / norm)
        value, gradient = penalised.value_and_gradient(w)
        gradient = gradient - ridge * w
        if float(gradient @ w) + radius * float(np.linalg.norm(gradient)) <= gap:
            return value - ridge / 2.0 * float(w @ w)
        low, high = (low, ridge) if is_inside else (ridge, high)
        ridge = high / _SHRINKAGE if low == 0.0 else math.sqrt(low * high)
