"""Composition of privacy events into one sum of Gaussian losses at shifted epsilons.

Gaussian events add in quadrature, Jacobian ratios add, lists of vertices multiply, and
the bounded losses of pure mechanisms, exponential mechanisms and rank factors are
convolved on a lattice that dominates them (``docs/proofs/accounting.md``, sections 5-7).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.privacy._log_profiles import (
    EPSILON_SLACK,
    LOG_SLACK,
    FloatArray,
    log_gdp_delta,
    log_gdp_excess,
)
from dp_halfspace.privacy._loss_lattice import (
    LossLattice,
    bounded_range,
    coarsen,
    randomised_response,
    repeat,
    total,
)
from dp_halfspace.privacy.events import (
    Event,
    Exponential,
    Gaussian,
    MixedSelection,
    ObjectivePerturbation,
    Pure,
    Repeated,
    Selection,
    check_event,
)

__all__ = ["Composition", "compose", "counted", "rounded_up"]

_Best: TypeAlias = Selection | MixedSelection
_Bounded: TypeAlias = Pure | Exponential | _Best

# Terms that are kept before they are merged upwards, and what they are merged to.
_MAX_VERTICES = 256
_MAX_SHIFTED, _SHIFTS = 4096, 64
_MAX_TERMS = 2**15
_MIN_ATOMS = 512
_TINY = 1e-150  # its square is a normal number; smaller parameters are raised to it
_HUGE = 1e100  # larger parameters and counts are treated as no guarantee
_HUGE_COUNT = 2**63
_MANY = 2**40  # beyond, the rounding errors of repeated squaring outgrow the masses


@dataclass(frozen=True, slots=True)
class _Vertices:
    """Sum over shifted Gaussian losses: squared mu, shift and log multiplicity of each."""

    mu2: FloatArray
    log_count: FloatArray
    shift: FloatArray
    error: float = 0.0

    def times(self, other: _Vertices) -> _Vertices:
        """Compose: squares and shifts add, multiplicities multiply; like terms are merged."""
        if self is _ONE:
            return other
        mu2 = np.add.outer(self.mu2, other.mu2).ravel() * (1.0 + 2.0**-51)
        shift = np.add.outer(self.shift, other.shift).ravel()
        log_count = np.add.outer(self.log_count, other.log_count).ravel()
        order, first = _groups(mu2, shift)
        if len(first) > (_MAX_SHIFTED if shift.any() else _MAX_VERTICES):
            order, first = _groups(_levels(mu2, _MAX_VERTICES), _levels(shift, _SHIFTS))
        # Up: a term takes the largest mu and the largest shift of its group.
        largest, furthest = (np.maximum.reduceat(x[order], first) for x in (mu2, shift))
        merged = np.logaddexp.reduceat(log_count[order], first)
        sums = np.diff(np.append(first, len(mu2))).max() + 2
        error = self.error + other.error + sums * 2.0**-52 * (1.0 + np.abs(merged).max())
        return _Vertices(largest, merged, furthest, float(error))

    def power(self, count: int) -> _Vertices:
        """Compose `count` copies."""
        result, square = _ONE, self
        while True:
            if count % 2:
                result = result.times(square)
            count //= 2
            if not count:
                return result
            square = square.times(square)


_ONE = _Vertices(np.zeros(1), np.zeros(1), np.zeros(1))


def _groups(mu2: FloatArray, shift: FloatArray) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Order that brings like terms together, and where each group of them begins."""
    order = np.lexsort((mu2, shift))
    sizes, shifts = mu2[order], shift[order]
    other = (np.diff(sizes) > 1e-13 * sizes[1:]) | (np.diff(shifts) > 0.0)
    return order, np.flatnonzero(np.append(True, other))


def _levels(values: FloatArray, count: int) -> FloatArray:
    """Round up to at most `count` levels, 0 among them."""
    top = float(values.max())
    return np.ceil(values / top * (count - 1)) if top else values


@dataclass(frozen=True, slots=True)
class Composition:
    """What a list of events with finite parameters releases.

    The total loss is at most ``log_ratio`` + a bounded loss + one of the Gaussian
    losses with its shift, summed over the latter with their multiplicities.
    """

    mu: FloatArray
    log_count: FloatArray
    shift: FloatArray
    losses: FloatArray
    log_mass: FloatArray
    log_ratio: float
    pairwise: bool
    pure: Fraction | None  # exact sum of all losses, if no Gaussian loss takes part
    log_slack: float
    loss_slack: float

    def log_delta(self, epsilon: float) -> float:
        """Logarithm of an upper bound of the smallest delta."""
        if epsilon == math.inf or (self.pure is not None and epsilon >= self.pure):
            return -math.inf
        threshold = epsilon - abs(epsilon) * EPSILON_SLACK - self.loss_slack - self.log_ratio
        kernel = log_gdp_excess if self.pairwise else log_gdp_delta
        remaining = threshold - self.losses
        # One vertex after the other: all terms together would not fit into the cache.
        terms = [
            _log_sum(self.log_mass + kernel(float(mu), remaining - shift))
            for mu, shift in zip(self.mu, self.shift, strict=True)
        ]
        return min(0.0, _log_sum(self.log_count + np.array(terms)) + self.log_slack)


def _log_sum(logs: FloatArray) -> float:
    """Logarithm of a sum of exponentials."""
    top = float(logs.max())
    return top if top == -math.inf else top + math.log(float(np.exp(logs - top).sum()))


def counted(events: Iterable[Event]) -> Counter[Event]:
    """Count single runs; nothing else unfolds `Repeated`."""
    counts: Counter[Event] = Counter()
    for event in events:
        check_event(event)
        single, count = event, 1
        while isinstance(single, Repeated):
            count *= single.count
            single = single.event
        counts[single] += count
    return counts


@lru_cache(maxsize=64)
def _bounded_loss(pieces: tuple[tuple[_Bounded, int], ...]) -> LossLattice:
    """Total loss of bounded pieces (event, count), the Gaussian part of selections left out."""
    return total([_repeated(event, count) for event, count in pieces])


def _repeated(event: _Bounded, count: int) -> LossLattice:
    """Total loss of `count` runs; of more than can be squared, all at the largest loss."""
    if count <= _MANY or isinstance(event, _Best):
        return repeat(_lattice(event), count)
    reach = rounded_up(Fraction(_raised(event.epsilon)) * count)
    return LossLattice(reach, 1.0, np.ones(1), reach)


def _lattice(event: _Bounded) -> LossLattice:
    """Loss of a bounded piece; of a selection, the shares at their log-ratios."""
    if isinstance(event, Pure):
        return randomised_response(_raised(event.epsilon))
    if isinstance(event, Exponential):
        return bounded_range(_raised(event.epsilon))
    # The Gaussian part of a selection is composed apart from its rank factors.
    reach = max(event.log_ratio, _TINY)
    step = reach / len(event.shares)
    return LossLattice(step, step, np.array(event.shares), reach)


def _bound(event: _Bounded) -> float:
    """Largest possible loss of a bounded piece."""
    if isinstance(event, MixedSelection):
        return event.log_ratio + max(shift for _, shift, _ in event.terms)
    return event.log_ratio if isinstance(event, Selection) else event.epsilon


def _largest(event: Event) -> float:
    """Largest parameter of an event that is not repeated."""
    if isinstance(event, ObjectivePerturbation):
        return max(event.log_ratio, *(mu for _, mu in event.vertices))
    if isinstance(event, Gaussian):
        return event.mu
    if isinstance(event, Selection):
        return max(event.mean_runs, event.log_ratio, event.mu, *event.shares)
    if isinstance(event, MixedSelection):
        numbers = [number for term in event.terms for number in term]
        return max(event.mean_runs, event.log_ratio, *event.shares, *numbers)
    return 0.0 if isinstance(event, Repeated) else event.epsilon


def _vertices(event: ObjectivePerturbation | MixedSelection) -> _Vertices:
    """Gaussian losses of one event; the Jacobian of an objective perturbation is left out."""
    if isinstance(event, ObjectivePerturbation):
        terms = [(float(count), 0.0, mu) for count, mu in event.vertices]
    else:
        terms = [term for term in event.terms if term[0]]
    weights, shift, mu = np.array(terms).T
    mu2 = np.array([_raised(value) ** 2 for value in mu])
    return _Vertices(mu2, np.log(weights), shift)


def _raised(value: float) -> float:
    """Raise a positive parameter to where its square does not underflow."""
    return max(value, _TINY) if value else 0.0


def compose(events: Iterable[Event]) -> Composition | None:
    """Compose events; None if one of them has no guarantee at all."""
    # Sorted, so that the result does not depend on the order of the events.
    counts = sorted(counted(events).items(), key=repr)
    gaussian = math.hypot(
        *(
            _raised(e.mu) * math.sqrt(count)
            for e, count in counts
            if isinstance(e, Gaussian | Selection)
        )
    )
    bounded = [(e, count) for e, count in counts if isinstance(e, _Bounded)]
    objectives = [(e, count) for e, count in counts if isinstance(e, ObjectivePerturbation)]
    if max([gaussian, *(_largest(e) for e, _ in counts)]) > _HUGE or any(
        count > (_MANY if isinstance(e, _Best) else _HUGE_COUNT) for e, count in counts
    ):
        return None

    vertices = _ONE
    for e, count in counts:
        if isinstance(e, ObjectivePerturbation | MixedSelection):
            vertices = vertices.times(_vertices(e).power(count))
    log_runs = math.fsum(n * math.log(e.mean_runs) for e, n in bounded if isinstance(e, _Best))
    mu = np.sqrt(vertices.mu2 + gaussian**2) * (1.0 + 2.0**-50)
    lattice = _bounded_loss(
        tuple((e, n) for e, n in bounded if isinstance(e, _Best) or e.epsilon > 0.0)
    )
    while len(mu) * len(lattice.mass) > _MAX_TERMS and len(lattice.mass) > _MIN_ATOMS:
        lattice = coarsen(lattice)
    log_ratio = sum((Fraction(e.log_ratio) * count for e, count in objectives), Fraction(0))
    pure = sum((Fraction(_bound(e)) * count for e, count in bounded), log_ratio)
    jacobian = rounded_up(log_ratio)
    shifted = jacobian + float(vertices.shift.max())
    with np.errstate(divide="ignore"):
        log_mass = np.log(np.append(lattice.mass, lattice.cut))
    return Composition(
        mu=mu,
        log_count=vertices.log_count + log_runs,
        shift=vertices.shift,
        losses=np.append(lattice.losses, lattice.reach),
        log_mass=log_mass,
        log_ratio=jacobian,
        pairwise=any(e.pairwise for e, _ in objectives),
        pure=None if mu.max() > 0.0 else pure,
        log_slack=LOG_SLACK + lattice.error + vertices.error + 2.0**-50 * log_runs,
        loss_slack=EPSILON_SLACK * shifted + (EPSILON_SLACK + lattice.error) * lattice.reach,
    )


def rounded_up(value: Fraction) -> float:
    """Smallest float that is not below `value`."""
    nearest = float(value)
    return nearest if nearest >= value else math.nextafter(nearest, math.inf)
