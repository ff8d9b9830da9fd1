"""Discretised privacy loss distributions (PLD), rounded so that they dominate.

In the worst case, every event is a randomised response of random strength: its loss is t or -t with
odds exp(t) to 1, and the distribution of t >= 0 follows from the privacy profile of the event. A
`PLD` is the distribution of such a loss, or of a sum of them, on a lattice. A coarser lattice, a
tail that is cut, or a rounding error can only raise the delta that is computed in the end
(``docs/proofs/accounting.md``, sections 3 and 4).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri

from dp_halfspace._params import EPSILON_RANGE
from dp_halfspace._rounding import EPS
from dp_halfspace.privacy.profiles import (
    LEAST_PARAMETER,
    LOG_SLACK,
    FloatArray,
    Term,
    log_gdp_delta,
)

# Number of cells of a discretised event; a sum has at most about twice as many.
CELLS = 4096
# Largest mass at the upper end of a loss that each operation may count as an infinite loss. A much
# smaller delta is not computed beside such losses.
TAIL = 1e-45
# Number of standard deviations that the cells cover, unless the tail of a loss is not cut.
_USUAL_WIDTH = 14.0
# Largest mass at the lower end of a sum that is moved up. Hardly any of it gets above a threshold.
_LOW = 2.0**-70
# If the tail of a loss is not cut, its lattice covers all but this mass.
_LEAST_COVERED = 1e-305
# Bound on the mass that such a loss has beyond the lattice, and on the mass that underflows in a
# sum of losses; it counts as an infinite loss.
_NEGLECTED = 1e-302
# A sum whose masses have a larger relative error is treated as no guarantee.
_TOO_INEXACT = 0.5
# Smallest number of cells of a loss that is resolved. A narrower Gaussian loss is replaced by a
# wider one, which dominates. Of many steps on sampled records, a loss of one over the number of
# records has so many, for which their lattice is halved up to this many times.
_FEWEST_CELLS = 16.0
_MOST_HALVINGS = 2
# A step on a sampled record with a larger mu is treated as no guarantee; it would not change what
# many of them find.
LARGEST_SAMPLED_MU = 4.0
# Largest number of standard deviations that one set of quadrature nodes covers.
_WIDEST = 0.5
# Bound on the relative error of the masses of such a step, at least seven times the measured one.
_SAMPLED_ERROR = 2.0**-38
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


@dataclass(frozen=True, slots=True)
class PLD:
    """Distribution of a privacy loss on the lattice ``step * (first + j)``.

    The distribution is that under the first of two neighbouring data sets. `cut` is the mass that
    was cut, whose loss counts as infinite. `error` bounds the relative rounding error of `mass`,
    and the error of the places relative to the largest one. `tail` is the mass that each operation
    may cut from the upper end; with 0 nothing is cut.
    """

    step: float
    first: int
    mass: FloatArray
    cut: float = 0.0
    error: float = 0.0
    tail: float = TAIL

    @property
    def losses(self) -> FloatArray:
        """The losses of the atoms, in ascending order."""
        places = float(self.first) + np.arange(len(self.mass))
        return np.asarray(self.step * places, dtype=np.float64)

    @property
    def width(self) -> float:
        """Distance between the outermost atoms."""
        return self.step * (len(self.mass) - 1)

    def plus(self, other: PLD, cells: int = CELLS) -> PLD:
        """Return the sum of two independent losses, on at most about ``2 * cells`` cells."""
        step = _common_step(self, other, 2 * cells)
        a, b = self._on_lattice(step), other._on_lattice(step)
        if a.error + b.error > _TOO_INEXACT:
            return PLD(1.0, 0, np.ones(1), cut=1.0)
        # Sums of positive products keep their relative accuracy; what underflows is neglected.
        mass, tail = np.convolve(a.mass, b.mass), min(a.tail, b.tail)
        error = a.error + b.error + (min(len(a.mass), len(b.mass)) + 4) * 2.0 * EPS
        cut = a.cut + b.cut + _NEGLECTED
        return PLD(step, a.first + b.first, mass, cut, error, tail)._trim_tails()

    def repeat(self, count: int, cells: int = CELLS) -> PLD:
        """Return the sum of `count` independent losses of this kind, by repeated squaring."""
        result, square = None, self
        while True:
            if count % 2:
                result = square if result is None else result.plus(square, cells)
            count //= 2
            if result is not None and not count:
                return result
            square = square.plus(square, cells)

    def _on_lattice(self, step: float) -> PLD:
        """Split every atom between its neighbours on a lattice of another step."""
        if step == self.step:
            return self
        first, mass = _split_atoms(self.losses, self.mass, step)
        terms = min(len(self.mass), math.ceil(step / self.step)) + 8
        on = replace(self, step=step, first=first, mass=mass, error=self.error + terms * 2.0 * EPS)
        return on._trim_tails()

    def _trim_tails(self) -> PLD:
        """Cut negligible tails: the lower one is moved up, the upper one to infinity."""
        rising, falling = np.cumsum(self.mass), np.cumsum(self.mass[::-1])
        low = int(np.searchsorted(rising, _LOW, side="right"))
        high = int(np.searchsorted(falling, self.tail, side="right"))
        if low + high >= len(self.mass):
            return self
        mass = self.mass[low : len(self.mass) - high].copy()
        mass[0] += rising[low - 1] if low else 0.0
        cut = self.cut + (float(falling[high - 1]) if high else 0.0)
        return replace(self, first=self.first + low, mass=mass, cut=cut)


def compose(parts: Sequence[PLD], cells: int = CELLS) -> PLD:
    """Return the sum of independent losses; the narrowest are added first, on fine lattices."""
    heap = [(part.width, place, part) for place, part in enumerate(parts)]
    heapq.heapify(heap)
    while len(heap) > 1:
        _, place, narrow = heapq.heappop(heap)
        total = narrow.plus(heap[0][2], cells)
        heapq.heapreplace(heap, (total.width, place, total))
    return heap[0][2] if heap else PLD(1.0, 0, np.ones(1))


def randomised_response_pld(epsilon: float) -> PLD:
    """Return the loss of randomised response, the worst `epsilon`-DP mechanism."""
    truth = 1.0 / (1.0 + math.exp(-epsilon))
    lie = math.exp(-epsilon) * truth
    return PLD(epsilon, -1, np.array([lie, 0.0, truth]), error=2.0**-48)._trim_tails()


def bounded_range_pld(epsilon: float) -> PLD:
    """Return the loss of the worst exponential mechanism, with its profile interpolated on a grid.

    The worst profile is linear in sqrt(exp(epsilon)). So all atoms have the same mass under the
    symmetrised distribution, except for the two at the ends, which have half of it.
    """
    half = CELLS // 2
    step = epsilon / half
    mass = np.exp(0.5 * step * np.arange(-2 * half, 1)) * (2.0 * math.tanh(0.25 * step))
    mass[[0, -1]] *= 0.5
    error = 2.0**-48 * (1.0 + epsilon)
    return PLD(step, -half, mass / -math.expm1(-epsilon), error=error)._trim_tails()


def sampled_gaussian_pld(n_records: int, mu: float, cells: int = CELLS) -> PLD:
    """Return the loss of a Gaussian release about one secret record of many.

    Above 0 it is that of ``(1 - q) N(0, 1) + q N(mu, 1)`` from N(0, 1), with ``q = 1 / n_records``;
    below 0 it is that of the reverse order. The mass of every cell is split between its ends.
    """
    top = _largest_sampled_loss(n_records, mu)
    if math.isinf(top):
        return PLD(1.0, 0, np.ones(1), cut=1.0)
    rate, step = 1.0 / n_records, top / cells
    # Outcomes at which the loss is a multiple of the step.
    places = np.log1p(np.expm1(step * np.arange(cells + 1)) / rate) / mu + 0.5 * mu
    width = np.diff(places)[:, None]
    # Quadrature is accurate on narrow cells, so wide cells are divided into parts. The first cells
    # are the widest.
    parts = math.ceil(float(width.max()) / _WIDEST)
    nodes = np.ravel(np.arange(parts)[:, None] + 0.5 * (1.0 + _NODES)) / parts
    outcome = places[:-1, None] + width * nodes
    loss = np.log1p(rate * np.expm1(mu * (outcome - 0.5 * mu)))
    above = np.expm1(step * np.arange(cells)[:, None] - loss) / math.expm1(-step)
    density = np.exp(-0.5 * outcome**2) * (1.0 + rate * np.expm1(mu * (outcome - 0.5 * mu)))
    density *= width * np.tile(_WEIGHTS, parts) / (2.0 * parts * math.sqrt(2.0 * math.pi))
    mass = np.zeros(cells + 1)
    mass[:-1] += (density * (1.0 - above)).sum(axis=1)
    mass[1:] += (density * above).sum(axis=1)
    last = float(places[-1])
    cut = (1.0 - rate) * float(ndtr(-last)) + rate * float(ndtr(mu - last))
    odds = np.exp(-step * np.arange(cells + 1))
    upper = _upper_part(PLD(step, 0, mass, cut), 1.0 + odds)
    return _both_sides(replace(upper, error=_SAMPLED_ERROR), odds)


def _largest_sampled_loss(n_records: int, mu: float) -> float:
    """Return the loss of such a release that only `TAIL` exceeds; infinity for a large mu."""
    if mu > LARGEST_SAMPLED_MU:
        return math.inf
    return math.log1p(math.expm1(mu * (0.5 * mu - float(ndtri(TAIL)))) / n_records)


def cells_of_sampled(n_records: int, mu: float) -> int:
    """Return the number of cells on which many such releases are composed.

    Most losses are about one over the number of records. A loss that is smaller than a cell is
    split between 0 and a cell, which adds to the variance of every release.
    """
    top = _largest_sampled_loss(n_records, mu)
    if math.isinf(top):
        return CELLS
    wanted = math.ceil(math.log2(max(top * n_records * _FEWEST_CELLS / CELLS, 1.0)))
    return int(CELLS * 2 ** min(wanted, _MOST_HALVINGS))


def either_pld(epsilon: float, mu: float, cells: int) -> PLD:
    """Return the loss of the larger of two profiles: an exponential mechanism, and a Gaussian one.

    It is the loss of the first up to the place where the profiles cross, and that of the second
    beyond; the remaining mass is at that place. The bound of the range is a multiple of the step.
    """
    if mu == 0.0:
        return bounded_range_pld(epsilon)
    epsilon = max(epsilon, LEAST_PARAMETER)
    deviations = -float(ndtri(TAIL))
    top = max(epsilon, mu * (0.5 * mu + deviations))
    if top > EPSILON_RANGE[1]:  # no guarantee, as for all larger Gaussian losses
        return PLD(1.0, 0, np.ones(1), cut=1.0)
    step = top / cells
    step = epsilon / math.ceil(epsilon / step) if epsilon >= step else step
    mu = max(mu, _FEWEST_CELLS * step)
    last = math.ceil(max(epsilon, mu * (0.5 * mu + deviations)) / step) + 1
    ones = np.ones(1)
    mass = _gaussian_masses((ones, 0.0 * ones, mu * ones), step, 0, last)
    cut = float(ndtr(0.5 * mu - last * step / mu))
    upper = PLD(step, 0, mass, cut)
    losses, odds = upper.losses, np.exp(-upper.losses)
    upper = _upper_part(upper, 1.0 + odds)
    mass = upper.mass
    # The profiles cross once (``docs/proofs/accounting.md``, section 12).
    inside, whole = losses[: round(epsilon / step)], -math.expm1(-epsilon)
    log_range = 2.0 * np.log(-np.expm1(0.5 * (inside - epsilon))) - math.log(whole)
    place = int(np.count_nonzero(log_gdp_delta(mu, inside) < log_range + LOG_SLACK))
    if place:
        height = 2.0 * math.tanh(0.25 * step) / whole
        mass[:place] = np.exp(0.5 * (inside[:place] - epsilon)) * height
        mass[0] *= 0.5
        mass[place] = 0.0
        mass[place] = (1.0 - cut - float(mass @ (1.0 + odds))) / (1.0 + odds[place])
    return _both_sides(replace(upper, mass=mass), odds)


def envelope(
    terms: Sequence[Term],
    atoms: Sequence[tuple[float, float]],
    *,
    pairwise: bool,
    cells: int = CELLS,
) -> PLD:
    """Return the loss whose profile is the convex envelope of a sum of shifted Gaussian profiles.

    The sum is over all pairs of a term (weight, shift, mu) and an atom (weight, shift). `cells` is
    the number of cells of the lattice on either side of 0, more if no tail is cut. A `pairwise` sum
    bounds only expectations of convex functions of the loss: the result has the upper part of the
    mass, and no tail is cut.
    """
    weight, shift, mu = np.array(terms).T
    factor, place = np.array(atoms).T
    # Tiny numbers are raised, which dominates, so that the steps of the lattice do not underflow.
    shift, place, mu = (
        np.where(x > 0.0, np.maximum(x, LEAST_PARAMETER), x) for x in (shift, place, mu)
    )
    whole = float(weight.sum() * factor.sum())
    # Number of standard deviations beyond which all terms together have less mass than the tail.
    tail = _LEAST_COVERED if pairwise else TAIL
    deviations = -float(ndtri(min(0.25, max(tail / whole, 2.3e-308))))
    top = float((shift + mu * (0.5 * mu + deviations)).max() + place.max())
    if top == 0.0 or top > EPSILON_RANGE[1]:
        return PLD(1.0, 0, np.ones(1), cut=float(top > 0.0))
    # Nothing below `lowest` is needed, because the mass at or above it is at least 1; this holds
    # for 0 in any case.
    certain = weight[mu == 0.0].sum() >= 1.0 and not place.any()
    lowest = float(shift.min()) if certain else 0.0
    step = max(top - lowest, 0.5 * top) / (cells * max(1.0, deviations / _USUAL_WIDTH) ** 2)
    # The step divides this number, so that atoms of a mass above 1 are not split, which would move
    # a part of them up.
    unit = float(place[0] if place.any() else shift.min())
    step = unit / math.ceil(unit / step) if unit >= step else step
    mu = np.where(mu > 0.0, np.maximum(mu, _FEWEST_CELLS * step), 0.0)
    first = math.floor((lowest - place.max()) / step)
    highest = float((shift + mu * (0.5 * mu + deviations)).max()) * (1.1 if pairwise else 1.0)
    last = math.ceil(highest / step) + 1
    mass = _gaussian_masses((weight, shift, mu), step, first, last)
    with np.errstate(divide="ignore"):
        beyond = weight * ndtr((shift - last * step) / mu + 0.5 * mu)
    begin, shares = _split_atoms(place, factor, step)
    total = np.zeros(len(mass) + len(shares) - 1)
    for index in np.flatnonzero(shares):
        total[index : index + len(mass)] += shares[index] * mass
    low = max(0, first + begin)
    total = total[low - first - begin :]
    if pairwise:
        # The mass beyond the lattice, and mass that underflows, are covered by `_NEGLECTED`.
        return _upper_part(PLD(step, low, total, _NEGLECTED, tail=0.0), np.ones(len(total)))
    cut = min(1.0, float(beyond[mu > 0.0].sum() * factor.sum()))
    odds = np.exp(-step * (low + np.arange(len(total))))
    return _both_sides(_upper_part(PLD(step, low, total, cut), 1.0 + odds), odds)


def _both_sides(upper: PLD, odds: FloatArray) -> PLD:
    """Add the losses below 0, which have the masses of those above times the odds."""
    size = len(upper.mass)
    both = np.zeros(2 * (upper.first + size) - 1)
    both[-size:] = upper.mass
    both[:size] += (upper.mass * odds)[::-1]
    return replace(upper, first=1 - upper.first - size, mass=both)._trim_tails()


def _upper_part(measure: PLD, load: FloatArray) -> PLD:
    """Keep the largest losses whose loads sum to 1; the smallest of them is kept in part."""
    loads = np.cumsum((measure.mass * load)[::-1])[::-1]
    full = 1.0 - measure.cut
    kept = np.where(loads <= full, measure.mass, 0.0)
    index = int(np.count_nonzero(loads > full))
    rest = full - (loads[index] if index < len(loads) else 0.0)
    # The sums have errors below 2^-37 for losses below the median. If rounding has lost a little of
    # the mass 1, it is given to the smallest loss that is kept.
    kept[max(index - 1, 0)] += rest / load[max(index - 1, 0)]
    return replace(measure, mass=kept, error=2.0**-36)


def _gaussian_masses(
    terms: tuple[FloatArray, FloatArray, FloatArray], step: float, first: int, last: int
) -> FloatArray:
    """Return the masses of Gaussian losses on a lattice; cells are split between their ends."""
    where = 0.5 * (1.0 + _NODES)
    above = np.expm1(-step * where) / math.expm1(-step)
    loss = step * (np.arange(first, last)[:, None] + where)
    density = np.zeros(loss.shape)
    mass = np.zeros(last - first + 1)
    for weight, shift, mu in zip(*terms, strict=True):
        if mu:
            height = weight * 0.5 * step / (mu * math.sqrt(2.0 * math.pi))
            density += height * np.exp(-0.5 * ((loss - shift) / mu - 0.5 * mu) ** 2)
        else:
            start, shares = _split_atoms(np.array([shift]), np.array([weight]), step)
            mass[start - first : start - first + len(shares)] += shares
    mass[:-1] += density @ (_WEIGHTS * (1.0 - above))
    mass[1:] += density @ (_WEIGHTS * above)
    return mass


def _split_atoms(losses: FloatArray, mass: FloatArray, step: float) -> tuple[int, FloatArray]:
    """Split every atom between its neighbours on a lattice; return its first place and the masses.

    An atom at the distance x above its lower neighbour gives the share (1 - e^-x) / (1 - e^-step)
    to the upper one, which preserves its mass under both data sets.
    """
    first = math.floor(losses[0] / step)
    position = losses / step - first
    below = np.floor(position).astype(np.intp)
    share = np.expm1(-step * (position - below)) / math.expm1(-step)
    size = int(below[-1]) + 2
    lower = np.bincount(below, mass * (1.0 - share), minlength=size)
    upper = np.bincount(below + 1, mass * share, minlength=size)
    return first, np.asarray(lower + upper, dtype=np.float64)


def _common_step(a: PLD, b: PLD, most: int) -> float:
    """Return the step on which two losses are added: as fine as the wider of them allows."""
    step = a.step if a.step == b.step else (a if a.width > b.width else b).step
    finest = max(a.width, b.width) / most
    if a.step == b.step and step >= finest:
        return step
    return step * 2.0 ** math.ceil(math.log2(finest / step)) if finest else min(a.step, b.step)
