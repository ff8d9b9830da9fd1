"""The least loss of a vector in a ball, by which Bassily, Mohri and Suresh (2022) score a margin.

Proof: ``docs/proofs/kernel.md``, section 4.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dp_halfspace.optim.objectives import MarginObjective
from dp_halfspace.optim.solvers import certified_minimum

# Share of the gap for the gradient at a certified minimiser.
_OF_GRADIENT = 1.0 / 16.0
# Divisor of the multiplier from one problem to the next. Problems with large multipliers are solved
# quickly, so they come first.
_MULTIPLIER_DIVISOR = 8.0


def ball_minimum(objective: MarginObjective, radius: float, gap: float) -> float:
    """Return the smallest sum of losses in a ball, up to a public gap.

    The loss of the objective is smooth and convex; its ridge is ignored, and it has no linear term.
    A multiplier of the constraint is found by bisection, where each step is a certified
    minimisation. The search ends when ``<g, w> + radius |g|``, which by convexity bounds the excess
    over the minimum in the ball, is at most the gap. It always ends, because this bound is
    continuous in the multiplier, and small if the norm of the minimiser is the radius. The running
    time depends on the data. Proof: ``docs/proofs/kernel.md``, section 4.
    """
    gamma = _OF_GRADIENT * gap / radius
    # The first multiplier is twice the largest gradient over the radius, so that the minimiser is
    # inside the ball.
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
        ridge = high / _MULTIPLIER_DIVISOR if low == 0.0 else math.sqrt(low * high)
