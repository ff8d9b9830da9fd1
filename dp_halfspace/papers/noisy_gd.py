"""Full-batch DP gradient descent on normalised rows: the steps of a published algorithm.

The gradient sum of a clipped loss changes by at most twice the clip when one record is replaced, at
every point. So a fixed number of noisy steps composes exactly, and step size and averaging are
post-processing. The whole run is exactly Gaussian private, with no minimiser, no
certificate and no branch that depends on the data. Derivations: ``docs/proofs/noisy_gradient.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._rounding import DOWN, FAR_UP
from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.data.record_weights import Weights
from dp_halfspace.optim.certificate import gradient_error
from dp_halfspace.privacy.events import Event, Pure, Repeated
from dp_halfspace.privacy.mechanisms import GaussianNoise, NoNoise, Permit
from dp_halfspace.rows.blocks import FloatArray, into_ball
from dp_halfspace.rows.rows import Rows

# Maps the margins of the rows lo to hi - 1 to the negative slopes of their losses.
Slopes: TypeAlias = Callable[[FloatArray, int, int], FloatArray]


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Settings of noisy gradient steps.

    `margin_offset` is the margin at which the loss has half of its largest slope. `clip` bounds the
    norm of a record's slope. `path_length` is the sum of the lengths of all steps if every record
    had the largest slope in one direction, in units that follow from the noise; the norm of the
    result is of this order (``docs/proofs/noisy_gradient.md``). The iterates of the last
    `tail_fraction` of the steps are averaged. `max_stride` is the upper limit on the step size
    times the number of records. `smoothness`, the Lipschitz constant of the slopes, enters the
    allowance for rounding errors only.
    """

    margin_offset: float
    clip: float
    n_steps: int
    path_length: float
    tail_fraction: float
    max_stride: float
    smoothness: float


@dataclass(frozen=True, slots=True)
class Descent:
    """The public numbers of one run; there is one output for two classes, and K for K classes.

    Iterates are projected to a ball of `radius`, because rounding errors are bounded inside it;
    they hardly ever reach its border. `mechanism` is that of one step, `event` the cost of the
    whole run.
    """

    n_columns: int
    n_outputs: int
    steps: Steps
    step_size: float
    radius: float
    mechanism: GaussianNoise | NoNoise
    event: Repeated | Pure


def plan_descent(
    steps: Steps,
    *,
    n_samples: int,
    n_columns: int,
    n_outputs: int,
    block_rows: int,
    mu: float,
) -> Descent:
    """Fix the public numbers of a run on normalised rows that is mu-Gaussian private as a whole.

    `block_rows` rows are summed at a time.

    The sensitivity of the sum of slopes times rows is ``2 clip`` for every number of
    classes, attained by ``x' = -x``. An allowance for rounding errors is added.
    """
    # Eight times the norm that the noise of all steps gives the iterate.
    radius = 8.0 * steps.path_length * (1.0 + math.sqrt(n_columns * n_outputs))
    # Rounding errors of the sums over rows.
    sums = gradient_error(
        n_samples=n_samples,
        n_columns=n_columns,
        block_rows=block_rows,
        row_norm=1.0,
        ridge=0.0,
        radius=1.0,
        slope=steps.clip,
        smoothness=0.0,
        evaluation=2.0 * n_outputs + 32.0,
        compensated=True,
    )
    # Rounded margins give inexact slopes, which multiply rows of norm one. All rows but the
    # replaced one are the same to the last bit: docs/proofs/certificate.md, section 7.
    per_record = 1.01 * 2.0**-53 * steps.smoothness * ((n_columns + 3) * radius)
    rounding = sums + n_samples * per_record
    # Upper bound on the norm of a computed row, times the clip.
    longest = FAR_UP * steps.clip
    # docs/proofs/noisy_gradient.md, Lemma 1.
    sensitivity = 2.0 * (longest + rounding)
    mechanism: GaussianNoise | NoNoise = NoNoise()
    event: Repeated | Pure = NoNoise().event
    if math.isfinite(mu):
        step_mu = mu / math.sqrt(steps.n_steps) * DOWN
        mechanism = GaussianNoise(sensitivity, step_mu)
        event = Repeated(mechanism.event, steps.n_steps)
    # The noise determines the step size; with little noise the curvature of the loss limits it.
    stride = steps.path_length * mu / (2.0 * steps.clip * steps.n_steps)
    step_size = min(stride, steps.max_stride / n_samples)
    return Descent(n_columns, n_outputs, steps, step_size, radius, mechanism, event)


def softmax_slopes(plan: Descent, class_indices: NDArray[np.intp], weights: FloatArray) -> Slopes:
    """Return a function that computes negative slopes of the shifted softmax loss, clipped.

    The slope of each record is clipped by itself, to a norm of at most ``plan.steps.clip``.
    `class_indices` and `weights` are the classes of the records and their weights in [0, 1].
    """
    margin_offset, clip = plan.steps.margin_offset, plan.steps.clip

    def softmax(margins: FloatArray, lo: int, hi: int) -> FloatArray:
        records, own = np.arange(hi - lo), class_indices[lo:hi]
        margins[records, own] -= margin_offset
        margins -= margins.max(axis=1, keepdims=True)
        negative_slopes = np.exp(margins)
        negative_slopes /= -negative_slopes.sum(axis=1, keepdims=True)
        negative_slopes[records, own] += 1.0
        norms = np.sqrt(np.einsum("ij,ij->i", negative_slopes, negative_slopes))
        negative_slopes *= (weights[lo:hi] * clip / np.maximum(norms, clip))[:, None]
        return negative_slopes

    return softmax


def descend(rows: Rows, slopes: Slopes, plan: Descent, permit: Permit) -> FloatArray:
    """Run the noisy steps and return the averaged iterate, of shape (n_outputs, n_columns).

    `permit` is charged with ``plan.event``. Reference: ``docs/proofs/noisy_gradient.md``.

    Notes
    -----
    **Guarantee.**

    - Adjacency: replace-one, of a record or of a person with all rows.
    - Released: at every step the noisy sum of clipped slopes times rows; everything else is a
      function of these sums.
    - Sensitivity: twice the clip, and an allowance for rounding.
    - Proof: ``docs/proofs/noisy_gradient.md``, Lemma 1; ``certificate.md``, section 7.
    """
    # 1. Project the iterate to a public ball where rounding errors are bounded.
    # 2. Release the clipped gradient sum with the noise of one step.
    # 3. Take the step, and average the last iterates: post-processing.
    steps = plan.steps
    shape = (plan.n_columns,) if plan.n_outputs == 1 else (plan.n_columns, plan.n_outputs)
    point, total = np.zeros(shape), np.zeros(shape)
    n_averaged = max(1, round(steps.tail_fraction * steps.n_steps))
    for step in range(steps.n_steps):
        query = into_ball(point, plan.radius)
        noisy = permit.release(rows.fused_adjoint(query, slopes), plan.mechanism)
        if plan.n_outputs > 1:
            # The slopes of a record sum to zero over the classes, so the release holds nothing but
            # noise along (1, ..., 1).
            noisy = noisy - noisy.mean(axis=1, keepdims=True)
        point = point + plan.step_size * noisy
        if step >= steps.n_steps - n_averaged:
            total += point
    return np.atleast_2d((total / n_averaged).T)


@dataclass(frozen=True, slots=True)
class NoisySteps:
    """The public numbers of a fit by noisy gradient steps; `events` are what a run releases.

    `slopes` makes the function that computes slopes from the plan of the steps and from the classes
    and weights of the records.
    """

    descent: Descent
    events: tuple[Event, ...]
    slopes: Callable[[Descent, NDArray[np.intp], FloatArray], Slopes]

    def run(
        self, rows: Any, classes: NDArray[np.intp], weights: Weights, permit: Permit
    ) -> FloatArray:
        """Take the steps on normalised rows; see `Algorithm`."""
        with single_blas_thread():
            slopes = rows.apply_to_classes(partial(self.slopes, self.descent), classes, weights)
            return descend(rows, slopes, self.descent, permit)
