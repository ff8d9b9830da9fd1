"""Fast minimisers of a smooth, strongly convex function, without a guarantee.

Their results are only ever used after a check of the gradient, so they may stop early.
Steps are accepted by slopes along the direction, never by values: near the minimum the
values of a sum over many records agree to all digits long before its gradient is small.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from dp_halfspace.optim.objectives.function import Objective
from dp_halfspace.rows.blocks import FloatArray

Metric: TypeAlias = Callable[[FloatArray], FloatArray]

CG_PASSES = 20000
_MEMORY = 20
_MIN_SUBSAMPLE = 1024
_FIRST_RIDGE, _TINY = 1e-2, 1e-300
_RENEWALS, _STEPS_PER_METRIC = 30, 8
_SEARCH_PASSES = 40
# A step is long enough when the slope has fallen to this part, and short enough when it
# has not risen beyond that part with the other sign.
_UNDERSHOOT, _OVERSHOOT, _OVERSHOOT_AFTER_CUT = 0.9, 0.5, 0.1


@dataclass(frozen=True, slots=True)
class Point:
    """A vector, the gradient there and its norm."""

    w: FloatArray
    gradient: FloatArray
    norm: float


def point_at(objective: Objective, w: FloatArray, extra_ridge: float = 0.0) -> Point:
    """Evaluate the gradient, of the objective plus ``extra_ridge / 2 ||w||^2``."""
    gradient = objective.gradient(w)
    if extra_ridge:
        gradient += extra_ridge * w
    return Point(w, gradient, float(np.linalg.norm(gradient)))


def project(w: FloatArray, radius: float) -> FloatArray:
    """Return the nearest point of the ball."""
    norm = float(np.linalg.norm(w))
    return w if norm <= radius else w * (radius / norm)


def _search(
    objective: Objective, start: Point, direction: FloatArray, extra_ridge: float = 0.0
) -> Point | None:
    """Return a point along the direction where the slope is much smaller, if one is found."""
    first = float(start.gradient @ direction)
    if not first < 0.0:
        return None
    low, high = 0.0, np.inf
    slope_low, slope_high = first, np.inf
    # The slope cannot last for longer than the objective can fall. A step beyond that may
    # end on a small slope, but high up on the other side.
    step = min(1.0, 4.0 * objective.initial_gap / -first)
    limit = _OVERSHOOT
    for tries in range(_SEARCH_PASSES):
        point = point_at(objective, start.w + step * direction, extra_ridge)
        slope = float(point.gradient @ direction)
        if _UNDERSHOOT * first <= slope <= -limit * first:
            return point
        if slope < 0.0:
            low, slope_low = step, slope
        else:  # too far, or not a number
            high, slope_high = step, slope
        # A step that had to be cut crosses kinks, where a positive slope may mean a
        # larger value; a full step to a moderate slope does not.
        limit = _OVERSHOOT_AFTER_CUT
        if np.isinf(high):
            step *= 4.0
        elif tries % 2 == 0 and np.isfinite(slope_high):
            share = slope_low / (slope_low - slope_high)
            step = low + (high - low) * min(max(share, 0.1), 0.9)
        else:
            step = 0.5 * (low + high) if low > 0.0 else 0.1 * high
    return None


def newton(objective: Objective, start: Point, target: float, max_steps: int) -> Point:
    """Take damped (semismooth) Newton steps with a dense Hessian."""
    point, damping = start, 0.0
    for _ in range(max_steps):
        if not point.norm > target:
            break
        solve = _inverse(objective, point.w, damping)
        if solve is None:
            break
        direction = -solve(point.gradient)
        found = _search(objective, point, direction)
        if found is None:
            break
        damping = _next_damping(objective, damping, point, found, direction)
        point = found
    return point


def _next_damping(
    objective: Objective, damping: float, point: Point, found: Point, direction: FloatArray
) -> float:
    """Return the multiple of the identity that the next Hessian needs.

    Where steps have to be cut the Hessian is too small (a piecewise quadratic loss has
    none on its straight parts). The multiple that would have given the length of the cut
    step is then added to it, and withdrawn later.
    """
    length = float(np.linalg.norm(found.w - point.w))
    if 2.0 * length < float(np.linalg.norm(direction)):
        return max(damping, point.norm / length)
    return damping / 3.0 if damping > objective.ridge else 0.0


def _inverse(objective: Objective, w: FloatArray, damping: float = 0.0) -> Metric | None:
    """Return the product with the inverse of the Hessian, None when it has none in floats."""
    hessian = objective.hessian(w)
    hessian.flat[:: objective.size + 1] += damping
    if not np.isfinite(hessian).all():
        return None
    # The wrappers of scipy.linalg would take longer than the solution of a small system.
    factor, failed = dpotrf(hessian, overwrite_a=1)
    return None if failed else lambda v: np.asarray(dpotrs(factor, v)[0])


def _subsample_rows(objective: Objective) -> int:
    """Return how many rows give a useful Hessian; more of them save passes over all rows.

    With four passes' worth of rows divided by the coefficients, a Hessian costs as much as
    a few gradients of all rows.
    """
    size = objective.size
    affordable = min(objective.n_records // 8, 4 * objective.n_records // size)
    return max(_MIN_SUBSAMPLE, 8 * size, affordable)


def preconditioned_start(objective: Objective) -> tuple[FloatArray, Metric] | None:
    """Return a rough minimiser of a subsample and its inverse Hessian there.

    None when all rows are too few for that.
    """
    part = objective.subsample(_subsample_rows(objective))
    if part is None:
        return None
    zero = point_at(part, np.zeros(part.size))
    point = newton(part, zero, 1e-2 * zero.norm, max_steps=20)
    metric = _inverse(part, point.w)
    return None if metric is None else (point.w, metric)


def hybrid_newton(objective: Objective, start: Point, target: float) -> Point:
    """BFGS steps in the metric of a full Hessian that is renewed when they take long."""
    point = start
    for _ in range(_RENEWALS):
        if point.norm <= target:
            break
        metric = _inverse(objective, point.w)
        if metric is None:
            break
        before = point
        point = lbfgs(objective, point, target, metric, _STEPS_PER_METRIC)
        if point is before:
            break
    return point


def lbfgs(
    objective: Objective, start: Point, target: float, metric: Metric, max_passes: int
) -> Point:
    """Limited-memory BFGS from a given inverse Hessian."""
    point = start
    pairs: deque[tuple[FloatArray, FloatArray, float]] = deque(maxlen=_MEMORY)
    for _ in range(max_passes):
        if not point.norm > target:
            break
        found = _search(objective, point, -_two_loops(point.gradient, pairs, metric))
        if found is None:
            break
        step, change = found.w - point.w, found.gradient - point.gradient
        product = float(step @ change)
        # Exact gradients would give at least ridge ||step||^2; less is rounding.
        if product > 0.5 * objective.ridge * float(step @ step):
            pairs.append((step, change, product))
        point = found
    return point


def _two_loops(
    gradient: FloatArray, pairs: deque[tuple[FloatArray, FloatArray, float]], metric: Metric
) -> FloatArray:
    """Apply the BFGS inverse Hessian (Nocedal and Wright 2006, algorithm 7.4)."""
    q = gradient.copy()
    shares = []
    for step, change, product in reversed(pairs):
        share = float(step @ q) / product
        q -= share * change
        shares.append(share)
    r = metric(q)
    for (step, change, product), share in zip(pairs, reversed(shares), strict=True):
        r += (share - float(change @ r) / product) * step
    return r


def newton_cg(
    objective: Objective,
    start: Point,
    target: float,
    max_passes: int = CG_PASSES,
    extra_ridge: float = 0.0,
) -> Point:
    """Take truncated Newton steps; the Hessian is only ever multiplied by vectors."""
    point, first = start, start.norm
    passes, damping = 0, 0.0
    while point.norm > target and passes < max_passes:
        forcing = min(0.1, (point.norm / first) ** 0.5)
        direction, used = _conjugate_gradients(
            _plus_identity(objective.hessian_product(point.w), extra_ridge + damping),
            point.gradient,
            max(forcing * point.norm, 0.5 * target),
        )
        passes += used + 3
        found = _search(objective, point, direction, extra_ridge)
        if found is None:
            break
        damping = _next_damping(objective, damping, point, found, direction)
        point = found
    return point


def newton_cg_path(objective: Objective, target: float, max_passes: int = CG_PASSES) -> Point:
    """Follow the minimisers of decreasing ridges by truncated Newton steps, from zero."""
    point = point_at(objective, np.zeros(objective.size))
    if point.norm <= target:
        return point
    ridge = _FIRST_RIDGE * point.norm * point.norm / max(objective.initial_gap, _TINY)
    # Only an overflow exceeds the largest curvature, and a path from infinity would not end.
    ridge = min(ridge, objective.gradient_lipschitz)
    extra = 0.0
    while ridge > 2.0 * objective.ridge:
        gradient = point.gradient + (ridge - objective.ridge - extra) * point.w
        point = Point(point.w, gradient, float(np.linalg.norm(gradient)))
        extra = ridge - objective.ridge
        rough = max(1e-2 * point.norm, target)
        point = newton_cg(objective, point, rough, max_passes // 20, extra)
        ridge /= 5.0
    # A certificate needs the gradient of the objective itself, not one corrected for a ridge.
    return newton_cg(objective, point_at(objective, point.w), target, max_passes)


def _plus_identity(product: Metric, multiple: float) -> Metric:
    """Return the product with a matrix plus a multiple of the identity."""
    return (lambda v: product(v) + multiple * v) if multiple else product


def _conjugate_gradients(
    product: Metric, gradient: FloatArray, target: float
) -> tuple[FloatArray, int]:
    """Solve ``H x = -gradient`` to a residual, from zero; return also the product count."""
    x = np.zeros_like(gradient)
    residual = -gradient
    direction = residual.copy()
    square = float(residual @ residual)
    count = 0
    while square > target**2 and count < 4 * x.size + 20:
        image = product(direction)
        curvature = float(direction @ image)
        count += 1
        if not curvature > 0.0:
            break
        step = square / curvature
        x += step * direction
        residual -= step * image
        previous, square = square, float(residual @ residual)
        direction *= square / previous
        direction += residual
    return x, count
