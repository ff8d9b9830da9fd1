"""Where minimisers and gradients of a margin loss can be.

Everything here is a function of public numbers. Notation, proofs and sources are in
``docs/proofs/stability.md``; every result is rounded up.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit

from dp_halfspace.optim.objectives.losses import Loss

__all__ = ["logistic_diameter", "minimiser_radius"]

# Covers the rounding of every expression below, and the tolerance of the root finders.
_UP = 1.0 + 1e-9


def minimiser_radius(
    loss: Loss, *, row_norm: float, ridge: float, max_weight: float = 1.0
) -> float:
    """Bound the norm of the minimiser of the mean loss plus ``ridge / 2 ||w||^2``.

    Parameters
    ----------
    loss : Loss
        Convex margin loss.
    row_norm : float
        Bound on the Euclidean norm of a row, constant feature included.
    ridge : float
        Coefficient of the regulariser, per mean loss.
    max_weight : float, default=1.0
        Largest public class weight.

    Returns
    -------
    float
        Radius of a ball round zero that holds the minimiser of every data set.

    References
    ----------
    ``docs/proofs/stability.md``, Lemma 1.

    Examples
    --------
    >>> from dp_halfspace.optim import LOGISTIC, minimiser_radius
    >>> round(minimiser_radius(LOGISTIC, row_norm=1.0, ridge=0.01), 4)
    5.277
    """
    outer = math.sqrt(max_weight * loss.self_bound / ridge)
    if row_norm * outer >= loss.self_argmax:
        return outer * _UP

    def excess(radius: float) -> float:
        slope = abs(float(loss.derivative(np.asarray(row_norm * radius))))
        return ridge * radius - max_weight * row_norm * slope

    return float(brentq(excess, 0.0, outer * _UP, xtol=1e-300, rtol=1e-12)) * _UP


def logistic_diameter(a: float) -> float:
    """Half the diameter of the gradients of the logistic loss at a vector of norm `a`.

    Parameters
    ----------
    a : float
        Norm of the vector times the norm of a row.

    Returns
    -------
    float
        ``max sin(t) sigmoid(a cos(t))``, in units of the norm of a row; between 1/2 and 1.

    References
    ----------
    ``docs/proofs/stability.md``, Theorem 4.

    Examples
    --------
    >>> from dp_halfspace.optim import logistic_diameter
    >>> round(logistic_diameter(1.0), 6)
    0.549548
    """
    found = minimize_scalar(
        lambda t: -math.sin(t) * float(expit(a * math.cos(t))),
        bounds=(0.0, math.pi / 2),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return min(1.0, -float(found.fun) * _UP)
