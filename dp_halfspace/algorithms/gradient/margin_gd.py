"""Noisy gradient steps for a margin that is known: the descent of the papers, corrected.

With unit rows and the loss ``h(margin / c)``, the choice of ``c`` is a choice of step size and
path length for the loss ``h(margin)``: nothing else depends on it. Derivations:
``docs/proofs/noisy_gradient.md``.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.algorithms.gradient.noisy_gd import (
    DescentPlan,
    Slopes,
    clipped_slopes,
    plan_descent,
)

__all__ = ["SMALLEST_MARGIN", "default_margin", "margin_slopes", "plan_margin_descent"]

FloatArray: TypeAlias = NDArray[np.float64]

# Half width of the parabola that rounds off the hinge.
_WIDTH = 0.5
_FEWEST_STEPS, _MOST_STEPS = 100, 400
# Steps times curvature: beyond it the iteration is unstable even without noise.
_MAX_STRIDE = 8.0
# Extra margin that the softmax asks for: it has no kink at which to stop.
_SHIFT = 3.0
_SMALLEST_DEFAULT = 0.01
# Public numbers are divided by the square of a margin; no data set has such a small one.
SMALLEST_MARGIN = 1e-9


def default_margin(n_samples: int, n_columns: int, mu: float) -> float:
    """Return the margin below which noise alone costs half of the training error.

    Parameters
    ----------
    mu : float
        Budget of the training.

    Returns
    -------
    float
        ``4 sqrt(min(n_samples, n_columns)) / (n_samples mu)``, within [.01, 1].

    References
    ----------
    ``docs/proofs/margin_risk.md``: the bound with twice this margin is a quarter.

    Examples
    --------
    >>> from dp_halfspace.algorithms.gradient.margin_gd import default_margin
    >>> default_margin(10000, 100, 0.2)
    0.02
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
    averaged: bool = True,
    n_steps: int | None = None,
) -> DescentPlan:
    """Fix the public numbers of a run for a known margin.

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
    margin : float
        In (0, 1]: distance of the rows to the hyperplane that is looked for.
    averaged : bool, default=True
        Whether to return the mean of the last half of the iterates, or the last one.
    n_steps : int or None, default=None
        None follows from the margin.

    References
    ----------
    E. Wang, Y. Zhu and Y.-X. Wang (2025), Algorithm 5, with the noise of the number of steps
    that is run; H. Nguyen, J. Ullman and L. Zakynthinou (2020), Algorithm 1.
    ``docs/proofs/noisy_gradient.md``, section "Known margin".

    Examples
    --------
    >>> from dp_halfspace.algorithms.gradient.margin_gd import plan_margin_descent
    >>> plan = plan_margin_descent(n_samples=10000, n_columns=20, n_outputs=1, block_rows=4096,
    ...                            mu=0.2, margin=0.1)
    >>> plan.n_steps
    106
    """
    spread = math.sqrt(2.0 * n_columns * n_outputs)
    target = 1.0 if n_outputs == 1 else _SHIFT
    scale = target / (margin * spread)
    wanted = min(n_samples * mu * scale / 30.0, _MOST_STEPS)
    return plan_descent(
        n_samples=n_samples,
        n_columns=n_columns,
        n_outputs=n_outputs,
        block_rows=block_rows,
        mu=mu,
        shift=target,
        clip=1.0,
        n_steps=n_steps or max(math.ceil(wanted), _FEWEST_STEPS),
        momentum=0.0,
        scale=scale,
        window=0.5 if averaged else 0.0,
        smoothness=1.0,
        max_stride=_MAX_STRIDE,
    )


def margin_slopes(plan: DescentPlan, codes: NDArray[np.intp], weights: FloatArray) -> Slopes:
    """Return the negative slopes of the rounded hinge, of norm at most one.

    Parameters
    ----------
    plan : DescentPlan
        From :func:`plan_margin_descent`.
    codes : ndarray of shape (n_samples,)
        Class of each record.
    weights : ndarray of shape (n_samples,)
        In [0, 1].

    Returns
    -------
    callable
        From margins of rows ``lo`` to ``hi - 1`` to slopes. More than two classes have the
        clipped slopes of the shifted softmax instead, which is a rounded hinge too.
    """
    if plan.n_outputs > 1:
        return clipped_slopes(plan, codes, weights)
    signs = np.where(codes == 1, 1.0, -1.0)

    def hinge(margins: FloatArray, lo: int, hi: int) -> FloatArray:
        missing = 1.0 + _WIDTH - signs[lo:hi] * margins
        return np.asarray(signs[lo:hi] * weights[lo:hi] * np.clip(missing, 0.0, 1.0))

    return hinge
