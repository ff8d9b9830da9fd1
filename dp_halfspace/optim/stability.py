"""How far the minimisers of neighbouring data sets can be apart.

Everything here is a function of public numbers. Notation, proofs and sources are in
``docs/proofs/stability.md``; every result is rounded up.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit, lambertw

from dp_halfspace.optim.losses import Loss
from dp_halfspace.optim.softmax_gradients import softmax_diameter

__all__ = [
    "logistic_diameter",
    "minimiser_radius",
    "minimiser_sensitivity",
    "softmax_radius",
    "softmax_sensitivity",
]

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


def minimiser_sensitivity(
    loss: Loss, *, row_norm: float, ridge: float, n_samples: int, max_weight: float = 1.0
) -> float:
    """Bound the distance of the minimisers of two data sets that differ in one record.

    Parameters
    ----------
    loss : Loss
        Convex margin loss. The logistic loss has a sharper bound than its slope gives.
    row_norm : float
        Bound on the Euclidean norm of a row, constant feature included.
    ridge : float
        Coefficient of the regulariser, per mean loss.
    n_samples : int
        Number of records, public.
    max_weight : float, default=1.0
        Largest public class weight.

    Returns
    -------
    float
        Euclidean sensitivity of the exact minimiser under replace-one adjacency.

    References
    ----------
    ``docs/proofs/stability.md``, Theorems 3 and 4.

    Examples
    --------
    >>> from dp_halfspace.optim import HINGE, minimiser_sensitivity
    >>> round(minimiser_sensitivity(HINGE, row_norm=1.0, ridge=0.1, n_samples=100), 6)
    0.2
    """
    reach = row_norm * minimiser_radius(loss, row_norm=row_norm, ridge=ridge, max_weight=max_weight)
    slope = logistic_diameter(reach) if loss.name == "logistic" else loss.slope_bound(reach)
    return 2.0 * max_weight * row_norm * slope / (ridge * n_samples) * _UP


def softmax_radius(
    n_classes: int, *, ridge: float, max_weight: float = 1.0, shift: float = 0.0
) -> float:
    """Bound the Frobenius norm of the multinomial logistic minimiser.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    ridge : float
        Coefficient of the regulariser, per mean loss.
    max_weight : float, default=1.0
        Largest public class weight.
    shift : float, default=0.0
        Subtracted from the score of a record's own class, at most 100.

    Returns
    -------
    float

    References
    ----------
    ``docs/proofs/stability.md``, section 4.

    Examples
    --------
    >>> from dp_halfspace.optim import softmax_radius
    >>> round(softmax_radius(3, ridge=1.0) ** 2, 6)
    0.463056
    """
    peak = float(lambertw((n_classes - 1) * math.exp(shift - 1.0)).real)
    return math.sqrt(max_weight * peak / ridge) * _UP


def softmax_sensitivity(
    n_classes: int,
    *,
    row_norm: float,
    ridge: float,
    n_samples: int,
    max_weight: float = 1.0,
    shift: float = 0.0,
) -> float:
    """Bound the Frobenius distance of two neighbouring multinomial logistic minimisers.

    Parameters
    ----------
    n_classes : int
        Number of classes; the bound is below ``2 sqrt(2) max_weight row_norm / (ridge n)``
        for every number.
    row_norm, ridge, n_samples, max_weight
        As in :func:`minimiser_sensitivity`.
    shift : float, default=0.0
        As in :func:`softmax_radius`.

    Returns
    -------
    float

    References
    ----------
    ``docs/proofs/stability.md``, Theorem 5.

    Examples
    --------
    >>> from dp_halfspace.optim import softmax_sensitivity
    >>> bound = softmax_sensitivity(10, row_norm=1.0, ridge=0.1, n_samples=100)
    >>> bound < 2 * 2**0.5 / (0.1 * 100)
    True
    """
    reach = row_norm * softmax_radius(n_classes, ridge=ridge, max_weight=max_weight, shift=shift)
    slope = softmax_diameter(n_classes, reach, shift=shift)
    return 2.0 * max_weight * row_norm * slope / (ridge * n_samples) * _UP
