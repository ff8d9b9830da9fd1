"""One pass of exact proximal steps on the hinge loss, in phases of halving length.

Proximal maps do not expand distances, so a replaced record moves every later iterate by no
more than its own step: one pass over the data is private with one noise for each phase, and
phases work on disjoint records. Derivation: ``docs/proofs/phased_prox.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.optim.design.rows import Rows, block_size
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.mechanisms import GaussianNoise, NoNoise, Permit

__all__ = ["Phase", "PhasedPlan", "plan_phased_prox", "proximal_pass"]

FloatArray: TypeAlias = NDArray[np.float64]

# Iterates stay in this ball; a separator of the known margin lies in it.
_RADIUS = 1.0


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase: consecutive records of the public order, a step size, a noise.

    Attributes
    ----------
    lo, hi : int
        First record, and the one behind the last.
    mechanism : GaussianNoise or NoNoise
        For the mean of the iterates of the phase.
    """

    lo: int
    hi: int
    step_size: float
    mechanism: GaussianNoise | NoNoise


@dataclass(frozen=True, slots=True)
class PhasedPlan:
    """The public numbers of a pass.

    Attributes
    ----------
    margin : float
        Margin of the hinge ``max(0, 1 - m / margin)``.
    """

    margin: float
    n_columns: int
    phases: tuple[Phase, ...]
    order: NDArray[np.intp]

    @property
    def events(self) -> tuple[Event, ...]:
        """What a run releases: one phase, because phases share no record."""
        return (self.phases[0].mechanism.event,)

    @property
    def public(self) -> dict[str, Any]:
        """What a record says about it."""
        return {"private_metric": False}

    def run(
        self, rows: Rows, classes: NDArray[np.intp], weights: FloatArray, permit: Permit
    ) -> FloatArray:
        """Take the pass over unit rows of two classes; see `Plan`."""
        releases = permit.disjoint(self.events[0])
        point = np.zeros(self.n_columns)
        for phase in self.phases:
            total = np.zeros(self.n_columns)
            # Earlier releases are outside the ball because of their noise: free to be moved.
            current = point / max(1.0, float(np.linalg.norm(point)) / _RADIUS)
            step = block_size(phase.hi - phase.lo, self.n_columns, is_sparse=False)
            for lo in range(phase.lo, phase.hi, step):
                index = self.order[lo : min(lo + step, phase.hi)]
                signs = np.where(classes[index] == 1, 1.0, -1.0)
                caps = phase.step_size / self.margin * weights[classes[index]]
                signed = rows.dense(index) * signs[:, None]
                current, part = proximal_pass(current, signed, caps, self.margin)
                total += part
            mean = total / (phase.hi - phase.lo)
            point = releases.release(mean, phase.mechanism, range(phase.lo, phase.hi))
        return point[None, :]


def plan_phased_prox(
    n_samples: int, n_columns: int, *, mu: float, margin: float, order: NDArray[np.intp]
) -> PhasedPlan:
    """Fix the public numbers of a pass that is mu-Gaussian private.

    Parameters
    ----------
    n_samples, n_columns : int
        Shape of the unit rows, constant column included.
    mu : float
        What the pass may cost; infinity adds no noise.
    margin : float
        In (0, 1].
    order : ndarray of shape (n_samples,)
        Public permutation of the records, drawn without looking at them.

    Returns
    -------
    PhasedPlan
        Each phase has half of the records that are left and a quarter of the step size.

    Notes
    -----
    The mean of the iterates of a phase has the sensitivity ``2 step_size / margin``; what is
    added to it bounds rounding errors. The first step size balances the three terms of the
    excess risk of the first phase.

    References
    ----------
    R. Bassily, M. Mohri and A. Suresh (2022), Algorithm 5 (without boosting, sampling without
    replacement); V. Feldman, T. Koren and K. Talwar (2020), Algorithm 1.

    Examples
    --------
    >>> from dp_halfspace.algorithms.gradient.phased_gd import plan_phased_prox
    >>> import numpy as np
    >>> plan = plan_phased_prox(1000, 10, mu=0.5, margin=0.1, order=np.arange(1000))
    >>> [(phase.lo, phase.hi) for phase in plan.phases[:3]], plan.events
    ([(0, 500), (500, 750), (750, 875)], (Gaussian(mu=0.5),))
    """
    spread = 0.5 + 2.0 * math.sqrt(n_columns) / mu
    step_size = margin / math.sqrt(n_samples * spread)
    phases = []
    lo = 0
    while lo < n_samples:
        hi = lo + max(1, (n_samples - lo) // 2)
        noise = _noise(hi - lo, n_columns, step_size, margin, mu)
        phases.append(Phase(lo, hi, step_size, noise))
        lo, step_size = hi, step_size / 4.0
    return PhasedPlan(margin, n_columns, tuple(phases), order)


def _noise(
    n_records: int, n_columns: int, step_size: float, margin: float, mu: float
) -> GaussianNoise | NoNoise:
    """Calibrate the noise of one phase to exact and to rounded arithmetic."""
    if math.isinf(mu):
        return NoNoise()
    pull = step_size / margin
    # Each computed step is off by this much; what is off stays off, but does not grow.
    per_step = 2.0**-52 * (n_columns + 16) * 2.0 * (2.0 * _RADIUS + margin + pull)
    rounding = (n_records + 1) * per_step
    return GaussianNoise(2.0 * (pull * (1.0 + 2.0**-30) + rounding), mu)


def proximal_pass(
    start: FloatArray, rows: FloatArray, caps: FloatArray, margin: float
) -> tuple[FloatArray, FloatArray]:
    """Take one proximal step on the hinge of each row, in order.

    Parameters
    ----------
    start : ndarray of shape (n_columns,)
        In the unit ball.
    rows : ndarray of shape (m, n_columns)
        Of norm one or zero, times the label.
    caps : ndarray of shape (m,)
        Longest step that each row may cause.
    margin : float
        Margin from which on a row does not pull.

    Returns
    -------
    total : ndarray of shape (n_columns,)
        Sum of the iterates after each step.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.algorithms.gradient.phased_gd import proximal_pass
    >>> proximal_pass(np.zeros(2), np.eye(2), np.array([0.3, 0.05]), margin=0.2)[0]
    array([0.2 , 0.05])
    """
    point, total = start.copy(), np.zeros_like(start)
    squares = np.einsum("ij,ij->i", rows, rows)
    inverse = np.divide(1.0, squares, out=np.zeros_like(squares), where=squares > 0.0)
    for row, factor, cap in zip(rows, inverse.tolist(), caps.tolist(), strict=True):
        pull = min(max((margin - float(row @ point)) * factor, 0.0), cap)
        if pull > 0.0:
            point += pull * row
            norm = math.sqrt(float(point @ point))
            if norm > _RADIUS:
                point *= _RADIUS / norm
        total += point
    return point, total
