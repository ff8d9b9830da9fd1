"""Privacy events: every release is described by a small immutable object.

The contract of an objective perturbation or of a selection is a sum of terms (weight, shift, mu),
each of which stands for the profile ``weight * delta_mu(epsilon - shift)``. The composition of
several events multiplies their sums out (``docs/proofs/accounting.md``, section 5).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias, get_args

import numpy as np

from dp_halfspace._params import checked_size
from dp_halfspace._rounding import DOWN, TINY
from dp_halfspace.privacy.profiles import LEAST_PARAMETER, Term, check_nonnegative

# Larger parameters, a larger epsilon and more runs are treated as no guarantee.
LARGEST_PARAMETER = 1e100
# Largest number of events, and of terms, of a product of profiles. With more, losses are
# discretised.
_MAX_PRODUCT = 4096


def number_to_json(value: float) -> float | str:
    """Return a number for JSON; infinity becomes text, because JSON has no number for it."""
    return value if math.isfinite(value) else str(value)


def plain_data(value: Any) -> Any:
    """Return the value of a field as plain data for JSON."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain_data(item) for item in value]
    if isinstance(value, _Plain):
        return value.to_dict()
    return number_to_json(value) if isinstance(value, float) else value


def check_event(name: str, event: Any) -> Event:
    """Return an event, or raise TypeError naming `name` for an unknown one."""
    if not isinstance(event, Event):
        raise TypeError(f"{name} is not a privacy event: {event!r}")
    return event


def _check_shares(name: str, shares: Sequence[float]) -> tuple[float, ...]:
    return tuple(check_nonnegative(name, share) for share in shares)


def _check_vertices(
    name: str, vertices: Sequence[tuple[int, float]]
) -> tuple[tuple[int, float], ...]:
    found = [(checked_size("multiplicity", n), check_nonnegative("mu", mu)) for n, mu in vertices]
    if not any(mu == 0.0 for _, mu in found):
        raise ValueError(f"{name} must include one with mu = 0")
    return tuple(found)


# Checks of the fields that are not numbers >= 0.
_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "event": check_event,
    "count": checked_size,
    "n_records": checked_size,
    "pairwise": lambda _, flag: bool(flag),
    "shares": _check_shares,
    "vertices": _check_vertices,
}


@dataclass(frozen=True, slots=True)
class _Plain:
    """Base class of events: it checks their fields and converts them to plain data."""

    def __post_init__(self) -> None:
        for field in fields(self):
            check = _CHECKS.get(field.name, check_nonnegative)
            object.__setattr__(self, field.name, check(field.name, getattr(self, field.name)))

    def to_dict(self) -> dict[str, Any]:
        """Plain data from which `event_from_dict` rebuilds the event."""
        values = {field.name: plain_data(getattr(self, field.name)) for field in fields(self)}
        return {"type": type(self).__name__, **values}


@dataclass(frozen=True, slots=True)
class RandomStopping(_Plain):
    """The best of a random number of private runs, where the number is kept secret.

    Contract: for every threshold the hockey-stick divergence delta(e) on neighbouring
    data sets is at most the sum over j of ``mean_runs * shares[j] * base(e - log_ratio * (j + 1)
    / n)`` for n `shares`, where ``base`` is the profile of ``Gaussian(mu)``.

    Parameters
    ----------
    mean_runs : float
        Expected number of runs, >= 1.
    log_ratio : float
        Bound of the logarithm of the ratio of the rank factors, >= 0.
    mu : float
        Bound of one run, >= 0: model and noisy score together are mu-GDP.
    shares : tuple of float, default=(1.0,)
        Nonnegative shares that sum to at least ``1 / mean_runs``; the default has a single one at
        `log_ratio`.

    Notes
    -----
    `random_stopping_event` of `dp_halfspace.privacy` computes the numbers from a distribution.

    Examples
    --------
    >>> from dp_halfspace.privacy import RandomStopping
    >>> RandomStopping(15.0, 0.3156, 0.15).describe()
    'best of a random number of runs, 15 on average, of mu = 0.15 each, rank ratio <= exp(0.3156)'
    """

    mean_runs: float
    log_ratio: float
    mu: float
    shares: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        _Plain.__post_init__(self)
        if self.mean_runs < 1.0:
            raise ValueError(f"mean_runs must be at least 1, got {self.mean_runs!r}")
        # At a very negative epsilon every delta is 1, so a smaller mass is no bound.
        if not self.mean_runs * math.fsum(self.shares) >= 1.0:
            raise ValueError(f"shares must sum to 1 / mean_runs at least, got {self.shares!r}")

    def describe(self) -> str:
        """One line for an auditor."""
        return (
            f"best of a random number of runs, {self.mean_runs:.6g} on average, of mu = "
            f"{self.mu:.6g} each, rank ratio <= exp({self.log_ratio:.6g})"
        )


@dataclass(frozen=True, slots=True)
class Gaussian(_Plain):
    """A release that is `mu`-Gaussian differentially private.

    Contract: for every threshold its hockey-stick divergence on neighbouring data sets
    is at most that of N(mu, 1) from N(0, 1). A value of Euclidean sensitivity D plus
    N(0, s^2 I) satisfies it with mu = D / s.

    Parameters
    ----------
    mu : float
        Sensitivity over standard deviation of the noise, >= 0.

    Examples
    --------
    >>> from dp_halfspace.privacy.events import Gaussian
    >>> Gaussian(0.25).to_dict()
    {'type': 'Gaussian', 'mu': 0.25}
    """

    mu: float

    def describe(self) -> str:
        """One line for an auditor."""
        return f"Gaussian noise, sensitivity / standard deviation = {self.mu:.6g}"


@dataclass(frozen=True, slots=True)
class SampledGaussian(_Plain):
    """A Gaussian release about one of `n_records` records, drawn uniformly and kept secret.

    Contract: for a >= 0 the hockey-stick divergence on neighbouring data sets at
    ``log(1 + (exp(a) - 1) / n_records)`` is at most ``1 / n_records`` times that of N(mu, 1) from
    N(0, 1) at a. Noise N(0, s^2 I) on a value of one uniformly drawn record satisfies it with
    mu = D / s, where D is the largest distance of the values of two records.

    Parameters
    ----------
    n_records : int
        Number of records, >= 1.
    mu : float
        Distance of two values over standard deviation of the noise, >= 0.

    Notes
    -----
    B. Balle, G. Barthe and M. Gaboardi, "Privacy amplification by subsampling", 2018, Theorem 2.
    ``docs/proofs/accounting.md``, section 11.

    Examples
    --------
    >>> from dp_halfspace.privacy.events import SampledGaussian
    >>> SampledGaussian(100, 0.25).describe()
    'Gaussian noise on one secret record of 100, distance / standard deviation = 0.25'
    """

    n_records: int
    mu: float

    def describe(self) -> str:
        """One line for an auditor."""
        return (
            f"Gaussian noise on one secret record of {self.n_records}, "
            f"distance / standard deviation = {self.mu:.6g}"
        )


@dataclass(frozen=True, slots=True)
class Pure(_Plain):
    """A release that is purely `epsilon`-differentially private.

    Contract: the loss lies in [-epsilon, epsilon] with probability 1. Permute-and-flip,
    report-noisy-max and L2-Laplace noise satisfy it; none of them may be recorded as
    `Exponential`.

    Parameters
    ----------
    epsilon : float
        Bound of the absolute loss, >= 0.

    Examples
    --------
    >>> from dp_halfspace.privacy.events import Pure
    >>> Pure(0.5)
    Pure(epsilon=0.5)
    """

    epsilon: float

    def describe(self) -> str:
        """One line for an auditor."""
        return f"pure DP release, |log-ratio| <= {self.epsilon:.6g}"


@dataclass(frozen=True, slots=True)
class Exponential(_Plain):
    """A release of bounded range `epsilon`: one run of the exponential mechanism.

    Contract: on neighbouring data sets the largest and the smallest loss differ by at
    most epsilon. Sampling with weights exp(-epsilon * score / (2 D)), D the sensitivity
    of the scores, satisfies it. It is stronger than `Pure` of the same epsilon.

    Parameters
    ----------
    epsilon : float
        Bound of the range of the loss, >= 0.

    Examples
    --------
    >>> from dp_halfspace.privacy.events import Exponential
    >>> Exponential(0.1)
    Exponential(epsilon=0.1)
    """

    epsilon: float

    def describe(self) -> str:
        """One line for an auditor."""
        return f"exponential mechanism, log-ratio of range <= {self.epsilon:.6g}"


@dataclass(frozen=True, slots=True)
class ObjectivePerturbation(_Plain):
    """The exact minimiser of an objective with a random Gaussian linear term.

    Contract: the loss is at most ``log_ratio + max_v l_v`` where each ``l_v`` is the
    loss of a Gaussian mechanism, N(mu_v^2 / 2, mu_v^2), and the list of ``mu_v``
    contains 0. It is enough that the loss exceeds ``log_ratio + x`` with a probability of at
    most ``sum_v P(l_v > x)``, for every x. With ``pairwise=True`` the loss is at most
    ``log_ratio`` plus an average of such maxima, one for each pair of records that was touched.

    Parameters
    ----------
    log_ratio : float
        Bound of the logarithm of the ratio of the Jacobians, >= 0.
    vertices : tuple of (int, float)
        Multiplicity >= 1 and mu >= 0 of the vertices; a vertex with mu = 0 is required.
    pairwise : bool, default=False
        Whether the objective is a sum over pairs of records.

    Notes
    -----
    For a monotone loss of a linear score with derivative in [-L, 0], rows of norm r and
    noise of standard deviation s on the sum of n losses, the vertices are (1, 0),
    (2, L r / s), (1, 2 L r / s).

    Examples
    --------
    >>> from dp_halfspace.privacy.events import ObjectivePerturbation
    >>> event = ObjectivePerturbation(0.1, ((1, 0.0), (2, 0.1), (1, 0.2)))
    >>> event.describe()
    'objective perturbation, Jacobian ratio <= exp(0.1), vertices 1 x 0, 2 x 0.1, 1 x 0.2'
    """

    log_ratio: float
    vertices: tuple[tuple[int, float], ...]
    pairwise: bool = False

    def describe(self) -> str:
        """One line for an auditor."""
        vertices = ", ".join(f"{count} x {mu:.6g}" for count, mu in self.vertices)
        kind = "pairwise objective" if self.pairwise else "objective"
        return (
            f"{kind} perturbation, Jacobian ratio <= exp({self.log_ratio:.6g}), vertices {vertices}"
        )


@dataclass(frozen=True, slots=True)
class Either(_Plain):
    """One of two kinds of releases; what was released before decides which.

    Contract: what follows is one release of bounded range `epsilon`, or it is `mu`-Gaussian
    differentially private. The profile is bounded by the larger of both.

    Parameters
    ----------
    epsilon : float
        Bound of the range of the loss of the one release of the first kind, >= 0.
    mu : float
        Signal to noise ratio of all releases of the second kind, >= 0.

    Notes
    -----
    ``docs/proofs/accounting.md``, section 12.

    Examples
    --------
    >>> from dp_halfspace.privacy import Either
    >>> Either(0.09, 0.02).describe()
    'exponential mechanism of range <= 0.09, or Gaussian noise with sensitivity / deviation = 0.02'
    """

    epsilon: float
    mu: float

    def describe(self) -> str:
        """One line for an auditor."""
        return (
            f"exponential mechanism of range <= {self.epsilon:.6g}, or Gaussian noise with "
            f"sensitivity / deviation = {self.mu:.6g}"
        )


@dataclass(frozen=True, slots=True)
class Repeated(_Plain):
    """`count` runs of mechanisms that each satisfy the contract of `event`.

    Contract: fresh and independent noise in every run; later runs may depend on the outputs of
    earlier ones. This is the only place in the package where an event is multiplied by a count.

    Parameters
    ----------
    event : Event
        What one run releases; may itself be `Repeated`.
    count : int
        Number of runs, >= 1.

    Examples
    --------
    >>> from dp_halfspace.privacy.events import Gaussian, Repeated
    >>> Repeated(Gaussian(0.02), 40).describe()
    '40 times: Gaussian noise, sensitivity / standard deviation = 0.02'
    """

    event: Event
    count: int

    def describe(self) -> str:
        """One line for an auditor."""
        return f"{self.count} times: {self.event.describe()}"


Event: TypeAlias = (
    Gaussian
    | SampledGaussian
    | Pure
    | Exponential
    | ObjectivePerturbation
    | RandomStopping
    | Either
    | Repeated
)
# Events whose profiles are not sums of Gaussian profiles, so that their losses are discretised.
Discretised: TypeAlias = Pure | Exponential | SampledGaussian | Either
Counted: TypeAlias = tuple[tuple[Event, int], ...]
_TYPES: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(Event)}


def single_runs(events: Iterable[Event]) -> Counter[Event]:
    """Count single runs; this is the only function that unfolds `Repeated`."""
    counts: Counter[Event] = Counter()
    for event in events:
        single, count = check_event("a release", event), 1
        while isinstance(single, Repeated):
            count, single = count * single.count, single.event
        counts[single] += count
    return counts


def count_events(events: Iterable[Event]) -> Counted | None:
    """Count single runs, in a canonical order; return None if one of them has no guarantee."""
    result = tuple(sorted(single_runs(events).items(), key=repr))
    if any(max(_largest_parameter(e), n) > LARGEST_PARAMETER for e, n in result):
        return None
    return result if total_mu(result) <= LARGEST_PARAMETER else None


def _largest_parameter(event: Event) -> float:
    """Return the largest parameter of an event."""
    if isinstance(event, Pure | Exponential):
        return event.epsilon
    if isinstance(event, SampledGaussian):
        return event.mu
    if isinstance(event, Either):
        return max(event.epsilon, event.mu)
    terms, atoms = contract(event)
    runs = event.mean_runs if isinstance(event, RandomStopping) else 0.0
    return max(runs, *itertools.chain(*terms), *itertools.chain(*atoms))


def contract(event: Event) -> tuple[Sequence[Term], Sequence[tuple[float, float]]]:
    """Return the Gaussian terms of a profile, and pairs (weight, shift) to multiply them with."""
    if isinstance(event, Gaussian):
        return [(1.0, 0.0, event.mu)], [(1.0, 0.0)]
    if isinstance(event, ObjectivePerturbation):
        return [(float(n), event.log_ratio, mu) for n, mu in event.vertices], [(1.0, 0.0)]
    if not isinstance(event, RandomStopping):
        raise TypeError(f"not a sum of Gaussian terms: {event!r}")
    step = event.log_ratio / len(event.shares)
    atoms = [(event.mean_runs * w, step * (j + 1)) for j, w in enumerate(event.shares) if w]
    return [(1.0, 0.0, event.mu)], atoms


def largest_loss(event: Event) -> float:
    """Return the largest possible loss of an event, infinity if a Gaussian loss is part of it."""
    if isinstance(event, SampledGaussian | Either) and event.mu:
        return math.inf
    if isinstance(event, Pure | Exponential | Either):
        return event.epsilon
    if isinstance(event, SampledGaussian):
        return 0.0
    terms, atoms = contract(event)
    if any(mu for _, _, mu in terms):
        return math.inf
    return terms[0][1] + max(shift for _, shift in atoms)


def total_mu(counts: Counted) -> float:
    """Return the mu of all Gaussian events together, the root of the sum of their squares."""
    gaussian = [(event.mu, count) for event, count in counts if isinstance(event, Gaussian)]
    return math.hypot(*(raise_underflow(mu) * math.sqrt(count) for mu, count in gaussian))


def raise_underflow(value: float) -> float:
    """Raise a positive parameter so that its square does not underflow."""
    return max(value, LEAST_PARAMETER) if value else 0.0


def gaussian_terms(counts: Counted, most: int = _MAX_PRODUCT) -> list[Term] | None:
    """Multiply out the profiles of Gaussian events, objective perturbations and selections.

    The terms are rounded up; `Discretised` events are left out. Return None if there are too many
    events, or more than `most` different terms.
    """
    sums = [(e, n) for e, n in counts if not isinstance(e, Gaussian | Discretised)]
    number = sum(n for _, n in sums)
    if number > _MAX_PRODUCT:
        return None
    product: list[Term] = [(1.0, 0.0, total_mu(counts) ** 2)]
    for event, count in sums:
        terms, atoms = contract(event)
        factors = [(a * b, s + t, raise_underflow(mu) ** 2) for a, s, mu in terms for b, t in atoms]
        for _ in range(count):
            product = _merge_terms(
                (a * b, s + t, m + n) for a, s, m in product for b, t, n in factors
            )
            if len(product) > most or not math.isfinite(sum(a for a, _, _ in product)):
                return None
    wide, far = 1.0 + (number + 1) * 2.0**-51, 1.0 + max(number - 1, 0) * 2.0**-51
    return [(max(a, TINY), s * far, math.sqrt(square) * wide) for a, s, square in product]


def _merge_terms(terms: Iterable[Term]) -> list[Term]:
    """Merge terms that differ by rounding errors only, by adding up their weights."""
    merged: dict[tuple[str, str], Term] = {}
    for weight, shift, square in terms:
        key = f"{shift:.12e}", f"{square:.12e}"
        a, s, m = merged.get(key, (0.0, 0.0, 0.0))
        merged[key] = (a + weight, max(s, shift), max(m, square))
    return list(merged.values())


def event_from_dict(data: Mapping[str, Any]) -> Event:
    """Rebuild an event from the result of its ``to_dict``.

    Raises ValueError if the type is unknown or the fields are not exactly those of the type.

    Examples
    --------
    >>> from dp_halfspace.privacy.events import event_from_dict
    >>> event_from_dict({"type": "Pure", "epsilon": 0.5})
    Pure(epsilon=0.5)
    """
    values = dict(data)
    kind = _TYPES.get(str(values.pop("type", None)))
    if kind is None:
        raise ValueError(f"unknown event type {data.get('type')!r}")
    expected = {field.name for field in fields(kind)}
    if set(values) != expected:
        raise ValueError(
            f"a {kind.__name__} event has the fields {sorted(expected)}, got {sorted(values)}"
        )
    if kind is Repeated:
        values["event"] = event_from_dict(values["event"])
    event: Event = kind(**values)
    return event


def to_dp_event(event: Event) -> dict[str, Any]:
    """Return a single release as plain data, by the names of the classes of ``dp_accounting``.

    A release without a counterpart there becomes an ``UnsupportedDpEvent`` with its contract.
    """
    if not isinstance(event, Gaussian):
        return {"type": "UnsupportedDpEvent", "event": event.to_dict()}
    if event.mu == 0.0:
        return {"type": "NoOpDpEvent"}
    return {"type": "GaussianDpEvent", "noise_multiplier": DOWN / raise_underflow(event.mu)}
