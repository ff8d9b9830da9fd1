"""Sensitivity of tilted and of adversarially robust minimisers.

Everything here is a function of public numbers. Notation and proofs are in
``docs/proofs/robust.md``; every bound is rounded up.
"""

from __future__ import annotations

import math

import numpy as np

from dp_halfspace.optim.attack import Attack
from dp_halfspace.optim.losses import Loss
from dp_halfspace.optim.stability import logistic_diameter, minimiser_radius

__all__ = [
    "attacked_radius",
    "attacked_sensitivity",
    "exact_smoothing",
    "loss_spread",
    "softmax_spread",
    "tilted_influence",
]

# Covers the rounding of every expression below.
_UP = 1.0 + 1e-9
_ROUNDS = 100
# The smoothing that stands in for an exact norm moves a minimiser by this part of what one
# record can, and no smoothing is smaller than this one.
_NEGLIGIBLE, _SMALLEST = 1e-2, 1e-60
# And however large the sensitivity is, by this part of the largest coefficients.
_FINE = 1e-6


def tilted_influence(tilt: float, spread: float, n_samples: int) -> float:
    """Bound the weight of one record in a tilted mean, in units of its weight in the mean.

    Parameters
    ----------
    tilt : float
        At least 0.
    spread : float
        Bound on the difference of the losses of two records at the minimiser.
    n_samples : int
        Number of records, public.

    Returns
    -------
    float
        ``n C / (C + n - 1)`` for ``C = exp(tilt spread)``: 1 without a tilt, at most `n_samples`.

    References
    ----------
    ``docs/proofs/robust.md``, Lemma 3.

    Examples
    --------
    >>> from dp_halfspace.optim.robust_bounds import tilted_influence
    >>> round(tilted_influence(1.0, 2.0, 1000), 3)
    7.342
    >>> tilted_influence(1e4, 1e4, 1000)
    1000.0
    """
    share = 1.0 / (1.0 + (n_samples - 1) * math.exp(-tilt * spread * _UP))
    return min(float(n_samples), n_samples * share * _UP)


def _highest_margin(row_norm: float, attack: Attack | None, n_columns: int, norm: float) -> float:
    """Bound the margins under attack at coefficients of at most a norm."""
    plain = row_norm * norm
    if attack is None or attack.n_attacked < n_columns:
        return plain
    return min(plain, max(row_norm - attack.radius, 0.0) * norm + attack.slack)


def loss_spread(
    loss: Loss,
    *,
    row_norm: float,
    radius: float,
    n_columns: int,
    attack: Attack | None = None,
    max_weight: float = 1.0,
    min_weight: float = 0.0,
) -> float:
    """Bound the difference of the weighted losses of any two records.

    Parameters
    ----------
    loss : Loss
    row_norm : float
        Bound on the Euclidean norm of a row, constant column included.
    radius : float
        Bound on the norm of the coefficients.
    n_columns : int
        Number of coefficients, constant column included.
    attack : Attack or None, default=None
    max_weight, min_weight : float
        Largest and smallest public class weight. Two records of different weights differ
        even where their margins agree.

    Returns
    -------
    float

    References
    ----------
    ``docs/proofs/robust.md``, Lemma 3.

    Examples
    --------
    >>> from dp_halfspace.optim.losses import LOGISTIC
    >>> from dp_halfspace.optim.robust_bounds import loss_spread
    >>> round(loss_spread(LOGISTIC, row_norm=1.0, radius=2.0, n_columns=3, min_weight=1.0), 6)
    2.0
    """
    lowest = (row_norm + (attack.reach if attack else 0.0)) * radius
    highest = _highest_margin(row_norm, attack, n_columns, radius) * _UP
    most = max_weight * float(loss.value(-lowest * _UP))
    least = min_weight * float(loss.value(min(highest, loss.minimiser)))
    return most - least + most * (_UP - 1.0)


def softmax_spread(
    n_classes: int,
    *,
    row_norm: float,
    radius: float,
    max_weight: float = 1.0,
    min_weight: float = 0.0,
    shift: float = 0.0,
) -> float:
    """Bound the difference of the weighted cross-entropies of any two records.

    Parameters
    ----------
    n_classes : int
    row_norm, radius : float
        Bounds on the norm of a row and on the Frobenius norm of the coefficients.
    max_weight, min_weight : float
        As in :func:`loss_spread`.
    shift : float, default=0.0
        Subtracted from the score of a record's own class, at most 100.

    Returns
    -------
    float

    References
    ----------
    ``docs/proofs/robust.md``, Lemma 3.

    Examples
    --------
    >>> from dp_halfspace.optim.robust_bounds import softmax_spread
    >>> round(softmax_spread(2, row_norm=1.0, radius=1.0, min_weight=1.0), 6)
    1.414214
    """
    size, others = row_norm * radius * _UP, math.log(n_classes - 1)
    # The own class last and the others alike: the lowest; one other class first: the highest.
    lowest = shift + others - math.sqrt(n_classes / (n_classes - 1)) * size
    highest = shift + others + math.sqrt(2.0) * size
    most = max_weight * float(np.logaddexp(0.0, highest))
    return most - min_weight * float(np.logaddexp(0.0, lowest)) + most * (_UP - 1.0)


def attacked_radius(
    loss: Loss,
    attack: Attack,
    *,
    row_norm: float,
    ridge: float,
    n_columns: int,
    max_weight: float = 1.0,
) -> float:
    """Bound the norm of the minimiser of a robust loss plus ``ridge / 2 ||w||^2``.

    Parameters
    ----------
    loss : Loss
        Monotone.
    attack : Attack
    row_norm : float
        Bound on the Euclidean norm of a row, constant column included.
    ridge : float
        Coefficient of the regulariser, per mean loss.
    n_columns : int
        Number of coefficients, constant column included.
    max_weight : float, default=1.0

    Returns
    -------
    float
        For every data set, with a tilt and without. At most that of the plain loss.

    References
    ----------
    ``docs/proofs/robust.md``, Lemma 2.

    Examples
    --------
    >>> from dp_halfspace.optim.attack import Attack
    >>> from dp_halfspace.optim.losses import LOGISTIC
    >>> from dp_halfspace.optim.robust_bounds import attacked_radius
    >>> sizes = {"row_norm": 1.0, "ridge": 1.0, "n_columns": 3}
    >>> bounds = [attacked_radius(LOGISTIC, Attack(r, 2, 3), **sizes) for r in (0.1, 0.5)]
    >>> [round(bound, 2) for bound in bounds]
    [0.37, 0.24]
    """
    radius = minimiser_radius(loss, row_norm=row_norm, ridge=ridge, max_weight=max_weight)
    # Whatever holds every minimiser may be put into the right side: every round is a bound.
    for _ in range(_ROUNDS):
        margin = _highest_margin(row_norm, attack, n_columns, radius) * _UP
        pull = loss.self_bound
        if margin < loss.self_argmax:
            pull = min(pull, float(loss.h(np.asarray(margin))))
        radius = min(radius, math.sqrt(max_weight * pull / ridge) * _UP)
    return radius


def attacked_sensitivity(
    loss: Loss,
    attack: Attack,
    *,
    row_norm: float,
    ridge: float,
    n_samples: int,
    n_columns: int,
    max_weight: float = 1.0,
) -> float:
    """Bound the distance of two neighbouring robust minimisers.

    Parameters
    ----------
    loss : Loss
        Monotone.
    attack : Attack
    row_norm, ridge, n_columns, max_weight
        As in :func:`attacked_radius`.
    n_samples : int
        Number of records, public.

    Returns
    -------
    float
        Without a tilt; with one, :func:`tilted_influence` multiplies it. Robustness has no
        price unless ``row_norm < attack.reach``, but for a part of what the logistic loss saves
        without an attack.

    References
    ----------
    ``docs/proofs/robust.md``, Theorem 4.

    Examples
    --------
    >>> from dp_halfspace.optim.attack import Attack
    >>> from dp_halfspace.optim.losses import huber_hinge
    >>> from dp_halfspace.optim.robust_bounds import attacked_sensitivity
    >>> sizes = {"row_norm": 1.0, "ridge": 0.1, "n_samples": 100, "n_columns": 4}
    >>> round(attacked_sensitivity(huber_hinge(), Attack(0.5, 2, 4), **sizes), 6)
    0.2
    """
    radius = attacked_radius(
        loss,
        attack,
        row_norm=row_norm,
        ridge=ridge,
        n_columns=n_columns,
        max_weight=max_weight,
    )
    farthest = row_norm + attack.reach
    reach = farthest * radius * _UP
    width = loss.slope_bound(reach) * max(2.0 * row_norm, farthest)
    if loss.name == "logistic":
        width = min(width, 2.0 * farthest * logistic_diameter(reach))
    return max_weight * width / (ridge * n_samples) * _UP


def exact_smoothing(
    loss: Loss,
    attack: Attack,
    *,
    row_norm: float,
    ridge: float,
    sensitivity: float,
    max_weight: float = 1.0,
) -> float:
    """Return a smoothing so small that the minimiser is that of the dual norm itself.

    Parameters
    ----------
    loss : Loss
    attack : Attack
    row_norm, ridge, max_weight
        As in :func:`attacked_radius`.
    sensitivity : float
        Of the minimiser.

    Returns
    -------
    float
        At most a millionth of the norm of a minimiser, and the two minimisers are apart by at
        most 1 % of `sensitivity`, on every data set. Privacy does not rest on this.

    References
    ----------
    ``docs/proofs/robust.md``, Lemma 6.

    Examples
    --------
    >>> from dp_halfspace.optim.attack import Attack
    >>> from dp_halfspace.optim.losses import LOGISTIC
    >>> from dp_halfspace.optim.robust_bounds import exact_smoothing
    >>> attack = Attack(0.1, "inf", n_attacked=5, smoothing=0.0)
    >>> exact_smoothing(LOGISTIC, attack, row_norm=1.0, ridge=0.1, sensitivity=0.01) < 1e-8
    True
    """
    radius = minimiser_radius(loss, row_norm=row_norm, ridge=ridge, max_weight=max_weight)
    slope = max_weight * loss.slope_bound((row_norm + attack.reach) * radius)
    per_width = slope * attack.smoothed(1.0).slack
    smoothing = ridge * (_NEGLIGIBLE * sensitivity) ** 2 / (2.0 * per_width)
    return float(max(_SMALLEST, min(smoothing, _FINE * radius)))
