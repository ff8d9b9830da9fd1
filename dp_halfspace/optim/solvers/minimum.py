"""Minimisers with a certificate: the gradient is small at what is returned, always.

The privacy of output and objective perturbation rests on a tolerance that was fixed, and
made public, before the data were read. So the solver may not stop early, fail, warn or
report how hard it was: whatever the data, it hands back a point that meets the tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from scipy.optimize import minimize

from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.optim.objectives.function import MAX_DENSE, Objective
from dp_halfspace.optim.objectives.margin import MarginObjective
from dp_halfspace.optim.solvers.black_box import FiniteSum, silent_answer
from dp_halfspace.optim.solvers.newton import (
    Point,
    hybrid_newton,
    lbfgs,
    newton,
    newton_cg,
    newton_cg_path,
    point_at,
    preconditioned_start,
    project,
)
from dp_halfspace.rows.blocks import FloatArray

Optimizer: TypeAlias = str | Callable[[FiniteSum, FloatArray], Any]

OPTIMIZERS = ("auto", "newton", "newton_cg", "lbfgs", "accelerated_gradient")

_NEWTON_STEPS = 50
_START_STEPS = 25


@dataclass(frozen=True, slots=True)
class _Goal:
    """What a point has to meet; public."""

    gradient: float
    norm: float

    def met_by(self, point: Point) -> bool:
        """Whether gradient and norm are small enough; False for anything not finite."""
        return point.norm <= self.gradient and float(np.linalg.norm(point.w)) <= self.norm


def certified_minimum(
    objective: Objective,
    gamma: float,
    *,
    radius: float,
    optimizer: Optimizer = "auto",
    surrogate: Objective | None = None,
) -> FloatArray:
    """Return a point where the computed gradient has a norm of at most `gamma`.

    Parameters
    ----------
    objective : Objective
        Smooth and strongly convex, for example a
        :class:`~dp_halfspace.optim.objectives.margin.MarginObjective`.
    gamma : float
        Public tolerance, on the scale of the sum over records;
        :func:`~dp_halfspace.optim.tolerance` gives one that floating-point numbers can meet and
        that accounts for their errors.
    radius : float
        Public bound on the norm of the exact minimiser.
    optimizer : {"auto", "newton", "newton_cg", "lbfgs", "accelerated_gradient"} or callable
        What is tried first. A callable gets a
        :class:`~dp_halfspace.optim.solvers.black_box.FiniteSum` and a starting point; it returns a
        point. It is trusted with speed only: its answer is checked, and improved or replaced
        when it does not meet the tolerance.
    surrogate : Objective or None, default=None
        The same function with cheaper passes and other roundings. What is tried first runs on
        it, and is then checked on `objective` like any answer.

    Returns
    -------
    ndarray of shape (size,)
        Within ``(gamma + E) / ridge`` of the minimiser, with ``E`` the error of the
        computed gradient, and of a norm of at most ``radius + 2 gamma / ridge``.

    Raises
    ------
    ValueError
        If a parameter is out of range; decided without looking at the data.

    Notes
    -----
    No exception, warning or message depends on the data; those of a callable `optimizer` are
    dropped. The time taken does depend on them.

    References
    ----------
    ``docs/proofs/certificate.md``, sections 3 and 4. Iyengar, Near, Song, Thakkar, Thakurta
    and Wang (2019), "Towards practical differentially private convex optimization".
    Nesterov (2018), "Lectures on convex optimization", section 2.2.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.optim import LOGISTIC, MarginObjective, certified_minimum, clipped_rows
    >>> rows = clipped_rows(np.array([[1.0], [2.0], [-1.0]]), bound=1.0)
    >>> J = MarginObjective(rows, np.array([1, 1, -1]), np.ones(3), LOGISTIC, ridge=0.3)
    >>> w = certified_minimum(J, 1e-9, radius=2.0)
    >>> bool(np.linalg.norm(J.gradient(w)) <= 1e-9)
    True
    """
    _check(objective, gamma, radius, optimizer)
    # The norm itself is computed with a relative error, covered by the factor.
    goal = _Goal(gamma * (1.0 - 1e-6), radius + 1.9 * gamma / objective.ridge)
    path = objective if surrogate is None else surrogate
    with single_blas_thread():
        fast: Callable[[Objective, float], Point]
        if callable(optimizer):
            fast = partial(_polished, w=silent_answer(optimizer, path, radius))
        else:
            fast = _FAST[optimizer]
        with np.errstate(all="ignore"):
            # Half of the goal is for the other roundings of a surrogate.
            point = fast(path, goal.gradient * (1.0 if surrogate is None else 0.5))
            if surrogate is not None:
                point = point_at(objective, point.w)
                if not goal.met_by(point):
                    point = _polished(objective, goal.gradient, point.w)
            if not goal.met_by(point):
                point = accelerated_gradient(objective, goal.gradient, goal.norm)
            if not goal.met_by(point):
                # Only rounding errors of the momentum lead here; Newton steps have none.
                point = _polished(objective, goal.gradient, point.w)
    return point.w


def accelerated_gradient(objective: Objective, target: float, radius: float) -> Point:
    """Minimise by accelerated gradient steps in a ball that holds the minimiser.

    The first point whose gradient is at most the target is returned; at the latest, in real
    arithmetic, the one after ``sqrt(L / ridge) log(4 L initial_gap / target^2)`` steps, for
    ``L = gradient_lipschitz`` (``docs/proofs/certificate.md``, Theorem 4; Nesterov 2018,
    section 2.2.4).
    """
    lipschitz, goal = objective.gradient_lipschitz, _Goal(target, radius)
    root = math.sqrt(lipschitz / objective.ridge)
    ratio = 4.0 * lipschitz * objective.initial_gap / target / target
    steps = math.ceil(root * math.log(max(ratio, math.e)))
    momentum = (root - 1.0) / (root + 1.0)
    x = y = np.zeros(objective.size)
    for _ in range(steps):
        point = point_at(objective, y)
        if goal.met_by(point):
            return point
        previous, x = x, project(y - point.gradient / lipschitz, radius)
        y = x + momentum * (x - previous)
    return point_at(objective, x)


def _check(objective: Objective, gamma: float, radius: float, optimizer: Optimizer) -> None:
    """Refuse parameters that cannot work; nothing here is private."""
    if not callable(optimizer) and optimizer not in OPTIMIZERS:
        raise ValueError(f"optimizer must be a callable or one of {OPTIMIZERS}")
    if optimizer == "newton" and objective.size > MAX_DENSE:
        raise ValueError(f"optimizer='newton' is for at most {MAX_DENSE} coefficients")
    if not 0.0 < gamma < math.inf:
        raise ValueError("gamma must be positive and finite")
    if not 0.0 < radius < math.inf:
        raise ValueError("radius must be positive and finite")
    if not math.isfinite(objective.gradient_lipschitz):
        raise ValueError("the objective must be smooth")


def _polished(objective: Objective, target: float, w: FloatArray) -> Point:
    """Improve a point until its gradient is small."""
    point = point_at(objective, w)
    if objective.size <= MAX_DENSE:
        return _rescued(objective, hybrid_newton(objective, point, target), target)
    return newton_cg(objective, point, target)


def _rescued(objective: Objective, point: Point, target: float) -> Point:
    """Start again along decreasing ridges: kinks that stop a fast method are smooth there."""
    if point.norm <= target:
        return point
    return hybrid_newton(objective, newton_cg_path(objective, target), target)


def _auto(objective: Objective, target: float) -> Point:
    """Few passes over the data: the metric of a subsample, or truncated Newton steps."""
    if objective.size > MAX_DENSE:
        return newton_cg_path(objective, target)
    start = preconditioned_start(objective)
    if start is None:
        return _polished(objective, target, np.zeros(objective.size))
    w, metric = start
    point = lbfgs(objective, point_at(objective, w), target, metric, _START_STEPS)
    return _rescued(objective, hybrid_newton(objective, point, target), target)


def _newton(objective: Objective, target: float) -> Point:
    """Take full Newton steps from zero; kinks of the slopes may leave a rest."""
    start = point_at(objective, np.zeros(objective.size))
    point = newton(objective, start, target, _NEWTON_STEPS)
    return point if point.norm <= target else _polished(objective, target, point.w)


def _scipy_lbfgs(objective: Objective, target: float) -> Point:
    """Limited-memory BFGS of scipy, polished."""
    options = {"maxiter": 300, "maxcor": 20, "ftol": 0.0, "gtol": target / objective.size**0.5}
    found = minimize(
        objective.value_and_gradient,
        np.zeros(objective.size),
        jac=True,
        method="L-BFGS-B",
        options=options,
    )
    w = found.x if np.isfinite(found.x).all() else np.zeros(objective.size)
    return _polished(objective, target, w)


def _nothing(objective: Objective, target: float) -> Point:
    """Leave everything to the accelerated gradient method."""
    return Point(np.zeros(objective.size), np.zeros(objective.size), math.inf)


_FAST: dict[str, Callable[[Objective, float], Point]] = {
    "auto": _auto,
    "newton": _newton,
    "newton_cg": newton_cg_path,
    "lbfgs": _scipy_lbfgs,
    "accelerated_gradient": _nothing,
}


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
