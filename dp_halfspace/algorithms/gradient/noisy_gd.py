"""Accelerated noisy gradient steps on unit rows: exactly Gaussian private, no minimiser needed.

The gradient of a clipped loss changes by at most twice the clip when one record is replaced,
whatever the point. So a fixed number of noisy full-batch steps composes exactly, and step
size, momentum and averaging are post-processing. Derivations:
``docs/proofs/noisy_gradient.md``; evidence for the constants: ``docs/defaults.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dp_halfspace.algorithms.gradient.adversarial_rows import AdversarialRows
from dp_halfspace.algorithms.gradient.preconditioner import Metric
from dp_halfspace.optim.design.rows import Rows
from dp_halfspace.optim.objectives.adversary import Adversary
from dp_halfspace.optim.solvers.certificate import gradient_error
from dp_halfspace.privacy.events import Pure, Repeated
from dp_halfspace.privacy.mechanisms import GaussianNoise, NoNoise, Permit

__all__ = ["DescentPlan", "Slopes", "clipped_slopes", "descend", "plan_descent"]

FloatArray: TypeAlias = NDArray[np.float64]
Slopes: TypeAlias = Callable[[FloatArray, int, int], FloatArray]

MAX_STRIDE = 2000.0
# A map that stretches coefficients by more than this does not do it to useful ones.
_MAX_STRETCH = 64.0


@dataclass(frozen=True, slots=True)
class DescentPlan:
    """The public numbers of one run.

    Attributes
    ----------
    n_columns, n_outputs : int
        Shape of the coefficients; one output for two classes, K for K classes.
    shift : float
        Margin below which a record still pulls: it is added to the margin that the
        logistic loss asks for.
    clip : float
        Bound on the norm of a record's slope.
    momentum : float
        Of Nesterov's method.
    window : float
        Share of the last steps whose iterates are averaged.
    radius : float
        Iterates are projected to a ball of this radius, which they leave only by accident;
        floating-point errors are bounded inside it.
    reach : float
        Queries that the metric has mapped are projected to a ball of this radius, for the
        same reason.
    mechanism : GaussianNoise or NoNoise
        Of one step.
    """

    n_columns: int
    n_outputs: int
    shift: float
    clip: float
    n_steps: int
    momentum: float
    step_size: float
    window: float
    radius: float
    reach: float
    mechanism: GaussianNoise | NoNoise

    @property
    def event(self) -> Repeated | Pure:
        """What the whole run costs."""
        event = self.mechanism.event
        return event if isinstance(event, Pure) else Repeated(event, self.n_steps)


def plan_descent(
    *,
    n_samples: int,
    n_columns: int,
    n_outputs: int,
    block_rows: int,
    mu: float,
    shift: float,
    clip: float,
    n_steps: int,
    momentum: float,
    scale: float,
    window: float,
    amplification: float = 1.0,
    compression: float = 1.0,
    smoothness: float = 0.5,
    max_stride: float = MAX_STRIDE,
    attack: Adversary | None = None,
) -> DescentPlan:
    """Fix the public numbers of a run that is mu-Gaussian private.

    Parameters
    ----------
    n_samples, n_columns : int
        Shape of the unit rows, constant column included.
    n_outputs : int
        One for two classes, K for K classes.
    block_rows : int
        Rows that are summed at a time.
    mu : float
        What the whole run may cost.
    shift, clip, n_steps, momentum, window
        As in :class:`DescentPlan`.
    scale : float
        Length of the path that saturated slopes of all records would draw, in units of
        what the noise allows: the norm of the result is of this order.
    amplification, compression : float, default=1.0
        Bounds on how much the metric stretches coefficients and rows; they enter the
        rounding errors only.
    smoothness : float, default=0.5
        Lipschitz constant of the slopes; it enters the rounding errors only.
    max_stride : float, default=2000.0
        Largest step of the sum over records, times their number.
    attack : Adversary or None, default=None
        Of the rows, for one output and no preconditioner.

    Notes
    -----
    The sensitivity of the sum of slopes times rows is ``2 clip`` for every number of
    classes, attained by ``x' = -x``. An attack whose reach is at most one does not change it.
    What is added to it bounds rounding errors.

    Examples
    --------
    >>> from dp_halfspace.algorithms.gradient.noisy_gd import plan_descent
    >>> plan = plan_descent(n_samples=1000, n_columns=10, n_outputs=1, block_rows=1000, mu=0.2,
    ...                     shift=2.0, clip=0.5, n_steps=40, momentum=0.8, scale=3.0, window=0.5)
    >>> 1.0 < plan.mechanism.sensitivity < 1.0000001
    True
    """
    # Of the order of the noise in the coefficients, times eight.
    radius = 8.0 * scale * (1.0 + math.sqrt(n_columns * n_outputs))
    reach = min(amplification, _MAX_STRETCH) * radius
    rounding = _rounding(
        n_samples=n_samples,
        n_columns=n_columns,
        block_rows=block_rows,
        clip=clip,
        smoothness=smoothness,
        evaluation=2.0 * n_outputs + 32.0,
        reach=reach,
        amplification=amplification,
        compression=compression,
    )
    # Mapped rows are this much longer than one at most: docs/proofs/metric.md, section 3.
    stretched = (n_columns + 8) * math.sqrt(n_columns) * amplification * compression * 2.0**-52
    length = 1.0 + (2.0**-30 if amplification == 1.0 else max(2.0**-27, stretched))
    sensitivity = _sensitivity(clip * length, rounding, attack)
    step_mu = mu / math.sqrt(n_steps) * (1.0 - 2.0**-40)
    mechanism = NoNoise() if math.isinf(mu) else GaussianNoise(sensitivity, step_mu)
    # With little noise the curvature limits the step, not the noise.
    stride = min(scale * mu / (2.0 * clip * n_steps), max_stride / n_samples)
    step_size = (1.0 - momentum) * stride
    # fmt: off
    return DescentPlan(
        n_columns, n_outputs, shift, clip, n_steps, momentum, step_size, window, radius, reach,
        mechanism,
    )
    # fmt: on


def _sensitivity(longest: float, rounding: float, attack: Adversary | None) -> float:
    """Bound the change of a step: ``docs/proofs/noisy_gradient.md``, Lemmas 1 and 3."""
    if attack is None:
        return 2.0 * (longest + rounding)
    further = 1.0 + attack.reach
    # Each of the few roundings that come on top is smaller than those that are counted.
    return max(2.0, further) * longest + 4.0 * further**2 * rounding


def _rounding(
    *,
    n_samples: int,
    n_columns: int,
    block_rows: int,
    clip: float,
    smoothness: float,
    evaluation: float,
    reach: float,
    amplification: float,
    compression: float,
) -> float:
    """Bound the rounding error of a step: ``docs/proofs/noisy_gradient.md``, floating point."""
    # Errors of the sums, which the metric stretches.
    sums = gradient_error(
        n_samples=n_samples,
        n_columns=n_columns,
        block_rows=block_rows,
        row_norm=compression,
        ridge=0.0,
        radius=1.0,
        slope=clip,
        smoothness=0.0,
        evaluation=evaluation,
    )
    # Slopes at inexact margins multiply mapped rows, which have norm one. All rows but the
    # replaced one are the same, to the last bit: docs/proofs/certificate.md, section 7.
    margins = (n_columns + 3) * compression * reach
    per_record = 1.01 * 2.0**-53 * smoothness * margins
    mapped = 0.0
    if amplification > 1.0:
        # The product of the sum with the metric.
        roundings = 1.01 * 2.0**-53 * (n_columns + 2) * math.sqrt(n_columns)
        mapped = roundings * amplification * compression * n_samples * clip
    return amplification * sums + mapped + n_samples * per_record


def clipped_slopes(plan: DescentPlan, codes: NDArray[np.intp], weights: FloatArray) -> Slopes:
    """Return the negative slopes of the shifted logistic loss, clipped record by record.

    Parameters
    ----------
    codes : ndarray of shape (n_samples,)
        Class of each record.
    weights : ndarray of shape (n_samples,)
        In [0, 1].

    Returns
    -------
    callable
        From margins of rows ``lo`` to ``hi - 1`` to slopes of norm at most ``plan.clip``.
    """
    if plan.n_outputs == 1:
        signs = np.where(codes == 1, 1.0, -1.0)

        def binary(margins: FloatArray, lo: int, hi: int) -> FloatArray:
            pull = np.minimum(expit(plan.shift - signs[lo:hi] * margins), plan.clip)
            return np.asarray(signs[lo:hi] * weights[lo:hi] * pull)

        return binary

    def softmax(margins: FloatArray, lo: int, hi: int) -> FloatArray:
        records, own = np.arange(hi - lo), codes[lo:hi]
        margins[records, own] -= plan.shift
        margins -= margins.max(axis=1, keepdims=True)
        pull = np.exp(margins)
        pull /= -pull.sum(axis=1, keepdims=True)
        pull[records, own] += 1.0
        norms = np.sqrt(np.einsum("ij,ij->i", pull, pull))
        pull *= (weights[lo:hi] * plan.clip / np.maximum(norms, plan.clip))[:, None]
        return pull

    return softmax


def descend(
    rows: Rows | AdversarialRows,
    slopes: Slopes,
    plan: DescentPlan,
    permit: Permit,
    transform: Metric | FloatArray | None = None,
) -> FloatArray:
    """Run the noisy steps and return the averaged iterate.

    Parameters
    ----------
    rows : Rows or AdversarialRows
        Rows whose images under `transform` have norm at most one.
    slopes : callable
        From :func:`clipped_slopes`.
    permit : Permit
        Charged with ``plan.event``.
    transform : Metric, ndarray of shape (n_columns, n_columns) or None, default=None
        Released map, or None for the identity.

    Returns
    -------
    ndarray of shape (n_outputs, n_columns)
        Coefficients for the rows before the map.

    References
    ----------
    ``docs/proofs/noisy_gradient.md``. Nesterov (2018), section 2.2.
    """
    shape = (plan.n_columns,) if plan.n_outputs == 1 else (plan.n_columns, plan.n_outputs)
    point, velocity, total = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    n_averaged = max(1, round(plan.window * plan.n_steps))
    for step in range(plan.n_steps):
        ahead = _project(point + plan.momentum * velocity, plan.radius)
        query = ahead if transform is None else _project(transform.T @ ahead, plan.reach)
        ascent = rows.fused_adjoint(query, slopes)
        if transform is not None:
            ascent = transform @ ascent
        noisy = permit.release(ascent, plan.mechanism)
        if plan.n_outputs > 1:
            # Slopes sum to zero over the classes, so the noise along (1, ..., 1) is only noise.
            noisy = noisy - noisy.mean(axis=1, keepdims=True)
        velocity = plan.momentum * velocity + plan.step_size * noisy
        point = point + velocity
        if step >= plan.n_steps - n_averaged:
            total += point
    mean = total / n_averaged
    return np.atleast_2d((mean if transform is None else transform.T @ mean).T)


def _project(point: FloatArray, radius: float) -> FloatArray:
    """Return the nearest point of the ball."""
    norm = float(np.linalg.norm(point))
    return point if norm <= radius else point * (radius / norm)
