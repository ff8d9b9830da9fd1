"""A model by the exponential mechanism over seeded candidates, refined in stages.

Candidates are Gaussian vectors from public randomness: the first stage draws them from
everywhere, each later one round the candidate that the stage before released. They never depend
on the data but through what was released, so every stage is one exponential mechanism, for
every number of candidates. Proof: ``docs/proofs/pure_network.md``, section 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.privacy.accounting import calibrate
from dp_halfspace.privacy.events import Event, Exponential, Pure
from dp_halfspace.privacy.mechanisms import ExponentialChoice, NoNoise, Permit

__all__ = ["MOST_CANDIDATES", "SearchPlan", "candidate_block", "plan_search", "run_search"]

FloatArray: TypeAlias = NDArray[np.float64]

MOST_CANDIDATES = 10**6
_BLOCK = 256
_DOWN = 1.0 - 2.0**-40


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """The public numbers of a search.

    Attributes
    ----------
    n_candidates : int
        Of each stage.
    radii : tuple of float
        Of the stages; infinite for candidates from everywhere. A candidate is
        ``(centre + radius * g) / sqrt(1 + radius^2)`` with Gaussian ``g``.
    mechanism : ExponentialChoice or NoNoise
        Of each stage.
    """

    n_candidates: int
    radii: tuple[float, ...]
    mechanism: ExponentialChoice | NoNoise

    @property
    def events(self) -> tuple[Event, ...]:
        """What the search costs."""
        if isinstance(self.mechanism, NoNoise):
            return (Pure(math.inf),)
        return (self.mechanism.event,) * len(self.radii)


def plan_search(
    *,
    epsilon: float,
    delta: float,
    n_candidates: int,
    n_stages: int,
    sensitivity: float,
    radius: float = 1.0,
    shrink: float = 0.7,
) -> SearchPlan:
    """Split a budget into equal stages.

    Parameters
    ----------
    epsilon, delta : float
        Of the whole search; zero `delta` gives pure epsilon.
    sensitivity : float
        Bound on the change of the loss of any one candidate.
    radius, shrink : float
        Radius of the second stage, and the ratio of one to the next.

    Raises
    ------
    ValueError
        If there are too many candidates to be looked at.

    Examples
    --------
    >>> from dp_halfspace.algorithms.selection.staged_search import plan_search
    >>> plan = plan_search(
    ...     epsilon=1.0, delta=0.0, n_candidates=100, n_stages=2, sensitivity=1.0)
    >>> [round(event.epsilon, 9) for event in plan.events], plan.radii
    ([0.5, 0.5], (inf, 1.0))
    """
    if not 1 <= n_candidates <= MOST_CANDIDATES:
        raise ValueError(f"n_candidates must be from 1 to {MOST_CANDIDATES}, got {n_candidates}")
    radii = (math.inf, *(radius * shrink**stage for stage in range(n_stages - 1)))
    if math.isinf(epsilon):
        return SearchPlan(n_candidates, radii, NoNoise())
    share = epsilon / n_stages * _DOWN
    if delta > 0:
        share = calibrate(
            lambda each: (Exponential(each),) * n_stages,
            epsilon,
            delta,
            lower=share,
            upper=8.0 * share,
        )
    return SearchPlan(n_candidates, radii, ExponentialChoice(sensitivity, share))


def run_search(
    plan: SearchPlan,
    size: int,
    losses: Callable[[FloatArray], FloatArray],
    permit: Permit,
    *,
    seed: int,
) -> FloatArray:
    """Choose a candidate of small loss.

    Parameters
    ----------
    size : int
        Number of parameters of a candidate.
    losses : callable
        Maps candidates, an ndarray of shape (m, size), to their private losses. One
        record changes a loss by at most the sensitivity of the plan.
    permit : Permit
        Charged with the events of the plan.
    seed : int
        Public.

    Returns
    -------
    ndarray of shape (size,)
        One of the candidates. Private; free to be used.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.algorithms.selection.staged_search import plan_search, run_search
    >>> from dp_halfspace.privacy import PrivacyRecord, authorise, noise_source
    >>> plan = plan_search(
    ...     epsilon=9.0, delta=0.0, n_candidates=500, n_stages=3, sensitivity=1.0)
    >>> record = PrivacyRecord(epsilon=9.0, delta=0.0, events=plan.events, noise="os")
    >>> permit = authorise(record, noise_source(None))
    >>> far = lambda found: 100.0 * np.abs(found[:, 0] - 1.0)
    >>> bool(abs(run_search(plan, 1, far, permit, seed=0)[0] - 1.0) < 0.1)
    True
    """
    centre = np.zeros(size)
    for stage, radius in enumerate(plan.radii):
        keys = [(seed, stage, n) for n in range(math.ceil(plan.n_candidates / _BLOCK))]
        utilities = [-losses(_drawn(plan, key, centre, radius)) for key in keys]
        released = permit.release(np.concatenate(utilities), plan.mechanism)
        is_exact = isinstance(plan.mechanism, NoNoise)
        chosen = int(released.argmax()) if is_exact else int(released[0])
        number, place = divmod(chosen, _BLOCK)
        centre = _drawn(plan, keys[number], centre, radius)[place]
    return centre


def _drawn(plan: SearchPlan, key: tuple[int, ...], centre: FloatArray, radius: float) -> FloatArray:
    """Return one block of the candidates of a stage."""
    width = min(_BLOCK, plan.n_candidates - key[-1] * _BLOCK)
    return candidate_block(key, width, centre, radius)


def candidate_block(
    seed: tuple[int, ...], width: int, centre: FloatArray, radius: float
) -> FloatArray:
    """Return candidates, the same whenever they are asked for.

    Parameters
    ----------
    seed : tuple of int
        Public; its last entry is the number of the block. The first candidate of block 0 is
        the centre itself, so that no stage needs to lose what was found.
    radius : float
        Infinity for candidates that do not depend on the centre.
    """
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
    drawn = rng.standard_normal((width, len(centre)))
    if math.isinf(radius):
        return drawn
    drawn *= radius
    drawn += centre
    drawn /= math.hypot(1.0, radius)
    if seed[-1] == 0:
        drawn[0] = centre
    return drawn
