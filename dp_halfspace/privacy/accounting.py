"""Exact adaptive composition of privacy events, and calibration against it.

Proofs: ``docs/proofs/accounting.md``. The parameters of all events must be fixed in
advance; what a mechanism computes with them may depend on earlier outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from zlib import crc32

import numpy as np
from scipy.special import ndtri

from dp_halfspace.exceptions import BudgetError
from dp_halfspace.privacy.events import (
    LARGEST_PARAMETER,
    Counted,
    Discretised,
    Either,
    Event,
    Exponential,
    Gaussian,
    ObjectivePerturbation,
    Pure,
    Repeated,
    SampledGaussian,
    contract,
    count_events,
    gaussian_terms,
    largest_loss,
    raise_underflow,
    total_mu,
)
from dp_halfspace.privacy.pld import (
    CELLS,
    PLD,
    bounded_range_pld,
    cells_of_sampled,
    compose,
    either_pld,
    envelope,
    randomised_response_pld,
    sampled_gaussian_pld,
)
from dp_halfspace.privacy.profiles import (
    EPSILON_SLACK,
    LOG_SLACK,
    Term,
    check_delta,
    check_nonnegative,
    gdp_mu,
    log_gdp_delta,
    log_gdp_excess,
    log_gdp_upper,
    root,
    step_up,
)

# Largest number of Gaussian terms of a sum that is evaluated exactly.
_MAX_EXACT_TERMS = 64
# A bound is not refined if that could change delta by less than this relative amount.
_NEGLIGIBLE_CHANGE = 1e-6
# Number of groups in which many different events are composed.
_GROUPS = 32


@lru_cache(maxsize=32)
def total_pld(counts: Counted) -> PLD:
    """Return the distribution of the sum of the losses of events that are not Gaussian.

    Many different events are composed in groups. An additional event changes one group only, so
    that the others are found in the cache.
    """
    if len(counts) <= _GROUPS:
        return _group_pld(counts, CELLS)
    groups: dict[int, list[tuple[Event, int]]] = {}
    for event, count in counts:
        groups.setdefault(crc32(repr(event).encode()) % _GROUPS, []).append((event, count))
    cells = CELLS // 4
    return compose([_group_pld(tuple(g), cells) for _, g in sorted(groups.items())], cells)


@lru_cache(maxsize=128)
def _group_pld(counts: Counted, cells: int) -> PLD:
    """Return the distribution of the sum of the losses of few events."""
    return compose([_repeated_pld(event, count, cells) for event, count in counts], cells)


@lru_cache(maxsize=64)
def _repeated_pld(event: Event, count: int, cells: int) -> PLD:
    """Return the distribution of the total loss of a repeated event, cached for compositions."""
    if not isinstance(event, SampledGaussian):
        return _pld(event, cells).repeat(count)
    finest = cells_of_sampled(event.n_records, raise_underflow(event.mu)) if count > 1 else 0
    finest = max(finest, cells)
    return _pld(event, finest).repeat(count, finest)


def _pld(event: Event, cells: int) -> PLD:
    """Return the discretised loss of one event."""
    if isinstance(event, Pure):
        return randomised_response_pld(raise_underflow(event.epsilon))
    if isinstance(event, Exponential):
        return bounded_range_pld(raise_underflow(event.epsilon))
    if isinstance(event, SampledGaussian):
        return sampled_gaussian_pld(event.n_records, raise_underflow(event.mu), cells)
    if isinstance(event, Either):
        return either_pld(raise_underflow(event.epsilon), raise_underflow(event.mu), cells)
    terms, atoms = contract(event)
    pairwise = isinstance(event, ObjectivePerturbation) and event.pairwise
    return envelope(terms, atoms, pairwise=pairwise, cells=cells)


@dataclass(frozen=True, slots=True)
class ProfileBound:
    """An upper bound of a privacy profile: a discretised loss plus a sum of Gaussian terms."""

    loss: PLD
    terms: tuple[Term, ...]
    pairwise: bool

    def log_delta(self, epsilon: float) -> float:
        """Return the logarithm of an upper bound of the smallest delta at `epsilon`."""
        losses, mass = self.loss.losses, self.loss.mass
        furthest = float(np.abs(losses[[0, -1]]).max()) + max(s for _, s, _ in self.terms)
        slack = EPSILON_SLACK * abs(epsilon) + (EPSILON_SLACK + self.loss.error) * furthest
        remaining, profile = epsilon - slack - losses, np.full(len(losses), -np.inf)
        of_term = log_gdp_excess if self.pairwise else log_gdp_delta
        for weight, shift, mu in self.terms:
            np.logaddexp(profile, math.log(weight) + of_term(mu, remaining - shift), out=profile)
        cut = self.loss.cut
        if self.pairwise:
            # A mean excess is not bounded by one, so that mass counts by the size of its losses.
            size = sum(weight * (furthest + mu + mu * mu) for weight, _, mu in self.terms)
            cut *= max(1.0, 4.0 * size)
        with np.errstate(divide="ignore"):
            logs = np.append(np.log(mass) + profile, np.log(cut))
        top = float(logs.max())
        if top == -math.inf:
            return top
        log_sum = top + math.log(float(np.exp(logs - top).sum()))
        return min(0.0, log_sum + LOG_SLACK + self.loss.error)


@dataclass(frozen=True, slots=True)
class _Composition:
    """The composition of a list of events with finite parameters.

    `discretised` are the events whose contract is not a sum of Gaussian terms, `sums` those whose
    contract is one, and `mu` is that of all Gaussian events. `terms` are those of `sums` and of the
    Gaussian events multiplied out, None if they are too many. `pure` is the exact sum of all
    losses, None if one of them is not bounded. With `pairwise`, only expectations of convex
    functions of the loss are bounded. From the epsilon in `beyond` on, the other composition there
    has the same delta. `unsampled` is the composition with a public record in place of every secret
    one, which costs no less.
    """

    discretised: Counted
    sums: Counted
    mu: float
    terms: tuple[Term, ...] | None
    pure: Fraction | None
    pairwise: bool
    beyond: tuple[Fraction, _Composition] | None
    unsampled: _Composition | None

    def log_delta(self, epsilon: float, enough: float = -math.inf) -> float:
        """Return the logarithm of an upper bound of the smallest delta.

        Any bound whose logarithm is at most `enough` may be returned.
        """
        if epsilon == math.inf or (self.pure is not None and epsilon >= self.pure):
            return -math.inf
        if self.beyond is not None and epsilon >= self.beyond[0]:
            return self.beyond[1].log_delta(epsilon, enough)
        if not (self.discretised or self.sums):
            return log_gdp_upper(self.mu, epsilon)
        value = 0.0
        if self.unsampled is not None:
            value = self.unsampled.log_delta(epsilon, enough)
            if value <= enough:
                return value
        exact = None
        if self.terms is not None:
            exact = ProfileBound(total_pld(self.discretised), self.terms, self.pairwise)
        value = min(value, 0.0 if exact is None else exact.log_delta(epsilon))
        if not self.sums or value <= enough or (exact and self._is_exact(exact, epsilon, value)):
            return value
        # The second bound discretises all losses except those of the Gaussian events.
        others = tuple(sorted((*self.discretised, *self.sums), key=repr))
        total = ProfileBound(total_pld(others), ((1.0, 0.0, self.mu),), self.pairwise)
        return min(value, total.log_delta(epsilon))

    def _is_exact(self, exact: ProfileBound, epsilon: float, value: float) -> bool:
        """Return whether the envelope of a single sum of terms could not improve the bound."""
        single = gaussian_terms(self.sums) if sum(n for _, n in self.sums) == 1 else None
        if single is None:
            return False
        # The envelope keeps all of the sum above a place with at most half of the mass 1 beyond it.
        whole = math.fsum(weight for weight, _, _ in single)
        place = max(s + mu * (0.5 * mu - float(ndtri(0.5 / whole))) for _, s, mu in single)
        rest = ProfileBound(exact.loss, ((whole, place, self.mu),), exact.pairwise)
        return rest.log_delta(epsilon) < value + math.log(_NEGLIGIBLE_CHANGE)


def _compose(events: Iterable[Event]) -> _Composition | None:
    """Compose events; None if one of them has no guarantee."""
    counts = count_events(events)
    if counts is None:
        return None
    discretised = tuple(
        (e, n) for e, n in counts if isinstance(e, Discretised) and largest_loss(e) > 0.0
    )
    sums = tuple((e, n) for e, n in counts if not isinstance(e, Gaussian | Discretised))
    terms = gaussian_terms(counts, _MAX_EXACT_TERMS)
    losses = [Fraction(loss) * n for e, n in counts if math.isfinite(loss := largest_loss(e))]
    return _Composition(
        discretised,
        sums,
        total_mu(counts),
        None if terms is None else tuple(terms),
        sum(losses, Fraction(0)) if len(losses) == len(counts) else None,
        any(isinstance(e, ObjectivePerturbation) and e.pairwise for e, _ in sums),
        _without_choice(counts),
        _without_sampling(counts),
    )


def _without_sampling(counts: Counted) -> _Composition | None:
    """Return the composition with Gaussian releases in place of those about secret records.

    A secret record only reduces the cost of a release: ``docs/proofs/accounting.md``, section 11.
    None if there is no such release.
    """
    if not any(isinstance(event, SampledGaussian) for event, _ in counts):
        return None
    return _compose(
        Repeated(Gaussian(e.mu) if isinstance(e, SampledGaussian) else e, n) for e, n in counts
    )


def _without_choice(counts: Counted) -> tuple[Fraction, _Composition] | None:
    """Return an epsilon, and the composition that has the same delta from there on.

    With one `Either` among events of bounded loss, the epsilon is the sum of the other losses and
    of the range of the choice. Beyond it only the mu of the `Either` counts:
    ``docs/proofs/accounting.md``, section 12.
    """
    others = [(e, n) for e, n in counts if not isinstance(e, Either)]
    choices = [(e, n) for e, n in counts if isinstance(e, Either)]
    losses = [(largest_loss(e), n) for e, n in others]
    if [n for _, n in choices] != [1] or not all(math.isfinite(loss) for loss, _ in losses):
        return None
    (choice, _), *_ = choices
    least = sum((Fraction(loss) * n for loss, n in losses), Fraction(choice.epsilon))
    gaussian = _compose([Gaussian(choice.mu), *(Repeated(e, n) for e, n in others)])
    return None if gaussian is None else (least, gaussian)


def round_up(value: Fraction) -> float:
    """Return the smallest float that is not below `value`."""
    nearest = float(value)
    return nearest if nearest >= value else math.nextafter(nearest, math.inf)


@lru_cache(maxsize=512)
def _smallest_delta(events: tuple[Event, ...], epsilon: float, enough: float = 0.0) -> float:
    """Return `delta`, or any bound on it that is at most `enough`.

    The result is cached, because every fit of the same plan (a fold, a copy) needs the same number.
    """
    composition = _compose(events)
    if composition is None:
        return 0.0 if epsilon == math.inf else 1.0
    log_delta = composition.log_delta(epsilon, math.log(enough) if enough else -math.inf)
    return 0.0 if log_delta == -math.inf else max(math.exp(log_delta), 5e-324)


def delta(events: Iterable[Event], epsilon: float) -> float:
    """Smallest provable delta of a list of events at `epsilon`, rounded up.

    Parameters
    ----------
    events : iterable of Event
        Everything that was released.
    epsilon : float
        Any real number; infinity gives 0.

    Returns
    -------
    float
        In [0, 1]. It is 0 only if the list is purely epsilon-private.

    Notes
    -----
    Privacy: the bound is exact for Gaussian events, for one exponential mechanism, and for pure
    events, up to a discretisation that can only increase it; a relative margin of 1.5e-11 covers
    the rounding errors. It holds for adaptive composition under the adjacency of the events.

    References
    ----------
    .. [1] V. Doroshenko, B. Ghazi, P. Kamath, R. Kumar, P. Manurangsi. Connect the dots:
       tighter discrete approximations of privacy loss distributions. PoPETs 2022.

    Examples
    --------
    >>> from dp_halfspace.privacy import Exponential, Gaussian, delta
    >>> f"{delta([Gaussian(0.2), Exponential(0.1)], 1.0):.5e}"
    '4.47224e-08'
    """
    epsilon = float(epsilon)
    if math.isnan(epsilon):
        raise ValueError("epsilon must not be NaN")
    return _smallest_delta(tuple(events), epsilon)


def epsilon(events: Iterable[Event], delta: float) -> float:
    """Smallest provable epsilon of a list of events at `delta`, rounded up.

    Parameters
    ----------
    events : iterable of Event
        Everything that was released.
    delta : float
        In [0, 1). With 0 the answer is the exact sum of the pure losses, or infinity.

    Returns
    -------
    float
        Epsilon >= 0 that was checked again after rounding; infinity if an event has no
        guarantee.

    Examples
    --------
    >>> from dp_halfspace.privacy import Gaussian, Pure, Repeated, epsilon
    >>> round(epsilon([Gaussian(0.6), Gaussian(0.8)], 1e-5), 5)
    4.37718
    >>> round(epsilon([Repeated(Pure(0.1), 30)], 1e-6), 3), epsilon([Pure(0.25)] * 2, 0)
    (2.346, 0.5)
    """
    return _smallest_epsilon(tuple(events), check_delta(delta))


@lru_cache(maxsize=512)
def _smallest_epsilon(events: tuple[Event, ...], delta: float) -> float:
    """Return `epsilon`. The result is cached for the reason of `_smallest_delta`."""
    composition = _compose(events)
    if composition is None:
        return math.inf
    ceiling = math.inf if composition.pure is None else round_up(composition.pure)
    if delta == 0.0:
        return ceiling
    log_delta = math.log(delta)

    def excess(value: float) -> float:
        return composition.log_delta(value) - log_delta

    if excess(0.0) <= 0.0:
        return 0.0
    high = 1.0
    while excess(high) > 0.0:
        high *= 2.0
        if high > min(2.0 * ceiling, LARGEST_PARAMETER):
            return ceiling
    found = root(excess, 0.0 if high == 1.0 else 0.5 * high, high)
    return min(step_up(found, excess), ceiling)


def calibrate(
    make_events: Callable[[float], Iterable[Event]],
    epsilon: float,
    delta: float,
    *,
    lower: float,
    upper: float,
    rtol: float = 1e-10,
) -> float:
    """Find the parameter that spends a budget and never exceeds it.

    Parameters
    ----------
    make_events : callable
        Deterministic function from a public scalar to the events that it would cause. The loss must
        increase with the scalar, as with a mu or an epsilon.
    epsilon, delta : float
        The budget, epsilon >= 0 and delta in [0, 1).
    lower, upper : float
        Finite interval to search.
    rtol : float, default=1e-10
        Relative width at which the search stops.

    Returns
    -------
    float
        The largest scalar within the budget, rounded conservatively:
        ``delta(make_events(value), epsilon) <= delta`` was evaluated there.

    Raises
    ------
    BudgetError
        If even the lower end of the interval exceeds the budget.

    Examples
    --------
    >>> from dp_halfspace.privacy import Exponential, Gaussian, calibrate
    >>> def beside(mu):
    ...     return [Exponential(0.1), Gaussian(mu)]
    >>> round(calibrate(beside, 1.0, 1e-6, lower=0.0, upper=1.0), 4)
    0.2302
    """
    epsilon = check_nonnegative("epsilon", epsilon)
    delta = check_delta(delta)
    if not (math.isfinite(lower) and math.isfinite(upper) and lower <= upper):
        raise ValueError(f"lower <= upper must be finite, got {lower!r} and {upper!r}")

    def cost(value: float) -> float:
        return _smallest_delta(tuple(make_events(value)), epsilon, delta)

    if cost(lower) > delta:
        raise BudgetError(
            f"no value between {lower!r} and {upper!r} stays within "
            f"epsilon={epsilon!r}, delta={delta!r}"
        )
    if cost(upper) <= delta:
        return upper
    if delta == 0.0:
        return halve(lambda value: cost(value) == 0.0, lower, upper, rtol)

    def log_cost(value: float) -> float:
        return math.log(max(cost(value), 5e-324))

    rtol = max(rtol, 1e-15)
    found = root(log_cost, lower, upper, math.log(delta), rtol=rtol)
    # The root may be on the costly side, and only what fits is returned.
    for value in (found, max(found - rtol * abs(found), lower)):
        if cost(value) <= delta:
            return value
    return halve(lambda value: cost(value) <= delta, lower, found, rtol)


def halve(fits: Callable[[float], bool], safe: float, costly: float, rtol: float) -> float:
    """Halve an interval until it is narrow; return the end that fits, which `safe` does."""
    is_positive = safe > 0.0
    while abs(costly - safe) > rtol * max(abs(safe), abs(costly)):
        middle = math.sqrt(safe * costly) if is_positive else 0.5 * (safe + costly)
        if middle in (safe, costly):
            break
        if fits(middle):
            safe = middle
        else:
            costly = middle
    return safe


@lru_cache(maxsize=256)
def mu_beside(choice: float, epsilon: float, delta: float) -> float:
    """Return the Gaussian signal to noise ratio that remains after an exponential mechanism."""

    def events(mu: float) -> tuple[Event, ...]:
        return Exponential(choice), Gaussian(mu)

    return calibrate(events, epsilon, delta, lower=0.0, upper=gdp_mu(epsilon, delta))


@lru_cache(maxsize=256)
def mu_of_either(first: Event, choice: float, epsilon: float, delta: float) -> float:
    """Return the mu of Gaussian releases that follow a release unless an exponential choice does.

    `first` is the event of the earlier release, `choice` the epsilon of the exponential mechanism.
    """

    def events(mu: float) -> tuple[Event, ...]:
        return first, Either(choice, mu)

    return calibrate(events, epsilon, delta, lower=0.0, upper=gdp_mu(epsilon, delta))
