"""Noisy gradient steps for a margin that is known: the descent of the papers, corrected.

With unit rows and the loss ``h(margin / c)``, the choice of ``c`` is a choice of step size and
path length for the loss ``h(margin)``: nothing else depends on it. Derivations:
``docs/proofs/noisy_gradient.md``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.algorithms.engine.defaults import Steps
from dp_halfspace.algorithms.engine.noisy_gd import (
    DescentPlan,
    Slopes,
    clipped_slopes,
    plan_descent,
)
from dp_halfspace.algorithms.engine.plan import FloatArray

# Half width of the parabola that rounds off the hinge.
_WIDTH = 0.5
_FEWEST_STEPS, _MOST_STEPS = 100, 400
# The mean of all iterates forgets its start at the rate of one over the root of their number.
_MOST_MEAN_STEPS = 2000
# Steps times curvature: beyond it the iteration is unstable even without noise.
_MAX_STRIDE = 8.0
# Extra margin that the softmax asks for: it has no kink at which to stop.
_SHIFT = 3.0
_SMALLEST_DEFAULT = 0.01


def default_margin(n_samples: int, n_columns: int, mu: float) -> float:
    """Return the margin below which noise alone costs half of the training error.

    It is ``4 sqrt(min(n_samples, n_columns)) / (n_samples mu)``, within [.01, 1]. In
    ``docs/proofs/margin_risk.md`` the bound with twice this margin is a quarter.
    """
    noise = 4.0 * math.sqrt(min(n_samples, n_columns)) / (n_samples * mu)
    return min(max(noise, _SMALLEST_DEFAULT), 1.0)


def plan_margin_descent(
    *,
    n_samples: int,
    n_columns: int,
    n_outputs: int,
    block_rows: int,
    mu: float,
    margin: float,
    tail_fraction: float = 0.5,
    n_steps: int | None = None,
) -> DescentPlan:
    """Fix the public numbers of a run for a known margin in (0, 1].

    The iterates of the last share `tail_fraction` of the steps are averaged, 0 for the last one;
    `n_steps` follows from the margin by default; the rest is as in :func:`plan_descent`.

    References
    ----------
    E. Wang, Y. Zhu and Y.-X. Wang (2025), Algorithm 5, with the noise of the number of steps
    that is run; H. Nguyen, J. Ullman and L. Zakynthinou (2020), Algorithm 1.
    ``docs/proofs/noisy_gradient.md``, section "Known margin".
    """
    spread = math.sqrt(2.0 * n_columns * n_outputs)
    target = 1.0 if n_outputs == 1 else _SHIFT
    path_length = target / (margin * spread)
    wanted = min(n_samples * mu * path_length / 30.0, _MOST_STEPS)
    steps = Steps(
        margin_offset=target,
        clip=1.0,
        n_steps=n_steps or max(math.ceil(wanted), _FEWEST_STEPS),
        path_length=path_length,
        tail_fraction=tail_fraction,
        momentum=0.0,
        smoothness=1.0,
        max_stride=_MAX_STRIDE,
    )
    return plan_descent(
        steps,
        n_samples=n_samples,
        n_columns=n_columns,
        n_outputs=n_outputs,
        block_rows=block_rows,
        mu=mu,
    )


def plan_mean_descent(
    *, n_samples: int, n_columns: int, block_rows: int, mu: float, margin: float
) -> DescentPlan:
    """Fix the public numbers of a run of two classes whose mean iterate a theorem bounds.

    The step size is the one of the proof: `dp_halfspace.theory.margin_risk_bound` with
    ``half_width=0.5`` and this number of steps covers the mean of all iterates.

    References
    ----------
    E. Wang, Y. Zhu and Y.-X. Wang (2025), Algorithm 5 and Lemma D.1. Proof:
    ``docs/proofs/margin_risk.md``, Theorem 1 and section 7.
    """
    rank = min(n_columns, n_samples)
    length = (1.0 + _WIDTH) / margin  # of the separator that has no loss
    # From here on noise rules, and more steps bring nothing.
    wanted = min((n_samples * mu) ** 2 / (4.0 * rank), _MOST_MEAN_STEPS)
    n_steps = max(math.ceil(wanted), _FEWEST_STEPS)
    step = length / math.sqrt(n_steps * (1.0 + rank * 4.0 * n_steps / (n_samples * mu) ** 2))
    steps = Steps(
        margin_offset=1.0,
        clip=1.0,
        n_steps=n_steps,
        path_length=length / math.sqrt(rank),  # never shorter than the step size asks for
        tail_fraction=1.0,
        momentum=0.0,
        smoothness=1.0,
        max_stride=step,
    )
    return plan_descent(
        steps, n_samples=n_samples, n_columns=n_columns, n_outputs=1, block_rows=block_rows, mu=mu
    )


def margin_slopes(
    plan: DescentPlan, class_indices: NDArray[np.intp], weights: FloatArray
) -> Slopes:
    """Return the negative slopes of the rounded hinge, of norm at most one.

    Arguments as in :func:`clipped_slopes`; more than two classes have those slopes of the
    shifted softmax instead, which is a rounded hinge too.
    """
    if plan.n_outputs > 1:
        return clipped_slopes(plan, class_indices, weights)
    signs = np.where(class_indices == 1, 1.0, -1.0)

    def hinge(margins: FloatArray, lo: int, hi: int) -> FloatArray:
        missing = 1.0 + _WIDTH - signs[lo:hi] * margins
        return np.asarray(signs[lo:hi] * weights[lo:hi] * np.clip(missing, 0.0, 1.0))

    return hinge
