"""Additive noise, and the rule that it is paid for before it is drawn.

A :class:`Mechanism` states the sensitivity it covers and the privacy event it costs.
:func:`authorise` charges the ledger with everything a fit is going to release and
hands out a :class:`Permit`; only a permit draws noise, and only for what it was
charged for.

The mathematics of every mechanism is in ``docs/proofs/accounting.md``, the exactness
of the noise in ``docs/proofs/noise.md``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.privacy.events import Event, Gaussian, Pure, Repeated
from dp_halfspace.privacy.gaussian import rounded_gaussian
from dp_halfspace.privacy.laplace import l2_laplace
from dp_halfspace.privacy.profiles import gdp_mu
from dp_halfspace.privacy.randomness import ByteSource
from dp_halfspace.privacy.record import PrivacyRecord

__all__ = [
    "GaussianNoise",
    "L2LaplaceNoise",
    "Ledger",
    "Mechanism",
    "NoNoise",
    "Permit",
    "Release",
    "additive_noise",
    "authorise",
    "recording",
]

# One part in 2^30 covers the rounding of every division below, with room to spare.
_UP = 1.0 + 2.0**-30


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

    @property
    def sigma(self) -> float:
        """Standard deviation of every coordinate."""
        return self.sensitivity / self.mu * _UP

    @property
    def event(self) -> Gaussian:
        """What the release costs: ``Gaussian(mu)``."""
        return Gaussian(self.mu)

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

    @property
    def scale(self) -> float:
        """Scale of the density; the norm of d-dimensional noise is Gamma(d, scale)."""
        return self.sensitivity / self.epsilon * _UP

    @property
    def event(self) -> Pure:
        """What the release costs: ``Pure(epsilon)``."""
        return Pure(self.epsilon)

    def perturb(self, value: NDArray[np.float64], source: ByteSource) -> NDArray[np.float64]:
        """Add the noise, rounded exactly to a public grid."""
        return l2_laplace(value, self.scale, source=source)


@dataclass(frozen=True, slots=True)
class NoNoise:
    """The identity: what an infinite epsilon buys."""

    @property
    def event(self) -> Pure:
        """An event without any guarantee."""
        return Pure(math.inf)

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
    """A budget that outlives a fit."""

    def charge(self, record: PrivacyRecord) -> None:
        """Book the record durably, or raise BudgetError and book nothing."""
        ...


@dataclass(frozen=True, slots=True)
class Release:
    """What the curator's side of one release looked like; for white-box tests only."""

    mechanism: Mechanism
    value: NDArray[np.float64]
    released: NDArray[np.float64]


_RECORDER: ContextVar[Callable[[Release], None] | None] = ContextVar("recorder", default=None)


@contextmanager
def recording() -> Iterator[list[Release]]:
    """Collect every release made inside the block, exact values included.

    For audits by whoever holds the data: the exact values are private.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.privacy.mechanisms import recording
    >>> with recording() as releases:
    ...     pass
    >>> releases
    []
    """
    releases: list[Release] = []
    token = _RECORDER.set(releases.append)
    try:
        yield releases
    finally:
        _RECORDER.reset(token)


@dataclass(slots=True)
class Permit:
    """The right to make the releases that were charged, each once.

    Made by :func:`authorise` only.
    """

    record: PrivacyRecord
    _source: ByteSource
    _unspent: Counter[Event] = field(init=False)

    def __post_init__(self) -> None:
        self._unspent = Counter()
        for charged in self.record.events:
            count, event = 1, charged
            while isinstance(event, Repeated):
                count, event = count * event.count, event.event
            self._unspent[event] += count

    def release(self, value: NDArray[np.float64], mechanism: Mechanism) -> NDArray[np.float64]:
        """Perturb `value`, if the mechanism's event was charged and is not used up.

        Raises
        ------
        RuntimeError
            If the event was not charged: a defect of the calling code, seen before
            any noise is drawn.
        """
        if not self._unspent[mechanism.event]:
            raise RuntimeError(f"{mechanism.event} was not charged before the release")
        if mechanism.event != Pure(math.inf):
            # A record without any guarantee covers any number of exact releases.
            self._unspent[mechanism.event] -= 1
        released = mechanism.perturb(value, self._source)
        recorder = _RECORDER.get()
        if recorder is not None:
            recorder(Release(mechanism, value, released))
        return released


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
