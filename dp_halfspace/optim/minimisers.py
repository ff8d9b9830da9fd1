"""The separate minimisations behind one release: one, or one of each class against the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.optim.hinge import certified_hinge
from dp_halfspace.optim.mapped_rows import Design
from dp_halfspace.optim.minimum import OPTIMIZERS, Optimizer, certified_minimum
from dp_halfspace.optim.objectives import MarginObjective, Objective, SoftmaxObjective
from dp_halfspace.optim.robust_objective import RobustObjective
from dp_halfspace.optim.smoothing_path import smoothing_path
from dp_halfspace.optim.tilted_softmax import TiltedSoftmaxObjective

if TYPE_CHECKING:
    from dp_halfspace.optim.erm import RidgeProblem

# Attacks with a smoothing of at least this need no path to their minimiser.
_SMOOTH_ENOUGH = 1e-4

__all__ = ["certified_minimisers"]

FloatArray: TypeAlias = NDArray[np.float64]


def certified_minimisers(
    problem: RidgeProblem,
    rows: Design,
    codes: NDArray[np.intp],
    weights: FloatArray,
    *,
    ridge: float,
    tolerance: float,
    radius: float,
    linear: Sequence[FloatArray] | None = None,
    optimizer: Optimizer = "auto",
    surrogate: Design | None = None,
) -> FloatArray:
    """Return certified minimisers, one row for each released halfspace.

    Parameters
    ----------
    problem : RidgeProblem
    rows : Design
        Of the public norm of the problem, constant column included.
    codes : ndarray of shape (n_samples,)
        Class of each record.
    weights : ndarray of shape (n_classes,)
        Public class weights.
    ridge : float
        Coefficient of the regulariser, per mean loss.
    tolerance : float
        What is certified for each minimisation: a norm of the gradient, or for the hinge a
        distance.
    radius : float
        Public bound on the norm of each separate minimiser.
    linear : sequence of ndarray or None, default=None
        Linear term of each separate minimisation.
    optimizer : str or callable, default="auto"
        As in :func:`~dp_halfspace.optim.certified_minimum`. Under an attack with nearly no
        smoothing the minimisers of larger smoothings are followed first, whatever the name.
    surrogate : Design or None, default=None
        The same rows with cheaper passes, for the path to a minimiser; certificates use
        `rows`.

    Returns
    -------
    ndarray of shape (1, n_columns) or (n_classes, n_columns)
        Within the certified distance of the exact minimisers on every data set. Private: they
        must be perturbed before anybody sees them.
    """
    total_ridge = ridge * problem.n_samples
    record_weights = weights[codes]
    # Every point that is looked at has at most this norm.
    farthest = radius + 2.0 * tolerance / total_ridge

    def objective(design: Design, k: int, slope: FloatArray | None) -> Objective:
        if problem.multinomial:
            shift = problem.loss.shift
            plain = SoftmaxObjective(
                design, codes, problem.n_classes, record_weights, total_ridge, slope, shift
            )
            return TiltedSoftmaxObjective(plain, problem.tilt) if problem.tilt else plain
        signs = np.where(codes == k, 1.0, -1.0)
        terms = (design, signs, record_weights, problem.loss, total_ridge)
        if problem.robust:
            return RobustObjective(*terms, problem.tilt, problem.attack, slope, farthest)
        return MarginObjective(*terms, slope)

    # Of two classes the second is the positive one.
    positives = [1] if problem.n_stacked == 1 else range(problem.n_stacked)
    solutions = []
    for index, k in enumerate(positives):
        slope = None if linear is None else linear[index].ravel()
        exact = objective(rows, k, slope)
        if isinstance(exact, MarginObjective) and not problem.loss.smooth:
            found = certified_hinge(exact, tolerance, radius=radius)
        else:
            cheap = None if surrogate is None else objective(surrogate, k, slope)
            found = certified_minimum(
                exact,
                tolerance,
                radius=radius,
                optimizer=_first_try(cheap or exact, optimizer),
                surrogate=cheap,
            )
        solutions.append(found.reshape(-1, problem.n_columns))
    return np.vstack(solutions)


def _first_try(objective: Objective, optimizer: Optimizer) -> Optimizer:
    """Go round the kinks of an attack, which stop every named method for very long."""
    if optimizer not in OPTIMIZERS or not isinstance(objective, RobustObjective):
        return optimizer
    if objective.attack is None or objective.attack.smoothing >= _SMOOTH_ENOUGH:
        return optimizer
    return lambda function, start: smoothing_path(objective)
