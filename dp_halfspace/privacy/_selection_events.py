"""Events of publishing the best of a random number of runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dp_halfspace.privacy._event_fields import number_to_json
from dp_halfspace.privacy._log_profiles import check_nonnegative

__all__ = ["MixedSelection", "Selection"]


def _check_mass(mean_runs: float, shares: Sequence[float]) -> tuple[float, tuple[float, ...]]:
    """Return both as floats or raise."""
    mean = check_nonnegative("mean_runs", mean_runs)
    if mean < 1.0:
        raise ValueError(f"mean_runs must be at least 1, got {mean_runs!r}")
    floats = tuple(check_nonnegative("shares", share) for share in shares)
    # At a very negative epsilon every delta is 1: a smaller mass bounds nothing.
    if not mean * math.fsum(floats) >= 1.0:
        raise ValueError(f"shares must sum to 1 / mean_runs at least, got {shares!r}")
    return mean, floats


@dataclass(frozen=True, slots=True)
class Selection:
    """The best of a random number of private runs, the number kept secret.

    Contract: for every threshold the hockey-stick divergence delta(e) on neighbouring
    data sets is at most ``mean_runs * delta_mu(e - log_ratio)``, with ``delta_mu`` the
    profile of `Gaussian`. With n `shares` it is at most the sum over j of ``mean_runs *
    shares[j] * delta_mu(e - log_ratio * (j + 1) / n)``.

    Parameters
    ----------
    mean_runs : float
        Expected number of runs, >= 1.
    log_ratio : float
        Bound of the logarithm of the ratio of the rank factors, >= 0.
    mu : float
        Each run, its noisy score included, is `mu`-GDP; >= 0.
    shares : tuple of float, default=(1.0,)
        Nonnegative, together at least ``1 / mean_runs``; the default puts everything at
        `log_ratio`.

    Notes
    -----
    `dp_halfspace.privacy.random_stopping.selection_event` computes the numbers of a law.

    Examples
    --------
    >>> from dp_halfspace.privacy.events import Selection
    >>> Selection(15.0, 0.3156, 0.15).describe()
    'best of a random number of runs, 15 on average, of mu = 0.15 each, rank ratio <= exp(0.3156)'
    """

    mean_runs: float
    log_ratio: float
    mu: float
    shares: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        mean_runs, shares = _check_mass(self.mean_runs, self.shares)
        object.__setattr__(self, "mean_runs", mean_runs)
        object.__setattr__(self, "log_ratio", check_nonnegative("log_ratio", self.log_ratio))
        object.__setattr__(self, "mu", check_nonnegative("mu", self.mu))
        object.__setattr__(self, "shares", shares)

    def describe(self) -> str:
        """One line for an auditor."""
        return (
            f"best of a random number of runs, {self.mean_runs:.6g} on average, of "
            f"mu = {self.mu:.6g} each, rank ratio <= exp({self.log_ratio:.6g})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data from which `event_from_dict` rebuilds the event."""
        return {
            "type": "Selection",
            "mean_runs": number_to_json(self.mean_runs),
            "log_ratio": number_to_json(self.log_ratio),
            "mu": number_to_json(self.mu),
            "shares": [number_to_json(share) for share in self.shares],
        }


@dataclass(frozen=True, slots=True)
class MixedSelection:
    """The best of a random number of runs of publicly drawn candidates, each with its own loss.

    Contract: for every threshold the hockey-stick divergence delta(e) on neighbouring
    data sets is at most the sum over j of ``mean_runs * shares[j] * base(e - log_ratio * (j + 1)
    / n)`` for n `shares`, where ``base(e)`` is the sum over `terms` of ``weight * delta_mu(e -
    shift)`` with ``delta_mu`` the profile of `Gaussian`.

    Parameters
    ----------
    mean_runs : float
        Expected number of runs, >= 1.
    log_ratio : float
        Bound of the logarithm of the ratio of the rank factors, >= 0.
    terms : tuple of (float, float, float)
        Weight, shift and mu of each, >= 0; the weights sum to 1 at least.
    shares : tuple of float, default=(1.0,)
        Nonnegative, together at least ``1 / mean_runs``; the default puts everything at
        `log_ratio`.

    Notes
    -----
    `dp_halfspace.privacy.mixed_selection.mixed_selection_event` computes the numbers from a law
    and the events of the runs. With the only term ``(1, 0, mu)`` it is `Selection`.

    Examples
    --------
    >>> from dp_halfspace.privacy.events import MixedSelection
    >>> MixedSelection(15.0, 0.4, ((1.0, 0.1, 0.0), (1.0, 0.1, 0.15))).describe()
    'best of a random number of runs, 15 on average, of 2 Gaussian losses, rank ratio <= exp(0.4)'
    """

    mean_runs: float
    log_ratio: float
    terms: tuple[tuple[float, float, float], ...]
    shares: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        mean_runs, shares = _check_mass(self.mean_runs, self.shares)
        names = ("weight", "shift", "mu")
        terms = tuple(
            tuple(check_nonnegative(name, x) for name, x in zip(names, term, strict=True))
            for term in self.terms
        )
        if not math.fsum(term[0] for term in terms) >= 1.0:
            raise ValueError(f"terms must have weights of at least 1 together, got {self.terms!r}")
        object.__setattr__(self, "mean_runs", mean_runs)
        object.__setattr__(self, "log_ratio", check_nonnegative("log_ratio", self.log_ratio))
        object.__setattr__(self, "terms", terms)
        object.__setattr__(self, "shares", shares)

    def describe(self) -> str:
        """One line for an auditor."""
        return (
            f"best of a random number of runs, {self.mean_runs:.6g} on average, of "
            f"{len(self.terms)} Gaussian losses, rank ratio <= exp({self.log_ratio:.6g})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data from which `event_from_dict` rebuilds the event."""
        return {
            "type": "MixedSelection",
            "mean_runs": number_to_json(self.mean_runs),
            "log_ratio": number_to_json(self.log_ratio),
            "terms": [[number_to_json(x) for x in term] for term in self.terms],
            "shares": [number_to_json(share) for share in self.shares],
        }
