"""Losses of events: as sums of Gaussian terms, and as discretised privacy loss distributions.

A term (weight, shift, mu) stands for the profile ``weight * delta_mu(epsilon - shift)``. The
contract of an objective perturbation or a selection is a sum of terms; sums of several events
multiply out (``docs/proofs/accounting.md``, section 5).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias
from zlib import crc32

import numpy as np

from dp_halfspace.privacy.events import (
    Event,
    Exponential,
    Gaussian,
    ObjectivePerturbation,
    Pure,
    Selection,
    single_runs,
)
from dp_halfspace.privacy.pld import (
    CELLS,
    PLD,
    Term,
    bounded_range,
    compose,
    envelope,
    randomised_response,
)
from dp_halfspace.privacy.profiles import (
    EPSILON_SLACK,
    LOG_SLACK,
    FloatArray,
    log_gdp_delta,
    log_gdp_excess,
)

Counted: TypeAlias = tuple[tuple[Event, int], ...]

_TINY = 1e-150  # its square is a normal number; smaller parameters are raised to it
_HUGE = 1e100  # larger parameters and counts are treated as no guarantee
_HUGE_COUNT = 2**63
# Products of more terms, or of more events, are merged or left to the discretised losses.
_MAX_TERMS, _MAX_COUNT = 4096, 4096
# Least weight of a term; its logarithm is finite.
_LEAST = 1e-300
# More different events are added in so many groups.
_FEW = 32
# Share of a delta whose atoms are moved up instead of evaluated, in blocks of so many.
_NOTHING, _BLOCK = 2.0**-46, 64


def counted(events: Iterable[Event]) -> Counted | None:
    """Count single runs, in an order of their own; None if one has no guarantee at all."""
    result = tuple(sorted(single_runs(events).items(), key=repr))
    if any(_largest(e) > _HUGE or count > _HUGE_COUNT for e, count in result):
        return None
    return result if total_mu(result) <= _HUGE else None


def _largest(event: Event) -> float:
    """Largest parameter of an event."""
    if isinstance(event, Pure | Exponential):
        return event.epsilon
    terms, atoms = _contract(event)
    runs = event.mean_runs if isinstance(event, Selection) else 0.0
    return max(runs, *itertools.chain(*terms), *itertools.chain(*atoms))


def _contract(event: Event) -> tuple[Sequence[Term], Sequence[tuple[float, float]]]:
    """Gaussian terms of a profile, and the (weight, shift) that they are multiplied with."""
    if isinstance(event, Gaussian):
        return [(1.0, 0.0, event.mu)], [(1.0, 0.0)]
    if isinstance(event, ObjectivePerturbation):
        return [(float(n), event.log_ratio, mu) for n, mu in event.vertices], [(1.0, 0.0)]
    if not isinstance(event, Selection):
        raise TypeError(f"not a sum of Gaussian terms: {event!r}")
    step = event.log_ratio / len(event.shares)
    atoms = [(event.mean_runs * w, step * (j + 1)) for j, w in enumerate(event.shares) if w]
    return [term for term in event.terms if term[0]], atoms


def largest_loss(event: Event) -> float:
    """Largest possible loss of an event; infinite if a Gaussian takes part."""
    if isinstance(event, Pure | Exponential):
        return event.epsilon
    terms, atoms = _contract(event)
    if any(mu for _, _, mu in terms):
        return math.inf
    return max(shift for _, shift, _ in terms) + max(shift for _, shift in atoms)


def total_mu(counts: Counted) -> float:
    """All Gaussian events in quadrature."""
    return math.hypot(
        *(_raised(e.mu) * math.sqrt(count) for e, count in counts if isinstance(e, Gaussian))
    )


def _raised(value: float) -> float:
    """Raise a positive parameter to where its square does not underflow."""
    return max(value, _TINY) if value else 0.0


def gaussian_terms(counts: Counted, most: int = _MAX_TERMS) -> list[Term] | None:
    """Multiply out the profiles of Gaussian events, objective perturbations and selections.

    The terms are rounded up; pure and exponential mechanisms are left out. None if there are too
    many events, or more than `most` different terms.
    """
    sums = [(e, n) for e, n in counts if not isinstance(e, Gaussian | Pure | Exponential)]
    number = sum(n for _, n in sums)
    if number > _MAX_COUNT:
        return None
    product: list[Term] = [(1.0, 0.0, total_mu(counts) ** 2)]
    for event, count in sums:
        terms, atoms = _contract(event)
        factors = [(a * b, s + t, _raised(mu) ** 2) for a, s, mu in terms for b, t in atoms]
        for _ in range(count):
            product = _merged((a * b, s + t, m + n) for a, s, m in product for b, t, n in factors)
            if len(product) > most or not math.isfinite(sum(a for a, _, _ in product)):
                return None
    wide, far = 1.0 + (number + 1) * 2.0**-51, 1.0 + max(number - 1, 0) * 2.0**-51
    # A weight that underflows is raised to a normal number.
    return [(max(a, _LEAST), s * far, math.sqrt(square) * wide) for a, s, square in product]


def _merged(terms: Iterable[Term]) -> list[Term]:
    """Add up the weights of terms that differ by rounding only."""
    merged: dict[tuple[str, str], Term] = {}
    for weight, shift, square in terms:
        key = f"{shift:.12e}", f"{square:.12e}"
        a, s, m = merged.get(key, (0.0, 0.0, 0.0))
        merged[key] = (a + weight, max(s, shift), max(m, square))
    return list(merged.values())


@lru_cache(maxsize=32)
def total_pld(counts: Counted, tail: float) -> PLD:
    """Sum of the losses of events that are not Gaussian.

    Many different events are added in groups that do not change when one more arrives.
    """
    if len(counts) <= _FEW:
        return _group_pld(counts, tail, CELLS)
    groups: dict[int, list[tuple[Event, int]]] = {}
    for event, count in counts:
        groups.setdefault(crc32(repr(event).encode()) % _FEW, []).append((event, count))
    cells = CELLS // 4
    return compose([_group_pld(tuple(g), tail, cells) for _, g in sorted(groups.items())], cells)


@lru_cache(maxsize=128)
def _group_pld(counts: Counted, tail: float, cells: int) -> PLD:
    """Sum of the losses of few events."""
    return compose([_pld(event, tail, cells).repeat(count) for event, count in counts], cells)


def _pld(event: Event, tail: float, cells: int) -> PLD:
    """Discretised loss of one event."""
    if isinstance(event, Pure):
        return randomised_response(_raised(event.epsilon), tail)
    if isinstance(event, Exponential):
        return bounded_range(_raised(event.epsilon), tail)
    terms, atoms = _contract(event)
    pairwise = isinstance(event, ObjectivePerturbation) and event.pairwise
    return envelope(terms, atoms, tail, pairwise=pairwise, cells=cells)


@dataclass(frozen=True, slots=True)
class ProfileBound:
    """Sum of a discretised loss and Gaussian terms: one upper bound of all profiles."""

    loss: PLD
    terms: tuple[Term, ...]
    pairwise: bool

    def log_delta(self, epsilon: float) -> float:
        """Logarithm of an upper bound of the smallest delta."""
        losses, mass, cut = self.loss.losses, self.loss.mass, self.loss.cut
        first = float(self.loss.first)
        last = first + len(mass) - 1.0
        furthest = self.loss.step * max(abs(first), abs(last)) + max(s for _, s, _ in self.terms)
        slack = EPSILON_SLACK * abs(epsilon) + (EPSILON_SLACK + self.loss.error) * furthest
        threshold = epsilon - slack
        if len(mass) > 16 * _BLOCK:
            losses, mass, cut = self._relevant(losses, mass, cut, threshold)
        with np.errstate(divide="ignore"):
            logs = np.append(np.log(mass) + self._log_kernel(threshold - losses), np.log(cut))
        return min(0.0, _log_sum(logs) + LOG_SLACK + self.loss.error)

    def _log_kernel(self, remaining: FloatArray) -> FloatArray:
        """Logarithm of the profile of the Gaussian terms."""
        kernel = log_gdp_excess if self.pairwise else log_gdp_delta
        total = np.full(len(remaining), -np.inf)
        for weight, shift, mu in self.terms:
            np.logaddexp(total, math.log(weight) + kernel(mu, remaining - shift), out=total)
        return total

    def _relevant(
        self, losses: FloatArray, mass: FloatArray, cut: float, threshold: float
    ) -> tuple[FloatArray, FloatArray, float]:
        """Move up the atoms at both ends that contribute nothing."""
        starts = np.arange(0, len(mass), _BLOCK)
        blocks = np.add.reduceat(mass, starts)
        kernel = np.exp(np.minimum(self._log_kernel(threshold - losses[starts]), 600.0))
        nothing = _NOTHING * float(blocks @ kernel)
        below = np.append(0.0, np.cumsum(blocks)[:-1])
        above = np.cumsum(blocks[::-1])[::-1]
        low = int(starts[np.flatnonzero(below * kernel <= nothing)[-1]])
        far = np.flatnonzero(above <= nothing)
        high = len(mass) if self.pairwise or not len(far) else int(starts[far[0]])
        if low >= high:
            return losses, mass, cut
        kept = mass[low:high].copy()
        kept[0] += mass[:low].sum()
        return losses[low:high], kept, cut + float(mass[high:].sum())


def _log_sum(logs: FloatArray) -> float:
    """Logarithm of a sum of exponentials."""
    top = float(logs.max())
    return top if top == -math.inf else top + math.log(float(np.exp(logs - top).sum()))
