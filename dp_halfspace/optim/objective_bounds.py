"""What one record can do to a perturbed objective, and how little regularisation is enough.

Everything here is a function of public numbers, on the scale of the sum over records unless
it says otherwise. Notation and proofs are in ``docs/proofs/objective_perturbation.md``; every
bound is rounded up.
"""

from __future__ import annotations

import math
from typing import TypeAlias

from dp_halfspace.optim.erm import RIDGE_FLOOR, RidgeProblem

__all__ = [
    "Corners",
    "block_change",
    "gradient_change",
    "gradient_corners",
    "jacobian_log_ratio",
    "objective_ridge_floor",
    "record_curvature",
]

Corners: TypeAlias = tuple[tuple[int, float], ...]

# Rounding of the few operations that lead to a bound.
_UP = 1.0 + 2.0**-40


def gradient_change(problem: RidgeProblem) -> float:
    """Bound the Euclidean change of one gradient when a record is replaced.

    Parameters
    ----------
    problem : RidgeProblem

    Returns
    -------
    float
        At every point, on the scale of the sum over records. An attack does not raise it
        unless it reaches further than `row_norm`.

    References
    ----------
    ``docs/proofs/objective_perturbation.md``, Lemmas 2 and 8.
    """
    slope = math.sqrt(2.0) if problem.multinomial else problem.loss.lipschitz
    diameter = max(2.0 * problem.row_norm, _length(problem))
    return slope * problem.max_weight * diameter * _UP


def _length(problem: RidgeProblem) -> float:
    """Bound the norm of the gradient of a record's margin."""
    reach = 0.0 if problem.attack is None else problem.attack.reach
    return problem.row_norm + reach


def block_change(problem: RidgeProblem) -> float:
    """Bound the sum of the Euclidean changes of the blocks of one gradient.

    Parameters
    ----------
    problem : RidgeProblem

    Returns
    -------
    float
        A block is the part of one class of the softmax; there is one for a margin loss.

    References
    ----------
    ``docs/proofs/objective_perturbation.md``, Lemma 2.
    """
    # The changes of the K blocks of the softmax add up to more than their Euclidean norm.
    return gradient_change(problem) * (math.sqrt(2.0) * _UP if problem.multinomial else 1.0)


def gradient_corners(problem: RidgeProblem) -> Corners:
    """Count the corners of the set of gradient changes, by their length.

    Parameters
    ----------
    problem : RidgeProblem

    Returns
    -------
    tuple of (int, float)
        Number and length in units of :func:`gradient_change`, at least those of any pair of
        records.

    References
    ----------
    ``docs/proofs/objective_perturbation.md``, Lemma 4.
    """
    if not problem.multinomial:
        return ((1, 0.0), (2, 0.5), (1, 1.0))
    others = problem.n_classes - 1
    return (
        (1, 0.0),
        (2 * others, 0.5),
        (others * (others - 1), math.sqrt(0.75) * _UP),
        (others, 1.0),
    )


def record_curvature(problem: RidgeProblem) -> tuple[float, int]:
    """Bound the curvature that one record gives to the objective.

    Parameters
    ----------
    problem : RidgeProblem

    Returns
    -------
    mean : float
        Bound on the mean eigenvalue of its Hessian over the directions where it can have any;
        without that of the dual norm, if there is an attack.
    rank : int
        Number of these directions.
    """
    scale = problem.max_weight * _length(problem) ** 2
    if problem.multinomial:
        return scale / problem.n_classes, problem.n_classes - 1
    return scale * problem.loss.smoothness, 1


def jacobian_log_ratio(problem: RidgeProblem, ridge: float) -> float:
    """Bound the logarithm of the ratio of the Jacobians of neighbouring data sets.

    Parameters
    ----------
    problem : RidgeProblem
    ridge : float
        Coefficient of the regulariser, per mean loss.

    Returns
    -------
    float
        For one separate problem.

    References
    ----------
    Kifer, Smith and Thakurta (2012); ``docs/proofs/objective_perturbation.md``, Lemma 6.
    """
    curvature, rank = record_curvature(problem)
    return rank * math.log1p(curvature / (ridge * problem.n_samples)) * _UP


def objective_ridge_floor(problem: RidgeProblem, epsilon: float) -> float:
    """Smallest regulariser that leaves half of the budget to the noise.

    Parameters
    ----------
    problem : RidgeProblem
    epsilon : float
        Budget; infinity leaves what floating-point numbers need.

    Returns
    -------
    float
        Per mean loss. With two classes ``max_weight smoothness row_norm^2 / (n (exp(epsilon
        / 2) - 1))``, or ``1e-8 row_norm^2`` if that is larger.

    References
    ----------
    Kifer, Smith and Thakurta (2012), Algorithm 1.
    """
    curvature, rank = record_curvature(problem)
    share = epsilon / (2.0 * rank * problem.n_stacked)
    # 1 / (exp(share) - 1), without overflow.
    odds = math.exp(-share) / -math.expm1(-share)
    return max(curvature * odds / problem.n_samples * _UP, RIDGE_FLOOR * problem.row_norm**2)
