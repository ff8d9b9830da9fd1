"""Additive noise, and the rule that it is charged before it is drawn.

:func:`authorise` charges the ledger with all that a fit is going to release and hands out a
:class:`Permit`; only a permit draws noise, and only for what it was charged for. Proofs:
``docs/proofs/accounting.md``, for the exactness of the noise ``noise.md``.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NoReturn, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._rounding import FAR_UP
from dp_halfspace.privacy.events import Event, Exponential, Gaussian, Pure, single_runs
from dp_halfspace.privacy.gaussian import checked_scale, rounded_gaussian
from dp_halfspace.privacy.profiles import gdp_mu
from dp_halfspace.privacy.randomness import ByteSource
from dp_halfspace.privacy.record import PrivacyRecord

_NO_GUARANTEE = Pure(math.inf)
# An event is asked for at every release: checked once.
_gaussian_event = lru_cache(maxsize=64, typed=True)(Gaussian)


class Mechanism(Protocol):
    """Something that makes a value safe to release."""

    @property
    def event(self) -> Event:
        """What the release costs."""
        ...

    def perturb(self, value: NDArray[np.float64], source: ByteSource) -> NDArray[np.float64]:
        """Return the released value."""
        ...


@dataclass(frozen=True, slots=True)
class GaussianNoise:
    """Spherical Gaussian noise for a value of bounded Euclidean sensitivity.

    Attributes
    ----------
    sensitivity : float
        Bound on the Euclidean distance of the values of two neighbouring data sets.
    mu : float
        Signal to noise ratio that is charged. The scale is rounded up, so that the
        ratio that is realised never exceeds it.
    """

    sensitivity: float
    mu: float

    def __post_init__(self) -> None:
        # Here, where everything is public and nothing is charged yet.
        checked_scale(self.sigma, "sigma")

    @property
    def sigma(self) -> float:
        """Standard deviation of every coordinate."""
        return self.sensitivity / self.mu * FAR_UP

    @property
    def event(self) -> Gaussian:
        """What the release costs: ``Gaussian(mu)``."""
        return _gaussian_event(self.mu)

    def perturb(self, value: NDArray[np.float64], source: ByteSource) -> NDArray[np.float64]:
        """Add the noise, rounded exactly to a public grid."""
        return rounded_gaussian(value, self.sigma, source=source)


@dataclass(frozen=True, slots=True)
class L2LaplaceNoise:
    """Noise of density proportional to exp(-||z|| / scale), for pure epsilon.

    Attributes
    ----------
    sensitivity : float
        Bound on the Euclidean distance of the values of two neighbouring data sets.
    epsilon : float
        Pure privacy loss that is charged.
    """

    sensitivity: float
    epsilon: float

    def __post_init__(self) -> None:
        # As for Gaussian noise: before anything is charged.
        checked_scale(self.scale, "scale")

    @property
    def scale(self) -> float:
        """Scale of the density; the norm of d-dimensional noise is Gamma(d, scale)."""
        return self.sensitivity / self.epsilon * FAR_UP

    @property
    def event(self) -> Pure:
        """What the release costs: ``Pure(epsilon)``."""
        return Pure(self.epsilon)

    def perturb(self, value: NDArray[np.float64], source: ByteSource) -> NDArray[np.float64]:
        """Add the noise, rounded exactly to a public grid."""
        from dp_halfspace.privacy.laplace import l2_laplace  # noqa: PLC0415

        return l2_laplace(value, self.scale, source=source)


@dataclass(frozen=True, slots=True)
class ExponentialChoice:
    """The choice of one of finitely many candidates by their scores.

    `sensitivity` bounds the change of any one score, `epsilon` the range of the privacy loss that
    is charged.
    """

    sensitivity: float
    epsilon: float

    @property
    def event(self) -> Exponential:
        """What the choice costs: ``Exponential(epsilon)``."""
        return Exponential(self.epsilon)

    def perturb(self, value: NDArray[np.float64], source: ByteSource) -> NDArray[np.float64]:
        """Return the number of the chosen candidate; larger scores are better."""
        from dp_halfspace.privacy.selection import exponential_mechanism  # noqa: PLC0415

        chosen = exponential_mechanism(
            value, self.epsilon, sensitivity=self.sensitivity, source=source
        )
        return np.array([chosen], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class NoNoise:
    """The identity: what an infinite epsilon buys."""

    @property
    def event(self) -> Pure:
        """An event without any guarantee."""
        return _NO_GUARANTEE

    def perturb(self, value: NDArray[np.float64], source: ByteSource) -> NDArray[np.float64]:
        """Return the value as it is."""
        del source
        return value


def additive_noise(
    sensitivity: float, epsilon: float, delta: float
) -> GaussianNoise | L2LaplaceNoise | NoNoise:
    """Choose the noise for one release of bounded Euclidean sensitivity.

    Parameters
    ----------
    sensitivity : float
        Bound on the Euclidean distance of the values of two neighbouring data sets.
    epsilon : float
        Budget, positive; infinity means no noise.
    delta : float
        0 for pure epsilon (L2-Laplace noise), positive for Gaussian noise.

    Returns
    -------
    GaussianNoise, L2LaplaceNoise or NoNoise
        Calibrated exactly, on the safe side.

    Examples
    --------
    >>> from dp_halfspace.privacy import additive_noise
    >>> additive_noise(1.0, epsilon=1.0, delta=1e-6).event
    Gaussian(mu=0.2367...)
    >>> additive_noise(1.0, epsilon=0.5, delta=0.0).event
    Pure(epsilon=0.5)
    """
    if math.isinf(epsilon):
        return NoNoise()
    if delta == 0:
        return L2LaplaceNoise(sensitivity, epsilon)
    return GaussianNoise(sensitivity, gdp_mu(epsilon, delta))


class Ledger(Protocol):
    """A budget that outlives a fit.

    A copy or a pickle of a ledger must be another handle on the same account. Estimators share
    the object itself, and pickle it only if its class has a ``__reduce__`` of its own.
    """

    def charge(self, record: PrivacyRecord) -> None:
        """Book the record durably, or raise BudgetError and book nothing."""
        ...


@dataclass(frozen=True, slots=True)
class Release:
    """What the curator's side of one release looked like; for white-box tests only."""

    mechanism: Mechanism
    value: NDArray[Any]
    released: NDArray[np.float64]


Answer: TypeAlias = Callable[[NDArray[Any], Mechanism, ByteSource], NDArray[np.float64]]
# Of this context alone: other threads draw their noise as ever.
_ANSWER: ContextVar[Answer | None] = ContextVar("answer", default=None)


@contextmanager
def answering(answer: Answer) -> Iterator[None]:
    """Let a function release in place of the mechanisms, inside the block; for audits alone."""
    token = _ANSWER.set(answer)
    try:
        yield
    finally:
        _ANSWER.reset(token)


@contextmanager
def recording() -> Iterator[list[Release]]:
    """Collect every release made inside the block, exact values included.

    For audits by whoever holds the data: the exact values are private.
    """
    releases: list[Release] = []
    with observing(releases.append):
        yield releases


@contextmanager
def observing(observer: Callable[[Release], None]) -> Iterator[None]:
    """Show every release made inside the block to an observer, who may count them."""
    around = _ANSWER.get()

    def answer(
        value: NDArray[Any], mechanism: Mechanism, source: ByteSource
    ) -> NDArray[np.float64]:
        released = (around or _drawn)(value, mechanism, source)
        observer(Release(mechanism, value, released))
        return released

    with answering(answer):
        yield


@dataclass(slots=True)
class Permit:
    """The right to make the releases that were charged, each once; made by :func:`authorise`."""

    record: PrivacyRecord
    _source: ByteSource
    _unspent: Counter[Event] = field(init=False)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        self._unspent = single_runs(self.record.events)

    def release(self, value: NDArray[Any], mechanism: Mechanism) -> NDArray[np.float64]:
        """Perturb `value`, if the mechanism's event was charged and is not used up.

        A RuntimeError is a defect of the calling code, seen before any noise is drawn.
        """
        return perturbed(value, mechanism, self.consume(mechanism.event))

    def consume(self, event: Event) -> ByteSource:
        """Use up one event, and return the randomness that it pays for.

        For mechanisms that are more than noise on a value; `release` calls it.
        """
        # Without the lock two threads could both find the last one unspent.
        with self._lock:
            if not self._unspent[event]:
                raise RuntimeError(f"{event} was not charged before the release")
            if event != _NO_GUARANTEE:
                # A record without any guarantee covers any number of exact releases.
                self._unspent[event] -= 1
        return self._source

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse: a copy would be the right to release everything again."""
        raise TypeError("a permit cannot be pickled or copied: it is the right to release once")

    def parallel(self, event: Event) -> ParallelReleases:
        """Use up one event for releases from disjoint blocks of records."""
        return ParallelReleases(event, self.consume(event))


@dataclass(slots=True)
class ParallelReleases:
    """Releases that together cost one of them: a record takes part in one block only.

    Which record is in which block must not depend on the data; a release may depend on earlier
    ones: ``docs/proofs/accounting.md``, section 6. Made by :meth:`Permit.parallel` only.
    """

    _event: Event
    _source: ByteSource
    _next: int = field(init=False, default=0)

    def release(
        self, value: NDArray[np.float64], mechanism: Mechanism, block: range
    ) -> NDArray[np.float64]:
        """Perturb a value computed from earlier releases and the records of a block.

        The block must be behind all earlier ones: a RuntimeError is a defect of the calling code,
        seen before any noise is drawn.
        """
        is_behind = block.step == 1 and self._next <= block.start < block.stop
        if not is_behind or mechanism.event != self._event:
            raise RuntimeError("blocks must be disjoint, and each must cost the event charged")
        self._next = block.stop
        return perturbed(value, mechanism, self._source)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse, as a permit does: a copy would release from the same records again."""
        raise TypeError("releases from disjoint blocks cannot be pickled or copied")


def perturbed(value: NDArray[Any], mechanism: Mechanism, source: ByteSource) -> NDArray[np.float64]:
    """Draw the noise, which a permit covers, unless an audit answers."""
    return (_ANSWER.get() or _drawn)(value, mechanism, source)


def _drawn(value: NDArray[Any], mechanism: Mechanism, source: ByteSource) -> NDArray[np.float64]:
    """Draw the noise."""
    return mechanism.perturb(value, source)


def authorise(record: PrivacyRecord, source: ByteSource, ledger: Ledger | None = None) -> Permit:
    """Charge the ledger with `record`, then permit its releases.

    Parameters
    ----------
    record : PrivacyRecord
        Everything that is going to be released, as events.
    source : ByteSource
        Randomness of the noise.
    ledger : Ledger or None
        Charged before this function returns, hence before any noise exists.

    Returns
    -------
    Permit

    Raises
    ------
    BudgetError
        By the ledger, when the record does not fit into what is left.
    """
    if ledger is not None:
        ledger.charge(record)
    return Permit(record, source)
