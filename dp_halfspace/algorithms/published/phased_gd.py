"""One pass of exact proximal steps on the hinge loss, in phases of halving length.

Proximal maps do not expand distances, so a replaced record moves every later iterate by no
more than its own step: one pass over the data is private with one noise for each phase, and
phases work on disjoint records. Derivation: ``docs/proofs/phased_prox.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._rounding import FAR_UP
from dp_halfspace.algorithms.engine.plan import FloatArray
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.mechanisms import GaussianNoise, NoNoise, Permit
from dp_halfspace.rows.blocks import block_size
from dp_halfspace.rows.rows import Rows

# Iterates stay in this ball; a separator of the known margin lies in it.
_RADIUS = 1.0


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase: records ``lo`` to ``hi - 1`` of the public order, a step size, a noise.

    `mechanism` is for the mean of the iterates of the phase.
    """

    lo: int
    hi: int
    step_size: float
    mechanism: GaussianNoise | NoNoise


@dataclass(frozen=True, slots=True)
class PhasedPlan:
    """The public numbers of a pass; the hinge is ``max(0, 1 - m / margin)``."""

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
        return {"private_preconditioner": False}

    def run(
        self, rows: Rows, classes: NDArray[np.intp], weights: FloatArray, permit: Permit
    ) -> FloatArray:
        """Take the pass over unit rows of two classes; see `Plan`."""
        # 1. For each phase, start from the release of the one before.
        # 2. Take the proximal steps on its records, block by block.
        # 3. Release the mean of its iterates; no other phase sees these records.
        releases = permit.parallel(self.events[0])
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

    `order` is a public permutation of the records, drawn without looking at them. Each phase
    has half of the records that are left and a quarter of the step size; the first step size
    balances the three terms of the excess risk of the first phase.

    References
    ----------
    R. Bassily, M. Mohri and A. Suresh (2022), Algorithm 5 (without boosting, sampling without
    replacement); V. Feldman, T. Koren and K. Talwar (2020), Algorithm 1.
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
    """Calibrate the noise of one phase to exact and to rounded arithmetic.

    The mean of its iterates has the sensitivity ``2 step_size / margin``; what is added to it
    bounds rounding errors.
    """
    if math.isinf(mu):
        return NoNoise()
    pull = step_size / margin
    # Each computed step is off by this much; what is off stays off, but does not grow.
    per_step = 2.0**-52 * (n_columns + 16) * 2.0 * (2.0 * _RADIUS + margin + pull)
    rounding = (n_records + 1) * per_step
    return GaussianNoise(2.0 * (pull * FAR_UP + rounding), mu)


def proximal_pass(
    start: FloatArray, rows: FloatArray, caps: FloatArray, margin: float
) -> tuple[FloatArray, FloatArray]:
    """Take one proximal step on the hinge of each row, in order.

    `rows` have norm one or zero and are multiplied by their labels; `caps` are the longest steps
    that they may cause; from `margin` on a row does not pull. Returns the last iterate and the
    sum of all.
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
