"""Minimisers with a certificate: on every data set, the gradient at the returned point is small.

The privacy of output and objective perturbation depends on a tolerance that was fixed, and made
public, before the data were read. So `certified_minimum` must not stop early, fail, warn or report
how many steps it took: whatever the data, it returns a point that meets the tolerance.

The fast minimisers that it tries first have no guarantee, and neither has a callable of the user.
Their results are only used after a check of the gradient, so they may stop early. Steps are
accepted by slopes along the direction instead of values: near the minimum, the values of a sum over
many records agree to all digits long before its gradient is small.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dpotrf, dpotrs

from dp_halfspace._params import require
from dp_halfspace._rounding import TINY
from dp_halfspace._silence import drop_output
from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.optim.objectives import MAX_DENSE, MarginObjective, Objective, SoftmaxObjective
from dp_halfspace.rows.blocks import FloatArray, into_ball

MatrixProduct: TypeAlias = Callable[[FloatArray], FloatArray]

# Most passes over the data of truncated Newton steps.
CG_PASSES = 20000
# Fewest records of a subsample.
_MIN_SUBSAMPLE = 1024
# First extra ridge of a path, in units of the squared gradient over the initial gap.
_FIRST_RIDGE = 1e-2
# Most full Hessians that are formed, BFGS steps with that of a subsample, and gradients of a line
# search.
_MOST_ROUNDS = 25
# BFGS steps with each full Hessian.
_STEPS_PER_HESSIAN = 8
# A step is long enough if the slope along it has fallen to this share of the first slope.
_UNDERSHOOT = 0.9
# A step is short enough if the slope at its end, of the other sign, is at most this share of the
# first slope.
_OVERSHOOT = 0.5
# After the first trial of the search was rejected, it must be at most this smaller share.
_OVERSHOOT_AFTER_CUT = 0.1


@dataclass(frozen=True, slots=True)
class Point:
    """A vector, the gradient there and its norm."""

    w: FloatArray
    gradient: FloatArray
    norm: float

    def meets(self, target: float, radius: float) -> bool:
        """Whether gradient and vector are short enough; False for anything not finite."""
        return self.norm <= target and float(np.linalg.norm(self.w)) <= radius


def point_at(objective: Objective, w: FloatArray, extra_ridge: float = 0.0) -> Point:
    """Evaluate the gradient of the objective plus ``extra_ridge / 2 ||w||^2``."""
    gradient = objective.gradient(w)
    if extra_ridge:
        gradient += extra_ridge * w
    return Point(w, gradient, float(np.linalg.norm(gradient)))


def _search(
    objective: Objective, start: Point, direction: FloatArray, extra_ridge: float = 0.0
) -> Point | None:
    """Search along a direction for a point at which the slope is much smaller; None if it fails."""
    first = float(start.gradient @ direction)
    if not first < 0.0:
        return None
    low, high = 0.0, np.inf
    slope_low, slope_high = first, np.inf
    # The objective can fall by its initial gap at most, which limits the length of a useful step.
    # A longer step may end at a small slope but at a larger value, beyond the minimum.
    step = min(1.0, 4.0 * objective.initial_gap / -first)
    limit = _OVERSHOOT
    for tries in range(_MOST_ROUNDS):
        point = point_at(objective, start.w + step * direction, extra_ridge)
        slope = float(point.gradient @ direction)
        if _UNDERSHOOT * first <= slope <= -limit * first:
            return point
        if slope < 0.0:
            low, slope_low = step, slope
        else:  # The step is too long, or the slope is not a number.
            high, slope_high = step, slope
        # After a step that had to be shortened, kinks are likely, where a positive slope may mean
        # a larger value.
        limit = _OVERSHOOT_AFTER_CUT
        if np.isinf(high):
            step *= 4.0
        elif tries % 2 == 0 and np.isfinite(slope_high):
            share = slope_low / (slope_low - slope_high)
            step = low + (high - low) * min(max(share, 0.1), 0.9)
        else:
            step = 0.5 * (low + high) if low > 0.0 else 0.1 * high
    return None


def _next_damping(
    objective: Objective, damping: float, point: Point, found: Point, direction: FloatArray
) -> float:
    """Return the multiple of the identity that is added to the next Hessian.

    If a step had to be shortened, the Hessian was too small (that of a piecewise quadratic loss
    vanishes on its straight parts). Then the multiple is added that would have given the shortened
    step; later it is reduced again.
    """
    length = float(np.linalg.norm(found.w - point.w))
    if 2.0 * length < float(np.linalg.norm(direction)):
        return max(damping, point.norm / length)
    return damping / 3.0 if damping > objective.ridge else 0.0


def _invert_hessian(objective: Objective, w: FloatArray) -> MatrixProduct | None:
    """Return the product with the inverse of the Hessian, None if its Cholesky factor fails."""
    hessian = objective.hessian(w)
    if not np.isfinite(hessian).all():
        return None
    # LAPACK is called directly, since the wrappers of scipy.linalg take longer than small systems.
    factor, failed = dpotrf(hessian, overwrite_a=1)
    return None if failed else lambda v: np.asarray(dpotrs(factor, v)[0])


def bfgs(objective: Objective, start: Point, target: float) -> Point:
    """Take BFGS steps from a full Hessian, which is formed again after some of them."""
    point = start
    for _ in range(_MOST_ROUNDS):
        if point.norm <= target:
            break
        inverse = _invert_hessian(objective, point.w)
        if inverse is None:
            break
        before = point
        point = lbfgs(objective, point, target, inverse, _STEPS_PER_HESSIAN)
        if point is before:
            break
    return point


def lbfgs(
    objective: Objective, start: Point, target: float, inverse: MatrixProduct, max_passes: int
) -> Point:
    """Take BFGS steps from a given inverse Hessian; the few steps are kept, not a matrix."""
    point = start
    pairs: list[tuple[FloatArray, FloatArray, float]] = []
    for _ in range(max_passes):
        if not point.norm > target:
            break
        found = _search(objective, point, -_two_loops(point.gradient, pairs, inverse))
        if found is None:
            break
        step, change = found.w - point.w, found.gradient - point.gradient
        product = float(step @ change)
        # With exact gradients the product is at least ridge ||step||^2; less is a rounding error.
        if product > 0.5 * objective.ridge * float(step @ step):
            pairs.append((step, change, product))
        point = found
    return point


def _two_loops(
    gradient: FloatArray, pairs: list[tuple[FloatArray, FloatArray, float]], inverse: MatrixProduct
) -> FloatArray:
    """Multiply by the BFGS inverse Hessian (Nocedal and Wright 2006, algorithm 7.4)."""
    q = gradient.copy()
    shares = []
    for step, change, product in reversed(pairs):
        share = float(step @ q) / product
        q -= share * change
        shares.append(share)
    r = inverse(q)
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
    """Take truncated Newton steps, which need only products of the Hessian with vectors."""
    point, first = start, start.norm
    passes, damping = 0, 0.0
    while point.norm > target and passes < max_passes:
        forcing = min(0.1, (point.norm / first) ** 0.5)
        product = _plus_identity(objective.hessian_product(point.w), extra_ridge + damping)
        rough = max(forcing * point.norm, 0.5 * target)
        direction, used = _conjugate_gradients(product, point.gradient, rough)
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
    ridge = _FIRST_RIDGE * point.norm * point.norm / max(objective.initial_gap, TINY)
    # A ridge above the largest curvature is useless, and after an overflow the path would not end.
    ridge = min(ridge, objective.gradient_lipschitz)
    extra = 0.0
    while ridge > 2.0 * objective.ridge:
        gradient = point.gradient + (ridge - objective.ridge - extra) * point.w
        point = Point(point.w, gradient, float(np.linalg.norm(gradient)))
        extra = ridge - objective.ridge
        rough = max(1e-2 * point.norm, target)
        point = newton_cg(objective, point, rough, max_passes // 20, extra)
        ridge /= 5.0
    # The certificate needs a gradient of the objective itself, not one corrected for a ridge.
    return newton_cg(objective, point_at(objective, point.w), target, max_passes)


def _plus_identity(product: MatrixProduct, multiple: float) -> MatrixProduct:
    """Return the product with a matrix plus a multiple of the identity."""
    return (lambda v: product(v) + multiple * v) if multiple else product


def _conjugate_gradients(
    product: MatrixProduct, gradient: FloatArray, target: float
) -> tuple[FloatArray, int]:
    """Solve ``H x = -gradient`` to a residual norm, from zero; return the number of products, too.

    The iteration stops early at a direction without positive curvature.
    """
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


@dataclass(frozen=True, slots=True)
class FiniteSum:
    r"""The function that a callable `optimizer` minimises.

    The mean over records ``F(w) = mean(f_i(w))``, where every ``f_i`` is the weighted loss of one
    record plus ``strong_convexity / 2 ||w||^2`` (and, in objective perturbation, the random
    linear term). With three classes or more the coefficients of all classes are one vector.

    Parameters
    ----------
    objective : Objective
        The same function on the scale of the sum over records.
    radius : float
        Public bound on the norm of the minimiser.

    Notes
    -----
    Calling the object gives value and gradient together, as ``scipy.optimize.minimize`` takes
    them with ``jac=True``. All arrays that go in and out are copies.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.optim.losses import LOGISTIC
    >>> from dp_halfspace.optim.objectives import MarginObjective
    >>> from dp_halfspace.rows.rows import clipped_rows
    >>> from dp_halfspace.optim.solvers import FiniteSum
    >>> rows = clipped_rows(np.array([[1.0], [-0.5]]), bound=1.0)
    >>> F = FiniteSum(MarginObjective(rows, np.array([1, -1]), np.ones(2), LOGISTIC, 0.2), 9.0)
    >>> F.n_samples, F.size, F.strong_convexity
    (2, 1, 0.1)
    >>> w = np.array([0.3])
    >>> each = [F.gradient_of([i], w) for i in range(2)]
    >>> bool(np.allclose(np.mean(each, axis=0), F.gradient(w)))
    True
    """

    objective: Objective = field(repr=False)
    radius: float

    @property
    def n_samples(self) -> int:
        """Number of records."""
        return self.objective.n_records

    @property
    def size(self) -> int:
        """Number of coefficients, those of all classes together."""
        return self.objective.size

    @property
    def strong_convexity(self) -> float:
        """Modulus of strong convexity of every ``f_i``."""
        return self.objective.ridge / self.n_samples

    @property
    def smoothness(self) -> float:
        """Lipschitz constant of the gradient of every ``f_i``, `strong_convexity` included."""
        return self.objective.gradient_lipschitz / self.n_samples

    def __call__(self, w: ArrayLike) -> tuple[float, FloatArray]:
        """Return ``F(w)`` and its gradient."""
        value, gradient = self.objective.value_and_gradient(self._point(w))
        return float(value) / self.n_samples, gradient / self.n_samples

    def value(self, w: ArrayLike) -> float:
        """Return ``F(w)``."""
        return self(w)[0]

    def gradient(self, w: ArrayLike) -> FloatArray:
        """Return the gradient of ``F``."""
        return self.objective.gradient(self._point(w)) / self.n_samples

    def gradient_of(self, indices: ArrayLike, w: ArrayLike) -> FloatArray:
        """Return the gradient of the mean of some ``f_i``.

        Parameters
        ----------
        indices : int or array-like of int of shape (m,)
            Numbers of the records, at least one; repeated ones count as often as they occur.
        w : array-like of shape (size,)

        Returns
        -------
        ndarray of shape (size,)
            For one uniformly drawn record, an unbiased estimate of the gradient of ``F``.

        Raises
        ------
        ValueError
            If the objective has a tilt: then it is no mean over records.
        """
        index = np.atleast_1d(np.asarray(indices, dtype=np.intp))
        objective = self.objective
        if not isinstance(objective, MarginObjective | SoftmaxObjective) or (
            isinstance(objective, MarginObjective) and objective.tilt
        ):
            raise ValueError("this objective is no mean over records: use its full gradient")
        part = objective.records(index, self.n_samples / index.size)
        return part.gradient(self._point(w)) / self.n_samples

    def _point(self, w: ArrayLike) -> FloatArray:
        """Copy a point, because the caller may change it later."""
        return np.array(w, dtype=np.float64).reshape(self.size)


def silent_answer(
    optimizer: Callable[[FiniteSum, FloatArray], Any], objective: Objective, radius: float
) -> FloatArray:
    """Run a callable without any output, and return its answer, projected to the ball.

    `radius` is a public bound on the norm of the minimiser. If the callable raises, or does not
    return a finite vector, the answer is zero: what it raises may depend on the data. Only a
    `KeyboardInterrupt` of the user is passed on.
    """
    start = np.zeros(objective.size)
    try:
        with drop_output(), np.errstate(all="ignore"):
            answer = np.asarray(optimizer(FiniteSum(objective, radius), start.copy()))
            is_vector = answer.dtype.kind in "biuf" and answer.shape == start.shape
            # A copy, because the callable may write to its answer later.
            w = np.array(answer, dtype=np.float64) if is_vector else start
            return into_ball(w, radius) if np.isfinite(w).all() else start
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - the exception may depend on the data
        return start


Optimizer: TypeAlias = str | Callable[[FiniteSum, FloatArray], Any]

OPTIMIZERS = ("auto", "accelerated_gradient")


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
        :class:`~dp_halfspace.optim.objectives.MarginObjective`.
    gamma : float
        Public tolerance, on the scale of the sum over records;
        :func:`~dp_halfspace.optim.tolerance` gives one that floating-point numbers can meet and
        that accounts for their errors.
    radius : float
        Public bound on the norm of the exact minimiser.
    optimizer : str or callable, default="auto"
        What is tried first, ``"auto"`` or ``"accelerated_gradient"``. A callable gets a
        :class:`~dp_halfspace.optim.solvers.FiniteSum` and a starting point; it returns a
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
    **Guarantee.**

    - Adjacency: any; the tolerance holds on every data set.
    - Released: nothing; the point is private until noise is added. No exception, warning or
      message depends on the data; those of a callable `optimizer` are dropped.
    - Sensitivity: the distance to the exact minimiser, above, is added to that of the minimisers.
    - Proof: ``docs/proofs/certificate.md``, sections 3 and 4.

    The time taken does depend on the data.

    References
    ----------
    ``docs/proofs/certificate.md``, sections 3 and 4. Iyengar, Near, Song, Thakkar, Thakurta
    and Wang (2019), "Towards practical differentially private convex optimization".
    Nesterov (2018), "Lectures on convex optimization", section 2.2.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.optim import certified_minimum
    >>> from dp_halfspace.optim.losses import LOGISTIC
    >>> from dp_halfspace.optim.objectives import MarginObjective
    >>> from dp_halfspace.rows.rows import clipped_rows
    >>> rows = clipped_rows(np.array([[1.0], [2.0], [-1.0]]), bound=1.0)
    >>> J = MarginObjective(rows, np.array([1, 1, -1]), np.ones(3), LOGISTIC, ridge=0.3)
    >>> w = certified_minimum(J, 1e-9, radius=2.0)
    >>> bool(np.linalg.norm(J.gradient(w)) <= 1e-9)
    True
    """
    if not callable(optimizer) and optimizer not in OPTIMIZERS:
        raise ValueError(f"optimizer must be a callable or one of {OPTIMIZERS}")
    require("positive and finite", gamma=gamma, radius=radius, ridge=objective.ridge)
    if not math.isfinite(objective.gradient_lipschitz):
        raise ValueError("the objective must be smooth")
    # The factor covers the rounding error of the computed norm.
    target, farthest = gamma * (1.0 - 1e-6), radius + 1.9 * gamma / objective.ridge
    # A surrogate has other rounding errors, for which half of the target is left.
    path, wanted = (objective, target) if surrogate is None else (surrogate, 0.5 * target)
    with single_blas_thread(), np.errstate(all="ignore"):
        if callable(optimizer):
            point = _polish(path, wanted, silent_answer(optimizer, path, radius))
        elif optimizer == "auto":
            point = _solve_auto(path, wanted)
        else:  # nothing, so that the accelerated gradient method runs
            point = Point(np.zeros(path.size), np.zeros(path.size), math.inf)
        if surrogate is not None:
            point = point_at(objective, point.w)
            if not point.meets(target, farthest):
                point = _polish(objective, target, point.w)
        if not point.meets(target, farthest):
            point = accelerated_gradient(objective, target, farthest)
        if not point.meets(target, farthest):
            # Newton steps remove the rounding errors that momentum accumulates.
            point = _polish(objective, target, point.w)
    return point.w


def accelerated_gradient(objective: Objective, target: float, radius: float) -> Point:
    """Minimise by accelerated gradient steps in a ball that contains the minimiser.

    Return the first point whose gradient has at most the norm `target`. In real arithmetic this is
    reached within ``sqrt(L / ridge) log(4 L initial_gap / target^2)`` steps, for
    ``L = gradient_lipschitz`` (``docs/proofs/certificate.md``, Theorem 4; Nesterov 2018,
    section 2.2.4).
    """
    lipschitz = objective.gradient_lipschitz
    root = math.sqrt(lipschitz / objective.ridge)
    ratio = 4.0 * lipschitz * objective.initial_gap / target / target
    steps = math.ceil(root * math.log(max(ratio, math.e)))
    momentum = (root - 1.0) / (root + 1.0)
    x = y = np.zeros(objective.size)
    for _ in range(steps):
        point = point_at(objective, y)
        if point.meets(target, radius):
            return point
        previous, x = x, into_ball(y - point.gradient / lipschitz, radius)
        y = x + momentum * (x - previous)
    return point_at(objective, x)


def _polish(objective: Objective, target: float, w: FloatArray) -> Point:
    """Improve a point until its gradient is small, as far as the methods succeed."""
    point = point_at(objective, w)
    if objective.size > MAX_DENSE:
        return newton_cg(objective, point, target)
    point = bfgs(objective, point, target)
    # BFGS steps may fail, for example at kinks.
    return point if point.norm <= target else newton_cg_path(objective, target)


def _solve_auto(objective: Objective, target: float) -> Point:
    """Take BFGS steps from the minimiser of a subsample, or truncated Newton steps."""
    n, size = objective.n_records, objective.size
    if size > MAX_DENSE:
        return newton_cg_path(objective, target)
    w = np.zeros(size)
    # A Hessian of 4 n / size rows costs about as much as a few gradients of all rows, and saves
    # more of them.
    part = objective.subsample(max(_MIN_SUBSAMPLE, 8 * size, min(n // 8, 4 * n // size)))
    if part is not None:
        zero = point_at(part, w)
        w = newton_cg(part, zero, 1e-2 * zero.norm).w
        inverse = _invert_hessian(part, w)
        if inverse is not None:
            w = lbfgs(objective, point_at(objective, w), target, inverse, _MOST_ROUNDS).w
    return _polish(objective, target, w)
