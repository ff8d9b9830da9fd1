"""Laws of bounded privacy losses on a lattice, rounded so that they dominate.

A purely private mechanism and the exponential mechanism have worst cases whose loss is
bounded; a lattice holds the law of such a loss under the first of two neighbouring data
sets. Every change of a lattice splits atoms between their neighbours in a way that
keeps their mass under both data sets (the old pair is then a post-processing of the new
one), or moves mass to larger losses. Both only raise the delta that is computed in the
end. The first is exact to second order in the step (``docs/proofs/accounting.md``,
sections 3 and 4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dp_halfspace.privacy._log_profiles import FloatArray

__all__ = ["LossLattice", "bounded_range", "coarsen", "randomised_response", "repeat", "total"]

_CELLS = 4096
_MAX_ATOMS = 8192
# Mass beyond which tails are cut; a delta below it is never asked for in earnest.
_TAIL = 1e-120
_ULP = 2.0**-52


@dataclass(frozen=True, slots=True)
class LossLattice:
    """Law of a bounded privacy loss on ``start + step * j``.

    Attributes
    ----------
    start, step : float
        The lattice.
    mass : ndarray of shape (n_atoms,)
        Probabilities under the first data set.
    reach : float
        Largest loss that is possible at all.
    cut : float
        Mass removed from the upper end; its loss is at most `reach`.
    error : float
        Bound of the relative rounding error of `mass`, and of the error of `start`
        relative to `reach`.
    """

    start: float
    step: float
    mass: FloatArray
    reach: float
    cut: float = 0.0
    error: float = 2.0**-48

    @property
    def losses(self) -> FloatArray:
        """Positions of the atoms, ascending."""
        return np.asarray(self.start + self.step * np.arange(len(self.mass)), dtype=np.float64)


def randomised_response(epsilon0: float) -> LossLattice:
    """Loss of randomised response, the worst purely `epsilon0`-private mechanism."""
    truth = 1.0 / (1.0 + math.exp(-epsilon0))
    lie = math.exp(-epsilon0) * truth
    return _trim(LossLattice(-epsilon0, 2.0 * epsilon0, np.array([lie, truth]), epsilon0))


def bounded_range(epsilon0: float) -> LossLattice:
    """Loss of the worst exponential mechanism, its profile interpolated on a grid.

    The worst profile is linear in the square root of exp(epsilon); its interpolation by
    chords has constant mass under the symmetrised law, one half of it at the two ends.
    """
    step = 2.0 * epsilon0 / _CELLS
    losses = -epsilon0 + step * np.arange(_CELLS + 1)
    mass = np.exp(0.5 * (losses - epsilon0)) * (2.0 * math.tanh(0.25 * step))
    mass[[0, -1]] *= 0.5
    error = 2.0**-48 * (1.0 + epsilon0)
    return _trim(LossLattice(-epsilon0, step, mass / -math.expm1(-epsilon0), epsilon0, error=error))


def repeat(lattice: LossLattice, count: int) -> LossLattice:
    """Sum of `count` independent losses of the same law, by repeated squaring."""
    result = None
    while True:
        if count % 2:
            result = lattice if result is None else _compose(result, lattice)
        count //= 2
        if result is not None and not count:
            return result
        lattice = _compose(lattice, lattice)


def total(parts: Sequence[LossLattice]) -> LossLattice:
    """Sum of independent losses; of no losses, the constant 0."""
    if not parts:
        return LossLattice(0.0, 1.0, np.ones(1), 0.0)
    if len(parts) == 1:
        return parts[0]
    widths = [part.step * (len(part.mass) - 1) for part in parts]
    # The sum of many losses concentrates, so that its tails are cut before the full
    # width is reached; 24 standard deviations hold all but the cut mass.
    width = min(math.fsum(widths), 24.0 * math.hypot(*widths))
    step = max(width / _MAX_ATOMS, 1e-30 * max(part.reach for part in parts))
    result = _rebin(parts[0], step)
    for part in parts[1:]:
        result = _compose(result, _rebin(part, step))
    return result


def coarsen(lattice: LossLattice) -> LossLattice:
    """Double the step."""
    return _rebin(lattice, 2.0 * lattice.step)


def _compose(a: LossLattice, b: LossLattice) -> LossLattice:
    """Sum of two independent losses, on the coarser of the two lattices."""
    step = max(a.step, b.step)
    a, b = _rebin(a, step), _rebin(b, step)
    result = LossLattice(
        a.start + b.start,
        step,
        np.convolve(a.mass, b.mass),
        a.reach + b.reach,
        a.cut + b.cut,
        a.error + b.error + (min(len(a.mass), len(b.mass)) + 4) * _ULP,
    )
    result = _trim(result)
    while len(result.mass) > _MAX_ATOMS:
        result = coarsen(result)
    return result


def _rebin(lattice: LossLattice, step: float) -> LossLattice:
    """Split every atom between its neighbours on a lattice of another step.

    An atom at x above the lower neighbour gives the share (1 - e^-x) / (1 - e^-step) to
    the upper one: this preserves its mass under both data sets.
    """
    if step == lattice.step:
        return lattice
    first = math.floor(lattice.start / step)
    position = lattice.start / step - first + (lattice.step / step) * np.arange(len(lattice.mass))
    below = np.floor(position).astype(np.intp)
    share = np.expm1(-step * (position - below)) / math.expm1(-step)
    size = int(below[-1]) + 2
    mass = np.zeros(size)
    mass += np.bincount(below, lattice.mass * (1.0 - share), minlength=size)
    mass += np.bincount(below + 1, lattice.mass * share, minlength=size)
    terms = min(len(lattice.mass), math.ceil(step / lattice.step)) + 8
    return _trim(
        replace(
            lattice,
            start=first * step,
            step=step,
            mass=mass,
            error=lattice.error + terms * _ULP,
        )
    )


def _trim(lattice: LossLattice) -> LossLattice:
    """Cut negligible tails: the lower one moves up, the upper one is kept as `cut`."""
    rising = np.cumsum(lattice.mass)
    falling = np.cumsum(lattice.mass[::-1])
    low = int(np.searchsorted(rising, _TAIL, side="right"))
    high = int(np.searchsorted(falling, _TAIL, side="right"))
    if not low and not high:
        return lattice
    mass = lattice.mass[low : len(lattice.mass) - high].copy()
    mass[0] += rising[low - 1] if low else 0.0
    cut = lattice.cut + (float(falling[high - 1]) if high else 0.0)
    return replace(lattice, start=lattice.start + low * lattice.step, mass=mass, cut=cut)
