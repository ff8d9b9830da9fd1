"""Additive noise, and the rule that it is charged before it is drawn.

:func:`authorise` charges the ledger with everything that a fit is going to release, and returns a
:class:`Permit`. Only a permit draws noise, and only for the charged releases. Proofs:
``docs/proofs/accounting.md``, for the exactness of the noise ``noise.md``.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._rounding import FAR_UP
from dp_halfspace.privacy import exponential
from dp_halfspace.privacy.events import (
    Either,
    Event,
    Exponential,
    Gaussian,
    Pure,
    SampledGaussian,
    single_runs,
    total_mu,
)
from dp_halfspace.privacy.interception import (
    ExponentialMechanism,
    Mechanism,
    PureMechanism,
    draw_release,
)
from dp_halfspace.privacy.noise import (
    DiscreteLaplaceNoise,
    add_noise,
    check_scale,
    gaussian_grid,
    l2_laplace,
    uniform_below,
)
from dp_halfspace.privacy.randomness import ByteSource
from dp_halfspace.privacy.record import PrivacyRecord

_NO_GUARANTEE = Pure(math.inf)


@dataclass(frozen=True, slots=True)
class GaussianNoise:
    """Spherical Gaussian noise for a value of bounded Euclidean sensitivity.

    Attributes
    ----------
    sensitivity : float
        Bound on the Euclidean distance of the values of two neighbouring data sets.
    mu : float
        Signal to noise ratio that is charged.
    sigma : float
        Standard deviation of every coordinate.
    event : Gaussian
        What the release costs: ``Gaussian(mu)``.

    Notes
    -----
    **Guarantee.**

    - Adjacency: the one for which `sensitivity` holds.
    - Released: a value with noise, `mu`-Gaussian differentially private.
    - Sensitivity: `sensitivity` over `mu` is the scale, rounded up, so that the ratio that is
      realised never exceeds `mu`.
    - Proof: ``docs/proofs/accounting.md``, section 1; exactness: ``noise.md``.
    """

    sensitivity: float
    mu: float
    sigma: float = field(init=False, repr=False, compare=False)
    event: Gaussian = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # An invalid scale is refused here, before anything private is read or charged.
        sigma = check_scale(self.sensitivity / self.mu * FAR_UP, "sigma")
        object.__setattr__(self, "sigma", sigma)
        object.__setattr__(self, "event", Gaussian(self.mu))

    def perturb(self, value: NDArray[np.float64], source: ByteSource) -> NDArray[np.float64]:
        """Add the noise, rounded exactly to a public grid."""
        return add_noise(value, gaussian_grid(self.sigma), source)


@dataclass(frozen=True, slots=True)
class SampledGaussianNoise:
    """Spherical Gaussian noise on the value of one record, drawn uniformly and kept secret.

    Attributes
    ----------
    n_records : int
        Number of records, which is the number of rows of a value.
    sensitivity : float
        Bound on the Euclidean distance of the rows of any two records.
    mu : float
        Distance to noise ratio that is charged.
    sigma : float
        Standard deviation of every coordinate.
    event : SampledGaussian
        What the release costs: ``SampledGaussian(n_records, mu)``.

    Notes
    -----
    **Guarantee.**

    - Adjacency: replace-one, which changes one row of a value and no other.
    - Released: the row of one record with noise; its position stays secret.
    - Sensitivity: `sensitivity` over `mu` is the scale, rounded up.
    - Proof: ``docs/proofs/accounting.md``, section 11; exactness: ``noise.md``.
    """

    n_records: int
    sensitivity: float
    mu: float
    sigma: float = field(init=False, repr=False, compare=False)
    event: SampledGaussian = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # An invalid scale is refused here, as for Gaussian noise.
        sigma = check_scale(self.sensitivity / self.mu * FAR_UP, "sigma")
        object.__setattr__(self, "sigma", sigma)
        object.__setattr__(self, "event", SampledGaussian(self.n_records, self.mu))

    def perturb(self, value: NDArray[np.float64], source: ByteSource) -> NDArray[np.float64]:
        """Draw a row, all equally likely, and add the noise, rounded to a public grid."""
        if len(value) != self.n_records:
            raise RuntimeError("a value must have one row for each record")
        row = value[uniform_below(self.n_records, source)]
        return add_noise(row, gaussian_grid(self.sigma), source)


@dataclass(frozen=True, slots=True)
class L2LaplaceNoise(PureMechanism):
    """Noise of density proportional to exp(-||z|| / scale), for pure DP.

    Attributes
    ----------
    sensitivity : float
        Bound on the Euclidean distance of the values of two neighbouring data sets.
    epsilon : float
        Pure privacy loss that is charged.

    Notes
    -----
    **Guarantee.**

    - Adjacency: the one for which `sensitivity` holds.
    - Released: a value with noise, `epsilon`-differentially private.
    - Sensitivity: `sensitivity` over `epsilon` is the scale, rounded up.
    - Proof: ``docs/proofs/noise.md``, section 5.
    """

    sensitivity: float
    epsilon: float

    def __post_init__(self) -> None:
        # An invalid scale is refused before anything is charged, as for Gaussian noise.
        check_scale(self.scale, "scale")

    @property
    def scale(self) -> float:
        """Scale of the density; the norm of d-dimensional noise is Gamma(d, scale)."""
        return self.sensitivity / self.epsilon * FAR_UP

    def perturb(self, value: NDArray[np.float64], source: ByteSource) -> NDArray[np.float64]:
        """Add the noise, rounded exactly to a public grid."""
        return l2_laplace(value, self.scale, source=source)


@dataclass(frozen=True, slots=True)
class ExponentialChoice(ExponentialMechanism):
    """The choice of one of finitely many candidates by their scores.

    Notes
    -----
    **Guarantee.**

    - Adjacency: the one for which `sensitivity` holds.
    - Released: the number of one candidate, of bounded range `epsilon`.
    - Sensitivity: `sensitivity` bounds the change of any one score.
    - Proof: ``docs/proofs/noise.md``, section 7; McSherry and Talwar (2007).
    """

    sensitivity: float
    epsilon: float

    def perturb(self, value: NDArray[np.float64], source: ByteSource) -> NDArray[np.float64]:
        """Return the number of the chosen candidate; larger scores are better."""
        chosen = exponential.exponential_mechanism(
            value, self.epsilon, sensitivity=self.sensitivity, source=source
        )
        return np.array([chosen], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class NoNoise:
    """The identity, for an infinite epsilon: its event has no guarantee."""

    event: ClassVar[Pure] = _NO_GUARANTEE

    def perturb(self, value: NDArray[np.float64], source: ByteSource) -> NDArray[np.float64]:
        """Return the value as it is."""
        return value


# Noise that a budget buys for a sensitivity, and all noise that is added.
AdditiveNoise: TypeAlias = GaussianNoise | L2LaplaceNoise | NoNoise
AnyNoise: TypeAlias = AdditiveNoise | DiscreteLaplaceNoise


def noise_deviation(noise: AnyNoise, size: int = 1) -> float:
    """Return the standard deviation of the noise in one entry of a release of `size` entries."""
    if isinstance(noise, NoNoise):
        return 0.0
    if isinstance(noise, L2LaplaceNoise):
        return noise.scale * math.sqrt(size + 1)
    return noise.sigma if isinstance(noise, GaussianNoise) else noise.deviation


class Ledger(Protocol):
    """Protocol of a ledger: a budget that outlives a fit.

    A copy or a pickle of a ledger must be another handle on the same account, so its class has a
    ``__deepcopy__`` and a ``__reduce__`` of its own; others are refused before a fit.
    """

    def charge(self, record: PrivacyRecord) -> None:
        """Charge the record durably, or raise BudgetError and charge nothing."""


@dataclass(slots=True)
class Permit:
    """The right to make the releases that were charged, each once; made by :func:`authorise`.

    Notes
    -----
    **Guarantee.**

    - Adjacency: that of the record.
    - Released: only what mechanisms return whose events are in the record, each as often as there.
    - Sensitivity: the caller's; a mechanism states it before anything is charged.
    - Proof: adaptive composition, ``docs/proofs/accounting.md``, section 5.
    """

    record: PrivacyRecord
    _source: ByteSource
    _unspent: Counter[Event]
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock, repr=False)
    # Called after each release, without its value.
    on_release: Callable[[], None] = field(init=False, default=lambda: None, repr=False)

    def release(self, value: NDArray[Any], mechanism: Mechanism) -> NDArray[np.float64]:
        """Perturb `value`, if the mechanism's event was charged and is not used up.

        A RuntimeError indicates a defect of the calling code, detected before noise is drawn.
        """
        released = draw_release(value, mechanism, self.consume(mechanism.event))
        self.on_release()
        return released

    def choose(self, values: NDArray[Any], choice: Mechanism, *, is_cost: bool = False) -> int:
        """Release the index of a candidate of large value, or of low cost.

        An exponential mechanism releases the index; with additive noise on all values, or without
        noise, it is that of the best one.
        """
        released = self.release(values, choice)
        if isinstance(choice, AdditiveNoise):
            return int(released.argmin() if is_cost else released.argmax())
        return int(released[0])

    def consume(self, event: Event) -> ByteSource:
        """Use up one event, and return the randomness that it covers.

        For mechanisms that do more than add noise to a value; `release` calls it.
        """
        # Without the lock, two threads could both use the last unspent event.
        with self._lock:
            if not self._unspent[event]:
                raise RuntimeError(f"{event} was not charged before the release")
            if event != _NO_GUARANTEE:
                # Only events with a guarantee are counted: a record without one covers any number
                # of exact releases.
                self._unspent[event] -= 1
        return self._source

    def enter(self, choice: Either | Pure, events: Sequence[Event]) -> None:
        """Use up the event `choice`, and permit instead the `events` of what follows it.

        A record that lists `choice` leaves open which of several planned continuations follows.
        After `Either`, this is one exponential mechanism of no larger range, or Gaussian releases
        with no larger total mu; after `Pure`, it is one release of no larger epsilon. Earlier
        releases may decide which one follows, but nothing else about the data:
        ``docs/proofs/accounting.md``, section 12.
        """
        counts = tuple(single_runs(events).items())
        if all(isinstance(event, Gaussian) for event, _ in counts):
            is_covered = isinstance(choice, Either) and total_mu(counts) <= choice.mu
        else:
            # Only a single choice is covered: if a later choice depends on an earlier one, both
            # together are not of bounded range.
            ((event, count), *others) = counts
            kinds = (Exponential,) if isinstance(choice, Either) else (Exponential, Pure)
            is_covered = isinstance(event, kinds) and event.epsilon <= choice.epsilon
            is_covered = is_covered and count == 1 and not others
        if not is_covered:
            raise RuntimeError(f"{choice} does not cover the next release")
        self.consume(choice)
        with self._lock:
            self._unspent.update(single_runs(events))

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be copied, because a copy would permit all releases again."""
        raise TypeError("a permit cannot be pickled or copied: it is the right to release once")

    def parallel(self, event: Event) -> ParallelReleases:
        """Use up one event for releases from disjoint blocks of records."""
        return ParallelReleases(event, self.consume(event))


@dataclass(slots=True)
class ParallelReleases:
    """Releases from disjoint blocks of records, which together cost as much as one of them.

    Objects are made by :meth:`Permit.parallel` only.

    Notes
    -----
    **Guarantee.**

    - Adjacency: replace-one.
    - Released: one value for each block, which may depend on earlier releases; together they have
      the event of one of them.
    - Sensitivity: a record is in one block, and which one must not depend on the data.
    - Proof: parallel composition, ``docs/proofs/accounting.md``, section 6; McSherry (2009).
    """

    _event: Event
    _source: ByteSource
    _next: int = field(init=False, default=0)

    def release(
        self, value: NDArray[np.float64], mechanism: Mechanism, block: range
    ) -> NDArray[np.float64]:
        """Perturb a value computed from earlier releases and the records of a block.

        The block must follow all earlier ones; otherwise a RuntimeError indicates a defect of the
        calling code, before any noise is drawn.
        """
        is_behind = block.step == 1 and self._next <= block.start < block.stop
        if not is_behind or mechanism.event != self._event:
            raise RuntimeError("blocks must be disjoint, and each must cost the event charged")
        self._next = block.stop
        return draw_release(value, mechanism, self._source)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be copied, because a copy could release from the same records again."""
        raise TypeError("releases from disjoint blocks cannot be pickled or copied")


def authorise(record: PrivacyRecord, source: ByteSource, ledger: Ledger | None = None) -> Permit:
    """Charge the ledger with `record`, then permit its releases.

    Parameters
    ----------
    record : PrivacyRecord
        Everything that is going to be released, as events.
    source : ByteSource
        Randomness of the noise.
    ledger : Ledger or None, default=None
        Charged before this function returns, hence before any noise exists.

    Returns
    -------
    Permit

    Raises
    ------
    BudgetError
        Raised by the ledger if the record exceeds the remaining budget.

    Notes
    -----
    **Guarantee.**

    - Adjacency: that of the record.
    - Released: nothing here; the permit releases what the record lists.
    - Sensitivity: none, no data are read; the ledger is charged before any noise exists.
    - Proof: ``docs/proofs/accounting.md``, section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.privacy import PrivacyRecord, additive_noise, authorise, noise_source
    >>> noise = additive_noise(1.0, epsilon=1.0, delta=1e-6)
    >>> record = PrivacyRecord(epsilon=1.0, delta=1e-6, events=[noise.event], noise="os")
    >>> authorise(record, noise_source(None)).release(np.zeros(3), noise).shape
    (3,)
    """
    if ledger is not None:
        ledger.charge(record)
    return Permit(record, source, single_runs(record.events))
