"""The smallest sum of losses that coefficients in a ball can have, to within a public gap."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.optim.objectives.margin import MarginObjective
from dp_halfspace.optim.solvers.minimum import certified_minimum

__all__ = ["ball_minimum"]

FloatArray: TypeAlias = NDArray[np.float64]

# Part of the gap for the gradient that a certified minimiser leaves.
_OF_GRADIENT = 1.0 / 16.0
# Large multipliers are quick to solve for: they are tried first.
_SHRINKAGE = 8.0


def ball_minimum(objective: MarginObjective, radius: float, gap: float) -> float:
    """Return the sum of losses at a point of a ball that nearly minimises it.

    Parameters
    ----------
    objective : MarginObjective
        With a smooth convex loss and no linear term; its ridge plays no part.
    radius : float
        Public radius of the ball, positive.
    gap : float
        Public, positive: the result exceeds the minimum by at most this much.

    Notes
    -----
    A multiplier of the constraint is searched by bisection; each step is a certified
    minimisation. The search ends when ``<g, w> + radius |g|``, which bounds the excess over
    any point of the ball by convexity, is at most the gap. It always ends: the excess is
    continuous in the multiplier, and vanishes where the norm of the minimiser is the radius.
    The time taken depends on the data.

    References
    ----------
    ``docs/proofs/kernel.md``, section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.optim.solvers.ball_minimum import ball_minimum
    >>> from dp_halfspace.optim.objectives.losses import huber_hinge
    >>> from dp_halfspace.optim.objectives.margin import MarginObjective
    >>> from dp_halfspace.optim.design.rows import Rows
    >>> ones = np.ones(1)
    >>> J = MarginObjective(Rows(np.array([[0.5]]), row_bound=1.0), ones, ones,
    ...                     huber_hinge(0.5), ridge=1.0)
    >>> round(ball_minimum(J, radius=1.0, gap=1e-6), 3)
    0.5
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
        value, gradient = _without_ridge(penalised, w)
        if float(gradient @ w) + radius * float(np.linalg.norm(gradient)) <= gap:
            return value
        low, high = (low, ridge) if is_inside else (ridge, high)
        ridge = high / _SHRINKAGE if low == 0.0 else math.sqrt(low * high)


def _without_ridge(objective: MarginObjective, w: FloatArray) -> tuple[float, FloatArray]:
    """Return the sum of the losses and its gradient."""
    value, gradient = objective.value_and_gradient(w)
    return value - objective.ridge / 2.0 * float(w @ w), gradient - objective.ridge * w
